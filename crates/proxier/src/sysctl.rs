//! The sysctls that a mode needs: the value of each, and what goes wrong without it.
//!
//! [`wanted`] lists them for a mode. [`Sysctls`] compares the list with `/proc/sys` and, on request, sets
//! what differs. All but those of bridges belong to the network namespace of the thread that reads or writes
//! them.

mod conntrack;

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

pub use conntrack::{Changed, Conntrack, SetError};

use crate::Mode;

/// A sysctl that a mode needs, with its value and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The path below `/proc/sys`, as `net/ipv4/ip_forward`.
    pub path: &'static str,
    /// The value.
    pub value: &'static str,
    /// What goes wrong otherwise.
    pub without: &'static str,
    /// The module that creates it. Without the module nothing needs the sysctl, unless [`Wanted::is_needed`].
    pub module: &'static str,
    /// Whether its absence is as bad as a wrong value.
    pub is_needed: bool,
}

/// What the choice of sysctls depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The mode.
    pub mode: Mode,
    /// Whether IPv6 services are programmed.
    pub ipv6: bool,
    /// Whether node ports are served on 127.0.0.1 (iptables mode).
    pub localhost_node_ports: bool,
    /// Whether this node must not answer ARP for service addresses on other devices (ipvs mode).
    pub strict_arp: bool,
    /// The first two numbers of the kernel's release.
    pub kernel: (u32, u32),
}

/// The state of a sysctl.
#[derive(Debug)]
pub enum State {
    /// The value that the mode needs.
    AsWanted,
    /// Another value.
    Is(String),
    /// There is no such sysctl: its module is not loaded.
    Absent,
    /// It cannot be read, or could not be set.
    Failed(io::Error),
}

/// A sysctl with its state.
#[derive(Debug)]
pub struct Finding {
    /// The sysctl, and the value that the mode needs.
    pub wanted: Wanted,
    /// Its state.
    pub state: State,
    /// Whether it was set just now.
    pub was_set: bool,
}

/// `/proc/sys`, or another directory of its form.
#[derive(Clone, Debug)]
pub struct Sysctls(PathBuf);

impl Default for Sysctls {
    fn default() -> Self {
        Self(PathBuf::from("/proc/sys"))
    }
}

/// Returns the sysctls that a mode needs.
///
/// ```
/// use sluicegate_proxier::Mode;
/// use sluicegate_proxier::sysctl::{Needs, wanted};
///
/// let needs = Needs { mode: Mode::Nftables, ipv6: false, localhost_node_ports: true, strict_arp: true, kernel: (6, 1) };
/// let paths: Vec<_> = wanted(&needs).map(|wanted| wanted.path).collect();
/// assert_eq!(paths, ["net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables"]);
/// ```
pub fn wanted(needs: &Needs) -> impl Iterator<Item = Wanted> + use<> {
    let Needs { mode, ipv6, localhost_node_ports, strict_arp, kernel } = *needs;
    // Before 4.1 there is no such sysctl; since 5.9 the kernel handles reuse with either value.
    let old_reuse = ((4, 1)..(5, 9)).contains(&kernel);
    TABLE.iter().copied().filter(move |wanted| match wanted.path {
        "net/ipv6/conf/all/forwarding" | "net/bridge/bridge-nf-call-ip6tables" => ipv6,
        "net/ipv4/conf/all/route_localnet" => mode == Mode::Iptables && localhost_node_ports,
        "net/ipv4/vs/conn_reuse_mode" => mode == Mode::Ipvs && old_reuse,
        path if path.starts_with("net/ipv4/vs/") => mode == Mode::Ipvs,
        path if path.starts_with("net/ipv4/conf/all/arp_") => mode == Mode::Ipvs && strict_arp,
        _ => true,
    })
}

/// Returns the sysctls of ipvs mode that belong to the network namespace. With IPVS loaded, all of them can
/// be set there.
///
/// ```
/// use sluicegate_proxier::sysctl::of_ipvs;
///
/// assert!(of_ipvs(false, (6, 1)).any(|wanted| wanted.path == "net/ipv4/vs/conntrack"));
/// assert!(!of_ipvs(false, (6, 1)).any(|wanted| wanted.path.ends_with("conn_reuse_mode")));
/// ```
pub fn of_ipvs(strict_arp: bool, kernel: (u32, u32)) -> impl Iterator<Item = Wanted> {
    let needs = Needs { mode: Mode::Ipvs, ipv6: false, localhost_node_ports: false, strict_arp, kernel };
    wanted(&needs).filter(|wanted| wanted.path.starts_with("net/ipv4/"))
}

/// Returns the first two numbers of the kernel's release, or (0, 0) when they cannot be read.
#[must_use]
pub fn kernel() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|digits| digits.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

