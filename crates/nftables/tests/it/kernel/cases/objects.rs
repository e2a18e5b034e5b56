//! Tables, chains, sets, maps, elements and the objects of conntrack.

use std::net::Ipv6Addr;
use std::time::Duration;

use super::*;

pub(super) fn cases() -> Vec<Case> {
    vec![objects(), conntrack(), bound_chains(), offload()]
}

fn objects() -> Case {
    case("objects", Family::IP, |tx, t, _| {
        let base =
            |n: &str, kind, hook, priority| Chain::base(t.chain(name(n)), kind, hook, Priority(priority));
        tx.add(Table::new(t.clone()).comment(comment("rules for kube-proxy")));
        tx.add(base("pre", ChainType::Nat, Hook::Prerouting, -100).policy(Policy::Accept));
        tx.add(base("out", ChainType::Route, Hook::Output, -110));
        tx.add(
            base("forwarded", ChainType::Filter, Hook::Forward, 7)
                .policy(Policy::Drop)
                .comment(comment("what passes")),
        );
        tx.add(Chain::new(t.chain(name("service-AXK6CI2C-demo/web/tcp/http"))).comment(comment("a chain")));
        let set = t.set(name("plain"));
        tx.add(Set::new(set.clone(), DataType::IPV4_ADDR).comment(comment("hello")).size(100));
        tx.add(Elements::new(&set, [ip(1, 2, 3, 4), ip(5, 6, 7, 8)]));
        tx.add_element(&set, Element::new(ip(9, 9, 9, 9)).comment(comment("an element")));
        let timed = t.set(name("timed"));
        tx.add(Set::new(timed.clone(), DataType::INET_SERVICE).timeout(Duration::from_secs(10800)));
        tx.add_element(&timed, Element::new(Port(80)).timeout(Duration::from_secs(3600)));
        let mut affinity =
            Set::new(t.set(name("affinity")), DataType::IPV4_ADDR).timeout(Duration::from_secs(10800));
        affinity.flags |= SetFlags::DYNAMIC;
        tx.add(affinity);
        let ranges = t.set(name("ranges"));
        tx.add(Set::new(ranges.clone(), DataType::IPV4_ADDR).flags(SetFlags::INTERVAL));
        tx.add_element(&ranges, Element::range(ip(10, 0, 0, 0), ip(10, 255, 255, 255)));
        tx.add_element(&ranges, Element::range(ip(192, 168, 0, 1), ip(192, 168, 0, 9)));
        tx.add_element(&ranges, ip(1, 1, 1, 1));
        let both = t.set(name("allowed"));
        let types = [DataType::IPV4_ADDR, DataType::INET_PROTO, DataType::INET_SERVICE, DataType::IPV4_ADDR];
        tx.add(Set::new(both.clone(), types).flags(SetFlags::INTERVAL));
        let low = (ip(10, 0, 0, 1), Protocol::TCP, Port(80), ip(10, 1, 0, 0));
        let high = (ip(10, 0, 0, 1), Protocol::TCP, Port(90), ip(10, 1, 255, 255));
        tx.add_element(&both, Element::range(low, high));
        let single = (ip(10, 0, 0, 2), Protocol::TCP, Port(80), ip(10, 1, 0, 0));
        tx.add_element(&both, single);
        let verdicts = t.map(name("verdicts"));
        let types = [DataType::IPV4_ADDR, DataType::INET_PROTO, DataType::INET_SERVICE];
        tx.add(Set::verdict_map(verdicts.clone(), types).comment(comment("where to")));
        let key = |port| Key::from((ip(1, 2, 3, 4), Protocol::TCP, Port(port)));
        tx.add_element(
            &verdicts,
            Element::new(key(80)).comment(comment("demo/empty")).verdict(Verdict::Goto(name("c"))),
        );
        tx.add_element(&verdicts, Element::new(key(81)).verdict(Verdict::Drop));
        tx.add_element(&verdicts, Element::catch_all().verdict(Verdict::Jump(name("c"))));
        let marks = t.map(name("marks"));
        tx.add(Set::map(marks.clone(), DataType::MARK, DataType::IPV4_ADDR));
        tx.add_element(&marks, Element::new(Mark(7)).value(ip(1, 1, 1, 1)));
        tx.add(Set::new(t.set(name("names")), DataType::IFNAME));
        tx.add_element(&t.set(name("names")), InterfaceName::new("eth0").unwrap());
        tx.add(Set::map(
            t.map(name("portmap")),
            DataType::INET_SERVICE,
            [DataType::IPV4_ADDR, DataType::INET_SERVICE],
        ));
    })
}

fn conntrack() -> Case {
    case("conntrack objects", Family::IP, |tx, t, chain| {
        for object in conntrack_objects(t) {
            let reference =
                ObjectReference { kind: object.id.kind, object: ObjectName::Named(object.id.name.clone()) };
            tx.add(object);
            let port = Match::new(Payload::TCP_DPORT, Port(21));
            tx.add(chain.rule().then(port).then(Statement::from(reference)));
        }
    })
}

