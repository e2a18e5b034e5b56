//! Updates in any order, good and bad.

use std::path::Path;

use sluicegate_services::Family;

use super::*;
use crate::source;

fn object(text: &str) -> Object {
    let mut found = None;
    source::read_str("test.yaml", text, |manifest| found = Some(manifest.object))
        .expect("a manifest that parses");
    found.expect("an object")
}

fn service(ip: &str) -> Object {
    object(&format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: web}}\n\
            spec: {{clusterIP: {ip}, ports: [{{port: 80}}]}}\n"
    ))
}

fn slice(address: &str) -> Object {
    object(&format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
            metadata: {{namespace: demo, name: web-1, labels: {{kubernetes.io/service-name: web}}}}\n\
            addressType: IPv4\nports: [{{port: 8080}}]\nendpoints: [{{addresses: [{address}]}}]\n"
    ))
}

fn node(extra: &str) -> Object {
    object(&format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: here}}\nspec: {{podCIDRs: [10.244.0.0/24]}}\n\
            status: {{addresses: [{{type: InternalIP, address: 192.168.0.2}}]}}\n{extra}"
    ))
}

fn world() -> World {
    World::new(ThisNode { name: "here".to_owned(), ..ThisNode::default() })
}

fn web() -> ServiceName {
    ServiceName::new("demo", "web").expect("a name")
}

#[test]
fn an_invalid_endpoint_or_slice_leaves_its_service_in_place() {
    let mut world = world();
    world.apply(Update::Apply(service("10.96.0.1")));
    world.apply(Update::Apply(slice("10.0.0.1")));
    world.take_changes();
    let endpoints = |world: &World| -> Vec<String> {
        let ports = world.cluster().ports(&web(), Family::Ipv4);
        ports[0].endpoints.iter().map(|endpoint| endpoint.address.to_string()).collect()
    };
    let effect = world.apply(Update::Apply(slice("10.0.0.999]}, {addresses: [10.0.0.2")));
    assert_eq!(
        effect.problems,
        ["EndpointSlice demo/web-1 of Service demo/web: endpoints[0].addresses[0]: expected an \
                IP address, found \"10.0.0.999\" (left out)"]
    );
    assert_eq!(endpoints(&world), ["10.0.0.2:8080"]);

    let Object::EndpointSlice(mut odd) = slice("10.0.0.3") else { panic!("a slice") };
    odd.address_type = "IPv5".to_owned();
    let effect = world.apply(Update::Apply(Object::EndpointSlice(odd)));
    assert_eq!(effect.problems.len(), 1);
    assert!(endpoints(&world).is_empty(), "nothing of the slice can be used, and its service stays");
    world.apply(Update::Apply(slice("10.0.0.4")));
    assert_eq!(endpoints(&world), ["10.0.0.4:8080"]);
}

#[test]
fn objects_that_are_followed_are_judged_as_those_that_are_read_once() {
    let mut manifests = source::Manifests::default();
    let mut world = world();
    let mut told = Vec::new();
    let objects = [
        service("10.96.0.1"),
        slice("10.0.0.1]}, {addresses: [10.0.0.999"),
        object(
            "apiVersion: v1\nkind: Service\nmetadata: {namespace: demo, name: bad}\n\
             spec: {clusterIP: 10.96.0, ports: [{port: 80}]}\n",
        ),
        object(
            "apiVersion: v1\nkind: Service\nmetadata: {namespace: demo, name: Bad.Name}\n\
             spec: {clusterIP: 10.96.0.2, ports: [{port: 80}]}\n",
        ),
        object(
            "apiVersion: v1\nkind: Service\nmetadata: {namespace: demo, name: headless}\n\
             spec: {clusterIP: None, externalIPs: [192.0.2.1], ports: [{port: 80}]}\n",
        ),
        object(
            "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: c}\n\
             spec: {cidrs: [10.96.0.0/12, nonsense]}\n",
        ),
    ];
    for object in objects {
        told.extend(world.apply(Update::Apply(object.clone())).problems);
        let origin = source::Origin { file: Path::new("f").into(), document: 1, line: 1 };
        manifests.add(source::Manifest { object, origin, unknown: Vec::new() });
    }
    let (cluster, problems) = manifests.into_cluster(world.cluster().node().clone());
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        told.iter().map(|text| format!("f, document 1, line 1: {text}")).collect::<Vec<_>>()
    );
    assert_eq!(problems.len(), 4, "{problems:?}");
    let content = |cluster: &Cluster| {
        let not_served: Vec<_> =
            cluster.not_served().map(|(name, addresses)| (name.clone(), addresses.to_vec())).collect();
        let ports = format!("{:?}", cluster.ports(&web(), Family::Ipv4));
        let networks: Vec<_> = cluster.service_cidrs(Family::Ipv4).collect();
        (cluster.service_count(), not_served, ports, networks)
    };
    assert_eq!(content(&cluster), content(world.cluster()));
    assert_eq!((content(&cluster).0, content(&cluster).1.len()), (1, 1));
}

