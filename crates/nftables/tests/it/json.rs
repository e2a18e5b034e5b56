//! JSON that is wrong: an error that says where and why, and never a panic.

#![allow(clippy::needless_pass_by_value, reason = "values are written in place")]

use proptest::prelude::*;
use serde_json::{Value, json};
use sluicegate_nftables::Transaction;
use sluicegate_nftables::lang::parse::ParseOptions;

fn error(text: &str) -> String {
    match Transaction::from_json(text) {
        Ok(transaction) => panic!("taken as: {transaction}"),
        Err(error) => error.to_string(),
    }
}

fn of_rule(statement: Value) -> String {
    let rule = json!({"family": "inet", "table": "t", "chain": "c", "expr": [{"accept": null}, statement]});
    error(&json!({"nftables": [{"metainfo": {}}, {"add": {"rule": rule}}]}).to_string())
}

fn of_match(left: Value, op: &str, right: Value) -> String {
    of_rule(json!({"match": {"left": left, "op": op, "right": right}}))
}

const RULE: &str = "/nftables/1/add/rule/expr/1";

#[test]
fn what_is_not_json_has_a_line_and_a_column() {
    assert_eq!(error(""), "line 1, column 0: expected JSON: EOF while parsing a value");
    assert_eq!(error("{\"nftables\": [\n {]}"), "line 2, column 3: expected JSON: key must be a string");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(error(&deep).ends_with("recursion limit exceeded"), "{}", error(&deep));
}

#[test]
fn an_error_says_where_what_was_expected_and_what_was_found() {
    let port = || json!({"payload": {"protocol": "tcp", "field": "dport"}});
    let cases = [
        (
            of_match(port(), "==", json!("shh")),
            "/match/right: expected a port or the name of a service, found \"shh\"; did you mean \"ssh\"?",
        ),
        (
            of_match(port(), "==", json!(65536)),
            "/match/right: expected a port or the name of a service, found 65536",
        ),
        (
            of_match(port(), "==", json!({"set": [22, {"range": [1, {"set": []}]}]})),
            "/match/right/set/1/range/1: expected a port or the name of a service, found an object \
             with \"set\"",
        ),
        (
            of_match(port(), "==", json!([22, 80])),
            "/match/right: expected a value of type inet_service; only bits are given as a list, found a \
             list; did you mean \"{\\\"set\\\": [...]}\"?",
        ),
        (
            of_match(json!({"payload": {"protocol": "tcp", "field": "dprot"}}), "==", json!(22)),
            "/match/left/payload/field: expected a field of tcp (sport, dport, sequence, ackseq, doff, \
             reserved, flags, window, checksum, urgptr), found \"dprot\"; did you mean \"dport\"?",
        ),
        (
            of_match(port(), "=", json!(22)),
            "/match/op: expected an operator (in, ==, !=, <, >, <=, >=, !), found \"=\"",
        ),
        (of_match(port(), "!", json!(22)), "/match: expected bits, for the operator \"!\", found an object"),
        (
            of_match(json!({"ct": {"key": "state"}}), "in", json!(["new", "estabished"])),
            "/match/right/1: expected a value of type ct_state, found \"estabished\"; did you \
             mean \"established\"?",
        ),
        (
            of_match(
                json!({"payload": {"protocol": "ip", "field": "saddr"}}),
                "==",
                json!({"prefix": {"addr": "10.0.0.0", "len": 33}}),
            ),
            "/match/right/prefix/len: expected the length of a prefix, up to 32, found 33",
        ),
        (
            of_match(json!({"meta": {"key": "iffname"}}), "==", json!("lo")),
            "/match/left/meta/key: expected a key of meta, found \"iffname\"; did you mean \"iifname\"?",
        ),
        (
            of_rule(json!({"acept": null})),
            ": expected a statement, found \"acept\"; did you mean \"accept\"?",
        ),
        (
            of_rule(json!({"accept": null, "drop": null})),
            ": expected a statement, with one member, found an object",
        ),
        (of_rule(json!(5)), ": expected a statement, found 5"),
        (
            of_rule(json!({"jump": {}})),
            "/jump: expected a member \"target\": the name of a chain, found nothing",
        ),
        (
            of_rule(json!({"limit": {"rate": 0, "per": "second"}})),
            "/limit/rate: expected a number above 0, found 0",
        ),
        (
            of_rule(json!({"log": {"level": "wran"}})),
            "/log/level: expected a level (emerg, alert, crit, err, warn, notice, info, debug, audit), found \
             \"wran\"; did you mean \"warn\"?",
        ),
        (of_rule(json!({"ct count": {"val": -1}})), "/ct count/val: expected a number, found -1"),
    ];
    for (error, expected) in cases {
        assert_eq!(error, format!("{RULE}{expected}"));
    }
}

