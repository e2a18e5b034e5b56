//! There and back without a kernel: what is encoded, read by the decoders of dumps, and raised to the typed
//! language again.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use proptest::prelude::*;
use sluicegate_netlink::attr::{self, Attributes};
use sluicegate_netlink::message::{Message, Messages};
use sluicegate_nftables::expr::kind::Lookup;
use sluicegate_nftables::expr::{Data, Expr, ObjectKind, VerdictCode};
use sluicegate_nftables::lang::{Counter, Elem, Expression, Match, Quota, Statement, Verdict};
use sluicegate_nftables::*;

#[allow(dead_code, unreachable_pub, reason = "shared with the tests that need a kernel")]
use crate::kernel::cases;

/// What a dump would say after this transaction, but for what the kernel adds.
fn listed(tx: &Transaction) -> read::Ruleset {
    let batch = tx.encode(ApplyOptions::default()).unwrap();
    let mut all = read::Ruleset::default();
    let mut numbers = Vec::new();
    for message in Messages::new(batch.bytes().unwrap()) {
        let message = message.unwrap();
        let [subsystem, command] = message.header.kind.to_be_bytes();
        if subsystem != 10 {
            continue;
        }
        let payload = as_held(command, message.payload);
        let message = Message { payload: &payload, ..message };
        let (header, attributes) = message.netfilter().unwrap();
        let family = Family(header.family);
        match command {
            0 => all.tables.push(read::Table::decode(family, attributes).unwrap()),
            3 => all.chains.push(read::Chain::decode(family, attributes).unwrap()),
            6 => {
                let mut rule = read::Rule::decode(family, attributes).unwrap();
                rule.expressions.iter_mut().for_each(name_chain);
                all.rules.push(rule);
            }
            9 => {
                numbers.push(attributes.clone().find(NFTA_SET_ID).unwrap().unwrap().be32().unwrap());
                all.sets.push((read::Set::decode(family, attributes).unwrap(), Vec::new()));
            }
            12 => {
                let name = attributes.clone().find(2).unwrap().unwrap().str().unwrap().to_owned();
                let number = attributes.clone().find(NFTA_SET_ELEM_LIST_SET_ID).unwrap();
                let number = number.map(|number| number.be32().unwrap());
                let mut sets = all.sets.iter_mut().zip(&numbers).rev();
                let wanted = |(set, n): &(&mut (read::Set, _), &u32)| {
                    *set.0.name == *name && number.is_none_or(|number| **n == number)
                };
                let (set, _) = sets.find(wanted).unwrap();
                set.1.extend(read::Element::decode_list(attributes).unwrap());
            }
            18 => all.objects.push(read::Object::decode(family, attributes).unwrap()),
            22 => all.flowtables.push(read::Flowtable::decode(family, attributes).unwrap()),
            other => panic!("command {other}"),
        }
    }
    for ((set, _), number) in all.sets.iter_mut().zip(numbers) {
        set.name = numbered(&set.name, number);
    }
    for rule in &mut all.rules {
        for expr in &mut rule.expressions {
            match expr {
                Expr::Lookup(Lookup { set, set_id: Some(number), .. }) => *set = numbered(set, *number),
                Expr::Objref(objref) => {
                    objref.set = objref.set.take().map(|set| numbered(&set, objref.set_id.unwrap_or(0)));
                }
                _ => {}
            }
        }
    }
    all
}

/// The payload of a message, with the name that the kernel gives a chain of a rule, where there is only its
/// number in the batch.
fn as_held(command: u8, payload: &[u8]) -> Vec<u8> {
    let mut payload = payload.to_vec();
    let (name, number) = match command {
        3 => (3, 11),
        6 => (2, 11),
        _ => return payload,
    };
    let attributes = || Attributes::new(&payload[4..]);
    let number = attributes().find(number).unwrap().map(|number| number.be32().unwrap());
    if let (None, Some(number)) = (attributes().find(name).unwrap(), number) {
        payload.extend_from_slice(&attr::encode(|w| w.put_str(name, &format!("__chain{number}"))).unwrap());
    }
    payload
}

fn name_chain(expression: &mut Expr) {
    if let Expr::Immediate(immediate) = expression
        && let Data::ChainId(code, number) = immediate.data
    {
        let name = cases::name(&format!("__chain{number}"));
        let jump = if code == VerdictCode::GOTO { Verdict::Goto(name) } else { Verdict::Jump(name) };
        immediate.data = Data::Verdict(jump);
    }
}

