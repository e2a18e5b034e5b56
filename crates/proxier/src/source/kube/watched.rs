//! The kinds that are watched, with their selectors.

use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::Resource;
use serde::de::DeserializeOwned;

use super::Source;
use crate::source::Object;
use crate::source::update::{Kind, ObjectName};

/// A kind of object that is listed and watched.
pub(super) trait Watched: Resource<DynamicType = ()> + DeserializeOwned + Send {
    /// The kind.
    const KIND: Kind;
    /// The label selector, the same as in kube-proxy 1.36.
    const LABELS: Option<&'static str> = None;

    /// Returns the field selector.
    fn fields(_: &Source) -> Option<String> {
        None
    }

    /// Whether nothing can be programmed without objects of this kind.
    const IS_NEEDED: bool = false;

    /// Whether a server without this API, or one that forbids it, counts as one without such objects.
    const MAY_BE_ABSENT: bool = false;

    fn into_object(self) -> Object;
}

impl Watched for Service {
    const KIND: Kind = Kind::Service;
    const LABELS: Option<&'static str> = Some("!service.kubernetes.io/service-proxy-name");
    const IS_NEEDED: bool = true;

    fn fields(_: &Source) -> Option<String> {
        Some("spec.clusterIP!=None".to_owned())
    }

    fn into_object(self) -> Object {
        Object::Service(Box::new(self))
    }
}

impl Watched for EndpointSlice {
    const KIND: Kind = Kind::EndpointSlice;
    const LABELS: Option<&'static str> = Some("!service.kubernetes.io/headless");
    const IS_NEEDED: bool = true;

    fn into_object(self) -> Object {
        Object::EndpointSlice(Box::new(self))
    }
}

impl Watched for Node {
    const KIND: Kind = Kind::Node;

    fn fields(source: &Source) -> Option<String> {
        Some(format!("metadata.name={}", escape(&source.node)))
    }

    fn into_object(self) -> Object {
        Object::Node(Box::new(self))
    }
}

impl Watched for ServiceCIDR {
    const KIND: Kind = Kind::ServiceCidr;
    const MAY_BE_ABSENT: bool = true;

    fn into_object(self) -> Object {
        Object::ServiceCidr(Box::new(self))
    }
}

/// Returns the name of an object of a kind.
pub(super) fn name(kind: Kind, namespace: Option<String>, name: String) -> ObjectName {
    let namespace = namespace.unwrap_or_else(|| "default".to_owned());
    match kind {
        Kind::Service => ObjectName::Service { namespace, name },
        Kind::EndpointSlice => ObjectName::EndpointSlice { namespace, name },
        Kind::Node => ObjectName::Node { name },
        Kind::ServiceCidr => ObjectName::ServiceCidr { name },
    }
}

/// Escapes a value for a field selector, where `,`, `=` and `\` are special.
fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, ',' | '=' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_add_to_the_selector() {
        assert_eq!(escape("node-1.example.org"), "node-1.example.org");
        assert_eq!(escape(r"a,metadata.name=b\"), r"a\,metadata.name\=b\\");
    }
}
