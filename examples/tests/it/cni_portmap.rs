//! The `cni-portmap` example: what a container runtime sends it, what it leaves in the kernel, and where
//! packets then go, between namespaces for a host, a pod and a client beyond the host.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use testns::{Netns, example};

/// The host with a pod (10.1.0.5, `fd00:1::5`) and a client (192.168.7.2, `fd00:7::2`), each on a link of its
/// own.
struct Network {
    host: Netns,
    pod: Netns,
    client: Netns,
}

impl Network {
    fn new() -> Option<Self> {
        if !testns::have(&["ip", "nft"]) {
            return None;
        }
        let network = Self { host: Netns::new()?, pod: Netns::new()?, client: Netns::new()? };
        let (pod, client) = (network.pod.path(), network.client.path());
        let _ = network.host.run(|| {
            testns::sh(&format!(
                "ip link add pod type veth peer name eth0 netns {pod}
                 ip link add out type veth peer name eth0 netns {client}
                 ip addr add 10.1.0.1/24 dev pod; ip addr add fd00:1::1/64 dev pod nodad; ip link set pod up
                 ip addr add 192.168.7.1/24 dev out; ip addr add fd00:7::1/64 dev out nodad; ip link set out up
                 echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"
            ))
        });
        for (namespace, subnet, v6, own) in
            [(&network.pod, "10.1.0", "fd00:1:", 5), (&network.client, "192.168.7", "fd00:7:", 2)]
        {
            let _ = namespace.run(|| {
                testns::sh(&format!(
                    "ip addr add {subnet}.{own}/24 dev eth0; ip addr add {v6}:{own}/64 dev eth0 nodad
                     ip link set eth0 up; ip route add default via {subnet}.1; ip route add default via {v6}:1"
                ))
            });
        }
        Some(network)
    }

    /// Runs the plug-in as a runtime does, and returns whether it succeeded, and what it printed.
    fn plugin(&self, command: &str, container: &str, config: &Value) -> (bool, Value) {
        self.host.run(|| {
            let mut child = Command::new(example("cni-portmap"))
                .envs([("CNI_COMMAND", command), ("CNI_CONTAINERID", container), ("CNI_IFNAME", "eth0")])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("the example was built");
            let mut stdin = child.stdin.take().expect("a pipe");
            stdin.write_all(config.to_string().as_bytes()).expect("the plug-in reads its configuration");
            drop(stdin);
            let output = child.wait_with_output().expect("it ends");
            let text = String::from_utf8(output.stdout).expect("UTF-8");
            let said = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("JSON") };
            (output.status.success(), said)
        })
    }

    fn add(&self, container: &str, config: &Value) {
        let (done, said) = self.plugin("ADD", container, config);
        assert!(done, "{said}");
        assert_eq!(said["ips"], config["prevResult"]["ips"], "the result of the plug-in before is handed on");
        assert_eq!(said["cniVersion"], "1.1.0");
    }

    fn listing(&self) -> String {
        self.host.run(|| testns::sh("nft -s list ruleset"))
    }
}

fn config(mappings: &Value) -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "net", "type": "cni-portmap", "ipMasq": true,
        "runtimeConfig": { "portMappings": mappings },
        "prevResult": {
            "cniVersion": "1.1.0",
            "ips": [{ "address": "10.1.0.5/24", "interface": 0 }, { "address": "fd00:1::5/64" }],
        },
    })
}

/// Answers each connection with the address of the peer, as long as the namespace is needed.
fn serve(namespace: &Netns, address: &'static str) {
    let listener = namespace.run(|| TcpListener::bind(address).expect("the address is free"));
    namespace.spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let Ok(peer) = stream.peer_addr() else { continue };
            let _ = write!(stream, "{}", peer.ip());
        }
    });
}

/// Returns the address that the answering server saw; `None` if nobody answers.
fn ask(from: &Netns, address: &str) -> Option<String> {
    let address: SocketAddr = address.parse().expect("an address");
    from.run(|| {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(3)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(3))).expect("a timeout is possible");
        let mut seen = String::new();
        stream.read_to_string(&mut seen).ok()?;
        Some(seen)
    })
}

