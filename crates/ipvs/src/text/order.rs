//! The order of services and destinations in sorted listings of ipvsadm.
//!
//! ipvsadm compares numbers by the sign of their difference in 32 bits, so that 172.30.0.1 comes before
//! 5.6.7.8. That order is not transitive, and the result depends on the order in which the kernel lists and
//! on the sort of the C library (a merge sort up to glibc 2.36). As scripts compare these listings, this
//! sorts in the same way.

use std::cmp::Ordering;
use std::net::IpAddr;

use crate::destination::Destination;
use sluicegate_netlink::{Family, Protocol};

use crate::service::{Endpoint, ServiceId};

/// Sorts services from the order of the kernel into that of `ipvsadm -L` and `-S`. `id` returns the service
/// of an item.
pub fn sort_services<T>(items: &mut Vec<T>, id: impl Fn(&T) -> ServiceId) {
    merge_sort(items, &|a, b| compare_services(&id(a), &id(b)));
}

/// Sorts the destinations of a service from the order of the kernel into that of `ipvsadm -L` and `-S`.
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

/// Compares by the sign of the difference of the first words that differ. If the left address is an IPv4
/// address, only the first words are compared.
fn compare_words(a: &Endpoint, b: &Endpoint) -> Ordering {
    let count = if a.family() == Family::Ipv4 { 1 } else { 4 };
    let difference = words(a.address).into_iter().zip(words(b.address)).take(count).find(|(a, b)| a != b);
    difference.map_or(Ordering::Equal, |(a, b)| a.wrapping_sub(b).cast_signed().cmp(&0))
}

/// Returns the four words of `union nf_inet_addr`.
fn words(address: IpAddr) -> [u32; 4] {
    match address {
        IpAddr::V4(address) => [address.to_bits(), 0, 0, 0],
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            [96, 64, 32, 0].map(|shift| u32::try_from((bits >> shift) & u128::from(u32::MAX)).unwrap_or(0))
        }
    }
}

/// Sorts as glibc's `qsort` does: a stable top-down merge sort whose lower half is rounded down. The sort of
/// the standard library may panic on a comparison that is not a total order.
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
    fn addresses_more_than_half_the_range_apart_are_in_reverse_order() {
        assert_eq!(
            sorted(&["5.6.7.8", "192.168.0.2", "172.30.10.1"]),
            ["172.30.10.1", "192.168.0.2", "5.6.7.8"]
        );
        assert_eq!(sorted(&["10.0.0.2", "10.0.0.1"]), ["10.0.0.1", "10.0.0.2"]);
    }

    #[test]
    fn a_comparison_that_is_not_transitive_does_not_panic() {
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
