//! The ways to detect local traffic, by kube-proxy's names.

use std::str::FromStr;

/// How traffic of local pods is detected: `detectLocalMode`, or the flag `--detect-local-mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetectLocalMode {
    /// By the source address, in the pod network of the whole cluster.
    #[default]
    ClusterCidr,
    /// By the source address, in the pod network of this node.
    NodeCidr,
    /// By the bridge on which the packet arrived.
    BridgeInterface,
    /// By the prefix of the name of the interface on which the packet arrived.
    InterfaceNamePrefix,
}

impl DetectLocalMode {
    /// Returns the name, as the flag takes it.
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
    type Err = DetectLocalModeError;

    fn from_str(text: &str) -> Result<Self, DetectLocalModeError> {
        match text {
            "ClusterCIDR" => Ok(Self::ClusterCidr),
            "NodeCIDR" => Ok(Self::NodeCidr),
            "BridgeInterface" => Ok(Self::BridgeInterface),
            "InterfaceNamePrefix" => Ok(Self::InterfaceNamePrefix),
            _ => Err(DetectLocalModeError(text.to_owned())),
        }
    }
}

/// The text that is not the name of a way to detect local traffic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix, found {0:?}")]
pub struct DetectLocalModeError(String);
