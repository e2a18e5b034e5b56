//! The head of a rule: addresses, interfaces and protocol, as `struct ipt_ip` and `struct ip6t_ip6` have them
//! (`linux/netfilter_ipv4/ip_tables.h`, `linux/netfilter_ipv6/ip6_tables.h`).

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use sluicegate_iptables_save::{Family, OptionUse, Spec, decode, encode, protocol_name, protocol_number};

use crate::extension::Mismatch;
use crate::extension::options::{mask_text, masked};
use crate::extension::wire::{Reader, Writer};

/// The size of `struct ipt_ip` or `struct ip6t_ip6`, with its padding.
pub(crate) const fn head_size(family: Family) -> usize {
    match family {
        Family::Ipv4 => 84,
        Family::Ipv6 => 136,
    }
}

/// Writes the head of a rule. `written` is the rule as it was given: of `-i +`, which matches every
/// interface, the tool saves nothing but gives the kernel the name.
pub(crate) fn write_head(spec: &Spec<'_>, written: &Spec<'_>, family: Family) -> Result<Vec<u8>, Mismatch> {
    let mut out = Writer::default();
    let none = match family {
        Family::Ipv4 => "0.0.0.0/0",
        Family::Ipv6 => "::/0",
    };
    let mut networks = Vec::new();
    for name in ["source", "destination"] {
        let word = spec.generic(name).and_then(OptionUse::value).unwrap_or(none);
        networks.push(masked(word, family, name)?);
    }
    let hosts = networks.iter().map(|(host, _)| *host);
    for address in hosts.chain(networks.iter().map(|(_, mask)| *mask)) {
        match address {
            IpAddr::V4(address) => out.bytes(&address.octets()),
            IpAddr::V6(address) => out.bytes(&address.octets()),
        }
    }
    let mut interfaces = Vec::new();
    for name in ["in-interface", "out-interface"] {
        interfaces.push(interface(written.generic(name).and_then(OptionUse::value).unwrap_or_default())?);
    }
    interfaces.iter().for_each(|(name, _)| out.bytes(name));
    interfaces.iter().for_each(|(_, mask)| out.bytes(mask));
    let protocol = match spec.generic("protocol").and_then(OptionUse::value) {
        None => 0,
        Some(word) => protocol_number(word).ok_or_else(|| Mismatch::expected("a protocol").found(word))?,
    };
    out.u16(protocol.into());
    let goto = spec.target.as_ref().is_some_and(|target| target.goto);
    let negated =
        |name: &str| written.generic(name).or(spec.generic(name)).is_some_and(|option| option.negated);
    let nots = NOTS.iter().filter(|(name, _)| negated(name)).fold(0, |nots, (_, bit)| nots | bit);
    match family {
        Family::Ipv4 => {
            out.u8(u8::from(spec.generic("fragment").is_some()) | if goto { IPT_GOTO } else { 0 });
        }
        Family::Ipv6 => {
            // The type of service, which no option of ip6tables sets.
            out.u8(0);
            // Set by `-p all`, too.
            out.u8(u8::from(written.generic("protocol").is_some()) | if goto { IP6T_GOTO } else { 0 });
        }
    }
    out.u8(nots);
    out.align(4);
    Ok(out.finish())
}

/// Returns the generic options that a head says, in the order in which iptables-save prints them, and whether
/// its target is `-g`; `None` if it is too short.
pub(crate) fn read_head(bytes: &[u8], family: Family) -> Option<(Vec<OptionUse<'static>>, bool)> {
    let data = &mut Reader::new(bytes);
    let mut address = || match family {
        Family::Ipv4 => data.array::<4>().map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes))),
        Family::Ipv6 => data.inet(family),
    };
    let (source, destination) = (address()?, address()?);
    let networks = [("source", source, address()?), ("destination", destination, address()?)];
    let names: [[u8; 16]; 2] = [data.array()?, data.array()?];
    let masks: [[u8; 16]; 2] = [data.array()?, data.array()?];
    let protocol = data.u16()?;
    let flags = match family {
        Family::Ipv4 => data.u8()?,
        Family::Ipv6 => {
            data.skip(1)?;
            data.u8()?
        }
    };
    let nots = data.u8()?;
    let not = |name: &str| NOTS.iter().any(|(known, bit)| *known == name && nots & bit != 0);
    let option =
        |name: &'static str, value: String| OptionUse::new(name, [Cow::Owned(value)]).negated(not(name));
    let mut options = Vec::new();
    for (name, address, mask) in networks {
        if !mask.is_unspecified() || !address.is_unspecified() || not(name) {
            options.push(option(name, format!("{address}/{}", mask_text(mask))));
        }
    }
    for (at, name) in ["in-interface", "out-interface"].into_iter().enumerate() {
        let shown = interface_text(names.get(at)?, masks.get(at)?, not(name));
        options.extend(shown.map(|shown| option(name, shown)));
    }
    if protocol != 0 {
        let known = u8::try_from(protocol).ok().and_then(protocol_name);
        options.push(option("protocol", known.map_or_else(|| protocol.to_string(), str::to_owned)));
    }
    if family == Family::Ipv4 && (flags & 1 != 0 || not("fragment")) {
        options.push(OptionUse::new("fragment", []).negated(not("fragment")));
    }
    let goto = flags & if family == Family::Ipv4 { IPT_GOTO } else { IP6T_GOTO } != 0;
    Some((options, goto))
}

