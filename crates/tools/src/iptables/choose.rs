//! Which iptables: the back end of a name without `-nft` or `-legacy`.
//!
//! As iptables-wrappers decides, so that a container writes where the host does: by the chains that the
//! kubelet makes as a hint, then by where there are more rules, then by what the kernel has.

use std::fs;

use sluicegate_iptables_save::Family;
use sluicegate_xtables::{BackEnd, legacy, nft};

use super::failure::{Failure, parameter};

/// Returns the back end that a name says, else what `SLUICEGATE_IPTABLES` says, else the one in use.
pub(crate) fn back_end(name: &str) -> Result<BackEnd, Failure> {
    let named = BackEnd::BOTH.into_iter().find(|back_end| name.contains(&format!("-{back_end}")));
    if let Some(named) = named {
        return Ok(named);
    }
    match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        None => Ok(in_use()),
        Some(value) => match value.to_str().and_then(|value| value.parse().ok()) {
            Some(back_end) => Ok(back_end),
            None => Err(parameter(format!("{VARIABLE}: expected nft or legacy, found {}", value.display()))),
        },
    }
}

fn in_use() -> BackEnd {
    let mut nft = Found::default();
    FAMILIES.into_iter().for_each(|family| drop(nft.look_for_hints(family)));
    if nft.hints {
        return BackEnd::Nft;
    }
    let mut legacy = Found::default();
    FAMILIES.into_iter().for_each(|family| drop(legacy.look_at_legacy(family)));
    if legacy.hints {
        return BackEnd::Legacy;
    }
    if legacy.rules > 0 {
        FAMILIES.into_iter().for_each(|family| drop(nft.count(family)));
    }
    let without_nft = !nft.exists && legacy.exists;
    if legacy.rules > nft.rules || without_nft { BackEnd::Legacy } else { BackEnd::Nft }
}

const FAMILIES: [Family; 2] = [Family::Ipv4, Family::Ipv6];

/// What there is of a back end, in both families.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// Whether the kernel has it.
    exists: bool,
    /// Whether the kubelet has made its chains.
    hints: bool,
    rules: usize,
}

impl Found {
    fn look_for_hints(&mut self, family: Family) -> Result<(), sluicegate_xtables::Error> {
        let client = nft::Client::open(family)?;
        let tables = client.tables()?;
        self.exists = true;
        for hint in HINTS.into_iter().filter(|_| tables.contains(&"mangle")) {
            self.hints |= client.view_chain("mangle", hint, false)?.is_some();
        }
        Ok(())
    }

    /// Counts the rules of iptables-nft, which takes as long as there are many.
    fn count(&mut self, family: Family) -> Result<(), sluicegate_xtables::Error> {
        let client = nft::Client::open(family)?;
        for table in client.tables()? {
            self.rules += client.raw(table)?.rules.len();
        }
        Ok(())
    }

    /// Only tables that are there are read: to read another one makes it.
    fn look_at_legacy(&mut self, family: Family) -> Result<(), sluicegate_xtables::Error> {
        let names = legacy_tables(family);
        self.exists |= names.is_some();
        let Some(names) = names.filter(|names| !names.is_empty()) else { return Ok(()) };
        let client = legacy::Client::open(family)?;
        for table in names {
            let view = client.view(&table, false)?;
            self.hints |= view.table.chains().any(|chain| HINTS.contains(&chain.name()));
            self.rules += view.table.rules().count();
        }
        Ok(())
    }
}

/// Returns the legacy tables in use; `None` where the kernel has no such iptables, or hides it.
pub(crate) fn legacy_tables(family: Family) -> Option<Vec<String>> {
    let file = if family == Family::Ipv4 { "ip_tables_names" } else { "ip6_tables_names" };
    let names = fs::read_to_string(format!("/proc/thread-self/net/{file}")).ok()?;
    Some(names.lines().map(str::to_owned).collect())
}

/// The chains that the kubelet makes in the table mangle.
const HINTS: [&str; 2] = ["KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"];
const VARIABLE: &str = "SLUICEGATE_IPTABLES";
