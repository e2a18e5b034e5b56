//! What manifests hold, checked object by object and against each other; what is invalid is left out alone.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::num::NonZeroU16;

use ipnet::IpNet;

use super::{
    Admission, Cluster, Invalid, Node, Protocol, Service, ServiceName, Slice, SliceName, parse_cidr,
};
use crate::source::{Manifest, Object, Origin};

/// What manifests were found to hold.
#[derive(Debug, Default)]
pub struct Found {
    /// Every valid Node.
    pub nodes: Vec<Node>,
    /// Every valid Service that is to be proxied, in the order of the manifests.
    pub services: Vec<(ServiceName, Service)>,
    /// Every valid slice.
    pub slices: Vec<(SliceName, Slice)>,
    /// The networks of every ServiceCIDR, by name.
    pub service_cidrs: Vec<(String, Vec<IpNet>)>,
    /// What is valid but not proxied, and why: `Service demo/db: headless`.
    pub passed_over: Vec<String>,
    /// What is invalid, and left out.
    pub problems: Vec<Problem>,
    left_out: HashSet<ServiceName>,
    seen: HashMap<Seen, ServiceName>,
    names: HashSet<String>,
}

/// An object that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where its manifest is.
    pub origin: Origin,
    /// What is wrong with it.
    pub invalid: Invalid,
    /// The service that is left out for it.
    pub left_out: Option<ServiceName>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.origin, self.invalid)?;
        match &self.left_out {
            Some(service) => write!(f, " (service {service} is left out)"),
            None => Ok(()),
        }
    }
}

/// What two services cannot both have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Seen {
    Address(IpAddr, Protocol, NonZeroU16),
    NodePort(Protocol, NonZeroU16),
}

impl Found {
    /// Takes one object of a manifest.
    pub fn add(&mut self, manifest: Manifest) {
        let Manifest { object, origin } = manifest;
        match object {
            Object::Service(object) => match Service::from_api(&object) {
                Ok((name, admission)) => self.add_service(name, admission, origin),
                Err(invalid) => {
                    let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
                    let name = ServiceName::new(namespace, object.metadata.name.as_deref().unwrap_or(""));
                    self.leave_out(origin, invalid, name);
                }
            },
            Object::EndpointSlice(object) => match Slice::from_api(&object) {
                Ok((name, Admission::Accepted(slice))) => self.add_slice(name, slice, origin),
                Ok((name, Admission::PassedOver(why))) => {
                    self.passed_over.push(format!("EndpointSlice {name}: {why}"));
                }
                Err(invalid) => self.leave_out(origin, invalid, Slice::owner(&object)),
            },
            Object::Node(object) => match Node::from_api(&object) {
                Ok(node) => self.nodes.push(node),
                Err(invalid) => self.leave_out(origin, invalid, None),
            },
            Object::ServiceCidr(object) => {
                let name = object.metadata.name.unwrap_or_default();
                let texts = object.spec.and_then(|spec| spec.cidrs).unwrap_or_default();
                self.add_service_cidr(name, &texts, origin);
            }
        }
    }

    /// The cluster that the manifests describe, seen from `node`; services with a problem are not in it.
    #[must_use]
    pub fn into_cluster(self, node: Node) -> (Cluster, Vec<Problem>) {
        let mut cluster = Cluster::new(node);
        for (name, service) in self.services {
            if !self.left_out.contains(&name) {
                cluster.set_service(&name, Some(service));
            }
        }
        for (name, slice) in self.slices {
            if !self.left_out.contains(&slice.service) {
                cluster.set_slice(&name, Some(slice));
            }
        }
        for (name, cidrs) in self.service_cidrs {
            cluster.set_service_cidr(&name, &cidrs);
        }
        (cluster, self.problems)
    }

    fn add_service(&mut self, name: ServiceName, admission: Admission<Service>, origin: Origin) {
        let invalid = |field: &str, reason| Invalid {
            object: format!("Service {name}"),
            field: field.to_owned(),
            reason,
        };
        if !self.names.insert(format!("Service {name}")) {
            let invalid =
                invalid("metadata.name", "duplicate: the first manifest of this name is used".to_owned());
            self.problems.push(Problem { origin, invalid, left_out: None });
            return;
        }
        let service = match admission {
            Admission::Accepted(service) => service,
            Admission::PassedOver(why) => {
                self.passed_over.push(format!("Service {name}: {why}"));
                return;
            }
        };
        let claims = claims(&service);
        if let Some((field, owner)) =
            claims.iter().find_map(|(field, seen)| Some((field, self.seen.get(seen)?)))
        {
            let invalid = invalid(field, format!("duplicate: Service {owner} has it already"));
            self.leave_out(origin, invalid, Some(name));
            return;
        }
        self.seen.extend(claims.into_iter().map(|(_, seen)| (seen, name.clone())));
        self.services.push((name, service));
    }

    fn add_slice(&mut self, name: SliceName, slice: Slice, origin: Origin) {
        if self.names.insert(format!("EndpointSlice {name}")) {
            self.slices.push((name, slice));
            return;
        }
        let invalid = Invalid {
            object: format!("EndpointSlice {name} of Service {}", slice.service),
            field: "metadata.name".to_owned(),
            reason: "duplicate: the first manifest of this name is used".to_owned(),
        };
        self.problems.push(Problem { origin, invalid, left_out: None });
    }

    fn add_service_cidr(&mut self, name: String, texts: &[String], origin: Origin) {
        let mut cidrs = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            match parse_cidr(text) {
                Some(cidr) => cidrs.push(cidr),
                None => {
                    let invalid = Invalid {
                        object: format!("ServiceCIDR {name}"),
                        field: format!("spec.cidrs[{index}]"),
                        reason: format!("{text:?} is not a CIDR"),
                    };
                    return self.leave_out(origin, invalid, None);
                }
            }
        }
        self.service_cidrs.push((name, cidrs));
    }

    fn leave_out(&mut self, origin: Origin, invalid: Invalid, service: Option<ServiceName>) {
        if let Some(service) = &service {
            self.left_out.insert(service.clone());
        }
        self.problems.push(Problem { origin, invalid, left_out: service });
    }
}

/// What a service claims for itself alone, with the field that says so.
fn claims(service: &Service) -> Vec<(String, Seen)> {
    let cluster_ips = service.cluster_ips.iter().flatten().map(|ip| ("spec.clusterIPs", *ip));
    let external = service.external_ips.iter().map(|ip| ("spec.externalIPs", *ip));
    let balancers = service.load_balancer_ips.iter().map(|ip| ("status.loadBalancer.ingress", *ip));
    let addresses: Vec<_> = cluster_ips.chain(external).chain(balancers).collect();
    let mut claims = Vec::new();
    for (index, port) in service.ports.iter().enumerate() {
        for (field, ip) in &addresses {
            let text = format!("{field} {ip} port {}/{}", port.port, port.protocol);
            claims.push((text, Seen::Address(*ip, port.protocol, port.port)));
        }
        if let Some(node_port) = port.node_port {
            let text = format!("spec.ports[{index}].nodePort {node_port}/{}", port.protocol);
            claims.push((text, Seen::NodePort(port.protocol, node_port)));
        }
    }
    claims
}
