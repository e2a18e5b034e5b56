//! Which traffic comes from a pod of this node or cluster: the local detectors.

use std::str::FromStr;

use ipnet::IpNet;

use super::Family;
use crate::Error;

/// How pods are told from the rest, as `--detect-local-mode` names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetectLocalMode {
    /// By the source address: the pods' network of the whole cluster (`--cluster-cidr`).
    #[default]
    ClusterCidr,
    /// By the source address: the pods' network of this node.
    NodeCidr,
    /// By the bridge that the packet came in through (`--pod-bridge-interface`).
    BridgeInterface,
    /// By the beginning of the interface's name (`--pod-interface-name-prefix`).
    InterfaceNamePrefix,
}

impl DetectLocalMode {
    /// The name, as the flag takes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClusterCidr => "ClusterCIDR",
            Self::NodeCidr => "NodeCIDR",
            Self::BridgeInterface => "BridgeInterface",
            Self::InterfaceNamePrefix => "InterfaceNamePrefix",
        }
    }
}

impl FromStr for DetectLocalMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ClusterCIDR" => Ok(Self::ClusterCidr),
            "NodeCIDR" => Ok(Self::NodeCidr),
            "BridgeInterface" => Ok(Self::BridgeInterface),
            "InterfaceNamePrefix" => Ok(Self::InterfaceNamePrefix),
            _ => Err("expected ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix".to_owned()),
        }
    }
}

/// What the flags and the Node say about telling pods from the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetectLocal {
    /// `--detect-local-mode`; `None` when the flag was not given, which means [`DetectLocalMode::ClusterCidr`] where
    /// there is a cluster CIDR, and no detection where there is none.
    pub mode: Option<DetectLocalMode>,
    /// `--cluster-cidr`.
    pub cluster_cidrs: Vec<IpNet>,
    /// `--node-pod-cidr`, or `spec.podCIDRs` of the Node.
    pub node_cidrs: Vec<IpNet>,
    /// `--pod-bridge-interface`.
    pub bridge: Option<String>,
    /// `--pod-interface-name-prefix`.
    pub prefix: Option<String>,
}

impl DetectLocal {
    /// The detector of each family, IPv4 first. The first CIDR of a family counts; a family without one has no detector.
    ///
    /// # Errors
    /// [`Error::Flag`] names the flag that is missing for the mode that was asked for, or that has a bad value.
    pub fn detectors(&self) -> Result<[LocalDetector; 2], Error> {
        match self.mode {
            None => Ok(by_cidr(&self.cluster_cidrs)),
            Some(DetectLocalMode::ClusterCidr) if self.cluster_cidrs.is_empty() => {
                Err(missing("--cluster-cidr", "ClusterCIDR"))
            }
            Some(DetectLocalMode::ClusterCidr) => Ok(by_cidr(&self.cluster_cidrs)),
            Some(DetectLocalMode::NodeCidr) if self.node_cidrs.is_empty() => {
                Err(missing("--node-pod-cidr (or a Node manifest with spec.podCIDRs)", "NodeCIDR"))
            }
            Some(DetectLocalMode::NodeCidr) => Ok(by_cidr(&self.node_cidrs)),
            Some(DetectLocalMode::BridgeInterface) => {
                let name = self
                    .bridge
                    .as_ref()
                    .ok_or_else(|| missing("--pod-bridge-interface", "BridgeInterface"))?;
                interface("--pod-bridge-interface", name, MAX_INTERFACE)?;
                Ok([LocalDetector::Interface(name.clone()), LocalDetector::Interface(name.clone())])
            }
            Some(DetectLocalMode::InterfaceNamePrefix) => {
                let flag = "--pod-interface-name-prefix";
                let prefix = self.prefix.as_ref().ok_or_else(|| missing(flag, "InterfaceNamePrefix"))?;
                // A name goes on behind the prefix.
                interface(flag, prefix, MAX_INTERFACE - 1)?;
                Ok([
                    LocalDetector::InterfacePrefix(prefix.clone()),
                    LocalDetector::InterfacePrefix(prefix.clone()),
                ])
            }
        }
    }
}

/// How one family tells pods from the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LocalDetector {
    /// It does not: nothing is known to be a pod's, and nothing is masqueraded for coming from elsewhere.
    #[default]
    None,
    /// Source address.
    Cidr(IpNet),
    /// Input interface.
    Interface(String),
    /// Input interface, by the beginning of its name.
    InterfacePrefix(String),
}

