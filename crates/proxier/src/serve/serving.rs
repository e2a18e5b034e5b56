//! The servers of health, service checks and metrics, and the observer of the run loop that updates them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hyper::Request;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use sluicegate_conntrack::stale;
use sluicegate_services::{Cluster, Family, NodePortAddresses, NodePorts, Scheduler};

use super::counted::Counted;
use super::http::{Handler, Listening, Server};
use super::metrics::started;
use super::ports::Ports;
use super::readyz::{self, Condition};
use super::status::{Facts, History, Writer, snapshot, status};
use super::zpages;
use super::{
    Answer, BindAddress, Error, JSON, Metrics, PLAIN, ProxyHealth, ServiceHealth, answer, not_found,
};
use crate::Mode;
use crate::config::FeatureGates;
use crate::run::{Heartbeat, Inspection, Observer, SyncReport};
use crate::source::observer::{SourceObserver, Verb};
use crate::source::update::Kind;
use sluicegate_service_rules::interface_addresses;
use sluicegate_service_rules::nftables::Counting;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// The settings of the servers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServingSettings {
    /// The mode.
    pub mode: Mode,
    /// The families that are programmed.
    pub families: Vec<Family>,
    /// The address of `/healthz` and `/livez` (`--healthz-bind-address`). The default port is 10256.
    pub healthz: BindAddress,
    /// The address of `/metrics` (`--metrics-bind-address`). The default port is 10249.
    pub metrics: BindAddress,
    /// The time after which a waiting change makes the proxy unhealthy: twice the sync period.
    pub timeout: Duration,
    /// The heartbeat of the run loop. One that is silent for the timeout, and at least half a minute, makes
    /// the proxy unhealthy; `None` where there is no loop.
    pub heartbeat: Option<Heartbeat>,
    /// The addresses of health-check node ports.
    pub node_port_addresses: NodePortAddresses,
    /// The scheduler of services that ask for none, in nftables mode.
    pub scheduler: Scheduler,
    /// Which connections are counted, in nftables mode with the layout `maps`.
    pub counting: Counting,
    /// The number of frontends that may have a metric of their connections.
    pub most_series: usize,
    /// Whether a server that cannot listen at the start is an error (`--bind-address-hard-fail`). Otherwise
    /// it is retried.
    pub bind_hard_fail: bool,
    /// The flags with their values, for `/flagz`. `None` for no such path (`ComponentFlagz`).
    pub flags: Option<BTreeMap<String, String>>,
    /// Whether there is `/statusz` (`ComponentStatusz`).
    pub statusz: bool,
    /// The body of `/configz`: the configuration in use, as JSON. `None` for no such path.
    pub configz: Option<String>,
    /// The feature gates, for metrics.
    pub gates: FeatureGates,
}

impl ServingSettings {
    /// Returns kube-proxy's defaults: its addresses, both families, a timeout of 60 seconds, node ports on
    /// every address.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            families: Family::BOTH.into(),
            healthz: BindAddress::new([0, 0, 0, 0].into(), HEALTHZ_PORT),
            metrics: BindAddress::new([127, 0, 0, 1].into(), METRICS_PORT),
            timeout: Duration::from_secs(60),
            heartbeat: None,
            node_port_addresses: NodePortAddresses::every(),
            scheduler: Scheduler::default(),
            counting: Counting::default(),
            most_series: MOST_SERIES,
            bind_hard_fail: false,
            flags: Some(BTreeMap::new()),
            statusz: true,
            configz: None,
            gates: FeatureGates::default(),
        }
    }
}

/// The running servers and their state. Dropping it closes all sockets.
///
/// As an [`Observer`] it follows a run loop. A failure, such as a health-check port that is in use, is passed
/// to the callback of [`Serving::start`] once, and retried at each sync.
pub struct Serving {
    shared: Arc<Shared>,
    settings: ServingSettings,
    sockets: Mutex<Sockets>,
    inspections: Mutex<Option<Receiver<Inspection>>>,
    report: Report,
}