/// As the kernel names a set that has only a number.
fn numbered(name: &Name, number: u32) -> Name {
    match name.strip_suffix("%d") {
        Some(stem) => Name::new(&format!("{stem}{number}")).unwrap(),
        None => name.clone(),
    }
}

/// Attributes of `linux/netfilter/nf_tables.h`.
const NFTA_SET_ID: u16 = 10;
const NFTA_SET_ELEM_LIST_SET_ID: u16 = 4;

fn content(tx: &Transaction) -> TableContent {
    listed(tx).content().remove(0)
}

/// The sets that rules of a case can refer to, with one rule.
fn with_one_rule(case: &cases::Case, rule: Rule) -> Transaction {
    let mut tx = Transaction::new();
    tx.add(Table::new(rule.chain.table.clone())).add(Chain::new(rule.chain.clone()));
    for operation in case.transaction.operations() {
        if let Operation::Add(Object::Set(set)) = operation {
            tx.add(Set::clone(set));
        }
    }
    tx.add(rule);
    tx
}

/// A rule that was read back may be worded otherwise, but it has to mean the same: the same expressions, the
/// same anonymous sets. What nft takes out when it lists, because something else implies it, need not come
/// back.
#[test]
fn a_rule_that_is_read_back_means_what_it_meant() {
    let (mut tried, mut failed, mut reworded) = (0, Vec::new(), Vec::new());
    for case in cases::all().into_iter().chain(cases::newer()) {
        for operation in case.transaction.operations() {
            let Operation::Add(Object::Rule(rule)) = operation else { continue };
            tried += 1;
            let first = with_one_rule(&case, rule.clone());
            let again = read_back(&first, rule);
            let second = with_one_rule(&case, again.clone());
            if in_order(listed(&first)) == in_order(listed(&second)) {
                continue;
            }
            if REWORDED.contains(&(&*rule.body().to_string(), &*again.body().to_string())) {
                // Now nothing more is left to be taken out.
                assert_eq!(read_back(&second, rule), again);
                reworded.push(rule.body().to_string());
            } else {
                failed.push(format!("{}: {rule}\n    is read as {again}", case.name));
            }
        }
    }
    assert!(tried > 300, "only {tried} rules");
    assert!(failed.is_empty(), "{} of {tried}:\n{}", failed.len(), failed.join("\n"));
    assert!(REWORDED.iter().all(|(rule, _)| reworded.iter().any(|r| r == rule)), "{reworded:#?}");
}

fn read_back(tx: &Transaction, rule: &Rule) -> Rule {
    let chains = content(tx).chains;
    let mut read = chains.into_iter().find(|(chain, _)| chain.id == rule.chain).unwrap().1.remove(0);
    read.handle = None;
    read
}

/// Rules of which nft 1.0.6 lists less than it loaded, or in another order.
const REWORDED: &[(&str, &str)] = &[
    ("tcp dport 3 meta mark 0x00000002 tcp sport 1", "meta mark 0x00000002 tcp sport 1 tcp dport 3"),
    ("ip protocol tcp ip saddr 1.2.3.4 tcp dport 80", "ip saddr 1.2.3.4 tcp dport 80"),
    ("@nh,0,16 0x4500", "ip version 4 ip hdrlength 5 ip dscp cs0 ip ecn not-ect"),
    ("@nh,64,24 0x400605", "ip ttl 64 ip protocol tcp ip checksum 1280/8"),
    ("@nh,96,64 0x1020304", "ip saddr 0.0.0.0 ip daddr 1.2.3.4"),
    ("meta l4proto tcp @th,64,48 0x3", "tcp ackseq 0 tcp doff 0 tcp reserved 0 tcp flags == 0x3"),
    ("meta l4proto tcp @th,112,24 0x3", "tcp window 0 tcp checksum 768/8"),
    ("meta l4proto tcp @th,0,40 0x3", "tcp sport 0 tcp dport 0 tcp sequence 50331648/8"),
];

#[test]
fn objects_that_nft_1_0_6_cannot_list_are_read_back() {
    use cases::objects::{connlimits, geneve, secmarks, timeouts, tunnels};
    for case in [tunnels(), geneve(), connlimits(), secmarks(), timeouts(true)] {
        let meant = case.transaction.operations().iter().filter_map(|operation| match operation {
            Operation::Add(Object::Stateful(object)) => Some(StatefulObject::clone(object)),
            _ => None,
        });
        assert_eq!(content(&case.transaction).objects, meant.collect::<Vec<_>>(), "{}", case.name);
    }
}