/// The objects of conntrack.
pub(crate) fn conntrack_objects(t: &TableId) -> Vec<StatefulObject> {
    let object =
        |n: &str, config: ObjectConfig| StatefulObject::new(t.object(config.kind(), name(n)), config);
    let policy = vec![("established", Duration::from_secs(100)), ("close", Duration::from_secs(4))];
    vec![
        object(
            "ftp-standard",
            ObjectConfig::CtHelper { helper: name("ftp"), protocol: Protocol::TCP, family: Some(Family::IP) },
        ),
        object(
            "aggressive",
            ObjectConfig::CtTimeout { protocol: Protocol::TCP, family: Some(Family::IP), policy },
        ),
        object(
            "expected",
            ObjectConfig::CtExpectation {
                protocol: Protocol::TCP,
                port: 9876,
                timeout: Duration::from_secs(120),
                size: 12,
                family: Some(Family::IP),
            },
        ),
    ]
}

/// On a device that is not there: of those that are in tests none can.
fn offload() -> Case {
    case("a chain of devices", Family::NETDEV, |tx, t, _| {
        let device = |name| InterfaceName::new(name).unwrap();
        let chain = t.chain(name("offloaded"));
        let base = Chain::base(chain.clone(), ChainType::Filter, Hook::Ingress, Priority(10));
        let mut base = base.devices([device("card0")]).offload();
        tx.add(base.clone().policy(Policy::Accept).comment(comment("by the card")));
        tx.add(chain.rule().then(Match::new(Payload::IP_SADDR, ip(1, 2, 3, 4))).then(Verdict::Drop));
        base.id = t.chain(name("plain"));
        tx.add(base);
    })
}

/// Times of connections of protocols that nft has no words for. DCCP is in kernels before 6.17, where built.
pub(crate) fn timeouts(dccp: bool) -> Case {
    case("timeouts", Family::INET, |tx, t, chain| {
        let all = [Protocol::SCTP, Protocol::UDPLITE, Protocol::GRE, Protocol::ICMP, Protocol::ICMPV6];
        for protocol in all.into_iter().chain(dccp.then_some(Protocol::DCCP)) {
            let family = Some(if protocol == Protocol::ICMPV6 { Family::IP6 } else { Family::IP });
            // Those that kernels have themselves differ, of what is not said.
            let times = timeout_states(protocol).iter().zip(1000..);
            let policy = times.map(|(state, time)| (*state, Duration::from_secs(time))).collect();
            let config = ObjectConfig::CtTimeout { protocol, family, policy };
            let object =
                StatefulObject::new(t.object(config.kind(), name(&format!("p{}", protocol.0))), config);
            let of = ObjectName::Named(object.id.name.clone());
            let reference = ObjectReference { kind: object.id.kind, object: of };
            tx.add(object).add(chain.rule().then(Statement::from(reference)));
        }
    })
}

fn bound_chains() -> Case {
    case("chains of rules", Family::INET, |tx, t, c| {
        tx.add(Chain::new(t.chain(name("other"))));
        let ssh = || Match::new(Payload::TCP_DPORT, Port(22));
        let among = Expression::set([ip(1, 1, 1, 1), ip(2, 2, 2, 2)].map(Expression::from));
        let pairs = vec![(port(1), Verdict::Accept), (port(2), Verdict::Drop)];
        tx.add(c.rule().then(ssh()).then(BoundChain::jump([
            BoundRule::new().then(Match::new(Payload::IP_SADDR, ip(10, 0, 0, 1))).then(Verdict::Accept),
            BoundRule::new().then(Counter::default()),
            BoundRule::new().then(Verdict::Drop).comment(comment("all others")),
        ])));
        tx.add(
            c.rule()
                .then(BoundChain::goto([
                    BoundRule::new().then(Match::new(Payload::IP_SADDR, among)).then(Verdict::Accept),
                    BoundRule::new().then(Vmap::new(Payload::TCP_DPORT, Mapping::Anonymous(pairs))),
                    BoundRule::new().then(Verdict::Jump(name("other"))),
                ]))
                .comment(comment("not to come back")),
        );
        tx.add(c.rule().then(BoundChain::jump([])));
        tx.add(
            c.rule()
                .then(BoundChain::jump([BoundRule::new().then(Verdict::Return)]))
                .then(Counter::default()),
        );
        tx.insert(c.rule().then(ssh()).then(BoundChain::goto([BoundRule::new().then(Verdict::Accept)])));
    })
}

fn object(t: &TableId, n: &str, config: impl Into<ObjectConfig>) -> StatefulObject {
    let config = config.into();
    StatefulObject::new(t.object(config.kind(), name(n)), config)
}

/// A rule that uses an object.
fn user(chain: &ChainId, object: &StatefulObject) -> Rule {
    let kind = object.id.kind;
    chain.rule().then(ObjectReference { kind, object: ObjectName::Named(object.id.name.clone()) })
}

