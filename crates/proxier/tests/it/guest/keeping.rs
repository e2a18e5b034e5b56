//! What is kept, mended and removed: restarts, interference of others, connections to what goes, cleanup.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use sluicegate_ipvs::{Client, Timeouts};
use sluicegate_lab::{Transport, Wire, ask};
use sluicegate_service_rules::ipvs::{Applier, FamilySynced, Synced, cleanup};
use sluicegate_service_rules::ipvs::{ConnectionTimeouts, Settings};
use sluicegate_services::Cluster;

use crate::guest::back_end;
use crate::guest::traffic::{World, applier, endpoints};

fn is_unchanged(synced: &Synced) -> bool {
    synced.families.len() == 2 && synced.families.iter().all(FamilySynced::is_unchanged)
}

fn syncs(applier: &mut Applier, cluster: &mut Cluster) -> Synced {
    applier.sync(cluster, Instant::now()).unwrap()
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn a_restart_changes_nothing_and_what_others_break_is_mended() {
    if back_end().is_none() {
        return;
    }
    let World { network, mut cluster, .. } = World::new();
    network.node.namespace.run(|| {
        let cluster = &mut cluster;
        let first = syncs(&mut applier(Settings::default()), cluster);
        assert!(!is_unchanged(&first), "{first}");
        let mut applier = applier(Settings::default());
        let again = syncs(&mut applier, cluster);
        assert!(is_unchanged(&again), "{again}");
        let again = syncs(&mut applier, cluster);
        assert!(is_unchanged(&again) && again.families[0].rules == 0, "{again}");

        let tool = back_end().unwrap();
        for harm in [
            "ipvsadm -C".to_owned(),
            "ipvsadm -d -t 172.30.0.1:80 -r 10.244.1.10:8080".to_owned(),
            "ipvsadm -e -t 172.30.0.1:80 -r 10.244.1.10:8080 -m -w 0".to_owned(),
            "ipvsadm -a -t [fd00:172::1]:80 -r [fd00::99]:8080 -m".to_owned(),
            "ipset flush KUBE-6-CLUSTER-IP".to_owned(),
            "ip addr del 172.30.0.1/32 dev kube-ipvs0".to_owned(),
            "ip addr add 172.30.99.1/32 dev kube-ipvs0".to_owned(),
            "ip link del kube-ipvs0".to_owned(),
            format!("iptables-{tool} -t nat -F OUTPUT"),
            format!("ip6tables-{tool} -t filter -D INPUT 1"),
        ] {
            let _ = testns::sh(&harm);
            let mended = syncs(&mut applier, cluster);
            assert!(!is_unchanged(&mended), "{harm}: {mended}");
            let again = syncs(&mut applier, cluster);
            assert!(is_unchanged(&again), "{harm}: {again}");
        }
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn a_destination_that_goes_keeps_its_connections() {
    if back_end().is_none() {
        return;
    }
    let mut world = World::new();
    let timeouts = Timeouts { tcp: 800, tcp_fin: 0, udp: 100 };
    let (vip, mut applier, start) = (
        world.vip,
        world.node().run(|| {
            applier(Settings { timeouts: ConnectionTimeouts::new(timeouts).unwrap(), ..Settings::default() })
        }),
        Instant::now(),
    );
    world.sync(&mut applier, start);
    let set = world.node().run(|| Client::open().unwrap().timeouts().unwrap());
    assert_eq!((set.tcp, set.tcp_fin, set.udp), (800, 120, 100));
    let connections = connect(&world, vip);
    endpoints(&mut world.cluster, &["here"]);
    world.sync(&mut applier, start);
    let weights = |world: &World| world.node().run(weights);
    assert_eq!(weights(&world), [("10.244.0.10:8080".to_owned(), 1), ("10.244.1.10:8080".to_owned(), 0)]);
    let due = applier.next_sync().expect("something is being drained");
    let answers = world.network.client.namespace.run(|| ask(Transport::Tcp, vip, 4, PATIENCE));
    assert!(!format!("{answers:?}").contains("there"), "{answers:?}");

    // It comes back, and goes again.
    endpoints(&mut world.cluster, &["here", "there"]);
    world.sync(&mut applier, start);
    assert_eq!(weights(&world)[1].1, 1);
    endpoints(&mut world.cluster, &["here"]);
    world.sync(&mut applier, start);
    // IPVS forgets a connection ten seconds after its reset. Until here a sync may have taken longer than
    // that.
    drop(connections);
    for round in 1..30 {
        world.sync(&mut applier, due + Duration::from_secs(60 * round));
        if weights(&world).len() == 1 {
            break;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    assert_eq!(weights(&world), [("10.244.0.10:8080".to_owned(), 1)]);
    assert_eq!(applier.next_sync(), None);
}

/// Connections to each endpoint. They are reset when they are dropped: what was received is not read.
fn connect(world: &World, vip: SocketAddr) -> Vec<TcpStream> {
    let connect = |_| {
        let stream = TcpStream::connect_timeout(&vip, PATIENCE).unwrap();
        stream.peek(&mut [0]).unwrap();
        stream
    };
    world.network.client.namespace.run(|| (0..4).map(connect).collect())
}

/// The destinations of the TCP service at its cluster IP.
fn weights() -> Vec<(String, u32)> {
    let service = sluicegate_ipvs::ServiceId::tcp(sluicegate_ipvs::Endpoint::new([172, 30, 0, 1], 80));
    let found = Client::open().unwrap().destinations(&service).unwrap();
    let mut found: Vec<_> = found.iter().map(|it| (it.id.to_string(), it.config.weight)).collect();
    found.sort();
    found
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn cleanup_leaves_nothing_of_ours_and_everything_of_others() {
    if back_end().is_none() {
        return;
    }
    let World { network, mut cluster, .. } = World::new();
    network.node.namespace.run(|| {
        let excluded =
            Settings { exclude_cidrs: vec!["10.99.0.0/16".parse().unwrap()], ..Settings::default() };
        let _ =
            testns::sh("ipvsadm -A -t 10.99.0.1:80; ipvsadm -A -t 10.98.0.1:80; ipset create other hash:ip");
        let mut applier = applier(excluded);
        syncs(&mut applier, &mut cluster);
        // As with kube-proxy, what is not excluded is taken for a leftover.
        let servers = testns::sh("ipvsadm -Sn");
        assert!(servers.contains("10.99.0.1:80") && !servers.contains("10.98.0.1:80"), "{servers}");

        let cleaned = cleanup();
        assert!(cleaned.removed.len() == 5 && cleaned.failed.is_empty(), "{cleaned:?}");
        assert_eq!(testns::sh("ipvsadm -Sn"), "-A -t 10.99.0.1:80 -s wlc\n");
        assert_eq!(testns::sh("ipset list -n"), "other\n");
        assert!(Wire::open().unwrap().up("kube-ipvs0").is_err());
        let tool = back_end().unwrap();
        let left = testns::sh(&format!("iptables-{tool}-save; ip6tables-{tool}-save"));
        assert!(!left.contains("KUBE-"), "{left}");
        let again = cleanup();
        assert!(again.removed.is_empty() && again.failed.is_empty(), "{again:?}");
    });
}

const PATIENCE: Duration = Duration::from_secs(30);
