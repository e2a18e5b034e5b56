//! The seventeen ipsets of a family: their names, types and comments, and entries for them.

use std::net::IpAddr;
use std::num::NonZeroU16;

use ipnet::IpNet;
use sluicegate_ipset::{
    Addresses, CreateOptions, Element, Entry, Family as SetFamily, Port, Protocol as SetProtocol, Range,
    SetName, SetSpec, SetType,
};

use crate::model::{Family, Protocol};

/// One of the sets, by what is in it. The order is that in which kube-proxy makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Set {
    /// Endpoints of this node, each as destination and source: what reaches itself is masqueraded.
    LoopBack,
    /// Cluster IPs.
    ClusterIp,
    /// External IPs with `externalTrafficPolicy: Cluster`.
    ExternalIp,
    /// External IPs with `externalTrafficPolicy: Local`.
    ExternalIpLocal,
    /// Addresses of load balancers.
    LoadBalancer,
    /// Those of them that have source ranges.
    LoadBalancerFw,
    /// Those of them with `externalTrafficPolicy: Local`.
    LoadBalancerLocal,
    /// Those of them that this node may use, since a source range covers it.
    LoadBalancerSourceIp,
    /// Those of them with each of their source ranges.
    LoadBalancerSourceCidr,
    /// Node ports of TCP.
    NodePortTcp,
    /// Those with `externalTrafficPolicy: Local`.
    NodePortLocalTcp,
    /// Node ports of UDP.
    NodePortUdp,
    /// Those with `externalTrafficPolicy: Local`.
    NodePortLocalUdp,
    /// Node addresses with node ports of SCTP.
    NodePortSctp,
    /// Those with `externalTrafficPolicy: Local`.
    NodePortLocalSctp,
    /// Where load balancers ask for this node's health.
    HealthCheckNodePort,
    /// The addresses of [`DEVICE`](super::DEVICE).
    IpvsIps,
}

impl Set {
    /// All of them.
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

    /// Its name in a family: `KUBE-CLUSTER-IP`, `KUBE-6-CLUSTER-IP`. What does not fit into 31 characters is cut off.
    #[must_use]
    pub fn name(self, family: Family) -> String {
        let (name, _, _) = self.facts();
        let mut name = match family {
            Family::V4 => format!("KUBE-{name}"),
            Family::V6 => format!("KUBE-6-{name}"),
        };
        name.truncate(SetName::MAX);
        name
    }

