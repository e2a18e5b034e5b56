//! Stale flows, which a service proxy has to delete after it has changed the destination of packets.
//!
//! The first packet of a UDP flow determines its server, and later packets go there as long as the flow
//! exists, regardless of changes of the rules. So after a change, flows from a *frontend* to an address that
//! is no longer one of its servers have to be deleted. The next packet then creates a new flow by the new
//! rules. An SCTP association does not survive its server, and its client may wait long for it.
//!
//! [`Services`] has the frontends with their servers; [`sync`] deletes every flow that is stale by
//! [`Services::is_stale`], and no other.
//!
//! ```no_run
//! use sluicegate_conntrack::{Client, Family, Protocol, stale::{self, Services}};
//!
//! let mut services = Services::new();
//! let (server, dns) = ("10.244.0.5:53".parse().unwrap(), "10.96.0.10:53".parse().unwrap());
//! services.frontend(Protocol::UDP, dns, [server]);
//! services.node_port(Protocol::UDP, Family::Ipv4, 30053, [server]);
//! let report = stale::sync(&mut Client::open()?, &services)?;
//! println!("{} stale flows deleted", report.deleted);
//! # Ok::<(), sluicegate_conntrack::Error>(())
//! ```
//!
//! # What it costs
//!
//! The kernel walks its whole table for a list, with or without a filter: 14 to 16 ms for 100,000 flows. To
//! send all of them takes about 100 ms. So up to [`FILTERED_LISTS`] frontends are listed one by one with a
//! filter; more are looked up in one list of all flows of the protocol. In either case each flow is compared
//! here before it is deleted by tuple and id.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use sluicegate_netlink::Transport;

use crate::client::Table;
use crate::{Client, Error, Family, Filter, Flow, FlowKey, Protocol};

/// The frontends of services, each with the servers that its packets may go to.
///
/// A frontend that is added twice has the servers of both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Services {
    frontends: HashMap<(Protocol, IpAddr, u16), Servers>,
    node_ports: HashMap<(Protocol, Family, u16), Servers>,
    /// The servers to which frontends have led.
    former: HashSet<(IpAddr, u16)>,
    /// Whether all of those are known.
    is_exact: bool,
    node: Option<NodeAddresses>,
}

/// The servers of a frontend.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Servers {
    now: HashSet<(IpAddr, u16)>,
    /// Whether the frontend exists.
    exists: bool,
}

