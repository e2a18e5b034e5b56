//! The command line: one file per subcommand, and the flags that several of them share in [`args`].

mod args;
mod check;
mod cleanup;
mod demo;
mod doctor;
mod iptables;
mod ipvs;
mod matrix;
mod progress;
mod render;
mod run;
mod serve;
mod source;
mod sync;

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
    /// Bring the current network namespace to the plan, by netlink; sends only what differs.
    Sync(sync::Sync),
    /// Keep the current network namespace there, following the manifests as they change, until SIGTERM or SIGINT; all rules stay.
    Run(Box<run::Run>),
    /// Print what sync would change, as a script, and change nothing.
    Diff(sync::Diff),
    /// Remove everything that any mode of ours or of kube-proxy left in the current network namespace, and say what.
    Cleanup(cleanup::Cleanup),
    /// Say what this kernel, its tools, sysctls and rights allow for each mode, and who else writes rules here; change nothing.
    Doctor(doctor::Doctor),
    /// Show it all on a small cluster network in throw-away namespaces, with real connections, and then at scale.
    Demo(demo::Demo),
    /// Try every kind of connection to every kind of service in throw-away namespaces.
    Matrix(matrix::Matrix),
    /// Say what the manifests hold and what is wrong with them.
    Check(check::Check),
}

impl Command {
    pub(crate) fn run(self) -> Result<ExitCode, Error> {
        match self.subcommand {
            Sub::Render(render) => render.run(),
            Sub::Sync(sync) => sync.run(),
            Sub::Run(run) => run.run(),
            Sub::Diff(diff) => diff.run(),
            Sub::Cleanup(cleanup) => cleanup.run(),
            Sub::Doctor(doctor) => doctor.run(),
            Sub::Demo(demo) => demo.run(),
            Sub::Matrix(matrix) => matrix.run(),
            Sub::Check(check) => check.run(),
        }
    }
}
