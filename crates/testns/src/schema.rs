//! Judges JSON by its schemas.
//!
//! The judge is the Python package `jsonschema`: validators in Rust compile forty crates for this one test.

use std::fmt::{Display, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{feed, skip};

/// Reads pairs of a schema's name and an instance, and validates each. For whoever reads the output a schema
/// permits further fields; here each must have its line in the schema.
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

/// Returns whether the judge is here; otherwise skips.
#[must_use]
pub fn has_judge() -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", "import jsonschema"]).stderr(Stdio::null());
    let has = python.status().is_ok_and(|status| status.success());
    if !has {
        skip("not installed: python3 with jsonschema (Debian: python3-jsonschema)");
    }
    has
}

/// Returns what the schemas of a folder refuse of JSON that was printed, each beside the name of its schema.
///
/// # Panics
///
/// If the judge itself fails: if a schema is missing, or what was printed is not JSON.
#[must_use]
pub fn refused<J: Display>(folder: &Path, printed: &[(&str, J)]) -> String {
    let folder = folder.to_string_lossy();
    let mut input = String::from("[");
    for (number, (name, json)) in printed.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(input, "{comma}[{name:?},{json}]");
    }
    input.push(']');
    let output = feed(&["python3", "-c", VALIDATE, folder.as_ref()], &input);
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() || !said.is_empty(), "python3: {}", output.status);
    said
}
