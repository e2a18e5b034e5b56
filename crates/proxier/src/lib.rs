//! Kubernetes Services and EndpointSlices, and what a node's packet filter has to do for them.
//!
//! The path of everything here is: manifests ([`source`]) or a watcher's events make the state of a cluster
//! ([`model`]); a planner turns that state, and each change of it, into the rules and elements that the kernel should
//! hold. All of this is values in, values out: no root, no kernel, no clock.
//!
//! - [`model::Cluster`] keeps services and slices and tells exactly which services changed since it was last asked, so
//!   that the work follows the change and not the size of the cluster.
//! - [`model::categorize`] decides which endpoints get traffic: readiness, termination, traffic policies, topology hints.
//! - [`plan::nftables`], [`plan::iptables`] and [`plan::ipvs`] plan for one part of the kernel each; [`apply`] brings it there, by
//!   netlink or, because iptables leaves no other way, by `iptables-restore`.
//! - [`run`] is the daemon: it follows a source ([`source::watch`] or the API server), mends what others break, and tells an
//!   [`Observer`](run::Observer) how it goes. [`config`] reads kube-proxy's configuration file.
//!
//! Behaviour, names and flags follow kube-proxy 1.36 where a user or another program can see them.
//!
//! What it does not do without the cargo feature `kube`: watch an API server. What it never does: support the userspace and kernelspace modes.
#![forbid(unsafe_code)]

pub mod apply;
pub mod config;
pub mod doctor;
mod error;
pub mod lab;
pub mod model;
pub mod plan;
pub mod run;
pub mod serve;
pub mod source;
pub mod sysctl;

pub use error::Error;
