//! A Service of the API, checked and reduced to what a proxy needs.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::time::{Duration, SystemTime};

use ipnet::IpNet;
use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Admission, Converted};
use crate::address::is_link_local;
use crate::name::is_label;
use crate::service::Taken;
use crate::{
    Family, Invalid, NotServed, Port, Protocol, Scheduler, Service, ServiceName, Slots, UnknownScheduler,
    parse_cidr, parse_ip,
};

impl Service {
    /// Checks and reduces a Service of the API.
    ///
    /// Passed over are headless services, `ExternalName`, those without a cluster IP, and those with the
    /// label `service.kubernetes.io/service-proxy-name` (another proxy's).
    ///
    /// An invalid item is left out alone: an address, a port, the node port of a port, a policy (which is
    /// then `Cluster`, or no session affinity), a time-out (which is then the default), a scheduler
    /// ([`Scheduler::ANNOTATION`], which is then `random`). Where a source range
    /// is invalid, the load balancer's addresses admit the valid ones, and nobody if there are none.
    ///
    /// # Errors
    /// [`Invalid`] names the object, the field and what is wrong, where nothing can be proxied: no valid
    /// name, no `spec`, no valid cluster IP.
    pub fn from_api(object: &api::Service) -> Result<Converted<ServiceName, Self>, Invalid> {
        let name = service_name(object)?;
        let mut fields = Fields { name: &name, left_out: Vec::new() };
        let labels = object.metadata.labels.as_ref();
        let Some(spec) = &object.spec else {
            return Err(fields.invalid("spec", "expected a mapping, found none"));
        };
        let ignored = |name, why| {
            let not_served = listed(spec, object.status.as_ref(), why);
            Ok(Converted { not_served, ..Converted::ignored(name, why) })
        };
        if labels.is_some_and(|l| l.contains_key(PROXY_NAME_LABEL)) {
            return ignored(name, "another service proxy is named by its label");
        }
        let kind = spec.type_.as_deref().unwrap_or("ClusterIP");
        let cluster_ip =
            spec.cluster_ip.as_deref().or_else(|| spec.cluster_ips.as_ref()?.first().map(String::as_str));
        match (kind, cluster_ip) {
            ("ExternalName", _) => return ignored(name, "ExternalName"),
            (_, Some("None")) => return ignored(name, "headless"),
            (_, None | Some("")) => return ignored(name, "no cluster IP"),
            ("ClusterIP" | "NodePort" | "LoadBalancer", _) => {}
            (other, _) => fields.leave_out(
                "spec.type",
                format!("expected ClusterIP, NodePort, LoadBalancer or ExternalName, found {other:?}"),
            ),
        }
        let service = fields.service(object, spec, kind)?;
        let left_out = fields.left_out;
        let mut not_served = behind_proxies(object.status.as_ref());
        let external = spec.external_ips.iter().flatten().filter_map(|text| parse_ip(text));
        let refused = external.filter(|ip| !service.external_ips.contains(ip));
        let why = "it is not an address that a service can have";
        not_served.extend(refused.map(|ip| NotServed { ip, field: "spec.externalIPs", why }));
        Ok(Converted { name, admission: Admission::Accepted(service), left_out, not_served })
    }
}

/// Returns the addresses of a service that is not for this proxy.
fn listed(spec: &api::ServiceSpec, status: Option<&api::ServiceStatus>, why: &'static str) -> Vec<NotServed> {
    let cluster_ips = spec.cluster_ips.iter().flatten().chain(&spec.cluster_ip);
    let external = spec.external_ips.iter().flatten();
    let balanced = ingress(status).iter().filter_map(|ingress| ingress.ip.as_ref());
    let texts = cluster_ips
        .map(|text| (text, "spec.clusterIPs"))
        .chain(external.map(|text| (text, "spec.externalIPs")))
        .chain(balanced.map(|text| (text, "status.loadBalancer.ingress")));
    let mut found: Vec<NotServed> = Vec::new();
    for (text, field) in texts {
        if let Some(ip) = parse_ip(text).filter(|ip| !found.iter().any(|other| other.ip == *ip)) {
            found.push(NotServed { ip, field, why });
        }
    }
    found
}

