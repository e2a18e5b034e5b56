//! The choice of endpoints against [`categorize`], over random slices; and each kind of destination.

use std::sync::Arc;

use proptest::prelude::*;
use sluicegate_services::{
    Endpoint, Hints, Node, Port, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort, categorize,
};

use super::*;

const NODE: &str = "here";

fn name() -> ServiceName {
    ServiceName::new("demo", "web").unwrap()
}

fn node() -> Node {
    let addresses = ["192.168.0.2", "192.168.0.3"].map(|ip| ip.parse().unwrap());
    Node { zone: Some("a".to_owned()), ..Node::new(NODE, addresses) }
}

fn endpoint() -> impl Strategy<Value = SliceEndpoint> {
    let hints = prop::option::of((any::<[bool; 2]>(), any::<[bool; 2]>()).prop_map(|(nodes, zones)| {
        let names = |wanted: [bool; 2], names: [&str; 2]| {
            names.into_iter().zip(wanted).filter(|(_, is)| *is).map(|(name, _)| Box::from(name)).collect()
        };
        Arc::new(Hints { nodes: names(nodes, [NODE, "there"]), zones: names(zones, ["a", "b"]) })
    }));
    (1..6u8, any::<[bool; 4]>(), hints).prop_map(|(last, [local, ready, serving, terminating], hints)| {
        SliceEndpoint {
            ip: [10, 244, 0, last].into(),
            node: Some(Arc::from(if local { NODE } else { "there" })),
            ready,
            serving,
            terminating,
            hints,
        }
    })
}

fn cluster(service: Service, endpoints: Vec<SliceEndpoint>) -> Cluster {
    let mut cluster = Cluster::new(node());
    cluster.set_service(&name(), service);
    let slice = Slice {
        service: name(),
        family: Family::Ipv4,
        ports: Box::new([SlicePort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: 8080.try_into().unwrap(),
        }]),
        endpoints: endpoints.into(),
        last_change: None,
    };
    let slice_name = SliceName { namespace: "demo".into(), name: "web-1".into() };
    cluster.set_slice(&slice_name, slice);
    cluster.set_service_cidr("kubernetes", &["172.30.0.0/16".parse().unwrap()]);
    cluster
}

fn service() -> Service {
    let port = Port::tcp("http", 80).unwrap().with_node_port(30080).unwrap();
    Service::new(["172.30.0.1".parse().unwrap()], [port])
        .unwrap()
        .with_external_ips(["198.51.100.1".parse().unwrap()])
        .with_load_balancer_ips(["203.0.113.1".parse().unwrap()])
}

fn ready() -> SliceEndpoint {
    SliceEndpoint {
        ip: [10, 244, 0, 9].into(),
        node: Some(Arc::from(NODE)),
        ready: true,
        serving: true,
        terminating: false,
        hints: None,
    }
}

fn ask(cluster: &Cluster, settings: &Settings, from: &str, to: &str, protocol: Protocol) -> Explanation {
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    explain(cluster, settings, &Question { from, from_port: None, interface: None, to, protocol }).unwrap()
}

fn pods() -> Settings {
    let detect_local = DetectLocal::ClusterCidrs(vec!["10.244.0.0/16".parse().unwrap()]);
    Settings { detect_local, ..Settings::default() }
}

fn used(explanation: &Explanation) -> Vec<SocketAddr> {
    explanation.endpoints.iter().filter(|e| e.is_used).map(|e| e.address).collect()
}

proptest! {
    #[test]
    fn the_endpoints_are_those_that_planners_take(
        endpoints in prop::collection::vec(endpoint(), 0..6), internal: bool, external: bool,
    ) {
        let service = service().with_internal_local(internal).with_external_local(external);
        let cluster = cluster(service, endpoints);
        let port = cluster.ports(&name(), Family::Ipv4).remove(0);
        let wanted = categorize(&port, &cluster.topology());
        let addresses = |list: &[&Endpoint]| list.iter().map(|e| e.address).collect::<Vec<_>>();
        for (from, to, local) in [
            ("10.244.0.77", "172.30.0.1:80", internal),
            ("10.244.0.77", "198.51.100.1:80", false),
            ("192.0.2.1", "198.51.100.1:80", external),
            ("192.0.2.1", "192.168.0.2:30080", external),
        ] {
            let explanation = ask(&cluster, &pods(), from, to, Protocol::Tcp);
            let expected = addresses(if local { &wanted.local } else { &wanted.cluster });
            prop_assert_eq!(used(&explanation), expected.clone(), "{}", explanation);
            let verdict = match (expected.is_empty(), wanted.has_any) {
                (false, _) => "forwarded",
                (true, true) => "dropped",
                (true, false) => "refused",
            };
            prop_assert_eq!(explanation.verdict.as_str(), verdict);
            if let Verdict::Forwarded { choices, .. } = &explanation.verdict {
                let sum: f64 = choices.iter().filter_map(|choice| choice.probability).sum();
                prop_assert!((sum - 1.0).abs() < 1e-9);
            }
        }
    }
}

