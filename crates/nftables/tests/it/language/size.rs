//! Texts that are large, deep, or nothing but blanks: an error or a tree, in memory that is in proportion
//! to the text.

use sluicegate_nftables::Transaction;

const DEEP: usize = 100_000;

#[test]
fn depth_is_bounded() {
    let parts = [("(", ")", "5"), ("{ ", " }", "5"), ("", "", "5")];
    for (open, close, inside) in parts {
        let text = format!("add rule ip t c meta mark {}{inside}{}", open.repeat(DEEP), close.repeat(DEEP));
        let parsed = Transaction::parse(&text);
        assert_eq!(parsed.is_ok(), open.is_empty(), "{open}");
    }
    for nested in ["jump { ", "goto { ", "tcp dport vmap { 5 : jump { "] {
        let text = format!("add rule ip t c {}", nested.repeat(DEEP));
        Transaction::parse(&text).expect_err(nested);
    }
    let text = format!("table ip t {{ chain c {{ {} }}\n}}", "jump { ".repeat(DEEP));
    Transaction::parse(&text).expect_err("a chain in a chain in a chain");
    let text = format!("add rule ip t c meta mark {}5", "5 | ".repeat(DEEP));
    let _ = Transaction::parse(&text);
    let text = format!("add rule ip t c ip saddr {}ip daddr {{ 5 }}", "ip saddr . ".repeat(DEEP));
    Transaction::parse(&text).expect_err("a key of that length");
    let text = format!(
        "define a0 = 5\n{}",
        (0..DEEP).map(|n| format!("define a{} = $a{n}\n", n + 1)).collect::<String>()
    );
    let _ = Transaction::parse(&format!("{text}add rule ip t c meta mark $a{DEEP}"));
}

#[test]
fn numbers_are_bounded() {
    for digits in [20, 100, 100_000] {
        for number in
            ["9".repeat(digits), format!("0x{}", "f".repeat(digits)), format!("0{}", "7".repeat(digits + 3))]
        {
            for text in [
                format!("add rule ip t c tcp dport {number}"),
                format!("add rule ip t c meta mark {number}"),
                format!("add rule ip t c ip saddr 10.0.0.0/{number}"),
                format!("add rule ip t c limit rate {number}/second"),
                format!("add rule ip t c counter packets {number} bytes 0"),
                format!("add rule ip t c ct expiration {number}s"),
                format!("add rule ip t c @th,{number},16 5"),
                format!("add set ip t s {{ type ipv4_addr; size {number}; }}"),
                format!("add chain ip t c {{ type filter hook input priority {number}; }}"),
                format!("delete rule ip t c handle {number}"),
            ] {
                Transaction::parse(&text).expect_err(&text[..40]);
            }
        }
    }
}

#[test]
fn variables_do_not_multiply() {
    // Each is ten times the one before.
    let mut text = "define a0 = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }\n".to_owned();
    for n in 0..20 {
        let parts: Vec<_> = (0..10).map(|_| format!("$a{n}")).collect();
        text += &format!("define a{} = {{ {} }}\n", n + 1, parts.join(", "));
    }
    text += "add rule ip t c tcp dport $a20\n";
    let used = allocation_counter::measure(|| {
        let _ = Transaction::parse(&text);
    });
    assert!(used.bytes_max < 1 << 28, "{} bytes", used.bytes_max);
}

