//! The legacy back end against `iptables-legacy` itself, in namespaces: the same rules from both have the
//! same bytes and the same save, each finds the rules of the other, and nothing of what others wrote is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::tool::{Case, Dice, Tool, assert_same, each_in_its_chain, for_each, histories};
use sluicegate_iptables_save::{Changes, Family, Save, State, diff};
use sluicegate_xtables::legacy::{Client, Lock, Restore};
use sluicegate_xtables::netlink::message::Flags;
use sluicegate_xtables::netlink::{Batch, NetlinkFamily, Options, Socket, exchange};
use sluicegate_xtables::{BackEnd, codecs, codecs_of};
use testns::{Netns, feed, netns, sh};

const TOOLS: [Tool; 2] = Tool::of(BackEnd::Legacy);

impl Tool {
    /// Compares entry by entry, and says of which rules the bytes differ.
    fn assert_same_entries(self, ours: &[u8], theirs: &[u8], table: &str, cases: &[Case]) {
        let (ours_by, theirs_by) = (self.by_chain(ours), self.by_chain(theirs));
        let hex = |entry: &[u8]| entry.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let different = ours_by.iter().filter_map(|(chain, entry)| {
            let other = theirs_by.get(chain)?;
            let number = chain.strip_prefix('R').and_then(|number| number.parse::<usize>().ok())?;
            let start = entry.iter().zip(other).position(|(a, b)| a != b)? & !7;
            let shown = |entry: &[u8]| hex(entry.get(start..).unwrap_or_default());
            Some(format!(
                "  {} (from {start})\n    {:.240}\n    {:.240}\n",
                cases[number].words,
                shown(entry),
                shown(other)
            ))
        });
        let different: Vec<_> = different.collect();
        let shown: String = different.iter().take(30).map(String::as_str).collect();
        assert!(
            different.is_empty(),
            "{} {table}: {} entries differ:\n{shown}",
            self.name(""),
            different.len()
        );
        assert!(ours == theirs, "{} {table}: {} and {} bytes", self.name(""), ours.len(), theirs.len());
    }

    /// Returns the bytes of the rules of each chain, from behind its name on.
    fn by_chain(self, entries: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let offsets = if self.family == Family::Ipv4 { 88 } else { 140 };
        let (mut at, mut chain) = (0, String::new());
        let mut chains: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        while at < entries.len() {
            let short = |place: usize| usize::from(u16::from_ne_bytes([entries[place], entries[place + 1]]));
            let (target, next) = (at + short(at + offsets), at + short(at + offsets + 2));
            if entries[target + 2..].starts_with(b"ERROR\0") {
                let name = &entries[target + 32..next];
                let end = name.iter().position(|byte| *byte == 0).expect("an end");
                chain = String::from_utf8_lossy(&name[..end]).into_owned();
            } else {
                chains.entry(chain.clone()).or_default().extend(&entries[at..next]);
            }
            at = next;
        }
        chains
    }

    fn without_counters(self, mut entries: Vec<u8>) -> Vec<u8> {
        let (offsets, counters) = if self.family == Family::Ipv4 { (88, 96) } else { (140, 152) };
        let mut at = 0;
        while at < entries.len() {
            entries[at + counters..at + counters + 16].fill(0);
            at += usize::from(u16::from_ne_bytes([entries[at + offsets + 2], entries[at + offsets + 3]]));
        }
        entries
    }

    /// Returns name, revision and size of each match and target of a table.
    fn extensions(self, entries: &[u8]) -> Vec<(String, u8, usize)> {
        let (offsets, head) = if self.family == Family::Ipv4 { (88, 112) } else { (140, 168) };
        let short = |place: usize| usize::from(u16::from_ne_bytes([entries[place], entries[place + 1]]));
        let (mut entry, mut extensions) = (0, Vec::new());
        while entry < entries.len() {
            let end = entry + short(entry + offsets + 2);
            let mut at = entry + head;
            while at < end {
                let name = &entries[at + 2..at + 31];
                let name = &name[..name.iter().position(|byte| *byte == 0).expect("an end")];
                extensions.push((
                    String::from_utf8_lossy(name).into_owned(),
                    entries[at + 31],
                    short(at) - 32,
                ));
                at += short(at);
            }
            entry = end;
        }
        extensions
    }

    fn legacy(self) -> Client {
        Client::open(self.family).expect("tests run with the capabilities of root")
    }
}

/// Returns what `list` says of the tables of a save, in its order.
fn listed(client: &Client, like: &str, counters: bool) -> String {
    let tables = like.lines().filter_map(|line| line.strip_prefix('*'));
    tables.map(|table| client.list(table, counters).expect("a table").to_string()).collect()
}

