//! Addresses, masks in both notations, ranges, and the addresses with ports of address translation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Read, named, number::integer};
use crate::ext::Family;

/// An address and a mask, both of the same family, as the bits of an IPv6 address or the low 32 bits for IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    family: Family,
    address: u128,
    mask: u128,
}

/// The networks of `-s` and `-d`: one or more with commas between.
pub(crate) fn networks(word: &str, family: Family) -> Result<Vec<Network>, std::borrow::Cow<'static, str>> {
    word.split(',').map(|part| Network::read(part, family)).collect()
}

impl Network {
    pub(crate) fn read(word: &str, family: Family) -> Result<Self, std::borrow::Cow<'static, str>> {
        let (address, mask) =
            word.split_once('/').map_or((word, None), |(address, mask)| (address, Some(mask)));
        let address = bits(address, family).ok_or_else(|| expected(family))?;
        let mask = match mask {
            None => full(family),
            Some(mask) => mask_bits(mask, family).ok_or_else(|| expected_mask(family))?,
        };
        Ok(Self { family, address: address & mask, mask })
    }

    /// True of `0.0.0.0/0` and `::/0`.
    pub(crate) fn is_all(self) -> bool {
        self.mask == 0 && self.address == 0
    }

    /// The spelling of `-s` in iptables-save: always with a mask, as a length if it has one.
    pub(crate) fn normal(self) -> String {
        format!("{}/{}", show(self.address, self.family), self.mask_text())
    }

    /// Whether the mask is a prefix length.
    pub(crate) fn is_prefix(self) -> bool {
        length(self.mask, self.family).is_some()
    }

    fn mask_text(self) -> String {
        match length(self.mask, self.family) {
            Some(length) => length.to_string(),
            None => show(self.mask, self.family),
        }
    }
}

pub(super) fn host(word: &str, family: Family) -> Read {
    bits(word, family)
        .map(|bits| show(bits, family))
        .ok_or_else(|| format!("expected an {} address", name(family)).into())
}

pub(super) fn host_mask(word: &str, family: Family) -> Read {
    if word.contains(',') {
        return Err("expected a single address".into());
    }
    let network = Network::read(word, family)?;
    // Unlike `-s`, extensions keep the bits that the mask leaves out.
    let (address, mask) = word.split_once('/').map_or((word, None), |(address, mask)| (address, Some(mask)));
    let address = bits(address, family).map_or_else(|| address.to_owned(), |bits| show(bits, family));
    Ok(match mask {
        Some(_) if network.mask != full(family) => format!("{address}/{}", network.mask_text()),
        _ => address,
    })
}

pub(super) fn addresses(word: &str, family: Family) -> Read {
    let hosts: Result<Vec<_>, _> = word.split(',').map(|part| host(part, family)).collect();
    hosts.map(|hosts| hosts.join(","))
}

/// `a` or `a-b`
pub(super) fn range(word: &str, family: Family) -> Read {
    let (low, high) = word.split_once('-').unwrap_or((word, word));
    match bits(low, family).zip(bits(high, family)) {
        Some((low, high)) if low <= high => Ok(format!("{}-{}", show(low, family), show(high, family))),
        Some(_) => Err("expected a range of addresses that ends at or above its start".into()),
        None => Err(format!("expected an {} address or a range of them (`a-b`)", name(family)).into()),
    }
}

pub(super) fn prefix_length(word: &str, family: Family) -> Read {
    super::number::int(word, 0, width(family).into())
}

/// A mask as a length or as an address.
pub(super) fn prefix_mask(word: &str, family: Family) -> Read {
    let mask = mask_bits(word, family).ok_or_else(|| expected_mask(family))?;
    Ok(length(mask, family).map_or_else(|| show(mask, family), |length| length.to_string()))
}

/// `[address[-address]][:port[-port[/base]]]`, an IPv6 address in brackets if a port follows.
pub(super) fn nat(word: &str, family: Family, base: bool) -> Read {
    let (addresses, ports) = match family {
        Family::V4 => {
            word.split_once(':').map_or((word, None), |(addresses, ports)| (addresses, Some(ports)))
        }
        Family::V6 => match word.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((addresses, "")) => (addresses, None),
            Some((addresses, ports)) => match ports.strip_prefix(':') {
                Some(ports) => (addresses, Some(ports)),
                None => return Err("expected `:` and a port behind `]`".into()),
            },
            None => match word.strip_prefix(':').filter(|rest| !rest.starts_with(':')) {
                Some(ports) => ("", Some(ports)),
                None => (word, None),
            },
        },
    };
    let ports = ports.map(|ports| port_pair(ports, base)).transpose()?;
    let addresses = match addresses {
        "" if ports.is_some() => String::new(),
        text => pair(text, family)?,
    };
    Ok(match (ports, family) {
        (None, _) => addresses,
        (Some(ports), Family::V6) if !addresses.is_empty() => format!("[{addresses}]:{ports}"),
        (Some(ports), _) => format!("{addresses}:{ports}"),
    })
}

