//! A Service as a proxy needs it, checked and reduced from the API's object.

use std::collections::HashSet;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use ipnet::IpNet;
use k8s_openapi::api::core::v1 as api;

use super::name::is_label;
use super::{Family, Invalid, Protocol, ServiceName, parse_cidr, parse_ip};

/// The configuration of one Service: all ports, both families.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The cluster IP of each family, IPv4 first.
    pub cluster_ips: [Option<IpAddr>; 2],
    /// The ports, in the manifest's order.
    pub ports: Box<[Port]>,
    /// `spec.externalIPs`, both families.
    pub external_ips: Box<[IpAddr]>,
    /// The load balancer's addresses that are to be handled here (`ipMode` VIP or absent), both families.
    pub load_balancer_ips: Box<[IpAddr]>,
    /// `spec.loadBalancerSourceRanges`, both families; what a /0 among them means is told by [`Service::source_ranges`].
    pub source_ranges: Box<[IpNet]>,
    /// `externalTrafficPolicy: Local` on a service that can be reached from outside by its type.
    pub external_local: bool,
    /// `internalTrafficPolicy: Local`.
    pub internal_local: bool,
    /// Seconds that a client stays with its endpoint; `None` without session affinity.
    pub affinity_seconds: Option<u32>,
    /// Where the load balancer asks whether this node has endpoints.
    pub health_check_node_port: Option<NonZeroU16>,
}

/// One port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name; empty when it has none.
    pub name: Arc<str>,
    /// Its protocol.
    pub protocol: Protocol,
    /// The port of the cluster IP, the external and load-balancer IPs.
    pub port: NonZeroU16,
    /// The port of the node's addresses.
    pub node_port: Option<NonZeroU16>,
}

/// What became of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission<T> {
    /// It is to be proxied.
    Accepted(T),
    /// It is valid but none of a service proxy's business; why.
    PassedOver(&'static str),
}

impl Service {
    /// Checks and reduces a Service of the API.
    ///
    /// Passed over are headless services, `ExternalName`, those without a cluster IP, and those with the label
    /// `service.kubernetes.io/service-proxy-name` (another proxy's).
    ///
    /// # Errors
    /// [`Invalid`] names the object, the field and what is wrong. A service with one wrong field is wrong as a whole.
    pub fn from_api(object: &api::Service) -> Result<(ServiceName, Admission<Self>), Invalid> {
        let name = service_name(object)?;
        let fields = Fields { name: &name };
        let labels = object.metadata.labels.as_ref();
        let Some(spec) = &object.spec else { return Err(fields.invalid("spec", "is missing")) };
        if labels.is_some_and(|l| l.contains_key(PROXY_NAME_LABEL)) {
            return Ok((name, Admission::PassedOver("another service proxy is named by its label")));
        }
        let kind = spec.type_.as_deref().unwrap_or("ClusterIP");
        let cluster_ip =
            spec.cluster_ip.as_deref().or_else(|| spec.cluster_ips.as_ref()?.first().map(String::as_str));
        match (kind, cluster_ip) {
            ("ExternalName", _) => return Ok((name, Admission::PassedOver("ExternalName"))),
            ("ClusterIP" | "NodePort" | "LoadBalancer", Some("None")) => {
                return Ok((name, Admission::PassedOver("headless")));
            }
            ("ClusterIP" | "NodePort" | "LoadBalancer", None | Some("")) => {
                return Ok((name, Admission::PassedOver("no cluster IP")));
            }
            ("ClusterIP" | "NodePort" | "LoadBalancer", Some(_)) => {}
            (other, _) => {
                return Err(fields.invalid("spec.type", format!("{other:?} is not a type of service")));
            }
        }
        let service = fields.service(object, spec, kind)?;
        Ok((name, Admission::Accepted(service)))
    }

    /// The source ranges of one family; empty means that every source is allowed, which one /0 says for all.
    pub fn source_ranges(&self, family: Family) -> impl Iterator<Item = &IpNet> + Clone {
        let of_family = self.source_ranges.iter().filter(move |net| Family::of_net(net) == family);
        let open = of_family.clone().any(|net| net.prefix_len() == 0);
        of_family.filter(move |_| !open)
    }

    /// The external IPs of one family.
    pub fn external_ips(&self, family: Family) -> impl Iterator<Item = IpAddr> + Clone {
        self.external_ips.iter().copied().filter(move |ip| Family::of(*ip) == family)
    }

