//! On which addresses of the node its node ports are answered.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::{Error, Family, Node, parse_cidr};

/// Which addresses of the node answer node ports: the entries of kube-proxy's `--nodeport-addresses`.
///
/// Without an entry, and in a family for which there is none, every local address does.
///
/// ```
/// use sluicegate_services::{Family, Node, NodePortAddresses, NodePorts};
///
/// let addresses: NodePortAddresses = "primary,localhost".parse()?;
/// assert_eq!(addresses.to_string(), "primary,localhost");
/// let node = Node { addresses: vec!["192.168.0.2".parse()?], ..Node::default() };
/// let on = addresses.resolve(Family::Ipv4, &node, None).without_loopback();
/// assert_eq!(on, NodePorts::On(["192.168.0.2".parse()?].into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePortAddresses(Vec<NodePortAddress>);

/// An entry of [`NodePortAddresses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodePortAddress {
    /// `primary`: the primary address of each family, as the Node object has it.
    Primary,
    /// `localhost`: 127.0.0.0/8 and `::1/128`.
    Localhost,
    /// `all`: 0.0.0.0/0 and `::/0`.
    All,
    /// Every local address inside of a network.
    Within(IpNet),
}

impl Default for NodePortAddresses {
    /// Returns `primary`, the default of nftables mode.
    fn default() -> Self {
        Self(vec![NodePortAddress::Primary])
    }
}

impl FromIterator<NodePortAddress> for NodePortAddresses {
    fn from_iter<I: IntoIterator<Item = NodePortAddress>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl FromStr for NodePortAddresses {
    type Err = Error;

    /// Parses CIDRs and the words `primary`, `localhost` and `all`, separated by commas.
    fn from_str(text: &str) -> Result<Self, Error> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let entry = |part| {
            Ok(match part {
                "primary" => NodePortAddress::Primary,
                "localhost" => NodePortAddress::Localhost,
                "all" => NodePortAddress::All,
                _ => match parse_cidr(part) {
                    Some(net) => NodePortAddress::Within(net),
                    None => return Err(Error::NodePortAddresses { text: text.to_owned() }),
                },
            })
        };
        parts.map(entry).collect()
    }
}

impl fmt::Display for NodePortAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primary => f.write_str("primary"),
            Self::Localhost => f.write_str("localhost"),
            Self::All => f.write_str("all"),
            Self::Within(net) => net.fmt(f),
        }
    }
}