#[test]
fn what_the_tool_wrote_is_listed_as_the_tool_saves_it() {
    for tool in TOOLS.into_iter().filter(|tool| tool.here()) {
        netns(|| {
            tool.sets();
            tool.restore(&each_in_its_chain(&tool.corpus()), &["--noflush"]);
            let client = tool.legacy();
            let saved = tool.save("");
            assert!(saved.lines().filter(|line| line.starts_with("-A R")).count() > 2200);
            assert_same(&listed(&client, &saved, false), &saved, &tool.name(""));
            let saved = tool.save("-c");
            assert_same(&listed(&client, &saved, true), &saved, &tool.name(" -c"));
        });
    }
}

#[test]
fn what_is_written_here_has_the_bytes_and_the_save_of_the_tool() {
    for tool in TOOLS.into_iter().filter(|tool| tool.here()) {
        let (Some(theirs), Some(ours)) = (Netns::new(), Netns::new()) else { return };
        let cases = tool.corpus();
        let input = each_in_its_chain(&cases);
        let tables: Vec<_> = input.lines().filter_map(|line| line.strip_prefix('*')).collect();
        let (saved, entries) = theirs.run(|| {
            tool.sets();
            tool.restore(&input, &[]);
            let client = tool.legacy();
            let entries: Vec<_> = tables.iter().map(|table| client.raw(table).unwrap().entries).collect();
            (tool.save(""), entries)
        });
        ours.run(|| {
            tool.sets();
            let client = tool.legacy();
            let save = Save::parse(&input).unwrap();
            client.restore(&save, Restore::default().flush()).unwrap();
            for (table, theirs) in tables.iter().zip(entries) {
                tool.assert_same_entries(&client.raw(table).unwrap().entries, &theirs, table, &cases);
            }
            assert_same(&tool.save(""), &saved, &tool.name("-save"));
        });
    }
}

/// What no rule of the corpus has: a security module would have to be there, a counter of nfacct, which has a
/// test of its own, a kernel with IPVS, where the tests of the proxier's ipvs mode compare, or one with the
/// targets whose bytes `tests/it/rule.rs` has.
const NOT_EXERCISED: [&str; 6] = ["SECMARK", "ipvs", "nfacct", "CLUSTERIP", "LED", "ULOG"];

#[test]
fn every_codec_was_compared_with_what_the_tool_wrote() {
    for tool in TOOLS.into_iter().filter(|tool| tool.here()) {
        netns(|| {
            tool.sets();
            let input = each_in_its_chain(&tool.corpus());
            tool.restore(&input, &["--noflush"]);
            let client = tool.legacy();
            let tables = input.lines().filter_map(|line| line.strip_prefix('*'));
            let seen: BTreeSet<_> =
                tables.flat_map(|table| tool.extensions(&client.raw(table).unwrap().entries)).collect();
            for codec in codecs().filter(|codec| {
                codecs_of(codec.kind(), codec.name(), tool.family).any(|own| own.size() == codec.size())
            }) {
                let key = (codec.kernel_name().to_owned(), codec.revision(), codec.size());
                let exempt = NOT_EXERCISED.contains(&codec.name());
                assert_ne!(seen.contains(&key), exempt, "{codec:?} of {}", tool.name(""));
            }
        });
    }
}

#[test]
fn each_finds_the_rules_of_the_other_by_their_words() {
    for tool in TOOLS.into_iter().filter(|tool| tool.here()) {
        netns(|| {
            let cases = tool.corpus();
            let input = each_in_its_chain(&cases);
            tool.sets();
            let client = tool.legacy();
            client.restore(&Save::parse(&input).unwrap(), Restore::default()).unwrap();
            tool.restore(&for_each(&cases, "-C"), &["--noflush"]);
            tool.restore(&for_each(&cases, "-D"), &["--noflush"]);
            assert_eq!(tool.save("").lines().filter(|line| line.starts_with("-A")).count(), 0);
        });
        netns(|| {
            let cases = tool.corpus();
            let input = each_in_its_chain(&cases);
            tool.sets();
            let client = tool.legacy();
            tool.restore(&input, &["--noflush"]);
            client.restore(&Save::parse(&for_each(&cases, "-C")).unwrap(), Restore::default()).unwrap();
            client.apply(&Changes::from_save(Save::parse(&for_each(&cases, "-D")).unwrap())).unwrap();
            assert_eq!(tool.save("").lines().filter(|line| line.starts_with("-A")).count(), 0);
        });
    }
}

