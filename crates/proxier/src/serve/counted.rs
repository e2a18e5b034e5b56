//! Connections by service, as the kernel counts them: read when somebody asks, never by a sync.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_service_rules::Error;
use sluicegate_service_rules::nftables::{Connections, Counting, connections};
use sluicegate_services::{Cluster, Family, Frontend, ServicePort};

/// The connections that were counted, over all readings.
///
/// A counter of the kernel may be smaller than at the last reading: another program has reset it or the table,
/// or it lost what was counted while an element was changed. No total becomes smaller by that.
#[derive(Debug)]
pub(super) struct Counted {
    counting: Counting,
    families: Vec<Family>,
    socket: Option<Socket>,
    frontends: HashMap<Frontend, Tally>,
    endpoints: HashMap<(Frontend, SocketAddr), Tally>,
}

/// One counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    /// What the kernel had at the last reading.
    last: u64,
    total: u64,
}

impl Tally {
    fn read(&mut self, now: u64) {
        self.total = self.total.saturating_add(now.saturating_sub(self.last));
        self.last = now;
    }
}

/// The connections to one frontend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Series {
    pub(super) namespace: String,
    pub(super) service: String,
    /// The name of the port, or its number if it has none.
    pub(super) port: String,
    pub(super) frontend: Frontend,
    pub(super) connections: u64,
}

impl Counted {
    /// Returns nothing if nothing is counted.
    pub(super) fn new(counting: Counting, families: &[Family]) -> Option<Self> {
        (counting != Counting::Off).then(|| Self {
            counting,
            families: families.to_vec(),
            socket: None,
            frontends: HashMap::new(),
            endpoints: HashMap::new(),
        })
    }

    /// Reads the kernel's counters, in the network namespace of the calling thread.
    pub(super) fn read(&mut self, cluster: &Cluster) -> Result<(), Error> {
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => Socket::open(NetlinkFamily::NETFILTER, &Options::default())
                .map_err(|source| Error::Netlink { doing: "opening a netlink socket", source })?,
        };
        // After a failure another socket is opened, as answers may be left in this one.
        let found = connections(&mut socket, &self.families, self.counting)?;
        self.socket = Some(socket);
        self.update(&found, cluster);
        Ok(())
    }

    /// Adds what is new. A frontend or endpoint without an element in the kernel keeps its total as long as the
    /// cluster has it.
    fn update(&mut self, found: &Connections, cluster: &Cluster) {
        let (mut frontends, mut endpoints) = (HashMap::new(), HashMap::new());
        for port in ports(cluster, &self.families) {
            for frontend in port.frontends() {
                let mut tally = self.frontends.remove(&frontend).unwrap_or_default();
                found.frontends.get(&frontend).into_iter().for_each(|now| tally.read(*now));
                frontends.insert(frontend, tally);
                if self.counting != Counting::Endpoints {
                    continue;
                }
                for endpoint in &port.endpoints {
                    let key = (frontend, endpoint.address);
                    let mut tally = self.endpoints.remove(&key).unwrap_or_default();
                    found.endpoints.get(&key).into_iter().for_each(|now| tally.read(*now));
                    endpoints.insert(key, tally);
                }
            }
        }
        (self.frontends, self.endpoints) = (frontends, endpoints);
    }

    /// Returns the connections to these frontends of a service port.
    pub(super) fn of_port(&self, frontends: &[Frontend]) -> u64 {
        let tallies = frontends.iter().filter_map(|frontend| self.frontends.get(frontend));
        tallies.map(|tally| tally.total).fold(0, u64::saturating_add)
    }

    /// Returns the connections to an endpoint through these frontends, where endpoints are counted.
    pub(super) fn of_endpoint(&self, frontends: &[Frontend], endpoint: SocketAddr) -> Option<u64> {
        if self.counting != Counting::Endpoints {
            return None;
        }
        let tallies = frontends.iter().filter_map(|frontend| self.endpoints.get(&(*frontend, endpoint)));
        Some(tallies.map(|tally| tally.total).fold(0, u64::saturating_add))
    }

    /// Returns the connections to each frontend, in the order of the services' names, `most` at most, and the
    /// number of those that are left out. Every namespace has the same right to series: one with many services
    /// does not take those of others.
    pub(super) fn series(&self, cluster: &Cluster, most: usize) -> (Vec<Series>, usize) {
        let mut wanted = BTreeMap::<_, usize>::new();
        for port in ports(cluster, &self.families) {
            *wanted.entry(port.name.service.namespace().to_owned()).or_default() += port.frontends().len();
        }
        let mut rights = shared_out(&wanted, most);
        let (mut series, mut left_out) = (Vec::new(), 0);
        for port in ports(cluster, &self.families) {
            for frontend in port.frontends() {
                let right = rights.get_mut(port.name.service.namespace()).filter(|right| **right > 0);
                let Some(right) = right else {
                    left_out += 1;
                    continue;
                };
                *right -= 1;
                let connections = self.frontends.get(&frontend).map_or(0, |tally| tally.total);
                let name = &port.name;
                series.push(Series {
                    namespace: name.service.namespace().to_owned(),
                    service: name.service.name().to_owned(),
                    port: if name.port.is_empty() { port.port.to_string() } else { name.port.to_string() },
                    frontend,
                    connections,
                });
            }
        }
        (series, left_out)
    }
}

