//! Whatever can be wrong with an operation: what our error says of it, beside what nft says.

use std::net::{Ipv4Addr, Ipv6Addr};

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::lang::{
    Counter, Match, Nat, ObjectName, ObjectReference, Payload, Reject, SetUpdate, Statement, Verdict, Vmap,
};
use sluicegate_nftables::*;

use crate::kernel::cases::name;

fn t() -> TableId {
    TableId::new(Family::IP, name("t"))
}

fn chain(named: &str) -> ChainId {
    t().chain(name(named))
}

fn set(named: &str) -> SetId {
    t().set(name(named))
}

fn map(named: &str) -> SetId {
    t().map(name(named))
}

fn dev() -> TableId {
    TableId::new(Family::NETDEV, name("t"))
}

fn offloaded(device: &str, priority: i32) -> Chain {
    let device = InterfaceName::new(device).expect("a name");
    let chain = dev().chain(name("c"));
    Chain::base(chain, ChainType::Filter, Hook::Ingress, Priority(priority)).devices([device]).offload()
}

fn absent() -> TableId {
    TableId::new(Family::IP, name("absent"))
}

fn counter(table: &TableId, named: &str) -> StatefulObject {
    let config = ObjectConfig::Counter(Counter::default());
    StatefulObject::new(table.object(ObjectKind::COUNTER, name(named)), config)
}

fn reference(named: &str) -> ObjectReference {
    ObjectReference { kind: ObjectKind::COUNTER, object: ObjectName::Named(name(named)) }
}

fn jump(from: &str, to: &str) -> Rule {
    chain(from).rule().then(Verdict::Jump(name(to)))
}

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(1, 1, 1, last)
}

/// What is there. Chains: `base` and `nat` look at packets, `c` has a rule that jumps to `d`.
fn world() -> Transaction {
    let mut tx = Transaction::new();
    tx.add(Table::new(t()));
    for named in ["c", "d"] {
        tx.add(Chain::new(chain(named)));
    }
    tx.add(Chain::base(chain("base"), ChainType::Filter, Hook::Input, Priority::FILTER));
    tx.add(Chain::base(chain("nat"), ChainType::Nat, Hook::Postrouting, Priority::SRCNAT));
    tx.add(Set::new(set("s"), DataType::IPV4_ADDR).size(2));
    tx.add_element(&set("s"), ip(1)).add_element(&set("s"), ip(2));
    tx.add(Set::new(set("iv"), DataType::IPV4_ADDR).flags(SetFlags::INTERVAL));
    tx.add_element(&set("iv"), Element::range(ip(10), ip(20)));
    tx.add(Set::map(map("m"), DataType::IPV4_ADDR, DataType::INET_SERVICE));
    tx.add_element(&map("m"), Element::new(ip(1)).value(Port(80)));
    tx.add(Set::verdict_map(map("vm"), DataType::IPV4_ADDR));
    tx.add(Set::object_map(map("om"), DataType::IPV4_ADDR, ObjectKind::COUNTER));
    tx.add(counter(&t(), "hits"));
    tx.add(jump("c", "d")).add(chain("c").rule().then(reference("hits")));
    tx.add(chain("c").rule().then(Match::new(Payload::IP_SADDR, lang::Expression::named(&name("iv")))));
    tx
}