/// Returns a line of restore input, which may be wrong for the table as it is.
fn random_line(dice: &mut Dice) -> String {
    const CHAINS: [&str; 8] = ["A", "B", "C", "D", "KUBE-X", "INPUT", "OUTPUT", "NONE"];
    const WORDS: [&str; 10] = [
        "-j ACCEPT",
        "-p tcp --dport 80 -j A",
        "-m comment --comment \"a b\" -j B",
        "-i eth+ -g C",
        "-p udp -m multiport --dports 1,2:3",
        "-m conntrack --ctstate NEW,ESTABLISHED -j KUBE-X",
        "-m statistic --mode random --probability 0.5 -j RETURN",
        "-m limit --limit 5/min -j LOG --log-prefix x",
        "-p tcp -j REJECT --reject-with tcp-reset",
        "-m mark --mark 1/2 -j NFLOG --nflog-group 3",
    ];
    let (chain, mut words, number) = (dice.pick(&CHAINS), dice.pick(&WORDS), dice.below(4) + 1);
    // The tool leaves a chain that calls itself to the kernel, which refuses it only where packets come by.
    if words.ends_with(chain) {
        words = "-j ACCEPT";
    }
    match dice.below(40) {
        0..15 => format!("[{}:{}] -A {chain} {words}", dice.below(9), dice.below(99)),
        15..20 => format!("-I {chain} {number} {words}"),
        20..23 => format!("-R {chain} {number} {words}"),
        23..27 => format!("-D {chain} {words}"),
        27..29 => format!("-D {chain} {number}"),
        29 => format!("-C {chain} {words}"),
        30 => format!("-F {chain}"),
        31 => format!("-N {chain}"),
        32 => format!("-X {chain}"),
        33 => format!("-Z {chain}"),
        34 => format!("-E {chain} {}", dice.pick(&CHAINS)),
        35 => format!("-P {chain} {}", dice.pick(&["ACCEPT", "DROP", "RETURN"])),
        36 => format!(":{chain} {} [3:4]", if chain.ends_with("PUT") { "DROP" } else { "-" }),
        _ => format!(":{} - [0:0]", dice.pick(&["A", "B", "C", "D", "KUBE-X"])),
    }
}

/// iptables before 1.8.10 sets the counters of all policies to zero whenever it changes a table
/// (netfilter bugzilla 912). Here they are carried over, as those of rules are.
fn without_policy_counters(save: &str) -> String {
    let line = |line: &str| match line.strip_prefix(':') {
        Some(chain) => format!(":{}\n", chain.rsplit_once(' ').expect("counters").0),
        None => format!("{line}\n"),
    };
    save.lines().map(line).collect()
}

#[test]
fn random_histories_leave_what_the_tool_leaves() {
    for tool in TOOLS.into_iter().filter(|tool| tool.here()) {
        let (Some(theirs), Some(ours)) = (Netns::new(), Netns::new()) else { return };
        let dice = &mut Dice(7);
        let (mut taken, mut refused) = (0, 0);
        for history in 0..histories() {
            for step in 0..6 {
                let counters = dice.below(2) == 0;
                let flush = step == 0 || dice.below(8) == 0;
                let all = ["A", "B", "C", "D", "KUBE-X"].map(|chain| format!(":{chain} - [0:0]\n")).concat();
                let head = if flush { all } else { String::new() };
                let lines: String = (0..=dice.below(5)).map(|_| random_line(dice) + "\n").collect();
                let input = format!("*filter\n{head}{lines}COMMIT\n");
                let arguments =
                    [["--noflush", ""][usize::from(flush)], ["", "--counters"][usize::from(counters)]];
                let arguments: Vec<_> =
                    arguments.into_iter().filter(|argument| !argument.is_empty()).collect();
                let state = || {
                    let entries = tool.without_counters(tool.legacy().raw("filter").unwrap().entries);
                    (without_policy_counters(&tool.save("-c")), entries)
                };
                let (accepted, (saved, entries)) = theirs.run(|| {
                    let name = tool.name("-restore");
                    let output = feed(&[&[name.as_str(), "--wait=20"][..], &arguments].concat(), &input);
                    (output.status.success(), state())
                });
                ours.run(|| {
                    let save = Save::parse(&input).unwrap();
                    let mut how = Restore::default();
                    (how.flush, how.counters) = (flush, counters);
                    let done = tool.legacy().restore(&save, how);
                    assert_eq!(done.is_ok(), accepted, "history {history}: {done:?}\n{input}");
                    let (our_save, our_entries) = state();
                    assert_same(&our_save, &saved, &format!("history {history}, {arguments:?}:\n{input}"));
                    assert!(our_entries == entries, "history {history}: {input}");
                });
                *(if accepted { &mut taken } else { &mut refused }) += 1;
            }
        }
        assert!(taken > 10 && refused > 10, "{taken} {refused}");
    }
}

