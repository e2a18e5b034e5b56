//! `status` of a daemon in a network of its own, with connections.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use sluicegate_lab::{Answer, Namespace, Network, NetworkSpec, PodSpec, Transport, ask};

/// A node with a pod that serves and a client outside.
pub(crate) fn network() -> Network {
    Network::build(&NetworkSpec {
        node: (Ipv4Addr::new(192, 168, 0, 2), Ipv6Addr::new(0xfd00, 0x192, 0x168, 0, 0, 0, 0, 2)),
        client: (Ipv4Addr::new(192, 168, 0, 100), Ipv6Addr::new(0xfd00, 0x192, 0x168, 0, 0, 0, 0, 0x100)),
        gateway: (Ipv4Addr::new(10, 244, 0, 1), Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, 0, 1)),
        pods: vec![PodSpec {
            name: "web",
            address: (Ipv4Addr::new(10, 244, 0, 10), Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, 0, 0x10)),
            ports: vec![8080],
        }],
        routed: vec!["172.30.0.0/16".parse().expect("a network")],
    })
    .expect("a network")
}

pub(crate) fn service(name: &str, ip: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: {name}}}\n\
         spec: {{clusterIP: {ip}, clusterIPs: [{ip}], ports: [{{name: http, port: 80}}]{more}}}\n---\n"
    )
}

pub(crate) const SLICE: &str = r"
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: demo, name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints:
  - {addresses: [10.244.0.10], nodeName: node}
  - addresses: [10.244.0.11]
    nodeName: node
    conditions: {ready: false, serving: true, terminating: true}
";

/// A directory that is removed with its value.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sluicegate-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("a file");
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // One that is left behind harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that is killed with its value.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
    command.args(words).stdin(Stdio::null());
    command
}

pub(crate) fn start(node: &Namespace, manifests: &Path, flags: &[&str]) -> Running {
    node.run(|| {
        let mut command =
            command(&[&["run", "--hostname-override", "node"], flags, &["--manifests"]].concat());
        command.arg(manifests).stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().expect("the command starts"))
    })
}

pub(crate) fn status(node: &Namespace, words: &[&str]) -> Output {
    node.run(|| command(&[&["status"], words].concat()).output().expect("the command starts"))
}

pub(crate) fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Asks until the status is as wanted.
pub(crate) fn wait(node: &Namespace, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let output = status(node, &["-o", "json"]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if is_so(&found) {
            return found;
        }
        assert!(Instant::now() < end, "not {what}: {found:#} {}", String::from_utf8_lossy(&output.stderr));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_running_daemon_tells_its_services_flows_syncs_and_troubles() {
    if testns::Netns::new().is_none() {
        return;
    }
    let (network, directory) = (network(), Directory::new("status"));
    let node = &network.node.namespace;
    let nobody = status(node, &[]);
    assert_eq!(nobody.status.code(), Some(1));
    let why = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert!(why.contains("the daemon at 127.0.0.1:10249: Connection refused"), "{why}");

    directory.write("web.yaml", &(service("web", "172.30.0.1", "") + SLICE));
    let daemon = start(node, &directory.0, &[]);
    let ready = wait(node, "ready", |status| status["ready"] == true);
    assert_eq!(
        (&ready["mode"], &ready["node"], &ready["services"]),
        (&"nftables".into(), &"node".into(), &1.into())
    );
    assert_eq!(
        (&ready["failure"], ready["syncs"][0]["changed"].as_u64()),
        (&Value::Null, Some(1)),
        "{ready:#}"
    );

    let target = SocketAddr::from(([172, 30, 0, 1], 80));
    for answer in network.client.namespace.run(|| ask(Transport::Tcp, target, 3, Duration::from_secs(30))) {
        assert!(matches!(answer, Answer::From { .. }), "{answer:?}");
    }
    let found = object(&status(node, &["-o", "json"]));
    crate::schemas::assert_valid("status", [&found]);
    let endpoints = &found["ports"][0]["endpoints"];
    assert_eq!((&endpoints[0]["address"], &endpoints[0]["flows"]), (&"10.244.0.10:8080".into(), &3.into()));
    let name =
        found["ports"][0]["name"].as_str().expect("a name").split(':').next().expect("a service").to_owned();
    let one = object(&status(node, &[&name, "-o", "json"]));
    assert_eq!(one["ports"], found["ports"], "{name}");
    let slip = status(node, &[&format!("{name}b")]);
    let said = String::from_utf8_lossy(&slip.stderr).into_owned();
    assert!(slip.status.code() == Some(1) && said.contains(&format!("did you mean {name}?")), "{said}");
    assert_eq!((&endpoints[1]["terminating"], &endpoints[1]["flows"]), (&true.into(), &0.into()));
    let text = |words: &[&str]| String::from_utf8(status(node, words).stdout).expect("text");
    let shown = text(&[]);
    assert!(shown.starts_with("ready on node node, nftables mode, version "), "{shown}");
    assert!(shown.contains("demo/web:http tcp") && shown.contains("1 of 2 ready, 2 here"), "{shown}");
    let shown = text(&["--endpoints"]);
    assert!(shown.contains("serving while terminating, here"), "{shown}");

    directory.write("other.yaml", &service("other", "172.30.0.2", ", externalIPs: [172.30.0.1]"));
    let troubled = wait(node, "in conflict", |status| status["conflicts"][0].is_string());
    crate::schemas::assert_valid("status", [&troubled]);
    let trouble = "Service demo/other: external IP 172.30.0.1:80/tcp is left out: Service demo/web has it as \
                   its cluster IP";
    assert_eq!(troubled["conflicts"][0], trouble);
    assert!(text(&[]).contains(&format!("trouble: {trouble}\n")));

    watch(node, daemon);
}

/// `--watch` prints again and again, also when the daemon is gone, and ends when nobody reads.
fn watch(node: &Namespace, daemon: Running) {
    let mut watching = node.run(|| {
        let mut command = command(&["status", "--watch", "--interval", "100ms", "-o", "json"]);
        Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command starts"))
    });
    let mut lines = BufReader::new(watching.0.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let [first, second] = [next(), next()];
    assert_eq!((&first["ready"], &second["ready"]), (&true.into(), &true.into()));
    assert_ne!(first["time"], second["time"]);
    drop(daemon);
    let end = Instant::now() + Duration::from_secs(30);
    while !next()["error"].as_str().is_some_and(|error| error.contains("the daemon at 127.0.0.1:10249")) {
        assert!(Instant::now() < end, "it does not notice that the daemon is gone");
    }
    drop(lines);
    assert_eq!(watching.0.wait().expect("it ends").code(), Some(0));
}
