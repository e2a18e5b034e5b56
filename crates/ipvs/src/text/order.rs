//! The order in which ipvsadm lists, where it sorts.
//!
//! It compares numbers by the sign of their difference in 32 bits, so that 172.30.0.1 comes before 5.6.7.8: the order is
//! not even transitive, and what comes out depends on the order in which the kernel lists and on how the C library
//! sorts (a merge sort up to glibc 2.36). Scripts compare these listings, so it is done here in the same way.

use std::cmp::Ordering;
use std::net::IpAddr;

use crate::destination::Destination;
use crate::service::{Endpoint, Family, Protocol, ServiceId};

/// Sorts services, as the kernel listed them, into the order of `ipvsadm -L` and `-S`. `id` says which service an item is.
pub fn sort_services<T>(items: &mut Vec<T>, id: impl Fn(&T) -> ServiceId) {
    merge_sort(items, &|a, b| compare_services(&id(a), &id(b)));
}

/// Sorts the destinations of a service, as the kernel listed them, into the order of `ipvsadm -L` and `-S`.
pub fn sort_destinations(items: &mut Vec<Destination>) {
    merge_sort(items, &|a, b| compare_destinations(&a.id, &b.id));
}

fn compare_services(a: &ServiceId, b: &ServiceId) -> Ordering {
    let key = |id: &ServiceId| match *id {
        ServiceId::Virtual { protocol, endpoint } => (0, endpoint.family(), protocol),
        ServiceId::Mark { mark, family } => (mark.get(), family, Protocol(0)),
    };
    key(a).cmp(&key(b)).then_with(|| match (a, b) {
        (ServiceId::Virtual { endpoint: a, .. }, ServiceId::Virtual { endpoint: b, .. }) => {
            compare_words(a, b).then(a.port.cmp(&b.port))
        }
        _ => Ordering::Equal,
    })
}

fn compare_destinations(a: &Endpoint, b: &Endpoint) -> Ordering {
    compare_words(a, b).then(a.port.cmp(&b.port))
}

/// By the sign of the difference of the first words that differ; of an IPv4 address on the left only the first counts.
fn compare_words(a: &Endpoint, b: &Endpoint) -> Ordering {
    let count = if a.family() == Family::Ipv4 { 1 } else { 4 };
    let difference = words(a.address).into_iter().zip(words(b.address)).take(count).find(|(a, b)| a != b);
    difference.map_or(Ordering::Equal, |(a, b)| a.wrapping_sub(b).cast_signed().cmp(&0))
}

/// As in the 16 bytes of `union nf_inet_addr`.
fn words(address: IpAddr) -> [u32; 4] {
    match address {
        IpAddr::V4(address) => [address.to_bits(), 0, 0, 0],
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            [96, 64, 32, 0].map(|shift| u32::try_from((bits >> shift) & u128::from(u32::MAX)).unwrap_or(0))
        }
    }
}

/// Top-down, the lower half rounded down, stable: what glibc's `qsort` does. The sort of the standard library may panic
/// on an order that is none.
fn merge_sort<T>(items: &mut Vec<T>, compare: &impl Fn(&T, &T) -> Ordering) {
    if items.len() < 2 {
        return;
    }
    let mut upper = items.split_off(items.len() / 2);
    merge_sort(items, compare);
    merge_sort(&mut upper, compare);
    let mut lower = std::mem::take(items).into_iter().peekable();
    let mut upper = upper.into_iter().peekable();
    while let (Some(a), Some(b)) = (lower.peek(), upper.peek()) {
        let next = if compare(a, b).is_le() { lower.next() } else { upper.next() };
        items.extend(next);
    }
    items.extend(lower);
    items.extend(upper);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(addresses: &[&str]) -> Vec<String> {
        let mut ids: Vec<_> = addresses
            .iter()
            .map(|a| ServiceId::tcp(Endpoint::new(a.parse::<IpAddr>().unwrap(), 80)))
            .collect();
        sort_services(&mut ids, |id| *id);
        ids.iter().map(|id| id.to_string().replace("TCP ", "").replace(":80", "")).collect()
    }

    #[test]
    fn addresses_half_the_space_apart_come_the_other_way_round() {
        assert_eq!(
            sorted(&["5.6.7.8", "192.168.0.2", "172.30.10.1"]),
            ["172.30.10.1", "192.168.0.2", "5.6.7.8"]
        );
        assert_eq!(sorted(&["10.0.0.2", "10.0.0.1"]), ["10.0.0.1", "10.0.0.2"]);
    }

    #[test]
    fn an_order_that_is_a_circle_does_not_panic() {
        let mut all = Vec::new();
        for first in 0..=255u8 {
            all.push(format!("{first}.0.0.1"));
        }
        let all: Vec<_> = all.iter().map(String::as_str).collect();
        assert_eq!(sorted(&all).len(), 256);
    }

    #[test]
    fn family_comes_before_protocol_and_marks_last() {
        let four = Endpoint::new([10, 0, 0, 1], 80);
        let six = Endpoint::new([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 80);
        let mark = ServiceId::mark(1, Family::Ipv4).unwrap();
        let mut ids = vec![
            mark,
            ServiceId::tcp(six),
            ServiceId::sctp(four),
            ServiceId::udp(four),
            ServiceId::tcp(four),
        ];
        sort_services(&mut ids, |id| *id);
        assert_eq!(
            ids,
            [ServiceId::tcp(four), ServiceId::udp(four), ServiceId::sctp(four), ServiceId::tcp(six), mark]
        );
    }
}
