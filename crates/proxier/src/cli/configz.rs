//! The body of `/configz`: the flags and the file together, in the form of kube-proxy's internal type.
//!
//! Only fields that have a meaning in this proxier are included.

use std::net::IpAddr;

use sluicegate_proxier::config::format_duration;
use sluicegate_proxier::run::Intervals;

use super::args::{NodeArgs, ProxyArgs};
use super::serve::ServeArgs;

/// Returns the configuration in use, as JSON.
pub(super) fn configz(
    node: &NodeArgs,
    proxy: &ProxyArgs,
    serve: &ServeArgs,
    intervals: &Intervals,
    kubeconfig: Option<&str>,
    verbosity: u8,
) -> String {
    let bit = proxy.iptables_masquerade_bit;
    let ipvs = &proxy.ipvs;
    let timeouts = ipvs.timeouts();
    let seconds = |seconds: u32| format_duration(std::time::Duration::from_secs(seconds.into()));
    let strings = |list: &mut dyn Iterator<Item = String>| list.collect::<Vec<_>>();
    let detect_local_mode = proxy.detect_local_mode.unwrap_or_default();
    let [healthz, metrics] = serve.places();
    serde_json::json!({ "kubeproxy.config.k8s.io": {
        "Linux": { "MasqueradeAll": proxy.masquerade_all },
        "ClientConnection": { "Kubeconfig": kubeconfig.unwrap_or_default() },
        "Logging": { "verbosity": verbosity },
        "HostnameOverride": node.hostname_override.as_deref().unwrap_or_default(),
        "BindAddress": node.bind_address.first().map(IpAddr::to_string).unwrap_or_default(),
        "HealthzBindAddress": healthz,
        "MetricsBindAddress": metrics,
        "BindAddressHardFail": serve.bind_address_hard_fail,
        "Mode": proxy.proxy_mode.as_str(),
        "IPTables": { "MasqueradeBit": bit, "LocalhostNodePorts": proxy.iptables_localhost_nodeports },
        "IPVS": {
            "Scheduler": ipvs.ipvs_scheduler.as_str(),
            "ExcludeCIDRs": strings(&mut ipvs.ipvs_exclude_cidrs.iter().map(ToString::to_string)),
            "StrictARP": ipvs.ipvs_strict_arp,
            "TCPTimeout": seconds(timeouts.tcp),
            "TCPFinTimeout": seconds(timeouts.tcp_fin),
            "UDPTimeout": seconds(timeouts.udp),
        },
        "NFTables": { "MasqueradeBit": bit },
        "DetectLocalMode": detect_local_mode.as_str(),
        "DetectLocal": {
            "BridgeInterface": proxy.pod_bridge_interface.as_deref().unwrap_or_default(),
            "ClusterCIDRs": strings(&mut proxy.cluster_cidr.iter().map(ToString::to_string)),
            "InterfaceNamePrefix": proxy.pod_interface_name_prefix.as_deref().unwrap_or_default(),
        },
        "NodePortAddresses": strings(&mut proxy.node_port_addresses().entries().map(|entry| entry.to_string())),
        "SyncPeriod": format_duration(intervals.sync),
        "MinSyncPeriod": format_duration(intervals.min),
    } })
    .to_string()
}
