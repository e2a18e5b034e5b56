//! The metrics of the daemon, with kube-proxy's names where the meaning is the same.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family as Labelled;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use sluicegate_service_rules::iptables::{CHANGES_REFUSED, RULES, RULES_WRITTEN};
use sluicegate_service_rules::nftables::STALE_CHAINS_KEPT;
use sluicegate_service_rules::{Error, Measure, Summary};
use sluicegate_services::{ChangeCounts, Cluster, Family};

use self::counted::Scraped;
use self::histogram::{programming_histogram, request_histogram, size_histogram, sync_histogram};
use self::labels::{
    BuildInfo, ByChange, ByCode, ByFamily, ByFeature, ByHost, ByObject, ByPolicy, ByRequest, ByResult,
    ByTable, by,
};
use self::local_endpoints::without_local_endpoints;
pub(super) use self::process::started;
use super::counted::Series;
use super::sources::Sources;
use super::text_format;
use crate::Mode;
use crate::config::{FeatureGates, Gate};
use crate::run::SyncReport;
use crate::source::observer::Verb;

mod counted;
mod histogram;
mod labels;
mod local_endpoints;
mod packets;
mod process;
mod register;
mod source;
#[cfg(test)]
mod tests;

/// Counters, gauges and histograms. Clones of each are shared with the registry.
///
/// Names that begin with `kubeproxy_`, `rest_client_` and `process_` have kube-proxy's labels and buckets.
/// Our own begin with `sluicegate_`: what was sent to the kernel, what it refused, and what the source has
/// told. Every series exists from the start with 0, so that the first event shows as an increase.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    mode: Mode,
    families: Vec<Family>,
    started: SystemTime,
    sync: Histograms,
    sync_full: Histograms,
    sync_partial: Histograms,
    last_synced: Labelled<ByFamily, Gauge<f64, AtomicU64>>,
    last_queued: Labelled<ByFamily, Gauge<f64, AtomicU64>>,
    programming: Histograms,
    endpoint_changes: Counter,
    endpoint_pending: Gauge,
    service_changes: Counter,
    service_pending: Gauge,
    no_local_endpoints: Labelled<ByPolicy, Gauge>,
    healthz: Labelled<ByCode, Counter>,
    livez: Labelled<ByCode, Counter>,
    sync_failures: Labelled<ByFamily, Counter>,
    cleanup_failures: Labelled<ByFamily, Counter>,
    partial_failures: Labelled<ByFamily, Counter>,
    rules_total: Labelled<ByTable, Gauge>,
    rules_last: Labelled<ByTable, Gauge>,
    conntrack: Histograms,
    conntrack_deleted: Labelled<ByFamily, Counter>,
    failures: Counter,
    batches: Counter,
    messages: Counter,
    bytes: Counter,
    kernel: Histogram,
    changed: Labelled<ByChange, Counter>,
    kernel_errors: Labelled<ByObject, Counter>,
    services: Gauge,
    refused: Gauge,
    conflicts: Gauge,
    faults: Gauge,
    health_ports: Gauge,
    localhost_listeners: Labelled<ByFamily, Gauge>,
    localhost_failures: Labelled<ByFamily, Counter>,
    /// Whether the feature gate is on whose rules count rejected packets.
    rejects_on_localhost: Arc<AtomicBool>,
    warnings: Counter,
    disturbances: Counter,
    requests: Labelled<ByRequest, Counter>,
    request_duration: Labelled<ByHost, Histogram, fn() -> Histogram>,
    request_size: Sizes,
    response_size: Sizes,
    rate_limiter: Labelled<ByHost, Histogram, fn() -> Histogram>,
    transports: Gauge,
    transport_calls: Labelled<ByResult, Counter>,
    features: Labelled<ByFeature, Gauge>,
    build: Labelled<BuildInfo, Gauge>,
    sources: Arc<Mutex<Sources>>,
    scraped: Scraped,
}

/// A histogram of bytes for each host.
type Sizes = Labelled<ByHost, Histogram, fn() -> Histogram>;
/// A histogram for each family.
type Histograms = Labelled<ByFamily, Histogram, fn() -> Histogram>;