/// Most chains are not touched then, and are copied as they are but for their jumps.
#[test]
fn a_few_lines_among_many_chains_leave_what_the_tool_leaves() {
    for tool in TOOLS.into_iter().filter(|tool| tool.here()) {
        let (Some(theirs), Some(ours)) = (Netns::new(), Netns::new()) else { return };
        let dice = &mut Dice(11);
        let (mut chains, mut rules) = (String::new(), String::new());
        for chain in 0..300 {
            chains.push_str(&format!(":C{chain:03} - [0:0]\n"));
            for rule in 0..dice.below(5) {
                // Forwards only: a loop would be refused.
                let to = chain + 1 + dice.below(20);
                let target = match dice.below(4) {
                    0 => String::new(),
                    1 => " -j ACCEPT".to_owned(),
                    _ if to >= 300 => " -j RETURN".to_owned(),
                    _ => format!(" -j C{to:03}"),
                };
                rules.push_str(&format!(
                    "[{rule}:{chain}] -A C{chain:03} -p tcp --dport {}{target}\n",
                    rule + 1
                ));
            }
        }
        let all = format!("*filter\n:INPUT DROP [7:8]\n{chains}{rules}[1:2] -A FORWARD -j C000\nCOMMIT\n");
        let state = || {
            let entries = tool.without_counters(tool.legacy().raw("filter").unwrap().entries);
            (without_policy_counters(&tool.save("-c -t filter")), entries)
        };
        let arguments = ["--noflush", "--counters"];
        theirs.run(|| tool.restore(&all, &arguments));
        ours.run(|| {
            tool.legacy().restore(&Save::parse(&all).unwrap(), Restore::default().counters()).unwrap();
        });
        let (mut taken, mut refused) = (0, 0);
        for step in 0..60 {
            let lines: String = (0..=dice.below(4))
                .map(|_| {
                    let (a, b) = (dice.below(300), dice.below(300));
                    match dice.below(12) {
                        0 => format!(":C{a:03} - [0:0]\n"),
                        1 => format!("-F C{a:03}\n-X C{a:03}\n"),
                        2 => format!("-E C{a:03} C{a:03}x\n"),
                        3 => format!("-N C{a:03}y\n-A C{a:03} -j C{a:03}y\n"),
                        4 => format!("[3:4] -A C{a:03}y -p udp\n"),
                        5 => format!("-D C{a:03} 1\n"),
                        6 => format!("-P OUTPUT {}\n", dice.pick(&["ACCEPT", "DROP"])),
                        7 => format!("-Z C{a:03}\n"),
                        8 => format!("-R C{a:03} 1 -p tcp\n"),
                        _ => {
                            format!("[5:6] -I C{:03} 1 -s 10.0.0.0/8 -j C{:03}\n", a.min(b), a.max(b).max(1))
                                .replace(
                                    "-s 10.0.0.0/8 ",
                                    if tool.family == Family::Ipv4 { "-s 10.0.0.0/8 " } else { "" },
                                )
                        }
                    }
                })
                .collect();
            let input = format!("*filter\n{lines}COMMIT\n");
            if lines.lines().any(|line| {
                line.starts_with("[5:6]") && line.split(' ').nth(2) == line.split(' ').next_back()
            }) {
                continue;
            }
            let (accepted, (saved, entries)) = theirs.run(|| {
                let name = tool.name("-restore");
                let output = feed(&[&[name.as_str(), "--wait=20"][..], &arguments].concat(), &input);
                (output.status.success(), state())
            });
            ours.run(|| {
                let done =
                    tool.legacy().restore(&Save::parse(&input).unwrap(), Restore::default().counters());
                assert_eq!(done.is_ok(), accepted, "step {step}: {done:?}\n{input}");
                let (our_save, our_entries) = state();
                assert_same(&our_save, &saved, &format!("step {step}:\n{input}"));
                assert!(our_entries == entries, "step {step}: {input}");
            });
            *(if accepted { &mut taken } else { &mut refused }) += 1;
        }
        assert!(taken > 15 && refused > 3, "{taken} {refused}");
    }
}

#[test]
fn a_difference_is_applied_as_exactly_that() {
    for tool in TOOLS.into_iter().filter(|tool| tool.here()) {
        netns(|| {
            let client = tool.legacy();
            let table = |rules: &str| format!("*filter\n:OWN - [0:0]\n:INPUT ACCEPT [0:0]\n{rules}COMMIT\n");
            let (one, two) =
                ("-A OWN -p tcp -m tcp --dport 1 -j ACCEPT\n", "-A OWN -p tcp -m tcp --dport 2 -j DROP\n");
            let other = "-A INPUT -m comment --comment \"of another\" -j ACCEPT\n";
            tool.restore(&table(&format!("{other}{one}")), &[]);
            let text = client.list("filter", false).unwrap().to_string();
            let has = State::of_family(&Save::parse(&text).unwrap(), tool.family).unwrap();
            let wanted = table(&format!("{two}{one}"));
            let wanted = State::of_family(&Save::parse(&wanted).unwrap(), tool.family).unwrap();
            let changes = diff(&has, &wanted, |_, chain| chain == "OWN").unwrap();
            client.apply(&changes).unwrap();
            let saved = tool.save("");
            assert!(saved.contains(&format!("{other}{two}{one}")), "{saved}");
            assert!(client.check("filter", "OWN", "-p tcp --dport 2 -j DROP").unwrap());
            assert!(!client.check("filter", "OWN", "-p tcp --dport 3 -j DROP").unwrap());
            assert!(client.check("filter", "NONE", "-j DROP").unwrap_err().is_not_found());
        });
    }
}

