//! Matches of connection tracking: `linux/netfilter/xt_{conntrack,connmark,connbytes,connlabel,connlimit,
//! helper}.h`.

use sluicegate_iptables_save::vocabulary::{CONNTRACK_STATES, CONNTRACK_STATUSES};

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{
    Built, Given, mark_text, masked_text, name_of, named, names_of, number, prefix_length, prefix_mask,
    span_text,
};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[
    codec("conntrack", 3, 164, conntrack, read_conntrack),
    // Before 1.8 a match of its own; the kernel is told by a flag of conntrack which of the two it was.
    codec("state", 3, 164, state, read_conntrack).kernel("conntrack"),
    codec("connmark", 1, 12, connmark, read_connmark),
    codec("connbytes", 0, 24, connbytes, read_connbytes),
    codec("connlabel", 0, 4, connlabel, read_connlabel),
    codec("connlimit", 1, 32, connlimit, read_connlimit).compared_to(24),
    codec("helper", 0, 36, helper, read_helper),
];

/// `struct xt_conntrack_mtinfo3`
fn conntrack(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    for (name, _) in ADDRESSES {
        match given.masked(name)? {
            None => out.zeros(32),
            Some((address, mask)) => {
                out.inet(address);
                out.mask(mask, given.has_mask(name));
            }
        }
    }
    let (low, high) = given.span("ctexpire", (0, 0))?;
    out.u32(low);
    out.u32(high);
    out.u16(given.number("ctproto")?);
    let ports = PORTS.iter().map(|(name, _)| given.span::<u16>(name, (0, 0)));
    let ports = ports.collect::<Result<Vec<_>, _>>()?;
    ports.iter().for_each(|(low, _)| out.u16(*low));
    let all = || [ADDRESSES, PORTS, OTHERS].into_iter().flatten().copied().collect::<Vec<_>>();
    let mut nots = given.nots(&all());
    if let Some(word) = given.word("ctdir") {
        nots |= named(word, DIRECTIONS, "ctdir")?;
    }
    out.u16(given.flags(&all()).try_into().unwrap_or_default());
    out.u16(nots.try_into().unwrap_or_default());
    out.u16(given.bits("ctstate", CONNTRACK_STATES)?.try_into().unwrap_or_default());
    out.u16(given.bits("ctstatus", CONNTRACK_STATUSES)?.try_into().unwrap_or_default());
    ports.iter().for_each(|(_, high)| out.u16(*high));
    out.align(4);
    Ok(())
}

fn state(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.zeros(146);
    let flag = OTHERS.iter().find(|(name, _)| *name == "ctstate").map_or(0, |(_, flag)| *flag);
    out.u16(u16::try_from(flag | STATE_ALIAS).unwrap_or_default());
    out.u16(if given.not("state") { 1 } else { 0 });
    out.u16(given.bits("state", CONNTRACK_STATES)?.try_into().unwrap_or_default());
    out.zeros(10);
    out.align(4);
    Ok(())
}

fn read_conntrack(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let mut addresses = Vec::new();
    for _ in ADDRESSES {
        addresses.push((data.inet(built.family)?, data.inet(built.family)?));
    }
    let expire = (data.u32()?, data.u32()?);
    let protocol = data.u16()?;
    let low: Vec<_> = PORTS.iter().map(|_| data.u16()).collect::<Option<_>>()?;
    let [flags, nots] = [u32::from(data.u16()?), u32::from(data.u16()?)];
    let [states, statuses] = [u32::from(data.u16()?), u32::from(data.u16()?)];
    let high: Vec<_> = PORTS.iter().map(|_| data.u16()).collect::<Option<_>>()?;
    if flags & STATE_ALIAS != 0 {
        built.rename("state");
        built.value_not("state", nots & 1 != 0, names_of(states, CONNTRACK_STATES)?);
        return Some(());
    }
    let has = |name: &str| OTHERS.iter().find(|(known, _)| *known == name).map(|(_, flag)| *flag);
    let other = |built: &mut Built<'_>, name: &'static str, value: String| {
        let flag = has(name).unwrap_or_default();
        if flags & flag != 0 {
            built.value_not(name, nots & flag != 0, value);
        }
    };
    other(built, "ctstate", names_of(states, CONNTRACK_STATES)?);
    other(built, "ctproto", protocol.to_string());
    for ((name, flag), (address, mask)) in ADDRESSES.iter().zip(addresses) {
        if flags & flag != 0 {
            built.value_not(name, nots & flag != 0, masked_text(address, mask));
        }
    }
    for ((name, flag), (low, high)) in PORTS.iter().zip(low.into_iter().zip(high)) {
        if flags & flag != 0 {
            built.value_not(name, nots & flag != 0, span_text(low, high, ':'));
        }
    }
    let statuses = if statuses == 0 { "NONE".to_owned() } else { names_of(statuses, CONNTRACK_STATUSES)? };
    other(built, "ctstatus", statuses);
    other(built, "ctexpire", span_text(expire.0, expire.1, ':'));
    let direction = has("ctdir").unwrap_or_default();
    if flags & direction != 0 {
        built.value("ctdir", name_of(nots & direction, DIRECTIONS)?);
    }
    Some(())
}

