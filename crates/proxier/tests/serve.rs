//! Health, service checks and metrics over real sockets, each test in a namespace of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sluicegate_proxier::Mode;
use sluicegate_proxier::config::Config;
use sluicegate_proxier::run::Observer as _;
use sluicegate_proxier::serve::{BindAddress, LocalhostNodePorts, Serving, ServingSettings};
use sluicegate_proxier::source::{self, Manifests};
use sluicegate_services::{Cluster, Family, Node};

/// Runs `f` in a namespace of its own, one test at a time: a program that another test starts (`ip`, the
/// daemon) holds a copy of each descriptor of this process until it runs, and for that moment a port that was
/// closed is not free.
fn netns(f: impl FnOnce() + Send) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    testns::netns(f);
}

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// How long is waited for what must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks again, for a while, when it is not answered: a socket that is on its way out resets who came to it
/// last.
fn get(address: impl Into<SocketAddr>, path: &str, more: &str) -> Response {
    let (address, end) = (address.into(), Instant::now() + PATIENCE);
    loop {
        match try_get(address, path, more) {
            Ok(response) => return response,
            Err(error) => assert!(Instant::now() < end, "no response: {error}"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn try_get(address: impl Into<SocketAddr>, path: &str, more: &str) -> std::io::Result<Response> {
    let mut stream = TcpStream::connect(address.into())?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{more}\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    // One that is closed before it has answered.
    let (head, body) = text.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or(std::io::ErrorKind::InvalidData)?;
    Ok(Response { status, head: head.to_owned(), body: body.to_owned() })
}

fn settings() -> ServingSettings {
    let mut settings = ServingSettings::new(Mode::Nftables);
    settings.healthz = BindAddress::new(LOCALHOST, 0);
    settings.metrics = BindAddress::new(LOCALHOST, 0);
    settings
}

type Warnings = Arc<Mutex<Vec<String>>>;

fn start(settings: ServingSettings) -> (Serving, Warnings) {
    let warnings = Warnings::default();
    let told = Arc::clone(&warnings);
    let serving =
        Serving::start(settings, move |warning| told.lock().expect("no panic").push(warning.to_owned()));
    (serving.expect("both servers"), warnings)
}

/// Services `(name, health-check port)`, all with one endpoint here.
fn cluster(services: &[(&str, u16)]) -> Cluster {
    let mut text = String::new();
    for (index, (name, port)) in services.iter().enumerate() {
        text += &format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: {name}}}\n\
                spec: {{type: LoadBalancer, ipFamilies: [IPv4, IPv6], \
             clusterIP: 10.0.0.{index}, clusterIPs: [10.0.0.{index}, 'fd00::{index}'], \
             externalTrafficPolicy: Local, healthCheckNodePort: {port}, \
             ports: [{{port: 80}}]}}\n---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
             metadata: {{namespace: demo, name: {name}-1, \
             labels: {{kubernetes.io/service-name: {name}}}}}\naddressType: IPv4\n\
             ports: [{{name: '', port: 8080}}]\nendpoints: \
             [{{addresses: [10.1.0.{index}], nodeName: here}}]\n---\n"
        );
    }
    let mut found = Manifests::default();
    source::read_str("f.yaml", &text, |manifest| found.add(manifest)).expect("manifests that parse");
    let node = Node { name: "here".to_owned(), ..Node::default() };
    let (cluster, problems) = found.into_cluster(node);
    assert!(problems.is_empty(), "{problems:?}");
    cluster
}

#[test]
fn health_metrics_and_mode_are_answered_where_kube_proxy_answers_them() {
    netns(|| {
        let (serving, _) = start(settings());
        let [healthz, metrics] = serving.addresses()[..] else { panic!("two servers") };
        let answer = get(healthz, "/healthz", "");
        assert_eq!((answer.status, answer.header("Content-Type")), (503, Some("application/json")));
        assert_eq!(answer.header("X-Content-Type-Options"), Some("nosniff"));
        assert!(answer.body.contains("nothing was programmed yet"), "{}", answer.body);
        let ready = get(healthz, "/readyz", "");
        assert_eq!((ready.status, ready.header("Content-Type")), (503, Some("text/plain; charset=utf-8")));
        for line in [
            "[-]services failed: not listed yet",
            "[-]rules failed: nothing was programmed yet",
            "[+]node ok",
        ] {
            assert!(ready.body.lines().any(|other| other == line), "no {line} in {}", ready.body);
        }
        assert_eq!(get(healthz, "/livez", "").status, 200);
        assert_eq!(get(healthz, "/metrics", "").status, 404);

        let leaving = Node { name: "here".to_owned(), is_leaving: true, ..Node::default() };
        serving.services(&Cluster::new(leaving));
        assert_eq!(get(healthz, "/healthz", "").status, 503);
        assert_eq!(get(healthz, "/livez?verbose", "").status, 200);

        assert_eq!(get(metrics, "/proxyMode", "").body, "nftables");
        assert_eq!(get(metrics, "/healthz", "").body, "ok");
        let plain = get(metrics, "/metrics", "");
        assert_eq!(plain.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
        for line in [
            "# TYPE kubeproxy_proxy_healthz_total counter",
            "kubeproxy_proxy_healthz_total{code=\"200\"} 0",
            "kubeproxy_proxy_healthz_total{code=\"503\"} 2",
            "sluicegate_source_synced{resource=\"services\"} 0",
            "# TYPE process_cpu_seconds_total counter",
            "kubeproxy_proxy_livez_total{code=\"200\"} 2",
        ] {
            assert!(plain.body.lines().any(|other| other == line), "no {line} in {}", plain.body);
        }
        let open = get(
            metrics,
            "/metrics",
            "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n",
        );
        assert!(
            open.header("content-type")
                .is_some_and(|value| value.starts_with("application/openmetrics-text"))
        );
        assert!(
            open.body.ends_with("# EOF\n") && open.body.contains("# TYPE kubeproxy_proxy_healthz counter\n")
        );
    });
}

#[test]
fn health_check_node_ports_open_move_and_close_with_their_services() {
    netns(|| {
        let (serving, warnings) = start(settings());
        serving.services(&cluster(&[("a", 30001), ("b", 30002)]));
        let v4 = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let v6 = |port| SocketAddr::from((Ipv6Addr::LOCALHOST, port));
        let answer = get(v4(30001), "/any/path", "");
        assert_eq!((answer.status, answer.header("X-Load-Balancing-Endpoint-Weight")), (200, Some("1")));
        let expected = "{\n\t\"service\": {\n\t\t\"namespace\": \"demo\",\n\t\t\"name\": \"a\"\n\t},\n\
            \t\"localEndpoints\": 1,\n\t\"serviceProxyHealthy\": true\n}";
        assert_eq!(answer.body, expected);
        // Its endpoints are all IPv4.
        let other = get(v6(30001), "/", "");
        assert_eq!((other.status, other.header("X-Load-Balancing-Endpoint-Weight")), (503, Some("0")));

        // They swap their ports.
        serving.services(&cluster(&[("a", 30002), ("b", 30001)]));
        assert!(get(v4(30002), "/", "").body.contains("\"name\": \"a\""));
        assert!(get(v4(30001), "/", "").body.contains("\"name\": \"b\""));

        serving.services(&cluster(&[("b", 30001)]));
        refuses(v4(30002));
        refuses(v6(30002));
        assert_eq!(get(v4(30001), "/", "").status, 200);
        assert_eq!(*warnings.lock().unwrap(), [""; 0]);
    });
}

#[test]
fn a_port_that_is_taken_is_told_once_with_its_service_and_tried_again() {
    netns(|| {
        let (serving, warnings) = start(settings());
        let taken = TcpListener::bind("0.0.0.0:30001").expect("a free port");
        let services = cluster(&[("a", 30001), ("b", 30002), ("c", 30002)]);
        for _ in 0..2 {
            serving.services(&services);
        }
        let expected = [
            "the health check of service demo/a cannot listen on 0.0.0.0:30001: Address already in use (os \
                error 98)",
        ];
        assert_eq!(*warnings.lock().unwrap(), expected);
        // The rest goes on; of two services with one port the model chooses.
        assert!(get((Ipv4Addr::LOCALHOST, 30002), "/", "").body.contains("\"name\": \"b\""));
        drop(taken);
        let end = Instant::now() + PATIENCE;
        // It is tried with every sync, until whoever has the port is gone for good.
        loop {
            serving.services(&services);
            match try_get((Ipv4Addr::LOCALHOST, 30001), "/", "") {
                Ok(answer) => break assert!(answer.body.contains("\"name\": \"a\"")),
                Err(error) => assert!(Instant::now() < end, "never tried again: {error}"),
            }
        }
    });
}

#[test]
fn health_check_node_ports_are_answered_on_the_node_port_addresses_alone() {
    if !testns::have(&["ip"]) {
        return;
    }
    netns(|| {
        let _ = testns::sh("ip address add 192.0.2.1/24 dev lo; ip address add 198.51.100.1/24 dev lo");
        let mut settings = settings();
        settings.node_port_addresses = "192.0.2.0/24".parse().expect("a network");
        let (serving, _) = start(settings);
        serving.services(&cluster(&[("a", 30001)]));
        assert_eq!(get((Ipv4Addr::new(192, 0, 2, 1), 30001), "/", "").status, 200);
        assert!(TcpStream::connect("198.51.100.1:30001").is_err());
        // An address that comes later is answered on from the next sync on.
        let _ = testns::sh("ip address add 192.0.2.2/24 dev lo");
        serving.services(&cluster(&[("a", 30001)]));
        assert_eq!(get((Ipv4Addr::new(192, 0, 2, 2), 30001), "/", "").status, 200);
    });
}

#[test]
fn a_server_that_cannot_listen_says_which_and_where() {
    netns(|| {
        let (_serving, _) = start(ServingSettings::new(Mode::Iptables));
        let mut settings = ServingSettings::new(Mode::Iptables);
        settings.bind_hard_fail = true;
        let Err(error) = Serving::start(settings, |_| {}) else { panic!("a second one") };
        assert!(error.is_in_use());
        assert_eq!(
            error.to_string(),
            "/healthz cannot listen on 0.0.0.0:10256: Address already in use (os error 98)"
        );
    });
}

/// A daemon and its manifests; both gone with it.
struct Daemon {
    child: std::process::Child,
    directory: std::path::PathBuf,
}

impl Daemon {
    fn start(flags: &[&str], manifests: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("sluicegate-serve-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(directory.join("all.yaml"), manifests).expect("a file");
        let log = std::fs::File::create(directory.join("log")).expect("a log");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
        command.args(["run", "--hostname-override", "here", "--manifests"]).arg(&directory).args(flags);
        Self { child: command.stderr(log).spawn().expect("the command"), directory }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).expect("a log")
    }

    fn eventually(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !condition() {
            assert!(Instant::now() < end, "{what}; the log:\n{}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

const MANIFESTS: &str = "apiVersion: v1
kind: Service
metadata: {namespace: demo, name: api}
spec: {type: LoadBalancer, clusterIP: 10.0.0.1, externalTrafficPolicy: Local, healthCheckNodePort: 30999, \
ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: demo, name: api-1, labels: {kubernetes.io/service-name: api}}
addressType: IPv4
ports: [{name: '', port: 8080}]
endpoints: [{addresses: [10.1.0.1], nodeName: here}]
";

#[test]
fn the_daemon_serves_what_it_does() {
    netns(|| {
        let daemon = Daemon::start(&["--metrics-bind-address", "127.0.0.1:9999"], MANIFESTS);
        let local = |port: u16| SocketAddr::from((LOCALHOST, port));
        daemon.eventually("no health check", || TcpStream::connect(local(30999)).is_ok());
        // The port is open before the rules are told to be there.
        daemon.eventually("it is not healthy", || get(local(10256), "/healthz", "").status == 200);
        let check = get(local(30999), "/", "");
        assert_eq!((check.status, check.header("X-Load-Balancing-Endpoint-Weight")), (200, Some("1")));
        let health = get(local(10256), "/healthz", "");
        assert_eq!(health.status, 200);
        assert!(health.body.contains(r#""status":{"IPv4":{"#), "{}", health.body);
        // A port answers a moment before the figures say so.
        let metrics = || get(local(9999), "/metrics", "").body;
        let told = |line: &str| daemon.eventually(line, || metrics().lines().any(|other| other == line));
        for line in [
            "kubeproxy_sync_proxy_rules_service_changes_total 1",
            "kubeproxy_sync_proxy_rules_endpoint_changes_total 1",
            "kubeproxy_sync_proxy_rules_service_changes_pending 0",
            "kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family=\"IPv4\"} 0",
            "sluicegate_services 1",
            "sluicegate_health_check_sockets 1",
        ] {
            told(line);
        }
        let text = metrics();
        let value = |text: &str, name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
        };
        assert!(value(&text, "sluicegate_kernel_messages_total ") > 10.0);
        assert!(value(&text, "kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family=\"IPv4\"} ") > 1e9);

        std::fs::write(
            daemon.directory.join("all.yaml"),
            MANIFESTS.replace("nodeName: here", "nodeName: there"),
        )
        .expect("a file");
        daemon.eventually("the endpoint is still here", || get(local(30999), "/", "").status == 503);
        told(
            "kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family=\"IPv4\",traffic_policy=\"external\"} 1",
        );
        std::fs::remove_file(daemon.directory.join("all.yaml")).expect("the file");
        daemon.eventually("the port is still open", || TcpStream::connect(local(30999)).is_err());
    });
}

#[test]
fn the_daemon_sets_sysctls_when_asked_and_tells_of_them_otherwise() {
    const FORWARD: &str = "/proc/sys/net/ipv4/ip_forward";
    netns(|| {
        if let Err(error) = std::fs::write(FORWARD, "0") {
            return testns::skip(&format!("sysctls of a namespace cannot be written here: {error}"));
        }
        let forward = || std::fs::read_to_string(FORWARD).expect("a sysctl").trim() == "1";
        let nowhere = ["--healthz-bind-address=", "--metrics-bind-address="];
        let telling = Daemon::start(&nowhere, MANIFESTS);
        let wanted = "net.ipv4.ip_forward is 0, expected 1: nothing is forwarded";
        telling.eventually("nothing is told", || telling.log().contains(wanted));
        telling.eventually("nothing is synced", || TcpStream::connect((LOCALHOST, 30999)).is_ok());
        assert!(!forward() && TcpStream::connect((LOCALHOST, 10256)).is_err());
        drop(telling);
        // Before Linux 5.3 the bridge's are the machine's: only where nothing is to be changed about them.
        let bridge = |name| std::fs::read_to_string(format!("/proc/sys/net/bridge/bridge-nf-call-{name}"));
        if ["iptables", "ip6tables"].map(bridge).iter().flatten().any(|value| value.trim() != "1") {
            return testns::skip("the sysctls of bridges are not as they are by default");
        }
        let setting = Daemon::start(&[&nowhere[..], &["--set-sysctls"]].concat(), MANIFESTS);
        setting.eventually("nothing is set", || {
            setting.log().contains("net.ipv4.ip_forward was 0 and is 1 now")
        });
        assert!(forward());
    });
}

#[test]
fn a_taken_port_stops_the_daemon_where_it_is_told_to_stop() {
    netns(|| {
        let _taken = TcpListener::bind("0.0.0.0:10256").expect("a free port");
        let mut daemon = Daemon::start(&["--bind-address-hard-fail"], MANIFESTS);
        assert!(!daemon.child.wait().expect("an end").success());
        let expected =
            "--healthz-bind-address: /healthz cannot listen on 0.0.0.0:10256: Address already in use";
        assert!(daemon.log().contains(expected), "{}", daemon.log());
    });
}

#[test]
fn otherwise_it_goes_on_and_listens_when_the_port_is_free() {
    netns(|| {
        let taken = TcpListener::bind("0.0.0.0:10256").expect("a free port");
        let daemon = Daemon::start(&[], MANIFESTS);
        daemon.eventually("it is not told", || {
            daemon.log().contains(
                "/healthz cannot listen on 0.0.0.0:10256: Address already in use (os error 98); retrying \
                    every 5s",
            )
        });
        let address = SocketAddr::from((LOCALHOST, 30999));
        daemon.eventually("nothing is synced", || TcpStream::connect(address).is_ok());
        assert_eq!(get((LOCALHOST, 10249), "/healthz", "").body, "ok");
        drop(taken);
        daemon.eventually("it does not listen", || {
            daemon.log().contains("/healthz listens on 0.0.0.0:10256 now")
        });
        assert_eq!(get((LOCALHOST, 10256), "/livez", "").status, 200);
    });
}

/// It is a configuration file, which means the same when it is read.
#[test]
fn the_configuration_in_force_is_told() {
    netns(|| {
        let flags = [
            "--cluster-cidr=10.244.0.0/16",
            "--nftables-min-sync-period=500ms",
            "--healthz-bind-address=",
            "--feature-gates=ComponentStatusz=false",
        ];
        let daemon = Daemon::start(&flags, MANIFESTS);
        daemon.eventually("no server", || TcpStream::connect((LOCALHOST, 10249)).is_ok());
        let answer = get((LOCALHOST, 10249), "/configz", "");
        assert_eq!((answer.status, answer.header("Content-Type")), (200, Some("application/json")));
        let all: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
        let config = &all["kubeproxy.config.k8s.io"];
        assert_eq!(config["hostnameOverride"], "here");
        assert_eq!(config["featureGates"]["ComponentStatusz"], false);
        assert_eq!(config["healthzBindAddress"], "");
        let read = Config::parse(Path::new("configz"), &config.to_string()).expect("a configuration");
        assert_eq!((&read.unused[..], &read.doubtful[..]), (&[][..], &[][..]));
        // Every field of kube-proxy's is there.
        let fields = include_str!("../testdata/kube-proxy/fields.txt");
        for field in fields.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let place = format!("/{}", field.replace('.', "/"));
            assert!(config.pointer(&place).is_some(), "no {field} in {config:#}");
        }
        assert_eq!(read.mode, Some(Mode::Nftables));
        assert_eq!(read.cluster_cidrs, Some(vec!["10.244.0.0/16".parse().unwrap()]));
        assert_eq!(
            read.node_port_addresses.map(|addresses| addresses.to_string()).as_deref(),
            Some("primary")
        );
        assert_eq!(read.nftables.masquerade_bit, Some(14));
        assert_eq!(read.nftables.min_sync_period, Some(Duration::from_millis(500)));
        assert_eq!(read.nftables.sync_period, Some(Duration::from_secs(30)));
        assert_eq!(read.metrics_bind_address.as_deref(), Some("127.0.0.1:10249"));
        assert_eq!(read.ipvs_scheduler.as_deref(), Some("rr"));
        assert_eq!(get((LOCALHOST, 10249), "/statusz", "").status, 404);
        assert_eq!(get((LOCALHOST, 10249), "/flagz", "").status, 200);
    });
}

/// Services with node ports from 30080 on: one with two endpoints, one with affinity, one of IPv6, one of
/// UDP, one with `externalTrafficPolicy: Local` and an endpoint here and elsewhere, and one without
/// endpoints.
const NODE_PORTS: &str = "
{apiVersion: v1, kind: Service, metadata: {namespace: demo, name: two}, spec: {type: NodePort, clusterIP: 172.30.0.1, ports: [{port: 80, nodePort: 30080}]}}
---
{apiVersion: v1, kind: Service, metadata: {namespace: demo, name: sticky}, spec: {type: NodePort, clusterIP: 172.30.0.2, sessionAffinity: ClientIP, ports: [{port: 80, nodePort: 30081}]}}
---
{apiVersion: v1, kind: Service, metadata: {namespace: demo, name: six}, spec: {type: NodePort, clusterIP: 'fd00::3', ports: [{port: 80, nodePort: 30082}]}}
---
{apiVersion: v1, kind: Service, metadata: {namespace: demo, name: udp}, spec: {type: NodePort, clusterIP: 172.30.0.4, ports: [{port: 80, nodePort: 30083, protocol: UDP}]}}
---
{apiVersion: v1, kind: Service, metadata: {namespace: demo, name: local}, spec: {type: NodePort, clusterIP: 172.30.0.5, externalTrafficPolicy: Local, ports: [{port: 80, nodePort: 30084}]}}
---
{apiVersion: v1, kind: Service, metadata: {namespace: demo, name: none}, spec: {type: NodePort, clusterIP: 172.30.0.6, ports: [{port: 80, nodePort: 30085}]}}
";

/// Adds a slice for each service, with these endpoints and their nodes.
fn with_endpoints(endpoints: &[(&str, &[(&str, &str)])]) -> Cluster {
    let mut text = NODE_PORTS.to_owned();
    for (service, endpoints) in endpoints {
        let list: Vec<_> =
            endpoints.iter().map(|(ip, node)| format!("{{addresses: ['{ip}'], nodeName: {node}}}")).collect();
        let family = if endpoints.iter().any(|(ip, _)| ip.contains(':')) { "IPv6" } else { "IPv4" };
        let protocol = if *service == "udp" { "UDP" } else { "TCP" };
        text += &format!(
            "---\n{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {{namespace: demo, name: {service}, \
             labels: {{kubernetes.io/service-name: {service}}}}}, addressType: {family}, ports: [{{name: '', port: 8080, \
             protocol: {protocol}}}], endpoints: [{}]}}\n",
            list.join(", ")
        );
    }
    let mut found = Manifests::default();
    source::read_str("f.yaml", &text, |manifest| found.add(manifest)).expect("manifests that parse");
    let (cluster, problems) = found.into_cluster(Node { name: "here".to_owned(), ..Node::default() });
    assert!(problems.is_empty(), "{problems:?}");
    cluster
}

/// Answers each connection to an address at port 8080 with the address, and then what it reads.
fn echo(ip: &str) {
    let listener = TcpListener::bind((ip.parse::<IpAddr>().unwrap(), 8080)).expect("a free port");
    let name = format!("{ip}\n");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let name = name.clone();
            thread::spawn(move || {
                let _ = stream.write_all(name.as_bytes());
                let mut reader = stream.try_clone().expect("a descriptor");
                let _ = std::io::copy(&mut reader, &mut stream);
            });
        }
    });
}

/// Returns who answers at a port of loopback; the reason if nobody does. A listener that is on its way out
/// resets a connection at any step of it.
fn answers(ip: &str, port: u16) -> String {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((ip.parse::<IpAddr>().unwrap(), port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"more")?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    ask().unwrap_or_else(|error| error.kind().to_string())
}

/// Waits until nobody listens: a listener is closed by its task.
fn refuses(address: SocketAddr) {
    let until = Instant::now() + PATIENCE;
    let is_refused = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
    while !TcpStream::connect(address).is_err_and(is_refused) {
        assert!(Instant::now() < until, "{address} still answers");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Connections that are never closed leave the daemon its descriptors, and other ports their places.
#[test]
fn connections_to_node_ports_on_localhost_are_bounded() {
    netns(|| {
        let _ = testns::sh("ip addr add 10.9.0.1/32 dev lo");
        echo("10.9.0.1");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&warnings);
        let report = move |warning: &str| seen.lock().unwrap().push(warning.to_owned());
        let ports = LocalhostNodePorts::new(runtime.handle().clone(), [Family::Ipv4], report);
        let ports = ports.with_most_connections(8);
        let here: &[_] = &[("10.9.0.1", "here")];
        ports.services(&with_endpoints(&[("two", here), ("local", here)]));
        let open = |port| -> std::io::Result<TcpStream> {
            let mut stream = TcpStream::connect((LOCALHOST, port))?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.read_exact(&mut [0; 9]).map(|()| stream)
        };
        let mut held: Vec<_> = (0..4).map(|_| open(30080).unwrap()).collect();
        for _ in 0..3 {
            let kind = open(30080).map_err(|error| error.kind());
            let closed = [std::io::ErrorKind::UnexpectedEof, std::io::ErrorKind::ConnectionReset];
            assert!(kind.as_ref().is_err_and(|kind| closed.contains(kind)), "{kind:?}");
        }
        let told = warnings.lock().unwrap().clone();
        let expected = "node port 30080 on loopback: a connection is closed at once, as 4 are open to it, or 8 to all \
                        node ports on loopback";
        assert_eq!(told, [expected]);
        assert!(open(30084).is_ok(), "another port has places");
        // A place is free when its connection has ended.
        held.pop();
        let until = Instant::now() + PATIENCE;
        while open(30080).is_err() {
            assert!(Instant::now() < until, "no place is free again");
        }
    });
}

#[test]
fn node_ports_on_localhost_are_forwarded_to_endpoints() {
    netns(|| {
        let _ = testns::sh(
            "for n in 1 2 3; do ip addr add 10.9.0.$n/32 dev lo; done; ip addr add fd00:9::1/128 dev lo nodad",
        );
        for ip in ["10.9.0.1", "10.9.0.2", "10.9.0.3", "fd00:9::1"] {
            echo(ip);
            // The kernel makes the route to an address of IPv6 a moment after the address.
            let (address, end) = (SocketAddr::new(ip.parse().unwrap(), 8080), Instant::now() + PATIENCE);
            while let Err(error) = TcpStream::connect(address) {
                assert!(Instant::now() < end, "{address}: {error}");
                thread::sleep(Duration::from_millis(5));
            }
        }
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&warnings);
        let report = move |warning: &str| seen.lock().unwrap().push(warning.to_owned());
        let counted = Arc::new(Mutex::new(std::collections::BTreeMap::new()));
        let seen = Arc::clone(&counted);
        let count = move |family, open, failed| {
            seen.lock().unwrap().insert(family, (open, failed));
        };
        let ports = LocalhostNodePorts::new(runtime.handle().clone(), Family::BOTH, report).counted_by(count);
        let taken = TcpListener::bind((LOCALHOST, 30081)).unwrap();
        let all: &[(&str, &[_])] = &[
            ("two", &[("10.9.0.1", "here"), ("10.9.0.2", "there")]),
            ("sticky", &[("10.9.0.1", "here"), ("10.9.0.2", "there"), ("10.9.0.3", "there")]),
            ("six", &[("fd00:9::1", "here")]),
            ("udp", &[("10.9.0.1", "here")]),
            ("local", &[("10.9.0.1", "there"), ("10.9.0.3", "here")]),
        ];
        ports.services(&with_endpoints(all));
        let listening: Vec<_> = ports.listening().iter().map(ToString::to_string).collect();
        assert_eq!(listening, ["127.0.0.1:30080", "127.0.0.1:30084", "[::1]:30082"]);
        // A port that is taken is told once, and taken when it is free.
        ports.services(&with_endpoints(all));
        let told = warnings.lock().unwrap().clone();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("node port 30081 of service demo/sticky"), "{told:?}");
        let counts: Vec<_> = counted.lock().unwrap().values().copied().collect();
        assert_eq!(counts, [(2, 1), (1, 0)]);
        drop(taken);
        ports.services(&with_endpoints(all));

        // Chosen at random: that one of them never comes has a probability of two to the power of -99.
        let mut both = std::collections::BTreeSet::new();
        for _ in 0..100 {
            both.insert(answers("127.0.0.1", 30080));
            if both.len() > 1 {
                break;
            }
        }
        assert_eq!(both.into_iter().collect::<Vec<_>>(), ["10.9.0.1\nmore", "10.9.0.2\nmore"]);
        let sticky = answers("127.0.0.1", 30081);
        assert!((0..9).all(|_| answers("127.0.0.1", 30081) == sticky), "{sticky}");
        assert_eq!(answers("::1", 30082), "fd00:9::1\nmore");
        for port in [30083, 30085] {
            assert_eq!(answers("127.0.0.1", port), "connection refused", "{port}");
        }
        assert!((0..4).all(|_| answers("127.0.0.1", 30084) == "10.9.0.3\nmore"));
        // One of the endpoints goes, then all, and with the last the connection that is open.
        ports.services(&with_endpoints(&[("two", &[("10.9.0.2", "there")])]));
        assert!((0..4).all(|_| answers("127.0.0.1", 30080) == "10.9.0.2\nmore"));
        refuses((LOCALHOST, 30081).into());
        let mut open = TcpStream::connect((LOCALHOST, 30080)).unwrap();
        open.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut first = [0; 9];
        open.read_exact(&mut first).unwrap();
        ports.services(&with_endpoints(&[]));
        refuses((LOCALHOST, 30080).into());
        let closed = open.read(&mut first).map_err(|error| error.kind());
        assert!(matches!(closed, Ok(0) | Err(std::io::ErrorKind::ConnectionReset)), "{closed:?}");
        assert!(ports.listening().is_empty());
        // Those that do not answer are passed over.
        ports.services(&with_endpoints(&[("two", &[("10.9.0.99", "there"), ("10.9.0.2", "there")])]));
        assert!((0..3).all(|_| answers("127.0.0.1", 30080) == "10.9.0.2\nmore"));
    });
}
