//! The command line: one file per subcommand, and the flags that several of them share in [`args`].

mod args;
mod check;
mod cleanup;
mod configz;
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

use std::collections::HashSet;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use sluicegate_proxier::Error;

/// Kubernetes Services into the kernel's packet filter.
#[derive(Parser)]
#[command(name = "sluicegate-proxier", version, propagate_version = true)]
struct Command {
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

/// Does what these words say, the first being the program's name. Ends the process where they say nothing that can be done.
pub(crate) fn run(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<ExitCode, Error> {
    let matches = Command::command().get_matches_from(words);
    let command = Command::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match command.subcommand {
        Sub::Render(render) => render.run(),
        Sub::Sync(sync) => sync.run(),
        Sub::Run(run) => run.run(&said(&matches)),
        Sub::Diff(diff) => diff.run(),
        Sub::Cleanup(cleanup) => cleanup.run(),
        Sub::Doctor(doctor) => doctor.run(),
        Sub::Demo(demo) => demo.run(),
        Sub::Matrix(matrix) => matrix.run(),
        Sub::Check(check) => check.run(),
    }
}

/// The arguments of the subcommand that the command line says itself, by their fields' names.
fn said(matches: &ArgMatches) -> HashSet<String> {
    let Some((_, matches)) = matches.subcommand() else { return HashSet::new() };
    let said = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    matches.ids().map(clap::Id::as_str).filter(said).map(str::to_owned).collect()
}
