//! Names and help texts of the metrics.

use std::sync::Arc;

use prometheus_client::registry::{Metric, Registry};

use super::Metrics;
use super::counted::ConnectionMetrics;
use super::packets::{PacketCounters, RejectedPackets};
use super::process::ProcessMetrics;
use super::source::SourceMetrics;
use crate::Mode;

impl Metrics {
    /// Registers all metrics of the mode. The encoder appends `_total` to the name of a counter.
    pub(super) fn register(mut self) -> Self {
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
                // Those of KEP-6032, in kube-proxy 1.37 with its feature gate.
                let help = "Node ports that listen on loopback";
                add(kube, "nftables_localhost_nodeport_listeners", help, &self.localhost_listeners);
                let help = "Node ports that could not listen on loopback, each time that was tried";
                let name = "nftables_localhost_nodeport_listener_creation_failures";
                add(kube, name, help, &self.localhost_failures);
                kube.register_collector(Box::new(RejectedPackets {
                    are_there: Arc::clone(&self.rejects_on_localhost),
                }));
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
        let help = "Addresses and ports that a service claims and another service has";
        add(ours, "frontend_conflicts", help, &self.conflicts);
        let help = "What guards traffic and is missing in the kernel or the tools; above 0 is an error";
        add(ours, "faults", help, &self.faults);
        add(ours, "health_check_sockets", "Open sockets of health-check node ports", &self.health_ports);
        add(ours, "warnings", "Problems of sources and servers", &self.warnings);
        let help = "Changes of other programs to the tables of the proxy, each of which is repaired";
        add(ours, "foreign_changes", help, &self.disturbances);
        ours.register_collector(Box::new(SourceMetrics(Arc::clone(&self.sources))));
        ours.register_collector(Box::new(ConnectionMetrics(Arc::clone(&self.scraped))));

        let help = "Number of HTTP requests, partitioned by status code, method, and host";
        add(&mut registry, "rest_client_requests", help, &self.requests);
        let help = "Request latency in seconds, broken down by verb and host";
        add(&mut registry, "rest_client_request_duration_seconds", help, &self.request_duration);
        let help = "Request size in bytes. Broken down by verb and host";
        add(&mut registry, "rest_client_request_size_bytes", help, &self.request_size);
        let help = "Response size in bytes. Broken down by verb and host";
        add(&mut registry, "rest_client_response_size_bytes", help, &self.response_size);
        let help = "Client side rate limiter latency in seconds. Broken down by verb, and host";
        add(&mut registry, "rest_client_rate_limiter_duration_seconds", help, &self.rate_limiter);
        let help = "Number of transport entries in the internal cache";
        add(&mut registry, "rest_client_transport_cache_entries", help, &self.transports);
        let help = "Number of calls to get a new transport, partitioned by the result of the operation";
        add(&mut registry, "rest_client_transport_create_calls", help, &self.transport_calls);
        let help = "Whether a feature gate of Kubernetes is on, by its name and stage";
        add(&mut registry, "kubernetes_feature_enabled", help, &self.features);
        let help =
            "A metric with a constant 1 value, labelled by the version of this program and its platform";
        add(&mut registry, "kubernetes_build_info", help, &self.build);
        registry.sub_registry_with_prefix("process").register_collector(Box::new(ProcessMetrics));
        self.registry = registry;
        self
    }
}

fn add(registry: &mut Registry, name: &str, help: &str, metric: &(impl Metric + Clone)) {
    registry.register(name, help, metric.clone());
}
