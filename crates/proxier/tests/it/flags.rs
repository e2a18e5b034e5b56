//! The flags of kube-proxy 1.36: each is taken, what has no effect says so once, and a misspelt one is
//! refused.

use std::fs;
use std::process::{Command, Output};

use crate::gates::FROM_INPUT;

/// Every flag of kube-proxy 1.36 on Linux with a value, by its effect here.
const DONE: [&str; 41] = [
    "--bind-address=0.0.0.0",
    "--bind-address-hard-fail",
    "--cleanup=false",
    "--cluster-cidr=10.244.0.0/16",
    "--config=/nonexistent",
    "--conntrack-max-per-core=0",
    "--conntrack-min=1",
    "--conntrack-tcp-be-liberal=false",
    "--conntrack-tcp-timeout-close-wait=1h",
    "--conntrack-tcp-timeout-established=24h0m0s",
    "--conntrack-udp-timeout=0s",
    "--conntrack-udp-timeout-stream=0s",
    "--detect-local-mode=ClusterCIDR",
    "--healthz-bind-address=0.0.0.0:10256",
    "--healthz-port=10256",
    "--hostname-override=a",
    "--init-only=false",
    "--iptables-localhost-nodeports=false",
    "--iptables-masquerade-bit=14",
    "--iptables-min-sync-period=1s",
    "--iptables-sync-period=30s",
    "--ipvs-exclude-cidrs=10.0.0.0/8",
    "--ipvs-min-sync-period=1s",
    "--ipvs-scheduler=rr",
    "--ipvs-strict-arp=true",
    "--ipvs-sync-period=30s",
    "--ipvs-tcp-timeout=0s",
    "--ipvs-tcpfin-timeout=0s",
    "--ipvs-udp-timeout=0s",
    "--kubeconfig=/nonexistent",
    "--logging-format=json",
    "--masquerade-all=true",
    "--metrics-bind-address=127.0.0.1:10249",
    "--metrics-port=10249",
    "--nodeport-addresses=primary",
    "--oom-score-adj=-998",
    "--pod-bridge-interface=cni0",
    "--pod-interface-name-prefix=veth",
    "--proxy-mode=nftables",
    "--v=0",
    "--version=false",
];
const WITHOUT_EFFECT: [&str; 23] = [
    "--add-dir-header=true",
    "--alsologtostderr",
    "--boot-id-file=/x",
    "--config-sync-period=15m",
    "--kube-api-burst=10",
    "--kube-api-content-type=application/vnd.kubernetes.protobuf",
    "--kube-api-qps=5",
    "--log-backtrace-at=:0",
    "--log-dir=/tmp",
    "--log-file=/tmp/x",
    "--log-file-max-size=1",
    "--log-flush-frequency=5s",
    "--log-json-split-stream",
    "--log-text-info-buffer-size=0",
    "--log-text-split-stream=false",
    "--logtostderr=true",
    "--machine-id-file=/x",
    "--one-output=false",
    "--profiling=false",
    "--show-hidden-metrics-for-version=1.35",
    "--skip-headers",
    "--stderrthreshold=2",
    "--vmodule=a=1",
];

