//! The objects of manifests, validated one by one. An invalid item is left out by itself, and so is an object
//! that has nothing valid to use.

use std::collections::HashSet;

use ipnet::IpNet;

use sluicegate_services::{
    Admission, Cluster, Converted, Invalid, Node, NotServed, Service, ServiceName, Slice, SliceName,
    parse_cidr,
};

use super::{Manifest, Object, Origin};

/// The valid objects of manifests, and the problems of all.
#[derive(Debug, Default)]
pub struct Manifests {
    /// Every valid Node.
    pub nodes: Vec<Node>,
    /// Every valid Service that is to be proxied, in the order of the manifests.
    pub services: Vec<(ServiceName, Service)>,
    /// Every valid slice.
    pub slices: Vec<(SliceName, Slice)>,
    /// The networks of every ServiceCIDR, by name.
    pub service_cidrs: Vec<(String, Vec<IpNet>)>,
    /// The objects that are valid but not proxied, each with the reason: `Service demo/db: headless`.
    pub passed_over: Vec<String>,
    /// The addresses of valid Services that are not served.
    pub not_served: Vec<(ServiceName, Vec<NotServed>)>,
    /// The fields that objects have and their kinds have not, each with its place.
    pub unknown: Vec<String>,
    /// The objects and items of objects that are invalid, and left out.
    pub problems: Vec<Problem>,
    names: HashSet<String>,
}

/// An object, or an item of one, that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place of its manifest.
    pub origin: Origin,
    /// What is wrong with it.
    pub invalid: Invalid,
    /// The service that is left out as a whole because of it.
    pub left_out: Option<ServiceName>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.origin, self.invalid)?;
        match &self.left_out {
            Some(service) => write!(f, " (service {service} is left out)"),
            None => f.write_str(" (left out)"),
        }
    }
}

impl Manifests {
    /// Takes one object of a manifest.
    pub fn add(&mut self, manifest: Manifest) {
        let Manifest { object, origin, unknown } = manifest;
        let unknown = unknown.into_iter().map(|field| format!("{origin}: {field}: there is no such field"));
        self.unknown.extend(unknown);
        match object {
            Object::Service(object) => match Service::from_api(&object) {
                Ok(converted) => self.add_service(converted, &origin),
                Err(invalid) => {
                    let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
                    let name = ServiceName::new(namespace, object.metadata.name.as_deref().unwrap_or(""));
                    self.problems.push(Problem { origin, invalid, left_out: name.ok() });
                }
            },
            Object::EndpointSlice(object) => match Slice::from_api(&object) {
                Ok(converted) => self.add_slice(converted, &origin),
                Err(invalid) => self.leave_out(&origin, [invalid]),
            },
            Object::Node(object) => {
                let (node, left_out) = Node::from_api(&object);
                self.nodes.push(node);
                self.leave_out(&origin, left_out);
            }
            Object::ServiceCidr(object) => {
                let name = object.metadata.name.unwrap_or_default();
                let texts = object.spec.and_then(|spec| spec.cidrs).unwrap_or_default();
                let (cidrs, left_out) = service_cidrs(&name, &texts);
                self.service_cidrs.push((name, cidrs));
                self.leave_out(&origin, left_out);
            }
        }
    }

    /// Returns the cluster that the manifests describe, seen from `node`, and what was left out.
    #[must_use]
    pub fn into_cluster(self, node: Node) -> (Cluster, Vec<Problem>) {
        let mut cluster = Cluster::new(node);
        for (name, service) in self.services {
            cluster.set_service(&name, Some(service));
        }
        for (name, addresses) in self.not_served {
            cluster.set_not_served(&name, addresses);
        }
        for (name, slice) in self.slices {
            cluster.set_slice(&name, Some(slice));
        }
        for (name, cidrs) in self.service_cidrs {
            cluster.set_service_cidr(&name, &cidrs);
        }
        (cluster, self.problems)
    }

    fn add_service(&mut self, converted: Converted<ServiceName, Service>, origin: &Origin) {
        let Converted { name, admission, left_out, not_served } = converted;
        if !self.names.insert(format!("Service {name}")) {
            return self.leave_out(origin, [duplicate(format!("Service {name}"))]);
        }
        self.leave_out(origin, left_out);
        if !not_served.is_empty() {
            self.not_served.push((name.clone(), not_served));
        }
        match admission {
            Admission::Accepted(service) => self.services.push((name, service)),
            Admission::Ignored(why) => self.passed_over.push(format!("Service {name}: {why}")),
        }
    }

    fn add_slice(&mut self, converted: Converted<SliceName, Slice>, origin: &Origin) {
        let Converted { name, admission, left_out, .. } = converted;
        let slice = match admission {
            Admission::Accepted(slice) => slice,
            Admission::Ignored(why) => {
                self.passed_over.push(format!("EndpointSlice {name}: {why}"));
                return;
            }
        };
        if !self.names.insert(format!("EndpointSlice {name}")) {
            let object = format!("EndpointSlice {name} of Service {}", slice.service);
            return self.leave_out(origin, [duplicate(object)]);
        }
        self.leave_out(origin, left_out);
        self.slices.push((name, slice));
    }

    fn leave_out(&mut self, origin: &Origin, items: impl IntoIterator<Item = Invalid>) {
        let problem = |invalid| Problem { origin: origin.clone(), invalid, left_out: None };
        self.problems.extend(items.into_iter().map(problem));
    }
}

fn duplicate(object: String) -> Invalid {
    Invalid::new(object, "metadata.name", "duplicate: the first manifest of this name is used")
}

/// Returns the valid networks of a ServiceCIDR, and the invalid ones.
pub(crate) fn service_cidrs(name: &str, texts: &[String]) -> (Vec<IpNet>, Vec<Invalid>) {
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

#[cfg(test)]
mod tests;
