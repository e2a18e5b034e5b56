//! Which changes of `nf_tables` touch rules of this mode, in the tables that it shares with others.

use super::{CANARY_TABLES, FIREWALL, is_ours};
use crate::{Object, TableChange};

/// Returns whether a change to the tables of iptables-nft touches a rule, a chain or a jump of ours, or the
/// table as a whole. Chains of others change with every pod of some network plug-ins.
#[must_use]
pub fn is_touched(change: &TableChange<'_>) -> bool {
    let is_own = |chain: &str| is_ours(change.table, chain) || chain == FIREWALL;
    CANARY_TABLES.contains(&change.table)
        && match change.what {
            Object::Table => true,
            Object::Chain(chain) => is_own(chain),
            Object::Rule(chain, target) => is_own(chain) || target.is_some_and(is_own),
            Object::Other => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_others_in_tables_that_are_shared_are_none_of_ours() {
        let is = |table, what| is_touched(&TableChange { table, what });
        for ours in [
            ("nat", Object::Table),
            ("nat", Object::Chain("KUBE-SERVICES")),
            ("nat", Object::Rule("KUBE-SERVICES", None)),
            ("nat", Object::Rule("PREROUTING", Some("KUBE-SERVICES"))),
            ("mangle", Object::Chain("KUBE-PROXY-CANARY")),
            ("filter", Object::Rule("KUBE-FIREWALL", None)),
        ] {
            assert!(is(ours.0, ours.1), "{ours:?}");
        }
        for other in [
            ("raw", Object::Table),
            ("kube-proxy", Object::Table),
            ("nat", Object::Chain("CNI-HOSTPORT-DNAT")),
            ("nat", Object::Rule("PREROUTING", Some("DOCKER"))),
            ("nat", Object::Rule("PREROUTING", None)),
            ("filter", Object::Other),
        ] {
            assert!(!is(other.0, other.1), "{other:?}");
        }
    }
}
