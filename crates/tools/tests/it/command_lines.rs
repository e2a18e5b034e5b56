//! Hundreds of command lines of each tool, run by ours and by the real one, each on the same rules in a
//! namespace of its own: exit status, output, errors, and what the kernel has afterwards.
//!
//! The lines are in `testdata/lines`, each with its standard input in the lines behind it that begin with `% `,
//! and the differences that are known in `TOOL-differences.txt` beside them, which says why they are. A line
//! that differs otherwise, or does not any more, fails the test; with `SLUICEGATE_WRITE` in the environment it
//! writes the list instead.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use testns::{Netns, feed, have};

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
    dump: &'static [&'static str],
}

const RULES: &str = "*filter\n:bar - [0:0]\n:foo - [0:0]\n[3:4] -A INPUT -s 192.0.2.1/32 -j ACCEPT\n\
    [5:6] -A INPUT -p tcp -m tcp --dport 22 -j foo\n[7:8] -A foo -m comment --comment \"a b\" -j RETURN\n\
    COMMIT\n*nat\n[0:0] -A PREROUTING -p tcp -m tcp --dport 1 -j ACCEPT\n[0:0] -A OUTPUT -s 192.0.2.2/32\n\
    COMMIT\n";
const RULES6: &str = "*filter\n:bar - [0:0]\n:foo - [0:0]\n[3:4] -A INPUT -s 2001:db8::1/128 -j ACCEPT\n\
    [5:6] -A INPUT -p tcp -m tcp --dport 22 -j foo\n\
    [0:0] -A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 128 -j ACCEPT\n\
    [7:8] -A foo -m comment --comment \"a b\" -j RETURN\nCOMMIT\n";
const SETS: &str = "create a hash:ip family inet\ncreate b hash:net,port timeout 100 counters comment\n\
    create c bitmap:port range 1-100\ncreate l list:set\nadd a 192.0.2.1\nadd a 192.0.2.2\n\
    add b 192.0.2.0/24,tcp:80 timeout 0 comment \"x y\"\nadd l a\n";
const RULESET: &str = "table inet f {\n\tset s {\n\t\ttype inet_service\n\t\telements = { 22, 80 }\n\t}\n\
    \tcounter k {\n\t\tpackets 1 bytes 2\n\t}\n\tchain c {\n\
    \t\ttype filter hook input priority filter + 5; policy accept;\n\
    \t\ttcp dport @s meta l4proto tcp ip saddr 127.0.0.1 counter packets 3 bytes 4 accept comment \"x\"\n\
    \t\tmeta skuid 0 ct state new meta mark 1 meta hour \"10:00\" drop\n\t}\n}\ntable ip o {\n}\n";
const FLOWS: &str = "-A -t 3000 -u SEEN_REPLY,ASSURED -s 192.0.2.1 -d 192.0.2.2 -p udp --sport 1 --dport 2 -m 5\n\
    -A -t 3000 -s 192.0.2.1 -d 192.0.2.3 -p tcp --sport 1 --dport 80 --state ESTABLISHED -g 192.0.2.9\n\
    -A -t 3000 -s 192.0.2.4 -d 192.0.2.3 -p icmp --icmp-type 8 --icmp-code 0 --icmp-id 7\n\
    -A -t 3000 -s 2001:db8::1 -d 2001:db8::2 -p udp --sport 1 --dport 2 -w 3\n";

const NFT_SETUP: &str = "nft flush ruleset; iptables-nft-restore -c";
const LEGACY_SETUP: &str = "for t in mangle raw security; do iptables-legacy -t $t -F; iptables-legacy -t $t -X; \
    for c in INPUT OUTPUT; do iptables-legacy -t $t -P $c ACCEPT; done; done; \
    for c in INPUT FORWARD OUTPUT; do iptables-legacy -P $c ACCEPT; done; iptables-legacy-restore -c";

