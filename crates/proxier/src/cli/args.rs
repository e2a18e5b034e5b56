//! The flags that several subcommands share, with kube-proxy's names where it has them.

use std::collections::HashSet;
use std::fmt::Display;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{ArgAction, Args};
use ipnet::IpNet;
use sluicegate_nftables as nft;
use sluicegate_proxier::config::{Config, DetectLocalMode, FeatureGates, Gate, Rules};
use sluicegate_proxier::source::{Manifests, Problem};
use sluicegate_proxier::{Mode, source};
use sluicegate_service_rules::iptables::BackEnd;
use sluicegate_service_rules::nftables::{Counting, Fastpath, LOOPBACK, Layout, OnLocalhost, Settings};
use sluicegate_service_rules::{MasqueradeBit, iptables, ipvs};
use sluicegate_services::{
    Cluster, DetectLocal, Family, Node, NodePortAddresses, NodePorts, Protocol, Scheduler, ServiceName,
    parse_cidr, parse_ip,
};

use super::detect_local::DetectLocalFlags;
use super::ipvs::IpvsArgs;
use super::output::tell;
use super::value::ValueError;
use super::{Error, companions};

/// Where the objects come from.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Objects")]
pub(crate) struct ManifestArgs {
    /// Files, or directories of files (*.yaml, *.yml, *.json), with Services, EndpointSlices, Nodes and
    /// ServiceCIDRs; `-` reads standard input.
    #[arg(long = "manifests", value_name = "PATH", required = true, num_args = 1..)]
    pub(crate) manifests: Vec<PathBuf>,
}

impl ManifestArgs {
    /// Reads all manifests. Prints the kinds of objects that were ignored to standard error.
    pub(crate) fn read(&self) -> Result<Manifests, Error> {
        let mut found = Manifests::default();
        let (input, paths): (Vec<_>, Vec<_>) =
            self.manifests.iter().partition(|path| is_standard_input(path.as_path()));
        let mut ignored = Vec::new();
        if !paths.is_empty() {
            ignored.push(source::read(&paths, |manifest| found.add(manifest))?);
        }
        if !input.is_empty() {
            let text = standard_input()?;
            ignored.push(source::read_str("standard input", &text, |manifest| found.add(manifest))?);
        }
        for ignored in ignored.iter().filter(|ignored| !ignored.is_empty()) {
            tell(format_args!("ignored: {ignored}"));
        }
        Ok(found)
    }
}

/// Which node this is.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "This node")]
pub(crate) struct NodeArgs {
    /// The name of this node; by default the name of the host.
    #[arg(long, value_name = "NAME")]
    pub(crate) hostname_override: Option<String>,
    /// The primary address of this node, one for each family, instead of those of its Node object.
    #[arg(long, value_name = "IP", value_delimiter = ',', value_parser = ip)]
    pub(crate) bind_address: Vec<IpAddr>,
    /// The pod network of this node, one for each family, instead of spec.podCIDRs of its Node object.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = cidr)]
    pub(crate) node_pod_cidr: Vec<IpNet>,
}

