//! The objects that one service port needs: entries of sets, virtual servers, and rules for load balancers
//! that the node may not use.

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use ipnet::IpNet;
use sluicegate_ipset::Element;
use sluicegate_ipvs::{Endpoint, Protocol as ServerProtocol, ServiceConfig, ServiceId};
use sluicegate_services::{Categorized, PortName, Protocol, ServicePort};

use super::set::{self, Set};

/// The properties of the node and settings that apply to every service port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Context {
    /// The scheduler and its flags.
    pub(super) config: ServiceConfig,
    /// The addresses that answer node ports.
    pub(super) node_ips: Vec<IpAddr>,
    /// The addresses of devices other than [`DEVICE`](super::DEVICE), which need not be bound for services.
    pub(super) local: Vec<IpAddr>,
    /// This node's primary address.
    pub(super) node_ip: Option<IpAddr>,
}

/// The plan of one service port in one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortPlan {
    /// The service port that is planned.
    pub(super) name: PortName,
    /// Its set entries; those of [`Set::IpvsIps`] are the addresses to bind.
    pub(super) entries: Vec<(Set, Element)>,
    /// Its virtual servers.
    pub(super) servers: Vec<(ServiceId, Server)>,
    /// The addresses of load balancers that this node itself may not use.
    pub(super) refused: Vec<Vip>,
    /// Whether it has endpoints, but none on this node, and a traffic policy of Local: for internal and for
    /// external traffic.
    pub(super) no_local: [bool; 2],
}

/// The configuration and endpoints of a virtual server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) config: ServiceConfig,
    pub(super) endpoints: Arc<[Endpoint]>,
    /// Whether it serves a node port on one of the node's addresses.
    pub(super) is_node_port: bool,
}

/// A port of a load balancer's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Vip {
    ip: IpAddr,
    protocol: Protocol,
    port: NonZeroU16,
}

impl fmt::Display for Vip {
    /// Prints the match of the rule: packets of the node to the address have it as source and destination.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ip, protocol, port } = self;
        write!(f, "-s {ip} -m ipvs --vaddr {ip} --vproto {protocol} --vport {port} -j DROP")
    }
}

impl PortPlan {
    pub(super) fn new(context: &Context, port: &ServicePort<'_>, endpoints: &Categorized<'_>) -> Self {
        let service = port.service;
        let lacks = |local: bool| local && endpoints.has_any && endpoints.local.is_empty();
        let no_local =
            [lacks(service.internal_local), lacks(service.external_local && port.externally_accessible())];
        let plan = Self {
            name: port.name.clone(),
            // Most have nothing but a cluster IP.
            entries: Vec::with_capacity(2),
            servers: Vec::with_capacity(1),
            refused: Vec::new(),
            no_local,
        };
        let config = match service.affinity_seconds {
            Some(seconds) => context.config.persistent(seconds),
            None => context.config,
        };
        let internal = targets(endpoints, service.internal_local);
        let external = if service.internal_local == service.external_local {
            Arc::clone(&internal)
        } else {
            targets(endpoints, service.external_local)
        };
        let mut writer = Writer { context, port, config, internal, external, plan };
        writer.loop_back();
        writer.cluster_ip();
        writer.external_ips();
        writer.load_balancer();
        writer.node_port();
        writer.plan
    }
}

/// Returns the endpoints for a policy. Without local endpoints, policy Local uses all endpoints: pods of this
/// node get answers then, and other clients do not.
fn targets(endpoints: &Categorized<'_>, local: bool) -> Arc<[Endpoint]> {
    let chosen = if local && !endpoints.local.is_empty() { &endpoints.local } else { &endpoints.cluster };
    let mut sorted: Vec<_> = chosen.iter().map(|endpoint| Endpoint::from(endpoint.address)).collect();
    sorted.sort_unstable();
    sorted.into()
}

/// Adds to the plan of a service port.
struct Writer<'a> {
    context: &'a Context,
    port: &'a ServicePort<'a>,
    config: ServiceConfig,
    internal: Arc<[Endpoint]>,
    external: Arc<[Endpoint]>,
    plan: PortPlan,
}