type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// The state that handlers read on the thread of the servers.
struct Shared {
    health: Mutex<ProxyHealth>,
    services: Mutex<ServiceHealth>,
    history: Mutex<History>,
    metrics: Metrics,
}

struct Sockets {
    // Fields drop in order: sockets are closed before the thread that closes them ends.
    ports: Ports,
    fixed: Vec<Listening>,
    reported: Vec<String>,
    server: Server,
}

impl Serving {
    /// Starts the servers in the network namespace of the calling thread. `report` gets each problem, and a
    /// message when it is solved.
    ///
    /// A port that is in use is retried every five seconds.
    ///
    /// # Errors
    /// [`Error::Thread`] when the thread cannot be started; with [`ServingSettings::bind_hard_fail`],
    /// [`Error::Listen`] when `/healthz` or `/metrics` cannot listen.
    pub fn start(
        settings: ServingSettings,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let metrics = Metrics::new(settings.mode, &settings.families, SystemTime::now());
        metrics.features(&settings.gates);
        let shared = Arc::new(Shared {
            health: Mutex::new(ProxyHealth::new(settings.timeout).with_heartbeat(settings.heartbeat.clone())),
            services: Mutex::default(),
            history: Mutex::default(),
            metrics,
        });
        let report: Report = Arc::new(report);
        let (asking, inspections) = mpsc::channel(INSPECTIONS);
        let since = started().unwrap_or_else(SystemTime::now);
        let (of_status, families) = (Arc::clone(&shared), settings.families.clone());
        let scheduler = (settings.mode == Mode::Nftables).then_some(settings.scheduler);
        let counted = Counted::new(settings.counting, &families).map(Mutex::new).map(Arc::new);
        let scrapes = counted.clone().map(|counted| {
            let write = scrapes(Arc::clone(&shared), asking.clone(), counted, settings.most_series);
            Writer::start("metrics", write)
        });
        let facts = move || facts(&of_status, since, &families, scheduler);
        let pages = Pages {
            status: Writer::start("status", status(facts, asking, counted)).map_err(Error::Thread)?,
            scrapes: scrapes.transpose().map_err(Error::Thread)?,
            configz: settings.configz.clone(),
            flags: settings.flags.clone(),
            statusz: settings.statusz,
            started: since,
        };
        let places = [
            ("/healthz", settings.healthz.socket(HEALTHZ_PORT), health_handler(Arc::clone(&shared))),
            ("/metrics", settings.metrics.socket(METRICS_PORT), metrics_handler(Arc::clone(&shared), pages)),
        ];
        let server = Server::start().map_err(Error::Thread)?;
        let mut fixed = Vec::new();
        for (what, address, handler) in places {
            let Some(address) = address else { continue };
            fixed.push(if settings.bind_hard_fail {
                server.listen(what, address, handler)?
            } else {
                let (shared, report) = (Arc::clone(&shared), Arc::clone(&report));
                let report = move |outcome| tell(what, outcome, &shared, &*report);
                server.listen_with_retries(what, address, TRY_AGAIN, handler, report)
            });
        }
        let sockets = Sockets { ports: Ports::default(), fixed, reported: Vec::new(), server };
        Ok(Self {
            shared,
            settings,
            sockets: Mutex::new(sockets),
            inspections: Mutex::new(Some(inspections)),
            report,
        })
    }

    /// Returns the metrics.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Returns the inspections that `/status` makes of the world of the loop; `None` if another has them.
    #[must_use]
    pub fn inspections(&self) -> Option<Receiver<Inspection>> {
        lock(&self.inspections).take()
    }