impl NodeArgs {
    /// Returns this node: its Node object among `nodes`, overridden by the flags.
    pub(crate) fn node(&self, nodes: &[Node]) -> Result<Node, Error> {
        let name = match &self.hostname_override {
            Some(name) => name.trim().to_lowercase(),
            None => host_name()?,
        };
        if name.is_empty() {
            return Err(Error::flag("--hostname-override", "expected the name of a node, found none"));
        }
        let two = |flag| move |error| Error::flag(flag, error);
        Family::check_one_of_each(&self.bind_address, |ip| Family::of(*ip)).map_err(two("--bind-address"))?;
        Family::check_one_of_each(&self.node_pod_cidr, Family::of_net).map_err(two("--node-pod-cidr"))?;
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

/// The mode and its settings.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Rules")]
pub(crate) struct ProxyArgs {
    /// A configuration file of kube-proxy's kind `KubeProxyConfiguration`; flags override it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The part of the kernel to program.
    #[arg(long, value_name = "nftables|iptables|ipvs", default_value_t = Mode::Nftables)]
    pub(crate) proxy_mode: Mode,
    /// The layout of the nftables rules: `maps` (a fixed number of rules, services are set elements) or
    /// `chains` (as kube-proxy lays them out).
    #[arg(long, value_name = "maps|chains", default_value = "maps")]
    pub(crate) layout: Layout,
    /// In nftables mode, how an endpoint is chosen for a new connection: `random`, `round-robin`,
    /// `source-hash` (by the client's address), or `maglev` (by the client's address and port, with hardly a
    /// client that moves when endpoints come and go; `maglev:1021` names the slots of its table, a prime from
    /// 11 to 65521). A Service chooses by its annotation `sluicegate.github.io/scheduler`.
    #[arg(
        long,
        value_name = "NAME",
        default_value_t = Scheduler::Random
    )]
    pub(crate) nftables_scheduler: Scheduler,
    /// In nftables mode with the layout `maps`, have the kernel count the connections to each frontend of a
    /// service, or to each endpoint as well: `status` shows them, and /metrics those of frontends.
    #[arg(
        long,
        value_name = "off|frontends|endpoints",
        default_value_t = Counting::Off,
        num_args = 0..=1,
        default_missing_value = "frontends"
    )]
    pub(crate) service_metrics: Counting,
    /// In nftables mode, the number of packets after which an established connection to a service, or through
    /// another translated destination (hostPort), goes on through a flowtable, 0 for never: faster, and past all
    /// chains of all programs, network policies of forward chains included. A kernel without flowtables does
    /// without.
    #[arg(long, value_name = "PACKETS", default_value_t = 0, value_parser = number(0..=u32::MAX))]
    pub(crate) nftables_fastpath_after: u32,
    /// With --nftables-fastpath-after, the devices between which that is done, by names and prefixes (`veth*`);
    /// by default all but `lo`.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = device)]
    pub(crate) nftables_fastpath_devices: Vec<nft::InterfaceName>,
    /// The pod networks of the cluster, one for each family: traffic to cluster IPs from elsewhere is
    /// masqueraded.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = cidr)]
    pub(crate) cluster_cidr: Vec<IpNet>,
    /// How traffic of local pods is detected: `ClusterCIDR`, `NodeCIDR`, `BridgeInterface` or
    /// `InterfaceNamePrefix`.
    #[arg(long, value_name = "MODE")]
    pub(crate) detect_local_mode: Option<DetectLocalMode>,
    /// The bridge of the pods of this node, for `BridgeInterface`.
    #[arg(long, value_name = "NAME")]
    pub(crate) pod_bridge_interface: Option<String>,
    /// The prefix of the names of pod interfaces on this node, for `InterfaceNamePrefix`.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) pod_interface_name_prefix: Option<String>,
    /// Masquerade all traffic to cluster IPs.
    #[arg(
        long,
        value_name = "true|false",
        default_value_t = false,
        num_args = 0..=1,
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = boolean
    )]
    pub(crate) masquerade_all: bool,
    /// The bit of the packet mark that requests masquerading, 0 to 31.
    #[arg(long, value_name = "BIT", default_value_t = 14, value_parser = number(0..=31_u8))]
    pub(crate) iptables_masquerade_bit: u8,
    /// The addresses that serve node ports: CIDRs and the words `primary` (the default: the addresses of the
    /// Node object), `localhost` and `all`, separated by commas. In iptables and ipvs mode the default is
    /// every local address. `localhost` takes the feature gate `KubeProxyNFTablesLocalhostNodePorts` in
    /// nftables mode, and
    /// --iptables-localhost-nodeports in iptables mode.
    #[arg(long, value_name = "primary|CIDR,...")]
    pub(crate) nodeport_addresses: Vec<NodePortAddresses>,
    /// In iptables mode, serve node ports on 127.0.0.1 as well; this sets the sysctl
    /// `net.ipv4.conf.all.route_localnet`.
    #[arg(
        long,
        value_name = "true|false",
        default_value_t = true,
        num_args = 0..=1,
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = boolean
    )]
    pub(crate) iptables_localhost_nodeports: bool,
    /// In iptables and ipvs mode, the kernel interface of iptables to use; by default the one that the
    /// kubelet or a service proxy uses, or else has rules, or else nft.
    #[arg(long, value_name = "legacy|nft")]
    pub(crate) iptables_backend: Option<BackEnd>,
    /// The networks of cluster IPs, in addition to those of ServiceCIDR objects: traffic to unused addresses
    /// in them is dropped.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = cidr)]
    pub(crate) service_cluster_ip_range: Vec<IpNet>,
    /// Leave `spec.externalIPs` of every Service out: whoever may write a Service could otherwise take the
    /// traffic to any address. So does `--feature-gates AllowServiceExternalIPs=false`.
    #[arg(
        long,
        value_name = "true|false",
        default_value_t = false,
        num_args = 0..=1,
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = boolean
    )]
    pub(crate) ignore_external_ips: bool,
    /// Feature gates of Kubernetes, which override those of the configuration file. Those that change what a
    /// node does: `AllowServiceExternalIPs`, `ComponentFlagz`, `ComponentStatusz`, `KubeProxyIPVS` and
    /// `KubeProxyNFTablesLocalhostNodePorts`. Others are named at the start, and a name that Kubernetes does
    /// not have is an error.
    #[arg(long, value_name = "NAME=BOOL,...")]
    feature_gates: Vec<FeatureGates>,
    /// Those of the configuration file.
    #[arg(skip)]
    pub(crate) gates_of_file: FeatureGates,
    /// Whether the mode is that of the configuration file.
    #[arg(skip)]
    is_mode_of_file: bool,
    /// The names of the arguments of the command line, not by default.
    #[arg(skip)]
    pub(crate) given: HashSet<String>,
    #[command(flatten)]
    pub(crate) ipvs: IpvsArgs,
}