    /// The load balancer's addresses of one family.
    pub fn load_balancer_ips(&self, family: Family) -> impl Iterator<Item = IpAddr> + Clone {
        self.load_balancer_ips.iter().copied().filter(move |ip| Family::of(*ip) == family)
    }

    /// The cluster IP of one family.
    #[must_use]
    pub fn cluster_ip(&self, family: Family) -> Option<IpAddr> {
        self.cluster_ips[family as usize]
    }
}

fn service_name(object: &api::Service) -> Result<ServiceName, Invalid> {
    let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
    let name = object.metadata.name.as_deref().unwrap_or("");
    ServiceName::new(namespace, name).ok_or_else(|| Invalid {
        object: format!("Service {namespace:?}/{name:?}"),
        field: "metadata".to_owned(),
        reason: "namespace and name must be DNS labels (a-z, 0-9 and -, at most 63)".to_owned(),
    })
}

/// Reads fields; every failure names the service.
struct Fields<'a> {
    name: &'a ServiceName,
}

impl Fields<'_> {
    fn service(
        &self,
        object: &api::Service,
        spec: &api::ServiceSpec,
        kind: &str,
    ) -> Result<Service, Invalid> {
        let external_ips =
            self.addresses("spec.externalIPs", spec.external_ips.as_deref().unwrap_or_default())?;
        let by_type = kind != "ClusterIP" || !external_ips.is_empty();
        let local = self.policy("spec.externalTrafficPolicy", spec.external_traffic_policy.as_deref())?;
        let health_check = self.port("spec.healthCheckNodePort", spec.health_check_node_port.unwrap_or(0))?;
        Ok(Service {
            cluster_ips: self.cluster_ips(spec)?,
            ports: self.ports(spec.ports.as_deref().unwrap_or_default())?,
            external_ips,
            load_balancer_ips: self.load_balancer_ips(object.status.as_ref())?,
            source_ranges: self
                .source_ranges(spec.load_balancer_source_ranges.as_deref().unwrap_or_default())?,
            external_local: by_type && local,
            internal_local: self
                .policy("spec.internalTrafficPolicy", spec.internal_traffic_policy.as_deref())?,
            affinity_seconds: self.affinity(spec)?,
            health_check_node_port: health_check.filter(|_| kind == "LoadBalancer" && local),
        })
    }

    /// Without `ipFamilies` only `clusterIP` counts; with it, `clusterIPs` at the family's place.
    fn cluster_ips(&self, spec: &api::ServiceSpec) -> Result<[Option<IpAddr>; 2], Invalid> {
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
        for (index, family) in families.iter().enumerate() {
            let family = match family.as_str() {
                "IPv4" => Family::V4,
                "IPv6" => Family::V6,
                other => {
                    return Err(
                        self.invalid(&format!("spec.ipFamilies[{index}]"), format!("{other:?} is no family"))
                    );
                }
            };
            let text = plural.get(index).or(if index == 0 { spec.cluster_ip.as_ref() } else { None });
            let Some(text) = text else { continue };
            let field = format!("spec.clusterIPs[{index}]");
            let ip = self.ip(&field, text)?;
            if Family::of(ip) != family {
                return Err(
                    self.invalid(&field, format!("{text:?} is not {family}, which spec.ipFamilies says"))
                );
            }
            if ips[family as usize].replace(ip).is_some() {
                return Err(self.invalid("spec.ipFamilies", format!("{family} comes twice")));
            }
        }
        Ok(ips)
    }

    fn ports(&self, ports: &[api::ServicePort]) -> Result<Box<[Port]>, Invalid> {
        let (mut names, mut numbers, mut node_ports) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut read = Vec::with_capacity(ports.len());
        for (index, port) in ports.iter().enumerate() {
            let at = |field: &str| format!("spec.ports[{index}].{field}");
            let parsed = self.one_port(port, &at)?;
            if !names.insert((Arc::clone(&parsed.name), parsed.protocol)) {
                return Err(self.invalid(&at("name"), format!("duplicate of {:?}", parsed.name)));
            }
            if !numbers.insert((parsed.port, parsed.protocol)) {
                return Err(
                    self.invalid(&at("port"), format!("duplicate of {}/{}", parsed.port, parsed.protocol))
                );
            }
            if let Some(node_port) = parsed.node_port
                && !node_ports.insert((node_port, parsed.protocol))
            {
                return Err(
                    self.invalid(&at("nodePort"), format!("duplicate of {node_port}/{}", parsed.protocol))
                );
            }
            read.push(parsed);
        }
        Ok(read.into())
    }

    fn one_port(&self, port: &api::ServicePort, at: &dyn Fn(&str) -> String) -> Result<Port, Invalid> {
        let name = port.name.as_deref().unwrap_or("");
        if !name.is_empty() && !is_label(name) {
            return Err(self.invalid(&at("name"), format!("{name:?} is not a DNS label")));
        }
        let protocol = Protocol::from_api(port.protocol.as_deref()).ok_or_else(|| {
            let text = port.protocol.as_deref().unwrap_or("");
            self.invalid(&at("protocol"), format!("{text:?} is not one of TCP, UDP, SCTP"))
        })?;
        let number = self.port(&at("port"), port.port)?;
        Ok(Port {
            name: name.into(),
            protocol,
            port: number.ok_or_else(|| self.invalid(&at("port"), "0 is not a port"))?,
            node_port: self.port(&at("nodePort"), port.node_port.unwrap_or(0))?,
        })
    }

    fn load_balancer_ips(&self, status: Option<&api::ServiceStatus>) -> Result<Box<[IpAddr]>, Invalid> {
        let ingress = status.and_then(|s| s.load_balancer.as_ref()?.ingress.as_deref()).unwrap_or_default();
        let mut ips = Vec::new();
        for (index, ingress) in ingress.iter().enumerate() {
            let field = format!("status.loadBalancer.ingress[{index}]");
            let Some(text) = ingress.ip.as_deref().filter(|ip| !ip.is_empty()) else { continue };
            let ip = self.ip(&format!("{field}.ip"), text)?;
            match ingress.ip_mode.as_deref() {
                None | Some("VIP") => push_new(&mut ips, ip),
                Some("Proxy") => {}
                Some(other) => {
                    return Err(self.invalid(&format!("{field}.ipMode"), format!("{other:?} is no mode")));
                }
            }
        }
        Ok(ips.into())
    }

    fn source_ranges(&self, ranges: &[String]) -> Result<Box<[IpNet]>, Invalid> {
        let parse = |(index, text): (usize, &String)| {
            parse_cidr(text.trim()).ok_or_else(|| {
                self.invalid(
                    &format!("spec.loadBalancerSourceRanges[{index}]"),
                    format!("{text:?} is not a CIDR"),
                )
            })
        };
        ranges.iter().enumerate().map(parse).collect()
    }

    fn affinity(&self, spec: &api::ServiceSpec) -> Result<Option<u32>, Invalid> {
        match spec.session_affinity.as_deref() {
            None | Some("" | "None") => return Ok(None),
            Some("ClientIP") => {}
            Some(other) => {
                return Err(
                    self.invalid("spec.sessionAffinity", format!("{other:?} is not ClientIP or None"))
                );
            }
        }
        let client = spec.session_affinity_config.as_ref().and_then(|config| config.client_ip.as_ref());
        let seconds = client.and_then(|client| client.timeout_seconds).unwrap_or(DEFAULT_AFFINITY_SECONDS);
        match u32::try_from(seconds) {
            Ok(seconds @ 1..=MAX_AFFINITY_SECONDS) => Ok(Some(seconds)),
            _ => Err(self.invalid(
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
                format!("{seconds} is not between 1 and {MAX_AFFINITY_SECONDS}"),
            )),
        }
    }

    fn policy(&self, field: &str, text: Option<&str>) -> Result<bool, Invalid> {
        match text {
            None | Some("" | "Cluster") => Ok(false),
            Some("Local") => Ok(true),
            Some(other) => Err(self.invalid(field, format!("{other:?} is not Cluster or Local"))),
        }
    }

    fn addresses(&self, field: &str, texts: &[String]) -> Result<Box<[IpAddr]>, Invalid> {
        let mut ips = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            push_new(&mut ips, self.ip(&format!("{field}[{index}]"), text)?);
        }
        Ok(ips.into())
    }

    fn ip(&self, field: &str, text: &str) -> Result<IpAddr, Invalid> {
        parse_ip(text).ok_or_else(|| self.invalid(field, format!("{text:?} is not an IP address")))
    }

    /// A port number; 0 stands for none.
    fn port(&self, field: &str, number: i32) -> Result<Option<NonZeroU16>, Invalid> {
        let number = u16::try_from(number)
            .map_err(|_| self.invalid(field, format!("{number} is not a port (1 to 65535)")))?;
        Ok(NonZeroU16::new(number))
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
/// What the API server fills in.
const DEFAULT_AFFINITY_SECONDS: i32 = 10800;
/// A day: the API server's limit.
const MAX_AFFINITY_SECONDS: u32 = 86400;

#[cfg(test)]
mod tests;
