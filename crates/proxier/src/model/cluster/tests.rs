//! Change tracking, joining of slices, and what is left out for a problem.

use super::*;
use crate::model::Found;
use crate::source::read_str;

fn found(text: &str) -> Found {
    let mut found = Found::default();
    read_str("f.yaml", text, |manifest| found.add(manifest)).unwrap();
    found
}

fn cluster(text: &str) -> Cluster {
    let node = Node { name: "here".to_owned(), ..Node::default() };
    let (cluster, problems) = found(text).into_cluster(node);
    assert_eq!(problems, []);
    cluster
}

fn service(name: &str, ip: &str, port: u16) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: {name}}}\nspec: {{clusterIP: {ip}, ports: [{{port: {port}}}]}}\n---\n"
    )
}

fn slice(name: &str, owner: &str, endpoints: &str) -> String {
    format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{namespace: demo, name: {name}, labels: {{kubernetes.io/service-name: {owner}}}}}\naddressType: IPv4\nports: [{{name: '', port: 8080}}]\nendpoints: [{endpoints}]\n---\n"
    )
}

fn name(text: &str) -> ServiceName {
    ServiceName::new("demo", text).unwrap()
}

fn changed(cluster: &mut Cluster) -> Vec<String> {
    cluster.take_changes().names().map(ToString::to_string).collect()
}

fn slice_of(text: &str) -> (SliceName, Slice) {
    found(text).slices.remove(0)
}

#[test]
fn what_changed_is_told_once_and_exactly() {
    let mut cluster = cluster(&(service("a", "10.0.0.1", 80) + &service("b", "10.0.0.2", 80)));
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
    assert_eq!(changes.iter().next().unwrap().ports_before(Family::V4, "here").len(), 1);
    assert!(cluster.ports(&name("a"), Family::V4).is_empty());
    assert_eq!(cluster.service_count(), 1);
}

#[test]
fn slices_change_their_service() {
    let mut cluster = cluster(&(service("a", "10.0.0.1", 80) + &service("b", "10.0.0.2", 80)));
    cluster.take_changes();
    let (slice_name, of_a) = slice_of(&slice("s", "a", "{addresses: [10.244.0.1]}"));
    cluster.set_slice(&slice_name, Some(of_a.clone()));
    assert_eq!(changed(&mut cluster), ["demo/a"]);
    cluster.set_slice(&slice_name, Some(of_a));
    assert_eq!(changed(&mut cluster), [""; 0]);

    let (_, of_b) = slice_of(&slice("s", "b", "{addresses: [10.244.0.1]}"));
    cluster.set_slice(&slice_name, Some(of_b));
    assert_eq!(changed(&mut cluster), ["demo/a", "demo/b"], "its label names another service now");
    assert_eq!(cluster.ports(&name("a"), Family::V4)[0].endpoints.len(), 0);
    assert_eq!(cluster.ports(&name("b"), Family::V4)[0].endpoints.len(), 1);

    cluster.set_slice(&slice_name, None);
    assert_eq!(changed(&mut cluster), ["demo/b"]);
    cluster.set_slice(&slice_name, None);
    assert_eq!(changed(&mut cluster), [""; 0], "an unknown slice was removed");
}

#[test]
fn a_new_zone_concerns_every_service_even_one_that_goes_at_once() {
    let mut cluster = cluster(&(service("a", "10.0.0.1", 80) + &service("b", "10.0.0.2", 80)));
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
    let udp = service("u", "10.0.0.2", 53).replace("port: 53", "port: 53, protocol: UDP");
    let mut cluster = cluster(&(service("a", "10.0.0.1", 80) + &udp));
    assert!(cluster.take_changes().concerns_udp(&cluster));
    cluster.set_service(&name("a"), None);
    assert!(!cluster.take_changes().concerns_udp(&cluster));
    cluster.set_service(&name("u"), None);
    assert!(cluster.take_changes().concerns_udp(&cluster), "it was one");
}