#[test]
fn commands_that_are_none_are_refused() {
    let of = |command: Value| error(&json!({"nftables": [command]}).to_string());
    assert_eq!(error("[]"), "expected an object, found an empty list");
    assert_eq!(error("{}"), "expected a member \"nftables\": a list of commands, found nothing");
    assert_eq!(of(json!(1)), "/nftables/0: expected a command, found 1");
    assert!(of(json!({"ad": {}})).ends_with("found \"ad\"; did you mean \"add\"?"));
    assert!(of(json!({"add": {"tabel": {}}})).ends_with("found \"tabel\"; did you mean \"table\"?"));
    assert_eq!(
        of(json!({"list": {"ruleset": null}})),
        "/nftables/0: expected a command that changes the ruleset, found an object with \"list\""
    );
    assert!(of(json!({"metainfo": {"json_schema_version": 2}})).contains("which is 1"));
    let set = |members: Value| {
        let mut set = json!({"family": "ip", "table": "t", "name": "s"});
        set.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        of(json!({"add": {"set": set}}))
    };
    assert!(set(json!({"type": "ipv4_adr"})).ends_with("did you mean \"ipv4_addr\"?"));
    assert!(set(json!({"type": "integer"})).contains("{\"typeof\": ...}"));
    assert!(
        set(json!({"type": "ipv4_addr", "elem": ["1.2.3.4", "::1"]}))
            .starts_with("/nftables/0/add/set/elem/1: ")
    );
    assert!(
        set(json!({"type": ["ipv4_addr", "mark"], "elem": [{"concat": ["1.2.3.4"]}]}))
            .contains("2 parts (ipv4_addr . mark)")
    );
    let element = json!({"add": {"element": {"family": "ip", "table": "t", "name": "unknown", "elem": [1]}}});
    assert!(of(element).contains("expected a set that was added before"));
}

/// One document with mistakes in many places.
#[test]
fn all_mistakes_are_reported() {
    let rule =
        |expr: Value| json!({"add": {"rule": {"family": "ip", "table": "t", "chain": "c", "expr": expr}}});
    let dport = json!({"payload": {"protocol": "tcp", "field": "dport"}});
    let matching = |right: Value| json!({"match": {"op": "==", "left": &dport, "right": right}});
    let element = |name: &str, elem: Value| json!({"add": {"element": {"family": "ip", "table": "t", "name": name, "elem": elem}}});
    let document = json!({"nftables": [
        {"add": {"table": {"family": "ip4", "name": "t"}}},
        rule(json!([{"acept": null}, matching(json!({"set": ["ssh", "shh", 80, 70000]})), {"drop": null}, {"limit": {}}])),
        {"add": {"set": {"family": "ip", "table": "t", "name": "s", "type": "ipv4_adr"}}},
        // Nothing is known of the set because of the mistake before: that is no other mistake.
        element("s", json!(["10.0.0.1"])),
        rule(json!([{"set": {"op": "add", "elem": "1.2.3.4", "set": "@s"}}])),
        {"add": {"set": {"family": "ip", "table": "t", "name": "good", "type": "ipv4_addr"}}},
        element("good", json!(["10.0.0.1", "::1", "10.0.0.3", 5.5])),
        {"bogus": null},
    ]});
    let error = Transaction::from_json(&document.to_string()).unwrap_err();
    let paths: Vec<_> = error.mistakes.iter().map(|mistake| &*mistake.path).collect();
    let expected = [
        "/nftables/0/add/table/family",
        "/nftables/1/add/rule/expr/0",
        "/nftables/1/add/rule/expr/1/match/right/set/1",
        "/nftables/1/add/rule/expr/1/match/right/set/3",
        "/nftables/1/add/rule/expr/3/limit",
        "/nftables/2/add/set/type",
        "/nftables/6/add/element/elem/1",
        "/nftables/6/add/element/elem/3",
        "/nftables/7",
    ];
    assert_eq!(paths, expected, "{error}");
    assert_eq!(error.to_string().lines().count(), expected.len());
    assert!(!error.is_cut);
    // serde_json finds each place by its pointer.
    assert!(paths.iter().all(|path| document.pointer(path).is_some()));
}

