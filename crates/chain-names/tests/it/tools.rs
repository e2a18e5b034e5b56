//! The tools accept the names and list them unchanged: nft, iptables (legacy and nft) and ipset in a
//! namespace.

use sluicegate_chain_names::schemes::{calico, cni, kube_router};
use sluicegate_chain_names::{Endpoint, IpsetName, Name, NftName, Protocol, ServicePort, XtName};

const LONG: &str = "a-label-of-63-characters-which-is-the-most-that-dns-can-take-xx";

fn service_ports() -> [ServicePort<'static>; 3] {
    [
        ServicePort::new("demo", "web", "http", Protocol::Tcp).expect("labels"),
        ServicePort::new("demo", "empty", "", Protocol::Udp).expect("labels"),
        ServicePort::new(LONG, LONG, LONG, Protocol::Sctp).expect("labels"),
    ]
}

fn endpoints() -> [Endpoint; 2] {
    ["10.0.0.1:80", "[2001:db8:1:2:3:4:5:6]:65535"].map(|text| text.parse().expect("an endpoint"))
}

fn fed(command: &[&str], input: &str) {
    let output = testns::feed(command, input);
    assert!(output.status.success(), "{command:?}: {}\n{input}", String::from_utf8_lossy(&output.stderr));
}
/// Uses the longest and least usual names, among them one of 255 bytes, the limit of nft.
/// Returns the longest and least usual names; one has 255 bytes, the limit of nft.
#[test]
fn nft_accepts_and_lists_the_names() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        let mut chains = vec![NftName::new(&"n".repeat(NftName::LIMIT)).unwrap()];
        let mut sets = Vec::new();
        for port in service_ports() {
            let names = port.nftables();
            chains.extend([names.service(), names.local(), names.external(), names.firewall()]);
            for endpoint in endpoints() {
                let names = port.nftables_endpoint(&endpoint);
                chains.push(names.chain());
                sets.push(names.affinity());
            }
        }
        let mut script = String::from("add table ip kube-proxy\n");
        for chain in &chains {
            script += &format!("add chain ip kube-proxy {chain}\n");
        }
        for set in &sets {
            script += &format!("add set ip kube-proxy {set} {{ type ipv4_addr; }}\n");
            // A name must also be read back if other words follow on its line.
            script += &format!("add rule ip kube-proxy {} ip saddr @{set} goto {}\n", chains[1], chains[2]);
        }
        fed(&["nft", "-f", "-"], &script);
        let listing = testns::sh("nft list table ip kube-proxy");
        assert!(chains.iter().all(|chain| listing.contains(&format!("\tchain {chain} {{\n"))), "{listing}");
        assert!(sets.iter().all(|set| listing.contains(&format!("\tset {set} {{\n"))), "{listing}");
    });
}

#[test]
fn iptables_accepts_and_lists_the_names() {
    for tool in ["iptables-legacy", "iptables-nft"] {
        if !testns::have(&[tool, &format!("{tool}-restore")]) {
            continue;
        }
        testns::netns(|| {
            let mut chains = vec![
                XtName::new(&"x".repeat(XtName::LIMIT)).unwrap(),
                calico::POLICY_INBOUND.name(&["default/a-long-name-of-a-policy"]).unwrap(),
                calico::PROFILE_INBOUND.name(&["kns.kube-system"]).unwrap(),
                kube_router::POD_FW.name(&["demo", "web-0", "1"]).unwrap(),
                cni::DNAT.name(&["net", "1234"]).unwrap(),
            ];
            for port in service_ports() {
                let names = port.iptables();
                chains.extend([names.service(), names.local(), names.external(), names.firewall()]);
                chains.extend(endpoints().map(|endpoint| port.iptables_endpoint(&endpoint)));
            }
            let mut script = String::from("*filter\n");
            for chain in &chains {
                script += &format!(":{chain} - [0:0]\n");
            }
            for pair in chains.windows(2) {
                script += &format!("-A {} -j {}\n", pair[0], pair[1]);
            }
            fed(&[&format!("{tool}-restore")], &(script + "COMMIT\n"));
            let listing = testns::sh(&format!("{tool} -S"));
            for pair in chains.windows(2) {
                assert!(listing.contains(&format!("-A {} -j {}\n", pair[0], pair[1])), "{listing}");
            }
        });
    }
}

#[test]
fn ipset_accepts_and_lists_the_names() {
    if !testns::have(&["ipset"]) {
        return;
    }
    testns::netns(|| {
        let mut sets = vec![
            IpsetName::new(&"s".repeat(IpsetName::LIMIT)).unwrap(),
            kube_router::SRC.name(&["demo", "deny"]).unwrap(),
            kube_router::DST_INET6.name(&["demo", "deny", "IPv6"]).unwrap(),
            calico::SELECTOR_SET.name(&["s:", "all()"]).unwrap(),
        ];
        let script: String = sets.iter().map(|set| format!("create {set} hash:ip\n")).collect();
        fed(&["ipset", "restore"], &script);
        let listing = testns::sh("ipset list -n");
        let mut shown: Vec<_> = listing.lines().map(|line| IpsetName::new(line).unwrap()).collect();
        shown.sort();
        sets.sort();
        assert_eq!(shown, sets);
    });
}

/// Names that the types refuse are refused by the tools.
#[test]
fn the_tools_refuse_what_is_refused_here() {
    if !testns::have(&["nft", "iptables-nft", "iptables-legacy"]) {
        return;
    }
    let long = |length| "a".repeat(length);
    testns::netns(|| {
        for name in [&long(XtName::LIMIT + 1), "-x", "!x", "a b", "ACCEPT", "RETURN", "DNAT", "REJECT"] {
            assert!(<XtName as Name>::new(name).is_err(), "{name}");
            for tool in ["iptables-legacy", "iptables-nft"] {
                assert!(!testns::try_sh(&format!("{tool} -N '{name}'")).status.success(), "{tool}: {name}");
            }
        }
        fed(&["nft", "-f", "-"], "add table ip t\n");
        for name in [&long(NftName::LIMIT + 1), "1a", "/a", "a+b", "a*", "\u{e9}", "a b"] {
            assert!(<NftName as Name>::new(name).is_err(), "{name}");
            assert!(
                !testns::feed(&["nft", "-f", "-"], &format!("add chain ip t {name}\n")).status.success(),
                "{name}"
            );
        }
    });
}
