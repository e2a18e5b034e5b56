//! Matches of addresses and of where a packet comes from: `linux/netfilter/xt_{addrtype,iprange,cluster,
//! policy}.h`.

use sluicegate_iptables_save::vocabulary::ADDRESS_TYPES;
use sluicegate_iptables_save::{Family, OptionUse};

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{
    Built, Given, address, bits, masked, masked_text, name_of, named, names_of, number,
};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[
    codec("addrtype", 1, 8, addrtype, read_addrtype),
    codec("iprange", 1, 68, iprange, read_iprange),
    codec("cluster", 0, 16, cluster, read_cluster),
    codec("policy", 0, 308, policy, read_policy),
];

/// `struct xt_addrtype_info_v1`
fn addrtype(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u16(given.bits("src-type", ADDRESS_TYPES)?.try_into().unwrap_or_default());
    out.u16(given.bits("dst-type", ADDRESS_TYPES)?.try_into().unwrap_or_default());
    out.u32(given.nots(&[("src-type", 1), ("dst-type", 2)]) | given.flags(LIMITS));
    Ok(())
}

fn read_addrtype(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let types = [data.u16()?, data.u16()?];
    let flags = data.u32()?;
    for ((name, bit), types) in [("src-type", 1), ("dst-type", 2)].into_iter().zip(types) {
        if types != 0 {
            built.value_not(name, flags & bit != 0, names_of(types.into(), ADDRESS_TYPES)?);
        }
    }
    built.flags(flags & !3, LIMITS)
}

/// `struct xt_iprange_mtinfo`
fn iprange(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    for name in ["src-range", "dst-range"] {
        let Some(word) = given.word(name) else {
            out.zeros(32);
            continue;
        };
        let (low, high) = word.split_once('-').unwrap_or((word, word));
        out.inet(address(low, given.family, name)?);
        out.inet(address(high, given.family, name)?);
    }
    let names = [("src-range", 1), ("dst-range", 2)];
    out.u8((given.flags(&names) | given.nots(&names) << 4).try_into().unwrap_or_default());
    out.align(4);
    Ok(())
}

fn read_iprange(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let mut range = || data.inet(built.family).zip(data.inet(built.family));
    let ranges = [range()?, range()?];
    let flags = data.u8()?;
    for ((name, bit), (low, high)) in [("src-range", 1), ("dst-range", 2)].into_iter().zip(ranges) {
        if flags & bit != 0 {
            built.value_not(name, flags & bit << 4 != 0, format!("{low}-{high}"));
        }
    }
    Some(())
}

/// `struct xt_cluster_match_info`
fn cluster(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u32(given.number("cluster-total-nodes")?);
    out.u32(given.number("cluster-local-nodemask")?);
    out.u32(given.number("cluster-hash-seed")?);
    // Both spellings of the nodes may be negated, and only one of them is saved.
    let not = given.module.options.iter().chain(&given.written.options).any(|option| option.negated);
    out.u32(not.into());
    Ok(())
}

fn read_cluster(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [total, mask, seed, flags] = [data.u32()?, data.u32()?, data.u32()?, data.u32()?];
    built.value_not("cluster-local-nodemask", flags & 1 != 0, format!("{mask:#010x}"));
    built.value("cluster-total-nodes", total);
    built.value("cluster-hash-seed", format!("{seed:#010x}"));
    Some(())
}

/// `struct xt_policy_info`
fn policy(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let mut flags = named(given.need("dir")?, POLICY_DIRS, "dir")?;
    let none = given.word("pol") == Some("none");
    flags |= if none { POLICY_NONE } else { 0 };
    flags |= if given.has("strict") { POLICY_STRICT } else { 0 };
    let of_element = |option: &&OptionUse<'_>| !matches!(&*option.name, "dir" | "pol" | "strict");
    // Without IPsec nothing of an element is saved, but the kernel is told.
    let options = if none { &given.written.options } else { &given.module.options };
    let rest: Vec<_> = options.iter().filter(of_element).collect();
    let elements: Vec<_> = match rest.is_empty() {
        true => Vec::new(),
        false => rest.split(|option| option.name == "next").collect(),
    };
    if elements.len() > POLICY_ELEMENTS {
        return Err(Mismatch::expected(format!("at most {POLICY_ELEMENTS} elements")).found(elements.len()));
    }
    elements.iter().try_for_each(|options| policy_element(options, given.family, out))?;
    out.zeros((POLICY_ELEMENTS - elements.len()) * POLICY_ELEMENT);
    out.u16(flags.try_into().unwrap_or_default());
    // Without --strict the tool counts one element even if nothing is asked of it.
    let count = if none { 0 } else { elements.len().max(usize::from(flags & POLICY_STRICT == 0)) };
    out.u16(count.try_into().unwrap_or_default());
    Ok(())
}

