//! What the kernel's rules serve at present, before they are compared.

use std::collections::BTreeSet;
use std::net::IpAddr;

use sluicegate_netlink::Transport;

use super::Applier;
use crate::Error;

impl<T: Transport> Applier<T> {
    /// Returns the cluster IPs that the rules in the kernel serve, as the last program that wrote them left
    /// them: this one in either layout, or kube-proxy.
    ///
    /// # Errors
    /// [`Error::Netlink`] when they cannot be listed.
    pub fn cluster_ips(&mut self) -> Result<BTreeSet<IpAddr>, Error> {
        let ruleset = self.ruleset()?;
        let of_set = ruleset.sets.iter().filter(|(set, _)| set.name.as_str() == "cluster-ips");
        let elements = of_set.flat_map(|(_, elements)| elements);
        Ok(elements.filter_map(|element| address(&element.key)).collect())
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}
