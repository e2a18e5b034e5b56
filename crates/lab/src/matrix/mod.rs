//! `matrix`: real connections for every combination of traffic policy, endpoint, client and address that
//! means something, in throw-away namespaces, compared with a reference that was written from the
//! documentation.

#[cfg(test)]
mod explained;
mod reference;
mod services;
mod traced;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use comfy_table::Table;
use serde_json::json;
use sluicegate_proxier::output::OutputArgs;
use sluicegate_proxier::{Mode, sysctl};
use sluicegate_service_rules::iptables::BackEnd;
use sluicegate_service_rules::nftables::Applier;
use sluicegate_service_rules::nftables::{Layout, Settings};
use sluicegate_service_rules::{iptables, ipvs};
use sluicegate_services::{Cluster, DetectLocal, Family, Scheduler};

use crate::{Answer, Error, Namespace, Network, Transport, ask};
use reference::{Client, Expectation, Front, Place, Source, Variation, variations};

#[derive(Args)]
pub(crate) struct Matrix {
    /// The part of the kernel to program.
    #[arg(long, value_name = "nftables|iptables|ipvs", default_value_t = Mode::Nftables)]
    proxy_mode: Mode,
    /// In iptables and ipvs mode, the kernel interface of iptables to use; by default nft.
    #[arg(long, value_name = "legacy|nft")]
    iptables_backend: Option<BackEnd>,
    /// The layout of the nftables rules.
    #[arg(long, value_name = "maps|chains", default_value = "maps")]
    layout: Layout,
    /// In nftables mode, how an endpoint is chosen.
    #[arg(
        long,
        value_name = "random|round-robin|source-hash|maglev",
        default_value_t = Scheduler::Random
    )]
    scheduler: Scheduler,
    /// Write every case and what came of it to this file, columns separated by tabs.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Try only one of this many kinds of service. There are 20 for each set of endpoints, which have no factor
    /// in common with 9 and 13, so that policies, endpoints and extras all still occur.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    one_of: u16,
    /// In nftables mode, follow every packet through the kernel by native trace as well, and compare its way
    /// with what `sluicegate-proxier explain` says.
    #[arg(long)]
    trace: bool,
    /// The number of requests at a time: fewer on a slow machine, where answers would come too late.
    #[arg(long, value_name = "COUNT", default_value_t = 96, value_parser = clap::value_parser!(u16).range(1..))]
    workers: u16,
    #[command(flatten)]
    output: OutputArgs,
}

