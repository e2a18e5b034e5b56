//! `soak`: the run loop of the daemon under siege, in a throw-away namespace.
//!
//! A source that changes services and endpoints at random, other programs that delete or overwrite the rules,
//! and restarts, for as long as is asked for. Now and then all are quiet, and the kernel has to come to equal a
//! fresh plan of the objects; memory, descriptors and threads must not grow. The seed repeats the changes, not
//! the times at which they meet.
//!
//! With `--program` the daemon is that program, which follows a folder on a disk of its own: it is killed and
//! started again, stopped while another program floods the events of `nf_tables` (so that its socket overflows),
//! its files are cut short for a moment, or the disk is full while all are written anew. With `--api` its objects
//! come from an API server whose answers are slow, broken and wrong at random; the program needs the feature
//! `kube` then. `--memory` bounds its memory, by a control group where one can be made. One that is started again
//! has clocks of another time since the start of the machine, and one that was stopped sees them jump; the time
//! of day cannot be set in a namespace.
//!
//! IPVS mode needs a kernel that has it: a guest's, as `xtask/guest/uml/umlrun`.

mod api;
mod clock;
mod memory;
mod process;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Chain, Name, Table, TableId, Transaction};
use sluicegate_proxier::Mode;
use sluicegate_proxier::output::OutputArgs;
use sluicegate_proxier::run::{Intervals, Loop, Observer, Signal, SyncReport, ThisNode, World};
use sluicegate_proxier::source::update::{Kind, ObjectName, Update};
use sluicegate_proxier::source::{self, Object};
use sluicegate_service_rules::iptables::{self, BackEnd};
use sluicegate_service_rules::nftables::{self, Layout};
use sluicegate_service_rules::{Backend, Error as RulesError, ipvs};
use sluicegate_services::{Cluster, Family};
use tokio::sync::mpsc::{self, Sender};

use crate::{Error, Namespace, Wire};
use process::Process;

#[derive(Args)]
pub(crate) struct Soak {
    /// How long.
    #[arg(long, value_name = "MINUTES", default_value_t = 2.0)]
    minutes: f64,
    /// What the changes are drawn from.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// The number of services that there may be at a time.
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    services: u32,
    /// What is programmed.
    #[arg(long, value_enum, default_value = "maps")]
    rules: Rules,
    /// The program sluicegate-proxier, to be run as a process that follows a folder, in place of the run loop
    /// in this process.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// The most memory that the program gets, in megabytes.
    #[arg(long, value_name = "MEGABYTES", requires = "program")]
    memory: Option<u32>,
    /// Let the program follow an API server in place of a folder.
    #[arg(long, requires = "program")]
    api: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// The rules that are programmed: a layout of nftables mode, or a back end of iptables or ipvs mode.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Rules {
    Maps,
    Chains,
    IptablesNft,
    IptablesLegacy,
    IpvsNft,
    IpvsLegacy,
}

impl Soak {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let node = Namespace::new("node")?;
        for path in ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"] {
            node.sysctl(path, "1")?;
        }
        // An API server is on the loop-back.
        node.run(|| Wire::open()?.up("lo"))?;
        node.run(|| Siege::new(self).and_then(Siege::run))
    }
}

/// The programs of the namespace, and the objects that the kernel has to have in the end.
struct Siege<'a> {
    options: &'a Soak,
    random: Random,
    objects: BTreeMap<String, String>,
    daemon: Besieged,
    count: Count,
    steps: BTreeMap<&'static str, usize>,
}

impl<'a> Siege<'a> {
    fn new(options: &'a Soak) -> Result<Self, Error> {
        let count = Count::default();
        let daemon = match &options.program {
            Some(program) => {
                let faults = options.api.then_some(options.seed);
                Besieged::Process(Process::start(program.clone(), options.rules, options.memory, faults)?)
            }
            None => Besieged::Loop(Daemon::start(options.rules, &BTreeMap::new(), &count)?),
        };
        let random = Random(options.seed);
        Ok(Self { options, random, objects: BTreeMap::new(), daemon, count, steps: BTreeMap::new() })
    }