type Fill = fn(&mut Transaction);
/// What is wrong, how, and what an error has to say.
type Wrong = (&'static str, Fill, &'static [&'static str]);

/// Ends an expression.
fn drop_of(_: &mut Transaction) {}

const WRONG: &[Wrong] = &[
    // Tables.
    (
        "create a table that is there",
        |tx| drop_of(tx.create(Table::new(t()))),
        &["create table ip t: EEXIST", "exists already"],
    ),
    ("delete an absent table", |tx| drop_of(tx.delete(absent())), &["table ip absent does not exist"]),
    (
        "delete a table by an absent handle",
        |tx| drop_of(tx.delete(HandleId::Table(Family::IP, 999))),
        &["no table of family ip has handle 999"],
    ),
    (
        "a table's own flags change",
        |tx| drop_of(tx.add(Table::new(t()).flags(TableFlags::OWNER))),
        &["EOPNOTSUPP", "flags of an existing table"],
    ),
    ("flush an absent table", |tx| drop_of(tx.flush(absent())), &["table ip absent does not exist"]),
    // Chains.
    (
        "a chain without a table",
        |tx| drop_of(tx.add(Chain::new(absent().chain(name("c"))))),
        &["table ip absent does not exist"],
    ),
    (
        "create a chain that is there",
        |tx| drop_of(tx.create(Chain::new(chain("c")))),
        &["create chain ip t c: EEXIST", "exists already"],
    ),
    (
        "delete an absent chain",
        |tx| drop_of(tx.delete(chain("absent"))),
        &["chain ip t absent does not exist"],
    ),
    (
        "delete a chain of an absent table",
        |tx| drop_of(tx.delete(absent().chain(name("c")))),
        &["table ip absent does not exist"],
    ),
    (
        "delete a chain that is jumped to",
        |tx| drop_of(tx.delete(chain("d"))),
        &["delete chain ip t d: EBUSY", "still jump to the chain"],
    ),
    (
        "delete a chain by an absent handle",
        |tx| drop_of(tx.delete(HandleId::Chain(t(), 999))),
        &["table ip t has no chain with handle 999"],
    ),
    ("flush an absent chain", |tx| drop_of(tx.flush(chain("absent"))), &["chain ip t absent does not exist"]),
    (
        "rename to a name that is taken",
        |tx| drop_of(tx.rename(chain("c"), name("d"))),
        &["rename chain ip t c: EEXIST", "has the new name already"],
    ),
    (
        "rename an absent chain",
        |tx| drop_of(tx.rename(chain("absent"), name("x"))),
        &["rename chain ip t absent", "no such chain"],
    ),
    (
        "rename an absent handle",
        |tx| drop_of(tx.rename_handle(chain("c"), 999, name("x"))),
        &["no chain with handle 999"],
    ),
    (
        "a plain chain made a base chain",
        |tx| drop_of(tx.add(Chain::base(chain("c"), ChainType::Filter, Hook::Input, Priority::FILTER))),
        &["add chain ip t c: EEXIST", "without a hook"],
    ),
    (
        "a base chain at another hook",
        |tx| drop_of(tx.add(Chain::base(chain("base"), ChainType::Filter, Hook::Output, Priority::FILTER))),
        &["add chain ip t base: E", "hook or priority"],
    ),
    (
        "a base chain with another priority",
        |tx| drop_of(tx.add(Chain::base(chain("base"), ChainType::Filter, Hook::Input, Priority(7)))),
        &["add chain ip t base: E", "hook or priority"],
    ),
    (
        "a base chain of another type",
        |tx| drop_of(tx.add(Chain::base(chain("base"), ChainType::Nat, Hook::Input, Priority::FILTER))),
        &["add chain ip t base: EEXIST", "another type"],
    ),
    (
        "a type that the family has not",
        |tx| {
            let table = TableId::new(Family::ARP, name("a"));
            tx.add(Table::new(table.clone()));
            tx.add(Chain::base(table.chain(name("c")), ChainType::Nat, Hook::Input, Priority::FILTER));
        },
        &["operation 2: add chain arp a c", "family arp has no chain type `nat`"],
    ),
    (
        "a type that nobody knows",
        |tx| {
            drop_of(tx.add(Chain::base(
                chain("x"),
                ChainType::Other(name("odd")),
                Hook::Input,
                Priority::FILTER,
            )));
        },
        &["no chain type `odd`"],
    ),
    (
        "a hook that the type has not",
        |tx| drop_of(tx.add(Chain::base(chain("x"), ChainType::Route, Hook::Input, Priority::FILTER))),
        &["EOPNOTSUPP", "family and type of chain does not have the hook"],
    ),
    (
        "nat before connection tracking",
        |tx| drop_of(tx.add(Chain::base(chain("x"), ChainType::Nat, Hook::Prerouting, Priority(-300)))),
        &["EOPNOTSUPP", "not at this priority"],
    ),
    (
        "offload to a device that cannot",
        |tx| drop_of(tx.add(Table::new(dev())).add(offloaded("lo", 10))),
        &["operation 2: add chain netdev t c: EOPNOTSUPP", "`flags offload`", "drivers"],
    ),
    (
        "offload at a priority that devices do not have",
        |tx| drop_of(tx.add(Table::new(dev())).add(offloaded("lo", 0))),
        &["operation 2: add chain netdev t c: EOPNOTSUPP", "a priority of 1 to 65535"],
    ),
    (
        "offload of a chain that is there without",
        |tx| {
            let mut plain = offloaded("lo", 10);
            plain.base.as_mut().expect("a base chain").offload = false;
            tx.add(Table::new(dev())).add(plain).add(offloaded("lo", 10));
        },
        &["operation 3: add chain netdev t c: EOPNOTSUPP", "cannot be added to an existing chain"],
    ),
    // Rules.
    (
        "a rule without a table",
        |tx| drop_of(tx.add(absent().chain(name("c")).rule())),
        &["table ip absent does not exist"],
    ),
    (
        "a rule without a chain",
        |tx| drop_of(tx.add(chain("absent").rule())),
        &["add rule ip t absent", "chain ip t absent does not exist"],
    ),
    (
        "a rule inserted without a chain",
        |tx| drop_of(tx.insert(chain("absent").rule())),
        &["insert rule", "chain ip t absent does not exist"],
    ),
    (
        "a rule behind an absent one",
        |tx| drop_of(tx.add(chain("c").rule().position(999))),
        &["no rule with handle 999"],
    ),
    (
        "a rule before an absent one",
        |tx| drop_of(tx.insert(chain("c").rule().position(999))),
        &["insert rule", "no rule with handle 999"],
    ),
    (
        "replace an absent rule",
        |tx| drop_of(tx.replace(chain("c").rule().handle(999))),
        &["replace rule", "no rule with handle 999"],
    ),
    (
        "a port above a set",
        |tx| {
            let ports = lang::Expression::set([Port(22), Port(80)]);
            drop_of(tx.add(chain("c").rule().then(Match::with(
                Payload::TCP_DPORT,
                lang::MatchOp::Gt,
                ports,
            ))));
        },
        &["rule ip t c tcp dport > { 22, 80 }", "only `==` and `!=` are possible"],
    ),
    (
        "an address that has no bits in a set",
        |tx| {
            let named = lang::Expression::named(&name("iv"));
            drop_of(tx.add(chain("c").rule().then(Match::with(
                Payload::IP_SADDR,
                lang::MatchOp::None,
                named,
            ))));
        },
        &["rule ip t c ip saddr ! @iv", "only `==` and `!=` are possible"],
    ),
    (
        "one address for an address and a port",
        |tx| {
            let both = lang::Expression::concat([Payload::IP_SADDR.into(), Payload::TCP_DPORT.into()]);
            drop_of(tx.add(chain("c").rule().then(Match::new(both, lang::Expression::set([ip(1)])))));
        },
        &["rule ip t c ip saddr . tcp dport { 1.1.1.1 }", "expected value of 2 parts, found 1.1.1.1"],
    ),
    (
        "replace no rule in particular",
        |tx| drop_of(tx.replace(chain("c").rule().then(Verdict::Drop))),
        &["replace rule ip t c: EINVAL", "handle of the rule to replace is missing"],
    ),
    (
        "a jump to an absent chain in a map of the rule's own",
        |tx| {
            let pairs = vec![(ip(1).into(), Verdict::Drop), (ip(2).into(), Verdict::Jump(name("absent")))];
            tx.add(chain("c").rule().then(Vmap::new(Payload::IP_SADDR, pairs)));
        },
        &["add rule ip t c: ENOENT", "chain ip t absent does not exist"],
    ),
    (
        "a jump to a base chain in a map of the rule's own",
        |tx| {
            let pairs = vec![(ip(1).into(), Verdict::Drop), (ip(2).into(), Verdict::Jump(name("base")))];
            tx.add(chain("c").rule().then(Vmap::new(Payload::IP_SADDR, pairs)));
        },
        &["add rule ip t c: EOPNOTSUPP", "`base` is a base chain"],
    ),
    (
        "delete an absent rule",
        |tx| drop_of(tx.delete(RuleId { chain: chain("c"), handle: 999 })),
        &["delete rule ip t c handle 999", "no rule with handle 999"],
    ),
    (
        "delete a rule of an absent chain",
        |tx| drop_of(tx.delete(RuleId { chain: chain("absent"), handle: 1 })),
        &["chain ip t absent does not exist"],
    ),
    (
        "a jump to an absent chain",
        |tx| drop_of(tx.add(jump("c", "absent"))),
        &["chain ip t absent does not exist", "expression 1 (immediate)"],
    ),
    ("a jump to a base chain", |tx| drop_of(tx.add(jump("c", "base"))), &["`base` is a base chain"]),
    (
        "a jump to itself",
        |tx| drop_of(tx.add(jump("base", "c")).add(jump("c", "c"))),
        &["operation 2", "loop"],
    ),
    ("a loop of two", |tx| drop_of(tx.add(jump("base", "c")).add(jump("d", "c"))), &["operation 2", "loop"]),
    (
        "a lookup in an absent set",
        |tx| {
            drop_of(
                tx.add(
                    chain("c")
                        .rule()
                        .then(Match::new(Payload::IP_SADDR, lang::Expression::named(&name("absent")))),
                ),
            );
        },
        &["set ip t absent does not exist"],
    ),
    (
        "verdicts of an absent map",
        |tx| drop_of(tx.add(chain("c").rule().then(Vmap::new(Payload::IP_SADDR, &name("absent"))))),
        &["set ip t absent does not exist"],
    ),
    (
        "verdicts of a set",
        |tx| drop_of(tx.add(chain("c").rule().then(Vmap::new(Payload::IP_SADDR, &name("s"))))),
        &["EINVAL", "a map is needed", "(lookup)"],
    ),
    (
        "an absent counter",
        |tx| drop_of(tx.add(chain("c").rule().then(reference("absent")))),
        &["counter ip t absent does not exist"],
    ),
    (
        "an absent flowtable",
        |tx| drop_of(tx.add(chain("c").rule().then(Statement::FlowAdd(name("absent"))))),
        &["flowtable ip t absent does not exist"],
    ),
    (
        "update of an absent set",
        |tx| drop_of(tx.add(chain("c").rule().then(SetUpdate::update(&name("absent"), Payload::IP_SADDR)))),
        &["set ip t absent does not exist"],
    ),
    (
        "update of a set without dynamic",
        |tx| drop_of(tx.add(chain("c").rule().then(SetUpdate::update(&name("iv"), Payload::IP_SADDR)))),
        &["`iv`", "`flags dynamic`"],
    ),
    // What nft says of these: "datatype mismatch, expected internet network service, expression has type IPv4
    // address", "datatype mismatch, map expects IPv4 address, mapping expression has type internet network
    // service", "datatype mismatch: expected IPv4 address, expression has type ...". The kernel takes all but
    // the verdicts of a map of ports.
    (
        "ports looked for among addresses",
        |tx| {
            tx.add(Set::new(set("typed"), DataType::IPV4_ADDR));
            let typed = lang::Expression::named(&name("typed"));
            tx.add(chain("c").rule().then(Match::new(Payload::TCP_DPORT, typed)));
        },
        &[
            "operation 2: rule ip t c tcp dport @typed: `tcp dport` is of type inet_service, ",
            "of type ipv4_addr",
        ],
    ),
    (
        "a key whose parts are in another order",
        |tx| {
            tx.add(Set::verdict_map(map("typed"), [DataType::INET_SERVICE, DataType::IPV4_ADDR]));
            let key = lang::Expression::concat([Payload::IP_SADDR.into(), Payload::TCP_DPORT.into()]);
            tx.add(chain("c").rule().then(Vmap::new(key, &name("typed"))));
        },
        &[
            "operation 2: ",
            "is of type ipv4_addr . inet_service, but the keys of @typed are of type inet_service . ",
        ],
    ),
    (
        "verdicts of a map of ports",
        |tx| {
            tx.add(Set::map(map("typed"), DataType::IPV4_ADDR, DataType::INET_SERVICE));
            tx.add(chain("c").rule().then(Vmap::new(Payload::IP_SADDR, &name("typed"))));
        },
        &["operation 2: ", "the values of @typed are of type inet_service, not verdict"],
    ),
    (
        "NAT to what a map of ports gives",
        |tx| {
            tx.add(Set::map(map("typed"), DataType::IPV4_ADDR, DataType::INET_SERVICE));
            let given = lang::Expression::from(Payload::IP_SADDR).map(&name("typed"));
            tx.add(chain("nat").rule().then(Statement::snat(Nat::to(given))));
        },
        &["operation 2: ", "the values of @typed are of type inet_service, not ipv4_addr"],
    ),
    (
        "a port put into a set of addresses",
        |tx| {
            tx.add(Set::new(set("typed"), DataType::IPV4_ADDR).flags(SetFlags::DYNAMIC).size(9));
            tx.add(chain("c").rule().then(SetUpdate::update(&name("typed"), Payload::TCP_DPORT)));
        },
        &[
            "operation 2: ",
            "`tcp dport` is of type inet_service, but the keys of @typed are of type ipv4_addr",
        ],
    ),
    (
        "counters of ports by an address",
        |tx| {
            tx.add(Set::object_map(map("typed"), DataType::INET_SERVICE, ObjectKind::COUNTER));
            let object = ObjectName::Map(Box::new(Payload::IP_SADDR.into()), name("typed"));
            let reference = ObjectReference { kind: ObjectKind::COUNTER, object };
            tx.add(chain("c").rule().then(reference));
        },
        &[
            "operation 2: ",
            "`ip saddr` is of type ipv4_addr, but the keys of @typed are of type inet_service",
        ],
    ),
    (
        "snat in a filter chain",
        |tx| drop_of(tx.add(chain("base").rule().then(Statement::snat(Nat::to(ip(1)))))),
        &["`snat to 1.1.1.1`", "type nat at postrouting"],
    ),
    (
        "dnat at postrouting",
        |tx| drop_of(tx.add(chain("nat").rule().then(Statement::dnat(Nat::to(ip(1)))))),
        &["`dnat to 1.1.1.1`", "type nat at prerouting"],
    ),
    (
        "reject where it cannot be",
        |tx| drop_of(tx.add(chain("nat").rule().then(Reject::Default))),
        &["`reject`", "type filter"],
    ),
    (
        "tcp reset without a tcp match, in a family that has no reject",
        |tx| {
            let c = TableId::new(Family::ARP, name("a")).chain(name("c"));
            tx.add(Table::new(c.table.clone()));
            tx.add(Chain::base(c.clone(), ChainType::Filter, Hook::Input, Priority::FILTER));
            tx.add(c.rule().then(Reject::Icmp(1)));
        },
        &["`reject` for family arp"],
    ),
    (
        "a module of xtables without the protocol that it is for",
        |tx| {
            let module = expr::kind::XtMatch { name: "tcp".into(), revision: 0, info: vec![0; 16] };
            drop_of(tx.add(chain("c").rule().then(Statement::Raw(vec![module.into()]))));
        },
        &["EINVAL", "a match for its protocol before it", "(match)"],
    ),
    // Sets.
    (
        "a set without a table",
        |tx| drop_of(tx.add(Set::new(absent().set(name("s")), DataType::IPV4_ADDR))),
        &["table ip absent does not exist"],
    ),
    (
        "a set of no type",
        |tx| drop_of(tx.add(Set::new(set("new"), SetType::Types(Vec::new())))),
        &["add set ip t new: EINVAL", "have no type"],
    ),
    (
        "a set of keys that are too long",
        |tx| drop_of(tx.add(Set::new(set("new"), [DataType::IPV6_ADDR; 5]))),
        &["add set ip t new: EINVAL", "64 bytes"],
    ),
    (
        "create a set that is there",
        |tx| drop_of(tx.create(Set::new(set("s"), DataType::IPV4_ADDR))),
        &["EEXIST", "exists already"],
    ),
    (
        "a set of another type",
        |tx| drop_of(tx.add(Set::new(set("s"), DataType::IPV6_ADDR))),
        &["add set ip t s: EEXIST", "another type"],
    ),
    (
        "a set with other flags",
        |tx| drop_of(tx.add(Set::new(set("s"), DataType::IPV4_ADDR).flags(SetFlags::INTERVAL))),
        &["add set ip t s: EEXIST", "other flags"],
    ),
    (
        "a map that is a set",
        |tx| drop_of(tx.add(Set::verdict_map(map("s"), DataType::IPV4_ADDR))),
        &["add map ip t s: EEXIST", "another type"],
    ),
    ("delete an absent set", |tx| drop_of(tx.delete(set("absent"))), &["set ip t absent does not exist"]),
    (
        "delete a set in use",
        |tx| drop_of(tx.delete(set("iv"))),
        &["delete set ip t iv: EBUSY", "rules still use"],
    ),
    (
        "delete a set by an absent handle",
        |tx| drop_of(tx.delete(HandleId::Set(t(), 999))),
        &["no set with handle 999"],
    ),
    ("flush an absent set", |tx| drop_of(tx.flush(set("absent"))), &["set ip t absent does not exist"]),
    // Elements.
    (
        "an element without a table",
        |tx| drop_of(tx.add_element(&absent().set(name("s")), ip(1))),
        &["table ip absent does not exist"],
    ),
    (
        "an element without a set",
        |tx| drop_of(tx.add_element(&set("absent"), ip(1))),
        &["set ip t absent does not exist"],
    ),
    (
        "one element too many",
        |tx| drop_of(tx.add_element(&set("s"), ip(3))),
        &["{ 1.1.1.3 }: ENFILE", "full"],
    ),
    (
        "create an element that is there",
        |tx| drop_of(tx.create(Elements::new(&set("s"), [ip(1)]))),
        &["{ 1.1.1.1 }: EEXIST", "exists already"],
    ),
    (
        "an element with other data",
        |tx| drop_of(tx.add_element(&map("m"), Element::new(ip(1)).value(Port(81)))),
        &["{ 1.1.1.1 : 81 }", "other data"],
    ),
    (
        "an overlap",
        |tx| drop_of(tx.add_element(&set("iv"), Element::range(ip(15), ip(30)))),
        &["{ 1.1.1.15-1.1.1.30 }", "overlaps"],
    ),
    (
        "an interval that ends before it starts",
        |tx| drop_of(tx.add_element(&set("iv"), Element::range(ip(40), ip(30)))),
        &["operation 1: element ip t iv: the range 1.1.1.40-1.1.1.30 ends before it starts"],
    ),
    (
        "the parts of a key and of a value in another order",
        |tx| {
            let types = [DataType::IPV4_ADDR, DataType::INET_SERVICE];
            tx.add(Set::map(map("made"), types, types));
            tx.add_element(&map("made"), Element::new((Port(80), ip(1))).value((ip(2), Port(80))));
        },
        &["operation 2: element ip t made", "`80 . 1.1.1.1` is of type inet_service . ipv4_addr"],
    ),
    (
        "an interval in a set without, which the transaction makes itself",
        |tx| {
            tx.add(Set::new(set("made"), DataType::IPV4_ADDR));
            tx.add_element(&set("made"), Element::range(ip(1), ip(9)));
        },
        &["operation 2: add element ip t made { 1.1.1.1-1.1.1.9 }: EINVAL", "flags interval"],
    ),
    (
        "an interval in a set without",
        |tx| drop_of(tx.add_element(&map("m"), Element::range(ip(15), ip(30)).value(Port(1)))),
        &["flags interval"],
    ),
    (
        "a key of another length",
        |tx| drop_of(tx.add_element(&set("s"), Ipv6Addr::LOCALHOST)),
        &["{ ::1 }", "16 bytes"],
    ),
    (
        "data of another length",
        |tx| drop_of(tx.add_element(&map("m"), Element::new(ip(7)).value(ip(1)))),
        &["another type", "value of 4 bytes"],
    ),
    ("no data in a map", |tx| drop_of(tx.add_element(&map("m"), ip(7))), &["gives nothing"]),
    (
        "data in a set",
        |tx| drop_of(tx.add_element(&set("s"), Element::new(ip(1)).value(Port(1)))),
        &["gives a value of 2 bytes"],
    ),
    (
        "a verdict where data belongs",
        |tx| drop_of(tx.add_element(&map("m"), Element::new(ip(7)).verdict(Verdict::Drop))),
        &["gives a verdict"],
    ),
    (
        "a verdict to an absent chain",
        |tx| drop_of(tx.add_element(&map("vm"), Element::new(ip(7)).verdict(Verdict::Goto(name("absent"))))),
        &["chain ip t absent does not exist"],
    ),
    (
        "a verdict to a base chain",
        |tx| drop_of(tx.add_element(&map("vm"), Element::new(ip(7)).verdict(Verdict::Goto(name("base"))))),
        &["`base` is a base chain"],
    ),
    (
        "an absent object",
        |tx| drop_of(tx.add_element(&map("om"), Element::new(ip(7)).object(name("absent")))),
        &["no object `absent`"],
    ),
    (
        "a timeout in a set without",
        |tx| {
            drop_of(tx.add_element(
                &map("m"),
                Element::new(ip(7)).value(Port(1)).timeout(std::time::Duration::from_secs(9)),
            ));
        },
        &["flags timeout"],
    ),
    (
        "delete an absent element",
        |tx| drop_of(tx.delete_element(&set("s"), ip(99))),
        &["{ 1.1.1.99 }: ENOENT", "is not in the set"],
    ),
    (
        "delete an element of an absent set",
        |tx| drop_of(tx.delete_element(&set("absent"), ip(99))),
        &["set ip t absent does not exist"],
    ),
    // Objects and flowtables.
    (
        "an object without a table",
        |tx| drop_of(tx.add(counter(&absent(), "x"))),
        &["table ip absent does not exist"],
    ),
    (
        "create an object that is there",
        |tx| drop_of(tx.create(counter(&t(), "hits"))),
        &["create counter ip t hits: EEXIST", "exists already"],
    ),
    (
        "delete an absent object",
        |tx| drop_of(tx.delete(t().object(ObjectKind::COUNTER, name("absent")))),
        &["no object `absent`"],
    ),
    (
        "delete an object in use",
        |tx| drop_of(tx.delete(t().object(ObjectKind::COUNTER, name("hits")))),
        &["EBUSY", "still use it"],
    ),
    (
        "delete an object of another kind",
        |tx| drop_of(tx.delete(t().object(ObjectKind::QUOTA, name("hits")))),
        &["no object `hits` of this kind"],
    ),
    (
        "a helper that no kernel has",
        |tx| {
            let config =
                ObjectConfig::CtHelper { helper: name("odd"), family: None, protocol: Protocol::TCP };
            tx.add(StatefulObject::new(t().object(ObjectKind::CT_HELPER, name("h")), config));
        },
        &["no such helper"],
    ),
    (
        "times of a protocol that is not tracked",
        |tx| {
            let config = ObjectConfig::CtTimeout { protocol: Protocol(99), family: None, policy: Vec::new() };
            tx.add(StatefulObject::new(t().object(ObjectKind::CT_TIMEOUT, name("h")), config));
        },
        &["EOPNOTSUPP", "no connection tracking for this protocol"],
    ),
    (
        "a flowtable without a table",
        |tx| drop_of(tx.add(Flowtable::new(absent().flowtable(name("f")), Priority(0)))),
        &["table ip absent does not exist"],
    ),
    (
        "a flowtable on an absent device",
        |tx| {
            let mut flowtable = Flowtable::new(t().flowtable(name("f")), Priority(0));
            flowtable.devices = vec!["nodev0".parse().expect("a name")];
            tx.add(flowtable);
        },
        // Some kernels say which.
        &["flowtable ip t f", "device"],
    ),
    (
        "delete an absent flowtable",
        |tx| drop_of(tx.delete(t().flowtable(name("absent")))),
        &["flowtable ip t absent does not exist"],
    ),
    (
        "a family that no kernel has",
        |tx| drop_of(tx.add(Table::new(TableId::new(Family(77), name("t"))))),
        &["does not support tables of this family"],
    ),
];

#[test]
fn whatever_is_wrong_is_said_in_the_words_of_whoever_wrote_it() {
    testns::netns(|| {
        let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        world().apply(&mut kernel).expect("what is right");
        let mut wanting = Vec::new();
        for (what, fill, parts) in WRONG {
            let mut tx = Transaction::new();
            fill(&mut tx);
            let said = tx.apply(&mut kernel).map_or_else(|error| error.to_string(), |_| "nothing".to_owned());
            let lacks = parts.iter().find(|part| !said.contains(**part));
            wanting.extend(lacks.map(|lacks| format!("{what}: {said}\n    does not say {lacks:?}")));
        }
        assert!(wanting.is_empty(), "{}", wanting.join("\n"));
    });
}

/// Where nft blames a place of the text, we blame the operation of the same line: nothing that it finds is
/// unsaid by us.
#[test]
fn what_nft_refuses_is_refused_with_the_same_operation_named() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        world().apply(&mut kernel).expect("what is right");
        let mut compared = 0;
        for (what, fill, _) in WRONG {
            let mut tx = Transaction::new();
            fill(&mut tx);
            let nft = testns::feed(&["nft", "-c", "-f", "-"], &tx.to_string());
            let theirs = String::from_utf8_lossy(&nft.stderr).into_owned();
            // What nft cannot read, or asks of the text alone, the kernel never hears; of that we find only
            // look-ups of another type.
            let Some((place, why)) = theirs.split_once(": Error: ") else { continue };
            if !why.starts_with("Could not process rule") && !why.starts_with("datatype mismatch") {
                continue;
            }
            let Some(line) = place.lines().last().and_then(|place| place.split(':').nth(1)) else { continue };
            let ours = tx.apply(&mut kernel).expect_err(what).to_string();
            assert!(ours.contains(&format!("operation {line}: ")), "{what}: {theirs}\nwhere ours is {ours}");
            compared += 1;
        }
        assert!(compared >= 30, "{compared} were compared");
    });
}
