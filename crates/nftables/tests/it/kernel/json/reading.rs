//! JSON that nft printed, and our own, read again.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sluicegate_nftables::json::ruleset;
use sluicegate_nftables::lang::parse::ParseOptions;
use sluicegate_nftables::{ListOptions, Object, Operation, Set, SetId, TableContent, Transaction};

use super::{Listed, content, is_known, machine};
use crate::kernel::parity::{apply, but_for_protocols, normal};
use crate::kernel::{cases, corpus};

/// What is printed as commands is read as what it was.
#[test]
fn commands_are_read_as_what_was_printed() {
    let transactions =
        cases::all().into_iter().chain(cases::newer()).map(|case| (case.name, case.transaction));
    let failed: Vec<String> =
        transactions.filter_map(|(name, transaction)| differs_when_read(name, &transaction)).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Read otherwise than printed, and the same to the kernel.
const OTHERWISE: &[&str] = &[
    // A number where an address belongs is that address.
    "add rule ip t c meta mark set ip saddr & 0x000000ff",
];

/// The operations that are read otherwise than they were printed.
fn differs_when_read(name: &str, transaction: &Transaction) -> Option<String> {
    let json = transaction.to_json();
    let find = |id: &SetId| set_of(transaction, id);
    let mut options = ParseOptions::default();
    options.sets = Some(&find);
    let read = match Transaction::from_json_with(&json.to_string(), &options) {
        Ok(read) => read,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    let pairs = transaction.operations().iter().zip(read.operations());
    let differ: Vec<String> = pairs
        // Where nothing but a width is known, an address is a number, and a wide number bytes.
        .filter(|(a, b)| {
            a != b && a.to_string() != b.to_string() && !OTHERWISE.contains(&a.to_string().as_str())
        })
        .map(|(a, b)| format!("{name}: {a}\n  {b}\n  {}", a.to_json()))
        .collect();
    let same = transaction.operations().len() == read.operations().len();
    (!differ.is_empty() || !same).then(|| differ.join("\n"))
}

fn set_of(transaction: &Transaction, id: &SetId) -> Option<Set> {
    transaction.operations().iter().find_map(|operation| match operation {
        Operation::Add(Object::Set(set)) if set.id == *id => Some(Set::clone(set)),
        _ => None,
    })
}

/// What nft lists as JSON, sent by us elsewhere, is there what it was here.
///
/// Of tables, chains, sets and flowtables nft 1.0.6 leaves out comments, devices, the flags `dynamic` and
/// `counter`, and of which expressions their types are: there our own words stand in, with the elements that
/// nft lists.
#[test]
fn a_listing_of_nft_is_read_and_makes_the_same_ruleset() {
    if !testns::have(&["nft"]) {
        return;
    }
    let mut failed = Vec::new();
    for case in cases::all() {
        let (Some(first), Some(second)) = (testns::Netns::new(), testns::Netns::new()) else { return };
        let loaded = first.run(|| testns::feed(&["nft", "-f", "-"], &case.transaction.to_string()));
        if loaded.status.success() {
            failed.extend(differs_elsewhere(case.name, &first, &second));
        }
    }
    for file in &corpus::FILES {
        let (Some(first), Some(second)) = (file.loaded_again(), file.namespace()) else { continue };
        failed.extend(differs_elsewhere(file.name, &first, &second));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn differs_elsewhere(name: &str, first: &testns::Netns, second: &testns::Netns) -> Option<String> {
    let (json, text, content, names) = first.run(|| {
        let json = testns::sh("TZ=UTC nft -j list ruleset 2>/dev/null");
        (json, listing(), content(), machine())
    });
    let json = json!({"nftables": whole(name, &json, &content, &names)});
    let transaction = match Transaction::from_json_with(&json.to_string(), &ParseOptions::from(&names)) {
        Ok(transaction) => transaction,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    if let Err(error) = second.run(|| apply(&transaction)) {
        return Some(format!("{name}: {error}"));
    }
    let (mut here, mut there) = (normal(&text), normal(&second.run(listing)));
    // What nft says of these rules is not what they do, and becomes a rule that does what it says.
    if here.len() == there.len() {
        let mut marked = here.iter().map(|line| line.contains("unknown expressions")).collect::<Vec<_>>();
        let mut of_here = marked.clone().into_iter();
        here.retain(|_| of_here.next() == Some(false));
        there.retain(|_| !marked.remove(0));
    }
    but_for_protocols(&mut there, &mut here);
    (here != there).then(|| format!("{name}:\n{}", crate::kernel::parity::difference(&here, &there)))
}

/// As we list it: of some rules nft 1.0.6 lists what they are not.
fn listing() -> String {
    let options = machine();
    content().iter().map(|table| table.display(&options).to_string()).collect()
}

/// The objects of a listing, with our own words where nft 1.0.6 does not say all.
fn whole(name: &str, nft: &str, content: &[TableContent], options: &ListOptions) -> Vec<Value> {
    let (nft, ours) = (Listed::by_nft(nft), Listed::by_us(&ruleset(content, options)));
    let mut said: BTreeMap<String, Value> = BTreeMap::new();
    for operation in content.iter().flat_map(objects) {
        let command = Value::from(operation.to_json());
        said.insert(place(&command["add"]), command["add"].clone());
    }
    // nft 1.0.6 has no milliseconds.
    let rules = content.iter().flat_map(|table| &table.chains).flat_map(|(_, rules)| rules);
    for rule in rules.filter(|rule| rule.body().to_string().contains("ms }")) {
        let command = Value::from(Operation::Add(rule.clone().into()).to_json());
        let handle = rule.handle.unwrap_or_default();
        said.insert(format!("rule {} {handle}", rule.chain), command["add"].clone());
    }
    nft.iter()
        .zip(&ours)
        .skip(1)
        .map(|(nft, ours)| match said.get(&place(&nft.value)) {
            Some(said) => {
                let mut said = said.clone();
                let kinds = ["set", "map"].into_iter();
                for kind in kinds.filter(|kind| !nft.value[kind]["elem"].is_null()) {
                    said[kind]["elem"] = nft.value[kind]["elem"].clone();
                }
                said
            }
            // What has no words nft has words for, which say something else.
            None if ours.text.contains("\"raw\": ") && !nft.text.contains("\"raw\": ") => nft.value.clone(),
            None if nft.text != ours.text && is_known(name, nft, ours, content, options) => {
                ours.value.clone()
            }
            None => nft.value.clone(),
        })
        .collect()
}

/// Tables, chains, sets and flowtables.
fn objects(table: &TableContent) -> Vec<Operation> {
    let mut transaction = Transaction::new();
    transaction.add(table.table.clone());
    for (chain, _) in &table.chains {
        transaction.add(chain.clone());
    }
    for (set, _) in &table.sets {
        transaction.add(set.clone());
    }
    for flowtable in &table.flowtables {
        transaction.add(flowtable.clone());
    }
    transaction.operations().to_vec()
}

/// What names an object.
fn place(object: &Value) -> String {
    let Some((kind, of)) = object.as_object().and_then(|members| members.iter().next()) else {
        return String::new();
    };
    let text = |name: &str| of[name].as_str().unwrap_or_default().to_owned();
    match of["handle"].as_u64().filter(|_| kind == "rule") {
        Some(handle) => format!("rule {} {} {} {handle}", text("family"), text("table"), text("chain")),
        None => format!("{kind} {} {} {}", text("family"), text("table"), text("name")),
    }
}

/// A set of one member is that member, and not any of its bits, as in text.
#[test]
fn a_set_of_bits_means_in_json_what_it_means_in_text() {
    let keys = [
        ("ct state", json!({"ct": {"key": "state"}}), ["new", "established"]),
        ("ct status", json!({"ct": {"key": "status"}}), ["snat", "dnat"]),
        ("tcp flags", json!({"payload": {"protocol": "tcp", "field": "flags"}}), ["syn", "ack"]),
    ];
    for (key, left, members) in keys {
        for (of, operator) in [(1, "=="), (1, "in"), (1, "!="), (2, "=="), (2, "in"), (2, "!=")] {
            let members = &members[..of];
            let operation = json!({"match": {"op": operator, "left": left, "right": {"set": members}}});
            let rule = json!({"family": "ip", "table": "t", "chain": "c", "expr": [operation]});
            let read = Transaction::from_json(&json!({"nftables": [{"add": {"rule": rule}}]}).to_string());
            let sign = if operator == "in" { "" } else { operator };
            let text = format!("add rule ip t c {key} {sign} {{ {} }}", members.join(", "));
            let [read, written] = [read.unwrap(), Transaction::parse(&text).unwrap()].map(|transaction| {
                let mut ground = Transaction::parse("add table ip t; add chain ip t c").unwrap();
                transaction.operations().iter().for_each(|operation| {
                    ground.push(operation.clone());
                });
                let mut kernel = sluicegate_nftables::fake::Fake::new();
                ground.apply(&mut kernel).unwrap();
                kernel.ruleset()
            });
            assert_eq!(read, written, "{text}");
        }
    }
}
