//! The fake is held to the kernel: both are given the same transactions, right and wrong ones, and have to
//! end alike.
//!
//! `SLUICEGATE_FAKE_CASES` asks for more random histories than the few of a usual run.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestError, TestRunner};
use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{NetlinkFamily, Options, Socket, Transport as _};
use sluicegate_nftables::expr::kind::{Inner, Meta, Osf};
use sluicegate_nftables::expr::{Expr, InnerFlags, InnerType, MetaKey, OsfFlags, Register, TunnelKey};
use sluicegate_nftables::fake::Fake;
use sluicegate_nftables::monitor::{Event, Follower, GROUP};
use sluicegate_nftables::*;

use crate::kernel::cases;
mod expressions;
mod history;
mod offload;
mod outcome;
mod reconcile;

use outcome::{Outcome, events, normalized, notified};

fn socket() -> Socket {
    Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket of our own namespace")
}

/// Older kernels refuse other things: what the fake follows is Linux 6.18.
fn follows_this_kernel() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map_while(|number| number.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < (6, 18) {
        testns::skip(&format!("the fake follows Linux 6.18, this is {}", release.trim()));
    }
    version >= (6, 18)
}

#[test]
fn every_construct_is_taken_and_shown_as_by_the_kernel() {
    if !follows_this_kernel() {
        return;
    }
    testns::netns(|| {
        let mut differ = Vec::new();
        use cases::objects::{connlimits, geneve, never, timeouts, tunnels, types};
        let more = [connlimits(), geneve(), timeouts(false), tunnels(), never(), types(false)];
        let more = more.into_iter().chain(cases::newer());
        for case in cases::all().into_iter().chain(more) {
            let mut socket = socket();
            // What this kernel has no module for is no matter of the fake's.
            if case.transaction.apply(&mut socket).is_err() {
                continue;
            }
            let mut fake = Fake::new();
            case.transaction.apply(&mut fake).unwrap_or_else(|error| panic!("{}: {error}", case.name));
            let theirs = read::ruleset(&mut socket, Family::UNSPEC).expect("the kernel lists its rules");
            assert_eq!(text(&fake.ruleset()), text(&theirs), "{}", case.name);
            let (ours, theirs) = (normalized(fake.ruleset()), normalized(theirs));
            differ.extend(first_difference(&ours, &theirs).map(|(ours, theirs)| (case.name, ours, theirs)));
            flush(&mut socket);
        }
        assert!(differ.is_empty(), "{differ:#?}");
    });
}

#[test]
fn random_transactions_end_alike() {
    if !follows_this_kernel() {
        return;
    }
    let cases = std::env::var("SLUICEGATE_FAKE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(80);
    // A kernel spends most of the time of a transaction waiting.
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| testns::netns(|| play_histories(cases / WORKERS)));
        }
    });
}

/// Each has a namespace of its own.
const WORKERS: u32 = 8;

