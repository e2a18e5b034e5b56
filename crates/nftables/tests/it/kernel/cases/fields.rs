//! A match on every field of every header that has a name.

use std::net::{Ipv4Addr, Ipv6Addr};

use sluicegate_nftables::expr::{ExthdrOp, InnerType, MetaKey, TunnelKey};
use sluicegate_nftables::lang::exthdr::Exthdr;
use sluicegate_nftables::lang::*;
use sluicegate_nftables::*;

use super::{Case, rules};

/// Those that nft 1.0.6 can read.
pub(crate) fn cases() -> Vec<Case> {
    let arp = |field: &Expression| matches!(field, Expression::Payload(p) if p.protocol() == "arp");
    let read = || fields().into_iter().filter(|field| !is_unread(field));
    let inet: Vec<_> = read().filter(|field| !arp(field)).collect();
    vec![
        rules("every field, inet", Family::INET, inet.iter().flat_map(matches)),
        rules(
            "osf",
            Family::IP,
            [(0, false, "Linux"), (2, false, "Linux"), (1, true, "Linux:3.0")].map(|(ttl, version, text)| {
                let text = Value::Text(InterfaceName::new(text).unwrap());
                vec![Match::new(Expression::Osf(Osf { ttl, version }), Expression::Value(text)).into()]
            }),
        ),
        rules("bridge meta", Family::BRIDGE, {
            let bridge = || InterfaceName::new("br0").unwrap();
            [
                vec![Match::new(MetaKey::IBRNAME, bridge()).into()],
                vec![Match::new(MetaKey::OBRNAME, bridge()).into()],
                vec![Match::new(MetaKey::IBRPVID, 7_u32).into()],
                vec![Match::new(MetaKey::IBRVPROTO, 0x8100_u32).into()],
            ]
        }),
        rules("rows of fields, ip", Family::IP, rows(Family::IP)),
        rules("rows of fields, inet", Family::INET, rows(Family::INET)),
        rules("rows of fields, bridge", Family::BRIDGE, rows(Family::BRIDGE)),
        rules("rows of fields, netdev", Family::NETDEV, rows(Family::NETDEV)),
        rules("every field, bridge", Family::BRIDGE, read().collect::<Vec<_>>().iter().flat_map(matches)),
    ]
}

/// Several in a row, of which the later find known what the earlier have implied.
fn rows(family: Family) -> Vec<Vec<Statement>> {
    let mac = || Expression::from(EtherAddr([1, 2, 3, 4, 5, 6]));
    let ip = || Expression::from(Ipv4Addr::new(1, 2, 3, 4));
    let row = |list: &[(Payload, Expression)]| -> Vec<Statement> {
        list.iter().map(|(field, value)| Match::new(*field, value.clone()).into()).collect()
    };
    let number = |n: u32| Expression::from(n);
    let mut rows = vec![
        row(&[(Payload::IP_SADDR, ip()), (Payload::ICMP_TYPE, number(3))]),
        row(&[(Payload::ICMP_TYPE, number(3)), (Payload::IP_SADDR, ip())]),
        row(&[(Payload::ICMP_TYPE, number(8)), (Payload::ICMP_ID, number(7))]),
        row(&[(Payload::ICMP_ID, number(7)), (Payload::ICMP_SEQUENCE, number(9))]),
        row(&[(Payload::ICMP_TYPE, number(3)), (Payload::ICMP_MTU, number(1400))]),
        row(&[(Payload::ICMP_MTU, number(1400)), (Payload::ICMP_CODE, number(4))]),
        row(&[(Payload::IGMP_TYPE, number(17)), (Payload::IP_SADDR, ip())]),
        row(&[(Payload::TCP_DPORT, Port(22).into()), (Payload::TCP_FLAGS, TcpFlags::SYN.into())]),
    ];
    rows.extend([
        row(&[(Payload::ETHER_SADDR, mac()), (Payload::ETHER_DADDR, mac())]),
        row(&[(Payload::ETHER_SADDR, mac()), (Payload::IP_SADDR, ip())]),
        row(&[(Payload::ETHER_SADDR, mac()), (Payload::ICMP_TYPE, number(3))]),
        row(&[(Payload::ETHER_SADDR, mac()), (Payload::TCP_DPORT, Port(22).into())]),
        row(&[(Payload::IP_SADDR, ip()), (Payload::ETHER_SADDR, mac())]),
        row(&[(Payload::ETHER_TYPE, number(0x0800)), (Payload::IP_SADDR, ip())]),
        row(&[(Payload::ETHER_TYPE, number(0x8100)), (Payload::VLAN_ID, number(3))]),
        row(&[(Payload::VLAN_ID, number(3)), (Payload::VLAN_PCP, number(2))]),
        row(&[(Payload::VLAN_ID, number(3)), (Payload::IP_SADDR, ip())]),
        row(&[(Payload::VLAN_ID, number(3)), (Payload::TCP_DPORT, Port(22).into())]),
    ]);
    if family != Family::IP {
        // Here nft 1.0.6 lists less than there is.
        rows.push(row(&[(Payload::VLAN_TYPE, number(0x0800)), (Payload::IP_SADDR, ip())]));
    }
    rows
}