#[test]
fn what_is_no_frontend_is_named() {
    let cluster = cluster(service(), vec![ready()]);
    let cases = [
        (
            "172.30.0.1:81",
            "refused",
            "172.30.0.1 is in spec.clusterIPs of Service demo/web, which \
             has no port 81/tcp: it has 80/tcp",
        ),
        (
            "172.30.0.9:80",
            "dropped",
            "no Service has the cluster IP 172.30.0.9; it is in ServiceCIDR 172.30.0.0/16",
        ),
        (
            "198.51.100.1:81",
            "untouched",
            "198.51.100.1 is in spec.externalIPs of Service demo/web, which \
             has no port 81/tcp: it has 80/tcp",
        ),
        (
            "203.0.113.1:81",
            "untouched",
            "203.0.113.1 is in status.loadBalancer.ingress of Service demo/web, which \
             has no port 81/tcp: it has 80/tcp",
        ),
        (
            "10.244.0.9:8080",
            "untouched",
            "10.244.0.9:8080/tcp is an endpoint of Service demo/web itself (EndpointSlice demo/web-1): \
             no service is asked",
        ),
        (
            "10.244.0.9:9",
            "untouched",
            "10.244.0.9 is the address of an endpoint of Service demo/web (EndpointSlice demo/web-1), at \
             another port",
        ),
        (
            "192.168.0.2:30081",
            "untouched",
            "192.168.0.2 is an address of this node, and no Service has node port 30081/tcp",
        ),
        (
            "192.168.0.3:30080",
            "untouched",
            "30080/tcp is a node port of Service demo/web, but node ports are served on \
             192.168.0.2 (nodePortAddresses), not on 192.168.0.3",
        ),
        ("192.0.2.9:80", "untouched", "no Service, endpoint or node port has the address 192.0.2.9:80/tcp"),
    ];
    for (to, verdict, why) in cases {
        let explanation = ask(&cluster, &pods(), "10.244.0.77", to, Protocol::Tcp);
        assert_eq!(explanation.verdict.as_str(), verdict, "{explanation}");
        assert!(explanation.to_string().contains(why), "{explanation}");
    }
    let udp = ask(&cluster, &pods(), "10.244.0.77", "172.30.0.1:80", Protocol::Udp);
    assert!(udp.to_string().contains("which has no port 80/udp: it has 80/tcp"), "{udp}");
}

#[test]
fn modes_differ_as_kube_proxy_does() {
    let cluster = cluster(service().with_external_local(true), vec![SliceEndpoint { node: None, ..ready() }]);
    let cases = [
        (Mode::Nftables, "172.30.0.1:81", "refused"),
        (Mode::Iptables, "172.30.0.1:81", "untouched"),
        (Mode::Ipvs, "198.51.100.1:81", "refused"),
        (Mode::Nftables, "198.51.100.1:80", "dropped"),
        (Mode::Iptables, "198.51.100.1:80", "dropped"),
        (Mode::Ipvs, "198.51.100.1:80", "forwarded"),
        (Mode::Nftables, "127.0.0.1:30080", "untouched"),
        (Mode::Iptables, "127.0.0.1:30080", "forwarded"),
    ];
    for (mode, to, verdict) in cases {
        let settings = Settings { mode, localhost_node_ports: true, ..pods() };
        let from = if to.starts_with("127") { "127.0.0.1" } else { "192.0.2.1" };
        let explanation = ask(&cluster, &settings, from, to, Protocol::Tcp);
        assert_eq!(explanation.verdict.as_str(), verdict, "{explanation}");
    }
}

#[test]
fn node_ports_on_localhost_are_the_proxiers_own_in_nftables_mode() {
    let cluster = cluster(service(), vec![ready()]);
    let on = |localhost_node_ports, protocol| {
        let settings = Settings { localhost_node_ports, ..pods() };
        ask(&cluster, &settings, "127.0.0.1", "127.0.0.1:30080", protocol).verdict.to_string()
    };
    let listens = "the proxier itself listens there";
    assert!(on(true, Protocol::Tcp).contains(listens), "{}", on(true, Protocol::Tcp));
    assert!(!on(false, Protocol::Tcp).contains(listens));
    let rejecting = Settings { rejected_on_localhost: vec![Protocol::Tcp], ..pods() };
    let verdict =
        |to: &str, protocol| ask(&cluster, &rejecting, "127.0.0.1", to, protocol).verdict.as_str().to_owned();
    assert_eq!(verdict("127.0.0.2:30080", Protocol::Tcp), "refused");
    assert_eq!(verdict("127.0.0.1:30080", Protocol::Udp), "untouched");
    assert_eq!(verdict("127.0.0.1:30099", Protocol::Tcp), "untouched");
    assert!(on(false, Protocol::Tcp).contains("served on 192.168.0.2 (nodePortAddresses), not on 127.0.0.1"));
}

