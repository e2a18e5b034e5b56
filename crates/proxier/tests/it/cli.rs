//! The command line as a user meets it: what `render` and `check` print, and how they complain.

use std::path::PathBuf;
use std::process::{Command, Output};

const EXAMPLE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../service-rules/testdata/kube-proxy/services.yaml");

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"))
        .args(args)
        .output()
        .expect("the binary can be started")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Standard error of a run that must fail without printing a plan.
fn refused(args: &[&str]) -> String {
    let output = run(args);
    assert!(!output.status.success(), "{args:?} was accepted");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file of its own for each test.
struct Manifest(PathBuf);

impl Manifest {
    fn new(test: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sluicegate-{test}-{}.yaml", std::process::id()));
        std::fs::write(&path, text).expect("a temporary file");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("the path is text")
    }
}

impl Drop for Manifest {
    fn drop(&mut self) {
        // A file that is left behind harms nobody.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What stands in a manifest does nothing to a terminal, and makes no line of its own.
#[test]
fn names_from_outside_are_printed_with_escapes() {
    const EVIL: &str = "x\\nforged\\u001b[31m\\u202e\\u0085\\u200b";
    let object = |version: &str, kind: &str, namespace: &str, field: &str, rest: &str| {
        format!(
            "{{\"apiVersion\": \"{version}\", \"kind\": \"{kind}\", \"metadata\": {{\"namespace\": \"{namespace}\", \
             \"name\": \"a\"}}, \"{field}\": 1, {rest}}}\n---\n"
        )
    };
    let slice = format!(
        "{{\"apiVersion\": \"discovery.k8s.io/v1\", \"kind\": \"EndpointSlice\", \"metadata\": {{\"namespace\": \
         \"{EVIL}\", \"name\": \"{EVIL}\", \"labels\": {{\"kubernetes.io/service-name\": \"{EVIL}\"}}}}, \
         \"addressType\": \"{EVIL}\", \"endpoints\": []}}\n---\n"
    );
    let spec = "\"spec\": {\"clusterIP\": \"10.96.0.1\", \"ports\": [{\"port\": 80}]}";
    let texts = [
        object("v1", "Service", "demo", EVIL, spec),
        object("v1", "Service", EVIL, "more", spec),
        object("v1", EVIL, "demo", "more", spec),
        object(EVIL, "Service", "demo", "more", spec),
        object(&format!("{EVIL}/v1"), "Thing", "demo", "more", spec),
        slice,
    ];
    for (number, text) in texts.iter().enumerate() {
        let manifest = Manifest::new(&format!("escapes-{number}"), text);
        for form in ["text", "json"] {
            let output =
                run(&["check", "-o", form, "--hostname-override", "n", "--manifests", manifest.path()]);
            let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
            let hidden = ['\u{1b}', '\u{202e}', '\u{85}', '\u{200b}'];
            assert!(!said.contains(hidden), "{said:?}");
            assert!(
                said.contains("forged") && !said.lines().any(|line| line.starts_with("forged")),
                "{said}"
            );
        }
    }
}

#[test]
fn render_prints_a_plan_for_both_families() {
    let script = stdout(&run(&["render", "--proxy-mode", "nftables", "--manifests", EXAMPLE]));
    assert!(
        script.starts_with("add table ip kube-proxy\ndelete table ip kube-proxy\nadd table ip kube-proxy {")
    );
    assert!(script.contains("add table ip6 kube-proxy {"));
    assert!(script.contains("172.30.10.1 . tcp . 80 : 0:2"));
    let chains = stdout(&run(&["render", "--layout", "chains", "--manifests", EXAMPLE]));
    assert!(chains.contains("172.30.10.1 . tcp . 80 : goto service-AXK6CI2C-demo/web/tcp/http"));
}

#[test]
fn flags_change_the_plan() {
    let with = |flags: &[&str]| {
        stdout(&run(
            &[&["render", "--manifests", EXAMPLE, "--hostname-override", "test-node"], flags].concat()
        ))
    };
    let cases: &[(&[&str], &str)] = &[
        (
            &["--cluster-cidr", "10.244.0.0/16,fd00::/48"],
            "add rule ip6 kube-proxy services ip6 daddr @cluster-ips ip6 saddr != fd00::/48 ",
        ),
        (&["--masquerade-all"], "comment \"masquerade all clusterIP traffic\""),
        (&["--iptables-masquerade-bit", "31"], "meta mark set meta mark | 0x80000000"),
        (&["--iptables-masquerade-bit", "0"], "meta mark set meta mark | 0x00000001"),
        (
            &["--nodeport-addresses", "192.168.0.2/32"],
            "add element ip kube-proxy nodeport-ips { 192.168.0.2 }",
        ),
        (&["--bind-address", "192.168.0.2"], "add element ip kube-proxy nodeport-ips { 192.168.0.2 }"),
        (&["--nodeport-addresses", "0.0.0.0/0"], "services fib daddr type local ip daddr != 127.0.0.0/8"),
        (&["--service-cluster-ip-range", "172.30.0.0/16"], "cluster-ips-check ip daddr 172.30.0.0/16 drop"),
        (
            &["--detect-local-mode", "BridgeInterface", "--pod-bridge-interface", "cni0"],
            "ip daddr @cluster-ips iifname != \"cni0\"",
        ),
        (
            &["--detect-local-mode", "InterfaceNamePrefix", "--pod-interface-name-prefix", "veth"],
            "ip daddr @cluster-ips iifname != \"veth*\"",
        ),
        (
            &["--detect-local-mode", "NodeCIDR", "--node-pod-cidr", "10.244.7.0/24"],
            "ip saddr != 10.244.7.0/24",
        ),
        (&[], "add element ip kube-proxy hairpin-connections {"),
    ];
    for (flags, expected) in cases {
        let script = with(flags);
        assert!(script.contains(expected), "{flags:?}: no {expected:?} in\n{script}");
    }
    let elsewhere = stdout(&run(&["render", "--manifests", EXAMPLE, "--hostname-override", "elsewhere"]));
    assert!(
        !elsewhere.contains("add element ip kube-proxy hairpin-connections"),
        "no endpoint is local there"
    );
}

#[test]
fn the_node_is_known_from_its_manifest() {
    let node = Manifest::new(
        "node",
        "apiVersion: v1\nkind: Node\nmetadata: {name: test-node}\nspec: {podCIDRs: [10.244.0.0/24]}\n\
            status: {addresses: [{type: InternalIP, address: 192.168.0.2}]}\n---\n\
            apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: kubernetes}\n\
            spec: {cidrs: [172.30.0.0/16]}\n",
    );
    let script = stdout(&run(&[
        "render",
        "--manifests",
        EXAMPLE,
        node.path(),
        "--hostname-override",
        "Test-Node",
        "--detect-local-mode",
        "NodeCIDR",
    ]));
    for expected in [
        "nodeport-ips { 192.168.0.2 }",
        "ip saddr != 10.244.0.0/24",
        "ip daddr 172.30.0.0/16 drop",
        "hairpin-connections { ",
    ] {
        assert!(script.contains(expected), "no {expected:?} in\n{script}");
    }
}

#[test]
fn bad_flags_are_named() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["--cluster-cidr", "10.244.0.0"], &["--cluster-cidr", "expected a CIDR"]),
        (&["--iptables-masquerade-bit", "32"], &["--iptables-masquerade-bit", "32"]),
        (
            &["--nodeport-addresses", "primary,10.0.0.0"],
            &["--nodeport-addresses", "primary, localhost and all"],
        ),
        (&["--detect-local-mode", "Bridge"], &["--detect-local-mode", "BridgeInterface"]),
        (&["--detect-local-mode", "ClusterCIDR"], &["--cluster-cidr: expected with"]),
        (&["--detect-local-mode", "NodeCIDR"], &["--node-pod-cidr", "expected with"]),
        (&["--detect-local-mode", "BridgeInterface"], &["--pod-bridge-interface: expected with"]),
        (&["--detect-local-mode", "InterfaceNamePrefix"], &["--pod-interface-name-prefix: expected with"]),
        (
            &["--detect-local-mode", "BridgeInterface", "--pod-bridge-interface", "a b"],
            &["--pod-bridge-interface", "expected the name of an interface"],
        ),
        (&["--layout", "flat"], &["--layout", "maps or chains"]),
        (&["--proxy-mode", "userspace"], &["--proxy-mode", "nftables"]),
        (&["--hostname-override", " "], &["--hostname-override", "expected the name of a node"]),
        (&["--bind-address", "nowhere"], &["--bind-address", "expected an IP address"]),
    ];
    for (flags, expected) in cases {
        let message = refused(&[&["render", "--manifests", EXAMPLE], *flags].concat());
        for part in *expected {
            assert!(message.contains(part), "{flags:?}: no {part:?} in {message}");
        }
    }
    assert!(refused(&["render"]).contains("--manifests"));
}

