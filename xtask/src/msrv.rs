//! The minimum supported Rust version (`rust-version`).
//!
//! That toolchain compiles the workspace. In any case it is checked that no dependency of the lock file
//! declares a newer version; and by clippy's `incompatible_msrv`, in the check `clippy`, that no item of the
//! standard library that we use is newer.

use std::process::Command;

use serde_json::Value;

use crate::report::Outcome;
use crate::session::{Session, packages};

pub(crate) fn check(session: &Session) -> Result<Outcome, String> {
    let promised = promised(session)?;
    let mut outcome = dependencies(&session.metadata, &promised)?;
    match installed(&promised) {
        Some(toolchain) => {
            let mut cargo = Command::new("rustup");
            cargo.current_dir(&session.root).args([
                "run",
                &toolchain,
                "cargo",
                "check",
                "--workspace",
                "--all-features",
            ]);
            for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
                cargo.env_remove(variable);
            }
            session.run(&mut cargo)?;
            outcome.passed += 1;
            outcome.notes.push(format!("checked: the workspace compiles with Rust {promised} ({toolchain})"));
        }
        None => outcome.add(session.missing(
            "msrv",
            &format!(
                "whether the workspace compiles with Rust {promised}, which is not installed (rustup \
                 toolchain install {promised} --profile minimal): only what dependencies declare was looked \
                 at, and which items of the standard library we use, in the check `clippy`"
            ),
        )),
    }
    Ok(outcome)
}

/// Returns the `rust-version` of all members.
fn promised(session: &Session) -> Result<String, String> {
    let mut versions: Vec<_> = session.members().map(|package| package["rust_version"].as_str()).collect();
    versions.dedup();
    match versions.as_slice() {
        [Some(version)] => Ok((*version).to_owned()),
        _ => Err(format!("the members of the workspace differ in their rust-version: {versions:?}")),
    }
}

/// Checks that no dependency declares a newer version.
fn dependencies(metadata: &Value, promised: &str) -> Result<Outcome, String> {
    let limit = parse(promised)?;
    let (mut declared, mut silent, mut newer) = (0, 0, Vec::new());
    for package in packages(metadata).filter(|package| !package["source"].is_null()) {
        match package["rust_version"].as_str() {
            None => silent += 1,
            Some(version) if parse(version)? > limit => {
                newer.push(format!("{} {} needs Rust {version}", package["name"], package["version"]));
            }
            Some(_) => declared += 1,
        }
    }
    if newer.is_empty() {
        Ok(Outcome::passed().note(format!(
            "checked: {declared} dependencies declare Rust {promised} or older; {silent} declare nothing"
        )))
    } else {
        Ok(Outcome { failures: newer, ..Outcome::default() })
    }
}

/// Returns the installed toolchain of that version, such as `1.88.0-x86_64-unknown-linux-gnu`.
fn installed(version: &str) -> Option<String> {
    let output = Command::new("rustup").args(["toolchain", "list"]).output().ok()?;
    let list = String::from_utf8(output.stdout).ok()?;
    list.split_whitespace().find(|name| is_version(name, version)).map(str::to_owned)
}

/// Returns whether a toolchain has a version: `1.88` is `1.88-x86_64-...` and `1.88.0-x86_64-...`, but not
/// `1.880`.
fn is_version(toolchain: &str, version: &str) -> bool {
    toolchain.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
}

fn parse(version: &str) -> Result<Vec<u32>, String> {
    let numbers: Result<Vec<u32>, _> = version.split('.').map(str::parse).collect();
    let mut numbers = numbers.map_err(|_| format!("{version} is no version of Rust"))?;
    numbers.resize(3, 0);
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(parse("1.9").unwrap() < parse("1.88").unwrap());
        assert_eq!(parse("1.88").unwrap(), parse("1.88.0").unwrap());
        assert!(parse("nightly").is_err());
    }

    #[test]
    fn a_toolchain_is_known_by_its_name() {
        assert!(is_version("1.88.0-x86_64-unknown-linux-gnu", "1.88"));
        assert!(is_version("1.88-x86_64-unknown-linux-gnu", "1.88"));
        assert!(!is_version("1.880.0-x86_64-unknown-linux-gnu", "1.88"));
        assert!(!is_version("stable-x86_64-unknown-linux-gnu", "1.88"));
    }

    #[test]
    fn a_dependency_that_needs_a_newer_rust_is_named() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "ours", "version": "0.1.0", "source": null, "rust_version": "1.99" },
            { "name": "old", "version": "1.0.0", "source": "registry", "rust_version": "1.56.1" },
            { "name": "silent", "version": "1.0.0", "source": "registry", "rust_version": null },
        ]});
        let outcome = dependencies(&metadata, "1.88").unwrap();
        assert_eq!((outcome.passed, outcome.failures.len()), (1, 0));
        assert!(
            outcome.notes[0].contains("1 dependencies declare")
                && outcome.notes[0].contains("1 declare nothing")
        );

        let outcome = dependencies(&metadata, "1.50").unwrap();
        assert_eq!(outcome.failures, [r#""old" "1.0.0" needs Rust 1.56.1"#]);
    }
}
