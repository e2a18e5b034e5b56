//! Connections by frontend and endpoint, with packets: what is counted, and that it stays when rules change.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::time::Instant;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{self as nft, TableId, Transaction};
use sluicegate_service_rules::nftables::{
    Applier, Connections, Counting, Layout, Planner, Settings, TABLE, connections,
};
use sluicegate_services::{Cluster, Family, Frontend, Protocol};

use crate::manifests::Manifests;
use crate::nftables::scheduling::{ENDPOINTS, NODE_PORT, Network, address, all, manifests, service_ip};
use crate::nftables::world::{cluster, run_nft_text, settings};

fn counting(counting: Counting) -> Settings {
    Settings { counting, ..settings(Layout::Maps) }
}

fn open(settings: &Settings) -> Applier {
    Applier::open(settings.clone()).expect("nf_tables")
}

fn sync(applier: &mut Applier, cluster: &mut Cluster) -> String {
    applier.sync(cluster, Instant::now()).expect("it is programmed").to_string()
}

/// Has the services the endpoints of other manifests.
fn change(cluster: &mut Cluster, manifests: &str) {
    for (name, slice) in Manifests::read(manifests).slices {
        cluster.set_slice(&name, Some(slice));
    }
}

fn counted(counting: Counting) -> Connections {
    let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
    connections(&mut socket, &Family::BOTH, counting).expect("they are listed")
}

fn port(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a port")
}

fn frontend(family: Family, service: u16, protocol: Protocol) -> Frontend {
    Frontend::Address(service_ip(family, service), protocol, port(80))
}

/// Returns the counts of the endpoints of a frontend by their numbers; those of an endpoint that has no element
/// are 0.
fn endpoints(found: &Connections, frontend: Frontend, family: Family) -> Vec<u64> {
    let of = |n: u16| {
        let endpoint = SocketAddr::new(address(family, 244, n), 8080);
        found.endpoints.get(&(frontend, endpoint)).copied().unwrap_or_default()
    };
    (1..=ENDPOINTS).map(of).collect()
}

#[test]
fn each_connection_is_counted_once_and_stays_counted() {
    for (family, scheduler) in [(Family::Ipv4, None), (Family::Ipv6, Some("round-robin"))] {
        testns::netns(|| {
            let network = Network::new(family);
            let settings = counting(Counting::Endpoints);
            let text = manifests(family, &[scheduler, Some("source-hash")], &all());
            let mut cluster = cluster(&text);
            let mut applier = open(&settings);
            sync(&mut applier, &mut cluster);
            let mut reached = [0; ENDPOINTS as usize];
            for client in 1..=12 {
                reached[usize::from(network.reach(Protocol::Udp, client, 1).1) - 1] += 1;
            }
            for _ in 0..3 {
                network.reach(Protocol::Tcp, 1, 1);
            }
            network.reach(Protocol::Udp, 1, 2);
            let (udp, tcp) = (frontend(family, 1, Protocol::Udp), frontend(family, 1, Protocol::Tcp));
            let check = |reached: &[u64], when: &str| {
                let found = counted(Counting::Endpoints);
                let count = |frontend| found.frontends.get(&frontend).copied();
                assert_eq!((count(udp), count(tcp)), (Some(12), Some(3)), "{when}");
                assert_eq!(count(frontend(family, 2, Protocol::Udp)), Some(1), "{when}");
                assert_eq!(count(frontend(family, 1, Protocol::Sctp)), Some(0), "{when}");
                assert_eq!(endpoints(&found, udp, family), reached, "{when}");
                assert_eq!(endpoints(&found, tcp, family).iter().sum::<u64>(), 3, "{when}");
            };
            check(&reached, "after the connections");

            if testns::have(&["nft"]) {
                run_nft_text(&format!("flush ruleset\n{}", testns::sh("nft list ruleset")));
                check(&reached, "in what nft listed and loaded");
            }

            // Our own change: one endpoint less, so that all others change their numbers.
            sync(&mut applier, &mut cluster);
            change(&mut cluster, &manifests(family, &[scheduler, Some("source-hash")], &[1, 3, 4, 5]));
            sync(&mut applier, &mut cluster);
            // By UDP alone it is known where TCP went.
            let gone = std::mem::take(&mut reached[1]);
            let found = counted(Counting::Endpoints);
            assert_eq!(found.frontends.get(&udp), Some(&12));
            assert_eq!(endpoints(&found, udp, family), reached);
            assert_eq!(endpoints(&found, udp, family).iter().sum::<u64>(), 12 - gone);
            let tcp_left = endpoints(&found, tcp, family);

            // A restart finds nothing but the chains that are no longer used.
            let mut applier = open(&settings);
            let difference = applier.difference(&cluster).expect("it is compared").to_string();
            assert!(difference.lines().all(|line| line.starts_with("delete chain ")), "{difference}");
            sync(&mut applier, &mut cluster);
            let found = counted(Counting::Endpoints);
            assert_eq!(found.frontends.get(&tcp), Some(&3));

            // Nor does one that finds other endpoints.
            change(&mut cluster, &manifests(family, &[scheduler, Some("source-hash")], &[3, 4, 5]));
            sync(&mut open(&settings), &mut cluster);
            let found = counted(Counting::Endpoints);
            assert_eq!((found.frontends.get(&udp), found.frontends.get(&tcp)), (Some(&12), Some(&3)));
            reached[0] = 0;
            assert_eq!(endpoints(&found, udp, family), reached);
            assert_eq!(endpoints(&found, tcp, family)[2..], tcp_left[2..]);
        });
    }
}

