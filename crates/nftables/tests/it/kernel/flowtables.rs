//! Flowtables, one case after the other: the fake takes and refuses what a kernel does that has them.
//!
//! The devices of all cases are there: older kernels refuse others, the fake does not. What is offloaded to a
//! device is its driver's matter.

use sluicegate_netlink::{NetlinkFamily, Options, Socket, Transport};
use sluicegate_nftables::fake::Fake;
use sluicegate_nftables::lang::{Statement, Verdict};
use sluicegate_nftables::read::Flowtable as Held;
use sluicegate_nftables::*;

use crate::kernel::cases::name;
use crate::kernel::needs;

/// Transactions, one after the other.
struct Case {
    name: &'static str,
    steps: Vec<Transaction>,
}

/// What came of one: each refusal's operation and error, of which each version of Linux blames other places;
/// and the flowtables and chains that there are then.
type Outcome = (Vec<(Option<usize>, Errno)>, Vec<Held>, Vec<read::Chain>);

#[test]
fn the_fake_takes_and_refuses_flowtables_as_the_kernel_does() {
    if !needs::met("flowtables") {
        return;
    }
    let mut differ = Vec::new();
    for case in cases() {
        testns::netns(|| {
            assert_eq!(testns::sh("ip link add one type veth peer name two"), "");
            let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
            let mut fake = Fake::new();
            for (number, transaction) in case.steps.iter().enumerate() {
                let (ours, theirs) = (outcome(&mut fake, transaction), outcome(&mut kernel, transaction));
                if ours != theirs {
                    let what = format!("{}, {number}: {transaction}", case.name);
                    differ.push(format!("{what}fake: {ours:?}\nkernel: {theirs:?}\n"));
                    return;
                }
            }
        });
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

fn outcome(kernel: &mut impl Transport, transaction: &Transaction) -> Outcome {
    let failures = match transaction.apply(kernel) {
        Ok(_) => Vec::new(),
        Err(Error::Rejected { failures, .. }) => {
            failures.iter().map(|f| (f.operation, f.error.errno)).collect()
        }
        Err(error) => panic!("{error}"),
    };
    let mut flowtables = read::flowtables(kernel, Family::UNSPEC).expect("a list");
    flowtables.iter_mut().for_each(|flowtable| flowtable.devices.sort_unstable());
    (failures, flowtables, read::chains(kernel, Family::UNSPEC).expect("a list"))
}

fn cases() -> Vec<Case> {
    let mut cases = made_and_deleted(Family::INET);
    cases.extend(used_by_rules());
    for family in [Family::IP, Family::IP6, Family::INET, Family::ARP, Family::BRIDGE, Family::NETDEV] {
        cases.push(case(
            "in each family",
            [with(family, |tx, t| {
                tx.add(flowtable(t, "f", ["one"]));
            })],
        ));
    }
    cases
}

fn made_and_deleted(family: Family) -> Vec<Case> {
    let add = |devices: &'static [&'static str]| {
        with(family, move |tx, t| {
            tx.add(flowtable(t, "f", devices.iter().copied()));
        })
    };
    let delete = |devices: &'static [&'static str]| {
        with(family, move |tx, t| {
            tx.delete(t.flowtable(name("f")).devices(devices.iter().map(|device| device_named(device))));
        })
    };
    let changed = |change: fn(&mut Flowtable)| {
        with(family, move |tx, t| {
            let mut made = flowtable(t, "f", ["one"]);
            change(&mut made);
            tx.add(made);
        })
    };
    let create = with(family, |tx, t| {
        tx.create(flowtable(t, "f", ["one"]));
    });
    let gone = |handle: Option<u64>| {
        with(family, move |tx, t| {
            match handle {
                Some(handle) => tx.delete(HandleId::Flowtable(t.clone(), handle)),
                None => tx.delete(t.flowtable(name("f"))),
            };
        })
    };
    let counter: fn(&mut Flowtable) = |f| f.flags = FlowtableFlags::COUNTER;
    vec![
        case("of no device", [add(&[]), add(&["one"]), gone(None)]),
        case("of two devices", [add(&["one", "two"]), gone(None), gone(None)]),
        case("made again", [add(&["one"]), add(&["one"]), create.clone()]),
        case("created", [create.clone(), create]),
        case("with more devices", [add(&["one"]), add(&["two", "one"]), add(&["lo"])]),
        case("a device twice", [add(&["one", "one"])]),
        case("by handle", [add(&["one"]), gone(Some(9)), gone(Some(1)), gone(Some(1))]),
        case("devices taken", [add(&["one", "two"]), delete(&["one"]), delete(&["one"]), delete(&["two"])]),
        case("a foreign device taken", [add(&["one"]), delete(&["one", "two"]), gone(None)]),
        case("a device taken of none", [delete(&["one"])]),
        case("with a counter", [changed(counter), add(&["one"]), changed(counter)]),
        case("with a counter later", [add(&["one"]), changed(counter)]),
        case("with a flag that is none", [changed(|f| f.flags = FlowtableFlags::from_bits_retain(4))]),
        case(
            "with another priority",
            [
                changed(|f| f.priority = Priority(-5)),
                changed(|f| f.priority = Priority(-5)),
                changed(|f| f.priority = Priority(7)),
            ],
        ),
        case(
            "two of one device",
            [with(family, |tx, t| {
                tx.add(flowtable(t, "f", ["one"])).add(flowtable(t, "g", ["one"]));
            })],
        ),
        case(
            "two of one device, later",
            [
                add(&["one"]),
                with(family, |tx, t| {
                    tx.add(flowtable(t, "g", ["two"])).add(flowtable(t, "h", ["one"]));
                }),
            ],
        ),
        case(
            "made and deleted at once",
            [with(family, |tx, t| {
                tx.add(flowtable(t, "f", ["one"])).delete(t.flowtable(name("f"))).add(flowtable(
                    t,
                    "f",
                    ["two"],
                ));
            })],
        ),
        case(
            "deleted with all else",
            [
                add(&["one"]),
                with(family, |tx, _| {
                    tx.flush(Flush::Ruleset(Family::UNSPEC));
                }),
            ],
        ),
        case(
            "deleted with its table",
            [
                add(&["one"]),
                with(family, |tx, t| {
                    tx.delete(t.clone());
                }),
            ],
        ),
        case(
            "in a dormant table",
            [
                with(family, |tx, t| {
                    tx.add(Table::new(t.clone()).flags(TableFlags::DORMANT)).add(flowtable(t, "f", ["one"]));
                }),
                with(family, |tx, t| {
                    tx.add(Table::new(t.clone()));
                }),
            ],
        ),
    ]
}

