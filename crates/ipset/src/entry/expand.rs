//! The entries that a set stores for an entry: single elements for a range, masked addresses, networks for a
//! range of addresses.
//!
//! The kernel expands an entry when it is added; this predicts the result, in order to compare wanted entries
//! with those of a set.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Element, Entry};
use crate::set_type::Part;
use crate::{Addresses, CreateOptions, Family, Port, Reason, SetType};

impl Entry {
    /// Returns the entries that a set with these options stores for this one.
    ///
    /// A range or network of single addresses becomes one entry for each; a range of addresses becomes the
    /// networks that cover it where the type stores networks; a range of ports becomes one entry for each
    /// port; addresses are masked.
    ///
    /// ```
    /// use sluicegate_ipset::{CreateOptions, Entry, Family, Numeric, SetType};
    ///
    /// let stored = |kind, text| -> Result<Vec<String>, sluicegate_ipset::Reason> {
    ///     let entry = Entry::parse(kind, Family::Ipv4, text, &Numeric)?;
    ///     Ok(entry.stored(&CreateOptions::default())?.iter().map(ToString::to_string).collect())
    /// };
    /// assert_eq!(stored(SetType::HashIp, "10.0.0.4/31")?, ["10.0.0.4", "10.0.0.5"]);
    /// assert_eq!(stored(SetType::HashNet, "10.0.0.0-10.0.0.4")?, ["10.0.0.0/30", "10.0.0.4"]);
    /// assert_eq!(stored(SetType::HashIpPort, "10.0.0.1,udp:1-2")?, ["10.0.0.1,udp:1", "10.0.0.1,udp:2"]);
    /// # Ok::<(), sluicegate_ipset::Reason>(())
    /// ```
    ///
    /// # Errors
    /// [`Reason::TooMany`] above 1,048,576 entries. [`Reason::Masked`] for a `hash:net,net` with a mask,
    /// whose rules differ from kernel to kernel.
    pub fn stored(&self, set: &CreateOptions) -> Result<Vec<Self>, Reason> {
        let masked = set.netmask.is_some() || set.bitmask.is_some();
        if masked && self.kind == SetType::HashNetNet {
            return Err(Reason::Masked(self.to_string()));
        }
        let elements = self.element.stored(self.kind, self.family, set);
        let elements = elements.ok_or_else(|| Reason::TooMany { text: self.to_string(), max: MOST })?;
        Ok(elements.into_iter().map(|element| Self { element, ..self.clone() }).collect())
    }
}

impl Element {
    fn stored(&self, kind: SetType, family: Family, set: &CreateOptions) -> Option<Vec<Self>> {
        let part = |place: usize| kind.parts().get(place).copied().unwrap_or(Part::Address);
        let first = |addresses: &Addresses| expand(addresses, part(0), family, set);
        let plain = CreateOptions::default();
        Some(match *self {
            Self::Ip(a) => first(&a)?.into_iter().map(Self::Ip).collect(),
            Self::IpMac(a, mac) => first(&a)?.into_iter().map(|a| Self::IpMac(a, mac)).collect(),
            Self::IpMark(a, mark) => {
                let mark = mark & set.markmask.unwrap_or(u32::MAX);
                first(&a)?.into_iter().map(|a| Self::IpMark(a, mark)).collect()
            }
            Self::NetInterface(a, interface) => {
                first(&a)?.into_iter().map(|a| Self::NetInterface(a, interface)).collect()
            }
            Self::NetNet(a, b) => {
                let second = expand(&b, part(1), family, &plain)?;
                product(&first(&a)?, &second, |a, b| Self::NetNet(*a, *b))?
            }
            Self::IpPort(a, port) => product(&first(&a)?, &ports(port), |a, port| Self::IpPort(*a, *port))?,
            Self::IpPortIp(a, port, b) => {
                let second = expand(&b, part(2), family, &plain)?;
                let front = product(&first(&a)?, &ports(port), |a, port| (*a, *port))?;
                product(&front, &second, |(a, port), b| Self::IpPortIp(*a, *port, *b))?
            }
            Self::Port(from, to) => {
                let to = to.unwrap_or(from);
                (from.min(to)..=from.max(to)).map(|port| Self::Port(port, None)).collect()
            }
            // The position is an argument of `add` and not stored.
            Self::Set(set, _) => vec![Self::Set(set, None)],
            Self::Mac(_) => vec![*self],
        })
    }
}

