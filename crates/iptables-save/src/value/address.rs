//! Addresses, masks in both notations, ranges, and the addresses with ports of address translation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Read, named, number::integer};
use crate::RuleFault;
use crate::ext::Family;

/// An address and a mask, both of the same family, as the bits of an IPv6 address or the low 32 bits for
/// IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    family: Family,
    address: u128,
    mask: u128,
}

/// Returns the networks of `-s` and `-d`: one or more with commas between.
pub(crate) fn networks(
    word: &str,
    family: Family,
) -> Result<Vec<Network>, (RuleFault, std::borrow::Cow<'static, str>)> {
    word.split(',').map(|part| Network::with_fault(part, family)).collect()
}

impl Network {
    pub(crate) fn read(word: &str, family: Family) -> Result<Self, std::borrow::Cow<'static, str>> {
        Self::with_fault(word, family).map_err(|(_, reason)| reason)
    }

    fn with_fault(word: &str, family: Family) -> Result<Self, (RuleFault, std::borrow::Cow<'static, str>)> {
        let (address, mask) =
            word.split_once('/').map_or((word, None), |(address, mask)| (address, Some(mask)));
        let mask = match mask {
            None => full(family),
            Some(mask) => {
                mask_bits(mask, family).ok_or_else(|| (RuleFault::Mask, expected_mask(family).into()))?
            }
        };
        // The tool does not look at the address of such a network: `0/0` is any address of IPv6, too.
        let address = match mask {
            0 => 0,
            _ => {
                network_bits(address, family).ok_or_else(|| (RuleFault::Address, expected(family).into()))?
            }
        };
        Ok(Self { family, address: address & mask, mask })
    }

    /// Returns true for `0.0.0.0/0` and `::/0`.
    pub(crate) fn is_all(self) -> bool {
        self.mask == 0 && self.address == 0
    }

    /// Returns the spelling of `-s` in iptables-save: always with a mask, as a length if it has one.
    pub(crate) fn normal(self) -> String {
        format!("{}/{}", show(self.address, self.family), self.mask_text())
    }

    /// Returns whether the mask is a prefix length.
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
    host_bits(word, family)
        .map(|bits| show(bits, family))
        .ok_or_else(|| format!("expected an {} address", name(family)).into())
}

pub(super) fn host_mask(word: &str, family: Family) -> Read {
    if word.contains(',') {
        return Err("expected a single address".into());
    }
    // Unlike `-s`, extensions keep the bits that the mask leaves out.
    let (address, mask) = word.split_once('/').map_or((word, None), |(address, mask)| (address, Some(mask)));
    let address = host_bits(address, family).ok_or_else(|| expected(family))?;
    let mask = match mask {
        None => full(family),
        Some(mask) => mask_bits(mask, family).ok_or_else(|| expected_mask(family))?,
    };
    let network = Network { family, address, mask };
    let address = show(address, family);
    Ok(if mask == full(family) { address } else { format!("{address}/{}", network.mask_text()) })
}

pub(super) fn addresses(word: &str, family: Family) -> Read {
    let hosts: Result<Vec<_>, _> = word.split(',').map(|part| host(part, family)).collect();
    hosts.map(|hosts| hosts.join(","))
}

/// `a` or `a-b`
pub(super) fn range(word: &str, family: Family) -> Read {
    let (low, high) = word.split_once('-').unwrap_or((word, word));
    match bits(low, family).zip(bits(high, family)) {
        // iptables takes a range that ends below its start; no address is in it.
        Some((low, high)) => Ok(format!("{}-{}", show(low, family), show(high, family))),
        None => Err(format!("expected an {} address or a range of them (`a-b`)", name(family)).into()),
    }
}

pub(super) fn prefix_length(word: &str, family: Family) -> Read {
    super::number::int(word, 0, width(family).into())
}

/// Returns a mask as a length or as an address.
pub(super) fn prefix_mask(word: &str, family: Family) -> Read {
    let mask = mask_bits(word, family).ok_or_else(|| expected_mask(family))?;
    Ok(length(mask, family).map_or_else(|| show(mask, family), |length| length.to_string()))
}

/// `[address[-address]][:port[-port[/base]]]`, an IPv6 address in brackets if a port follows.
pub(super) fn nat(word: &str, family: Family, base: bool) -> Read {
    let (addresses, ports) = match family {
        Family::Ipv4 => {
            word.split_once(':').map_or((word, None), |(addresses, ports)| (addresses, Some(ports)))
        }
        Family::Ipv6 => match word.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
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
        (Some(ports), Family::Ipv6) if !addresses.is_empty() => format!("[{addresses}]:{ports}"),
        (Some(ports), _) => format!("{addresses}:{ports}"),
    })
}

/// `port[-port]`
pub(super) fn nat_ports(word: &str) -> Read {
    port_pair(word, false)
}