#[test]
fn what_an_object_is_not_served_at_is_forgotten_when_it_becomes_invalid() {
    let mut world = world();
    let headless = |ip: &str| {
        object(&format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: web}}\n\
             spec: {{clusterIP: {ip}, externalIPs: [192.0.2.1], ports: [{{port: 80}}]}}\n"
        ))
    };
    world.apply(Update::Apply(headless("None")));
    assert_eq!(world.cluster().not_served().count(), 1);
    world.apply(Update::Apply(headless("10.96.0")));
    assert_eq!(world.cluster().not_served().count(), 0);
}

#[test]
fn an_invalid_item_of_a_live_service_is_left_out_alone() {
    let mut world = world();
    world.apply(Update::Apply(service("10.96.0.1")));
    let text = "apiVersion: v1\nkind: Service\nmetadata: {namespace: demo, name: web}\n\
        spec: {clusterIP: 10.96.0.1, type: LoadBalancer, \
                externalIPs: [1.2.3.4.5], loadBalancerSourceRanges: [nonsense], sessionAffinity: ClientIP, \
                sessionAffinityConfig: {clientIP: {timeoutSeconds: 0}}, ports: [{port: 80}]}\n";
    let effect = world.apply(Update::Apply(object(text)));
    assert_eq!(effect.problems.len(), 3, "{:?}", effect.problems);
    let service = world.cluster().service(&web()).expect("it stays");
    assert_eq!(service.affinity_seconds, Some(10800));
    assert_eq!(service.source_ranges(Family::Ipv4).map(Iterator::count), Some(0), "nobody");
}

#[test]
fn an_invalid_service_is_left_out_alone_and_named() {
    let mut world = world();
    world.apply(Update::Apply(service("10.96.0.1")));
    let effect = world.apply(Update::Apply(service("10.96.0")));
    assert_eq!(
        effect.problems,
        ["Service demo/web: spec.clusterIP: expected an IP address, found \"10.96.0\" \
            (service demo/web is left out)"]
    );
    assert!(world.cluster().service(&web()).is_none());
    world.apply(Update::Apply(service("10.96.0.1")));
    assert!(world.cluster().service(&web()).is_some());
}

#[test]
fn a_refused_service_waits_longer_each_time_and_is_tried_again_when_it_or_its_slice_changes() {
    let start = Instant::now();
    let second = Duration::from_secs(1);
    let mut world = world();
    world.apply(Update::Apply(service("10.96.0.1")));
    world.refuse(&web(), "no".to_owned(), second, start);
    assert_eq!(
        world.refused().map(|(name, why)| format!("{name} {why}")).collect::<Vec<_>>(),
        ["demo/web no"]
    );
    world.apply(Update::Apply(service("10.96.0.1")));
    assert!(world.cluster().service(&web()).is_none(), "the same once more is no reason to try");
    world.retry(start, false);
    assert!(world.cluster().service(&web()).is_none());
    world.retry(start + second, false);
    assert!(world.cluster().service(&web()).is_some(), "its time has come");
    assert_eq!(world.refused().count(), 0, "on trial");
    world.refuse(&web(), "no".to_owned(), second, start + second);
    world.retry(start + 2 * second, false);
    assert!(world.cluster().service(&web()).is_none(), "it waits twice as long now");
    world.apply(Update::Apply(slice("10.0.0.1")));
    assert!(world.cluster().service(&web()).is_some(), "other endpoints are another matter");

    world.refuse(&web(), "no".to_owned(), second, start);
    world.retry(start, true);
    world.accepted();
    world.refuse(&web(), "no".to_owned(), second, start);
    world.retry(start + second, false);
    assert!(world.cluster().service(&web()).is_some(), "what was accepted begins anew");
    world.apply(Update::Delete(ObjectName::Service { namespace: "demo".to_owned(), name: "web".to_owned() }));
    world.accepted();
    assert!(world.cluster().service(&web()).is_none());
}