#[test]
fn an_address_that_may_be_the_nodes_is_not_denied() {
    let cluster = cluster(service(), vec![ready()]);
    let every = Settings { node_port_addresses: NodePortAddresses::every(), ..pods() };
    let within = Settings { node_port_addresses: "198.18.0.0/16".parse().unwrap(), ..pods() };
    let to = "198.18.0.1:30080";
    for settings in [every.clone(), within] {
        let text = ask(&cluster, &settings, "192.0.2.1", to, Protocol::Tcp).verdict.to_string();
        let told = "30080/TCP is a node port of Service demo/web, which 198.18.0.1 answers if it is an address of this \
                    node";
        assert!(text.to_lowercase().contains(&told.to_lowercase()), "{text}");
        let known = Settings { local_addresses: Some(vec!["198.18.0.1".parse().unwrap()]), ..settings };
        let explanation = ask(&cluster, &known, "192.0.2.1", to, Protocol::Tcp);
        assert_eq!(explanation.verdict.as_str(), "forwarded", "{explanation}");
        let other = Settings { local_addresses: Some(Vec::new()), ..known };
        let text = ask(&cluster, &other, "192.0.2.1", to, Protocol::Tcp).verdict.to_string();
        assert!(text.contains("no Service, endpoint or node port has the address"), "{text}");
    }
    // No Service has this one.
    let text = ask(&cluster, &every, "192.0.2.1", "198.18.0.1:30081", Protocol::Tcp).verdict.to_string();
    assert!(text.contains("no Service, endpoint or node port has the address"), "{text}");
}

#[test]
fn what_ipvs_chooses_by_its_state_has_no_probability() {
    let endpoints = (1..=2).map(|last| SliceEndpoint { ip: [10, 244, 0, last].into(), ..ready() }).collect();
    let cluster = cluster(service(), endpoints);
    for (name, probability) in [(None, Some(0.5)), (Some("rr"), Some(0.5)), (Some("sh"), None)] {
        let settings = Settings { mode: Mode::Ipvs, ipvs_scheduler: name.map(str::to_owned), ..pods() };
        let explanation = ask(&cluster, &settings, "10.244.0.77", "172.30.0.1:80", Protocol::Tcp);
        let line = format!("configuration, ipvs.scheduler: {} -> ", name.unwrap_or("rr"));
        assert!(explanation.to_string().contains(&line), "{explanation}");
        let Verdict::Forwarded { choices, .. } = &explanation.verdict else { panic!("{explanation}") };
        assert!(choices.len() == 2 && choices.iter().all(|choice| choice.probability == probability));
    }
}

#[test]
fn every_decision_is_told_with_its_field() {
    let range = "203.0.112.0/20".parse().unwrap();
    let cluster = cluster(service().with_affinity_seconds(60).with_source_ranges([range]), vec![ready()]);
    let explanation = ask(&cluster, &pods(), "203.0.113.9", "203.0.113.1:80", Protocol::Tcp);
    assert_eq!(
        explanation.to_string(),
        "203.0.113.9 -> 203.0.113.1:80/tcp on node here, nftables mode; the client is not known as a pod\n  \
         Service demo/web, status.loadBalancer.ingress: 203.0.113.1 -> the packet is for this \
         service, port http\n  \
         Service demo/web, spec.loadBalancerSourceRanges: 203.0.112.0/20 -> 203.0.113.9 may use \
         the load balancer\n  \
         Service demo/web, spec.externalTrafficPolicy: Cluster -> endpoints of every node\n  \
         Service demo/web, spec.sessionAffinityConfig.clientIP.timeoutSeconds: 60 -> the client gets the \
         endpoint that it had less than 60 s ago, if that is still used\n  \
         Service demo/web, spec.externalTrafficPolicy: Cluster -> masqueraded, so that answers \
         come back here\n  \
         + 10.244.0.9:8080 on here (EndpointSlice demo/web-1): conditions.ready\n\
         forwarded to 10.244.0.9:8080 (100.0 %), whose source address is this node's (masqueraded); always \
         the same for a client within 60 s\n"
    );
    let outside = ask(&cluster, &pods(), "192.0.2.1", "203.0.113.1:80", Protocol::Tcp);
    let why = "spec.loadBalancerSourceRanges of Service demo/web does not have 192.0.2.1";
    assert_eq!(outside.verdict, Verdict::Dropped(why.to_owned()));
}