    /// Returns the addresses of `/healthz` and `/metrics`, in this order, of those that listen.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        lock(&self.sockets).fixed.iter().filter_map(Listening::address).collect()
    }

    fn follow_ports(&self, cluster: &Cluster, services: &ServiceHealth) {
        let depends = self.settings.node_port_addresses.depend_on_interfaces();
        let has_ports = services.iter().next().is_some();
        let local = (depends && has_ports).then(interface_addresses).and_then(Result::ok);
        let on = |family| -> NodePorts {
            self.settings.node_port_addresses.resolve(family, cluster.node(), local.as_deref())
        };
        let sockets = &mut *lock(&self.sockets);
        let handler = |family, name: &_| service_handler(Arc::clone(&self.shared), family, name);
        let warnings = sockets.ports.follow(&sockets.server, services, on, handler);
        for warning in warnings.iter().filter(|warning| !sockets.reported.contains(warning)) {
            self.shared.metrics.warning();
            lock(&self.shared.history).warned(warning, SystemTime::now());
            (self.report)(warning);
        }
        sockets.reported = warnings;
        self.shared.metrics.health_ports(sockets.ports.len());
    }
}

impl Observer for Serving {
    fn queued(&self, now: Instant, cluster: &Cluster) {
        let mut health = lock(&self.shared.health);
        for family in &self.settings.families {
            health.queued(*family, now);
        }
        drop(health);
        self.shared.metrics.queued(SystemTime::now());
        self.shared.metrics.changes(cluster.change_counts());
    }

    fn synced(&self, report: &SyncReport) {
        let wall = SystemTime::now();
        let mut health = lock(&self.shared.health);
        for family in &self.settings.families {
            health.updated(*family, wall);
        }
        health.set_faults(&report.sent.faults);
        drop(health);
        self.shared.metrics.synced(report, wall);
        lock(&self.shared.history).synced(report, wall);
        for (family, changed) in &report.triggers {
            self.shared.metrics.programmed(*family, *changed, wall);
        }
    }

    fn failed(&self, error: &sluicegate_service_rules::Error) {
        let (reason, now) = (error.to_string(), Instant::now());
        let mut health = lock(&self.shared.health);
        for family in &self.settings.families {
            health.failed(*family, &reason, now);
        }
        drop(health);
        self.shared.metrics.failed(error);
        lock(&self.shared.history).failed(&reason, SystemTime::now());
    }

    fn listed(&self, kind: Kind) {
        lock(self.shared.metrics.sources()).listed(kind);
    }

    fn flows(&self, family: Family, report: &stale::Report, took: Duration) {
        self.shared.metrics.conntrack(family, took, report.deleted);
    }

    fn services(&self, cluster: &Cluster) {
        let services = ServiceHealth::of(cluster, &self.settings.families);
        lock(&self.shared.services).clone_from(&services);
        lock(&self.shared.health).set_node_eligible(!cluster.node().is_leaving);
        self.shared.metrics.changes(cluster.change_counts());
        self.shared.metrics.no_local_endpoints(cluster);
        self.shared.metrics.conflicts(cluster);
        self.follow_ports(cluster, &services);
    }

    fn disturbed(&self) {
        self.shared.metrics.disturbed();
    }

    fn unusable(&self, files: &[String]) {
        lock(self.shared.metrics.sources()).unusable(files, Instant::now());
    }

    fn warning(&self, trouble: &str) {
        self.shared.metrics.warning();
        lock(&self.shared.history).warned(trouble, SystemTime::now());
    }
}

impl SourceObserver for Serving {
    fn received(&self, host: &str, bytes: usize) {
        self.shared.metrics.received(host, bytes);
    }

    fn posted(&self, host: &str, status: Option<u16>, bytes: usize, took: Duration) {
        self.shared.metrics.posted(host, status, bytes, took);
    }

    fn transport(&self, number: u64) {
        self.shared.metrics.transport(number);
    }

    fn requested(&self, host: &str, verb: Verb, status: Option<u16>, took: Duration) {
        self.shared.metrics.requested(host, verb, status, took);
    }

    fn heard(&self, kind: Kind) {
        lock(self.shared.metrics.sources()).heard(kind, Instant::now());
    }