#[test]
fn counts_stay_in_a_map_that_grows_and_in_a_table_that_is_replaced() {
    let family = Family::Ipv4;
    testns::netns(|| {
        let network = Network::new(family);
        let settings = counting(Counting::Endpoints);
        let mut cluster = cluster(&manifests(family, &[None], &all()));
        let mut applier = open(&settings);
        sync(&mut applier, &mut cluster);
        let reached = network.reach(Protocol::Udp, 1, 1).1;
        let udp = frontend(family, 1, Protocol::Udp);
        let check = |when: &str| {
            let found = counted(Counting::Endpoints);
            assert_eq!(found.frontends.get(&udp), Some(&1), "{when}");
            assert_eq!(endpoints(&found, udp, family)[usize::from(reached) - 1], 1, "{when}");
            assert_eq!(found.endpoints.values().sum::<u64>(), 1, "{when}");
        };
        check("at first");

        // The maps of frontends and of endpoints grow.
        let mut found = Manifests::read(&manifests(family, &[None; 250], &all()));
        for (number, (name, service)) in (0..).zip(found.services.drain(..)) {
            cluster.set_service(&name, service.with_external_ips([[10, 99, 0, number].into()]));
        }
        found.slices.drain(..).for_each(|(name, slice)| cluster.set_slice(&name, Some(slice)));
        let synced = applier.sync(&mut cluster, Instant::now()).expect("it is programmed");
        assert!(synced.changes.objects >= 2 * 4, "{synced}");
        check("in maps that are larger");

        // What the table of another proxier would need: everything is replaced.
        let comment = "flush ruleset ip; add table ip kube-proxy";
        let listed = testns::sh("nft list table ip kube-proxy").replace("rules for kube-proxy", "another");
        if testns::have(&["nft"]) {
            run_nft_text(&format!("{comment}\ndelete table ip kube-proxy\n{listed}"));
            let synced = sync(&mut applier, &mut cluster);
            assert!(synced.starts_with("replaced all"), "{synced}");
            check("in a table that is replaced");
        }
    });
}

