//! Change tracking and the joining of slices.

use super::*;
use crate::{Port, SliceEndpoint, SlicePort};

/// A cluster with these services, seen from the node `here`.
fn cluster(services: &[(&str, Service)]) -> Cluster {
    let mut cluster = Cluster::new(Node::new("here", []));
    for (service, configuration) in services {
        cluster.set_service(&name(service), configuration.clone());
    }
    cluster
}

fn two() -> Cluster {
    cluster(&[("a", service("10.0.0.1", Port::tcp("", 80))), ("b", service("10.0.0.2", Port::tcp("", 80)))])
}

fn service(ip: &str, port: Result<Port, crate::Error>) -> Service {
    Service::new([ip.parse().unwrap()], [port.unwrap()]).unwrap()
}

fn slice(owner: &str, endpoints: impl IntoIterator<Item = SliceEndpoint>) -> Slice {
    Slice::new(name(owner), Family::Ipv4, [SlicePort::tcp("", 8080).unwrap()], endpoints).unwrap()
}

fn endpoint(ip: &str) -> SliceEndpoint {
    SliceEndpoint::new(ip.parse().unwrap())
}

fn name(text: &str) -> ServiceName {
    ServiceName::new("demo", text).unwrap()
}

fn changed(cluster: &mut Cluster) -> Vec<String> {
    cluster.take_changes().names().map(ToString::to_string).collect()
}

#[test]
fn what_changed_is_told_once_and_exactly() {
    let mut cluster = two();
    assert_eq!(changed(&mut cluster), ["demo/a", "demo/b"]);
    assert!(!cluster.has_changes());

    let before = cluster.service(&name("a")).cloned();
    cluster.set_service(&name("a"), before.clone());
    assert!(!cluster.has_changes(), "set to what it is");

    cluster.set_service(&name("a"), None);
    assert!(cluster.has_changes());
    cluster.set_service(&name("a"), before);
    assert!(!cluster.has_changes(), "changed and changed back");

    cluster.set_service(&name("a"), None);
    cluster.set_service(&name("c"), None);
    let changes = cluster.take_changes();
    assert_eq!(changes.names().map(ToString::to_string).collect::<Vec<_>>(), ["demo/a"]);
    assert_eq!(changes.iter().next().unwrap().ports_before(Family::Ipv4, "here").len(), 1);
    assert!(cluster.ports(&name("a"), Family::Ipv4).is_empty());
    assert_eq!(cluster.service_count(), 1);
}

#[test]
fn slices_change_their_service() {
    let mut cluster = two();
    cluster.take_changes();
    let (slice_name, of_a) = (SliceName::new("demo", "s"), slice("a", [endpoint("10.244.0.1")]));
    cluster.set_slice(&slice_name, Some(of_a.clone()));
    assert_eq!(changed(&mut cluster), ["demo/a"]);
    cluster.set_slice(&slice_name, Some(of_a));
    assert_eq!(changed(&mut cluster), [""; 0]);

    cluster.set_slice(&slice_name, slice("b", [endpoint("10.244.0.1")]));
    assert_eq!(changed(&mut cluster), ["demo/a", "demo/b"], "its label names another service now");
    assert_eq!(cluster.ports(&name("a"), Family::Ipv4)[0].endpoints.len(), 0);
    assert_eq!(cluster.ports(&name("b"), Family::Ipv4)[0].endpoints.len(), 1);

    cluster.set_slice(&slice_name, None);
    assert_eq!(changed(&mut cluster), ["demo/b"]);
    cluster.set_slice(&slice_name, None);
    assert_eq!(changed(&mut cluster), [""; 0], "an unknown slice was removed");
}

#[test]
fn a_new_zone_concerns_every_service_even_one_that_goes_at_once() {
    let mut cluster = two();
    cluster.take_changes();
    let node = Node { zone: Some("z".to_owned()), ..cluster.node().clone() };
    cluster.set_node(node.clone());
    cluster.set_service(&name("a"), None);
    assert_eq!(changed(&mut cluster), ["demo/a", "demo/b"]);
    cluster.set_node(node);
    assert_eq!(changed(&mut cluster), [""; 0]);
}

#[test]
fn connection_tracking_is_concerned_by_udp_alone() {
    let udp = service("10.0.0.2", Port::udp("", 53));
    let mut cluster = cluster(&[("a", service("10.0.0.1", Port::tcp("", 80))), ("u", udp)]);
    assert!(cluster.take_changes().concerns_udp(&cluster));
    cluster.set_service(&name("a"), None);
    assert!(!cluster.take_changes().concerns_udp(&cluster));
    cluster.set_service(&name("u"), None);
    assert!(cluster.take_changes().concerns_udp(&cluster), "it was one");
}

#[test]
fn endpoints_are_joined_sorted_and_counted_once() {
    let mut cluster = cluster(&[("a", service("10.0.0.1", Port::tcp("", 80)))]);
    let slices = [
        [endpoint("10.244.0.9").on_node("here"), SliceEndpoint { ready: false, ..endpoint("10.244.0.10") }]
            .to_vec(),
        [
            endpoint("10.244.0.10").on_node("there"),
            SliceEndpoint { terminating: true, ..endpoint("10.244.0.9") },
        ]
        .to_vec(),
        vec![endpoint("10.244.0.11")],
    ];
    for (index, endpoints) in slices.into_iter().enumerate() {
        cluster.set_slice(&SliceName::new("demo", &format!("s{index}")), slice("a", endpoints));
    }
    let ports = cluster.ports(&name("a"), Family::Ipv4);
    let read: Vec<_> = ports[0]
        .endpoints
        .iter()
        .map(|e| (e.address.to_string(), e.is_local, e.ready, e.terminating))
        .collect();
    assert_eq!(
        read,
        [
            ("10.244.0.10:8080".to_owned(), false, true, false), // the ready copy wins
            ("10.244.0.11:8080".to_owned(), false, true, false),
            ("10.244.0.9:8080".to_owned(), true, true, false), // so does the one of this node
        ]
    );
    assert!(cluster.ports(&name("a"), Family::Ipv6).is_empty());
}