#[test]
fn elements_that_never_go_are_read_back() {
    let case = cases::objects::never();
    let meant = case.transaction.operations().iter().filter_map(|operation| match operation {
        Operation::Add(Object::Elements(elements)) => Some(elements.list.clone()),
        _ => None,
    });
    let read = content(&case.transaction).sets.into_iter().flat_map(|(_, elements)| elements);
    assert_eq!(read.collect::<Vec<_>>(), meant.flatten().collect::<Vec<_>>());
}

#[test]
fn types_that_nft_1_0_6_cannot_say_are_read_back() {
    let case = cases::objects::types(true);
    let read = content(&case.transaction);
    let mut tx = Transaction::new();
    tx.add(read.table.clone());
    for (set, elements) in &read.sets {
        tx.add(set.clone());
        if !elements.is_empty() {
            tx.add(Elements::new(&set.id, elements.clone()));
        }
    }
    for (chain, rules) in read.chains {
        tx.add(chain);
        rules.into_iter().for_each(|mut rule| {
            rule.handle = None;
            tx.add(rule);
        });
    }
    assert_eq!(content(&tx), content(&case.transaction));
    let text = tx.to_string();
    assert!(text.contains("map ip t queues { typeof ip saddr . tcp dport : queue ; }"), "{text}");
    assert!(text.contains("{ 10.0.0.1 . 80 : 1, 10.0.0.1 . 81 : 258 }"), "{text}");
    assert!(text.contains("queue flags bypass to ip saddr . tcp dport map @queues"), "{text}");
    assert!(text.contains("map ip t routed { typeof fib daddr check : verdict ; }"), "{text}");
    assert!(text.contains("fib daddr check vmap @routed"), "{text}");
}