    /// The set with this name.
    #[must_use]
    pub fn named(name: &str, family: Family) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name(family) == name)
    }

    /// Its type.
    #[must_use]
    pub fn set_type(self) -> SetType {
        self.facts().1
    }

    /// The comment of the rules that match it.
    #[must_use]
    pub fn comment(self) -> &'static str {
        self.facts().2
    }

    /// What makes it.
    #[must_use]
    pub fn spec(self, family: Family) -> SetSpec {
        let name = SetName::new(&self.name(family)).expect("a name of this file, cut to its limit");
        let options = match self.set_type() {
            SetType::BitmapPort => {
                CreateOptions { range: Some(Range::Ports(0, u16::MAX)), ..CreateOptions::default() }
            }
            _ => CreateOptions { hashsize: Some(1024), maxelem: Some(65_536), ..CreateOptions::default() },
        };
        SetSpec::new(name, self.set_type(), self.family(family), options).expect("options that the type has")
    }

    /// An entry of it.
    pub(super) fn entry(self, family: Family, element: Element) -> Entry {
        Entry::new(self.set_type(), self.family(family), element)
            .expect("elements are made of addresses of the family and of ports that are not 0")
    }

    /// A bitmap has no family.
    fn family(self, family: Family) -> SetFamily {
        match (self.set_type(), family) {
            (SetType::BitmapPort, _) => SetFamily::Unspecified,
            (_, Family::V4) => SetFamily::Inet,
            (_, Family::V6) => SetFamily::Inet6,
        }
    }

    #[rustfmt::skip]
    const fn facts(self) -> (&'static str, SetType, &'static str) {
        use SetType::{BitmapPort, HashIp, HashIpPort, HashIpPortIp, HashIpPortNet};
        match self {
            Self::LoopBack => ("LOOP-BACK", HashIpPortIp, "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose"),
            Self::ClusterIp => ("CLUSTER-IP", HashIpPort, "Kubernetes service cluster ip + port for masquerade purpose"),
            Self::ExternalIp => ("EXTERNAL-IP", HashIpPort, "Kubernetes service external ip + port for masquerade and filter purpose"),
            Self::ExternalIpLocal => ("EXTERNAL-IP-LOCAL", HashIpPort, "Kubernetes service external ip + port with externalTrafficPolicy=local"),
            Self::LoadBalancer => ("LOAD-BALANCER", HashIpPort, "Kubernetes service lb portal"),
            Self::LoadBalancerFw => ("LOAD-BALANCER-FW", HashIpPort, "Kubernetes service load balancer ip + port for load balancer with sourceRange"),
            Self::LoadBalancerLocal => ("LOAD-BALANCER-LOCAL", HashIpPort, "Kubernetes service load balancer ip + port with externalTrafficPolicy=local"),
            Self::LoadBalancerSourceIp => ("LOAD-BALANCER-SOURCE-IP", HashIpPortIp, "Kubernetes service load balancer ip + port + source IP for packet filter purpose"),
            Self::LoadBalancerSourceCidr => ("LOAD-BALANCER-SOURCE-CIDR", HashIpPortNet, "Kubernetes service load balancer ip + port + source cidr for packet filter purpose"),
            Self::NodePortTcp => ("NODE-PORT-TCP", BitmapPort, "Kubernetes nodeport TCP port for masquerade purpose"),
            Self::NodePortLocalTcp => ("NODE-PORT-LOCAL-TCP", BitmapPort, "Kubernetes nodeport TCP port with externalTrafficPolicy=local"),
            Self::NodePortUdp => ("NODE-PORT-UDP", BitmapPort, "Kubernetes nodeport UDP port for masquerade purpose"),
            Self::NodePortLocalUdp => ("NODE-PORT-LOCAL-UDP", BitmapPort, "Kubernetes nodeport UDP port with externalTrafficPolicy=local"),
            Self::NodePortSctp => ("NODE-PORT-SCTP-HASH", HashIpPort, "Kubernetes nodeport SCTP port for masquerade purpose with type 'hash ip:port'"),
            Self::NodePortLocalSctp => ("NODE-PORT-LOCAL-SCTP-HASH", HashIpPort, "Kubernetes nodeport SCTP port with externalTrafficPolicy=local with type 'hash ip:port'"),
            Self::HealthCheckNodePort => ("HEALTH-CHECK-NODE-PORT", BitmapPort, "Kubernetes health check node port"),
            Self::IpvsIps => ("IPVS-IPS", HashIp, ""),
        }
    }
}

/// An address, as an element.
pub(super) fn ip(ip: IpAddr) -> Element {
    Element::Ip(Addresses::Host(ip))
}

/// A port of an address.
pub(super) fn ip_port(ip: IpAddr, protocol: Protocol, port: NonZeroU16) -> Element {
    Element::IpPort(Addresses::Host(ip), set_port(protocol, port))
}

/// A port of an address, and the address of who asks.
pub(super) fn ip_port_ip(ip: IpAddr, protocol: Protocol, port: NonZeroU16, source: IpAddr) -> Element {
    Element::IpPortIp(Addresses::Host(ip), set_port(protocol, port), Addresses::Host(source))
}

/// A port of an address, and the network of who asks.
pub(super) fn ip_port_net(ip: IpAddr, protocol: Protocol, port: NonZeroU16, source: &IpNet) -> Element {
    let source = Addresses::Network { address: source.addr(), prefix: source.prefix_len() };
    Element::IpPortIp(Addresses::Host(ip), set_port(protocol, port), source)
}

/// A port alone.
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
    fn every_set_can_be_made_and_is_found_by_its_name() {
        for family in Family::BOTH {
            for set in Set::ALL {
                assert_eq!(Set::named(&set.spec(family).name().to_text(), family), Some(set));
            }
        }
        assert_eq!(Set::NodePortLocalSctp.name(Family::V6), "KUBE-6-NODE-PORT-LOCAL-SCTP-HAS");
        assert_eq!(Set::LoadBalancerSourceCidr.name(Family::V6), "KUBE-6-LOAD-BALANCER-SOURCE-CID");
        let spec = Set::LoopBack.spec(Family::V6).to_string();
        assert_eq!(spec, "create KUBE-6-LOOP-BACK hash:ip,port,ip family inet6 hashsize 1024 maxelem 65536");
    }
}
