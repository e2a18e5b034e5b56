//! The two outputs of a transaction, text and netlink, against nft itself.

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::Transaction;

use crate::kernel::cases;

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
    let (text, netlink) = (by_text.run(|| listing(LIST)), by_netlink.run(|| listing(LIST)));
    if text == netlink { Ok(()) } else { Err(format!("{}:\n{}", case.name, difference(&text, &netlink))) }
}

pub(crate) fn apply(transaction: &Transaction) -> Result<(), String> {
    let mut socket =
        Socket::open(NetlinkFamily::NETFILTER, &Options::default()).map_err(|e| e.to_string())?;
    transaction.apply(&mut socket).map(drop).map_err(|e| e.to_string())
}

/// Lists the expressions of each rule, and then the ruleset as a script.
pub(crate) const LIST: &str = "TZ=UTC nft --debug=netlink list ruleset";

/// A ruleset as nft lists it, without what differs from load to load: handles, the order of a hash.
pub(crate) fn listing(command: &str) -> Vec<String> {
    let text = testns::sh(command);
    // Among the expressions, elements stand in the order of their hash; in the script they are sorted.
    let lines = text.lines().filter(|line| !line.starts_with("\telement "));
    let lines = lines.map(|line| without_numbers(&without_handles(line)));
    lines.map(|line| if line.starts_with('\t') { sorted_elements(&line) } else { line }).collect()
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

/// The kernel numbers the chains of rules (`__chain7`) for all namespaces.
fn without_numbers(line: &str) -> String {
    let mut parts = line.split("__chain");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "__chain" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
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

/// Whether a line says a protocol that nft leaves out of its listing: loaded again, that matches more. `ip6 nexthdr
/// tcp tcp dport 22` is not `tcp dport 22`, which finds the port behind extension headers as well.
pub(crate) fn is_more_exact(nft: &str, ours: &str) -> bool {
    fn is_said(nft: &[&str], ours: &[&str]) -> bool {
        let is_same = match (nft, ours) {
            ([], []) => return true,
            ([first, nft @ ..], [word, ours @ ..]) => first == word && is_said(nft, ours),
            _ => false,
        };
        let is_protocol = |a: &str, b: &str| PROTOCOLS.iter().any(|of| of.split_once(' ') == Some((a, b)));
        is_same || matches!(ours, [a, b, _, ours @ ..] if is_protocol(a, b) && is_said(nft, ours))
    }
    let (nft, ours): (Vec<_>, Vec<_>) = (nft.split_whitespace().collect(), ours.split_whitespace().collect());
    nft != ours && is_said(&nft, &ours)
}

/// The keys that say a protocol.
pub(crate) const PROTOCOLS: [&str; 10] = [
    "meta nfproto",
    "meta protocol",
    "meta l4proto",
    "meta iiftype",
    "ether type",
    "vlan type",
    "ip protocol",
    "ip6 nexthdr",
    "ct l3proto",
    "ct protocol",
];

/// Leaves out the lines that are more exact than nft's.
pub(crate) fn but_for_protocols(nft: &mut Vec<String>, ours: &mut Vec<String>) {
    if nft.len() == ours.len() {
        let mut exact =
            nft.iter().zip(&*ours).map(|(nft, ours)| is_more_exact(nft, ours)).collect::<Vec<_>>();
        let mut of_nft = exact.clone().into_iter();
        nft.retain(|_| of_nft.next() == Some(false));
        ours.retain(|_| !exact.remove(0));
    }
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