fn used_by_rules() -> Vec<Case> {
    let family = Family::INET;
    let chain = |tx: &mut Transaction, t: &TableId, hook| {
        tx.add(Chain::base(t.chain(name("c")), ChainType::Filter, hook, Priority(0)));
    };
    let uses = |t: &TableId, of: &str| t.chain(name(of)).rule().then(Statement::FlowAdd(name("f")));
    let at = |hook| {
        with(family, move |tx, t| {
            tx.add(flowtable(t, "f", ["one"]));
            chain(tx, t, hook);
            tx.add(uses(t, "c"));
        })
    };
    let through = |hook| {
        with(family, move |tx, t| {
            tx.add(flowtable(t, "f", ["one"])).add(Chain::new(t.chain(name("d"))));
            chain(tx, t, hook);
            tx.add(uses(t, "d")).add(t.chain(name("c")).rule().then(Verdict::Jump(name("d"))));
        })
    };
    let delete = || {
        with(family, |tx, t| {
            tx.delete(t.flowtable(name("f")));
        })
    };
    let delete_both = with(family, |tx, t| {
        tx.flush(t.chain(name("c"))).delete(t.flowtable(name("f")));
    });
    vec![
        case("of a rule that forwards", [at(Hook::Forward), delete(), delete_both]),
        case("of a rule at input", [at(Hook::Input)]),
        case("of a rule at postrouting", [at(Hook::Postrouting)]),
        case("behind a jump", [through(Hook::Forward), delete()]),
        case("behind a jump from output", [through(Hook::Output)]),
        case(
            "that is not there",
            [with(family, |tx, t| {
                chain(tx, t, Hook::Forward);
                tx.add(uses(t, "c"));
            })],
        ),
        case(
            "of a rule of no hook",
            [
                with(family, |tx, t| {
                    tx.add(flowtable(t, "f", ["one"])).add(Chain::new(t.chain(name("d")))).add(uses(t, "d"));
                }),
                with(family, |tx, t| {
                    tx.delete(t.chain(name("d"))).delete(t.flowtable(name("f")));
                }),
            ],
        ),
        case(
            "of two rules, replaced",
            [
                at(Hook::Forward),
                with(family, |tx, t| {
                    tx.add(uses(t, "c")).replace(t.chain(name("c")).rule().then(Verdict::Accept).handle(3));
                }),
                delete(),
            ],
        ),
        case(
            "deleted before its rule",
            [
                at(Hook::Forward),
                with(family, |tx, t| {
                    tx.delete(t.flowtable(name("f"))).flush(t.chain(name("c")));
                }),
            ],
        ),
    ]
}

fn case(name: &'static str, steps: impl IntoIterator<Item = Transaction>) -> Case {
    Case { name, steps: steps.into_iter().collect() }
}

/// Operations in a table that is made before if need be.
fn with(family: Family, fill: impl FnOnce(&mut Transaction, &TableId)) -> Transaction {
    let table = TableId::new(family, name("t"));
    let mut transaction = Transaction::new();
    transaction.add(Table::new(table.clone()));
    fill(&mut transaction, &table);
    transaction
}

fn flowtable<'a>(t: &TableId, n: &str, devices: impl IntoIterator<Item = &'a str>) -> Flowtable {
    let mut made = Flowtable::new(t.flowtable(name(n)), Priority(0));
    made.devices = devices.into_iter().map(device_named).collect();
    made
}

fn device_named(name: &str) -> InterfaceName {
    InterfaceName::new(name).expect("a name")
}
