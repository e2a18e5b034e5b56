//! An EndpointSlice of the API, checked and reduced to what a proxy needs.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::discovery::v1 as api;
use k8s_openapi::chrono::DateTime;

use super::{Admission, Converted};
use crate::slice::check_address;
use crate::{
    Family, Hints, Invalid, Protocol, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort, parse_ip,
};

impl Slice {
    /// Checks and reduces an EndpointSlice of the API.
    ///
    /// Passed over are slices without the label `kubernetes.io/service-name`, of headless services (label
    /// `service.kubernetes.io/headless`), and of domain names.
    ///
    /// An endpoint or port that is invalid is left out alone.
    ///
    /// # Errors
    /// [`Invalid`] names the slice, its service, the field and what is wrong, where nothing of it can be
    /// used: no name, no valid address type, no valid service.
    pub fn from_api(object: &api::EndpointSlice) -> Result<Converted<SliceName, Self>, Invalid> {
        let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
        let name = object.metadata.name.as_deref().unwrap_or("");
        let slice_name = SliceName { namespace: namespace.into(), name: name.into() };
        let label =
            |key| object.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
        let Some(service) = label(SERVICE_NAME_LABEL).filter(|name| !name.is_empty()) else {
            return Ok(Converted::ignored(slice_name, "no label kubernetes.io/service-name"));
        };
        if label(HEADLESS_LABEL).is_some() {
            return Ok(Converted::ignored(slice_name, "headless"));
        }
        let mut fields = Fields { name: &slice_name, service, left_out: Vec::new() };
        if name.is_empty() {
            return Err(fields.invalid("metadata.name", "expected a name, found none"));
        }
        let family = match object.address_type.as_str() {
            "IPv4" => Family::Ipv4,
            "IPv6" => Family::Ipv6,
            "FQDN" => return Ok(Converted::ignored(slice_name, "addresses are domain names")),
            other => {
                return Err(
                    fields.invalid("addressType", format!("expected IPv4, IPv6 or FQDN, found {other:?}"))
                );
            }
        };
        let owner = ServiceName::new(namespace, service).map_err(|_| {
            fields.invalid("metadata.labels", format!("expected the name of a service, found {service:?}"))
        })?;
        let ports = fields.ports(object.ports.as_deref().unwrap_or_default());
        let endpoints = fields.endpoints(&object.endpoints, family);
        let (last_change, left_out) = (last_change(object), fields.left_out);
        let admission = Admission::Accepted(Self { service: owner, family, ports, endpoints, last_change });
        Ok(Converted { name: slice_name, admission, left_out, not_served: Vec::new() })
    }
}

/// Reads fields, and notes the invalid items.
struct Fields<'a> {
    name: &'a SliceName,
    service: &'a str,
    left_out: Vec<Invalid>,
}

