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
use sluicegate_proxier::source;
use sluicegate_proxier::source::Manifests;
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
    #[arg(long)]
    keep: bool,
    /// The number of services in the second part; 0 leaves it out.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(..=50_000))]
    services: u32,
}

impl Demo {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        println!(
            "A node, its pods, pods of another node and a client outside, each in a network namespace of \
             its own."
        );
        let network = Network::build(&network::spec())?;
        let mut cluster = self.cluster()?;
        let settings = settings();
        let synced =
            network.node.namespace.run(|| Applier::open(settings)?.sync(&mut cluster, Instant::now()))?;
        println!("{} services programmed: {synced}\n", cluster.service_count());
        let outcomes = ask_all(&network, &cluster)?;
        print(&outcomes);
        let wrong = outcomes.iter().filter(|outcome| !outcome.ok).count();
        match wrong {
            0 => println!("All {} answers are as they should be.\n", outcomes.len()),
            _ => println!("{wrong} of {} answers are NOT as they should be.\n", outcomes.len()),
        }
        if self.services > 0 {
            at_scale(self.services)?;
        }
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

fn print(outcomes: &[Outcome]) {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    if let Some(columns) = columns() {
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
    println!("{table}");
}

/// Returns the columns that the table may have: those of the terminal, or `COLUMNS`. Otherwise none: each row stays on a
/// line of its own.
fn columns() -> Option<u16> {
    let of_terminal = terminal_size::terminal_size_of(std::io::stdout()).map(|(columns, _)| columns.0);
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    of_terminal.or_else(said).filter(|columns| *columns > 0)
}

/// Runs the second part: programs many services in another namespace, then changes of one endpoint.
fn at_scale(services: u32) -> Result<(), Error> {
    println!("{services} services with {ENDPOINTS} endpoints each, in another namespace:");
    if cfg!(debug_assertions) {
        println!(
            "  (without optimisation; `cargo run --release -p {} -- demo` has it)",
            env!("CARGO_PKG_NAME")
        );
    }
    let namespace = Namespace::new("scale")?;
    let mut cluster = uniform_cluster(services, ENDPOINTS);
    namespace.run(|| -> Result<(), Error> {
        let mut applier = Applier::open(settings())?;
        let start = Instant::now();
        let first = applier.sync(&mut cluster, Instant::now())?;
        report("first sync", start.elapsed(), &first);
        let mut changes = Vec::new();
        for index in 0..services.min(CHANGES) {
            change_one(&mut cluster, index, ENDPOINTS);
            let start = Instant::now();
            let synced = applier.sync(&mut cluster, Instant::now())?;
            changes.push((start.elapsed(), synced));
        }
        changes.sort_by_key(|(took, _)| *took);
        if let Some((took, synced)) = changes.get(changes.len() / 2) {
            report(&format!("one endpoint changed (median of {})", changes.len()), *took, synced);
        }
        Ok(())
    })
}

fn report(what: &str, took: Duration, synced: &Synced) {
    println!(
        "  {what}: {took:.1?}, of which the kernel {:.1?}, our own work {:.1?} ({} messages, {} bytes)",
        synced.kernel,
        took.saturating_sub(synced.kernel),
        synced.messages,
        synced.bytes
    );
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
