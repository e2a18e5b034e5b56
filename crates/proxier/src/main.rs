//! The command `sluicegate-proxier`.
#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run(std::env::args_os()) {
        Ok(code) => code,
        Err(error) => {
            cli::output::tell(format_args!("sluicegate-proxier: {error}"));
            ExitCode::FAILURE
        }
    }
}
