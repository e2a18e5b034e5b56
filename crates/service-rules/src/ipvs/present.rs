//! What the kernel serves at present, before it is compared.

use std::collections::BTreeSet;
use std::net::IpAddr;

use sluicegate_ipset::{Addresses, Element};
use sluicegate_netlink::Transport;
use sluicegate_services::Family;

use super::{Applier, Set};
use crate::Error;

impl<T: Transport> Applier<T> {
    /// Returns the cluster IPs that are in the sets in the kernel, as the last program that wrote them left
    /// them: this one or kube-proxy.
    ///
    /// # Errors
    /// [`Error::Ipset`] when they cannot be listed.
    pub fn cluster_ips(&mut self) -> Result<BTreeSet<IpAddr>, Error> {
        let mut found = BTreeSet::new();
        for family in Family::BOTH {
            let spec = Set::ClusterIp.spec(family);
            let listings = match self.sets().list(Some(spec.name())) {
                Ok(listings) => listings,
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(Error::ipset("listing sets", error)),
            };
            let entries = listings.iter().flat_map(|listing| &listing.entries);
            found.extend(entries.filter_map(|entry| match entry.element() {
                Element::IpPort(Addresses::Host(ip), _) => Some(*ip),
                _ => None,
            }));
        }
        Ok(found)
    }
}
