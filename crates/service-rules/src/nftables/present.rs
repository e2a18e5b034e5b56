//! What the kernel's rules serve at present, before they are compared.

use std::collections::BTreeSet;
use std::net::IpAddr;

use sluicegate_netlink::Transport;
use sluicegate_nftables::Family;

use super::Applier;
use super::element::{Container, Path, Scope};
use crate::{Error, Present};

impl<T: Transport> Applier<T> {
    /// Returns the cluster IPs that the rules in the kernel serve, as the last program that wrote them left
    /// them: this one in either layout, or kube-proxy.
    ///
    /// # Errors
    /// [`Error::Netlink`] when they cannot be listed.
    pub fn present(&mut self) -> Result<Present, Error> {
        let ruleset = self.ruleset()?;
        let dispatch = Container::Dispatch(Scope::Address, Path::Main).name();
        let mut present = Present::default();
        let mut leading = BTreeSet::new();
        for (set, elements) in &ruleset.sets {
            let name = set.name.as_str();
            let is_v6 = set.family == Family::IP6;
            let addresses = elements.iter().filter_map(|element| address(is_v6, &element.key));
            if name == Container::ClusterIps.name() {
                present.cluster_ips.extend(addresses);
            } else if name == dispatch {
                leading.extend(addresses);
            }
        }
        // What leads to no endpoint is in another map; load balancers' addresses are here as well.
        present.with_endpoints = leading.intersection(&present.cluster_ips).copied().collect();
        Ok(present)
    }
}

/// Returns the address with which a key begins.
fn address(is_v6: bool, key: &[u8]) -> Option<IpAddr> {
    match is_v6 {
        false => key.first_chunk::<4>().map(|octets| IpAddr::from(*octets)),
        true => key.first_chunk::<16>().map(|octets| IpAddr::from(*octets)),
    }
}