    fn run(mut self) -> Result<ExitCode, Error> {
        let start = Instant::now();
        let end = start + Duration::from_secs_f64(self.options.minutes * 60.0);
        let (mut quiet_points, mut longest) = (0, Duration::ZERO);
        // What is allocated once is there after some rounds.
        let mut first: Option<Usage> = None;
        let (mut last, mut since_start, mut grows) = (Usage::default(), 0, false);
        let output = self.options.output;
        while Instant::now() < end {
            for _ in 0..200 {
                self.step()?;
            }
            let took = match self.become_quiet()? {
                Ok(took) => took,
                Err(difference) => {
                    output.say(format_args!(
                        "seed {}: after {:?} at quiet point {quiet_points} the kernel differs from a \
                              fresh plan: {difference}",
                        self.options.seed,
                        start.elapsed()
                    ))?;
                    let failure = self.count.failure();
                    if let Some(failure) = &failure {
                        output.say(format_args!("the last sync failed: {failure}"))?;
                    }
                    let mut object = self.object(quiet_points, longest, first, last, grows);
                    object["difference"] = json!(difference.to_string());
                    object["failure"] = json!(failure.map(|failure| failure.to_string()));
                    output.object(|| object)?;
                    return Ok(ExitCode::FAILURE);
                }
            };
            longest = longest.max(took);
            quiet_points += 1;
            last = Usage::of(self.daemon.id());
            since_start += 1;
            if since_start == WARM {
                first = Some(last);
            }
            if since_start > WARM && self.random.below(20) == 0 && self.kill()? {
                grows |= first.is_some_and(|first| last.exceeds(first));
                (first, since_start) = (None, 0);
            }
        }
        let work = match &mut self.daemon {
            Besieged::Loop(daemon) => {
                daemon.stop();
                format!("{} syncs", self.count.0.load(Ordering::Relaxed))
            }
            Besieged::Process(process) => {
                if process.has_other_clocks() {
                    *self.steps.entry("lives with other clocks").or_default() += 1;
                }
                process.stop()?;
                if let Some(api) = process.api() {
                    output.say(format_args!("faults of the API server: {:?}", api.faults()))?;
                }
                let limit = process.limit();
                limit.map_or_else(|| "as a process".to_owned(), |limit| format!("as a process, {limit}"))
            }
        };
        output.say(format_args!(
            "{:?}: {quiet_points} quiet points, each equal to a fresh plan, after {longest:?} \
                  at most; {work}",
            self.options.rules
        ))?;
        output.say(format_args!("steps: {:?}", self.steps))?;
        let grows = grows || first.is_some_and(|first| last.exceeds(first));
        output.object(|| self.object(quiet_points, longest, first, last, grows))?;
        let Some(first) = first else {
            output.say(format_args!("too short since the last start to tell of growth: {last:?}"))?;
            return Ok(if grows { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        };
        output.say(format_args!("{first:?} after {WARM} quiet points, {last:?} at the end"))?;
        if grows {
            output.say("memory, descriptors or threads grow")?;
        }
        Ok(if grows { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// Returns what came of it as the object of the output.
    fn object(
        &self,
        quiet_points: usize,
        longest: Duration,
        first: Option<Usage>,
        last: Usage,
        grows: bool,
    ) -> Value {
        json!({
            "rules": self.options.rules.to_possible_value().map(|value| value.get_name().to_owned()),
            "seed": self.options.seed,
            "quietPoints": quiet_points,
            "longestSeconds": longest.as_secs_f64(),
            "syncs": self.count.0.load(Ordering::Relaxed),
            "steps": self.steps,
            "usageWhenWarm": first.map(Usage::object),
            "usageAtEnd": last.object(),
            "grows": grows,
            "difference": null,
            "failure": null,
        })
    }

    /// Kills the daemon if it is a process.
    fn kill(&mut self) -> Result<bool, Error> {
        let Besieged::Process(process) = &mut self.daemon else { return Ok(false) };
        // As of now, just after the start of the machine, after weeks and after years.
        let ahead = match self.random.below(4) {
            0 => 0,
            1 => 10 - clock::uptime(),
            2 => 4_000_000,
            _ => 1_000_000_000,
        };
        let had_other_clocks = process.has_other_clocks();
        process.kill(ahead)?;
        *self.steps.entry("kills").or_default() += 1;
        if had_other_clocks {
            *self.steps.entry("lives with other clocks").or_default() += 1;
        }
        Ok(true)
    }

    fn step(&mut self) -> Result<(), Error> {
        let service = self.random.below(self.options.services);
        let name = match self.random.below(200) {
            0 => match &mut self.daemon {
                Besieged::Loop(daemon) => {
                    daemon.stop();
                    *daemon = Daemon::start(self.options.rules, &self.objects, &self.count)?;
                    "restarts"
                }
                Besieged::Process(process) => {
                    process.pause(|| flood(&mut self.random))?;
                    "floods of events while it is stopped"
                }
            },
            1 => {
                // Another program with other services overwrites everything.
                let mut other = World::new(this_node());
                other.apply(Update::Replace(Kind::EndpointSlice, Vec::new()));
                other.apply(Update::Replace(
                    Kind::Service,
                    objects(&service_text(&mut self.random, service))?,
                ));
                let mut cluster = other.into_cluster();
                let changes = cluster.take_changes();
                // It may lose the race against the daemon.
                let _ = backend(self.options.rules)?.sync(&cluster, &changes, Instant::now());
                "overwrites"
            }
            2 => {
                remove(self.options.rules);
                "deletions of all rules"
            }
            3 => match &self.daemon {
                Besieged::Loop(daemon) => {
                    for kind in [Kind::EndpointSlice, Kind::Service] {
                        daemon.tell(Update::Replace(kind, of_kind(&self.objects, kind)?));
                    }
                    "lists anew"
                }
                Besieged::Process(process) => process.harm(&self.objects, self.random.below(2) == 0)?,
            },
            4 => {
                match &self.daemon {
                    Besieged::Loop(daemon) => daemon.signal(Signal::Resync),
                    Besieged::Process(process) => process.resync()?,
                }
                "signals"
            }
            5..30 => {
                self.delete(&format!("service-{service}"))?;
                "services deleted"
            }
            30..45 => {
                self.delete(&format!("slice-{service}"))?;
                "slices deleted"
            }
            45..110 => {
                let text = service_text(&mut self.random, service);
                self.put(format!("service-{service}"), text)?;
                "services set"
            }
            _ => {
                let text = slice_text(&mut self.random, service);
                self.put(format!("slice-{service}"), text)?;
                "slices set"
            }
        };
        *self.steps.entry(name).or_default() += 1;
        if self.random.below(20) == 0 {
            thread::sleep(Duration::from_millis(self.random.below(30).into()));
        }
        Ok(())
    }

    fn put(&mut self, name: String, text: String) -> Result<(), Error> {
        match &self.daemon {
            Besieged::Loop(daemon) => {
                objects(&text)?.into_iter().for_each(|object| daemon.tell(Update::Apply(object)));
            }
            Besieged::Process(process) => process.write(&name, &text)?,
        }
        self.objects.insert(name, text);
        Ok(())
    }

    fn delete(&mut self, name: &str) -> Result<(), Error> {
        let Some(text) = self.objects.remove(name) else { return Ok(()) };
        match &self.daemon {
            Besieged::Loop(daemon) => {
                let gone = objects(&text)?;
                gone.iter().for_each(|object| daemon.tell(Update::Delete(ObjectName::of(object))));
            }
            Besieged::Process(process) => process.remove(name)?,
        }
        Ok(())
    }

    /// Waits until the kernel has what the objects say. Returns how long that took, or the difference that is
    /// left.
    fn become_quiet(&self) -> Result<Result<Duration, String>, Error> {
        let api = match &self.daemon {
            Besieged::Process(process) => process.api(),
            Besieged::Loop(_) => None,
        };
        api.into_iter().for_each(|api| api.set_calm(true));
        let longest = if api.is_some() { LONGEST_OUTAGE } else { LONGEST_QUIET };
        let quiet = self.equals_a_fresh_plan(longest);
        api.into_iter().for_each(|api| api.set_calm(false));
        quiet
    }

    fn equals_a_fresh_plan(&self, longest: Duration) -> Result<Result<Duration, String>, Error> {
        let start = Instant::now();
        let mut world = World::new(this_node());
        for kind in [Kind::EndpointSlice, Kind::Service] {
            world.apply(Update::Replace(kind, of_kind(&self.objects, kind)?));
        }
        loop {
            thread::sleep(Duration::from_millis(50));
            let difference = match difference(self.options.rules, world.cluster()) {
                Ok(difference) if difference.is_empty() => return Ok(Ok(start.elapsed())),
                Ok(difference) => difference,
                // The daemon commits while this lists.
                Err(error) => error.to_string(),
            };
            if start.elapsed() > longest {
                return Ok(Err(difference.chars().take(2000).collect()));
            }
        }
    }
}

/// What is under siege.
enum Besieged {
    Loop(Daemon),
    Process(Process),
}

impl Besieged {
    /// Returns the number of the process that it is in.
    fn id(&self) -> u32 {
        match self {
            Self::Loop(_) => std::process::id(),
            Self::Process(process) => process.id(),
        }
    }
}

/// The run loop on a thread of its own.
struct Daemon {
    updates: Sender<Update>,
    signals: Sender<Signal>,
    thread: Option<JoinHandle<()>>,
}

/// The number of syncs, and why the last one failed.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>, Arc<Mutex<Option<String>>>);

impl Count {
    fn failure(&self) -> Option<String> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_failure(&self, failure: Option<String>) {
        *self.1.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }
}

impl Observer for Count {
    fn synced(&self, report: &SyncReport) {
        self.0.fetch_add(1, Ordering::Relaxed);
        let refused: Vec<_> = report.refused.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        self.set_failure((!refused.is_empty()).then(|| refused.join("; ")));
    }

    fn failed(&self, error: &RulesError) {
        self.set_failure(Some(error.to_string()));
    }
}

impl Daemon {
    fn start(rules: Rules, known: &BTreeMap<String, String>, count: &Count) -> Result<Self, Error> {
        let (updates, news) = mpsc::channel(256);
        let (signals, told) = mpsc::channel(1);
        let observer = Arc::new(count.clone());
        // The thread is in the namespace of the one that starts it.
        let thread = thread::spawn(move || {
            let run = || -> Result<(), String> {
                let backend = backend(rules).map_err(|error| error.to_string())?;
                let mut intervals =
                    Intervals { min: Duration::from_millis(50), ..Intervals::of(rules.mode()) };
                if rules.mode() == Mode::Ipvs {
                    // Nothing tells of what others do to sets and virtual servers: it is looked for.
                    intervals.sync = Duration::from_secs(2);
                }
                let looping = Loop::new(World::new(this_node()), backend, intervals, observer);
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| error.to_string())?;
                let ended = runtime.block_on(looping.map_err(|error| error.to_string())?.run(news, told));
                ended.map_err(|error| error.to_string())
            };
            if let Err(error) = run() {
                eprintln!("the run loop ended: {error}");
                std::process::exit(1);
            }
        });
        let daemon = Self { updates, signals, thread: Some(thread) };
        for kind in [Kind::EndpointSlice, Kind::Service] {
            daemon.tell(Update::Replace(kind, of_kind(known, kind)?));
        }
        Ok(daemon)
    }

    fn tell(&self, update: Update) {
        // If the loop has ended, it has said so.
        let _ = self.updates.blocking_send(update);
    }

    fn signal(&self, signal: Signal) {
        let _ = self.signals.blocking_send(signal);
    }

    fn stop(&mut self) {
        self.signal(Signal::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Rules {
    const fn mode(self) -> Mode {
        match self {
            Self::Maps | Self::Chains => Mode::Nftables,
            Self::IptablesNft | Self::IptablesLegacy => Mode::Iptables,
            Self::IpvsNft | Self::IpvsLegacy => Mode::Ipvs,
        }
    }

    const fn back_end(self) -> BackEnd {
        match self {
            Self::IptablesLegacy | Self::IpvsLegacy => BackEnd::Legacy,
            _ => BackEnd::Nft,
        }
    }
}

fn nftables(rules: Rules) -> Result<nftables::Applier, RulesError> {
    let layout = if matches!(rules, Rules::Chains) { Layout::Chains } else { Layout::Maps };
    nftables::Applier::open(nftables::Settings { layout, ..nftables::Settings::default() })
}

fn iptables(rules: Rules) -> Result<iptables::Applier, RulesError> {
    iptables::Applier::open(Some(rules.back_end()), &Family::BOTH, iptables::Settings::default())
}

fn ipvs(rules: Rules) -> Result<ipvs::Applier, RulesError> {
    ipvs::Applier::open(Some(rules.back_end()), &Family::BOTH, ipvs::Settings::default())
}

fn backend(rules: Rules) -> Result<Box<dyn Backend>, RulesError> {
    Ok(match rules.mode() {
        Mode::Nftables => Box::new(nftables(rules)?),
        Mode::Iptables => Box::new(iptables(rules)?),
        Mode::Ipvs => Box::new(ipvs(rules)?),
    })
}

/// Removes everything, as a program does that flushes what it does not know. It may lose a race.
fn remove(rules: Rules) {
    match rules.mode() {
        Mode::Nftables => drop(nftables(rules).and_then(|mut applier| applier.cleanup())),
        Mode::Iptables => drop(iptables(rules).map(|mut applier| applier.cleanup())),
        Mode::Ipvs => drop(ipvs::cleanup()),
    }
}

/// Commits a table that nobody needs again and again: more events than the socket of a listener that does not
/// read has room for.
fn flood(random: &mut Random) {
    let name = |text: &str| text.parse::<Name>().expect("a name");
    let table = TableId::new(sluicegate_nftables::Family::IP, name("flood"));
    let Ok(mut socket) = Socket::open(NetlinkFamily::NETFILTER, &Options::default()) else { return };
    for _ in 0..20 + random.below(20) {
        let mut transaction = Transaction::new();
        transaction.add(Table::new(table.clone()));
        for chain in 0..500 {
            transaction.add(Chain::new(table.chain(name(&format!("c{chain}")))));
        }
        transaction.delete(table.clone());
        // The daemon may have committed in between.
        let _ = transaction.apply(&mut socket);
    }
}

/// Returns what would be changed for the kernel to have these services.
fn difference(rules: Rules, cluster: &Cluster) -> Result<String, RulesError> {
    Ok(match rules.mode() {
        Mode::Nftables => nftables(rules)?.difference(cluster)?.to_string(),
        Mode::Iptables => {
            let inputs = iptables(rules)?.difference(cluster)?;
            inputs.iter().map(|(_, input)| input.to_string()).collect()
        }
        Mode::Ipvs => {
            let changes = ipvs(rules)?.difference(cluster)?;
            changes.iter().map(|(family, change)| change.script(*family).to_string()).collect()
        }
    })
}

fn this_node() -> ThisNode {
    let addresses = ["192.168.0.2", "fd00:192:168::2"].map(|ip| ip.parse().expect("an address"));
    ThisNode { name: "node".to_owned(), addresses: addresses.into(), ..ThisNode::default() }
}

/// Returns the one object of a text.
fn object(text: &str) -> Result<Object, Error> {
    let found = objects(text)?.pop();
    found.ok_or_else(|| Error::network("reading an object", format!("expected one, found {text:?}")))
}

fn objects(text: &str) -> Result<Vec<Object>, Error> {
    let mut found = Vec::new();
    source::read_str("soak.yaml", text, |manifest| found.push(manifest.object))?;
    Ok(found)
}

fn of_kind(texts: &BTreeMap<String, String>, kind: Kind) -> Result<Vec<Object>, Error> {
    let prefix = if kind == Kind::Service { "service-" } else { "slice-" };
    let texts = texts.iter().filter(|(name, _)| name.starts_with(prefix));
    let found: Result<Vec<_>, _> = texts.map(|(_, text)| objects(text)).collect();
    Ok(found?.into_iter().flatten().collect())
}

/// Returns a Service of this number with properties that are drawn.
fn service_text(random: &mut Random, number: u32) -> String {
    let [_, _, high, low] = number.to_be_bytes();
    let (v4, v6) = (format!("172.30.{high}.{low}"), format!("fd00:172:30::{number:x}"));
    let ips = match random.below(4) {
        0 => format!("clusterIP: '{v6}', clusterIPs: ['{v6}'], ipFamilies: [IPv6]"),
        1 => format!("clusterIP: {v4}, clusterIPs: [{v4}, '{v6}'], ipFamilies: [IPv4, IPv6]"),
        _ => format!("clusterIP: {v4}, clusterIPs: [{v4}], ipFamilies: [IPv4]"),
    };
    let protocol = random.of(&["TCP", "TCP", "UDP", "SCTP"]);
    let node_port = 30_000 + number;
    let (kind, port, status) = match random.below(3) {
        0 => ("ClusterIP", String::new(), String::new()),
        1 => ("NodePort", format!(", nodePort: {node_port}"), String::new()),
        _ => (
            "LoadBalancer",
            format!(", nodePort: {node_port}"),
            // Some services have the same address, of which one loses it.
            format!(", status: {{loadBalancer: {{ingress: [{{ip: 203.0.113.{}}}]}}}}", random.below(40) + 1),
        ),
    };
    let mut extra = String::new();
    if random.below(4) == 0 {
        extra.push_str(", sessionAffinity: ClientIP");
    }
    if kind != "ClusterIP" && random.below(3) == 0 {
        extra.push_str(", externalTrafficPolicy: Local");
    }
    if random.below(4) == 0 {
        extra.push_str(", internalTrafficPolicy: Local");
    }
    if kind == "LoadBalancer" && random.below(3) == 0 {
        extra.push_str(", loadBalancerSourceRanges: [192.0.2.0/24]");
    }
    if random.below(5) == 0 {
        extra.push_str(", externalIPs: [198.51.100.1]");
    }
    format!(
        "{{apiVersion: v1, kind: Service, metadata: {{namespace: soak, name: s{number}}}, spec: {{type: {kind}, \
         {ips}, ports: [{{name: p, port: {}, protocol: {protocol}{port}}}]{extra}}}{status}}}\n",
        random.of(&["80", "80", "443"])
    )
}

/// Returns an EndpointSlice of the service of this number with endpoints that are drawn.
fn slice_text(random: &mut Random, number: u32) -> String {
    let is_v6 = random.below(4) == 0;
    let endpoints: Vec<String> = (0..random.below(6))
        .map(|_| {
            let host = random.below(200) + 2;
            let ip = if is_v6 { format!("fd00:10:244::{host:x}") } else { format!("10.244.0.{host}") };
            let conditions = random.of(&[
                "ready: true",
                "ready: true",
                "ready: false",
                "ready: false, serving: true, terminating: true",
            ]);
            format!(
                "{{addresses: ['{ip}'], nodeName: {}, conditions: {{{conditions}}}}}",
                random.of(&["node", "other"])
            )
        })
        .collect();
    let family = if is_v6 { "IPv6" } else { "IPv4" };
    let ports: Vec<String> =
        ["TCP", "UDP", "SCTP"].iter().map(|p| format!("{{name: p, port: 8080, protocol: {p}}}")).collect();
    format!(
        "{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {{namespace: soak, name: s{number}-1, \
         labels: {{kubernetes.io/service-name: s{number}}}}}, addressType: {family}, ports: [{}], endpoints: [{}]}}\n",
        ports.join(", "),
        endpoints.join(", ")
    )
}

/// What the process uses.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    kilobytes: u64,
    descriptors: usize,
    threads: usize,
}

impl Usage {
    fn of(process: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        let count = |what| fs::read_dir(format!("/proc/{process}/{what}")).map_or(0, Iterator::count);
        Self { kilobytes: kilobytes.unwrap_or_default(), descriptors: count("fd"), threads: count("task") }
    }

    fn object(self) -> Value {
        json!({"kilobytes": self.kilobytes, "descriptors": self.descriptors, "threads": self.threads})
    }

    /// Returns whether this is so much more that something leaks. Sizes of allocators move by themselves, and
    /// some threads and descriptors come and go; what leaks in each of thousands of steps is more.
    const fn exceeds(self, first: Self) -> bool {
        self.kilobytes > first.kilobytes * 3 / 2 + 16_384
            || self.descriptors > first.descriptors + COME_AND_GO
            || self.threads > first.threads + COME_AND_GO
    }
}

/// Numbers that a seed repeats (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        u32::try_from(mixed % u64::from(end)).unwrap_or_default()
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        let index = self.below(u32::try_from(texts.len()).unwrap_or(1));
        texts.get(index as usize).copied().unwrap_or_default()
    }
}

/// The quiet points before memory is measured.
const WARM: usize = 5;
/// The descriptors and threads that may be there at one look and not at another.
const COME_AND_GO: usize = 2;
/// The longest time until the kernel has what the objects say.
const LONGEST_QUIET: Duration = Duration::from_secs(30);
/// The same where an API server has failed again and again: the daemon pauses for up to a minute then, so that
/// all nodes together do not keep a server down.
const LONGEST_OUTAGE: Duration = Duration::from_secs(100);
