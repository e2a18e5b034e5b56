//! The errors of the crate.

/// An error about a value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An object of the API has an invalid field.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The name or namespace of a Service is not a DNS label.
    #[error(
        "expected a namespace and a name that are DNS labels (a-z, 0-9 and -, at most 63), found \
            {namespace:?} and {name:?}"
    )]
    ServiceName {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// The name of a port is neither empty nor a DNS label.
    #[error("expected the name of a port (a DNS label: a-z, 0-9 and -, at most 63), found {name:?}")]
    PortName {
        /// The name.
        name: String,
    },
    /// A port number is 0.
    #[error("expected a port number from 1 to 65535, found 0")]
    PortNumber,
    /// Local traffic is to be detected by the networks of a node's pods, and the node has none.
    #[error("expected pod CIDRs of node {node:?} to detect local traffic by, found none")]
    NoPodCidrs {
        /// The node.
        node: String,
    },
    /// Of one family there are two networks, or addresses, where one of each can be used.
    #[error("expected at most one of each family, found {first} and {second}")]
    TwoOfOneFamily {
        /// The one that stands first.
        first: String,
        /// The other one.
        second: String,
    },
    /// The text is not a valid interface name, or beginning of one.
    #[error(
        "expected the name of an interface (1 to {limit} characters, none of / : \" * \\ or blank, no + at \
            its end), found {name:?}"
    )]
    Interface {
        /// The name.
        name: String,
        /// The most bytes it may have.
        limit: usize,
    },
    /// The addresses of node ports are neither words nor CIDRs.
    #[error("expected CIDRs and the words primary, localhost and all, separated by commas, found {text:?}")]
    NodePortAddresses {
        /// The text that was found.
        text: String,
    },
}

/// The object, field and problem of an object that is well-formed but cannot be proxied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {field}: {reason}")]
#[non_exhaustive]
pub struct Invalid {
    /// `Service demo/web`, or `EndpointSlice demo/web-1 of Service demo/web`.
    pub object: String,
    /// The field, as a path: `spec.ports[0].nodePort`.
    pub field: String,
    /// The problem with the field's value.
    pub reason: String,
}

impl Invalid {
    /// Creates the error for a field of an object: `Service demo/web`, `spec.ports[0].port`, and why.
    pub fn new(object: impl Into<String>, field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { object: object.into(), field: field.into(), reason: reason.into() }
    }
}
