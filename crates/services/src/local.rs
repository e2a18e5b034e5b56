//! Local detectors: how traffic from the pods of this node or cluster is recognised.

use std::fmt;

use ipnet::IpNet;

use crate::{Error, Family, Node};

/// How the traffic of pods is recognised, for both families: kube-proxy's `--detect-local-mode` with its
/// value.
///
/// ```
/// use sluicegate_services::{DetectLocal, InterfacePrefix, LocalDetector, Node};
///
/// let detect = DetectLocal::ClusterCidrs(vec!["10.244.0.0/16".parse()?]);
/// let [ipv4, ipv6] = detect.detectors(&Node::default())?;
/// assert_eq!((ipv4, ipv6), (LocalDetector::Cidr("10.244.0.0/16".parse()?), LocalDetector::None));
/// let veth = DetectLocal::InterfacePrefix(InterfacePrefix::new("veth")?);
/// assert!(InterfacePrefix::new("veth* accept").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DetectLocal {
    /// Not at all: no traffic is known to come from a pod.
    #[default]
    None,
    /// By the source address: the network of all pods of the cluster, one of each family at most.
    ClusterCidrs(Vec<IpNet>),
    /// By the source address: the networks of this node's pods, [`Node::pod_cidrs`]. The first of a family
    /// counts.
    NodeCidrs,
    /// By the bridge that the packet came in through.
    Interface(InterfaceName),
    /// By the beginning of the name of the interface that the packet came in through.
    InterfacePrefix(InterfacePrefix),
}

impl DetectLocal {
    /// Returns the detector of each family on `node`, IPv4 first. A family without a network has none.
    ///
    /// # Errors
    /// [`Error::NoPodCidrs`] when the node's own networks are asked for and it has none, as before a
    /// controller gave it some. [`Error::TwoOfOneFamily`] where the cluster has two of one family: kube-proxy
    /// takes one, and the pods of the other would be masqueraded.
    pub fn detectors(&self, node: &Node) -> Result<[LocalDetector; 2], Error> {
        match self {
            Self::None => Ok([LocalDetector::None, LocalDetector::None]),
            Self::ClusterCidrs(cidrs) => {
                Family::check_one_of_each(cidrs, Family::of_net)?;
                Ok(by_cidr(cidrs))
            }
            Self::NodeCidrs if node.pod_cidrs.is_empty() => {
                Err(Error::NoPodCidrs { node: node.name.clone() })
            }
            Self::NodeCidrs => Ok(by_cidr(&node.pod_cidrs)),
            Self::Interface(name) => Ok([(); 2].map(|()| LocalDetector::Interface(name.clone()))),
            Self::InterfacePrefix(prefix) => {
                Ok([(); 2].map(|()| LocalDetector::InterfacePrefix(prefix.clone())))
            }
        }
    }
}

/// How one family recognises the traffic of pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LocalDetector {
    /// Not at all: no traffic is known to come from a pod, and none is masqueraded for coming from elsewhere.
    #[default]
    None,
    /// By the source address.
    Cidr(IpNet),
    /// By the input interface.
    Interface(InterfaceName),
    /// By the beginning of the input interface's name.
    InterfacePrefix(InterfacePrefix),
}

/// The name of a network interface: up to 15 printable characters that have no meaning in the text of rules.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceName(Box<str>);

/// The beginning of the name of a network interface, one character shorter than a name can be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InterfacePrefix(Box<str>);

