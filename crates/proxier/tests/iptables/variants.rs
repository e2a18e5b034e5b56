//! What the flags and a poor kernel change in the rules; each variant is one that both back ends load.

use sluicegate_proxier::model::{DetectLocal, DetectLocalMode, Family, NodePortAddresses};
use sluicegate_proxier::plan::iptables::{Feature, Planner, Settings, Support};

use crate::world::{BACK_ENDS, cluster, have_iptables, restore, settings};

const SERVICES: &str = include_str!("../../testdata/kube-proxy/services.yaml");

fn text(family: Family, settings: &Settings, missing: &[Feature]) -> String {
    // The counters of nfacct are made by whoever applies; here nobody does.
    let missing = missing.iter().copied().chain([Feature::Nfacct]);
    let support = Support::without(missing);
    let planner =
        Planner::new(family, settings, support, &cluster(SERVICES), None).expect("the settings are good");
    planner.input().to_string()
}

fn loads(family: Family, text: &str) {
    if have_iptables() {
        BACK_ENDS.iter().for_each(|back_end| testns::netns(|| restore(family, back_end, text)));
    }
}

#[test]
fn what_is_missing_does_not_occur_and_the_rest_loads() {
    let words = |feature| match feature {
        Feature::Masquerade => "-j MASQUERADE",
        Feature::RandomFully => "--random-fully",
        Feature::Reject => "-j REJECT",
        Feature::Comment => "-m comment",
        Feature::Conntrack => "-m conntrack",
        Feature::Addrtype => "-m addrtype",
        Feature::Statistic => "-m statistic",
        Feature::Recent => "-m recent",
        Feature::Nfacct => "-m nfacct",
        Feature::Sctp => "-m sctp",
        _ => panic!("{feature} has no words here"),
    };
    let whole = text(Family::V4, &settings(), &[]);
    for feature in Feature::ALL {
        let there = !matches!(feature, Feature::Nfacct | Feature::Sctp);
        assert_eq!(whole.contains(words(feature)), there, "{feature}");
        let text = text(Family::V4, &settings(), &[feature]);
        assert!(!text.contains(words(feature)), "{feature}: {text}");
        // Whatever is missing, every service with endpoints is still reached.
        for chain in ["KUBE-SVC-XRY76EGRC3BSCIIJ", "KUBE-SVC-IXHL676EY46F5RLS", "KUBE-FW-FPNDZPBCDEO3LHH3"] {
            assert!(text.contains(&format!("-j {chain}")), "{feature}: {chain}");
        }
        loads(Family::V4, &text);
    }
    loads(Family::V4, &text(Family::V4, &settings(), &Feature::ALL));
}

#[test]
fn without_statistic_all_goes_to_the_first_endpoint() {
    let text = text(Family::V4, &settings(), &[Feature::Statistic]);
    assert!(text.contains("-A KUBE-SVC-XRY76EGRC3BSCIIJ -m comment --comment \"demo/web:http -> 10.244.0.10:8080\" -j KUBE-SEP-AEXJBL2DDECPIHGN\n"));
    assert!(
        !text.contains(
            "-A KUBE-SVC-XRY76EGRC3BSCIIJ -m comment --comment \"demo/web:http -> 10.244.1.10:8080\""
        )
    );
}

#[test]
fn sctp_ports_are_left_out_where_there_is_no_sctp() {
    let sctp = SERVICES.replace("protocol: UDP", "protocol: SCTP");
    let text = |missing: &[Feature]| {
        let support = Support::without(missing.iter().copied());
        Planner::new(Family::V4, &settings(), support, &cluster(&sctp), None).unwrap().input().to_string()
    };
    assert!(text(&[Feature::Nfacct]).contains("-m sctp -p sctp -d 172.30.10.3 --dport 53"));
    assert!(!text(&[Feature::Sctp]).contains("172.30.10.3"));
    loads(Family::V4, &text(&[Feature::Nfacct]));
}

#[test]
fn each_local_detector_has_its_words() {
    let of = |mode: &str| Settings {
        detect_local: DetectLocal {
            mode: Some(mode.parse::<DetectLocalMode>().unwrap()),
            bridge: Some("cni0".to_owned()),
            prefix: Some("veth".to_owned()),
            node_cidrs: vec!["10.244.0.0/24".parse().unwrap()],
            ..settings().detect_local
        },
        ..settings()
    };
    for (mode, words) in [
        ("ClusterCIDR", "-s 10.244.0.0/16"),
        ("NodeCIDR", "-s 10.244.0.0/24"),
        ("BridgeInterface", "-i cni0"),
        ("InterfaceNamePrefix", "-i veth+"),
    ] {
        let text = text(Family::V4, &of(mode), &[]);
        assert!(text.contains(&format!("-d 172.30.10.1 --dport 80 ! {words} -j KUBE-MARK-MASQ\n")), "{mode}");
        assert!(
            text.contains(&format!("external destinations\" {words} -j KUBE-SVC-FPNDZPBCDEO3LHH3\n")),
            "{mode}"
        );
        loads(Family::V4, &text);
    }
    let none = Settings { detect_local: DetectLocal::default(), ..settings() };
    assert!(!text(Family::V4, &none, &[]).contains("-d 172.30.10.1 --dport 80 !"));
    let all = Settings { masquerade_all: true, ..settings() };
    assert!(text(Family::V4, &all, &[]).contains("-d 172.30.10.1 --dport 80 -j KUBE-MARK-MASQ\n"));
}

