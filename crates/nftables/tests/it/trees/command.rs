//! Operations and queries.

use proptest::prelude::*;
use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::*;

use crate::trees::{name, object, statement, table};

pub(crate) fn operation() -> BoxedStrategy<Operation> {
    let rule = || {
        (statement::every_kind(), 1_u64..1000).prop_map(|((family, statement), handle)| {
            let statements = statement::with_ports(vec![statement]);
            let family = crate::trees::family_for(family, &statements);
            (Rule::new(table(family).chain(name("c"))).then_all(statements), handle)
        })
    };
    let rename = family().prop_map(|family| {
        let chain = table(family).chain(name("c"));
        Operation::Rename(Rename::new(chain, name("d")))
    });
    prop_oneof![
        4 => object::every_kind().prop_map(Operation::Add),
        2 => object::every_kind()
            .prop_filter("rules are only added", |object| !matches!(object, Object::Rule(_)))
            .prop_map(Operation::Create),
        1 => (rule(), any::<bool>()).prop_map(|((rule, handle), placed)| {
            Operation::Insert(if placed { rule.position(handle) } else { rule })
        }),
        1 => rule().prop_map(|(rule, handle)| Operation::Replace(rule.handle(handle))),
        1 => (rule(), 0_u32..9).prop_map(|((rule, _), index)| Operation::Add(rule.index(index).into())),
        1 => rename,
        2 => target().prop_map(Operation::Delete),
        1 => target().prop_map(Operation::Destroy),
        1 => flush().prop_map(Operation::Flush),
    ]
    .boxed()
}

fn kind() -> impl Strategy<Value = ObjectKind> {
    prop::sample::select(vec![
        ObjectKind::COUNTER,
        ObjectKind::QUOTA,
        ObjectKind::LIMIT,
        ObjectKind::SYNPROXY,
        ObjectKind::CT_HELPER,
        ObjectKind::CT_TIMEOUT,
        ObjectKind::CT_EXPECT,
        ObjectKind::SECMARK,
        ObjectKind::TUNNEL,
    ])
}

fn family() -> impl Strategy<Value = Family> {
    prop::sample::select(vec![
        Family::IP,
        Family::IP6,
        Family::INET,
        Family::ARP,
        Family::BRIDGE,
        Family::NETDEV,
    ])
}

fn any_family() -> impl Strategy<Value = Family> {
    prop_oneof![Just(Family::UNSPEC), family()]
}

fn a_table() -> impl Strategy<Value = TableId> {
    family().prop_map(table)
}

pub(crate) fn target() -> BoxedStrategy<Target> {
    let devices = prop::collection::btree_set("[a-z]{1,9}[0-9]", 1..3)
        .prop_map(|names| names.iter().map(|name| statement::interface(name)).collect::<Vec<_>>());
    let elements = object::elements().prop_map(|elements| {
        // Only keys say which are deleted.
        let keys = elements.list.iter().map(|element| match element.end() {
            Some(end) => Element::range(element.key(), end),
            None => Element::new(element.key()),
        });
        Target::Elements(Elements::new(&elements.set, keys.collect::<Vec<_>>()))
    });
    prop_oneof![
        1 => a_table().prop_map(Target::from),
        1 => a_table().prop_map(|table| table.chain(name("c")).into()),
        1 => (a_table(), 1_u64..1000)
            .prop_map(|(table, handle)| RuleId { chain: table.chain(name("c")), handle }.into()),
        1 => a_table().prop_map(|table| table.set(name("s")).into()),
        1 => a_table().prop_map(|table| table.map(name("m")).into()),
        1 => elements,
        1 => (a_table(), kind()).prop_map(|(table, kind)| Target::Stateful(table.object(kind, name("o")))),
        1 => a_table().prop_map(|table| table.flowtable(name("f")).into()),
        2 => handle_id().prop_map(Target::Handle),
        1 => (devices, any::<bool>()).prop_map(|(devices, chain)| match chain {
            true => table(Family::NETDEV).chain(name("c")).devices(devices).into(),
            false => table(Family::INET).flowtable(name("f")).devices(devices).into(),
        }),
    ]
    .boxed()
}

pub(crate) fn handle_id() -> impl Strategy<Value = HandleId> {
    let handle = || 1_u64..100_000;
    prop_oneof![
        (family(), handle()).prop_map(|(family, handle)| HandleId::Table(family, handle)),
        (a_table(), handle()).prop_map(|(table, handle)| HandleId::Chain(table, handle)),
        (a_table(), handle()).prop_map(|(table, handle)| HandleId::Set(table, handle)),
        (a_table(), kind(), handle())
            .prop_map(|(table, kind, handle)| HandleId::Stateful(table, kind, handle)),
        (a_table(), handle()).prop_map(|(table, handle)| HandleId::Flowtable(table, handle)),
    ]
}

