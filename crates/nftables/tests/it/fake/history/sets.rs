//! Sets and maps of every shape, and what may be said otherwise when one is added again.

use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::lang::{Counter, Expression, Last, Limit, Payload, Quota, Statement, TimeUnit};
use sluicegate_nftables::*;

use super::{Bytes, seconds};
use crate::kernel::cases::name;

/// What a set is like: its name is made of nothing else.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) key: Keys,
    pub(super) data: Data,
    pub(super) flags: SetFlags,
    pub(super) size: Option<u32>,
    /// Hours.
    pub(super) timeout: Option<u64>,
    pub(super) carries: &'static [Carried],
}

/// What its keys are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    Address,
    Port,
    Protocol,
    Mark,
    /// An address and a port.
    Pair,
    /// An address, a port and a mark.
    Triple,
    /// Four addresses of 16 bytes.
    Long,
    /// As `ip saddr`.
    Typeof,
}

/// What they map to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Data {
    None,
    Mark,
    Address,
    /// An address and a port.
    Pair,
    /// From an address to another.
    Range,
    Verdict,
    Object(ObjectKind),
}

/// What elements carry. Those that limit connections are left out: the kernel removes them by and by where
/// there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carried {
    Counter,
    Last,
    Quota,
    Limit,
    ByteLimit,
}

pub(super) const KINDS: u8 = 34;

const PLAIN: Kind = Kind {
    name: "",
    key: Keys::Address,
    data: Data::None,
    flags: SetFlags::empty(),
    size: None,
    timeout: None,
    carries: &[],
};
const RANGES: Kind = Kind { flags: SetFlags::INTERVAL, ..PLAIN };
const GROWS: Kind = Kind { flags: SetFlags::DYNAMIC, ..PLAIN };
const THINGS: Kind = Kind { data: Data::Object(ObjectKind::COUNTER), ..PLAIN };

pub(super) const ALL: [Kind; KINDS as usize] = [
    Kind { name: "addresses", size: Some(3), ..PLAIN },
    Kind { name: "marks", data: Data::Mark, ..PLAIN },
    Kind { name: "verdicts", data: Data::Verdict, ..PLAIN },
    Kind { name: "ranges", size: Some(4), ..RANGES },
    Kind { name: "vranges", data: Data::Verdict, ..RANGES },
    Kind { name: "pairs", key: Keys::Pair, ..RANGES },
    Kind { name: "counted", carries: &[Carried::Counter], ..GROWS },
    Kind { name: "timed", timeout: Some(10), ..PLAIN },
    Kind { name: "grows", flags: SetFlags::DYNAMIC.union(SetFlags::TIMEOUT), ..PLAIN },
    Kind { name: "things", ..THINGS },
    Kind { name: "vpairs", key: Keys::Pair, data: Data::Verdict, size: Some(3), ..RANGES },
    Kind { name: "tranges", timeout: Some(10), ..RANGES },
    Kind { name: "twice", size: Some(4), carries: &[Carried::Counter, Carried::Last], ..GROWS },
    Kind { name: "ports", key: Keys::Port, ..PLAIN },
    Kind { name: "frugal", ..PLAIN },
    Kind { name: "routes", data: Data::Address, ..RANGES },
    Kind { name: "quotas", data: Data::Object(ObjectKind::QUOTA), ..THINGS },
    Kind { name: "busy", carries: &[Carried::ByteLimit], ..GROWS },
    Kind { name: "fixed", flags: SetFlags::CONSTANT, ..PLAIN },
    Kind { name: "spans", data: Data::Range, ..PLAIN },
    Kind { name: "triples", key: Keys::Triple, timeout: Some(10), ..RANGES },
    Kind { name: "backends", key: Keys::Pair, data: Data::Pair, ..PLAIN },
    Kind { name: "typed", key: Keys::Typeof, ..PLAIN },
    Kind {
        name: "limited",
        size: Some(5),
        timeout: Some(10),
        carries: &[Carried::Limit],
        flags: SetFlags::DYNAMIC.union(SetFlags::TIMEOUT),
        ..PLAIN
    },
    Kind { name: "helpers", data: Data::Object(ObjectKind::CT_HELPER), ..THINGS },
    Kind { name: "long", key: Keys::Long, carries: &[Carried::Limit, Carried::Quota], ..RANGES },
    Kind { name: "spent", carries: &[Carried::Quota], ..PLAIN },
    Kind { name: "portranges", key: Keys::Port, data: Data::Verdict, ..RANGES },
    Kind { name: "protocols", key: Keys::Protocol, ..RANGES },
    Kind { name: "markranges", key: Keys::Mark, data: Data::Pair, ..RANGES },
    Kind { name: "limits", data: Data::Object(ObjectKind::LIMIT), flags: SetFlags::INTERVAL, ..THINGS },
    Kind { name: "constants", data: Data::Verdict, flags: SetFlags::CONSTANT, ..PLAIN },
    Kind { name: "triplets", key: Keys::Triple, carries: &[Carried::Counter], ..PLAIN },
    Kind { name: "proxies", data: Data::Object(ObjectKind::SYNPROXY), timeout: Some(10), ..THINGS },
];