impl Metrics {
    /// Creates the metrics of a mode that programs these families.
    ///
    /// [`programmed`](Self::programmed) ignores changes from before `started`: their delay is that of the
    /// program's start, not of the kernel.
    #[must_use]
    pub fn new(mode: Mode, families: &[Family], started: SystemTime) -> Self {
        let labelled = || Histograms::new_with_constructor(sync_histogram);
        let metrics = Self {
            registry: Registry::default(),
            mode,
            families: families.to_vec(),
            started,
            sync: labelled(),
            sync_full: labelled(),
            sync_partial: labelled(),
            last_synced: Labelled::default(),
            last_queued: Labelled::default(),
            programming: Histograms::new_with_constructor(programming_histogram),
            endpoint_changes: Counter::default(),
            endpoint_pending: Gauge::default(),
            service_changes: Counter::default(),
            service_pending: Gauge::default(),
            no_local_endpoints: Labelled::default(),
            healthz: Labelled::default(),
            livez: Labelled::default(),
            sync_failures: Labelled::default(),
            cleanup_failures: Labelled::default(),
            partial_failures: Labelled::default(),
            rules_total: Labelled::default(),
            rules_last: Labelled::default(),
            conntrack: labelled(),
            conntrack_deleted: Labelled::default(),
            failures: Counter::default(),
            batches: Counter::default(),
            messages: Counter::default(),
            bytes: Counter::default(),
            kernel: sync_histogram(),
            changed: Labelled::default(),
            kernel_errors: Labelled::default(),
            services: Gauge::default(),
            refused: Gauge::default(),
            conflicts: Gauge::default(),
            faults: Gauge::default(),
            health_ports: Gauge::default(),
            localhost_listeners: Labelled::default(),
            localhost_failures: Labelled::default(),
            rejects_on_localhost: Arc::default(),
            warnings: Counter::default(),
            disturbances: Counter::default(),
            requests: Labelled::default(),
            request_duration: Labelled::new_with_constructor(request_histogram),
            request_size: Labelled::new_with_constructor(size_histogram),
            response_size: Labelled::new_with_constructor(size_histogram),
            rate_limiter: Labelled::new_with_constructor(request_histogram),
            transports: Gauge::default(),
            transport_calls: Labelled::default(),
            features: Labelled::default(),
            build: Labelled::default(),
            sources: Arc::default(),
            scraped: Scraped::default(),
        };
        metrics.show_zeros();
        metrics.register()
    }

    /// Returns the mode.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Records that a change was queued, with the wall-clock time.
    pub fn queued(&self, wall: SystemTime) {
        for family in self.families() {
            self.last_queued.get_or_create(&family).set(seconds(wall));
        }
    }

    /// Records a sync that succeeded, with the wall-clock time.
    pub fn synced(&self, report: &SyncReport, wall: SystemTime) {
        let by_extent = if report.is_full { &self.sync_full } else { &self.sync_partial };
        let took = report.took.as_secs_f64();
        for family in self.families() {
            self.sync.get_or_create(&family).observe(took);
            by_extent.get_or_create(&family).observe(took);
            self.last_synced.get_or_create(&family).set(seconds(wall));
        }
        self.services.set(count(report.services));
        self.refused.set(count(report.refused.len()));
        self.faults.set(count(report.sent.faults.len()));
        self.sent(&report.sent);
    }

    /// Records that a change of the time `changed` has reached the kernel at `now`.
    pub fn programmed(&self, family: Family, changed: SystemTime, now: SystemTime) {
        // The API server writes `changed`: a negative time means that the clocks of two machines differ.
        let Ok(took) = now.duration_since(changed) else { return };
        if changed >= self.started && self.families.contains(&family) {
            self.programming.get_or_create(&by(family)).observe(took.as_secs_f64());
        }
    }

    /// Records a sync that failed.
    pub fn failed(&self, error: &Error) {
        self.failures.inc();
        for family in self.families() {
            self.sync_failures.get_or_create(&family).inc();
        }
        let refused = error.refused().len() as u64;
        if refused > 0 {
            self.kernel_errors.get_or_create(&ByObject { object: "service" }).inc_by(refused);
        }
        let failures = match error {
            Error::Nftables { source, .. } => source.failures(),
            Error::Netlink { .. } => &[],
            _ => return,
        };
        for failure in failures {
            self.kernel_errors.get_or_create(&ByObject { object: kind(&failure.object()) }).inc();
        }
        if failures.is_empty() {
            self.kernel_errors.get_or_create(&ByObject { object: "batch" }).inc();
        }
    }

    /// Sets the numbers of changes, and of those that wait.
    pub fn changes(&self, counts: ChangeCounts) {
        // The cluster counts from its creation on, and the counters here from the start on: add what is new.
        self.service_changes.inc_by(counts.services.saturating_sub(self.service_changes.get()));
        self.endpoint_changes.inc_by(counts.endpoints.saturating_sub(self.endpoint_changes.get()));
        self.service_pending.set(count(counts.services_pending));
        self.endpoint_pending.set(count(counts.endpoints_pending));
    }

    /// Sets the number of frontends that services claim in vain.
    pub fn conflicts(&self, cluster: &Cluster) {
        self.conflicts.set(count(cluster.conflict_count()));
    }

