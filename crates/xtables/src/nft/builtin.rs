//! The tables and base chains of iptables-nft: names, types, hooks and priorities (`linux/netfilter_ipv4.h`).

use sluicegate_iptables_save::Family;
use sluicegate_nftables::{ChainId, ChainType, Hook, Name, Priority, TableId, read};

/// A chain that packets enter at a hook.
#[derive(Debug, Clone, Copy)]
pub(super) struct BaseChain {
    pub(super) name: &'static str,
    kind: &'static str,
    hook: Hook,
    /// `NF_INET_*`
    number: u32,
    priority: i32,
}

/// The names of all tables, in the order in which iptables-nft-save prints them.
pub(super) const TABLES: [&str; 5] = ["mangle", "security", "raw", "filter", "nat"];

/// Returns the base chains of a table in the order of their hooks; `None` for a table that iptables does not
/// have.
pub(super) fn base_chains(table: &str) -> Option<&'static [BaseChain]> {
    Some(match table {
        "mangle" => MANGLE,
        "security" => SECURITY,
        "raw" => RAW,
        "filter" => FILTER,
        "nat" => NAT,
        _ => return None,
    })
}

/// Returns a base chain of a table.
pub(super) fn base_chain(table: &str, name: &str) -> Option<&'static BaseChain> {
    base_chains(table)?.iter().find(|chain| chain.name == name)
}

pub(super) fn table_id(family: Family, table: &str) -> TableId {
    let family = match family {
        Family::Ipv4 => sluicegate_nftables::Family::IP,
        Family::Ipv6 => sluicegate_nftables::Family::IP6,
    };
    TableId::new(family, Name::from_kernel(table))
}

impl BaseChain {
    /// Returns whether a chain of the kernel is this one.
    pub(super) fn is(&self, chain: &read::Chain) -> bool {
        let hook = chain.hook.as_ref();
        chain.name.as_str() == self.name
            && chain.kind.as_deref() == Some(self.kind)
            && hook.is_some_and(|hook| hook.number == self.number && hook.priority == self.priority)
    }

    /// Returns the chain to be added.
    pub(super) fn object(&self, id: ChainId) -> sluicegate_nftables::Chain {
        let kind = match self.kind {
            "nat" => ChainType::Nat,
            "route" => ChainType::Route,
            _ => ChainType::Filter,
        };
        sluicegate_nftables::Chain::base(id, kind, self.hook, Priority(self.priority))
    }
}

const fn chain(kind: &'static str, hook: Hook, priority: i32) -> BaseChain {
    let (name, number) = match hook {
        Hook::Prerouting => ("PREROUTING", 0),
        Hook::Input => ("INPUT", 1),
        Hook::Forward => ("FORWARD", 2),
        Hook::Output => ("OUTPUT", 3),
        _ => ("POSTROUTING", 4),
    };
    BaseChain { name, kind, hook, number, priority }
}

/// `NF_IP_PRI_MANGLE`. A packet that is changed on its way out is routed again.
const MANGLE: &[BaseChain] = &[
    chain("filter", Hook::Prerouting, -150),
    chain("filter", Hook::Input, -150),
    chain("filter", Hook::Forward, -150),
    chain("route", Hook::Output, -150),
    chain("filter", Hook::Postrouting, -150),
];
/// 150, which has no name.
const SECURITY: &[BaseChain] = &[
    chain("filter", Hook::Input, 150),
    chain("filter", Hook::Forward, 150),
    chain("filter", Hook::Output, 150),
];
/// `NF_IP_PRI_RAW`
const RAW: &[BaseChain] = &[chain("filter", Hook::Prerouting, -300), chain("filter", Hook::Output, -300)];
/// `NF_IP_PRI_FILTER`
const FILTER: &[BaseChain] =
    &[chain("filter", Hook::Input, 0), chain("filter", Hook::Forward, 0), chain("filter", Hook::Output, 0)];
/// `NF_IP_PRI_NAT_DST` and `NF_IP_PRI_NAT_SRC`
const NAT: &[BaseChain] = &[
    chain("nat", Hook::Prerouting, -100),
    chain("nat", Hook::Input, 100),
    chain("nat", Hook::Output, -100),
    chain("nat", Hook::Postrouting, 100),
];