#[test]
fn counters_of_rules_that_stay_are_carried_over() {
    let tool = TOOLS[0];
    if !tool.here() {
        return;
    }
    netns(|| {
        let _ = sh("ip link set lo up");
        let client = tool.legacy();
        let restore = |text: &str| client.restore(&Save::parse(text).unwrap(), Restore::default()).unwrap();
        restore("*filter\n:X - [0:0]\n-A INPUT -j X\n-A X -p udp -m udp --dport 9 -j RETURN\nCOMMIT\n");
        let socket = UdpSocket::bind("127.0.0.1:9").unwrap();
        let send = |count: usize| {
            (0..count).for_each(|_| assert_eq!(socket.send_to(b"x", "127.0.0.1:9").unwrap(), 1));
        };
        send(3);
        restore("*filter\n-I X -p tcp -j DROP\n-I INPUT -p tcp -j DROP\nCOMMIT\n");
        send(2);
        let listed = client.list("filter", true).unwrap().to_string();
        assert!(listed.contains("[5:145] -A X -p udp"), "{listed}");
        assert!(listed.contains("[5:145] -A INPUT -j X"), "{listed}");
        assert!(listed.contains(":INPUT ACCEPT [5:145]"), "{listed}");
        restore("*filter\n-Z X 2\nCOMMIT\n");
        send(1);
        let listed = client.list("filter", true).unwrap().to_string();
        assert!(
            listed.contains("[1:29] -A X -p udp") && listed.contains("[6:174] -A INPUT -j X"),
            "{listed}"
        );
        assert_same(&listed, &tool.save("-c -t filter"), "after -Z");
        restore("*filter\n-Z\nCOMMIT\n");
        let listed = client.list("filter", true).unwrap().to_string();
        assert!(listed.contains("[0:0] -A X -p udp") && listed.contains(":INPUT ACCEPT [0:0]"), "{listed}");
    });
}

/// The kernel starts a quota anew whenever the table is replaced: packets pass again that were over it.
#[test]
fn a_table_in_which_nothing_changes_is_not_replaced() {
    let tool = TOOLS[0];
    if !tool.here() {
        return;
    }
    netns(|| {
        let client = tool.legacy();
        let restore = |text: &str| client.restore(&Save::parse(text).unwrap(), Restore::default()).unwrap();
        restore(
            "*filter\n:X - [0:0]\n-A X -s 192.0.2.1 -j DROP\n\
             -A OUTPUT -p udp -m udp --dport 9 -m quota --quota 58 -j ACCEPT\nCOMMIT\n",
        );
        let socket = UdpSocket::bind("127.0.0.1:9").unwrap();
        let passed = |count: usize| {
            (0..count).for_each(|_| assert_eq!(socket.send_to(b"x", "127.0.0.1:9").unwrap(), 1));
            let listed = client.list("filter", true).unwrap().to_string();
            let rule = listed.lines().find(|line| line.contains("--quota 58")).expect("the rule").to_owned();
            rule.split_once(':').expect("counters").0.trim_start_matches('[').parse::<u32>().unwrap()
        };
        assert_eq!(passed(3), 2);
        for unchanged in ["", ":INPUT - [0:0]\n", "-C X -s 192.0.2.1 -j DROP\n"] {
            restore(&format!("*filter\n{unchanged}COMMIT\n"));
            assert_eq!(passed(1), 2, "{unchanged}");
        }
        let state =
            || State::of_family(&Save::parse(&tool.save("")).unwrap(), tool.family).unwrap().into_owned();
        client.apply(&diff(&state(), &state(), |_, _| true).unwrap()).unwrap();
        restore("*nat\n:Y - [0:0]\nCOMMIT\n");
        assert_eq!(passed(1), 2);
        restore("*filter\n-A X -s 192.0.2.2 -j DROP\nCOMMIT\n");
        assert_eq!(passed(1), 3);
    });
}