fn run(flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
    command.arg("run").args(flags).env_remove("KUBERNETES_SERVICE_HOST").output().expect("the command starts")
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_flag_of_kube_proxy_is_taken() {
    // Flags are read before the file, which is not there: nothing else happens.
    let all: Vec<_> = DONE.iter().chain(&WITHOUT_EFFECT).copied().collect();
    let said = error(&run(&all));
    assert!(said.contains("/nonexistent: ") && !said.contains("--help"), "{said}");
}

#[test]
fn a_flag_that_comes_again_and_an_empty_one_are_as_in_kube_proxy() {
    let empty = ["proxy-mode", "cluster-cidr", "detect-local-mode", "kubeconfig", "bind-address", "vmodule"];
    let empty = empty.iter().flat_map(|name| [format!("--{name}"), String::new()]);
    let words: Vec<String> =
        ["--v=7", "--v=0", "--masquerade-all", "--masquerade-all=false", "--config=/first"]
            .iter()
            .map(ToString::to_string)
            .chain(empty)
            .chain(["--config=/nonexistent".to_owned()])
            .collect();
    let said = error(&run(&words.iter().map(String::as_str).collect::<Vec<_>>()));
    assert!(said.contains("/nonexistent: ") && !said.contains("/first"), "{said}");
    let said = error(&run(&["--proxy-mode=", "--proxy-mode=iptable"]));
    assert!(said.contains("found \"iptable\""), "{said}");
}

#[test]
fn addresses_of_node_ports_add_up_and_none_means_the_default() {
    const MANIFEST: &str = "---
{apiVersion: v1, kind: Node, metadata: {name: here}, status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, clusterIP: 172.30.0.1, ports: [{port: 80, nodePort: 30080}]}}
";
    let checked = |words: &[&str]| {
        let program = [env!("CARGO_BIN_EXE_sluicegate-proxier"), "check"];
        let output = testns::feed(&[&program[..], &FROM_INPUT, words].concat(), MANIFEST);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.lines().find(|line| line.starts_with("IPv4:")).unwrap_or_else(|| panic!("{output:?}")).to_owned()
    };
    let primary = checked(&[]);
    assert!(primary.ends_with("node ports on 192.0.2.1"), "{primary}");
    for none in
        [&["--nodeport-addresses", ""][..], &["--nodeport-addresses="], &["--nodeport-addresses", ","]]
    {
        assert_eq!(checked(none), primary, "{none:?}");
    }
    let both = checked(&["--nodeport-addresses", "192.0.2.2/32", "--nodeport-addresses", "primary"]);
    assert_eq!(both, checked(&["--nodeport-addresses", "192.0.2.2/32,primary"]));
    assert_ne!(both, primary);
}

#[test]
fn what_has_no_effect_is_warned_of_once_with_the_reason() {
    testns::netns(|| {
        // It ends for want of the name of a bridge.
        let end = ["--manifests=/nonexistent", "--detect-local-mode=BridgeInterface"];
        let gate = "--feature-gates=ContextualLogging=true,ComponentFlagz=false";
        let said = error(&run(&[&WITHOUT_EFFECT[..], &[gate], &end].concat()));
        let gates: Vec<_> = said.lines().filter(|line| line.contains("--feature-gates: ")).collect();
        assert!(gates.len() == 1 && gates[0].contains("ContextualLogging has no effect here: "), "{said}");
        for flag in WITHOUT_EFFECT {
            let name = flag.split('=').next().expect("a name");
            let warnings: Vec<_> =
                said.lines().filter(|line| line.contains(&format!("{name} has no effect here: "))).collect();
            assert_eq!(warnings.len(), 1, "{name}: {said}");
        }
    });
}

#[test]
fn a_misspelt_flag_and_an_unknown_gate_are_refused() {
    let said = error(&run(&["--proxi-mode=nftables"]));
    assert!(said.contains("--proxi-mode") && said.contains("--proxy-mode"), "{said}");
    let said = error(&run(&["--feature-gates=allowserviceexternalips=false"]));
    assert!(said.contains("did you mean AllowServiceExternalIPs?"), "{said}");
    let said = error(&run(&["--feature-gates=KubeProxyIPVs=true"]));
    assert!(
        said.contains("Kubernetes 1.37 has no gate \"KubeProxyIPVs\"; did you mean KubeProxyIPVS?"),
        "{said}"
    );
    let said = error(&run(&["--feature-gates=KubeProxyIPVS=false", "--proxy-mode=ipvs"]));
    assert!(said.contains("KubeProxyIPVS is false") && said.contains("nftables"), "{said}");
    let said = error(&run(&["--feature-gates=AllAlpha=maybe"]));
    assert!(said.contains("expected true or false, found \"maybe\""), "{said}");
    let said = error(&run(&["--masquerade-all=perhaps"]));
    assert!(said.contains("expected true or false, found \"perhaps\""), "{said}");
}