impl ProxyArgs {
    /// Reads the configuration file, if there is one, and sets from it what no flag gives: the rules, this node,
    /// and for whoever asks an API server its kubeconfig. Every command that plans or programs calls it, so that
    /// all of them see what `run` sees.
    pub(crate) fn read_config(&mut self, node: &mut NodeArgs) -> Result<Config, Error> {
        let Some(path) = &self.config else { return Ok(Config::default()) };
        let config = Config::read(path)?;
        self.gates_of_file.clone_from(&config.feature_gates);
        let given = &self.given;
        self.is_mode_of_file = config.mode.is_some() && !given.contains("proxy_mode");
        fill(given, "proxy_mode", &mut self.proxy_mode, config.mode);
        let rules = rules(&config, self.proxy_mode);
        fill(given, "masquerade_all", &mut self.masquerade_all, rules.masquerade_all);
        fill(given, "iptables_masquerade_bit", &mut self.iptables_masquerade_bit, rules.masquerade_bit);
        let localhost = config.localhost_node_ports;
        fill(given, "iptables_localhost_nodeports", &mut self.iptables_localhost_nodeports, localhost);
        fill(given, "cluster_cidr", &mut self.cluster_cidr, config.cluster_cidrs.clone());
        let mode = config.detect_local_mode.map(Some);
        fill(given, "detect_local_mode", &mut self.detect_local_mode, mode);
        let bridge = config.bridge_interface.clone().map(Some);
        fill(given, "pod_bridge_interface", &mut self.pod_bridge_interface, bridge);
        let prefix = config.interface_name_prefix.clone().map(Some);
        fill(given, "pod_interface_name_prefix", &mut self.pod_interface_name_prefix, prefix);
        let node_ports = config.node_port_addresses.clone().map(|addresses| vec![addresses]);
        fill(given, "nodeport_addresses", &mut self.nodeport_addresses, node_ports);
        let host_name = config.hostname_override.clone().map(Some);
        fill(given, "hostname_override", &mut node.hostname_override, host_name);
        let address = config.bind_address.map(|address| vec![address]);
        fill(given, "bind_address", &mut node.bind_address, address);
        self.ipvs.fill(&config, &|flag| given.contains(flag))?;
        Ok(config)
    }

