//! Sets with `auto-merge`: histories of additions and deletions, by nft and by us.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::*;
use testns::Netns;

use crate::beside;
use crate::kernel::cases::name;

/// A generator of numbers, so that a failure can be repeated (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A type of keys of which the test uses the first few, from an offset on.
struct Keys {
    of: DataType,
    key: fn(u32) -> Key,
    text: fn(u32) -> String,
}

/// How many keys there are: few, so that ranges meet.
const KEYS: u32 = 64;

const TYPES: [Keys; 4] = [
    Keys {
        of: DataType::IPV4_ADDR,
        key: |n| std::net::Ipv4Addr::from(u32::MAX - KEYS + 1 + n).into(),
        text: |n| std::net::Ipv4Addr::from(u32::MAX - KEYS + 1 + n).to_string(),
    },
    Keys {
        of: DataType::IPV6_ADDR,
        key: |n| std::net::Ipv6Addr::from(u128::from(n)).into(),
        text: |n| std::net::Ipv6Addr::from(u128::from(n)).to_string(),
    },
    Keys {
        of: DataType::INET_SERVICE,
        key: |n| Port(u16::try_from(n).unwrap_or(0)).into(),
        text: |n| n.to_string(),
    },
    Keys { of: DataType::MARK, key: |n| Mark(0xf0 + n).into(), text: |n| (0xf0 + n).to_string() },
];

fn open() -> Socket {
    Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket")
}

