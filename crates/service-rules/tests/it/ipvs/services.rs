//! The objects of kinds of services that the worked example does not contain.

use sluicegate_ipvs::{Scheduler, SchedulerFlags};
use sluicegate_service_rules::ipvs::{Planner, Settings};
use sluicegate_services::Family;

use crate::ipvs::example::{cluster, settings};

const ENDPOINTS: &str = "
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: a-1, labels: {kubernetes.io/service-name: a}}
addressType: IPv4
ports: [{port: 8080, protocol: PROTOCOL}]
endpoints:
  - {addresses: [10.244.1.10], nodeName: other, conditions: {ready: true}}
";

fn script(family: Family, settings: &Settings, manifests: &str) -> String {
    let planner = Planner::new(family, settings, &cluster(manifests), None).expect("good settings");
    planner.whole().script(family).to_string()
}

fn service(spec: &str) -> String {
    format!("{{apiVersion: v1, kind: Service, metadata: {{name: a}}, spec: {{{spec}}}}}")
}

#[track_caller]
fn has(script: &str, lines: &[&str]) {
    for line in lines {
        assert!(script.lines().any(|other| other == *line), "{line}\nis not in\n{script}");
    }
}

#[test]
fn node_ports_of_sctp_have_entries_with_addresses() {
    let manifests = service(
        "type: NodePort, clusterIP: 172.30.0.1, externalTrafficPolicy: Local, ports: [{port: 80, protocol: \
         SCTP, nodePort: 30080}]",
    );
    let script = script(Family::Ipv4, &settings(), &(manifests + &ENDPOINTS.replace("PROTOCOL", "SCTP")));
    has(
        &script,
        &[
            "add KUBE-NODE-PORT-SCTP-HASH 192.168.0.2,sctp:30080",
            "add KUBE-NODE-PORT-LOCAL-SCTP-HASH 192.168.0.2,sctp:30080",
            "-A --sctp-service 192.168.0.2:30080 -s rr",
            // No endpoint on this node: those of other nodes.
            "-a --sctp-service 192.168.0.2:30080 -r 10.244.1.10:8080 -m -w 1",
            "-A KUBE-NODE-PORT -p sctp -m comment --comment \"Kubernetes nodeport SCTP port with \
             externalTrafficPolicy=local with type 'hash ip:port'\" -m set --match-set \
             KUBE-NODE-PORT-LOCAL-SCTP-HASH dst,dst -j RETURN",
        ],
    );
}

#[test]
fn a_policy_without_local_endpoints_is_counted() {
    let manifests = service(
        "type: NodePort, clusterIP: 172.30.0.1, internalTrafficPolicy: Local, externalTrafficPolicy: Local, \
         ports: [{port: 80, nodePort: 30080}]",
    );
    let cluster = cluster(&(manifests + &ENDPOINTS.replace("PROTOCOL", "TCP")));
    let planner = Planner::new(Family::Ipv4, &settings(), &cluster, None).unwrap();
    assert_eq!(planner.without_local_endpoints(), (1, 1));
}

#[test]
fn ipv6_has_names_and_addresses_of_its_own() {
    let manifests = service(
        "type: LoadBalancer, clusterIP: 'fd00:172:30::1', externalIPs: ['fd00:192:168::2', '2001:db8::1'], \
         ports: [{port: 80, nodePort: 30080}]",
    );
    let script = script(Family::Ipv6, &settings(), &manifests);
    has(
        &script,
        &[
            "create KUBE-6-LOAD-BALANCER-SOURCE-CID hash:ip,port,net family inet6 hashsize 1024 maxelem \
             65536",
            "add KUBE-6-EXTERNAL-IP 2001:db8::1,tcp:80",
            "address add 2001:db8::1/128 dev kube-ipvs0",
            "-A -t [fd00:192:168::2]:30080 -s rr",
            "# ip6tables-restore --noflush",
            "-A KUBE-SERVICES -s ::1/128 -j RETURN",
        ],
    );
    // The node has this one already.
    has(&script, &["-A -t [fd00:192:168::2]:80 -s rr"]);
    assert!(!script.contains("fd00:192:168::2/128"), "{script}");
}

#[test]
fn node_ports_are_answered_on_the_configured_addresses() {
    let manifests = service("type: NodePort, clusterIP: 172.30.0.1, ports: [{port: 80, nodePort: 30080}]");
    let node_ports = |nets: &str, local: &[&str]| {
        let settings = Settings { node_port_addresses: nets.parse().unwrap(), ..settings() };
        let local = local.iter().map(|ip| ip.parse().unwrap()).collect();
        let planner = Planner::new(Family::Ipv4, &settings, &cluster(&manifests), Some(local)).unwrap();
        let script = planner.whole().script(Family::Ipv4).to_string();
        let on = |line: &str| Some(line.strip_prefix("-A -t ")?.strip_suffix(":30080 -s rr")?.to_owned());
        script.lines().filter_map(on).collect::<Vec<_>>().join(" ")
    };
    let local = ["127.0.0.1", "10.1.0.1", "192.168.0.2"];
    assert_eq!(node_ports("", &local), "10.1.0.1 192.168.0.2");
    assert_eq!(node_ports("10.0.0.0/8", &local), "10.1.0.1");
    assert_eq!(node_ports("primary", &local), "192.168.0.2");
    assert_eq!(node_ports("127.0.0.0/8", &local), "");
}

#[test]
fn a_node_within_the_source_ranges_may_use_the_load_balancer() {
    let manifests = "{apiVersion: v1, kind: Service, metadata: {name: b}, \
        spec: {type: LoadBalancer, clusterIP: 172.30.0.2, loadBalancerSourceRanges: [192.168.0.0/24], \
        ports: [{port: 80}]}, \
        status: {loadBalancer: {ingress: [{ip: 203.0.113.1}]}}}";
    let script = script(Family::Ipv4, &settings(), manifests);
    has(
        &script,
        &[
            "add KUBE-LOAD-BALANCER-SOURCE-IP 203.0.113.1,tcp:80,203.0.113.1",
            "-A KUBE-SOURCE-RANGES-FIREWALL -m comment --comment \"Kubernetes service load balancer ip + \
             port + source IP for packet filter purpose\" -m set --match-set KUBE-LOAD-BALANCER-SOURCE-IP \
             dst,dst,src -j RETURN",
        ],
    );
    assert!(!script.contains("-A KUBE-IPVS-OUT-FILTER"), "{script}");
}

#[test]
fn the_scheduler_comes_with_its_flags_and_without_a_detector_the_source_decides() {
    let manifests = service("clusterIP: 172.30.0.1, ports: [{port: 80}]");
    let settings = Settings { scheduler: Scheduler::MH, ..Settings::default() };
    let planner = Planner::new(Family::Ipv4, &settings, &cluster(&manifests), None).unwrap();
    let table = planner.table();
    let (_, server) = table.iter().next().unwrap();
    assert_eq!(
        (server.config.scheduler, server.config.scheduler_flags),
        (Scheduler::MH, SchedulerFlags::PORT)
    );
    let marks = |settings| {
        let script = script(Family::Ipv4, &settings, &manifests);
        let rule = script.lines().find(|line| line.ends_with("KUBE-CLUSTER-IP dst,dst -j KUBE-MARK-MASQ"));
        (rule.is_some(), script.contains("KUBE-CLUSTER-IP src,dst -j KUBE-MARK-MASQ"))
    };
    assert_eq!(marks(Settings::default()), (false, true));
    assert_eq!(marks(Settings { masquerade_all: true, ..Settings::default() }), (true, false));
}
