//! A sequence of changes: after each, the kernel has the same rules as after loading the whole new plan.

use sluicegate_services::Family;

use crate::iptables::world::{BACK_ENDS, World, difference, have_iptables, saved, settings};
use crate::manifests::Manifests;

/// A service with all kinds of addresses; `IP` is its number.
const SERVICE: &str = "
---
apiVersion: v1
kind: Service
metadata: {namespace: demo, name: NAME}
spec:
  type: LoadBalancer
  clusterIP: 172.30.0.IP
  clusterIPs: [172.30.0.IP, 'fd00:172:30::IP']
  ipFamilies: [IPv4, IPv6]
  externalIPs: [198.51.100.IP, '2001:db8:51::IP']
  externalTrafficPolicy: EXTERNAL
  internalTrafficPolicy: INTERNAL
  SPEC
  ports:
  - {name: http, port: 80, protocol: TCP, nodePort: 30IP}
  - {name: dns, port: 53, protocol: UDP, nodePort: 31IP}
status: {loadBalancer: {ingress: [{ip: 203.0.113.IP}, {ip: '2001:db8:113::IP'}]}}
";

fn service(name: &str, number: u8, policies: (&str, &str), spec: &str, v4: &str, v6: &str) -> String {
    let (internal, external) = policies;
    let text = SERVICE.replace("NAME", name).replace("IP}", &format!("{number}}}"));
    let text = text.replace("30IP", &format!("30{number}")).replace("31IP", &format!("31{number}"));
    let text = text.replace(".IP", &format!(".{number}")).replace("::IP", &format!("::{number}"));
    let text = text.replace("INTERNAL", internal).replace("EXTERNAL", external).replace("SPEC", spec);
    let slice = |family: &str, endpoints: &str| {
        format!(
            "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{namespace: demo, name: \
             {name}-{}, labels: {{kubernetes.io/service-name: {name}}}}}\naddressType: {family}\nports: \
             [{{name: http, port: 8080, protocol: TCP}}, {{name: dns, port: 5353, protocol: \
             UDP}}]\nendpoints: [{endpoints}]\n",
            family.to_lowercase()
        )
    };
    text + &slice("IPv4", v4) + &slice("IPv6", v6)
}

const HERE: (&str, &str) = (
    "{addresses: [10.244.0.10], nodeName: test-node}",
    "{addresses: ['fd00:10:244::10'], nodeName: test-node}",
);
const THERE: (&str, &str) =
    ("{addresses: [10.244.1.10], nodeName: other}", "{addresses: ['fd00:10:244:1::10'], nodeName: other}");

/// Returns states of a cluster. The tests go from each to its neighbours.
fn states() -> Vec<String> {
    let cluster = ("Cluster", "Cluster");
    let both = (format!("{}, {}", HERE.0, THERE.0), format!("{}, {}", HERE.1, THERE.1));
    let with = |name, number, policies, spec, endpoints: (&str, &str)| {
        service(name, number, policies, spec, endpoints.0, endpoints.1)
    };
    let both = (both.0.as_str(), both.1.as_str());
    let affine = "sessionAffinity: ClientIP";
    let ranges =
        "loadBalancerSourceRanges: [192.0.2.0/24, 192.168.0.0/24, '2001:db8::/64', 'fd00:192:168::/64']";
    vec![
        String::new(),
        with("b", 12, cluster, "", both),
        with("a", 11, cluster, "", THERE)
            + &with("b", 12, cluster, "", both)
            + &with("c", 13, cluster, "", ("", "")),
        with("a", 11, cluster, "", ("", ""))
            + &with("b", 12, cluster, affine, both)
            + &with("c", 13, cluster, "", HERE),
        with("a", 11, ("Local", "Local"), "", THERE) + &with("b", 12, ("Cluster", "Local"), ranges, both),
        with("a", 11, ("Local", "Local"), ranges, both) + &with("c", 13, ("Local", "Cluster"), affine, HERE),
        with("c", 13, cluster, affine, both),
        String::new(),
    ]
}

fn is_the_same_as_a_fresh_load(family: Family) {
    if !have_iptables() {
        return;
    }
    for back_end in BACK_ENDS {
        let fresh: Vec<_> = states()
            .iter()
            .map(|state| {
                let mut lines = Vec::new();
                testns::netns(|| {
                    World::new(family, back_end, &settings(), state).load();
                    lines = saved(family, back_end);
                });
                lines
            })
            .collect();
        testns::netns(|| {
            let states = states();
            let mut world = World::new(family, back_end, &settings(), &states[0]);
            world.load();
            let order = (0..states.len()).chain((0..states.len()).rev()).chain([1, 4, 2, 5, 1, 6, 3]);
            for at in order {
                let sent = world.become_(&states[at]);
                let ours = saved(family, back_end);
                assert_eq!(
                    ours,
                    fresh[at],
                    "{back_end}, state {at}\n{}\n{sent}",
                    difference(&fresh[at], &ours)
                );
            }
        });
    }
}

#[test]
fn every_change_has_the_result_of_a_fresh_load_in_ipv4() {
    is_the_same_as_a_fresh_load(Family::Ipv4);
}

#[test]
fn every_change_has_the_result_of_a_fresh_load_in_ipv6() {
    is_the_same_as_a_fresh_load(Family::Ipv6);
}

#[test]
fn an_empty_change_sends_nothing() {
    let mut world = World::new(Family::Ipv4, "nft", &settings(), &states()[3]);
    let changes = world.cluster.take_changes();
    let sent = world.planner.sync(&world.cluster, &changes).unwrap();
    assert_eq!(sent.to_string(), "");
}

#[test]
fn a_change_of_one_endpoint_is_a_hundredth_of_the_whole_at_most() {
    let with = |endpoints: &dyn Fn(usize) -> usize| -> String {
        (0..300)
            .map(|n| {
                let list: Vec<_> = (0..endpoints(n))
                    .map(|i| {
                        format!(
                            "{{addresses: \
                 [10.244.{}.{}]}}",
                            n % 250,
                            i + n / 250 * 100
                        )
                    })
                    .collect();
                format!(
                    "---\napiVersion: v1\nkind: Service\nmetadata: {{name: s{n}}}\nspec: {{clusterIP: \
                         172.30.{}.{}, ports: [{{port: 80}}]}}\n---\napiVersion: discovery.k8s.io/v1\nkind: \
                         EndpointSlice\nmetadata: {{name: s{n}, labels: {{kubernetes.io/service-name: \
                         s{n}}}}}\naddressType: IPv4\nports: [{{name: '', port: 80}}]\nendpoints: \
                         [{}]\n",
                    n / 250,
                    n % 250 + 1,
                    list.join(", ")
                )
            })
            .collect()
    };
    let mut world = World::new(Family::Ipv4, "nft", &settings(), &with(&|_| 5));
    assert!(world.planner.is_large(), "1500 endpoints");
    let whole = world.planner.input().to_string();
    assert!(
        !whole.contains(" -> ") && whole.contains("cluster IP"),
        "a large cluster comments services, not endpoints"
    );
    for (name, slice) in Manifests::read(&with(&|n| if n == 150 { 4 } else { 5 })).slices {
        world.cluster.set_slice(&name, Some(slice));
    }
    let changes = world.cluster.take_changes();
    assert_eq!(changes.names().len(), 1);
    let sent = world.planner.sync(&world.cluster, &changes).unwrap().to_string();
    assert!(!sent.is_empty() && sent.len() * 100 <= whole.len(), "{} of {}", sent.len(), whole.len());
    assert!(!sent.contains(":KUBE-SERVICES"), "{sent}");
}