/// What the documentation of `expr` says is in the typed language is made from it, and read back into it; the
/// rest is not.
#[test]
fn every_kind_of_expression_is_reached_from_the_language_and_back() {
    let mut reached = BTreeSet::new();
    for case in cases::all().into_iter().chain(cases::newer()) {
        for operation in case.transaction.operations() {
            let Operation::Add(Object::Rule(rule)) = operation else { continue };
            let all = listed(&with_one_rule(&case, rule.clone()));
            let raised = all.content().remove(0).chains;
            let raw = |rule: &Rule| rule.statements.iter().any(|s| matches!(s, Statement::Raw(_)));
            if !raised.iter().any(|(_, rules)| rules.iter().any(raw)) {
                reached
                    .extend(all.rules.iter().flat_map(|rule| &rule.expressions).map(|e| e.name().to_owned()));
            }
        }
    }
    let documentation = include_str!("../../src/expr/mod.rs");
    let mut wrong = Vec::new();
    for name in Expr::NAMES {
        let row = documentation.lines().find(|line| line.starts_with(&format!("//! | `{name}` |")));
        let low_level = row.expect("a row in the table").contains("low level only");
        if reached.contains(*name) == low_level {
            wrong.push(*name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The elements of a set have no order, and what a set without a name notes for nft may name another field of
/// the same bytes.
fn in_order(mut all: read::Ruleset) -> read::Ruleset {
    for (set, elements) in &mut all.sets {
        if set.flags.contains(SetFlags::ANONYMOUS) {
            set.user_data.clear();
        }
        elements.sort_by_key(|element| (element.key.clone(), element.flags.bits()));
    }
    all
}

fn table() -> TableId {
    TableId::new(Family::INET, cases::name("t"))
}

fn a_name() -> impl Strategy<Value = Name> {
    "[a-z_][a-zA-Z0-9_./-]{0,40}_x".prop_map(|name| Name::new(&name).unwrap())
}

fn a_comment() -> impl Strategy<Value = Comment> {
    "[ !#-~]{1,100}".prop_map(|text| Comment::new(&text).unwrap())
}

fn a_protocol() -> impl Strategy<Value = Protocol> {
    prop::sample::select(vec![Protocol::TCP, Protocol::UDP])
}

fn a_family() -> impl Strategy<Value = Option<Family>> {
    prop::option::of(prop::sample::select(vec![Family::IP, Family::IP6]))
}

/// Times that the kernel does not have anyway.
fn a_policy() -> impl Strategy<Value = ObjectConfig> {
    let times = prop::collection::vec(prop::option::of(500_000_u64..1_000_000), 11);
    let tracked = [6, 17, 136, 47, 1, 58, 33, 132].map(Protocol).to_vec();
    (prop::sample::select(tracked), a_family(), times).prop_map(|(protocol, family, times)| {
        let states = timeout_states(protocol).iter().zip(times);
        let policy = states.filter_map(|(state, time)| Some((*state, Duration::from_secs(time?)))).collect();
        ObjectConfig::CtTimeout { protocol, family, policy }
    })
}

fn a_config() -> impl Strategy<Value = ObjectConfig> {
    use lang::TimeUnit::{Day, Hour, Minute, Second, Week};
    let per = prop::sample::select(vec![Second, Minute, Hour, Day, Week]);
    let limit = (1_u64..1 << 40, per, 6_u32.., any::<bool>(), any::<bool>()).prop_map(
        |(rate, per, burst, bytes, over)| lang::Limit { rate, per, burst: Some(burst), bytes, over }.into(),
    );
    let synproxy = (any::<Option<u16>>(), any::<Option<u8>>(), any::<bool>(), any::<bool>()).prop_map(
        |(mss, wscale, timestamp, sack_perm)| lang::Synproxy { mss, wscale, timestamp, sack_perm }.into(),
    );
    let helper = (a_name(), a_protocol(), a_family())
        .prop_map(|(helper, protocol, family)| ObjectConfig::CtHelper { helper, protocol, family });
    let expectation = (a_protocol(), any::<u16>(), any::<u32>(), any::<u8>(), a_family()).prop_map(
        |(protocol, port, timeout, size, family)| ObjectConfig::CtExpectation {
            protocol,
            port,
            timeout: Duration::from_millis(timeout.into()),
            size,
            family,
        },
    );
    let connlimit = any::<(u32, bool)>().prop_map(|(count, over)| lang::Connlimit { count, over }.into());
    let secmark = "[ !#-~]{1,255}".prop_map(|text| SecurityContext::new(&text).unwrap().into());
    prop_oneof![limit, synproxy, helper, a_policy(), expectation, connlimit, secmark]
}

/// nft and kernel keep times of sets in milliseconds; nought is none.
fn a_time() -> impl Strategy<Value = Duration> {
    (1_u64..1 << 40).prop_map(Duration::from_millis)
}

fn a_type() -> impl Strategy<Value = DataType> {
    prop::sample::select(vec![
        DataType::IPV4_ADDR,
        DataType::IPV6_ADDR,
        DataType::INET_PROTO,
        DataType::INET_SERVICE,
        DataType::MARK,
        DataType::ETHER_ADDR,
    ])
}

fn push(mut key: Key, of: DataType, number: u128) -> Key {
    let low = u32::try_from(number & 0xffff_ffff).unwrap();
    let [.., a, b] = low.to_be_bytes();
    match of {
        DataType::IPV4_ADDR => key.push(Ipv4Addr::from(low)),
        DataType::IPV6_ADDR => key.push(Ipv6Addr::from(number)),
        DataType::INET_PROTO => key.push(Protocol(b)),
        DataType::INET_SERVICE => key.push(Port(u16::from_be_bytes([a, b]))),
        DataType::MARK => key.push(Mark(low)),
        _ => key.push(EtherAddr([2, 0, 0, 0, a, b])),
    }
    key
}

fn key(types: &[DataType], numbers: &[u128]) -> Key {
    types.iter().zip(numbers).fold(Key::new(), |key, (of, number)| push(key, *of, *number))
}

fn numbers() -> impl Strategy<Value = Vec<[u128; 4]>> {
    prop::collection::vec(any::<[u128; 4]>(), 0..20)
}

/// Elements in some order, each once.
fn sorted(mut elements: Vec<Element>) -> Vec<Element> {
    elements.sort_by_cached_key(|element| element.key().bytes().to_vec());
    elements.dedup_by(|a, b| a.key() == b.key());
    elements
}

proptest! {
    #[test]
    fn a_table_survives(flags in 0_u32..8, comment in prop::option::of(a_comment())) {
        let mut table = Table::new(table()).flags(TableFlags::from_bits_retain(flags));
        table.comment = comment;
        let mut tx = Transaction::new();
        tx.add(table.clone());
        prop_assert_eq!(content(&tx).table, table);
    }

    #[test]
    fn a_chain_survives(name in a_name(), base in any::<bool>(), priority in any::<i32>(),
        policy in prop::option::of(any::<bool>()), offload in any::<bool>(), hook in 0_usize..5,
        comment in prop::option::of(a_comment())) {
        let hooks = [Hook::Prerouting, Hook::Input, Hook::Forward, Hook::Output, Hook::Postrouting];
        let id = table().chain(name);
        let mut chain = Chain::new(id.clone());
        if base {
            chain = Chain::base(id, ChainType::Filter, hooks[hook], Priority(priority));
            if let Some(accept) = policy {
                chain = chain.policy(if accept { Policy::Accept } else { Policy::Drop });
            }
            chain = if offload { chain.offload() } else { chain };
        }
        chain.comment = comment;
        let mut tx = Transaction::new();
        tx.add(Table::new(table())).add(chain.clone());
        prop_assert_eq!(&content(&tx).chains[0].0, &chain);
    }

    #[test]
    fn a_set_with_its_elements_survives(types in prop::collection::vec(a_type(), 1..4), numbers in numbers(),
        comment in prop::option::of(a_comment()), timeout in prop::option::of(a_time()),
        size in prop::option::of(1_u32..), commented in any::<bool>()) {
        let id = table().set(cases::name("s"));
        let mut set = Set::new(id.clone(), SetType::Types(types.clone()));
        set.comment = comment;
        set.size = size;
        if commented {
            set = set.statement(Counter::default());
        }
        if let Some(timeout) = timeout {
            set = set.timeout(timeout);
        }
        let elements = numbers.iter().map(|numbers| {
            let element = Element::new(key(&types, numbers));
            match commented {
                true => element.comment(Comment::new("one").unwrap()).statement(Counter::default()),
                false => element,
            }
        });
        let elements = sorted(elements.collect());
        let mut tx = Transaction::new();
        tx.add(Table::new(table())).add(set.clone()).add(Elements::new(&id, elements.clone()));
        let (read_set, read_elements) = content(&tx).sets.remove(0);
        prop_assert_eq!(read_set, set);
        prop_assert_eq!(sorted(read_elements), elements);
    }

    #[test]
    fn a_map_with_its_elements_survives(types in prop::collection::vec(a_type(), 1..4),
        data in prop::collection::vec(a_type(), 1..3), verdicts in any::<bool>(), numbers in numbers()) {
        let id = table().map(cases::name("m"));
        let set = match verdicts {
            true => Set::verdict_map(id.clone(), SetType::Types(types.clone())),
            false => Set::map(id.clone(), SetType::Types(types.clone()), SetType::Types(data.clone())),
        };
        let elements = numbers.iter().map(|numbers| {
            let element = Element::new(key(&types, numbers));
            match (verdicts, numbers[3] % 3) {
                (false, _) => element.value(key(&data, &numbers[2..])),
                (true, 0) => element.verdict(Verdict::Drop),
                (true, 1) => element.verdict(Verdict::Goto(cases::name("there"))),
                (true, _) => element.verdict(Verdict::Jump(cases::name("there"))),
            }
        });
        let elements = sorted(elements.collect());
        let mut tx = Transaction::new();
        tx.add(Table::new(table())).add(set.clone()).add(Elements::new(&id, elements.clone()));
        let (read_set, read_elements) = content(&tx).sets.remove(0);
        prop_assert_eq!(read_set, set);
        prop_assert_eq!(sorted(read_elements), elements);
    }

    #[test]
    fn intervals_survive(of in prop::sample::select(vec![DataType::IPV4_ADDR, DataType::INET_SERVICE,
        DataType::MARK]), bounds in prop::collection::btree_set(any::<u16>(), 0..20)) {
        // Bounds in ascending order make intervals that do not touch: each begins at least two behind the end
        // of the one before.
        let bounds: BTreeSet<u128> = bounds.into_iter().map(|bound| u128::from(bound) & !1).collect();
        let bounds: Vec<u128> = bounds.into_iter().collect();
        let id = table().set(cases::name("s"));
        let set = Set::new(id.clone(), of).flags(SetFlags::INTERVAL);
        let key = |number| push(Key::new(), of, number);
        let elements: Vec<Element> =
            bounds.chunks_exact(2).map(|ends| Element::range(key(ends[0]), key(ends[1]))).collect();
        let mut tx = Transaction::new();
        tx.add(Table::new(table())).add(set).add(Elements::new(&id, elements.clone()));
        prop_assert_eq!(content(&tx).sets.remove(0).1, elements);
    }

    #[test]
    fn members_of_a_set_without_a_name_survive(ports in prop::collection::btree_set(any::<u16>(), 2..20),
        comments in prop::collection::vec(prop::option::of(a_comment()), 20),
        counts in prop::collection::vec(any::<Option<(u64, u64)>>(), 20)) {
        let counter = |(packets, bytes)| Statement::from(Counter { packets, bytes });
        let members: Vec<Expression> = ports
            .iter()
            .zip(comments.into_iter().zip(counts))
            .map(|(port, (comment, count))| {
                let statements = count.map(counter).into_iter().collect();
                Elem { value: Expression::Value(u64::from(*port).into()), statements, comment }.into()
            })
            .collect();
        let chain = table().chain(Name::new("c").unwrap());
        let rule = chain.rule().then(Match::new(lang::Payload::TCP_DPORT, Expression::Set(members.clone())));
        let mut tx = Transaction::new();
        tx.add(Table::new(table())).add(Chain::new(chain)).add(rule);
        let read = content(&tx).chains.remove(0).1.remove(0).statements;
        prop_assert_eq!(read.len(), 1);
        let Statement::Match(matched) = &read[0] else { panic!("{:?}", read) };
        let Expression::Set(mut read) = matched.right.clone() else { panic!("{:?}", read) };
        let value = |member: &Expression| match member {
            Expression::Elem(elem) => elem.value.to_string(),
            plain => plain.to_string(),
        };
        read.sort_by_key(|member| value(member).parse::<u16>().unwrap());
        prop_assert_eq!(read, members);
    }

    #[test]
    fn counters_and_quotas_survive(packets in any::<u64>(), bytes in any::<u64>(), over in any::<bool>(),
        comment in prop::option::of(a_comment())) {
        let counter = ObjectConfig::Counter(Counter { packets, bytes });
        let quota = ObjectConfig::Quota(Quota { bytes, over, used: packets });
        let objects = [(ObjectKind::COUNTER, counter), (ObjectKind::QUOTA, quota)].map(|(kind, config)| {
            let mut object = StatefulObject::new(table().object(kind, cases::name("o")), config);
            object.comment = comment.clone();
            object
        });
        let mut tx = Transaction::new();
        tx.add(Table::new(table()));
        for object in &objects {
            tx.add(object.clone());
        }
        prop_assert_eq!(content(&tx).objects, objects);
    }

    #[test]
    fn an_object_of_any_kind_survives(config in a_config(), name in a_name(),
        comment in prop::option::of(a_comment())) {
        let mut object = StatefulObject::new(table().object(config.kind(), name), config);
        object.comment = comment;
        let mut tx = Transaction::new();
        tx.add(Table::new(table())).add(object.clone());
        prop_assert_eq!(content(&tx).objects, [object]);
    }

    #[test]
    fn a_chain_of_a_rule_survives(goto in any::<bool>(), marks in prop::collection::vec(any::<u32>(), 0..5),
        comment in prop::option::of(a_comment())) {
        let rule = |mark: &u32| {
            let matching = Match::new(expr::MetaKey::MARK, Mark(*mark));
            let mut rule = lang::BoundRule::new().then(matching).then(Verdict::Drop);
            rule.comment.clone_from(&comment);
            rule
        };
        let rules = marks.iter().map(rule);
        let bound = if goto { lang::BoundChain::goto(rules) } else { lang::BoundChain::jump(rules) };
        let chain = table().chain(cases::name("c"));
        let mut tx = Transaction::new();
        tx.add(Table::new(table())).add(Chain::new(chain.clone()));
        let mut with_chain = chain.rule().then(bound.clone());
        with_chain.comment.clone_from(&comment);
        tx.add(with_chain);
        let chains = content(&tx).chains;
        prop_assert_eq!(&chains[0].1[0].statements[..], &[Statement::from(bound)]);
        prop_assert_eq!(chains.len(), 1);
    }

    #[test]
    fn a_flowtable_survives(name in a_name(), priority in any::<i32>(),
        devices in prop::collection::btree_set("[a-z]{1,10}[0-9]", 0..4), flags in 0_u32..4) {
        let mut flowtable = Flowtable::new(table().flowtable(name), Priority(priority));
        flowtable.devices = devices.iter().map(|device| InterfaceName::new(device).unwrap()).collect();
        flowtable.flags = FlowtableFlags::from_bits_retain(flags);
        let mut tx = Transaction::new();
        tx.add(Table::new(table())).add(flowtable.clone());
        prop_assert_eq!(content(&tx).flowtables, [flowtable]);
    }
}

#[test]
fn conntrack_objects_survive() {
    let (objects, mut tx) = (cases::objects::conntrack_objects(&table()), Transaction::new());
    tx.add(Table::new(table()));
    for object in &objects {
        tx.add(object.clone());
    }
    assert_eq!(content(&tx).objects, objects);
}
