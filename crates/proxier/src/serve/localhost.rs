//! Node ports on 127.0.0.1 and `::1` in nftables mode, by a forwarder in user space, as kube-proxy 1.37 has it
//! (KEP-6032).
//!
//! The kernel drops a packet that leaves the node with a loopback address as its source, unless
//! `route_localnet` lets everybody on the link reach what listens on loopback alone, and IPv6 has no such
//! sysctl. So connections are accepted here, and made anew to an endpoint. As in kube-proxy that is TCP
//! alone; a port without endpoints does not listen, so that connections to it are refused; the endpoint is chosen at
//! random; and with session affinity all clients, which all are this node, stay with one endpoint until none has
//! connected for the time of the affinity.
//!
//! Whoever is on this node can open connections, and each takes two descriptors, which the daemon needs for its
//! own work too: so there is a bound for all of them, and half of it for one port. Those beyond are closed.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit};
use sluicegate_services::{Cluster, Family, PortName, Protocol, ServicePort, Topology, categorize};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::run::Observer;

/// Listens at the TCP node ports of all services, as an [`Observer`] of a run loop, and forwards connections.
///
/// A port that another program has is reported once, left to it, and tried again with each change.
pub struct LocalhostNodePorts {
    runtime: Handle,
    families: Vec<Family>,
    state: Mutex<State>,
    report: Report,
    count: Count,
    room: Room,
}

type Report = Arc<dyn Fn(&str) + Send + Sync>;
type Count = Box<dyn Fn(Family, usize, usize) + Send + Sync>;

/// The places for connections.
#[derive(Clone)]
struct Room {
    all: Arc<Semaphore>,
    most: usize,
    /// When it was last told that there are none.
    told: Arc<Mutex<Option<Instant>>>,
    report: Report,
}

impl Room {
    fn new(most: usize, report: Report) -> Self {
        Self { all: Arc::new(Semaphore::new(most)), most, told: Arc::default(), report }
    }

    /// Returns the places of one port.
    fn of_port(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new((self.most / 2).max(1)))
    }

    /// Takes a place, of a port and of all; `None` where one of them has none.
    fn take(&self, of_port: &Arc<Semaphore>) -> Option<[OwnedSemaphorePermit; 2]> {
        let place = |of: &Arc<Semaphore>| Arc::clone(of).try_acquire_owned().ok();
        Some([place(of_port)?, place(&self.all)?])
    }

    /// Tells that there is none, not more than once a minute.
    fn tell_full(&self, port: u16) {
        let (now, mut told) = (Instant::now(), lock(&self.told));
        if told.is_some_and(|at| now.saturating_duration_since(at) < TELL_AGAIN) {
            return;
        }
        *told = Some(now);
        (self.report)(&format!(
            "node port {port} on loopback: a connection is closed at once, as {} are open to it, or {} to all node \
             ports on loopback",
            self.most / 2,
            self.most
        ));
    }
}

#[derive(Default)]
struct State {
    open: BTreeMap<SocketAddr, Open>,
    reported: Vec<String>,
}

/// A port that listens. Its connections end with it.
struct Open {
    owner: PortName,
    endpoints: Arc<Mutex<Endpoints>>,
    _stop: watch::Sender<()>,
}

impl Open {
    /// Gives the port to a service. The connections of another one end.
    fn set(&mut self, Wanted { owner, endpoints, affinity }: Wanted) {
        if self.owner != owner {
            lock(&self.endpoints).end();
            self.owner = owner;
        }
        lock(&self.endpoints).set(endpoints, affinity);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        lock(&self.endpoints).end();
    }
}

/// The service of a port.
struct Wanted {
    owner: PortName,
    endpoints: Vec<SocketAddr>,
    affinity: Option<Duration>,
}

/// The endpoints of a port, and the one that clients stay with.
#[derive(Debug, Default)]
struct Endpoints {
    all: Vec<SocketAddr>,
    affinity: Option<Duration>,
    /// The endpoint of the last connection, and its time, with affinity.
    sticky: Option<(SocketAddr, Instant)>,
    /// Its connections end when it is dropped.
    connections: watch::Sender<()>,
}

impl Endpoints {
    /// Ends all connections, and forgets the endpoints.
    fn end(&mut self) {
        *self = Self::default();
    }

    fn set(&mut self, all: Vec<SocketAddr>, affinity: Option<Duration>) {
        self.sticky = self.sticky.filter(|(endpoint, _)| affinity.is_some() && all.contains(endpoint));
        (self.all, self.affinity) = (all, affinity);
    }

