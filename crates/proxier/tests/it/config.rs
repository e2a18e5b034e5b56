//! The configuration file of `run`, as the commands beside it read it: what a node programs is what they check,
//! print and explain.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

/// A configuration, removed with its value.
struct Config(PathBuf);

impl Config {
    fn new(test: &str, body: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sluicegate-config-{test}-{}", std::process::id()));
        let head = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
        fs::write(&path, format!("{head}{body}")).expect("a file");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("text")
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

const MANIFESTS: &str = "---
{apiVersion: v1, kind: Node, metadata: {name: here}, status: {addresses: [{type: InternalIP, address: 192.168.9.1}]}}
---
{apiVersion: v1, kind: Service, metadata: {namespace: demo, name: web}, spec: {clusterIP: 172.30.0.1, type: NodePort,
  externalIPs: [198.51.100.1], internalTrafficPolicy: Local, ports: [{port: 80, nodePort: 30080}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: demo, name: web-4, labels:
  {kubernetes.io/service-name: web}}, addressType: IPv4, ports: [{name: '', port: 8080}],
  endpoints: [{addresses: [10.244.0.10], nodeName: here}]}
";

/// A file in which nothing has its default.
const BODY: &str = "mode: iptables
hostnameOverride: HERE
clusterCIDR: 10.244.0.0/16
nodePortAddresses: [192.0.2.0/24]
iptables: {masqueradeAll: true, masqueradeBit: 3}
featureGates: {AllowServiceExternalIPs: false, ContextualLogging: true}
configSyncPeriod: 5m
noSuchField: 1
";

fn run(words: &[&str]) -> (Option<i32>, String, String) {
    let program = [env!("CARGO_BIN_EXE_sluicegate-proxier")];
    let Output { status, stdout, stderr } = testns::feed(&[&program[..], words].concat(), MANIFESTS);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn every_command_that_plans_sees_the_file_of_the_daemon() {
    let config = Config::new("all", BODY);
    let file = ["--manifests", "-", "--config", config.path()];
    let with = |words: &[&str]| run(&[words, &file].concat());
    let (status, checked, told) = with(&["check"]);
    assert_eq!(status, Some(0), "{checked}{told}");
    for what in ["node here (192.168.9.1)", "pods have addresses in 10.244.0.0/16", "1 of them here"] {
        assert!(checked.contains(what), "{checked}");
    }
    assert!(told.contains("198.51.100.1 left out"), "{told}");
    for remark in ["noSuchField", "configSyncPeriod"] {
        assert!(told.lines().any(|line| line.starts_with("warning: ") && line.contains(remark)), "{told}");
    }
    let (status, rendered, told) = with(&["render"]);
    assert_eq!(status, Some(0), "{told}");
    assert!(rendered.contains("KUBE-SERVICES") && rendered.contains("0x00000008/0x00000008"), "{rendered}");
    let (status, said, told) = with(&["explain", "--from", "10.244.0.9", "--to", "172.30.0.1:80"]);
    assert!(status == Some(0) && said.contains("masquerade"), "{said}{told}");
    // A flag overrides it.
    let flags = ["render", "--proxy-mode", "nftables", "--feature-gates", "AllowServiceExternalIPs=true"];
    let (_, rendered, _) = with(&flags);
    assert!(rendered.contains("add table ip kube-proxy") && rendered.contains("198.51.100.1"), "{rendered}");
}

#[test]
fn a_file_that_cannot_be_used_stops_every_command() {
    let config = Config::new("wrong", "mode: nftables\noomScoreAdj: 3000\n");
    for command in ["check", "render", "sync", "diff"] {
        let (status, said, told) = run(&[command, "--manifests", "-", "--config", config.path()]);
        assert!(status == Some(1) && said.is_empty(), "{command}: {said}");
        assert!(told.contains("line 4, column 14: oomScoreAdj: expected a number"), "{command}: {told}");
    }
}

#[test]
fn sync_programs_the_mode_of_the_file_and_tells_of_rules_of_another() {
    if !testns::have(&["nft", "iptables-nft-save"]) {
        return;
    }
    testns::netns(|| {
        let config = Config::new("sync", BODY);
        let (status, _, told) = run(&["sync", "--hostname-override", "here", "--manifests", "-"]);
        assert_eq!(status, Some(0), "{told}");
        assert!(!told.contains("another mode"), "{told}");
        let file = ["--manifests", "-", "--config", config.path(), "--iptables-backend", "nft"];
        let (status, _, told) = run(&[&["sync"][..], &file].concat());
        assert_eq!(status, Some(0), "{told}");
        assert!(testns::sh("iptables-nft-save -t nat").contains("demo/web"));
        let expected = "rules of another mode than iptables are in place and serve 1 cluster IP as well";
        assert!(told.contains(expected), "{told}");
        let (status, difference, told) = run(&[&["diff"][..], &file].concat());
        assert!(status == Some(0) && difference.is_empty(), "{difference}{told}");
    });
}

#[test]
fn doctor_takes_what_run_takes_and_says_what_that_would_refuse() {
    let config = Config::new("doctor", BODY);
    testns::netns(|| {
        let (_, found, told) = run(&["doctor", "--config", config.path(), "--manifests", "-"]);
        for what in
            ["noSuchField", "feature gate ContextualLogging", "198.51.100.1 left out", "iptables mode: "]
        {
            assert!(found.contains(what), "no {what} in {found}{told}");
        }
        // The file names a mode.
        assert!(!found.contains("nftables mode: "), "{found}");
        let flags = ["doctor", "--proxy-mode", "iptables", "--nftables-fastpath-after", "5"];
        let (status, found, _) = run(&flags);
        assert!(status == Some(1) && found.contains("`run` refuses --nftables-fastpath-after 5"), "{found}");
    });
}

#[test]
fn run_refuses_what_cannot_be_before_it_changes_anything() {
    testns::netns(|| {
        let flags = ["run", "--manifests", "/none", "--conntrack-tcp-timeout-established", "2h"];
        for (flag, value) in
            [("--node-pod-cidr", "10.0.0.0/8,11.0.0.0/8"), ("--cluster-cidr", "10.0.0.0/8,11.0.0.0/8")]
        {
            let (status, _, told) = run(&[&flags[..], &[flag, value]].concat());
            assert_eq!(status, Some(1), "{told}");
            assert!(told.contains("expected at most one of each family"), "{told}");
            assert!(!told.contains("nf_conntrack"), "a sysctl was set before: {told}");
        }
    });
}
