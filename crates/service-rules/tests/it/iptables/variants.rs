//! The effects of flags and of missing kernel features on the rules. Both back ends can load each variant.

use sluicegate_service_rules::MasqueradeBit;
use sluicegate_service_rules::iptables::{Feature, Planner, Settings, Support};
use sluicegate_services::{DetectLocal, Family, InterfaceName, InterfacePrefix, NodePortAddresses};

use crate::iptables::world::{BACK_ENDS, cluster, have_iptables, restore, settings};

const SERVICES: &str = include_str!("../../../testdata/kube-proxy/services.yaml");

fn text(family: Family, settings: &Settings, missing: &[Feature]) -> String {
    // An applier would create the nfacct counters; this test has none.
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
fn missing_features_do_not_occur_and_the_other_rules_load() {
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
    let whole = text(Family::Ipv4, &settings(), &[]);
    for feature in Feature::ALL {
        let there = !matches!(feature, Feature::Nfacct | Feature::Sctp);
        assert_eq!(whole.contains(words(feature)), there, "{feature}");
        let text = text(Family::Ipv4, &settings(), &[feature]);
        assert!(!text.contains(words(feature)), "{feature}: {text}");
        // Every service with endpoints can be reached, whichever feature is missing.
        for chain in ["KUBE-SVC-XRY76EGRC3BSCIIJ", "KUBE-SVC-IXHL676EY46F5RLS", "KUBE-FW-FPNDZPBCDEO3LHH3"] {
            assert!(text.contains(&format!("-j {chain}")), "{feature}: {chain}");
        }
        loads(Family::Ipv4, &text);
    }
    loads(Family::Ipv4, &text(Family::Ipv4, &settings(), &Feature::ALL));
}

#[test]
fn without_statistic_all_traffic_goes_to_the_first_endpoint() {
    let text = text(Family::Ipv4, &settings(), &[Feature::Statistic]);
    assert!(text.contains(
        "-A KUBE-SVC-XRY76EGRC3BSCIIJ -m comment --comment \"demo/web:http -> \
                           10.244.0.10:8080\" -j KUBE-SEP-AEXJBL2DDECPIHGN\n"
    ));
    assert!(
        !text.contains(
            "-A KUBE-SVC-XRY76EGRC3BSCIIJ -m comment --comment \"demo/web:http -> 10.244.1.10:8080\""
        )
    );
}

#[test]
fn sctp_ports_are_omitted_without_the_sctp_match() {
    let sctp = SERVICES.replace("protocol: UDP", "protocol: SCTP");
    let text = |missing: &[Feature]| {
        let support = Support::without(missing.iter().copied());
        Planner::new(Family::Ipv4, &settings(), support, &cluster(&sctp), None).unwrap().input().to_string()
    };
    assert!(text(&[Feature::Nfacct]).contains("-m sctp -p sctp -d 172.30.10.3 --dport 53"));
    assert!(!text(&[Feature::Sctp]).contains("172.30.10.3"));
    loads(Family::Ipv4, &text(&[Feature::Nfacct]));
}

#[test]
fn each_local_detector_has_its_match() {
    let bridge = InterfaceName::new("cni0").unwrap();
    let prefix = InterfacePrefix::new("veth").unwrap();
    for (detect_local, words) in [
        (settings().detect_local, "-s 10.244.0.0/16"),
        (DetectLocal::Interface(bridge), "-i cni0"),
        (DetectLocal::InterfacePrefix(prefix), "-i veth+"),
    ] {
        let text = text(Family::Ipv4, &Settings { detect_local, ..settings() }, &[]);
        assert!(
            text.contains(&format!("-d 172.30.10.1 --dport 80 ! {words} -j KUBE-MARK-MASQ\n")),
            "{words}"
        );
        assert!(
            text.contains(&format!("external destinations\" {words} -j KUBE-SVC-FPNDZPBCDEO3LHH3\n")),
            "{words}"
        );
        loads(Family::Ipv4, &text);
    }
    let none = Settings { detect_local: DetectLocal::default(), ..settings() };
    assert!(!text(Family::Ipv4, &none, &[]).contains("-d 172.30.10.1 --dport 80 !"));
    let all = Settings { masquerade_all: true, ..settings() };
    assert!(text(Family::Ipv4, &all, &[]).contains("-d 172.30.10.1 --dport 80 -j KUBE-MARK-MASQ\n"));
}

#[test]
fn node_ports_are_answered_on_the_configured_addresses() {
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
    assert_eq!(tail(&at("", true), Family::Ipv4), [everywhere]);
    assert_eq!(tail(&at("0.0.0.0/0", true), Family::Ipv4), [everywhere]);
    assert_eq!(
        tail(&at("", false), Family::Ipv4),
        ["-m addrtype --dst-type LOCAL ! -d 127.0.0.0/8 -j KUBE-NODEPORTS"]
    );
    assert_eq!(
        tail(&at("", true), Family::Ipv6),
        ["-m addrtype --dst-type LOCAL ! -d ::1/128 -j KUBE-NODEPORTS"]
    );
    assert_eq!(
        tail(&at("192.168.0.0/16", true), Family::Ipv4),
        ["-d 192.168.0.2 -j KUBE-NODEPORTS", "-d 192.168.7.2 -j KUBE-NODEPORTS"]
    );
    assert_eq!(
        tail(&at("127.0.0.0/8,192.168.0.0/24", true), Family::Ipv4),
        ["-d 127.0.0.1 -j KUBE-NODEPORTS", "-d 192.168.0.2 -j KUBE-NODEPORTS"]
    );
    assert_eq!(
        tail(&at("127.0.0.0/8,192.168.0.0/24", false), Family::Ipv4),
        ["-d 192.168.0.2 -j KUBE-NODEPORTS"]
    );
    assert_eq!(tail(&at("primary", true), Family::Ipv4), ["-d 192.168.0.2 -j KUBE-NODEPORTS"]);
    // Loopback is guarded only while it is answered, and answered only where it can be guarded.
    let guarded = |family, settings: &Settings, missing: &[Feature]| {
        let support = Support::without(missing.iter().copied());
        let planner = Planner::new(family, settings, support, &cluster(SERVICES), None).unwrap();
        assert_eq!(planner.guard().is_some(), planner.answers_localhost());
        assert!(!planner.input().to_string().contains("KUBE-FIREWALL"), "the kubelet's chain is not emptied");
        planner.guard().is_some_and(|words| words.contains("block incoming localnet connections"))
    };
    assert!(guarded(Family::Ipv4, &at("", true), &[]));
    assert!(!guarded(Family::Ipv4, &at("", true), &[Feature::Conntrack]));
    assert!(!guarded(Family::Ipv4, &at("192.168.0.0/16", true), &[]));
    assert!(!guarded(Family::Ipv6, &at("", true), &[]));
}

#[test]
fn the_last_bit_of_the_mark_can_be_chosen() {
    let last = Settings { masquerade_bit: MasqueradeBit::new(31).unwrap(), ..settings() };
    assert!(text(Family::Ipv4, &last, &[]).contains("-j MARK --or-mark 0x80000000\n"));
}

#[test]
fn packets_of_a_node_within_a_source_range_may_pass() {
    let manifests = SERVICES.replace("203.0.113.0/25", "192.168.0.0/24");
    let planner =
        Planner::new(Family::Ipv4, &settings(), Support::default(), &cluster(&manifests), None).unwrap();
    let text = planner.input().to_string();
    let rules: Vec<_> = text.lines().filter(|line| line.starts_with("-A KUBE-FW-")).collect();
    let rule = |source: &str| {
        format!(
            "-A KUBE-FW-FPNDZPBCDEO3LHH3 -m comment --comment \"demo/api:https loadbalancer IP\" -s \
             {source} -j KUBE-EXT-FPNDZPBCDEO3LHH3"
        )
    };
    assert_eq!(rules.len(), 3);
    assert_eq!(rules[..2], [rule("192.168.0.0/24"), rule("5.6.7.8")]);
}
