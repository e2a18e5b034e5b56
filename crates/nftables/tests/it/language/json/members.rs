//! Every member of a document is read, or refused in its place.
//!
//! nft passes over members that it does not know: `"devs"` in place of `"dev"` makes a chain of no device.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use sluicegate_nftables::{Family, Transaction};

use crate::language::format::contexts;
use crate::language::kernel::{machine, namespace};
use crate::language::rules::parse;

/// What each object of a document gets.
const STRANGER: &str = "no such member";

/// How many kinds of objects the corpus has at least: by their place and their members.
const FLOOR: usize = 300;

#[test]
fn a_member_that_nothing_reads_is_refused_where_it_stands() {
    let Some(namespace) = namespace() else { return };
    let machine = namespace.run(machine);
    let options = machine.options();
    let (mut kinds, mut faults) = (BTreeSet::new(), Vec::new());
    // The others have the same kinds of objects.
    let files =
        ["expressions", "statements", "sets", "nat", "matches", "conntrack", "verdicts", "queue", "mixed"];
    for context in contexts().iter().filter(|context| files.contains(&context.file)) {
        let script = context.script(context.rules.iter().copied());
        let transaction = parse(&script, &options).expect("the corpus is right");
        let Value::Array(commands) = Value::from(transaction.to_json())["nftables"].take() else { continue };
        let is_rule = |command: &Value| command.pointer("/add/rule").is_some();
        let (rules, ground): (Vec<_>, Vec<_>) = commands.into_iter().partition(is_rule);
        for rule in &rules {
            let document = json!({"nftables": ground.iter().chain([rule]).collect::<Vec<_>>()});
            let mut places = Vec::new();
            objects(&document, "", &mut String::new(), &mut |place, kind| {
                if kinds.insert(kind.to_owned()) {
                    places.push(place.to_owned());
                }
            });
            // What it refuses as it is has its own reason.
            if !places.is_empty() && Transaction::from_json_with(&document.to_string(), &options).is_err() {
                continue;
            }
            for place in places {
                let mut changed = document.clone();
                changed.pointer_mut(&place).unwrap()[STRANGER] = json!(1);
                let member = format!("{place}/{STRANGER}");
                match Transaction::from_json_with(&changed.to_string(), &options) {
                    Err(error) if error.mistakes.iter().all(|of| *of.path == place || *of.path == member) => {
                    }
                    Err(error) => faults.push(format!("{place}: {error}")),
                    Ok(_) => faults.push(format!("{place}: taken")),
                }
            }
        }
    }
    println!("{} kinds of objects", kinds.len());
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    assert!(kinds.len() >= FLOOR, "{} kinds of objects", kinds.len());
}

/// Calls back for each object, with its place and what kind it is: its place without numbers, and its members.
fn objects(of: &Value, place: &str, kind: &mut String, each: &mut dyn FnMut(&str, &str)) {
    match of {
        Value::Array(list) => {
            for (i, value) in list.iter().enumerate() {
                objects(value, &format!("{place}/{i}"), kind, each);
            }
        }
        Value::Object(members) => {
            let names: Vec<_> = members.keys().map(String::as_str).collect();
            // Where an expression stands says less than what it is in.
            let parent = kind.rsplit('/').next().unwrap_or_default();
            each(place, &format!("{parent}: {}", names.join(" ")));
            let length = kind.len();
            for (name, value) in members {
                kind.push_str(&format!("/{name}"));
                objects(value, &format!("{place}/{}", name.replace('/', "~1")), kind, each);
                kind.truncate(length);
            }
        }
        _ => {}
    }
}