fn product<A, B, C>(first: &[A], second: &[B], make: impl Fn(&A, &B) -> C) -> Option<Vec<C>> {
    let count = first.len().checked_mul(second.len())?;
    if count > MOST {
        return None;
    }
    Some(first.iter().flat_map(|a| second.iter().map(|b| make(a, b)).collect::<Vec<_>>()).collect())
}

fn ports(port: Port) -> Vec<Port> {
    let to = port.to.unwrap_or(port.from);
    (port.from.min(to)..=port.from.max(to)).map(|from| Port { from, to: None, ..port }).collect()
}

fn expand(addresses: &Addresses, part: Part, family: Family, set: &CreateOptions) -> Option<Vec<Addresses>> {
    let (from, to) = ends(addresses);
    if part == Part::Network {
        return match addresses {
            Addresses::Range { .. } => Some(networks(from, to, family)),
            Addresses::Network { prefix, .. } => Some(vec![network(from, *prefix, family)]),
            Addresses::Host(_) => Some(vec![network(from, family.bits(), family)]),
        };
    }
    let mask = match (set.netmask, set.bitmask) {
        (Some(bits), _) => prefix_mask(bits, family),
        (None, Some(mask)) => number(mask),
        (None, None) => u128::MAX,
    };
    let step = match set.netmask {
        Some(bits) => 1_u128.checked_shl(u32::from(family.bits().saturating_sub(bits))).unwrap_or(0),
        None => 1,
    };
    let count = usize::try_from((to - from).checked_div(step)?).ok()?;
    if count >= MOST {
        return None;
    }
    let mut stored = Vec::with_capacity(count + 1);
    let mut next = from & if set.netmask.is_some() { mask } else { u128::MAX };
    loop {
        stored.push(Addresses::Host(address(next & mask, family)));
        match next.checked_add(step).filter(|next| *next <= to) {
            Some(after) => next = after,
            None => break,
        }
    }
    stored.dedup();
    Some(stored)
}

/// Returns the lowest and the highest address.
fn ends(addresses: &Addresses) -> (u128, u128) {
    match *addresses {
        Addresses::Host(address) => (number(address), number(address)),
        Addresses::Network { address, prefix } => {
            let mask = prefix_mask(prefix, Family::of(address));
            let low = number(address) & mask;
            (low, low | (!mask & width(Family::of(address))))
        }
        Addresses::Range { from, to } => {
            let (from, to) = (number(from), number(to));
            (from.min(to), from.max(to))
        }
    }
}

/// Returns the fewest networks that cover a range exactly.
fn networks(mut from: u128, to: u128, family: Family) -> Vec<Addresses> {
    let mut networks = Vec::new();
    loop {
        // The largest network that the alignment and the rest of the range allow.
        let mut free = from.trailing_zeros().min(u32::from(family.bits()));
        while from.checked_add(block(free)).is_none_or(|last| last > to) {
            free -= 1;
        }
        let prefix = family.bits().saturating_sub(u8::try_from(free).unwrap_or(u8::MAX));
        networks.push(network(from, prefix, family));
        match from.checked_add(block(free)).and_then(|last| last.checked_add(1)) {
            Some(next) if next <= to => from = next,
            _ => return networks,
        }
    }
}

/// Returns the difference between the last and the first address of a network with this many host bits.
fn block(free: u32) -> u128 {
    1_u128.checked_shl(free).map_or(u128::MAX, |size| size - 1)
}

fn network(from: u128, prefix: u8, family: Family) -> Addresses {
    Addresses::Network { address: address(from & prefix_mask(prefix, family), family), prefix }
}

fn prefix_mask(prefix: u8, family: Family) -> u128 {
    let free = u32::from(family.bits().saturating_sub(prefix));
    !block(free) & width(family)
}

