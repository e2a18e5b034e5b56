//! Judges stateful objects.

use crate::check::LowerError;
use crate::object::{ObjectConfig, timeout_states};

impl ObjectConfig {
    /// Refuses states that connections of the protocol do not have.
    pub(crate) fn check(&self) -> Result<(), LowerError> {
        let Self::CtTimeout { protocol, policy, .. } = self else { return Ok(()) };
        match policy.iter().find(|(state, _)| !timeout_states(*protocol).contains(state)) {
            Some((state, _)) => Err(LowerError::Constant {
                value: (*state).to_owned(),
                wanted: format!("state of {protocol}"),
            }),
            None => Ok(()),
        }
    }
}