    /// Counts the service ports that have endpoints, but none on this node for traffic that must stay here.
    pub fn no_local_endpoints(&self, cluster: &Cluster) {
        for family in &self.families {
            let (internal, external) = without_local_endpoints(cluster, *family);
            let gauge = |traffic_policy| ByPolicy { ip_family: family.as_str(), traffic_policy };
            self.no_local_endpoints.get_or_create(&gauge("internal")).set(internal);
            self.no_local_endpoints.get_or_create(&gauge("external")).set(external);
        }
    }

    /// Counts a response of `/healthz` with this code.
    pub fn healthz(&self, code: u16) {
        self.healthz.get_or_create(&ByCode { code }).inc();
    }

    /// Counts a response of `/livez` with this code.
    pub fn livez(&self, code: u16) {
        self.livez.get_or_create(&ByCode { code }).inc();
    }

    /// Records a clean-up of stale flows of a family, with the number of deleted ones.
    pub fn conntrack(&self, family: Family, took: Duration, deleted: usize) {
        self.conntrack.get_or_create(&by(family)).observe(took.as_secs_f64());
        self.conntrack_deleted.get_or_create(&by(family)).inc_by(deleted as u64);
    }

    /// Sets the number of open sockets of health-check node ports.
    pub fn health_ports(&self, open: usize) {
        self.health_ports.set(count(open));
    }

    /// Sets the number of node ports of a family that listen on loopback, and adds those that could not.
    pub fn localhost_ports(&self, family: Family, listening: usize, failed: usize) {
        self.localhost_listeners.get_or_create(&by(family)).set(count(listening));
        self.localhost_failures.get_or_create(&by(family)).inc_by(failed as u64);
    }

    /// Counts a change of another program to our tables.
    pub fn disturbed(&self) {
        self.disturbances.inc();
    }

    /// Counts a problem of a source or a server.
    pub fn warning(&self) {
        self.warnings.inc();
    }

    /// Counts a request to a host of the API server. `status` is `None` without an answer, and `took` the
    /// time until the header of the answer came.
    pub fn requested(&self, host: &str, verb: Verb, status: Option<u16>, took: Duration) {
        let code = status.map_or_else(|| "<error>".to_owned(), |status| status.to_string());
        let labels = ByRequest { code, host: host.to_owned(), method: "GET" };
        self.requests.get_or_create(&labels).inc();
        // As in client-go, the duration of watches is not counted.
        if verb == Verb::List {
            let labels = ByHost { host: host.to_owned(), verb: "GET" };
            self.request_duration.get_or_create(&labels).observe(took.as_secs_f64());
        }
        let labels = ByHost { host: host.to_owned(), verb: "GET" };
        // No request waits for others here, and none of these has a body.
        self.rate_limiter.get_or_create(&labels).observe(0.0);
        self.request_size.get_or_create(&labels).observe(0.0);
    }

    /// Counts a request that writes an Event.
    pub fn posted(&self, host: &str, status: Option<u16>, bytes: usize, took: Duration) {
        let code = status.map_or_else(|| "<error>".to_owned(), |status| status.to_string());
        let labels = ByRequest { code, host: host.to_owned(), method: "POST" };
        self.requests.get_or_create(&labels).inc();
        let labels = ByHost { host: host.to_owned(), verb: "POST" };
        self.request_duration.get_or_create(&labels).observe(took.as_secs_f64());
        self.rate_limiter.get_or_create(&labels).observe(0.0);
        // An Event is short.
        #[allow(clippy::cast_precision_loss)]
        self.request_size.get_or_create(&labels).observe(bytes as f64);
    }

    /// Records the bytes of the body of an answer that was read whole.
    pub fn received(&self, host: &str, bytes: usize) {
        let labels = ByHost { host: host.to_owned(), verb: "GET" };
        // No answer is as long as the mantissa can count.
        #[allow(clippy::cast_precision_loss)]
        self.response_size.get_or_create(&labels).observe(bytes as f64);
    }

    /// Records that requests are made by the client of this number, counted from the start. One is in use at
    /// a time.
    pub fn transport(&self, number: u64) {
        self.transports.set(1);
        let made = self.transport_calls.get_or_create(&ByResult { result: "miss" });
        made.inc_by(number.saturating_sub(made.get()));
    }

    /// Sets whether each feature gate is on.
    pub fn features(&self, gates: &FeatureGates) {
        let rejects = gates.is_on(Gate::KubeProxyNftablesLocalhostNodePorts);
        self.rejects_on_localhost.store(rejects, Ordering::Relaxed);
        for (name, stage, is_on) in gates.all() {
            let labels = ByFeature { name: name.to_owned(), stage };
            self.features.get_or_create(&labels).set(i64::from(is_on));
        }
    }