#[test]
fn node_ports_are_answered_where_they_are_asked_for() {
    let at = |text: &str, localhost_node_ports| Settings {
        node_port_addresses: text.parse::<NodePortAddresses>().unwrap(),
        localhost_node_ports,
        ..settings()
    };
    let local = ["127.0.0.1", "192.168.0.2", "192.168.7.2"].map(|ip| ip.parse().unwrap());
    let tail = |settings: &Settings, family| -> Vec<String> {
        let support = Support::default();
        let planner =
            Planner::new(family, settings, support, &cluster(SERVICES), Some(local.into())).unwrap();
        let text = planner.input().to_string();
        let rules = text.lines().filter(|line| line.ends_with("-j KUBE-NODEPORTS"));
        rules.map(|line| line.split("in this chain\" ").nth(1).unwrap_or_default().to_owned()).collect()
    };
    let everywhere = "-m addrtype --dst-type LOCAL -j KUBE-NODEPORTS";
    assert_eq!(tail(&at("", true), Family::V4), [everywhere]);
    assert_eq!(tail(&at("0.0.0.0/0", true), Family::V4), [everywhere]);
    assert_eq!(
        tail(&at("", false), Family::V4),
        ["-m addrtype --dst-type LOCAL ! -d 127.0.0.0/8 -j KUBE-NODEPORTS"]
    );
    assert_eq!(
        tail(&at("", true), Family::V6),
        ["-m addrtype --dst-type LOCAL ! -d ::1/128 -j KUBE-NODEPORTS"]
    );
    assert_eq!(
        tail(&at("192.168.0.0/16", true), Family::V4),
        ["-d 192.168.0.2 -j KUBE-NODEPORTS", "-d 192.168.7.2 -j KUBE-NODEPORTS"]
    );
    assert_eq!(
        tail(&at("127.0.0.0/8,192.168.0.0/24", true), Family::V4),
        ["-d 127.0.0.1 -j KUBE-NODEPORTS", "-d 192.168.0.2 -j KUBE-NODEPORTS"]
    );
    assert_eq!(
        tail(&at("127.0.0.0/8,192.168.0.0/24", false), Family::V4),
        ["-d 192.168.0.2 -j KUBE-NODEPORTS"]
    );
    assert_eq!(tail(&at("primary", true), Family::V4), ["-d 192.168.0.2 -j KUBE-NODEPORTS"]);
    // Loopback is guarded only while it is answered.
    assert!(text(Family::V4, &at("", true), &[]).contains("block incoming localnet connections"));
    assert!(
        !text(Family::V4, &at("192.168.0.0/16", true), &[]).contains("block incoming localnet connections")
    );
    assert!(!text(Family::V6, &at("", true), &[]).contains("block incoming localnet connections"));
}

#[test]
fn a_bit_that_is_none_is_refused() {
    let settings = Settings { masquerade_bit: 32, ..settings() };
    let error = Planner::new(Family::V4, &settings, Support::default(), &cluster(""), None).unwrap_err();
    assert!(error.is_flag(), "{error}");
    let last = Settings { masquerade_bit: 31, ..self::settings() };
    assert!(text(Family::V4, &last, &[]).contains("-j MARK --or-mark 0x80000000\n"));
}

#[test]
fn where_a_range_covers_the_node_its_packets_to_the_load_balancer_may_pass() {
    let manifests = SERVICES.replace("203.0.113.0/25", "192.168.0.0/24");
    let planner =
        Planner::new(Family::V4, &settings(), Support::default(), &cluster(&manifests), None).unwrap();
    let text = planner.input().to_string();
    let rules: Vec<_> = text.lines().filter(|line| line.starts_with("-A KUBE-FW-")).collect();
    let rule = |source: &str| {
        format!(
            "-A KUBE-FW-FPNDZPBCDEO3LHH3 -m comment --comment \"demo/api:https loadbalancer IP\" -s {source} -j KUBE-EXT-FPNDZPBCDEO3LHH3"
        )
    };
    assert_eq!(rules.len(), 3);
    assert_eq!(rules[..2], [rule("192.168.0.0/24"), rule("5.6.7.8")]);
}