#[test]
fn endpoints_are_joined_sorted_and_counted_once() {
    let text = service("a", "10.0.0.1", 80)
        + &slice(
            "s1",
            "a",
            "{addresses: [10.244.0.9], nodeName: here}, {addresses: [10.244.0.10], conditions: {ready: false}}",
        )
        + &slice(
            "s2",
            "a",
            "{addresses: [10.244.0.10], nodeName: there}, {addresses: [10.244.0.9], conditions: {terminating: true}}",
        )
        + &slice("s3", "a", "{addresses: []}, {addresses: [010.244.0.011]}");
    let cluster = cluster(&text);
    let ports = cluster.ports(&name("a"), Family::V4);
    let read: Vec<_> = ports[0]
        .endpoints
        .iter()
        .map(|e| (e.address.to_string(), e.is_local, e.ready, e.terminating))
        .collect();
    assert_eq!(
        read,
        [
            ("10.244.0.10:8080".to_owned(), false, true, false), // the later slice wins
            ("10.244.0.11:8080".to_owned(), false, true, false),
            ("10.244.0.9:8080".to_owned(), true, true, false), // a terminating one does not
        ]
    );
    assert!(cluster.ports(&name("a"), Family::V6).is_empty());
}

#[test]
fn a_slice_port_serves_the_service_port_of_its_name_and_protocol() {
    let text = "apiVersion: v1\nkind: Service\nmetadata: {namespace: demo, name: a}\nspec: {clusterIP: 10.0.0.1, ports: [{name: x, port: 1}, {name: y, port: 2}, {name: z, port: 1, protocol: UDP}]}\n---\n"
        .to_owned()
        + &slice("s", "a", "{addresses: [10.244.0.9]}").replace(
            "ports: [{name: '', port: 8080}]",
            "ports: [{name: x, port: 81}, {name: y, port: 0}, {name: y}, {name: z, port: 83}, {name: x, protocol: UDP, port: 84}]",
        );
    let cluster = cluster(&text);
    let read: Vec<_> = cluster
        .ports(&name("a"), Family::V4)
        .iter()
        .map(|p| p.endpoints.iter().map(|e| e.address.port()).collect::<Vec<_>>())
        .collect();
    assert_eq!(read, [vec![81], vec![], vec![]]);
}

#[test]
fn a_service_with_a_problem_is_left_out_alone() {
    let bad_slice = slice("bad-1", "bad", "{addresses: [10.244.0.999]}");
    let cases = [
        (
            service("bad", "10.0.0.999", 80),
            "Service demo/bad: spec.clusterIP: \"10.0.0.999\" is not an IP address (service demo/bad is left out)",
        ),
        (
            service("bad", "10.0.0.1", 80),
            "Service demo/bad: spec.clusterIPs 10.0.0.1 port 80/tcp: duplicate: Service demo/good has it already (service demo/bad is left out)",
        ),
        (
            service("bad", "10.0.0.3", 80) + &bad_slice,
            "EndpointSlice demo/bad-1 of Service demo/bad: endpoints[0].addresses[0]: \"10.244.0.999\" is not an IP address (service demo/bad is left out)",
        ),
    ];
    for (text, message) in cases {
        let text = service("good", "10.0.0.1", 80) + &text + &service("other", "10.0.0.2", 80);
        let (mut cluster, problems) = found(&text).into_cluster(Node::default());
        assert_eq!(changed(&mut cluster), ["demo/good", "demo/other"], "{text}");
        assert!(problems[0].to_string().ends_with(message), "{}", problems[0]);
    }
}

#[test]
fn of_two_manifests_of_one_name_the_first_is_used() {
    let text = service("a", "10.0.0.1", 80)
        + &service("a", "10.0.0.2", 80)
        + &slice("s", "a", "{addresses: [10.244.0.1]}")
        + &slice("s", "a", "{addresses: [10.244.0.2]}");
    let (cluster, problems) = found(&text).into_cluster(Node::default());
    let messages: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "f.yaml, document 2, line 6: Service demo/a: metadata.name: duplicate: the first manifest of this name is used",
            "f.yaml, document 4, line 18: EndpointSlice demo/s of Service demo/a: metadata.name: duplicate: the first manifest of this name is used",
        ]
    );
    let ports = cluster.ports(&name("a"), Family::V4);
    assert_eq!(ports[0].cluster_ip.to_string(), "10.0.0.1");
    assert_eq!(ports[0].endpoints[0].address.to_string(), "10.244.0.1:8080");
}

