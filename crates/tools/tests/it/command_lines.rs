//! Hundreds of command lines of each tool, run by ours and by the real one, each on the same rules in a
//! namespace of its own: exit status, output, errors, and what the kernel has afterwards.
//!
//! The lines are in `testdata/lines`, and the differences that are known in `differences.txt` beside them,
//! which says why they are. A line that differs otherwise, or does not any more, fails the test; with
//! `SLUICEGATE_WRITE` in the environment it writes the list instead.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use testns::{Netns, feed, have, try_sh};

use crate::side_by_side::{Done, run_with};

/// A tool with what its lines are run on.
struct Lines {
    name: &'static str,
    file: &'static str,
    /// A script that removes everything and makes the state again.
    setup: &'static str,
    /// The standard input of the script.
    input: &'static str,
    /// Prints the state.
    dump: &'static str,
}

const RULES: &str = "*filter\n:bar - [0:0]\n:foo - [0:0]\n[3:4] -A INPUT -s 192.0.2.1/32 -j ACCEPT\n\
    [5:6] -A INPUT -p tcp -m tcp --dport 22 -j foo\n[7:8] -A foo -m comment --comment \"a b\" -j RETURN\n\
    COMMIT\n*nat\n[0:0] -A PREROUTING -p tcp -m tcp --dport 1 -j ACCEPT\n[0:0] -A OUTPUT -s 192.0.2.2/32\n\
    COMMIT\n";
const SETS: &str = "create a hash:ip family inet\ncreate b hash:net,port timeout 100 counters comment\n\
    create c bitmap:port range 1-100\ncreate l list:set\nadd a 192.0.2.1\nadd a 192.0.2.2\n\
    add b 192.0.2.0/24,tcp:80 timeout 0 comment \"x y\"\nadd l a\n";

const TOOLS: [Lines; 3] = [
    Lines {
        name: "iptables-nft",
        file: "iptables",
        setup: "nft flush ruleset; iptables-nft-restore -c",
        input: RULES,
        dump: "iptables-nft-save -c | sort",
    },
    Lines {
        name: "iptables-legacy",
        file: "iptables",
        setup: "for t in mangle raw security; do iptables-legacy -t $t -F; iptables-legacy -t $t -X; \
            for c in INPUT OUTPUT; do iptables-legacy -t $t -P $c ACCEPT; done; done; \
            for c in INPUT FORWARD OUTPUT; do iptables-legacy -P $c ACCEPT; done; iptables-legacy-restore -c",
        input: RULES,
        dump: "iptables-legacy-save -c | sort",
    },
    Lines {
        name: "ipset",
        file: "ipset",
        setup: "ipset flush; for i in 1 2; do for s in $(ipset list -n); do ipset destroy \"$s\"; done; done; \
            ipset destroy -x; ipset destroy 'd e'; ipset restore",
        input: SETS,
        dump: "ipset save",
    },
];

#[test]
fn lines_of_iptables_nft_do_what_they_do_with_the_tool() {
    compare(&TOOLS[0]);
}

#[test]
fn lines_of_iptables_legacy_do_what_they_do_with_the_tool() {
    compare(&TOOLS[1]);
}

#[test]
fn lines_of_ipset_do_what_they_do_with_the_tool() {
    compare(&TOOLS[2]);
}