impl InterfaceName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`Error::Interface`] when no interface can have it, it holds one of `/ : " * \` or a blank, or it ends
    /// with `+`, by which iptables means every name that begins so.
    pub fn new(name: &str) -> Result<Self, Error> {
        check(name, MAX_INTERFACE).map(Self)
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl InterfacePrefix {
    /// Checks the beginning of a name.
    ///
    /// # Errors
    /// As [`InterfaceName::new`].
    pub fn new(prefix: &str) -> Result<Self, Error> {
        check(prefix, MAX_INTERFACE - 1).map(Self)
    }

    /// Returns the beginning of the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for InterfacePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn by_cidr(cidrs: &[IpNet]) -> [LocalDetector; 2] {
    Family::BOTH.map(|family| {
        let first = cidrs.iter().find(|net| Family::of_net(net) == family);
        first.map_or(LocalDetector::None, |net| LocalDetector::Cidr(*net))
    })
}

/// Returns `true` if the kernel accepts the text as an interface name and it has no meaning in rule text.
fn check(name: &str, limit: usize) -> Result<Box<str>, Error> {
    let plain = |b: u8| b.is_ascii_graphic() && !b"/:\"*\\".contains(&b);
    // A name `.` or `..` would be no entry of /sys/class/net (`dev_valid_name`).
    let is_possible = !matches!(name, "." | "..") && !name.ends_with('+');
    if is_possible && (1..=limit).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(name.into());
    }
    Err(Error::Interface { name: name.to_owned(), limit })
}

/// `IFNAMSIZ` less the final zero (linux/if.h).
const MAX_INTERFACE: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn each_way_gives_its_detectors() {
        let node = Node { pod_cidrs: vec![net("fd00:1::/64")], ..Node::default() };
        let cluster = vec![net("10.244.0.0/16"), net("fd00::/48")];
        let bridge = InterfaceName::new("cni0").unwrap();
        let prefix = InterfacePrefix::new("veth").unwrap();
        let cases = [
            (DetectLocal::None, [LocalDetector::None, LocalDetector::None]),
            (
                DetectLocal::ClusterCidrs(cluster),
                [LocalDetector::Cidr(net("10.244.0.0/16")), LocalDetector::Cidr(net("fd00::/48"))],
            ),
            (DetectLocal::NodeCidrs, [LocalDetector::None, LocalDetector::Cidr(net("fd00:1::/64"))]),
            (
                DetectLocal::Interface(bridge.clone()),
                [LocalDetector::Interface(bridge.clone()), LocalDetector::Interface(bridge)],
            ),
            (
                DetectLocal::InterfacePrefix(prefix.clone()),
                [LocalDetector::InterfacePrefix(prefix.clone()), LocalDetector::InterfacePrefix(prefix)],
            ),
        ];
        for (detect, expected) in cases {
            assert_eq!(detect.detectors(&node).unwrap(), expected, "{detect:?}");
        }
    }

    #[test]
    fn a_second_network_of_a_family_is_refused() {
        for (networks, found) in [
            (["10.244.0.0/16", "fd00::/48", "10.245.0.0/16"], "10.244.0.0/16 and 10.245.0.0/16"),
            (["fd00:1::/48", "10.244.0.0/16", "fd00:2::/48"], "fd00:1::/48 and fd00:2::/48"),
        ] {
            let detect = DetectLocal::ClusterCidrs(networks.map(net).into());
            let error = detect.detectors(&Node::default()).unwrap_err();
            assert_eq!(error.to_string(), format!("expected at most one of each family, found {found}"));
        }
    }

    #[test]
    fn a_node_without_networks_is_named() {
        let error = DetectLocal::NodeCidrs.detectors(&Node::new("here", [])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected pod CIDRs of node \"here\" to detect local traffic by, found none"
        );
    }

    #[test]
    fn a_prefix_leaves_room_for_the_rest_of_the_name() {
        assert!(InterfacePrefix::new("fourteen-long-").is_ok());
        assert!(InterfacePrefix::new("fifteen-letters").is_err());
        assert!(InterfaceName::new("fifteen-letters").is_ok());
    }

    #[test]
    fn an_interface_name_cannot_carry_text_into_rules() {
        for name in
            ["", "+", "veth+", ".", "..", "a\" accept", "eth0:1", "veth*", "name-of-sixteen-", "eth 0"]
        {
            let expected = Error::Interface { name: name.to_owned(), limit: 15 };
            assert_eq!(InterfaceName::new(name).unwrap_err(), expected);
        }
    }
}
