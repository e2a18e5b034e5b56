//! Finds the frontend that a packet is addressed to, or says what its destination is instead.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;

use sluicegate_services::{
    ClaimKind, Family, Frontend as Claimed, NodePortAddress, NodePortAddresses, NodePorts, Protocol,
    ServiceName, ServicePort,
};

use super::{Context, Settings, Verdict};
use crate::Mode;

/// The destination of a packet.
pub(super) enum Destination<'a> {
    /// A frontend, with every field by which its service has it.
    Frontend(Box<ServicePort<'a>>, Vec<ClaimKind>),
    /// The health-check node port of a service, which the proxier itself answers.
    HealthCheck(ServiceName),
    /// None of these, and what becomes of the packet.
    Other(Verdict),
}

impl<'a> Context<'a> {
    pub(super) fn destination(&self) -> Destination<'a> {
        let (ip, protocol) = (self.question.to.ip(), self.question.protocol);
        let Some(number) = NonZeroU16::new(self.question.to.port()) else {
            return Destination::Other(Verdict::Untouched("no service has port 0".to_owned()));
        };
        if let Some((name, ClaimKind::ClusterIp | ClaimKind::ExternalIp | ClaimKind::LoadBalancerIp)) =
            self.cluster.owner(&Claimed::Address(ip, protocol, number))
            && let Some(found) = self.by_address(name, number)
        {
            return found;
        }
        let node_port = self.cluster.owner(&Claimed::NodePort(self.family, protocol, number));
        match node_port {
            Some((name, kind)) if self.serves_node_ports(ip) => match kind {
                ClaimKind::HealthCheckNodePort => Destination::HealthCheck(name.clone()),
                _ => self.by_node_port(name, number).unwrap_or_else(|| Destination::Other(self.other())),
            },
            Some((name, kind)) if self.is_forwarded_localhost(ip, kind) => {
                Destination::Other(Verdict::Untouched(format!(
                    "{number}/{protocol} is a node port of Service {name}; the proxier itself listens there, and \
                     forwards connections to {ip} in user space"
                )))
            }
            Some((name, ClaimKind::NodePort)) if self.is_rejected_on_localhost(ip) => {
                Destination::Other(Verdict::Refused(format!(
                    "{number}/{protocol} is a node port of Service {name}, and rejected on loopback addresses (the feature \
                     gate KubeProxyNFTablesLocalhostNodePorts)"
                )))
            }
            Some((name, _)) if self.is_local(ip) => Destination::Other(Verdict::Untouched(format!(
                "{number}/{protocol} is a node port of Service {name}, but node ports are served on {} \
                 (nodePortAddresses), not on {ip}",
                self.node_ports()
            ))),
            _ => Destination::Other(self.other()),
        }
    }

    /// Returns whether some service has this address as its cluster IP.
    pub(super) fn is_cluster_ip(&self, ip: IpAddr) -> bool {
        self.owner_of_cluster_ip(ip).is_some()
    }

    fn by_address(&self, name: &ServiceName, number: NonZeroU16) -> Option<Destination<'a>> {
        let ip = self.question.to.ip();
        let port = self.port_of(name, |port| port.port == number)?;
        let kinds = [
            (port.cluster_ip == Some(ip), ClaimKind::ClusterIp),
            (port.external_ips.contains(&ip), ClaimKind::ExternalIp),
            (port.load_balancer_ips.contains(&ip), ClaimKind::LoadBalancerIp),
        ];
        let kinds = kinds.into_iter().filter_map(|(is_one, kind)| is_one.then_some(kind)).collect();
        Some(Destination::Frontend(Box::new(port), kinds))
    }

    fn by_node_port(&self, name: &ServiceName, number: NonZeroU16) -> Option<Destination<'a>> {
        let port = self.port_of(name, |port| port.node_port == Some(number))?;
        Some(Destination::Frontend(Box::new(port), vec![ClaimKind::NodePort]))
    }

    fn port_of(
        &self,
        name: &ServiceName,
        is_it: impl Fn(&ServicePort<'_>) -> bool,
    ) -> Option<ServicePort<'a>> {
        let ports = self.cluster.ports(name, self.family);
        ports.into_iter().find(|port| port.name.protocol == self.question.protocol && is_it(port))
    }

    /// Returns the addresses that serve node ports, loopback aside.
    fn node_ports(&self) -> NodePorts {
        let Self { settings, cluster, family, .. } = self;
        let local = settings.local_addresses.as_deref();
        settings.node_port_addresses.resolve(*family, cluster.node(), local).without_loopback()
    }

    /// Returns whether the proxier listens at a node port on a loopback address, as it can in nftables mode for
    /// TCP.
    fn is_forwarded_localhost(&self, ip: IpAddr, kind: ClaimKind) -> bool {
        let is_localhost = match ip {
            IpAddr::V4(ip) => ip == Ipv4Addr::LOCALHOST,
            IpAddr::V6(ip) => ip == Ipv6Addr::LOCALHOST,
        };
        let Settings { mode, localhost_node_ports, .. } = *self.settings;
        let is_tcp = kind == ClaimKind::NodePort && self.question.protocol == Protocol::Tcp;
        is_localhost && is_tcp && mode == Mode::Nftables && localhost_node_ports
    }

    /// Returns whether a rule of nftables mode rejects node ports of the protocol on a loopback address.
    fn is_rejected_on_localhost(&self, ip: IpAddr) -> bool {
        let Settings { mode, rejected_on_localhost, .. } = self.settings;
        ip.is_loopback() && *mode == Mode::Nftables && rejected_on_localhost.contains(&self.question.protocol)
    }

    /// Returns whether an address answers node ports if it is one of this node, where the addresses of its
    /// interfaces are not known.
    fn may_serve_node_ports(&self, ip: IpAddr) -> bool {
        let is_within = || {
            let mut entries = self.settings.node_port_addresses.entries();
            entries.any(|entry| matches!(entry, NodePortAddress::Within(net) if net.contains(&ip)))
        };
        self.settings.local_addresses.is_none() && (self.node_ports() == NodePorts::All || is_within())
    }

    fn serves_node_ports(&self, ip: IpAddr) -> bool {
        if ip.is_loopback() {
            let can = self.settings.mode == Mode::Iptables && self.settings.localhost_node_ports;
            return can && self.family == Family::Ipv4;
        }
        match self.node_ports() {
            NodePorts::All => self.is_local(ip),
            NodePorts::On(addresses) => addresses.contains(&ip),
        }
    }

    fn is_local(&self, ip: IpAddr) -> bool {
        ip.is_loopback() || self.local.contains(&ip)
    }

    /// Says what a destination is that is no frontend, and what becomes of packets to it.
    fn other(&self) -> Verdict {
        let (ip, to, protocol) = (self.question.to.ip(), self.question.to, self.question.protocol);
        if let Some(name) = self.owner_of_cluster_ip(ip) {
            return self.wrong_port(name, "spec.clusterIPs");
        }
        if let Some(name) = self.owner_of_forbidden(ip) {
            return Verdict::Untouched(format!(
                "{ip} is in spec.externalIPs of Service {name}, which are left out: the configuration forbids them"
            ));
        }
        if let Some((name, field)) = self.owner_of_external(ip) {
            return match self.settings.mode {
                Mode::Ipvs => self.wrong_port(name, field),
                _ => Verdict::Untouched(format!(
                    "{ip} is in {field} of Service {name}, which has no port {}/{protocol}: it has {}",
                    to.port(),
                    self.ports_of(name)
                )),
            };
        }
        let not_served = self.not_served(ip);
        let unallocated = || self.cluster.service_cidrs(self.family).find(|net| net.contains(&ip));
        if self.settings.mode == Mode::Nftables
            && let Some(net) = unallocated()
        {
            let why = not_served.map(|why| format!(" ({why})")).unwrap_or_default();
            return Verdict::Dropped(format!(
                "no Service has the cluster IP {ip}{why}; it is in ServiceCIDR {net}"
            ));
        }
        Verdict::Untouched(not_served.or_else(|| self.endpoint()).unwrap_or_else(
            || match self.is_local(ip) {
                true => format!(
                    "{ip} is an address of this node, and no Service has node port {}/{protocol}",
                    to.port()
                ),
                false => self.possible_node_port(ip).unwrap_or_else(|| {
                    format!("no Service, endpoint or node port has the address {to}/{protocol}")
                }),
            },
        ))
    }

    /// Says which node port an address answers if it is one of this node.
    fn possible_node_port(&self, ip: IpAddr) -> Option<String> {
        let (number, protocol) = (NonZeroU16::new(self.question.to.port())?, self.question.protocol);
        let (name, _) = self.cluster.owner(&Claimed::NodePort(self.family, protocol, number))?;
        self.may_serve_node_ports(ip).then(|| {
            format!(
                "{number}/{protocol} is a node port of Service {name}, which {ip} answers if it is an address of this \
                 node: that is known on the node itself"
            )
        })
    }

    /// Returns what becomes of packets to a cluster IP at a port that its service does not have.
    fn wrong_port(&self, name: &ServiceName, field: &str) -> Verdict {
        let (to, protocol) = (self.question.to, self.question.protocol);
        let what = format!(
            "{} is in {field} of Service {name}, which has no port {}/{protocol}: it has {}",
            to.ip(),
            to.port(),
            self.ports_of(name)
        );
        match self.settings.mode {
            Mode::Nftables | Mode::Ipvs => Verdict::Refused(what),
            // kube-proxy's rules of this mode match cluster IPs with their ports only.
            Mode::Iptables => Verdict::Untouched(what),
        }
    }

    fn ports_of(&self, name: &ServiceName) -> String {
        let ports = self.cluster.service(name).into_iter().flat_map(|service| &service.ports);
        let texts: Vec<_> = ports.map(|port| format!("{}/{}", port.port, port.protocol)).collect();
        if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
    }

    fn owner_of_cluster_ip(&self, ip: IpAddr) -> Option<&'a ServiceName> {
        let cluster = self.cluster;
        let has =
            |name: &&ServiceName| cluster.service(name).and_then(|s| s.cluster_ip(self.family)) == Some(ip);
        cluster.service_names().filter(has).min()
    }

    fn owner_of_external(&self, ip: IpAddr) -> Option<(&'a ServiceName, &'static str)> {
        let cluster = self.cluster;
        let field = |name: &'a ServiceName| {
            let service =
                cluster.service(name).filter(|service| service.cluster_ip(self.family).is_some())?;
            if service.external_ips.contains(&ip) {
                return Some((name, "spec.externalIPs"));
            }
            service.load_balancer_ips.contains(&ip).then_some((name, "status.loadBalancer.ingress"))
        };
        cluster.service_names().filter_map(field).min()
    }

    fn owner_of_forbidden(&self, ip: IpAddr) -> Option<&'a ServiceName> {
        let mut services = self.cluster.forbidden_external_ips();
        services.find(|(_, left_out)| left_out.contains(&ip)).map(|(name, _)| name)
    }

    /// Returns why services that list an address do not serve it, if some do.
    fn not_served(&self, ip: IpAddr) -> Option<String> {
        let cluster = self.cluster;
        let listed = cluster.not_served().flat_map(|(name, all)| all.iter().map(move |one| (name, one)));
        let mut found: Vec<_> = listed
            .filter(|(_, one)| one.ip == ip)
            .map(|(name, one)| {
                format!("{ip} is in {} of Service {name}, which is not served there: {}", one.field, one.why)
            })
            .collect();
        let lacks_family = |name: &&ServiceName| {
            cluster.service(name).is_some_and(|service| {
                let listed = service.external_ips.iter().chain(&service.load_balancer_ips);
                service.cluster_ip(self.family).is_none() && listed.clone().any(|other| *other == ip)
            })
        };
        let mut names: Vec<_> = cluster.service_names().filter(lacks_family).collect();
        names.sort();
        found.extend(names.iter().map(|name| {
            format!(
                "{ip} is an address of Service {name}, which is not served there: it has no {} cluster IP",
                self.family
            )
        }));
        (!found.is_empty()).then(|| found.join("; "))
    }

    /// Returns which endpoint the destination is, if it is one.
    fn endpoint(&self) -> Option<String> {
        let (to, protocol) = (self.question.to, self.question.protocol);
        let mut by_address = None;
        let mut names: Vec<_> = self.cluster.service_names().collect();
        names.sort();
        for name in names {
            for (slice, object) in self.cluster.named_slices(name) {
                if !object.endpoints.iter().any(|endpoint| endpoint.ip == to.ip()) {
                    continue;
                }
                let slice = format!("EndpointSlice {}/{slice}", name.namespace());
                if object.ports.iter().any(|p| (p.port.get(), p.protocol) == (to.port(), protocol)) {
                    return Some(format!(
                        "{to}/{protocol} is an endpoint of Service {name} itself ({slice}): no \
                         service is asked"
                    ));
                }
                by_address.get_or_insert_with(|| {
                    format!(
                        "{} is the address of an endpoint of Service {name} ({slice}), at another port",
                        to.ip()
                    )
                });
            }
        }
        by_address
    }
}

