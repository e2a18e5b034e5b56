//! Commits in JSON, against `nft -j monitor`.

use serde_json::Value;
use sluicegate_netlink::{NetlinkFamily, Socket};
use sluicegate_nftables::monitor::{Follower, GROUP, Monitor};
use sluicegate_nftables::{Family, Flush, ListOptions, Table, TableId, Transaction, read};

use super::{is_more_exact, machine, open};
use crate::kernel::cases::{self, Case, name};
use crate::kernel::nft_monitor::NftMonitor;

#[test]
fn commits_are_reported_in_json_as_nft_monitor_reports_them() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        let mut watch = Watch::start();
        let cases = cases::all();
        let compared = cases.iter().filter(|case| OTHERWISE.iter().all(|(name, _)| *name != case.name));
        let failed: Vec<String> = compared.filter_map(|case| watch.compare(case).err()).collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    });
}

/// A copy that follows, beside the real tool.
struct Watch {
    socket: Socket,
    monitor: Monitor<Socket>,
    follower: Follower,
    nft: NftMonitor,
}

impl Watch {
    fn start() -> Self {
        let mut listener = open(NetlinkFamily::NETFILTER);
        listener.join(GROUP).expect("the group can be joined");
        let mut socket = open(NetlinkFamily::NETFILTER);
        // It reads the ruleset once it has joined, and ends where that changes meanwhile.
        let nft = (0..20).find_map(|_| {
            let mut nft = NftMonitor::start_with(&["-j"], &[]);
            mark(&mut socket);
            until_mark(&mut nft).map(|_| nft)
        });
        let follower = Follower::read(&mut socket, Family::UNSPEC).expect("a ruleset");
        let nft = nft.expect("nft monitor starts");
        Self { socket, monitor: Monitor::with_transport(listener), follower, nft }
    }

    /// What a case does, and that all of it goes.
    fn compare(&mut self, case: &Case) -> Result<(), String> {
        // What this kernel does not take is not reported.
        let _ = case.transaction.apply(&mut self.socket);
        let options = machine();
        flush().apply(&mut self.socket).expect("it can be applied");
        mark(&mut self.socket);
        let ours = self.lines(&options);
        let Some(theirs) = until_mark(&mut self.nft) else {
            *self = Self::start();
            return Err(format!("{}: nft ended", case.name));
        };
        let (mut theirs, mut ours) = (theirs, ours);
        if theirs.len() == ours.len() {
            let value = |line: &str| serde_json::from_str::<Value>(line).unwrap_or_default();
            let is_exact = |(nft, ours): (&String, &String)| is_more_exact(&value(nft), &value(ours));
            let exact: Vec<bool> = theirs.iter().zip(&ours).map(is_exact).collect();
            for lines in [&mut theirs, &mut ours] {
                let mut exact = exact.iter();
                lines.retain(|_| exact.next() == Some(&false));
            }
        }
        // nft prints the elements of a commit, and of a set without a name, in the order in which they came.
        let sorted = |lines: &[String]| {
            let mut lines: Vec<String> = lines.iter().filter_map(|line| comparable(line)).collect();
            lines.sort_unstable();
            lines
        };
        let (theirs, ours) = (sorted(&theirs), sorted(&ours));
        if ours == theirs {
            return Ok(());
        }
        let difference = crate::kernel::parity::difference(&theirs, &ours);
        Err(format!("{}:\n{difference}", case.name))
    }

    /// What we print of all commits that there were.
    fn lines(&mut self, options: &ListOptions) -> Vec<String> {
        let last = read::generation(&mut self.socket).expect("a generation").id;
        let mut lines = Vec::new();
        while self.follower.generation() != last {
            let events = self.monitor.events().expect("events");
            assert!(!events.is_empty(), "a commit is notified");
            for event in events {
                if let Some(commit) = self.follower.apply(event).expect("the copy follows") {
                    lines.extend(commit.to_json(options).iter().map(ToString::to_string));
                }
            }
        }
        lines
    }
}

const MARK: &str = "end_of_case";

/// Commits what shows in the output that there is no more of what was before.
fn mark(socket: &mut Socket) {
    let table = TableId::new(Family::ARP, name(MARK));
    for transaction in [Transaction::new().add(Table::new(table.clone())), Transaction::new().delete(table)] {
        transaction.apply(socket).expect("it can be applied");
    }
}

fn until_mark(nft: &mut NftMonitor) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        let line = nft.line()?;
        let is_mark = line.starts_with("{\"delete\": {\"table\"") && line.contains(MARK);
        lines.push(line);
        if is_mark {
            return Some(lines);
        }
    }
}

fn flush() -> Transaction {
    let mut transaction = Transaction::new();
    transaction.flush(Flush::Ruleset(Family::UNSPEC));
    transaction
}

/// A line without what nft 1.0.6 prints wrongly: of deleted rules it leaves out what looks something up in a
/// set, it does not report flowtables, and prints names of families for the flags of a table.
fn comparable(line: &str) -> Option<String> {
    let Ok(mut value) = serde_json::from_str::<Value>(line) else {
        // The flags of a table go beyond the end of its list of names.
        return Some(line.split(", \"flags\"").next().unwrap_or_default().to_owned());
    };
    if value.pointer("/add/flowtable").or_else(|| value.pointer("/delete/flowtable")).is_some() {
        return None;
    }
    if let Some(rule) = value.pointer_mut("/delete/rule").and_then(Value::as_object_mut) {
        rule.remove("expr");
        return Some(value.to_string());
    }
    if value.pointer("/add/table/flags").is_some() {
        return Some(line.split(", \"flags\"").next().unwrap_or_default().to_owned());
    }
    if line.contains("\"set\": [") && value.pointer("/add/element").is_none() {
        sort_sets(&mut value);
        return Some(value.to_string());
    }
    Some(super::without_time_left(line))
}

/// Sorts the members of sets without names.
fn sort_sets(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(sort_sets),
        Value::Object(members) => {
            if let Some(Value::Array(list)) = members.get_mut("set") {
                list.sort_by_key(ToString::to_string);
            }
            members.values_mut().for_each(sort_sets);
        }
        _ => {}
    }
}

/// Cases of which nft 1.0.6 says something else, and why.
const OTHERWISE: &[(&str, &str)] = &[
    ("objects", "it prints memory that is not its own behind a range in a concatenation"),
    ("conntrack objects", "it crashes"),
    ("chains of rules", "it crashes"),
    ("names of the machine, ip", "it prints the ends of intervals without a name as they are in the kernel"),
];