impl Matrix {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let variations: Vec<_> = variations().into_iter().step_by(self.one_of.into()).collect();
        let mut cluster = services::cluster(&variations);
        let network = Network::build(&services::network())?;
        if self.proxy_mode == Mode::Ipvs {
            prepare_ipvs(&network.node.namespace)?;
        }
        let synced = network.node.namespace.run(|| self.program(&mut cluster))?;
        let output = self.output;
        output.say(format_args!("{} services programmed: {synced}", cluster.service_count()))?;
        let ask = || ask_all(&network, &variations, self.way(), self.workers.into());
        let node = &network.node.namespace;
        let mut followed = None;
        let (results, different) = if self.trace {
            let (results, journeys) = traced::following(node, ask)?;
            let detect_local = DetectLocal::ClusterCidrs(services::cluster_cidrs());
            let (compared, different) =
                traced::compare(node, &cluster, detect_local, self.scheduler, &journeys)?;
            output.say(format_args!("{compared} packets followed, {} not as explained", different.len()))?;
            different.iter().take(SHOWN).try_for_each(|one| output.say(one))?;
            followed = Some(json!({"packets": compared, "different": different}));
            // A trace without packets would agree with everything.
            (results, different.len() + usize::from(compared == 0))
        } else {
            (ask(), 0)
        };
        if let Some(path) = &self.report {
            let text = results.iter().fold(HEADER.to_owned(), |text, result| text + &result.row());
            std::fs::write(path, text).map_err(|source| Error::Report { path: path.clone(), source })?;
        }
        output.say(table(&results))?;
        let wrong: Vec<_> = results.iter().filter(|result| !result.ok).collect();
        wrong.iter().take(SHOWN).try_for_each(|result| output.say(result.row().trim_end()))?;
        if wrong.len() > SHOWN {
            output.say(format_args!("... and {} more", wrong.len() - SHOWN))?;
        }
        let failed = wrong.len();
        output.say(format_args!("{} cases, {failed} not as they should be", results.len()))?;
        output.object(|| {
            let rows: Vec<_> = wrong.iter().map(|result| result.row().trim_end().to_owned()).collect();
            json!({
                "services": cluster.service_count(),
                "sync": synced,
                "cases": results.len(),
                "table": counts(&results).map(|(client, front, right, of)| {
                    json!({"client": client, "address": front, "right": right, "cases": of})
                }).collect::<Vec<_>>(),
                "wrong": rows,
                "followed": followed,
            })
        })?;
        Ok(if failed + different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// What of the configuration decides where a connection goes.
#[derive(Clone, Copy, Debug)]
struct Way {
    mode: Mode,
    scheduler: Scheduler,
}

impl Matrix {
    fn way(&self) -> Way {
        let scheduler = if self.proxy_mode == Mode::Nftables { self.scheduler } else { Scheduler::Random };
        Way { mode: self.proxy_mode, scheduler }
    }

    /// Programs the services in the network namespace of this thread; says what was done.
    fn program(&self, cluster: &mut Cluster) -> Result<String, Error> {
        let detect_local = DetectLocal::ClusterCidrs(services::cluster_cidrs());
        Ok(match self.proxy_mode {
            Mode::Nftables => {
                let (layout, scheduler) = (self.layout, self.scheduler);
                let settings = Settings { layout, detect_local, scheduler, ..Settings::default() };
                Applier::open(settings)?.sync(cluster, Instant::now())?.to_string()
            }
            Mode::Iptables => {
                let settings = iptables::Settings { detect_local, ..iptables::Settings::default() };
                let mut applier = iptables::Applier::open(self.iptables_backend, &Family::BOTH, settings)?;
                let synced = applier.sync(cluster, Instant::now())?;
                synced.notices().try_for_each(|notice| self.output.say(notice))?;
                synced.to_string()
            }
            Mode::Ipvs => {
                let settings = ipvs::Settings { detect_local, ..ipvs::Settings::default() };
                let mut applier = ipvs::Applier::open(self.iptables_backend, &Family::BOTH, settings)?;
                applier.sync(cluster, Instant::now())?.to_string()
            }
        })
    }
}

/// Sets the sysctls of ipvs mode in the node's namespace.
fn prepare_ipvs(node: &Namespace) -> Result<(), Error> {
    // The first request to IPVS loads it, and with it its sysctls.
    node.run(ipvs::Transports::open)?.load()?;
    sysctl::of_ipvs(false, (6, 1)).try_for_each(|sysctl| node.sysctl(sysctl.path, sysctl.value))
}

/// One client, service and address.
struct Case<'a> {
    index: usize,
    variation: &'a Variation,
    front: Front,
    client: Client,
    transport: Transport,
    family: Family,
    way: Way,
}

struct Outcome<'a> {
    case: Case<'a>,
    expected: Expectation,
    seen: BTreeMap<String, usize>,
    ok: bool,
}

