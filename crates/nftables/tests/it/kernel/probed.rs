//! What a probe answers is what then happens: everything that can be asked for is done for real, on kernels
//! of any age.

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::expr::{ExthdrOp, InnerType, MetaKey, PayloadBase, SocketKey, TunnelKey, XfrmKey};
use sluicegate_nftables::lang::exthdr::Exthdr;
use sluicegate_nftables::lang::{self, *};
use sluicegate_nftables::probe::{Feature, supports};
use sluicegate_nftables::*;

use crate::kernel::cases::{comment, ip, name, objects};

/// What to do, and the words that then stand in a listing.
struct ProbeCase {
    chain: ChainId,
    tx: Transaction,
    shows: &'static str,
}

impl ProbeCase {
    fn new(family: Family) -> Self {
        let chain = TableId::new(family, name("t")).chain(name("c"));
        let mut tx = Transaction::new();
        tx.add(Table::new(chain.table.clone())).add(Chain::new(chain.clone()));
        Self { chain, tx, shows: "" }
    }

    fn of(family: Family, shows: &'static str, fill: impl FnOnce(&mut Transaction, &TableId)) -> Self {
        let mut case = Self::new(family);
        fill(&mut case.tx, &case.chain.table);
        Self { shows, ..case }
    }

    /// A rule.
    fn rule(family: Family, shows: &'static str, statements: impl IntoIterator<Item = Statement>) -> Self {
        let mut case = Self::new(family);
        case.tx.add(case.chain.rule().then_all(statements));
        Self { shows, ..case }
    }

    fn matching(shows: &'static str, left: impl Into<Expression>, value: impl Into<Expression>) -> Self {
        Self::rule(Family::INET, shows, [Match::new(left, value).into()])
    }

    fn base(family: Family, shows: &'static str, kind: ChainType, hook: Hook, devices: &[&str]) -> Self {
        Self::of(family, shows, |tx, table| {
            let base = Chain::base(table.chain(name("b")), kind, hook, Priority(0));
            tx.add(base.devices(devices.iter().map(|name| InterfaceName::new(name).expect("a name"))));
        })
    }

    /// Whether it is done, and to be seen.
    fn happens(&self, socket: &mut Socket) -> bool {
        if self.tx.apply(socket).is_err() {
            return false;
        }
        let listed = read::ruleset(socket, Family::UNSPEC).expect("a ruleset").content();
        listed.iter().any(|table| table.to_string().contains(self.shows))
    }
}

