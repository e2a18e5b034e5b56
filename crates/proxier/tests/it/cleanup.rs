//! `cleanup` takes what a service proxy left, of every back end and both families, and nothing of anybody
//! else.

use std::process::Command;

fn cleanup() -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier")).arg("cleanup").output().expect("the command");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// All rules of both back ends, without counters.
fn rules() -> String {
    testns::sh(
        "nft -s list ruleset; for family in iptables ip6tables; do $family-legacy-save; $family-nft-save; \
            done | grep -v '^#' | sed 's/\\[.*\\]//'",
    )
}

#[test]
fn every_foreign_line_stays_and_every_one_of_ours_goes() {
    let tools = ["nft", "iptables-legacy", "ip6tables-legacy", "iptables-nft", "ip6tables-nft"];
    if !testns::have(&tools) {
        return;
    }
    testns::netns(|| {
        for tool in &tools[1..] {
            let _ = testns::sh(&format!(
                "{tool} -t nat -N DOCKER; {tool} -t nat -A OUTPUT -j DOCKER; {tool} -N KUBE-FIREWALL; {tool} \
                    -A INPUT -j KUBE-FIREWALL
                 {tool} -A FORWARD -m comment --comment 'about KUBE-SERVICES' -j ACCEPT; {tool} -N \
                 KUBERNETES; {tool} -P FORWARD DROP"
            ));
        }
        let _ = testns::sh(
            "nft add table inet kube-proxy; nft add table ip kube-proxy-of-mine; nft add chain ip \
                kube-proxy-of-mine c",
        );
        let before = rules();
        for tool in &tools[1..] {
            let _ = testns::sh(&format!(
                "{tool} -t nat -N KUBE-SERVICES; {tool} -t nat -I OUTPUT -m comment --comment 'kubernetes \
                    service portals' -j KUBE-SERVICES
                 {tool} -t nat -N KUBE-SVC-AAAAAAAAAAAAAAAA; {tool} -t nat -A KUBE-SERVICES -j \
                 KUBE-SVC-AAAAAAAAAAAAAAAA
                 {tool} -N KUBE-FORWARD; {tool} -I FORWARD -j KUBE-FORWARD; {tool} -t mangle -N \
                 KUBE-PROXY-CANARY"
            ));
        }
        let _ = testns::sh(
            "nft add table ip kube-proxy; nft add table ip6 kube-proxy; nft add chain ip6 kube-proxy \
                services",
        );
        let removed = cleanup();
        assert!(removed.contains("removed table ip6 kube-proxy\n"), "{removed}");
        for what in ["IPv4, legacy", "IPv4, nft", "IPv6, legacy", "IPv6, nft"] {
            assert!(removed.contains(what), "no {what} in {removed}");
        }
        // The mangle tables are there now, and empty.
        let bare = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines.map(str::to_owned).collect()
        };
        let after = bare(&rules());
        for line in bare(&before) {
            assert!(after.contains(&line), "{line} is gone from\n{}", after.join("\n"));
        }
        let left = after.iter().filter(|line| {
            line.contains("KUBE-SERVICES")
                || line.contains("KUBE-SVC-")
                || line.contains("KUBE-FORWARD")
                || line.contains("CANARY")
        });
        let left: Vec<_> = left.filter(|line| !line.contains("about KUBE-SERVICES")).collect();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(cleanup(), "found nothing to remove\n");
    });
}

/// A rule of others that iptables has no words for keeps nothing of ours from being removed.
#[test]
fn a_rule_that_iptables_has_no_words_for_stays_and_ours_go() {
    let tools = ["nft", "iptables-legacy", "ip6tables-legacy", "iptables-nft", "ip6tables-nft"];
    if !testns::have(&tools) {
        return;
    }
    testns::netns(|| {
        for tool in &tools[1..] {
            let _ = testns::sh(&format!(
                "{tool} -t nat -N KUBE-SERVICES; {tool} -t nat -I OUTPUT -j KUBE-SERVICES"
            ));
        }
        // iptables has no words for this rule.
        let foreign = testns::try_sh("nft add rule ip nat OUTPUT numgen random mod 2 0 counter");
        assert!(foreign.status.success(), "{foreign:?}");
        let output = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"))
            .arg("cleanup")
            .output()
            .expect("the command");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (removed, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{removed}{errors}");
        for what in ["IPv4, legacy", "IPv6, legacy", "IPv4, nft", "IPv6, nft"] {
            assert!(removed.contains(what), "no {what} in {removed}");
        }
        let holds = |listed: &str, what: &str| testns::sh(listed).contains(what);
        assert!(holds("nft list table ip nat", "numgen random mod 2"));
        assert!(!holds("nft list ruleset", "KUBE-SERVICES"));
        assert!(!tools[1..3].iter().any(|tool| holds(&format!("{tool}-save"), "KUBE-SERVICES")));
    });
}
