//! The sysctls of the network namespace that IPVS mode relies on.

/// A sysctl by its path below `/proc/sys/`, and the value that it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sysctl {
    /// `net/ipv4/vs/conntrack`
    pub path: &'static str,
    /// `1`
    pub value: &'static str,
    /// What is wrong without it.
    pub without: &'static str,
}

/// What should be set. `kernel` is the release's first two numbers, as in (6, 1).
///
/// ```
/// use sluicegate_proxier::plan::ipvs::sysctls;
///
/// assert!(sysctls(false, (6, 1)).any(|sysctl| sysctl.path == "net/ipv4/vs/conntrack"));
/// assert!(!sysctls(false, (6, 1)).any(|sysctl| sysctl.path.ends_with("conn_reuse_mode")));
/// ```
pub fn sysctls(strict_arp: bool, kernel: (u32, u32)) -> impl Iterator<Item = Sysctl> {
    // From 5.9 on the other mode is right, and before 4.1 there is none.
    let old = ((4, 1)..(5, 9)).contains(&kernel);
    let wanted = move |sysctl: &Sysctl| match sysctl.path {
        "net/ipv4/vs/conn_reuse_mode" => old,
        path if path.starts_with("net/ipv4/conf/all/arp_") => strict_arp,
        _ => true,
    };
    ALL.iter().copied().filter(wanted)
}

#[rustfmt::skip]
const ALL: &[Sysctl] = &[
    Sysctl { path: "net/ipv4/vs/conntrack", value: "1", without: "what IPVS forwards is not masqueraded" },
    Sysctl { path: "net/ipv4/vs/conn_reuse_mode", value: "0", without: "a client port that is used again waits a second" },
    Sysctl { path: "net/ipv4/vs/expire_nodest_conn", value: "1", without: "connections of endpoints that are gone wait for them" },
    Sysctl { path: "net/ipv4/vs/expire_quiescent_template", value: "1", without: "session affinity keeps clients at endpoints that are going" },
    Sysctl { path: "net/ipv4/ip_forward", value: "1", without: "nothing is forwarded to endpoints" },
    Sysctl { path: "net/ipv4/conf/all/arp_ignore", value: "1", without: "this node answers ARP for every service address" },
    Sysctl { path: "net/ipv4/conf/all/arp_announce", value: "2", without: "this node announces service addresses by ARP" },
];
