//! Any text as a `KubeProxyConfiguration`: nothing panics, every problem and remark has a place in the text,
//! and what is read once is read the same with a document marker before it.
use std::path::Path;

use sluicegate_proxier::config::{Config, Error, Note, format_duration, parse_duration};

const HEAD: &str = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";

pub(crate) fn run(body: &str) {
    // As it is, and with the head without which everything is refused.
    for text in [body.to_owned(), format!("{HEAD}{body}")] {
        // YAML ends a line at a carriage return of its own, too.
        let lines = text.split(['\n', '\r']).count();
        match Config::parse(Path::new("fuzz"), &text) {
            Ok(mut config) => {
                placed(&config.unused, lines);
                placed(&config.doubtful, lines);
                if !text.starts_with("---") {
                    let marked = Config::parse(Path::new("fuzz"), &format!("---\n{text}"));
                    let mut marked = marked.expect("it was read without the marker");
                    // The lines of their remarks differ.
                    for (marked, notes) in [
                        (&mut marked.unused, &mut config.unused),
                        (&mut marked.doubtful, &mut config.doubtful),
                    ] {
                        assert_eq!(marked.len(), notes.len());
                        marked.clear();
                        notes.clear();
                    }
                    assert_eq!(marked, config);
                }
            }
            Err(Error::Invalid { problems, .. }) => {
                assert!(!problems.is_empty());
                placed(&problems, lines);
            }
            Err(other) => panic!("{other}"),
        }
    }
    if let Ok(duration) = parse_duration(body) {
        assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
    }
}

fn placed(notes: &[Note], lines: usize) {
    for note in notes {
        assert!((1..=lines + 1).contains(&note.line), "{note}, of {lines} lines");
        assert!(!note.to_string().is_empty());
    }
}