#[test]
fn memory_is_in_proportion_to_the_text() {
    let address = |n: u32| std::net::Ipv4Addr::from(0x0a00_0000 + n * 7);
    let list = |head: &str, element: &dyn Fn(u32) -> String| {
        let list: Vec<_> = (0..100_000_u32).map(element).collect();
        format!("table ip t {{\n\t{head};\n\t\telements = {{ {} }}\n\t}}\n}}\n", list.join(", "))
    };
    let set = |kind: &str| format!("set s {{\n\t\ttype {kind}");
    let map = |kind: &str| format!("map s {{\n\t\ttype {kind}");
    let pair = "ipv4_addr . inet_service";
    let rules: String = (0..50_000_u32)
        .map(|n| format!("add rule ip t c ip saddr {} tcp dport {} counter accept\n", address(n), n % 65536))
        .collect();
    let block: String = (0..50_000_u32)
        .map(|n| format!("\t\tip saddr {} tcp dport {} counter accept\n", address(n), n % 65536))
        .collect();
    let block = format!("table ip t {{\n\tchain c {{\n{block}\t}}\n}}\n");
    // The list of operations grows as the text is read: it must not take more where it has just grown.
    let short = block[..1_000_000].rsplit_once("\n").expect("lines").0.to_owned() + "\n\t}\n}\n";
    let blanks = format!("{}\n{}add table ip t", " ".repeat(20 << 20), "# a comment\n".repeat(100_000));
    let texts = [
        ("addresses", list(&set("ipv4_addr"), &|n| address(n).to_string()), 5),
        ("prefixes", list(&set("ipv4_addr; flags interval"), &|n| format!("{}/30", address(n * 4))), 5),
        (
            "merged ranges",
            list(&set("ipv4_addr; flags interval; auto-merge"), &|n| {
                format!("{}-{}", address(200_000 - 2 * n), address(200_001 - 2 * n))
            }),
            5,
        ),
        (
            "pairs",
            list(&map(&format!("{pair} : {pair}")), &|n| format!("{0} . 80 : {0} . 8080", address(n))),
            5,
        ),
        ("verdicts", list(&map("ipv4_addr : verdict"), &|n| format!("{} : goto c{n}", address(n))), 5),
        ("comments", list(&set("ipv4_addr"), &|n| format!("{} comment \"a{n}\"", address(n))), 5),
        (
            "counters",
            list(&set("ipv4_addr; counter"), &|n| format!("{} counter packets 0 bytes 0", address(n))),
            5,
        ),
        ("timeouts", list(&set("ipv4_addr; flags timeout"), &|n| format!("{} timeout 1h", address(n))), 5),
        ("rules", rules, 5),
        ("rules of a chain", block, 5),
        ("a megabyte of rules", short, 5),
        ("blanks", blanks, 1),
    ];
    for (what, text, times) in &texts {
        let mut count = 0;
        let used = allocation_counter::measure(|| {
            count = Transaction::parse(text).expect(what).operations().len();
        });
        assert!(count > 0, "{what}");
        let allowed = u64::try_from(text.len() * times).expect("a size") + (1 << 16);
        assert!(used.bytes_max <= allowed, "{what}: {} bytes for {}", used.bytes_max, text.len());
    }
}

#[test]
fn work_is_in_proportion_to_the_text() {
    // Allocations count what is done for each part of a text: twice the text is twice of them, within a
    // tenth.
    let made = |count: usize, part: &dyn Fn(usize) -> String| {
        let text: String = (0..count).map(part).collect();
        allocation_counter::measure(|| drop(Transaction::parse(&text))).count_total
    };
    let parts: [(&str, &dyn Fn(usize) -> String); 4] = [
        ("rules", &|n| format!("add rule ip t c tcp dport {} accept\n", n % 1000)),
        ("definitions", &|n| format!("define v{n} = {n}\nadd rule ip t c meta mark $v{n}\n")),
        ("mistakes", &|n| format!("add rule ip t c tcp dprot {n}\n")),
        ("sets", &|n| {
            format!("add set ip t s{n} {{ type ipv4_addr; }}\nadd element ip t s{n} {{ 10.0.0.1 }}\n")
        }),
    ];
    for (what, part) in parts {
        let (once, twice) = (made(4000, part), made(8000, part));
        assert!(twice * 10 <= once * 22, "{what}: {once}, then {twice}");
    }
}

#[cfg(feature = "json")]
mod json {
    use super::{DEEP, Transaction};

