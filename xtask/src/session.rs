//! Paths of the workspace, and functions that run commands.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use nix::unistd::geteuid;
use serde_json::Value;

use crate::report::Outcome;
use crate::{children, progress};

/// The context of one run of xtask: the tree, cargo, and the options from the environment.
pub(crate) struct Session {
    /// The root of the tree.
    pub root: PathBuf,
    /// A directory for our own files, below cargo's target directory.
    pub scratch: PathBuf,
    /// The file in which tests log what they skip (`SLUICEGATE_SKIPPED`).
    pub skipped: PathBuf,
    /// Whether `SLUICEGATE_NO_SKIP` is set: skipped tests are failures.
    pub no_skip: bool,
    /// The one test to run, or the one fuzz target: all others are left out.
    pub only: Option<String>,
    /// The output of `cargo metadata` for the workspace and all its dependencies.
    pub metadata: Value,
    cargo: OsString,
    runner: PathBuf,
}

impl Session {
    /// Reads the metadata and the environment, and creates the scratch directory.
    pub(crate) fn new() -> Result<Self, String> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
        let metadata = metadata(&cargo, &manifest)?;
        let directory = |key: &str| {
            metadata[key].as_str().map(PathBuf::from).ok_or_else(|| format!("cargo metadata: no {key}"))
        };
        let (root, scratch) = (directory("workspace_root")?, directory("target_directory")?.join("xtask"));
        fs::create_dir_all(&scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
        let skipped = scratch.join("skipped");
        // A copy, as cargo replaces the original if the workspace needs other features of a dependency.
        let runner = scratch.join("runner");
        let own = env::current_exe().map_err(|e| format!("our own program: {e}"))?;
        // An older copy that is running cannot be overwritten, but it can be removed.
        let _ = fs::remove_file(&runner);
        fs::copy(&own, &runner).map_err(|e| format!("{}: {e}", runner.display()))?;
        let no_skip = env::var_os("SLUICEGATE_NO_SKIP").is_some();
        Ok(Self { root, scratch, skipped, no_skip, only: None, metadata, cargo, runner })
    }

    /// Returns cargo at the root of the tree, with colours if the terminal has them.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = Command::new(&self.cargo);
        cargo.current_dir(&self.root);
        cargo
    }

    /// Returns cargo's target directory.
    pub(crate) fn target(&self) -> &Path {
        self.scratch.parent().unwrap_or(&self.scratch)
    }

    /// Returns a copy of this program, for cargo to start.
    pub(crate) fn own_program(&self) -> &Path {
        &self.runner
    }

    /// Returns cargo of the nightly toolchain.
    pub(crate) fn nightly(&self) -> Command {
        let mut cargo = Command::new("rustup");
        cargo.current_dir(&self.root).args(["run", "nightly", "cargo"]);
        // The variables of the toolchain that runs xtask do not apply to it.
        for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
            cargo.env_remove(variable);
        }
        cargo
    }

    /// Links a program that cargo built to where no other build replaces it while it runs, and returns its path:
    /// cargo writes a new file each time.
    pub(crate) fn keep(&self, program: &str) -> Result<PathBuf, String> {
        let (built, kept) = (self.target().join("debug").join(program), self.scratch.join(program));
        // As above: an older one may be running.
        let _ = fs::remove_file(&kept);
        fs::hard_link(&built, &kept).map_err(|e| format!("{}: {e}", built.display()))?;
        Ok(kept)
    }

    /// Returns `cargo test` with a runner for every test program, which continues after a failure.
    pub(crate) fn cargo_test(&self, runner: &[String]) -> Command {
        let mut cargo = self.cargo();
        cargo.arg("test");
        if !runner.is_empty() {
            let runner = serde_json::json!(runner);
            cargo.arg("--config").arg(format!("target.'cfg(all())'.runner={runner}"));
        }
        cargo.arg("--no-fail-fast").env("SLUICEGATE_SKIPPED", &self.skipped);
        cargo
    }

    /// Returns what starts a program as root of some namespace (see [`namespace`](crate::namespace)), if that
    /// takes anything.
    pub(crate) fn as_root(&self) -> Vec<String> {
        if geteuid().is_root() { Vec::new() } else { self.runner(&[]) }
    }

    /// Returns what starts a program as a user without rights, if that takes anything.
    pub(crate) fn as_user(&self) -> Vec<String> {
        if geteuid().is_root() { self.runner(&["--as-user"]) } else { Vec::new() }
    }

    fn runner(&self, flags: &[&str]) -> Vec<String> {
        let program = self.runner.to_string_lossy().into_owned();
        [program, "runner".to_owned()]
            .into_iter()
            .chain(flags.iter().map(|flag| (*flag).to_owned()))
            .collect()
    }

    /// Returns the arguments of a test program that leave out all but the one test to run.
    pub(crate) fn only_tests(&self) -> impl Iterator<Item = &str> {
        self.only.as_deref().into_iter().flat_map(|test| ["--exact", test])
    }

    /// Prints a command and runs it.
    pub(crate) fn run(&self, command: &mut Command) -> Result<(), String> {
        progress::say(format!("$ {}", shown(command)));
        let status = children::status(command).map_err(|e| format!("{}: {e}", shown(command)))?;
        if status.success() { Ok(()) } else { Err(format!("`{}`: {status}", shown(command))) }
    }

    /// Returns the result of a check, or a part of one, that was not made because of a component of Rust that
    /// is not installed: it was skipped. Where whoever calls us has tried to install it and could not
    /// (`SLUICEGATE_CANNOT_HAVE`, names of checks), that is no failure, and told.
    pub(crate) fn missing(&self, check: &str, what: &str) -> Outcome {
        let cannot_have = env::var("SLUICEGATE_CANNOT_HAVE").unwrap_or_default();
        if cannot_have.split_whitespace().any(|name| name == check) {
            Outcome::default()
                .note(format!("not checked: {what}; it cannot be had here (SLUICEGATE_CANNOT_HAVE)"))
        } else {
            Outcome::skipped(format!("not checked: {what}"))
        }
    }

    /// Returns the packages of the workspace that are published. All are libraries.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Value> {
        self.members().filter(|package| package["publish"].is_null())
    }

    /// Returns the packages of the workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Value> {
        packages(&self.metadata).filter(|package| package["source"].is_null())
    }
}

/// Returns all packages of the lock file.
pub(crate) fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

/// Returns a command line as it would be typed, without the environment.
pub(crate) fn shown(command: &Command) -> String {
    let program =
        Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}

/// Returns `true` if a command can be started and succeeds; used to check whether a tool is installed.
pub(crate) fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns true if a program is in `PATH`, or in a directory for administration that the `PATH` of users
/// often lacks.
pub(crate) fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let admin = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path).chain(admin).any(|directory| directory.join(program).is_file())
}

fn metadata(cargo: &OsString, manifest: &Path) -> Result<Value, String> {
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--manifest-path"]).arg(manifest);
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|e| format!("{}: {e}", shown(&command)))?;
    if !output.status.success() {
        return Err(format!("`{}`: {}", shown(&command), output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("`{}`: {e}", shown(&command)))
}
