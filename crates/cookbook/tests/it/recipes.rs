//! What recipes print, beside the files in `output/` that the guide includes.
//!
//! `SLUICEGATE_UPDATE=1 cargo test -p sluicegate-cookbook` writes these files: read the change before it is
//! committed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sluicegate-cookbook");
const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Recipes for a module that most kernels lack: they run in a guest.
pub(crate) const OF_GUESTS: [&str; 1] = ["balance-udp"];

/// Names of recipes with their titles, as the program lists them.
pub(crate) fn listed() -> Vec<(String, String)> {
    let list = Command::new(PROGRAM).output().expect("the program starts");
    let list = String::from_utf8(list.stdout).expect("names are text");
    let lines = list.lines().filter_map(|line| line.strip_prefix("  ")?.split_once(' '));
    lines.map(|(name, title)| (name.to_owned(), title.trim().to_owned())).collect()
}

pub(crate) fn run(name: &str) -> Output {
    Command::new(PROGRAM).arg(name).output().expect("the program starts")
}

/// Returns what is wrong with what a recipe did.
pub(crate) fn wrong(name: &str, output: &Output) -> Option<String> {
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Some(format!("{name}: {}\n{printed}{said}", output.status));
    }
    let file = Path::new(HERE).join("output").join(format!("{name}.txt"));
    if std::env::var_os("SLUICEGATE_UPDATE").is_some() {
        fs::write(&file, &*printed).expect("output/ can be written");
    }
    let shown = fs::read_to_string(&file).unwrap_or_default();
    (shown != *printed).then(|| format!("{name} printed\n{printed}\nand the guide shows\n{shown}"))
}

#[test]
fn every_recipe_prints_what_the_guide_shows() {
    if testns::Netns::new().is_none() || !testns::have(&["ip"]) {
        return;
    }
    let (next, all_wrong) = (Mutex::new(listed().into_iter()), Mutex::new(Vec::new()));
    let work = || {
        let one = || next.lock().expect("no panic").next();
        while let Some((name, _)) = one() {
            if OF_GUESTS.contains(&name.as_str()) {
                testns::lacks(&format!("what `{name}` needs"));
            } else if let Some(wrong) = wrong(&name, &run(&name)) {
                all_wrong.lock().expect("no panic").push(wrong);
            }
        }
    };
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
    let all_wrong = all_wrong.into_inner().expect("no panic");
    assert!(all_wrong.is_empty(), "{}", all_wrong.join("\n\n"));
}

#[test]
fn every_file_is_a_recipe_with_output_and_a_place_in_the_guide() {
    let stems = |folder: &str| -> BTreeSet<String> {
        let files = fs::read_dir(Path::new(HERE).join(folder)).expect("it is there");
        let paths = files.map(|file| file.expect("it can be read").path());
        paths.map(|path| path.file_stem().expect("a name").to_string_lossy().replace('_', "-")).collect()
    };
    let names: BTreeSet<String> = listed().into_iter().map(|(name, _)| name).collect();
    let mut files = stems("src/recipes");
    assert!(files.remove("mod"));
    assert_eq!(files, names, "files in src/recipes, and recipes");
    assert_eq!(stems("output"), names, "files in output, and recipes");
    assert!(names.len() >= 40, "{} recipes", names.len());

    let guide = Path::new(HERE).join("../../guide/cookbook");
    let mut pages = String::new();
    for page in fs::read_dir(guide).expect("the guide has a cookbook") {
        pages += &fs::read_to_string(page.expect("a page").path()).expect("a page is text");
    }
    for (name, title) in listed() {
        let stem = name.replace('-', "_");
        for part in [
            format!("## {}\n", title.trim_end_matches('.').split(['.', ':']).next().unwrap_or_default()),
            format!("{{{{#include ../../crates/cookbook/src/recipes/{stem}.rs}}}}"),
            format!("{{{{#include ../../crates/cookbook/output/{name}.txt}}}}"),
        ] {
            assert!(pages.contains(&part), "a page of guide/cookbook needs {part:?}");
        }
    }
}

#[test]
fn a_recipe_is_short_and_says_what_it_is_for() {
    for (name, title) in listed() {
        let path = Path::new(HERE).join("src/recipes").join(format!("{}.rs", name.replace('-', "_")));
        let source = fs::read_to_string(path).expect("a recipe is a file");
        let lines = source.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines < 40, "{name}: {lines} lines");
        assert!(source.contains("\npub fn main() -> "), "{name} has a main that can be copied");
        assert!(title.ends_with('.'), "{name}: its first line is a sentence: {title:?}");
    }
}

#[test]
fn a_name_that_is_not_there_is_an_error() {
    let output = run("teleport");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("expected the name of a recipe, found `teleport`"), "{said}");
}
