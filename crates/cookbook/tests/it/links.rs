//! Links and includes of the guide, and of the documents beside it, lead somewhere.
//!
//! `cargo xtask book` checks the site as mdBook builds it, where mdBook is installed. This looks at the sources and
//! needs nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Files of the repository, where a page of the site cannot link to them by a path.
const REPOSITORY: &str = "https://github.com/sluicegate/sluicegate/";

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// The pages of the guide.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the guide") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
}

/// The documents whose links are checked.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    pages(&root().join("guide"), &mut found);
    for entry in fs::read_dir(root()).expect("the repository").flatten() {
        if entry.path().extension().is_some_and(|end| end == "md") {
            found.push(entry.path());
        }
    }
    for crate_ in fs::read_dir(root().join("crates")).expect("crates").flatten() {
        for name in ["README.md", "COMPATIBILITY.md"] {
            found.extend(Some(crate_.path().join(name)).filter(|path| path.exists()));
        }
    }
    found.push(root().join("deploy/README.md"));
    found
}

/// The text without blocks and spans of code.
fn prose(text: &str) -> String {
    let (mut kept, mut fence) = (String::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fence = !fence;
        } else if !fence {
            // A link's text may be code: only the marks are dropped where they do not hold brackets.
            for (index, part) in line.split('`').enumerate() {
                kept += if index % 2 == 1 && part.contains(['[', ']', '(']) { "code" } else { part };
            }
        }
        kept.push('\n');
    }
    kept
}

/// Where links and pictures lead.
fn targets(text: &str) -> Vec<String> {
    let text = prose(text);
    let inline = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let named = text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
    inline.chain(named.map(|(_, target)| target)).map(|target| target.trim().to_owned()).collect()
}

/// The anchors of a page's headings, as mdBook and GitHub make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let (mut found, mut fence) = (BTreeSet::new(), false);
    for line in text.lines() {
        fence ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if fence || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        let words = heading.trim().to_lowercase().replace(' ', "-");
        let id: String = words.chars().filter(|c| kept(*c)).collect();
        let mut unique = id.clone();
        for number in 1.. {
            if found.insert(unique.clone()) {
                break;
            }
            unique = format!("{id}-{number}");
        }
    }
    found
}

/// What is wrong with a link of a document.
fn broken(document: &Path, target: &str) -> Option<String> {
    let in_repository = target.strip_prefix(REPOSITORY).and_then(|rest| rest.split_once("/main/"));
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match in_repository {
        Some((_, path)) => root().join(path.split('#').next().unwrap_or_default()),
        None if file.contains("://") || file.contains("::") || file.starts_with("mailto:") => return None,
        None if file.is_empty() => document.to_path_buf(),
        None => document.parent().expect("a folder").join(file),
    };
    let in_guide = |path: &Path| path.starts_with(root().join("guide"));
    let Ok(path) = path.canonicalize() else { return Some(format!("there is no {file}")) };
    if in_repository.is_none() && in_guide(document) && !in_guide(&path) {
        return Some(format!("{file} is not part of the site: write {REPOSITORY}blob/main/..."));
    }
    let is_page = path.extension().is_some_and(|end| end == "md");
    if is_page && !anchor.is_empty() {
        let text = fs::read_to_string(&path).expect("a document");
        return (!anchors(&text).contains(anchor)).then(|| format!("{file} has no heading #{anchor}"));
    }
    None
}

#[test]
fn every_link_leads_somewhere() {
    let (mut links, mut all_broken) = (0, Vec::new());
    for document in documents() {
        let text = fs::read_to_string(&document).expect("a document");
        for target in targets(&text) {
            links += 1;
            let wrong = broken(&document, &target);
            all_broken.extend(wrong.map(|wrong| format!("{}: ({target}): {wrong}", document.display())));
        }
    }
    assert!(links > 140, "only {links} links were recognised");
    assert!(all_broken.is_empty(), "{}", all_broken.join("\n"));
}

#[test]
fn every_include_of_the_guide_is_there() {
    let (mut found, mut includes) = (Vec::new(), 0);
    pages(&root().join("guide"), &mut found);
    for page in found {
        let text = fs::read_to_string(&page).expect("a page");
        for include in text.split("{{#include ").skip(1).filter_map(|rest| rest.split("}}").next()) {
            includes += 1;
            let file = page.parent().expect("a folder").join(include);
            assert!(file.is_file(), "{}: there is no {include}", page.display());
        }
    }
    assert!(includes > 80, "only {includes} includes were recognised");
}

#[test]
fn every_page_is_in_the_contents() {
    let guide = root().join("guide");
    let summary = fs::read_to_string(guide.join("SUMMARY.md")).expect("the contents");
    let listed: BTreeSet<_> = targets(&summary).into_iter().collect();
    let mut found = Vec::new();
    pages(&guide, &mut found);
    let there: BTreeSet<_> = found
        .iter()
        .filter_map(|page| page.strip_prefix(&guide).ok()?.to_str())
        .filter(|page| *page != "SUMMARY.md")
        .map(str::to_owned)
        .collect();
    assert_eq!(listed, there);
}

#[test]
fn links_and_anchors_are_recognised() {
    let text = "See [`a`](b.md#c), ![p](d.svg) and `[x](y)`.\n```\n[n](o)\n```\n[r]: e.md\n";
    assert_eq!(targets(text), ["b.md#c", "d.svg", "e.md"]);
    let text = "# A `b`: c\n## Same\n## Same\n```\n# no\n```\n#no\n";
    assert_eq!(anchors(text), BTreeSet::from(["a-b-c", "same", "same-1"].map(str::to_owned)));
}
