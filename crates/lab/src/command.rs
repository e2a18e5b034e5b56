//! The command line.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::demo::Demo;
#[cfg(feature = "matrix")]
use crate::matrix::Matrix;
#[cfg(not(feature = "matrix"))]
use crate::without_matrix::Matrix;
use crate::{Error, enter_user_namespace};

/// Real connections through the rules of the proxier, in throw-away network namespaces.
#[derive(Parser)]
#[command(name = "sluicegate-lab")]
struct Command {
    #[command(subcommand)]
    subcommand: Sub,
}

#[derive(Subcommand)]
enum Sub {
    /// Program a small cluster network, ask every service, show who answered, and then program 10,000
    /// services.
    Demo(Demo),
    /// Try every kind of connection to every kind of service, and compare with what the documentation says.
    Matrix(Matrix),
}

/// Runs a command line, whose first word is the program's name. The code says whether every answer was as
/// expected.
///
/// Makes the process root of a new user namespace where it may not make network namespaces otherwise, so no
/// thread may run yet. Prints usage and ends the process when the words are not a valid command line.
///
/// # Errors
/// When the network cannot be built, or the services cannot be programmed.
pub fn run(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<ExitCode, Error> {
    let command = Command::parse_from(words);
    enter_user_namespace()?;
    match command.subcommand {
        Sub::Demo(demo) => demo.run(),
        Sub::Matrix(matrix) => matrix.run(),
    }
}
