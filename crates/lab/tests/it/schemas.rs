//! What the commands print with `--output json` is as the schemas of `schemas/v1` say.

use std::path::Path;
use std::process::Command;

use testns::schema::{has_judge, refused};

/// Runs a command, and compares its object with its schema.
fn is_as_its_schema_says(name: &str, arguments: &[&str]) {
    if testns::Netns::new().is_none() || !has_judge() {
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate-lab"));
    let output = command.arg(name).args(arguments).args(["--output", "json"]).output().expect("the command");
    let text = String::from_utf8_lossy(&output.stdout);
    let value: serde_json::Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/v1");
    assert_eq!(refused(&folder, &[(name, &value)]), "", "{value:#}");
    let mut fewer = value.clone();
    let first = value.as_object().and_then(|object| object.keys().next()).expect("a field");
    fewer.as_object_mut().expect("an object").remove(first);
    assert_ne!(refused(&folder, &[(name, &fewer)]), "", "without {first}");
}

#[test]
fn the_demonstration_is_as_its_schema_says() {
    is_as_its_schema_says("demo", &["--services", "3"]);
}

#[cfg(feature = "matrix")]
#[test]
fn the_matrix_is_as_its_schema_says() {
    is_as_its_schema_says("matrix", &["--one-of", "97", "--trace"]);
}

#[cfg(feature = "soak")]
#[test]
fn the_siege_is_as_its_schema_says() {
    is_as_its_schema_says("soak", &["--minutes", "0.01", "--services", "3"]);
}
