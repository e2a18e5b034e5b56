//! Checks that documents name files that exist: those for contributors, the pages of the guide, and the lists of
//! places in the sources. A path may begin at the repository, at `crates/`, or at any folder in
//! between, as long as a file or a folder ends with it.

use std::collections::BTreeSet;
use std::path::Path;

/// The documents whose paths are checked.
const DOCUMENTS: &[&str] = &[
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    "RELEASING.md",
    "UPGRADING.md",
    "crates/nftables/src/lang.rs",
    "crates/nftables/src/tree/mod.rs",
    "crates/nftables/src/object/mod.rs",
    "crates/nftables/src/transaction/mod.rs",
];

/// What looks like a path and is none of the repository: made when something runs, or another project's.
const ELSEWHERE: &[&str] =
    &["cni.dev/valid-attachments", "k8s-openapi/v1_*", "target/release-files", "target/xtask/bench"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository")
}

/// All files and folders, relative to the repository.
fn everything(folder: &Path, all: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        let relative = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        if relative == "target" || relative == ".git" || relative.ends_with("/target") {
            continue;
        }
        if path.is_dir() {
            everything(&path, all);
        }
        all.insert(relative);
    }
}

/// The paths in the code spans of a document; of sources those of `//!` lines only.
fn named(document: &str, text: &str) -> Vec<String> {
    let is_source = document.ends_with(".rs");
    let mut found = Vec::new();
    let mut in_block = false;
    for line in text.lines().filter(|line| !is_source || line.starts_with("//!")) {
        in_block ^= line.trim_start_matches("//!").trim_start().starts_with("```");
        if in_block {
            continue;
        }
        for span in line.split('`').skip(1).step_by(2) {
            let ends = [".rs", ".md", ".toml", ".yaml", ".nft"].iter().any(|end| span.ends_with(end));
            let is_path = span.contains('/') || ends;
            let is_plain = !span.contains([' ', '<', '(', ':', '$', '[']);
            // A path of a machine or of a server, or a comment.
            let is_absolute = span.starts_with('/');
            if is_path && is_plain && !is_absolute && !ELSEWHERE.contains(&span) {
                found.extend(alternatives(span.trim_end_matches('/')));
            }
        }
    }
    found
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn alternatives(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((inner, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    inner.split(',').flat_map(|one| alternatives(&format!("{before}{one}{after}"))).collect()
}

/// Whether a file or folder ends with the path, component by component; `*` and a word in capitals stand for
/// any component, or the stem of one.
fn exists(path: &str, all: &BTreeSet<String>) -> bool {
    let wanted: Vec<&str> = path.split('/').collect();
    all.iter().any(|file| {
        let parts: Vec<&str> = file.split('/').collect();
        parts.len() >= wanted.len()
            && parts.iter().rev().zip(wanted.iter().rev()).all(|(part, wanted)| {
                let stem = wanted.split('.').next().unwrap_or(wanted);
                let is_placeholder =
                    *wanted == "*" || stem.len() > 2 && stem.bytes().all(|byte| byte.is_ascii_uppercase());
                part == wanted || is_placeholder && !wanted.contains('.')
            })
    })
}

#[test]
fn every_path_that_a_document_names_exists() {
    let mut all = BTreeSet::new();
    everything(root(), &mut all);
    let mut count = 0;
    let mut missing = Vec::new();
    let pages = all.iter().filter(|file| file.starts_with("guide/") && file.ends_with(".md"));
    for document in DOCUMENTS.iter().copied().chain(pages.map(String::as_str)) {
        let text = std::fs::read_to_string(root().join(document)).expect("the document");
        for path in named(document, &text) {
            count += 1;
            if !exists(&path, &all) {
                missing.push(format!("{document}: {path}"));
            }
        }
    }
    assert!(count > 150, "only {count} paths were recognised");
    assert!(missing.is_empty(), "no such file or folder:\n{}", missing.join("\n"));
}

#[test]
fn paths_are_recognised_and_compared_by_components() {
    let text = "See `a/{b,c}.rs`, `object/KIND/wire.rs`, `cargo x/y z` and `lib.rs`.";
    assert_eq!(named("X.md", text), ["a/b.rs", "a/c.rs", "object/KIND/wire.rs", "lib.rs"]);
    assert_eq!(named("x.rs", "//! `a/b`\n/// `c/d`\n"), ["a/b"]);
    let all = BTreeSet::from(["crates/nftables/src/object/set/wire.rs".to_owned()]);
    assert!(exists("object/KIND/wire.rs", &all) && exists("nftables/src/object/*/wire.rs", &all));
    assert!(!exists("ect/set/wire.rs", &all) && !exists("set/wire", &all) && !exists("wire.rs/x", &all));
}
