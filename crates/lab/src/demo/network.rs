//! The network that the shipped manifests describe.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sluicegate_services::Family;

use crate::{NetworkSpec, PodSpec};
use ipnet::IpNet;

/// The name of the node in the manifests.
pub(super) const NODE: &str = "demo-node";

/// A node, pods of it (`10.244.0.x`), pods of another (`10.244.1.x`), and a client outside.
pub(super) fn spec() -> NetworkSpec {
    let pod = |name, there: u8, last: u8, ports: &[u16]| PodSpec {
        name,
        // Written as people write such pairs: 10.244.0.53 and fd00:10:244:0::53.
        address: (
            Ipv4Addr::new(10, 244, there, last),
            Ipv6Addr::new(0xfd00, 0x10, 0x244, there.into(), 0, 0, 0, as_read(last)),
        ),
        ports: ports.to_vec(),
    };
    NetworkSpec {
        node: (Ipv4Addr::new(192, 168, 0, 2), Ipv6Addr::new(0xfd00, 0x192, 0x168, 0, 0, 0, 0, 2)),
        client: (Ipv4Addr::new(192, 168, 0, 100), Ipv6Addr::new(0xfd00, 0x192, 0x168, 0, 0, 0, 0, 0x100)),
        gateway: GATEWAY,
        pods: vec![
            pod("pod", 0, 5, &[]),
            pod("web-here", 0, 10, &[8080]),
            pod("web-there", 1, 10, &[8080]),
            pod("dns-here", 0, 53, &[5353]),
            pod("dns-there", 1, 53, &[5353]),
            pod("mirror", 0, 20, &[8080]),
        ],
        routed: nets(&[
            "172.30.0.0/16",
            "198.51.100.0/24",
            "203.0.113.0/24", //
            "fd00:172:30::/112",
            "2001:db8:51::/64",
            "2001:db8:113::/64",
        ]),
    }
}

/// The networks of all pods.
pub(super) fn cluster_cidrs() -> Vec<IpNet> {
    nets(&["10.244.0.0/16", "fd00:10:244::/48"])
}

/// The node's address towards its pods, from which masqueraded traffic comes.
pub(super) fn gateway(family: Family) -> IpAddr {
    match family {
        Family::Ipv4 => GATEWAY.0.into(),
        Family::Ipv6 => GATEWAY.1.into(),
    }
}

const GATEWAY: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(10, 244, 0, 1), Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, 0, 1));

/// The number whose hexadecimal digits read as the decimal digits of `decimal`.
fn as_read(decimal: u8) -> u16 {
    u16::from(decimal / 10) * 16 + u16::from(decimal % 10)
}

fn nets(list: &[&str]) -> Vec<IpNet> {
    list.iter().map(|net| net.parse().expect("a network of this file")).collect()
}
