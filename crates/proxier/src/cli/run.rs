//! `run`: the daemon.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{ArgAction, Args, ValueEnum};
use sluicegate_proxier::Mode;
use sluicegate_proxier::config::{Config, parse_duration};
use sluicegate_proxier::doctor::{missing_device, of_other_nodes, of_this_node};
use sluicegate_proxier::run::{Heartbeat, Intervals, Lint, Lock, Loop, Observer, Signal, ThisNode, World};
use sluicegate_proxier::serve::{LocalhostNodePorts, Serving};
use sluicegate_proxier::sysctl::Conntrack;
use sluicegate_service_rules::Backend;
use sluicegate_service_rules::nftables::Applier;
use sluicegate_services::Node;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::args::{NodeArgs, ProxyArgs, boolean, fill, number, rules};
use super::cleanup::Cleanup;
use super::compat::CompatArgs;
use super::configz::{InUse, configz};
use super::conntrack::ConntrackArgs;
use super::defaults::{self, OOM_SCORE};
use super::leftovers::Leftovers;
use super::log::{self, LogFormat};
use super::objects::nameless_node;
use super::serve::ServeArgs;
use super::source::SourceArgs;
use super::{Error, Given, config_file, iptables, ipvs, output, progress};

#[derive(Args)]
// As in kube-proxy the last one counts, or all where a flag has a list.
#[command(args_override_self = true)]
pub(crate) struct Run {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    pub(super) node: NodeArgs,
    #[command(flatten)]
    pub(super) proxy: ProxyArgs,
    #[command(flatten)]
    periods: Periods,
    #[command(flatten)]
    serve: ServeArgs,
    /// The verbosity of the log: 0 changes and problems, 2 periodic checks as well, 5 everything.
    #[arg(
        long = "v",
        short = 'v',
        value_name = "LEVEL",
        default_value_t = 0,
        value_parser = number(0..=i32::MAX.unsigned_abs())
    )]
    verbosity: u32,
    /// The form of the log.
    #[arg(long, value_enum, default_value = "text")]
    logging_format: LogFormat,
    /// How ready the kernel is to kill this process when memory is short, -1000 to 1000.
    #[arg(long, value_name = "SCORE", default_value_t = OOM_SCORE, allow_negative_numbers = true,
          value_parser = number(-1000..=1000_i32))]
    oom_score_adj: i32,
    #[command(flatten)]
    conntrack: ConntrackArgs,
    /// Remove everything that any mode left, as the command `cleanup` does, and exit.
    #[arg(long, value_name = "true|false", default_value_t = false, num_args = 0..=1, default_missing_value = "true",
          action = ArgAction::Set, value_parser = boolean)]
    cleanup: bool,
    /// Set the sysctls and load the modules, which take all rights of root, and exit.
    #[arg(long, value_name = "true|false", default_value_t = false, num_args = 0..=1, default_missing_value = "true",
          action = ArgAction::Set, value_parser = boolean)]
    init_only: bool,
    /// Begin although most of the cluster IPs that the kernel serves, or all, are not among the manifests or
    /// have no EndpointSlice there any more. Without it, the first sync waits until they are, and /healthz
    /// says so. What an API server says is always taken.
    #[arg(long, value_name = "true|false", default_value_t = false, num_args = 0..=1, default_missing_value = "true",
          action = ArgAction::Set, value_parser = boolean)]
    allow_empty: bool,
    /// In nftables mode on a node that was in ipvs mode: leave the virtual servers and addresses of that mode until
    /// IPVS has no connection any more, for this time at most. Connections of IPVS end with them; new ones are
    /// translated by nftables from the first sync on.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    ipvs_drain: Duration,
    /// Write the default configuration to this file, and exit.
    #[arg(long, value_name = "FILE")]
    write_config_to: Option<PathBuf>,
    /// Print the version, and exit.
    #[arg(long, value_name = "true|raw", num_args = 0..=1, default_missing_value = "true")]
    version: Option<Version>,
    #[command(flatten)]
    compat: CompatArgs,
}

/// How to print the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Version {
    True,
    False,
    Raw,
}

