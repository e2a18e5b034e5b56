//! This node: its name, its addresses, its zone, its pods' networks.

use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::core::v1 as api;

use super::{Family, Invalid, parse_cidr, parse_ip};

/// What a proxy needs to know of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The name by which endpoints refer to it.
    pub name: String,
    /// Its addresses, the internal ones first.
    pub addresses: Vec<IpAddr>,
    /// The value of its label `topology.kubernetes.io/zone`.
    pub zone: Option<String>,
    /// `spec.podCIDRs`.
    pub pod_cidrs: Vec<IpNet>,
    /// It is about to go (deleted, or tainted by the cluster autoscaler): load balancers should send it nothing new.
    pub is_leaving: bool,
}

impl Node {
    /// Checks and reduces a Node of the API. Host names among its addresses are passed over.
    ///
    /// # Errors
    /// [`Invalid`] names the node, the field and what is wrong.
    pub fn from_api(object: &api::Node) -> Result<Self, Invalid> {
        let name = object.metadata.name.clone().unwrap_or_default();
        let invalid =
            |field: String, reason: String| Invalid { object: format!("Node {name}"), field, reason };
        let mut addresses = Vec::new();
        for kind in ["InternalIP", "ExternalIP"] {
            let listed =
                object.status.as_ref().and_then(|status| status.addresses.as_deref()).unwrap_or_default();
            for (index, address) in listed.iter().enumerate().filter(|(_, address)| address.type_ == kind) {
                let ip = parse_ip(&address.address).ok_or_else(|| {
                    invalid(
                        format!("status.addresses[{index}]"),
                        format!("{:?} is not an IP address", address.address),
                    )
                })?;
                addresses.push(ip);
            }
        }
        let spec = object.spec.clone().unwrap_or_default();
        // `podCIDR` is the first of `podCIDRs`; an old manifest may have it alone.
        let texts =
            spec.pod_cidrs.filter(|list| !list.is_empty()).unwrap_or_else(|| Vec::from_iter(spec.pod_cidr));
        let mut pod_cidrs = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            let cidr = parse_cidr(text).ok_or_else(|| {
                invalid(format!("spec.podCIDRs[{index}]"), format!("{text:?} is not a CIDR"))
            })?;
            pod_cidrs.push(cidr);
        }
        let zone = object.metadata.labels.as_ref().and_then(|labels| labels.get(ZONE_LABEL)).cloned();
        let tainted = spec.taints.iter().flatten().any(|taint| taint.key == AUTOSCALER_TAINT);
        let is_leaving = tainted || object.metadata.deletion_timestamp.is_some();
        Ok(Self { name, addresses, zone: zone.filter(|zone| !zone.is_empty()), pod_cidrs, is_leaving })
    }

    /// The first address of a family: the one that other nodes and load balancers use.
    #[must_use]
    pub fn primary(&self, family: Family) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|ip| Family::of(*ip) == family)
    }
}

/// Set by the cluster autoscaler before it removes a node.
const AUTOSCALER_TAINT: &str = "ToBeDeletedByClusterAutoscaler";
const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Taint;

    use super::*;

    #[test]
    fn a_node_that_is_about_to_go_says_so() {
        let mut object = api::Node::default();
        let is_leaving = |object: &api::Node| Node::from_api(object).unwrap().is_leaving;
        assert!(!is_leaving(&object));
        let taint = |key: &str| Taint { key: key.to_owned(), ..Taint::default() };
        object.spec = Some(api::NodeSpec { taints: Some(vec![taint("other")]), ..api::NodeSpec::default() });
        assert!(!is_leaving(&object));
        object.spec =
            Some(api::NodeSpec { taints: Some(vec![taint(AUTOSCALER_TAINT)]), ..api::NodeSpec::default() });
        assert!(is_leaving(&object));
    }

    #[test]
    fn a_bad_address_is_named() {
        let mut object = api::Node::default();
        object.metadata.name = Some("n".to_owned());
        let address = api::NodeAddress { type_: "InternalIP".to_owned(), address: "10.0.0".to_owned() };
        object.status =
            Some(api::NodeStatus { addresses: Some(vec![address]), ..api::NodeStatus::default() });
        let error = Node::from_api(&object).unwrap_err().to_string();
        assert_eq!(error, "Node n: status.addresses[0]: \"10.0.0\" is not an IP address");
    }
}
