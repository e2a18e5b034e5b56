//! Who writes rules here, known by the names of tables and chains.

use std::collections::BTreeMap;

use sluicegate_iptables_save::Save;
use sluicegate_nftables::Family;

/// A table or chains that are there, and whose they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// What and where.
    pub place: String,
    /// Whose, as far as names tell.
    pub whose: &'static str,
    /// How many chains; 1 for a table.
    pub count: usize,
}

/// Whose an nftables table is.
///
/// ```
/// use sluicegate_nftables::Family;
/// use sluicegate_proxier::doctor::whose_table;
///
/// assert_eq!(whose_table(Family::INET, "firewalld"), "firewalld");
/// assert_eq!(whose_table(Family::IP, "nat"), "iptables (nft back end)");
/// ```
#[must_use]
pub fn whose_table(family: Family, name: &str) -> &'static str {
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
        _ => "not known",
    }
}

/// Whose a chain of iptables is; `None` for built-in and unknown ones.
#[must_use]
pub fn whose_chain(name: &str) -> Option<&'static str> {
    let known = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
    known.map(|(_, whose)| *whose)
}

/// The chains of an `iptables-save`, counted by table and owner. Text that cannot be read has none.
pub(super) fn of_save(text: &str, place: &str) -> Vec<Other> {
    let Ok(save) = Save::parse(text) else { return Vec::new() };
    let mut counts: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
    for table in save.tables() {
        for chain in table.chains().filter(|chain| chain.policy().is_none()) {
            let whose = whose_chain(chain.name()).unwrap_or("not known");
            *counts.entry((table.name().to_owned(), whose)).or_default() += 1;
        }
    }
    let other =
        |((table, whose), count)| Other { place: format!("iptables {place}, table {table}"), whose, count };
    counts.into_iter().map(other).collect()
}

/// The longer ones first.
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
        let text = "*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n:KUBE-SVC-A - [0:0]\n:DOCKER - [0:0]\nCOMMIT\n\
                    *filter\n:INPUT DROP [0:0]\n:mine - [0:0]\n:KUBE-KUBELET-CANARY - [0:0]\nCOMMIT\n";
        let found: Vec<_> =
            of_save(text, "IPv4 nft").into_iter().map(|o| (o.place, o.whose, o.count)).collect();
        let (nat, filter) =
            ("iptables IPv4 nft, table nat".to_owned(), "iptables IPv4 nft, table filter".to_owned());
        let expected = [
            (filter.clone(), "not known", 1),
            (filter, "the kubelet", 1),
            (nat.clone(), "Docker", 1),
            (nat, "a service proxy (this one or kube-proxy)", 2),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn names_tell_whose_a_table_is_in_its_family_alone() {
        assert_eq!(whose_table(Family::IP6, "kube-proxy"), "a service proxy (this one or kube-proxy)");
        assert_eq!(whose_table(Family::INET, "filter"), "not known");
        assert_eq!(whose_chain("PREROUTING"), None);
    }
}