/// Those that it cannot.
pub(super) fn newer() -> Vec<Case> {
    let fields: Vec<_> = fields().into_iter().filter(is_unread).collect();
    vec![
        rules("newer fields", Family::INET, fields.iter().flat_map(matches)),
        rules("last", Family::INET, [vec![Last::default().into()]]),
        rules("inside tunnels", Family::INET, inside()),
        rules("inside tunnels, netdev", Family::NETDEV, inside()),
        rules(
            "tunnels",
            // The kernel has it for this family alone.
            Family::NETDEV,
            [
                vec![Match::new(TunnelKey::ID, 10_u32).into()],
                vec![Match::with(TunnelKey::ID, MatchOp::Gte, 10_u32).into()],
                vec![Match::new(TunnelKey::PATH, 1_u32).into()],
                vec![Match::new(TunnelKey::ID, Expression::set([10_u32, 20])).into()],
            ],
        ),
    ]
}

/// The rules that nft's own tests try inside tunnels.
fn inside() -> Vec<Vec<Statement>> {
    let tunnels = [
        (InnerType::VXLAN, Some(4789)),
        (InnerType::GENEVE, Some(6081)),
        (InnerType::GRETAP, None),
        (InnerType::GRE, None),
    ];
    tunnels.into_iter().flat_map(|(tunnel, port)| inside_of(tunnel, port)).collect()
}

fn inside_of(tunnel: InnerType, port: Option<u16>) -> Vec<Vec<Statement>> {
    let field = |field| Expression::from(Inner { tunnel, field });
    let ip = |a, b, c, d| Expression::from(Ipv4Addr::new(a, b, c, d));
    let pairs = |list: &[(Payload, Expression)]| -> Vec<Statement> {
        list.iter().map(|(f, value)| Match::new(field(*f), value.clone()).into()).collect()
    };
    let one = |f, value: Expression| pairs(&[(f, value)]);
    let addresses = Expression::concat([field(Payload::IP_SADDR), field(Payload::IP_DADDR)]);
    let flow = Expression::concat([ip(1, 2, 3, 4), ip(4, 3, 2, 1)]);
    let mut list = vec![
        one(Payload::IP_SADDR, ip(10, 141, 11, 2)),
        one(Payload::IP_SADDR, Expression::prefix(Ipv4Addr::new(10, 141, 11, 0), 24)),
        one(Payload::IP_SADDR, Expression::prefix(Ipv4Addr::new(10, 141, 16, 0), 20)),
        one(Payload::IP_PROTOCOL, 1_u32.into()),
        one(Payload::IP6_DADDR, Ipv6Addr::LOCALHOST.into()),
        one(Payload::UDP_SPORT, Port(8888).into()),
        one(Payload::TCP_DPORT, Expression::range(Port(80), Port(90))),
        one(Payload::TCP_DPORT, Expression::set([Port(80), Port(443)])),
        one(Payload::TH_DPORT, Port(53).into()),
        one(Payload::ICMP_TYPE, 0_u32.into()),
        one(Payload::ICMP_MTU, 1400_u32.into()),
        one(Payload::ICMPV6_TYPE, 135_u32.into()),
        one(Payload::IP_DSCP, 2_u32.into()),
        one(Payload::IP_DSCP, Expression::set([2_u32, 8])),
        pairs(&[(Payload::IP_DADDR, ip(9, 9, 9, 9)), (Payload::TCP_DPORT, Port(80).into())]),
        pairs(&[(Payload::UDP_SPORT, Port(1).into()), (Payload::UDP_DPORT, Port(2).into())]),
        pairs(&[(Payload::ICMP_TYPE, 3_u32.into()), (Payload::ICMP_CODE, 4_u32.into())]),
        pairs(&[(Payload::IP_PROTOCOL, 6_u32.into()), (Payload::TCP_DPORT, Port(80).into())]),
        vec![Match::new(addresses, Expression::set([flow])).into()],
    ];
    if tunnel != InnerType::GRE {
        let mac = Expression::from(EtherAddr([2, 0, 0, 0, 0, 1]));
        list.extend([
            one(Payload::ETHER_SADDR, EtherAddr([0x62, 0x87, 0x4d, 0xd6, 0x19, 5]).into()),
            one(Payload::ARP_OPERATION, 1_u32.into()),
            pairs(&[(Payload::ETHER_DADDR, mac.clone()), (Payload::ETHER_SADDR, mac.clone())]),
            pairs(&[(Payload::ETHER_SADDR, mac), (Payload::VLAN_ID, 10_u32.into())]),
            one(Payload::VLAN_ID, 10_u32.into()),
            pairs(&[(Payload::ETHER_TYPE, 0x0800_u32.into()), (Payload::IP_SADDR, ip(1, 2, 3, 4))]),
        ]);
    }
    let carrier = port.map(|port| Statement::from(Match::new(Payload::UDP_DPORT, Port(port))));
    list.into_iter().map(|rule| carrier.clone().into_iter().chain(rule).collect()).collect()
}