#[test]
fn two_services_cannot_share_a_node_port_or_an_external_address() {
    let with = |name: &str, ip: &str, extra: &str| {
        service(name, ip, 80).replace("ports: [{port: 80}]", &format!("type: LoadBalancer, {extra}"))
    };
    let cases = [
        ("ports: [{port: 80, nodePort: 30000}]", "spec.ports[0].nodePort 30000/tcp"),
        ("externalIPs: [1.2.3.4], ports: [{port: 80}]", "spec.externalIPs 1.2.3.4 port 80/tcp"),
    ];
    for (extra, field) in cases {
        let text = with("a", "10.0.0.1", extra) + &with("b", "10.0.0.2", extra);
        let (cluster, problems) = found(&text).into_cluster(Node::default());
        assert_eq!(cluster.service_count(), 1);
        assert_eq!(problems[0].invalid.field, field);
        assert_eq!(problems[0].left_out, Some(name("b")));
    }
    let udp = with("a", "10.0.0.1", "ports: [{port: 80, nodePort: 30000}]")
        + &with("b", "10.0.0.2", "ports: [{port: 80, nodePort: 30000, protocol: UDP}]");
    assert_eq!(found(&udp).problems, []);
}

#[test]
fn nodes_and_service_cidrs_are_read() {
    let text = "apiVersion: v1\nkind: Node\nmetadata: {name: n, labels: {topology.kubernetes.io/zone: z}}\nspec: {podCIDR: 10.244.0.0/24, podCIDRs: [10.244.0.0/24, 'fd00::/64']}\nstatus: {addresses: [{type: Hostname, address: n}, {type: ExternalIP, address: 5.5.5.5}, {type: InternalIP, address: 192.168.0.2}]}\n---\napiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: kubernetes}\nspec: {cidrs: [172.30.0.0/16, 'fd01::/108']}\n";
    let found = found(text);
    let node = found.nodes[0].clone();
    assert_eq!((node.name.as_str(), node.zone.as_deref()), ("n", Some("z")));
    assert_eq!(
        node.primary(Family::V4).unwrap().to_string(),
        "192.168.0.2",
        "the internal address comes first"
    );
    assert_eq!(node.pod_cidrs.len(), 2);
    let (cluster, _) = found.into_cluster(node);
    assert_eq!(
        cluster.service_cidrs(Family::V4).map(|c| c.to_string()).collect::<Vec<_>>(),
        ["172.30.0.0/16"]
    );
    assert_eq!(cluster.service_cidrs(Family::V6).map(|c| c.to_string()).collect::<Vec<_>>(), ["fd01::/108"]);
}

#[test]
fn changes_are_counted_and_the_times_behind_them_kept_until_they_are_taken() {
    let mut cluster = Cluster::default();
    let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    let (slice_name, slice) = slice_of(&slice("a-1", "a", "{addresses: [10.1.0.1]}"));
    let written = |seconds| Some(Slice { last_change: Some(at(seconds)), ..slice.clone() });

    cluster.set_slice(&slice_name, written(1));
    cluster.set_slice(&slice_name, written(1));
    cluster.set_slice(&slice_name, written(2));
    let counts = cluster.change_counts();
    assert_eq!((counts.endpoints, counts.endpoints_pending), (2, 1), "the second time nothing was new");
    assert_eq!((counts.services, counts.services_pending), (0, 0));
    let changes = cluster.take_changes();
    let change = changes.iter().next().unwrap();
    assert_eq!(change.triggers(), [(Family::V4, at(1)), (Family::V4, at(2))]);
    assert_eq!(cluster.change_counts().endpoints_pending, 0);

    cluster.set_slice(&slice_name, written(3));
    cluster.set_slice(&slice_name, None);
    let changes = cluster.take_changes();
    assert!(changes.iter().next().unwrap().triggers().is_empty(), "of a removed slice no time is told");
    assert_eq!(cluster.change_counts().endpoints, 4);
}

#[test]
fn services_with_a_local_policy_are_found_without_looking_at_the_others() {
    let mut cluster = cluster(&(service("a", "10.0.0.1", 80) + &service("b", "10.0.0.2", 80)));
    let names = |cluster: &Cluster| -> Vec<String> {
        cluster.local_services().map(|(name, _)| name.to_string()).collect()
    };
    assert!(names(&cluster).is_empty());
    let plain = cluster.service(&name("b")).unwrap().clone();
    cluster.set_service(&name("b"), Some(Service { internal_local: true, ..plain.clone() }));
    cluster.set_service(&name("a"), Some(Service { external_local: true, ..plain.clone() }));
    assert_eq!(names(&cluster), ["demo/a", "demo/b"]);
    cluster.set_service(&name("b"), Some(plain));
    cluster.set_service(&name("a"), None);
    assert!(names(&cluster).is_empty());
}
