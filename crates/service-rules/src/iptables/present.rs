//! What the kernel's rules serve at present, before they are compared.

use std::net::IpAddr;

use sluicegate_iptables_save::{Rule, Save};

use super::applier::{Applier, iptables};
use super::tables::open_used;
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

/// Returns the cluster IPs that the rules of this mode serve in the current network namespace, be they this
/// proxier's or kube-proxy's, in whichever back ends are in use.
///
/// # Errors
/// [`Error::Iptables`] when the tables cannot be listed.
pub fn present() -> Result<Present, Error> {
    let failed = |error| iptables("listing what there is")(error);
    let mut found = Present::default();
    for tables in open_used() {
        let mut tables = tables.map_err(failed)?;
        add(&mut found, &tables.list().map_err(failed)?);
    }
    Ok(found)
}

/// Adds the addresses to which chain KUBE-SERVICES sends cluster IPs, and those that have no endpoints.
fn add(found: &mut Present, save: &Save<'_>) {
    for table in save.tables() {
        for rule in table.rules().filter(|rule| rule.chain() == "KUBE-SERVICES").map(Rule::text) {
            // Not by comments: kube-proxy leaves them out where there are many endpoints. Other chains than
            // these are of external addresses, which in table filter are in another chain.
            let target = word_after(rule, "-j").unwrap_or_default();
            let leads = ["KUBE-SVC-", "KUBE-SVL-"].iter().any(|prefix| target.starts_with(prefix));
            let refuses = table.name() == "filter" && matches!(target, "REJECT" | "DROP");
            if (leads || refuses)
                && let Some(ip) = destination(rule)
            {
                found.cluster_ips.insert(ip);
                found.with_endpoints.extend(leads.then_some(ip));
            }
        }
    }
}

/// Returns the one address that a rule has as its destination.
fn destination(rule: &str) -> Option<IpAddr> {
    word_after(rule, "-d")?.split('/').next()?.parse().ok()
}

fn word_after<'r>(rule: &'r str, option: &str) -> Option<&'r str> {
    let mut words = rule.split_ascii_whitespace();
    words.find(|word| *word == option)?;
    words.next()
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
                    -m comment --comment \"a/a:c external IP\" -m tcp --dport 80 -j KUBE-EXT-X\n-A \
                    KUBE-SERVICES -d 172.30.0.3/32 -p tcp -m tcp --dport 80 -j KUBE-SVL-X\n-A KUBE-SVC-X ! -s \
                    10.0.0.0/8 -d 172.30.0.9/32 -p tcp -m comment --comment \"a/a:c cluster IP\" -j RETURN\nCOMMIT\n";
        let mut found = Present::default();
        add(&mut found, &Save::parse(text).unwrap());
        let texts = |of: &BTreeSet<IpAddr>| of.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(texts(&found.cluster_ips), ["172.30.0.1", "172.30.0.2", "172.30.0.3"]);
        assert_eq!(texts(&found.with_endpoints), ["172.30.0.1", "172.30.0.3"]);
    }
}
