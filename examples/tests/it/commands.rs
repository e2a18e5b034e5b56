//! What holds for every example: it answers `--help`, and neither a full disk nor a reader who goes away
//! makes it panic.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};

use testns::{Netns, example};

/// A command line for each example that prints something and changes nothing outside of this namespace; with
/// `--help` where there is none.
const PRINTING: &[(&str, &[&str])] = &[("iptables-save", &["--json"])];

/// The names of all examples.
fn names() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let entries =
        std::fs::read_dir(directory).expect("the examples").map(|entry| entry.expect("an entry").path());
    let name = |path: std::path::PathBuf| path.file_stem().map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<_> = entries.filter_map(name).collect();
    names.sort();
    names
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").expect("a device that is full")
}

fn command(name: &str, words: &[&str]) -> Command {
    let mut command = Command::new(example(name));
    command.args(words).stdin(Stdio::null());
    command
}

#[test]
fn every_example_answers_help() {
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        for name in names() {
            let output = command(&name, &["--help"]).output().expect("the example runs");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(text.to_lowercase().contains("usage") || text.lines().count() > 10, "{name}: {text}");
            let long = text.lines().find(|line| line.chars().count() > 120);
            assert_eq!(long, None, "{name}");
        }
    });
}

#[test]
fn no_example_panics_where_nobody_reads_or_nothing_can_be_written() {
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        for name in names() {
            let own =
                PRINTING.iter().find(|(known, _)| *known == name).map_or(&["--help"][..], |(_, words)| words);
            for words in [own, &["--help"]] {
                let usual = command(&name, words).output().expect("the example runs").status.code();
                let disk = command(&name, words).stdout(full()).output().expect("the example runs");
                let said = String::from_utf8_lossy(&disk.stderr);
                assert!(!said.contains("panicked"), "{name} {words:?}: {said}");
                assert!(
                    disk.status.code().is_some_and(|code| code != 0),
                    "{name} {words:?}: full, and no word of it"
                );
                let (reader, writer) = std::io::pipe().expect("a pipe");
                drop(reader);
                let closed = command(&name, words).stdout(writer).output().expect("the example runs");
                let said = String::from_utf8_lossy(&closed.stderr);
                assert!(!said.contains("panicked"), "{name} {words:?}: {said}");
                assert_eq!(closed.status.code(), usual, "{name} {words:?} without a reader: {said}");
            }
            let wrong =
                command(&name, &["--nosuch"]).stderr(full()).stdout(full()).status().expect("it runs");
            assert!(wrong.code().is_some_and(|code| code != 101), "{name} --nosuch: {wrong}");
        }
    });
}
