#![doc = include_str!("../README.md")]
//!
//! # The contract
//!
//! * **Everything is a value.** No input or output, no clock, no kernel, no API server, no global state.
//! * **[`Cluster`] follows changes, not sizes.** It takes objects in any order, notes what each touched
//!   service was before, and gives exactly the services that differ now: one that was changed and changed
//!   back is not among them.
//! * **A [`ServicePort`] is what a planner works on**: one port of one service in one family, with its
//!   endpoints joined from all slices, sorted, each once. [`categorize`] says which of them get traffic:
//!   readiness, termination, traffic policies, topology hints. All of it follows kube-proxy 1.36.
//! * **A frontend has one service.** Where several claim an address and port or a node port, [`Cluster`]
//!   decides by a rule that does not depend on the order of events, gives the others without it, and lists
//!   them in [`Cluster::conflicts`].
//! * **A name can stand in a rule.** A [`ServiceName`] and the name of a [`Port`] are DNS labels, so that no
//!   object can carry text into a rule, a comment or a chain name.
//! * **Objects come from anywhere.** [`Service::new`], [`Slice::new`] and [`Node::new`] take plain values.
//!   The feature `k8s-openapi` adds `Service::from_api`, `Slice::from_api` and `Node::from_api`, which check
//!   an object of the Kubernetes API and reduce it to these. An invalid item (an endpoint, an external IP, a
//!   port) is left out alone, and returned with its field and what is wrong. The version of that API is the
//!   program's choice.
//! * An empty list means that there is nothing. A service without endpoints is one; a service that is not
//!   there has no ports.
//!
//! # What it does not do
//!
//! It reads no manifests and watches nothing.
//!
//! [`Family`] and [`Protocol`] are this crate's own, so that it depends on no crate that speaks to the
//! kernel: of families it knows two and of protocols three, those of a Service, where netlink has an open set
//! of both.
#![forbid(unsafe_code)]

mod address;
mod categorize;
mod cluster;
mod conflict;
mod endpoint;
mod error;
#[cfg(feature = "k8s-openapi")]
mod from_api;
mod local;
mod name;
mod node;
mod node_ports;
mod scheduler;
mod service;
mod slice;
mod slots;
mod warning;

pub use address::{Family, parse_cidr, parse_ip};
pub use categorize::{Categorized, Topology, categorize};
pub use cluster::{Change, ChangeCounts, Changes, Cluster, ClusterService};
pub use conflict::{ClaimKind, Conflict, Frontend};
pub use endpoint::{Endpoint, ServicePort};
pub use error::{Error, Invalid};
#[cfg(feature = "k8s-openapi")]
pub use from_api::{Admission, Converted};
pub use local::{DetectLocal, InterfaceName, InterfacePrefix, LocalDetector};
pub use name::{PortName, Protocol, ServiceName};
pub use node::Node;
pub use node_ports::{NodePortAddress, NodePortAddresses, NodePorts};
pub use scheduler::{Scheduler, Slots, UnknownScheduler};
pub use service::{NotServed, Port, Service};
pub use slice::{Hints, Slice, SliceEndpoint, SliceName, SlicePort};
pub use warning::{Unserved, Warning};