/// Returns the addresses of load balancers that take the traffic themselves, wherever it comes from.
fn behind_proxies(status: Option<&api::ServiceStatus>) -> Vec<NotServed> {
    let of_proxy = |ingress: &api::LoadBalancerIngress| {
        let ip = parse_ip(ingress.ip.as_deref()?)?;
        let is_proxy = ingress.ip_mode.as_deref() == Some("Proxy");
        let why = "its ipMode is Proxy: packets go to the load balancer itself, whose address it is";
        is_proxy.then_some(NotServed { ip, field: "status.loadBalancer.ingress", why })
    };
    ingress(status).iter().filter_map(of_proxy).collect()
}

fn ingress(status: Option<&api::ServiceStatus>) -> &[api::LoadBalancerIngress] {
    status.and_then(|s| s.load_balancer.as_ref()?.ingress.as_deref()).unwrap_or_default()
}

fn service_name(object: &api::Service) -> Result<ServiceName, Invalid> {
    let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
    let name = object.metadata.name.as_deref().unwrap_or("");
    ServiceName::new(namespace, name).map_err(|error| Invalid {
        object: format!("Service {namespace:?}/{name:?}"),
        field: "metadata".to_owned(),
        reason: error.to_string(),
    })
}

/// Reads fields, and notes the invalid items.
struct Fields<'a> {
    name: &'a ServiceName,
    left_out: Vec<Invalid>,
}

