//! A small cluster network in throw-away namespaces, with servers that answer and clients that ask, and what
//! runs on it: the demonstration (`cargo lab demo`), the matrix of connections (`cargo lab matrix`), and
//! traffic tests of other crates.
//!
//! - [`Network`] builds a node, its pods, pods of another node and a client outside from a [`NetworkSpec`];
//!   [`serve`] and [`ask`] are the two ends of a connection.
//! - [`uniform_cluster`] generates any number of Services and EndpointSlices, for benchmarks.
//! - [`run`] is the command line.
//!
//! Nothing here touches the network namespace that the process was started in. Links, addresses and routes
//! are created through rtnetlink, so that no tool has to be installed. The crate is not published.
//!
//! The matrix needs every mode of the proxier and is the feature `matrix`; the soak test (`cargo lab soak`) needs
//! its daemon and is the feature `soak`: the demonstration is the first that most people build, and takes half
//! of the time without.
#![forbid(unsafe_code)]

mod ask;
mod command;
mod demo;
mod endpoint;
mod error;
#[cfg(feature = "matrix")]
mod matrix;
mod namespace;
mod network;
#[cfg(not(all(feature = "matrix", feature = "soak")))]
mod rebuild;
mod scale;
#[cfg(feature = "soak")]
mod soak;
mod wire;

pub use ask::{Answer, Transport, ask};
pub use command::run;
pub use endpoint::serve;
pub use error::Error;
pub use namespace::{Namespace, enter_user_namespace};
pub use network::{Host, Network, NetworkSpec, PodSpec};
pub use scale::{change_one, uniform_cluster};
pub use wire::Wire;