/// Each with the flag of another mode, or without the flag that it needs.
#[test]
fn what_would_silently_not_be_programmed_is_refused() {
    // What is not refused ends for want of a bridge.
    let end = ["--manifests=/nonexistent", "--detect-local-mode=BridgeInterface"];
    for (flags, said) in [
        (
            &["--layout=chains", "--proxy-mode=iptables"][..],
            "--layout: expected --proxy-mode nftables, found iptables",
        ),
        (
            &["--service-cluster-ip-range=10.96.0.0/12", "--proxy-mode=ipvs"],
            "--service-cluster-ip-range: expected --proxy-mode nftables, found ipvs",
        ),
        (
            &["--iptables-backend=nft"],
            "--iptables-backend: expected --proxy-mode iptables or ipvs, found nftables",
        ),
        (&["--service-metrics-series=5"], "--service-metrics-series: expected --service-metrics as well"),
    ] {
        let output = testns::Netns::new().map(|space| space.run(|| run(&[flags, &end].concat())));
        let Some(output) = output else { return };
        assert!(!output.status.success() && error(&output).contains(said), "{flags:?}: {}", error(&output));
        // Commands that have no such flag know it neither.
        let words = ["diff", "--exit-code", "--manifests=/nonexistent"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
        let output = command.args(words).args(flags).output().expect("the command starts");
        assert_eq!(output.status.code(), Some(2), "1 would be a difference: {}", error(&output));
    }
}

#[test]
fn flags_of_kube_proxy_for_another_mode_are_taken_with_a_warning() {
    testns::netns(|| {
        let end = ["--manifests=/nonexistent", "--detect-local-mode=BridgeInterface"];
        let others = [
            "--ipvs-scheduler=rr",
            "--ipvs-sync-period=30s",
            "--iptables-localhost-nodeports=false",
            "--cluster-cidr=10.244.0.0/16",
            "--pod-interface-name-prefix=veth",
        ];
        let own = ["--iptables-sync-period=30s", "--nftables-sync-period=30s"];
        let said = error(&run(&[&others[..], &own, &end].concat()));
        for flag in others {
            let name = flag.split('=').next().expect("a name");
            let warnings =
                said.lines().filter(|line| line.contains(&format!("{name} has no effect"))).count();
            assert_eq!(warnings, 1, "{name}: {said}");
        }
        for flag in own {
            let name = flag.split('=').next().expect("a name");
            assert!(!said.contains(&format!("{name} has no effect")), "{said}");
        }
    });
}

#[test]
fn what_ends_at_once_does_what_it_says() {
    let version = run(&["--version"]);
    assert!(version.status.success());
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("sluicegate-proxier "));
    let path = std::env::temp_dir().join(format!("sluicegate-defaults-{}", std::process::id()));
    let written = run(&["--write-config-to", path.to_str().expect("a path")]);
    assert!(written.status.success(), "{}", error(&written));
    let text = fs::read_to_string(&path).expect("the file");
    assert!(text.contains("kind: KubeProxyConfiguration\n") && text.contains("mode: nftables\n"), "{text}");
    fs::remove_file(path).expect("it was there");
    if testns::have(&["nft"]) {
        testns::netns(|| {
            let _ = testns::sh("nft add table ip kube-proxy");
            let cleaned = run(&["--cleanup"]);
            assert!(cleaned.status.success(), "{}", error(&cleaned));
            assert!(!testns::sh("nft list tables").contains("kube-proxy"));
        });
    }
}

#[test]
fn init_only_sets_sysctls_and_leaves_no_rules() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        let forward = "/proc/sys/net/ipv4/ip_forward";
        if let Err(error) = fs::write(forward, "0") {
            return testns::skip(&format!("sysctls of a namespace cannot be written here: {error}"));
        }
        let output = run(&["--init-only", "--logging-format=json", "--conntrack-max-per-core=0"]);
        assert!(output.status.success(), "{}", error(&output));
        assert_eq!(fs::read_to_string(forward).expect("a sysctl").trim(), "1");
        assert_eq!(testns::sh("nft list tables"), "");
        let said = error(&output);
        let lines: Vec<serde_json::Value> =
            said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let forwarding = |line: &&serde_json::Value| {
            line["msg"].as_str().is_some_and(|text| text.contains("net.ipv4.ip_forward was 0 and is 1 now"))
        };
        let line = lines.iter().find(forwarding).unwrap_or_else(|| panic!("{said}"));
        assert!(line["ts"].as_f64().is_some_and(|ms| ms > 1e12) && line["v"] == 0, "{line}");
    });
}
