//! The seventeen ipsets of a family: their names, types and comments, and entries for them.

use std::net::IpAddr;
use std::num::NonZeroU16;

use ipnet::IpNet;
use sluicegate_ipset::{
    Addresses, CreateOptions, Element, Entry, Family as SetFamily, Port, Protocol as SetProtocol, Range,
    SetName, SetSpec, SetType,
};

use sluicegate_services::{Family, Protocol};

/// A set, named by its content. The order is that of kube-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Set {
    /// Endpoints of this node, each as destination and source: connections to themselves are masqueraded.
    LoopBack,
    /// Cluster IPs.
    ClusterIp,
    /// External IPs with `externalTrafficPolicy: Cluster`.
    ExternalIp,
    /// External IPs with `externalTrafficPolicy: Local`.
    ExternalIpLocal,
    /// Load balancers' addresses.
    LoadBalancer,
    /// Load balancers' addresses with source ranges.
    LoadBalancerFw,
    /// Load balancers' addresses with `externalTrafficPolicy: Local`.
    LoadBalancerLocal,
    /// Load balancers' addresses that this node may use, since a source range contains its address.
    LoadBalancerSourceIp,
    /// Load balancers' addresses, each with its source ranges.
    LoadBalancerSourceCidr,
    /// Node ports of TCP.
    NodePortTcp,
    /// Node ports of the same protocol with `externalTrafficPolicy: Local`.
    NodePortLocalTcp,
    /// Node ports of UDP.
    NodePortUdp,
    /// Node ports of the same protocol with `externalTrafficPolicy: Local`.
    NodePortLocalUdp,
    /// Node addresses with node ports of SCTP.
    NodePortSctp,
    /// Node ports of the same protocol with `externalTrafficPolicy: Local`.
    NodePortLocalSctp,
    /// The health-check node ports, which load balancers query.
    HealthCheckNodePort,
    /// The addresses of [`DEVICE`](super::DEVICE).
    IpvsIps,
}

impl Set {
    /// All sets.
    pub const ALL: [Self; 17] = [
        Self::LoopBack,
        Self::ClusterIp,
        Self::ExternalIp,
        Self::ExternalIpLocal,
        Self::LoadBalancer,
        Self::LoadBalancerFw,
        Self::LoadBalancerLocal,
        Self::LoadBalancerSourceIp,
        Self::LoadBalancerSourceCidr,
        Self::NodePortTcp,
        Self::NodePortLocalTcp,
        Self::NodePortUdp,
        Self::NodePortLocalUdp,
        Self::NodePortSctp,
        Self::NodePortLocalSctp,
        Self::HealthCheckNodePort,
        Self::IpvsIps,
    ];

    /// Returns the name of the set in a family, such as `KUBE-CLUSTER-IP` and `KUBE-6-CLUSTER-IP`, truncated
    /// to 31 characters.
    #[must_use]
    pub fn name(self, family: Family) -> String {
        let (name, _, _) = self.facts();
        let mut name = match family {
            Family::Ipv4 => format!("KUBE-{name}"),
            Family::Ipv6 => format!("KUBE-6-{name}"),
        };
        name.truncate(SetName::MAX);
        name
    }

