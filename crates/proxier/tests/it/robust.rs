//! Damaged manifests: whatever is cut out of a good one or put into it, reading ends with objects or with an
//! error.

use proptest::prelude::*;
use sluicegate_proxier::source;
use sluicegate_proxier::source::Manifests;
use sluicegate_service_rules::nftables::{Planner, Settings};
use sluicegate_services::Node;

const YAML: &str = include_str!("../../../service-rules/testdata/kube-proxy/services.yaml");
const JSON: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80, "nodePort": 30080}]}},
  {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "a", "labels": {"kubernetes.io/service-name": "a"}},
   "addressType": "IPv4", "ports": [{"name": "", "port": 8080}], "endpoints": [{"addresses": ["10.244.0.1"]}]}]}"#;

/// What is put in: text that means something somewhere.
const SCRAPS: [&str; 20] = [
    "",
    "\n",
    "---\n",
    "\t",
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    ": ",
    "- ",
    "*a",
    "&a ",
    "<<: ",
    "!!str ",
    "\u{0}",
    "99999999999",
    "null",
    "|\n  ",
];

/// Replaces some stretches of a text.
fn damaged(text: &'static str) -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0..12usize, prop::sample::select(SCRAPS.to_vec()));
    prop::collection::vec(edit, 1..5).prop_map(move |edits| {
        let mut text = text.to_owned();
        for (at, length, scrap) in edits {
            let boundaries: Vec<usize> =
                text.char_indices().map(|(index, _)| index).chain([text.len()]).collect();
            let start = at.index(boundaries.len());
            let end = (start + length).min(boundaries.len() - 1);
            text.replace_range(boundaries[start]..boundaries[end], scrap);
        }
        text
    })
}

fn read(name: &str, text: &str) {
    let mut found = Manifests::default();
    match source::read_str(name, text, |manifest| found.add(manifest)) {
        Err(error) => assert!(error.is_manifest() && error.to_string().contains(", line "), "{error}"),
        Ok(_) => {
            let (cluster, _) = found.into_cluster(Node { name: "test-node".to_owned(), ..Node::default() });
            let script = Planner::new(&Settings::default(), &cluster, None).expect("good settings").script();
            assert!(script.to_string().lines().all(|line| line.starts_with("add ")));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn damaged_yaml_is_read_or_refused(text in damaged(YAML)) {
        read("damaged.yaml", &text);
    }

    #[test]
    fn damaged_json_is_read_or_refused(text in damaged(JSON)) {
        read("damaged.json", &text);
        read("damaged.yaml", &text);
    }
}
