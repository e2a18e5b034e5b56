//! What rules do to packets: a client, a router that has the rules, and a server behind it, each in a
//! namespace of its own.
//!
//! Nothing is concluded from silence: what has to be dropped is counted first, and what has to arrive is
//! waited for.

mod bits;
mod connections;
mod devices;
mod filtering;
mod nat;
mod order;
mod tracing;

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use sluicegate_netlink::{NetlinkFamily, Options, Socket as NetlinkSocket};
use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::lang::{Counter, Match, ObjectName, ObjectReference, Payload, Statement};
use sluicegate_nftables::*;
use testns::Netns;

use crate::kernel::cases::{ip, name};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
const OTHER_SERVER: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 3);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const OTHER_CLIENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 3);
/// The router's, towards the client and towards the server.
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const SERVER6: Ipv6Addr = Ipv6Addr::new(0xfd02, 0, 0, 0, 0, 0, 0, 2);

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(20);

/// `c0` of the client is connected to `r0` of the router, `r1` of that to `s0` of the server.
struct Lab {
    client: Netns,
    router: Netns,
    server: Netns,
}

impl Lab {
    /// `None` where that cannot be had, which has been said.
    fn new() -> Option<Self> {
        if !testns::have(&["ip"]) {
            return None;
        }
        // A kernel with IPv6 as a module loads it for the first who wants a socket.
        drop(UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)));
        let lab = Self { client: Netns::new()?, router: Netns::new()?, server: Netns::new()? };
        let all = [(&lab.client, "c0"), (&lab.router, "r0"), (&lab.router, "r1"), (&lab.server, "s0")];
        for (namespace, _) in all {
            shell(namespace, "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad");
        }
        shell(
            &lab.router,
            &format!(
                "ip link add r0 address 02:00:00:00:00:01 type veth peer name c0 netns {}
                 ip link add r1 type veth peer name s0 netns {}
                 cd /proc/sys/net
                 echo 1 >ipv4/ip_forward; echo 1 >ipv6/conf/all/forwarding
                 echo 0 >ipv4/icmp_ratelimit; echo 0 >ipv6/icmp/ratelimit
                 echo 0 >ipv4/conf/all/rp_filter; echo 0 >ipv4/conf/r0/rp_filter
                 ip addr add 10.1.0.1/24 dev r0; ip addr add fd01::1/64 dev r0 nodad; ip link set r0 up
                 ip addr add 10.2.0.1/24 dev r1; ip addr add fd02::1/64 dev r1 nodad; ip link set r1 up",
                lab.client.path(),
                lab.server.path(),
            ),
        );
        let host = |device: char, net: u8| {
            format!(
                "ip addr add 10.{net}.0.2/24 dev {device}0; ip addr add 10.{net}.0.3/24 dev {device}0
                 ip addr add fd0{net}::2/64 dev {device}0 nodad; ip link set {device}0 up
                 ip route add default via 10.{net}.0.1; ip -6 route add default via fd0{net}::1"
            )
        };
        shell(&lab.client, &host('c', 1));
        shell(&lab.server, &host('s', 2));
        // Without an address of its link that it may use, a router does not ask for its neighbours; a
        // datagram waits for them for three seconds only, and a busy machine takes longer to give the
        // address.
        for (namespace, device) in all {
            let ready = format!("ip -6 -o addr show dev {device} scope link -tentative");
            let until = Instant::now() + LONG;
            while namespace.run(|| testns::sh(&ready)).is_empty() {
                assert!(Instant::now() < until, "{device} is not connected");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Some(lab)
    }

    /// Puts a table of rules into the router.
    fn load(&self, family: Family, fill: impl FnOnce(&mut Rules) + Send) {
        load(&self.router, family, fill);
    }

    /// Takes the rules away.
    fn clear(&self) {
        self.router.run(|| apply(Transaction::new().flush(Flush::Ruleset(Family::UNSPEC))));
    }

    /// How many packets a counter of the router's has counted.
    fn counted(&self, counter: &str) -> u64 {
        self.router.run(|| counted(counter))
    }

    /// Waits until a counter of the router's has counted so many packets.
    fn wait(&self, counter: &str, packets: u64) {
        wait(&self.router, counter, packets);
    }

    /// Sends a datagram from a socket of the client's.
    fn send(&self, to: impl ToSocketAddrs + Send) -> UdpSocket {
        let socket = udp(&self.client, (to_unspecified(&to), 0));
        socket.send_to(b"?", to).expect("a datagram is sent");
        socket
    }

    /// To each of these ports of the server.
    fn send_each(&self, ports: &[u16]) {
        ports.iter().for_each(|port| drop(self.send((SERVER, *port))));
    }

    fn connect(&self, to: impl Into<SocketAddr>) -> std::io::Result<TcpStream> {
        let to = to.into();
        self.client.run(|| TcpStream::connect_timeout(&to, LONG))
    }
}