#[test]
fn packets_to_a_host_port_reach_the_container_until_it_is_removed() {
    let Some(network) = Network::new() else { return };
    serve(&network.pod, "[::]:80");
    serve(&network.client, "[::]:9000");
    let mappings = json!([
        { "hostPort": 8080, "containerPort": 80, "protocol": "tcp" },
        { "hostPort": 8081, "containerPort": 80, "hostIP": "192.168.7.1" },
    ]);
    let config = config(&mappings);
    network.add("c1", &config);
    let listed = network.listing();
    network.add("c1", &config);
    assert_eq!(network.listing(), listed, "the same once more changes nothing");

    let mapped = |address: &str| format!("::ffff:{address}");
    // Beyond the host, on it, and in the container itself, which must not answer itself directly.
    assert_eq!(ask(&network.client, "192.168.7.1:8080"), Some(mapped("192.168.7.2")));
    assert_eq!(ask(&network.client, "[fd00:7::1]:8080").as_deref(), Some("fd00:7::2"));
    assert!(ask(&network.host, "192.168.7.1:8080").is_some());
    assert_eq!(ask(&network.pod, "192.168.7.1:8080"), Some(mapped("10.1.0.1")));
    assert_eq!(ask(&network.pod, "[fd00:7::1]:8080").as_deref(), Some("fd00:1::1"));
    // A port of one address of the host.
    assert_eq!(ask(&network.client, "192.168.7.1:8081"), Some(mapped("192.168.7.2")));
    assert_eq!(ask(&network.client, "10.1.0.1:8081"), None);
    // Out of its network the container has the host's address.
    assert_eq!(ask(&network.pod, "192.168.7.2:9000"), Some(mapped("192.168.7.1")));
    assert_eq!(ask(&network.pod, "[fd00:7::2]:9000").as_deref(), Some("fd00:7::1"));

    assert_eq!(network.plugin("CHECK", "c1", &config), (true, Value::Null));
    assert_eq!(network.plugin("DEL", "c1", &config), (true, Value::Null));
    assert_eq!(ask(&network.client, "192.168.7.1:8080"), None);
    assert!(!network.listing().contains("net/c1/eth0"), "{}", network.listing());
    assert_eq!(network.plugin("DEL", "c1", &config), (true, Value::Null), "it may be repeated");
}

#[test]
fn a_host_port_belongs_to_one_container_and_garbage_is_collected() {
    let Some(network) = Network::new() else { return };
    let config = config(&json!([{ "hostPort": 53, "containerPort": 5353, "protocol": "udp" }]));
    assert_eq!(network.plugin("DEL", "c0", &config), (true, Value::Null));
    assert_eq!(network.listing(), "", "to remove nothing makes nothing");
    network.add("c1", &config);
    let mut other = config.clone();
    other["prevResult"]["ips"] = json!([{ "address": "10.1.0.6/24" }]);
    let (done, said) = network.plugin("ADD", "c2", &other);
    let message = "ports4: udp . 53 belongs to net/c1/eth0";
    assert_eq!((done, said), (false, json!({ "cniVersion": "1.1.0", "code": 101, "msg": message })));

    let mut valid = config.clone();
    valid["cni.dev/valid-attachments"] = json!([{ "containerID": "c1", "ifname": "eth0" }]);
    assert_eq!(network.plugin("GC", "", &valid), (true, Value::Null));
    assert_eq!(network.plugin("CHECK", "c1", &config), (true, Value::Null));
    let _ = network.host.run(|| testns::sh("nft delete element inet cni_portmap ports4 '{ udp . 53 }'"));
    let (done, said) = network.plugin("CHECK", "c1", &config);
    assert_eq!((done, &said["msg"]), (false, &json!("the kernel differs: 1 element added")));
    valid["cni.dev/valid-attachments"] = json!([]);
    assert_eq!(network.plugin("GC", "", &valid), (true, Value::Null));
    assert!(!network.listing().contains("elements"), "{}", network.listing());
}

