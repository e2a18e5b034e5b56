//! The tools `iptables-restore` and `iptables-save` of one family and back end, and the corpus of
//! sluicegate-iptables-save as input for them: what the tests of both back ends share.
#![allow(dead_code, reason = "every test program has this module, and some need less of it")]

use std::collections::BTreeMap;

use sluicegate_iptables_save::Family;
use sluicegate_xtables::BackEnd;
use testns::{feed, have, sh};

/// The tools of a family and a back end.
#[derive(Clone, Copy)]
pub(crate) struct Tool {
    pub(crate) family: Family,
    pub(crate) back_end: BackEnd,
}

/// A rule of the corpus.
pub(crate) struct Case {
    pub(crate) table: String,
    pub(crate) words: String,
}

impl Tool {
    /// Returns the tools of both families.
    pub(crate) const fn of(back_end: BackEnd) -> [Self; 2] {
        [Self { family: Family::Ipv4, back_end }, Self { family: Family::Ipv6, back_end }]
    }

    pub(crate) fn name(self, what: &str) -> String {
        let family = if self.family == Family::Ipv4 { "iptables" } else { "ip6tables" };
        format!("{family}-{}{what}", self.back_end)
    }

    pub(crate) fn here(self) -> bool {
        have(&[&self.name("-restore"), &self.name("-save"), "ipset"])
            && (self.back_end == BackEnd::Legacy || have(&["nft"]))
    }

    /// Returns the rules of the corpus, for one namespace or two that are there at the same time.
    pub(crate) fn corpus(self) -> Vec<Case> {
        let text = match self.family {
            Family::Ipv4 => include_str!("../../../../iptables-save/testdata/rules.v4"),
            Family::Ipv6 => include_str!("../../../../iptables-save/testdata/rules.v6"),
        };
        let text = testns::own_timers(text);
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let cases = lines.map(|line| {
            let (place, words) = line.split_once(':').expect("TABLE CHAIN: WORDS");
            let (table, _) = place.split_once(' ').expect("TABLE CHAIN");
            Case { table: table.to_owned(), words: words.trim_start_matches(' ').to_owned() }
        });
        // iptables-nft itself cannot add the target QUEUE.
        let queue = |words: &str| self.back_end == BackEnd::Nft && words.contains("-j QUEUE");
        cases.filter(|case| !queue(&case.words)).collect()
    }

    /// Creates the sets that the corpus refers to, in the namespace of this thread.
    pub(crate) fn sets(self) {
        let family = if self.family == Family::Ipv4 { "inet" } else { "inet6" };
        let _ = sh(&format!(
            "ipset create s1 hash:ip family {family} counters timeout 100; ipset create s2 hash:ip family {family}; \
             ipset create s3 hash:ip family {family} skbinfo"
        ));
    }

    pub(crate) fn restore(self, input: &str, arguments: &[&str]) {
        let name = self.name("-restore");
        // All network namespaces share the lock of the legacy tools; the others ignore the option.
        let command = [&[name.as_str(), "--wait=20"][..], arguments].concat();
        let mut output = feed(&command, input);
        // Now and then ip6tables-legacy-restore 1.8.9 is killed (SIGSEGV in libip6tc) while it looks for a rule,
        // before it has changed anything.
        if self.back_end == BackEnd::Legacy && output.status.code().is_none() {
            output = feed(&command, input);
        }
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {}\n{error}\n{input:.2000}", output.status);
    }

    /// Returns what is saved, without comments, which have the date.
    pub(crate) fn save(self, arguments: &str) -> String {
        let text = sh(&format!("{} {arguments}", self.name("-save")));
        text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
    }
}

/// Pins a program that matches every packet, for this thread and what it starts, and returns its path; `None`
/// where that is not permitted. The library itself makes no call of bpf(2).
pub(crate) fn pinned_program() -> Option<&'static str> {
    if !have(&["python3"]) {
        return None;
    }
    let pinned = testns::own_mounts()
        && testns::try_sh(&format!("mount -t bpf bpf /sys/fs/bpf && python3 -c '{PIN}' /sys/fs/bpf/program"))
            .status
            .success();
    if !pinned {
        testns::lacks("pinned programs of bpf(2)");
    }
    pinned.then_some("/sys/fs/bpf/program")
}

/// `BPF_PROG_LOAD` of `r0 = 1; exit` as a socket filter, and `BPF_OBJ_PIN`.
const PIN: &str = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
def bpf(command, attributes):
    result = libc.syscall(number, command, ctypes.create_string_buffer(attributes, 128), 128)
    if result < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return result
code = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xb7, 0, 0, 1, 0x95, 0, 0, 0))
licence = ctypes.create_string_buffer(b"GPL")
program = bpf(5, struct.pack("<IIQQ", 1, 2, ctypes.addressof(code), ctypes.addressof(licence)))
path = ctypes.create_string_buffer(sys.argv[1].encode())
bpf(6, struct.pack("<QI", ctypes.addressof(path), program))
"#;

/// Returns an input with every rule in a chain of its own.
pub(crate) fn each_in_its_chain(cases: &[Case]) -> String {
    each(cases, |chain, words| format!("-A {chain} {words}\n"))
}

fn each(cases: &[Case], line: impl Fn(&str, &str) -> String) -> String {
    let mut tables: BTreeMap<&str, (String, String)> = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        let (chains, rules) = tables
            .entry(&case.table)
            .or_insert_with(|| (":T - [0:0]\n:U - [0:0]\n".to_owned(), String::new()));
        let chain = format!("R{number:04}");
        chains.push_str(&format!(":{chain} - [0:0]\n"));
        rules.push_str(&line(&chain, &case.words));
    }
    tables.iter().map(|(table, (chains, rules))| format!("*{table}\n{chains}{rules}COMMIT\n")).collect()
}

/// Returns input that changes the chains of `each_in_its_chain`, which are there.
pub(crate) fn for_each(cases: &[Case], command: &str) -> String {
    let text = each(cases, |chain, words| format!("{command} {chain} {words}\n"));
    text.lines().filter(|line| !line.starts_with(':')).map(|line| format!("{line}\n")).collect()
}

/// What the tool saves of these is another rule; the kernel has what is listed here.
const MENDED: [&str; 5] = [
    "! --espspi 0:4294967295",
    "! --ahspi 0:4294967295",
    "! --fragid 0:4294967295",
    "! --rt-segsleft 0:4294967295",
    "! --mh-type 0:255",
];

/// Compares line by line, and says which rules differ.
pub(crate) fn assert_same(ours: &str, theirs: &str, what: &str) {
    let different: Vec<_> = ours
        .lines()
        .zip(theirs.lines())
        .filter(|(a, b)| a != b && !MENDED.iter().any(|mended| a.contains(mended)))
        .map(|(a, b)| format!("  {a}\n  {b}\n"))
        .collect();
    let shown: String = different.iter().take(40).map(String::as_str).collect();
    assert!(different.is_empty(), "{what}: {} lines differ:\n{shown}", different.len());
    assert_eq!(ours.lines().count(), theirs.lines().count(), "{what}");
}

/// Numbers that are the same in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    pub(crate) fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

/// As many histories as `SLUICEGATE_HISTORIES` says, or a few.
pub(crate) fn histories() -> usize {
    std::env::var("SLUICEGATE_HISTORIES").ok().and_then(|count| count.parse().ok()).unwrap_or(25)
}