/// `struct xt_connmark_mtinfo1`
fn connmark(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let (mark, mask) = given.mark("mark")?.ok_or(Mismatch::expected("--mark"))?;
    out.u32(mark);
    out.u32(mask);
    out.u8(given.not("mark").into());
    out.align(4);
    Ok(())
}

fn read_connmark(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [mark, mask] = [data.u32()?, data.u32()?];
    built.value_not("mark", data.u8()? != 0, mark_text(mark, mask));
    Some(())
}

/// `struct xt_connbytes_info`: a range that ends below its start is a negated one.
fn connbytes(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let word = given.need("connbytes")?;
    let (low, high) = match word.split_once(':') {
        None => (number(word, "connbytes")?, u64::MAX),
        Some((low, high)) => (number(low, "connbytes")?, number(high, "connbytes")?),
    };
    let (from, to) = if given.not("connbytes") { (high, low) } else { (low, high) };
    out.u64(from);
    out.u64(to);
    let named = |name| named(given.need(name)?, if name == "connbytes-dir" { DIRS } else { MODES }, name);
    out.u8(named("connbytes-mode")?.try_into().unwrap_or_default());
    out.u8(named("connbytes-dir")?.try_into().unwrap_or_default());
    out.align(8);
    Ok(())
}

fn read_connbytes(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [from, to] = [data.u64()?, data.u64()?];
    let [what, direction]: [u8; 2] = data.array()?;
    let not = from > to;
    let (low, high) = if not { (to, from) } else { (from, to) };
    let range = if high == u64::MAX { low.to_string() } else { format!("{low}:{high}") };
    built.value_not("connbytes", not, range);
    built.value("connbytes-mode", name_of(what.into(), MODES)?);
    built.value("connbytes-dir", name_of(direction.into(), DIRS)?);
    Some(())
}

/// `struct xt_connlabel_mtinfo`
fn connlabel(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let label = given.need("label")?;
    let bit = number::<u16>(label, "label").ok().filter(|bit| *bit <= MOST_LABEL);
    out.u16(bit.ok_or_else(|| {
        Mismatch::expected(format!("the number of a label, of at most {MOST_LABEL}")).found(label)
    })?);
    out.u16(u16::from(given.not("label")) | if given.has("set") { 2 } else { 0 });
    Ok(())
}

fn read_connlabel(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [bit, options] = [data.u16()?, data.u16()?];
    built.value_not("label", options & 1 != 0, bit);
    built.flag("set", options & 2 != 0);
    Some(())
}

/// `struct xt_connlimit_info`
fn connlimit(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let length = if given.has("connlimit-mask") { given.number("connlimit-mask")? } else { u8::MAX };
    out.mask(prefix_mask(length, given.family), given.written_word("connlimit-mask").is_some());
    let upto = given.has("connlimit-upto");
    out.u32(given.number(if upto { "connlimit-upto" } else { "connlimit-above" })?);
    out.u32(u32::from(upto) | if given.has("connlimit-daddr") { 2 } else { 0 });
    out.zeros(8);
    Ok(())
}

fn read_connlimit(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let mask = data.inet(built.family)?;
    let [limit, flags] = [data.u32()?, data.u32()?];
    built.value(if flags & 1 != 0 { "connlimit-upto" } else { "connlimit-above" }, limit);
    built.value("connlimit-mask", prefix_length(mask)?);
    built.flag("connlimit-saddr", flags & 2 == 0);
    built.flag("connlimit-daddr", flags & 2 != 0);
    Some(())
}

/// `struct xt_helper_info`
fn helper(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u32(given.not("helper").into());
    out.text(given.need("helper")?, 30)?;
    out.align(4);
    Ok(())
}

fn read_helper(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let not = data.u32()? != 0;
    built.value_not("helper", not, data.text(30)?);
    Some(())
}

/// Options with an address, and their bits in `match_flags`, in the order of the structure.
const ADDRESSES: &[(&str, u32)] =
    &[("ctorigsrc", 1 << 2), ("ctorigdst", 1 << 3), ("ctreplsrc", 1 << 4), ("ctrepldst", 1 << 5)];
const PORTS: &[(&str, u32)] = &[
    ("ctorigsrcport", 1 << 8),
    ("ctorigdstport", 1 << 9),
    ("ctreplsrcport", 1 << 10),
    ("ctrepldstport", 1 << 11),
];
const OTHERS: &[(&str, u32)] = &[
    ("ctstate", 1 << 0),
    ("ctproto", 1 << 1),
    ("ctstatus", 1 << 6),
    ("ctexpire", 1 << 7),
    ("ctdir", 1 << 12),
];
/// `XT_CONNTRACK_STATE_ALIAS`
const STATE_ALIAS: u32 = 1 << 13;
const DIRECTIONS: &[(&str, u32)] = &[("ORIGINAL", 0), ("REPLY", 1 << 12)];
const MODES: &[(&str, u32)] = &[("packets", 0), ("bytes", 1), ("avgpkt", 2)];
const DIRS: &[(&str, u32)] = &[("original", 0), ("reply", 1), ("both", 2)];
/// `XT_CONNLABEL_MAXBIT`
const MOST_LABEL: u16 = 127;
