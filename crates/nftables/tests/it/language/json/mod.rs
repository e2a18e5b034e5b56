//! JSON over the corpus, with `nft -j` as the judge:
//!
//! * what we print of a ruleset is what `nft -j list ruleset` prints, byte for byte,
//! * what nft printed is read by us, and makes the same ruleset elsewhere,
//! * what we print as commands is read by `nft -j -f`, and makes the same ruleset elsewhere.
//!
//! What comes out otherwise is listed in `known.rs`, each with its reason.

mod known;
mod members;
mod rules;
mod scripts;

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;
use sluicegate_nftables::TableContent;
use sluicegate_nftables::json::{self, ruleset};

use crate::language::kernel::Machine;

/// An object of a listing.
struct Listed {
    /// As it is printed.
    text: String,
    value: Value,
}

impl Listed {
    /// The objects of what nft printed.
    fn by_nft(text: &str) -> Vec<Self> {
        let document: HashMap<&str, Vec<&RawValue>> = serde_json::from_str(text).expect("JSON");
        let objects = document.get("nftables").expect("a list of objects");
        let listed = |of: &&RawValue| Self {
            text: of.get().to_owned(),
            value: serde_json::from_str(of.get()).expect("JSON"),
        };
        objects.iter().map(listed).collect()
    }

    /// The objects of what we print.
    fn by_us(content: &[TableContent], machine: &Machine) -> Vec<Self> {
        let document = ruleset(content, &machine.list_options());
        let objects = document.get("nftables").and_then(json::Value::as_array).expect("a list of objects");
        objects.iter().map(|of| Self { text: of.to_string(), value: of.clone().into() }).collect()
    }

    /// The kind of the object and its members.
    fn object(&self) -> (&str, &Value) {
        let members = self.value.as_object().expect("an object");
        let (kind, of) = members.iter().next().expect("one member");
        (kind, of)
    }

    /// What names an object other than a rule: `set ip t0 s`.
    fn place(&self) -> String {
        let (kind, of) = self.object();
        let text = |name: &str| of[name].as_str().map_or(String::new(), |text| format!(" {text}"));
        format!("{kind}{}{}{}", text("family"), text("table"), text("name"))
    }
}

/// What `nft -j list ruleset` prints, inside a namespace.
fn listing() -> String {
    testns::sh("TZ=UTC nft -j list ruleset 2>/dev/null")
}

/// Loads commands by `nft -j -f`, inside a namespace.
fn nft(commands: &[Value]) -> Result<(), String> {
    let document = serde_json::json!({ "nftables": commands }).to_string();
    let output = testns::feed(&["env", "TZ=UTC", "nft", "-j", "-f", "-"], &document);
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}
