//! What a cluster keeps of an object of the API: the one way from objects to a [`Cluster`], for manifests that
//! are read once as for a source that is followed.
//!
//! An invalid item is left out by itself, and so is an object that has nothing valid to use.

use std::fmt;

use ipnet::IpNet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sluicegate_services::{
    Admission, Cluster, Converted, Invalid, Node, NotServed, Service, ServiceName, Slice, SliceName,
    parse_cidr,
};

use super::Object;

/// An object of the API, validated item by item.
#[derive(Debug)]
pub(crate) struct Validated {
    /// What a cluster keeps of it. `None` where not even its name is valid, so that no cluster can have it.
    pub(crate) entry: Option<Entry>,
    /// Why it is not proxied, where it is valid and for somebody else.
    pub(crate) ignored: Option<&'static str>,
    /// What is invalid.
    pub(crate) left_out: Vec<LeftOut>,
}

/// What a cluster keeps of an object. Without a value, it keeps nothing but what cannot be served.
#[derive(Debug)]
pub(crate) enum Entry {
    /// Of a Service.
    Service { name: ServiceName, service: Option<Box<Service>>, not_served: Vec<NotServed> },
    /// Of an EndpointSlice.
    Slice { name: SliceName, slice: Option<Slice> },
    /// Of a Node.
    Node(Box<Node>),
    /// Of a ServiceCIDR.
    ServiceCidr { name: String, cidrs: Vec<IpNet> },
}

/// An object, or an item of one, that is left out. Displays as what is wrong with it, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// What is wrong with it.
    pub(crate) invalid: Invalid,
    /// The service that is left out as a whole because of it.
    pub(crate) service: Option<ServiceName>,
}

impl Validated {
    /// Validates an object.
    pub(crate) fn of(object: &Object) -> Self {
        match object {
            Object::Service(object) => match Service::from_api(object) {
                Ok(Converted { name, admission, left_out, not_served }) => {
                    let (service, ignored) = parts(admission);
                    let entry = Entry::Service { name, service: service.map(Box::new), not_served };
                    Self::new(Some(entry), ignored, left_out)
                }
                Err(invalid) => {
                    let name = service_name(&object.metadata, object.metadata.name.as_deref());
                    let entry = name.clone().map(Entry::no_service);
                    Self { entry, ignored: None, left_out: vec![LeftOut { invalid, service: name }] }
                }
            },
            Object::EndpointSlice(object) => match Slice::from_api(object) {
                Ok(Converted { name, admission, left_out, .. }) => {
                    let (slice, ignored) = parts(admission);
                    Self::new(Some(Entry::Slice { name, slice }), ignored, left_out)
                }
                Err(invalid) => {
                    let name = object.metadata.name.as_deref().unwrap_or_default();
                    let entry = Entry::no_slice(namespace(&object.metadata), name);
                    Self::new(Some(entry), None, vec![invalid])
                }
            },
            Object::Node(object) => {
                let (node, left_out) = Node::from_api(object);
                Self::new(Some(Entry::Node(Box::new(node))), None, left_out)
            }
            Object::ServiceCidr(object) => {
                let name = object.metadata.name.clone().unwrap_or_default();
                let texts = object.spec.as_ref().and_then(|spec| spec.cidrs.as_deref()).unwrap_or_default();
                let (cidrs, left_out) = networks(&name, texts);
                Self::new(Some(Entry::ServiceCidr { name, cidrs }), None, left_out)
            }
        }
    }

    fn new(entry: Option<Entry>, ignored: Option<&'static str>, items: Vec<Invalid>) -> Self {
        let left_out = items.into_iter().map(|invalid| LeftOut { invalid, service: None }).collect();
        Self { entry, ignored, left_out }
    }
}

impl Entry {
    /// Returns the entry of a Service that is not there, or not to be used.
    pub(crate) const fn no_service(name: ServiceName) -> Self {
        Self::Service { name, service: None, not_served: Vec::new() }
    }

    /// Returns the entry of an EndpointSlice that is not there, or not to be used.
    pub(crate) fn no_slice(namespace: &str, name: &str) -> Self {
        Self::Slice { name: SliceName { namespace: namespace.into(), name: name.into() }, slice: None }
    }

    /// Returns whether a cluster keeps nothing of it.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Service { service, not_served, .. } => service.is_none() && not_served.is_empty(),
            Self::Slice { slice, .. } => slice.is_none(),
            Self::ServiceCidr { cidrs, .. } => cidrs.is_empty(),
            Self::Node(_) => false,
        }
    }

    /// Puts it into the cluster, in place of what that has of this name. A node becomes the one from which the
    /// cluster is seen.
    pub(crate) fn put(self, cluster: &mut Cluster) {
        match self {
            Self::Service { name, service, not_served } => {
                cluster.set_not_served(&name, not_served);
                cluster.set_service(&name, service.map(|service| *service));
            }
            Self::Slice { name, slice } => cluster.set_slice(&name, slice),
            Self::Node(node) => cluster.set_node(*node),
            Self::ServiceCidr { name, cidrs } => cluster.set_service_cidr(&name, &cidrs),
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_left_out(f, &self.invalid, self.service.as_ref())
    }
}

/// Writes what is wrong, and what is left out because of it: an item, or a service as a whole.
pub(crate) fn write_left_out(
    f: &mut fmt::Formatter<'_>,
    invalid: &Invalid,
    service: Option<&ServiceName>,
) -> fmt::Result {
    write!(f, "{invalid}")?;
    match service {
        Some(service) => write!(f, " (service {service} is left out)"),
        None => f.write_str(" (left out)"),
    }
}

/// Returns the namespace of an object: `default` where it names none, as in the API.
fn namespace(metadata: &ObjectMeta) -> &str {
    metadata.namespace.as_deref().unwrap_or("default")
}

/// Returns the service of this name in the namespace of an object.
fn service_name(metadata: &ObjectMeta, name: Option<&str>) -> Option<ServiceName> {
    ServiceName::new(namespace(metadata), name.unwrap_or_default()).ok()
}

/// Returns the service that an object is about: itself, or the one that its slice belongs to.
#[cfg(feature = "daemon")]
pub(crate) fn service_of(object: &Object) -> Option<ServiceName> {
    match object {
        Object::Service(object) => service_name(&object.metadata, object.metadata.name.as_deref()),
        Object::EndpointSlice(object) => {
            let owner = object.metadata.labels.as_ref()?.get("kubernetes.io/service-name");
            service_name(&object.metadata, owner.map(String::as_str))
        }
        Object::Node(_) | Object::ServiceCidr(_) => None,
    }
}

fn parts<T>(admission: Admission<T>) -> (Option<T>, Option<&'static str>) {
    match admission {
        Admission::Accepted(value) => (Some(value), None),
        Admission::Ignored(why) => (None, Some(why)),
    }
}

/// Returns the valid networks of a ServiceCIDR, and the invalid ones.
fn networks(name: &str, texts: &[String]) -> (Vec<IpNet>, Vec<Invalid>) {
    let (mut cidrs, mut left_out) = (Vec::new(), Vec::new());
    for (index, text) in texts.iter().enumerate() {
        match parse_cidr(text) {
            Some(cidr) => cidrs.push(cidr),
            None => left_out.push(Invalid::new(
                format!("ServiceCIDR {name}"),
                format!("spec.cidrs[{index}]"),
                format!("expected a CIDR, found {text:?}"),
            )),
        }
    }
    (cidrs, left_out)
}
