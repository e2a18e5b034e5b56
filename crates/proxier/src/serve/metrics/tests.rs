use sluicegate_services::Node;

use super::local_endpoints::without_local_endpoints;
use super::*;
use crate::source;
use crate::source::Manifests;

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
        "nftables_localhost_nodeport_listeners gauge",
        "nftables_localhost_nodeport_listener_creation_failures_total counter",
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
        let mut expected: Vec<_> = all.iter().chain(&more).map(|name| format!("kubeproxy_{name}")).collect();
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
        metrics.programmed(Family::Ipv4, at(changed), at(now));
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
    let name = sluicegate_services::ServiceName::new("demo", "api").unwrap();
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
        "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: api}}\n\
            spec: {{type: NodePort, clusterIP: 10.0.0.1, \
         externalTrafficPolicy: Local, internalTrafficPolicy: Local, ports: [{{name: a, port: 80, nodePort: \
         30080}}, \
         {{name: b, port: 81}}]}}\n---\n\
         apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
         metadata: {{namespace: demo, name: api-1, labels: \
         {{kubernetes.io/service-name: api}}}}\naddressType: IPv4\n\
         ports: [{{name: a, port: 8080}}, {{name: b, port: 8081}}]\n\
         endpoints: [{endpoints}]\n"
    );
    let mut found = Manifests::default();
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
        assert_eq!(without_local_endpoints(&cluster, Family::Ipv4), expected, "{endpoints}");
        assert_eq!(without_local_endpoints(&cluster, Family::Ipv6), (0, 0), "{endpoints}");
    }
}