/// What nft -j of 1.0.6 refuses, or passes over although it says something.
#[test]
fn what_says_nothing_or_too_much_is_refused() {
    let rule = |expr: Value| {
        let rule = json!({"family": "inet", "table": "t", "chain": "c", "expr": expr});
        (json!({"add": {"rule": rule}}), "/add/rule/expr")
    };
    let object = |kind: &str, members: Value| {
        let mut object = json!({"family": "inet", "table": "t", "name": "x"});
        object.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        json!({"add": {kind: object}})
    };
    let cases = [
        (rule(json!(["accept"])), "/0"),
        (rule(json!([{"counter": {}}])), "/0/counter"),
        (rule(json!([{"counter": {"packets": 5}}])), "/0/counter"),
        (rule(json!([{"counter": 5}])), "/0/counter"),
        (rule(json!([{"drop": "counter"}])), "/0/drop"),
        (rule(json!([{"log": []}])), "/0/log"),
        (rule(json!([{"reject": "x"}])), "/0/reject"),
        (rule(json!([{"limit": {"rate": 5, "per": "second", "unit": "bytes"}}])), "/0/limit/unit"),
        (
            rule(json!([{"limit": {"rate": 5, "per": "second", "burst_unit": "bytes"}}])),
            "/0/limit/burst_unit",
        ),
        (rule(json!([{"quota": {"val": 5, "used_unit": "bytes"}}])), "/0/quota/used_unit"),
        (
            rule(
                json!([{"match": {"op": "==", "right": 5, "left": {"ct": {"key": "mark", "family": "ip"}}}}]),
            ),
            "/0/match/left/ct/family",
        ),
        (
            rule(json!([{"match": {"op": "==", "right": 5, "left":
                {"exthdr": {"name": "frag", "field": "id", "offset": 1}}}}])),
            "/0/match/left/exthdr/offset",
        ),
        ((object("ct timeout", json!({"protocol": "tcp", "l3proto": "ip"})), "/add/ct timeout"), ""),
        ((object("synproxy", json!({"mss": 1460})), "/add/synproxy"), ""),
        ((object("set", json!({"type": "ipv4_addr", "elem": []})), "/add/set/elem"), ""),
        ((object("chain", json!({"dev": "lo"})), "/add/chain/dev"), ""),
        (
            (
                object("chain", json!({"type": "filter", "hook": "input", "prio": 0, "dev": "lo"})),
                "/add/chain/hook",
            ),
            "",
        ),
        (
            (
                object("chain", json!({"type": "filter", "hook": "ingress", "prio": 0, "devs": "lo"})),
                "/add/chain/hook",
            ),
            "",
        ),
        (
            (json!({"add": {"table": {"family": "ip", "name": "t"}}, "flush": {"ruleset": null}}), "/flush"),
            "",
        ),
        (
            (
                json!({"add": {"table": {"family": "ip", "name": "t"}, "chain": {"family": "ip", "table": "t",
                    "name": "c"}}}),
                "/add/table",
            ),
            "",
        ),
        ((json!({"flush": {"ruleset": {"table": "t"}}}), "/flush/ruleset/table"), ""),
    ];
    for ((command, place), more) in cases {
        let text = json!({"nftables": [command]}).to_string();
        let error = Transaction::from_json(&text).map(|taken| panic!("taken: {text}: {taken}")).unwrap_err();
        let paths: Vec<_> = error.mistakes.iter().map(|mistake| &*mistake.path).collect();
        assert_eq!(paths, [format!("/nftables/0{place}{more}")], "{text}: {error}");
    }
}

/// A program may give to `delete` what it was listed.
#[test]
fn what_is_listed_can_be_deleted_as_a_whole() {
    let table = sluicegate_nftables::TableId::new(Family::IP, "t".parse().unwrap());
    let rule = json!({"family": "ip", "table": "t", "chain": "c", "handle": 5, "comment": "x",
        "expr": [{"accept": null}]});
    let set = json!({"family": "ip", "table": "t", "name": "s", "handle": 6, "type": "ipv4_addr",
        "flags": ["interval"], "elem": [{"range": ["10.0.0.1", "10.0.0.5"]}]});
    let text = json!({"nftables": [{"delete": {"rule": rule}}, {"delete": {"set": set}}]}).to_string();
    let mut expected = Transaction::new();
    let chain = table.chain("c".parse().unwrap());
    expected.delete(sluicegate_nftables::RuleId { chain, handle: 5 }).delete(table.set("s".parse().unwrap()));
    assert_eq!(Transaction::from_json(&text).unwrap().to_string(), expected.to_string());
}
