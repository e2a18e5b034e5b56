#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! The work is done by two libraries: [`sluicegate_services`] is the model of a cluster,
//! [`sluicegate_service_rules`] plans and applies rules. This crate composes them into a daemon and a
//! command:
//!
//! - [`source`] reads objects from files, or (with the feature `kube`) from an API server, and follows their
//!   changes.
//! - [`run`] is the loop: it decides when to sync, repairs what other programs change, and calls an
//!   [`Observer`](run::Observer).
//! - [`serve`] answers health checks and metrics over HTTP.
//! - [`config`] reads kube-proxy's configuration file.
//! - [`doctor`] reports what a mode needs and this machine lacks; [`sysctl`] has the sysctls of each mode.
//! - The command line is not part of the library.
//!
//! # Layers
//!
//! Each module uses only those below it, and has an error type of its own, in its own words. The command line
//! adds the flag that a value came from.
//!
//! ```text
//! cli      -> everything below
//! serve    -> run, Mode
//! run      -> source, service-rules, services
//! source   -> yaml, services
//! config   -> yaml, services, Mode
//! doctor   -> sysctl, service-rules, Mode
//! sysctl   -> Mode
//! output   -> visible
//! terminal -> nothing
//! yaml     -> nothing
//! visible  -> nothing
//! ```
//!
//! # Features
//!
//! `cli` (the default) is the command; `daemon` is what it runs: [`run`], [`serve`], [`doctor`], and the parts of
//! [`source`] that follow changes. Without both, the crate reads manifests and the configuration file, and knows the
//! sysctls. `kube` adds the API server, `terminal` the width of tables ([`terminal`]) and the form of
//! what is printed ([`output`]), which `cli` has.
//!
//! Behaviour, names and flags follow kube-proxy 1.36 where users or other programs can see them. There are no
//! userspace and kernelspace modes.
#![forbid(unsafe_code)]

pub mod config;
#[cfg(feature = "daemon")]
pub mod doctor;
#[cfg(feature = "terminal")]
pub mod output;
#[cfg(feature = "daemon")]
pub mod run;
#[cfg(feature = "daemon")]
pub mod serve;
pub mod source;
pub mod sysctl;
#[cfg(feature = "terminal")]
pub mod terminal;
mod visible;
mod yaml;

pub use sluicegate_service_rules::Mode;
pub use visible::Visible;
