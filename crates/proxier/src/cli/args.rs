//! Flags that several subcommands share. They bear kube-proxy's names where it has them.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use ipnet::IpNet;
use sluicegate_iptables_save::restore::BackEnd;
use sluicegate_proxier::Error;
use sluicegate_proxier::model::{
    Cluster, DetectLocal, DetectLocalMode, Family, Found, Node, NodePortAddresses, Problem, parse_cidr,
    parse_ip,
};
use sluicegate_proxier::plan::nftables::{Layout, Settings};
use sluicegate_proxier::plan::{iptables, ipvs};
use sluicegate_proxier::source;

use super::ipvs::IpvsArgs;

/// Where the objects come from.
#[derive(Args, Clone, Debug)]
pub(crate) struct ManifestArgs {
    /// Files, or directories of files (*.yaml, *.yml, *.json), with Services, EndpointSlices, Nodes and ServiceCIDRs.
    #[arg(long = "manifests", value_name = "PATH", required = true, num_args = 1..)]
    pub(crate) manifests: Vec<PathBuf>,
}

impl ManifestArgs {
    /// Reads everything; says on standard error what kinds of objects were passed over.
    pub(crate) fn read(&self) -> Result<Found, Error> {
        let mut found = Found::default();
        let ignored = source::read(&self.manifests, |manifest| found.add(manifest))?;
        if !ignored.is_empty() {
            eprintln!("ignored: {ignored}");
        }
        Ok(found)
    }
}

/// Which node this is.
#[derive(Args, Clone, Debug)]
pub(crate) struct NodeArgs {
    /// The name of this node; without it, the host's name.
    #[arg(long, value_name = "NAME")]
    pub(crate) hostname_override: Option<String>,
    /// This node's primary address, one for each family, instead of those of its Node object.
    #[arg(long, value_name = "IP", value_delimiter = ',', value_parser = ip)]
    pub(crate) bind_address: Vec<IpAddr>,
    /// The network of this node's pods, one for each family, instead of its Node object's spec.podCIDRs.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = cidr)]
    pub(crate) node_pod_cidr: Vec<IpNet>,
}

impl NodeArgs {
    /// This node: the Node object of its name among those found, and the flags above it.
    pub(crate) fn node(&self, nodes: &[Node]) -> Result<Node, Error> {
        let name = match &self.hostname_override {
            Some(name) => name.trim().to_lowercase(),
            None => host_name()?,
        };
        if name.is_empty() {
            return Err(Error::Flag {
                flag: "--hostname-override".to_owned(),
                reason: "is empty".to_owned(),
            });
        }
        let mut node = nodes.iter().find(|node| node.name == name).cloned().unwrap_or_default();
        node.name = name;
        if !self.node_pod_cidr.is_empty() {
            node.pod_cidrs.clone_from(&self.node_pod_cidr);
        }
        for ip in self.bind_address.iter().rev().filter(|ip| !ip.is_unspecified()) {
            node.addresses.retain(|other| other != ip);
            node.addresses.insert(0, *ip);
        }
        Ok(node)
    }
}

/// What the rules are to be like.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProxyArgs {
    /// Which part of the kernel does the work.
    #[arg(long, value_enum, default_value_t = ProxyMode::Nftables)]
    pub(crate) proxy_mode: ProxyMode,
    /// How the nftables rules are laid out: `maps` (a handful of rules, services are elements) or `chains` (kube-proxy's).
    #[arg(long, value_name = "maps|chains", default_value = "maps")]
    pub(crate) layout: Layout,
    /// The pods' networks of the whole cluster, one for each family: traffic to cluster IPs from elsewhere is masqueraded.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = cidr)]
    pub(crate) cluster_cidr: Vec<IpNet>,
    /// How traffic of pods is told from the rest: `ClusterCIDR`, `NodeCIDR`, `BridgeInterface` or `InterfaceNamePrefix`.
    #[arg(long, value_name = "MODE")]
    pub(crate) detect_local_mode: Option<DetectLocalMode>,
    /// The bridge of this node's pods, for `BridgeInterface`.
    #[arg(long, value_name = "NAME")]
    pub(crate) pod_bridge_interface: Option<String>,
    /// How the names of this node's pods' interfaces begin, for `InterfaceNamePrefix`.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) pod_interface_name_prefix: Option<String>,
    /// Masquerade all traffic to cluster IPs.
    #[arg(long)]
    pub(crate) masquerade_all: bool,
    /// The bit of the packet mark that asks for masquerading, 0 to 31.
    #[arg(long, value_name = "BIT", default_value_t = 14, value_parser = clap::value_parser!(u8).range(0..32))]
    pub(crate) iptables_masquerade_bit: u8,
    /// Where node ports are answered: `primary` (the default), or CIDRs separated by commas. In iptables and
    /// ipvs mode the default is every local address.
    #[arg(long, value_name = "primary|CIDR,...")]
    pub(crate) nodeport_addresses: Option<NodePortAddresses>,
    /// In iptables mode, answer node ports on 127.0.0.1 as well; sync sets the sysctl `net.ipv4.conf.all.route_localnet` for it.
    #[arg(long, value_name = "true|false", default_value_t = true, action = ArgAction::Set)]
    pub(crate) iptables_localhost_nodeports: bool,
    /// In iptables mode, the kernel interface to use instead of the one that `iptables-restore` itself uses.
    #[arg(long, value_enum)]
    pub(crate) iptables_backend: Option<IptablesBackend>,
    /// The networks of cluster IPs, besides those of ServiceCIDR objects: traffic to unused addresses in them is dropped.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = cidr)]
    pub(crate) service_cluster_ip_range: Vec<IpNet>,
    #[command(flatten)]
    pub(crate) ipvs: IpvsArgs,
}