    fn document(statements: &str) -> String {
        let rule = format!(r#"{{"family": "ip", "table": "t", "chain": "c", "expr": [{statements}]}}"#);
        format!(r#"{{"nftables": [{{"add": {{"rule": {rule}}}}}]}}"#)
    }

    #[test]
    fn depth_of_json_is_bounded() {
        for (open, close) in [
            (r#"{"match": {"op": "==", "right": 5, "left": "#, "}}"),
            (r#"{"match": {"op": "==", "left": {"meta": {"key": "mark"}}, "right": {"|": [5, "#, "]}}}"),
            (r#"{"jump": {"rules": [{"expr": ["#, "]}]}}"),
            (r#"{"set": ["#, "]}"),
            ("[", "]"),
        ] {
            // serde_json takes 127 levels; as deep as that is read, deeper is refused.
            for levels in [10, 60, DEEP] {
                let text = document(&format!("{}5{}", open.repeat(levels), close.repeat(levels)));
                Transaction::from_json(&text).expect_err(open);
            }
        }
    }

    #[test]
    fn numbers_of_json_are_bounded() {
        for digits in [20, 100, 100_000] {
            let number = "9".repeat(digits);
            for statement in [
                format!(r#"{{"counter": {{"packets": {number}, "bytes": 0}}}}"#),
                format!(r#"{{"limit": {{"rate": {number}, "per": "second"}}}}"#),
                format!(r#"{{"queue": {{"num": {number}}}}}"#),
                format!(
                    r#"{{"match": {{"op": "==", "left": {{"meta": {{"key": "mark"}}}}, "right": {number}}}}}"#
                ),
                format!(
                    r#"{{"match": {{"op": "==", "left": {{"meta": {{"key": "mark"}}}}, "right": "{number}"}}}}"#
                ),
                format!(
                    r#"{{"match": {{"op": "==", "left": {{"payload": {{"base": "th", "offset": {number}, "len": 16}}}}, "right": 5}}}}"#
                ),
            ] {
                Transaction::from_json(&document(&statement)).expect_err(&statement[..20]);
            }
        }
    }

    #[test]
    fn blanks_in_json_take_no_memory() {
        let text = document(&format!(r#"{}{{"accept": null}}"#, " \n\t".repeat(10 << 20)));
        let used = allocation_counter::measure(|| {
            Transaction::from_json(&text).expect("blanks stand anywhere");
        });
        assert!(used.bytes_max < 1 << 16, "{} bytes", used.bytes_max);
    }

    #[test]
    fn work_on_json_is_in_proportion_to_the_text() {
        let made = |count: usize, command: &dyn Fn(usize) -> String| {
            let commands: Vec<_> = (0..count).map(command).collect();
            let text = format!(r#"{{"nftables": [{}]}}"#, commands.join(","));
            allocation_counter::measure(|| drop(Transaction::from_json(&text))).count_total
        };
        let port = r#"{"payload": {"protocol": "tcp", "field": "dport"}}"#;
        let commands: [(&str, &dyn Fn(usize) -> String); 3] = [
            ("rules", &|n| {
                let comparison =
                    format!(r#"{{"match": {{"op": "==", "left": {port}, "right": {}}}}}"#, n % 1000);
                format!(
                    r#"{{"add": {{"rule": {{"family": "ip", "table": "t", "chain": "c", "expr": [{comparison}]}}}}}}"#
                )
            }),
            ("sets", &|n| {
                let id = format!(r#""family": "ip", "table": "t", "name": "s{n}""#);
                format!(
                    r#"{{"add": {{"set": {{{id}, "type": "ipv4_addr"}}}}}}, {{"add": {{"element": {{{id}, "elem": ["10.0.0.1"]}}}}}}"#
                )
            }),
            ("mistakes", &|_| r#"{"add": {"rule": {"family": "ip"}}}"#.to_owned()),
        ];
        for (what, command) in commands {
            let (once, twice) = (made(4000, command), made(8000, command));
            assert!(twice * 10 <= once * 22, "{what}: {once}, then {twice}");
        }
    }
}
