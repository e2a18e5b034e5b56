//! Judges sets and stateful objects.

use crate::check::LowerError;
use crate::check::judge::has_family;
use crate::object::{ObjectConfig, Set, SetData, SetType, timeout_states};

impl Set {
    /// Refuses keys and values whose length is not known.
    pub(crate) fn check(&self) -> Result<(), LowerError> {
        let values = match &self.data {
            Some(SetData::Value(of) | SetData::Interval(of)) => Some(of),
            _ => None,
        };
        [Some(&self.key), values].into_iter().flatten().try_for_each(SetType::check)
    }
}

impl SetType {
    /// Refuses an address of a connection without the IP version: nft 1.0.6 has no type for it, in tables of one
    /// family neither.
    pub(crate) fn check(&self) -> Result<(), LowerError> {
        match self {
            Self::Typeof(expression) => has_family(expression),
            _ => Ok(()),
        }
    }
}

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