impl Sysctls {
    /// Uses another directory than `/proc/sys`, for tests.
    #[must_use]
    pub fn below(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Returns the state of the sysctls of a mode. Changes nothing.
    #[must_use]
    pub fn check(&self, needs: &Needs) -> Vec<Finding> {
        wanted(needs).map(|wanted| Finding { wanted, state: self.state(&wanted), was_set: false }).collect()
    }

    /// Sets the sysctls that differ, and returns the state of all.
    #[must_use]
    pub fn set(&self, needs: &Needs) -> Vec<Finding> {
        let mut findings = self.check(needs);
        for finding in &mut findings {
            if matches!(finding.state, State::Is(_)) {
                match fs::write(self.0.join(finding.wanted.path), finding.wanted.value) {
                    Ok(()) => finding.was_set = true,
                    Err(error) => finding.state = State::Failed(error),
                }
            }
        }
        findings
    }

    /// Returns whether connection tracking accepts TCP packets outside of windows. `None` without connection
    /// tracking. It is the choice of the operator, and iptables mode omits its rule against invalid packets
    /// when it is on.
    #[must_use]
    pub fn tcp_be_liberal(&self) -> Option<bool> {
        let text = fs::read_to_string(self.0.join(TCP_BE_LIBERAL)).ok()?;
        Some(text.trim() != "0")
    }

    /// Returns whether packets to 127.0.0.0/8 are taken from the link and routed (`route_localnet`). Only
    /// iptables mode needs it, for node ports on 127.0.0.1, and guards it; a proxier that ran in that mode
    /// leaves it set.
    #[must_use]
    pub fn route_localnet(&self) -> bool {
        fs::read_to_string(self.0.join(ROUTE_LOCALNET)).is_ok_and(|text| text.trim() != "0")
    }

    fn state(&self, wanted: &Wanted) -> State {
        match fs::read_to_string(self.0.join(wanted.path)) {
            Ok(text) if text.trim() == wanted.value => State::AsWanted,
            Ok(text) => State::Is(text.trim().to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => State::Absent,
            Err(error) => State::Failed(error),
        }
    }
}

impl Finding {
    /// Returns true when the sysctl has another value or cannot be read, or is absent although it is needed.
    #[must_use]
    pub fn is_problem(&self) -> bool {
        match self.state {
            State::AsWanted => false,
            State::Is(_) => !self.was_set,
            State::Absent => self.wanted.is_needed,
            State::Failed(_) => true,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wanted { path, value, without, module, .. } = self.wanted;
        let name = path.replace('/', ".");
        match &self.state {
            State::AsWanted => write!(f, "{name} is {value}, as needed"),
            State::Is(was) if self.was_set => write!(f, "{name} was {was} and is {value} now"),
            State::Is(is) => {
                write!(
                    f,
                    "{name} is {is}, expected {value}: {without} (`sysctl -w {name}={value}`, or \
                        --set-sysctls)"
                )
            }
            State::Absent => {
                write!(f, "{name} is absent, since {module} is not loaded; expected {value}: {without}")
            }
            State::Failed(error) => write!(f, "{name}: expected {value}: {without}; {error}"),
        }
    }
}

/// What to say where [`Sysctls::route_localnet`] is set in a mode that does not need it.
pub const ROUTE_LOCALNET_LEFT: &str = "is 1, which this mode does not need: others on the link can reach \
    what listens on \
    127.0.0.1 alone, unless a rule keeps them from it; a proxier in iptables mode sets it \
    (`sysctl -w net.ipv4.conf.all.route_localnet=0`)";

/// `net.ipv4.conf.all.route_localnet`.
const ROUTE_LOCALNET: &str = "net/ipv4/conf/all/route_localnet";
/// `net.netfilter.nf_conntrack_tcp_be_liberal`.
const TCP_BE_LIBERAL: &str = "net/netfilter/nf_conntrack_tcp_be_liberal";

const BRIDGED: &str =
    "where pods are on one bridge, their connections to each other through a service are lost";
const TABLE: &[Wanted] = &[
    Wanted {
        path: "net/ipv4/ip_forward",
        value: "1",
        without: "nothing is forwarded to endpoints on other interfaces",
        module: "IPv4",
        is_needed: true,
    },
    Wanted {
        path: "net/ipv6/conf/all/forwarding",
        value: "1",
        without: "nothing is forwarded to endpoints on other interfaces",
        module: "IPv6",
        is_needed: false,
    },
    Wanted {
        path: "net/bridge/bridge-nf-call-iptables",
        value: "1",
        without: BRIDGED,
        module: "br_netfilter",
        is_needed: false,
    },
    Wanted {
        path: "net/bridge/bridge-nf-call-ip6tables",
        value: "1",
        without: BRIDGED,
        module: "br_netfilter",
        is_needed: false,
    },
    Wanted {
        path: "net/ipv4/conf/all/route_localnet",
        value: "1",
        without: "node ports on 127.0.0.1 do not work",
        module: "IPv4",
        is_needed: true,
    },
    Wanted {
        path: "net/ipv4/vs/conntrack",
        value: "1",
        without: "what IPVS forwards is not masqueraded",
        module: "ip_vs",
        is_needed: true,
    },
    Wanted {
        path: "net/ipv4/vs/conn_reuse_mode",
        value: "0",
        without: "a reused client port waits for a second",
        module: "ip_vs",
        is_needed: true,
    },
    Wanted {
        path: "net/ipv4/vs/expire_nodest_conn",
        value: "1",
        without: "connections to a removed endpoint hang",
        module: "ip_vs",
        is_needed: true,
    },
    Wanted {
        path: "net/ipv4/vs/expire_quiescent_template",
        value: "1",
        without: "session affinity keeps clients at an endpoint that is terminating",
        module: "ip_vs",
        is_needed: true,
    },
    Wanted {
        path: "net/ipv4/conf/all/arp_ignore",
        value: "1",
        without: "this node answers ARP for every service address",
        module: "IPv4",
        is_needed: true,
    },
    Wanted {
        path: "net/ipv4/conf/all/arp_announce",
        value: "2",
        without: "this node announces service addresses by ARP",
        module: "IPv4",
        is_needed: true,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    const IPVS: Needs =
        Needs { mode: Mode::Ipvs, ipv6: true, localhost_node_ports: true, strict_arp: true, kernel: (5, 4) };

    fn names(needs: Needs) -> Vec<&'static str> {
        wanted(&needs).filter_map(|wanted| wanted.path.rsplit('/').next()).collect()
    }

    #[test]
    fn each_mode_wants_its_own() {
        let all = ["ip_forward", "forwarding", "bridge-nf-call-iptables", "bridge-nf-call-ip6tables"];
        assert_eq!(names(Needs { mode: Mode::Nftables, ..IPVS }), all);
        assert_eq!(names(Needs { mode: Mode::Iptables, ..IPVS }), [&all[..], &["route_localnet"]].concat());
        assert_eq!(names(Needs { mode: Mode::Iptables, localhost_node_ports: false, ..IPVS }), all);
        let vs = ["conntrack", "conn_reuse_mode", "expire_nodest_conn", "expire_quiescent_template"];
        assert_eq!(names(IPVS), [&all[..], &vs, &["arp_ignore", "arp_announce"]].concat());
        let new = names(Needs { strict_arp: false, kernel: (5, 9), ..IPVS });
        assert_eq!(
            new,
            [&all[..], &["conntrack", "expire_nodest_conn", "expire_quiescent_template"]].concat()
        );
    }

    #[test]
    fn what_differs_is_told_with_its_reason_and_set_only_when_asked_for() {
        let directory = std::env::temp_dir().join(format!("sluicegate-sysctl-{}", std::process::id()));
        let forward = directory.join("net/ipv4/ip_forward");
        fs::create_dir_all(forward.parent().unwrap()).unwrap();
        fs::write(&forward, "0\n").unwrap();
        let sysctls = Sysctls::below(&directory);
        let needs = Needs { mode: Mode::Nftables, ipv6: false, ..IPVS };
        let shown = |findings: Vec<Finding>| -> Vec<(String, bool)> {
            findings.iter().map(|finding| (finding.to_string(), finding.is_problem())).collect()
        };
        let (forward_differs, bridge) = (
            "net.ipv4.ip_forward is 0, expected 1: nothing is forwarded to endpoints on other interfaces \
             (`sysctl -w net.ipv4.ip_forward=1`, or --set-sysctls)",
            "net.bridge.bridge-nf-call-iptables is absent, since br_netfilter is not loaded; expected 1: \
                where pods are \
             on one bridge, their connections to each other through a service are lost",
        );
        let bridge = (bridge.to_owned(), false);
        assert_eq!(shown(sysctls.check(&needs)), [(forward_differs.to_owned(), true), bridge.clone()]);
        assert_eq!(fs::read_to_string(&forward).unwrap(), "0\n", "looking changes nothing");
        let set = ("net.ipv4.ip_forward was 0 and is 1 now".to_owned(), false);
        assert_eq!(shown(sysctls.set(&needs)), [set, bridge.clone()]);
        let right = ("net.ipv4.ip_forward is 1, as needed".to_owned(), false);
        assert_eq!(shown(sysctls.set(&needs)), [right, bridge]);
        assert_eq!(sysctls.tcp_be_liberal(), None);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_namespace_of_its_own_is_set_and_no_other() {
        testns::netns(|| {
            let needs = Needs { mode: Mode::Iptables, ipv6: false, ..IPVS };
            let own = |findings: Vec<Finding>| -> Vec<String> {
                let own = findings.into_iter().filter(|finding| finding.wanted.path.starts_with("net/ipv4"));
                own.map(|finding| finding.to_string()).collect()
            };
            // The rest of the table is not of the namespace; write only what is.
            let sysctls = Sysctls::default();
            for path in ["net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet"] {
                if let Err(error) = fs::write(format!("/proc/sys/{path}"), "0") {
                    return testns::skip(&format!("sysctls of a namespace cannot be written here: {error}"));
                }
            }
            let before = own(sysctls.check(&needs));
            assert!(before.iter().all(|line| line.contains("is 0, expected 1")), "{before:?}");
            fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
            let after = own(sysctls.check(&needs));
            assert_eq!(after[0], "net.ipv4.ip_forward is 1, as needed");
        });
    }
}
