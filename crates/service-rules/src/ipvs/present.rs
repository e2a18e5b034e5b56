//! What the kernel serves at present, before it is compared.

use sluicegate_ipset::{Addresses, Element};
use sluicegate_ipvs::ServiceId;
use sluicegate_netlink::Transport;
use sluicegate_services::Family;

use super::{Applier, Set};
use crate::{Error, Present};

impl<T: Transport> Applier<T> {
    /// Returns the cluster IPs that are in the sets in the kernel, as the last program that wrote them left
    /// them: this one or kube-proxy.
    ///
    /// # Errors
    /// [`Error::Ipset`], [`Error::Ipvs`] when they cannot be listed.
    pub fn present(&mut self) -> Result<Present, Error> {
        let mut present = Present::default();
        for family in Family::BOTH {
            let spec = Set::ClusterIp.spec(family);
            let listings = match self.sets().list(Some(spec.name())) {
                Ok(listings) => listings,
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(Error::ipset("listing sets", error)),
            };
            let entries = listings.iter().flat_map(|listing| &listing.entries);
            present.cluster_ips.extend(entries.filter_map(|entry| match entry.element() {
                Element::IpPort(Addresses::Host(ip), _) => Some(*ip),
                _ => None,
            }));
        }
        let listed = self.servers().list(|_| true);
        for server in listed.map_err(|error| Error::ipvs("listing virtual servers", error))? {
            // A destination that only keeps its connections has weight 0.
            let leads = server.destinations.iter().any(|destination| destination.config.weight > 0);
            let ServiceId::Virtual { endpoint, .. } = server.service.id else { continue };
            if leads && present.cluster_ips.contains(&endpoint.address) {
                present.with_endpoints.insert(endpoint.address);
            }
        }
        Ok(present)
    }
}
