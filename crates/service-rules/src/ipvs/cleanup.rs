//! Removes all objects of this mode in both families.

use std::collections::BTreeSet;
use std::net::IpAddr;

use sluicegate_ipset::{self as ipset, Element, Exist, Listing};
use sluicegate_ipvs::{self as ipvs, Command, ServiceId};
use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_services::Family;

use super::links::Links;
use super::{DEVICE, Set, is_ours, is_ours_alone, restore as rules};
use crate::iptables::{Tables, iptables, open_used};
use crate::summary::counted;
use crate::{Cleaned, Error};

/// Removes rules, virtual servers, addresses and sets of this mode from the current network namespace and
/// reports what was removed.
///
/// Virtual servers are ours if the sets or the addresses of [`DEVICE`] name them; others remain. In a kernel
/// without IPVS or ipset there are none. The failures in the result are [`Error::Iptables`],
/// [`Error::Rules`], [`Error::Ipvs`], [`Error::Ipset`] and [`Error::Netlink`].
pub fn cleanup() -> Cleaned {
    remove_all(is_ours)
}

/// Removes them as [`cleanup`] does, but for the chains that iptables mode has too, and is running with.
pub fn cleanup_beside_iptables() -> Cleaned {
    remove_all(is_ours_alone)
}

/// Counts the connections of IPVS through virtual servers of this mode: those that [`cleanup`] would end. There
/// are none in a kernel without IPVS, which is not loaded.
///
/// # Errors
/// [`Error::Netlink`], [`Error::Ipset`] and [`Error::Ipvs`] when something cannot be listed.
pub fn connections() -> Result<u64, Error> {
    let (_, bound) = bound()?;
    let failed = |error| Error::ipvs("counting connections", error);
    let fronts = Sets::open()?.fronts()?;
    let ours = Ours { bound: &bound, fronts: &fronts };
    let Some(mut client) = ours.client()? else { return Ok(0) };
    let listed = client.list(|id| ours.has(id)).map_err(failed)?;
    let destinations = listed.iter().flat_map(|listing| &listing.destinations);
    Ok(destinations.map(|one| u64::from(one.connections.active) + u64::from(one.connections.inactive)).sum())
}

fn remove_all(goes: fn(&str, &str) -> bool) -> Cleaned {
    let mut cleaned = Cleaned::default();
    for tables in open_used() {
        let opened = tables.map_err(iptables("opening the tables of iptables"));
        cleaned.add(opened.and_then(|tables| remove_rules(tables, goes)));
    }
    if let Err(error) = remove_rest(&mut cleaned) {
        cleaned.failed.push(error);
    }
    cleaned
}

fn remove_rules(mut tables: Box<dyn Tables>, goes: fn(&str, &str) -> bool) -> Result<Option<String>, Error> {
    let (family, back_end) = (tables.family(), tables.back_end());
    let chains = rules::remove(&mut *tables, goes)?;
    let said =
        || format!("{} of ipvs mode and the jumps to them ({family}, {back_end})", counted(chains, "chain"));
    Ok((chains > 0).then(said))
}

/// Removes all objects except rules. The sets are removed last, because they identify our virtual servers.
fn remove_rest(cleaned: &mut Cleaned) -> Result<(), Error> {
    let (mut links, bound) = bound()?;
    let mut sets = Sets::open()?;
    let servers = remove_servers(&bound, &sets.fronts()?)?;
    cleaned.removed.extend((servers > 0).then(|| format!("{servers} virtual servers")));
    if links.remove().map_err(|error| Error::netlink("deleting the device of services", error))? {
        cleaned.removed.push(format!("device {DEVICE} with {} addresses", bound.len()));
    }
    let sets = sets.remove()?;
    cleaned.removed.extend((sets > 0).then(|| format!("{sets} ipsets")));
    Ok(())
}

/// Returns the addresses of our device.
fn bound() -> Result<(Links<Socket>, BTreeSet<IpAddr>), Error> {
    let failed = |error| Error::netlink("opening a netlink socket", error);
    let mut links =
        Links::new(Socket::open(NetlinkFamily::ROUTE, &Options::default()).map_err(failed)?, None);
    links.refresh().map_err(|error| Error::netlink("listing addresses", error))?;
    let bound = Family::BOTH.iter().flat_map(|family| links.ours(*family)).collect();
    Ok((links, bound))
}

