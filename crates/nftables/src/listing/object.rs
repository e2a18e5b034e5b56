//! Stateful objects in the typed language.

use std::time::Duration;

use sluicegate_netlink::attr::Attributes;

use crate::expr::{Expr, ObjectKind};
use crate::family::Family;
use crate::key::Protocol;
use crate::lang::Statement;
use crate::lang::raise::{state, synproxy};
use crate::listing::comment;
use crate::name::{Name, SecurityContext};
use crate::object::*;
use crate::read;

pub(crate) fn object_of(table: &TableId, held: &read::Object) -> Option<StatefulObject> {
    let config = match held.object_kind {
        ObjectKind::COUNTER => stateful_config(held, "counter")?,
        ObjectKind::QUOTA => stateful_config(held, "quota")?,
        ObjectKind::LIMIT => stateful_config(held, "limit")?,
        ObjectKind::SYNPROXY => match decode_as(held, "synproxy")? {
            Expr::Synproxy(s) => ObjectConfig::Synproxy(synproxy(&s)),
            _ => return None,
        },
        ObjectKind::CT_HELPER | ObjectKind::CT_TIMEOUT | ObjectKind::CT_EXPECT => conntrack_config(held)?,
        ObjectKind::SECMARK => {
            let context = Attributes::new(&held.data).find(1).ok()??;
            ObjectConfig::Secmark(SecurityContext::held(context.str().ok()?)?)
        }
        ObjectKind::CONNLIMIT => stateful_config(held, "connlimit")?,
        ObjectKind::TUNNEL => ObjectConfig::Tunnel(Tunnel::decode(&held.data)?),
        _ => return None,
    };
    let id = table.object(held.object_kind, held.name.clone());
    Some(StatefulObject { id, config, comment: comment(held.comment()) })
}

fn decode_as(held: &read::Object, name: &str) -> Option<Expr> {
    Expr::decode_bytes(name, &held.data).ok()
}

fn stateful_config(held: &read::Object, name: &str) -> Option<ObjectConfig> {
    Some(match state(&decode_as(held, name)?)? {
        Statement::Counter(counter) => ObjectConfig::Counter(counter),
        Statement::Quota(quota) => ObjectConfig::Quota(quota),
        Statement::Limit(limit) => ObjectConfig::Limit(limit),
        Statement::Connlimit(limit) => ObjectConfig::Connlimit(limit),
        _ => return None,
    })
}

fn conntrack_config(held: &read::Object) -> Option<ObjectConfig> {
    let attribute = |kind| Attributes::new(&held.data).find(kind).ok().flatten();
    let family = |kind| {
        let number = attribute(kind).and_then(|a| a.be16().ok()).and_then(|n| u8::try_from(n).ok());
        number.filter(|n| *n != 0).map(Family)
    };
    let protocol = |kind| attribute(kind).and_then(|a| a.u8().ok()).map(Protocol);
    Some(match held.object_kind {
        ObjectKind::CT_HELPER => ObjectConfig::CtHelper {
            helper: Name::held(attribute(1)?.str().ok()?),
            family: family(2),
            protocol: protocol(3)?,
        },
        ObjectKind::CT_TIMEOUT => {
            let protocol = protocol(2)?;
            let mut policy = Vec::new();
            for state in attribute(3)?.attributes() {
                let state = state.ok()?;
                let index = usize::from(state.kind).checked_sub(1)?;
                let seconds = state.be32().ok()?;
                // The kernel fills in what was not asked for; so nft takes these times for none.
                let usual = stateful::usual_timeouts(protocol).get(index).copied();
                if let Some(name) = timeout_states(protocol).get(index).filter(|_| usual != Some(seconds)) {
                    policy.push((*name, Duration::from_secs(seconds.into())));
                }
            }
            ObjectConfig::CtTimeout { family: family(1), protocol, policy }
        }
        _ => ObjectConfig::CtExpectation {
            family: family(1),
            protocol: protocol(2)?,
            port: attribute(3)?.be16().ok()?,
            timeout: Duration::from_millis(attribute(4)?.u32().ok()?.into()),
            size: attribute(5)?.u8().ok()?,
        },
    })
}