#[test]
fn the_copy_of_an_endpoint_that_counts_does_not_depend_on_the_order_of_slices() {
    // What an endpoint is, as (ready, serving, terminating), and its node.
    let copy = |(ready, serving, terminating): (bool, bool, bool), node: Option<&str>| {
        let copy = SliceEndpoint { ready, serving, terminating, ..endpoint("10.244.0.9") };
        SliceEndpoint { node: node.map(Into::into), ..copy }
    };
    let (ready, starting) = ((true, true, false), (false, false, false));
    let (draining, ended) = ((false, true, true), (false, false, true));
    // The first of a row counts.
    let cases = [
        [(ready, None), (starting, None)],
        [(ready, None), (draining, Some("here"))],
        [(ready, None), (ended, None)],
        [(ready, Some("here")), (ready, Some("there"))],
        [(ready, Some("here")), (ready, None)],
        [((true, true, true), Some("here")), (ready, Some("there"))],
        [(starting, None), (draining, Some("here"))], // the address of a pod that ends has a new one
        [(draining, None), (ended, Some("here"))],
    ];
    for [best, other] in cases {
        for same_slice in [true, false] {
            for order in [[best, other], [other, best]] {
                let mut cluster = cluster(&[("a", service("10.0.0.1", Port::tcp("", 80)))]);
                let copies = order.map(|(conditions, node)| copy(conditions, node));
                let slices =
                    if same_slice { vec![copies.to_vec()] } else { copies.map(|c| vec![c]).to_vec() };
                for (index, endpoints) in slices.into_iter().enumerate() {
                    cluster.set_slice(&SliceName::new("demo", &format!("s{index}")), slice("a", endpoints));
                }
                let ports = cluster.ports(&name("a"), Family::Ipv4);
                let [found] = &ports[0].endpoints[..] else { panic!("{ports:?}") };
                let (conditions, node) = best;
                assert_eq!((found.ready, found.serving, found.terminating), conditions, "{order:?}");
                assert_eq!(found.is_local, node == Some("here"), "{order:?}");
            }
        }
    }
}

#[test]
fn a_slice_port_serves_the_service_port_of_its_name_and_protocol() {
    let ports = [Port::tcp("x", 1), Port::tcp("y", 2), Port::udp("z", 1)].map(Result::unwrap);
    let x = Service::new(["10.0.0.1".parse().unwrap()], ports).unwrap();
    let mut cluster = cluster(&[("a", x)]);
    let ports = [SlicePort::tcp("x", 81), SlicePort::tcp("z", 83), SlicePort::udp("x", 84)];
    let slice =
        Slice::new(name("a"), Family::Ipv4, ports.map(Result::unwrap), [endpoint("10.244.0.9")]).unwrap();
    cluster.set_slice(&SliceName::new("demo", "s"), slice);
    let read: Vec<_> = cluster
        .ports(&name("a"), Family::Ipv4)
        .iter()
        .map(|p| p.endpoints.iter().map(|e| e.address.port()).collect::<Vec<_>>())
        .collect();
    assert_eq!(read, [vec![81], vec![], vec![]]);
}

#[test]
fn changes_are_counted_and_the_times_behind_them_kept_until_they_are_taken() {
    let mut cluster = Cluster::default();
    let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    let (slice_name, slice) = (SliceName::new("demo", "a-1"), slice("a", [endpoint("10.1.0.1")]));
    let written = |seconds| Some(Slice { last_change: Some(at(seconds)), ..slice.clone() });

    cluster.set_slice(&slice_name, written(1));
    cluster.set_slice(&slice_name, written(1));
    cluster.set_slice(&slice_name, written(2));
    let counts = cluster.change_counts();
    assert_eq!((counts.endpoints, counts.endpoints_pending), (2, 1), "the second time nothing was new");
    assert_eq!((counts.services, counts.services_pending), (0, 0));
    let changes = cluster.take_changes();
    let change = changes.iter().next().unwrap();
    assert_eq!(change.triggers(), [(Family::Ipv4, at(1)), (Family::Ipv4, at(2))]);
    assert_eq!(cluster.change_counts().endpoints_pending, 0);

    cluster.set_slice(&slice_name, written(3));
    cluster.set_slice(&slice_name, None);
    let changes = cluster.take_changes();
    assert!(changes.iter().next().unwrap().triggers().is_empty(), "of a removed slice no time is told");
    assert_eq!(cluster.change_counts().endpoints, 4);
}

#[test]
fn services_with_a_local_policy_are_found_without_looking_at_the_others() {
    let mut cluster = two();
    let names = |cluster: &Cluster| -> Vec<String> {
        cluster.local_services().map(|(name, _)| name.to_string()).collect()
    };
    assert!(names(&cluster).is_empty());
    let plain = cluster.service(&name("b")).unwrap().clone();
    cluster.set_service(&name("b"), plain.clone().with_internal_local(true));
    cluster.set_service(&name("a"), plain.clone().with_external_local(true));
    assert_eq!(names(&cluster), ["demo/a", "demo/b"]);
    cluster.set_service(&name("b"), Some(plain));
    cluster.set_service(&name("a"), None);
    assert!(names(&cluster).is_empty());
}