#[test]
fn a_table_that_was_read_is_put_back_byte_for_byte() {
    for tool in TOOLS.into_iter().filter(|tool| tool.here()) {
        netns(|| {
            tool.sets();
            tool.restore(&each_in_its_chain(&tool.corpus()), &["--noflush"]);
            let client = tool.legacy();
            let kept = client.raw("filter").unwrap();
            tool.restore("*filter\n-I INPUT -j DROP\nCOMMIT\n", &[]);
            assert_ne!(client.raw("filter").unwrap(), kept);
            client.put_back(&kept).unwrap();
            assert_eq!(client.raw("filter").unwrap(), kept);
            let mut cut = kept;
            cut.entries.truncate(100);
            assert!(client.put_back(&cut).is_err());
        });
    }
}

#[test]
fn input_that_is_wrong_in_one_line_changes_nothing_and_says_which() {
    let tool = TOOLS[0];
    if !tool.here() {
        return;
    }
    netns(|| {
        let client = tool.legacy();
        tool.restore("*filter\n:X - [0:0]\n-A X -j DROP\nCOMMIT\n", &[]);
        let before = tool.save("");
        for (line, message) in [
            ("-A X -p tcp --dport 99999 -j DROP", "expected a port from 0 to 65535"),
            ("-A NONE -j DROP", "table filter, line 6: there is no chain NONE"),
            ("-A X -j NONE", "table filter, line 6: there is no chain or target NONE"),
            ("-D X -j ACCEPT", "table filter, line 6: chain X has no rule `-j ACCEPT`"),
            ("-R X 3 -j ACCEPT", "table filter, line 6: chain X has no rule number 3"),
            ("-X X", "table filter, line 6: the chain X is not empty"),
            ("-N INPUT", "table filter, line 6: the chain INPUT exists already"),
            ("-P X DROP", "table filter, line 6: X is not a built-in chain and has no policy"),
            ("-A X -m set --match-set none src", "match set: there is no set `none`"),
            ("-A X -j ULOG", "target ULOG: the kernel does not have it in revision 0"),
        ] {
            // The table before it is right, and is not replaced either.
            let input = format!("*nat\n:Y - [0:0]\nCOMMIT\n*filter\n-A X -j RETURN\n{line}\nCOMMIT\n");
            let error = client.restore(&Save::parse(&input).unwrap(), Restore::default()).unwrap_err();
            assert_eq!(error.line(), Some(6), "{error}");
            assert!(error.to_string().contains(message), "{error}");
            assert_eq!(client.list("filter", false).unwrap().to_string(), before.replace("# ", ""), "{line}");
            assert!(client.list("nat", false).unwrap().chain("Y").is_none(), "{line}");
        }
        // What only the kernel can refuse: a hook that the target is not for.
        let input = "*nat\n:Y - [0:0]\n-A Y -j DNAT --to-destination 10.0.0.1\n-A POSTROUTING -j Y\nCOMMIT\n";
        let error = client.restore(&Save::parse(input).unwrap(), Restore::default()).unwrap_err();
        assert!(error.to_string().ends_with("(one of the 2 rules of lines 3 to 4)"), "{error}");
        assert!(client.list("security_", false).unwrap_err().is_not_found());
    });
}

#[test]
fn a_revision_that_is_not_known_here_stays_byte_for_byte() {
    let tool = TOOLS[0];
    if !tool.here() {
        return;
    }
    netns(|| {
        let client = tool.legacy();
        tool.restore("*mangle\n:X - [0:0]\n-A X -j NFQUEUE --queue-num 7 --queue-bypass\nCOMMIT\n", &[]);
        // Revision 2 of NFQUEUE has the layout of 3, but less of it. No tool of today writes it.
        let mut raw = client.raw("mangle").unwrap();
        let place = raw.entries.windows(8).position(|bytes| bytes == b"NFQUEUE\0").expect("the target");
        assert_eq!(std::mem::replace(&mut raw.entries[place + 29], 2), 3);
        client.put_back(&raw).unwrap();
        let input = Save::parse("*mangle\n-I X -j ACCEPT\n-A X -j MARK --set-mark 1\nCOMMIT\n").unwrap();
        client.restore(&input, Restore::default()).unwrap();
        let after = client.raw("mangle").unwrap().entries;
        assert_eq!(
            after.windows(40).filter(|entry| *entry == &raw.entries[place - 2..place + 38]).count(),
            1
        );
        let saved = tool.save("-t mangle");
        // The tool does not read it either.
        let rule = "-A X -j NFQUEUE [unsupported revision]\n";
        let around = format!("-A X -j ACCEPT\n{rule}-A X -j MARK --set-xmark 0x1/0xffffffff\n");
        assert!(saved.contains(&around), "{saved}");
        let error = client.list("mangle", false).unwrap_err().to_string();
        assert!(
            error.contains("the target NFQUEUE in revision 2 cannot be expressed as iptables options"),
            "{error}"
        );
        let view = client.view("mangle", false).unwrap();
        assert_eq!(view.foreign.iter().map(|foreign| foreign.number).collect::<Vec<_>>(), [Some(2)]);
        let shown: Vec<_> = view.table.rules().map(|rule| (rule.is_foreign(), rule.text())).collect();
        let comment = "# -j NFQUEUE [unsupported revision]";
        assert_eq!(
            shown,
            [(false, "-j ACCEPT"), (true, comment), (false, "-j MARK --set-xmark 0x1/0xffffffff")]
        );
    });
}