#[test]
fn a_manifest_that_does_not_parse_stops_everything() {
    let bad = Manifest::new(
        "bad",
        "apiVersion: v1\nkind: Service\n---\napiVersion: v1\nkind: Service\nspec: {ports: 80}\n",
    );
    let message = refused(&["render", "--manifests", EXAMPLE, bad.path()]);
    assert!(message.contains("document 2, line 6, column 15: spec.ports: invalid type"), "{message}");
    assert!(refused(&["render", "--manifests", "/nowhere.yaml"]).contains("/nowhere.yaml: No such file"));
}

#[test]
fn what_is_invalid_or_claimed_twice_is_left_out_alone() {
    let invalid = Manifest::new(
        "invalid",
        "apiVersion: v1\nkind: Service\nmetadata: {namespace: demo, name: bad}\n\
            spec: {clusterIP: 172.30.10.99, ports: [{port: 80, protocol: QUIC}]}\n---\napiVersion: v1\n\
            kind: Service\nmetadata: {namespace: demo, name: xagain}\n\
            spec: {clusterIP: 172.30.10.1, ports: [{port: 80}]}\n---\napiVersion: v1\nkind: ConfigMap\n\
            metadata: {name: x}\n",
    );
    let output = run(&["render", "--manifests", EXAMPLE, invalid.path()]);
    let script = stdout(&output);
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(script.contains("172.30.10.1 . tcp . 80 : 0:2") && !script.contains("172.30.10.99"));
    for expected in [
        "document 1, line 1: Service demo/bad: spec.ports[0].protocol: expected TCP, UDP or SCTP, \
            found \"QUIC\" (left out)",
        "Service demo/xagain: cluster IP 172.30.10.1:80/tcp is left out: Service demo/web has it as its \
            cluster IP",
        "ignored: 1 v1 ConfigMap",
    ] {
        assert!(messages.contains(expected), "no {expected:?} in {messages}");
    }
    assert!(!run(&["check", "--manifests", EXAMPLE, invalid.path()]).status.success(), "check is stricter");
    let doctor = run(&["doctor", "--manifests", EXAMPLE, invalid.path()]);
    let doctor = String::from_utf8_lossy(&doctor.stdout);
    assert!(doctor.contains("conflict: Service demo/xagain: cluster IP 172.30.10.1:80/tcp"), "{doctor}");
}

