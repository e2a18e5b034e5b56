//! An EndpointSlice as a proxy needs it, checked and reduced from the API's object.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::discovery::v1 as api;
use k8s_openapi::chrono::DateTime;

use super::service::Admission;
use super::{Family, Invalid, Protocol, ServiceName, parse_ip};

/// `namespace` and `name` of an EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SliceName {
    /// The namespace, which is its service's too.
    pub namespace: Arc<str>,
    /// The name: a DNS subdomain, never part of a rule.
    pub name: Arc<str>,
}

impl std::fmt::Display for SliceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The endpoints that one slice contributes to a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Whose endpoints they are.
    pub service: ServiceName,
    /// The family of all addresses.
    pub family: Family,
    /// The ports that every endpoint has.
    pub ports: Box<[SlicePort]>,
    /// The endpoints.
    pub endpoints: Box<[SliceEndpoint]>,
    /// When what made the controller write this slice happened: its annotation
    /// `endpoints.kubernetes.io/last-change-trigger-time`, where it has a readable one.
    pub last_change: Option<SystemTime>,
}

/// A port of every endpoint of a slice; `name` and `protocol` say which Service port it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicePort {
    /// The Service port's name.
    pub name: Arc<str>,
    /// The Service port's protocol.
    pub protocol: Protocol,
    /// The port at the endpoint.
    pub port: NonZeroU16,
}

/// One address of a slice, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceEndpoint {
    /// The address.
    pub ip: IpAddr,
    /// The node that it runs on.
    pub node: Option<Arc<str>>,
    /// `ready`, which means true when absent.
    pub ready: bool,
    /// `serving`, which means true when absent.
    pub serving: bool,
    /// `terminating`, which means false when absent.
    pub terminating: bool,
    /// For whom it is meant; `None` when no hint is given.
    pub hints: Option<Arc<Hints>>,
}

/// The zones and nodes whose clients should use an endpoint. Empty lists mean that there is no hint of that level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// `hints.forZones`.
    pub zones: Box<[Box<str>]>,
    /// `hints.forNodes`.
    pub nodes: Box<[Box<str>]>,
}

impl Slice {
    /// Checks and reduces an EndpointSlice of the API.
    ///
    /// Passed over are slices without the label `kubernetes.io/service-name`, of headless services (label
    /// `service.kubernetes.io/headless`), and of domain names.
    ///
    /// # Errors
    /// [`Invalid`] names the slice, its service, the field and what is wrong.
    pub fn from_api(object: &api::EndpointSlice) -> Result<(SliceName, Admission<Self>), Invalid> {
        let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
        let name = object.metadata.name.as_deref().unwrap_or("");
        let slice_name = SliceName { namespace: namespace.into(), name: name.into() };
        let label =
            |key| object.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
        let Some(service) = label(SERVICE_NAME_LABEL).filter(|name| !name.is_empty()) else {
            return Ok((slice_name, Admission::PassedOver("no label kubernetes.io/service-name")));
        };
        if label(HEADLESS_LABEL).is_some() {
            return Ok((slice_name, Admission::PassedOver("headless")));
        }
        let fields = Fields { name: &slice_name, service };
        if name.is_empty() {
            return Err(fields.invalid("metadata.name", "is missing"));
        }
        let family = match object.address_type.as_str() {
            "IPv4" => Family::V4,
            "IPv6" => Family::V6,
            "FQDN" => return Ok((slice_name, Admission::PassedOver("addresses are domain names"))),
            other => {
                return Err(fields.invalid("addressType", format!("{other:?} is not IPv4, IPv6 or FQDN")));
            }
        };
        let owner = ServiceName::new(namespace, service).ok_or_else(|| {
            fields.invalid("metadata.labels", format!("{service:?} is not the name of a service"))
        })?;
        let ports = fields.ports(object.ports.as_deref().unwrap_or_default())?;
        let endpoints = fields.endpoints(&object.endpoints, family)?;
        let last_change = last_change(object);
        Ok((slice_name, Admission::Accepted(Self { service: owner, family, ports, endpoints, last_change })))
    }

    /// The service that an EndpointSlice of the API says it belongs to, valid otherwise or not.
    #[must_use]
    pub fn owner(object: &api::EndpointSlice) -> Option<ServiceName> {
        let service = object.metadata.labels.as_ref()?.get(SERVICE_NAME_LABEL)?;
        ServiceName::new(object.metadata.namespace.as_deref().unwrap_or("default"), service)
    }
}

struct Fields<'a> {
    name: &'a SliceName,
    service: &'a str,
}

