//! Stale UDP flows, which a service proxy has to delete after it has changed the destination of packets.
//!
//! The first packet of a UDP flow determines its server, and later packets go there as long as the flow
//! exists, regardless of changes of the rules. So after a change, flows from a *frontend* to an address that
//! is no longer one of its servers have to be deleted. The next packet then creates a new flow by the new
//! rules.
//!
//! [`Services`] has the frontends with their servers; [`sync`] deletes every flow to another server.
//!
//! ```no_run
//! use sluicegate_conntrack::{Client, Family, stale::{self, Services}};
//!
//! let mut services = Services::new();
//! let (server, dns) = ("10.244.0.5:53".parse().unwrap(), "10.96.0.10:53".parse().unwrap());
//! services.frontend(dns, [server]);
//! services.node_port(Family::Ipv4, 30053, [server]);
//! let report = stale::sync(&mut Client::open()?, &services)?;
//! println!("{} stale flows deleted", report.deleted);
//! # Ok::<(), sluicegate_conntrack::Error>(())
//! ```
//!
//! # What it costs
//!
//! The kernel walks its whole table for a list, with or without a filter: 14 to 16 ms for 100,000 flows. To
//! send all of them takes about 100 ms. So up to [`FILTERED_LISTS`] frontends are listed one by one with a
//! filter; more are looked up in one list of all UDP flows. In either case each flow is compared here before
//! it is deleted by tuple and id.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use sluicegate_netlink::Transport;

use crate::client::Table;
use crate::{Client, Error, Family, Filter, Flow, FlowKey, Protocol};

/// The frontends of UDP services, each with the servers that its packets may go to.
///
/// Flows to other addresses are not changed. All flows of a frontend without servers are stale. A frontend
/// that is added twice has the servers of both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Services {
    frontends: HashMap<(IpAddr, u16), HashSet<(IpAddr, u16)>>,
    node_ports: HashMap<(Family, u16), HashSet<(IpAddr, u16)>>,
}

/// The result of a synchronisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Report {
    /// The method by which the flows were found.
    pub how: How,
    /// The number of times that the kernel walked its table.
    pub lists: usize,
    /// The number of flows that the kernel listed, stale or not.
    pub seen: usize,
    /// The number of stale flows that were deleted.
    pub deleted: usize,
    /// The number of stale flows that did not exist any more.
    pub gone: usize,
}

/// The method by which the flows of frontends were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum How {
    /// There are no frontends.
    #[default]
    NotAtAll,
    /// By a filtered list for each frontend.
    Filtered,
    /// By one list of all UDP flows of a family.
    Whole,
}

/// The number of filtered lists that take as long as one of all flows, with 100,000 tracked flows (measured
/// on Linux 6.18).
pub const FILTERED_LISTS: usize = 6;

impl Services {
    /// Returns services without frontends.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a frontend, the address and port that packets are sent to, with its servers.
    pub fn frontend(&mut self, frontend: SocketAddr, servers: impl IntoIterator<Item = SocketAddr>) {
        add(&mut self.frontends, pair(frontend), servers);
    }

    /// Adds a node port, with its servers.
    ///
    /// It applies to flows to the port on *any* address, unless the address and port are a frontend
    /// themselves: the addresses of the node are not known here.
    pub fn node_port(&mut self, family: Family, port: u16, servers: impl IntoIterator<Item = SocketAddr>) {
        add(&mut self.node_ports, (family, port), servers);
    }

    /// Returns true when there are no frontends.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of frontends and node ports.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frontends.len() + self.node_ports.len()
    }

    /// Returns true when the flow goes from a frontend to an address that is not one of its servers.
    #[must_use]
    pub fn is_stale(&self, flow: &Flow) -> bool {
        let (original, reply) = (&flow.original, &flow.reply);
        let (Some(port), Some(server_port)) = (original.destination_port(), reply.source_port()) else {
            return false;
        };
        if original.protocol != Protocol::UDP {
            return false;
        }
        let frontend = self.frontends.get(&(original.destination(), port));
        let servers = frontend.or_else(|| self.node_ports.get(&(original.family(), port)));
        servers.is_some_and(|servers| !servers.contains(&(reply.source(), server_port)))
    }

    /// Returns the lists to request.
    fn plan(&self) -> (How, Vec<Filter>) {
        if self.is_empty() {
            return (How::NotAtAll, Vec::new());
        }
        // The kernel must not compare IPv6 addresses, so that one list by port serves all IPv6 frontends of
        // that port. The same applies to a node port and the frontends of that port.
        let by_port =
            self.frontends.keys().filter(|(ip, _)| ip.is_ipv6()).map(|(ip, port)| (Family::of(*ip), *port));
        let ports: BTreeSet<(Family, u16)> = by_port.chain(self.node_ports.keys().copied()).collect();
        let alone = self.frontends.keys().filter(|(ip, port)| !ports.contains(&(Family::of(*ip), *port)));
        let addressed: BTreeSet<&(IpAddr, u16)> = alone.collect();
        if ports.len() + addressed.len() > FILTERED_LISTS {
            let families: BTreeSet<Family> = self.families().collect();
            return (How::Whole, families.into_iter().map(|family| udp(family, None, None)).collect());
        }
        let ports = ports.into_iter().map(|(family, port)| udp(family, None, Some(port)));
        let addressed = addressed.into_iter().map(|(ip, port)| udp(Family::of(*ip), Some(*ip), Some(*port)));
        (How::Filtered, ports.chain(addressed).collect())
    }

    fn families(&self) -> impl Iterator<Item = Family> {
        let of_frontends = self.frontends.keys().map(|(ip, _)| Family::of(*ip));
        of_frontends.chain(self.node_ports.keys().map(|(family, _)| *family))
    }
}

