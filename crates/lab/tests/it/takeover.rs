//! What UPGRADING.md promises: the tables that an older version, another layout or kube-proxy left are taken
//! over, a connection that is open goes on while they are, and clients of session affinity stay where they are
//! if it says so.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sluicegate_lab::{Namespace, Network, NetworkSpec, PodSpec};
use sluicegate_service_rules::nftables::{Applier, Layout, Settings};
use sluicegate_services::{
    Cluster, Family, Node, Port, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort,
};

/// The tables that are there before.
#[derive(Clone, Copy, Debug)]
enum Before {
    Ours(Layout),
    /// Those of kube-proxy 1.36.2 in nftables mode, as its own code wrote them
    /// (`service-rules/testdata/kube-proxy/README.md`).
    KubeProxy,
    /// Those of an older version, by the file of `testdata/layouts`.
    Older(&'static str),
}

impl Before {
    /// Returns the file to load, unless this version writes the tables itself.
    fn recorded(self) -> Option<PathBuf> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        match self {
            Self::Ours(_) => None,
            Self::KubeProxy => Some(here.join("../service-rules/testdata/kube-proxy/nft_tx1.nft")),
            Self::Older(name) => Some(here.join(format!("testdata/layouts/{name}.nft"))),
        }
    }

    /// Returns whether the tables have the services with session affinity, which kube-proxy was not given.
    const fn has_sticky(self) -> bool {
        !matches!(self, Self::KubeProxy)
    }
}

/// The address of the service `demo/web` there.
const SERVICE: [u8; 4] = [172, 30, 10, 1];
/// The last bytes of the addresses of services with session affinity. They are several, since a client comes to
/// the same endpoint of one service by chance in half of all cases.
const STICKY: std::ops::RangeInclusive<u8> = 4..=7;
const ENDPOINTS: [[u8; 4]; 2] = [[10, 244, 0, 10], [10, 244, 1, 10]];
const PORT: u16 = 8080;
const PATIENCE: Duration = Duration::from_secs(30);

fn network() -> Network {
    let both = |v4: [u8; 4], v6: &str| (Ipv4Addr::from(v4), v6.parse().expect("an address"));
    let pod = |name, address| PodSpec { name, address, ports: vec![] };
    let spec = NetworkSpec {
        node: both([192, 168, 0, 2], "fd00:192:168::2"),
        client: both([192, 168, 0, 100], "fd00:192:168::100"),
        gateway: both([10, 244, 0, 1], "fd00:10:244::1"),
        pods: vec![
            pod("here", both(ENDPOINTS[0], "fd00:10:244::10")),
            pod("there", both(ENDPOINTS[1], "fd00:10:244:1::10")),
        ],
        routed: ["172.30.0.0/16", "10.244.0.0/16"].map(|net| net.parse().expect("a network")).into(),
    };
    Network::build(&spec).expect("a network")
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::new(Node { name: "test-node".to_owned(), ..Node::default() });
    let mut add = |name: &str, address: [u8; 4], port: Port, seconds, endpoints: &[[u8; 4]]| {
        let name = ServiceName::new("demo", name).unwrap();
        let mut service = Service::new([address.into()], [port]).unwrap();
        service.affinity_seconds = seconds;
        cluster.set_service(&name, service);
        let ports = [SlicePort::tcp("http", PORT).unwrap()];
        let endpoints = endpoints.iter().map(|address| SliceEndpoint::new((*address).into()));
        let slice = SliceName::new("demo", &format!("{}-1", name.name()));
        cluster.set_slice(&slice, Slice::new(name, Family::Ipv4, ports, endpoints).unwrap());
    };
    let port = Port::tcp("http", 80).unwrap();
    add("web", SERVICE, port.clone().with_node_port(30080).unwrap(), None, &ENDPOINTS);
    add("empty", [172, 30, 10, 2], port.clone(), None, &[]);
    for last in STICKY {
        add(&format!("sticky-{last}"), [172, 30, 10, last], port.clone(), Some(10_800), &ENDPOINTS);
    }
    cluster
}

/// What a proxier does at its start.
fn take_over(node: &Namespace, layout: Layout) -> String {
    let settings = Settings { layout, ..Settings::default() };
    let sync = || Applier::open(settings)?.sync(&mut cluster(), Instant::now());
    node.run(sync).expect("a sync").to_string()
}

/// Says who it is, and answers what it is sent, on every connection for as long as it lasts.
fn echo(listener: &TcpListener, name: u8) {
    while let Ok((mut stream, _)) = listener.accept() {
        thread::spawn(move || {
            let mut buffer = [0; 64];
            if stream.write_all(&[name]).is_err() {
                return;
            }
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                if stream.write_all(&buffer[..length]).is_err() {
                    return;
                }
            }
        });
    }
}

/// Returns a connection to a service, and who answered.
fn connect(service: [u8; 4]) -> std::io::Result<(TcpStream, u8)> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((service, 80)), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut name = [0];
    stream.read_exact(&mut name)?;
    Ok((stream, name[0]))
}

