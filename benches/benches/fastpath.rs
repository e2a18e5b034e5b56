//! What forwarding established connections by a flowtable saves: the processor time of bytes and of datagrams
//! from a pod through a Service to an endpoint of another node, with the fast path and without.
//!
//! Both kinds have a network of their own and take turns in each round. The processor time is that of client,
//! server and kernel: packets cross the namespaces within the system call that sends them, and are charged to
//! it. The node's part alone, which is what the flowtable shortens, is less than that.
//!
//! It needs a kernel with flowtables: `cargo xtask bench fastpath --guest`. `SLUICEGATE_BENCH_ROUNDS` says
//! how many rounds (5).

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use benches::kernel::socket;
use benches::record::{Unit, keep};
use benches::timing::{is_measuring, process_time};
use sluicegate_conntrack::{Client, Filter, Status, Table};
use sluicegate_lab::{Network, NetworkSpec, PodSpec};
use sluicegate_service_rules::nftables::{Applier, Fastpath, Settings, has_flowtables};
use sluicegate_services::{
    Cluster, DetectLocal, Family, Node, Port, Protocol, Service, ServiceName, Slice, SliceEndpoint,
    SliceName, SlicePort,
};

fn main() {
    let Some(namespace) = testns::Netns::new() else { return };
    if testns::guest().is_some() {
        // No library loads a module.
        let _ = testns::sh("modprobe -a nf_flow_table nft_flow_offload");
    }
    if !namespace.run(|| has_flowtables(&mut socket())).expect("nf_tables") {
        return testns::lacks("flowtables");
    }
    let rounds = std::env::var("SLUICEGATE_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let (rounds, bytes, datagrams) = match is_measuring() {
        true => (rounds.unwrap_or(5), 64 << 20, 20_000),
        false => (1, 1 << 20, 200),
    };
    let mut worlds =
        [("off", false), ("on", true)].map(|(name, is_fast)| (name, World::new(is_fast), Vec::new()));
    for _ in 0..rounds {
        for (_, world, figures) in &mut worlds {
            figures.push(world.measure(bytes, datagrams));
        }
    }
    for (name, _, figures) in &worlds {
        let all = |value: fn(&Figures) -> f64| figures.iter().map(value).collect::<Vec<_>>();
        for (what, unit, samples) in [
            ("processor time of 1 GiB by TCP", Unit::Nanoseconds, all(|figures| figures.gibibyte)),
            ("MiB a second by TCP", Unit::PerSecond, all(|figures| figures.rate)),
            ("processor time of a datagram", Unit::Nanoseconds, all(|figures| figures.datagram)),
        ] {
            println!("{what}, {name}: {samples:.0?}");
            keep("fast path", what, name, 1, unit, &samples);
        }
    }
}

#[derive(Clone, Copy)]
struct Figures {
    gibibyte: f64,
    rate: f64,
    datagram: f64,
}

struct World {
    network: Network,
    is_fast: bool,
}

