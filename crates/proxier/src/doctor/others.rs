//! Recognises the rules of other programs by the names of tables and chains.

use std::collections::BTreeMap;

use sluicegate_iptables_save::{Save, Table};
use sluicegate_nftables::Family;
use sluicegate_services::Family as IpFamily;

use super::foreign::Chain;

/// A table or a group of chains that exists, and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// The table, or the table of the chains.
    pub place: String,
    /// The owner, as far as names tell.
    pub owner: &'static str,
    /// The number of chains; 1 for a table.
    pub count: usize,
}

/// Returns the owner of an nftables table.
///
/// ```
/// use sluicegate_nftables::Family;
/// use sluicegate_proxier::doctor::table_owner;
///
/// assert_eq!(table_owner(Family::INET, "firewalld"), "firewalld");
/// assert_eq!(table_owner(Family::IP, "nat"), "iptables (nft back end)");
/// ```
#[must_use]
pub fn table_owner(family: Family, name: &str) -> &'static str {
    let iptables = [Family::IP, Family::IP6].contains(&family);
    match name {
        "kube-proxy" => PROXY,
        "filter" | "nat" | "mangle" | "raw" | "security" if iptables => IPTABLES_NFT,
        "firewalld" => "firewalld",
        "docker-bridges" => "Docker",
        "kube-router" => "kube-router",
        "calico" => "Calico",
        "cni_hostport" | "cni_plugins_masquerade" => "CNI plugins",
        "flannel-ipv4" | "flannel-ipv6" => "flannel",
        "libvirt_network" => "libvirt",
        "fail2ban" | "f2b-table" => "fail2ban",
        _ => "unknown",
    }
}

/// Returns the owner of a chain of iptables. `None` for built-in and unknown chains.
#[must_use]
pub fn chain_owner(name: &str) -> Option<&'static str> {
    let known = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
    known.map(|(_, owner)| *owner)
}

/// Counts the chains of iptables by table and owner.
pub(super) fn of_save(save: &Save<'_>, place: &str) -> Vec<Other> {
    let chains = save.tables().flat_map(|table| {
        let own = table.chains().filter(|chain| chain.policy().is_none());
        own.map(|chain| (table.name().to_owned(), chain_owner(chain.name()))).collect::<Vec<_>>()
    });
    counted(chains, place)
}

/// Counts the chains of iptables' nft back end in the same way.
pub(super) fn of_nft(chains: &[Chain], family: IpFamily) -> Vec<Other> {
    let tables = if family == IpFamily::Ipv4 { Family::IP } else { Family::IP6 };
    let own = chains.iter().filter(|chain| chain.family == tables && chain.base.is_none());
    let own = own.filter_map(|chain| {
        let table = std::str::from_utf8(&chain.table).ok()?;
        let is_iptables = table_owner(tables, table) == IPTABLES_NFT;
        is_iptables.then(|| (table.to_owned(), std::str::from_utf8(&chain.name).ok().and_then(chain_owner)))
    });
    counted(own, &format!("{family} nft"))
}

/// Returns the built-in chains, each with its table, whose policy is to drop.
pub(super) fn dropping<'a>(save: &'a Save<'_>) -> Vec<(&'a str, &'a str)> {
    let drops = |table: &'a Table<'_>| {
        let chains = table.chains().filter(|chain| chain.policy().is_some_and(|policy| policy == "DROP"));
        chains.map(|chain| (table.name(), chain.name())).collect::<Vec<_>>()
    };
    save.tables().flat_map(drops).collect()
}

/// Returns the rules that drop or refuse, each with its table: those of the built-in chain `hook` and of the
/// chains that others made, one of which it may lead to.
pub(super) fn refusing(save: &Save<'_>, hook: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for table in save.tables().filter(|table| table.chain(hook).is_some()) {
        let is_own = |name: &str| table.chain(name).is_some_and(|chain| chain.policy().is_none());
        for rule in table.rules().filter(|rule| rule.chain() == hook || is_own(rule.chain())) {
            let target = rule.spec().ok().and_then(|spec| spec.target_name().map(str::to_owned));
            if matches!(target.as_deref(), Some("DROP" | "REJECT")) {
                found.push((table.name().to_owned(), format!("-A {} {}", rule.chain(), rule.text())));
            }
        }
    }
    found
}

fn counted(chains: impl Iterator<Item = (String, Option<&'static str>)>, place: &str) -> Vec<Other> {
    let mut counts: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
    for (table, owner) in chains {
        *counts.entry((table, owner.unwrap_or("unknown"))).or_default() += 1;
    }
    let other =
        |((table, owner), count)| Other { place: format!("iptables {place}, table {table}"), owner, count };
    counts.into_iter().map(other).collect()
}

/// The owner of rules of a proxy.
pub(super) const PROXY: &str = "a service proxy (this one or kube-proxy)";
/// The owner of what ipvs mode makes beside rules.
pub(super) const IPVS_PROXY: &str = "a service proxy in ipvs mode; `cleanup` removes it";
const IPTABLES_NFT: &str = "iptables (nft back end)";

/// Prefixes of chain names, a longer one before a shorter one that it begins with.
const PREFIXES: &[(&str, &str)] = &[
    ("KUBE-ROUTER-", "kube-router"),
    ("KUBE-KUBELET-", "the kubelet"),
    ("KUBE-FIREWALL", "the kubelet and kube-proxy"),
    ("KUBE-", PROXY),
    ("DOCKER", "Docker"),
    ("cali-", "Calico"),
    ("CILIUM_", "Cilium"),
    ("OLD_CILIUM_", "Cilium"),
    ("FLANNEL-", "flannel"),
    ("ANTREA-", "Antrea"),
    ("WEAVE", "Weave Net"),
    ("CNI-", "CNI plugins"),
    ("NETAVARK", "Podman"),
    ("LIBVIRT_", "libvirt"),
    ("ISTIO_", "Istio"),
    ("ufw", "ufw"),
    ("f2b-", "fail2ban"),
    ("IN_", "firewalld"),
    ("FWD", "firewalld"),
    ("INPUT_ZONES", "firewalld"),
    ("ts-", "Tailscale"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_counted_by_table_and_owner() {
        let text = "*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n:KUBE-SVC-A - [0:0]\n\
            :DOCKER - [0:0]\nCOMMIT\n\
                    *filter\n:INPUT DROP [0:0]\n:mine - [0:0]\n:KUBE-KUBELET-CANARY - [0:0]\nCOMMIT\n";
        let found: Vec<_> = of_save(&Save::parse(text).unwrap(), "IPv4 nft")
            .into_iter()
            .map(|o| (o.place, o.owner, o.count))
            .collect();
        let (nat, filter) =
            ("iptables IPv4 nft, table nat".to_owned(), "iptables IPv4 nft, table filter".to_owned());
        let expected = [
            (filter.clone(), "the kubelet", 1),
            (filter, "unknown", 1),
            (nat.clone(), "Docker", 1),
            (nat, "a service proxy (this one or kube-proxy)", 2),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn names_tell_whose_a_table_is_in_its_family_alone() {
        assert_eq!(table_owner(Family::IP6, "kube-proxy"), "a service proxy (this one or kube-proxy)");
        assert_eq!(table_owner(Family::INET, "filter"), "unknown");
        assert_eq!(chain_owner("PREROUTING"), None);
    }
}
