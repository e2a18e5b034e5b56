//! The public API of every published library, as text in `api/NAME.txt`: a change of it is seen in review.
//!
//! rustdoc writes it as JSON, and `public-api` turns that into lines. The JSON is unstable: its version
//! follows the toolchain, and `public-api` reads one version. So the first toolchain that is installed and
//! writes it is taken, beginning with the one that runs this program, which has compiled everything already.
//! `=` pins `public-api` in the manifest; the version to pin is the one that a recent stable Rust matches.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use public_api::Builder;
use serde_json::Value;

use crate::report::Outcome;
use crate::session::{Session, shown};

/// Compares the libraries with their files.
pub(crate) fn check(session: &Session) -> Result<Outcome, String> {
    let Some(toolchain) = Toolchain::find(session)? else { return Ok(Outcome::skipped(NO_TOOLCHAIN)) };
    let mut outcome = Outcome::default();
    for (name, now) in all(session, &toolchain)? {
        let committed = fs::read_to_string(file(session, &name)).unwrap_or_default();
        match difference(&committed, &now) {
            Some(lines) => outcome.failures.push(format!(
                "the public API of {name} is not that of api/{name}.txt (`cargo xtask api` writes it):\n{lines}"
            )),
            None => outcome.passed += 1,
        }
    }
    let files = fs::read_dir(session.root.join("api")).map_err(|e| format!("api: {e}"))?.count();
    if files > outcome.passed + outcome.failures.len() {
        outcome.failures.push("api/ has a file of a library that does not exist".to_owned());
    }
    Ok(outcome)
}

