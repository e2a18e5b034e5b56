//! Which iptables: the back end of a name without `-nft` or `-legacy`.
//!
//! As iptables-wrappers decides, so that a container writes where the host does: by the chains that the
//! kubelet makes as a hint, then by where there are more rules, then by what the kernel has.

use std::fs;

use sluicegate_iptables_save::Family;
use sluicegate_xtables::{BackEnd, legacy, nft};

use super::failure::{Failure, parameter};

/// Returns the back end that a name says, else what `SLUICEGATE_IPTABLES` says, else the one in use.
pub(super) fn back_end(name: &str) -> Result<BackEnd, Failure> {
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
    let [nft, legacy] = [BackEnd::Nft, BackEnd::Legacy].map(Found::look);
    match (nft, legacy) {
        (nft, _) if nft.hints => BackEnd::Nft,
        (_, legacy) if legacy.hints => BackEnd::Legacy,
        (nft, legacy) if legacy.rules > nft.rules => BackEnd::Legacy,
        (nft, _) if nft.rules > 0 || nft.exists => BackEnd::Nft,
        (_, legacy) if legacy.exists => BackEnd::Legacy,
        _ => BackEnd::Nft,
    }
}

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
    fn look(back_end: BackEnd) -> Self {
        let mut found = Self::default();
        for family in [Family::Ipv4, Family::Ipv6] {
            let _ = match back_end {
                BackEnd::Nft => found.look_nft(family),
                BackEnd::Legacy => found.look_legacy(family),
            };
        }
        found
    }

    fn look_nft(&mut self, family: Family) -> Result<(), sluicegate_xtables::Error> {
        let client = nft::Client::open(family)?;
        let tables = client.tables()?;
        self.exists = true;
        for table in tables {
            let raw = client.raw(table)?;
            let is_hint = |chain: &str| table == "mangle" && HINTS.contains(&chain);
            self.hints |= raw.chains.iter().any(|chain| is_hint(chain.name.as_str()));
            self.rules += raw.rules.len();
        }
        Ok(())
    }

    /// Only tables that are there are read: to read another one makes it.
    fn look_legacy(&mut self, family: Family) -> Result<(), sluicegate_xtables::Error> {
        let names = legacy_tables(family);
        let Some(names) = names.filter(|names| !names.is_empty()) else { return Ok(()) };
        let client = legacy::Client::open(family)?;
        self.exists = true;
        for table in names {
            let view = client.view(&table, false)?;
            self.hints |= view.table.chains().any(|chain| HINTS.contains(&chain.name()));
            self.rules += view.table.rules().count();
        }
        Ok(())
    }
}

/// Returns the legacy tables in use; `None` where the kernel has no such iptables, or hides it.
pub(super) fn legacy_tables(family: Family) -> Option<Vec<String>> {
    let file = if family == Family::Ipv4 { "ip_tables_names" } else { "ip6_tables_names" };
    let names = fs::read_to_string(format!("/proc/thread-self/net/{file}")).ok()?;
    Some(names.lines().map(str::to_owned).collect())
}

/// The chains that the kubelet makes in the table mangle.
const HINTS: [&str; 2] = ["KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"];
const VARIABLE: &str = "SLUICEGATE_IPTABLES";
