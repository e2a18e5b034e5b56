//! Connections by service: what a daemon that counts them tells, in `status` and in its metrics.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Output;
use std::time::Duration;

use serde_json::Value;
use sluicegate_lab::{Answer, Namespace, Transport, ask};

use crate::gates::FROM_INPUT;
use crate::status::{Directory, SLICE, network, object, service, start, status, wait};

/// Returns the lines of the metrics of connections that /metrics has.
fn scrape(node: &Namespace) -> Vec<String> {
    scrape_of(node, "sluicegate_service_connections")
}

/// Returns the lines of the metrics whose names begin like this.
fn scrape_of(node: &Namespace, name: &str) -> Vec<String> {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", 10249))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    let text = node.run(ask).expect("the daemon answers");
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    let lines = text.lines().filter(|line| line.starts_with(name));
    lines.map(str::to_owned).collect()
}

fn connect(from: &Namespace, times: usize) {
    let target = SocketAddr::from(([172, 30, 0, 1], 80));
    for answer in from.run(|| ask(Transport::Tcp, target, times, Duration::from_secs(30))) {
        assert!(matches!(answer, Answer::From { .. }), "{answer:?}");
    }
}

#[test]
fn packets_to_node_ports_on_localhost_are_counted_where_they_are_rejected() {
    if testns::Netns::new().is_none() {
        return;
    }
    let (network, directory) = (network(), Directory::new("localhost-rejected"));
    let node = &network.node.namespace;
    let ports =
        "[{name: http, port: 80, nodePort: 30080}, {name: dns, port: 53, protocol: UDP, nodePort: 30080}]";
    let web = service("web", "172.30.0.1", ", type: NodePort");
    directory.write("web.yaml", &(web.replace("[{name: http, port: 80}]", ports) + SLICE));
    let rejected = |flags: &[&str]| {
        let daemon = start(node, &directory.0, flags);
        wait(node, "ready", |status| status["ready"] == true);
        let answers = [Transport::Tcp, Transport::Udp].map(|transport| {
            let target = SocketAddr::from(([127, 0, 0, 1], 30080));
            node.run(|| ask(transport, target, 1, Duration::from_secs(30))).remove(0)
        });
        let lines = scrape_of(node, "kubeproxy_nftables_localhost_nodeport_rejected_packets_total");
        drop(daemon);
        (answers, lines)
    };
    let line = |family: &str, protocol: &str, count: u64| {
        let labels = format!("ip_family=\"{family}\",protocol=\"{protocol}\"");
        format!("kubeproxy_nftables_localhost_nodeport_rejected_packets_total{{{labels}}} {count}")
    };
    let gate = ["--feature-gates", "KubeProxyNFTablesLocalhostNodePorts=true"];
    let ([tcp, udp], lines) = rejected(&[&gate[..], &["--nodeport-addresses", "primary,localhost"]].concat());
    assert!(matches!(tcp, Answer::From { .. }), "{tcp:?}");
    assert_eq!(udp, Answer::Stopped);
    let of_family = |family, count| [line(family, "SCTP", 0), line(family, "UDP", count)];
    assert_eq!(lines, [of_family("IPv4", 1), of_family("IPv6", 0)].concat());
    let ([tcp, _], lines) = rejected(&gate);
    assert_eq!(tcp, Answer::Refused);
    assert!(lines.contains(&line("IPv4", "TCP", 1)), "{lines:?}");
    assert_eq!(rejected(&[]).1, Vec::<String>::new());
}

