//! Judges base chains, sets and stateful objects.

use crate::check::LowerError;
use crate::check::judge::has_family;
use crate::family::Family;
use crate::object::{BaseChain, Hook, ObjectConfig, Set, SetData, SetType, timeout_states};

impl BaseChain {
    /// Refuses what `check` does, and in text and JSON a hook of a device without one, as nft 1.0.6 does: no
    /// packet enters the chain, whatever its rules and its policy drop. nft 1.0.8 takes it in family netdev, for
    /// devices to be added later; a program that does so with values has asked for `Feature::ChainWithoutDevice`.
    #[cfg(any(feature = "text", feature = "json"))]
    pub(crate) fn check_written(&self, family: Family) -> Result<(), LowerError> {
        self.check(family)?;
        self.has_device()
    }

    /// Refuses hooks that the family does not have, `ingress` in `inet` without a device, and devices of other
    /// hooks. nft 1.0.6 does too: the kernel would take a chain without a device, which no packet enters.
    pub(crate) fn check(&self, family: Family) -> Result<(), LowerError> {
        let hook = self.hook;
        if hook.number(family).is_none() {
            return Err(said(format!("family {family} has no hook `{hook}`"), None));
        }
        match self.is_of_device() {
            true if family != Family::NETDEV => self.has_device(),
            false if !self.devices.is_empty() => {
                Err(said(format!("the hook `{hook}` is not of a device"), None))
            }
            _ => Ok(()),
        }
    }

    fn is_of_device(&self) -> bool {
        matches!(self.hook, Hook::Ingress | Hook::Egress)
    }

    fn has_device(&self) -> Result<(), LowerError> {
        match self.is_of_device() && self.devices.is_empty() {
            true => Err(said(
                format!("the hook `{}` is of a device", self.hook),
                Some("say `device \"eth0\"` before `priority`"),
            )),
            false => Ok(()),
        }
    }
}

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

fn said(message: String, help: Option<&str>) -> LowerError {
    LowerError::Misplaced { message, help: help.map(str::to_owned) }
}