    /// Chooses the endpoints of a connection, in the order in which they are to be tried.
    fn choose(&self, now: Instant) -> Vec<SocketAddr> {
        let mut order = self.all.clone();
        if order.is_empty() {
            return order;
        }
        let is_fresh = |(_, since): &(SocketAddr, Instant)| {
            self.affinity.is_some_and(|most| now.saturating_duration_since(*since) < most)
        };
        match self.sticky.filter(is_fresh) {
            Some((endpoint, _)) => {
                order.retain(|other| *other != endpoint);
                order.insert(0, endpoint);
            }
            None => order.rotate_left(random_below(self.all.len())),
        }
        order
    }

    /// Notes which endpoint has taken a connection.
    fn connected(&mut self, endpoint: SocketAddr, now: Instant) {
        if self.affinity.is_some() && self.all.contains(&endpoint) {
            self.sticky = Some((endpoint, now));
        }
    }
}

impl LocalhostNodePorts {
    /// Creates a forwarder that runs on this runtime, for these families, and listens at nothing yet.
    /// `report` gets each problem once.
    #[must_use]
    pub fn new(
        runtime: Handle,
        families: impl IntoIterator<Item = Family>,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let report: Report = Arc::new(report);
        Self {
            runtime,
            families: families.into_iter().collect(),
            state: Mutex::default(),
            count: Box::new(|_, _, _| ()),
            room: Room::new(most_connections(), Arc::clone(&report)),
            report,
        }
    }

    /// Sets what gets, for each family and with each change, the number of ports that listen, and that of those
    /// that could not.
    #[must_use]
    pub fn counted_by(mut self, count: impl Fn(Family, usize, usize) + Send + Sync + 'static) -> Self {
        self.count = Box::new(count);
        self
    }

    /// Sets the most connections at a time, half of which one port may have. By default that is 2048, or what
    /// the limit of descriptors leaves if that is less.
    #[must_use]
    pub fn with_most_connections(mut self, most: usize) -> Self {
        self.room = Room::new(most, Arc::clone(&self.report));
        self
    }

    /// Returns the addresses that listen, in order.
    #[must_use]
    pub fn listening(&self) -> Vec<SocketAddr> {
        lock(&self.state).open.keys().copied().collect()
    }

    fn follow(&self, cluster: &Cluster) {
        let wanted = self.wanted(cluster);
        let state = &mut *lock(&self.state);
        state.open.retain(|address, _| wanted.contains_key(address));
        let mut warnings = Vec::new();
        let mut failed = BTreeMap::<Family, usize>::new();
        for (address, wanted) in wanted {
            if let Some(open) = state.open.get_mut(&address) {
                open.set(wanted);
                continue;
            }
            match listen(&self.runtime, address) {
                Ok(listener) => {
                    let endpoints = Arc::default();
                    let (stop, stopped) = watch::channel(());
                    let room = self.room.clone();
                    self.runtime.spawn(accept(listener, Arc::clone(&endpoints), stopped, room));
                    let mut open = Open { owner: wanted.owner.clone(), endpoints, _stop: stop };
                    open.set(wanted);
                    state.open.insert(address, open);
                }
                Err(error) => {
                    *failed.entry(Family::of(address.ip())).or_default() += 1;
                    warnings.push(format!(
                        "node port {} of service {} is not answered on {}: {error}",
                        address.port(),
                        wanted.owner,
                        address.ip()
                    ));
                }
            }
        }
        for family in &self.families {
            let open = state.open.keys().filter(|address| Family::of(address.ip()) == *family).count();
            (self.count)(*family, open, failed.get(family).copied().unwrap_or_default());
        }
        for warning in warnings.iter().filter(|warning| !state.reported.contains(warning)) {
            (self.report)(warning);
        }
        state.reported = warnings;
    }

    fn wanted(&self, cluster: &Cluster) -> BTreeMap<SocketAddr, Wanted> {
        let topology = cluster.topology();
        let mut wanted = BTreeMap::new();
        for name in cluster.service_names() {
            let is_node_port =
                |port: &sluicegate_services::Port| port.node_port.is_some() && port.protocol == Protocol::Tcp;
            if !cluster.service(name).is_some_and(|service| service.ports.iter().any(is_node_port)) {
                continue;
            }
            for family in &self.families {
                for port in cluster.ports(name, *family) {
                    let Some(number) = port.node_port.filter(|_| port.name.protocol == Protocol::Tcp) else {
                        continue;
                    };
                    let endpoints = endpoints(&port, &topology);
                    if !endpoints.is_empty() {
                        let affinity = port.service.affinity_seconds;
                        let affinity = affinity.map(|seconds| Duration::from_secs(seconds.into()));
                        let owner = port.name.clone();
                        wanted.insert(localhost(*family, number), Wanted { owner, endpoints, affinity });
                    }
                }
            }
        }
        wanted
    }
}

impl Observer for LocalhostNodePorts {
    fn services(&self, cluster: &Cluster) {
        self.follow(cluster);
    }
}

impl fmt::Debug for LocalhostNodePorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalhostNodePorts")
            .field("families", &self.families)
            .field("listening", &self.listening())
            .finish_non_exhaustive()
    }
}