impl World {
    fn new(is_fast: bool) -> Self {
        let v6 = |last: u16| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last);
        let pod =
            |name, address: Ipv4Addr, last| PodSpec { name, address: (address, v6(last)), ports: Vec::new() };
        let spec = NetworkSpec {
            node: (NODE, v6(0x102)),
            client: (Ipv4Addr::new(192, 168, 0, 100), v6(0x103)),
            gateway: (Ipv4Addr::new(10, 244, 0, 1), v6(0x104)),
            pods: vec![pod("client", Ipv4Addr::new(10, 244, 0, 5), 5), pod("server", ENDPOINT, 1)],
            routed: Vec::new(),
        };
        let network = Network::build(&spec).expect("a network");
        let server = &network.pods[1].namespace;
        let listener = server.run(|| TcpListener::bind((ENDPOINT, TARGET_PORT))).expect("a socket");
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                take(stream);
            }
        });
        let socket = server.run(|| UdpSocket::bind((ENDPOINT, TARGET_PORT))).expect("a socket");
        std::thread::spawn(move || {
            let mut buffer = [0; 2_000];
            // The client ends its wait where an answer cannot be sent.
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let _ = socket.send_to(&buffer[..length.min(4)], from);
            }
        });
        let mut cluster = cluster();
        let settings = Settings {
            families: vec![Family::Ipv4],
            detect_local: DetectLocal::ClusterCidrs(vec!["10.244.0.0/16".parse().expect("a network")]),
            fastpath: NonZeroU32::new(6)
                .filter(|_| is_fast)
                .map(|after| Fastpath { after, devices: Vec::new() }),
            ..Settings::default()
        };
        network.node.namespace.run(|| {
            let mut applier = Applier::open(settings).expect("nf_tables");
            applier.sync(&mut cluster, Instant::now()).expect("it is programmed");
        });
        Self { network, is_fast }
    }

    fn measure(&self, bytes: usize, datagrams: u32) -> Figures {
        let client = &self.network.pods[0].namespace;
        let to = SocketAddr::from((SERVICE, SERVICE_PORT));
        let mut stream = client.run(|| TcpStream::connect(to)).expect("a connection");
        let block = vec![7; 1 << 16];
        // It is in the flowtable before it is measured.
        for _ in 0..16 {
            stream.write_all(&block).expect("it is sent");
        }
        std::thread::sleep(Duration::from_millis(200));
        self.assert_taken(Protocol::Tcp);
        let (start, used) = (Instant::now(), process_time());
        for _ in 0..bytes.div_ceil(block.len()) {
            stream.write_all(&block).expect("it is sent");
        }
        stream.shutdown(std::net::Shutdown::Write).expect("it is open");
        // The server closes when it has everything.
        assert_eq!(stream.read(&mut [0]).expect("the end of the stream"), 0);
        let (took, used) = (start.elapsed().as_secs_f64(), process_time() - used);
        let mebibytes = bytes as f64 / f64::from(1 << 20);

        let udp = client.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).expect("a socket");
        udp.connect(to).expect("an address");
        udp.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket option");
        let ask = || {
            udp.send(&block[..1_000]).expect("it is sent");
            udp.recv(&mut [0; 16]).expect("an answer");
        };
        (0..32).for_each(|_| ask());
        self.assert_taken(Protocol::Udp);
        let before = process_time();
        (0..datagrams).for_each(|_| ask());
        Figures {
            gibibyte: used.as_secs_f64() * 1e9 * 1_024.0 / mebibytes,
            rate: mebibytes / took,
            datagram: (process_time() - before).as_secs_f64() * 1e9 / f64::from(2 * datagrams),
        }
    }

    /// Panics unless a flowtable has taken a connection, or none has where there is no flowtable.
    fn assert_taken(&self, protocol: Protocol) {
        let is_taken = self.network.node.namespace.run(|| {
            let mut client = Client::open().expect("connection tracking");
            let flows = client.flows(Table::Conntrack, &Filter::default()).expect("they are listed");
            flows.map(|flow| flow.expect("a flow")).any(|flow| {
                flow.original.protocol.0 == protocol.number()
                    && flow.status.is_some_and(|status| status.contains(Status::OFFLOAD))
            })
        });
        assert_eq!(is_taken, self.is_fast, "{protocol}");
    }
}

/// Reads all there is, and closes.
fn take(mut stream: TcpStream) {
    let mut buffer = vec![0; 1 << 18];
    while stream.read(&mut buffer).is_ok_and(|length| length > 0) {}
}

fn cluster() -> Cluster {
    let name = ServiceName::new("bench", "service").expect("a DNS label");
    let mut cluster = Cluster::new(Node::new("node", [IpAddr::from(NODE)]));
    let all = [("tcp", Protocol::Tcp), ("udp", Protocol::Udp)];
    let ports = all.map(|(name, protocol)| Port::new(protocol, name, SERVICE_PORT).expect("a port"));
    cluster.set_service(&name, Service::new([SERVICE.into()], ports).ok());
    let ports = all.map(|(name, protocol)| SlicePort::new(protocol, name, TARGET_PORT).expect("a port"));
    let slice = Slice::new(name, Family::Ipv4, ports, [SliceEndpoint::new(ENDPOINT.into())]);
    cluster.set_slice(&SliceName::new("bench", "service"), Some(slice.expect("endpoints of one family")));
    cluster
}

const NODE: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 2);
const SERVICE: Ipv4Addr = Ipv4Addr::new(172, 30, 0, 1);
const ENDPOINT: Ipv4Addr = Ipv4Addr::new(10, 244, 1, 1);
const SERVICE_PORT: u16 = 80;
const TARGET_PORT: u16 = 8080;
