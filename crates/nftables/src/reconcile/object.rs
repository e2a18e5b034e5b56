//! Compares stateful objects, and determines which differences can be changed in place.

use crate::expr::LimitType;
use crate::family::Family;
use crate::listing::object_of;
use crate::object::stateful::default_timeouts;
use crate::object::{ObjectConfig, StatefulObject, timeout_states};
use crate::read;
use crate::reconcile::Reason;
use crate::sort;
use crate::tree::{Limit, Quota};
use sluicegate_netlink::Protocol;

/// The action for a wanted object that exists already.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    Same,
    Updated,
    Replaced(Reason),
}

/// Compares an object with the existing one, without their state.
pub(super) fn compare(wanted: &StatefulObject, kernel: &read::Object) -> Action {
    let family = wanted.id.table.family;
    let typed = object_of(&wanted.id.table, kernel);
    let Some(typed) = typed else { return Action::Replaced(Reason::Configuration) };
    if typed.comment != wanted.comment {
        return Action::Replaced(Reason::Comment);
    }
    if as_listed(&wanted.config, family) == as_listed(&typed.config, family) {
        return Action::Same;
    }
    match wanted.config {
        // The kernel accepts an update of any other kind, but ignores it.
        ObjectConfig::Quota(_) | ObjectConfig::Synproxy(_) => Action::Updated,
        _ => Action::Replaced(Reason::Configuration),
    }
}

/// Returns the wanted object with the state of the existing one, where its own state is zero.
pub(super) fn with_state(wanted: &StatefulObject, kernel: &read::Object) -> StatefulObject {
    let mut object = wanted.clone();
    let Some(typed) = object_of(&wanted.id.table, kernel) else { return object };
    match (&mut object.config, typed.config) {
        (ObjectConfig::Counter(wanted), ObjectConfig::Counter(kernel)) if *wanted == Default::default() => {
            *wanted = kernel;
        }
        (ObjectConfig::Quota(wanted), ObjectConfig::Quota(kernel)) if wanted.used == 0 => {
            wanted.used = kernel.used;
        }
        _ => {}
    }
    object
}

/// Returns a configuration as the kernel lists it, without state.
fn as_listed(config: &ObjectConfig, table: Family) -> ObjectConfig {
    let mut config = config.clone();
    match &mut config {
        ObjectConfig::Counter(counter) => *counter = Default::default(),
        ObjectConfig::Quota(quota) => *quota = Quota { used: 0, ..*quota },
        ObjectConfig::Limit(limit) => {
            // The kernel fills in the burst as for the expression `limit`.
            let of = if limit.bytes { LimitType::BYTES } else { LimitType::PACKETS };
            let burst = limit.burst.filter(|burst| *burst > 0);
            let default = if of == LimitType::PACKETS { crate::expr::complete::PACKETS } else { 0 };
            *limit = Limit { burst: Some(burst.unwrap_or(default)), ..*limit };
        }
        ObjectConfig::CtHelper { helper, protocol, family } => {
            let of = family.unwrap_or(table);
            let v4_only = [Family::INET, Family::BRIDGE, Family::NETDEV].contains(&of)
                && V4_ONLY.contains(&(helper.as_str(), *protocol));
            *family = Some(if v4_only { Family::IP } else { any(of) });
        }
        ObjectConfig::CtTimeout { protocol, family, policy } => {
            family.get_or_insert(table);
            // The kernel lists its defaults for timeouts that are not given.
            let default = timeout_states(*protocol).iter().zip(default_timeouts(*protocol));
            let default: Vec<_> = default.map(|(state, seconds)| (*state, u64::from(*seconds))).collect();
            policy.retain(|(state, time)| !default.contains(&(*state, time.as_secs())));
            sort::by(policy, Ord::cmp);
        }
        ObjectConfig::CtExpectation { family, .. } => {
            family.get_or_insert(table);
        }
        _ => {}
    }
    config
}

/// The kernel lists a helper for both protocols with family inet.
fn any(of: Family) -> Family {
    if [Family::BRIDGE, Family::NETDEV].contains(&of) { Family::INET } else { of }
}

/// Helpers without support for IPv6.
const V4_ONLY: [(&str, Protocol); 5] = [
    ("irc", Protocol::TCP),
    ("netbios-ns", Protocol::UDP),
    ("pptp", Protocol::TCP),
    ("snmp", Protocol::UDP),
    ("snmp_trap", Protocol::UDP),
];