fn to_unspecified(to: &impl ToSocketAddrs) -> IpAddr {
    match to.to_socket_addrs().expect("an address").next() {
        Some(SocketAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
        _ => Ipv4Addr::UNSPECIFIED.into(),
    }
}

fn shell(namespace: &Netns, script: &str) {
    assert_eq!(namespace.run(|| testns::sh(&format!("set -e; {script}"))), "");
}

fn netlink() -> NetlinkSocket {
    NetlinkSocket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket")
}

fn apply(tx: &Transaction) -> Applied {
    let mut socket = netlink();
    tx.apply(&mut socket).unwrap_or_else(|error| panic!("{error}\n{tx}"))
}

fn load(namespace: &Netns, family: Family, fill: impl FnOnce(&mut Rules) + Send) {
    let table = TableId::new(family, name("t"));
    let mut tx = Transaction::new();
    tx.add(Table::new(table.clone()));
    let mut rules = Rules { chain: table.chain(name("c")), table, tx };
    namespace.run(|| {
        fill(&mut rules);
        apply(&rules.tx)
    });
}

fn counted(counter: &str) -> u64 {
    let mut socket = netlink();
    let listed = read::ruleset(&mut socket, Family::UNSPEC).expect("a ruleset").content();
    let objects = listed.iter().flat_map(|table| &table.objects);
    let counters = objects.filter_map(|object| match &object.config {
        ObjectConfig::Counter(count) if *object.id.name == *counter => Some(count.packets),
        _ => None,
    });
    counters.sum()
}

/// Waits until a counter has counted so many packets.
fn wait(namespace: &Netns, counter: &str, packets: u64) {
    let counted = || namespace.run(|| counted(counter));
    let until = Instant::now() + LONG;
    while counted() < packets && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(counted(), packets, "{counter}");
}

/// A table in the making; rules go to the end of the chain begun last.
struct Rules {
    table: TableId,
    chain: ChainId,
    tx: Transaction,
}

impl Rules {
    fn base(&mut self, kind: ChainType, hook: Hook, priority: i32) -> &mut Self {
        self.begin(Chain::base(self.table.chain(name("c")), kind, hook, Priority(priority)))
    }

    fn filter(&mut self, hook: Hook) -> &mut Self {
        self.base(ChainType::Filter, hook, 0)
    }

    fn nat(&mut self, hook: Hook) -> &mut Self {
        self.base(ChainType::Nat, hook, 0)
    }

    /// Begins a chain, which gets a name of its own.
    fn begin(&mut self, mut chain: Chain) -> &mut Self {
        let number = self.tx.operations().len();
        chain.id = self.table.chain(name(&format!("{}{number}", chain.id.name)));
        self.chain = chain.id.clone();
        self.tx.add(chain);
        self
    }

    fn rule(&mut self, statements: impl IntoIterator<Item = Statement>) -> &mut Self {
        self.tx.add(self.chain.rule().then_all(statements));
        self
    }

    /// A counter by name, which is made.
    fn count(&mut self, counter: &str) -> Statement {
        let id = self.table.object(ObjectKind::COUNTER, name(counter));
        self.tx.add(StatefulObject::new(id.clone(), ObjectConfig::Counter(Counter::default())));
        Statement::from(ObjectReference { kind: id.kind, object: ObjectName::Named(id.name) })
    }
}

fn udp(namespace: &Netns, at: impl ToSocketAddrs + Send) -> UdpSocket {
    let socket = namespace.run(|| UdpSocket::bind(at)).expect("an address of our own");
    socket.set_read_timeout(Some(LONG)).expect("a time");
    socket
}

fn listener(namespace: &Netns, at: impl ToSocketAddrs + Send) -> TcpListener {
    namespace.run(|| TcpListener::bind(at)).expect("an address of our own")
}

/// Waits for a datagram; says where it came from.
fn received(socket: &UdpSocket) -> SocketAddr {
    socket.recv_from(&mut [0; 64]).expect("a datagram comes").1
}

/// How many datagrams have come and were not read.
fn waiting(socket: &UdpSocket) -> usize {
    socket.set_nonblocking(true).expect("a socket can be so");
    let count = (0..).take_while(|_| match socket.recv_from(&mut [0; 64]) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        result => result.is_ok(),
    });
    let count = count.count();
    socket.set_nonblocking(false).expect("a socket can be so");
    count
}

fn to_port(port: u16) -> Statement {
    Match::new(Payload::UDP_DPORT, Port(port)).into()
}

fn to_tcp_port(port: u16) -> Statement {
    Match::new(Payload::TCP_DPORT, Port(port)).into()
}
