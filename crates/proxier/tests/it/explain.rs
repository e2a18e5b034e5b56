//! `explain` on a command line, and `explain --live` with packets, each in a network of its own.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use sluicegate_lab::{Network, NetworkSpec, PodSpec, Transport, ask};

const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/manifests");
const NODE: [&str; 6] = [
    "--manifests",
    MANIFESTS,
    "--hostname-override",
    "demo-node",
    "--cluster-cidr",
    "10.244.0.0/16,fd00:10:244::/48",
];

fn proxier(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
    command.args(words).args(NODE).stdin(Stdio::null());
    command
}

/// Status, standard output and standard error.
fn run(words: &[&str]) -> (Option<i32>, String, String) {
    let output = proxier(words).output().expect("the binary can be started");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn what_cannot_be_explained_names_the_flag() {
    for (words, why) in [
        (&["--from", "10.0.0.256", "--to", "10.0.0.1:80/tcp"][..], "expected an IP address"),
        (&["--from", "10.0.0.1", "--to", "10.0.0.1"], "the port is missing"),
        (&["--from", "fd00::1", "--to", "10.0.0.1:80/tcp"], "--from: expected two addresses of one family"),
        (
            &[
                "--from",
                "10.0.0.1",
                "--to",
                "10.0.0.1:80/tcp",
                "--detect-local-mode",
                "BridgeInterface",
                "--pod-bridge-interface",
                "cni0",
            ],
            "--interface: pods are detected by their interface",
        ),
        (
            &["--from", "10.0.0.1", "--to", "10.0.0.1:80/tcp", "--live", "--proxy-mode", "ipvs"],
            "--live: follows",
        ),
    ] {
        let (status, said, error) = run(&[&["explain"], words].concat());
        assert!(
            matches!(status, Some(1 | 2)) && said.is_empty() && error.contains(why),
            "{words:?}: {said}{error}"
        );
    }
}

fn network() -> Network {
    let pod = |name, last: u8, v6: u16, ports: &[u16]| PodSpec {
        name,
        address: (Ipv4Addr::new(10, 244, 0, last), Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, 0, v6)),
        ports: ports.to_vec(),
    };
    let node = (Ipv4Addr::new(192, 168, 0, 2), Ipv6Addr::new(0xfd00, 0x192, 0x168, 0, 0, 0, 0, 2));
    Network::build(&NetworkSpec {
        node,
        client: (Ipv4Addr::new(192, 168, 0, 100), Ipv6Addr::new(0xfd00, 0x192, 0x168, 0, 0, 0, 0, 0x100)),
        gateway: (Ipv4Addr::new(10, 244, 0, 1), Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, 0, 1)),
        pods: vec![
            pod("pod", 5, 5, &[]),
            pod("web-here", 10, 0x10, &[8080]),
            pod("mirror", 20, 0x20, &[8080]),
            // The endpoint of another node, which is only as far away.
            PodSpec {
                name: "web-there",
                address: (
                    Ipv4Addr::new(10, 244, 1, 10),
                    Ipv6Addr::new(0xfd00, 0x10, 0x244, 1, 0, 0, 0, 0x10),
                ),
                ports: vec![8080],
            },
        ],
        routed: ["172.30.0.0/16", "fd00:172:30::/112"].map(|net| net.parse().expect("a network")).into(),
    })
    .expect("a network")
}

/// All that was said of packets, for its schema.
static FOLLOWED: Mutex<Vec<Value>> = Mutex::new(Vec::new());

/// What was said since the last call is as its schema says.
fn all_is_valid() {
    let followed = std::mem::take(&mut *FOLLOWED.lock().expect("no panic"));
    crate::schemas::assert_valid("explain", &followed);
}

/// Starts `explain --live` on the node, sends a packet when it waits for one, and returns what it says.
fn follow(
    network: &Network,
    from: &str,
    to: &str,
    transport: Transport,
    more: &[&str],
) -> (Option<i32>, Value) {
    let host = network.host(from).expect("a host of the network");
    let target: SocketAddr = to.parse().expect("an address");
    let family = if target.is_ipv4() { host.address.0 } else { host.address.1 };
    let to = format!("{to}/{}", transport.to_string().to_lowercase());
    let words =
        ["explain", "--live", "-o", "json", "--timeout", "30s", "--from", &family.to_string(), "--to", &to];
    let mut child = network.node.namespace.run(|| {
        let mut command = proxier(&[&words[..], more].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary can be started")
    });
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.starts_with("waiting for a packet") {
        line.clear();
        assert_ne!(errors.read_line(&mut line).expect("text"), 0, "it ended before it waited");
    }
    let _answers = host.namespace.run(|| ask(transport, target, 1, Duration::from_millis(600)));
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
    errors.read_to_string(&mut line).expect("text");
    let status = child.wait().expect("it ends").code();
    let explained: Value =
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}{line}"));
    FOLLOWED.lock().expect("no panic").push(explained.clone());
    (status, explained)
}

