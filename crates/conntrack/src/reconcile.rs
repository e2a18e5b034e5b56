//! Stale UDP flows: what a service proxy has to remove after it changed where packets go.
//!
//! A UDP flow remembers which server its first packet was sent to, and goes on sending there for as long as packets keep
//! coming, whatever the rules say by then. So after the rules have changed, the flows that lead from a *front end* to what
//! is no server of it any more have to go; the next packet then makes a new flow by the new rules.
//!
//! [`Services`] says which front ends there are and who serves them; [`reconcile`] removes every flow that disagrees.
//!
//! ```no_run
//! use sluicegate_conntrack::{Client, Family, reconcile::{Services, reconcile}};
//!
//! let mut services = Services::new();
//! let (server, dns) = ("10.244.0.5:53".parse().unwrap(), "10.96.0.10:53".parse().unwrap());
//! services.frontend(dns, [server]);
//! services.node_port(Family::Ipv4, 30053, [server]);
//! let report = reconcile(&mut Client::open()?, &services)?;
//! println!("{} stale flows deleted", report.deleted);
//! # Ok::<(), sluicegate_conntrack::Error>(())
//! ```
//!
//! # What it costs
//!
//! The kernel walks its whole table for a list, whatever the list is filtered by: 14 to 16 ms for 100,000 flows. Telling of
//! all of them takes about 100 ms. So up to [`FILTERED_LISTS`] front ends are listed one by one, filtered; more are looked
//! up in one list of all UDP flows. Either way each flow is compared here before it is deleted, by tuple and id.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use sluicegate_netlink::Transport;

use crate::client::Table;
use crate::{Client, Error, Family, Filter, Flow, FlowKey, Protocol};

/// The front ends of UDP services, each with the servers that its packets may go to.
///
/// What is not named here is left alone. A front end that is named without a server is one whose flows all lead nowhere: they
/// are stale. Who names one twice gets the servers of both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Services {
    frontends: HashMap<(IpAddr, u16), HashSet<(IpAddr, u16)>>,
    node_ports: HashMap<(Family, u16), HashSet<(IpAddr, u16)>>,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Report {
    /// How the flows were found.
    pub how: How,
    /// How often the kernel walked its table.
    pub lists: usize,
    /// Flows that the kernel told of, stale or not.
    pub seen: usize,
    /// Stale flows that were deleted.
    pub deleted: usize,
    /// Stale flows that had gone by themselves.
    pub gone: usize,
}

/// How the flows of front ends were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum How {
    /// There was nothing to look for.
    #[default]
    NotAtAll,
    /// By a filtered list for each front end.
    Filtered,
    /// By one list of all UDP flows of a family.
    Whole,
}

/// So many filtered lists take as long as one of everything, where 100,000 flows are tracked (measured on Linux 6.18).
pub const FILTERED_LISTS: usize = 6;

impl Services {
    /// No front ends.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Names a front end: an address and port that packets are sent to, and who serves it.
    pub fn frontend(&mut self, frontend: SocketAddr, servers: impl IntoIterator<Item = SocketAddr>) {
        add(&mut self.frontends, pair(frontend), servers);
    }

    /// Names a port on which the node answers on whatever address, and who serves it.
    ///
    /// A flow to that port of *any* address counts, unless its address and port are a front end of their own: which
    /// addresses are the node's is not known here.
    pub fn node_port(&mut self, family: Family, port: u16, servers: impl IntoIterator<Item = SocketAddr>) {
        add(&mut self.node_ports, (family, port), servers);
    }

    /// There is nothing to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many front ends and node ports are named.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frontends.len() + self.node_ports.len()
    }

    /// The flow leads from a front end to what does not serve it.
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

    /// The lists to ask for.
    fn plan(&self) -> (How, Vec<Filter>) {
        if self.is_empty() {
            return (How::NotAtAll, Vec::new());
        }
        // Addresses of IPv6 are not for the kernel to compare, so there a port stands for all front ends that have it. The
        // same holds for a node port and the front ends of that port.
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

/// Deletes the UDP flows that lead from one of these front ends to what does not serve it.
///
/// # Errors
/// As [`Client::list`] and [`Client::delete`]. What was deleted by then stays deleted; call it again.
pub fn reconcile<T: Transport>(client: &mut Client<T>, services: &Services) -> Result<Report, Error> {
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

/// Without the scope and flow label of IPv6, which a tuple does not have.
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
    fn a_flow_is_stale_when_no_server_of_its_front_end_answers_it() {
        let services = services();
        let cases = [
            ("10.96.0.10:53", "10.244.0.5:53", false),
            ("10.96.0.10:53", "10.244.0.6:53", false),
            // Another address, another port, or nobody: the service had no endpoint when the flow began.
            ("10.96.0.10:53", "10.244.0.9:53", true),
            ("10.96.0.10:53", "10.244.0.5:54", true),
            ("10.96.0.10:53", "10.96.0.10:53", true),
            ("10.96.0.11:53", "10.244.0.9:53", false),
            ("[fd00::a]:53", "[fd00::5]:53", false),
            ("[fd00::a]:53", "[fd00::6]:53", true),
            // A node port counts on any address that is no front end itself, of its own family.
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
    fn few_front_ends_are_listed_by_themselves_and_many_in_one() {
        assert_eq!(Services::new().plan(), (How::NotAtAll, Vec::new()));
        // fd00::a by its port; 30053 stands for the front end of that port; 10.96.0.10:53 alone.
        let (how, lists) = services().plan();
        assert_eq!((how, lists.len()), (How::Filtered, 3));
        let mut many = Services::new();
        for port in 1..=7 {
            many.frontend(SocketAddr::new("10.96.0.1".parse().unwrap(), port), []);
        }
        let (how, lists) = many.plan();
        assert_eq!((how, lists), (How::Whole, vec![udp(Family::Ipv4, None, None)]));
        // Seven front ends of IPv6 with one port are one list.
        let mut v6 = Services::new();
        for n in 1..=7u16 {
            v6.frontend(SocketAddr::new([0xfd00, 0, 0, 0, 0, 0, 0, n].into(), 53), []);
        }
        assert_eq!(v6.plan(), (How::Filtered, vec![udp(Family::Ipv6, None, Some(53))]));
    }

    #[test]
    fn every_flow_that_can_be_stale_is_on_a_list() {
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