const TOOLS: [Lines; 10] = [
    Lines {
        name: "iptables-nft",
        file: "iptables",
        setup: NFT_SETUP,
        input: RULES,
        dump: &["iptables-nft-save", "-c"],
    },
    Lines {
        name: "iptables-legacy",
        file: "iptables",
        setup: LEGACY_SETUP,
        input: RULES,
        dump: &["iptables-legacy-save", "-c"],
    },
    Lines {
        name: "ip6tables-nft",
        // What depends on the family is the same with both back ends.
        file: "ip6tables",
        setup: "nft flush ruleset; ip6tables-nft-restore -c",
        input: RULES6,
        dump: &["ip6tables-nft-save", "-c"],
    },
    Lines {
        name: "iptables-nft-restore",
        file: "iptables-restore",
        setup: NFT_SETUP,
        input: RULES,
        dump: &["iptables-nft-save", "-c"],
    },
    Lines {
        name: "iptables-legacy-restore",
        file: "iptables-restore",
        setup: LEGACY_SETUP,
        input: RULES,
        dump: &["iptables-legacy-save", "-c"],
    },
    Lines {
        name: "iptables-nft-save",
        file: "iptables-save",
        setup: NFT_SETUP,
        input: RULES,
        dump: &["nft", "list", "tables"],
    },
    Lines {
        name: "iptables-legacy-save",
        file: "iptables-save",
        setup: LEGACY_SETUP,
        input: RULES,
        dump: &["cat", "/proc/net/ip_tables_names"],
    },
    Lines {
        name: "ipset",
        file: "ipset",
        setup: "ipset flush; for i in 1 2; do for s in $(ipset list -n); do ipset destroy \"$s\"; done; done; \
            ipset destroy -x; ipset destroy 'd e'; ipset restore",
        input: SETS,
        dump: &["ipset", "save"],
    },
    Lines {
        name: "nft",
        file: "nft",
        setup: "nft flush ruleset; nft -f -",
        input: RULESET,
        dump: &["nft", "list", "ruleset"],
    },
    Lines {
        name: "conntrack",
        file: "conntrack",
        setup: "conntrack -F; conntrack -R -",
        input: FLOWS,
        dump: &["conntrack", "-L", "-o", "extended"],
    },
];

/// Compares one tool: each has its own test, so that they run side by side.
macro_rules! lines {
    ($($test:ident: $name:literal;)*) => {$(
        #[test]
        fn $test() {
            compare(TOOLS.iter().find(|tool| tool.name == $name).unwrap());
        }
    )*};
}

lines! {
    lines_of_iptables_nft_do_what_they_do_with_the_tool: "iptables-nft";
    lines_of_iptables_legacy_do_what_they_do_with_the_tool: "iptables-legacy";
    lines_of_ip6tables_nft_do_what_they_do_with_the_tool: "ip6tables-nft";
    lines_of_iptables_nft_restore_do_what_they_do_with_the_tool: "iptables-nft-restore";
    lines_of_iptables_legacy_restore_do_what_they_do_with_the_tool: "iptables-legacy-restore";
    lines_of_iptables_nft_save_do_what_they_do_with_the_tool: "iptables-nft-save";
    lines_of_iptables_legacy_save_do_what_they_do_with_the_tool: "iptables-legacy-save";
    lines_of_ipset_do_what_they_do_with_the_tool: "ipset";
    lines_of_nft_do_what_they_do_with_the_tool: "nft";
    lines_of_conntrack_do_what_they_do_with_the_tool: "conntrack";
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
    assert!(sides[0].state.len() > 1, "{}: {:?}", tool.name, sides[0].state);
    for (line, input) in with_input(&lines) {
        let words = words(line);
        let [our, their] = sides.each_ref().map(|side| side.run(&words, &input));
        // What both refuse changes nothing: if it does, the state behind the next line shows it.
        let refused = our.status != Some(0) && their.status != Some(0);
        let [our_state, their_state] = match refused {
            true => Default::default(),
            false => sides.each_mut().map(|side| side.after(line)),
        };
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
            let only = |of: &[String], other: &[String]| {
                of.iter().filter(|line| !other.contains(line)).cloned().collect::<Vec<_>>()
            };
            let mut told = format!("ours {our:?}\n    tool {their:?}");
            if our_state != their_state {
                let [our, their] = [only(&our_state, &their_state), only(&their_state, &our_state)];
                let _ = write!(told, "\n    state ours {our:?}\n    state tool {their:?}");
            }
            let ends = if input.is_empty() || input.ends_with('\n') { "" } else { "\\c" };
            let input = input.replace('\r', "\\r");
            let shown = [line].into_iter().chain(input.lines()).collect::<Vec<_>>().join(" % ") + ends;
            found.insert(shown, (differs.join(" "), told));
        }
    }
    assert!(
        sides.iter_mut().all(|side| side.after("the last line") == side.state),
        "something is left behind"
    );
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
        let output = feed(self.tool.dump, "");
        let mut lines = steady(self.tool, &String::from_utf8_lossy(&output.stdout));
        lines.sort();
        lines
    }

    /// Runs a line.
    fn run(&self, words: &[String], input: &str) -> Done {
        self.space.run(|| run_with(&self.program, words.iter().map(String::as_str), input))
    }

    /// Returns the state after a line, and makes that of the beginning again.
    fn after(&mut self, line: &str) -> Vec<String> {
        let (after, made) = self.space.run(|| {
            let after = self.dump();
            let made = if after == self.state { None } else { Some(self.made()) };
            (after, made)
        });
        if let Some(made) = made {
            assert_eq!(made, self.state, "{line} leaves something behind");
        }
        after
    }
}

