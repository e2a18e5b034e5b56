//! The figures of the daemon, under kube-proxy's names where they mean the same.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family as Labelled;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};

use super::text_format;
use crate::Error;
use crate::apply::iptables::counters::Counters;
use crate::model::{ChangeCounts, Cluster, Family, categorize};
use crate::plan::iptables::{INVALID_COUNTER, LOCALHOST_COUNTER, RuleCounts};
use crate::run::{Sent, SyncReport};

/// Which part of the kernel the proxier programs, for `/proxyMode` and for which metrics there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// nftables.
    Nftables,
    /// iptables.
    Iptables,
    /// IPVS, with ipsets and iptables.
    Ipvs,
}

impl Mode {
    /// The name, as `--proxy-mode` takes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nftables => "nftables",
            Self::Iptables => "iptables",
            Self::Ipvs => "ipvs",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Counters, gauges and histograms, shared by whoever counts and whoever asks.
///
/// Names that begin with `kubeproxy_` have kube-proxy's labels and buckets; those of our own begin with `sluicegate_`: what went to the
/// kernel, and what it refused. A series is there from the start, with 0, so that the first event shows as a rise.
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
    health_ports: Gauge,
    troubles: Counter,
}

/// A histogram for each family.
type Histograms = Labelled<ByFamily, Histogram, fn() -> Histogram>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByFamily {
    ip_family: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPolicy {
    ip_family: &'static str,
    traffic_policy: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByTable {
    ip_family: &'static str,
    table: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCode {
    code: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByChange {
    object: &'static str,
    change: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByObject {
    object: &'static str,
}

impl Metrics {
    /// All metrics of a mode that programs these families. Events from before `started` are not measured: they waited for the
    /// program and not for the kernel.
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
            health_ports: Gauge::default(),
            troubles: Counter::default(),
        };
        metrics.show_zeros();
        metrics.register()
    }

    /// The mode.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// A change was queued, at this time of the wall clock.
    pub fn queued(&self, wall: SystemTime) {
        for family in self.families() {
            self.last_queued.get_or_create(&family).set(seconds(wall));
        }
    }

    /// A sync succeeded, at this time of the wall clock.
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
        self.sent(&report.sent);
    }

    /// What a sync programmed was changed at `changed`, and is in the kernel since `now`.
    pub fn programmed(&self, family: Family, changed: SystemTime, now: SystemTime) {
        // A negative time is the difference of two clocks, and no measurement.
        let Ok(took) = now.duration_since(changed) else { return };
        if changed >= self.started && self.families.contains(&family) {
            self.programming.get_or_create(&by(family)).observe(took.as_secs_f64());
        }
    }

    /// A sync failed.
    pub fn failed(&self, error: &Error) {
        self.failures.inc();
        for family in self.families() {
            self.sync_failures.get_or_create(&family).inc();
        }
        if let Error::Refused { services } = error {
            self.kernel_errors.get_or_create(&ByObject { object: "service" }).inc_by(services.len() as u64);
        }
        if let Error::Kernel { source, .. } = error {
            for failure in source.failures() {
                self.kernel_errors.get_or_create(&ByObject { object: kind(&failure.object) }).inc();
            }
            if source.failures().is_empty() {
                self.kernel_errors.get_or_create(&ByObject { object: "batch" }).inc();
            }
        }
    }

    /// What has changed in the model, and what of it waits.
    pub fn changes(&self, counts: ChangeCounts) {
        // The model counts from its own beginning, as these do.
        self.service_changes.inc_by(counts.services.saturating_sub(self.service_changes.get()));
        self.endpoint_changes.inc_by(counts.endpoints.saturating_sub(self.endpoint_changes.get()));
        self.service_pending.set(count(counts.services_pending));
        self.endpoint_pending.set(count(counts.endpoints_pending));
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

    /// `/healthz` answered with this code.
    pub fn healthz(&self, code: u16) {
        self.healthz.get_or_create(&ByCode { code }).inc();
    }

    /// `/livez` answered with this code.
    pub fn livez(&self, code: u16) {
        self.livez.get_or_create(&ByCode { code }).inc();
    }

    /// Stale flows of a family were looked for, and so many deleted.
    pub fn conntrack(&self, family: Family, took: Duration, deleted: usize) {
        self.conntrack.get_or_create(&by(family)).observe(took.as_secs_f64());
        self.conntrack_deleted.get_or_create(&by(family)).inc_by(deleted as u64);
    }

    /// So many sockets of health-check node ports are open.
    pub fn health_ports(&self, open: usize) {
        self.health_ports.set(count(open));
    }

    /// A source, or a server, has a problem.
    pub fn trouble(&self) {
        self.troubles.inc();
    }

    /// Everything as text, and its media type: `OpenMetrics` for whoever accepts that, otherwise the text format of Prometheus.
    #[must_use]
    pub fn text(&self, accept: Option<&str>) -> (&'static str, String) {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        if text_format::wants_open_metrics(accept) {
            (text_format::OPEN_METRICS, text)
        } else {
            (text_format::PROMETHEUS, text_format::prometheus(&text))
        }
    }

    fn families(&self) -> impl Iterator<Item = ByFamily> {
        self.families.iter().copied().map(by)
    }

    fn sent(&self, sent: &Sent) {
        match sent {
            Sent::Nftables(synced) => {
                self.batches.inc_by(synced.batches as u64);
                self.messages.inc_by(synced.messages as u64);
                self.bytes.inc_by(synced.bytes as u64);
                self.kernel.observe(synced.kernel.as_secs_f64());
                let changes = &synced.changes;
                self.changed("object", "any", changes.objects);
                self.changed("rule", "added", changes.rules);
                self.changed("element", "added", changes.elements_added);
                self.changed("element", "deleted", changes.elements_deleted);
                if synced.is_stale_kept {
                    // One transaction has the chains of both families.
                    for family in self.families() {
                        self.cleanup_failures.get_or_create(&family).inc();
                    }
                }
            }
            Sent::Iptables(synced) => {
                for family in &synced.families {
                    self.partial_failures.get_or_create(&by(family.family)).inc_by(family.was_refused.into());
                    Self::rules(&self.rules_total, family.family, family.total);
                    Self::rules(&self.rules_last, family.family, family.written);
                    self.batches.inc_by(u64::from(family.bytes > 0));
                    self.messages.inc_by((family.chains + family.rules) as u64);
                    self.bytes.inc_by(family.bytes as u64);
                    self.kernel.observe(family.tool.as_secs_f64());
                    self.changed("chain", "any", family.chains);
                    self.changed("rule", "any", family.rules);
                }
            }
            Sent::Ipvs(synced) => {
                for family in &synced.families {
                    self.batches.inc_by(u64::from(!family.is_unchanged()));
                    self.bytes.inc_by(family.rules as u64);
                    self.changed("element", "added", family.entries_added);
                    self.changed("element", "deleted", family.entries_deleted);
                    self.changed("server", "any", family.commands);
                    self.changed("address", "added", family.bound);
                    self.changed("address", "deleted", family.unbound);
                }
            }
        }
    }

    fn rules(gauges: &Labelled<ByTable, Gauge>, family: Family, rules: RuleCounts) {
        for (table, number) in [("filter", rules.filter), ("nat", rules.nat)] {
            gauges.get_or_create(&ByTable { ip_family: family.as_str(), table }).set(count(number));
        }
    }

    fn changed(&self, object: &'static str, change: &'static str, times: usize) {
        self.changed.get_or_create(&ByChange { object, change }).inc_by(times as u64);
    }

    fn show_zeros(&self) {
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

    /// Gives everything its name. The name of a counter goes on with `_total`.
    fn register(mut self) -> Self {
        let mut registry = Registry::default();
        let kube = registry.sub_registry_with_prefix("kubeproxy");
        add(kube, "sync_proxy_rules_duration_seconds", "SyncProxyRules latency in seconds", &self.sync);
        if self.mode != Mode::Ipvs {
            let (full, partial) =
                ("sync_full_proxy_rules_duration_seconds", "sync_partial_proxy_rules_duration_seconds");
            add(kube, full, "SyncProxyRules latency in seconds for full resyncs", &self.sync_full);
            add(kube, partial, "SyncProxyRules latency in seconds for partial resyncs", &self.sync_partial);
        }
        add(
            kube,
            "sync_proxy_rules_last_timestamp_seconds",
            "The last time proxy rules were successfully synced",
            &self.last_synced,
        );
        add(
            kube,
            "sync_proxy_rules_last_queued_timestamp_seconds",
            "The last time a sync of proxy rules was queued",
            &self.last_queued,
        );
        add(
            kube,
            "network_programming_duration_seconds",
            "In Cluster Network Programming Latency in seconds",
            &self.programming,
        );
        add(
            kube,
            "sync_proxy_rules_endpoint_changes_pending",
            "Pending proxy rules Endpoint changes",
            &self.endpoint_pending,
        );
        add(
            kube,
            "sync_proxy_rules_endpoint_changes",
            "Cumulative proxy rules Endpoint changes",
            &self.endpoint_changes,
        );
        add(
            kube,
            "sync_proxy_rules_service_changes_pending",
            "Pending proxy rules Service changes",
            &self.service_pending,
        );
        add(
            kube,
            "sync_proxy_rules_service_changes",
            "Cumulative proxy rules Service changes",
            &self.service_changes,
        );
        let help = "Number of services with a Local traffic policy and no endpoints";
        add(kube, "sync_proxy_rules_no_local_endpoints_total", help, &self.no_local_endpoints);
        add(kube, "proxy_healthz", "Cumulative proxy healthz HTTP status", &self.healthz);
        add(kube, "proxy_livez", "Cumulative proxy livez HTTP status", &self.livez);
        match self.mode {
            Mode::Nftables => {
                add(
                    kube,
                    "sync_proxy_rules_nftables_sync_failures",
                    "Cumulative proxy nftables sync failures",
                    &self.sync_failures,
                );
                let help = "Cumulative proxy nftables cleanup failures";
                add(kube, "sync_proxy_rules_nftables_cleanup_failures", help, &self.cleanup_failures);
            }
            Mode::Iptables | Mode::Ipvs => {
                let help = "Cumulative proxy iptables restore failures";
                add(kube, "sync_proxy_rules_iptables_restore_failures", help, &self.sync_failures);
            }
        }
        if self.mode == Mode::Iptables {
            let help = "Cumulative proxy iptables partial restore failures";
            add(kube, "sync_proxy_rules_iptables_partial_restore_failures", help, &self.partial_failures);
            let help = "Total number of iptables rules owned by kube-proxy";
            add(kube, "sync_proxy_rules_iptables_total", help, &self.rules_total);
            let help = "Number of iptables rules written by kube-proxy in last sync";
            add(kube, "sync_proxy_rules_iptables_last", help, &self.rules_last);
            kube.register_collector(Box::new(PacketCounters));
        }
        let help = "ReconcileConntrackFlowsLatency latency in seconds";
        add(kube, "conntrack_reconciler_sync_duration_seconds", help, &self.conntrack);
        let help = "Cumulative conntrack flows deleted by conntrack reconciler";
        add(kube, "conntrack_reconciler_deleted_entries", help, &self.conntrack_deleted);

        let ours = registry.sub_registry_with_prefix("sluicegate");
        add(ours, "sync_failures", "Syncs that failed as a whole", &self.failures);
        add(ours, "kernel_batches", "Batches sent to the kernel, or inputs of a restore tool", &self.batches);
        add(
            ours,
            "kernel_messages",
            "Netlink messages sent to the kernel, or lines to a restore tool",
            &self.messages,
        );
        add(ours, "kernel_bytes", "Bytes sent to the kernel, or to a restore tool", &self.bytes);
        add(
            ours,
            "kernel_duration_seconds",
            "Time of a sync that the kernel, or a restore tool, took",
            &self.kernel,
        );
        add(ours, "kernel_objects_changed", "What batches changed, by kind of object", &self.changed);
        add(ours, "kernel_errors", "What the kernel refused, by kind of object", &self.kernel_errors);
        add(ours, "services", "Services that are programmed", &self.services);
        add(ours, "services_refused", "Services that the kernel refused; all others work", &self.refused);
        add(ours, "health_check_sockets", "Open sockets of health-check node ports", &self.health_ports);
        add(ours, "troubles", "Problems of sources and servers", &self.troubles);
        self.registry = registry;
        self
    }
}

/// Reads the counters of the kernel whenever somebody asks; there are none in many kernels, and in others before the first sync.
#[derive(Debug)]
struct PacketCounters;

impl Collector for PacketCounters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Ok(mut counters) = Counters::open() else { return Ok(()) };
        for (counter, name, help) in [
            (
                INVALID_COUNTER,
                "iptables_ct_state_invalid_dropped_packets",
                "Packets dropped to work around conntrack problems",
            ),
            (
                LOCALHOST_COUNTER,
                "iptables_localhost_nodeports_accepted_packets",
                "Packets accepted on node ports of loopback",
            ),
        ] {
            if let Ok(Some(packets)) = counters.packets(counter) {
                let metric = ConstCounter::new(packets);
                metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
            }
        }
        Ok(())
    }
}

fn add(registry: &mut Registry, name: &str, help: &str, metric: &(impl Metric + Clone)) {
    registry.register(name, help, metric.clone());
}

const fn by(family: Family) -> ByFamily {
    ByFamily { ip_family: family.as_str() }
}

/// Service ports whose internal and external traffic is dropped here: there are endpoints, but for traffic that must stay, none here.
fn without_local_endpoints(cluster: &Cluster, family: Family) -> (i64, i64) {
    let topology = cluster.topology();
    let (mut internal, mut external) = (0, 0);
    for (name, service) in cluster.local_services() {
        for port in cluster.ports(name, family) {
            let found = categorize(&port, &topology);
            let dropped = found.has_any && found.local.is_empty();
            internal += i64::from(dropped && service.internal_local);
            external += i64::from(dropped && service.external_local);
        }
    }
    (internal, external)
}

/// The kind of object that a refusal is about, which its text begins with. Of what is unknown there is one series.
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

/// From a millisecond to 16 seconds, each twice the one before.
fn sync_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

/// A quarter and half of a second, each second of the first minute, every 5 of the second, every 30 up to five minutes.
fn programming_histogram() -> Histogram {
    let (seconds, fives, thirties) = (1..60, (60..120).step_by(5), (120..=300).step_by(30));
    let whole = seconds.chain(fives).chain(thirties).map(f64::from);
    Histogram::new([0.25, 0.5].into_iter().chain(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Found, Node};
    use crate::source;

    fn metrics(mode: Mode) -> Metrics {
        Metrics::new(mode, &Family::BOTH, SystemTime::UNIX_EPOCH + Duration::from_secs(100))
    }

    fn names(mode: Mode) -> Vec<String> {
        let text = metrics(mode).text(None).1;
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        types.filter(|line| line.starts_with("kubeproxy_")).map(str::to_owned).collect()
    }

    #[test]
    fn names_and_types_are_those_of_kube_proxy_in_each_mode() {
        let all = [
            "sync_proxy_rules_duration_seconds histogram",
            "sync_proxy_rules_last_timestamp_seconds gauge",
            "sync_proxy_rules_last_queued_timestamp_seconds gauge",
            "network_programming_duration_seconds histogram",
            "sync_proxy_rules_endpoint_changes_pending gauge",
            "sync_proxy_rules_endpoint_changes_total counter",
            "sync_proxy_rules_service_changes_pending gauge",
            "sync_proxy_rules_service_changes_total counter",
            "sync_proxy_rules_no_local_endpoints_total gauge",
            "proxy_healthz_total counter",
            "proxy_livez_total counter",
            "conntrack_reconciler_sync_duration_seconds histogram",
            "conntrack_reconciler_deleted_entries_total counter",
        ];
        let extent = [
            "sync_full_proxy_rules_duration_seconds histogram",
            "sync_partial_proxy_rules_duration_seconds histogram",
        ];
        let nftables = [
            "sync_proxy_rules_nftables_sync_failures_total counter",
            "sync_proxy_rules_nftables_cleanup_failures_total counter",
        ];
        let restore = ["sync_proxy_rules_iptables_restore_failures_total counter"];
        // Those of nfacct are there with the counters of the kernel.
        let partial = [
            "sync_proxy_rules_iptables_partial_restore_failures_total counter",
            "sync_proxy_rules_iptables_total gauge",
            "sync_proxy_rules_iptables_last gauge",
        ];
        for (mode, more) in [
            (Mode::Nftables, [&extent[..], &nftables].concat()),
            (Mode::Iptables, [&extent[..], &restore, &partial].concat()),
            (Mode::Ipvs, restore.to_vec()),
        ] {
            let mut expected: Vec<_> =
                all.iter().chain(&more).map(|name| format!("kubeproxy_{name}")).collect();
            let mut found = names(mode);
            expected.sort();
            found.sort();
            assert_eq!(found, expected, "{mode}");
        }
    }

    #[test]
    fn buckets_are_those_of_kube_proxy() {
        let text = metrics(Mode::Nftables).text(None).1;
        let bounds = |name: &str| -> Vec<String> {
            let start = format!("kubeproxy_{name}_bucket{{le=\"");
            let of_v4 = text.lines().filter(|line| line.contains("ip_family=\"IPv4\""));
            let lines = of_v4.filter_map(|line| line.strip_prefix(&start));
            lines.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
        };
        let sync = bounds("sync_proxy_rules_duration_seconds");
        assert_eq!((sync.len(), &*sync[0], &*sync[14], &*sync[15]), (16, "0.001", "16.384", "+Inf"));
        let programming = bounds("network_programming_duration_seconds");
        let edges = [0, 1, 2, 60, 61, 62, 72, 73, 79, 80].map(|index| &*programming[index]);
        assert_eq!(edges, ["0.25", "0.5", "1.0", "59.0", "60.0", "65.0", "115.0", "120.0", "300.0", "+Inf"]);
        assert_eq!(programming.len(), 81);
    }

    #[test]
    fn the_time_to_the_kernel_is_measured_from_the_change_unless_that_was_before_the_start() {
        let (metrics, at) =
            (metrics(Mode::Nftables), |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        for (changed, now) in [(99, 120), (110, 112), (130, 120)] {
            metrics.programmed(Family::V4, at(changed), at(now));
        }
        let text = metrics.text(None).1;
        let expected = "kubeproxy_network_programming_duration_seconds_sum{ip_family=\"IPv4\"} 2.0\n\
            kubeproxy_network_programming_duration_seconds_count{ip_family=\"IPv4\"} 1\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn changes_are_counted_on_and_pending_ones_shown() {
        let metrics = metrics(Mode::Nftables);
        let mut cluster = Cluster::new(Node::default());
        cluster.set_service_cidr("x", &[]);
        metrics.changes(cluster.change_counts());
        let name = crate::model::ServiceName::new("demo", "api").unwrap();
        let service = local_cluster("").service(&name).cloned();
        cluster.set_service(&name, service);
        metrics.changes(cluster.change_counts());
        metrics.changes(cluster.change_counts());
        let text = metrics.text(None).1;
        assert!(text.contains("kubeproxy_sync_proxy_rules_service_changes_total 1\n"), "{text}");
        assert!(text.contains("kubeproxy_sync_proxy_rules_service_changes_pending 1\n"), "{text}");
        assert!(text.contains("kubeproxy_sync_proxy_rules_endpoint_changes_total 0\n"), "{text}");
    }

    fn local_cluster(endpoints: &str) -> Cluster {
        let text = format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: api}}\nspec: {{type: NodePort, clusterIP: 10.0.0.1, \
             externalTrafficPolicy: Local, internalTrafficPolicy: Local, ports: [{{name: a, port: 80, nodePort: 30080}}, \
             {{name: b, port: 81}}]}}\n---\n\
             apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{namespace: demo, name: api-1, labels: \
             {{kubernetes.io/service-name: api}}}}\naddressType: IPv4\nports: [{{name: a, port: 8080}}, {{name: b, port: 8081}}]\n\
             endpoints: [{endpoints}]\n"
        );
        let mut found = Found::default();
        source::read_str("f.yaml", &text, |manifest| found.add(manifest)).unwrap();
        found.into_cluster(Node { name: "here".to_owned(), ..Node::default() }).0
    }

    #[test]
    fn ports_without_endpoints_here_are_counted_unless_there_are_none_anywhere() {
        let cases = [
            ("", (0, 0)),
            ("{addresses: [10.1.0.1], nodeName: there}", (2, 2)),
            ("{addresses: [10.1.0.1], nodeName: there}, {addresses: [10.1.0.2], nodeName: here}", (0, 0)),
        ];
        for (endpoints, expected) in cases {
            let cluster = local_cluster(endpoints);
            assert_eq!(without_local_endpoints(&cluster, Family::V4), expected, "{endpoints}");
            assert_eq!(without_local_endpoints(&cluster, Family::V6), (0, 0), "{endpoints}");
        }
    }
}