impl Fields<'_> {
    fn service(
        &mut self,
        object: &api::Service,
        spec: &api::ServiceSpec,
        kind: &str,
    ) -> Result<Service, Invalid> {
        let external_ips = self.external_ips(spec.external_ips.as_deref().unwrap_or_default());
        // As kube-proxy decides it: a service of an unknown type is not accessible by its type.
        let by_type = matches!(kind, "NodePort" | "LoadBalancer")
            || (kind == "ClusterIP" && spec.external_ips.as_ref().is_some_and(|ips| !ips.is_empty()));
        let local = self.policy("spec.externalTrafficPolicy", spec.external_traffic_policy.as_deref());
        let ranges = spec.load_balancer_source_ranges.as_deref().unwrap_or_default();
        let (source_ranges, source_ranges_incomplete) = self.source_ranges(ranges);
        let ports = self.ports(spec.ports.as_deref().unwrap_or_default());
        Ok(Service {
            cluster_ips: self.cluster_ips(spec)?,
            health_check_node_port: self
                .health_check(spec, &ports)
                .filter(|_| kind == "LoadBalancer" && local),
            ports,
            external_ips,
            forbidden_external_ips: Box::default(),
            load_balancer_ips: self.load_balancer_ips(object.status.as_ref()),
            source_ranges,
            source_ranges_incomplete,
            external_local: by_type && local,
            internal_local: self
                .policy("spec.internalTrafficPolicy", spec.internal_traffic_policy.as_deref()),
            affinity_seconds: self.affinity(spec),
            scheduler: self.scheduler(object),
            created: object.metadata.creation_timestamp.as_ref().map(|Time(time)| {
                let seconds = u64::try_from(time.timestamp()).unwrap_or_default();
                SystemTime::UNIX_EPOCH
                    + Duration::new(seconds, time.timestamp_subsec_nanos().min(LAST_NANOSECOND))
            }),
        })
    }

    /// Without `ipFamilies` only `clusterIP` counts; with it, `clusterIPs` at the family's place.
    fn cluster_ips(&mut self, spec: &api::ServiceSpec) -> Result<[Option<IpAddr>; 2], Invalid> {
        let mut ips = [None; 2];
        let plural = spec.cluster_ips.as_deref().unwrap_or_default();
        let families = spec.ip_families.as_deref().unwrap_or_default();
        if families.is_empty() {
            let (field, text) = match &spec.cluster_ip {
                Some(text) => ("spec.clusterIP", text.as_str()),
                None => ("spec.clusterIPs[0]", plural.first().map_or("", String::as_str)),
            };
            let ip = self.ip(field, text)?;
            ips[Family::of(ip) as usize] = Some(ip);
            return Ok(ips);
        }
        let mut first_problem = None;
        for (index, family) in families.iter().enumerate() {
            match self.cluster_ip_of(index, family, spec, &ips) {
                Ok(Some(ip)) => ips[Family::of(ip) as usize] = Some(ip),
                Ok(None) => {}
                Err(invalid) => {
                    first_problem.get_or_insert_with(|| invalid.clone());
                    self.left_out.push(invalid);
                }
            }
        }
        match first_problem {
            Some(invalid) if ips == [None; 2] => Err(invalid),
            _ => Ok(ips),
        }
    }

    /// Returns the cluster IP at one place of `ipFamilies`.
    fn cluster_ip_of(
        &self,
        index: usize,
        family: &str,
        spec: &api::ServiceSpec,
        before: &[Option<IpAddr>; 2],
    ) -> Result<Option<IpAddr>, Invalid> {
        let family = match family {
            "IPv4" => Family::Ipv4,
            "IPv6" => Family::Ipv6,
            other => {
                let field = format!("spec.ipFamilies[{index}]");
                return Err(self.invalid(&field, format!("expected IPv4 or IPv6, found {other:?}")));
            }
        };
        let plural = spec.cluster_ips.as_deref().unwrap_or_default();
        let text = plural.get(index).or(if index == 0 { spec.cluster_ip.as_ref() } else { None });
        let Some(text) = text else { return Ok(None) };
        let field = format!("spec.clusterIPs[{index}]");
        let ip = self.ip(&field, text)?;
        if Family::of(ip) != family {
            return Err(self.invalid(
                &field,
                format!("expected an {family} address, which spec.ipFamilies says, found {text:?}"),
            ));
        }
        if before[family as usize].is_some() {
            return Err(
                self.invalid("spec.ipFamilies", format!("expected each family once, found {family} twice"))
            );
        }
        Ok(Some(ip))
    }

    /// Reads the ports. Of two with the same name, or the same number, and protocol the first counts; of two
    /// with the same node port the second has none.
    fn ports(&mut self, ports: &[api::ServicePort]) -> Box<[Port]> {
        let mut read = Vec::with_capacity(ports.len());
        let mut taken = Taken::default();
        for (index, port) in ports.iter().enumerate() {
            let at = |field: &str| format!("spec.ports[{index}].{field}");
            match self.one_port(port, &at) {
                Ok(port) => match taken.take(&port) {
                    Ok(()) => read.push(port),
                    Err(duplicate) => {
                        let (field, reason) = (at(duplicate.field()), duplicate.to_string());
                        let only_node_port = duplicate.is_node_port();
                        self.leave_out(&field, reason);
                        if only_node_port {
                            read.push(Port { node_port: None, ..port });
                        }
                    }
                },
                Err(invalid) => self.left_out.push(invalid),
            }
        }
        read.into()
    }

    /// Reads the port of health checks, which no TCP port of the service may have as its node port: who asks
    /// for the health of this node would be sent to an endpoint, and that of any node.
    fn health_check(&mut self, spec: &api::ServiceSpec, ports: &[Port]) -> Option<NonZeroU16> {
        let field = "spec.healthCheckNodePort";
        let number = self.port(field, spec.health_check_node_port.unwrap_or(0))?;
        let is_taken = |port: &Port| port.protocol == Protocol::Tcp && port.node_port == Some(number);
        if ports.iter().any(is_taken) {
            self.leave_out(field, format!("duplicate of the node port {number}/tcp"));
            return None;
        }
        Some(number)
    }

    fn one_port(&mut self, port: &api::ServicePort, at: &dyn Fn(&str) -> String) -> Result<Port, Invalid> {
        let name = port.name.as_deref().unwrap_or("");
        if !name.is_empty() && !is_label(name) {
            return Err(self.invalid(&at("name"), format!("expected a DNS label, found {name:?}")));
        }
        let protocol = Protocol::from_api(port.protocol.as_deref()).ok_or_else(|| {
            let text = port.protocol.as_deref().unwrap_or("");
            self.invalid(&at("protocol"), format!("expected TCP, UDP or SCTP, found {text:?}"))
        })?;
        let number = self.number(&at("port"), port.port)?;
        Ok(Port {
            name: name.into(),
            protocol,
            port: number.ok_or_else(|| self.invalid(&at("port"), "expected a port (1 to 65535), found 0"))?,
            node_port: self.port(&at("nodePort"), port.node_port.unwrap_or(0)),
        })
    }

    fn load_balancer_ips(&mut self, status: Option<&api::ServiceStatus>) -> Box<[IpAddr]> {
        let mut ips = Vec::new();
        for (index, ingress) in ingress(status).iter().enumerate() {
            let field = format!("status.loadBalancer.ingress[{index}]");
            let Some(text) = ingress.ip.as_deref().filter(|ip| !ip.is_empty()) else { continue };
            match (self.ip(&format!("{field}.ip"), text), ingress.ip_mode.as_deref()) {
                (Ok(ip), None | Some("VIP")) => push_new(&mut ips, ip),
                (Ok(_), Some("Proxy")) => {}
                (Ok(_), Some(other)) => {
                    self.leave_out(
                        &format!("{field}.ipMode"),
                        format!("expected VIP or Proxy, found {other:?}"),
                    );
                }
                (Err(invalid), _) => self.left_out.push(invalid),
            }
        }
        ips.into()
    }

    /// Returns the valid ranges, and whether there are invalid ones.
    fn source_ranges(&mut self, ranges: &[String]) -> (Box<[IpNet]>, bool) {
        let mut valid = Vec::with_capacity(ranges.len());
        for (index, text) in ranges.iter().enumerate() {
            match parse_cidr(text.trim()) {
                Some(range) => valid.push(range),
                None => self.leave_out(
                    &format!("spec.loadBalancerSourceRanges[{index}]"),
                    format!("expected a CIDR, found {text:?}"),
                ),
            }
        }
        let is_incomplete = valid.len() < ranges.len();
        (valid.into(), is_incomplete)
    }

    fn affinity(&mut self, spec: &api::ServiceSpec) -> Option<u32> {
        match spec.session_affinity.as_deref() {
            None | Some("" | "None") => return None,
            Some("ClientIP") => {}
            Some(other) => {
                self.leave_out("spec.sessionAffinity", format!("expected ClientIP or None, found {other:?}"));
                return None;
            }
        }
        let client = spec.session_affinity_config.as_ref().and_then(|config| config.client_ip.as_ref());
        match client
            .and_then(|client| client.timeout_seconds)
            .map(|seconds| (seconds, u32::try_from(seconds)))
        {
            None => Some(DEFAULT_AFFINITY_SECONDS),
            Some((_, Ok(seconds @ 1..=MAX_AFFINITY_SECONDS))) => Some(seconds),
            Some((seconds, _)) => {
                self.leave_out(
                    "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
                    format!("expected 1 to {MAX_AFFINITY_SECONDS} seconds, found {seconds}"),
                );
                Some(DEFAULT_AFFINITY_SECONDS)
            }
        }
    }

    fn scheduler(&mut self, object: &api::Service) -> Option<Scheduler> {
        let annotations = object.metadata.annotations.as_ref()?;
        // A misspelt key would be as silent as one of another program.
        let of_ours = annotations.keys().filter(|key| key.starts_with(Scheduler::ANNOTATION_PREFIX));
        for key in of_ours.filter(|key| *key != Scheduler::ANNOTATION) {
            let reason = format!("there is no such annotation: expected {}", Scheduler::ANNOTATION);
            self.leave_out(&format!("metadata.annotations[{key}]"), reason);
        }
        let text = annotations.get(Scheduler::ANNOTATION)?;
        let of_service = |scheduler| match scheduler {
            Scheduler::Maglev(slots) if slots.get() > Slots::MAX_OF_SERVICE => {
                Err(UnknownScheduler::TooMany(slots.get()))
            }
            scheduler => Ok(scheduler),
        };
        Some(text.parse().and_then(of_service).unwrap_or_else(|error: UnknownScheduler| {
            let error = match error {
                UnknownScheduler::Slots(number) => UnknownScheduler::SlotsOfService(number),
                error => error,
            };
            self.leave_out(Scheduler::FIELD, format!("{error}; {} is used", Scheduler::Random));
            Scheduler::Random
        }))
    }

    fn policy(&mut self, field: &str, text: Option<&str>) -> bool {
        match text {
            None | Some("" | "Cluster") => false,
            Some("Local") => true,
            Some(other) => {
                self.leave_out(field, format!("expected Cluster or Local, found {other:?}"));
                false
            }
        }
    }

    fn external_ips(&mut self, texts: &[String]) -> Box<[IpAddr]> {
        let mut ips = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            let field = format!("spec.externalIPs[{index}]");
            match self.ip(&field, text) {
                // Who may write Services would take what pods ask of the node, as of 169.254.169.254.
                Ok(ip) if is_link_local(ip) => self
                    .leave_out(&field, format!("expected an address that is not link-local, found {text:?}")),
                Ok(ip) => push_new(&mut ips, ip),
                Err(invalid) => self.left_out.push(invalid),
            }
        }
        ips.into()
    }

    /// Reads the address of a frontend, which every packet to it has as its destination.
    fn ip(&self, field: &str, text: &str) -> Result<IpAddr, Invalid> {
        let ip = parse_ip(text)
            .ok_or_else(|| self.invalid(field, format!("expected an IP address, found {text:?}")))?;
        if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
            return Err(
                self.invalid(field, format!("expected a unicast address of a service, found {text:?}"))
            );
        }
        Ok(ip)
    }

    /// Converts a port number; 0 and invalid numbers mean none.
    fn port(&mut self, field: &str, number: i32) -> Option<NonZeroU16> {
        self.number(field, number).unwrap_or_else(|invalid| {
            self.left_out.push(invalid);
            None
        })
    }

    fn number(&self, field: &str, number: i32) -> Result<Option<NonZeroU16>, Invalid> {
        let number = u16::try_from(number)
            .map_err(|_| self.invalid(field, format!("expected a port (1 to 65535), found {number}")))?;
        Ok(NonZeroU16::new(number))
    }

    fn leave_out(&mut self, field: &str, reason: impl Into<String>) {
        let invalid = self.invalid(field, reason);
        self.left_out.push(invalid);
    }

    fn invalid(&self, field: &str, reason: impl Into<String>) -> Invalid {
        Invalid { object: format!("Service {}", self.name), field: field.to_owned(), reason: reason.into() }
    }
}

/// An address that is listed twice is one address.
fn push_new(ips: &mut Vec<IpAddr>, ip: IpAddr) {
    if !ips.contains(&ip) {
        ips.push(ip);
    }
}

/// Services that carry this label, whatever its value, belong to the proxy that it names.
const PROXY_NAME_LABEL: &str = "service.kubernetes.io/service-proxy-name";
/// The default that the API server fills in.
const DEFAULT_AFFINITY_SECONDS: u32 = 10800;
/// A day: the API server's limit.
const MAX_AFFINITY_SECONDS: u32 = 86400;
/// chrono gives more for a leap second.
const LAST_NANOSECOND: u32 = 999_999_999;

#[cfg(test)]
mod tests;