    /// Returns the remarks on a configuration file that [`Self::read_config`] has read: what kube-proxy does not
    /// have, and what has no effect here.
    pub(crate) fn remarks(&self, config: &Config) -> Vec<String> {
        let path = self.config.as_deref().unwrap_or("".as_ref()).display();
        config.doubtful.iter().chain(&config.unused).map(|note| format!("{path}: {note}")).collect()
    }

    /// Returns whether a flag or the file names the mode.
    pub(crate) fn is_mode_named(&self) -> bool {
        self.is_mode_of_file || self.given.contains("proxy_mode")
    }

    /// Returns the feature gates of the flags and of the configuration file.
    pub(crate) fn gates(&self) -> FeatureGates {
        let mut gates = self.gates_of_file.clone();
        self.feature_gates.iter().for_each(|more| gates.override_with(more));
        gates
    }

    /// Returns true if external IPs are to be left out.
    pub(crate) fn forbids_external_ips(&self) -> bool {
        self.ignore_external_ips || !self.gates().is_on(Gate::AllowServiceExternalIps)
    }

    /// Refuses what [`Self::check_mode`] refuses, and prints its warnings to standard error.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.check_mode()?.iter().for_each(|warning| tell(format_args!("warning: {warning}")));
        Ok(())
    }

    /// Refuses a mode that a feature gate turns off, and flags for what the mode or the layout does not have.
    /// Returns a warning for each flag that is taken and has no effect in this mode.
    ///
    /// Every command that plans or programs calls it.
    pub(crate) fn check_mode(&self) -> Result<Vec<String>, Error> {
        if self.proxy_mode == Mode::Ipvs && !self.gates().is_on(Gate::KubeProxyIpvs) {
            let reason = "the feature gate KubeProxyIPVS is false, which turns ipvs mode off: expected --proxy-mode \
                          nftables, or KubeProxyIPVS=true as long as Kubernetes has it";
            return Err(Error::flag("--proxy-mode ipvs", reason));
        }
        let (scheduler, after) = (self.nftables_scheduler, self.nftables_fastpath_after);
        for (flag, is_used) in [
            (format!("--nftables-scheduler {scheduler}"), scheduler != Scheduler::Random),
            (format!("--nftables-fastpath-after {after}"), after > 0),
        ] {
            if is_used && self.proxy_mode != Mode::Nftables {
                let mode = self.proxy_mode;
                let reason = format!("expected --proxy-mode nftables, found {mode}, which does not have it");
                return Err(Error::flag(flag, reason));
            }
        }
        if after == 0 && !self.nftables_fastpath_devices.is_empty() {
            let reason =
                "expected --nftables-fastpath-after as well, above 0: without it there is no flowtable";
            return Err(Error::flag("--nftables-fastpath-devices", reason));
        }
        if self.service_metrics != Counting::Off {
            let found = match (self.proxy_mode, self.layout) {
                (Mode::Nftables, Layout::Maps) => return self.in_vain(),
                (Mode::Nftables, Layout::Chains) => "--layout chains".to_owned(),
                (mode, _) => mode.to_string(),
            };
            let reason = format!(
                "expected --proxy-mode nftables with --layout maps, found {found}, which counts no connections"
            );
            return Err(Error::flag(format!("--service-metrics {}", self.service_metrics), reason));
        }
        self.in_vain()
    }

    /// Refuses flags that would silently not be acted on, and returns a warning for each that may be given in
    /// vain.
    fn in_vain(&self) -> Result<Vec<String>, Error> {
        let mut warnings = companions::check(self)?;
        warnings.extend(self.localhost_in_vain());
        if self.proxy_mode == Mode::Ipvs {
            warnings.extend(self.ipvs.unknown_scheduler());
        }
        Ok(warnings)
    }

    /// Returns why schedulers of services have no effect, where the mode has none.
    pub(crate) fn without_schedulers(&self) -> Option<&'static str> {
        match self.proxy_mode {
            Mode::Nftables => None,
            Mode::Iptables => Some("iptables mode chooses every endpoint at random"),
            Mode::Ipvs => Some("in ipvs mode all services have the scheduler of --ipvs-scheduler"),
        }
    }

    /// Returns a warning for each service that asks for a scheduler which the mode does not have.
    pub(crate) fn unused_schedulers(&self, cluster: &Cluster) -> Vec<String> {
        let Some(why) = self.without_schedulers() else { return Vec::new() };
        let mut names: Vec<_> = cluster.service_names().collect();
        names.sort();
        // Those with session affinity have a warning for that.
        let unused = |name: &ServiceName| {
            let service = cluster.service(name).filter(|service| service.affinity_seconds.is_none())?;
            service.scheduler_not_used(name, why)
        };
        names.into_iter().filter_map(unused).map(|warning| warning.to_string()).collect()
    }

    /// Returns the cluster that the manifests describe, seen from `node`. Prints what is left out to standard
    /// error.
    pub(crate) fn cluster(&self, found: Manifests, node: Node) -> (Cluster, Vec<Problem>) {
        let (mut cluster, problems) = found.into_cluster(node);
        self.configure(&mut cluster);
        for (name, left_out) in cluster.forbidden_external_ips() {
            tell(forbidden(name, left_out));
        }
        for problem in &problems {
            tell(problem);
        }
        for conflict in cluster.conflicts() {
            tell(conflict);
        }
        (cluster, problems)
    }

    /// Sets what flags say of the cluster.
    pub(crate) fn configure(&self, cluster: &mut Cluster) {
        if self.forbids_external_ips() {
            cluster.forbid_external_ips();
        }
        cluster.set_service_cidr("--service-cluster-ip-range", &self.service_cluster_ip_range);
    }

    /// Returns the settings of nftables mode.
    pub(crate) fn settings(&self) -> Result<Settings, Error> {
        Ok(Settings {
            layout: self.layout,
            families: Family::BOTH.into(),
            masquerade_all: self.masquerade_all,
            masquerade_bit: MasqueradeBit::new(self.iptables_masquerade_bit)?,
            detect_local: self.detect_local()?,
            node_port_addresses: self.node_port_addresses(),
            on_localhost: self.on_localhost(),
            scheduler: self.nftables_scheduler,
            counting: self.service_metrics,
            fastpath: NonZeroU32::new(self.nftables_fastpath_after)
                .map(|after| Fastpath { after, devices: self.nftables_fastpath_devices.clone() }),
        })
    }

    /// Returns the settings of iptables mode.
    pub(crate) fn iptables(&self) -> Result<iptables::Settings, Error> {
        Ok(iptables::Settings {
            masquerade_all: self.masquerade_all,
            masquerade_bit: MasqueradeBit::new(self.iptables_masquerade_bit)?,
            detect_local: self.detect_local()?,
            node_port_addresses: self.node_port_addresses(),
            localhost_node_ports: self.iptables_localhost_nodeports,
            tcp_be_liberal: false,
        })
    }

    /// Returns the settings of ipvs mode.
    pub(crate) fn ipvs(&self) -> Result<ipvs::Settings, Error> {
        Ok(ipvs::Settings {
            masquerade_all: self.masquerade_all,
            masquerade_bit: MasqueradeBit::new(self.iptables_masquerade_bit)?,
            detect_local: self.detect_local()?,
            node_port_addresses: self.node_port_addresses(),
            ..self.ipvs.settings()?
        })
    }

    /// Returns the addresses that serve node ports: those of the flag, which may come several times, or the
    /// default of the mode where it says none.
    pub(crate) fn node_port_addresses(&self) -> NodePortAddresses {
        let mut said = self.nodeport_addresses.iter().flat_map(NodePortAddresses::entries).peekable();
        match self.proxy_mode {
            _ if said.peek().is_some() => said.collect(),
            Mode::Nftables => NodePortAddresses::default(),
            Mode::Iptables | Mode::Ipvs => NodePortAddresses::every(),
        }
    }

    /// Returns the addresses that answer node ports of a family by the rules of the mode. `local` are those of
    /// the interfaces, where they are known.
    pub(crate) fn node_ports(&self, family: Family, node: &Node, local: Option<&[IpAddr]>) -> NodePorts {
        let addresses = self.node_port_addresses().resolve(family, node, local);
        let loopback = self.proxy_mode == Mode::Iptables && self.iptables_localhost_nodeports;
        if loopback && family == Family::Ipv4 { addresses } else { addresses.without_loopback() }
    }

    /// Returns the families whose loopback address answers TCP node ports in nftables mode, by the daemon
    /// itself: where `localhost` is among the addresses, and the feature gate is on.
    pub(crate) fn forwarded_localhost(&self) -> Vec<Family> {
        let addresses = self.node_port_addresses();
        let is_on = self.proxy_mode == Mode::Nftables
            && self.gates().is_on(Gate::KubeProxyNftablesLocalhostNodePorts);
        Family::BOTH.into_iter().filter(|family| is_on && addresses.name_localhost(*family)).collect()
    }

    /// Returns what becomes of other connections to node ports on loopback addresses in nftables mode: with the
    /// feature gate they are rejected, also where `localhost` is not among the addresses.
    fn on_localhost(&self) -> OnLocalhost {
        match self.gates().is_on(Gate::KubeProxyNftablesLocalhostNodePorts) {
            true => OnLocalhost::Rejected { forwarded: self.forwarded_localhost() },
            false => OnLocalhost::Untouched,
        }
    }

    /// Returns the protocols of which that is true.
    pub(crate) fn rejected_on_localhost(&self, family: Family) -> Vec<Protocol> {
        let rules = self.on_localhost();
        Protocol::ALL.into_iter().filter(|protocol| rules.rejects(family, *protocol)).collect()
    }

    /// Returns a warning where loopback addresses are to answer node ports and will not, for want of a feature
    /// gate or of a flag, or the other way round.
    fn localhost_in_vain(&self) -> Option<String> {
        let addresses = self.node_port_addresses();
        let is_named = Family::BOTH.into_iter().any(|family| addresses.name_localhost(family));
        let gate = Gate::KubeProxyNftablesLocalhostNodePorts;
        match self.proxy_mode {
            Mode::Nftables => match (is_named, self.gates().is_on(gate)) {
                (true, false) => Some(format!(
                    "--nodeport-addresses {addresses}: in nftables mode loopback addresses answer no node port without \
                     --feature-gates {}=true",
                    gate.as_str()
                )),
                (false, true) => Some(format!(
                    "the feature gate {} only has node ports rejected on loopback addresses with --nodeport-addresses \
                     {addresses}: expected localhost among them",
                    gate.as_str()
                )),
                _ => None,
            },
            Mode::Iptables if is_named && !self.iptables_localhost_nodeports => Some(format!(
                "--nodeport-addresses {addresses}: loopback addresses answer no node port with \
                 --iptables-localhost-nodeports=false"
            )),
            Mode::Ipvs if is_named => Some(format!(
                "--nodeport-addresses {addresses}: in ipvs mode loopback addresses answer no node port"
            )),
            Mode::Iptables | Mode::Ipvs => None,
        }
    }

    /// Returns how traffic of local pods is detected.
    pub(crate) fn detect_local(&self) -> Result<DetectLocal, Error> {
        DetectLocalFlags {
            mode: self.detect_local_mode,
            cluster_cidrs: self.cluster_cidr.clone(),
            bridge: self.pod_bridge_interface.clone(),
            prefix: self.pod_interface_name_prefix.clone(),
        }
        .resolve()
    }
}