/// How often to sync, by mode.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Periods")]
struct Periods {
    /// In nftables mode, how often to check the rules; also the longest wait after a failure (30s).
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    nftables_sync_period: Option<Duration>,
    /// In nftables mode, the minimum time between two syncs (50ms).
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    nftables_min_sync_period: Option<Duration>,
    /// In iptables mode, how often to check the rules; also the longest wait after a failure (30s). In nftables
    /// mode as well where --nftables-sync-period is not given.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    iptables_sync_period: Option<Duration>,
    /// In iptables mode, the minimum time between two syncs (1s). In nftables mode as well where
    /// --nftables-min-sync-period is not given.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    iptables_min_sync_period: Option<Duration>,
    /// In ipvs mode, how often to check the rules; also the longest wait after a failure (30s).
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ipvs_sync_period: Option<Duration>,
    /// In ipvs mode, the minimum time between two syncs (1s).
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ipvs_min_sync_period: Option<Duration>,
}

impl Run {
    /// Runs until a signal. Arguments that were given override the configuration file.
    pub(crate) fn run(mut self, given: &Given) -> Result<ExitCode, Error> {
        match self.version {
            Some(Version::True) => return print(&format!("sluicegate-proxier {VERSION}")),
            Some(Version::Raw) => {
                let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
                return print(&format!("sluicegate-proxier {VERSION} {system}/{machine}"));
            }
            Some(Version::False) | None => {}
        }
        if let Some(path) = &self.write_config_to {
            defaults::write(path)?;
            return print(&format!("wrote the default configuration to {}", path.display()));
        }
        if self.cleanup {
            return Cleanup::every_mode().run();
        }
        let warnings = CompatArgs::warnings(&given.names);
        let config = self.proxy.read_config(&mut self.node)?;
        self.fill(&config, &given.names)?;
        let in_vain = self.proxy.check_mode()?;
        if !self.ipvs_drain.is_zero() && self.proxy.proxy_mode != Mode::Nftables {
            let reason = format!("expected --proxy-mode nftables, found {}", self.proxy.proxy_mode);
            return Err(Error::flag("--ipvs-drain", reason));
        }
        if !self.init_only {
            // Before anything is changed or warned of.
            self.source.check()?;
        }
        log::start(self.verbosity, self.logging_format);
        for flag in ["healthz", "metrics"].iter().filter(|flag| given.names.contains(&format!("{flag}_port")))
        {
            tracing::warn!("--{flag}-port is deprecated; --{flag}-bind-address has the address and the port");
        }
        warnings.iter().chain(&in_vain).for_each(|warning| tracing::warn!("{warning}"));
        for (gate, why) in self.proxy.gates().without_effect() {
            tracing::warn!("--feature-gates: {gate} has no effect here: {why}");
        }
        self.proxy.remarks(&config).iter().for_each(|remark| tracing::warn!("{remark}"));
        // What cannot be is refused before a sysctl is set.
        let this = self.this_node()?;
        match self.proxy.proxy_mode {
            Mode::Nftables => drop(self.proxy.settings()?),
            Mode::Iptables => drop(self.proxy.iptables()?),
            Mode::Ipvs => drop(self.proxy.ipvs()?),
        }
        let conntrack = self.conntrack.all(config.conntrack, self.serve.set_sysctls || self.init_only);
        ConntrackArgs::set(&conntrack);
        if self.init_only {
            let backend = self.backend()?;
            self.serve.set_sysctls = true;
            self.serve.sysctls(&self.proxy, World::new(this).cluster())?;
            drop(backend);
            return print("initialised; --init-only ends here");
        }
        exit_on_panic();
        self.set_oom_score(given.names.contains("oom_score_adj") || config.oom_score_adj.is_some());
        let _lock = Lock::take()?;
        let mut world = World::new(this.clone());
        if self.proxy.forbids_external_ips() {
            world.forbid_external_ips();
        }
        if let Some(why) = self.proxy.without_schedulers() {
            world.leave_schedulers_out(why);
        }
        world.set_service_cidr("--service-cluster-ip-range", &self.proxy.service_cluster_ip_range);
        let intervals = self.intervals(&config);
        let heartbeat = Heartbeat::default();
        heartbeat.watch((intervals.sync * 4).max(LONGEST_SILENCE)).map_err(Error::Runtime)?;
        let backend = self.backend()?;
        // Opening the back end loads IPVS, and with it its sysctls.
        self.serve.sysctls(&self.proxy, world.cluster())?;
        let configz = self.configz(&intervals, conntrack);
        let flags = given.values.clone();
        let serving = self.serve.start(&self.proxy, intervals.sync, configz, flags, &heartbeat)?;
        let serving = Arc::new(serving);
        if let Some(why) = missing_device(&self.proxy.detect_local()?) {
            tracing::warn!("{why}");
            serving.warning(&why);
        }
        let (inspections, shown) = (serving.inspections(), Arc::clone(&serving));
        let observer: Arc<dyn Observer> = Arc::clone(&serving) as _;
        let looping = Loop::new(world, backend, intervals, observer)?;
        tracing::info!("{}", self.start_line(&this.name));
        let runtime = runtime()?;
        let has_cidrs = self.proxy.proxy_mode == Mode::Nftables;
        let recording = Some(self.proxy.proxy_mode);
        let (updates, recorder) = self.source.start(&runtime, &this.name, has_cidrs, serving, recording)?;
        let (signals, stop) = runtime.block_on(async { signals() })?;
        let config_changed = Arc::new(AtomicBool::new(false));
        if let Some(path) = self.proxy.config.clone() {
            runtime.spawn(config_file::follow(path, config, stop, Arc::clone(&config_changed)));
        }
        let is_guarded = !self.allow_empty && !self.source.manifests.is_empty();
        let leftovers: Arc<dyn Observer> =
            Arc::new(Leftovers::new(self.proxy.proxy_mode, is_guarded, self.ipvs_drain));
        let localhost = self.localhost_node_ports(&runtime, &shown).map(|ports| ports as Arc<dyn Observer>);
        // The loop stays on this thread, which its syncs block; everything else runs on the threads of the
        // runtime.
        let looping = looping
            .observed_by(progress::on_terminal())
            .observed_by(recorder)
            .observed_by(Some(leftovers))
            .observed_by(localhost)
            .inspected_by(inspections)
            .guarded(is_guarded)
            .linted_by(self.lint())
            .with_heartbeat(heartbeat);
        let ended = runtime.block_on(looping.run(updates, signals));
        runtime.shutdown_background();
        ended?;
        match self.proxy.config {
            Some(path) if config_changed.load(Ordering::Relaxed) => Err(Error::ConfigChanged(path)),
            _ => Ok(ExitCode::SUCCESS),
        }
    }