#[test]
fn counting_begins_and_ends_with_a_restart() {
    let family = Family::Ipv4;
    testns::netns(|| {
        let network = Network::new(family);
        let text = manifests(family, &[None], &all()).replace("type: NodePort", AFFINITY);
        let mut cluster = cluster(&text);
        sync(&mut open(&counting(Counting::Off)), &mut cluster);
        network.reach(Protocol::Udp, 1, 1);
        assert_eq!(counted(Counting::Endpoints), Connections::default());

        sync(&mut open(&counting(Counting::Endpoints)), &mut cluster);
        let reached = network.reach(Protocol::Udp, 2, 1).1;
        assert_eq!(testns::sh("ip addr add 192.168.9.1/32 dev lo"), "");
        let to_node_port = std::net::UdpSocket::bind((address(family, 9, 3), 0)).expect("a client");
        to_node_port.send_to(b"?", ("192.168.9.1", NODE_PORT)).expect("it is sent");
        let found = counted(Counting::Endpoints);
        let udp = frontend(family, 1, Protocol::Udp);
        assert_eq!(found.frontends.get(&udp), Some(&1));
        assert_eq!(endpoints(&found, udp, family)[usize::from(reached) - 1], 1);
        let node_port = Frontend::NodePort(family, Protocol::Udp, port(NODE_PORT));
        assert_eq!(found.frontends.get(&node_port), Some(&1));
        assert_eq!(endpoints(&found, node_port, family).iter().sum::<u64>(), 1);

        // Fewer counters: those that stay keep their counts.
        sync(&mut open(&counting(Counting::Frontends)), &mut cluster);
        let found = counted(Counting::Endpoints);
        assert_eq!((found.frontends.get(&udp), found.endpoints.len()), (Some(&1), 0));

        sync(&mut open(&counting(Counting::Off)), &mut cluster);
        assert_eq!(counted(Counting::Endpoints), Connections::default());
        assert!(open(&counting(Counting::Off)).difference(&cluster).expect("it is compared").is_empty());
    });
}

#[test]
fn what_another_program_resets_begins_at_nothing() {
    let family = Family::Ipv4;
    testns::netns(|| {
        let network = Network::new(family);
        let settings = counting(Counting::Frontends);
        let mut cluster = cluster(&manifests(family, &[None], &all()));
        let mut applier = open(&settings);
        sync(&mut applier, &mut cluster);
        network.reach(Protocol::Udp, 1, 1);
        let mut theirs = Transaction::new();
        theirs.delete(TableId::new(nft::Family::IP, TABLE.parse().expect("a name")));
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        theirs.apply(&mut socket).expect("it is deleted");
        assert_eq!(counted(Counting::Frontends), Connections::default());
        sync(&mut applier, &mut cluster);
        let udp = frontend(family, 1, Protocol::Udp);
        assert_eq!(counted(Counting::Frontends).frontends.get(&udp), Some(&0));
    });
}

#[test]
fn counters_that_another_program_has_set_to_the_most_do_not_wrap() {
    if !testns::have(&["nft"]) {
        return;
    }
    let family = Family::Ipv4;
    testns::netns(|| {
        // Under maglev an endpoint has many elements.
        let text = |endpoints: &[u16]| manifests(family, &[Some("maglev")], endpoints);
        let mut cluster = cluster(&text(&all()));
        let mut applier = open(&counting(Counting::Endpoints));
        sync(&mut applier, &mut cluster);
        let most = format!("counter packets {0} bytes {0}", u64::MAX);
        let listed = testns::sh("nft list ruleset").replace("counter packets 0 bytes 0", &most);
        run_nft_text(&format!("flush ruleset\n{listed}"));
        let check = |when: &str| {
            let found = counted(Counting::Endpoints);
            let udp = frontend(family, 1, Protocol::Udp);
            assert_eq!(found.frontends.get(&udp), Some(&u64::MAX), "{when}");
            assert_eq!(endpoints(&found, udp, family)[2..], [u64::MAX; 3], "{when}");
        };
        check("as they were set");
        change(&mut cluster, &text(&[1, 3, 4, 5]));
        sync(&mut applier, &mut cluster);
        check("carried by a change");
        change(&mut cluster, &text(&[3, 4, 5]));
        sync(&mut open(&counting(Counting::Endpoints)), &mut cluster);
        check("carried by a comparison");
    });
}

#[test]
fn without_counting_no_set_has_counters() {
    let script = |settings: &Settings| {
        let cluster = cluster(&manifests(Family::Ipv4, &[None, Some("maglev")], &all()));
        Planner::new(settings, &cluster, None).expect("the settings are good").script().to_string()
    };
    let plain = script(&settings(Layout::Maps));
    assert!(!plain.contains("counter"), "{plain}");
    let with = script(&counting(Counting::Frontends));
    assert_eq!(with.matches("counter").count(), 2 * 4);
    assert_eq!(with.replace(" counter ;", ""), plain);
    // The other layout has none.
    let chains = Settings { counting: Counting::Endpoints, ..settings(Layout::Chains) };
    assert_eq!(script(&chains), script(&settings(Layout::Chains)));
}

const AFFINITY: &str = "type: NodePort, sessionAffinity: ClientIP";
