//! What a service proxy knows: services and their endpoints, this node, and what changed since it was last asked.
//!
//! [`Cluster`] holds the state and takes the changes; [`ServicePort`] is what a planner is given: one port of one service
//! in one family with its endpoints; [`categorize`] says which of these get traffic. Everything here is a value: no
//! clock, no kernel, no API server.

mod address;
mod categorize;
mod cluster;
mod endpoint;
mod found;
mod local;
mod name;
mod node;
mod node_ports;
mod service;
mod slice;

pub use address::{Family, parse_cidr, parse_ip};
pub use categorize::{Categorized, Topology, categorize};
pub use cluster::{Change, ChangeCounts, Changes, Cluster, ClusterService};
pub use endpoint::{Endpoint, ServicePort};
pub use found::{Found, Problem};
pub use local::{DetectLocal, DetectLocalMode, LocalDetector};
pub use name::{PortName, Protocol, ServiceName};
pub use node::Node;
pub use node_ports::{NodePortAddresses, NodePorts};
pub use service::{Admission, Port, Service};
pub use slice::{Hints, Slice, SliceEndpoint, SliceName, SlicePort};

/// An object that is well-formed but cannot be proxied: which, which field, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {field}: {reason}")]
pub struct Invalid {
    /// `Service demo/web`, or `EndpointSlice demo/web-1 of Service demo/web`.
    pub object: String,
    /// The field, as a path: `spec.ports[0].nodePort`.
    pub field: String,
    /// What is wrong with its value.
    pub reason: String,
}