/// Asks everything. All questions to one port of one service are asked one after the other, so that session
/// affinity is not stirred by others.
fn ask_all<'a>(network: &Network, variations: &'a [Variation], way: Way, workers: usize) -> Vec<Outcome<'a>> {
    let ports: Vec<_> = variations
        .iter()
        .enumerate()
        .flat_map(|service| Family::BOTH.map(|family| (service, family)))
        .flat_map(|(service, family)| {
            [Transport::Tcp, Transport::Udp].map(|transport| (service, family, transport))
        })
        .collect();
    std::thread::scope(|scope| {
        let workers: Vec<_> = ports
            .chunks(ports.len().div_ceil(workers))
            .map(|part| {
                scope.spawn(move || {
                    part.iter().flat_map(|port| ask_port(network, *port, way)).collect::<Vec<_>>()
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

type ServicePort<'a> = ((usize, &'a Variation), Family, Transport);

fn ask_port<'a>(
    network: &Network,
    ((index, variation), family, transport): ServicePort<'a>,
    way: Way,
) -> Vec<Outcome<'a>> {
    let cases = Client::ALL.into_iter().flat_map(|client| Front::ALL.map(|front| (client, front)));
    cases
        .map(|(client, front)| Case { index, variation, front, client, transport, family, way }.ask(network))
        .collect()
}

impl<'a> Case<'a> {
    fn ask(self, network: &Network) -> Outcome<'a> {
        let host = network.host(self.client.host()).expect("a host of the laboratory");
        let target = services::target(self.index, self.front, self.family);
        let mut expected = self.variation.expect(self.front, self.client, self.way.mode);
        if let Expectation::Answered { sticky, .. } = &mut expected {
            // A client has one address in each family. Its port is another each time, so that maglev has any.
            *sticky |= self.way.scheduler == Scheduler::SourceHash;
        }
        let answers = host.namespace.run(|| self.answers(&expected, target));
        let gateway = match self.family {
            Family::Ipv4 => services::GATEWAY.0.into(),
            Family::Ipv6 => services::GATEWAY.1.into(),
        };
        let ok = self.is_right(&expected, &answers, [host.address_of(self.family), gateway, target.ip()]);
        let mut seen = BTreeMap::new();
        for answer in answers {
            *seen.entry(words(&answer)).or_default() += 1;
        }
        Outcome { case: self, expected, seen, ok }
    }

    /// Asks until everybody who should has answered, a few times where always the same must, once where
    /// nobody may.
    fn answers(&self, expected: &Expectation, target: SocketAddr) -> Vec<Answer> {
        let once = |patience| ask(self.transport, target, 1, patience);
        match expected {
            Expectation::Dropped => once(SHORT),
            Expectation::Refused => {
                let mut answers = once(LONG);
                // The kernel limits the rate of ICMP errors: one that did not come may come for the next
                // question.
                while answers.len() < REFUSALS && answers.last() == Some(&Answer::Silence) {
                    answers.extend(once(LONG));
                }
                answers
            }
            Expectation::Answered { sticky: true, .. } => ask(self.transport, target, STICKY_TIMES, LONGEST),
            Expectation::Answered { by, sticky: false } => {
                let mut answers = Vec::new();
                while answers.len() < MANY && places(&answers) != *by {
                    answers.extend(once(LONGEST));
                    if answers.last().is_some_and(|answer| !matches!(answer, Answer::From { .. })) {
                        break;
                    }
                }
                answers
            }
        }
    }

    fn is_right(&self, expected: &Expectation, answers: &[Answer], addresses: [IpAddr; 3]) -> bool {
        match expected {
            Expectation::Dropped => answers.iter().all(|a| matches!(a, Answer::Silence | Answer::Stopped)),
            Expectation::Refused => matches!(answers.last(), Some(Answer::Refused | Answer::Stopped)),
            Expectation::Answered { by, sticky } => {
                let found = places(answers);
                let who = if *sticky { found.len() == 1 && found.is_subset(by) } else { found == *by };
                who && answers.iter().all(|answer| self.has_right_source(answer, addresses))
            }
        }
    }

    fn has_right_source(&self, answer: &Answer, [client, gateway, target]: [IpAddr; 3]) -> bool {
        let Answer::From { name, source } = answer else { return false };
        place(name).is_some_and(|place| {
            *source
                == match self.variation.source(self.front, self.client, place, self.way.mode) {
                    Source::Client => client,
                    Source::Node => gateway,
                    Source::Target => target,
                }
        })
    }
}

impl Outcome<'_> {
    fn row(&self) -> String {
        let Case { index, variation, front, client, transport, family, way: _ } = &self.case;
        let Variation { endpoints, internal, external, extra } = variation;
        format!(
            "{}\t{family}\t{transport}\t{front:?}\t{client:?}\t{endpoints:?}\t{internal:?}\t{external:?}\t{extra:?}\tv{index}\t{}\t{}\n",
            if self.ok { "ok" } else { "WRONG" },
            expectation_words(&self.expected),
            self.seen()
        )
    }

    fn seen(&self) -> String {
        self.seen.iter().map(|(what, count)| format!("{what} x{count}")).collect::<Vec<_>>().join(", ")
    }
}