/// The addresses of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct NodeAddresses {
    all: HashSet<IpAddr>,
    /// Those on which node ports are answered now.
    answering: HashSet<IpAddr>,
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
    /// By one list of all flows of a protocol and family.
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
    pub fn frontend(
        &mut self,
        protocol: Protocol,
        frontend: SocketAddr,
        servers: impl IntoIterator<Item = SocketAddr>,
    ) {
        add(&mut self.frontends, (protocol, frontend.ip(), frontend.port()), servers);
    }

    /// Adds a node port, with its servers.
    ///
    /// It applies to flows to the port on the addresses of the node ([`node_addresses`](Self::node_addresses))
    /// that are not a frontend with this port themselves.
    pub fn node_port(
        &mut self,
        protocol: Protocol,
        family: Family,
        port: u16,
        servers: impl IntoIterator<Item = SocketAddr>,
    ) {
        add(&mut self.node_ports, (protocol, family, port), servers);
    }

    /// Adds a frontend that no longer exists, with servers whose flows may stay nevertheless. It may be added
    /// as one that exists as well.
    pub fn gone(
        &mut self,
        protocol: Protocol,
        frontend: SocketAddr,
        servers: impl IntoIterator<Item = SocketAddr>,
    ) {
        let entry = self.frontends.entry((protocol, frontend.ip(), frontend.port())).or_default();
        entry.now.extend(servers.into_iter().map(pair));
    }

    /// Adds a node port that no longer exists, as [`gone`](Self::gone) does.
    pub fn gone_node_port(
        &mut self,
        protocol: Protocol,
        family: Family,
        port: u16,
        servers: impl IntoIterator<Item = SocketAddr>,
    ) {
        let entry = self.node_ports.entry((protocol, family, port)).or_default();
        entry.now.extend(servers.into_iter().map(pair));
    }

    /// Adds servers to which frontends led until now. Of a frontend that is gone, flows to other addresses
    /// are taken for those of another program's address translation.
    pub fn former(&mut self, servers: impl IntoIterator<Item = SocketAddr>) {
        self.former.extend(servers.into_iter().map(pair));
    }

    /// Declares that all [`former`](Self::former) servers were added, those of frontends that exist as well.
    pub const fn only_former(&mut self) {
        self.is_exact = true;
    }

    /// Sets the addresses of the node, and those of them on which node ports are answered. Flows to other
    /// addresses do not come from a node port. Without this call, every address may be one of the node's.
    pub fn node_addresses(
        &mut self,
        all: impl IntoIterator<Item = IpAddr>,
        answering: impl IntoIterator<Item = IpAddr>,
    ) {
        let answering: HashSet<IpAddr> = answering.into_iter().collect();
        let all = all.into_iter().chain(answering.iter().copied()).collect();
        self.node = Some(NodeAddresses { all, answering });
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

    /// Returns true when the flow was made by a frontend of these and leads to none of its servers.
    ///
    /// That is a flow in no zone whose destination was translated to an address that is none of its servers,
    /// but one of the former ones, if they are known. A UDP flow that was not translated is stale if the
    /// frontend has servers: it is older than they are.
    #[must_use]
    pub fn is_stale(&self, flow: &Flow) -> bool {
        let (original, reply) = (&flow.original, &flow.reply);
        let (Some(port), Some(server_port)) = (original.destination_port(), reply.source_port()) else {
            return false;
        };
        if [flow.zone, original.zone, reply.zone].into_iter().flatten().any(|zone| zone != 0) {
            return false;
        }
        let (destination, server) = (original.destination(), (reply.source(), server_port));
        let is_translated = server != (destination, port);
        let servers = self.frontends.get(&(original.protocol, destination, port)).or_else(|| {
            let servers = self.node_ports.get(&(original.protocol, original.family(), port))?;
            let is_to_node = self.node.as_ref().is_none_or(|node| {
                let addresses = if is_translated { &node.all } else { &node.answering };
                addresses.contains(&destination)
            });
            is_to_node.then_some(servers)
        });
        let Some(Servers { now, exists }) = servers else { return false };
        if is_translated {
            let is_ours = (*exists && !self.is_exact) || self.former.contains(&server);
            is_ours && !now.contains(&server)
        } else {
            original.protocol == Protocol::UDP && !now.is_empty()
        }
    }

    /// Returns the lists to request.
    fn plan(&self) -> (How, Vec<Filter>) {
        if self.is_empty() {
            return (How::NotAtAll, Vec::new());
        }
        // The kernel must not compare IPv6 addresses, so that one list by port serves all IPv6 frontends of
        // that port. The same applies to a node port and the frontends of that port.
        let by_port = self
            .frontends
            .keys()
            .filter(|(_, ip, _)| ip.is_ipv6())
            .map(|(protocol, ip, port)| (*protocol, Family::of(*ip), *port));
        let ports: BTreeSet<(Protocol, Family, u16)> =
            by_port.chain(self.node_ports.keys().copied()).collect();
        let alone = self.frontends.keys();
        let alone =
            alone.filter(|(protocol, ip, port)| !ports.contains(&(*protocol, Family::of(*ip), *port)));
        let addressed: BTreeSet<&(Protocol, IpAddr, u16)> = alone.collect();
        if ports.len() + addressed.len() > FILTERED_LISTS {
            let whole: BTreeSet<(Protocol, Family)> = self.families().collect();
            return (
                How::Whole,
                whole.into_iter().map(|(p, family)| filter(p, family, None, None)).collect(),
            );
        }
        let ports = ports.into_iter().map(|(p, family, port)| filter(p, family, None, Some(port)));
        let addressed =
            addressed.into_iter().map(|(p, ip, port)| filter(*p, Family::of(*ip), Some(*ip), Some(*port)));
        (How::Filtered, ports.chain(addressed).collect())
    }

    fn families(&self) -> impl Iterator<Item = (Protocol, Family)> {
        let of_frontends = self.frontends.keys().map(|(protocol, ip, _)| (*protocol, Family::of(*ip)));
        of_frontends.chain(self.node_ports.keys().map(|(protocol, family, _)| (*protocol, *family)))
    }
}

/// Deletes the flows that are [stale](Services::is_stale).
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

fn add<K: Eq + Hash>(map: &mut HashMap<K, Servers>, key: K, servers: impl IntoIterator<Item = SocketAddr>) {
    let entry = map.entry(key).or_default();
    entry.exists = true;
    entry.now.extend(servers.into_iter().map(pair));
}

/// Removes the scope and flow label of IPv6, which a tuple does not have.
fn pair(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip(), address.port())
}