/// Sets what a flag stands for from a configuration file, unless the flag was given.
pub(super) fn fill<T>(given: &HashSet<String>, flag: &str, place: &mut T, value: Option<T>) {
    if let Some(value) = value.filter(|_| !given.contains(flag)) {
        *place = value;
    }
}

/// Returns the section of a mode.
pub(super) const fn rules(config: &Config, mode: Mode) -> Rules {
    match mode {
        Mode::Nftables => config.nftables,
        Mode::Iptables => config.iptables,
        Mode::Ipvs => config.ipvs,
    }
}

/// Says that external IPs of a service are left out.
pub(crate) fn forbidden(name: &ServiceName, left_out: &[IpAddr]) -> String {
    let left_out: Vec<_> = left_out.iter().map(ToString::to_string).collect();
    format!(
        "Service {name}: spec.externalIPs: {} left out: the configuration forbids external IPs \
         (AllowServiceExternalIPs=false or --ignore-external-ips)",
        left_out.join(", ")
    )
}

/// Formats a node with its primary addresses.
pub(crate) fn describe(node: &Node) -> String {
    let addresses: Vec<String> =
        Family::BOTH.iter().filter_map(|family| node.primary(*family)).map(|ip| ip.to_string()).collect();
    match addresses.as_slice() {
        [] => format!("node {} (no address known)", node.name),
        _ => format!("node {} ({})", node.name, addresses.join(", ")),
    }
}

