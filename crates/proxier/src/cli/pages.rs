//! `completions` and `man`, for those who package the program; hidden, as nobody else needs them.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use super::Error;
use super::output::print;

#[derive(Args)]
pub(crate) struct Completions {
    /// The shell that reads the script.
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, mut program: Command) -> Result<ExitCode, Error> {
        let name = program.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, name, &mut script);
        print(&String::from_utf8_lossy(&script)).map(|()| ExitCode::SUCCESS)
    }
}

#[derive(Args)]
pub(crate) struct Man {
    /// The subcommand that the page describes; without it, the program.
    subcommand: Option<String>,
}

impl Man {
    pub(crate) fn run(&self, program: Command) -> Result<ExitCode, Error> {
        // What concerns packagers alone is on no page.
        let mut program = program.disable_help_subcommand(true);
        program.build();
        let page = match &self.subcommand {
            None => program,
            Some(name) => match program.find_subcommand(name) {
                Some(subcommand) => subcommand.clone(),
                None => return Err(Error::flag("man", format!("there is no subcommand `{name}`"))),
            },
        };
        let mut roff = Vec::new();
        clap_mangen::Man::new(page).render(&mut roff).map_err(Error::Write)?;
        print(&String::from_utf8_lossy(&roff)).map(|()| ExitCode::SUCCESS)
    }
}