    /// Sets the connections to each frontend, and the number of frontends that are left out; `None` if they
    /// are not known.
    pub(super) fn connections(&self, scraped: Option<(Vec<Series>, usize)>) {
        *self.scraped.lock().unwrap_or_else(PoisonError::into_inner) = scraped;
    }

    /// Returns what the source has told.
    pub(super) fn sources(&self) -> &Mutex<Sources> {
        &self.sources
    }

    /// Returns all metrics as text, and its media type: `OpenMetrics` if `accept` has it, otherwise the text
    /// format of Prometheus.
    #[must_use]
    pub fn text(&self, accept: Option<&str>) -> (&'static str, String) {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        let text = text_format::sorted(&text);
        if text_format::wants_open_metrics(accept) {
            (text_format::OPEN_METRICS, text)
        } else {
            (text_format::PROMETHEUS, text_format::prometheus(&text))
        }
    }

    fn families(&self) -> impl Iterator<Item = ByFamily> {
        self.families.iter().copied().map(by)
    }

    fn sent(&self, sent: &Summary) {
        self.batches.inc_by(sent.batches as u64);
        self.messages.inc_by(sent.messages as u64);
        self.bytes.inc_by(sent.bytes as u64);
        if let Some(kernel) = sent.kernel {
            self.kernel.observe(kernel.as_secs_f64());
        }
        for change in &sent.changes {
            self.changed(change.object, change.verb.as_str(), change.count);
        }
        sent.measures.iter().for_each(|measure| self.measured(measure));
    }

    /// Records a number that only one mode has. One that has no metric is in the log only.
    fn measured(&self, measure: &Measure) {
        let families =
            || self.families.iter().copied().filter(|family| measure.family.is_none_or(|of| of == *family));
        let each = |counter: &Labelled<ByFamily, Counter>| {
            for family in families() {
                counter.get_or_create(&by(family)).inc_by(measure.value);
            }
        };
        let each_table = |gauge: &Labelled<ByTable, Gauge>| {
            let Some(table) = measure.part else { return };
            for family in families() {
                let value = i64::try_from(measure.value).unwrap_or(i64::MAX);
                gauge.get_or_create(&ByTable { ip_family: family.as_str(), table }).set(value);
            }
        };
        match measure.name {
            STALE_CHAINS_KEPT => each(&self.cleanup_failures),
            CHANGES_REFUSED => each(&self.partial_failures),
            RULES => each_table(&self.rules_total),
            RULES_WRITTEN => each_table(&self.rules_last),
            _ => {}
        }
    }

    fn changed(&self, object: &'static str, change: &'static str, times: usize) {
        self.changed.get_or_create(&ByChange { object, change }).inc_by(times as u64);
    }

    /// Creates every series, with 0.
    fn show_zeros(&self) {
        self.build.get_or_create(&BuildInfo::default()).set(1);
        for family in self.families() {
            drop(self.sync.get_or_create(&family));
            drop(self.programming.get_or_create(&family));
            drop(self.last_synced.get_or_create(&family));
            drop(self.last_queued.get_or_create(&family));
            drop(self.sync_full.get_or_create(&family));
            drop(self.sync_partial.get_or_create(&family));
            drop(self.sync_failures.get_or_create(&family));
            drop(self.cleanup_failures.get_or_create(&family));
            drop(self.partial_failures.get_or_create(&family));
            for table in ["filter", "nat"] {
                let table = ByTable { ip_family: family.ip_family, table };
                drop(self.rules_total.get_or_create(&table));
                drop(self.rules_last.get_or_create(&table));
            }
            drop(self.conntrack.get_or_create(&family));
            drop(self.conntrack_deleted.get_or_create(&family));
            drop(self.localhost_listeners.get_or_create(&family));
            drop(self.localhost_failures.get_or_create(&family));
            for traffic_policy in ["internal", "external"] {
                let policy = ByPolicy { ip_family: family.ip_family, traffic_policy };
                drop(self.no_local_endpoints.get_or_create(&policy));
            }
        }
        for code in [200, 503] {
            drop(self.healthz.get_or_create(&ByCode { code }));
            drop(self.livez.get_or_create(&ByCode { code }));
        }
    }
}

/// Returns the kind of the object that the kernel refused: the first word of its text, or `other` if that is
/// not a known kind, so that the number of series is bounded.
fn kind(object: &str) -> &'static str {
    let first = object.split(' ').next().unwrap_or_default();
    let known = ["table", "chain", "rule", "set", "map", "element", "flowtable"];
    match known.into_iter().find(|kind| *kind == first) {
        Some(kind) => kind,
        None if object == "the batch" => "batch",
        None => "other",
    }
}

fn seconds(wall: SystemTime) -> f64 {
    wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
