//! Feature gates, in every mode and command.

use std::process::Output;

/// Has a command read its manifests, of a node called `here`, from its standard input.
pub(crate) const FROM_INPUT: [&str; 4] = ["--hostname-override", "here", "--manifests", "-"];

const MANIFEST: &str = "---
{apiVersion: v1, kind: Service, metadata: {namespace: demo, name: web}, spec: {type: LoadBalancer, clusterIP: 172.30.0.1, clusterIPs: [172.30.0.1, 'fd00:172:30::1'], ipFamilies: [IPv4, IPv6], externalIPs: [198.51.100.1, '2001:db8::1'], ports: [{port: 80, nodePort: 30080}]}, status: {loadBalancer: {ingress: [{ip: 203.0.113.1}]}}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: demo, name: web-4, labels: {kubernetes.io/service-name: web}}, addressType: IPv4, ports: [{name: '', port: 8080}], endpoints: [{addresses: [10.244.0.10], nodeName: here}]}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: demo, name: web-6, labels: {kubernetes.io/service-name: web}}, addressType: IPv6, ports: [{name: '', port: 8080}], endpoints: [{addresses: ['fd00:10:244::a'], nodeName: here}]}
";

fn run(words: &[&str]) -> Output {
    testns::feed(&[&[env!("CARGO_BIN_EXE_sluicegate-proxier")], words, &FROM_INPUT].concat(), MANIFEST)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn external_ips_are_left_out_of_every_plan_where_the_gate_or_the_flag_says_so() {
    for mode in [
        &["--proxy-mode", "nftables", "--layout", "maps"][..],
        &["--proxy-mode", "nftables", "--layout", "chains"],
        &["--proxy-mode", "iptables"],
        &["--proxy-mode", "ipvs"],
    ] {
        let render = |more: &[&str]| {
            let output = run(&[&["render"], mode, more].concat());
            assert!(output.status.success(), "{mode:?} {more:?}: {}", text(&output.stderr));
            (text(&output.stdout), text(&output.stderr))
        };
        let (allowed, _) = render(&[]);
        for address in ["198.51.100.1", "2001:db8::1"] {
            assert!(allowed.contains(address), "{mode:?} {allowed}");
        }
        for how in [
            &["--feature-gates", "AllowServiceExternalIPs=false"][..],
            &["--feature-gates", "ContextualLogging=true,AllowServiceExternalIPs=false"],
            &["--ignore-external-ips"],
            &["--ignore-external-ips=true", "--feature-gates=AllowServiceExternalIPs=true"],
        ] {
            let (plan, said) = render(how);
            assert!(
                !plan.contains("198.51.100.1") && !plan.contains("2001:db8::1"),
                "{mode:?} {how:?} {plan}"
            );
            assert!(plan.contains("203.0.113.1") && plan.contains("172.30.0.1"), "{mode:?} {how:?} {plan}");
            assert!(
                said.contains("Service demo/web: spec.externalIPs: 198.51.100.1, 2001:db8::1 left out"),
                "{said}"
            );
        }
    }
}

#[test]
fn check_and_explain_tell_of_external_ips_that_are_left_out() {
    let gate = ["--feature-gates", "AllowServiceExternalIPs=false"];
    let output = run(&[&["check", "--output", "json"][..], &gate].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(json["forbiddenExternalIPs"][0].as_str().expect("a text").contains("198.51.100.1"), "{json}");
    assert!(output.status.success(), "what is configured is no fault");
    let words = ["explain", "--from", "192.0.2.9", "--to", "198.51.100.1:80/tcp"];
    let said = text(&run(&[&words[..], &gate].concat()).stdout);
    assert!(said.contains("spec.externalIPs of Service demo/web, which are left out"), "{said}");
}

#[test]
fn ipvs_mode_is_refused_where_its_gate_is_off() {
    for command in ["render", "check", "sync", "diff"] {
        let gate = ["--proxy-mode", "ipvs", "--feature-gates", "KubeProxyIPVS=false"];
        let output = run(&[&[command][..], &gate].concat());
        let said = text(&output.stderr);
        assert!(!output.status.success(), "{command}");
        assert!(
            said.contains("KubeProxyIPVS is false") && said.contains("--proxy-mode nftables"),
            "{command}: {said}"
        );
    }
    assert!(run(&["render", "--feature-gates", "KubeProxyIPVS=false"]).status.success());
}
