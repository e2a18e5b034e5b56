//! Reads Kubernetes manifests in YAML into values of `sluicegate-services`, for tests.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::ServiceCIDR;
use serde::Deserialize as _;
use serde_yaml::Value;
use sluicegate_services::{Cluster, Converted, Node, Service, ServiceName, Slice, SliceName, parse_cidr};

/// The objects of a text, by kind.
#[derive(Debug, Default)]
pub(crate) struct Manifests {
    pub(crate) nodes: Vec<Node>,
    pub(crate) services: Vec<(ServiceName, Service)>,
    pub(crate) slices: Vec<(SliceName, Slice)>,
    service_cidrs: BTreeMap<String, Vec<ipnet::IpNet>>,
}

impl Manifests {
    /// Reads all documents. Panics on one that is not valid; ignores objects that are not proxied.
    pub(crate) fn read(text: &str) -> Self {
        let mut manifests = Self::default();
        for document in serde_yaml::Deserializer::from_str(text) {
            let value = Value::deserialize(document).expect("YAML");
            match value.get("items").and_then(Value::as_sequence) {
                Some(items) => items.iter().for_each(|item| manifests.add(item)),
                None => manifests.add(&value),
            }
        }
        manifests
    }

    /// Returns the cluster of the manifests, as seen from `node`.
    pub(crate) fn into_cluster(self, node: Node) -> Cluster {
        let mut cluster = Cluster::new(node);
        self.services.into_iter().for_each(|(name, service)| cluster.set_service(&name, service));
        self.slices.into_iter().for_each(|(name, slice)| cluster.set_slice(&name, slice));
        self.service_cidrs.iter().for_each(|(name, cidrs)| cluster.set_service_cidr(name, cidrs));
        cluster
    }

    fn add(&mut self, value: &Value) {
        match value.get("kind").and_then(Value::as_str) {
            Some("Service") => {
                let Converted { name, admission, .. } = Service::from_api(&typed(value)).expect("a Service");
                self.services.extend(admission.accepted().map(|service| (name, service)));
            }
            Some("EndpointSlice") => {
                let Converted { name, admission, .. } = Slice::from_api(&typed(value)).expect("a slice");
                self.slices.extend(admission.accepted().map(|slice| (name, slice)));
            }
            Some("Node") => self.nodes.push(Node::from_api(&typed(value)).0),
            Some("ServiceCIDR") => {
                let object: ServiceCIDR = typed(value);
                let texts = object.spec.and_then(|spec| spec.cidrs).unwrap_or_default();
                let cidrs = texts.iter().map(|text| parse_cidr(text).expect("a CIDR")).collect();
                self.service_cidrs.insert(object.metadata.name.unwrap_or_default(), cidrs);
            }
            kind => assert!(kind.is_some() || value.is_null(), "no kind: {value:?}"),
        }
    }
}

fn typed<T: for<'de> serde::Deserialize<'de>>(value: &Value) -> T {
    T::deserialize(value).expect("an object of the API")
}