/// What both sides list of the set, in the words of nft.
fn listed() -> String {
    let text = testns::sh("nft -s list ruleset");
    // An `expires` changes between two looks.
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn text_of(keys: &Keys, ranges: &[(u32, u32)], comment: Option<&str>) -> String {
    let comment = comment.map(|comment| format!(" comment \"{comment}\"")).unwrap_or_default();
    let text = |(low, high): &(u32, u32)| match low == high {
        true => format!("{}{comment}", (keys.text)(*low)),
        false => format!("{}-{}{comment}", (keys.text)(*low), (keys.text)(*high)),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// The ranges of successive keys.
fn ranges(keys: &BTreeSet<u32>) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for key in keys {
        match ranges.last_mut() {
            Some((_, high)) if *high + 1 == *key => *high = *key,
            _ => ranges.push((*key, *key)),
        }
    }
    ranges
}

/// nft 1.0.6 of Debian 12 refuses to delete a part of an interval, which others cut out. It is told to delete
/// the whole and to add the rest.
fn cut(keys: &Keys, before: &BTreeSet<u32>, after: &BTreeSet<u32>) -> String {
    let (before, after) = (ranges(before), ranges(after));
    let gone: Vec<_> = before.iter().filter(|range| !after.contains(range)).copied().collect();
    let new: Vec<_> = after.iter().filter(|range| !before.contains(range)).copied().collect();
    let mut text = String::new();
    for (verb, ranges) in [("delete", gone), ("add", new)] {
        if !ranges.is_empty() {
            let _ = writeln!(text, "{verb} element inet t s {{ {} }}", text_of(keys, &ranges, None));
        }
    }
    text
}

fn feed(text: &str) {
    let output = testns::feed(&["nft", "-f", "-"], text);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn histories_of_a_set_that_merges_are_those_of_nft() {
    if !testns::have(&["nft"]) {
        return;
    }
    let seeds: Vec<_> = TYPES.iter().enumerate().collect();
    beside::each(&seeds, || Some(()), |(), (seed, keys)| history(*seed, keys));
}

fn history(seed: usize, keys: &Keys) {
    let (Some(nft), Some(ours)) = (Netns::new(), Netns::new()) else { return };
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ seed as u64);
    let set = TableId::new(Family::INET, name("t")).set(name("s"));
    let definition = Set::new(set.clone(), keys.of).auto_merge();
    let mut create = Transaction::new();
    create.add(Table::new(set.table.clone())).add(definition);
    nft.run(|| feed(&create.to_string()));
    ours.run(|| create.apply(&mut open()).map(drop)).expect("a set");
    let mut there = BTreeSet::new();
    for step in 0..40 {
        let mut transaction = Transaction::new();
        let mut text = String::new();
        // Several operations in one transaction have to see one another.
        for _ in 0..=dice.below(3) {
            let number = dice.below(3) + 1;
            let range = |dice: &mut Dice| {
                let low = u32::try_from(dice.below(u64::from(KEYS))).unwrap_or(0);
                (low, (low + u32::try_from(dice.below(9)).unwrap_or(0)).min(KEYS - 1))
            };
            if dice.below(10) < 6 {
                let added: Vec<_> = (0..number).map(|_| range(&mut dice)).collect();
                added.iter().for_each(|(low, high)| there.extend(*low..=*high));
                let _ = writeln!(text, "add element inet t s {{ {} }}", text_of(keys, &added, None));
                let elements = added.iter().map(|(low, high)| match low == high {
                    true => Element::new((keys.key)(*low)),
                    false => Element::range((keys.key)(*low), (keys.key)(*high)),
                });
                transaction.add(Elements::new(&set, elements));
            } else {
                let before = there.clone();
                let mut deleted = Vec::new();
                for _ in 0..number {
                    let all = ranges(&there);
                    let Some((low, high)) =
                        all.get(usize::try_from(dice.below(all.len().max(1) as u64)).unwrap_or(0))
                    else {
                        break;
                    };
                    let inside = |dice: &mut Dice, from: u32| {
                        from + u32::try_from(dice.below(u64::from(high - from + 1))).unwrap_or(0)
                    };
                    let from = if dice.below(2) == 0 { *low } else { inside(&mut dice, *low) };
                    let to = if dice.below(2) == 0 { *high } else { inside(&mut dice, from) };
                    deleted.push((from, to));
                    there.retain(|key| !(from..=to).contains(key));
                }
                text += &cut(keys, &before, &there);
                let elements =
                    deleted.iter().map(|(low, high)| Element::range((keys.key)(*low), (keys.key)(*high)));
                transaction.delete(Elements::new(&set, elements));
            }
        }
        // Of several operations in one script nft 1.0.6 sends elements that do not exist.
        nft.run(|| text.lines().for_each(feed));
        // Half of the steps are given as text.
        let by_text = step % 2 == 0;
        ours.run(|| match by_text {
            true => parsed(&create, &transaction.to_string()).apply(&mut open()).map(drop),
            false => transaction.apply(&mut open()).map(drop),
        })
        .unwrap_or_else(|error| panic!("{}step {step}: {error}\n{transaction}", keys.of));
        assert_eq!(ours.run(listed), nft.run(listed), "{} step {step}:\n{transaction}{text}", keys.of);
        let read = ours.run(|| read::elements(&mut open(), &set)).expect("elements");
        let starts = read.iter().filter(|e| !e.flags.contains(read::ElementFlags::INTERVAL_END)).count();
        assert_eq!(starts, ranges(&there).len(), "{} step {step}", keys.of);
    }
}

/// Operations as they are read from text, behind that of other operations.
fn parsed(before: &Transaction, operations: &str) -> Transaction {
    let all = Transaction::parse(&format!("{before}{operations}")).expect("a script");
    let mut parsed = Transaction::new();
    let operations = all.operations().iter().skip(before.operations().len());
    operations.for_each(|operation| _ = parsed.push(operation.clone()));
    parsed
}

#[test]
fn what_is_joined_has_the_comment_that_nft_gives_it() {
    if !testns::have(&["nft"]) {
        return;
    }
    let histories: &[&[&str]] = &[
        &["add 10-20 comment \"a\"", "add 12 comment \"b\""],
        &["add 12 comment \"a\"", "add 10-20 comment \"b\""],
        &["add 10-19 comment \"a\"", "add 20-30 comment \"b\""],
        &["add 20-30 comment \"a\"", "add 10-19 comment \"b\""],
        &["add 10-19 comment \"a\"", "add 15-30 comment \"b\""],
        &["add 10-19 comment \"a\"", "add 10-15 comment \"b\""],
        &["add 10-19 comment \"a\"", "add 10-19 comment \"b\""],
        &["add 10-19 comment \"a\", 30-39 comment \"c\"", "add 15-35 comment \"b\""],
        &["add 10-19 comment \"a\", 30-39 comment \"c\"", "add 20-29 comment \"b\""],
        &["add 1-2 comment \"a\", 3-4 comment \"b\""],
        &["add 3-5 comment \"a\", 1-4 comment \"b\""],
        &["add 10-19", "create 12", "create 30"],
        &["add 10-19 comment \"a\"", "delete 10-19", "add 5"],
    ];
    for history in histories {
        let (Some(nft), Some(ours)) = (Netns::new(), Netns::new()) else { return };
        let head = "table inet t { set s { type inet_service; flags interval; auto-merge; }; }\n";
        let lines = |step: &str| {
            let (verb, elements) = step.split_once(' ').unwrap_or_default();
            format!("{verb} element inet t s {{ {elements} }}\n")
        };
        for (namespace, is_nft) in [(&nft, true), (&ours, false)] {
            namespace.run(|| {
                for text in std::iter::once(head.to_owned()).chain(history.iter().map(|step| lines(step))) {
                    match is_nft {
                        true => feed(&text),
                        false => {
                            let defined = Transaction::parse(head).expect("a script");
                            let transaction = match text == head {
                                true => defined,
                                false => parsed(&defined, &text),
                            };
                            transaction.apply(&mut open()).expect("it is applied");
                        }
                    }
                }
            });
        }
        assert_eq!(ours.run(listed), nft.run(listed), "{history:?}");
    }
}

#[test]
fn what_is_in_no_single_interval_is_refused_and_named() {
    testns::netns(|| {
        let set = TableId::new(Family::IP, name("t")).set(name("s"));
        let mut transaction = Transaction::new();
        transaction.add(Table::new(set.table.clone()));
        transaction.add(Set::new(set.clone(), DataType::INET_SERVICE).auto_merge());
        let range = |low, high| Element::range(Port(low), Port(high));
        transaction.add(Elements::new(&set, [range(1, 5), range(3, 9), range(20, 29)]));
        transaction.apply(&mut open()).expect("it is applied");
        let mut transaction = Transaction::new();
        transaction.delete(Elements::new(&set, [range(2, 3), range(5, 25)]));
        let error = transaction.apply(&mut open()).expect_err("no interval contains it");
        assert!(error.is_not_found(), "{error}");
        let [failure] = error.failures() else { panic!("{error}") };
        assert_eq!((failure.element, failure.object().as_str()), (Some(1), "element ip t s { 5-25 }"));
        // A set that is deleted and added again is empty.
        let mut transaction = Transaction::new();
        transaction.flush(&set);
        transaction.add(Elements::new(&set, [range(4, 4)]));
        transaction.apply(&mut open()).expect("it is applied");
        assert_eq!(read::elements(&mut open(), &set).expect("elements").len(), 2);
    });
}
