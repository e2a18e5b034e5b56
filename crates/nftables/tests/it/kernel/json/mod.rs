//! What we print as JSON, against `nft -j list ruleset`.

mod monitor;
mod reading;

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;
use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::json::{self, ruleset};
use sluicegate_nftables::{Family, ListOptions, TableContent, read};

use crate::kernel::parity::PROTOCOLS;
use crate::kernel::{cases, corpus};

#[test]
fn a_ruleset_is_listed_as_nft_lists_it_in_json() {
    if !testns::have(&["nft"]) {
        return;
    }
    let mut failed = Vec::new();
    for case in cases::all() {
        let Some(namespace) = testns::Netns::new() else { return };
        let script = case.transaction.to_string();
        failed.extend(namespace.run(|| {
            let loaded = testns::feed(&["nft", "-f", "-"], &script).status.success();
            // The parity test says why not.
            loaded.then(|| difference(case.name)).flatten()
        }));
    }
    for file in &corpus::FILES {
        failed.extend(file.loaded_again().and_then(|namespace| namespace.run(|| difference(file.name))));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Without state, as `nft -s`.
#[test]
fn counts_are_left_out_where_they_are_not_asked_for() {
    if !testns::have(&["nft"]) {
        return;
    }
    let Some(file) = corpus::FILES.iter().find(|file| file.name == "statements") else { return };
    let Some(namespace) = file.loaded_again() else { return };
    namespace.run(|| {
        let nft: Value = serde_json::from_str(&testns::sh("nft -s -j list ruleset")).expect("JSON");
        let mut options = machine();
        options.state = false;
        let ours = Value::from(ruleset(&content(), &options));
        let differ = nft["nftables"]
            .as_array()
            .into_iter()
            .flatten()
            .zip(ours["nftables"].as_array().into_iter().flatten());
        let differ: Vec<_> = differ.filter(|(nft, ours)| nft != ours && !is_more_exact(nft, ours)).collect();
        // nft 1.0.6 says what is used of a quota all the same; later versions do not.
        assert!(differ.iter().all(|(nft, _)| nft.to_string().contains("\"used\"")), "{differ:#?}");
    });
}

/// What of the ruleset of this namespace we print otherwise than nft.
fn difference(name: &str) -> Option<String> {
    let text = testns::sh("TZ=UTC nft -j list ruleset 2>/dev/null");
    let (content, options) = (content(), machine());
    let (nft, ours) = (Listed::by_nft(&text), Listed::by_us(&ruleset(&content, &options)));
    // Byte for byte, and so in the order of the members.
    let differs = |nft: &str, ours: &str| nft != ours && without_time_left(nft) != without_time_left(ours);
    let differing = nft.iter().zip(&ours).filter(|(nft, ours)| differs(&nft.text, &ours.text));
    let unknown = differing.filter(|(nft, ours)| !is_known(name, nft, ours, &content, &options));
    let mut lines: Vec<String> =
        unknown.map(|(nft, ours)| format!("< {}\n> {}", nft.text, ours.text)).collect();
    if nft.len() != ours.len() {
        lines.push(format!("{} objects, not {}", ours.len(), nft.len()));
    }
    (!lines.is_empty()).then(|| format!("{name}:\n{}", lines.join("\n")))
}

/// Elements that expire have less time left when the second of two programs looks.
fn without_time_left(line: &str) -> String {
    let mut parts = line.split("\"expires\": ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += "\"expires\": ";
        text += part.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    text
}

/// An object of a listing.
struct Listed {
    /// As it is printed.
    text: String,
    value: Value,
}

impl Listed {
    /// The objects of what nft printed.
    fn by_nft(text: &str) -> Vec<Self> {
        let document: HashMap<&str, Vec<&RawValue>> = serde_json::from_str(text).expect("JSON");
        let objects = document.get("nftables").expect("a list of objects");
        let listed = |of: &&RawValue| Self {
            text: of.get().to_owned(),
            value: serde_json::from_str(of.get()).expect("JSON"),
        };
        objects.iter().map(listed).collect()
    }

    /// The objects of what we print.
    fn by_us(document: &json::Value) -> Vec<Self> {
        let objects = document.get("nftables").and_then(json::Value::as_array).expect("a list of objects");
        objects.iter().map(|of| Self { text: of.to_string(), value: of.clone().into() }).collect()
    }
}

/// Whether a rule says a protocol that nft leaves out: loaded again, that matches more.
fn is_more_exact(nft: &Value, ours: &Value) -> bool {
    let statements = |of: &Value| {
        let (_, rule) = of.as_object()?.iter().find(|(key, _)| matches!(key.as_str(), "rule" | "add"))?;
        let rule = rule.get("rule").unwrap_or(rule);
        rule["expr"].as_array().cloned()
    };
    let (Some(nft), Some(ours)) = (statements(nft), statements(ours)) else { return false };
    let is_protocol = |statement: &Value| {
        let left = &statement["match"]["left"];
        let of = |kind: &str| left[kind]["key"].as_str().map(|key| format!("{kind} {key}"));
        let payload = left["payload"]["protocol"].as_str().zip(left["payload"]["field"].as_str());
        let payload = payload.map(|(protocol, field)| format!("{protocol} {field}"));
        [of("meta"), of("ct"), payload].into_iter().flatten().any(|key| PROTOCOLS.contains(&key.as_str()))
    };
    let (mut nft, mut is_more) = (nft.iter().peekable(), false);
    for statement in &ours {
        if nft.peek() == Some(&statement) {
            nft.next();
        } else if is_protocol(statement) {
            is_more = true;
        } else {
            return false;
        }
    }
    is_more && nft.next().is_none()
}

/// What nft 1.0.6 prints wrongly, or has no JSON for.
fn is_known(
    name: &str,
    nft: &Listed,
    ours: &Listed,
    content: &[TableContent],
    options: &ListOptions,
) -> bool {
    let (nft_text, our_text) = (&nft.text, &ours.text);
    let (nft, ours) = (&nft.value, &ours.value);
    if is_more_exact(nft, ours) {
        return true;
    }
    let mut statements = nft["rule"]["expr"].as_array().into_iter().flatten();
    // It prints text for `add @map { ... : ... }`, in which it does not know the types of the map.
    if let Some(text) = statements.find_map(Value::as_str) {
        let ours = ours["rule"]["expr"].as_array().into_iter().flatten().find_map(Value::as_str);
        let update = |text: &str| ["add @", "update @", "delete @"].iter().any(|word| text.starts_with(word));
        return update(text) && ours.is_some_and(update);
    }
    // For the flags of a table it prints names of families.
    if let (Some(nft), Some(ours)) = (nft.get("table"), ours.get("table")) {
        return nft.get("flags").is_some() && ours.get("flags").is_some() && nft["name"] == ours["name"];
    }
    // It tells the two ways apart in which a table of one family may ask for an address of a connection; its
    // text does not.
    let keys = |ip: &str| {
        let of = |text: String, key: &str| {
            text.replace(&format!(r#""key": "{key}", "dir""#), &format!(r#""key": "{ip} {key}", "dir""#))
        };
        of(of(nft_text.clone(), "saddr"), "daddr")
    };
    if [keys("ip"), keys("ip6")].contains(our_text) {
        return true;
    }
    // It prints the same wrong things as in its text.
    let handle = ours["rule"]["handle"].as_u64();
    let in_table = |content: &&TableContent| {
        let id = &content.table.id;
        ours["rule"]["table"] == id.name.as_str() && ours["rule"]["family"] == id.family.to_string()
    };
    let rules = content.iter().filter(in_table).flat_map(|table| &table.chains).flat_map(|(_, rules)| rules);
    let rule = rules
        .filter(|rule| rule.handle == handle && handle.is_some())
        .map(|rule| rule.body_with(options).to_string())
        .next();
    rule.is_some_and(|rule| {
        corpus::OTHERWISE.iter().any(|known| (known.file, known.ours) == (name, rule.as_str()))
    })
}

fn content() -> Vec<TableContent> {
    read::ruleset(&mut open(NetlinkFamily::NETFILTER), Family::UNSPEC).expect("a ruleset").content()
}

fn machine() -> ListOptions {
    let mut options = read::list_options(&mut open(NetlinkFamily::ROUTE)).expect("names");
    options.state = true;
    options
}

fn open(family: NetlinkFamily) -> Socket {
    Socket::open(family, &Options::default()).expect("a socket")
}
