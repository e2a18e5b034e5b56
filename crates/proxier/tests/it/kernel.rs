//! The command and the applier against a real kernel, each test in namespaces of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::{Duration, Instant};

use sluicegate_lab::{Answer, Network, NetworkSpec, PodSpec, Transport, ask};
use sluicegate_proxier::source;
use sluicegate_proxier::source::Manifests;
use sluicegate_service_rules::Found as FoundHow;
use sluicegate_service_rules::nftables::Applier;
use sluicegate_service_rules::nftables::{Layout, Settings};
use sluicegate_services::{Cluster, DetectLocal, Node};

const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/manifests");
const EXAMPLE: &str = include_str!("../../../service-rules/testdata/kube-proxy/services.yaml");

fn proxier(arguments: &[&str]) -> (bool, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier")).args(arguments).output().expect("the command");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn cluster(manifest: &str) -> Cluster {
    let mut found = Manifests::default();
    source::read_str("services.yaml", manifest, |manifest| found.add(manifest))
        .expect("manifests that parse");
    let node = Node {
        name: "test-node".into(),
        addresses: vec![Ipv4Addr::new(192, 168, 0, 2).into()],
        ..Node::default()
    };
    let (cluster, problems) = found.into_cluster(node);
    assert!(problems.is_empty(), "{problems:?}");
    cluster
}

fn settings(layout: Layout) -> Settings {
    let mut settings = Settings { layout, ..Settings::default() };
    settings.detect_local = DetectLocal::ClusterCidrs(vec!["10.244.0.0/16".parse().expect("a network")]);
    settings
}

#[test]
fn sync_says_what_it_changed_then_that_nothing_is_to_be_changed_and_cleanup_removes_it() {
    testns::netns(|| {
        let flags =
            ["--manifests", MANIFESTS, "--hostname-override", "demo-node", "--cluster-cidr", "10.244.0.0/16"];
        let run = |command: &str| proxier(&[&[command], flags.as_slice()].concat());
        let (ok, first, errors) = run("sync");
        assert!(ok && first.contains("elements added"), "{first}{errors}");
        let (ok, difference, errors) = run("diff");
        assert!(ok && difference.is_empty(), "{difference}{errors}");
        let (ok, again, errors) = run("sync");
        assert!(ok && again.contains("nothing to change"), "{again}{errors}");
        let (ok, removed, _) = proxier(&["cleanup"]);
        assert!(ok);
        assert_eq!(removed, "removed table ip kube-proxy\nremoved table ip6 kube-proxy\n");
        assert_eq!(proxier(&["cleanup"]), (true, "found nothing to remove\n".into(), String::new()));
    });
}

#[test]
fn both_layouts_are_adopted_by_a_second_process_and_replace_each_other() {
    testns::netns(|| {
        for layout in [Layout::Maps, Layout::Chains, Layout::Maps] {
            let mut cluster = cluster(EXAMPLE);
            let first = Applier::open(settings(layout)).unwrap().sync(&mut cluster, Instant::now()).unwrap();
            assert!(first.batches == 1, "{layout:?}: {first}");
            let again = Applier::open(settings(layout)).unwrap().sync(&mut cluster, Instant::now()).unwrap();
            assert_eq!(again.batches, 0, "{layout:?}: {again}");
        }
    });
}

#[test]
fn what_somebody_else_broke_is_mended_by_the_next_sync() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        let mut cluster = cluster(EXAMPLE);
        let mut applier = Applier::open(settings(Layout::Maps)).unwrap();
        applier.sync(&mut cluster, Instant::now()).unwrap();
        let before = testns::sh("nft -s list table ip kube-proxy | sort");
        for damage in [
            "delete element ip kube-proxy cluster-ips { 172.30.10.1 }",
            "add element ip kube-proxy cluster-ips { 172.30.99.99 }",
            "flush chain ip kube-proxy services",
            "add rule ip kube-proxy lb-tcp-1 drop",
            "add chain ip kube-proxy stray",
            "delete table ip kube-proxy",
        ] {
            let _ = testns::sh(&format!("nft '{damage}'"));
            let mended = applier.sync(&mut cluster, Instant::now()).unwrap();
            assert!(mended.batches > 0 && mended.found != FoundHow::Changed, "{damage}: {mended}");
            assert_eq!(testns::sh("nft -s list table ip kube-proxy | sort"), before, "{damage}");
        }
        let idle = applier.sync(&mut cluster, Instant::now()).unwrap();
        assert_eq!((idle.batches, idle.found), (0, FoundHow::Changed));
    });
}

/// Where the client gets no answer, as it is in none of the ranges of sources.
const OUT_OF_RANGE: &str = "5.6.7.8:443";
/// Longer than an answer takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);