impl fmt::Display for NodePortAddresses {
    /// Writes the entries as they are parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.0.iter().enumerate() {
            write!(f, "{}{entry}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
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

impl NodePorts {
    /// Leaves out loopback addresses, to which a packet cannot be translated where the kernel keeps them from
    /// being routed (nftables and ipvs mode).
    #[must_use]
    pub fn without_loopback(mut self) -> Self {
        if let Self::On(addresses) = &mut self {
            addresses.retain(|ip| !ip.is_loopback());
        }
        self
    }
}

impl NodePortAddresses {
    /// Returns the value that has every local address answer, the default of iptables and ipvs mode.
    #[must_use]
    pub const fn every() -> Self {
        Self(Vec::new())
    }

    /// Returns the entries in their order.
    pub fn entries(&self) -> impl Iterator<Item = NodePortAddress> + '_ {
        self.0.iter().copied()
    }

    /// Returns the addresses of one family. `local` are the addresses of the node's interfaces where they are
    /// known; where they are not (a plan made elsewhere), those of the Node stand for them, and a network of
    /// one address for itself.
    ///
    /// `primary` alone without a known address answers everywhere, as kube-proxy does.
    #[must_use]
    pub fn resolve(&self, family: Family, node: &Node, local: Option<&[IpAddr]>) -> NodePorts {
        let primary = node.primary(family).filter(|ip| !ip.is_loopback());
        let nets = self.nets(family, primary);
        if nets.is_empty() || nets.iter().any(|net| net.prefix_len() == 0) {
            return NodePorts::All;
        }
        let mut addresses: BTreeSet<IpAddr> = local.unwrap_or(&node.addresses).iter().copied().collect();
        if local.is_none() {
            addresses
                .extend(nets.iter().filter(|net| net.prefix_len() == net.max_prefix_len()).map(IpNet::addr));
            addresses.insert(loopback(family).addr());
        }
        addresses.retain(|ip| nets.iter().any(|net| net.contains(ip)));
        // The Node object decides of it, also where a provider translates it and no interface has it.
        addresses.extend(primary.filter(|_| self.0.contains(&NodePortAddress::Primary)));
        NodePorts::On(addresses)
    }

    /// Returns true if what [`resolve`](Self::resolve) returns depends on the addresses of the node's
    /// interfaces.
    #[must_use]
    pub fn depend_on_interfaces(&self) -> bool {
        self.0.iter().any(|entry| matches!(entry, NodePortAddress::Within(_) | NodePortAddress::Localhost))
    }

    /// Returns true if an entry contains the loopback addresses of a family, as 0.0.0.0/0 and no entry at all
    /// do.
    #[must_use]
    pub fn contain_loopback(&self, family: Family, node: &Node) -> bool {
        let nets = self.nets(family, node.primary(family).filter(|ip| !ip.is_loopback()));
        let first = loopback(family).network();
        nets.is_empty() || nets.iter().any(|net| net.addr().is_loopback() || net.contains(&first))
    }

    /// Returns true if an entry names the loopback address of a family (127.0.0.1, `::1`): `localhost`, or a
    /// network of loopback addresses. `all` does not.
    #[must_use]
    pub fn name_localhost(&self, family: Family) -> bool {
        let localhost = match family {
            Family::Ipv4 => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Family::Ipv6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        self.0.iter().any(|entry| match entry {
            NodePortAddress::Localhost => true,
            NodePortAddress::Within(net) => net.addr().is_loopback() && net.contains(&localhost),
            NodePortAddress::Primary | NodePortAddress::All => false,
        })
    }

    /// Returns the networks of one family; none if none is given, which means all.
    fn nets(&self, family: Family, primary: Option<IpAddr>) -> Vec<IpNet> {
        let net = |entry: &NodePortAddress| match entry {
            NodePortAddress::Primary => primary.map(IpNet::from),
            NodePortAddress::Localhost => Some(loopback(family)),
            NodePortAddress::All => Some(match family {
                Family::Ipv4 => IpNet::V4(Ipv4Net::default()),
                Family::Ipv6 => IpNet::V6(Ipv6Net::default()),
            }),
            NodePortAddress::Within(net) => Some(*net).filter(|net| Family::of_net(net) == family),
        };
        self.0.iter().filter_map(net).collect()
    }
}

/// Returns the network of the loopback addresses, as `localhost` means it, with the usual one of them.
fn loopback(family: Family) -> IpNet {
    match family {
        Family::Ipv4 => IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::LOCALHOST, 8)),
        Family::Ipv6 => IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128)),
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
            ("all", &node, Some(&local[..]), Family::Ipv6, NodePorts::All),
            ("primary,all", &node, None, Family::Ipv4, NodePorts::All),
            ("localhost", &node, Some(&local[..]), Family::Ipv4, on(&["127.0.0.1"])),
            ("localhost", &node, None, Family::Ipv6, on(&["::1"])),
            ("primary,localhost", &v6_only, Some(&local[..]), Family::Ipv4, on(&["127.0.0.1"])),
            (
                "primary, 192.168.0.3/32",
                &node,
                Some(&local[..]),
                Family::Ipv4,
                on(&["192.168.0.2", "192.168.0.3"]),
            ),
            ("10.0.0.0/8,primary", &node, None, Family::Ipv4, on(&["10.0.0.2", "192.168.0.2"])),
        ];
        for (text, node, local, family, expected) in cases {
            let addresses: NodePortAddresses = text.parse().unwrap();
            assert_eq!(addresses.resolve(family, node, local), expected, "{text:?} {family}");
            assert_eq!(addresses.to_string().parse(), Ok(addresses), "{text:?}");
        }
    }

    #[test]
    fn loopback_is_contained_and_named() {
        let node = Node { addresses: vec!["192.168.0.2".parse().unwrap()], ..Node::default() };
        let cases = [
            ("", [true, true], [false, false]),
            ("all", [true, true], [false, false]),
            ("0.0.0.0/0", [true, true], [false, false]),
            ("primary", [false, true], [false, false]),
            ("localhost", [true, true], [true, true]),
            ("primary,localhost", [true, true], [true, true]),
            ("127.0.0.0/8,fd00::/64", [true, false], [true, false]),
            ("127.0.0.2/32,::1/128", [true, true], [false, true]),
            ("192.168.0.0/24", [false, true], [false, false]),
        ];
        for (text, contained, named) in cases {
            let addresses: NodePortAddresses = text.parse().unwrap();
            assert_eq!(
                Family::BOTH.map(|family| addresses.contain_loopback(family, &node)),
                contained,
                "{text:?}"
            );
            assert_eq!(Family::BOTH.map(|family| addresses.name_localhost(family)), named, "{text:?}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["primary,10.0.0.0", "10.0.0.1", "All", "primary localhost", "local"] {
            assert!(text.parse::<NodePortAddresses>().is_err(), "{text:?}");
        }
    }
}
