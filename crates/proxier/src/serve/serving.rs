//! Health, service checks and metrics behind servers, and what feeds them: the observer of the run loop.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hyper::Request;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use sluicegate_conntrack::reconcile;

use super::http::{Handler, Listening, Server};
use super::ports::Ports;
use super::{
    Answer, BindAddress, JSON, Metrics, Mode, PLAIN, ProxyHealth, ServeError, ServiceHealth, answer,
    not_found,
};
use crate::Error;
use crate::apply::addresses;
use crate::model::{Cluster, Family, NodePortAddresses, NodePorts};
use crate::run::{Observer, SyncReport};

/// What is served where.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServingSettings {
    /// The mode.
    pub mode: Mode,
    /// The families that are programmed.
    pub families: Vec<Family>,
    /// Where `/healthz` and `/livez` are answered (`--healthz-bind-address`), 10256 being the usual port.
    pub healthz: BindAddress,
    /// Where `/metrics` is answered (`--metrics-bind-address`), 10249 being the usual port.
    pub metrics: BindAddress,
    /// How long a change may wait before the proxy is unhealthy: twice the sync period.
    pub timeout: Duration,
    /// On which addresses health-check node ports are answered.
    pub node_port_addresses: NodePortAddresses,
    /// A server that cannot listen at the start is an error (`--bind-address-hard-fail`). Otherwise it is tried again and again.
    pub bind_hard_fail: bool,
    /// What `/configz` answers: the configuration that is in force, as JSON. Without it there is no such path.
    pub configz: Option<String>,
}

impl ServingSettings {
    /// Both servers at kube-proxy's usual places, both families, 60 seconds of patience, node ports on every address.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            families: Family::BOTH.into(),
            healthz: BindAddress::new([0, 0, 0, 0].into(), HEALTHZ_PORT),
            metrics: BindAddress::new([127, 0, 0, 1].into(), METRICS_PORT),
            timeout: Duration::from_secs(60),
            node_port_addresses: NodePortAddresses::Within(Vec::new()),
            bind_hard_fail: false,
            configz: None,
        }
    }
}

/// The servers, and the state that they answer from. Dropping it closes all sockets.
///
/// As an [`Observer`] it follows a run loop. What it cannot do (a health-check port that is taken) is printed by
/// whoever is given to [`Serving::start`], told once and tried again at each sync.
pub struct Serving {
    shared: Arc<Shared>,
    settings: ServingSettings,
    sockets: Mutex<Sockets>,
    report: Report,
}

type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// What handlers on the servers' thread read.
struct Shared {
    health: Mutex<ProxyHealth>,
    services: Mutex<ServiceHealth>,
    metrics: Metrics,
}

struct Sockets {
    // Sockets close before the thread ends that closes them.
    ports: Ports,
    fixed: Vec<Listening>,
    told: Vec<String>,
    server: Server,
}

impl Serving {
    /// Opens the servers in the network namespace of the calling thread. `report` is given each problem, and the news that it is over.
    ///
    /// A port that is taken is tried again every five seconds.
    ///
    /// # Errors
    /// [`ServeError`] when there can be no servers; with [`ServingSettings::bind_hard_fail`], also when `/healthz` or `/metrics` cannot
    /// be served where they should be.
    pub fn start(
        settings: ServingSettings,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, ServeError> {
        let metrics = Metrics::new(settings.mode, &settings.families, SystemTime::now());
        let shared = Arc::new(Shared {
            health: Mutex::new(ProxyHealth::new(settings.timeout)),
            services: Mutex::default(),
            metrics,
        });
        let report: Report = Arc::new(report);
        let configz = settings.configz.clone();
        let places = [
            ("/healthz", settings.healthz.socket(HEALTHZ_PORT), health_handler(Arc::clone(&shared))),
            (
                "/metrics",
                settings.metrics.socket(METRICS_PORT),
                metrics_handler(Arc::clone(&shared), configz),
            ),
        ];
        let server = Server::start().map_err(|source| ServeError {
            what: "the thread of the HTTP servers".to_owned(),
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            source,
        })?;
        let mut fixed = Vec::new();
        for (what, address, handler) in places {
            let Some(address) = address else { continue };
            fixed.push(if settings.bind_hard_fail {
                server.listen(what, address, handler)?
            } else {
                let (shared, report) = (Arc::clone(&shared), Arc::clone(&report));
                let told = move |outcome| tell(what, outcome, &shared, &*report);
                server.listen_some_time(what, address, TRY_AGAIN, handler, told)
            });
        }
        let sockets = Sockets { ports: Ports::default(), fixed, told: Vec::new(), server };
        Ok(Self { shared, settings, sockets: Mutex::new(sockets), report })
    }

    /// The metrics, for what else is to be counted.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Where `/healthz` and `/metrics` are answered, in this order, without what is answered nowhere, or not yet.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        lock(&self.sockets).fixed.iter().filter_map(Listening::address).collect()
    }