fn pair(text: &str, family: Family) -> Read {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    // Unlike other options, these take what inet_pton(3) does.
    let complete = |part: &str| match family {
        Family::Ipv4 => part.parse::<Ipv4Addr>().ok().map(|address| u128::from(u32::from(address))),
        Family::Ipv6 => bits(part, family),
    };
    match complete(low).zip(complete(high)) {
        Some((low, high)) if low == high => Ok(show(low, family)),
        Some((low, high)) => Ok(format!("{}-{}", show(low, family), show(high, family))),
        None => Err(format!("expected an {} address, as in `{}`", name(family), nat_example(family)).into()),
    }
}

/// A port by number or name, or a range of ports by number, perhaps with the port that it is shifted from.
fn port_pair(text: &str, base: bool) -> Read {
    let wrong = || "expected a port from 0 to 65535, the name of a service, or a range of numbers (`a-b`)";
    let number = |part: &str| integer(part).and_then(|port| u16::try_from(port).ok());
    // The names of some services have a `-` themselves.
    if let Ok(port) = named::port(text) {
        return Ok(port.to_string());
    }
    let (low, rest) = text.split_once('-').ok_or_else(wrong)?;
    let (high, shift) = match rest.split_once('/') {
        Some((high, shift)) if base => {
            let shift = named::port(shift).ok().filter(|port| *port != 0);
            (
                high,
                Some(shift.ok_or("expected a port from 1 to 65535, or the name of a service, behind `/`")?),
            )
        }
        Some(_) => return Err(wrong().into()),
        None => (rest, None),
    };
    let (low, high) = number(low).zip(number(high)).ok_or_else(wrong)?;
    if low > high {
        return Err("expected a range of ports that ends at or above its start".into());
    }
    let range = if low == high && shift.is_none() { low.to_string() } else { format!("{low}-{high}") };
    Ok(shift.map_or_else(|| range.clone(), |shift| format!("{range}/{shift}")))
}

/// Reads an address of `-s` and `-d`: as [`bits`], or else as [`host_bits`].
fn network_bits(word: &str, family: Family) -> Option<u128> {
    bits(word, family).or_else(|| host_bits(word, family))
}

/// Reads an address as getaddrinfo(3) does, which most extensions ask.
fn host_bits(word: &str, family: Family) -> Option<u128> {
    match family {
        Family::Ipv4 => aton(word).map(u128::from),
        Family::Ipv6 => bits(word, family),
    }
}

/// Reads one to four numbers as `inet_aton(3)` does: the last fills the bytes that are left, `10.1` is
/// 10.0.0.1.
fn aton(word: &str) -> Option<u32> {
    let mut parts: Vec<_> = word.split('.').map(integer).collect::<Option<_>>()?;
    let last = parts.pop().filter(|_| parts.len() < 4)?;
    let bytes_left = u32::try_from(4 - parts.len()).ok()?;
    let bytes = parts.iter().map(|part| u8::try_from(*part).ok()).collect::<Option<Vec<_>>>()?;
    let head =
        bytes.iter().zip([24_u32, 16, 8]).fold(0, |bits, (byte, shift)| bits | u32::from(*byte) << shift);
    let last = u32::try_from(last).ok().filter(|last| bytes_left == 4 || *last < 1 << (8 * bytes_left))?;
    Some(head | last)
}

fn bits(word: &str, family: Family) -> Option<u128> {
    match family {
        Family::Ipv4 => dotted(word).map(u128::from),
        Family::Ipv6 => word.parse::<Ipv6Addr>().ok().map(u128::from),
    }
}

/// Reads one to four numbers with dots between; those that are left out are 0, as in `10/8`.
fn dotted(word: &str) -> Option<u32> {
    let mut parts = word.split('.');
    let mut bits = 0;
    for shift in [24, 16, 8, 0] {
        let part = match parts.next() {
            Some(part) => u8::try_from(integer(part)?).ok()?,
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
        None if family == Family::Ipv4 => {
            word.parse::<Ipv4Addr>().ok().map(|mask| u128::from(u32::from(mask)))
        }
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
    if family == Family::Ipv4 { u128::from(u32::MAX) } else { u128::MAX }
}

fn width(family: Family) -> u32 {
    if family == Family::Ipv4 { 32 } else { 128 }
}

fn show(bits: u128, family: Family) -> String {
    let address = match family {
        Family::Ipv4 => IpAddr::V4(Ipv4Addr::from(u32::try_from(bits).unwrap_or(u32::MAX))),
        Family::Ipv6 => IpAddr::V6(Ipv6Addr::from(bits)),
    };
    address.to_string()
}

fn name(family: Family) -> &'static str {
    if family == Family::Ipv4 { "IPv4" } else { "IPv6" }
}

fn nat_example(family: Family) -> &'static str {
    if family == Family::Ipv4 { "192.0.2.1:80" } else { "[2001:db8::1]:80" }
}

fn expected(family: Family) -> String {
    format!("expected an {} address, with a mask if wanted", name(family))
}

fn expected_mask(family: Family) -> String {
    format!("expected a mask from 0 to {}, or written as an {} address", width(family), name(family))
}
