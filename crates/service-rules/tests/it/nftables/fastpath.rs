//! The flowtable: what of it is planned, how devices are followed, and a kernel without. The packets are in
//! `proxier`'s tests of guests, whose kernels have flowtables.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Instant;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::InterfaceName;
use sluicegate_nftables::fake::Fake;
use sluicegate_nftables::probe::{Feature, supports};
use sluicegate_service_rules::Summary;
use sluicegate_service_rules::nftables::{Applier, Fastpath, Layout, Planner, Settings};
use sluicegate_services::{Cluster, Family};

use crate::nftables::scheduling::{all, manifests};
use crate::nftables::world::{World, cluster, settings};

fn name(text: &str) -> InterfaceName {
    InterfaceName::new(text).expect("a name")
}

fn fast(layout: Layout, devices: &[&str]) -> Settings {
    let after = NonZeroU32::new(20).expect("not 0");
    let devices = devices.iter().copied().map(name).collect();
    Settings { fastpath: Some(Fastpath { after, devices }), ..settings(layout) }
}

fn links(list: &[(u32, &str)]) -> BTreeMap<u32, InterfaceName> {
    list.iter().map(|(index, text)| (*index, name(text))).collect()
}

fn some_services() -> Cluster {
    cluster(&manifests(Family::Ipv4, &[None], &all()))
}

fn flowtables(script: &str) -> Vec<&str> {
    script.lines().filter(|line| line.contains("flowtable")).collect()
}

#[test]
fn devices_are_chosen_and_followed_and_all_else_is_as_without() {
    for layout in [Layout::Maps, Layout::Chains] {
        let mut planner = Planner::new(&settings(layout), &some_services(), None).expect("good settings");
        let plain = planner.script().to_string();
        let settings = fast(layout, &["eth*", "cni0"]);
        let mut world = World::new(&settings, &manifests(Family::Ipv4, &[None], &all()));
        world.planner.set_links(&links(&[(1, "lo"), (2, "eth0"), (3, "veth1"), (4, "cni0")]));
        let script = world.planner.script().to_string();
        let added = |family: &str, devices: &str| {
            format!(
                "add flowtable {family} kube-proxy ft {{ hook ingress priority filter ; devices = {{ {devices} }} ; }}"
            )
        };
        let both = |devices: &str| [added("ip", devices), added("ip6", devices)];
        assert_eq!(flowtables(&script), both("\"cni0\", \"eth0\""));
        let rest: Vec<_> = script
            .lines()
            .filter(|line| !line.contains("flowtable") && !line.contains("kube-proxy fastpath"))
            .collect();
        assert_eq!(rest, plain.lines().collect::<Vec<_>>());
        assert!(
            script.contains("kube-proxy fastpath ct status dnat ct packets > 20 flow add @ft"),
            "{script}"
        );

        let mut follow = |list: &[(u32, &str)]| {
            world.planner.set_links(&links(list));
            let changes = world.cluster.take_changes();
            world.planner.sync(&world.cluster, &changes, world.now).to_string()
        };
        assert_eq!(follow(&[(1, "lo"), (2, "eth0"), (4, "cni0"), (5, "veth2")]), "");
        // One that has gone the kernel has removed; another of its name is another device.
        let again = follow(&[(1, "lo"), (4, "cni0"), (6, "eth0"), (7, "eth1")]);
        assert_eq!(again.lines().collect::<Vec<_>>(), both("\"eth0\", \"eth1\""));
        assert_eq!(follow(&[(1, "lo")]), "");
    }
}

#[test]
fn all_devices_are_the_255_oldest_but_the_loop_back() {
    let mut planner = Planner::new(&fast(Layout::Maps, &[]), &some_services(), None).expect("good settings");
    let list: Vec<_> = (1..=300).map(|index| (index, format!("d{index}"))).collect();
    let list: Vec<_> = list.iter().map(|(index, text)| (*index, text.as_str())).chain([(1, "lo")]).collect();
    planner.set_links(&links(&list));
    let script = planner.script().to_string();
    planner.replacement().apply(&mut Fake::new()).expect("the kernel takes so many");
    for line in flowtables(&script) {
        assert_eq!(line.matches("\"d").count(), 255);
        assert!(line.contains("\"d256\"") && !line.contains("\"d257\"") && !line.contains("\"lo\""));
    }
}

#[test]
fn a_comparison_leaves_a_flowtable_alone_and_a_restart_without_removes_it() {
    let (kernel, mut cluster) = (Fake::new(), some_services());
    let sync = |settings: &Settings, cluster: &mut Cluster| {
        let mut applier = Applier::with_transport(kernel.open(), settings.clone());
        applier.sync(cluster, Instant::now()).expect("it is programmed");
        assert!(!applier.is_outdated().expect("no devices are known"));
        applier.difference(cluster).expect("it is compared").to_string()
    };
    for settings in [settings(Layout::Maps), fast(Layout::Maps, &[]), fast(Layout::Maps, &[])] {
        assert_eq!(sync(&settings, &mut cluster), "");
        assert_eq!(kernel.ruleset().flowtables.len(), if settings.fastpath.is_some() { 2 } else { 0 });
    }
    assert_eq!(sync(&settings(Layout::Maps), &mut cluster), "");
    assert!(kernel.ruleset().flowtables.is_empty());
}

#[test]
fn a_kernel_without_flowtables_is_told_once_and_does_without() {
    testns::netns(|| {
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        let has = supports(&mut socket, Feature::Flowtable).expect("it is asked");
        let mut cluster = some_services();
        let mut applier = Applier::open(fast(Layout::Maps, &[])).expect("nf_tables");
        let mut notices = || {
            applier.invalidate();
            Summary::from(applier.sync(&mut cluster, Instant::now()).expect("it is programmed")).notices
        };
        let first = notices();
        assert_eq!(first.len(), usize::from(!has), "{first:?}");
        assert!(first.iter().all(|notice| notice.contains("no flowtables")), "{first:?}");
        assert_eq!(notices(), [""; 0]);
        assert!(!applier.is_outdated().expect("devices are listed"));
    });
}