/// `port[-port]`
pub(super) fn nat_ports(word: &str) -> Read {
    port_pair(word, false)
}

fn pair(text: &str, family: Family) -> Read {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let complete =
        |part: &str| bits(part, family).filter(|_| family == Family::V6 || part.matches('.').count() == 3);
    match complete(low).zip(complete(high)) {
        Some((low, high)) if low == high => Ok(show(low, family)),
        Some((low, high)) => Ok(format!("{}-{}", show(low, family), show(high, family))),
        None => Err(format!("expected an {} address, as in `{}`", name(family), nat_example(family)).into()),
    }
}

fn port_pair(text: &str, base: bool) -> Read {
    let wrong = || "expected a port from 1 to 65535 or a range of them (`a-b`)";
    let one = |part: &str| named::port(part).ok().filter(|port| *port != 0).ok_or_else(wrong);
    let (low, rest) = text.split_once('-').map_or((text, None), |(low, rest)| (low, Some(rest)));
    let low = one(low)?;
    let Some(rest) = rest else { return Ok(low.to_string()) };
    let (high, shift) = match rest.split_once('/') {
        Some((high, shift)) if base => (high, Some(one(shift)?)),
        Some(_) => return Err(wrong().into()),
        None => (rest, None),
    };
    let high = one(high)?;
    if low > high {
        return Err("expected a range of ports that ends at or above its start".into());
    }
    let range = if low == high && shift.is_none() { low.to_string() } else { format!("{low}-{high}") };
    Ok(shift.map_or_else(|| range.clone(), |shift| format!("{range}/{shift}")))
}

fn bits(word: &str, family: Family) -> Option<u128> {
    match family {
        Family::V4 => dotted(word).map(u128::from),
        Family::V6 => word.parse::<Ipv6Addr>().ok().map(u128::from),
    }
}

/// One to four decimal numbers with dots between; what is left out is 0, as the tool has it (`10/8`).
fn dotted(word: &str) -> Option<u32> {
    let mut parts = word.split('.');
    let mut bits = 0;
    for shift in [24, 16, 8, 0] {
        let part = match parts.next() {
            Some(part) if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) => {
                part.parse::<u8>().ok()?
            }
            Some(_) => return None,
            None => 0,
        };
        bits |= u32::from(part) << shift;
    }
    parts.next().is_none().then_some(bits)
}

fn mask_bits(word: &str, family: Family) -> Option<u128> {
    match integer(word) {
        Some(length) => {
            let length = u32::try_from(length).ok().filter(|length| *length <= width(family))?;
            Some(from_length(length, family))
        }
        None if family == Family::V4 => word.parse::<Ipv4Addr>().ok().map(|mask| u128::from(u32::from(mask))),
        None => bits(word, family),
    }
}

fn from_length(length: u32, family: Family) -> u128 {
    full(family) & !full(family).checked_shr(length).unwrap_or(0)
}

fn length(mask: u128, family: Family) -> Option<u32> {
    (0..=width(family)).find(|length| from_length(*length, family) == mask)
}

fn full(family: Family) -> u128 {
    if family == Family::V4 { u128::from(u32::MAX) } else { u128::MAX }
}

fn width(family: Family) -> u32 {
    if family == Family::V4 { 32 } else { 128 }
}

fn show(bits: u128, family: Family) -> String {
    let address = match family {
        Family::V4 => IpAddr::V4(Ipv4Addr::from(u32::try_from(bits).unwrap_or(u32::MAX))),
        Family::V6 => IpAddr::V6(Ipv6Addr::from(bits)),
    };
    address.to_string()
}

fn name(family: Family) -> &'static str {
    if family == Family::V4 { "IPv4" } else { "IPv6" }
}

fn nat_example(family: Family) -> &'static str {
    if family == Family::V4 { "192.0.2.1:80" } else { "[2001:db8::1]:80" }
}

fn expected(family: Family) -> String {
    format!("expected an {} address, with a mask if wanted", name(family))
}

fn expected_mask(family: Family) -> String {
    format!("expected a mask from 0 to {}, or written as an {} address", width(family), name(family))
}