#[test]
fn what_a_list_does_not_have_is_deleted_at_its_end() {
    let named = |name: &str| {
        let text = format!(
            "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {{name: c{name}}}\n\
                spec: {{cidrs: [10.{name}.0.0/16]}}\n"
        );
        object(&text)
    };
    let known = |world: &World| {
        world.cluster().service_cidrs(Family::Ipv4).map(|net| net.to_string()).collect::<Vec<_>>()
    };
    let mut world = world();
    // Of a first list, which begins twice.
    world.apply(Update::Listing(Kind::ServiceCidr));
    world.apply(Update::Apply(named("1")));
    world.apply(Update::Listing(Kind::ServiceCidr));
    world.apply(Update::Apply(named("2")));
    world.apply(Update::Apply(named("3")));
    assert_eq!(known(&world).len(), 3);
    world.apply(Update::Listed(Kind::ServiceCidr));
    assert_eq!(known(&world), ["10.2.0.0/16", "10.3.0.0/16"]);
    // What the first list has and cannot be read is told, unless it was known.
    let mut first = World::new(ThisNode::default());
    first.apply(Update::Apply(named("1")));
    first.apply(Update::Listing(Kind::ServiceCidr));
    let mut problems = |name: Option<&str>| {
        let name = name.map(|name| ObjectName::ServiceCidr { name: name.to_owned() });
        first.apply(Update::Unreadable(Kind::ServiceCidr, name, "invalid type".to_owned())).problems
    };
    assert!(problems(Some("c1")).is_empty());
    let told = "cannot be read and was not since the start: it is left out, and what an earlier run has programmed \
                for it is removed";
    assert_eq!(problems(Some("c9")), [format!("ServiceCIDR c9 {told}")]);
    assert_eq!(problems(None), [format!("a ServiceCIDR without a name {told}")]);
    // Of another, while an object of another kind comes.
    world.apply(Update::Listing(Kind::ServiceCidr));
    world.apply(Update::Apply(slice("10.0.0.1")));
    world.apply(Update::Apply(named("3")));
    assert!(world.apply(Update::Listed(Kind::ServiceCidr)).is_change);
    assert_eq!(known(&world), ["10.3.0.0/16"]);
    // What it has and cannot be read stays, and all of them where that may be any.
    let name = |name: &str| Some(ObjectName::ServiceCidr { name: name.to_owned() });
    let unreadable = |name| Update::Unreadable(Kind::ServiceCidr, name, "invalid type".to_owned());
    world.apply(Update::Apply(named("4")));
    for (which, left) in [(name("c4"), &["10.4.0.0/16"][..]), (None, &["10.4.0.0/16"])] {
        world.apply(Update::Listing(Kind::ServiceCidr));
        assert!(world.apply(unreadable(which)).problems.is_empty());
        world.apply(Update::Listed(Kind::ServiceCidr));
        assert_eq!(known(&world), left);
    }
    world.apply(Update::Apply(named("3")));
    world.apply(Update::Delete(ObjectName::ServiceCidr { name: "c4".to_owned() }));
    // One whose beginning was not sent deletes nothing.
    world.apply(Update::Listed(Kind::ServiceCidr));
    assert_eq!(known(&world), ["10.3.0.0/16"]);
}

#[test]
fn only_this_node_counts_flags_stand_above_it_and_one_that_is_gone_is_leaving() {
    let this = ThisNode {
        name: "here".to_owned(),
        addresses: vec!["10.1.1.1".parse().expect("an address"), "0.0.0.0".parse().expect("an address")],
        ..ThisNode::default()
    };
    let mut world = World::new(this);
    assert_eq!(world.cluster().node().name, "here");
    let effect = world.apply(Update::Replace(Kind::Node, vec![node("")]));
    assert!(effect.is_node && effect.is_change);
    let addresses: Vec<_> = world.cluster().node().addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.1.1.1", "192.168.0.2"]);
    assert_eq!(world.cluster().node().pod_cidrs.len(), 1);
    assert!(!world.apply(Update::Apply(node(""))).is_node, "it is as it was");
    let other = object("apiVersion: v1\nkind: Node\nmetadata: {name: there}\n");
    assert!(!world.apply(Update::Apply(other)).is_change);
    let effect = world.apply(Update::Replace(Kind::Node, Vec::new()));
    assert!(effect.is_node && world.cluster().node().is_leaving);
    assert_eq!(world.cluster().node().addresses.len(), 2, "what was known stays in use");
}

