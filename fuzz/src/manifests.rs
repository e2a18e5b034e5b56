//! Any text as a manifest file: nothing panics, an error has a place inside the text, and what is planned for
//! whatever it holds is a script of whole commands, whichever names stand in it.
use sluicegate_proxier::source::{self, Error, Manifests};
use sluicegate_service_rules::nftables::{Layout, Planner, Settings};
use sluicegate_services::Node;

pub(crate) fn run(text: &str) {
    for file in ["fuzz.yaml", "fuzz.json"] {
        let mut found = Manifests::default();
        match source::read_str(file, text, |manifest| found.add(manifest)) {
            Ok(_) => plan(found),
            Err(Error::Manifests(problems)) => {
                for problem in problems {
                    // YAML ends a line at a carriage return of its own, too.
                    let lines = text.split(['\n', '\r']).count();
                    assert!((1..=lines + 1).contains(&problem.origin.line), "{problem}, of {lines} lines");
                }
            }
            Err(other) => panic!("{other}"),
        }
    }
}

fn plan(mut found: Manifests) {
    let node = found.nodes.pop().unwrap_or_else(|| Node { name: "test-node".to_owned(), ..Node::default() });
    let (cluster, _) = found.into_cluster(node);
    for layout in [Layout::Maps, Layout::Chains] {
        let settings = Settings { layout, ..Settings::default() };
        let script =
            Planner::new(&settings, &cluster, None).expect("the settings are good").script().to_string();
        for line in script.lines() {
            assert!(line.starts_with("add "), "{line}");
            assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
            assert_eq!(line.matches('"').count() % 2, 0, "{line}");
        }
    }
}
