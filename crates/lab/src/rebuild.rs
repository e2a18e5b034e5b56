//! A subcommand that this program was built without: has cargo build and start one that has it.
//!
//! So `cargo lab demo` compiles no more than it needs, and `cargo lab matrix` and `cargo lab soak` need no other
//! words. Each is a feature of its name.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use clap::Args;

use crate::Error;

/// The arguments as they are: the other program reads them.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Rebuild {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

impl Rebuild {
    /// Becomes the program with `subcommand`; returns only if that cannot be.
    pub(crate) fn run(self, subcommand: &'static str) -> Result<ExitCode, Error> {
        let failed = |cause| Error::Rebuild { subcommand, cause };
        // Cargo tells the programs that it runs where it is.
        let Some(cargo) = std::env::var_os("CARGO") else { return Err(failed(String::new())) };
        let mut command = Command::new(cargo);
        command.args(["run", "--package", env!("CARGO_PKG_NAME"), "--features", subcommand]);
        if !cfg!(debug_assertions) {
            command.arg("--release");
        }
        let error = command.args(["--", subcommand]).args(self.arguments).exec();
        Err(failed(format!(": {error}")))
    }
}
