//! What is not known of this node or kernel, or given twice, is told by every command that plans from manifests.

use std::process::Output;

/// A node, and a service with a node port.
const MANIFESTS: &str = "---
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {addresses: [{type: InternalIP, address: 192.168.9.1}]}}
---
{apiVersion: v1, kind: Service, metadata: {namespace: demo, name: web}, spec: {clusterIP: 172.30.0.1, type: NodePort,
  ports: [{port: 80, nodePort: 30080}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: demo, name: web-4, labels:
  {kubernetes.io/service-name: web}}, addressType: IPv4, ports: [{name: '', port: 8080}],
  endpoints: [{addresses: [10.244.0.10]}]}
";

/// Runs a command with the manifests on its standard input; returns whether it succeeded, and all it printed.
fn run(words: &[&str]) -> (bool, String) {
    let program = [env!("CARGO_BIN_EXE_sluicegate-proxier")];
    let command = [&program[..], words, &["--manifests", "-"]].concat();
    let Output { status, stdout, stderr } = testns::feed(&command, MANIFESTS);
    (status.success(), [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat())
}

const EXPLAIN: &[&str] = &["explain", "--from", "192.0.2.1", "--to", "172.30.0.1:80"];

#[test]
fn a_node_that_no_object_names_is_told_with_what_follows() {
    for words in [&["check"][..], &["diff", "--proxy-mode", "nftables"], EXPLAIN] {
        let told = |node: &str| run(&[words, &["--hostname-override", node]].concat()).1;
        let unknown = told("nx");
        assert!(
            unknown.contains("warning: no Node is called nx, expected n1 (--hostname-override)"),
            "{unknown}"
        );
        assert!(
            unknown.contains("warning: node nx has no IPv4 address that is known: every local"),
            "{unknown}"
        );
        let known = told("n1");
        assert!(!known.contains("no Node") && !known.contains("every local address"), "{known}");
    }
}

#[test]
fn a_second_network_or_address_of_a_family_is_refused() {
    for (flag, twice, found) in [
        ("--cluster-cidr", "10.0.0.0/8,11.0.0.0/8", "10.0.0.0/8 and 11.0.0.0/8"),
        ("--node-pod-cidr", "fd00:1::/64,fd00:2::/64", "fd00:1::/64 and fd00:2::/64"),
        ("--bind-address", "10.1.1.1,10.1.1.2", "10.1.1.1 and 10.1.1.2"),
    ] {
        for words in [&["check"][..], &["render"], EXPLAIN] {
            let (is_done, told) = run(&[words, &["--hostname-override", "n1", flag, twice]].concat());
            let expected = format!("{flag}: expected at most one of each family, found {found}");
            assert!(!is_done && told.contains(&expected), "{told}");
        }
    }
    let both = "10.0.0.0/8,fd00::/64";
    let (is_done, told) = run(&["check", "--hostname-override", "n1", "--cluster-cidr", both]);
    assert!(is_done, "{told}");
}

#[test]
fn a_scheduler_of_ipvs_that_linux_does_not_have_is_told() {
    let check = |name: &str| {
        run(&["check", "--hostname-override", "n1", "--proxy-mode", "ipvs", "--ipvs-scheduler", name]).1
    };
    assert!(check("wrl").contains("--ipvs-scheduler wrl: Linux has no scheduler of this name"));
    assert!(check("none").contains("--ipvs-scheduler none: Linux has no scheduler of this name"));
    assert!(!check("mh").contains("no scheduler of this name"));
}

#[test]
fn check_says_where_node_ports_are_answered_on_localhost() {
    let check = |words: &[&str]| {
        let node = ["check", "--hostname-override", "n1", "--nodeport-addresses", "localhost"];
        run(&[&node, words].concat()).1
    };
    let gate = ["--feature-gates", "KubeProxyNFTablesLocalhostNodePorts=true"];
    assert!(check(&gate).contains("node ports on no address; those of TCP on localhost, by the daemon"));
    let without = check(&[]);
    assert!(without.contains("loopback addresses answer no node port without --feature-gates"), "{without}");
    assert!(without.contains("node ports on no address\n"), "{without}");
    let iptables = check(&["--proxy-mode", "iptables"]);
    assert!(iptables.contains("IPv4: local traffic is not detected; node ports on 127.0.0.1"), "{iptables}");
    let off = check(&["--proxy-mode", "iptables", "--iptables-localhost-nodeports=false"]);
    assert!(off.contains("answer no node port with --iptables-localhost-nodeports=false"), "{off}");
    assert!(off.contains("IPv4: local traffic is not detected; node ports on no address"), "{off}");
}