/// `struct xt_policy_elem`
fn policy_element(options: &[&OptionUse<'_>], family: Family, out: &mut Writer) -> Result<(), Mismatch> {
    let find = |name: &str| options.iter().find(|option| option.name == name);
    let word = |name: &'static str| find(name).and_then(|option| option.value());
    for name in ["tunnel-src", "tunnel-dst"] {
        match word(name) {
            None => out.zeros(32),
            Some(word) => {
                let (address, mask) = masked(word, family, name)?;
                out.inet(address);
                out.mask(mask, word.contains('/'));
            }
        }
    }
    let spi: u32 = word("spi").map_or(Ok(0), |word| number(word, "spi"))?;
    // iptables 1.8.9 writes it in the byte order of the machine, though the header says otherwise.
    out.u32(spi);
    out.u32(word("reqid").map_or(Ok(0), |word| number(word, "reqid"))?);
    out.u8(match word("proto") {
        None => 0,
        Some(word) => match named(word, POLICY_PROTOCOLS, "proto") {
            Ok(protocol) => protocol.try_into().unwrap_or_default(),
            Err(_) => number(word, "proto")?,
        },
    });
    let mode = word("mode").map_or(Ok(0), |word| named(word, POLICY_MODES, "mode"))?;
    out.u8(mode.try_into().unwrap_or_default());
    for negated in [false, true] {
        let set = |name: &str| find(name).is_some_and(|option| option.negated || !negated);
        let chosen = POLICY_BITS.iter().filter(|(name, _)| set(name));
        out.u8(chosen.fold(0, |bits, (_, bit)| bits | bit).try_into().unwrap_or_default());
    }
    Ok(())
}

fn read_policy(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let mut elements = data.take(POLICY_ELEMENTS * POLICY_ELEMENT)?.chunks_exact(POLICY_ELEMENT);
    let [flags, count] = [u32::from(data.u16()?), u32::from(data.u16()?)];
    data.ignore_at(usize::try_from(count).ok()? * POLICY_ELEMENT..POLICY_ELEMENTS * POLICY_ELEMENT);
    if built.family == Family::Ipv4 {
        // What an IPv4 address or mask leaves of its union.
        let elements = (0..POLICY_ELEMENTS).map(|element| element * POLICY_ELEMENT);
        let addresses = elements.flat_map(|element| [4, 20, 36, 52].map(|address| element + address));
        addresses.for_each(|start| data.ignore_at(start..start + 12));
    }
    built.value("dir", name_of(flags & 3, POLICY_DIRS)?);
    built.value("pol", if flags & POLICY_NONE != 0 { "none" } else { "ipsec" });
    built.flag("strict", flags & POLICY_STRICT != 0);
    for at in 0..count {
        built.flag("next", at > 0);
        read_policy_element(&mut Reader::new(elements.next()?), built)?;
    }
    Some(())
}

fn read_policy_element(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let source = (data.inet(built.family)?, data.inet(built.family)?);
    let destination = (data.inet(built.family)?, data.inet(built.family)?);
    let spi = data.u32()?;
    let reqid = data.u32()?;
    let [protocol, mode, set, nots]: [u8; 4] = data.array()?;
    let protocol =
        name_of(protocol.into(), POLICY_PROTOCOLS).map_or_else(|| protocol.to_string(), str::to_owned);
    let values = [
        ("reqid", reqid.to_string()),
        ("spi", format!("{spi:#x}")),
        ("proto", protocol),
        ("mode", name_of(mode.into(), POLICY_MODES)?.to_owned()),
        ("tunnel-dst", masked_text(destination.0, destination.1)),
        ("tunnel-src", masked_text(source.0, source.1)),
    ];
    for (name, value) in values {
        let bit = bits(name, POLICY_BITS, name).ok()?;
        if u32::from(set) & bit != 0 {
            built.value_not(name, u32::from(nots) & bit != 0, value);
        }
    }
    Some(())
}

const LIMITS: &[(&str, u32)] = &[("limit-iface-in", 4), ("limit-iface-out", 8)];

const POLICY_DIRS: &[(&str, u32)] = &[("in", 1), ("out", 2)];
const POLICY_NONE: u32 = 4;
const POLICY_STRICT: u32 = 8;
/// `XT_POLICY_MAX_ELEM`
const POLICY_ELEMENTS: usize = 4;
/// The size of `struct xt_policy_elem`.
const POLICY_ELEMENT: usize = 76;
const POLICY_PROTOCOLS: &[(&str, u32)] = &[("esp", 50), ("ah", 51), ("ipcomp", 108)];
const POLICY_MODES: &[(&str, u32)] = &[("transport", 0), ("tunnel", 1)];
/// The bits of `struct xt_policy_spec`.
const POLICY_BITS: &[(&str, u32)] = &[
    ("tunnel-src", 1 << 0),
    ("tunnel-dst", 1 << 1),
    ("proto", 1 << 2),
    ("mode", 1 << 3),
    ("spi", 1 << 4),
    ("reqid", 1 << 5),
];