    /// Returns the set with this name.
    #[must_use]
    pub fn named(name: &str, family: Family) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name(family) == name)
    }

    /// Returns the type of the set.
    #[must_use]
    pub fn set_type(self) -> SetType {
        self.facts().1
    }

    /// Returns the comment of the rules that match it.
    #[must_use]
    pub fn comment(self) -> &'static str {
        self.facts().2
    }

    /// Returns the specification of the set.
    #[must_use]
    pub fn spec(self, family: Family) -> SetSpec {
        let name = SetName::new(&self.name(family)).expect("a name of this file, cut to its limit");
        let mut options = CreateOptions::default();
        match self.set_type() {
            SetType::BitmapPort => options.range = Some(Range::Ports(0, u16::MAX)),
            _ => (options.hashsize, options.maxelem) = (Some(1024), Some(65_536)),
        }
        SetSpec::new(name, self.set_type(), self.family(family), options).expect("options that the type has")
    }

    /// Returns an entry of the set.
    pub(super) fn entry(self, family: Family, element: Element) -> Entry {
        Entry::new(self.set_type(), self.family(family), element)
            .expect("elements are made of addresses of the family and of ports that are not 0")
    }

    /// A bitmap has no family.
    fn family(self, family: Family) -> SetFamily {
        match (self.set_type(), family) {
            (SetType::BitmapPort, _) => SetFamily::Unspecified,
            (_, Family::Ipv4) => SetFamily::Ipv4,
            (_, Family::Ipv6) => SetFamily::Ipv6,
        }
    }

    #[rustfmt::skip]
    const fn facts(self) -> (&'static str, SetType, &'static str) {
        use SetType::{BitmapPort, HashIp, HashIpPort, HashIpPortIp, HashIpPortNet};
        match self {
            Self::LoopBack => ("LOOP-BACK", HashIpPortIp, "Kubernetes endpoints dst ip:port, source ip for \
             solving hairpin purpose"),
            Self::ClusterIp => ("CLUSTER-IP", HashIpPort, "Kubernetes service cluster ip + port for \
             masquerade purpose"),
            Self::ExternalIp => ("EXTERNAL-IP", HashIpPort, "Kubernetes service external ip + port for \
             masquerade and filter purpose"),
            Self::ExternalIpLocal => ("EXTERNAL-IP-LOCAL", HashIpPort, "Kubernetes service external ip + \
             port with externalTrafficPolicy=local"),
            Self::LoadBalancer => ("LOAD-BALANCER", HashIpPort, "Kubernetes service lb portal"),
            Self::LoadBalancerFw => ("LOAD-BALANCER-FW", HashIpPort, "Kubernetes service load balancer ip + \
             port for load balancer with sourceRange"),
            Self::LoadBalancerLocal => ("LOAD-BALANCER-LOCAL", HashIpPort, "Kubernetes service load \
             balancer ip + port with externalTrafficPolicy=local"),
            Self::LoadBalancerSourceIp => ("LOAD-BALANCER-SOURCE-IP", HashIpPortIp, "Kubernetes service \
             load balancer ip + port + source IP for packet filter purpose"),
            Self::LoadBalancerSourceCidr => ("LOAD-BALANCER-SOURCE-CIDR", HashIpPortNet, "Kubernetes \
             service load balancer ip + port + source cidr for packet filter purpose"),
            Self::NodePortTcp => ("NODE-PORT-TCP", BitmapPort, "Kubernetes nodeport TCP port for masquerade \
             purpose"),
            Self::NodePortLocalTcp => ("NODE-PORT-LOCAL-TCP", BitmapPort, "Kubernetes nodeport TCP port \
             with externalTrafficPolicy=local"),
            Self::NodePortUdp => ("NODE-PORT-UDP", BitmapPort, "Kubernetes nodeport UDP port for masquerade \
             purpose"),
            Self::NodePortLocalUdp => ("NODE-PORT-LOCAL-UDP", BitmapPort, "Kubernetes nodeport UDP port \
             with externalTrafficPolicy=local"),
            Self::NodePortSctp => ("NODE-PORT-SCTP-HASH", HashIpPort, "Kubernetes nodeport SCTP port for \
             masquerade purpose with type 'hash ip:port'"),
            Self::NodePortLocalSctp => ("NODE-PORT-LOCAL-SCTP-HASH", HashIpPort, "Kubernetes nodeport SCTP \
             port with externalTrafficPolicy=local with type 'hash ip:port'"),
            Self::HealthCheckNodePort => ("HEALTH-CHECK-NODE-PORT", BitmapPort, "Kubernetes health check \
             node port"),
            Self::IpvsIps => ("IPVS-IPS", HashIp, ""),
        }
    }
}

/// Returns the element for an address.
pub(super) fn ip(ip: IpAddr) -> Element {
    Element::Ip(Addresses::Host(ip))
}

/// Returns the element for an address and a port.
pub(super) fn ip_port(ip: IpAddr, protocol: Protocol, port: NonZeroU16) -> Element {
    Element::IpPort(Addresses::Host(ip), set_port(protocol, port))
}

/// Returns the element for an address, a port and a source address.
pub(super) fn ip_port_ip(ip: IpAddr, protocol: Protocol, port: NonZeroU16, source: IpAddr) -> Element {
    Element::IpPortIp(Addresses::Host(ip), set_port(protocol, port), Addresses::Host(source))
}

/// Returns the element for an address, a port and a source network.
pub(super) fn ip_port_net(ip: IpAddr, protocol: Protocol, port: NonZeroU16, source: &IpNet) -> Element {
    let source = Addresses::Network { address: source.addr(), prefix: source.prefix_len() };
    Element::IpPortIp(Addresses::Host(ip), set_port(protocol, port), source)
}

/// Returns the element for a port.
pub(super) fn port(port: NonZeroU16) -> Element {
    Element::Port(port.get(), None)
}

fn set_port(protocol: Protocol, port: NonZeroU16) -> Port {
    Port { protocol: SetProtocol(protocol.number()), from: port.get(), to: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_has_a_valid_specification_and_is_found_by_its_name() {
        for family in Family::BOTH {
            for set in Set::ALL {
                assert_eq!(Set::named(&set.spec(family).name().to_text(), family), Some(set));
            }
        }
        assert_eq!(Set::NodePortLocalSctp.name(Family::Ipv6), "KUBE-6-NODE-PORT-LOCAL-SCTP-HAS");
        assert_eq!(Set::LoadBalancerSourceCidr.name(Family::Ipv6), "KUBE-6-LOAD-BALANCER-SOURCE-CID");
        let spec = Set::LoopBack.spec(Family::Ipv6).to_string();
        assert_eq!(spec, "create KUBE-6-LOOP-BACK hash:ip,port,ip family inet6 hashsize 1024 maxelem 65536");
    }
}