    /// Returns what answers node ports on loopback in nftables mode, where the feature gate and the addresses
    /// of node ports ask for it.
    fn localhost_node_ports(
        &self,
        runtime: &Runtime,
        serving: &Arc<Serving>,
    ) -> Option<Arc<LocalhostNodePorts>> {
        let families = self.proxy.forwarded_localhost();
        let (warned, counted) = (Arc::clone(serving), Arc::clone(serving));
        let report = move |warning: &str| {
            tracing::warn!("{warning}");
            warned.warning(warning);
        };
        let count = move |family, open, failed| counted.metrics().localhost_ports(family, open, failed);
        (!families.is_empty()).then(|| {
            Arc::new(LocalhostNodePorts::new(runtime.handle().clone(), families, report).counted_by(count))
        })
    }

    /// Says what runs, for whom, and where it answers.
    fn start_line(&self, node: &str) -> String {
        let [healthz, metrics] = self.serve.places();
        let served = [("/healthz", healthz), ("/metrics", metrics)].map(|(page, address)| match &*address {
            "" => format!("no {page}"),
            address => format!("{page} on {address}"),
        });
        let (mode, source) = (self.proxy.proxy_mode, self.source.describe());
        format!(
            "sluicegate-proxier {VERSION} on node {node}: {mode} mode, objects from {source}, {}",
            served.join(", ")
        )
    }

    /// Sets the flags of the daemon alone that were not given from the configuration file.
    fn fill(&mut self, config: &Config, given: &HashSet<String>) -> Result<(), Error> {
        // Manifests on the command line override the kubeconfig of the file.
        let kubeconfig = config
            .kubeconfig
            .clone()
            .filter(|path| !path.as_os_str().is_empty() && self.source.manifests.is_empty());
        fill(given, "kubeconfig", &mut self.source.server.kubeconfig, kubeconfig.map(Some));
        fill(given, "verbosity", &mut self.verbosity, config.verbosity);
        fill(given, "oom_score_adj", &mut self.oom_score_adj, config.oom_score_adj);
        let format = config.log_format.as_deref().map(|text| LogFormat::from_str(text, false)).transpose();
        let format = format.map_err(|reason| Error::flag("logging.format", reason))?;
        fill(given, "logging_format", &mut self.logging_format, format);
        self.serve.fill(config, |flag| given.contains(flag))
    }