impl Writer<'_> {
    /// Adds the endpoints that may be of this node, in any state, since existing connections may go from one to itself.
    fn loop_back(&mut self) {
        let protocol = self.port.name.protocol;
        for endpoint in self.port.endpoints.iter().filter(|endpoint| !endpoint.is_remote) {
            let Some(port) = NonZeroU16::new(endpoint.address.port()) else { continue };
            let ip = endpoint.address.ip();
            self.add(Set::LoopBack, set::ip_port_ip(ip, protocol, port, ip));
        }
    }

    fn cluster_ip(&mut self) {
        let Some(ip) = self.port.cluster_ip else { return };
        self.add_vip(Set::ClusterIp, ip);
        self.add(Set::IpvsIps, set::ip(ip));
        self.serve(ip, self.port.port, Arc::clone(&self.internal), false);
    }

    fn external_ips(&mut self) {
        let set = if self.port.service.external_local { Set::ExternalIpLocal } else { Set::ExternalIp };
        for ip in &self.port.external_ips {
            self.add_vip(set, *ip);
            self.serve_bound(*ip);
        }
    }

    fn load_balancer(&mut self) {
        let ranges: Option<Vec<_>> = self.port.service.source_ranges(self.port.family).map(Iterator::collect);
        for ip in self.port.load_balancer_ips.iter().copied() {
            self.add_vip(Set::LoadBalancer, ip);
            if self.port.service.external_local {
                self.add_vip(Set::LoadBalancerLocal, ip);
            }
            if let Some(ranges) = &ranges {
                self.firewall(ip, ranges);
            }
            self.serve_bound(ip);
        }
    }

    /// Adds the entries that determine which clients may use a load balancer's address.
    fn firewall(&mut self, ip: IpAddr, ranges: &[&IpNet]) {
        let (protocol, port) = (self.port.name.protocol, self.port.port);
        self.add_vip(Set::LoadBalancerFw, ip);
        for range in ranges {
            self.add(Set::LoadBalancerSourceCidr, set::ip_port_net(ip, protocol, port, range));
        }
        let covers_node =
            self.context.node_ip.is_some_and(|node| ranges.iter().any(|range| range.contains(&node)));
        if covers_node {
            // Packets of the node to its own address have that address as source.
            self.add(Set::LoadBalancerSourceIp, set::ip_port_ip(ip, protocol, port, ip));
        } else {
            self.plan.refused.push(Vip { ip, protocol, port });
        }
    }

    fn node_port(&mut self) {
        if let Some(port) = self.port.health_check_node_port {
            self.add(Set::HealthCheckNodePort, set::port(port));
        }
        let Some(port) = self.port.node_port else { return };
        let protocol = self.port.name.protocol;
        let (all, local) = match protocol {
            Protocol::Tcp => (Set::NodePortTcp, Set::NodePortLocalTcp),
            Protocol::Udp => (Set::NodePortUdp, Set::NodePortLocalUdp),
            Protocol::Sctp => (Set::NodePortSctp, Set::NodePortLocalSctp),
        };
        let local = self.port.service.external_local.then_some(local);
        let node_ips = &self.context.node_ips;
        let elements: Vec<_> = match protocol {
            _ if node_ips.is_empty() => Vec::new(),
            Protocol::Sctp => node_ips.iter().map(|ip| set::ip_port(*ip, protocol, port)).collect(),
            _ => vec![set::port(port)],
        };
        for set in [Some(all), local].into_iter().flatten() {
            elements.iter().for_each(|element| self.add(set, *element));
        }
        for ip in node_ips {
            self.serve(*ip, port, Arc::clone(&self.external), true);
        }
    }

    fn serve_bound(&mut self, ip: IpAddr) {
        if !self.context.local.contains(&ip) {
            self.add(Set::IpvsIps, set::ip(ip));
        }
        self.serve(ip, self.port.port, Arc::clone(&self.external), false);
    }

    fn serve(&mut self, ip: IpAddr, port: NonZeroU16, endpoints: Arc<[Endpoint]>, is_node_port: bool) {
        let protocol = ServerProtocol(self.port.name.protocol.number());
        let id = ServiceId::Virtual { protocol, endpoint: Endpoint::new(ip, port.get()) };
        self.plan.servers.push((id, Server { config: self.config, endpoints, is_node_port }));
    }

    fn add_vip(&mut self, set: Set, ip: IpAddr) {
        self.add(set, set::ip_port(ip, self.port.name.protocol, self.port.port));
    }

    fn add(&mut self, set: Set, element: Element) {
        self.plan.entries.push((set, element));
    }
}
