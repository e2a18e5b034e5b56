//! The schemas of `schemas/v1` are those of what the commands print with `--output json`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use testns::schema::{self, has_judge};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/v1")
}

fn refused(printed: &[(&str, &Value)]) -> String {
    schema::refused(&folder(), printed)
}

/// Asserts that all that a command printed is as its schema says, where the judge is here. Starting it costs more than
/// many values.
pub(crate) fn assert_valid<'v>(name: &str, printed: impl IntoIterator<Item = &'v Value>) {
    if has_judge() {
        let printed: Vec<_> = printed.into_iter().map(|value| (name, value)).collect();
        let refused = refused(&printed);
        assert!(refused.is_empty(), "{refused}{printed:#?}");
    }
}

#[test]
fn what_commands_print_is_as_their_schemas_say() {
    const EXAMPLE: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../service-rules/testdata/kube-proxy/services.yaml");
    if !has_judge() {
        return;
    }
    let node = ["--hostname-override", "node", "--manifests", EXAMPLE];
    let to = |to| ["--from", "10.0.0.1", "--to", to];
    let words: [(&str, Vec<&str>); 10] = [
        ("check", node.to_vec()),
        ("diff", node.to_vec()),
        ("sync", node.to_vec()),
        ("diff", node.to_vec()),
        ("doctor", vec![]),
        ("doctor", node.to_vec()),
        ("explain", [&to("172.30.10.1:80/tcp")[..], &node].concat()),
        ("explain", [&to("192.0.2.1:80/tcp")[..], &node].concat()),
        ("explain", [&to("172.30.10.1:80/tcp")[..], &node, &["--proxy-mode", "ipvs"]].concat()),
        ("cleanup", vec!["--proxy-mode", "nftables"]),
    ];
    testns::netns(|| {
        let run = |(name, words): &(&'static str, Vec<&str>)| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
            let output = command.arg(name).args(words).args(["-o", "json"]).output().expect("it starts");
            let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
                panic!("{name}: {error}: {}", String::from_utf8_lossy(&output.stderr))
            });
            (*name, value)
        };
        let printed: Vec<_> = words.iter().map(run).collect();
        let refused = refused(&printed.iter().map(|(name, value)| (*name, value)).collect::<Vec<_>>());
        assert!(refused.is_empty(), "{refused}");
    });
}

#[test]
fn a_field_too_many_or_too_few_is_refused() {
    if !has_judge() {
        return;
    }
    let good = serde_json::json!({ "removed": ["table ip kube-proxy"], "failed": [] });
    assert_eq!(refused(&[("cleanup", &good)]), "");
    let (mut more, mut fewer, mut other) = (good.clone(), good.clone(), good.clone());
    more["more"] = true.into();
    fewer.as_object_mut().expect("an object").remove("failed");
    other["failed"] = 7.into();
    let said = refused(&[("cleanup", &more), ("cleanup", &fewer), ("cleanup", &other)]);
    assert_eq!(said.lines().count(), 3, "{said}");
    assert!(said.contains("'failed' is a required property"), "{said}");
}

#[test]
fn every_command_with_json_has_a_schema() {
    let help =
        Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier")).arg("--help").output().expect("it starts");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let named = |name: &&str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
        let help = command.args([name, "--help"]).output().expect("it starts").stdout;
        String::from_utf8_lossy(&help).contains("--output <FORM>")
    };
    let words = help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let mut commands: Vec<_> =
        words.filter(|word| !word.is_empty() && *word != "help").filter(named).collect();
    let files = fs::read_dir(folder()).expect("schemas").map(|file| file.expect("a file").path());
    let mut schemas: Vec<_> =
        files.map(|file| file.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    commands.sort_unstable();
    schemas.sort();
    assert_eq!(schemas, commands);
}
