//! The command line: one file per subcommand, and the flags that several of them share in [`args`].

mod args;
mod check;
mod cleanup;
mod companions;
mod compat;
mod config_file;
mod configz;
mod conntrack;
mod defaults;
mod detect_local;
mod doctor;
mod empty;
mod error;
mod explain;
mod help;
mod iptables;
mod ipvs;
mod leftovers;
mod log;
mod names;
mod objects;
pub(crate) mod output;
mod pages;
mod progress;
mod render;
mod rights;
mod run;
mod serve;
mod source;
mod status;
mod sync;
mod value;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub(crate) use error::Error;

/// Programs Kubernetes Services into the packet filter of the kernel.
#[derive(Parser)]
#[command(name = "sluicegate-proxier", version, propagate_version = true)]
struct Command {
    #[command(subcommand)]
    subcommand: Sub,
}

#[derive(Subcommand)]
enum Sub {
    /// Print the plan as a script; `nft -f` loads it in place of the current rules.
    Render(render::Render),
    /// Program the current network namespace, sending only what differs.
    Sync(sync::Sync),
    /// Run as a daemon: follow the objects as they change, and repair the rules, until SIGTERM or SIGINT; all
    /// rules stay.
    #[command(disable_version_flag = true)]
    Run(Box<run::Run>),
    /// Print what sync would change, as a script.
    Diff(sync::Diff),
    /// Remove everything that any mode of this proxier or of kube-proxy left in the current network
    /// namespace.
    Cleanup(cleanup::Cleanup),
    /// Report for each mode whether the kernel, tools, sysctls and capabilities suffice, and which other
    /// programs have rules; fails unless a mode works without a fault.
    Doctor(doctor::Doctor),
    /// Print the services of the manifests, and every problem in them.
    Check(check::Check),
    /// Say what must happen to a packet: whose address it is sent to, what each policy decides, which
    /// endpoints it may reach and what they see, or why it is refused or dropped. Sends nothing.
    Explain(Box<explain::Explain>),
    /// Show what a running daemon has programmed: its services, endpoints with their flows, last syncs and
    /// troubles; fails unless it is ready.
    Status(status::Status),
    /// Print a script for a shell that completes this program's words.
    #[command(hide = true)]
    Completions(pages::Completions),
    /// Print the names that the last word of a line may be, for that script.
    #[command(hide = true)]
    Complete(names::Complete),
    /// Print a page for man(1).
    #[command(hide = true)]
    Man(pages::Man),
}

impl Sub {
    /// Returns the mode and its settings, of a command that plans or programs, and this node.
    fn settings(&mut self) -> Option<(&mut args::ProxyArgs, &mut args::NodeArgs)> {
        match self {
            Self::Render(render) => Some((&mut render.proxy, &mut render.node)),
            Self::Sync(sync) => Some(sync.settings()),
            Self::Run(run) => Some((&mut run.proxy, &mut run.node)),
            Self::Diff(diff) => Some(diff.settings()),
            Self::Check(check) => Some((&mut check.proxy, &mut check.node)),
            Self::Explain(explain) => Some((&mut explain.proxy, &mut explain.node)),
            Self::Doctor(doctor) => Some((&mut doctor.proxy, &mut doctor.node)),
            Self::Cleanup(_) | Self::Status(_) | Self::Completions(_) | Self::Complete(_) | Self::Man(_) => {
                None
            }
        }
    }

    /// Has a command that is not the daemon, which does it by itself, read its configuration file.
    fn read_config(&mut self) -> Result<(), Error> {
        if matches!(self, Self::Run(_)) {
            return Ok(());
        }
        let Some((proxy, node)) = self.settings() else { return Ok(()) };
        let config = proxy.read_config(node)?;
        let remarks = proxy.remarks(&config);
        match self {
            // It has a place for them.
            Self::Doctor(doctor) => doctor.remarks = remarks,
            _ => remarks.iter().for_each(|remark| output::tell(format_args!("warning: {remark}"))),
        }
        if let Self::Explain(explain) = self {
            explain.objects.fill(&config);
        }
        Ok(())
    }
}

/// Runs a command line, whose first word is the name of the program. Prints usage when it is not valid.
pub(crate) fn run(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<ExitCode, Error> {
    let words = empty::left_out(words.into_iter().map(Into::into));
    let parsed = help::added(Command::command()).try_get_matches_from(words);
    let parsed = parsed.and_then(|matches| Ok((Command::from_arg_matches(&matches)?, matches)));
    let (mut command, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error),
    };
    rights::raise();
    let given = Given::of(&matches);
    if let Some((proxy, _)) = command.subcommand.settings() {
        proxy.given.clone_from(&given.names);
    }
    command.subcommand.read_config()?;
    match command.subcommand {
        Sub::Render(render) => render.run(),
        Sub::Sync(sync) => sync.run(),
        Sub::Run(run) => run.run(&given),
        Sub::Diff(diff) => diff.run(),
        Sub::Cleanup(cleanup) => cleanup.run(),
        Sub::Doctor(doctor) => doctor.run(),
        Sub::Check(check) => check.run(),
        Sub::Explain(explain) => explain.run(),
        Sub::Status(status) => status.run(),
        Sub::Completions(completions) => completions.run(Command::command()),
        Sub::Complete(complete) => complete.run(&Command::command()),
        Sub::Man(man) => man.run(Command::command()),
    }
}

/// Prints what clap says of a command line: what is wrong with it, or the help or version that it asks for.
fn usage(said: &clap::Error) -> Result<ExitCode, Error> {
    let printed = said.print().and_then(|()| io::stdout().flush());
    if !said.use_stderr() {
        output::written(printed)?;
    }
    Ok(u8::try_from(said.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The arguments of the subcommand.
struct Given {
    /// The names of those that were given on the command line, not by default.
    names: HashSet<String>,
    /// The flags with their values, or their defaults.
    values: BTreeMap<String, String>,
}

impl Given {
    fn of(matches: &ArgMatches) -> Self {
        let mut given = Self { names: HashSet::new(), values: BTreeMap::new() };
        let (program, command) = (Command::command(), matches.subcommand());
        let Some((name, matches)) = command else { return given };
        let is_given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
        given.names = matches.ids().map(clap::Id::as_str).filter(is_given).map(str::to_owned).collect();
        let Some(subcommand) = program.find_subcommand(name) else { return given };
        for argument in subcommand.get_arguments() {
            let Some(flag) = argument.get_long() else { continue };
            let values = matches.try_get_raw(argument.get_id().as_str()).ok().flatten().into_iter().flatten();
            let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
            given.values.insert(flag.to_owned(), values.join(","));
        }
        given
    }
}