/// Matches on a value and on a set of two.
fn matches(field: &Expression) -> Vec<Vec<Statement>> {
    let mut before = Vec::new();
    if matches!(field, Expression::Payload(p) if matches!(p.protocol(), "vxlan" | "geneve")) {
        before.push(Statement::from(Match::new(MetaKey::L4PROTO, Protocol::UDP)));
    }
    let [one, other] = values(field);
    // A set of `exists` and `missing` is everything; nft does not even show the words.
    let set = (!matches!(field, Expression::Exthdr(e) if e.is_presence()))
        .then(|| Expression::set([one.clone(), other]));
    let with = |right| [before.clone(), vec![Match::new(field.clone(), right).into()]].concat();
    [Some(one), set].into_iter().flatten().map(with).collect()
}

/// What nft 1.0.6 cannot read.
pub(crate) fn is_unread(field: &Expression) -> bool {
    match field {
        // nft 1.0.6 fails an assertion of its own on `ah nexthdr` and `comp nexthdr`.
        Expression::Payload(Payload::AH_NEXTHDR | Payload::COMP_NEXTHDR) => true,
        // It knows the field, but not the name that it shows.
        Expression::Payload(Payload::ICMPV6_PARAMETER_PROBLEM) => true,
        Expression::Payload(Payload::ICMPV6_TADDR | Payload::ICMPV6_DADDR) => true,
        Expression::Payload(p) => matches!(p.protocol(), "gre" | "vxlan" | "geneve"),
        // It shows `tcp option nop kind`, but reads only `tcp option @1,0,8`.
        Expression::Exthdr(e) if e.op() == ExthdrOp::TCPOPT => (e.offset(), e.is_presence()) == (0, false),
        Expression::Exthdr(e) => e.op() == ExthdrOp::DCCP || e.header() == Some("rt2"),
        _ => false,
    }
}

/// Every field, and options that have no name.
pub(crate) fn fields() -> Vec<Expression> {
    let payload = Payload::ALL.iter().copied().map(Expression::from);
    let options = [Exthdr::tcp_option(253), Exthdr::tcp_option_at(253, 16, 32), Exthdr::dccp_option(3)];
    payload.chain(Exthdr::all().map(Expression::from)).chain(options.map(Expression::from)).collect()
}

/// Two constants that the field can have.
fn values(field: &Expression) -> [Expression; 2] {
    [1_u8, 0].map(|n| match field.part().unwrap().data_type() {
        DataType::IPV4_ADDR => Ipv4Addr::new(10, 0, 0, n).into(),
        DataType::IPV6_ADDR => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n.into()).into(),
        DataType::ETHER_ADDR => EtherAddr([2, 0, 0, 0, 0, n]).into(),
        _ => u32::from(n).into(),
    })
}