fn case(feature: Feature) -> Option<ProbeCase> {
    Some(match feature {
        Feature::Destroy => ProbeCase::of(Family::INET, "", |tx, table| {
            tx.destroy(table.set(name("absent")));
        }),
        Feature::TableComment | Feature::ChainComment | Feature::RuleComment | Feature::SetComment => {
            commented(feature)
        }
        Feature::ObjectComment => ProbeCase::of(Family::INET, "why", |tx, table| {
            let limit = Counter::default();
            let id = table.object(ObjectKind::COUNTER, name("o"));
            tx.add(StatefulObject::new(id, ObjectConfig::Counter(limit)).comment(comment("why")));
        }),
        Feature::TableOwner | Feature::TablePersist => {
            let persist = feature == Feature::TablePersist;
            let (more, shows) =
                if persist { (TableFlags::PERSIST, "persist") } else { (TableFlags::empty(), "owner") };
            ProbeCase::of(Family::INET, shows, |tx, _| {
                let other = TableId::new(Family::INET, name("other"));
                tx.add(Table::new(other).flags(TableFlags::OWNER | more));
            })
        }
        Feature::BoundChains => ProbeCase::rule(
            Family::INET,
            "jump {",
            [BoundChain::jump([BoundRule::new().then(Verdict::Return)]).into()],
        ),
        Feature::InetNat => ProbeCase::base(Family::INET, "type nat", ChainType::Nat, Hook::Prerouting, &[]),
        Feature::InetIngress => {
            ProbeCase::base(Family::INET, "hook ingress", ChainType::Filter, Hook::Ingress, &["lo"])
        }
        Feature::Egress => {
            ProbeCase::base(Family::NETDEV, "hook egress", ChainType::Filter, Hook::Egress, &["lo"])
        }
        Feature::ChainWithoutDevice => {
            ProbeCase::base(Family::NETDEV, "hook ingress", ChainType::Filter, Hook::Ingress, &[])
        }
        Feature::AbsentDevice => {
            ProbeCase::base(Family::NETDEV, "absent0", ChainType::Filter, Hook::Ingress, &["absent0"])
        }
        Feature::DevicePrefix => {
            ProbeCase::base(Family::NETDEV, "absent*", ChainType::Filter, Hook::Ingress, &["absent*"])
        }
        Feature::DeviceDeletion => {
            let mut case =
                ProbeCase::base(Family::NETDEV, "hook ingress", ChainType::Filter, Hook::Ingress, &["lo"]);
            let lo = InterfaceName::new("lo").expect("a name");
            case.tx.delete(case.chain.table.chain(name("b")).devices([lo]));
            case
        }
        Feature::ConcatenatedIntervals => ProbeCase::of(Family::INET, "10.0.0.1 . 1-9", |tx, table| {
            let id = table.set(name("s"));
            let key = [DataType::IPV4_ADDR, DataType::INET_SERVICE];
            tx.add(Set::new(id.clone(), key).flags(SetFlags::INTERVAL));
            tx.add_element(&id, Element::range((ip(10, 0, 0, 1), Port(1)), (ip(10, 0, 0, 1), Port(9))));
        }),
        Feature::CatchAll => ProbeCase::of(Family::INET, "elements = { * }", |tx, table| {
            let id = table.set(name("s"));
            tx.add(Set::new(id.clone(), DataType::IPV4_ADDR)).add_element(&id, Element::catch_all());
        }),
        Feature::ElementExpressions => ProbeCase::of(Family::INET, "counter", |tx, table| {
            let set = Set::new(table.set(name("s")), DataType::IPV4_ADDR);
            tx.add(set.statement(Counter::default()).statement(Last::default()));
        }),
        Feature::Flowtable | Feature::FlowtableCounter => {
            let counter = feature == Feature::FlowtableCounter;
            ProbeCase::of(Family::INET, if counter { "counter" } else { "flowtable f" }, |tx, table| {
                let flowtable = Flowtable::new(table.flowtable(name("f")), Priority(0));
                let flags = if counter { FlowtableFlags::COUNTER } else { FlowtableFlags::empty() };
                tx.add(flowtable.flags(flags));
            })
        }
        Feature::CtHelper | Feature::CtTimeout | Feature::CtExpectation => {
            let number = match feature {
                Feature::CtHelper => 0,
                Feature::CtTimeout => 1,
                _ => 2,
            };
            ProbeCase::of(Family::IP, "ct ", |tx, table| {
                tx.add(objects::conntrack_objects(table).remove(number));
            })
        }
        Feature::SynproxyObject => ProbeCase::of(Family::INET, "mss 1460", |tx, table| {
            let id = table.object(ObjectKind::SYNPROXY, name("o"));
            tx.add(StatefulObject::new(id, ObjectConfig::Synproxy(synproxy())));
        }),
        Feature::TunnelObject => ProbeCase::of(Family::NETDEV, "tunnel o", |tx, table| {
            let id = table.object(ObjectKind::TUNNEL, name("o"));
            tx.add(StatefulObject::new(id, Tunnel::v4(10, ip(1, 1, 1, 1), ip(2, 2, 2, 2)).into()));
        }),
        // Whether there is a context to give depends on more: `objects` asks.
        Feature::Secmark => return None,
        // `reset` asks.
        Feature::RuleReset | Feature::ElementReset => return None,
        // `registered_hooks` asks.
        Feature::RegisteredHooks => return None,
        _ => return expression(feature),
    })
}

fn commented(feature: Feature) -> ProbeCase {
    ProbeCase::of(Family::INET, "why", |tx, table| {
        let chain = table.chain(name("other"));
        match feature {
            Feature::TableComment => {
                tx.add(Table::new(TableId::new(Family::INET, name("other"))).comment(comment("why")))
            }
            Feature::ChainComment => tx.add(Chain::new(chain).comment(comment("why"))),
            Feature::RuleComment => tx.add(table.chain(name("c")).rule().comment(comment("why"))),
            _ => tx.add(Set::new(table.set(name("s")), DataType::IPV4_ADDR).comment(comment("why"))),
        };
    })
}

fn synproxy() -> Synproxy {
    Synproxy { mss: Some(1460), wscale: Some(7), timestamp: true, sack_perm: true }
}

