//! On which addresses of the node its node ports are answered.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use crate::{Error, Family, Node, parse_cidr};

/// The addresses of the node that answer node ports: its primary ones, or those inside some networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodePortAddresses {
    /// The primary address of each family.
    #[default]
    Primary,
    /// Every local address inside one of the networks. A family for which none is given answers on all
    /// addresses.
    Within(Vec<IpNet>),
}

impl FromStr for NodePortAddresses {
    type Err = Error;

    /// `primary`, or CIDRs separated by commas.
    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "primary" {
            return Ok(Self::Primary);
        }
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let found = || Error::NodePortAddresses { text: text.to_owned() };
        let nets = parts.map(|part| parse_cidr(part).ok_or_else(found));
        nets.collect::<Result<_, _>>().map(Self::Within)
    }
}

/// The addresses on which one family answers node ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodePorts {
    /// On every local address, loopback excepted.
    All,
    /// On these addresses only.
    On(BTreeSet<IpAddr>),
}

impl fmt::Display for NodePorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all addresses"),
            Self::On(addresses) if addresses.is_empty() => f.write_str("no address"),
            Self::On(addresses) => {
                let list: Vec<_> = addresses.iter().map(ToString::to_string).collect();
                f.write_str(&list.join(", "))
            }
        }
    }
}

impl NodePortAddresses {
    /// Returns the addresses of one family. `local` are the addresses of the node's interfaces where they are
    /// known; where they are not (a plan made elsewhere), those of the Node stand for them, and a network of
    /// one address for itself.
    ///
    /// `primary` without a known address answers everywhere, as kube-proxy does.
    #[must_use]
    pub fn resolve(&self, family: Family, node: &Node, local: Option<&[IpAddr]>) -> NodePorts {
        let nets: Vec<IpNet> = match self {
            Self::Primary => {
                let primary = node.primary(family).filter(|ip| !ip.is_loopback());
                return primary.map_or(NodePorts::All, |ip| NodePorts::On(BTreeSet::from([ip])));
            }
            Self::Within(nets) => nets.iter().filter(|net| Family::of_net(net) == family).copied().collect(),
        };
        if nets.is_empty() || nets.iter().any(|net| net.prefix_len() == 0) {
            return NodePorts::All;
        }
        let mut addresses: BTreeSet<IpAddr> = local.unwrap_or(&node.addresses).iter().copied().collect();
        if local.is_none() {
            addresses
                .extend(nets.iter().filter(|net| net.prefix_len() == net.max_prefix_len()).map(IpNet::addr));
        }
        addresses.retain(|ip| nets.iter().any(|net| net.contains(ip)));
        NodePorts::On(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(addresses: &[&str]) -> NodePorts {
        NodePorts::On(addresses.iter().map(|ip| ip.parse().unwrap()).collect())
    }

    #[test]
    fn each_way_of_saying_it() {
        let node = Node {
            addresses: ["192.168.0.2", "10.0.0.2", "fd00::2"].map(|ip| ip.parse().unwrap()).into(),
            ..Node::default()
        };
        let local = ["127.0.0.1", "192.168.0.2", "192.168.0.3", "10.0.0.2"].map(|ip| ip.parse().unwrap());
        let v6_only = Node { addresses: vec!["fd00::2".parse().unwrap()], ..Node::default() };
        let cases = [
            ("primary", &node, None, Family::Ipv4, on(&["192.168.0.2"])),
            ("primary", &node, None, Family::Ipv6, on(&["fd00::2"])),
            ("primary", &v6_only, None, Family::Ipv4, NodePorts::All),
            ("", &node, None, Family::Ipv4, NodePorts::All),
            ("192.168.0.0/24", &node, None, Family::Ipv4, on(&["192.168.0.2"])),
            ("192.168.0.0/24", &node, Some(&local[..]), Family::Ipv4, on(&["192.168.0.2", "192.168.0.3"])),
            (
                "192.168.0.0/24, 10.0.0.0/8",
                &node,
                Some(&local[..]),
                Family::Ipv4,
                on(&["10.0.0.2", "192.168.0.2", "192.168.0.3"]),
            ),
            ("192.168.0.9/32", &node, None, Family::Ipv4, on(&["192.168.0.9"])),
            ("192.168.0.9/32", &node, Some(&local[..]), Family::Ipv4, on(&[])),
            ("192.168.0.0/24", &node, None, Family::Ipv6, NodePorts::All),
            ("192.168.0.0/24,0.0.0.0/0", &node, None, Family::Ipv4, NodePorts::All),
        ];
        for (text, node, local, family, expected) in cases {
            let addresses: NodePortAddresses = text.parse().unwrap();
            assert_eq!(addresses.resolve(family, node, local), expected, "{text:?} {family}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["primary,10.0.0.0/8", "10.0.0.1", "all"] {
            assert!(text.parse::<NodePortAddresses>().is_err(), "{text:?}");
        }
    }
}