impl ProxyArgs {
    /// The cluster that the manifests describe, seen from `node`; says on standard error what was left out.
    pub(crate) fn cluster(&self, found: Found, node: Node) -> (Cluster, Vec<Problem>) {
        let (mut cluster, problems) = found.into_cluster(node);
        for problem in &problems {
            eprintln!("{problem}");
        }
        cluster.set_service_cidr("--service-cluster-ip-range", &self.service_cluster_ip_range);
        (cluster, problems)
    }

    /// What the nftables planner is to do.
    pub(crate) fn settings(&self, node: &Node) -> Settings {
        Settings {
            layout: self.layout,
            families: Family::BOTH.into(),
            masquerade_all: self.masquerade_all,
            masquerade_bit: self.iptables_masquerade_bit,
            detect_local: self.detect_local(node),
            node_port_addresses: self.node_port_addresses(),
        }
    }

    /// What the iptables planner is to do.
    pub(crate) fn iptables(&self, node: &Node) -> iptables::Settings {
        iptables::Settings {
            masquerade_all: self.masquerade_all,
            masquerade_bit: self.iptables_masquerade_bit,
            detect_local: self.detect_local(node),
            node_port_addresses: self.node_port_addresses(),
            localhost_node_ports: self.iptables_localhost_nodeports,
            tcp_be_liberal: false,
        }
    }

    /// What the IPVS planner is to do.
    pub(crate) fn ipvs(&self, node: &Node) -> ipvs::Settings {
        ipvs::Settings {
            masquerade_all: self.masquerade_all,
            masquerade_bit: self.iptables_masquerade_bit,
            detect_local: self.detect_local(node),
            node_port_addresses: self.node_port_addresses(),
            ..self.ipvs.settings()
        }
    }

    /// Where node ports are answered, by the flag or the default of the mode.
    pub(crate) fn node_port_addresses(&self) -> NodePortAddresses {
        self.nodeport_addresses.clone().unwrap_or_else(|| match self.proxy_mode {
            ProxyMode::Nftables => NodePortAddresses::Primary,
            ProxyMode::Iptables | ProxyMode::Ipvs => NodePortAddresses::Within(Vec::new()),
        })
    }

    /// What tells pods from the rest, by these flags and this node.
    pub(crate) fn detect_local(&self, node: &Node) -> DetectLocal {
        DetectLocal {
            mode: self.detect_local_mode,
            cluster_cidrs: self.cluster_cidr.clone(),
            node_cidrs: node.pod_cidrs.clone(),
            bridge: self.pod_bridge_interface.clone(),
            prefix: self.pod_interface_name_prefix.clone(),
        }
    }
}

/// The modes of kube-proxy that are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProxyMode {
    /// nftables.
    Nftables,
    /// iptables, with kube-proxy's chains and rules.
    Iptables,
    /// IPVS, with kube-proxy's sets, addresses and rules around it.
    Ipvs,
}

/// The kernel interfaces of iptables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IptablesBackend {
    /// `ip_tables`.
    Legacy,
    /// `nf_tables`.
    Nft,
}

impl From<IptablesBackend> for BackEnd {
    fn from(back_end: IptablesBackend) -> Self {
        match back_end {
            IptablesBackend::Legacy => Self::Legacy,
            IptablesBackend::Nft => Self::Nft,
        }
    }
}

/// The primary addresses, for a message.
pub(crate) fn describe(node: &Node) -> String {
    let addresses: Vec<String> =
        Family::BOTH.iter().filter_map(|family| node.primary(*family)).map(|ip| ip.to_string()).collect();
    match addresses.as_slice() {
        [] => format!("node {} (no address known)", node.name),
        _ => format!("node {} ({})", node.name, addresses.join(", ")),
    }
}

fn host_name() -> Result<String, Error> {
    let path = PathBuf::from("/proc/sys/kernel/hostname");
    match std::fs::read_to_string(&path) {
        Ok(name) => Ok(name.trim().to_lowercase()),
        Err(source) => Err(Error::Read { path, source }),
    }
}

fn ip(text: &str) -> Result<IpAddr, String> {
    parse_ip(text.trim()).ok_or_else(|| "not an IP address".to_owned())
}

fn cidr(text: &str) -> Result<IpNet, String> {
    parse_cidr(text.trim()).ok_or_else(|| "not a CIDR (10.244.0.0/16)".to_owned())
}