/// Reads a boolean as Go's flags do.
pub(super) fn boolean(text: &str) -> Result<bool, ValueError> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(ValueError::expected("true or false", text)),
    }
}

/// Returns whether a path among manifests stands for standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads standard input, as much of it as of a file.
fn standard_input() -> Result<String, Error> {
    let failed = |source| Error::Read { path: "standard input".into(), source };
    let mut text = String::new();
    let read = io::stdin().lock().take(MOST_INPUT + 1).read_to_string(&mut text).map_err(failed)?;
    if u64::try_from(read).is_ok_and(|read| read > MOST_INPUT) {
        return Err(failed(io::Error::other("is larger than 1 GiB")));
    }
    Ok(text)
}

pub(crate) fn host_name() -> Result<String, Error> {
    let path = PathBuf::from("/proc/sys/kernel/hostname");
    match std::fs::read_to_string(&path) {
        Ok(name) => Ok(name.trim().to_lowercase()),
        Err(source) => Err(Error::Read { path, source }),
    }
}

/// Reads numbers of a range, with an error in the words of the others: clap's are those of Rust's types.
pub(crate) fn number<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, ValueError> + Clone
where
    T: FromStr + PartialOrd + Display + Clone,
{
    move |text| {
        let number = text.trim().parse().ok().filter(|number| range.contains(number));
        let (low, high) = (range.start(), range.end());
        number.ok_or_else(|| ValueError::expected(format!("a number from {low} to {high}"), text))
    }
}

fn ip(text: &str) -> Result<IpAddr, ValueError> {
    let expected = || ValueError::expected("an IP address, as 10.0.0.1 or fd00::1", text);
    parse_ip(text.trim()).ok_or_else(expected)
}

/// Reads the name of a device, or a prefix of names.
fn device(text: &str) -> Result<nft::InterfaceName, ValueError> {
    let name = nft::InterfaceName::new(text.trim()).map_err(ValueError::invalid)?;
    if name.as_str() == LOOPBACK {
        return Err(ValueError::Loopback);
    }
    Ok(name)
}

pub(crate) fn cidr(text: &str) -> Result<IpNet, ValueError> {
    parse_cidr(text.trim()).ok_or_else(|| ValueError::expected("a CIDR, as 10.244.0.0/16", text))
}

/// The most that is read from standard input, in bytes: as of a file.
const MOST_INPUT: u64 = 1 << 30;