/// Each network has its own attachments, although all are in one table.
#[test]
fn a_network_touches_no_attachment_of_another() {
    let Some(network) = Network::new() else { return };
    let of = |name: &str, address: &str, port: u16| {
        let mut config = config(&json!([{ "hostPort": port, "containerPort": 80 }]));
        config["name"] = name.into();
        config["prevResult"]["ips"] = json!([{ "address": format!("{address}/24") }]);
        config
    };
    network.add("c1", &of("a", "10.1.0.5", 81));
    network.add("c1", &of("b", "10.2.0.5", 82));
    network.add("c2", &of("b", "10.2.0.6", 83));
    let mut valid = of("b", "10.2.0.5", 82);
    valid["cni.dev/valid-attachments"] = json!([{ "containerID": "c2", "ifname": "eth0" }]);
    assert_eq!(network.plugin("GC", "", &valid), (true, Value::Null));
    let listed = network.listing();
    assert!(listed.contains("a/c1/eth0") && listed.contains("b/c2/eth0"), "{listed}");
    assert!(!listed.contains("b/c1/eth0"), "{listed}");
    assert_eq!(network.plugin("DEL", "c1", &of("b", "10.2.0.5", 82)), (true, Value::Null));
    assert!(network.listing().contains("a/c1/eth0"), "{}", network.listing());

    // A container that died without a word: its address, and with it its ports, are another's now.
    network.add("c3", &of("a", "10.1.0.5", 84));
    let listed = network.listing();
    assert!(listed.contains("a/c3/eth0") && !listed.contains("a/c1/eth0"), "{listed}");
    // The address of another network's is not: it may be alive.
    let (done, said) = network.plugin("ADD", "c4", &of("b", "10.1.0.5", 85));
    assert_eq!((done, &said["code"]), (false, &json!(101)), "{said}");
    assert_eq!(network.listing(), listed);
}

#[test]
fn what_is_wrong_is_told_by_the_codes_of_the_specification() {
    let Some(network) = Network::new() else { return };
    let code = |command: &str, config: &Value| network.plugin(command, "c1", config).1["code"].clone();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut config = config(&json!([]));
        change(&mut config);
        config
    };
    assert_eq!(code("ADD", &with(&|config| config["cniVersion"] = "0.3.1".into())), 1);
    assert_eq!(code("MOVE", &with(&|_| {})), 4);
    assert_eq!(code("ADD", &json!("text")), 1);
    assert_eq!(code("ADD", &with(&|config| drop(config.as_object_mut().unwrap().remove("prevResult")))), 7);
    for mapping in [
        json!({ "hostPort": 0, "containerPort": 80 }),
        json!({ "hostPort": 80, "containerPort": 65536 }),
        json!({ "hostPort": 80, "containerPort": 80, "protocol": "icmp" }),
        json!({ "hostPort": 80, "containerPort": 80, "hostIP": "10.0.0.0.1" }),
    ] {
        let config = with(&|config| config["runtimeConfig"]["portMappings"] = json!([mapping]));
        assert_eq!(code("ADD", &config), 7, "{mapping}");
    }
    assert_eq!(code("GC", &with(&|_| {})), 7);
    for name in [json!(null), json!(""), json!("a/b"), json!("-a"), json!("a b")] {
        assert_eq!(code("ADD", &with(&|config| config["name"] = name.clone())), 7, "{name}");
    }
    for id in ["", "a/b", "../c", "a\"b", "a\nb"] {
        assert_eq!(network.plugin("ADD", id, &with(&|_| {})).1["code"], 4, "{id}");
    }
    assert_eq!(network.plugin("STATUS", "", &with(&|_| {})), (true, Value::Null));
    let versions = json!({ "cniVersion": "1.1.0", "supportedVersions": ["0.4.0", "1.0.0", "1.1.0"] });
    assert_eq!(network.plugin("VERSION", "", &json!({ "cniVersion": "1.1.0" })), (true, versions));
    assert_eq!(network.listing(), "", "nothing of it has changed the ruleset");
}