/// Tunnels, without the options of GENEVE, which libnftnl 1.2.4 does not know.
pub(crate) fn tunnels() -> Case {
    let (v4, v6) = (|n| ip(192, 168, 2, n), |n: u16| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n));
    let plain = Tunnel::v4(10, v4(10), v4(11));
    let mut full = Tunnel::v6(10, v6(1), v6(2))
        .sport(10)
        .dport(20)
        .flags(TunnelFlags::DONT_FRAGMENT | TunnelFlags::SEQUENCE)
        .tos(16)
        .ttl(9)
        .options(TunnelOptions::Vxlan { gbp: 200 });
    full.endpoints = TunnelEndpoints::V6 { source: v6(1), destination: v6(2), flow_label: 7 };
    let with = |options| plain.clone().flags(TunnelFlags::ZERO_CHECKSUM).options(options);
    case("tunnels", Family::NETDEV, |tx, t, chain| {
        for (n, tunnel) in [
            ("plain", plain.clone()),
            ("full", full),
            ("erspan1", with(TunnelOptions::Erspan1 { index: 3 })),
            ("erspan2", with(TunnelOptions::Erspan2 { hardware: 33, egress: true })),
        ] {
            let object = object(t, n, tunnel).comment(comment("where to"));
            tx.add(object.clone()).add(user(chain, &object));
        }
    })
}

pub(crate) fn geneve() -> Case {
    let option = |class, data: &[u8]| GeneveOption { class, kind: 0x80, data: data.to_vec() };
    let options = TunnelOptions::Geneve(vec![option(0x102, &[1, 2, 3, 0xff]), option(1, &[0; 8])]);
    case("options of GENEVE", Family::NETDEV, |tx, t, _| {
        let plain = Tunnel::v6(7, Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST);
        tx.add(object(t, "geneve", plain.options(options)));
    })
}

/// nft 1.0.6 has no word for limits of connections as objects.
pub(crate) fn connlimits() -> Case {
    case("limits of connections", Family::IP, |tx, t, chain| {
        for (n, over) in [("few", false), ("many", true)] {
            let object = object(t, n, Connlimit { count: 5, over });
            tx.add(object.clone()).add(user(chain, &object));
        }
    })
}

/// Kernels without a security module that knows the context refuse it.
pub(crate) fn secmarks() -> Case {
    case("secmarks", Family::INET, |tx, t, chain| {
        let context = SecurityContext::new("system_u:object_r:ssh_server_packet_t:s0").unwrap();
        let object = object(t, "ssh", context);
        tx.add(object.clone()).add(user(chain, &object));
    })
}

/// Elements that stay in sets whose elements go. nft 1.0.6 does not read the word for it.
pub(crate) fn never() -> Case {
    case("elements that never go", Family::IP, |tx, t, _| {
        let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
        let set = t.set(name("hourly"));
        tx.add(Set::new(set.clone(), DataType::INET_SERVICE).timeout(hour));
        tx.add_element(&set, Element::new(Port(1)).timeout(Element::NEVER).comment(comment("stays")));
        tx.add_element(&set, Element::new(Port(2)).timeout(minute));
        tx.add_element(&set, Element::new(Port(3)));
        let map = t.map(name("ranges"));
        let ranges = Set::verdict_map(map.clone(), DataType::IPV4_ADDR).flags(SetFlags::INTERVAL);
        tx.add(ranges.timeout(hour));
        let range = Element::range(ip(10, 0, 0, 0), ip(10, 0, 0, 9));
        tx.add_element(&map, range.timeout(Element::NEVER).verdict(Verdict::Accept));
    })
}

/// Types that nft 1.0.6 has no words for: numbers of queues, with a rule that takes one where that can be
/// had, and whether there is a route.
pub(crate) fn types(queue: bool) -> Case {
    use sluicegate_nftables::expr::{FibFlags, FibResult};
    case("newer types", Family::IP, |tx, t, c| {
        let key = Expression::concat([Payload::IP_SADDR.into(), Payload::TCP_DPORT.into()]);
        let queues = t.map(name("queues"));
        tx.add(Set::map(queues.clone(), key.clone(), SetType::Queue));
        let element =
            |port, number: u16| Element::new((ip(10, 0, 0, 1), Port(port))).value(QueueNumber(number));
        tx.add_element(&queues, element(80, 1)).add_element(&queues, element(81, 258));
        let to = key.map(&queues.name);
        if queue {
            tx.add(c.rule().then(Queue { to, bypass: true, fanout: false }));
        }
        let check = Fib { flags: FibFlags::DADDR, result: FibResult::OIF, check: true };
        tx.add(Set::new(t.set(name("checked")), Expression::from(check)));
        let routed = t.map(name("routed"));
        tx.add(Set::verdict_map(routed.clone(), Expression::from(check)));
        tx.add(c.rule().then(Vmap::new(check, Mapping::from(&routed.name))));
    })
}