fn width(family: Family) -> u128 {
    if family == Family::Ipv6 { u128::MAX } else { u32::MAX.into() }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

fn address(number: u128, family: Family) -> IpAddr {
    match family {
        Family::Ipv6 => Ipv6Addr::from(number).into(),
        _ => Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)).into(),
    }
}

/// The maximum number of entries that one entry may expand to.
const MOST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Numeric;
    use proptest::prelude::*;

    fn stored(
        kind: SetType,
        family: Family,
        text: &str,
        options: &CreateOptions,
    ) -> Result<Vec<String>, Reason> {
        let entry = Entry::parse(kind, family, text, &Numeric)?;
        Ok(entry.stored(options)?.iter().map(ToString::to_string).collect())
    }

    /// As ipset 7.17 and Linux 6.18 stored them.
    #[test]
    fn networks_and_ranges_become_what_the_kernel_stores() {
        let plain = CreateOptions::default();
        let inet = |kind, text| stored(kind, Family::Ipv4, text, &plain).unwrap();
        assert_eq!(inet(SetType::HashNet, "1.1.1.0-1.1.1.6"), ["1.1.1.0/30", "1.1.1.4/31", "1.1.1.6"]);
        assert_eq!(inet(SetType::HashNet, "1.2.3.4/24"), ["1.2.3.0/24"]);
        assert_eq!(inet(SetType::HashNet, "0.0.0.0-255.255.255.255"), ["0.0.0.0/0"]);
        assert_eq!(
            inet(SetType::HashIpPortNet, "1.2.3.4,udp:80,5.6.8.0-5.6.8.10"),
            ["1.2.3.4,udp:80,5.6.8.0/29", "1.2.3.4,udp:80,5.6.8.8/31", "1.2.3.4,udp:80,5.6.8.10"]
        );
        assert_eq!(inet(SetType::HashIpPortIp, "1.2.3.0/30,80-81,5.6.7.8").len(), 8);
        assert_eq!(inet(SetType::BitmapIp, "10.0.0.6-10.0.0.4"), ["10.0.0.4", "10.0.0.5", "10.0.0.6"]);
    }

    #[test]
    fn masks_of_the_set_are_applied() {
        let netmask = CreateOptions { netmask: Some(24), ..CreateOptions::default() };
        let bitmask = CreateOptions { bitmask: Some([255, 0, 255, 0].into()), ..CreateOptions::default() };
        let ip = |text, options| stored(SetType::HashIp, Family::Ipv4, text, options).unwrap();
        assert_eq!(ip("1.2.3.4", &netmask), ["1.2.3.0"]);
        assert_eq!(ip("1.2.3.4-1.2.5.0", &netmask), ["1.2.3.0", "1.2.4.0", "1.2.5.0"]);
        assert_eq!(ip("1.2.3.4", &bitmask), ["1.0.3.0"]);
        let netmask = CreateOptions { netmask: Some(64), ..CreateOptions::default() };
        assert_eq!(stored(SetType::HashIp, Family::Ipv6, "1:2:3:4:5::", &netmask).unwrap(), ["1:2:3:4::"]);
    }

    #[test]
    fn an_expansion_to_too_many_entries_is_refused_beforehand() {
        let plain = CreateOptions::default();
        for text in ["0.0.0.0/0,80", "10.0.0.0/16,1-65535"] {
            assert!(matches!(
                stored(SetType::HashIpPort, Family::Ipv4, text, &plain),
                Err(Reason::TooMany { .. })
            ));
        }
    }

    proptest! {
        #[test]
        fn networks_cover_a_range_exactly(a in any::<u32>(), b in any::<u32>()) {
            let (from, to) = (u128::from(a.min(b)), u128::from(a.max(b)));
            let mut next = Some(from);
            for network in networks(from, to, Family::Ipv4) {
                let (low, high) = ends(&network);
                prop_assert_eq!(Some(low), next);
                next = high.checked_add(1);
            }
            prop_assert_eq!(next, Some(to + 1));
        }
    }
}
