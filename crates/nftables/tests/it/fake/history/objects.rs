//! Stateful objects of every kind, right and wrong.

use std::net::{Ipv4Addr, Ipv6Addr};

use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::lang::{Connlimit, Counter, Limit, Quota, Synproxy, TimeUnit};
use sluicegate_nftables::*;

use super::{Bytes, seconds};
use crate::kernel::cases::name;

/// The usual ones.
pub(super) const OBJECTS: u8 = 9;

pub(super) const KINDS_OF_OBJECTS: [ObjectKind; 10] = [
    ObjectKind::COUNTER,
    ObjectKind::QUOTA,
    ObjectKind::LIMIT,
    ObjectKind::SYNPROXY,
    ObjectKind::CONNLIMIT,
    ObjectKind::CT_HELPER,
    ObjectKind::CT_TIMEOUT,
    ObjectKind::CT_EXPECT,
    ObjectKind::TUNNEL,
    ObjectKind::SECMARK,
];

/// The names that the kinds above usually have.
pub(super) const NAMES: [&str; 10] =
    ["n", "q", "pace", "shield", "crowd", "aide", "patience", "awaited", "tube", "context"];

/// One of the usual objects; families that have no connections or no tunnels get counters instead.
pub(super) fn usual(t: &TableId, kind: u8) -> StatefulObject {
    let inet = [Family::IP, Family::IP6, Family::INET].contains(&t.family);
    let fits = match kind {
        3..=7 => inet,
        8 => t.family == Family::NETDEV,
        _ => true,
    };
    let name = NAMES[usize::from(kind)];
    object(t, name, if fits { config(t.family, kind, &mut Bytes(&[])) } else { Counter::default().into() })
}

pub(super) fn some_object(t: &TableId, bytes: &mut Bytes<'_>) -> StatefulObject {
    let kind = bytes.pick(&[0, 1, 1, 2, 3, 4, 5, 6, 7, 8]);
    // Bridges have a module of their own for connections.
    let kind = if t.family == Family::BRIDGE { kind % 3 } else { kind };
    let name = if bytes.one_in(5) { bytes.pick(&NAMES) } else { NAMES[usize::from(kind)] };
    let comment = bytes.comment();
    let mut object = object(t, name, config(t.family, kind, bytes));
    object.comment = comment;
    object
}

pub(super) fn object_id(t: &TableId, bytes: &mut Bytes<'_>) -> ObjectId {
    let at = usize::from(bytes.below(10));
    let n = if bytes.one_in(8) { bytes.pick(&NAMES) } else { NAMES[at] };
    t.object(KINDS_OF_OBJECTS[at], name(n))
}

fn object(t: &TableId, n: &str, config: ObjectConfig) -> StatefulObject {
    StatefulObject::new(t.object(config.kind(), name(n)), config)
}

/// The settings of a kind; those of zeros are right.
fn config(family: Family, kind: u8, bytes: &mut Bytes<'_>) -> ObjectConfig {
    match kind {
        0 => Counter { packets: u64::from(bytes.below(3)), bytes: 99 }.into(),
        1 => Quota {
            bytes: bytes.pick(&[1 << 20, 1 << 30, 0, 1 << 63]),
            used: bytes.pick(&[0, 77]),
            over: bytes.one_in(2),
        }
        .into(),
        2 => limit(bytes).into(),
        3 => Synproxy {
            mss: bytes.pick(&[Some(1460), None, Some(1)]),
            wscale: bytes.pick(&[Some(7), None, Some(15)]),
            timestamp: bytes.one_in(2),
            sack_perm: bytes.one_in(2),
        }
        .into(),
        4 => Connlimit { count: u32::from(bytes.below(4)), over: bytes.one_in(2) }.into(),
        5 => {
            let helper =
                bytes.pick(&["ftp", "tftp", "sip", "nothing", "snmp", "pptp", "amanda", "netbios-ns"]);
            let protocol = bytes.pick(&[Protocol::TCP, Protocol::UDP, Protocol(0), Protocol::SCTP]);
            ObjectConfig::CtHelper { helper: name(helper), protocol, family: network(family, bytes) }
        }
        6 => timeout(family, bytes),
        7 => ObjectConfig::CtExpectation {
            protocol: bytes.pick(&[
                Protocol::TCP,
                Protocol::UDP,
                Protocol::SCTP,
                Protocol::ICMP,
                Protocol(0),
            ]),
            port: u16::from(bytes.below(3)),
            timeout: seconds(u64::from(bytes.below(3))),
            size: bytes.below(3),
            // The kernel expects a protocol, which for the first family of each is that of the table.
            family: network(family, bytes).or((family == Family::INET).then_some(Family::IP)),
        },
        _ => tunnel(bytes).into(),
    }
}

