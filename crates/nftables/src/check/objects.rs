//! Judges base chains, sets and stateful objects.

use crate::check::LowerError;
use crate::check::judge::has_family;
use crate::family::Family;
use crate::object::{BaseChain, Hook, ObjectConfig, Set, SetData, SetType, timeout_states};

impl BaseChain {
    /// Refuses hooks that the family does not have, `ingress` in `inet` without a device, and devices of other
    /// hooks. nft 1.0.6 does too: the kernel would take a chain without a device, which no packet enters. In
    /// family netdev nft 1.0.8 takes that, for devices to be added later.
    pub(crate) fn check(&self, family: Family) -> Result<(), LowerError> {
        let hook = self.hook;
        if hook.number(family).is_none() {
            return Err(said(format!("family {family} has no hook `{hook}`"), None));
        }
        let is_of_device = matches!(hook, Hook::Ingress | Hook::Egress);
        match (is_of_device, self.devices.is_empty()) {
            (true, true) if family != Family::NETDEV => Err(said(
                format!("the hook `{hook}` is of a device"),
                Some("say `device \"eth0\"` before `priority`"),
            )),
            (false, false) => Err(said(format!("the hook `{hook}` is not of a device"), None)),
            _ => Ok(()),
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