fn filter(protocol: Protocol, family: Family, destination: Option<IpAddr>, port: Option<u16>) -> Filter {
    let mut filter = Filter { family: Some(family), protocol: Some(protocol), ..Filter::default() };
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
        services.frontend(
            Protocol::UDP,
            address("10.96.0.10:53"),
            ["10.244.0.5:53", "10.244.0.6:53"].map(address),
        );
        services.frontend(Protocol::UDP, address("10.96.0.10:30053"), [address("10.244.0.7:53")]);
        services.frontend(Protocol::UDP, address("[fd00::a]:53"), [address("[fd00::5]:53")]);
        services.node_port(Protocol::UDP, Family::Ipv4, 30053, [address("10.244.0.5:53")]);
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
    fn flows_that_no_frontend_made_are_not_stale() {
        let mut services = services();
        services.node_addresses(["192.168.0.2", "10.1.0.1"].map(ip), ["192.168.0.2"].map(ip));
        let udp = |to, by| flow(Protocol::UDP, to, by);
        let is_stale = |services: &Services, to, by| services.is_stale(&udp(to, by));
        assert!(is_stale(&services, "192.168.0.2:30053", "10.244.0.6:53"));
        assert!(is_stale(&services, "192.168.0.2:30053", "192.168.0.2:30053"), "older than the service");
        assert!(is_stale(&services, "10.1.0.1:30053", "10.244.0.6:53"), "of the node all the same");
        assert!(!is_stale(&services, "10.1.0.1:30053", "10.1.0.1:30053"), "a program there may answer");
        assert!(!is_stale(&services, "198.51.100.1:30053", "198.51.100.1:30053"), "of another host");
        assert!(!is_stale(&services, "198.51.100.1:30053", "10.244.0.6:53"));
        let stale = udp("10.96.0.10:53", "10.244.0.9:53");
        let (mut whole, mut one_way) = (stale.clone(), stale.clone());
        whole.zone = Some(5);
        one_way.original.zone = Some(5);
        for (flow, expected) in [(stale, true), (whole, false), (one_way, false)] {
            assert_eq!(services.is_stale(&flow), expected, "{flow:?}");
        }

        // Once all former servers are known, other addresses are of another program.
        services.only_former();
        assert!(!is_stale(&services, "10.96.0.10:53", "10.244.0.9:53"));
        services.former(["10.244.0.9:53", "10.244.0.5:53"].map(address));
        assert!(is_stale(&services, "10.96.0.10:53", "10.244.0.9:53"));
        assert!(!is_stale(&services, "10.96.0.10:53", "10.244.0.5:53"), "still a server");
    }

    #[test]
    fn flows_of_a_frontend_that_is_gone_are_stale_if_they_lead_to_a_former_server() {
        let mut services = services();
        services.gone(Protocol::UDP, address("10.96.0.66:53"), []);
        services.gone_node_port(Protocol::UDP, Family::Ipv4, 30066, []);
        services.former([address("10.244.0.9:53")]);
        for to in ["10.96.0.66:53", "192.168.0.2:30066"] {
            assert!(services.is_stale(&flow(Protocol::UDP, to, "10.244.0.9:53")), "{to}");
            assert!(
                !services.is_stale(&flow(Protocol::UDP, to, "172.17.0.2:53")),
                "{to}: of another program"
            );
            assert!(!services.is_stale(&flow(Protocol::UDP, to, to)), "{to}: not translated");
        }
        // Another service has it by now.
        services.frontend(Protocol::UDP, address("10.96.0.66:53"), [address("10.244.0.9:53")]);
        assert!(!services.is_stale(&flow(Protocol::UDP, "10.96.0.66:53", "10.244.0.9:53")));
    }

    #[test]
    fn an_association_is_stale_without_its_server_only() {
        let mut services = Services::new();
        services.frontend(Protocol::SCTP, address("10.96.0.10:53"), [address("10.244.0.5:53")]);
        services.gone(Protocol::SCTP, address("10.96.0.66:53"), [address("10.244.0.5:53")]);
        services.former([address("10.244.0.5:53"), address("10.244.0.6:53")]);
        for to in ["10.96.0.10:53", "10.96.0.66:53"] {
            assert!(!services.is_stale(&flow(Protocol::SCTP, to, "10.244.0.5:53")), "{to}");
            assert!(services.is_stale(&flow(Protocol::SCTP, to, "10.244.0.6:53")), "{to}");
            assert!(!services.is_stale(&flow(Protocol::SCTP, to, to)), "{to}: not translated");
            assert!(!services.is_stale(&flow(Protocol::UDP, to, "10.244.0.6:53")), "{to}");
        }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_few_frontends_are_listed_separately_and_many_in_one_list() {
        assert_eq!(Services::new().plan(), (How::NotAtAll, Vec::new()));
        // fd00::a by its port; 30053 together with the frontend of that port; 10.96.0.10:53 separately.
        let (how, lists) = services().plan();
        assert_eq!((how, lists.len()), (How::Filtered, 3));
        let mut many = Services::new();
        for port in 1..=7 {
            many.frontend(Protocol::UDP, SocketAddr::new("10.96.0.1".parse().unwrap(), port), []);
        }
        let (how, lists) = many.plan();
        assert_eq!((how, lists), (How::Whole, vec![filter(Protocol::UDP, Family::Ipv4, None, None)]));
        // Seven IPv6 frontends with one port need one list.
        let mut v6 = Services::new();
        for n in 1..=7u16 {
            v6.frontend(Protocol::UDP, SocketAddr::new([0xfd00, 0, 0, 0, 0, 0, 0, n].into(), 53), []);
        }
        assert_eq!(v6.plan(), (How::Filtered, vec![filter(Protocol::UDP, Family::Ipv6, None, Some(53))]));
    }

    #[test]
    fn every_flow_that_can_be_stale_is_in_a_list() {
        let services = services();
        let (_, lists) = services.plan();
        for to in ["10.96.0.10:53", "[fd00::a]:53", "192.168.0.2:30053", "10.96.0.10:30053"] {
            let by = if to.starts_with('[') { "[fd00::99]:1" } else { "10.9.9.9:1" };
            let flow = flow(Protocol::UDP, to, by);
            assert!(services.is_stale(&flow));
            assert_eq!(lists.iter().filter(|list| list.matches(&flow)).count(), 1, "{to}");
        }
    }
}
