//! Every row of the categorisation of endpoints, as a table.

use std::sync::Arc;

use super::*;
use crate::{Hints, PortName, Protocol, Service, ServiceName};

/// A letter each: where and how an endpoint is. `l`ocal or `r`emote; then `R`eady, `T`erminating and serving,
/// `D`ead (terminating, not serving), `U`nready (serving, not terminating); then hints as `@zone` or `#node`.
fn endpoint(index: usize, text: &str) -> Endpoint {
    let mut hints = Hints::default();
    let (state, hint) = text.split_at(text.find(['@', '#']).unwrap_or(text.len()));
    for part in
        hint.split_inclusive(';').map(|part| part.trim_end_matches(';')).filter(|part| !part.is_empty())
    {
        let (kind, name) = part.split_at(1);
        let list = if kind == "@" { &mut hints.zones } else { &mut hints.nodes };
        *list = list.iter().cloned().chain([name.into()]).collect();
    }
    let (ready, serving, terminating) = match &state[1..] {
        "R" => (true, true, false),
        "T" => (false, true, true),
        "D" => (false, false, true),
        "U" => (false, true, false),
        other => panic!("{other}"),
    };
    Endpoint {
        address: format!("10.0.0.{}:80", index + 1).parse().unwrap(),
        is_local: state.starts_with('l'),
        is_remote: !state.starts_with('l'),
        ready,
        serving,
        terminating,
        hints: (!hints.zones.is_empty() || !hints.nodes.is_empty()).then(|| Arc::new(hints)),
    }
}

/// Policies: `i` internal Local, `e` external Local; `x` makes the service reachable from outside.
fn service(policies: &str) -> Service {
    Service {
        cluster_ips: [Some("172.30.0.1".parse().unwrap()), None],
        ports: Box::default(),
        external_ips: policies.contains('x').then(|| "1.2.3.4".parse().unwrap()).into_iter().collect(),
        forbidden_external_ips: Box::default(),
        load_balancer_ips: Box::default(),
        source_ranges: Box::default(),
        external_local: policies.contains('e'),
        internal_local: policies.contains('i'),
        affinity_seconds: None,
        health_check_node_port: None,
        scheduler: None,
        created: None,
        source_ranges_incomplete: false,
    }
}

/// Returns the indices of the endpoints in a list.
fn outcome(policies: &str, endpoints: &str, zone: Option<&str>) -> (String, String, String, bool) {
    let service = service(policies);
    let port = ServicePort {
        name: PortName {
            service: ServiceName::new("demo", "web").unwrap(),
            port: "".into(),
            protocol: Protocol::Tcp,
        },
        family: crate::Family::Ipv4,
        service: &service,
        cluster_ip: "172.30.0.1".parse().ok(),
        external_ips: service.external_ips.to_vec(),
        load_balancer_ips: Vec::new(),
        port: 80.try_into().unwrap(),
        node_port: None,
        health_check_node_port: None,
        endpoints: endpoints.split_whitespace().enumerate().map(|(i, text)| endpoint(i, text)).collect(),
    };
    let topology = Topology { node: "here".to_owned(), zone: zone.map(str::to_owned) };
    let categorized = categorize(&port, &topology);
    let indices = |list: &[&Endpoint]| {
        let index = |e: &&Endpoint| port.endpoints.iter().position(|other| other == *e).unwrap().to_string();
        list.iter().map(index).collect::<String>()
    };
    (
        indices(&categorized.cluster),
        indices(&categorized.local),
        indices(categorized.all_reachable()),
        categorized.has_any,
    )
}

/// Policies, endpoints, zone; then the lists: cluster, local, all reachable; then whether there is any.
type Row = (&'static str, &'static str, Option<&'static str>, &'static str, &'static str, &'static str, bool);

#[test]
fn every_row() {
    let cases: &[Row] = &[
        // No endpoints.
        ("", "", None, "", "", "", false),
        ("xe", "", None, "", "", "", false),
        ("i", "", None, "", "", "", false),
        // Policy Cluster: the ready ones; else those that serve while terminating; never the rest.
        ("", "lR rR", None, "01", "", "01", true),
        ("", "lR rT rU rD", None, "0", "", "0", true),
        ("", "lT rT rU", None, "01", "", "01", true),
        ("", "lU rD", None, "", "", "", false),
        ("x", "lR rR", None, "01", "", "01", true),
        // External Local, but not reachable from outside: no traffic uses the local endpoints.
        ("e", "lR rR", None, "01", "", "01", true),
        // External Local: both lists.
        ("xe", "lR rR", None, "01", "0", "01", true),
        ("xe", "rR rR", None, "01", "", "01", true),
        ("xe", "lR lT rR", None, "02", "0", "02", true),
        // The local list falls back on its own; what it has is reachable too.
        ("xe", "lT rR", None, "1", "0", "01", true),
        ("xe", "lT rT", None, "01", "0", "01", true),
        ("xe", "lD rR", None, "1", "", "1", true),
        ("xe", "lU rU", None, "", "", "", false),
        // Internal Local alone: only the node's own.
        ("i", "lR rR", None, "", "0", "0", true),
        ("i", "rR", None, "", "", "", true),
        ("i", "lT rR", None, "", "0", "0", true),
        ("i", "rT", None, "", "", "", true),
        ("i", "rU", None, "", "", "", false),
        // Internal Local, reachable from outside: outside traffic goes anywhere.
        ("ix", "lR rR", None, "01", "0", "01", true),
        ("ixe", "lR rR", None, "01", "0", "01", true),
        // Zone hints: only when every ready endpoint has one and some name our zone.
        ("", "lR@a rR@b", Some("a"), "0", "", "0", true),
        ("", "lR@a;@b rR@b", Some("b"), "01", "", "01", true),
        ("", "lR@a rR@b", Some("c"), "01", "", "01", true),
        ("", "lR@a rR@b", None, "01", "", "01", true),
        ("", "lR@a rR", Some("a"), "01", "", "01", true),
        ("", "lR@a rT", Some("a"), "0", "", "0", true),
        // Node hints go before zone hints; a partial set disables the level.
        ("", "lR#here;@a rR#there;@a", Some("a"), "0", "", "0", true),
        ("", "lR#here rR#there;@a", None, "0", "", "0", true),
        ("", "lR@a rR#here;@b", Some("a"), "0", "", "0", true),
        ("", "lR#there rR#there", None, "01", "", "01", true),
        // The fallback ignores hints, and the hints of those not ready count for nothing.
        ("", "lT@a rT@b", Some("a"), "01", "", "01", true),
        ("", "lR@a rU", Some("a"), "0", "", "0", true),
        // With hints the lists can differ both ways: the union is reachable.
        ("xe", "lR@b rR@a rR@c", Some("a"), "1", "0", "01", true),
        ("xe", "lR@a rR@b", Some("a"), "0", "0", "0", true),
        // Internal Local alone does not look at hints.
        ("i", "lR@b rR@a", Some("a"), "", "0", "0", true),
    ];
    for (policies, endpoints, zone, cluster, local, all, any) in cases {
        let expected = ((*cluster).to_owned(), (*local).to_owned(), (*all).to_owned(), *any);
        assert_eq!(
            outcome(policies, endpoints, *zone),
            expected,
            "policies {policies:?}, endpoints {endpoints:?}, {zone:?}"
        );
    }
}
