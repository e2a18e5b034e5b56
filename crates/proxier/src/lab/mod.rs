//! Throw-away networks in namespaces of our own, with servers that answer and clients that ask: what the demonstration
//! and the traffic tests run on.
//!
//! Nothing here touches the namespace that the process was started in. Links, addresses and routes are made through
//! rtnetlink, so that no tool has to be installed.

mod ask;
mod endpoint;
mod namespace;
mod network;
mod scale;
mod wire;

pub use ask::{Answer, Transport, ask};
pub use endpoint::serve;
pub use namespace::{Namespace, enter_user_namespace};
pub use network::{Host, Network, NetworkSpec, PodSpec};
pub use scale::{change_one, uniform_cluster};
pub use wire::Wire;

/// What went wrong while a throw-away network was made or used.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {cause}")]
pub struct LabError {
    /// What was being done, to what.
    step: String,
    /// Why it failed.
    cause: String,
}

impl LabError {
    pub(crate) fn new(step: impl Into<String>, cause: impl std::fmt::Display) -> Self {
        Self { step: step.into(), cause: cause.to_string() }
    }
}