    fn failed(&self, kind: Kind, reason: &str) {
        lock(self.shared.metrics.sources()).failed(kind, reason, Instant::now());
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Reports the attempts of a server that could not listen at once.
fn tell(what: &str, outcome: Result<SocketAddr, Error>, shared: &Shared, report: &dyn Fn(&str)) {
    match outcome {
        Ok(address) => report(&format!("{what} listens on {address} now")),
        Err(error) => {
            shared.metrics.warning();
            report(&format!("{error}; retrying every {TRY_AGAIN:?}"));
        }
    }
}

fn health_handler(shared: Arc<Shared>) -> Handler {
    Arc::new(move |request| {
        let (now, wall) = (Instant::now(), SystemTime::now());
        let answer = match request.uri().path() {
            "/healthz" => {
                let answer = lock(&shared.health).healthz(now, wall);
                shared.metrics.healthz(answer.status().as_u16());
                answer
            }
            "/livez" => {
                let answer = lock(&shared.health).livez(now, wall);
                shared.metrics.livez(answer.status().as_u16());
                answer
            }
            "/readyz" => readyz::reply(&conditions(&shared, now)),
            _ => not_found(),
        };
        answer.into()
    })
}

/// Returns the conditions of a proxy that follows the cluster.
fn conditions(shared: &Shared, now: Instant) -> Vec<Condition> {
    let mut conditions = lock(shared.metrics.sources()).conditions(now);
    conditions.extend(lock(&shared.health).conditions(now));
    conditions
}

/// What the pages of the server of metrics show that does not change.
struct Pages {
    configz: Option<String>,
    flags: Option<BTreeMap<String, String>>,
    statusz: bool,
    started: SystemTime,
    status: Writer<()>,
    /// `/metrics` where connections are counted, which takes as long as to read them.
    scrapes: Option<Writer<Option<String>>>,
}

fn metrics_handler(shared: Arc<Shared>, pages: Pages) -> Handler {
    Arc::new(move |request| match (request.uri().path(), &pages.scrapes) {
        ("/status", _) => pages.status.reply(()),
        ("/metrics", Some(scrapes)) => scrapes.reply(accept(request).map(str::to_owned)),
        _ => page(&shared, &pages, request).into(),
    })
}

/// Returns a function that writes the metrics with the connections to each frontend.
fn scrapes(
    shared: Arc<Shared>,
    asking: Sender<Inspection>,
    counted: Arc<Mutex<Counted>>,
    most: usize,
) -> impl FnMut(&[Option<String>]) -> Vec<Answer> + Send {
    let mut last = None;
    move |requests| {
        last = snapshot(&asking).or_else(|| last.take());
        let series = last.as_ref().and_then(|world| {
            let mut counted = lock(&counted);
            match counted.read(&world.cluster) {
                Ok(()) => Some(counted.series(&world.cluster, most)),
                Err(reason) => {
                    let trouble = format!("the connections to services are not known: {reason}");
                    lock(&shared.history).warned(&trouble, SystemTime::now());
                    shared.metrics.warning();
                    None
                }
            }
        });
        shared.metrics.connections(series);
        requests.iter().map(|accept| metrics(&shared.metrics, accept.as_deref())).collect()
    }
}

/// Returns what the status page says beside the services.
fn facts(shared: &Shared, started: SystemTime, families: &[Family], scheduler: Option<Scheduler>) -> Facts {
    Facts {
        mode: shared.metrics.mode().as_str(),
        started,
        history: lock(&shared.history).clone(),
        conditions: conditions(shared, Instant::now()),
        families: families.to_vec(),
        scheduler,
    }
}

fn page(shared: &Shared, pages: &Pages, request: &Request<()>) -> Answer {
    match (request.uri().path(), &pages.configz) {
        ("/metrics", _) => metrics(&shared.metrics, accept(request)),
        ("/statusz", _) if pages.statusz => {
            zpages::statusz(accept(request), pages.started, SystemTime::now())
        }
        ("/flagz", _) => match &pages.flags {
            Some(flags) => zpages::flagz(accept(request), flags),
            None => not_found(),
        },
        ("/proxyMode", _) => answer(200, PLAIN, shared.metrics.mode().to_string()),
        ("/configz", Some(configz)) => answer(200, JSON, configz.clone()),
        ("/healthz" | "/healthz/ping", _) => answer(200, PLAIN, "ok".to_owned()),
        _ => not_found(),
    }
}

fn metrics(metrics: &Metrics, accept: Option<&str>) -> Answer {
    let (media_type, text) = metrics.text(accept);
    let mut answer = Answer::new(text);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}

fn accept(request: &Request<()>) -> Option<&str> {
    request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok())
}

fn service_handler(shared: Arc<Shared>, family: Family, name: &sluicegate_services::ServiceName) -> Handler {
    let name = name.clone();
    Arc::new(move |_| {
        let healthy = lock(&shared.health).health(Instant::now()).healthy;
        // The services change before the sockets do, so a request may be for a service that no longer exists.
        lock(&shared.services).answer(family, &name, healthy).unwrap_or_else(not_found).into()
    })
}

/// Locks a mutex, also after a panic: its value is consistent at every moment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// kube-proxy's port for `/healthz`.
pub const HEALTHZ_PORT: u16 = 10256;
/// kube-proxy's port for `/metrics`.
pub const METRICS_PORT: u16 = 10249;

/// The default of [`ServingSettings::most_series`]: about a megabyte of text.
pub const MOST_SERIES: usize = 10_000;
/// The number of inspections that wait for the loop: one for each time that it did not answer.
const INSPECTIONS: usize = 4;
/// The interval of kube-proxy.
const TRY_AGAIN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use sluicegate_service_rules::nftables::STALE_CHAINS_KEPT;
    use sluicegate_service_rules::{Found, Summary};
    use sluicegate_services::ServiceName;

