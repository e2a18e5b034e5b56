//! What the kernel serves at present, before it is compared.

use sluicegate_ipset::{self as ipset, Addresses, Element};
use sluicegate_ipvs::{self as ipvs, ServiceId};
use sluicegate_netlink::Transport;
use sluicegate_services::Family;

use super::kernel::Kernel;
use super::{Applier, Set};
use crate::{Error, Present};

impl<T: Transport> Applier<T> {
    /// Returns the cluster IPs that are in the sets in the kernel, as the last program that wrote them left
    /// them: this one or kube-proxy.
    ///
    /// # Errors
    /// [`Error::Ipset`], [`Error::Ipvs`] when they cannot be listed.
    pub fn present(&mut self) -> Result<Present, Error> {
        let Kernel { sets, servers, .. } = self.kernel();
        let mut present = cluster_ips(sets)?;
        add_endpoints(&mut present, servers)?;
        Ok(present)
    }
}

/// Returns the cluster IPs that the sets of this mode have in the current network namespace, be they this
/// proxier's or kube-proxy's. A kernel without ipset or IPVS has none.
///
/// # Errors
/// [`Error::Ipset`], [`Error::Ipvs`] when they cannot be listed.
pub fn present() -> Result<Present, Error> {
    let mut sets = ipset::Client::open().map_err(|error| Error::ipset("listing sets", error))?;
    let mut present = match cluster_ips(&mut sets) {
        Err(error) if error.is_absent() => return Ok(Present::default()),
        listed => listed?,
    };
    // A request would load IPVS.
    if present.cluster_ips.is_empty() {
        return Ok(present);
    }
    match ipvs::Client::open() {
        Ok(mut servers) => add_endpoints(&mut present, &mut servers)?,
        Err(error) if error.is_absent() => {}
        Err(error) => return Err(Error::ipvs("listing virtual servers", error)),
    }
    Ok(present)
}

fn cluster_ips<T: Transport>(sets: &mut ipset::Client<T>) -> Result<Present, Error> {
    let mut present = Present::default();
    for family in Family::BOTH {
        let spec = Set::ClusterIp.spec(family);
        let listings = match sets.list(Some(spec.name())) {
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
    Ok(present)
}

/// Adds which of the cluster IPs lead to endpoints.
fn add_endpoints<T: Transport>(present: &mut Present, servers: &mut ipvs::Client<T>) -> Result<(), Error> {
    let listed = servers.list(|_| true);
    for server in listed.map_err(|error| Error::ipvs("listing virtual servers", error))? {
        // A destination that only keeps its connections has weight 0.
        let leads = server.destinations.iter().any(|destination| destination.config.weight > 0);
        let ServiceId::Virtual { endpoint, .. } = server.service.id else { continue };
        if leads && present.cluster_ips.contains(&endpoint.address) {
            present.with_endpoints.insert(endpoint.address);
        }
    }
    Ok(())
}