#[test]
fn many_mistakes_are_cut() {
    let wrong: Vec<Value> = (0..1000).map(|_| json!({"bogus": null})).collect();
    let text = json!({"nftables": wrong}).to_string();
    let error = Transaction::from_json(&text).unwrap_err();
    assert_eq!((error.mistakes.len(), error.is_cut), (20, true));
    let mut options = ParseOptions::default();
    options.max_mistakes = 2000;
    let error = Transaction::from_json_with(&text, &options).unwrap_err();
    assert_eq!((error.mistakes.len(), error.is_cut), (1000, false));
}

/// Members have no order; the kernel wants the statements of an element in the order of the set's.
#[test]
fn statements_of_an_element_are_in_the_order_of_the_set() {
    let (counter, limit) = (json!({"counter": null}), json!({"limit": {"rate": 1, "per": "second"}}));
    for stmt in [[&counter, &limit], [&limit, &counter]] {
        let element = json!({"elem": {"val": 1, "limit": {"rate": 5, "per": "hour"}, "counter": null}});
        let set = json!({
            "family": "ip", "table": "t", "name": "s", "type": "mark", "stmt": stmt, "elem": [element],
        });
        let read = Transaction::from_json(&json!({"nftables": [{"add": {"set": set}}]}).to_string());
        let text = read.unwrap().to_string();
        let (element, first) = (text.split("add element").nth(1).unwrap(), stmt[0] == &counter);
        assert_eq!(element.find("counter") < element.find("limit"), first, "{text}");
    }
}