    use super::super::http::Reply;
    use super::*;

    fn summary() -> Summary {
        let mut summary = Summary::new(Found::Changed, "").measure(STALE_CHAINS_KEPT, 1);
        (summary.messages, summary.bytes, summary.batches) = (7, 1000, 1);
        summary
    }

    fn report() -> SyncReport {
        SyncReport {
            began: Instant::now(),
            queued: None,
            took: Duration::from_millis(3),
            is_full: true,
            services: 1,
            changed: 1,
            concerns_udp: false,
            triggers: Vec::new(),
            sent: summary(),
            refused: Vec::new(),
        }
    }

    #[test]
    fn a_change_that_waits_too_long_is_told_by_health_service_checks_and_the_next_sync_mends_it() {
        testns::netns(|| {
            let mut settings = ServingSettings::new(Mode::Nftables);
            settings.timeout = Duration::ZERO;
            let serving = Serving::start(settings, |_| {}).unwrap();
            let name = ServiceName::new("demo", "api").unwrap();
            let healthz = health_handler(Arc::clone(&serving.shared));
            let service = service_handler(Arc::clone(&serving.shared), Family::Ipv4, &name);
            let ask = |handler: &Handler, path: &str| {
                let reply = handler(&Request::builder().uri(path).body(()).unwrap());
                let Reply::Now(answer) = reply else { panic!("{path} is answered at once") };
                (answer.status().as_u16(), answer.into_body())
            };
            serving.queued(Instant::now(), &Cluster::default());
            assert_eq!(ask(&healthz, "/livez").0, 200, "still starting");
            serving.synced(&report());
            serving.queued(Instant::now(), &Cluster::default());
            assert_eq!(ask(&healthz, "/livez").0, 503);
            serving.synced(&report());
            assert_eq!(ask(&healthz, "/livez").0, 200);
            assert_eq!(ask(&service, "/").0, 404, "there is no such service");
            let text = serving.metrics().text(None).1;
            for line in [
                "kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family=\"IPv6\"} 2",
                "kubeproxy_proxy_livez_total{code=\"503\"} 1",
                "kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total{ip_family=\"IPv4\"} 2",
                "sluicegate_kernel_messages_total 14",
                "sluicegate_kernel_bytes_total 2000",
                "sluicegate_services 1",
            ] {
                assert!(text.lines().any(|other| other == line), "no {line} in {text}");
            }
        });
    }
}