fn tables(network: &Network) -> Vec<String> {
    use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
    network.node.namespace.run(|| {
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        let tables = sluicegate_nftables::read::tables(&mut socket, sluicegate_nftables::Family::UNSPEC);
        tables.expect("tables").iter().map(|table| table.name.to_string()).collect()
    })
}

fn agrees(network: &Network, layout: &str, (from, to, transport, what): &(&str, &str, Transport, &str)) {
    let (status, found) = follow(network, from, to, *transport, &[]);
    assert_eq!(found["live"]["what"], *what, "{layout} {from} {to}: {found:#}");
    assert_eq!(found["verdict"]["what"], *what, "{layout} {from} {to}: {found:#}");
    assert_eq!((status, &found["disagreement"]), (Some(0), &Value::Null), "{layout}: {found:#}");
    assert!(found["live"]["hops"].as_array().is_some_and(|hops| !hops.is_empty()), "{found:#}");
}

/// Adds a firewall of somebody else that drops what endpoints should get.
fn add_firewall(network: &Network) {
    use sluicegate_nftables::lang::{Match, Payload, Verdict};
    use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
    use sluicegate_nftables::{Chain, ChainType, Family, Hook, Port, Priority, Table, TableId, Transaction};

    let table = TableId::new(Family::INET, "firewall".parse().expect("a name"));
    let forward = table.chain("forward".parse().expect("a name"));
    let mut transaction = Transaction::new();
    transaction.add(Table::new(table));
    transaction.add(Chain::base(forward.clone(), ChainType::Filter, Hook::Forward, Priority(10)));
    transaction.add(forward.rule().then(Match::new(Payload::TCP_DPORT, Port(8080))).then(Verdict::Drop));
    network.node.namespace.run(|| {
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        transaction.apply(&mut socket).map(drop).expect("a firewall");
    });
}

#[test]
fn packets_go_where_the_explanation_says_in_both_layouts() {
    if testns::Netns::new().is_none() {
        return;
    }
    for layout in ["maps", "chains"] {
        let network = network();
        let synced = network.node.namespace.run(|| run(&["sync", "--layout", layout]));
        assert_eq!(synced.0, Some(0), "{}", synced.2);
        // Each waits for its own packet, and most of the time for nothing.
        std::thread::scope(|scope| {
            for case in CASES {
                scope.spawn(|| agrees(&network, layout, case));
            }
        });
        // Settings that are not those of the rules.
        let client_is_pod = ["--detect-local-mode", "NodeCIDR", "--node-pod-cidr", "192.168.0.0/16"];
        let (status, found) = follow(&network, "client", WEB, Transport::Tcp, &client_is_pod);
        assert_eq!(status, Some(1), "{layout}: {found:#}");
        let how = found["disagreement"].as_str().expect("a reason");
        assert!(how.contains("masqueraded by table ip kube-proxy"), "{layout}: {how}");
        assert_eq!(tables(&network), ["kube-proxy", "kube-proxy"], "{layout}");
        // A firewall of somebody else.
        add_firewall(&network);
        let (status, found) = follow(&network, "pod", WEB, Transport::Tcp, &[]);
        assert_eq!((status, &found["live"]["byTable"]), (Some(1), &"inet firewall".into()), "{found:#}");
        let last = found["live"]["hops"].as_array().and_then(|hops| hops.last()).expect("a step");
        assert_eq!((&last["chain"], &last["rule"]), (&"forward".into(), &"tcp dport 8080 drop".into()));
        // No packet comes.
        let words = ["explain", "--live", "--timeout", "100ms", "--from", "192.168.0.100", "--to"];
        let silent = network.node.namespace.run(|| run(&[&words[..], &["172.30.0.80:80/tcp"]].concat()));
        assert_eq!((silent.0, silent.1.as_str()), (Some(2), ""), "{}", silent.2);
        assert!(silent.2.contains("no such packet came within 100ms"), "{}", silent.2);
    }
    all_is_valid();
}