fn network(family: Family, bytes: &mut Bytes<'_>) -> Option<Family> {
    match bytes.below(6) {
        0..=2 => None,
        3 => Some(family),
        4 => Some(Family::IP),
        _ => Some(bytes.pick(&[Family::IP6, Family::INET, Family::BRIDGE, Family::ARP])),
    }
}

pub(super) fn limit(bytes: &mut Bytes<'_>) -> Limit {
    Limit {
        rate: bytes.pick(&[5, 1, 0, 1 << 62, 1000]),
        per: bytes.pick(&[TimeUnit::Second, TimeUnit::Week, TimeUnit::Hour]),
        burst: bytes.pick(&[None, Some(5), Some(0), Some(u32::MAX)]),
        bytes: bytes.one_in(3),
        over: bytes.one_in(3),
    }
}

fn timeout(family: Family, bytes: &mut Bytes<'_>) -> ObjectConfig {
    let protocol = bytes.pick(&[
        Protocol::TCP,
        Protocol::UDP,
        Protocol::SCTP,
        Protocol::ICMP,
        Protocol(47),
        Protocol(33),
        Protocol(136),
        Protocol(58),
        Protocol(0),
    ]);
    let states = timeout_states(protocol);
    let policy = (0..bytes.below(4))
        .filter(|_| !states.is_empty())
        .map(|_| (bytes.pick(states), seconds(u64::from(bytes.next()))))
        .collect();
    ObjectConfig::CtTimeout { protocol, family: network(family, bytes), policy }
}

fn tunnel(bytes: &mut Bytes<'_>) -> Tunnel {
    let (source, destination) = (Ipv4Addr::new(10, 0, 0, bytes.below(3)), Ipv4Addr::new(10, 0, 0, 9));
    let mut tunnel = if bytes.one_in(3) {
        Tunnel::v6(u32::from(bytes.below(3)), source.to_ipv6_mapped(), Ipv6Addr::LOCALHOST)
    } else {
        Tunnel::v4(u32::from(bytes.below(3)), source, destination)
    };
    let geneve =
        |len: usize| TunnelOptions::Geneve(vec![GeneveOption { class: 1, kind: 2, data: vec![7; len] }]);
    tunnel.sport = u16::from(bytes.below(2)) * 10;
    tunnel.dport = u16::from(bytes.below(2)) * 20;
    tunnel.flags = bytes.pick(&[
        TunnelFlags::empty(),
        TunnelFlags::DONT_FRAGMENT | TunnelFlags::ZERO_CHECKSUM,
        TunnelFlags::SEQUENCE,
        TunnelFlags::from_bits_retain(8),
    ]);
    tunnel.tos = bytes.below(2) * 16;
    tunnel.ttl = bytes.below(2) * 9;
    tunnel.options = match bytes.below(9) {
        0..=3 => None,
        4 => Some(TunnelOptions::Vxlan { gbp: 200 }),
        5 => Some(TunnelOptions::Erspan1 { index: 3 }),
        6 => Some(TunnelOptions::Erspan2 { hardware: 33, egress: bytes.one_in(2) }),
        7 => Some(geneve(4)),
        _ => Some(geneve(bytes.pick(&[0, 3, 124, 128]))),
    };
    tunnel
}