/// The tool reads options that it then does not use: what it wrote is shown as it shows it.
#[test]
fn masks_and_shifts_that_a_connmark_does_not_use_are_passed_over() {
    let tool = TOOLS[0];
    if !tool.here() {
        return;
    }
    netns(|| {
        let client = tool.legacy();
        for words in
            ["--set-xmark 0x7/0x0 --nfmask 6", "--set-mark 7 --left-shift-mark 3 --nfmask 6 --ctmask 5"]
        {
            tool.restore(&format!("*mangle\n:X - [0:0]\n-A X -j CONNMARK {words}\nCOMMIT\n"), &[]);
            let listed = client.list("mangle", false).unwrap().to_string();
            assert_same(&listed, &tool.save("-t mangle"), words);
        }
        for words in ["--left-shift-mark 3 --right-shift-mark 5", "--right-shift-mark 5 --left-shift-mark 3"]
        {
            let input = format!("*mangle\n:X - [0:0]\n-A X -j CONNMARK --save-mark {words}\nCOMMIT\n");
            tool.restore(&input, &[]);
            let theirs = client.raw("mangle").unwrap();
            client.restore(&Save::parse(&input).unwrap(), Restore::default().flush()).unwrap();
            assert_eq!(client.raw("mangle").unwrap().entries, theirs.entries, "{words}");
        }
    });
}

/// The tool prints the comparison of these twice, rounds the rate, or leaves out what no packet is compared
/// with: it cannot restore what it saves. What is printed here can be, with the same bytes.
#[test]
fn what_the_tool_cannot_save_of_rateest_is_listed_so_that_it_is_restored() {
    for tool in TOOLS.into_iter().filter(|tool| tool.here()) {
        netns(|| {
            let client = tool.legacy();
            let estimator = |name: &str| {
                format!(
                    "-A R -j RATEEST --rateest-name {name} --rateest-interval 250ms --rateest-ewmalog 500ms\n"
                )
            };
            let estimators = format!("*mangle\n:R - [0:0]\n{}{}COMMIT\n", estimator("A"), estimator("B"));
            tool.restore(&estimators, &[]);
            for (words, listed) in [
                (
                    "--rateest A --rateest-eq --rateest-pps 9 --rateest-bps 1kbps",
                    "--rateest A --rateest-eq --rateest-bps 8000bit --rateest-pps 9",
                ),
                (
                    "--rateest1 A --rateest-lt --rateest-bps1 --rateest-pps1 --rateest2 B",
                    "--rateest1 A --rateest-lt --rateest-bps --rateest-pps --rateest2 B",
                ),
                (
                    "--rateest-delta --rateest1 A --rateest-bps1 1mbit --rateest-pps1 10 ! --rateest-lt \
                  --rateest2 B --rateest-bps2 2mbit --rateest-pps2 20",
                    "--rateest-delta --rateest1 A --rateest-bps1 1000Kbit ! --rateest-lt --rateest-bps2 2000Kbit \
                  --rateest-pps1 10 --rateest-pps2 20 --rateest2 B",
                ),
                (
                    "--rateest A --rateest-lt --rateest-bps 4294967295bps",
                    "--rateest A --rateest-lt --rateest-bps 34359738360bit",
                ),
                (
                    "--rateest A --rateest-lt --rateest-bps 1mibit",
                    "--rateest A --rateest-lt --rateest-bps 1048576bit",
                ),
                (
                    "--rateest1 A --rateest-gt --rateest-pps1 100",
                    "--rateest A --rateest-pps1 100 --rateest-gt --rateest-pps 0",
                ),
                (
                    "--rateest1 A --rateest-bps1 1mbit --rateest-gt --rateest2 B",
                    "--rateest1 A --rateest-bps1 1000Kbit --rateest-gt --rateest-bps --rateest2 B",
                ),
            ] {
                let input = |words: &str| format!("*filter\n:X - [0:0]\n-A X -m rateest {words}\nCOMMIT\n");
                tool.restore(&input(words), &[]);
                let theirs = client.raw("filter").unwrap();
                let list = client.list("filter", false).unwrap().to_string();
                assert!(list.contains(&format!("-A X -m rateest {listed}\n")), "{words}: {list}");
                assert!(client.check("filter", "X", &format!("-m rateest {words}")).unwrap());
                for again in [words, listed] {
                    let save = Save::parse(&input(again)).unwrap().into_owned();
                    client.restore(&save, Restore::default().flush()).unwrap();
                    assert_eq!(client.raw("filter").unwrap(), theirs, "{again}");
                }
                tool.restore(&input(listed), &[]);
                assert_eq!(client.raw("filter").unwrap(), theirs, "{listed}");
            }
        });
    }
}

