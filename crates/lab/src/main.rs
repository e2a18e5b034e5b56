//! The command `sluicegate-lab`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    match sluicegate_lab::run(std::env::args_os()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sluicegate-lab: {error}");
            ExitCode::FAILURE
        }
    }
}
