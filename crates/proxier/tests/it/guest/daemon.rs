//! `run --proxy-mode ipvs`: follows its manifests, removes stale flows, leaves out what IPVS refuses, mends,
//! and stops; and counters that few kernels have.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

use sluicegate_conntrack::{Client, Filter, NewFlow, Protocol, Tuple};
use sluicegate_lab::Namespace;
use sluicegate_proxier::Mode;
use sluicegate_proxier::serve::Metrics;
use sluicegate_service_rules::Error;
use sluicegate_service_rules::iptables::counters::Counters;
use sluicegate_service_rules::iptables::{BackEnd, INVALID_COUNTER};
use sluicegate_service_rules::ipvs::Settings;
use sluicegate_services::{Cluster, Family, Slice, SliceName};

use crate::guest::back_end;
use crate::guest::traffic::{World, applier, endpoints};

/// What IPVS takes for no unicast address: the broadcast address of the node's own network.
const BROADCAST: &str = "192.168.0.255";

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn a_service_that_ipvs_refuses_is_named_and_the_rest_works_without_it() {
    if back_end().is_none() {
        return;
    }
    let World { network, mut cluster, .. } = World::new();
    network.node.namespace.run(|| {
        let mut applier = applier(Settings::default());
        applier.sync(&mut cluster, Instant::now()).unwrap();
        let (name, slice) = broken(&cluster);
        cluster.set_slice(&name, Some(slice));
        let error = applier.sync(&mut cluster, Instant::now()).unwrap_err();
        let Error::Refused { services } = &error else { panic!("{error:?}") };
        assert_eq!(services.len(), 1, "{error}");
        assert_eq!(services[0].0.as_str(), "ns/s1");
        assert!(services[0].1.contains(BROADCAST) && services[0].1.contains("EINVAL"), "{error}");

        endpoints(&mut cluster, &["here"]);
        applier.sync(&mut cluster, Instant::now()).unwrap();
        assert!(!testns::sh("ipvsadm -Sn").contains(BROADCAST));
    });
}

