//! `doctor` in a namespace that others write rules in: it names them, and changes nothing.

use std::process::Command;

#[test]
fn others_are_named_and_nothing_is_changed() {
    if !testns::have(&["nft", "iptables-nft"]) {
        return;
    }
    testns::netns(|| {
        let _ = testns::sh(
            "nft add table inet firewalld; nft add table ip kube-proxy; nft add table ip elsewhere
             iptables-nft -t nat -N DOCKER; iptables-nft -N KUBE-FORWARD",
        );
        let rules = || testns::sh("nft list ruleset");
        let before = rules();
        let output = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"))
            .arg("doctor")
            .output()
            .expect("the command");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(output.stderr.is_empty(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(rules(), before);
        for (what, whose) in [
            ("nftables table inet firewalld", "firewalld"),
            ("nftables table ip kube-proxy", "a service proxy (this one or kube-proxy)"),
            ("nftables table ip elsewhere", "unknown"),
            ("iptables IPv4 nft, table nat", "Docker"),
            ("iptables IPv4 nft, table filter", "a service proxy (this one or kube-proxy)"),
        ] {
            let line = text.lines().any(|line| line.contains(what) && line.contains(whose));
            assert!(line, "no {what} of {whose} in\n{text}");
        }
        for (mode, what, state) in [
            ("every", "CAP_NET_ADMIN", "ok"),
            ("nftables", "numgen", "ok"),
            ("ipvs", "net.ipv4.vs.conntrack", ""),
        ] {
            let line =
                text.lines().any(|line| line.contains(mode) && line.contains(what) && line.contains(state));
            assert!(line, "no {mode} {what} {state} in\n{text}");
        }
        assert!(text.contains("nftables mode: works"), "{text}");
    });
}

#[test]
fn chains_of_others_that_a_flowtable_bypasses_are_named() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        let doctor = || {
            let output = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier")).arg("doctor").output();
            String::from_utf8(output.expect("the command").stdout).expect("text")
        };
        let script = "table inet others {\nchain forward { type filter hook forward priority 0; }\nchain input { type \
                      filter hook input priority 0; }\n}\n";
        assert!(testns::feed(&["nft", "-f", "-"], script).status.success());
        let text = doctor();
        assert!(text.contains("flowtables (optional)") && !text.contains("fast path"), "{text}");
        let script = "table ip kube-proxy {\nchain fastpath { type filter hook forward priority 200; }\n}\n";
        assert!(testns::feed(&["nft", "-f", "-"], script).status.success());
        let text = doctor();
        let line = text.lines().find(|line| line.contains("fast path (flowtable)")).expect("a notice");
        assert!(line.contains("notice") && line.contains("NetworkPolicies"), "{line}");
        assert!(line.contains("among them now: inet others forward ") && !line.contains("input"), "{line}");
    });
}

#[test]
fn route_localnet_of_a_mode_that_ran_before_is_told_where_nothing_needs_it() {
    testns::netns(|| {
        let lines = |set: &str| -> Vec<String> {
            std::fs::write("/proc/sys/net/ipv4/conf/all/route_localnet", set).expect("a sysctl");
            let output = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"))
                .arg("doctor")
                .output()
                .expect("the command");
            let text = String::from_utf8(output.stdout).expect("text");
            let told = |line: &&str| line.contains("route_localnet") && line.contains("does not need");
            text.lines().filter(told).map(str::to_owned).collect()
        };
        assert_eq!(lines("0"), [""; 0]);
        let told = lines("1");
        assert_eq!(told.len(), 2, "{told:?}");
        for (line, mode) in told.iter().zip(["nftables", "ipvs"]) {
            assert!(line.contains(mode) && line.contains("degraded"), "{line}");
        }
    });
}

#[test]
fn what_of_a_configuration_has_no_effect_is_named() {
    let path = std::env::temp_dir().join(format!("sluicegate-doctor-{}.yaml", std::process::id()));
    let text = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nconfigSyncPeriod: 5m\n\
                portRange: 1-2\nnoSuchField: 1\nfeatureGates: {ContextualLogging: true}\n";
    std::fs::write(&path, text).expect("a file");
    testns::netns(|| {
        let output = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"))
            .args(["doctor", "--feature-gates", "LoggingBetaOptions=true,ComponentFlagz=false", "--config"])
            .arg(&path)
            .output()
            .expect("the command");
        let text = String::from_utf8(output.stdout).expect("text");
        for words in [
            ["configSyncPeriod", "has no effect here"],
            ["noSuchField", ""],
            ["feature gate ContextualLogging", "has no effect here"],
            ["feature gate LoggingBetaOptions", "has no effect here"],
        ] {
            let is_named =
                |line: &str| words.iter().all(|word| line.contains(word)) && line.contains("notice");
            assert!(text.lines().any(is_named), "{words:?} in\n{text}");
        }
        assert!(!text.contains("ComponentFlagz"), "it has an effect: {text}");
    });
    let _ = std::fs::remove_file(path);
}

#[test]
fn a_table_that_another_process_owns_is_told() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        // The owner is the process that adds the table, as long as it lives.
        let mut owner = Command::new("nft")
            .arg("-i")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("nft");
        let mut input = owner.stdin.take().expect("a pipe");
        std::io::Write::write_all(&mut input, b"add table ip kube-proxy { flags owner; }\n")
            .expect("a command");
        let owned = || testns::sh("nft list tables").contains("kube-proxy");
        for _ in 0..3000 {
            if owned() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(owned(), "nft has not added its table");
        let output = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier")).arg("doctor").output();
        let text = String::from_utf8(output.expect("the command").stdout).expect("text");
        drop(input);
        owner.wait().expect("nft");
        assert!(text.contains("belongs to another process"), "{text}");
        assert!(!text.contains("nftables mode: works"), "{text}");
    });
}