    fn intervals(&self, config: &Config) -> Intervals {
        let (rules, periods) = (rules(config, self.proxy.proxy_mode), self.periods);
        let (min, sync) = match self.proxy.proxy_mode {
            // kube-proxy's nftables mode has no flags of its own for these, and takes those of iptables.
            Mode::Nftables => (
                periods.nftables_min_sync_period.or(periods.iptables_min_sync_period),
                periods.nftables_sync_period.or(periods.iptables_sync_period),
            ),
            Mode::Iptables => (periods.iptables_min_sync_period, periods.iptables_sync_period),
            Mode::Ipvs => (periods.ipvs_min_sync_period, periods.ipvs_sync_period),
        };
        let usual = Intervals::of(self.proxy.proxy_mode);
        Intervals {
            min: min.or(rules.min_sync_period).unwrap_or(usual.min),
            sync: sync.or(rules.sync_period).unwrap_or(usual.sync),
            ..usual
        }
    }

    /// Returns what finds among the objects that which is probably not meant: that this node is not known, and
    /// in ipvs mode, which addresses of services are those of other nodes and would be bound here.
    fn lint(&self) -> Lint {
        let (is_asking, is_ipvs) = (self.source.manifests.is_empty(), self.proxy.proxy_mode == Mode::Ipvs);
        let (addresses, looked) = (self.proxy.node_port_addresses(), Looked::default());
        Box::new(move |world| {
            let mut looked = looked.lock().unwrap_or_else(PoisonError::into_inner);
            let node = world.cluster().node();
            // Where the node has no address of a family, all services are looked at.
            let is_known = |(at, of, _): &(Instant, Node, _)| of == node && at.elapsed() < LOOK_EVERY;
            if !looked.as_ref().is_some_and(is_known) {
                let mut told = of_this_node(world.cluster(), world.nodes(), &addresses);
                told.extend(nameless_node(world).filter(|_| is_asking));
                *looked = Some((Instant::now(), node.clone(), told));
            }
            let mut told = looked.as_ref().map(|(.., told)| told.clone()).unwrap_or_default();
            if is_ipvs {
                told.extend(of_other_nodes(world.cluster(), world.other_nodes()));
            }
            told
        })
    }

    fn configz(&self, intervals: &Intervals, conntrack: Conntrack) -> String {
        let kubeconfig = self.source.server.kubeconfig.as_ref().map(|path| path.display().to_string());
        configz(&InUse {
            node: &self.node,
            proxy: &self.proxy,
            serve: &self.serve,
            intervals,
            kubeconfig: kubeconfig.as_deref(),
            conntrack,
            log_format: self.logging_format.as_str(),
            verbosity: self.verbosity,
            oom_score_adj: self.oom_score_adj,
        })
    }

    /// Sets the score by which the kernel chooses a process to kill. Without the right to lower it, that is a
    /// warning where somebody asked for it.
    fn set_oom_score(&self, is_asked: bool) {
        match std::fs::write("/proc/self/oom_score_adj", self.oom_score_adj.to_string()) {
            Ok(()) => tracing::debug!("the OOM score is {} now", self.oom_score_adj),
            Err(error) if is_asked => tracing::warn!("--oom-score-adj {}: {error}", self.oom_score_adj),
            Err(error) => tracing::debug!("the OOM score cannot be set to {}: {error}", self.oom_score_adj),
        }
    }

    fn this_node(&self) -> Result<ThisNode, Error> {
        let Node { name, .. } = self.node.node(&[])?;
        Ok(ThisNode {
            name,
            addresses: self.node.bind_address.clone(),
            pod_cidrs: self.node.node_pod_cidr.clone(),
        })
    }

    fn backend(&self) -> Result<Box<dyn Backend>, Error> {
        Ok(match self.proxy.proxy_mode {
            Mode::Nftables => Box::new(Applier::open(self.proxy.settings()?)?),
            Mode::Iptables => Box::new(iptables::applier(&self.proxy)?),
            Mode::Ipvs => Box::new(ipvs::applier(&self.proxy)?),
        })
    }
}

fn print(line: &str) -> Result<ExitCode, Error> {
    output::print(&format!("{line}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// What was found of this node, for which node, and when.
type Looked = Mutex<Option<(Instant, Node, Vec<String>)>>;

/// Ends the process where a thread panics, also for want of another thread, so that it is started anew: the
/// others would wait for that one for ever. A panic on the thread of the HTTP servers ends one connection.
fn exit_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if std::thread::current().name() != Some("http") {
            std::process::exit(PANICKED);
        }
    }));
}

/// Starts the threads of the source and of signals.
pub(super) fn runtime() -> Result<Runtime, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(Error::Runtime)
}