/// The slice of the service's IPv4 endpoints, with one that is none.
fn broken(cluster: &Cluster) -> (SliceName, Slice) {
    let name = SliceName { namespace: "ns".into(), name: "s1-IPv4".into() };
    let service = cluster.service_names().next().unwrap().clone();
    let mut slice = cluster.slices(&service).find(|slice| slice.endpoints[0].ip.is_ipv4()).unwrap().clone();
    slice.endpoints[0].ip = BROADCAST.parse().unwrap();
    (name, slice)
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn the_daemon_keeps_ipvs_where_its_manifests_say() {
    let Some(back_end) = back_end() else { return };
    let world = World::new();
    let (node, client) = (&world.network.node.namespace, &world.network.client.namespace);
    let directory = Directory::new();
    directory.write("web", &[HERE, THERE]);
    let mut daemon = Daemon(node.run(|| command(&directory.0, back_end).spawn().unwrap()));
    let has = |what: &'static str| eventually(what, || servers(node).contains(what));
    has("-a -t 172.30.0.1:80 -r 10.244.1.10:8080");

    // Flows of clients that say nothing any more: IPVS knows nothing of these.
    node.run(|| Client::open().unwrap().create(&[flow(1, HERE), flow(2, THERE)]).unwrap());
    // One of a client that goes on, as a resolver that keeps its socket; it goes with its endpoint.
    let socket = client.run(|| UdpSocket::bind("0.0.0.0:0").unwrap());
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut first = None;
    eventually("an endpoint answers", || {
        first = ask(&socket);
        first.is_some()
    });
    let first = first.unwrap();
    directory.write("web", &[if first == "here" { THERE } else { HERE }]);
    let stale = if first == "here" { HERE } else { THERE };
    let left = || node.run(|| Client::open().unwrap().list(&Filter::default())).unwrap();
    eventually("stale flows are gone", || left().iter().all(|flow| flow.reply.source() != stale));
    assert!(
        left().iter().any(
            |flow| flow.original.source() == Ipv4Addr::new(10, 9, 9, if first == "here" { 2 } else { 1 })
        )
    );
    eventually("another endpoint answers", || ask(&socket).is_some_and(|name| name != first));
    // One that is refused, and one that has to go on.
    directory.write("bad", &[BROADCAST.parse().unwrap()]);
    directory.write("good", &[HERE]);
    has("-a -t 172.30.0.3:80 -r 10.244.0.10:8080");
    eventually("the refusal is told", || {
        metrics(node).lines().any(|line| line == "sluicegate_services_refused 1")
    });
    assert!(!servers(node).contains(BROADCAST));

    let _ = node.run(|| testns::sh_beside("ipvsadm -C"));
    has("-a -t 172.30.0.3:80 -r 10.244.0.10:8080");
    let _ = testns::sh(&format!("kill -TERM {}", daemon.0.id()));
    assert!(daemon.0.wait().unwrap().success());
    assert!(servers(node).contains("172.30.0.3:80"), "what was programmed stays");
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn the_packet_counters_of_iptables_mode_count() {
    let Some(back_end) = back_end() else { return };
    let iptables = format!("iptables-{back_end}");
    testns::netns(|| {
        let mut counters = Counters::open().unwrap();
        assert_eq!(counters.packets(INVALID_COUNTER).unwrap(), None);
        for _ in 0..2 {
            counters.ensure(INVALID_COUNTER).unwrap();
        }
        let _ = testns::sh(&format!(
            "{iptables} -A OUTPUT -p udp -m nfacct --nfacct-name {INVALID_COUNTER} -j DROP"
        ));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!((0..3).all(|_| socket.send_to(b"?", "127.0.0.1:9").is_err()), "they are dropped");
        assert_eq!(counters.packets(INVALID_COUNTER).unwrap(), Some(3));
        let metrics = Metrics::new(Mode::Iptables, &Family::BOTH, SystemTime::now()).text(None).1;
        let line = "kubeproxy_iptables_ct_state_invalid_dropped_packets_total 3";
        assert!(metrics.lines().any(|other| other == line), "{metrics}");
        assert!(!metrics.contains("iptables_localhost_nodeports_accepted_packets_total"), "{metrics}");
    });
}

fn command(manifests: &Path, back_end: BackEnd) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
    command.args([
        "run",
        "--proxy-mode=ipvs",
        "--hostname-override=node",
        "--bind-address=192.168.0.2",
        "--ipvs-min-sync-period=20ms",
        "--ipvs-sync-period=500ms",
        "--iptables-backend",
        back_end.as_str(),
        "--manifests",
    ]);
    command.arg(manifests);
    command
}

/// The daemon; gone with this value.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Manifests; removed with this value.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("sluicegate-ipvs-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A service of this name with these endpoints.
    fn write(&self, name: &str, endpoints: &[Ipv4Addr]) {
        let number = ["web", "bad", "good"].iter().position(|known| *known == name).unwrap() + 1;
        let endpoints: Vec<_> = endpoints.iter().map(|ip| format!("{{addresses: [{ip}]}}")).collect();
        let text = format!(
            "apiVersion: v1
kind: Service
metadata: {{namespace: demo, name: {name}}}
spec: {{clusterIP: 172.30.0.{number}, ports: [{{name: t, port: 80}}, {{name: u, port: 80, protocol: UDP}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{namespace: demo, name: {name}-1, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{name: t, port: 8080, protocol: TCP}}, {{name: u, port: 8080, protocol: UDP}}]
endpoints: [{}]
",
            endpoints.join(", ")
        );
        let new = self.0.join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.0.join(format!("{name}.yaml"))).unwrap();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A flow from one client to the service, answered by an endpoint.
fn flow(client: u8, endpoint: Ipv4Addr) -> NewFlow {
    let client = SocketAddr::from(([10, 9, 9, client], 1000));
    let tuple = |from, to| Tuple::with_ports(Protocol::UDP, from, to).unwrap();
    let mut flow = NewFlow::new(tuple(client, SocketAddr::from(([172, 30, 0, 1], 80))), 300);
    flow.reply = tuple(SocketAddr::from((endpoint, 8080)), client);
    flow
}

/// The name of the endpoint that answers; none when nobody does in time.
fn ask(socket: &UdpSocket) -> Option<String> {
    let mut answer = [0; 512];
    socket.send_to(b"who?", "172.30.0.1:80").ok()?;
    let length = socket.recv(&mut answer).ok()?;
    let text = String::from_utf8_lossy(&answer[..length]).into_owned();
    text.split_once(' ').map(|(name, _)| name.to_owned())
}

fn servers(node: &Namespace) -> String {
    node.run(|| testns::sh_beside("ipvsadm -Sn"))
}

fn metrics(node: &Namespace) -> String {
    node.run(|| {
        let scrape = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], 10249)))?;
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        // It is asked until the line that is waited for is there.
        scrape().unwrap_or_default()
    })
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    // A guest without hardware help on a busy machine takes seconds for a sync.
    let end = Instant::now() + Duration::from_secs(180);
    while !condition() {
        assert!(Instant::now() < end, "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

const HERE: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 10);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 244, 1, 10);