fn compare(tool: &Lines) {
    if !have(&[tool.name, "nft"]) {
        return;
    }
    let (Some(ours), Some(theirs)) = (Netns::new(), Netns::new()) else { return };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/lines");
    let lines = std::fs::read_to_string(directory.join(tool.file).with_extension("txt")).unwrap();
    let known_file = directory.join(format!("{}-differences.txt", tool.name));
    let (mut count, mut found) = (0, BTreeMap::new());
    let mut sides =
        [Side::new(tool, &ours, crate::tool(tool.name)), Side::new(tool, &theirs, tool.name.into())];
    assert_eq!(sides[0].state, sides[1].state, "{}: the states to begin with", tool.name);
    assert!(sides[0].state.len() > 3, "{}: {:?}", tool.name, sides[0].state);
    for line in lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let line = line.trim_start_matches('@');
        let words = words(line);
        let [(our, our_state), (their, their_state)] = sides.each_mut().map(|side| side.run(&words));
        count += 1;
        let mut differs = Vec::new();
        if our.status != their.status {
            differs.push("status");
        }
        if steady(tool, &our.stdout) != steady(tool, &their.stdout) {
            differs.push("output");
        }
        if !says_it(&steady(tool, &our.stderr), &steady(tool, &their.stderr)) {
            differs.push("error");
        }
        if our_state != their_state {
            differs.push("state");
        }
        if !differs.is_empty() {
            let told = format!("ours {our:?}\n    tool {their:?}\n    {our_state:?}\n    {their_state:?}");
            found.insert(line.to_owned(), (differs.join(" "), told));
        }
    }
    println!("{}: {} of {count} lines alike", tool.name, count - found.len());
    if std::env::var_os("SLUICEGATE_WRITE").is_some() {
        let old = std::fs::read_to_string(&known_file).unwrap_or_default();
        let mut text: String = old.split_inclusive('\n').filter(|line| line.starts_with('#')).collect();
        for (line, (differs, _)) in &found {
            let _ = writeln!(text, "{differs}: {line}");
        }
        std::fs::write(known_file, text).unwrap();
        return;
    }
    let text = std::fs::read_to_string(known_file).unwrap();
    let known: BTreeMap<&str, &str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(": ").map(|(differs, line)| (line, differs)))
        .collect();
    let news =
        found.iter().filter(|(line, (differs, _))| known.get(line.as_str()) != Some(&differs.as_str()));
    let news: Vec<_> = news.map(|(line, (differs, told))| format!("{differs}: {line}\n    {told}")).collect();
    let gone: Vec<_> = known.keys().filter(|line| !found.contains_key(**line)).collect();
    assert!(
        news.is_empty() && gone.is_empty(),
        "{}: lines that differ otherwise than known:\n{}\nlines that do not differ any more: {gone:#?}",
        tool.name,
        news.join("\n")
    );
}

/// One of the two programs, with its namespace.
struct Side<'a> {
    tool: &'a Lines,
    space: &'a Netns,
    program: PathBuf,
    state: Vec<String>,
}

impl<'a> Side<'a> {
    fn new(tool: &'a Lines, space: &'a Netns, program: PathBuf) -> Self {
        let mut side = Self { tool, space, program, state: Vec::new() };
        side.state = side.space.run(|| side.made());
        side
    }

    /// Makes the state that each line begins with, and returns it.
    fn made(&self) -> Vec<String> {
        let _ = feed(&["sh", "-c", self.tool.setup], self.tool.input);
        self.dump()
    }

    fn dump(&self) -> Vec<String> {
        let output = try_sh(self.tool.dump);
        let mut lines = steady(self.tool, &String::from_utf8_lossy(&output.stdout));
        lines.sort();
        lines
    }

    /// Runs a line; returns what it did, and the state afterwards.
    fn run(&mut self, words: &[String]) -> (Done, Vec<String>) {
        let (done, after, made) = self.space.run(|| {
            let done = run_with(&self.program, words.iter().map(String::as_str), "");
            let after = self.dump();
            let made = if after == self.state { None } else { Some(self.made()) };
            (done, after, made)
        });
        if let Some(made) = made {
            assert_eq!(made, self.state, "{words:?} leaves something behind");
        }
        (done, after)
    }
}

/// Splits words as a shell does, as far as the lines have it.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut started, mut quoted) = (String::new(), false, false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => (quoted, started) = (!quoted, true),
            '\\' if quoted => word.extend(chars.next()),
            ' ' | '\t' if !quoted => {
                if started {
                    words.push(std::mem::take(&mut word));
                }
                started = false;
            }
            c => {
                word.push(c);
                started = true;
            }
        }
    }
    if started {
        words.push(word);
    }
    words
}

/// Returns whether we say what the tool says; we may add lines.
fn says_it(ours: &[String], theirs: &[String]) -> bool {
    ours.starts_with(theirs) && (ours.is_empty() || !theirs.is_empty())
}

/// Returns lines without what differs from one run to the next: times, seeds of hashes, sizes, and where these
/// decide it, the order.
fn steady(tool: &Lines, text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    if tool.file == "iptables" {
        return lines.filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    }
    let lines = lines.map(|line| without_values(line, &["initval", "timeout", "memory:"]));
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

/// Leaves out the numbers behind these words, but for 0.
fn without_values(line: &str, names: &[&str]) -> String {
    let mut before = "";
    let kept = line.split(' ').filter(|word| {
        let is_value = names.contains(&before) && *word != "0";
        before = word;
        !is_value
    });
    kept.collect::<Vec<_>>().join(" ")
}
