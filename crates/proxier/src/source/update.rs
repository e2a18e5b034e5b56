//! The updates that a source sends to the run loop, whether it watches files or an API server.
//!
//! Updates go over a `tokio::sync::mpsc` channel. Nothing is programmed before both [`Kind::Service`] and
//! [`Kind::EndpointSlice`] were listed once, by [`Update::Replace`] or [`Update::Listed`]: until then a
//! service without endpoints may have slices that were not read yet.

use std::fmt;

use super::Object;
use crate::Visible;

/// A change that a source of objects reports, or its state.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// An object was added or changed.
    Apply(Object),
    /// An object was deleted.
    Delete(ObjectName),
    /// All objects of a kind, from a source that has them at hand: the first list, or a new one.
    Replace(Kind, Vec<Object>),
    /// A list of all objects of a kind begins, each of which follows as an [`Update::Apply`], so that nobody
    /// has to hold them all. Another one begins anew.
    Listing(Kind),
    /// All objects of a kind were sent. Those that were known before the last [`Update::Listing`], and not
    /// sent since, are deleted; without one, none are.
    Listed(Kind),
    /// An object of this kind is there and cannot be read, for the given reason: what is known of it stays as it
    /// is, also where the list that it is in ends. Without a name, which it has not or which cannot be read
    /// either, that list deletes nothing.
    Unreadable(Kind, Option<ObjectName>, String),
    /// A problem that the source keeps retrying (an API server that does not answer, a file that does not
    /// parse), for logs and metrics. The known objects stay.
    Warning(String),
    /// The files and directories that cannot be used at present, each with the reason; none when all can be
    /// again. What is new among them comes as a [`Update::Warning`] as well.
    Unusable(Vec<String>),
    /// The source has no right to what it needs, and has been refused for so long that waiting does not help.
    Hopeless(String),
}

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `v1` `Service`.
    Service,
    /// `discovery.k8s.io/v1` `EndpointSlice`.
    EndpointSlice,
    /// `v1` `Node`.
    Node,
    /// `networking.k8s.io/v1` `ServiceCIDR`.
    ServiceCidr,
}

impl Kind {
    /// Every kind, in the order in which a source should send the first lists.
    pub const ALL: [Self; 4] = [Self::Node, Self::ServiceCidr, Self::EndpointSlice, Self::Service];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::Node => "Node",
            Self::ServiceCidr => "ServiceCIDR",
        })
    }
}

/// The kind and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectName {
    /// A Service.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// An EndpointSlice.
    EndpointSlice {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A Node.
    Node {
        /// Its name.
        name: String,
    },
    /// A ServiceCIDR.
    ServiceCidr {
        /// Its name.
        name: String,
    },
}

impl ObjectName {
    /// Returns the name of an object. As in the API, an object without a namespace is in `default`.
    #[must_use]
    pub fn of(object: &Object) -> Self {
        let metadata = match object {
            Object::Service(object) => &object.metadata,
            Object::EndpointSlice(object) => &object.metadata,
            Object::Node(object) => &object.metadata,
            Object::ServiceCidr(object) => &object.metadata,
        };
        let name = metadata.name.clone().unwrap_or_default();
        let namespace = || metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
        match object {
            Object::Service(_) => Self::Service { namespace: namespace(), name },
            Object::EndpointSlice(_) => Self::EndpointSlice { namespace: namespace(), name },
            Object::Node(_) => Self::Node { name },
            Object::ServiceCidr(_) => Self::ServiceCidr { name },
        }
    }

    /// Returns the kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Service { .. } => Kind::Service,
            Self::EndpointSlice { .. } => Kind::EndpointSlice,
            Self::Node { .. } => Kind::Node,
            Self::ServiceCidr { .. } => Kind::ServiceCidr,
        }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service { namespace, name } | Self::EndpointSlice { namespace, name } => {
                let [namespace, name] = [namespace, name].map(|part| Visible(part).clipped());
                write!(f, "{} {namespace}/{name}", self.kind())
            }
            Self::Node { name } | Self::ServiceCidr { name } => {
                write!(f, "{} {}", self.kind(), Visible(name).clipped())
            }
        }
    }
}
