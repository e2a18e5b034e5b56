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

/// Returns the label of a family.
pub(super) const fn by(family: Family) -> ByFamily {
    ByFamily { ip_family: family.as_str() }
}
