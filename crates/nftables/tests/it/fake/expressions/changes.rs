//! What does something to the packet.

use sluicegate_nftables::expr::kind::*;
use sluicegate_nftables::expr::*;
use sluicegate_nftables::lang::Verdict;

use super::FILLED;
use super::numbers::{connlimit, counter};
use crate::kernel::cases::name;

/// What does something to the packet, or counts it.
pub(super) fn changes(all: &mut Vec<Expr>) {
    let mut add = |expr: Expr| all.push(expr);
    let some = Some(FILLED);
    for of in (0..=2).map(NatType) {
        for family in [0, 1, 2, 7, 10] {
            let none = Nat {
                of,
                family,
                addr_min: None,
                addr_max: None,
                proto_min: None,
                proto_max: None,
                flags: None,
            };
            add(Nat { addr_min: some, ..none.clone() }.into());
            add(Nat { addr_min: some, proto_min: some, ..none.clone() }.into());
            add(Nat { proto_min: some, ..none.clone() }.into());
            add(Nat { proto_max: some, ..none.clone() }.into());
            add(Nat { addr_min: some, addr_max: some, flags: Some(NatFlags::NETMAP), ..none.clone() }.into());
            add(Nat { flags: Some(NatFlags::from_bits_retain(128)), ..none.clone() }.into());
            add(none.into());
        }
    }
    for flags in [None, Some(NatFlags::RANDOM), Some(NatFlags::from_bits_retain(128))] {
        for (proto_min, proto_max) in [(None, None), (some, None), (some, some), (None, some)] {
            add(Masq { flags, proto_min, proto_max }.into());
            add(Redir { proto_min, proto_max, flags }.into());
        }
    }
    for of in (0..=3).map(RejectType) {
        [None, Some(0), Some(3), Some(4), Some(15), Some(16)]
            .into_iter()
            .for_each(|code| add(Reject { of, code }.into()));
    }
    for family in [0, 1, 2, 10, 7] {
        for (addr, port) in [(None, None), (some, None), (None, some), (some, some)] {
            add(Tproxy { family, addr, port }.into());
        }
        add(Fwd { device: FILLED, addr: some, family: Some(family) }.into());
        add(Fwd { device: FILLED, addr: None, family: Some(family) }.into());
    }
    add(Fwd { device: FILLED, addr: None, family: None }.into());
    add(Fwd { device: FILLED, addr: some, family: None }.into());
    for (addr, device) in [(None, None), (some, None), (None, some), (some, some)] {
        add(Dup { addr, device }.into());
    }
    for flags in [None, Some(QueueFlags::all()), Some(QueueFlags::from_bits_retain(0x10))] {
        add(Queue { number: Some(1), total: None, flags, sreg: None }.into());
        add(Queue { number: Some(1), total: Some(0), flags, sreg: None }.into());
        add(Queue { number: Some(65535), total: Some(2), flags, sreg: None }.into());
        add(Queue { number: None, total: None, flags, sreg: some }.into());
        add(Queue { number: None, total: None, flags, sreg: None }.into());
    }
    add(counter());
    for (bytes, flags) in [(0, None), (9, None), (9, Some(1)), (9, Some(2)), (1 << 63, None)] {
        add(Quota { bytes, flags: flags.map(Invert::from_bits_retain), consumed: None }.into());
    }
    for of in [None, Some(LimitType(0)), Some(LimitType(1)), Some(LimitType(2))] {
        for (rate, unit) in [(1, 1), (0, 1), (1, 0), (1 << 60, 1), (u64::MAX, 60), (1, u64::MAX)] {
            for burst in [None, Some(0), Some(9), Some(u32::MAX)] {
                add(Limit { rate, unit, burst, of, flags: None }.into());
            }
        }
        add(Limit { rate: 1, unit: 1, burst: None, of, flags: Some(Invert::from_bits_retain(2)) }.into());
    }
    add(Last { set: None, msecs: None }.into());
    let log =
        Log { group: None, prefix: None, snaplen: None, queue_threshold: None, level: None, flags: None };
    add(log.clone().into());
    [0, 4, 7, 8, 9].into_iter().for_each(|level| add(Log { level: Some(level), ..log.clone() }.into()));
    add(Log { flags: Some(LogFlags::from_bits_retain(31)), ..log.clone() }.into());
    add(Log { flags: Some(LogFlags::from_bits_retain(64)), ..log.clone() }.into());
    add(Log { flags: Some(LogFlags::SKUID), level: Some(8), ..log.clone() }.into());
    add(Log { group: Some(1), ..log.clone() }.into());
    add(Log { group: Some(1), level: Some(1), ..log.clone() }.into());
    add(Log { group: Some(1), flags: Some(LogFlags::SKUID), ..log.clone() }.into());
    add(Log { snaplen: Some(1), ..log.clone() }.into());
    add(Log { queue_threshold: Some(1), ..log.clone() }.into());
    add(Log { prefix: Some("p".repeat(127)), ..log.clone() }.into());
    add(Log { prefix: Some("p".repeat(128)), ..log }.into());
    add(connlimit());
    add(Connlimit { count: 0, flags: Some(Invert::from_bits_retain(1)) }.into());
    add(Connlimit { count: 1, flags: Some(Invert::from_bits_retain(2)) }.into());
    add(Notrack {}.into());
    add(FlowOffload { flowtable: name("absent") }.into());
    for flags in [None, Some(SynproxyFlags::all()), Some(SynproxyFlags::from_bits_retain(3))] {
        add(Synproxy { mss: Some(1460), wscale: Some(7), flags }.into());
        add(Synproxy { mss: None, wscale: Some(15), flags }.into());
    }
    for (module, revision, bytes) in [("realm", 0, 16), ("nothing", 0, 0), ("realm", 9, 16), ("realm", 0, 1)]
    {
        add(XtMatch { name: module.into(), revision, info: vec![0; bytes] }.into());
    }
    for (module, revision, bytes) in
        [("MARK", 2, 8), ("nothing", 0, 0), ("MARK", 2, 1), ("MASQUERADE", 0, 24)]
    {
        add(XtTarget { name: module.into(), revision, info: vec![0; bytes] }.into());
    }
    add(Unknown::new(name("nothing"), Vec::new()).into());
}

/// What ends a rule, or fills a register with a constant.
pub(super) fn verdicts(all: &mut Vec<Expr>) {
    let codes = [0, 1, 2, 3, 4, 5, u32::MAX, u32::MAX - 1, u32::MAX - 2, u32::MAX - 4, u32::MAX - 5];
    for code in codes.map(VerdictCode) {
        all.push(Immediate { dreg: Register(0), data: Data::Code(code) }.into());
    }
    for to in ["target", "loose", "absent", "filter_input"] {
        let data = Data::Verdict(Verdict::Jump(name(to)));
        all.push(Immediate { dreg: Register(0), data }.into());
    }
    for len in [0, 1, 4, 16, 17, 65] {
        for dreg in [1, 4, 5, 7, 8, 22, 23, 24] {
            all.push(Immediate { dreg: Register(dreg), data: Data::Value(vec![1; len].into()) }.into());
        }
    }
}