/// Returns the endpoints of connections to a node port.
fn endpoints(port: &ServicePort<'_>, topology: &Topology) -> Vec<SocketAddr> {
    let chosen = categorize(port, topology);
    let chosen = if port.service.external_local { &chosen.local } else { &chosen.cluster };
    chosen.iter().map(|endpoint| endpoint.address).collect()
}

const fn localhost(family: Family, port: NonZeroU16) -> SocketAddr {
    let ip = match family {
        Family::Ipv4 => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Family::Ipv6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    SocketAddr::new(ip, port.get())
}

fn listen(runtime: &Handle, address: SocketAddr) -> io::Result<TcpListener> {
    // Sockets are registered with the runtime that they are made in.
    let _inside = runtime.enter();
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of a former listener that are still in TIME_WAIT do not keep the port.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts connections until the port is closed.
async fn accept(
    listener: TcpListener,
    endpoints: Arc<Mutex<Endpoints>>,
    mut stopped: watch::Receiver<()>,
    room: Room,
) {
    let of_port = room.of_port();
    let port = listener.local_addr().map_or(0, |address| address.port());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        match accepted {
            Ok((client, _)) => match room.take(&of_port) {
                Some(places) => {
                    let forwarding = forward(client, Arc::clone(&endpoints));
                    tokio::spawn(async move {
                        forwarding.await;
                        drop(places);
                    });
                }
                None => room.tell_full(port),
            },
            Err(error) => {
                tracing::warn!("accepting connections to a node port on loopback: {error}");
                // Without a free descriptor the next one fails as well.
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Connects to an endpoint, and copies both ways until both have ended, or the service has lost the port.
async fn forward(mut client: TcpStream, endpoints: Arc<Mutex<Endpoints>>) {
    let (order, mut stopped) = {
        let endpoints = lock(&endpoints);
        (endpoints.choose(Instant::now()), endpoints.connections.subscribe())
    };
    let copying = async {
        let Some(mut server) = connect(&order, &endpoints).await else { return };
        // Small writes go on as they came.
        let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
        // Either side may reset the connection.
        let _ = copy_bidirectional(&mut client, &mut server).await;
    };
    tokio::select! {
        () = copying => {}
        _ = stopped.changed() => {}
    }
}

async fn connect(order: &[SocketAddr], endpoints: &Mutex<Endpoints>) -> Option<TcpStream> {
    for endpoint in order.iter().take(TRIES) {
        if let Ok(Ok(stream)) = tokio::time::timeout(CONNECT, TcpStream::connect(endpoint)).await {
            lock(endpoints).connected(*endpoint, Instant::now());
            return Some(stream);
        }
    }
    None
}

/// Returns a random number below another, which is not 0.
fn random_below(count: usize) -> usize {
    // The only source of randomness in the standard library: every state has random keys.
    let random = RandomState::new().build_hasher().finish();
    usize::try_from(random % count as u64).unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the most connections: what the limit of descriptors leaves, of which the daemon needs some itself.
fn most_connections() -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
    usize::try_from(limit.saturating_sub(OWN_DESCRIPTORS) / 2).unwrap_or(usize::MAX).clamp(2, MOST)
}

/// The most connections to node ports on loopback: each has buffers of 16 KiB.
const MOST: usize = 2048;
/// The descriptors that are left to everything else.
const OWN_DESCRIPTORS: u64 = 768;
/// The least time until it is told again that there are too many connections.
const TELL_AGAIN: Duration = Duration::from_secs(60);
/// The longest time until an endpoint accepts a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// The number of endpoints that are tried for a connection.
const TRIES: usize = 3;
/// The time until the next try after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);
/// The number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 80))
    }

    #[test]
    fn the_endpoint_is_random_and_with_affinity_it_stays() {
        let mut endpoints = Endpoints::default();
        let now = Instant::now();
        assert!(endpoints.choose(now).is_empty());
        endpoints.set(vec![address(1), address(2)], None);
        // That one of them never comes has a probability of two to the power of -255.
        let firsts: BTreeSet<_> = (0..256).map(|_| endpoints.choose(now)[0]).collect();
        assert_eq!(firsts, [address(1), address(2)].into());
        let hour = Duration::from_secs(3600);
        endpoints.set(vec![address(1), address(2), address(3)], Some(hour));
        let first = endpoints.choose(now)[0];
        endpoints.connected(first, now);
        for minutes in 0..10 {
            assert_eq!(endpoints.choose(now + Duration::from_secs(60 * minutes))[0], first);
        }
        assert_eq!(endpoints.choose(now)[1..].len(), 2, "the others are tried when it does not answer");
        let others: Vec<_> = [1, 2, 3].map(address).into_iter().filter(|other| *other != first).collect();
        endpoints.set(others.clone(), Some(hour));
        assert!(others.contains(&endpoints.choose(now)[0]));
    }
}
