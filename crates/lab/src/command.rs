//! The command line.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::demo::Demo;
#[cfg(feature = "matrix")]
use crate::matrix::Matrix;
#[cfg(not(all(feature = "matrix", feature = "soak")))]
use crate::rebuild::Rebuild;
#[cfg(feature = "soak")]
use crate::soak::Soak;
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
    #[cfg(feature = "matrix")]
    Matrix(Matrix),
    /// Try every kind of connection to every kind of service, and compare with what the documentation says.
    #[cfg(not(feature = "matrix"))]
    Matrix(Rebuild),
    /// Change services at random for a time, under other programs and restarts, and compare what the kernel
    /// has with a fresh plan at each quiet point.
    #[cfg(feature = "soak")]
    Soak(Soak),
    /// Change services at random for a time, under other programs and restarts, and compare what the kernel
    /// has with a fresh plan at each quiet point.
    #[cfg(not(feature = "soak"))]
    Soak(Rebuild),
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
        #[cfg(feature = "matrix")]
        Sub::Matrix(matrix) => matrix.run(),
        #[cfg(not(feature = "matrix"))]
        Sub::Matrix(rebuild) => rebuild.run("matrix"),
        #[cfg(feature = "soak")]
        Sub::Soak(soak) => soak.run(),
        #[cfg(not(feature = "soak"))]
        Sub::Soak(rebuild) => rebuild.run("soak"),
    }
}
