//! `matrix` in a program without the feature `matrix`: has cargo build and start one that has it.
//!
//! So `cargo lab demo` compiles no mode but that of nftables, and `cargo lab matrix` needs no other words.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use clap::Args;

use crate::Error;

/// The arguments as they are: the other program reads them.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Matrix {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

impl Matrix {
    /// Becomes the other program; returns only if that cannot be.
    pub(crate) fn run(self) -> Result<ExitCode, Error> {
        // Cargo tells the programs that it runs where it is.
        let Some(cargo) = std::env::var_os("CARGO") else { return Err(Error::WithoutMatrix(String::new())) };
        let mut command = Command::new(cargo);
        command.args(["run", "--package", env!("CARGO_PKG_NAME"), "--features", "matrix"]);
        if !cfg!(debug_assertions) {
            command.arg("--release");
        }
        let error = command.args(["--", "matrix"]).args(self.arguments).exec();
        Err(Error::WithoutMatrix(format!(": {error}")))
    }
}
