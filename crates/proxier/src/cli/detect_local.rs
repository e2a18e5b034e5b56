//! The flags that say how traffic of local pods is detected, and what they mean together.

use ipnet::IpNet;
use sluicegate_proxier::config::DetectLocalMode;
use sluicegate_services::{DetectLocal, Family, InterfaceName, InterfacePrefix};

use super::Error;

/// The flags that say how traffic of local pods is detected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DetectLocalFlags {
    /// `--detect-local-mode`; `None` when the flag was not given, which means
    /// [`DetectLocalMode::ClusterCidr`] where there is a cluster CIDR, and no detection where there is none.
    pub(crate) mode: Option<DetectLocalMode>,
    /// `--cluster-cidr`.
    pub(crate) cluster_cidrs: Vec<IpNet>,
    /// `--pod-bridge-interface`.
    pub(crate) bridge: Option<String>,
    /// `--pod-interface-name-prefix`.
    pub(crate) prefix: Option<String>,
}

impl DetectLocalFlags {
    /// Returns the setting that the flags stand for. Fails when the flag that the mode needs is missing or
    /// has a bad value.
    pub(crate) fn resolve(&self) -> Result<DetectLocal, Error> {
        // Checked whatever the mode: a value that cannot be used is better reported at the start.
        let bridge = self.bridge.as_deref().map(InterfaceName::new).transpose();
        let bridge = bridge.map_err(|error| Error::flag(BRIDGE, error))?;
        let prefix = self.prefix.as_deref().map(InterfacePrefix::new).transpose();
        let prefix = prefix.map_err(|error| Error::flag(PREFIX, error))?;
        Family::check_one_of_each(&self.cluster_cidrs, Family::of_net)
            .map_err(|error| Error::flag(CLUSTER_CIDR, error))?;
        let Some(mode) = self.mode else {
            let is_given = !self.cluster_cidrs.is_empty();
            return Ok(if is_given { self.by_cluster() } else { DetectLocal::None });
        };
        let missing = |flag| {
            Error::flag(flag, format!("expected with --detect-local-mode {}, found none", mode.as_str()))
        };
        match mode {
            DetectLocalMode::ClusterCidr if self.cluster_cidrs.is_empty() => Err(missing(CLUSTER_CIDR)),
            DetectLocalMode::ClusterCidr => Ok(self.by_cluster()),
            DetectLocalMode::NodeCidr => Ok(DetectLocal::NodeCidrs),
            DetectLocalMode::BridgeInterface => {
                bridge.map(DetectLocal::Interface).ok_or_else(|| missing(BRIDGE))
            }
            DetectLocalMode::InterfaceNamePrefix => {
                prefix.map(DetectLocal::InterfacePrefix).ok_or_else(|| missing(PREFIX))
            }
        }
    }

    fn by_cluster(&self) -> DetectLocal {
        DetectLocal::ClusterCidrs(self.cluster_cidrs.clone())
    }
}

const CLUSTER_CIDR: &str = "--cluster-cidr";
const BRIDGE: &str = "--pod-bridge-interface";
const PREFIX: &str = "--pod-interface-name-prefix";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_network_of_a_family_names_the_flag() {
        let asked = DetectLocalFlags {
            cluster_cidrs: ["10.0.0.0/8", "fd00::/48", "11.0.0.0/8"].map(|net| net.parse().unwrap()).into(),
            ..DetectLocalFlags::default()
        };
        assert_eq!(
            asked.resolve().unwrap_err().to_string(),
            "--cluster-cidr: expected at most one of each family, found 10.0.0.0/8 and 11.0.0.0/8"
        );
    }

    #[test]
    fn a_mode_without_its_value_names_the_flag() {
        let cases = [
            ("ClusterCIDR", "--cluster-cidr: expected with --detect-local-mode ClusterCIDR, found none"),
            (
                "BridgeInterface",
                "--pod-bridge-interface: expected with --detect-local-mode BridgeInterface, found none",
            ),
            (
                "InterfaceNamePrefix",
                "--pod-interface-name-prefix: expected with --detect-local-mode InterfaceNamePrefix, found none",
            ),
        ];
        for (mode, message) in cases {
            let asked = DetectLocalFlags { mode: Some(mode.parse().unwrap()), ..DetectLocalFlags::default() };
            assert_eq!(asked.resolve().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn each_mode_takes_its_flag_and_without_one_the_cluster_cidr_counts() {
        let flags = |mode: Option<&str>| DetectLocalFlags {
            mode: mode.map(|text| text.parse().unwrap()),
            cluster_cidrs: vec!["10.244.0.0/16".parse().unwrap()],
            bridge: Some("cni0".to_owned()),
            prefix: Some("veth".to_owned()),
        };
        let cluster = DetectLocal::ClusterCidrs(vec!["10.244.0.0/16".parse().unwrap()]);
        let cases = [
            (None, cluster.clone()),
            (Some("ClusterCIDR"), cluster),
            (Some("NodeCIDR"), DetectLocal::NodeCidrs),
            (Some("BridgeInterface"), DetectLocal::Interface(InterfaceName::new("cni0").unwrap())),
            (
                Some("InterfaceNamePrefix"),
                DetectLocal::InterfacePrefix(InterfacePrefix::new("veth").unwrap()),
            ),
        ];
        for (mode, expected) in cases {
            assert_eq!(flags(mode).resolve().unwrap(), expected, "{mode:?}");
        }
        assert_eq!(DetectLocalFlags::default().resolve().unwrap(), DetectLocal::None);
        let bad = DetectLocalFlags { bridge: Some("a b".to_owned()), ..flags(Some("BridgeInterface")) };
        let error = bad.resolve().unwrap_err();
        assert!(error.to_string().starts_with("--pod-bridge-interface: "), "{error}");
        for mode in [None, Some("NodeCIDR"), Some("InterfaceNamePrefix")] {
            for prefix in ["", "veth+", "veth*", "a b", "longer-than-any-name"] {
                let bad = DetectLocalFlags { prefix: Some(prefix.to_owned()), ..flags(mode) };
                let error = bad.resolve().unwrap_err().to_string();
                assert!(error.starts_with("--pod-interface-name-prefix: "), "{error}");
            }
        }
    }
}
