//! Recognises the rules of other programs by the names of tables and chains.

use std::collections::BTreeMap;

use sluicegate_iptables_save::Save;
use sluicegate_nftables::Family;

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
        "kube-proxy" => "a service proxy (this one or kube-proxy)",
        "filter" | "nat" | "mangle" | "raw" | "security" if iptables => "iptables (nft back end)",
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
    let mut counts: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
    for table in save.tables() {
        for chain in table.chains().filter(|chain| chain.policy().is_none()) {
            let owner = chain_owner(chain.name()).unwrap_or("unknown");
            *counts.entry((table.name().to_owned(), owner)).or_default() += 1;
        }
    }
    let other =
        |((table, owner), count)| Other { place: format!("iptables {place}, table {table}"), owner, count };
    counts.into_iter().map(other).collect()
}

/// Prefixes of chain names, a longer one before a shorter one that it begins with.
const PREFIXES: &[(&str, &str)] = &[
    ("KUBE-ROUTER-", "kube-router"),
    ("KUBE-KUBELET-", "the kubelet"),
    ("KUBE-FIREWALL", "the kubelet and kube-proxy"),
    ("KUBE-", "a service proxy (this one or kube-proxy)"),
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