#[test]
fn networks_of_cluster_ips_come_and_go() {
    let mut world = world();
    let cidr = |text: &str| {
        object(&format!(
            "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {{name: c}}\n\
                spec: {{cidrs: [{text}]}}\n"
        ))
    };
    let known = |world: &World| {
        world.cluster().service_cidrs(Family::Ipv4).map(|net| net.to_string()).collect::<Vec<_>>()
    };
    assert!(world.apply(Update::Apply(cidr("10.96.0.0/12"))).is_change);
    assert_eq!(known(&world), ["10.96.0.0/12"]);
    assert!(!world.apply(Update::Apply(cidr("10.96.0.0/12"))).is_change);
    let effect = world.apply(Update::Apply(cidr("10.96.0.0/12, nonsense")));
    assert_eq!(
        effect.problems,
        ["ServiceCIDR c: spec.cidrs[1]: expected a CIDR, found \"nonsense\" (left out)"]
    );
    assert_eq!(known(&world), ["10.96.0.0/12"]);
    world.apply(Update::Replace(Kind::ServiceCidr, Vec::new()));
    assert!(known(&world).is_empty());
}

/// 64 tables of 4 ports fit into the bound. Nobody is told before all are listed, since older ones may be to come.
#[test]
fn a_service_without_slots_for_its_table_is_told_once() {
    let service = |number: usize| {
        object(&format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: s{number}, creationTimestamp: \
             '2024-01-01T00:{:02}:{:02}Z', annotations: {{sluicegate.github.io/scheduler: 'maglev:4093'}}}}\n\
             spec: {{clusterIP: 10.96.1.{number}, ports: [{{name: a, port: 1}}, {{name: b, port: 2}}, {{name: c, \
             port: 3}}, {{name: d, port: 4}}]}}\n",
            number / 60,
            number % 60
        ))
    };
    let name = |number: usize| ServiceName::new("demo", &format!("s{number}")).unwrap();
    let mut world = world();
    world.apply(Update::Listing(Kind::Service));
    for number in (1..=66).rev() {
        assert_eq!(world.apply(Update::Apply(service(number))).problems, [""; 0]);
    }
    let effect = world.apply(Update::Listed(Kind::Service));
    let told: BTreeSet<_> = effect.concerning.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(told, [name(65), name(66)].into());
    assert!(effect.problems[0].contains("maglev:4093 has no effect: older Services have"), "{effect:?}");
    assert_eq!(world.apply(Update::Apply(service(66))).problems, [""; 0]);
    // One that the kernel refuses has what it asked for when it is tried again, and there is room.
    world.refuse(&name(66), "no".to_owned(), Duration::ZERO, Instant::now());
    world.apply(Update::Delete(ObjectName::of(&service(1))));
    world.apply(Update::Delete(ObjectName::of(&service(2))));
    world.readmit(&name(66));
    let scheduler = |number| world.cluster().service(&name(number)).unwrap().scheduler.unwrap().to_string();
    assert_eq!([scheduler(65), scheduler(66)], ["maglev:4093", "maglev:4093"]);
}

#[test]
fn a_scheduler_that_is_not_used_is_told_of_its_service() {
    let with = |scheduler: &str, more: &str| {
        object(&format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: web, annotations: \
             {{sluicegate.github.io/scheduler: '{scheduler}'}}}}\nspec: {{clusterIP: 10.96.0.1, {more}ports: \
             [{{port: 80}}]}}\n"
        ))
    };
    let told = |world: &mut World, object: Object| {
        let effect = world.apply(Update::Apply(object));
        let concerning: Vec<_> = effect.problems.iter().map(|problem| (web(), problem.clone())).collect();
        assert_eq!(effect.concerning, concerning);
        effect.problems.concat()
    };
    let mut world = world();
    assert_eq!(told(&mut world, with("maglev", "")), "");
    let sticky = told(&mut world, with("maglev", "sessionAffinity: ClientIP, "));
    assert!(
        sticky.ends_with("maglev has no effect: its session affinity decides which endpoint a client gets")
    );
    let unknown = told(&mut world, with("lc", ""));
    assert!(unknown.contains("found \"lc\"; random is used"), "{unknown}");
    world.leave_schedulers_out("the mode has none");
    let unused = told(&mut world, with("maglev", ""));
    assert!(unused.ends_with("maglev has no effect: the mode has none"), "{unused}");
    assert_eq!(told(&mut world, with("random", "")), "");
}
