//! The schemas of `schemas/v1` are those of what the commands print with `--output json`.
//!
//! The judge is the Python package `jsonschema`: validators in Rust compile forty crates for this one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Reads pairs of a schema's name and an instance, and validates each. For whoever reads the output a schema permits
/// further fields; here each must have its line in the schema.
const VALIDATE: &str = r#"
import json, os, sys
from jsonschema import Draft202012Validator

def strict(schema):
    if isinstance(schema, dict):
        schema = {name: strict(inner) for name, inner in schema.items()}
        if isinstance(schema.get("properties"), dict):
            schema["additionalProperties"] = False
    elif isinstance(schema, list):
        schema = [strict(inner) for inner in schema]
    return schema

wrong = 0
for name, instance in json.load(sys.stdin):
    with open(os.path.join(sys.argv[1], name + ".json")) as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    for error in Draft202012Validator(strict(schema)).iter_errors(instance):
        wrong += 1
        print(name, "at", "/".join(map(str, error.absolute_path)) or "its top:", error.message)
sys.exit(1 if wrong else 0)
"#;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/v1")
}

/// Whether the judge is here; otherwise skips.
fn has_judge() -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", "import jsonschema"]).stderr(Stdio::null());
    let has = python.status().is_ok_and(|status| status.success());
    if !has {
        testns::skip("not installed: python3 with jsonschema (Debian: python3-jsonschema)");
    }
    has
}

/// Returns what of these the schemas refuse.
fn refused(printed: &[(&str, &Value)]) -> String {
    let folder = folder().to_string_lossy().into_owned();
    let input = serde_json::to_string(printed).expect("values print");
    let output = testns::feed(&["python3", "-c", VALIDATE, &folder], &input);
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() || !said.is_empty(), "python3: {}", output.status);
    said
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