#[test]
fn the_worked_example_reaches_the_right_endpoints() {
    if testns::Netns::new().is_none() {
        return;
    }
    let pod = |name, address: [u8; 4], ports: &[u16]| PodSpec {
        name,
        address: (address.into(), format!("fd00:10:244:{}::{}", address[2], address[3]).parse().unwrap()),
        ports: ports.to_vec(),
    };
    let spec = NetworkSpec {
        node: (Ipv4Addr::new(192, 168, 0, 2), "fd00:192:168::2".parse().unwrap()),
        client: (Ipv4Addr::new(192, 168, 0, 100), "fd00:192:168::100".parse().unwrap()),
        gateway: (Ipv4Addr::new(10, 244, 0, 1), "fd00:10:244::1".parse().unwrap()),
        pods: vec![
            pod("pod", [10, 244, 0, 5], &[]),
            pod("here", [10, 244, 0, 10], &[8080, 8443]),
            pod("there", [10, 244, 1, 10], &[8080, 8443]),
            pod("dns-here", [10, 244, 0, 20], &[53]),
            pod("dns-there", [10, 244, 1, 20], &[53]),
        ],
        routed: ["172.30.0.0/16", "5.6.7.8/32", "192.168.99.11/32"].map(|net| net.parse().unwrap()).into(),
    };
    let network = Network::build(&spec).unwrap();
    for layout in [Layout::Maps, Layout::Chains] {
        let mut cluster = cluster(EXAMPLE);
        network.node.namespace.run(|| {
            Applier::open(settings(layout)).unwrap().sync(&mut cluster, Instant::now()).unwrap();
        });
        let ask = |host: &str, transport, to: &str, times| {
            let target: SocketAddr = to.parse().unwrap();
            let wait = if to == OUT_OF_RANGE { Duration::from_millis(700) } else { LONG };
            let answers = network.host(host).unwrap().namespace.run(|| ask(transport, target, times, wait));
            let mut seen: Vec<String> = answers
                .into_iter()
                .map(|answer| match answer {
                    Answer::From { name, source } => format!("{name} saw {source}"),
                    other => format!("{other:?}"),
                })
                .collect();
            seen.sort();
            seen.dedup();
            seen.join(", ")
        };
        let (tcp, udp) = (Transport::Tcp, Transport::Udp);
        assert_eq!(
            ask("pod", tcp, "172.30.10.1:80", 40),
            "here saw 10.244.0.5, there saw 10.244.0.5",
            "{layout:?}"
        );
        // externalTrafficPolicy: Local keeps the client's address and this node's endpoint.
        assert_eq!(ask("client", tcp, "192.168.0.2:31443", 10), "here saw 192.168.0.100", "{layout:?}");
        // The client is not in loadBalancerSourceRanges.
        assert_eq!(ask("client", tcp, OUT_OF_RANGE, 1), "Silence", "{layout:?}");
        // A client with session affinity stays where it is.
        let dns = ask("pod", udp, "172.30.10.3:53", 10);
        assert!(dns == "dns-here saw 10.244.0.5" || dns == "dns-there saw 10.244.0.5", "{layout:?}: {dns}");
        assert_eq!(ask("pod", tcp, "172.30.10.4:8080", 1), "Refused", "{layout:?}");
        assert_eq!(ask("client", tcp, "192.168.99.11:8080", 1), "Refused", "{layout:?}");
    }
}

#[test]
fn node_ports_are_answered_on_the_interfaces_within_the_networks_that_are_named() {
    if !testns::have(&["nft", "ip"]) {
        return;
    }
    testns::netns(|| {
        let _ =
            testns::sh("ip link add type veth && ip addr add 192.0.2.7/24 dev veth0 && ip link set veth0 up");
        let mut settings = settings(Layout::Maps);
        settings.node_port_addresses = "192.0.2.0/24".parse().unwrap();
        let mut cluster = cluster(EXAMPLE);
        let mut applier = Applier::open(settings).unwrap();
        applier.sync(&mut cluster, Instant::now()).unwrap();
        let listed = || testns::sh("nft list set ip kube-proxy nodeport-ips");
        assert!(listed().contains("elements = { 192.0.2.7 }"), "{}", listed());
        let _ = testns::sh("ip addr add 192.0.2.8/24 dev veth0");
        applier.sync(&mut cluster, Instant::now()).unwrap();
        assert!(listed().contains("192.0.2.8"), "{}", listed());
    });
}

#[test]
fn a_change_of_one_endpoint_sends_a_few_elements_and_reads_nothing_back() {
    testns::netns(|| {
        let mut cluster = cluster(EXAMPLE);
        let mut applier = Applier::open(settings(Layout::Maps)).unwrap();
        applier.sync(&mut cluster, Instant::now()).unwrap();
        let fewer = EXAMPLE.replacen(
            "  - {addresses: [10.244.1.10], nodeName: other-node, conditions: {ready: true}}\n",
            "",
            1,
        );
        assert_ne!(fewer, EXAMPLE);
        let mut found = Manifests::default();
        source::read_str("services.yaml", &fewer, |manifest| found.add(manifest)).unwrap();
        for (name, slice) in found.slices() {
            cluster.set_slice(name, Some(slice.clone()));
        }
        let synced = applier.sync(&mut cluster, Instant::now()).unwrap();
        assert_eq!((synced.found, synced.batches), (FoundHow::Changed, 1));
        assert!(synced.changes.elements_added <= 2 && synced.changes.elements_deleted <= 3, "{synced}");
        assert!(synced.bytes < 1500, "{synced}");
    });
}

#[test]
fn without_the_capability_the_error_says_which_and_what_to_do() {
    if nix::unistd::geteuid().is_root() && testns::have(&["setpriv"]) {
        let command = env!("CARGO_BIN_EXE_sluicegate-proxier");
        testns::netns(|| {
            let all = format!(
                "setpriv --bounding-set -net_admin --inh-caps -net_admin {command} sync --manifests \
                    {MANIFESTS} --hostname-override demo-node --cluster-cidr 10.244.0.0/16"
            );
            let output = testns::try_sh(&all);
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success() && errors.contains("CAP_NET_ADMIN"), "{errors}");
        });
    }
}
