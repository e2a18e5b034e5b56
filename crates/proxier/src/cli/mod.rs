//! The command line: one file per subcommand, and the flags that several of them share in [`args`].

mod args;
mod check;
mod render;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sluicegate_proxier::Error;

/// Kubernetes Services into the kernel's packet filter.
#[derive(Parser)]
#[command(name = "sluicegate-proxier", version, propagate_version = true)]
pub(crate) struct Command {
    #[command(subcommand)]
    subcommand: Sub,
}

#[derive(Subcommand)]
enum Sub {
    /// Print the plan as a script; `nft -f` loads it in place of what was there.
    Render(render::Render),
    /// Say what the manifests hold and what is wrong with them.
    Check(check::Check),
}

impl Command {
    pub(crate) fn run(self) -> Result<ExitCode, Error> {
        match self.subcommand {
            Sub::Render(render) => render.run(),
            Sub::Check(check) => check.run(),
        }
    }
}
