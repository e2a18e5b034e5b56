//! The targets of connection tracking: `linux/netfilter/xt_CT.h`.

use sluicegate_iptables_save::vocabulary::CONNTRACK_EVENTS;

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::options::{Built, Given, names_of, number};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[
    codec("CT", 2, 72, ct, read_ct).compared_to(64),
    // Before 1.4 a target of its own; the kernel is told by a flag of CT which of the two it was.
    codec("NOTRACK", 2, 72, notrack, read_ct).kernel("CT").compared_to(64),
];

/// `struct xt_ct_target_info_v1`
fn ct(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let mut flags = if given.has("notrack") { NOTRACK } else { 0 };
    let mut zone = 0;
    for (name, flag) in ZONES {
        // A zone of 0 is not saved, but its direction is kept.
        let Some(word) = given.word(name).or_else(|| given.written.value(name)) else { continue };
        flags |= flag;
        match word {
            "mark" => flags |= ZONE_MARK,
            _ => zone = number(word, name)?,
        }
    }
    out.u16(flags);
    out.u16(zone);
    out.u32(given.bits("ctevents", CONNTRACK_EVENTS)?);
    out.u32(given.bits("expevents", &[("new", 1)])?);
    out.text(given.word("helper").unwrap_or_default(), 16)?;
    out.text(given.word("timeout").unwrap_or_default(), 32)?;
    out.align(8);
    out.zeros(8);
    Ok(())
}

fn notrack(_: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u16(NOTRACK | NOTRACK_ALIAS);
    out.zeros(70);
    Ok(())
}

fn read_ct(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [flags, zone] = [data.u16()?, data.u16()?];
    let [events, expected] = [data.u32()?, data.u32()?];
    let (helper, timeout) = (data.text(16)?, data.text(32)?);
    if flags & NOTRACK_ALIAS != 0 {
        built.rename("NOTRACK");
        return Some(());
    }
    built.flag("notrack", flags & NOTRACK != 0);
    if !helper.is_empty() {
        built.value("helper", helper);
    }
    if !timeout.is_empty() {
        built.value("timeout", timeout);
    }
    if events != 0 {
        built.value("ctevents", names_of(events, CONNTRACK_EVENTS)?);
    }
    if expected != 0 {
        built.value("expevents", names_of(expected, &[("new", 1)])?);
    }
    if zone != 0 || flags & (ZONE_MARK | 0x0c) != 0 {
        let (name, _) = ZONES.iter().find(|(_, flag)| flags & flag != 0).unwrap_or(&("zone", 0));
        match flags & ZONE_MARK {
            0 => built.value(name, zone),
            _ => built.value(name, "mark"),
        }
    }
    Some(())
}

/// `XT_CT_*`
const NOTRACK: u16 = 1 << 0;
const NOTRACK_ALIAS: u16 = 1 << 1;
const ZONE_MARK: u16 = 1 << 4;
const ZONES: &[(&str, u16)] = &[("zone-orig", 1 << 2), ("zone-reply", 1 << 3), ("zone", 0)];