fn lives(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut back = [0; 5];
    stream.write_all(b"there")?;
    stream.read_exact(&mut back)?;
    if back == *b"there" { Ok(()) } else { Err(std::io::Error::other(format!("found {back:?}"))) }
}

fn goes_on(before: Before, after: Layout) {
    let network = network();
    let (node, client) = (&network.node.namespace, &network.client.namespace);
    for (pod, name) in network.pods.iter().zip(b'a'..) {
        let listener = pod.namespace.run(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).unwrap());
        thread::spawn(move || echo(&listener, name));
    }
    match before.recorded() {
        None => {
            let Before::Ours(layout) = before else { unreachable!("its tables are in a file") };
            take_over(node, layout);
        }
        Some(recorded) => {
            let loaded = node.run(|| testns::feed(&["nft", "-f", recorded.to_str().unwrap()], ""));
            assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
        }
    }
    let reach = |service| client.run(|| connect(service));
    let (mut old, _) = reach(SERVICE).unwrap_or_else(|error| panic!("{before:?}: {error}"));
    lives(&mut old).unwrap_or_else(|error| panic!("{before:?}: {error}"));
    let sticky = || -> Vec<(TcpStream, u8)> {
        let of =
            |last| reach([172, 30, 10, last]).unwrap_or_else(|error| panic!("{before:?}, {last}: {error}"));
        STICKY.map(of).collect()
    };
    let mut clients = if before.has_sticky() { sticky() } else { Vec::new() };
    let (is_over, exchanges) = (AtomicBool::new(false), AtomicU32::new(0));
    let (synced, lived) = thread::scope(|scope| {
        // Packets pass before, during and after.
        let traffic = scope.spawn(|| {
            // Whoever waits for the first exchange does not wait for ever.
            let ended = testns::RaiseOnDrop(&is_over);
            while !is_over.load(Ordering::Relaxed) {
                lives(&mut old)?;
                exchanges.fetch_add(1, Ordering::Relaxed);
            }
            drop(ended);
            lives(&mut old)
        });
        while exchanges.load(Ordering::Relaxed) == 0 && !is_over.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        // A failure ends the traffic, too: the scope waits for it.
        let over = testns::RaiseOnDrop(&is_over);
        let synced = take_over(node, after);
        drop(over);
        (synced, traffic.join().expect("the thread"))
    });
    lived.unwrap_or_else(|error| panic!("{before:?} to {after:?}, {synced}: {error}"));
    let exchanges = exchanges.into_inner();
    let new = reach(SERVICE).and_then(|(mut stream, _)| lives(&mut stream));
    new.unwrap_or_else(|error| panic!("{before:?} to {after:?}, {synced}: a new connection: {error}"));
    for (stream, name) in &mut clients {
        lives(stream).unwrap_or_else(|error| panic!("{before:?} to {after:?}, {name}: {error}"));
    }
    let names = |of: &[(TcpStream, u8)]| of.iter().map(|(_, name)| char::from(*name)).collect::<String>();
    let (were, are) = (names(&clients), names(&sticky()));
    if keeps_clients(before, after) {
        assert_eq!(were, are, "{before:?} to {after:?}: clients of session affinity, {synced}");
    }
    // Nothing is left of the other: the next start finds what it wants.
    let again = take_over(node, after);
    assert!(again.contains("nothing"), "{before:?} to {after:?}: {synced}; then {again}");
    println!("{before:?} to {after:?}: {synced}; {exchanges} exchanges meanwhile, clients {were:?}, {are:?}");
}

/// Whether clients of session affinity stay with their endpoints, as UPGRADING.md says.
fn keeps_clients(before: Before, after: Layout) -> bool {
    match before {
        Before::Ours(layout) => layout == after,
        Before::Older(name) => match after {
            Layout::Maps => ["maps-2", "maps-3"].contains(&name),
            Layout::Chains => name.starts_with("chains"),
        },
        Before::KubeProxy => false,
    }
}

fn all_go_on(changes: &[(Before, Layout)]) {
    if testns::Netns::new().is_none() || !testns::have(&["nft"]) {
        return;
    }
    for (before, after) in changes {
        goes_on(*before, *after);
    }
}

#[test]
fn connections_go_on_while_the_tables_of_another_layout_are_taken_over() {
    all_go_on(&[
        (Before::Ours(Layout::Chains), Layout::Maps),
        (Before::Ours(Layout::Maps), Layout::Chains),
        (Before::Ours(Layout::Maps), Layout::Maps),
        (Before::Ours(Layout::Chains), Layout::Chains),
        (Before::KubeProxy, Layout::Maps),
        (Before::KubeProxy, Layout::Chains),
    ]);
}

#[test]
fn connections_go_on_while_the_tables_of_older_versions_are_taken_over() {
    all_go_on(&[
        (Before::Older("maps-1"), Layout::Maps),
        (Before::Older("maps-2"), Layout::Maps),
        (Before::Older("maps-3"), Layout::Maps),
        (Before::Older("maps-3"), Layout::Chains),
        (Before::Older("chains-1"), Layout::Chains),
        (Before::Older("chains-1"), Layout::Maps),
    ]);
}
