//! The test programs of the workspace: builds them with cargo, and starts each as cargo would.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use serde_json::Value;

use crate::report::Outcome;
use crate::session::{Session, shown};
use crate::{children, parallel, progress, test_run};

/// A program that cargo built.
#[derive(Debug, PartialEq)]
pub(crate) struct Program {
    /// The ID of its package.
    pub package: String,
    /// Whether it is a test program.
    pub is_test: bool,
    /// `lib`, `bin`, `test` or `example`.
    pub kind: String,
    /// The name in the manifest.
    pub name: String,
    pub path: PathBuf,
}

/// Builds what `cargo test` with these arguments builds: test programs, programs and examples.
pub(crate) fn build(session: &Session, arguments: &[&str]) -> Result<Vec<Program>, String> {
    let mut cargo = session.cargo();
    cargo.args(["test", "--no-run"]).args(arguments);
    progress::say(format!("$ {}", shown(&cargo)));
    cargo.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    let output = children::output(&mut cargo).map_err(|e| format!("{}: {e}", shown(&cargo)))?;
    if !output.status.success() {
        return Err(format!("`{}`: {}", shown(&cargo), output.status));
    }
    Ok(programs(&String::from_utf8_lossy(&output.stdout)))
}

/// Returns the programs in cargo's messages.
fn programs(messages: &str) -> Vec<Program> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter_map(|message| {
            Some(Program {
                package: message["package_id"].as_str()?.to_owned(),
                is_test: message["profile"]["test"].as_bool()?,
                kind: message["target"]["kind"][0].as_str()?.to_owned(),
                name: message["target"]["name"].as_str()?.to_owned(),
                path: message["executable"].as_str()?.into(),
            })
        })
        .collect()
}

/// How to run test programs.
pub(crate) struct How<'a> {
    /// The name of the check, for the command that repeats a failure.
    pub check: &'a str,
    /// What is written before the program's path.
    pub runner: Vec<String>,
    /// Whether a test that is skipped fails where `SLUICEGATE_NO_SKIP` is set.
    pub skips_count: bool,
}

/// Runs the test programs among these, and counts their tests. As many run at a time as there are processors:
/// tests of namespaces mostly wait for the kernel.
pub(crate) fn run(session: &Session, programs: &[&Program], how: &How) -> Result<Outcome, String> {
    let programs: Vec<_> = programs.iter().filter(|program| program.is_test).collect();
    // Tests append to it from their processes. It need not exist.
    let _ = fs::remove_file(&session.skipped);
    let mut runs = Vec::new();
    for program in programs {
        let package = session.members().find(|package| package["id"] == *program.package);
        let package = package.ok_or_else(|| format!("no package of the workspace is {}", program.package))?;
        let tests = listed(&mut program.command(session, package, how))?;
        if tests > 0 {
            runs.push((program, package, tests));
        }
    }
    progress::expect_tests(runs.iter().map(|(.., tests)| tests).sum());
    // What has many tests begins first, so that it does not run alone in the end.
    runs.sort_by_key(|(.., tests)| Reverse(*tests));
    let mut outcome = parallel::each(&runs, |(program, package, _)| {
        let name = package["name"].as_str().unwrap_or_default();
        let what = if program.kind == "lib" { String::new() } else { format!(" {}", program.name) };
        let title = format!("     Running {name}{what} ({})", program.path.display());
        let mut came = test_run::run_titled(&mut program.command(session, package, how), &title)?;
        for failure in &mut came.failures {
            *failure = format!("{name}{what}: {failure}\n{}", again(how.check, failure));
        }
        Ok(came)
    });
    let logged = fs::read_to_string(&session.skipped).unwrap_or_default();
    test_run::take_skips(&mut outcome, &logged);
    Ok(outcome)
}

/// Returns the command that repeats one test.
pub(crate) fn again(check: &str, test: &str) -> String {
    let test = if test.contains(' ') { format!("'{test}'") } else { test.to_owned() };
    format!("again: cargo xtask test {check} --only {test}")
}

/// Returns the programs that are not among `others`.
pub(crate) fn without<'a>(programs: &'a [Program], others: &[Program]) -> Vec<&'a Program> {
    let others: BTreeSet<&Path> = others.iter().map(|program| program.path.as_path()).collect();
    programs.iter().filter(|program| !others.contains(program.path.as_path())).collect()
}

impl Program {
    fn command(&self, session: &Session, package: &Value, how: &How) -> Command {
        let mut words = how.runner.iter().map(AsRef::as_ref).chain([self.path.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).args(session.only_tests());
        // As cargo starts it.
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let directory = manifest.parent().unwrap_or(&session.root);
        command.current_dir(directory).env("CARGO_MANIFEST_DIR", directory);
        command.env("SLUICEGATE_SKIPPED", &session.skipped);
        // One for each program: iptables-legacy fails where another one holds the machine's at that moment.
        let lock = format!("{}.xtables.lock", self.path.file_name().unwrap_or_default().display());
        command.env("XTABLES_LOCKFILE", session.scratch.join(lock));
        if !how.skips_count {
            command.env_remove("SLUICEGATE_NO_SKIP");
        }
        // A property is tried with the same values each time, so that a failure is due to the change that is checked:
        // `cargo test` searches on.
        set_unless_given(&mut command, "PROPTEST_RNG_SEED", "1");
        command
    }
}

/// Sets a variable that whoever started us has not set.
fn set_unless_given(command: &mut Command, name: &str, value: &str) {
    if env::var_os(name).is_none() {
        command.env(name, value);
    }
}

/// Returns the number of tests of a program, or of those that its arguments name.
pub(crate) fn listed(command: &mut Command) -> Result<usize, String> {
    command.args(["--list", "--format", "terse"]).stdout(Stdio::piped());
    let output = children::output(command).map_err(|e| format!("{}: {e}", shown(command)))?;
    if !output.status.success() {
        return Err(format!("`{}`: {}", shown(command), output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter(|line| line.ends_with(": test")).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    // cargo 1.95, shortened.
    #[test]
    fn programs_are_found_among_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","package_id":"path+file:///w/crates/ipvs#sluicegate-ipvs@0.1.0","target":{"kind":["lib"],"name":"sluicegate_ipvs"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/ipvs#sluicegate-ipvs@0.1.0","target":{"kind":["test"],"name":"it"},"profile":{"test":true},"executable":"/w/target/debug/deps/it-0123456789abcdef"}
{"reason":"build-finished","success":true}"#;
        let built = Program {
            package: "path+file:///w/crates/ipvs#sluicegate-ipvs@0.1.0".to_owned(),
            is_test: true,
            kind: "test".to_owned(),
            name: "it".to_owned(),
            path: PathBuf::from("/w/target/debug/deps/it-0123456789abcdef"),
        };
        let found = programs(messages);
        assert!(without(&found, &programs(messages)).is_empty());
        assert_eq!(found, [built]);
    }

    #[test]
    fn the_command_that_repeats_a_test_can_be_typed() {
        assert_eq!(again("guest", "guest::a"), "again: cargo xtask test guest --only guest::a");
        assert_eq!(
            again("doctest", "src/lib.rs - f (line 1)"),
            "again: cargo xtask test doctest --only 'src/lib.rs - f (line 1)'"
        );
    }
}