fn play_histories(cases: u32) {
    let socket = std::cell::RefCell::new(socket());
    let config = Config {
        cases,
        max_shrink_iters: 4000,
        max_shrink_time: 100_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&history::history(), |history| {
        let mut socket = socket.borrow_mut();
        flush(&mut socket);
        compare(&mut socket, &history)
    });
    match result {
        Ok(()) => {}
        // The least case that fails is part of the reason, as text.
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn jumps_go_as_deep_as_in_the_kernel() {
    if !follows_this_kernel() {
        return;
    }
    testns::netns(|| {
        let (mut socket, mut fake) = (socket(), Fake::new());
        for depth in 13..19 {
            let table = TableId::new(Family::IP, cases::name("t"));
            let chain = |n: usize| table.chain(cases::name(&format!("c{n}")));
            let mut transaction = Transaction::new();
            transaction.flush(Flush::Ruleset(Family::UNSPEC)).add(Table::new(table.clone()));
            transaction.add(Chain::base(chain(0), ChainType::Filter, Hook::Input, Priority::FILTER));
            for n in 1..=depth {
                transaction.add(Chain::new(chain(n)));
                transaction.add(chain(n - 1).rule().then(lang::Verdict::Jump(chain(n).name)));
            }
            let step = history::Step { transaction, ..history::Step::default() };
            let (ours, theirs) = (Outcome::of(&mut fake, &step), Outcome::of(&mut socket, &step));
            assert_eq!(ours, theirs, "{depth} jumps");
            assert_eq!(matches!(ours, Outcome::Applied(_)), depth < 16, "{depth} jumps");
        }
    });
}

/// Where a synproxy works, a reference to one does, or to a map of them, whatever the map holds.
#[test]
fn references_to_synproxies_are_taken_at_the_same_hooks() {
    if !follows_this_kernel() {
        return;
    }
    testns::netns(|| {
        let (mut socket, mut fake) = (socket(), Fake::new());
        for family in [Family::IP, Family::IP6, Family::INET] {
            let table = TableId::new(family, cases::name("t"));
            let (proxy, map) = (cases::name("p"), table.map(cases::name("m")));
            let named = lang::ObjectName::Named(proxy.clone());
            let key = lang::Expression::from(MetaKey::MARK);
            let mapped = lang::ObjectName::Map(Box::new(key), map.name.clone());
            for hook in [Hook::Prerouting, Hook::Input, Hook::Forward, Hook::Output, Hook::Postrouting] {
                for object in [&named, &mapped] {
                    let chain = table.chain(cases::name("c"));
                    let mut transaction = Transaction::new();
                    transaction.flush(Flush::Ruleset(Family::UNSPEC)).add(Table::new(table.clone()));
                    let config = lang::Synproxy { mss: Some(1460), ..Default::default() };
                    transaction.add(StatefulObject::new(
                        table.object(expr::ObjectKind::SYNPROXY, proxy.clone()),
                        ObjectConfig::from(config),
                    ));
                    transaction.add(Set::object_map(map.clone(), DataType::MARK, expr::ObjectKind::SYNPROXY));
                    transaction.add(Chain::base(chain.clone(), ChainType::Filter, hook, Priority(0)));
                    let kind = expr::ObjectKind::SYNPROXY;
                    transaction
                        .add(chain.rule().then(lang::ObjectReference { kind, object: object.clone() }));
                    let step = history::Step { transaction, ..history::Step::default() };
                    let (ours, theirs) = (Outcome::of(&mut fake, &step), Outcome::of(&mut socket, &step));
                    assert_eq!(ours, theirs, "{}", step.transaction);
                }
            }
        }
    });
}

/// The chain that a rule jumps to is told by its name, also where it goes in the transaction that made the
/// rule.
#[test]
fn a_rule_that_comes_and_goes_with_its_chain_is_told_alike() {
    if !follows_this_kernel() {
        return;
    }
    testns::netns(|| {
        let table = TableId::new(Family::IP, cases::name("t"));
        let (b, other, map) =
            (table.chain(cases::name("b")), table.chain(cases::name("c")), table.map(cases::name("m")));
        let bound = || lang::BoundChain::jump([lang::BoundRule::new().then(lang::Verdict::Accept)]);
        let jump = || lang::Verdict::Jump(other.name.clone());
        let step = |fill: &dyn Fn(&mut Transaction)| {
            let mut transaction = Transaction::new();
            fill(&mut transaction);
            history::Step { transaction, ..history::Step::default() }
        };
        let ground = step(&|tx| {
            tx.flush(Flush::Ruleset(Family::UNSPEC)).add(Table::new(table.clone()));
            tx.add(Chain::new(b.clone())).add(Set::verdict_map(map.clone(), DataType::MARK));
        });
        let of_its_own = step(&|tx| {
            tx.add(b.rule().then(bound())).flush(table.clone());
        });
        let named = step(&|tx| {
            tx.add(Chain::new(other.clone())).add(b.rule().then(jump()));
            tx.add_element(&map, Element::new(Mark(1)).verdict(jump()));
            tx.flush(b.clone()).flush(Flush::Set(map.clone())).delete(other.clone());
        });
        let result = compare(&mut socket(), &[ground, of_its_own, named]);
        assert!(result.is_ok(), "{result:?}");
    });
}

/// Two programs and one that listens: their sockets to one kernel.
struct Clients<T> {
    programs: [T; 2],
    listener: T,
}

impl Clients<Socket> {
    fn of_the_kernel() -> Self {
        let mut listener = socket();
        listener.join(GROUP).expect("the group can be joined");
        Self { programs: [socket(), socket()], listener }
    }
}

impl Clients<Fake> {
    fn of(fake: &Fake) -> Self {
        let mut listener = fake.open();
        listener.join(GROUP).expect("the group can be joined");
        Self { programs: [fake.open(), fake.open()], listener }
    }
}

/// Plays a history to both, and compares after each transaction.
fn compare(socket: &mut Socket, history: &[history::Step]) -> Result<(), TestCaseError> {
    let fake = Fake::new();
    let (mut ours, mut theirs) = (Clients::of(&fake), Clients::of_the_kernel());
    let (mut fakes_copy, mut kernels_copy) = (copy_of(&mut fake.open()), copy_of(socket));
    for (number, step) in history.iter().enumerate() {
        let what = || {
            let before: Vec<String> =
                history.iter().take(number).map(|step| step.transaction.to_string()).collect();
            format!("transaction {number}:\n{}\nafter\n{}", step.transaction, before.join("--\n"))
        };
        let program = usize::from(step.second);
        if step.reopen {
            ours.programs[program] = fake.open();
            let port = theirs.programs[program].port();
            theirs.programs[program] = crate::fake::socket();
            wait_for_the_end_of(port);
            // Nobody tells of tables that went with their owner, or stayed without one.
            (fakes_copy, kernels_copy) = (copy_of(&mut fake.open()), copy_of(socket));
        }
        let fakes = Outcome::of(&mut ours.programs[program], step);
        let kernels = Outcome::of(&mut theirs.programs[program], step);
        prop_assert_eq!(&fakes, &kernels, "fake and kernel differ in {}", what());
        if let Some(question) = &step.question {
            let fakes = outcome::answer(&mut ours.programs[program], question);
            let kernels = outcome::answer(&mut theirs.programs[program], question);
            prop_assert_eq!(
                fakes,
                kernels,
                "fake and kernel answer {:?} otherwise after {}",
                question,
                what()
            );
        }
        let listed = read::ruleset(socket, Family::UNSPEC).expect("the kernel lists its rules");
        let kernels_own = listed.clone();
        let lines = difference(&text(&fake.ruleset()), &text(&listed));
        prop_assert!(lines.is_empty(), "fake and kernel list otherwise: {:#?}\nafter {}", lines, what());
        let differ = first_difference(&normalized(fake.ruleset()), &normalized(listed));
        prop_assert!(differ.is_none(), "fake and kernel hold otherwise: {:?}\nafter {}", differ, what());
        let (fakes, kernels) = (events(&mut ours.listener), events(&mut theirs.listener));
        follow(&mut fakes_copy, &fakes, &fake.ruleset()).map_err(|e| fail("fake", &e, &what()))?;
        follow(&mut kernels_copy, &kernels, &kernels_own).map_err(|e| fail("kernel", &e, &what()))?;
        let (fakes, kernels) = (notified(fakes), notified(kernels));
        let differ = fakes.iter().zip(&kernels).find(|(ours, theirs)| ours != theirs);
        prop_assert!(fakes == kernels, "fake and kernel tell otherwise: {differ:?} of {}", what());
    }
    let ports = theirs.programs.each_ref().map(Socket::port);
    drop(theirs);
    // Then their tables are gone before the next history.
    ports.into_iter().for_each(wait_for_the_end_of);
    Ok(())
}

fn copy_of(transport: &mut impl sluicegate_netlink::Transport) -> Follower {
    Follower::read(transport, Family::UNSPEC).expect("a ruleset")
}

fn fail(of: &str, error: &str, what: &str) -> TestCaseError {
    TestCaseError::fail(format!("the copy of the {of}'s ruleset does not follow: {error}\nafter {what}"))
}

/// A copy that takes in these events is what is held then.
fn follow(copy: &mut Follower, events: &[(Flags, Event)], listed: &read::Ruleset) -> Result<(), String> {
    let listing = |ruleset: &read::Ruleset| -> String {
        let mut options = ListOptions::default();
        options.handles = true;
        let text: String =
            ruleset.content().iter().map(|table| table.display(&options).to_string()).collect();
        // Nobody tells when a set without a limit gets one, which even a refused rule that was to fill it
        // leaves behind.
        text.replace("\t\tsize 65535\n", "")
    };
    for (_, event) in events {
        copy.apply(event.clone()).map_err(|lost| lost.to_string())?;
    }
    let lines = difference(&listing(&copy.ruleset()), &listing(listed));
    if lines.is_empty() { Ok(()) } else { Err(format!("{lines:#?}")) }
}

/// A program that another test starts holds a socket that was closed, too, until it runs; and with it its
/// tables are there.
fn wait_for_the_end_of(port: Option<u32>) {
    let is_there = || testns::netfilter_sockets().iter().any(|socket| Some(socket.port) == port);
    let until = Instant::now() + Duration::from_secs(20);
    while is_there() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What the one holds and what the other, where they differ first.
fn first_difference(ours: &read::Ruleset, theirs: &read::Ruleset) -> Option<(String, String)> {
    fn first<T: PartialEq + std::fmt::Debug>(ours: &[T], theirs: &[T]) -> Option<(String, String)> {
        let at = (0..ours.len().max(theirs.len())).find(|at| ours.get(*at) != theirs.get(*at))?;
        Some((format!("{:?}", ours.get(at)), format!("{:?}", theirs.get(at))))
    }
    first(&ours.tables, &theirs.tables)
        .or_else(|| first(&ours.chains, &theirs.chains))
        .or_else(|| first(&ours.rules, &theirs.rules))
        .or_else(|| first(&ours.sets, &theirs.sets))
        .or_else(|| first(&ours.objects, &theirs.objects))
        .or_else(|| first(&ours.flowtables, &theirs.flowtables))
}

/// The lines that differ, side by side.
fn difference(ours: &str, theirs: &str) -> Vec<String> {
    let longest = ours.lines().count().max(theirs.lines().count());
    let lines = |text: &str| {
        text.lines()
            .map(str::to_owned)
            .chain(std::iter::repeat(String::new()))
            .take(longest)
            .collect::<Vec<_>>()
    };
    let pairs = lines(ours).into_iter().zip(lines(theirs));
    pairs
        .filter(|(ours, theirs)| ours != theirs)
        .map(|(ours, theirs)| format!("{ours} | {theirs}"))
        .take(4)
        .collect()
}

fn text(ruleset: &read::Ruleset) -> String {
    ruleset.content().iter().map(ToString::to_string).collect()
}

fn flush(socket: &mut Socket) {
    let mut transaction = Transaction::new();
    transaction.flush(Flush::Ruleset(Family::UNSPEC));
    transaction.apply(socket).expect("everything of our own namespace can be removed");
}

/// The address of a small space, where much overlaps.
fn address(low: u8) -> Ipv4Addr {
    match low {
        0 => Ipv4Addr::UNSPECIFIED,
        15 => Ipv4Addr::BROADCAST,
        low => Ipv4Addr::new(10, 0, 0, low),
    }
}

/// What only low-level expressions can say, and no kernel takes.
#[test]
fn an_expression_that_cannot_be_is_refused_alike() {
    if !follows_this_kernel() {
        return;
    }
    let dreg = Register::word(0);
    let inner = |number, expr: Expr| {
        let flags = InnerFlags::NH | InnerFlags::TH;
        Expr::from(Inner { number, of: InnerType::GRE, flags, header_size: 4, expr: Box::new(expr) })
    };
    let meta = || Expr::from(Meta { dreg: Some(dreg), key: MetaKey::PROTOCOL, sreg: None });
    let tunnel = || Expr::from(expr::kind::Tunnel { key: TunnelKey::ID, dreg, mode: None });
    let osf = |flags| Expr::from(Osf { dreg, ttl: None, flags });
    let cases = [
        (Family::NETDEV, tunnel(), None),
        (Family::INET, tunnel(), Some("ENOENT")),
        (Family::INET, osf(None), None),
        (Family::INET, osf(Some(OsfFlags::VERSION)), None),
        (Family::INET, osf(Some(OsfFlags::empty())), Some("EINVAL")),
        (Family::INET, inner(0, meta()), None),
        (Family::INET, inner(1, meta()), Some("EOPNOTSUPP")),
        (Family::INET, inner(0, osf(None)), Some("EOPNOTSUPP")),
    ];
    testns::netns(|| {
        for (family, expr, refusal) in cases {
            let chain = TableId::new(family, cases::name("t")).chain(cases::name("c"));
            let mut transaction = Transaction::new();
            transaction.add(Table::new(chain.table.clone())).add(Chain::new(chain.clone()));
            transaction.add(chain.rule().then(lang::Statement::Raw(vec![expr.clone()])));
            let (theirs, ours) = (transaction.apply(&mut socket()), transaction.apply(&mut Fake::new()));
            for (of, result) in [("kernel", theirs), ("fake", ours)] {
                let said = result.err().map(|error| error.to_string());
                let as_expected = match (&said, refusal) {
                    (None, None) => true,
                    (Some(said), Some(errno)) => said.contains(errno),
                    _ => false,
                };
                assert!(as_expected, "{of}: {expr:?}: {said:?}");
            }
            flush(&mut socket());
        }
    });
}
