//! Addresses as Kubernetes accepts them: leading zeros in IPv4 are decimal, a CIDR may have host bits.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::Error;

/// IPv4 or IPv6.
///
/// ```
/// use sluicegate_services::Family;
///
/// assert_eq!(Family::of("2001:db8::1".parse()?), Family::Ipv6);
/// assert_eq!(Family::BOTH, [Family::Ipv4, Family::Ipv6]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl Family {
    /// Both, IPv4 first.
    pub const BOTH: [Self; 2] = [Self::Ipv4, Self::Ipv6];

    /// Returns the family of an address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::Ipv4,
            IpAddr::V6(_) => Self::Ipv6,
        }
    }

    /// Returns the family of a network.
    #[must_use]
    pub const fn of_net(net: &IpNet) -> Self {
        match net {
            IpNet::V4(_) => Self::Ipv4,
            IpNet::V6(_) => Self::Ipv6,
        }
    }

    /// Checks that there is at most one item of each family, by `of`: one network of pods, one address of a
    /// node.
    ///
    /// # Errors
    /// [`Error::TwoOfOneFamily`] with the first two of a family.
    pub fn check_one_of_each<T: fmt::Display>(items: &[T], of: impl Fn(&T) -> Self) -> Result<(), Error> {
        for family in Self::BOTH {
            let mut found = items.iter().filter(|item| of(item) == family);
            if let (Some(first), Some(second)) = (found.next(), found.next()) {
                return Err(Error::TwoOfOneFamily { first: first.to_string(), second: second.to_string() });
            }
        }
        Ok(())
    }

    /// Returns the name in the Kubernetes API: `IPv4`, `IPv6`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Parses an address the way Kubernetes does for compatibility with its own past: `010.000.0.1` is
/// `10.0.0.1`.
///
/// ```
/// use sluicegate_services::parse_ip;
///
/// assert_eq!(parse_ip("010.000.0.1"), Some("10.0.0.1".parse().unwrap()));
/// assert_eq!(parse_ip("FD00::0A"), Some("fd00::a".parse().unwrap()));
/// assert_eq!(parse_ip("10.0.0.256"), None);
/// ```
#[must_use]
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        let address: Ipv6Addr = without_zeros_v6(text)?.parse().ok()?;
        // Go, and so Kubernetes, treats a mapped address as IPv4.
        return Some(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4));
    }
    parse_v4(text).map(IpAddr::V4)
}

/// Parses a CIDR the same way; host bits are dropped, as in `10.1.2.3/8`, which is `10.0.0.0/8`.
#[must_use]
pub fn parse_cidr(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    let all_digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
    let length: u8 = if all_digits { length.parse().ok()? } else { return None };
    let address = parse_ip(address)?;
    IpNet::new(address, length).ok().map(|net| net.trunc())
}

/// Returns what is special about an address that no endpoint can have; `None` for the others.
///
/// A packet that is sent on to a loopback or link-local address reaches programs of this node, or of a
/// neighbour, that trust in not being reachable (CVE-2021-25737); the API server refuses them as well.
pub(crate) const fn special(ip: IpAddr) -> Option<&'static str> {
    let is_broadcast = matches!(ip, IpAddr::V4(Ipv4Addr::BROADCAST));
    let is_mapped = matches!(ip, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
    if ip.is_unspecified() {
        Some("unspecified")
    } else if ip.is_loopback() {
        Some("loopback")
    } else if is_link_local(ip) {
        Some("link-local")
    } else if ip.is_multicast() {
        Some("multicast")
    } else if is_broadcast {
        Some("broadcast")
    } else if is_mapped {
        Some("IPv4 mapped into IPv6")
    } else {
        None
    }
}

/// Returns `true` for 169.254.0.0/16 and `fe80::/10`.
pub(crate) const fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

fn parse_v4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        *octet = decimal_octet(parts.next()?)?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// Digits only, any number of leading zeros, at most 255.
fn decimal_octet(part: &str) -> Option<u8> {
    if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    match part.trim_start_matches('0') {
        "" => Some(0),
        digits => digits.parse().ok(),
    }
}

/// An IPv6 text may end in an IPv4 address with leading zeros of its own; the standard parser refuses those.
fn without_zeros_v6(text: &str) -> Option<String> {
    match text.rsplit_once(':') {
        Some((head, tail)) if tail.contains('.') => Some(format!("{head}:{}", parse_v4(tail)?)),
        _ => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_kubernetes_reads_them() {
        let cases = [
            ("10.0.0.1", Some("10.0.0.1")),
            ("010.000.000.001", Some("10.0.0.1")),
            ("0000010.0.0.08", Some("10.0.0.8")),
            ("0.0.0.0", Some("0.0.0.0")),
            ("::ffff:10.0.0.1", Some("10.0.0.1")),
            ("::ffff:010.0.0.1", Some("10.0.0.1")),
            ("fd00:0:0:0:0:0:0:0001", Some("fd00::1")),
            ("256.0.0.1", None),
            ("10.0.0", None),
            ("10.0.0.1.2", None),
            ("10.0.0.+1", None),
            ("10.0.0.", None),
            (" 10.0.0.1", None),
            ("fd00::1%eth0", None),
            ("fd00:::1", None),
            ("", None),
            ("localhost", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_ip(text), expected.map(|e| e.parse().unwrap()), "{text:?}");
        }
    }

    #[test]
    fn cidrs_lose_their_host_bits() {
        let cases = [
            ("10.244.0.0/16", Some("10.244.0.0/16")),
            ("10.244.1.2/16", Some("10.244.0.0/16")),
            ("010.0.0.0/08", Some("10.0.0.0/8")),
            ("fd00::1/64", Some("fd00::/64")),
            ("0.0.0.0/0", Some("0.0.0.0/0")),
            ("10.0.0.0/33", None),
            ("10.0.0.0/+8", None),
            ("10.0.0.0/-1", None),
            ("10.0.0.0/", None),
            ("10.0.0.0", None),
            ("fd00::/129", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_cidr(text), expected.map(|e| e.parse().unwrap()), "{text:?}");
        }
    }
}