impl Fields<'_> {
    /// A port without a number serves nothing; one without a name is unnamed, as the API server fills it in.
    fn ports(&self, ports: &[api::EndpointPort]) -> Result<Box<[SlicePort]>, Invalid> {
        let mut read = Vec::with_capacity(ports.len());
        for (index, port) in ports.iter().enumerate() {
            let protocol = Protocol::from_api(port.protocol.as_deref()).ok_or_else(|| {
                let text = port.protocol.as_deref().unwrap_or("");
                self.invalid(
                    &format!("ports[{index}].protocol"),
                    format!("{text:?} is not one of TCP, UDP, SCTP"),
                )
            })?;
            let number = port.port.unwrap_or(0);
            let number = u16::try_from(number).map_err(|_| {
                self.invalid(&format!("ports[{index}].port"), format!("{number} is not a port (1 to 65535)"))
            })?;
            if let Some(port_number) = NonZeroU16::new(number) {
                read.push(SlicePort {
                    name: port.name.as_deref().unwrap_or("").into(),
                    protocol,
                    port: port_number,
                });
            }
        }
        Ok(read.into())
    }

    fn endpoints(
        &self,
        endpoints: &[api::Endpoint],
        family: Family,
    ) -> Result<Box<[SliceEndpoint]>, Invalid> {
        let mut read = Vec::with_capacity(endpoints.len());
        for (index, endpoint) in endpoints.iter().enumerate() {
            let Some(text) = endpoint.addresses.first() else { continue };
            let field = format!("endpoints[{index}].addresses[0]");
            let ip = parse_ip(text)
                .ok_or_else(|| self.invalid(&field, format!("{text:?} is not an IP address")))?;
            if Family::of(ip) != family {
                return Err(self.invalid(&field, format!("{text:?} is not {family}, which addressType says")));
            }
            if ip.is_unspecified() || ip.is_multicast() {
                return Err(self.invalid(&field, format!("{text:?} is not the address of an endpoint")));
            }
            let conditions = endpoint.conditions.clone().unwrap_or_default();
            read.push(SliceEndpoint {
                ip,
                node: endpoint.node_name.as_deref().map(Arc::from),
                ready: conditions.ready.unwrap_or(true),
                serving: conditions.serving.unwrap_or(true),
                terminating: conditions.terminating.unwrap_or(false),
                hints: endpoint.hints.as_ref().and_then(hints),
            });
        }
        Ok(read.into())
    }

    fn invalid(&self, field: &str, reason: impl Into<String>) -> Invalid {
        Invalid {
            object: format!(
                "EndpointSlice {} of Service {}/{}",
                self.name, self.name.namespace, self.service
            ),
            field: field.to_owned(),
            reason: reason.into(),
        }
    }
}

/// The time of the annotation. It is only measured with: one that cannot be read is none, and the slice is used all the same.
fn last_change(object: &api::EndpointSlice) -> Option<SystemTime> {
    let text = object.metadata.annotations.as_ref()?.get(LAST_CHANGE_ANNOTATION)?;
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    let seconds = u64::try_from(time.timestamp()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, time.timestamp_subsec_nanos()))
}

fn hints(hints: &api::EndpointHints) -> Option<Arc<Hints>> {
    let zones: Box<[_]> = hints.for_zones.iter().flatten().map(|zone| zone.name.as_str().into()).collect();
    let nodes: Box<[_]> = hints.for_nodes.iter().flatten().map(|node| node.name.as_str().into()).collect();
    (!zones.is_empty() || !nodes.is_empty()).then(|| Arc::new(Hints { zones, nodes }))
}

/// Names the Service whose endpoints a slice holds.
const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";
/// On slices of headless services, whatever its value.
const HEADLESS_LABEL: &str = "service.kubernetes.io/headless";
/// When a pod or service changed that made a controller write the slice, in the form of RFC 3339.
const LAST_CHANGE_ANNOTATION: &str = "endpoints.kubernetes.io/last-change-trigger-time";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_last_change_is_read_and_a_bad_one_is_none() {
        let mut object =
            api::EndpointSlice { address_type: "IPv4".to_owned(), ..api::EndpointSlice::default() };
        object.metadata.name = Some("web-1".to_owned());
        object.metadata.labels = Some([(SERVICE_NAME_LABEL.to_owned(), "web".to_owned())].into());
        let mut read = |text: &str| {
            object.metadata.annotations = Some([(LAST_CHANGE_ANNOTATION.to_owned(), text.to_owned())].into());
            match Slice::from_api(&object).unwrap().1 {
                Admission::Accepted(slice) => slice.last_change,
                Admission::PassedOver(why) => panic!("{why}"),
            }
        };
        let epoch = |millis| Some(SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
        assert_eq!(read("1970-01-01T00:00:01Z"), epoch(1000));
        assert_eq!(read("1970-01-01T01:00:01.25+01:00"), epoch(1250));
        assert_eq!(read("yesterday"), None);
    }
}