impl Fields<'_> {
    /// A port without a number serves nothing; one without a name is unnamed, as the API server fills it in.
    fn ports(&mut self, ports: &[api::EndpointPort]) -> Box<[SlicePort]> {
        let mut read = Vec::with_capacity(ports.len());
        for (index, port) in ports.iter().enumerate() {
            match self.port(index, port) {
                Ok(port) => read.extend(port),
                Err(invalid) => self.left_out.push(invalid),
            }
        }
        read.into()
    }

    fn port(&self, index: usize, port: &api::EndpointPort) -> Result<Option<SlicePort>, Invalid> {
        let protocol = Protocol::from_api(port.protocol.as_deref()).ok_or_else(|| {
            let text = port.protocol.as_deref().unwrap_or("");
            let reason = format!("expected TCP, UDP or SCTP, found {text:?}");
            self.invalid(&format!("ports[{index}].protocol"), reason)
        })?;
        // All ports, by the API; like kube-proxy we serve none of them.
        let Some(number) = port.port else { return Ok(None) };
        let port_number = u16::try_from(number).ok().and_then(NonZeroU16::new).ok_or_else(|| {
            self.invalid(
                &format!("ports[{index}].port"),
                format!("expected a port (1 to 65535), found {number}"),
            )
        })?;
        let name = port.name.as_deref().unwrap_or("").into();
        Ok(Some(SlicePort { name, protocol, port: port_number }))
    }

    fn endpoints(&mut self, endpoints: &[api::Endpoint], family: Family) -> Box<[SliceEndpoint]> {
        let mut read = Vec::with_capacity(endpoints.len());
        for (index, endpoint) in endpoints.iter().enumerate() {
            let Some(text) = endpoint.addresses.first() else { continue };
            let ip = match self.address(index, text, family) {
                Ok(ip) => ip,
                Err(invalid) => {
                    self.left_out.push(invalid);
                    continue;
                }
            };
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
        read.into()
    }

    fn address(&self, index: usize, text: &str, family: Family) -> Result<IpAddr, Invalid> {
        let field = format!("endpoints[{index}].addresses[0]");
        let ip = parse_ip(text)
            .ok_or_else(|| self.invalid(&field, format!("expected an IP address, found {text:?}")))?;
        check_address(ip, family).map_err(|wrong| self.invalid(&field, wrong.to_string()))?;
        Ok(ip)
    }

    fn invalid(&self, field: &str, reason: impl Into<String>) -> Invalid {
        Invalid {
            object: format!(
                "EndpointSlice {} of Service {}/{}",
                self.name,
                self.name.namespace.escape_debug(),
                self.service.escape_debug()
            ),
            field: field.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Returns the time of the annotation. It is only measured with: one that cannot be read is none, and the
/// slice is used all the same.
fn last_change(object: &api::EndpointSlice) -> Option<SystemTime> {
    let text = object.metadata.annotations.as_ref()?.get(LAST_CHANGE_ANNOTATION)?;
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    let seconds = u64::try_from(time.timestamp()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, time.timestamp_subsec_nanos()))
}

fn hints(hints: &api::EndpointHints) -> Option<Arc<Hints>> {
    let zones: Box<[_]> = hints.for_zones.iter().flatten().map(|zone| zone.name.as_str().into()).collect();
    // `forNodes` came with Kubernetes 1.33; objects of an older API have no such hints.
    #[rustfmt::skip]
    k8s_openapi::k8s_if_ge_1_33! {
        let nodes: Box<[_]> = hints.for_nodes.iter().flatten().map(|node| node.name.as_str().into()).collect();
    }
    k8s_openapi::k8s_if_le_1_32! {
        let nodes: Box<[Box<str>]> = Box::default();
    }
    (!zones.is_empty() || !nodes.is_empty()).then(|| Arc::new(Hints { zones, nodes }))
}

/// The label with the name of the Service to which the endpoints of a slice belong.
const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";
/// On slices of headless services, whatever its value.
const HEADLESS_LABEL: &str = "service.kubernetes.io/headless";
/// The annotation with the time of the change that triggered the slice, in the form of RFC 3339.
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
            Slice::from_api(&object).unwrap().admission.accepted().unwrap().last_change
        };
        let epoch = |millis| Some(SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
        assert_eq!(read("1970-01-01T00:00:01Z"), epoch(1000));
        assert_eq!(read("1970-01-01T01:00:01.25+01:00"), epoch(1250));
        assert_eq!(read("yesterday"), None);
    }

    #[test]
    fn an_invalid_endpoint_or_port_is_left_out_alone() {
        let text = "metadata: {namespace: demo, name: web-1, labels: {kubernetes.io/service-name: web}}\n\
            addressType: IPv4\n\
                    ports: [{name: a, port: 80}, {name: b, port: 70000}, {name: z, port: 0}, {name: c, port: 82, protocol: \
                    QUIC}]\n\
                    endpoints: [{addresses: [10.0.0.999]}, {addresses: [10.0.0.1]}, {addresses: \
                    ['fd00::1']}, {addresses: [224.0.0.1]}, {addresses: ['::ffff:127.0.0.1']}]\n";
        let converted = Slice::from_api(&serde_yaml::from_str(text).unwrap()).unwrap();
        let left_out: Vec<_> = converted.left_out.iter().map(ToString::to_string).collect();
        assert_eq!(
            left_out,
            [
                "ports[1].port: expected a port (1 to 65535), found 70000",
                "ports[2].port: expected a port (1 to 65535), found 0",
                "ports[3].protocol: expected TCP, UDP or SCTP, found \"QUIC\"",
                "endpoints[0].addresses[0]: expected an IP address, found \"10.0.0.999\"",
                "endpoints[2].addresses[0]: expected an IPv4 address, as the slice has, found fd00::1",
                "endpoints[3].addresses[0]: expected a unicast address that other machines can have, found \
                 224.0.0.1 (multicast)",
                "endpoints[4].addresses[0]: expected a unicast address that other machines can have, found \
                 127.0.0.1 (loopback)",
            ]
            .map(|text| format!("EndpointSlice demo/web-1 of Service demo/web: {text}"))
        );
        let slice = converted.admission.accepted().unwrap();
        assert_eq!((slice.ports.len(), slice.endpoints.len()), (1, 1));
        assert_eq!(slice.endpoints[0].ip.to_string(), "10.0.0.1");

        let object: api::EndpointSlice = serde_yaml::from_str(&text.replace("IPv4", "IPv5")).unwrap();
        let error = Slice::from_api(&object).unwrap_err();
        assert_eq!(error.field, "addressType");
    }
}