/// Addresses and ports of services.
#[derive(Debug, Default)]
struct Fronts {
    /// Protocol, address, port.
    addresses: BTreeSet<(ipvs::Protocol, IpAddr, u16)>,
    /// Protocol and port on every address of the node.
    node_ports: BTreeSet<(ipvs::Protocol, u16)>,
}

impl Fronts {
    fn has(&self, id: &ServiceId) -> bool {
        let ServiceId::Virtual { protocol, endpoint } = id else { return false };
        self.addresses.contains(&(*protocol, endpoint.address, endpoint.port))
            || self.node_ports.contains(&(*protocol, endpoint.port))
    }

    fn add(&mut self, set: Set, element: &Element) {
        match (set, element) {
            (
                Set::ClusterIp
                | Set::ExternalIp
                | Set::ExternalIpLocal
                | Set::LoadBalancer
                | Set::NodePortSctp,
                Element::IpPort(ip, port),
            ) => {
                self.addresses.insert((port.protocol, ip.first(), port.from));
            }
            (Set::NodePortTcp, Element::Port(port, _)) => {
                self.node_ports.insert((ipvs::Protocol::TCP, *port));
            }
            (Set::NodePortUdp, Element::Port(port, _)) => {
                self.node_ports.insert((ipvs::Protocol::UDP, *port));
            }
            _ => {}
        }
    }
}

/// Our sets, if the kernel has ipset.
struct Sets {
    client: ipset::Client,
    there: Vec<(Set, Listing)>,
}

impl Sets {
    fn open() -> Result<Self, Error> {
        let failed = |error| Error::ipset("listing sets", error);
        let mut client = ipset::Client::open().map_err(failed)?;
        let mut there = Vec::new();
        let names = match client.names() {
            Ok(names) => names,
            Err(error) if error.is_unsupported() => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        for name in names {
            let set = Family::BOTH.into_iter().find_map(|family| Set::named(&name.to_text(), family));
            let Some(set) = set else { continue };
            match client.list(Some(name)) {
                Ok(listings) => there.extend(listings.into_iter().map(|listing| (set, listing))),
                // Another program has destroyed it since.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(Self { client, there })
    }

    fn fronts(&self) -> Result<Fronts, Error> {
        let mut fronts = Fronts::default();
        for (set, listing) in &self.there {
            listing.entries.iter().for_each(|entry| fronts.add(*set, entry.element()));
        }
        Ok(fronts)
    }

    fn remove(&mut self) -> Result<usize, Error> {
        for (_, listing) in &self.there {
            let destroyed = self.client.destroy(listing.info.name, Exist::Ignore);
            destroyed.map_err(|error| Error::ipset("destroying sets", error))?;
        }
        Ok(self.there.len())
    }
}

/// The addresses of our device, and the fronts of our sets: virtual servers with one of these are ours.
struct Ours<'f> {
    bound: &'f BTreeSet<IpAddr>,
    fronts: &'f Fronts,
}

impl Ours<'_> {
    /// Returns a client of IPVS, if there may be a virtual server of ours.
    fn client(&self) -> Result<Option<ipvs::Client>, Error> {
        let Self { bound, fronts } = self;
        // A request would load the module.
        if bound.is_empty() && fronts.addresses.is_empty() && fronts.node_ports.is_empty() {
            return Ok(None);
        }
        match ipvs::Client::open() {
            Ok(client) => Ok(Some(client)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(Error::ipvs("listing virtual servers", error)),
        }
    }

    fn has(&self, id: &ServiceId) -> bool {
        self.fronts.has(id)
            || matches!(id, ServiceId::Virtual { endpoint, .. } if self.bound.contains(&endpoint.address))
    }
}

fn remove_servers(bound: &BTreeSet<IpAddr>, fronts: &Fronts) -> Result<usize, Error> {
    let failed = |error| Error::ipvs("removing virtual servers", error);
    let ours = Ours { bound, fronts };
    let Some(mut client) = ours.client()? else { return Ok(0) };
    let ids = client.services().map_err(failed)?.into_iter().map(|service| service.id);
    let ours = ids.filter(|id| ours.has(id));
    let commands: Vec<_> = ours.map(|id| Command::DeleteService { id }).collect();
    client.run_all(&commands).map_err(failed)?;
    Ok(commands.len())
}