/// Writes the files.
pub(crate) fn write(session: &Session) -> Result<(), String> {
    let toolchain = Toolchain::find(session)?.ok_or(NO_TOOLCHAIN)?;
    for (name, text) in all(session, &toolchain)? {
        let file = file(session, &name);
        fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(())
}

fn file(session: &Session, name: &str) -> PathBuf {
    session.root.join("api").join(format!("{name}.txt"))
}

/// Returns each published library with its API.
fn all(session: &Session, toolchain: &Toolchain) -> Result<Vec<(String, String)>, String> {
    let mut all = Vec::new();
    for package in session.published() {
        let Some(library) = library(package) else { continue };
        let name = package["name"].as_str().unwrap_or_default().to_owned();
        // As the check `doc` does, so that its dependencies are compiled for both.
        let mut cargo = toolchain.cargo(session);
        cargo.args(["doc", "--quiet", "--no-deps", "--all-features", "--lib", "--package", &name]);
        cargo.env("RUSTDOCFLAGS", JSON.join(" ")).env("RUSTDOC", session.own_program()).env(AS_RUSTDOC, "1");
        session.run(&mut cargo)?;
        let json = session.target().join("doc").join(format!("{library}.json"));
        all.push((name, text(&json)?));
    }
    Ok(all)
}

/// Returns the name of a package's library, as rustc has it.
fn library(package: &Value) -> Option<String> {
    let mut targets = package["targets"].as_array()?.iter();
    let library = targets.find(|target| target["kind"][0] == "lib")?;
    Some(library["name"].as_str()?.replace('-', "_"))
}

/// Returns the API as lines in the order of their paths. Of a derived trait it says that it is implemented,
/// and not which methods that gives.
fn text(json: &Path) -> Result<String, String> {
    let items = |omit_derived| -> Result<Vec<String>, String> {
        let api = Builder::from_rustdoc_json(json)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .omit_auto_derived_impls(omit_derived)
            .build()
            .map_err(|error| format!("{}: {error}", json.display()))?;
        Ok(api.items().map(ToString::to_string).collect())
    };
    let written = items(true)?;
    let mut written = written.iter().peekable();
    let mut text = String::new();
    for line in items(false)? {
        let stays = written.next_if(|next| **next == line).is_some();
        // The last is what `derive(PartialEq)` adds for the compiler.
        if (stays || line.starts_with("impl")) && !line.contains("core::marker::StructuralPartialEq") {
            text.push_str(&line);
            text.push('\n');
        }
    }
    Ok(text)
}

/// Returns what is only in `committed` with `-` and what is only in `now` with `+`; `None` if they are equal.
fn difference(committed: &str, now: &str) -> Option<String> {
    if committed == now {
        return None;
    }
    let only = |sign: &str, these: &str, those: &str| {
        let those: std::collections::HashSet<_> = those.lines().collect();
        let only = these.lines().filter(|line| !those.contains(line));
        only.map(|line| format!("{sign} {line}")).collect::<Vec<_>>()
    };
    let mut lines = only("-", committed, now);
    lines.extend(only("+", now, committed));
    if lines.is_empty() {
        lines.push("(the same lines in another order)".to_owned());
    }
    Some(lines.join("\n"))
}

/// The toolchain whose rustdoc is used: `None` is the one that runs this program.
struct Toolchain(Option<String>);

impl Toolchain {
    /// Returns the first that writes the version which `public-api` reads.
    fn find(session: &Session) -> Result<Option<Self>, String> {
        let directory = session.scratch.join("api");
        fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        let source = directory.join("probe.rs");
        fs::write(&source, "//! Empty.\n").map_err(|e| format!("{}: {e}", source.display()))?;
        let listed = Command::new("rustup").args(["toolchain", "list", "--quiet"]).output();
        let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let listed = listed.unwrap_or_default();
        let names = listed.lines().filter_map(|line| line.split_whitespace().next());
        let mut candidates = std::iter::once(Self(None)).chain(names.map(|name| Self(Some(name.to_owned()))));
        Ok(candidates.find(|candidate| {
            let mut rustdoc = candidate.command("rustdoc");
            rustdoc.arg(&source).args(JSON).arg("--out-dir").arg(&directory).env("RUSTC_BOOTSTRAP", "1");
            rustdoc.stdout(Stdio::null()).stderr(Stdio::null());
            rustdoc.status().is_ok_and(|status| status.success())
                && text(&directory.join("probe.json")).is_ok()
        }))
    }

    fn cargo(&self, session: &Session) -> Command {
        match self {
            Self(None) => session.cargo(),
            Self(Some(_)) => {
                let mut cargo = self.command("cargo");
                cargo.current_dir(&session.root);
                cargo
            }
        }
    }

    fn command(&self, program: &str) -> Command {
        let Self(Some(toolchain)) = self else { return Command::new(program) };
        let mut command = Command::new("rustup");
        command.args(["run", toolchain, program]);
        // The variables of the toolchain that runs xtask do not apply to it.
        for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
            command.env_remove(variable);
        }
        command
    }
}

/// Becomes rustdoc, with permission to write JSON, if `cargo` was told to start us as rustdoc. In cargo's own
/// environment that permission would make it build again each dependency whose build script looks for it.
pub(crate) fn become_rustdoc() -> Option<String> {
    use std::os::unix::process::CommandExt;

    env::var_os(AS_RUSTDOC)?;
    let mut rustdoc = Command::new("rustdoc");
    rustdoc.args(env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1").env_remove(AS_RUSTDOC);
    let error = rustdoc.exec();
    Some(format!("{}: {error}", shown(&rustdoc)))
}

/// Makes this program rustdoc.
const AS_RUSTDOC: &str = "SLUICEGATE_AS_RUSTDOC";

const JSON: &[&str] = &["-Zunstable-options", "--output-format=json"];

const NO_TOOLCHAIN: &str = "no installed toolchain has a rustdoc whose JSON `public-api` reads (see \
                            xtask/src/api.rs: another version of it, or `rustup toolchain install stable`)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_lines_of_either_side() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(difference("a\nb\n", "a\nc\n").as_deref(), Some("- b\n+ c"));
        assert_eq!(difference("a\nb\n", "b\na\n").as_deref(), Some("(the same lines in another order)"));
    }
}
