//! The command `sluicegate-proxier`.
#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match cli::Command::parse().run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sluicegate-proxier: {error}");
            ExitCode::FAILURE
        }
    }
}
