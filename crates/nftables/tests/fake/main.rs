//! The fake is held to the kernel: both are given the same transactions, right and wrong ones, and have to end alike.
//!
//! `SLUICEGATE_FAKE_CASES` asks for more random histories than the few of a usual run.

use std::net::Ipv4Addr;

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};
use sluicegate_netlink::{Options, Protocol as NetlinkProtocol, Socket};
use sluicegate_nftables::fake::Fake;
use sluicegate_nftables::*;

#[path = "../kernel/cases.rs"]
#[allow(dead_code, reason = "the other test uses all of it")]
mod cases;
mod history;
mod outcome;

use outcome::{Outcome, held};

fn socket() -> Socket {
    Socket::open(NetlinkProtocol::NETFILTER, &Options::default()).expect("a socket of our own namespace")
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
        for case in cases::all() {
            let mut socket = socket();
            // What this kernel has no module for is no matter of the fake's.
            if case.transaction.apply(&mut socket).is_err() {
                continue;
            }
            let mut fake = Fake::new();
            case.transaction.apply(&mut fake).unwrap_or_else(|error| panic!("{}: {error}", case.name));
            let theirs =
                read::ruleset(&mut socket, Family::UNSPEC, None).expect("the kernel lists its rules");
            assert_eq!(text(&fake.ruleset()), text(&theirs), "{}", case.name);
            assert_eq!(held(&fake.ruleset()), held(&theirs), "{}", case.name);
            flush(&mut socket);
        }
    });
}

#[test]
fn random_transactions_end_alike() {
    if !follows_this_kernel() {
        return;
    }
    let cases = std::env::var("SLUICEGATE_FAKE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    testns::netns(|| {
        let socket = std::cell::RefCell::new(socket());
        let config = Config {
            cases,
            max_shrink_iters: 4000,
            failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
            ..Config::default()
        };
        let result = TestRunner::new(config).run(&history::history(), |history| {
            let mut socket = socket.borrow_mut();
            flush(&mut socket);
            compare(&mut socket, &history)
        });
        if let Err(error) = result {
            panic!("{error}");
        }
    });
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
            let step = history::Step { transaction, check: false, bound: false, stale: false };
            let (ours, theirs) = (Outcome::of(&mut fake, &step), Outcome::of(&mut socket, &step));
            assert_eq!(ours, theirs, "{depth} jumps");
            assert_eq!(matches!(ours, Outcome::Applied(_)), depth < 16, "{depth} jumps");
        }
    });
}

/// Plays a history to both, and compares after each transaction.
fn compare(socket: &mut Socket, history: &[history::Step]) -> Result<(), TestCaseError> {
    let mut fake = Fake::new();
    for (number, step) in history.iter().enumerate() {
        let ours = Outcome::of(&mut fake, step);
        let theirs = Outcome::of(socket, step);
        let what = || {
            let before: Vec<String> =
                history.iter().take(number).map(|step| step.transaction.to_string()).collect();
            format!("transaction {number}:\n{}\nafter\n{}", step.transaction, before.join("--\n"))
        };
        prop_assert_eq!(&ours, &theirs, "fake and kernel differ in {}", what());
        let listed = read::ruleset(socket, Family::UNSPEC, None).expect("the kernel lists its rules");
        let (ours, theirs) = (text(&fake.ruleset()), text(&listed));
        let lines = difference(&ours, &theirs);
        prop_assert!(ours == theirs, "fake and kernel list otherwise: {:#?}\nafter {}", lines, what());
        prop_assert_eq!(
            held(&fake.ruleset()),
            held(&listed),
            "fake and kernel hold otherwise after {}",
            what()
        );
    }
    Ok(())
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