#[test]
fn a_pinned_program_has_the_bytes_of_the_tool_and_each_finds_the_rule_of_the_other() {
    let tool = TOOLS[0];
    if !tool.here() {
        return;
    }
    netns(|| {
        let Some(path) = crate::tool::pinned_program() else { return };
        let rule = format!("-m bpf --object-pinned {path} -j DROP");
        let input = format!("*filter\n:X - [0:0]\n-A X {rule}\nCOMMIT\n");
        let client = tool.legacy();
        let restore = |input: &str| {
            client.restore(&Save::parse(input).unwrap(), Restore::default().flush()).unwrap();
        };
        let _ = sh(&format!("iptables-legacy -N X; iptables-legacy -A X {rule}"));
        let theirs = client.raw("filter").unwrap();
        assert_same(&client.list("filter", false).unwrap().to_string(), &tool.save("-t filter"), "bpf");
        assert!(client.check("filter", "X", &rule).unwrap());
        restore(&input);
        assert_eq!(client.raw("filter").unwrap(), theirs);
        let _ = sh(&format!("iptables-legacy -C X {rule}; iptables-legacy -D X {rule}"));
        // iptables-restore has another descriptor in it.
        tool.restore(&input, &[]);
        assert_ne!(client.raw("filter").unwrap(), theirs);
        assert!(client.check("filter", "X", &rule).unwrap());
        restore(&format!("*filter\n:X - [0:0]\n-A X {rule}\n-D X {rule}\nCOMMIT\n"));
        let wrong = format!("*filter\n-A X -m bpf --object-pinned {path}x -j DROP\nCOMMIT\n");
        assert!(client.restore(&Save::parse(&wrong).unwrap(), Restore::default()).is_err());
    });
}

#[test]
fn a_counter_of_nfacct_has_the_bytes_of_the_tool() {
    let tool = TOOLS[0];
    if !tool.here() {
        return;
    }
    netns(|| {
        // NFNL_SUBSYS_ACCT, NFNL_MSG_ACCT_NEW, NFACCT_NAME.
        let mut batch = Batch::new();
        batch.netfilter(7, 0, Flags::ACK | Flags::CREATE, 0, 0).put_str(1, "dropped");
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).unwrap();
        if !exchange(&mut socket, &[&batch], |_| Ok(())).unwrap().errors.is_empty() {
            return testns::lacks("nfacct");
        }
        let rules = "*filter\n:X - [0:0]\n-A X -m nfacct --nfacct-name dropped -j DROP\nCOMMIT\n";
        tool.restore(rules, &[]);
        let client = tool.legacy();
        let wanted = client.raw("filter").unwrap();
        assert_same(&client.list("filter", false).unwrap().to_string(), &tool.save("-t filter"), "nfacct");
        client.restore(&Save::parse(rules).unwrap(), Restore::default().flush()).unwrap();
        assert_eq!(client.raw("filter").unwrap(), wanted);
        assert!(client.check("filter", "X", "-m nfacct --nfacct-name dropped -j DROP").unwrap());
    });
}

#[test]
fn another_holder_of_the_lock_is_waited_for_and_then_reported() {
    netns(|| {
        let path = std::env::temp_dir().join(format!("xtables-{}.lock", std::process::id()));
        let held = File::create(&path).unwrap();
        rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let client = |wait| TOOLS[0].legacy().with_lock(Lock::default().path(&path).wait(wait));
        let save = Save::parse("*filter\n:X - [0:0]\nCOMMIT\n").unwrap();
        let start = Instant::now();
        let error = client(Duration::from_millis(200)).restore(&save, Restore::default()).unwrap_err();
        assert!(error.is_locked() && start.elapsed() >= Duration::from_millis(200), "{error}");
        assert!(error.to_string().ends_with("held by another program for 0.2 s"), "{error}");
        let waiting = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                rustix::fs::flock(&held, rustix::fs::FlockOperation::Unlock).unwrap();
            });
            client(Duration::from_secs(20)).restore(&save, Restore::default())
        });
        waiting.unwrap();
        std::fs::remove_file(&path).unwrap();
    });
}
