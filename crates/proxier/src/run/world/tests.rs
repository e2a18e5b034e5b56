//! Updates in any order, good and bad.

use super::*;
use crate::model::Family;
use crate::source;

fn object(text: &str) -> Object {
    let mut found = None;
    source::read_str("test.yaml", text, |manifest| found = Some(manifest.object))
        .expect("a manifest that parses");
    found.expect("an object")
}

fn service(ip: &str) -> Object {
    object(&format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: web}}\nspec: {{clusterIP: {ip}, ports: [{{port: 80}}]}}\n"
    ))
}

fn slice(address: &str) -> Object {
    object(&format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{namespace: demo, name: web-1, labels: {{kubernetes.io/service-name: web}}}}\naddressType: IPv4\nports: [{{port: 8080}}]\nendpoints: [{{addresses: [{address}]}}]\n"
    ))
}

fn node(extra: &str) -> Object {
    object(&format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: here}}\nspec: {{podCIDRs: [10.244.0.0/24]}}\nstatus: {{addresses: [{{type: InternalIP, address: 192.168.0.2}}]}}\n{extra}"
    ))
}

fn world() -> World {
    World::new(ThisNode { name: "here".to_owned(), ..ThisNode::default() })
}

fn web() -> ServiceName {
    ServiceName::new("demo", "web").expect("a name")
}

#[test]
fn an_invalid_slice_leaves_its_service_out_until_it_is_mended_or_gone() {
    for mend in [
        Update::Apply(slice("10.0.0.2")),
        Update::Delete(ObjectName::EndpointSlice { namespace: "demo".to_owned(), name: "web-1".to_owned() }),
        Update::Replace(Kind::EndpointSlice, Vec::new()),
    ] {
        let mut world = world();
        world.apply(Update::Apply(service("10.96.0.1")));
        world.apply(Update::Apply(slice("10.0.0.1")));
        world.take_changes();
        let effect = world.apply(Update::Apply(slice("10.0.0.x")));
        assert_eq!(effect.problems.len(), 1);
        assert!(effect.problems[0].ends_with("(service demo/web is left out)"), "{:?}", effect.problems);
        assert!(effect.is_change && world.cluster().service(&web()).is_none());
        // Its service changes meanwhile, which is not lost.
        world.apply(Update::Apply(service("10.96.0.2")));
        assert!(world.cluster().service(&web()).is_none());
        world.apply(mend);
        let ip = world.cluster().service(&web()).and_then(|service| service.cluster_ip(Family::V4));
        assert_eq!(ip.map(|ip| ip.to_string()).as_deref(), Some("10.96.0.2"));
    }
}

#[test]
fn an_invalid_service_is_left_out_alone_and_named() {
    let mut world = world();
    world.apply(Update::Apply(service("10.96.0.1")));
    let effect = world.apply(Update::Apply(service("10.96.0")));
    assert_eq!(
        effect.problems,
        ["Service demo/web: spec.clusterIP: \"10.96.0\" is not an IP address (service demo/web is left out)"]
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
            "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {{name: c}}\nspec: {{cidrs: [{text}]}}\n"
        ))
    };
    let known = |world: &World| {
        world.cluster().service_cidrs(Family::V4).map(|net| net.to_string()).collect::<Vec<_>>()
    };
    assert!(world.apply(Update::Apply(cidr("10.96.0.0/12"))).is_change);
    assert_eq!(known(&world), ["10.96.0.0/12"]);
    assert!(!world.apply(Update::Apply(cidr("10.96.0.0/12"))).is_change);
    let effect = world.apply(Update::Apply(cidr("10.96.0.0/12, nonsense")));
    assert_eq!(effect.problems, ["ServiceCIDR c: spec.cidrs[1]: \"nonsense\" is not a CIDR"]);
    assert!(known(&world).is_empty());
    world.apply(Update::Apply(cidr("10.96.0.0/12")));
    world.apply(Update::Replace(Kind::ServiceCidr, Vec::new()));
    assert!(known(&world).is_empty());
}
