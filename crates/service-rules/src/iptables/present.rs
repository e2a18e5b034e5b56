//! What the kernel's rules serve at present, before they are compared.

use std::net::IpAddr;

use sluicegate_iptables_save::{Rule, Save, Table};

use super::applier::{Applier, iptables};
use crate::{Error, Present};

impl Applier {
    /// Returns the cluster IPs that the rules in the kernel serve, as the last program that wrote them left
    /// them: this one or kube-proxy.
    ///
    /// # Errors
    /// [`Error::Iptables`] when the tables cannot be listed.
    pub fn present(&mut self) -> Result<Present, Error> {
        let mut found = Present::default();
        for tables in self.tables_mut() {
            add(&mut found, &tables.list().map_err(iptables("listing what there is"))?);
        }
        Ok(found)
    }
}

/// Adds the addresses to which chain KUBE-SERVICES sends cluster IPs, and those that have no endpoints.
fn add(found: &mut Present, save: &Save<'_>) {
    let rules = save.tables().flat_map(Table::rules);
    for rule in rules.filter(|rule| rule.chain() == "KUBE-SERVICES").map(Rule::text) {
        // The comments are kube-proxy's, and part of what other programs read. Others of the chain are
        // external addresses.
        let leads = rule.contains(" cluster IP\"");
        if (leads || rule.contains(" has no endpoints\""))
            && let Some(ip) = destination(rule)
        {
            found.cluster_ips.insert(ip);
            found.with_endpoints.extend(leads.then_some(ip));
        }
    }
}

/// Returns the one address that a rule has as its destination.
fn destination(rule: &str) -> Option<IpAddr> {
    let mut words = rule.split_ascii_whitespace();
    words.find(|word| *word == "-d")?;
    words.next()?.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn cluster_ips_are_found_among_the_rules() {
        let text = "*filter\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -d 172.30.0.2/32 -p tcp -m comment --comment \
                    \"a/b:c has no endpoints\" -m tcp --dport 80 -j REJECT\nCOMMIT\n*nat\n:KUBE-SERVICES - \
                    [0:0]\n:KUBE-SVC-X - [0:0]\n-A KUBE-SERVICES -d 172.30.0.1/32 -p tcp -m comment --comment \
                    \"a/a:c cluster IP\" -m tcp --dport 80 -j KUBE-SVC-X\n-A KUBE-SERVICES -d 198.51.100.1/32 -p tcp \
                    -m comment --comment \"a/a:c external IP\" -m tcp --dport 80 -j KUBE-SVC-X\n-A KUBE-SVC-X ! -s \
                    10.0.0.0/8 -d 172.30.0.9/32 -p tcp -m comment --comment \"a/a:c cluster IP\" -j RETURN\nCOMMIT\n";
        let mut found = Present::default();
        add(&mut found, &Save::parse(text).unwrap());
        let texts = |of: &BTreeSet<IpAddr>| of.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(texts(&found.cluster_ips), ["172.30.0.1", "172.30.0.2"]);
        assert_eq!(texts(&found.with_endpoints), ["172.30.0.1"]);
    }
}
