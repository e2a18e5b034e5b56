//! Labels of the metrics, named as kube-proxy names them.

use prometheus_client::encoding::EncodeLabelSet;
use sluicegate_services::Family;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByFamily {
    pub ip_family: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByPolicy {
    pub ip_family: &'static str,
    pub traffic_policy: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByTable {
    pub ip_family: &'static str,
    pub table: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByCode {
    pub code: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByChange {
    pub object: &'static str,
    pub change: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByObject {
    pub object: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByRequest {
    pub code: String,
    pub host: String,
    pub method: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByHost {
    pub host: String,
    pub verb: &'static str,
}

/// The labels of `kubernetes_feature_enabled`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByFeature {
    pub name: String,
    pub stage: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByResult {
    pub result: &'static str,
}

/// The labels of `kubernetes_build_info`. What only Go or Kubernetes has is empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct BuildInfo {
    pub build_date: &'static str,
    pub compiler: &'static str,
    pub git_commit: &'static str,
    pub git_tree_state: &'static str,
    pub git_version: &'static str,
    pub go_version: &'static str,
    pub major: &'static str,
    pub minor: &'static str,
    pub platform: String,
}

impl Default for BuildInfo {
    fn default() -> Self {
        Self {
            build_date: "",
            compiler: "rustc",
            git_commit: "",
            git_tree_state: "",
            git_version: concat!("v", env!("CARGO_PKG_VERSION")),
            go_version: "",
            major: env!("CARGO_PKG_VERSION_MAJOR"),
            minor: env!("CARGO_PKG_VERSION_MINOR"),
            platform: format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

/// Returns the label of a family.
pub(super) const fn by(family: Family) -> ByFamily {
    ByFamily { ip_family: family.as_str() }
}