#[test]
fn check_says_what_the_manifests_hold() {
    let text = stdout(&run(&[
        "check",
        "--manifests",
        EXAMPLE,
        "--hostname-override",
        "test-node",
        "--cluster-cidr",
        "10.244.0.0/16",
    ]));
    for expected in [
        "node test-node (no address known)",
        "IPv4: pods have addresses in 10.244.0.0/16; node ports on all addresses",
        "demo/web:http 172.30.10.1:80/tcp: 2 endpoints, 2 of them ready, 1 of them here",
        "demo/empty 172.30.10.4:8080/tcp: 0 endpoints, 0 of them ready, 0 of them here",
    ] {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
}

/// The worked example in iptables mode.
fn iptables(flags: &[&str]) -> String {
    let mode = ["render", "--proxy-mode", "iptables", "--manifests", EXAMPLE];
    let node = [
        "--hostname-override",
        "test-node",
        "--bind-address",
        "192.168.0.2",
        "--cluster-cidr",
        "10.244.0.0/16",
    ];
    stdout(&run(&[&mode[..], &node, flags].concat()))
}

#[test]
fn render_prints_the_restore_input_of_kube_proxy() {
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let theirs = include_str!("../../../service-rules/testdata/kube-proxy/ipt_restore1.txt");
    let ours = iptables(&[]);
    assert_eq!(sorted(&ours), sorted(theirs));
    assert!(ours.starts_with("*filter\n:KUBE-SERVICES - [0:0]\n") && ours.ends_with("\nCOMMIT\n"));
    assert!(!iptables(&["--without", "nfacct,recent"]).contains("nfacct"));
    assert!(iptables(&["--random-fully"]).contains("-j MASQUERADE --random-fully\n"));
    assert!(iptables(&["--family", "ipv6"]).contains("! -d ::1/128 -j KUBE-NODEPORTS\n"));
    let errors = refused(&["render", "--proxy-mode", "iptables", "--manifests", EXAMPLE, "--without", "nft"]);
    assert!(errors.contains("expected comment, conntrack"), "{errors}");
}

#[test]
fn render_puts_the_tool_above_each_family_where_there_are_both() {
    let manifest = Manifest::new(
        "dual-stack",
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n\
            spec: {clusterIP: 172.30.0.1, clusterIPs: [172.30.0.1, 'fd00:30::1'], ipFamilies: [IPv4, IPv6], \
            ports: [{port: 80}]}\n",
    );
    let text = stdout(&run(&["render", "--proxy-mode", "iptables", "--manifests", manifest.path()]));
    let (v4, v6) = text.split_once("# ip6tables-restore --noflush\n").expect("a heading for IPv6");
    assert!(v4.starts_with("# iptables-restore --noflush\n*filter\n") && v4.contains("-d 172.30.0.1 "));
    assert!(v6.starts_with("*filter\n") && v6.contains("-d fd00:30::1 ") && !v6.contains("172.30.0.1"));
}

#[cfg(not(feature = "kube"))]
#[test]
fn without_the_feature_the_flags_of_the_api_say_what_is_missing() {
    testns::netns(|| {
        for (flags, flag) in [
            (&["--kubeconfig", "/nowhere"][..], "--kubeconfig: "),
            (&["--master", "https://127.0.0.1"], "--master: "),
            (&[], "--manifests: expected files"),
        ] {
            let message = refused(&[&["run"], flags].concat());
            assert!(message.contains(flag) && message.contains("cargo feature `kube`"), "{message}");
            assert!(message.starts_with("sluicegate-proxier: --"), "nothing comes before it: {message}");
        }
    });
}

/// A Service whose external IP is another's cluster IP does not take it over, whatever its name.
#[test]
fn a_cluster_ip_stays_with_its_service() {
    let manifest = Manifest::new(
        "takeover",
        "apiVersion: v1\nkind: Service\nmetadata: {namespace: aaa, name: evil}\n\
            spec: {clusterIP: 172.30.0.66, externalIPs: [172.30.0.10, 192.0.2.66], ports: [{port: 53, \
            protocol: UDP}]}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata: {namespace: kube-system, name: dns}\n\
         spec: {clusterIP: 172.30.0.10, ports: [{port: 53, protocol: UDP}]}\n",
    );
    for (mode, ours, evil) in [
        (
            "nftables",
            "172.30.0.10 . udp . 53 comment \"kube-system/dns\"",
            "192.0.2.66 . udp . 53 comment \"aaa/evil\"",
        ),
        (
            "iptables",
            "kube-system/dns has no endpoints\" -m udp -p udp -d 172.30.0.10 --dport 53",
            "aaa/evil has no endpoints\" -m udp -p udp -d 192.0.2.66",
        ),
        ("ipvs", "-A -u 172.30.0.10:53", "-A -u 192.0.2.66:53"),
    ] {
        let output = run(&["render", "--proxy-mode", mode, "--manifests", manifest.path()]);
        let message = "Service aaa/evil: external IP 172.30.0.10:53/udp is left out: Service kube-system/dns \
            has it as its cluster IP";
        assert!(String::from_utf8_lossy(&output.stderr).contains(message), "{output:?}");
        let text = stdout(&output);
        assert!(text.contains(ours) && text.contains(evil), "{mode}: {text}");
        assert!(!text.contains("172.30.0.10 . udp . 53 comment \"aaa/evil\""), "{text}");
        assert_eq!(text.matches("-A -u 172.30.0.10:53").count(), usize::from(mode == "ipvs"), "{text}");
    }
}
