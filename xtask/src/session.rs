//! Paths of the workspace, and functions that run commands.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use serde_json::Value;

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
        Ok(Self { root, scratch, skipped, no_skip, metadata, cargo, runner })
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

    /// Returns `cargo test` with our runner for every test program (see [`namespace`](crate::namespace)),
    /// which continues after a failure.
    pub(crate) fn cargo_test(&self) -> Command {
        let runner = serde_json::json!([self.runner, "runner"]);
        let mut cargo = self.cargo();
        cargo.arg("test").arg("--config").arg(format!("target.'cfg(all())'.runner={runner}"));
        cargo.arg("--no-fail-fast").env("SLUICEGATE_SKIPPED", &self.skipped);
        cargo
    }

    /// Prints a command and runs it.
    pub(crate) fn run(&self, command: &mut Command) -> Result<(), String> {
        println!("$ {}", shown(command));
        let status = command.status().map_err(|e| format!("{}: {e}", shown(command)))?;
        if status.success() { Ok(()) } else { Err(format!("`{}`: {status}", shown(command))) }
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