/// Returns the value of `nodePortAddresses` as it is configured.
pub(super) fn configured(addresses: &NodePortAddresses) -> String {
    let entries: Vec<_> = addresses.entries().map(|entry| entry.to_string()).collect();
    if entries.is_empty() { "none, as by default".to_owned() } else { entries.join(", ") }
}

/// Returns the field by which a service has a frontend.
pub(super) const fn field(kind: ClaimKind) -> &'static str {
    match kind {
        ClaimKind::ClusterIp => "spec.clusterIPs",
        ClaimKind::ExternalIp => "spec.externalIPs",
        ClaimKind::LoadBalancerIp => "status.loadBalancer.ingress",
        ClaimKind::NodePort => "spec.ports[].nodePort",
        ClaimKind::HealthCheckNodePort => "spec.healthCheckNodePort",
    }
}

/// Returns the frontend of a question, as services claim it.
pub(super) fn claimed(context: &Context<'_>, kind: ClaimKind) -> Option<Claimed> {
    let (to, protocol): (_, Protocol) = (context.question.to, context.question.protocol);
    let number = NonZeroU16::new(to.port())?;
    Some(match kind {
        ClaimKind::NodePort | ClaimKind::HealthCheckNodePort => {
            Claimed::NodePort(context.family, protocol, number)
        }
        _ => Claimed::Address(to.ip(), protocol, number),
    })
}