/// Values such as documents have, and values that they should not have.
fn value() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "ip",
        "t",
        "c",
        "tcp",
        "dport",
        "==",
        "in",
        "@s",
        "*",
        "lo",
        "mark",
        "established",
        "10.0.0.1",
        "::1",
        "ssh",
        "verdict",
        "ipv4_addr",
        "integer",
        "interval",
        "filter",
        "input",
        "\u{0}",
        "\"",
        "ct_state",
        "1h",
        "0x10",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u64..70_000).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "add",
        "create",
        "insert",
        "delete",
        "flush",
        "rule",
        "set",
        "map",
        "element",
        "table",
        "chain",
        "family",
        "name",
        "expr",
        "type",
        "elem",
        "val",
        "match",
        "left",
        "right",
        "op",
        "payload",
        "protocol",
        "field",
        "meta",
        "key",
        "concat",
        "range",
        "prefix",
        "addr",
        "len",
        "&",
        "|",
        "<<",
        "vmap",
        "data",
        "dnat",
        "port",
        "flags",
        "limit",
        "rate",
        "per",
        "typeof",
        "timeout",
        "stmt",
        "jump",
        "target",
        "rules",
        "fib",
        "result",
        "mangle",
        "value",
        "nftables",
        "tcp option",
        "base",
    ]);
    leaf.prop_recursive(6, 60, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..4).prop_map(|members| Value::Object(
                members.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn no_document_makes_it_panic(value in value(), verb in "add|create|insert|replace|delete|flush|rename") {
        let _ = Transaction::from_json(&value.to_string());
        let _ = Transaction::from_json(&json!({"nftables": [value.clone()]}).to_string());
        let _ = Transaction::from_json(&json!({"nftables": [{verb: value}]}).to_string());
    }

    #[test]
    fn no_statement_makes_it_panic(value in value(),
        kind in "match|mangle|dnat|vmap|set|map|meter|limit|log|queue|reject|counter") {
        let rule = json!({"family": "inet", "table": "t", "chain": "c", "expr": [{kind: value}]});
        let _ = Transaction::from_json(&json!({"nftables": [{"add": {"rule": rule}}]}).to_string());
    }

    /// What is read is printed as what is read again.
    #[test]
    fn what_was_read_survives_being_printed(value in value(), left in "meta|ct") {
        let statement = json!({"match": {"left": {left: {"key": "mark"}}, "op": "==", "right": value}});
        let rule = json!({"family": "ip", "table": "t", "chain": "c", "expr": [statement]});
        let text = json!({"nftables": [{"add": {"rule": rule}}]}).to_string();
        if let Ok(first) = Transaction::from_json(&text) {
            let again = Transaction::from_json(&first.to_json().to_string());
            prop_assert_eq!(again.map(|again| again.to_string()), Ok(first.to_string()));
        }
    }
}

/// A policy without a hook is for a base chain that exists.
#[test]
fn a_policy_alone_is_kept() {
    let transaction = Transaction::parse("add chain ip t c { policy drop ; }").unwrap();
    let json = transaction.to_json().to_string();
    assert!(json.contains(r#""policy": "drop""#), "{json}");
    assert_eq!(Transaction::from_json(&json).unwrap(), transaction);
}

/// nft has no word for the width of an integer, and none for a field beside its bytes: both are kept.
#[test]
fn types_that_have_no_name_are_kept() {
    use sluicegate_nftables::{DataType, Family, Order, Part, Set, SetType, TableId};
    let parts = vec![
        Part::Integer { bytes: 2, order: Order::Host },
        Part::Integer { bytes: 16, order: Order::Network },
        Part::Type(DataType::MARK),
    ];
    let id = TableId::new(Family::IP, "t".parse().unwrap()).map("m".parse().unwrap());
    let set = Set::map(id, SetType::Parts(parts), SetType::Parts(vec![Part::Wide(DataType::DSCP)]));
    let mut transaction = Transaction::new();
    transaction.add(set);
    let json = transaction.to_json().to_string();
    assert_eq!(Transaction::from_json(&json).unwrap(), transaction, "{json}");
}

/// Times are in milliseconds, which are not exact as a fraction of a second.
#[test]
fn times_are_read_to_the_millisecond() {
    let text = "add set ip t s { type mark ; flags timeout ; timeout 11514d22h29m36s380ms ; }";
    let transaction = Transaction::parse(text).unwrap();
    assert_eq!(Transaction::from_json(&transaction.to_json().to_string()).unwrap(), transaction);
}

/// The elements of a map go by their keys; a pair is taken as well.
#[test]
fn elements_of_a_map_are_deleted_by_their_keys() {
    let delete = |elem: Value| {
        let map = json!({"family": "ip", "table": "t", "name": "m", "type": "mark", "map": "inet_service"});
        let element = json!({"family": "ip", "table": "t", "name": "m", "elem": elem});
        let commands = json!({"nftables": [{"add": {"map": map}}, {"delete": {"element": element}}]});
        Transaction::from_json(&commands.to_string()).unwrap().operations()[1].to_string()
    };
    assert_eq!(delete(json!([1, 2])), "delete element ip t m { 0x00000001, 0x00000002 }");
    assert_eq!(delete(json!([[1, 80], 2])), "delete element ip t m { 0x00000001, 0x00000002 }");
}

/// nft's numbers have a sign: what is above is negative.
#[test]
fn large_counts_are_printed_and_read_with_a_sign() {
    let transaction =
        Transaction::parse("add rule ip t c counter packets 18446744073709551615 bytes 1").unwrap();
    let json = transaction.to_json().to_string();
    assert!(json.contains(r#"{"packets": -1, "bytes": 1}"#), "{json}");
    assert_eq!(Transaction::from_json(&json).unwrap(), transaction);
}

/// nft lists as text what it has no JSON for.
#[test]
fn statements_as_text_are_read() {
    let of = |text: &str| {
        let rule = json!({"family": "ip", "table": "t", "chain": "c", "expr": [{"counter": null}, text]});
        Transaction::from_json(&json!({"nftables": [{"rule": rule}]}).to_string())
    };
    let read = of("jump {\n\t\t\ttcp dport 22 accept\n\t\t\tdrop\n\t\t}").unwrap();
    assert_eq!(read.to_string(), "add rule ip t c counter jump { tcp dport 22 accept; drop; }\n");
    let error = of("tcp dprot 22").unwrap_err().to_string();
    assert!(error.starts_with("/nftables/0/rule/expr/1: expected a statement ("), "{error}");
}