pub(crate) fn flush() -> impl Strategy<Value = Flush> {
    prop_oneof![
        any_family().prop_map(Flush::Ruleset),
        a_table().prop_map(Flush::from),
        a_table().prop_map(|table| table.chain(name("c")).into()),
        a_table().prop_map(|table| table.set(name("s")).into()),
        a_table().prop_map(|table| table.map(name("m")).into()),
    ]
}

pub(crate) fn within() -> impl Strategy<Value = Within> {
    prop_oneof![any_family().prop_map(Within::Family), a_table().prop_map(Within::Table)]
}

pub(crate) fn subject() -> BoxedStrategy<Subject> {
    let device = prop::option::of("[a-z]{1,9}[0-9]".prop_map(|name| statement::interface(&name)));
    prop_oneof![
        any_family().prop_map(Subject::Ruleset),
        any_family().prop_map(Subject::Tables),
        a_table().prop_map(Subject::Table),
        any_family().prop_map(Subject::Chains),
        a_table().prop_map(|table| Subject::Chain(table.chain(name("c")))),
        within().prop_map(Subject::Sets),
        within().prop_map(Subject::Maps),
        a_table().prop_map(|table| Subject::Set(table.set(name("s")))),
        a_table().prop_map(|table| Subject::Set(table.map(name("m")))),
        within().prop_map(Subject::Meters),
        a_table().prop_map(|table| Subject::Meter(table.set(name("m")))),
        within().prop_map(Subject::Flowtables),
        a_table().prop_map(|table| Subject::Flowtable(table.flowtable(name("f")))),
        (kind(), within())
            // nft lists these of one table only.
            .prop_filter("a table", |(kind, within)| match *kind {
                ObjectKind::CT_TIMEOUT | ObjectKind::CT_EXPECT => matches!(within, Within::Table(_)),
                _ => true,
            })
            .prop_map(|(kind, within)| Subject::Objects(kind, within)),
        (a_table(), kind()).prop_map(|(table, kind)| Subject::Object(table.object(kind, name("o")))),
        (any_family(), device).prop_map(|(family, device)| Subject::Hooks { family, device }),
        within().prop_map(Subject::Rules),
        a_table().prop_map(|table| Subject::RulesOf(table.chain(name("c")))),
        (a_table(), 1_u64..1000)
            .prop_map(|(table, handle)| Subject::Rule(RuleId { chain: table.chain(name("c")), handle })),
        object::elements().prop_map(Subject::Elements),
    ]
    .boxed()
}

/// What can be reset: of objects, those that count.
fn resettable(subject: &Subject) -> bool {
    let counts = |kind: ObjectKind| matches!(kind, ObjectKind::COUNTER | ObjectKind::QUOTA);
    match subject {
        Subject::Rules(_) | Subject::RulesOf(_) | Subject::Rule(_) | Subject::Elements(_) => true,
        Subject::Object(of) => counts(of.kind),
        Subject::Objects(kind, _) => counts(*kind),
        _ => false,
    }
}

pub(crate) fn every_kind() -> BoxedStrategy<Command> {
    let events = prop::sample::select(vec![None, Some(MonitorEvent::New), Some(MonitorEvent::Destroy)]);
    let objects = prop::sample::select(vec![
        None,
        Some(MonitorObject::Tables),
        Some(MonitorObject::Chains),
        Some(MonitorObject::Rules),
        Some(MonitorObject::Sets),
        Some(MonitorObject::Elements),
        Some(MonitorObject::Ruleset),
        Some(MonitorObject::Trace),
    ]);
    let monitor = (events, objects, any::<bool>()).prop_map(|(event, object, json)| {
        let mut filter = MonitorFilter::default();
        (filter.event, filter.object, filter.json) = (event, object, json);
        Command::Monitor(filter)
    });
    let described = prop_oneof![
        statement::expression_of_type().prop_map(Description::Expression),
        prop::sample::select(DataType::ALL)
            // nft takes such a name for what a packet has.
            .prop_filter("no field", |of| of.name().parse::<lang::Expression>().is_err())
            .prop_map(Description::Type),
    ];
    let listed = subject().prop_filter("only of an object", |subject| {
        !matches!(subject, Subject::Elements(_) | Subject::Rules(_) | Subject::RulesOf(_) | Subject::Rule(_))
    });
    prop_oneof![
        3 => listed.prop_map(Command::List),
        2 => subject().prop_filter("something with state", resettable).prop_map(Command::Reset),
        1 => object::elements().prop_map(Command::Get),
        1 => monitor,
        1 => described.prop_map(Command::Describe),
    ]
    .boxed()
}
