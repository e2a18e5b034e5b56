//! What UPGRADING.md promises: the tables that another layout or kube-proxy left are taken over, and a
//! connection that is open goes on while they are.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
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
}

/// The addresses of the service `demo/web` there.
const SERVICE: ([u8; 4], u16) = ([172, 30, 10, 1], 80);
const ENDPOINTS: [[u8; 4]; 2] = [[10, 244, 0, 10], [10, 244, 1, 10]];
const PORT: u16 = 8080;
const PATIENCE: Duration = Duration::from_secs(20);

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
    let name = ServiceName::new("demo", "web").unwrap();
    let service = Service::new([SERVICE.0.into()], [Port::tcp("http", SERVICE.1).unwrap()]).unwrap();
    cluster.set_service(&name, service);
    let ports = [SlicePort::tcp("http", PORT).unwrap()];
    let endpoints = ENDPOINTS.map(|address| SliceEndpoint::new(address.into()));
    let slice = Slice::new(name, Family::Ipv4, ports, endpoints).unwrap();
    cluster.set_slice(&SliceName::new("demo", "web-1"), slice);
    cluster
}

/// What a proxier does at its start.
fn take_over(node: &Namespace, layout: Layout) -> String {
    let settings = Settings { layout, ..Settings::default() };
    let sync = || Applier::open(settings)?.sync(&mut cluster(), Instant::now());
    node.run(sync).expect("a sync").to_string()
}

/// Answers what it is sent, on every connection for as long as it lasts.
fn echo(listener: &TcpListener) {
    while let Ok((mut stream, _)) = listener.accept() {
        thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                if stream.write_all(&buffer[..length]).is_err() {
                    return;
                }
            }
        });
    }
}

fn connect() -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&SocketAddr::from(SERVICE), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
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
    for pod in &network.pods {
        let listener = pod.namespace.run(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).unwrap());
        thread::spawn(move || echo(&listener));
    }
    match before {
        Before::Ours(layout) => drop(take_over(node, layout)),
        Before::KubeProxy => {
            let recorded = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../service-rules/testdata/kube-proxy/nft_tx1.nft");
            let loaded = node.run(|| testns::feed(&["nft", "-f", recorded.to_str().unwrap()], ""));
            assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
        }
    }
    let mut old = client.run(connect).unwrap_or_else(|error| panic!("{before:?}: {error}"));
    lives(&mut old).unwrap_or_else(|error| panic!("{before:?}: {error}"));
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
    let new = client.run(connect).and_then(|mut stream| lives(&mut stream));
    new.unwrap_or_else(|error| panic!("{before:?} to {after:?}, {synced}: a new connection: {error}"));
    // Nothing is left of the other: the next start finds what it wants.
    let again = take_over(node, after);
    assert!(again.contains("nothing"), "{before:?} to {after:?}: {synced}; then {again}");
    println!("{before:?} to {after:?}: {synced}; {exchanges} exchanges meanwhile");
}

#[test]
fn connections_go_on_while_the_tables_of_another_layout_are_taken_over() {
    if testns::Netns::new().is_none() || !testns::have(&["nft"]) {
        return;
    }
    for (before, after) in [
        (Before::Ours(Layout::Chains), Layout::Maps),
        (Before::Ours(Layout::Maps), Layout::Chains),
        (Before::Ours(Layout::Maps), Layout::Maps),
        (Before::Ours(Layout::Chains), Layout::Chains),
        (Before::KubeProxy, Layout::Maps),
        (Before::KubeProxy, Layout::Chains),
    ] {
        goes_on(before, after);
    }
}