/// Receives signals: SIGTERM and SIGINT stop, SIGHUP compares everything.
///
/// Returns a sender of others as well.
fn signals() -> Result<(Receiver<Signal>, Sender<Signal>), Error> {
    let (sender, receiver) = mpsc::channel(1);
    let meanings = [
        (SignalKind::terminate(), Signal::Stop),
        (SignalKind::interrupt(), Signal::Stop),
        (SignalKind::hangup(), Signal::Resync),
    ];
    for (kind, meaning) in meanings {
        let mut stream = signal(kind).map_err(Error::Signals)?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                if sender.send(meaning).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok((receiver, sender))
}

/// The status of a program of Rust whose main thread panicked.
const PANICKED: i32 = 101;
/// The least time between two looks at what is known of this node, while the node is the same.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// The least time without a turn of the run loop after which the process ends.
const LONGEST_SILENCE: Duration = Duration::from_secs(120);
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Command, Sub};

    fn intervals(flags: &[&str]) -> (u64, u64) {
        let words = ["sluicegate-proxier", "run"].iter().chain(flags);
        let Sub::Run(run) = Command::parse_from(words).subcommand else { panic!("another command") };
        let Intervals { min, sync, .. } = run.intervals(&Config::default());
        (min.as_secs(), sync.as_secs())
    }

    /// kube-proxy's `processV1Alpha1Flags`: those of iptables are for every mode but ipvs.
    #[test]
    fn nftables_mode_takes_the_intervals_of_iptables_where_its_own_are_not_given() {
        let of_iptables = ["--iptables-min-sync-period=7s", "--iptables-sync-period=70s"];
        let of_nftables = ["--nftables-min-sync-period=3s", "--nftables-sync-period=33s"];
        let of_ipvs = ["--ipvs-min-sync-period=4s", "--ipvs-sync-period=44s", "--proxy-mode=ipvs"];
        assert_eq!(intervals(&of_iptables), (7, 70));
        assert_eq!(intervals(&[of_iptables, of_nftables].concat()), (3, 33));
        assert_eq!(intervals(&[&of_iptables[..], &of_ipvs].concat()), (4, 44));
    }

    #[test]
    fn a_panic_ends_the_process_unless_it_is_of_one_connection() {
        let Ok(step) = std::env::var(STEP) else {
            // The process of a test whose hook it is: no other test may have it.
            for (step, expected) in
                [("manifests", PANICKED), ("runtime", PANICKED), ("spawn", PANICKED), ("http", SURVIVED)]
            {
                let name = "cli::run::tests::a_panic_ends_the_process_unless_it_is_of_one_connection";
                let exe = std::env::current_exe().expect("the program of the tests");
                let output = std::process::Command::new(exe).args(["--exact", name]).env(STEP, step).output();
                let output = output.expect("it starts");
                assert_eq!(output.status.code(), Some(expected), "{step}: {output:?}");
                // What runs the tests has the same status for a panic that it catches.
                assert!(
                    !String::from_utf8_lossy(&output.stdout).contains("test result"),
                    "{step}: {output:?}"
                );
            }
            return;
        };
        exit_on_panic();
        match step.as_str() {
            "runtime" => {
                let runtime = runtime().expect("threads");
                let _ = runtime.block_on(runtime.spawn(async { panic!("on purpose") }));
            }
            // As where the kernel gives no more threads: there is no room for the stack of one. Its own threads run by
            // then, and the limit is below what is mapped already: while a thread starts, its first allocation maps
            // and gives back 64 MB, which would leave room for the stack.
            "spawn" => {
                use nix::sys::resource::{Resource, setrlimit};

                let runtime = runtime().expect("threads");
                let both = Arc::new(std::sync::Barrier::new(2));
                let started = [both.clone(), both].map(|both| runtime.spawn(async move { both.wait() }));
                for started in started {
                    runtime.block_on(started).expect("it runs");
                }
                setrlimit(Resource::RLIMIT_AS, 1 << 20, 1 << 20).expect("a lower limit");
                let _ = runtime.block_on(runtime.spawn_blocking(|| ()));
            }
            name => {
                let thread = std::thread::Builder::new().name(name.to_owned());
                let thread = thread.spawn(|| panic!("on purpose")).expect("a thread");
                assert!(thread.join().is_err());
            }
        }
        std::process::exit(SURVIVED);
    }

    /// Says, to the process that the test starts, which step it is.
    const STEP: &str = "SLUICEGATE_PANIC";
    /// The status of a process that went on.
    const SURVIVED: i32 = 7;
}