/// Deletes the UDP flows from one of these frontends to an address that is not one of its servers.
///
/// # Errors
/// As [`Client::list`] and [`Client::delete`]. Flows may have been deleted by then; call it again.
pub fn sync<T: Transport>(client: &mut Client<T>, services: &Services) -> Result<Report, Error> {
    let (how, lists) = services.plan();
    let mut report = Report { how, lists: lists.len(), ..Report::default() };
    let mut stale: Vec<FlowKey> = Vec::new();
    for filter in &lists {
        let found = client.select(Table::Conntrack, filter, |flow| {
            report.seen += 1;
            services.is_stale(&flow).then(|| flow.key())
        })?;
        stale.extend(found);
    }
    let done = client.delete(&stale)?;
    (report.deleted, report.gone) = (done.deleted, done.gone);
    Ok(report)
}

fn add<K: Eq + Hash>(
    map: &mut HashMap<K, HashSet<(IpAddr, u16)>>,
    key: K,
    servers: impl IntoIterator<Item = SocketAddr>,
) {
    map.entry(key).or_default().extend(servers.into_iter().map(pair));
}

/// Removes the scope and flow label of IPv6, which a tuple does not have.
fn pair(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip(), address.port())
}

fn udp(family: Family, destination: Option<IpAddr>, port: Option<u16>) -> Filter {
    let mut filter = Filter { family: Some(family), protocol: Some(Protocol::UDP), ..Filter::default() };
    filter.original.destination = destination.map(IpNet::from);
    filter.original.destination_port = port;
    filter
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tuple;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn flow(protocol: Protocol, to: &str, answered_by: &str) -> Flow {
        let to = address(to);
        let client = if to.is_ipv4() { "10.0.0.1:1000" } else { "[fd00::1]:1000" };
        let original = Tuple::with_ports(protocol, address(client), to).unwrap();
        let reply = Tuple::with_ports(protocol, address(answered_by), address(client)).unwrap();
        Flow::between(original, reply)
    }

    fn services() -> Services {
        let mut services = Services::new();
        services.frontend(address("10.96.0.10:53"), ["10.244.0.5:53", "10.244.0.6:53"].map(address));
        services.frontend(address("10.96.0.10:30053"), [address("10.244.0.7:53")]);
        services.frontend(address("[fd00::a]:53"), [address("[fd00::5]:53")]);
        services.node_port(Family::Ipv4, 30053, [address("10.244.0.5:53")]);
        services
    }

    #[test]
    fn a_flow_is_stale_when_it_goes_to_none_of_the_servers_of_its_frontend() {
        let services = services();
        let cases = [
            ("10.96.0.10:53", "10.244.0.5:53", false),
            ("10.96.0.10:53", "10.244.0.6:53", false),
            // Another address or port, or no translation: the service had no endpoint when the flow began.
            ("10.96.0.10:53", "10.244.0.9:53", true),
            ("10.96.0.10:53", "10.244.0.5:54", true),
            ("10.96.0.10:53", "10.96.0.10:53", true),
            ("10.96.0.11:53", "10.244.0.9:53", false),
            ("[fd00::a]:53", "[fd00::5]:53", false),
            ("[fd00::a]:53", "[fd00::6]:53", true),
            // A node port applies to any address of its family that is not a frontend itself.
            ("192.168.0.2:30053", "10.244.0.5:53", false),
            ("192.168.0.2:30053", "10.244.0.6:53", true),
            ("10.96.0.10:30053", "10.244.0.7:53", false),
            ("10.96.0.10:30053", "10.244.0.5:53", true),
            ("[fd00::2]:30053", "[fd00::6]:53", false),
        ];
        for (to, by, stale) in cases {
            assert_eq!(services.is_stale(&flow(Protocol::UDP, to, by)), stale, "{to} {by}");
            assert!(!services.is_stale(&flow(Protocol::TCP, to, by)), "{to} {by}");
        }
    }

    #[test]
    fn a_few_frontends_are_listed_separately_and_many_in_one_list() {
        assert_eq!(Services::new().plan(), (How::NotAtAll, Vec::new()));
        // fd00::a by its port; 30053 together with the frontend of that port; 10.96.0.10:53 separately.
        let (how, lists) = services().plan();
        assert_eq!((how, lists.len()), (How::Filtered, 3));
        let mut many = Services::new();
        for port in 1..=7 {
            many.frontend(SocketAddr::new("10.96.0.1".parse().unwrap(), port), []);
        }
        let (how, lists) = many.plan();
        assert_eq!((how, lists), (How::Whole, vec![udp(Family::Ipv4, None, None)]));
        // Seven IPv6 frontends with one port need one list.
        let mut v6 = Services::new();
        for n in 1..=7u16 {
            v6.frontend(SocketAddr::new([0xfd00, 0, 0, 0, 0, 0, 0, n].into(), 53), []);
        }
        assert_eq!(v6.plan(), (How::Filtered, vec![udp(Family::Ipv6, None, Some(53))]));
    }

    #[test]
    fn every_flow_that_can_be_stale_is_in_a_list() {
        let services = services();
        let (_, lists) = services.plan();
        for to in ["10.96.0.10:53", "[fd00::a]:53", "192.168.0.2:30053", "10.96.0.10:30053"] {
            let by = if to.starts_with('[') { "[fd00::99]:1" } else { "10.9.9.9:1" };
            let flow = flow(Protocol::UDP, to, by);
            assert!(services.is_stale(&flow));
            assert_eq!(lists.iter().filter(|filter| filter.matches(&flow)).count(), 1, "{to}");
        }
    }
}
