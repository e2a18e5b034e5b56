//! A Node of the API, checked and reduced to what a proxy needs.

use k8s_openapi::api::core::v1 as api;

use crate::{Invalid, Node, parse_cidr, parse_ip};

impl Node {
    /// Checks and reduces a Node of the API. Host names among its addresses are passed over. Returns with it
    /// the addresses and networks that are invalid, and left out.
    #[must_use]
    pub fn from_api(object: &api::Node) -> (Self, Vec<Invalid>) {
        let mut left_out = Vec::new();
        let name = object.metadata.name.clone().unwrap_or_default();
        let invalid = |field: String, reason: String| Invalid {
            object: format!("Node {}", name.escape_debug()),
            field,
            reason,
        };
        let mut addresses = Vec::new();
        for kind in ["InternalIP", "ExternalIP"] {
            let listed =
                object.status.as_ref().and_then(|status| status.addresses.as_deref()).unwrap_or_default();
            for (index, address) in listed.iter().enumerate().filter(|(_, address)| address.type_ == kind) {
                match parse_ip(&address.address) {
                    Some(ip) => addresses.push(ip),
                    None => left_out.push(invalid(
                        format!("status.addresses[{index}]"),
                        format!("expected an IP address, found {:?}", address.address),
                    )),
                }
            }
        }
        let spec = object.spec.clone().unwrap_or_default();
        // `podCIDR` is the first of `podCIDRs`; an old manifest may have it alone.
        let texts =
            spec.pod_cidrs.filter(|list| !list.is_empty()).unwrap_or_else(|| Vec::from_iter(spec.pod_cidr));
        let mut pod_cidrs = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            match parse_cidr(text) {
                Some(cidr) => pod_cidrs.push(cidr),
                None => left_out.push(invalid(
                    format!("spec.podCIDRs[{index}]"),
                    format!("expected a CIDR, found {text:?}"),
                )),
            }
        }
        let zone = object.metadata.labels.as_ref().and_then(|labels| labels.get(ZONE_LABEL)).cloned();
        let tainted = spec.taints.iter().flatten().any(|taint| taint.key == AUTOSCALER_TAINT);
        let is_leaving = tainted || object.metadata.deletion_timestamp.is_some();
        let zone = zone.filter(|zone| !zone.is_empty());
        (Self { name, addresses, zone, pod_cidrs, is_leaving }, left_out)
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
        let is_leaving = |object: &api::Node| Node::from_api(object).0.is_leaving;
        assert!(!is_leaving(&object));
        let taint = |key: &str| Taint { key: key.to_owned(), ..Taint::default() };
        object.spec = Some(api::NodeSpec { taints: Some(vec![taint("other")]), ..api::NodeSpec::default() });
        assert!(!is_leaving(&object));
        object.spec =
            Some(api::NodeSpec { taints: Some(vec![taint(AUTOSCALER_TAINT)]), ..api::NodeSpec::default() });
        assert!(is_leaving(&object));
    }

    #[test]
    fn a_bad_address_or_network_is_named_and_left_out_alone() {
        let mut object = api::Node::default();
        object.metadata.name = Some("n".to_owned());
        let address =
            |text: &str| api::NodeAddress { type_: "InternalIP".to_owned(), address: text.to_owned() };
        let addresses = Some(vec![address("10.0.0"), address("10.0.0.1")]);
        object.status = Some(api::NodeStatus { addresses, ..api::NodeStatus::default() });
        let pod_cidrs = Some(vec!["10.1.0.0/24".to_owned(), "10.2".to_owned()]);
        object.spec = Some(api::NodeSpec { pod_cidrs, ..api::NodeSpec::default() });
        let (node, left_out) = Node::from_api(&object);
        assert_eq!((node.addresses.len(), node.pod_cidrs.len()), (1, 1));
        let left_out: Vec<_> = left_out.iter().map(ToString::to_string).collect();
        assert_eq!(
            left_out,
            [
                "Node n: status.addresses[0]: expected an IP address, found \"10.0.0\"",
                "Node n: spec.podCIDRs[1]: expected a CIDR, found \"10.2\"",
            ]
        );
    }
}