#[test]
fn connections_are_told_by_service_and_endpoint_over_changes_and_restarts() {
    if testns::Netns::new().is_none() {
        return;
    }
    let (network, directory) = (network(), Directory::new("service-metrics"));
    let (node, client) = (&network.node.namespace, &network.client.namespace);
    directory.write("web.yaml", &(service("web", "172.30.0.1", "") + SLICE));
    directory.write("other.yaml", &service("other", "172.30.0.2", ""));
    let flags = ["--service-metrics", "endpoints", "--service-metrics-series", "1"];
    let daemon = start(node, &directory.0, &flags);
    wait(node, "ready", |status| status["ready"] == true);
    let of_web = |found: &Value| {
        let web =
            found["ports"].as_array().expect("ports").iter().find(|port| port["name"] == "demo/web:http");
        web.expect("the service").clone()
    };
    connect(client, 3);
    // By name `other` is the first, and the bound is one.
    let series = |service: &str, ip: &str, count: u64| {
        format!(
            "sluicegate_service_connections_total{{namespace=\"demo\",service=\"{service}\",port=\"http\",frontend=\"{ip}:\
             80/tcp\"}} {count}"
        )
    };
    assert_eq!(
        scrape(node),
        [series("other", "172.30.0.2", 0), "sluicegate_service_connections_left_out 1".to_owned()]
    );
    let found = object(&status(node, &["-o", "json"]));
    crate::schemas::assert_valid("status", [&found]);
    let web = of_web(&found);
    assert_eq!((&web["connections"], &web["connectionsPerSecond"]), (&3.into(), &0.0.into()), "{web:#}");
    assert_eq!(
        (&web["endpoints"][0]["connections"], &web["endpoints"][1]["connections"]),
        (&3.into(), &0.into())
    );

    // Another endpoint changes the element, a restart does not, and both keep the count.
    directory.write("web.yaml", &(service("web", "172.30.0.1", "") + &SLICE.replace("ready: false, ", "")));
    wait(node, "changed", |status| of_web(status)["endpoints"][1]["ready"] == true);
    directory.write("web.yaml", &(service("web", "172.30.0.1", "") + SLICE));
    wait(node, "changed back", |status| of_web(status)["endpoints"][1]["ready"] == false);
    drop(daemon);
    let daemon = start(node, &directory.0, &["--service-metrics"]);
    wait(node, "ready", |status| status["ready"] == true);
    let all = [
        series("other", "172.30.0.2", 0),
        series("web", "172.30.0.1", 3),
        "sluicegate_service_connections_left_out 0".to_owned(),
    ];
    assert_eq!(scrape(node), all);
    let shown = String::from_utf8(status(node, &[]).stdout).expect("text");
    assert!(shown.contains("connections") && shown.contains("a second"), "{shown}");
    let web = of_web(&object(&status(node, &["-o", "json"])));
    assert_eq!((&web["connections"], &web["endpoints"][0]["connections"]), (&3.into(), &Value::Null));
    drop(daemon);

    let daemon = start(node, &directory.0, &[]);
    wait(node, "ready", |status| status["ready"] == true);
    assert_eq!(scrape(node), [""; 0]);
    assert_eq!(of_web(&object(&status(node, &["-o", "json"])))["connections"], Value::Null);
    drop(daemon);
}

#[test]
fn modes_and_layouts_that_count_nothing_refuse_to() {
    let render = |flags: &[&str]| {
        let program = env!("CARGO_BIN_EXE_sluicegate-proxier");
        let Output { status, stdout, stderr } =
            testns::feed(&[&[program, "render"], flags, &FROM_INPUT].concat(), "");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (status.success(), text(&stdout) + &text(&stderr))
    };
    for (flags, found) in [
        (&["--proxy-mode", "iptables"], "iptables"),
        (&["--proxy-mode", "ipvs"], "ipvs"),
        (&["--layout", "chains"], "--layout chains"),
    ] {
        let (ok, told) = render(&[&flags[..], &["--service-metrics=frontends"]].concat());
        let expected = format!(
            "--service-metrics frontends: expected --proxy-mode nftables with --layout maps, found {found}, which \
             counts no connections"
        );
        assert!(!ok && told.contains(&expected), "{told}");
        assert!(render(&[&flags[..], &["--service-metrics=off"]].concat()).0);
    }
    let fastpath = ["--nftables-fastpath-after", "20", "--nftables-fastpath-devices", "eth0,veth*"];
    let (ok, told) = render(&fastpath);
    assert!(ok && told.contains("ct status dnat ct packets > 20 flow add @ft"), "{told}");
    let (ok, told) = render(&[&fastpath[..], &["--proxy-mode", "iptables"]].concat());
    assert!(!ok && told.contains("--nftables-fastpath-after 20: expected --proxy-mode nftables"), "{told}");
    let (ok, told) = render(&fastpath[2..]);
    assert!(!ok && told.contains("expected --nftables-fastpath-after as well"), "{told}");
    for (devices, why) in [("eth0,lo", "loop-back"), ("a/b", "a/b"), ("0123456789abcdef", "0123456789abcdef")]
    {
        let (ok, told) = render(&["--nftables-fastpath-after=1", "--nftables-fastpath-devices", devices]);
        assert!(!ok && told.contains(why), "{devices}: {told}");
    }
    for after in ["-1", "4294967296", "many"] {
        assert!(!render(&[&format!("--nftables-fastpath-after={after}")]).0, "{after}");
    }
    let run = ["run", "--proxy-mode", "iptables", "--ipvs-drain", "1m", "--manifests", "/none"];
    let told = testns::feed(&[&[env!("CARGO_BIN_EXE_sluicegate-proxier")], &run[..]].concat(), "").stderr;
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("--ipvs-drain: expected --proxy-mode nftables, found iptables"), "{told}");
    let (ok, told) = render(&["--service-metrics=all"]);
    assert!(!ok && told.contains("off, frontends") && told.contains("all"), "{told}");
    let (ok, told) = render(&["--service-metrics=endpoints"]);
    assert!(ok && told.contains("counter"), "{told}");
}
