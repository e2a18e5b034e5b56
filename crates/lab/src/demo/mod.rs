//! `demo`: programs a small cluster network and asks every service over real connections, then programs many
//! services.

mod cases;
mod manifests;
mod network;

use std::io::BufRead as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use comfy_table::{ContentArrangement, Table};
use serde_json::{Value, json};
use sluicegate_proxier::output::OutputArgs;
use sluicegate_proxier::source;
use sluicegate_proxier::source::Manifests;
use sluicegate_proxier::terminal;
use sluicegate_service_rules::nftables::Settings;
use sluicegate_service_rules::nftables::{Applier, Synced};
use sluicegate_services::{Cluster, DetectLocal, Family};

use crate::{Error, Namespace, Network, change_one, uniform_cluster};
use cases::{CASES, Outcome};

#[derive(Args)]
pub(crate) struct Demo {
    /// A file or directory of manifests to use instead of those of examples/manifests, which are built in.
    /// The questions stay the same, so it has to have the same services.
    #[arg(long, value_name = "PATH")]
    manifests: Option<PathBuf>,
    /// Keep the namespaces and the servers until Enter is pressed, and print the commands that enter them.
    #[arg(long, conflicts_with = "output")]
    keep: bool,
    /// The number of services in the second part; 0 leaves it out.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(..=50_000))]
    services: u32,
    #[command(flatten)]
    output: OutputArgs,
}

impl Demo {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let output = self.output;
        output.say(
            "A node, its pods, pods of another node and a client outside, each in a network namespace of \
             its own.",
        )?;
        let network = Network::build(&network::spec())?;
        let mut cluster = self.cluster()?;
        let settings = settings();
        let synced =
            network.node.namespace.run(|| Applier::open(settings)?.sync(&mut cluster, Instant::now()))?;
        output.say(format_args!("{} services programmed: {synced}\n", cluster.service_count()))?;
        let outcomes = ask_all(&network, &cluster)?;
        output.say(table(&outcomes))?;
        let wrong = outcomes.iter().filter(|outcome| !outcome.ok).count();
        match wrong {
            0 => output.say(format_args!("All {} answers are as they should be.\n", outcomes.len()))?,
            _ => {
                output.say(format_args!(
                    "{wrong} of {} answers are NOT as they should be.\n",
                    outcomes.len()
                ))?;
            }
        }
        let scale = if self.services > 0 { Some(at_scale(self.services, output)?) } else { None };
        output.object(|| {
            json!({
                "services": cluster.service_count(),
                "sync": synced.to_string(),
                "answers": outcomes.iter().map(object).collect::<Vec<_>>(),
                "wrong": wrong,
                "scale": scale,
            })
        })?;
        if self.keep {
            wait_for_a_look(&network);
        }
        Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn cluster(&self) -> Result<Cluster, Error> {
        let mut found = Manifests::default();
        match &self.manifests {
            Some(path) => drop(source::read(&[path], |manifest| found.add(manifest))?),
            None => manifests::read(|manifest| found.add(manifest))?,
        }
        let node = found.nodes.iter().find(|node| node.name == network::NODE).cloned().unwrap_or_default();
        let (cluster, problems) = found.into_cluster(node);
        problems.iter().for_each(|problem| eprintln!("{problem}"));
        Ok(cluster)
    }
}

fn settings() -> Settings {
    Settings { detect_local: DetectLocal::ClusterCidrs(network::cluster_cidrs()), ..Settings::default() }
}

/// Runs all cases at once, since each refusal over IPv6 takes the client a second, whatever the rules are.
fn ask_all(network: &Network, cluster: &Cluster) -> Result<Vec<Outcome>, Error> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = Family::BOTH
            .into_iter()
            .flat_map(|family| CASES.iter().map(move |case| (family, case)))
            .map(|(family, case)| {
                scope.spawn(move || case.run(network, cluster, family, network::gateway(family)))
            })
            .collect();
        asked
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .map(|outcome| outcome.map_err(Error::Missing))
            .collect()
    })
}

/// Returns an answer as an object of the output.
fn object(outcome: &Outcome) -> Value {
    json!({
        "family": outcome.family.to_string(),
        "from": outcome.from,
        "asked": outcome.asked,
        "answers": outcome.answers,
        "sources": outcome.sources,
        "expected": outcome.expected,
        "ok": outcome.ok,
    })
}

fn table(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    if let Some(columns) = terminal::width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
    }
    table.set_header(["", "who asks", "what", "who answered how often", "source they saw", "should be", ""]);
    for outcome in outcomes {
        table.add_row([
            outcome.family.to_string().as_str(),
            outcome.from,
            &outcome.asked,
            &outcome.answers,
            &outcome.sources,
            &outcome.expected,
            if outcome.ok { "ok" } else { "WRONG" },
        ]);
    }
    table
}

/// Runs the second part: programs many services in another namespace, then changes of one endpoint.
fn at_scale(services: u32, output: OutputArgs) -> Result<Value, Error> {
    output.say(format_args!("{services} services with {ENDPOINTS} endpoints each, in another namespace:"))?;
    if cfg!(debug_assertions) {
        output.say(format_args!(
            "  (without optimisation; `cargo run --release -p {} -- demo` has it)",
            env!("CARGO_PKG_NAME")
        ))?;
    }
    let namespace = Namespace::new("scale")?;
    let mut cluster = uniform_cluster(services, ENDPOINTS);
    namespace.run(|| -> Result<Value, Error> {
        let mut applier = Applier::open(settings())?;
        let start = Instant::now();
        let first = applier.sync(&mut cluster, Instant::now())?;
        let took = start.elapsed();
        output.say(report("first sync", took, &first))?;
        let mut object = json!({
            "services": services,
            "endpoints": ENDPOINTS,
            "optimised": !cfg!(debug_assertions),
            "first": cost(took, &first),
            "change": null,
        });
        let mut changes = Vec::new();
        for index in 0..services.min(CHANGES) {
            change_one(&mut cluster, index, ENDPOINTS);
            let start = Instant::now();
            let synced = applier.sync(&mut cluster, Instant::now())?;
            changes.push((start.elapsed(), synced));
        }
        changes.sort_by_key(|(took, _)| *took);
        if let Some((took, synced)) = changes.get(changes.len() / 2) {
            output.say(report(
                &format!("one endpoint changed (median of {})", changes.len()),
                *took,
                synced,
            ))?;
            object["change"] = cost(*took, synced);
        }
        Ok(object)
    })
}

/// Returns what a sync cost as an object of the output.
fn cost(took: Duration, synced: &Synced) -> Value {
    json!({
        "seconds": took.as_secs_f64(),
        "kernelSeconds": synced.kernel.as_secs_f64(),
        "messages": synced.messages,
        "bytes": synced.bytes,
    })
}

fn report(what: &str, took: Duration, synced: &Synced) -> String {
    format!(
        "  {what}: {took:.1?}, of which the kernel {:.1?}, our own work {:.1?} ({} messages, {} bytes)",
        synced.kernel,
        took.saturating_sub(synced.kernel),
        synced.messages,
        synced.bytes
    )
}

fn wait_for_a_look(network: &Network) {
    println!("The namespaces stay until you press Enter. A shell inside:");
    for host in network.hosts() {
        println!("  {:10} {}", host.namespace.name(), host.namespace.shell_command());
    }
    // End of file counts as Enter, so that the program ends without a terminal.
    let _ = std::io::stdin().lock().lines().next();
}

const ENDPOINTS: u32 = 5;
const CHANGES: u32 = 101;