    fn follow_ports(&self, cluster: &Cluster, services: &ServiceHealth) {
        let local = match &self.settings.node_port_addresses {
            NodePortAddresses::Within(nets) if !nets.is_empty() && services.iter().next().is_some() => {
                addresses::of_interfaces().ok()
            }
            _ => None,
        };
        let on = |family| -> NodePorts {
            self.settings.node_port_addresses.resolve(family, cluster.node(), local.as_deref())
        };
        let sockets = &mut *lock(&self.sockets);
        let handler = |family, name: &_| service_handler(Arc::clone(&self.shared), family, name);
        let troubles = sockets.ports.follow(&sockets.server, services, on, handler);
        for trouble in troubles.iter().filter(|trouble| !sockets.told.contains(trouble)) {
            self.shared.metrics.trouble();
            (self.report)(trouble);
        }
        sockets.told = troubles;
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
        drop(health);
        self.shared.metrics.synced(report, wall);
        for (family, changed) in &report.triggers {
            self.shared.metrics.programmed(*family, *changed, wall);
        }
    }

    fn failed(&self, error: &Error) {
        self.shared.metrics.failed(error);
    }

    fn flows(&self, family: Family, report: &reconcile::Report, took: Duration) {
        self.shared.metrics.conntrack(family, took, report.deleted);
    }

    fn services(&self, cluster: &Cluster) {
        let services = ServiceHealth::of(cluster, &self.settings.families);
        lock(&self.shared.services).clone_from(&services);
        lock(&self.shared.health).set_node_eligible(!cluster.node().is_leaving);
        self.shared.metrics.changes(cluster.change_counts());
        self.shared.metrics.no_local_endpoints(cluster);
        self.follow_ports(cluster, &services);
    }

    fn trouble(&self, _trouble: &str) {
        self.shared.metrics.trouble();
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Tells how it goes with a server that could not listen at once.
fn tell(what: &str, outcome: Result<SocketAddr, ServeError>, shared: &Shared, report: &dyn Fn(&str)) {
    match outcome {
        Ok(address) => report(&format!("{what} listens on {address} now")),
        Err(error) => {
            shared.metrics.trouble();
            report(&format!("{error}; trying again every {TRY_AGAIN:?}"));
        }
    }
}

fn health_handler(shared: Arc<Shared>) -> Handler {
    Arc::new(move |request| {
        let (now, wall) = (Instant::now(), SystemTime::now());
        match request.uri().path() {
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
            _ => not_found(),
        }
    })
}

fn metrics_handler(shared: Arc<Shared>, configz: Option<String>) -> Handler {
    Arc::new(move |request| match (request.uri().path(), &configz) {
        ("/metrics", _) => metrics(&shared.metrics, request),
        ("/proxyMode", _) => answer(200, PLAIN, shared.metrics.mode().to_string()),
        ("/configz", Some(configz)) => answer(200, JSON, configz.clone()),
        ("/healthz" | "/healthz/ping", _) => answer(200, PLAIN, "ok".to_owned()),
        _ => not_found(),
    })
}

fn metrics(metrics: &Metrics, request: &Request<()>) -> Answer {
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let (media_type, text) = metrics.text(accept);
    let mut answer = Answer::new(text);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}

fn service_handler(shared: Arc<Shared>, family: Family, name: &crate::model::ServiceName) -> Handler {
    let name = name.clone();
    Arc::new(move |_| {
        let healthy = lock(&shared.health).health(Instant::now()).healthy;
        // Between the change of the services and that of the sockets, one may be asked for a service that is gone.
        lock(&shared.services).answer(family, &name, healthy).unwrap_or_else(not_found)
    })
}

/// What is behind a lock is whole at every moment: a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// kube-proxy's port for `/healthz`.
pub const HEALTHZ_PORT: u16 = 10256;
/// kube-proxy's port for `/metrics`.
pub const METRICS_PORT: u16 = 10249;

/// As often as kube-proxy.
const TRY_AGAIN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ServiceName;
    use crate::run::Sent;

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
            sent: Sent::Nftables(crate::apply::Synced {
                messages: 7,
                bytes: 1000,
                batches: 1,
                is_stale_kept: true,
                ..Default::default()
            }),
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
            let service = service_handler(Arc::clone(&serving.shared), Family::V4, &name);
            let ask = |handler: &Handler, path: &str| {
                let answer = handler(&Request::builder().uri(path).body(()).unwrap());
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