pub(super) fn set_name(kind: u8) -> Name {
    name(ALL[usize::from(kind)].name)
}

pub(super) fn set_id(t: &TableId, kind: u8) -> SetId {
    let plain = ALL[usize::from(kind)].data == Data::None;
    if plain { t.set(set_name(kind)) } else { t.map(set_name(kind)) }
}

/// A set of some kind under the name that usually is of that kind.
pub(super) fn set(t: &TableId, as_name: u8, kind: u8) -> Set {
    let of = &ALL[usize::from(kind)];
    let id = SetId { name: set_name(as_name), ..set_id(t, kind) };
    let key = of.key.of_type();
    let mut set = match of.data {
        Data::None => Set::new(id, key),
        Data::Mark => Set::map(id, key, DataType::MARK),
        Data::Address => Set::map(id, key, DataType::IPV4_ADDR),
        Data::Pair => Set::map(id, key, [DataType::IPV4_ADDR, DataType::INET_SERVICE]),
        Data::Range => Set::interval_map(id, key, DataType::IPV4_ADDR),
        Data::Verdict => Set::verdict_map(id, key),
        Data::Object(kind) => Set::object_map(id, key, kind),
    };
    set.flags |= of.flags;
    set.size = of.size;
    set.timeout = of.timeout.map(|hours| seconds(3600 * hours));
    set.statements = of.carries.iter().map(|carried| carried.statement()).collect();
    set.policy = (of.name == "frugal").then_some(SetPolicy::Memory);
    set
}

/// A set, mostly the usual one of its name, in which something may not fit the one that is there, or not go
/// together.
pub(super) fn some_set(t: &TableId, bytes: &mut Bytes<'_>) -> Set {
    let kind = bytes.below(KINDS);
    let as_name = if bytes.one_in(8) { bytes.below(KINDS) } else { kind };
    let mut set = set(t, as_name, kind);
    set.comment = bytes.comment();
    for _ in 0..bytes.pick(&[0, 1, 1, 2]) {
        vary(&mut set, bytes);
    }
    // More would ask a hash for more memory than there may be.
    if !set.flags.contains(SetFlags::INTERVAL) {
        set.size = set.size.map(|size| size % 8);
    }
    set
}

fn vary(set: &mut Set, bytes: &mut Bytes<'_>) {
    match bytes.below(16) {
        0 => set.flags |= SetFlags::CONSTANT,
        1 => set.size = Some(bytes.pick(&[2, 0, 1, 5, u32::MAX, 1 << 31])),
        2 => set.size = None,
        3 => set.flags |= SetFlags::INTERVAL,
        4 => set.timeout = Some(seconds(18_000)),
        5 => set.flags |= SetFlags::DYNAMIC,
        6 => set.statements = vec![Carried::Counter.statement()],
        7 => set.gc_interval = Some(seconds(u64::from(bytes.below(3)))),
        8 => set.flags |= SetFlags::TIMEOUT,
        9 => set.flags = set.flags.difference(bytes.pick(&[SetFlags::INTERVAL, SetFlags::DYNAMIC])),
        10 => {
            let carried = bytes.pick(&[Carried::Last, Carried::Quota, Carried::Limit, Carried::ByteLimit]);
            set.statements.push(carried.statement());
        }
        11 => set.auto_merge = true,
        12 => set.flags |= bytes.pick(&[SetFlags::OBJECT, SetFlags::CONCAT, SetFlags::EXPR, SetFlags::MAP]),
        13 => set.flags |= SetFlags::from_bits_retain(0x200),
        14 if set.size.is_none() => {
            set.policy = Some(bytes.pick(&[SetPolicy::Performance, SetPolicy::Memory]));
        }
        _ => set.timeout = None,
    }
}

impl Keys {
    fn of_type(self) -> SetType {
        let v6 = DataType::IPV6_ADDR;
        match self {
            Self::Address => DataType::IPV4_ADDR.into(),
            Self::Port => DataType::INET_SERVICE.into(),
            Self::Protocol => DataType::INET_PROTO.into(),
            Self::Mark => DataType::MARK.into(),
            Self::Pair => [DataType::IPV4_ADDR, DataType::INET_SERVICE].into(),
            Self::Triple => [DataType::IPV4_ADDR, DataType::INET_SERVICE, DataType::MARK].into(),
            Self::Long => [v6, v6, v6, v6].into(),
            Self::Typeof => SetType::Typeof(Expression::from(Payload::IP_SADDR)),
        }
    }
}

impl Carried {
    pub(super) fn statement(self) -> Statement {
        match self {
            Self::Counter => Counter::default().into(),
            Self::Last => Last::default().into(),
            Self::Quota => Quota { bytes: 5000, used: 0, over: true }.into(),
            Self::Limit => {
                Limit { rate: 5, per: TimeUnit::Second, burst: None, bytes: false, over: false }.into()
            }
            Self::ByteLimit => {
                Limit { rate: 5, per: TimeUnit::Second, burst: None, bytes: true, over: false }.into()
            }
        }
    }
}