/// Returns whether the options that were read of a head make the same one.
pub(crate) fn says_head(spec: &Spec<'_>, head: &[u8], family: Family) -> bool {
    let Ok(again) = write_head(spec, spec, family) else { return false };
    let addresses = match family {
        Family::Ipv4 => 16,
        Family::Ipv6 => 64,
    };
    // What stands behind the end of a name, or behind the `+` of one, is not compared with anything.
    let (names, masks) = (addresses..addresses + 32, addresses + 32);
    let ignored = |at: usize| names.contains(&at) && head.get(at + 32) == Some(&0);
    // Behind the protocol, in IPv6 behind the type of service. `-p all` sets the bit of a protocol, too, which is
    // then not looked at.
    let protocol = masks + 32;
    let all = family == Family::Ipv6 && head.get(protocol..protocol + 2) == Some(&[0, 0]);
    let bits = |at: usize| if all && at == protocol + 3 { IP6T_PROTOCOL } else { 0 };
    // The structure ends in padding.
    let end = protocol + if family == Family::Ipv4 { 4 } else { 5 };
    let (Some(head), Some(again)) = (head.get(..end), again.get(..end)) else { return false };
    // An address with bits outside of its mask matches nothing; iptables would read it as the network.
    let (hosts, rest) = head.split_at(addresses / 2);
    if hosts.iter().zip(rest).any(|(host, mask)| host & !mask != 0) {
        return false;
    }
    head.iter().zip(again).enumerate().all(|(at, (a, b))| (a ^ b) & !bits(at) == 0 || ignored(at))
}

/// Returns the name of an interface with its mask: the zero at the end of the name counts, but behind a `+`
/// every name is right.
pub(crate) fn interface(word: &str) -> Result<([u8; 16], [u8; 16]), Mismatch> {
    let bytes = encode(word);
    let (mut name, mut mask) = ([0; 16], [0; 16]);
    let counted = match bytes.last() {
        None => 0,
        Some(b'+') => bytes.len() - 1,
        Some(_) => bytes.len() + 1,
    };
    match name.get_mut(..bytes.len()).filter(|_| bytes.len() < 16) {
        Some(place) => place.copy_from_slice(&bytes),
        None => {
            return Err(Mismatch::expected("the name of an interface, of at most 15 bytes").found(word));
        }
    }
    mask.iter_mut().take(counted).for_each(|byte| *byte = u8::MAX);
    Ok((name, mask))
}

/// Returns the words for a name; of all interfaces only where it is negated, which no packet matches.
fn interface_text(name: &[u8; 16], mask: &[u8; 16], not: bool) -> Option<String> {
    let counted = mask.iter().take_while(|byte| **byte != 0).count();
    if counted == 0 {
        return not.then(|| "+".to_owned());
    }
    let name = name.get(..counted)?;
    match name.iter().position(|byte| *byte == 0) {
        Some(end) => Some(decode(name.get(..end)?).into_owned()),
        None => Some(format!("{}+", decode(name))),
    }
}

/// `IPT_INV_*`, which are those of `IP6T_INV_*`.
const NOTS: &[(&str, u8)] = &[
    ("in-interface", 0x01),
    ("out-interface", 0x02),
    ("source", 0x08),
    ("destination", 0x10),
    ("fragment", 0x20),
    ("protocol", 0x40),
];
/// `IPT_F_GOTO`
const IPT_GOTO: u8 = 0x02;
/// `IP6T_F_PROTO`
const IP6T_PROTOCOL: u8 = 0x01;
/// `IP6T_F_GOTO`
const IP6T_GOTO: u8 = 0x04;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_an_interface_counts_its_end_unless_it_ends_in_a_plus() {
        let masked = |word| interface(word).unwrap().1.iter().filter(|byte| **byte == u8::MAX).count();
        assert_eq!(["eth0", "eth+", "+", ""].map(masked), [5, 3, 0, 0]);
        assert!(interface("sixteen-bytes-xx").is_err());
        for word in ["eth0", "eth+", "fifteen-bytes-x"] {
            let (name, mask) = interface(word).unwrap();
            assert_eq!(interface_text(&name, &mask, false).as_deref(), Some(word));
        }
    }
}