/// In a rule.
fn expression(feature: Feature) -> Option<ProbeCase> {
    let tcp = || Statement::from(Match::new(MetaKey::L4PROTO, Protocol::TCP));
    let mark =
        |shows, value| ProbeCase::rule(Family::INET, shows, [Mangle::new(MetaKey::MARK, value).into()]);
    let statement = |shows, statement: Statement| ProbeCase::rule(Family::INET, shows, [tcp(), statement]);
    let socket = |key, level| Expression::Socket(lang::Socket { key, level });
    let field = |op, header: &str, field: &str| Exthdr::find(op, header, field).expect("a field");
    let port = Some(Port(80).into());
    Some(match feature {
        Feature::Last => statement("last", Last::default().into()),
        Feature::Numgen => mark("numgen", Expression::random(3)),
        Feature::Hash => {
            let of = Payload::IP_SADDR.into();
            mark("jhash", Expression::Jhash(Box::new(Jhash { of, modulus: 2, seed: Some(7), offset: 0 })))
        }
        Feature::Fib => ProbeCase::matching("fib", Expression::FIB_SADDR_TYPE, AddressType::LOCAL),
        Feature::Nat => {
            statement("dnat", Statement::dnat(Nat { family: Some(Family::IP), ..Nat::to(ip(1, 2, 3, 4)) }))
        }
        Feature::Masquerade => statement("masquerade", Statement::masquerade(PortNat::default())),
        Feature::Redirect => statement("redirect", Statement::redirect(PortNat::default())),
        Feature::Tproxy => statement("tproxy", Tproxy { family: None, address: None, port }.into()),
        Feature::Queue => statement("queue", Queue { to: 3_u32.into(), bypass: true, fanout: false }.into()),
        Feature::Connlimit => statement("ct count", Connlimit { count: 3, over: true }.into()),
        Feature::Synproxy => statement("synproxy", synproxy().into()),
        Feature::Socket => ProbeCase::matching("socket", socket(SocketKey::TRANSPARENT, None), 1_u32),
        Feature::SocketCgroup => {
            ProbeCase::matching("socket cgroupv2", socket(SocketKey::CGROUPV2, Some(1)), 1_u32)
        }
        Feature::Osf => {
            let linux = Value::Text(InterfaceName::new("Linux").expect("a name"));
            ProbeCase::matching(
                "osf",
                Expression::Osf(Osf { ttl: 0, version: false }),
                Expression::Value(linux),
            )
        }
        Feature::Xfrm => {
            let ipsec = Ipsec { key: XfrmKey::REQID, out: false, number: 0 };
            ProbeCase::matching("ipsec in reqid", Expression::Ipsec(ipsec), 1_u32)
        }
        Feature::Tunnel => {
            ProbeCase::rule(Family::NETDEV, "tunnel", [Match::new(TunnelKey::ID, 10_u32).into()])
        }
        Feature::Inner => {
            let inner = Inner { tunnel: InnerType::VXLAN, field: Payload::IP_SADDR };
            let vxlan = Match::new(Payload::UDP_DPORT, Port(4789)).into();
            ProbeCase::rule(Family::INET, "vxlan", [vxlan, Match::new(inner, ip(1, 2, 3, 4)).into()])
        }
        Feature::InnerHeader => {
            let raw = RawPayload { base: PayloadBase::INNER, offset: 0, bits: 32 };
            ProbeCase::matching("@ih", Expression::RawPayload(raw), 1_u32)
        }
        Feature::TcpOptionReset => {
            statement("reset tcp option", Statement::ResetOption(field(ExthdrOp::TCPOPT, "sack-perm", "")))
        }
        Feature::SctpChunk => ProbeCase::matching("sctp chunk", field(ExthdrOp::SCTP, "data", ""), 1_u32),
        Feature::DccpOption => ProbeCase::matching("dccp option", Exthdr::dccp_option(3), 1_u32),
        Feature::BitwiseRegisters => {
            mark("meta mark & meta priority", Expression::from(MetaKey::MARK).and(MetaKey::PRIORITY))
        }
        _ => return None,
    })
}

#[test]
fn what_is_found_is_what_happens() {
    let mut wrong = Vec::new();
    for feature in Feature::ALL {
        let Some(case) = case(*feature) else {
            assert!(
                matches!(
                    feature,
                    Feature::Secmark | Feature::RuleReset | Feature::ElementReset | Feature::RegisteredHooks
                ),
                "{feature:?} is not tried"
            );
            continue;
        };
        testns::netns(|| {
            let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
            let found = supports(&mut socket, *feature).expect("it answers");
            if case.happens(&mut socket) != found {
                wrong.push(format!("{feature:?}: found {found}, {:?}", case.tx.apply(&mut socket).err()));
            }
        });
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
