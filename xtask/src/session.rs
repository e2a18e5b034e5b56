//! Where things are, and how commands are run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use serde_json::Value;

/// What one run of xtask knows: the tree, cargo, what the environment asks for.
pub(crate) struct Session {
    /// The root of the tree.
    pub root: PathBuf,
    /// A directory for our own files, below cargo's target directory.
    pub scratch: PathBuf,
    /// The file in which tests log what they skip (`SLUICEGATE_SKIPPED`).
    pub skipped: PathBuf,
    /// `SLUICEGATE_NO_SKIP` is set: what can run must run.
    pub no_skip: bool,
    /// What `cargo metadata` says of the workspace and all its dependencies.
    pub metadata: Value,
    cargo: OsString,
    runner: PathBuf,
}

impl Session {
    /// Looks around, and makes the scratch directory.
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
        // A copy, for cargo replaces the original when the workspace asks for other features of a dependency.
        let runner = scratch.join("runner");
        let own = env::current_exe().map_err(|e| format!("our own program: {e}"))?;
        // An older copy that is being run cannot be written to, and can be removed.
        let _ = fs::remove_file(&runner);
        fs::copy(&own, &runner).map_err(|e| format!("{}: {e}", runner.display()))?;
        let no_skip = env::var_os("SLUICEGATE_NO_SKIP").is_some();
        Ok(Self { root, scratch, skipped, no_skip, metadata, cargo, runner })
    }

    /// cargo at the root of the tree, coloured as the terminal allows.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = Command::new(&self.cargo);
        cargo.current_dir(&self.root);
        cargo
    }

    /// `cargo test`, with our runner in front of every test program (see [`namespace`](crate::namespace)), going on after
    /// a failure.
    pub(crate) fn cargo_test(&self) -> Command {
        let runner = serde_json::json!([self.runner, "runner"]);
        let mut cargo = self.cargo();
        cargo.arg("test").arg("--config").arg(format!("target.'cfg(all())'.runner={runner}"));
        cargo.arg("--no-fail-fast").env("SLUICEGATE_SKIPPED", &self.skipped);
        cargo
    }

    /// Prints a command, runs it, and says so if it fails.
    pub(crate) fn run(&self, command: &mut Command) -> Result<(), String> {
        println!("$ {}", shown(command));
        let status = command.status().map_err(|e| format!("{}: {e}", shown(command)))?;
        if status.success() { Ok(()) } else { Err(format!("`{}`: {status}", shown(command))) }
    }

    /// The packages of the workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Value> {
        packages(&self.metadata).filter(|package| package["source"].is_null())
    }
}

/// All packages of the lock file.
pub(crate) fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

/// A command as one would type it, without the environment.
pub(crate) fn shown(command: &Command) -> String {
    let program =
        Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}

/// True when a command can be started and ends well; used to ask whether a tool is there.
pub(crate) fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// True when a program is on the path, or in one of the directories for administration that a user's path often lacks.
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
