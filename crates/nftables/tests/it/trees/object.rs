//! Tables, chains, sets with their elements, stateful objects and flowtables.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use proptest::prelude::*;
use sluicegate_nftables::expr::{MetaKey, ObjectKind};
use sluicegate_nftables::lang::{Connlimit, Counter, Expression, Payload, Verdict};
use sluicegate_nftables::*;

use crate::trees::statement::{interface, limit, protocol, quota, stateful, synproxy};
use crate::trees::{name, statement, table};

pub(crate) fn every_kind() -> BoxedStrategy<Object> {
    let rule = (statement::every_kind(), a_comment()).prop_map(|((family, statement), comment)| {
        let statements = statement::with_ports(vec![statement]);
        let family = crate::trees::family_for(family, &statements);
        let mut rule = Rule::new(table(family).chain(name("c"))).then_all(statements);
        rule.comment = comment;
        rule.into()
    });
    prop_oneof![
        1 => a_table().prop_map(Object::from),
        1 => chain().prop_map(Object::from),
        1 => rule,
        3 => set().prop_map(Object::from),
        2 => elements().prop_map(Object::from),
        2 => stateful_object().prop_map(Object::from),
        1 => flowtable().prop_map(Object::from),
    ]
    .boxed()
}

fn a_comment() -> BoxedStrategy<Option<Comment>> {
    prop::option::of("[ !#-~]{1,40}")
        .prop_map(|text| text.map(|text| Comment::new(&text).expect("short")))
        .boxed()
}

fn a_table() -> impl Strategy<Value = Table> {
    (0_u32..2, a_comment()).prop_map(|(flags, comment)| {
        let mut table = Table::new(table(Family::INET)).flags(TableFlags::from_bits_retain(flags));
        table.comment = comment;
        table
    })
}

fn policy() -> impl Strategy<Value = Option<Policy>> {
    prop::option::of(prop::sample::select(vec![Policy::Accept, Policy::Drop]))
}

fn chain() -> impl Strategy<Value = Chain> {
    let id = || table(Family::INET).chain(name("c"));
    let hooks = prop::sample::select(vec![
        Hook::Prerouting,
        Hook::Input,
        Hook::Forward,
        Hook::Output,
        Hook::Postrouting,
    ]);
    let kinds = prop::sample::select(vec![ChainType::Filter, ChainType::Nat, ChainType::Route]);
    let devices = prop::collection::btree_set("[a-z]{1,9}[0-9]", 1..4);
    prop_oneof![
        (policy(), a_comment()).prop_map(move |(policy, comment)| {
            let mut chain = Chain::new(id());
            (chain.policy, chain.comment) = (policy, comment);
            chain
        }),
        (kinds, hooks, any::<i32>(), policy(), a_comment()).prop_map(
            move |(kind, hook, priority, policy, comment)| {
                let mut chain = Chain::base(id(), kind, hook, Priority(priority));
                if let Some(base) = &mut chain.base {
                    base.policy = policy;
                }
                chain.comment = comment;
                chain
            }
        ),
        (devices, any::<bool>(), any::<i32>()).prop_map(|(devices, offload, priority)| {
            let id = table(Family::NETDEV).chain(name("c"));
            let chain = Chain::base(id, ChainType::Filter, Hook::Ingress, Priority(priority))
                .devices(devices.iter().map(|device| interface(device)));
            if offload { chain.offload() } else { chain }
        }),
    ]
}