/// Returns the lines of a file, each with its standard input, in which `\r` is a carriage return, and the last of
/// which has no end behind `\c`.
fn with_input(text: &str) -> Vec<(&str, String)> {
    let mut lines: Vec<(&str, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match (line.strip_prefix('%'), lines.last_mut()) {
            (Some(input), Some((_, inputs))) => {
                let input = input.strip_prefix(' ').unwrap_or(input);
                let (input, end) = input.strip_suffix("\\c").map_or((input, "\n"), |input| (input, ""));
                let _ = write!(inputs, "{}{end}", input.replace("\\r", "\r"));
            }
            _ => lines.push((line.trim_start_matches('@'), String::new())),
        }
    }
    lines
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

/// Returns lines without what differs from one run to the next: times, seeds of hashes, sizes, handles, and where
/// these decide it, the order.
fn steady(tool: &Lines, text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    match tool.file {
        "ipset" => {
            let mut lines: Vec<_> = lines.map(|line| with_numbers(line, rounded)).collect();
            lines.sort();
            lines
        }
        "nft" => lines.map(|line| with_numbers(line, without_handle)).collect(),
        "conntrack" => {
            let mut lines: Vec<_> =
                lines.map(|line| without_id(&crate::conntrack::still_line(line))).collect();
            lines.sort();
            lines
        }
        _ => lines.map(|line| line.split(" on ").next().unwrap_or(line).to_owned()).collect(),
    }
}

/// Returns a line with each word as `shown` gives it, which gets the word before it as well.
fn with_numbers(line: &str, shown: fn(&str, &str) -> Option<String>) -> String {
    let mut before = "";
    let words = line.split(' ').map(|word| {
        let new = shown(before, word).unwrap_or_else(|| word.to_owned());
        before = word;
        new
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Time runs: a time-out is compared as the next multiple of 20 s.
fn rounded(before: &str, word: &str) -> Option<String> {
    match before {
        "initval" | "memory:" => Some("N".to_owned()),
        "timeout" => Some((word.parse::<u64>().ok()?.div_ceil(20) * 20).to_string()),
        _ => None,
    }
}

/// Leaves out the number of a flow, which stands last or has an element of its own.
fn without_id(line: &str) -> String {
    let (before, after) = match (line.rsplit_once(" id="), line.split_once("<id>")) {
        (_, Some((before, after))) => (before, after.trim_start_matches(|c: char| c.is_ascii_digit())),
        (Some((before, number)), _) if number.bytes().all(|byte| byte.is_ascii_digit()) => (before, ""),
        _ => return line.to_owned(),
    };
    format!("{before}{after}")
}

fn without_handle(before: &str, word: &str) -> Option<String> {
    let number = word.trim_end_matches(['}', ',', ']']);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (matches!(before, "handle" | "\"handle\":" | "generation" | "process") && is_number)
        .then(|| word.replacen(number, "N", 1))
}
