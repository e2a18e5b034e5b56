//! What one service port needs: entries of sets, virtual servers, and rules for load balancers that the node may not use.

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use ipnet::IpNet;
use sluicegate_ipset::Element;
use sluicegate_ipvs::{Endpoint, Protocol as ServerProtocol, ServiceConfig, ServiceId};

use super::set::{self, Set};
use crate::model::{Categorized, PortName, Protocol, ServicePort};

/// What the node decides for every service port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Context {
    /// Scheduler and its flags.
    pub(super) config: ServiceConfig,
    /// Where node ports are answered.
    pub(super) node_ips: Vec<IpAddr>,
    /// Addresses of other devices than [`DEVICE`](super::DEVICE): a service that has one of them needs no other.
    pub(super) held: Vec<IpAddr>,
    /// This node's primary address.
    pub(super) node_ip: Option<IpAddr>,
}

/// All that is planned for one service port in one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortPlan {
    /// Whose it is.
    pub(super) name: PortName,
    /// Its entries; those of [`Set::IpvsIps`] are the addresses to bind.
    pub(super) entries: Vec<(Set, Element)>,
    /// Its virtual servers.
    pub(super) servers: Vec<(ServiceId, Server)>,
    /// Addresses of load balancers that this node itself may not use.
    pub(super) refused: Vec<Vip>,
    /// It has endpoints, but none here although its internal, its external policy asks for some.
    pub(super) no_local: [bool; 2],
}

/// How a virtual server is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) config: ServiceConfig,
    pub(super) endpoints: Arc<[Endpoint]>,
}

/// A port of a load balancer's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Vip {
    ip: IpAddr,
    protocol: Protocol,
    port: NonZeroU16,
}

impl fmt::Display for Vip {
    /// The words of the rule: source and destination of what the node sends there are the address itself.
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
            entries: Vec::new(),
            servers: Vec::new(),
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

/// The endpoints of a policy. Without local ones policy Local uses those of the cluster: what pods of this node send is
/// answered; answers to others go past them.
fn targets(endpoints: &Categorized<'_>, local: bool) -> Arc<[Endpoint]> {
    let chosen = if local && !endpoints.local.is_empty() { &endpoints.local } else { &endpoints.cluster };
    chosen.iter().map(|endpoint| Endpoint::from(endpoint.address)).collect()
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
    /// Endpoints of this node in whatever state: connections that they have may still reach themselves.
    fn loop_back(&mut self) {
        let protocol = self.port.name.protocol;
        for endpoint in self.port.endpoints.iter().filter(|endpoint| endpoint.is_local) {
            let Some(port) = NonZeroU16::new(endpoint.address.port()) else { continue };
            let ip = endpoint.address.ip();
            self.add(Set::LoopBack, set::ip_port_ip(ip, protocol, port, ip));
        }
    }

    fn cluster_ip(&mut self) {
        let ip = self.port.cluster_ip;
        self.add_vip(Set::ClusterIp, ip);
        self.add(Set::IpvsIps, set::ip(ip));
        self.serve(ip, self.port.port, Arc::clone(&self.internal));
    }

    fn external_ips(&mut self) {
        let set = if self.port.service.external_local { Set::ExternalIpLocal } else { Set::ExternalIp };
        for ip in self.port.service.external_ips(self.port.family) {
            self.add_vip(set, ip);
            self.serve_bound(ip);
        }
    }

    fn load_balancer(&mut self) {
        let ranges: Vec<_> = self.port.service.source_ranges(self.port.family).collect();
        for ip in self.port.service.load_balancer_ips(self.port.family) {
            self.add_vip(Set::LoadBalancer, ip);
            if self.port.service.external_local {
                self.add_vip(Set::LoadBalancerLocal, ip);
            }
            if !ranges.is_empty() {
                self.firewall(ip, &ranges);
            }
            self.serve_bound(ip);
        }
    }

    /// Who may use a load balancer's address.
    fn firewall(&mut self, ip: IpAddr, ranges: &[&IpNet]) {
        let (protocol, port) = (self.port.name.protocol, self.port.port);
        self.add_vip(Set::LoadBalancerFw, ip);
        for range in ranges {
            self.add(Set::LoadBalancerSourceCidr, set::ip_port_net(ip, protocol, port, range));
        }
        let covers_node =
            self.context.node_ip.is_some_and(|node| ranges.iter().any(|range| range.contains(&node)));
        if covers_node {
            // What the node sends to an address of its own carries that address as its source.
            self.add(Set::LoadBalancerSourceIp, set::ip_port_ip(ip, protocol, port, ip));
        } else {
            self.plan.refused.push(Vip { ip, protocol, port });
        }
    }

    fn node_port(&mut self) {
        if let Some(port) = self.port.service.health_check_node_port {
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
            self.serve(*ip, port, Arc::clone(&self.external));
        }
    }

    fn serve_bound(&mut self, ip: IpAddr) {
        if !self.context.held.contains(&ip) {
            self.add(Set::IpvsIps, set::ip(ip));
        }
        self.serve(ip, self.port.port, Arc::clone(&self.external));
    }

    fn serve(&mut self, ip: IpAddr, port: NonZeroU16, endpoints: Arc<[Endpoint]>) {
        let protocol = ServerProtocol(self.port.name.protocol.number().into());
        let id = ServiceId::Virtual { protocol, endpoint: Endpoint::new(ip, port.get()) };
        self.plan.servers.push((id, Server { config: self.config, endpoints }));
    }

    fn add_vip(&mut self, set: Set, ip: IpAddr) {
        self.add(set, set::ip_port(ip, self.port.name.protocol, self.port.port));
    }

    fn add(&mut self, set: Set, element: Element) {
        self.plan.entries.push((set, element));
    }
}