/// The sets that rules refer to, in the table of each family.
pub(crate) fn sets() -> Vec<Set> {
    use DataType as T;
    let of = |family| {
        let table = table(family);
        let map = |text| table.map(name(text));
        let key = || SetType::from(T::INET_SERVICE);
        let pair = || SetType::from([T::IPV4_ADDR, T::INET_SERVICE]);
        let interval = |text, key: SetType, data: SetType| Set::interval_map(map(text), key, data);
        let dynamic = |set: Set| set.flags(SetFlags::DYNAMIC | SetFlags::TIMEOUT);
        vec![
            Set::map(map("marks"), key(), T::MARK),
            Set::map(map("addresses"), key(), T::IPV4_ADDR),
            Set::verdict_map(map("verdicts"), key()),
            Set::object_map(map("objects"), key(), ObjectKind::COUNTER),
            Set::map(map("endpoints"), pair(), pair()),
            interval("ranges", T::IPV4_ADDR.into(), T::IPV4_ADDR.into()),
            interval("endpoint_ranges", pair(), pair()),
            dynamic(Set::new(table.set(name("seen")), T::IPV4_ADDR)),
            dynamic(Set::map(map("seen_marks"), T::IPV4_ADDR, T::MARK)),
            Set::new(table.set(name("members")), [T::IPV4_ADDR, T::INET_SERVICE]),
            Set::new(table.set(name("intervals")), T::IPV4_ADDR).flags(SetFlags::INTERVAL),
            Set::new(table.set(name("counted")), T::MARK).statement(Counter::default()),
        ]
    };
    [Family::INET, Family::IP, Family::NETDEV].into_iter().flat_map(of).collect()
}

fn types() -> BoxedStrategy<SetType> {
    let named = prop::sample::select(vec![
        DataType::IPV4_ADDR,
        DataType::IPV6_ADDR,
        DataType::ETHER_ADDR,
        DataType::INET_PROTO,
        DataType::INET_SERVICE,
        DataType::MARK,
        DataType::IFNAME,
        DataType::CT_STATE,
    ]);
    let of = prop::sample::select(vec![
        Expression::from(Payload::IP_SADDR),
        Payload::TCP_DPORT.into(),
        Payload::IP_DSCP.into(),
        Payload::VLAN_ID.into(),
        Expression::Meta(MetaKey::IIFNAME),
        Expression::Meta(MetaKey::LEN),
    ]);
    prop_oneof![
        prop::collection::vec(named, 1..4).prop_map(SetType::Types),
        prop::collection::vec(of, 1..3).prop_map(|mut parts| match parts.len() {
            1 => SetType::Typeof(parts.remove(0)),
            _ => SetType::Typeof(Expression::concat(parts)),
        }),
    ]
    .boxed()
}

fn time() -> impl Strategy<Value = Duration> {
    (1_u64..1 << 40).prop_map(Duration::from_millis)
}

pub(crate) fn set() -> impl Strategy<Value = Set> {
    let data = prop_oneof![
        Just(None),
        types().prop_map(|of| Some(SetData::Value(of))),
        Just(Some(SetData::Verdict)),
        prop::sample::select(vec![ObjectKind::COUNTER, ObjectKind::QUOTA, ObjectKind::LIMIT])
            .prop_map(|kind| Some(SetData::Object(kind))),
        prop::sample::select(vec![DataType::IPV4_ADDR, DataType::INET_SERVICE])
            .prop_map(|of| Some(SetData::Interval(of.into()))),
    ];
    let numbers = (prop::option::of(time()), prop::option::of(time()), prop::option::of(1_u32..));
    let flags = prop::sample::select(vec![
        SetFlags::empty(),
        SetFlags::INTERVAL,
        SetFlags::CONSTANT,
        SetFlags::DYNAMIC,
        SetFlags::INTERVAL | SetFlags::TIMEOUT,
    ]);
    let rest = (any::<bool>(), any::<bool>(), prop::collection::vec(stateful(), 0..2), a_comment());
    (types(), data, numbers, flags, rest).prop_map(
        |(key, data, (timeout, gc_interval, size), flags, (memory, auto_merge, statements, comment))| {
            let id = SetId { table: table(Family::INET), name: name("s"), map: data.is_some() };
            // `typeof` is about both or neither.
            let (key, data) = match (key, data) {
                (SetType::Typeof(key), Some(SetData::Value(SetType::Types(_)))) => {
                    (SetType::Typeof(key), Some(SetData::Value(SetType::Queue)))
                }
                (SetType::Typeof(_), Some(SetData::Interval(of))) => {
                    (DataType::IPV4_ADDR.into(), Some(SetData::Interval(of)))
                }
                (SetType::Types(_), Some(SetData::Value(SetType::Typeof(of)))) => {
                    (Expression::from(Payload::IP_SADDR).into(), Some(SetData::Value(SetType::Typeof(of))))
                }
                other => other,
            };
            let mut set = Set::new(id, key);
            set.flags = if timeout.is_some() { flags | SetFlags::TIMEOUT } else { flags };
            (set.timeout, set.gc_interval, set.size) = (timeout, gc_interval, size);
            set.policy = memory.then_some(SetPolicy::Memory);
            set.auto_merge = auto_merge && data.is_none();
            set.statements = if data.is_none() { statements } else { Vec::new() };
            (set.comment, set.data) = (comment, data);
            set
        },
    )
}