#[test]
fn the_scheduler_is_told_with_the_endpoint_that_it_chooses() {
    let endpoints =
        || (1..=4).map(|last| SliceEndpoint { ip: [10, 244, 0, last].into(), ..ready() }).collect::<Vec<_>>();
    let told = |service: Service, default, from_port: Option<u16>| {
        let question = Question {
            from: "10.244.0.77".parse().unwrap(),
            from_port: from_port.and_then(NonZeroU16::new),
            interface: None,
            to: "172.30.0.1:80".parse().unwrap(),
            protocol: Protocol::Tcp,
        };
        let settings = Settings { scheduler: default, ..pods() };
        let explanation = explain(&cluster(service, endpoints()), &settings, &question).unwrap();
        let Verdict::Forwarded { choices, .. } = &explanation.verdict else { panic!("{explanation}") };
        (choices.len(), explanation.to_string())
    };
    let maglev = Scheduler::Maglev(sluicegate_services::Slots::default());
    let (count, text) = told(service(), maglev, None);
    assert_eq!(count, 4);
    assert!(text.contains("configuration, scheduler: maglev -> a hash of"), "{text}");
    assert!(text.ends_with("; the port of the client decides which\n"), "{text}");
    let (count, text) = told(service(), maglev, Some(40_000));
    assert_eq!(count, 1);
    assert!(text.ends_with("; always the same for this address and port of the client\n"), "{text}");
    let (count, text) = told(service().with_scheduler(Scheduler::SourceHash), maglev, None);
    assert_eq!(count, 1);
    let field = "Service demo/web, metadata.annotations[sluicegate.github.io/scheduler]: source-hash -> ";
    assert!(text.contains(field) && text.contains("(100.0 %)"), "{text}");
    let (count, text) = told(service().with_scheduler(Scheduler::RoundRobin), maglev, Some(1));
    assert_eq!(count, 4);
    assert!(text.ends_with("; one after the other\n"), "{text}");
    // Session affinity goes first, and random is what is not told unless it was asked for.
    let (count, text) = told(service().with_affinity_seconds(9), maglev, Some(1));
    assert!(count == 4 && !text.contains("scheduler"), "{text}");
    let (count, text) = told(service(), Scheduler::Random, Some(1));
    assert!(count == 4 && !text.contains("scheduler"), "{text}");
    let (_, text) = told(service().with_scheduler(Scheduler::Random), maglev, Some(1));
    assert!(text.contains("random -> any of the endpoints"), "{text}");
}

#[test]
fn no_scheduler_is_named_where_another_one_decides() {
    let question = Question {
        from: "10.244.0.77".parse().unwrap(),
        from_port: None,
        interface: None,
        to: "172.30.0.1:80".parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    for (mode, affinity, expected) in [
        (Mode::Nftables, None, Some(Scheduler::Random)),
        (Mode::Iptables, None, Some(Scheduler::Random)),
        (Mode::Ipvs, None, None),
        (Mode::Nftables, Some(9), None),
        (Mode::Iptables, Some(9), None),
        (Mode::Ipvs, Some(9), None),
    ] {
        let service = match affinity {
            Some(seconds) => service().with_affinity_seconds(seconds),
            None => service(),
        };
        let settings = Settings { mode, ..pods() };
        let explanation = explain(&cluster(service, vec![ready()]), &settings, &question).unwrap();
        let Verdict::Forwarded { scheduler, .. } = explanation.verdict else { panic!("{explanation}") };
        assert_eq!(scheduler, expected, "{mode} {affinity:?}");
    }
}

#[test]
fn a_question_without_an_answer_says_what_is_missing() {
    let cluster = cluster(service(), vec![ready()]);
    let bridge = DetectLocal::Interface(InterfaceName::new("cni0").unwrap());
    let settings = Settings { detect_local: bridge, ..Settings::default() };
    let question = |from: &str, interface: Option<&str>| Question {
        from: from.parse().unwrap(),
        from_port: None,
        interface: interface.map(|name| InterfaceName::new(name).unwrap()),
        to: "172.30.0.1:80".parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    assert_eq!(explain(&cluster, &settings, &question("10.244.0.7", None)), Err(Error::NoInterface));
    let by = |name| explain(&cluster, &settings, &question("10.244.0.7", Some(name))).unwrap().client.is_pod;
    assert_eq!((by("cni0"), by("eth0")), (true, false));
    // What the node itself sends comes in through none.
    assert!(!explain(&cluster, &settings, &question("192.168.0.2", None)).unwrap().client.is_pod);
    let families = explain(&cluster, &settings, &question("fd00::1", None)).unwrap_err();
    let why = "expected two addresses of one family, found the source fd00::1 and the destination 172.30.0.1";
    assert_eq!(families.to_string(), why);
}
