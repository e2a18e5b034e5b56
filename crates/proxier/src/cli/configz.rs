//! The body of `/configz`: the flags and the file together, as a `KubeProxyConfiguration`, which is what
//! kube-proxy shows there and what tools read a node's configuration from.
//!
//! It has every field of kube-proxy's on Linux. One without effect here is as if nobody had set it, whatever the
//! file says: it is what is in use that is shown.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::{Map, Value, json};
use sluicegate_proxier::Mode;
use sluicegate_proxier::config::format_duration;
use sluicegate_proxier::run::Intervals;
use sluicegate_proxier::sysctl::Conntrack;

use super::args::{NodeArgs, ProxyArgs};
use super::serve::ServeArgs;

/// What is in use.
pub(super) struct InUse<'a> {
    pub(super) node: &'a NodeArgs,
    pub(super) proxy: &'a ProxyArgs,
    pub(super) serve: &'a ServeArgs,
    /// Those of the mode.
    pub(super) intervals: &'a Intervals,
    pub(super) kubeconfig: Option<&'a str>,
    pub(super) conntrack: Conntrack,
    pub(super) log_format: &'static str,
    pub(super) verbosity: u32,
    pub(super) oom_score_adj: i32,
}

/// Returns the configuration in use, as JSON.
pub(super) fn configz(in_use: &InUse<'_>) -> String {
    json!({ "kubeproxy.config.k8s.io": in_use.configuration() }).to_string()
}

impl InUse<'_> {
    /// Returns the `KubeProxyConfiguration`.
    fn configuration(&self) -> Value {
        let Self { proxy, serve, .. } = self;
        let [healthz, metrics] = serve.places();
        let gates: Map<_, _> =
            proxy.gates().iter().map(|(name, is_on)| (name.to_owned(), is_on.into())).collect();
        let clusters: Vec<_> = proxy.cluster_cidr.iter().map(ToString::to_string).collect();
        json!({
            "kind": "KubeProxyConfiguration",
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "featureGates": gates,
            "clientConnection": {
                "kubeconfig": self.kubeconfig.unwrap_or_default(),
                "acceptContentTypes": "",
                "contentType": "",
                "qps": 0,
                "burst": 0,
            },
            "logging": {
                "format": self.log_format,
                "verbosity": self.verbosity,
                "flushFrequency": 0,
                "vmodule": null,
                "options": {},
            },
            "hostnameOverride": self.node.hostname_override.as_deref().unwrap_or_default(),
            "bindAddress": self.node.bind_address.first().map(IpAddr::to_string).unwrap_or_default(),
            "healthzBindAddress": healthz,
            "metricsBindAddress": metrics,
            "bindAddressHardFail": serve.bind_address_hard_fail,
            "enableProfiling": false,
            "showHiddenMetricsForVersion": "",
            "configSyncPeriod": "0s",
            "portRange": "",
            "windowsRunAsService": false,
            "winkernel": {
                "networkName": "",
                "sourceVip": "",
                "enableDSR": false,
                "rootHnsEndpointName": "",
                "forwardHealthCheckVip": false,
            },
            "mode": proxy.proxy_mode.as_str(),
            "iptables": self.section(Mode::Iptables),
            "ipvs": self.section(Mode::Ipvs),
            "nftables": self.section(Mode::Nftables),
            "detectLocalMode": proxy.detect_local_mode.unwrap_or_default().as_str(),
            "detectLocal": {
                "bridgeInterface": proxy.pod_bridge_interface.as_deref().unwrap_or_default(),
                "interfaceNamePrefix": proxy.pod_interface_name_prefix.as_deref().unwrap_or_default(),
            },
            "clusterCIDR": clusters.join(","),
            "nodePortAddresses":
                proxy.node_port_addresses().entries().map(|entry| entry.to_string()).collect::<Vec<_>>(),
            "oomScoreAdj": self.oom_score_adj,
            "conntrack": self.conntrack(),
        })
    }

    /// Returns the section of a mode.
    fn section(&self, mode: Mode) -> Value {
        let Self { proxy, .. } = self;
        let usual = Intervals::of(mode);
        let Intervals { min, sync, .. } = if mode == proxy.proxy_mode { self.intervals } else { &usual };
        let seconds = |seconds: u32| format_duration(Duration::from_secs(seconds.into()));
        let mut section =
            json!({ "syncPeriod": format_duration(*sync), "minSyncPeriod": format_duration(*min) });
        let more = match mode {
            Mode::Nftables => json!({
                "masqueradeAll": proxy.masquerade_all,
                "masqueradeBit": proxy.iptables_masquerade_bit,
            }),
            Mode::Iptables => json!({
                "masqueradeAll": proxy.masquerade_all,
                "masqueradeBit": proxy.iptables_masquerade_bit,
                "localhostNodePorts": proxy.iptables_localhost_nodeports,
            }),
            Mode::Ipvs => {
                let timeouts = proxy.ipvs.timeouts();
                json!({
                    "scheduler": proxy.ipvs.ipvs_scheduler.as_str(),
                    "excludeCIDRs": proxy.ipvs.ipvs_exclude_cidrs.iter().map(ToString::to_string).collect::<Vec<_>>(),
                    "strictARP": proxy.ipvs.ipvs_strict_arp,
                    "tcpTimeout": seconds(timeouts.tcp),
                    "tcpFinTimeout": seconds(timeouts.tcp_fin),
                    "udpTimeout": seconds(timeouts.udp),
                })
            }
        };
        if let (Value::Object(section), Value::Object(more)) = (&mut section, more) {
            section.extend(more);
        }
        section
    }

    fn conntrack(&self) -> Value {
        let Conntrack {
            max_per_core,
            min,
            tcp_established,
            tcp_close_wait,
            tcp_be_liberal,
            udp,
            udp_stream,
            ..
        } = self.conntrack;
        // As in kube-proxy, zero leaves a sysctl as it is, and so does one that is not given here.
        let time = |time: Option<Duration>| format_duration(time.unwrap_or_default());
        json!({
            "maxPerCore": max_per_core.unwrap_or_default(),
            "min": min.unwrap_or_default(),
            "tcpEstablishedTimeout": time(tcp_established),
            "tcpCloseWaitTimeout": time(tcp_close_wait),
            "tcpBeLiberal": tcp_be_liberal.unwrap_or_default(),
            "udpTimeout": time(udp),
            "udpStreamTimeout": time(udp_stream),
        })
    }
}
