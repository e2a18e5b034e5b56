//! The page of contracts names what the code has: every metric, every base chain, every schema.

use std::fs;

use super::links::root;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Words of Rust's string literals in a source that look like names of metrics.
fn names(source: &str) -> Vec<String> {
    let literals = source.split('"').skip(1).step_by(2);
    let is_name = |text: &&str| {
        text.contains('_') && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            || matches!(*text, "services" | "faults" | "warnings")
    };
    literals.filter(is_name).map(str::to_owned).collect()
}

#[test]
fn every_metric_is_on_the_page() {
    let (page, mut known) = (read("guide/contracts.md"), 0);
    for file in ["register.rs", "source.rs", "packets.rs", "counted.rs"] {
        for name in names(&read(&format!("crates/proxier/src/serve/metrics/{file}"))) {
            known += 1;
            // With a prefix, and `_total` of a counter.
            assert!(
                page.contains(&format!("{name}`")) || page.contains(&format!("{name}_total`")),
                "{file}: {name}"
            );
        }
    }
    assert!(known > 40, "only {known} metrics were recognised");
}

#[test]
fn every_base_chain_is_on_the_page() {
    let (page, mut chains) = (read("guide/contracts.md"), 0);
    let script = read("crates/cookbook/output/plan-nftables.txt");
    for line in script.lines().filter(|line| line.contains(" hook ")) {
        let words: Vec<_> = line.split_whitespace().collect();
        let after = |word: &str| words[words.iter().position(|at| *at == word).expect(line) + 1];
        let row = format!("| `{}` | {}, {}, {} |", words[4], after("type"), after("hook"), after("priority"));
        assert!(page.contains(&row), "{row}");
        chains += 1;
    }
    assert_eq!(chains, 8, "{script}");
}

#[test]
fn figures_of_the_front_page_are_those_that_were_measured() {
    let (page, data) = (read("README.md"), read("benches/figures/beside-kube-proxy.json"));
    let data: serde_json::Value = serde_json::from_str(&data).expect("JSON");
    let of = |proxy: &str, field: &str| {
        let runs = data["runs"].as_array().expect("a list").iter();
        let mut largest = runs.filter(|run| run["services"] == 10_000);
        largest.find(|run| run["proxy"] == proxy).expect(proxy)[field].to_string()
    };
    let proxies = ["sluicegate, maps", "kube-proxy, nftables", "kube-proxy, iptables-nft"];
    for (row, field, unit) in [
        ("start until sampled services answer", "start_to_programmed_s", "s"),
        ("processor time of that", "cpu_of_start_s", "s"),
        ("one endpoint changes: until it is in the kernel", "single_change_median_ms", "ms"),
        ("at 50 changes a second: median lag", "lag_at_50_changes_per_s_median_ms", "ms"),
        ("memory, most", "rss_max_mib", "MiB"),
    ] {
        let line = page.lines().find(|line| line.starts_with(&format!("| {row} |"))).expect(row);
        let cells = line.split(" | ").skip(1).map(|cell| cell.trim_end_matches(" |"));
        for (cell, proxy) in cells.zip(proxies) {
            let (number, found) = cell.split_once(' ').expect("a number and a unit");
            let (shown, measured): (f64, f64) =
                (number.parse().expect(cell), of(proxy, field).parse().expect("a number"));
            assert!(
                (shown - measured).abs() <= measured * 0.005 && found == unit,
                "{row}, {proxy}: {cell}, {measured}"
            );
        }
    }
}
