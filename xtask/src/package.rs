//! The packages as they would be published: complete, described, and compiled from what they contain alone.
//!
//! `cargo package` would compile each package by itself, and its dependencies with each. Here all are
//! unpacked into one workspace, in which each depends on the others' packages, and checked at once.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::report::Outcome;
use crate::session::Session;
use crate::{image, release};

/// What every package contains beside its code.
const FILES: &[&str] = &["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

pub(crate) fn check(session: &Session) -> Result<Outcome, String> {
    let packages: Vec<_> = session.published().collect();
    let mut outcome = Outcome::default();
    let mut cargo = session.cargo();
    // A change that is not committed is packaged too.
    cargo.args(["package", "--quiet", "--no-verify", "--allow-dirty"]);
    for package in &packages {
        cargo.arg("--package").arg(text(package, "name"));
    }
    session.run(&mut cargo)?;

    let directory = session.scratch.join("packages");
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    }
    fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut patches = String::new();
    for package in &packages {
        let (name, full) =
            (text(package, "name"), format!("{}-{}", text(package, "name"), text(package, "version")));
        let archive = session.target().join(format!("package/{full}.crate"));
        session.run(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&directory))?;
        outcome.failures.extend(missing(package, &directory.join(&full)));
        patches.push_str(&format!("{name} = {{ path = \"{full}\" }}\n"));
    }
    let manifest =
        format!("[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n\n[patch.crates-io]\n{patches}");
    let write = |name: &str, content: &[u8]| {
        fs::write(directory.join(name), content).map_err(|e| format!("{}/{name}: {e}", directory.display()))
    };
    write("Cargo.toml", manifest.as_bytes())?;
    write("Cargo.lock", &fs::read(session.root.join("Cargo.lock")).map_err(|e| format!("Cargo.lock: {e}"))?)?;
    let mut cargo = session.cargo();
    cargo.args(["check", "--quiet", "--workspace", "--lib", "--bins", "--examples", "--all-features"]);
    cargo.arg("--manifest-path");
    session.run(cargo.arg(directory.join("Cargo.toml")).arg("--target-dir").arg(session.target()))?;
    outcome.passed += packages.len();
    outcome.failures.extend(release::inconsistencies(session)?);
    match image::incomplete(session) {
        Ok(missing) => outcome.failures.extend(missing),
        // Of distributions other than Debian and Arch the places of licences are not known.
        Err(why) => outcome.skips.push(format!("the licences of what the images have: {why}")),
    }
    Ok(outcome)
}

/// Returns what a package lacks that people need who find it alone.
fn missing(package: &Value, unpacked: &Path) -> Vec<String> {
    let name = text(package, "name");
    let files = FILES.iter().filter(|file| !unpacked.join(file).is_file());
    let mut missing: Vec<_> = files.map(|file| format!("{name}: its package has no {file}")).collect();
    for key in ["keywords", "categories"] {
        if package[key].as_array().is_none_or(Vec::is_empty) {
            missing.push(format!("{name}: its manifest has no {key}"));
        }
    }
    missing
}

fn text<'a>(package: &'a Value, key: &str) -> &'a str {
    package[key].as_str().unwrap_or_default()
}
