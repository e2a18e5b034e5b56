//! `run`: the daemon.

use std::collections::HashSet;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use sluicegate_proxier::Mode;
use sluicegate_proxier::config::{Config, Rules, parse_duration};
use sluicegate_proxier::run::{Intervals, Lock, Loop, Observer, Signal, ThisNode, World};
use sluicegate_service_rules::Backend;
use sluicegate_service_rules::nftables::Applier;
use sluicegate_services::Node;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{self, Receiver};

use super::args::{NodeArgs, ProxyArgs};
use super::configz::configz;
use super::serve::ServeArgs;
use super::source::SourceArgs;
use super::{Error, Given, iptables, ipvs, progress};

#[derive(Args)]
pub(crate) struct Run {
    /// A configuration file of kube-proxy's kind `KubeProxyConfiguration`; flags override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    proxy: ProxyArgs,
    #[command(flatten)]
    periods: Periods,
    #[command(flatten)]
    serve: ServeArgs,
    /// The verbosity of the log: 0 changes and problems, 2 periodic checks as well, 5 everything.
    #[arg(long = "v", short = 'v', value_name = "LEVEL", default_value_t = 0)]
    verbosity: u8,
}

/// How often to sync, by mode.
#[derive(Args, Clone, Copy, Debug)]
struct Periods {
    /// In nftables mode, how often to check the rules; also the longest wait after a failure (30s).
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    nftables_sync_period: Option<Duration>,
    /// In nftables mode, the minimum time between two syncs (1s).
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    nftables_min_sync_period: Option<Duration>,
    /// In iptables mode, how often to check the rules; also the longest wait after a failure (30s).
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    iptables_sync_period: Option<Duration>,
    /// In iptables mode, the minimum time between two syncs (1s).
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
        let config = match &self.config {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        self.fill(&config, &given.names)?;
        log(self.verbosity);
        for unused in &config.unused {
            tracing::warn!("{}: {unused}", self.config.as_deref().unwrap_or("".as_ref()).display());
        }
        let _lock = Lock::take()?;
        let this = self.this_node()?;
        let mut world = World::new(this.clone());
        world.set_service_cidr("--service-cluster-ip-range", &self.proxy.service_cluster_ip_range);
        let intervals = self.intervals(&config);
        let backend = self.backend()?;
        // Opening the back end loads IPVS, and with it its sysctls.
        self.serve.sysctls(&self.proxy, world.cluster())?;
        let configz = self.configz(&intervals);
        let serving =
            Arc::new(self.serve.start(&self.proxy, intervals.sync, configz, given.values.clone())?);
        let observer: Arc<dyn Observer> = Arc::clone(&serving) as _;
        let looping = Loop::new(world, backend, intervals, observer)?;
        let runtime = runtime()?;
        let has_cidrs = self.proxy.proxy_mode == Mode::Nftables;
        let updates = self.source.start(&runtime, &this.name, has_cidrs, serving)?;
        let signals = runtime.block_on(async { signals() })?;
        // The loop stays on this thread, which its syncs block; everything else runs on the threads of the
        // runtime.
        runtime.block_on(looping.observed_by(progress::on_terminal()).run(updates, signals))?;
        runtime.shutdown_background();
        Ok(ExitCode::SUCCESS)
    }

    /// Sets the flags that were not given from the configuration file.
    fn fill(&mut self, config: &Config, given: &HashSet<String>) -> Result<(), Error> {
        let proxy = &mut self.proxy;
        fill(given, "proxy_mode", &mut proxy.proxy_mode, config.mode);
        let rules = rules(config, proxy.proxy_mode);
        fill(given, "masquerade_all", &mut proxy.masquerade_all, rules.masquerade_all);
        fill(given, "iptables_masquerade_bit", &mut proxy.iptables_masquerade_bit, rules.masquerade_bit);
        let localhost = config.localhost_node_ports;
        proxy.ipvs.fill(config, &|flag| given.contains(flag))?;
        fill(given, "iptables_localhost_nodeports", &mut proxy.iptables_localhost_nodeports, localhost);
        fill(given, "cluster_cidr", &mut proxy.cluster_cidr, config.cluster_cidrs.clone());
        let mode = config.detect_local_mode.map(Some);
        fill(given, "detect_local_mode", &mut proxy.detect_local_mode, mode);
        let bridge = config.bridge_interface.clone().map(Some);
        fill(given, "pod_bridge_interface", &mut proxy.pod_bridge_interface, bridge);
        let prefix = config.interface_name_prefix.clone().map(Some);
        fill(given, "pod_interface_name_prefix", &mut proxy.pod_interface_name_prefix, prefix);
        let node_ports = config.node_port_addresses.clone().map(Some);
        fill(given, "nodeport_addresses", &mut proxy.nodeport_addresses, node_ports);
        let host_name = config.hostname_override.clone().map(Some);
        fill(given, "hostname_override", &mut self.node.hostname_override, host_name);
        let address = config.bind_address.map(|address| vec![address]);
        fill(given, "bind_address", &mut self.node.bind_address, address);
        // Manifests on the command line override the kubeconfig of the file.
        let kubeconfig = config
            .kubeconfig
            .clone()
            .filter(|path| !path.as_os_str().is_empty() && self.source.manifests.is_empty());
        fill(given, "kubeconfig", &mut self.source.kubeconfig, kubeconfig.map(Some));
        fill(given, "verbosity", &mut self.verbosity, config.verbosity);
        self.serve.fill(config, |flag| given.contains(flag))
    }

    fn intervals(&self, config: &Config) -> Intervals {
        let (rules, periods) = (rules(config, self.proxy.proxy_mode), self.periods);
        let (min, sync) = match self.proxy.proxy_mode {
            Mode::Nftables => (periods.nftables_min_sync_period, periods.nftables_sync_period),
            Mode::Iptables => (periods.iptables_min_sync_period, periods.iptables_sync_period),
            Mode::Ipvs => (periods.ipvs_min_sync_period, periods.ipvs_sync_period),
        };
        let usual = Intervals::default();
        Intervals {
            min: min.or(rules.min_sync_period).unwrap_or(usual.min),
            sync: sync.or(rules.sync_period).unwrap_or(usual.sync),
            ..usual
        }
    }

    fn configz(&self, intervals: &Intervals) -> String {
        let kubeconfig = self.source.kubeconfig.as_ref().map(|path| path.display().to_string());
        configz(&self.node, &self.proxy, &self.serve, intervals, kubeconfig.as_deref(), self.verbosity)
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

fn fill<T>(given: &HashSet<String>, flag: &str, place: &mut T, value: Option<T>) {
    if let Some(value) = value.filter(|_| !given.contains(flag)) {
        *place = value;
    }
}

fn rules(config: &Config, mode: Mode) -> Rules {
    match mode {
        Mode::Nftables => config.nftables,
        Mode::Iptables => config.iptables,
        Mode::Ipvs => config.ipvs,
    }
}

fn runtime() -> Result<Runtime, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(Error::Runtime)
}

/// Receives signals: SIGTERM and SIGINT stop, SIGHUP compares everything.
fn signals() -> Result<Receiver<Signal>, Error> {
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
    Ok(receiver)
}

fn log(verbosity: u8) {
    let level = match verbosity {
        0 | 1 => tracing::Level::INFO,
        2..=4 => tracing::Level::DEBUG,
        _ => tracing::Level::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        // Reporting a log that cannot be written would go to the same standard error, and panic.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(progress::Log::new)
        .init();
}
