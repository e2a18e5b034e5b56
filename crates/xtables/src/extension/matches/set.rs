//! The match of ipset's sets: `linux/netfilter/xt_set.h`.

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[codec("set", 4, 48, set, read_set)];

/// `struct xt_set_info_match_v4`
fn set(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    write_set(given, "match-set", out)?;
    out.align(8);
    for kind in ["packets", "bytes"] {
        let found = COUNTERS.iter().find_map(|(end, operation, negated)| {
            let name = format!("{kind}-{end}");
            let chosen = given.has(&name) && given.not(&name) == *negated;
            chosen.then_some((name, *operation))
        });
        let (value, operation) = match found {
            None => (0, 0),
            Some((name, operation)) => (given.number(&name)?, operation),
        };
        out.u64(value);
        out.u8(operation);
        out.align(8);
    }
    let skip = |name, flag| if given.not(name) { flag } else { 0 };
    let nomatch = if given.has("return-nomatch") { RETURN_NOMATCH } else { 0 };
    out.u32(nomatch | skip("update-counters", SKIP_COUNTERS) | skip("update-subcounters", SKIP_SUBCOUNTERS));
    out.align(8);
    Ok(())
}

fn read_set(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    read_set_of(data, "match-set", built)?;
    data.skip(4)?;
    let mut counters = [("packets", 0, 0), ("bytes", 0, 0)];
    for (_, value, operation) in &mut counters {
        *value = data.u64()?;
        *operation = data.u8()?;
        data.skip(7)?;
    }
    let flags = data.u32()?;
    built.flag("return-nomatch", flags & RETURN_NOMATCH != 0);
    for (name, flag) in [("update-counters", SKIP_COUNTERS), ("update-subcounters", SKIP_SUBCOUNTERS)] {
        if flags & flag != 0 {
            built.flag_not(name, true);
        }
    }
    for (kind, value, operation) in counters {
        if operation != 0 {
            let (end, _, negated) = COUNTERS.iter().find(|(_, known, _)| *known == operation)?;
            let name = OPTIONS.iter().find(|name| **name == format!("{kind}-{end}"))?;
            built.value_not(name, *negated, value);
        }
    }
    Some(())
}

/// Writes `struct xt_set_info`: the number of the set, how many parts are looked up, and for each part
/// whether it is of the source.
pub(in crate::extension) fn write_set(
    given: &Given<'_>,
    name: &str,
    out: &mut Writer,
) -> Result<(), Mismatch> {
    let (Some(set), Some(parts)) = (given.word(name), given.second(name)) else {
        return Err(Mismatch::expected(format!("--{name} with a set and src or dst")));
    };
    let mut flags = u8::from(given.not(name));
    let mut count = 0;
    for part in parts.split(',') {
        count += 1;
        if count > MOST_PARTS {
            return Err(Mismatch::expected(format!("at most {MOST_PARTS} of src and dst")).found(parts));
        }
        match part {
            "src" => flags |= 1 << count,
            "dst" => (),
            _ => return Err(Mismatch::expected("src or dst").found(part)),
        }
    }
    out.u16(given.sets.index(set, given.family)?);
    out.bytes(&[count, flags]);
    Ok(())
}

/// Reads `struct xt_set_info`; nothing is built if it names no set.
pub(in crate::extension) fn read_set_of(
    data: &mut Reader<'_>,
    name: &'static str,
    built: &mut Built<'_>,
) -> Option<bool> {
    let index = data.u16()?;
    let [count, flags]: [u8; 2] = data.array()?;
    if index == NO_SET {
        return Some(false);
    }
    if count > MOST_PARTS {
        return None;
    }
    let parts: Vec<_> = (1..=count).map(|part| if flags & 1 << part != 0 { "src" } else { "dst" }).collect();
    let set = built.sets.name(index)?;
    built.two(name, flags & 1 != 0, [set, parts.join(",")]);
    Some(true)
}

/// `IPSET_INVALID_ID`
pub(in crate::extension) const NO_SET: u16 = u16::MAX;
/// `IPSET_DIM_MAX`
const MOST_PARTS: u8 = 6;
/// `IPSET_FLAG_RETURN_NOMATCH`
const RETURN_NOMATCH: u32 = 1 << 7;
/// `IPSET_FLAG_SKIP_COUNTER_UPDATE`
const SKIP_COUNTERS: u32 = 1 << 3;
/// `IPSET_FLAG_SKIP_SUBCOUNTER_UPDATE`
const SKIP_SUBCOUNTERS: u32 = 1 << 4;
/// `IPSET_COUNTER_*`, and whether the option is negated.
const COUNTERS: &[(&str, u8, bool)] =
    &[("eq", 1, false), ("eq", 2, true), ("lt", 3, false), ("gt", 4, false)];
const OPTIONS: [&str; 6] = ["packets-eq", "packets-lt", "packets-gt", "bytes-eq", "bytes-lt", "bytes-gt"];