/// Returns for each client and kind of address how many cases are right, of how many.
fn counts(results: &[Outcome<'_>]) -> impl Iterator<Item = (String, String, usize, usize)> {
    Client::ALL.into_iter().flat_map(move |client| {
        Front::ALL.map(|front| {
            let of: Vec<_> =
                results.iter().filter(|r| r.case.client == client && r.case.front == front).collect();
            let right = of.iter().filter(|result| result.ok).count();
            (format!("{client:?}"), format!("{front:?}"), right, of.len())
        })
    })
}

/// Returns a table of clients and addresses.
fn table(results: &[Outcome<'_>]) -> Table {
    let mut table = Table::new();
    let header = ["client", "cluster IP", "node port", "external IP", "load-balancer IP"];
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED).set_header(header);
    let counts: Vec<_> = counts(results).collect();
    for row in counts.chunks(Front::ALL.len()) {
        let cells = row.iter().map(|(_, _, right, of)| format!("{right} of {of} right"));
        table.add_row(row.first().map(|(client, ..)| client.clone()).into_iter().chain(cells));
    }
    table
}

fn places(answers: &[Answer]) -> BTreeSet<Place> {
    let from = |answer: &Answer| match answer {
        Answer::From { name, .. } => place(name),
        _ => None,
    };
    answers.iter().filter_map(from).collect()
}

fn place(name: &str) -> Option<Place> {
    Place::ALL.into_iter().find(|place| place.host() == name)
}

fn words(answer: &Answer) -> String {
    match answer {
        Answer::From { name, source } => format!("{name} saw {source}"),
        Answer::Refused => "refused".to_owned(),
        Answer::Stopped => "stopped on the way out".to_owned(),
        Answer::Silence => "no answer".to_owned(),
        Answer::Failed(why) => why.clone(),
    }
}

fn expectation_words(expected: &Expectation) -> String {
    match expected {
        Expectation::Answered { by, sticky } => {
            let names: Vec<_> = by.iter().map(|place| place.host()).collect();
            format!(
                "{}{}",
                names.join(if *sticky { " or " } else { " and " }),
                if *sticky { ", always the same" } else { "" }
            )
        }
        Expectation::Refused => "refused".to_owned(),
        Expectation::Dropped => "no answer".to_owned(),
    }
}

const HEADER: &str = "result\tfamily\tprotocol\tfront\tclient\tendpoints\tinternal\texternal\textra\tservice\texpected\tseen\n";
/// An endpoint of three is left out by chance once in 10^17 cases.
const MANY: usize = 100;
const STICKY_TIMES: usize = 5;
const REFUSALS: usize = 4;
/// Longer than an answer takes on a busy machine.
const LONGEST: Duration = Duration::from_secs(10);
/// For a refusal, which may have to be asked for again.
const LONG: Duration = Duration::from_secs(2);
const SHORT: Duration = Duration::from_millis(400);
const SHOWN: usize = 40;