/// What may lose a packet behind our own rules, where it is lost, and what is told of the reason.
const LOSSES: &[(&str, &str, &str, &str, &str)] = &[
    (
        "iptables-legacy -P FORWARD DROP",
        "iptables-legacy -P FORWARD ACCEPT",
        "lost",
        "forward",
        "the policy of FORWARD is DROP",
    ),
    (
        "iptables-legacy -t mangle -A POSTROUTING -p tcp -j DROP",
        "iptables-legacy -t mangle -F",
        "lost",
        "postrouting",
        "table mangle: -A POSTROUTING -p tcp -j DROP",
    ),
    (
        "iptables-legacy -t raw -A PREROUTING -p tcp -j DROP",
        "iptables-legacy -t raw -F",
        "lost",
        "before connection tracking",
        "has a table raw",
    ),
    (
        "echo 0 >/proc/sys/net/ipv4/ip_forward",
        "echo 1 >/proc/sys/net/ipv4/ip_forward",
        "lost",
        "routing",
        "net.ipv4.ip_forward is 0",
    ),
    (
        "nft 'add table ip raw1; add chain ip raw1 c { type filter hook prerouting priority -300; policy drop; }'",
        "nft delete table ip raw1",
        "dropped",
        "",
        "",
    ),
];

#[test]
fn a_packet_that_is_lost_behind_our_rules_is_not_taken_for_one_that_arrived() {
    if testns::Netns::new().is_none() || !testns::have(&["nft", "iptables-legacy"]) {
        return;
    }
    let network = network();
    let synced = network.node.namespace.run(|| run(&["sync"]));
    assert_eq!(synced.0, Some(0), "{}", synced.2);
    for (begin, end, what, place, reason) in LOSSES {
        let _ = network.node.namespace.run(|| testns::sh(begin));
        let (status, found) = follow(&network, "client", WEB, Transport::Tcp, &[]);
        let _ = network.node.namespace.run(|| testns::sh(end));
        assert_eq!((status, &found["live"]["what"]), (Some(1), &(*what).into()), "{begin}: {found:#}");
        assert_eq!(found["live"]["place"].as_str().unwrap_or_default(), *place, "{begin}: {found:#}");
        assert!(found["live"]["reasons"].to_string().contains(reason), "{begin}: {found:#}");
        assert!(found["disagreement"].as_str().is_some_and(|how| how.contains(what)), "{begin}: {found:#}");
    }
    // In the pod: nobody answers.
    for pod in ["web-here", "web-there"] {
        let _ = network.host(pod).expect("a pod").namespace.run(|| {
            testns::sh(
                "nft 'add table ip t; add chain ip t c { type filter hook input priority 0; policy drop; }'",
            )
        });
    }
    let (status, found) = follow(&network, "client", WEB, Transport::Tcp, &[]);
    assert_eq!((status, &found["live"]["what"]), (Some(1), &"unanswered".into()), "{found:#}");
    assert!(found["flows"].to_string().contains("not answered"), "{found:#}");
    all_is_valid();
}

/// A cluster IP of the manifests.
const WEB: &str = "172.30.0.10:80";
/// Who asks, what, and what becomes of it.
const CASES: &[(&str, &str, Transport, &str)] = &[
    ("pod", WEB, Transport::Tcp, "forwarded"),
    ("client", WEB, Transport::Tcp, "forwarded"),
    ("node", WEB, Transport::Tcp, "forwarded"),
    ("mirror", "172.30.0.20:80", Transport::Tcp, "forwarded"),
    ("pod", "172.30.0.53:53", Transport::Udp, "forwarded"),
    ("client", "192.168.0.2:30080", Transport::Tcp, "forwarded"),
    ("pod", "[fd00:172:30::10]:80", Transport::Tcp, "forwarded"),
    ("client", "[fd00:172:30::10]:80", Transport::Tcp, "forwarded"),
    ("pod", "172.30.0.30:80", Transport::Tcp, "refused"),
    ("node", "172.30.0.30:80", Transport::Tcp, "refused"),
    ("client", "192.168.0.2:30090", Transport::Tcp, "refused"),
    ("pod", "172.30.0.10:81", Transport::Tcp, "refused"),
    ("client", "172.30.0.99:80", Transport::Tcp, "dropped"),
    ("client", "[fd00:172:30::99]:80", Transport::Udp, "dropped"),
    ("pod", "10.244.0.10:8080", Transport::Tcp, "untouched"),
];
