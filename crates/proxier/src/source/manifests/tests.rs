//! What is left out for a problem, and duplicates.

use sluicegate_services::Family;

use super::*;
use crate::source::read_str;

fn found(text: &str) -> Manifests {
    let mut found = Manifests::default();
    read_str("f.yaml", text, |manifest| found.add(manifest)).unwrap();
    found
}

fn service(name: &str, ip: &str, port: u16) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: {name}}}\n\
            spec: {{clusterIP: {ip}, ports: [{{port: {port}}}]}}\n---\n"
    )
}

fn slice(name: &str, owner: &str, endpoints: &str) -> String {
    format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
            metadata: {{namespace: demo, name: {name}, labels: {{kubernetes.io/service-name: {owner}}}}}\n\
            addressType: IPv4\nports: [{{name: '', port: 8080}}]\nendpoints: [{endpoints}]\n---\n"
    )
}

fn name(text: &str) -> ServiceName {
    ServiceName::new("demo", text).unwrap()
}

fn changed(cluster: &mut Cluster) -> Vec<String> {
    cluster.take_changes().names().map(ToString::to_string).collect()
}

#[test]
fn a_service_without_a_valid_cluster_ip_is_left_out_alone() {
    let text = service("good", "10.0.0.1", 80)
        + &service("bad", "10.0.0.999", 80)
        + &service("other", "10.0.0.2", 80);
    let (mut cluster, problems) = found(&text).into_cluster(Node::default());
    assert_eq!(changed(&mut cluster), ["demo/good", "demo/other"]);
    let message = "Service demo/bad: spec.clusterIP: expected an IP address, found \"10.0.0.999\" (service \
        demo/bad is left out)";
    assert!(problems[0].to_string().ends_with(message), "{}", problems[0]);
}

#[test]
fn an_invalid_endpoint_is_left_out_alone() {
    let endpoints = "{addresses: [10.244.0.999]}, {addresses: [10.244.0.1]}";
    let text = service("web", "10.0.0.1", 80) + &slice("web-1", "web", endpoints);
    let (cluster, problems) = found(&text).into_cluster(Node::default());
    let messages: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        ["f.yaml, document 2, line 6: EndpointSlice demo/web-1 of Service demo/web: \
                endpoints[0].addresses[0]: expected an IP address, found \"10.244.0.999\" (left out)"]
    );
    assert_eq!(cluster.ports(&name("web"), Family::Ipv4)[0].endpoints.len(), 1);
}

#[test]
fn services_that_claim_one_frontend_keep_their_others() {
    let text = service("a", "10.0.0.1", 80).replace("ports:", "externalIPs: [10.0.0.2, 192.0.2.1], ports:")
        + &service("b", "10.0.0.2", 80);
    let (cluster, problems) = found(&text).into_cluster(Node::default());
    assert_eq!(problems, []);
    assert_eq!(cluster.service_count(), 2);
    let external: Vec<_> =
        cluster.ports(&name("a"), Family::Ipv4)[0].external_ips.iter().map(ToString::to_string).collect();
    assert_eq!(external, ["192.0.2.1"]);
    assert_eq!(cluster.conflict_count(), 1);
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
            "f.yaml, document 2, line 6: Service demo/a: metadata.name: duplicate: the first manifest of \
                this name is used (left out)",
            "f.yaml, document 4, line 18: EndpointSlice demo/s of Service demo/a: metadata.name: duplicate: \
                the first manifest of this name is used (left out)",
        ]
    );
    let ports = cluster.ports(&name("a"), Family::Ipv4);
    assert_eq!(ports[0].cluster_ip, "10.0.0.1".parse().ok());
    assert_eq!(ports[0].endpoints[0].address.to_string(), "10.244.0.1:8080");
}

#[test]
fn what_is_invalid_or_not_proxied_takes_no_place_of_a_valid_manifest_of_its_name() {
    let domain_names = slice("s", "a", "{addresses: [a.example]}").replace("IPv4", "FQDN");
    let wrong = [service("a", "10.0.0", 80), domain_names].concat();
    let right = [service("a", "10.0.0.1", 80), slice("s", "a", "{addresses: [10.244.0.1]}")].concat();
    for text in [[&*right, &*wrong].concat(), [&*wrong, &*right].concat()] {
        let (cluster, problems) = found(&text).into_cluster(Node::default());
        assert_eq!(problems.len(), 1, "{problems:?}");
        let ports = cluster.ports(&name("a"), Family::Ipv4);
        assert_eq!(ports[0].endpoints[0].address.to_string(), "10.244.0.1:8080");
    }
}

#[test]
fn nodes_and_service_cidrs_are_read() {
    let text = "apiVersion: v1\nkind: Node\nmetadata: {name: n, labels: {topology.kubernetes.io/zone: z}}\n\
        spec: {podCIDR: 10.244.0.0/24, podCIDRs: [10.244.0.0/24, 'fd00::/64']}\n\
        status: {addresses: [{type: Hostname, address: n}, {type: ExternalIP, address: 5.5.5.5}, {type: \
        InternalIP, address: 192.168.0.2}]}\n---\napiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\n\
        metadata: {name: kubernetes}\nspec: {cidrs: [172.30.0.0/16, 'fd01::/108']}\n";
    let found = found(text);
    let node = found.nodes[0].clone();
    assert_eq!((node.name.as_str(), node.zone.as_deref()), ("n", Some("z")));
    assert_eq!(
        node.primary(Family::Ipv4).unwrap().to_string(),
        "192.168.0.2",
        "the internal address comes first"
    );
    assert_eq!(node.pod_cidrs.len(), 2);
    let (cluster, _) = found.into_cluster(node);
    assert_eq!(
        cluster.service_cidrs(Family::Ipv4).map(|c| c.to_string()).collect::<Vec<_>>(),
        ["172.30.0.0/16"]
    );
    assert_eq!(
        cluster.service_cidrs(Family::Ipv6).map(|c| c.to_string()).collect::<Vec<_>>(),
        ["fd01::/108"]
    );
}

#[test]
fn a_misspelt_field_is_named_with_its_path_and_the_rest_is_used() {
    let yaml = "apiVersion: v1\nkind: Service\nmetadata: {namespace: demo, name: web, nmae: x}\n\
                spec: {clusterIP: 10.0.0.1, selector: {app: web}, ports: [{port: 80, prot: UDP}]}\n---\n";
    let json = r#"{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"namespace": "demo", "name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "ports": [{"port": 8080}], "endpoints": [{"addresses": ["10.1.0.1"], "conditions": {"redy": false}}]}"#;
    let mut all = found(yaml);
    read_str("f.json", json, |manifest| all.add(manifest)).unwrap();
    assert_eq!(
        all.unknown,
        [
            "f.yaml, document 1, line 1: metadata.nmae: there is no such field",
            "f.yaml, document 1, line 1: spec.ports[0].prot: there is no such field",
            "f.json, document 1, line 1: endpoints[0].conditions.redy: there is no such field",
        ]
    );
    assert_eq!((all.services().count(), all.slices().count(), all.problems.len()), (1, 1, 0));
}