fn by_cidr(cidrs: &[IpNet]) -> [LocalDetector; 2] {
    Family::BOTH.map(|family| {
        let first = cidrs.iter().find(|net| Family::of_net(net) == family);
        first.map_or(LocalDetector::None, |net| LocalDetector::Cidr(*net))
    })
}

fn missing(flag: &str, mode: &str) -> Error {
    Error::Flag { flag: flag.to_owned(), reason: format!("is needed with --detect-local-mode {mode}") }
}

/// What the kernel accepts as the name of an interface, less what has a meaning in the text of rules.
fn interface(flag: &str, name: &str, limit: usize) -> Result<(), Error> {
    let plain = |b: u8| b.is_ascii_graphic() && !b"/:\"*\\".contains(&b);
    if (1..=limit).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    let reason = format!(
        "{name:?} is not the name of an interface (1 to {limit} characters, none of / : \" * \\ or blank)"
    );
    Err(Error::Flag { flag: flag.to_owned(), reason })
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
    fn each_mode_gives_its_detectors() {
        let values = DetectLocal {
            mode: None,
            cluster_cidrs: vec![net("10.244.0.0/16"), net("10.245.0.0/16"), net("fd00::/48")],
            node_cidrs: vec![net("fd00:1::/64")],
            bridge: Some("cni0".to_owned()),
            prefix: Some("veth".to_owned()),
        };
        let cluster = [LocalDetector::Cidr(net("10.244.0.0/16")), LocalDetector::Cidr(net("fd00::/48"))];
        let bridge = LocalDetector::Interface("cni0".to_owned());
        let prefix = LocalDetector::InterfacePrefix("veth".to_owned());
        let cases = [
            (None, cluster.clone()),
            (Some(DetectLocalMode::ClusterCidr), cluster),
            (Some(DetectLocalMode::NodeCidr), [LocalDetector::None, LocalDetector::Cidr(net("fd00:1::/64"))]),
            (Some(DetectLocalMode::BridgeInterface), [bridge.clone(), bridge]),
            (Some(DetectLocalMode::InterfaceNamePrefix), [prefix.clone(), prefix]),
        ];
        for (mode, expected) in cases {
            let detectors = DetectLocal { mode, ..values.clone() }.detectors().unwrap();
            assert_eq!(detectors, expected, "{mode:?}");
        }
    }

    #[test]
    fn a_mode_without_its_value_names_the_flag() {
        let cases = [
            ("ClusterCIDR", "--cluster-cidr: is needed with --detect-local-mode ClusterCIDR"),
            (
                "NodeCIDR",
                "--node-pod-cidr (or a Node manifest with spec.podCIDRs): is needed with --detect-local-mode NodeCIDR",
            ),
            ("BridgeInterface", "--pod-bridge-interface: is needed with --detect-local-mode BridgeInterface"),
            (
                "InterfaceNamePrefix",
                "--pod-interface-name-prefix: is needed with --detect-local-mode InterfaceNamePrefix",
            ),
        ];
        for (mode, message) in cases {
            let asked = DetectLocal { mode: Some(mode.parse().unwrap()), ..DetectLocal::default() };
            assert_eq!(asked.detectors().unwrap_err().to_string(), message);
        }
        assert_eq!(DetectLocal::default().detectors().unwrap(), [LocalDetector::None, LocalDetector::None]);
    }

    #[test]
    fn a_prefix_leaves_room_for_the_rest_of_the_name() {
        for (prefix, good) in [("fourteen-long-", true), ("fifteen-letters", false)] {
            let mode = Some(DetectLocalMode::InterfaceNamePrefix);
            let asked = DetectLocal { mode, prefix: Some(prefix.to_owned()), ..DetectLocal::default() };
            assert_eq!(asked.detectors().is_ok(), good, "{prefix}");
        }
    }

    #[test]
    fn an_interface_name_cannot_carry_text_into_rules() {
        for name in ["", "a\" accept", "eth0:1", "veth*", "name-of-sixteen-", "eth 0"] {
            let asked = DetectLocal {
                mode: Some(DetectLocalMode::BridgeInterface),
                bridge: Some(name.to_owned()),
                ..DetectLocal::default()
            };
            assert!(asked.detectors().unwrap_err().is_flag(), "{name:?}");
        }
    }
}