fn address_and_port() -> impl Strategy<Value = (Ipv4Addr, Port)> {
    (any::<Ipv4Addr>(), any::<u16>()).prop_map(|(address, port)| (address, Port(port)))
}

/// Elements of the sets that are known.
pub(crate) fn elements() -> BoxedStrategy<Elements> {
    let of = |text: &str, map| SetId { table: table(Family::INET), name: name(text), map };
    let list = |id: SetId, element: BoxedStrategy<Element>| {
        prop::collection::vec(element, 1..5).prop_map(move |list| Elements { set: id.clone(), list }).boxed()
    };
    let port = || any::<u16>().prop_map(|port| Element::new(Port(port)));
    let member =
        (address_and_port(), prop::option::of(time()), a_comment()).prop_map(|(key, timeout, comment)| {
            let element = Element::new(key);
            let element = timeout.into_iter().fold(element, Element::timeout);
            comment.into_iter().fold(element, Element::comment)
        });
    let interval = prop_oneof![
        (any::<u32>(), 1_u32..100_000).prop_filter_map("no overflow", |(low, count)| {
            Some(Element::range(Ipv4Addr::from(low), Ipv4Addr::from(low.checked_add(count)?)))
        }),
        any::<Ipv4Addr>().prop_map(Element::new),
        Just(Element::catch_all()),
    ];
    let range =
        (any::<Ipv4Addr>(), any::<u32>(), 1_u32..1000).prop_filter_map("no overflow", |(key, low, count)| {
            let high = Ipv4Addr::from(low.checked_add(count)?);
            Some(Element::new(key).value_range(Ipv4Addr::from(low), high))
        });
    let counted = (any::<u32>(), any::<(u64, u64)>())
        .prop_map(|(mark, (packets, bytes))| Element::new(Mark(mark)).statement(Counter { packets, bytes }));
    prop_oneof![
        list(of("members", false), member.boxed()),
        list(of("intervals", false), interval.boxed()),
        list(of("counted", false), counted.boxed()),
        list(of("marks", true), (port(), any::<u32>()).prop_map(|(of, mark)| of.value(Mark(mark))).boxed()),
        list(
            of("verdicts", true),
            (port(), statement::verdict()).prop_map(|(of, to): (Element, Verdict)| of.verdict(to)).boxed()
        ),
        list(of("objects", true), port().prop_map(|of| of.object(name("o"))).boxed()),
        list(of("ranges", true), range.boxed()),
        list(
            of("endpoints", true),
            (address_and_port(), address_and_port())
                .prop_map(|(key, to)| Element::new(key).value(to))
                .boxed()
        ),
    ]
    .boxed()
}

fn a_family() -> impl Strategy<Value = Option<Family>> {
    prop::option::of(prop::sample::select(vec![Family::IP, Family::IP6]))
}

