//! The two outputs of a transaction, text and netlink, against nft itself.

use sluicegate_netlink::{Options, Protocol, Socket};
use sluicegate_nftables::Transaction;

use crate::cases;

/// Needs the flow tables of the kernel, which not every kernel is built with; so this runs in a guest.
pub(crate) const GUEST_ONLY: &str = "flowtable";

/// Loads a case as text by nft and by netlink, each in a namespace of its own, and compares the listings.
pub(crate) fn compare(case: &cases::Case) -> Result<(), String> {
    let (Some(by_text), Some(by_netlink)) = (testns::Netns::new(), testns::Netns::new()) else {
        return Ok(());
    };
    let script = case.transaction.to_string();
    let output = by_text.run(|| testns::feed(&["nft", "-f", "-"], &script));
    if !output.status.success() {
        return Err(format!("{}: nft: {}\n{script}", case.name, String::from_utf8_lossy(&output.stderr)));
    }
    by_netlink
        .run(|| apply(&case.transaction))
        .map_err(|error| format!("{}: {error}\n{script}", case.name))?;
    for list in ["nft list ruleset", "nft --debug=netlink list ruleset"] {
        let (text, netlink) = (by_text.run(|| listing(list)), by_netlink.run(|| listing(list)));
        if text != netlink {
            return Err(format!("{}: {list}:\n{}", case.name, difference(&text, &netlink)));
        }
    }
    Ok(())
}

pub(crate) fn apply(transaction: &Transaction) -> Result<(), String> {
    let mut socket = Socket::open(Protocol::NETFILTER, &Options::default()).map_err(|e| e.to_string())?;
    transaction.apply(&mut socket).map(drop).map_err(|e| e.to_string())
}

/// A ruleset as nft lists it, without what differs from load to load: handles, the order of a hash.
pub(crate) fn listing(command: &str) -> Vec<String> {
    let text = testns::sh(command);
    let mut lines: Vec<_> = text.lines().map(without_handles).collect();
    if command.contains("debug") {
        lines.retain(|line| !line.trim_start().starts_with("element"));
    } else {
        lines = lines.iter().map(|line| sorted_elements(line)).collect();
    }
    lines
}

/// A listing with the elements of each set in one line, sorted, and no empty lines.
pub(crate) fn normal(listing: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in listing.lines() {
        match lines.last_mut() {
            Some(last) if line.starts_with("\t\t\t") => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.iter().map(|line| sorted_elements(line)).filter(|line| !line.is_empty()).collect()
}

/// `ip t c 5 4`: family, table, chain, handle, position.
fn without_handles(line: &str) -> String {
    if line.starts_with(char::is_whitespace) {
        return line.to_owned();
    }
    line.split(' ').filter(|word| word.parse::<u64>().is_err()).collect::<Vec<_>>().join(" ")
}

/// The elements of a set come in the order of its hash.
fn sorted_elements(line: &str) -> String {
    let mut words: Vec<_> =
        line.split(|c: char| c.is_whitespace() || c == ',').filter(|w| !w.is_empty()).collect();
    if let Some(at) = words.iter().position(|word| *word == "expires") {
        // How much time is left differs from load to load.
        words.drain(at..at + 2);
    }
    if line.contains("elements = {") || line.starts_with("\t\t\t") {
        words.sort_unstable();
    }
    words.join(" ")
}

pub(crate) fn difference(text: &[String], netlink: &[String]) -> String {
    let only = |a: &[String], b: &[String], mark: char| -> Vec<String> {
        a.iter().filter(|line| !b.contains(line)).map(|line| format!("{mark} {line}")).collect()
    };
    let mut lines = only(text, netlink, '<');
    lines.extend(only(netlink, text, '>'));
    if lines.is_empty() {
        lines =
            text.iter().zip(netlink).filter(|(a, b)| a != b).map(|(a, b)| format!("< {a}\n> {b}")).collect();
    }
    lines.join("\n")
}
