//! Targets that decide, or leave the decision to others: `linux/netfilter/xt_{NFQUEUE,set}.h`,
//! `linux/netfilter/nf_synproxy.h`, `linux/netfilter_ipv4/ipt_REJECT.h`,
//! `linux/netfilter_ipv6/ip6t_REJECT.h`.

use sluicegate_iptables_save::Family;

use super::codec;
use crate::extension::Codec;
use crate::extension::Mismatch;
use crate::extension::matches::{NO_SET, read_set_of, write_set};
use crate::extension::options::{Built, Given, name_of, named, span};
use crate::extension::wire::{Reader, Writer};

pub(super) static CODECS: &[Codec] = &[
    codec("REJECT", 0, 4, reject, read_reject),
    codec("NFQUEUE", 3, 6, nfqueue, read_nfqueue),
    codec("SET", 3, 20, set, read_set),
    codec("SYNPROXY", 0, 4, synproxy, read_synproxy),
];

/// `struct ipt_reject_info`, `struct ip6t_reject_info`
fn reject(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let (names, default) = reject_names(given.family);
    out.u32(named(given.word("reject-with").unwrap_or(default), names, "reject-with")?);
    Ok(())
}

fn read_reject(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let (names, _) = reject_names(built.family);
    built.value("reject-with", name_of(data.u32()?, names)?);
    Some(())
}

fn reject_names(family: Family) -> (&'static [(&'static str, u32)], &'static str) {
    match family {
        Family::Ipv4 => (REJECT, "icmp-port-unreachable"),
        Family::Ipv6 => (REJECT6, "icmp6-port-unreachable"),
    }
}

/// `struct xt_NFQ_info_v3`
fn nfqueue(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    let (first, last) = match given.word("queue-balance") {
        Some(word) => span::<u16>(word, ':', "queue-balance")?,
        None => given.span("queue-num", (0, 0))?,
    };
    let count = last.checked_sub(first).and_then(|more| more.checked_add(1));
    out.u16(first);
    out.u16(count.ok_or(Mismatch::expected("queues that end at or above their start"))?);
    out.u16(given.flags(NFQUEUE).try_into().unwrap_or_default());
    Ok(())
}

fn read_nfqueue(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [first, count, flags] = [data.u16()?, data.u16()?, data.u16()?];
    match count {
        0 => return None,
        1 => built.value("queue-num", first),
        _ => built.value("queue-balance", format!("{first}:{}", first.checked_add(count - 1)?)),
    }
    built.flags(flags.into(), NFQUEUE)
}

/// `struct xt_set_info_target_v3`
fn set(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    for name in SETS {
        if given.has(name) {
            write_set(given, name, out)?;
        } else {
            out.u16(NO_SET);
            out.u16(0);
        }
    }
    out.u32(given.flags(SET_FLAGS));
    out.u32(if given.has("timeout") { given.number("timeout")? } else { u32::MAX });
    Ok(())
}

fn read_set(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    for name in SETS {
        read_set_of(data, name, built)?;
    }
    let [flags, timeout] = [data.u32()?, data.u32()?];
    built.flags(flags, SET_FLAGS)?;
    if timeout != u32::MAX {
        built.value("timeout", timeout);
    }
    Some(())
}

/// `struct nf_synproxy_info`
fn synproxy(given: &Given<'_>, out: &mut Writer) -> Result<(), Mismatch> {
    out.u8(given.flags(SYNPROXY).try_into().unwrap_or_default());
    out.u8(given.number("wscale")?);
    out.u16(given.number("mss")?);
    Ok(())
}

fn read_synproxy(data: &mut Reader<'_>, built: &mut Built<'_>) -> Option<()> {
    let [flags, scale]: [u8; 2] = data.array()?;
    let size = data.u16()?;
    for (name, bit) in SYNPROXY {
        match (*name, u32::from(flags) & bit) {
            (_, 0) => (),
            ("mss", _) => built.value("mss", size),
            ("wscale", _) => built.value("wscale", scale),
            (name, _) => built.flag(name, true),
        }
    }
    Some(())
}

/// `enum ipt_reject_with`
const REJECT: &[(&str, u32)] = &[
    ("icmp-net-unreachable", 0),
    ("icmp-host-unreachable", 1),
    ("icmp-proto-unreachable", 2),
    ("icmp-port-unreachable", 3),
    ("icmp-net-prohibited", 5),
    ("icmp-host-prohibited", 6),
    ("tcp-reset", 7),
    ("icmp-admin-prohibited", 8),
];
/// `enum ip6t_reject_with`
const REJECT6: &[(&str, u32)] = &[
    ("icmp6-no-route", 0),
    ("icmp6-adm-prohibited", 1),
    ("icmp6-addr-unreachable", 3),
    ("icmp6-port-unreachable", 4),
    ("tcp-reset", 6),
    ("icmp6-policy-fail", 7),
    ("icmp6-reject-route", 8),
];
/// `NFQ_FLAG_*`
const NFQUEUE: &[(&str, u32)] = &[("queue-bypass", 1), ("queue-cpu-fanout", 2)];
const SETS: [&str; 3] = ["add-set", "del-set", "map-set"];
/// `IPSET_FLAG_*`
const SET_FLAGS: &[(&str, u32)] =
    &[("exist", 1 << 0), ("map-mark", 1 << 8), ("map-prio", 1 << 9), ("map-queue", 1 << 10)];
/// `NF_SYNPROXY_OPT_*`
const SYNPROXY: &[(&str, u32)] =
    &[("sack-perm", 0x04), ("timestamp", 0x08), ("wscale", 0x02), ("mss", 0x01), ("ecn", 0x10)];