/// Shares out a number of things: each gets what it wants, or as much as the others that want more; what then is left
/// over the first.
fn shared_out(wanted: &BTreeMap<String, usize>, most: usize) -> BTreeMap<String, usize> {
    let mut by_size: Vec<_> = wanted.iter().map(|(name, count)| (*count, name)).collect();
    by_size.sort_unstable();
    let (mut left, mut waiting) = (most, by_size.len());
    let mut shares = BTreeMap::new();
    for (count, name) in by_size {
        // Rounded up: those that come after it share what is left.
        let share = count.min(left.div_ceil(waiting));
        (left, waiting) = (left - share, waiting - 1);
        shares.insert(name.clone(), share);
    }
    shares
}

/// Returns the ports of all services, in the order of names.
fn ports<'c>(cluster: &'c Cluster, families: &'c [Family]) -> impl Iterator<Item = ServicePort<'c>> {
    let mut names: Vec<_> = cluster.service_names().collect();
    names.sort_unstable();
    names
        .into_iter()
        .flat_map(move |name| families.iter().flat_map(move |family| cluster.ports(name, *family)))
}

#[cfg(test)]
mod tests {
    use sluicegate_services::{Node, Port, Protocol, Service, ServiceName};

    use super::*;

    fn cluster(names: &[&str]) -> Cluster {
        let mut cluster = Cluster::new(Node::default());
        for (last, name) in (1..).zip(names) {
            let port = Port::tcp("", 80).unwrap();
            let service = Service::new([[172, 30, 0, last].into()], [port]).unwrap();
            cluster.set_service(&ServiceName::new("demo", name).unwrap(), service);
        }
        cluster
    }

    fn frontend(last: u8) -> Frontend {
        Frontend::Address([172, 30, 0, last].into(), Protocol::Tcp, 80.try_into().unwrap())
    }

    fn found(counts: &[(u8, u64)]) -> Connections {
        let frontends = counts.iter().map(|(last, count)| (frontend(*last), *count)).collect();
        Connections { frontends, ..Connections::default() }
    }

    #[test]
    fn a_reset_of_another_program_and_a_service_without_endpoints_lose_nothing_and_add_nothing() {
        let mut counted = Counted::new(Counting::Frontends, &Family::BOTH).unwrap();
        let cluster = cluster(&["web"]);
        // What was counted before the start belongs to it.
        let readings = [(Some(7), 7), (Some(9), 9), (Some(0), 9), (Some(2), 11), (None, 11), (Some(1), 11)];
        for (now, total) in readings {
            let now: Vec<_> = now.map(|count| (1, count)).into_iter().collect();
            counted.update(&found(&now), &cluster);
            assert_eq!(counted.series(&cluster, 10).0[0].connections, total, "{now:?}");
        }
        // A service that is removed and comes again begins anew.
        counted.update(&found(&[]), &Cluster::new(Node::default()));
        counted.update(&found(&[(1, 3)]), &cluster);
        assert_eq!(counted.series(&cluster, 10).0[0].connections, 3);
        assert!(Counted::new(Counting::Off, &Family::BOTH).is_none());
    }

    #[test]
    fn series_are_bounded_and_those_that_are_left_out_counted() {
        let mut counted = Counted::new(Counting::Frontends, &Family::BOTH).unwrap();
        let cluster = cluster(&["c", "a", "b"]);
        counted.update(&found(&[(1, 1), (2, 2)]), &cluster);
        let (series, left_out) = counted.series(&cluster, 2);
        let shown: Vec<_> = series.iter().map(|s| (&*s.service, &*s.port, s.connections)).collect();
        assert_eq!((shown, left_out), (vec![("a", "80", 2), ("b", "80", 0)], 1));
    }

    #[test]
    fn a_namespace_with_many_services_leaves_the_others_their_series() {
        let wanted = |list: &[(&str, usize)]| list.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let many = [("a", 1_000), ("b", 2), ("c", 700), ("d", 3)];
        assert_eq!(shared_out(&wanted(&many), 2_000), wanted(&many));
        assert_eq!(shared_out(&wanted(&many), 105), wanted(&[("a", 50), ("b", 2), ("c", 50), ("d", 3)]));
        assert_eq!(shared_out(&wanted(&many), 2).values().sum::<usize>(), 2);
        assert_eq!(shared_out(&wanted(&[]), 2), wanted(&[]));

        let counted = Counted::new(Counting::Frontends, &Family::BOTH).unwrap();
        let mut cluster = cluster(&["c", "a", "b"]);
        let port = Port::tcp("", 80).unwrap();
        let service = Service::new([[172, 30, 1, 1].into()], [port]).unwrap();
        cluster.set_service(&ServiceName::new("other", "web").unwrap(), service);
        let (series, left_out) = counted.series(&cluster, 2);
        let shown: Vec<_> = series.iter().map(|s| (&*s.namespace, &*s.service)).collect();
        assert_eq!((shown, left_out), (vec![("demo", "a"), ("other", "web")], 2));
    }
}
