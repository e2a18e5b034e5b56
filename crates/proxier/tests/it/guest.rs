//! ipvs mode in kernels that have IPVS: user-mode Linux with iptables' legacy back end, and a virtual machine
//! with the nft one.
//!
//! Run by `cargo xtask test`, or by hand with `umlrun` or `qemurun` as the runner (see CONTRIBUTING.md).
//! Every test makes its own network namespaces, each of which has an IPVS of its own.
#![forbid(unsafe_code)]

mod counting;
mod daemon;
mod fastpath;
mod keeping;
mod moving;
mod traffic;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Child;
use std::time::{Duration, Instant};

use sluicegate_lab::{Network, NetworkSpec, PodSpec};
use sluicegate_service_rules::iptables::BackEnd;
use sluicegate_services::Family;

/// The back end of iptables that works in this guest; skips the test outside of guests.
fn back_end() -> Option<BackEnd> {
    match testns::guest().as_deref() {
        // Its kernel has nf_tables for bridges only.
        Some("uml") => {
            // No library loads a module; the tool does.
            let _ = testns::sh("modprobe -a ip_tables ip6_tables");
            Some(BackEnd::Legacy)
        }
        Some(_) => Some(BackEnd::Nft),
        None => {
            testns::skip("runs in a guest kernel only (umlrun, qemurun)");
            None
        }
    }
}

/// The addresses of the node.
const NODE: (Ipv4Addr, Ipv6Addr) = (Ipv4Addr::new(192, 168, 0, 2), v6(0x192, 2));

const fn v6(a: u16, b: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, a, 0, 0, 0, 0, 0, b)
}

/// Returns the address of the pod of this number.
fn pod_ip(family: Family, number: u8) -> IpAddr {
    match family {
        Family::Ipv4 => [10, 244, number, 10].into(),
        Family::Ipv6 => v6(0x244 + u16::from(number), 10).into(),
    }
}

/// Builds a node, a client outside, to whom services are routed through the node, and pods, numbered from 0,
/// which answer on port 8080.
fn network(pods: &[&'static str]) -> Network {
    let pod = |(number, name): (u8, &&'static str)| PodSpec {
        name,
        address: ([10, 244, number, 10].into(), v6(0x244 + u16::from(number), 10)),
        ports: vec![8080],
    };
    let spec = NetworkSpec {
        node: NODE,
        client: ([192, 168, 0, 100].into(), v6(0x192, 100)),
        gateway: ([10, 244, 0, 1].into(), v6(0x244, 1)),
        pods: (0..).zip(pods).map(pod).collect(),
        routed: vec!["172.30.0.0/16".parse().unwrap(), "fd00:172::/64".parse().unwrap()],
    };
    Network::build(&spec).unwrap()
}

/// A process that is killed with its value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until something is so: an emulated processor stands still at times, and a first sync takes 20 s on it. Whoever
/// asks takes it away from those who are waited for.
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(180);
    while !is_so() {
        assert!(Instant::now() < end, "not: {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}