fn tunnel() -> impl Strategy<Value = Tunnel> {
    let ends = prop_oneof![
        any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(a, b)| Tunnel::v4(7, a, b)),
        any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(a, b)| Tunnel::v6(7, a, b)),
    ];
    let geneve = (any::<u16>(), any::<u8>(), prop::collection::vec(any::<u8>(), 1..5)).prop_map(
        // The data is in words of four bytes.
        |(class, kind, data)| GeneveOption { class, kind, data: data.iter().flat_map(|b| [*b; 4]).collect() },
    );
    let options = prop_oneof![
        any::<u32>().prop_map(|gbp| TunnelOptions::Vxlan { gbp }),
        any::<u32>().prop_map(|index| TunnelOptions::Erspan1 { index }),
        (0_u8..64, any::<bool>()).prop_map(|(hardware, egress)| TunnelOptions::Erspan2 { hardware, egress }),
        prop::collection::vec(geneve, 1..3).prop_map(TunnelOptions::Geneve),
    ];
    (ends, (any::<u16>(), any::<u16>(), any::<u8>(), any::<u8>()), prop::option::of(options)).prop_map(
        |(mut tunnel, (sport, dport, tos, ttl), options)| {
            tunnel.options = options;
            tunnel.sport(sport).dport(dport).tos(tos).ttl(ttl)
        },
    )
}

pub(crate) fn config() -> BoxedStrategy<ObjectConfig> {
    let helper = (protocol(), a_family()).prop_map(|(protocol, family)| ObjectConfig::CtHelper {
        helper: name("ftp"),
        protocol,
        family,
    });
    let times = prop::collection::vec(prop::option::of(1_u64..1_000_000), 11);
    let policy = (protocol(), a_family(), times).prop_map(|(protocol, family, times)| {
        let states = timeout_states(protocol).iter().zip(times);
        let policy = states.filter_map(|(state, time)| Some((*state, Duration::from_secs(time?)))).collect();
        ObjectConfig::CtTimeout { protocol, family, policy }
    });
    let expectation = (protocol(), any::<u16>(), any::<u32>(), any::<u8>(), a_family()).prop_map(
        |(protocol, port, timeout, size, family)| ObjectConfig::CtExpectation {
            protocol,
            port,
            timeout: Duration::from_millis(timeout.into()),
            size,
            family,
        },
    );
    prop_oneof![
        1 => any::<(u64, u64)>().prop_map(|(packets, bytes)| Counter { packets, bytes }.into()),
        1 => quota().prop_map(ObjectConfig::from),
        1 => limit().prop_map(ObjectConfig::from),
        1 => synproxy().prop_map(ObjectConfig::from),
        1 => helper,
        1 => policy,
        1 => expectation,
        1 => "[a-z_:0-9]{1,100}".prop_map(|text| SecurityContext::new(&text).expect("plain").into()),
        1 => any::<(u32, bool)>().prop_map(|(count, over)| Connlimit { count, over }.into()),
        2 => tunnel().prop_map(ObjectConfig::from),
    ]
    .boxed()
}

pub(crate) fn stateful_object() -> impl Strategy<Value = StatefulObject> {
    (config(), a_comment()).prop_map(|(config, comment)| {
        let id = table(Family::INET).object(config.kind(), name("o"));
        let mut object = StatefulObject::new(id, config);
        object.comment = comment;
        object
    })
}

fn flowtable() -> impl Strategy<Value = Flowtable> {
    let devices = prop::collection::btree_set("[a-z]{1,10}[0-9]", 0..4);
    (any::<i32>(), devices, 0_u32..4).prop_map(|(priority, devices, flags)| {
        Flowtable::new(table(Family::INET).flowtable(name("f")), Priority(priority))
            .devices(devices.iter().map(|device| interface(device)))
            .flags(FlowtableFlags::from_bits_retain(flags))
    })
}
