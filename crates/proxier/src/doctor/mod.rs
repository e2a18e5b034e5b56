//! Checks what each mode needs of the kernel, sysctls and capabilities, and which other programs have
//! rules. Changes nothing.
//!
//! What cannot be checked without a change is reported as unknown: whether a module that is not loaded can be
//! loaded, or which matches of iptables the kernel has (a sync tries them in a scratch chain).

mod others;

use std::fmt;
use std::fs;
use std::path::Path;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::probe::{Feature, supports};
use sluicegate_nftables::read;

use crate::Mode;
use crate::sysctl::{self, Needs, ROUTE_LOCALNET_LEFT, State, Sysctls};
use sluicegate_service_rules::iptables::{self, BackEnd};

pub use others::{Other, chain_owner, table_owner};
use sluicegate_services::Family;

/// The results of all checks.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The requirements of modes.
    pub checks: Vec<Check>,
    /// The tables and chains that exist.
    pub others: Vec<Other>,
}

/// A requirement of a mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The mode. `None` for every mode.
    pub mode: Option<Mode>,
    /// The requirement.
    pub what: String,
    /// The result of the check.
    pub verdict: Verdict,
    /// What was found, or what it means.
    pub detail: String,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The requirement is met.
    Good,
    /// The mode works, but not completely or not well.
    Degraded,
    /// The mode does not work.
    Missing,
    /// It cannot be checked without changing something.
    Unknown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Good => "ok",
            Self::Degraded => "degraded",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        })
    }
}

impl Diagnosis {
    /// Checks the network namespace of the calling thread, and the machine.
    #[must_use]
    pub fn run() -> Self {
        let mut diagnosis = Self::default();
        diagnosis.rights();
        diagnosis.nftables();
        diagnosis.iptables();
        diagnosis.ipvs();
        diagnosis.sysctls();
        diagnosis
    }

    /// Returns false when a requirement of the mode is missing.
    #[must_use]
    pub fn is_usable(&self, mode: Mode) -> bool {
        let concerns = |check: &&Check| check.mode.is_none_or(|of| of == mode);
        self.checks.iter().filter(concerns).all(|check| check.verdict != Verdict::Missing)
    }

    fn add(
        &mut self,
        mode: Option<Mode>,
        what: impl Into<String>,
        verdict: Verdict,
        detail: impl Into<String>,
    ) {
        self.checks.push(Check { mode, what: what.into(), verdict, detail: detail.into() });
    }

    fn rights(&mut self) {
        let (major, minor) = sysctl::kernel();
        self.add(None, "kernel", Verdict::Good, format!("Linux {major}.{minor}"));
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        match has_net_admin(&status) {
            Some(true) => self.add(None, "CAP_NET_ADMIN", Verdict::Good, "rules can be written"),
            Some(false) => self.add(
                None,
                "CAP_NET_ADMIN",
                Verdict::Missing,
                "run as root, or with `setcap cap_net_admin+ep`",
            ),
            None => {
                self.add(None, "CAP_NET_ADMIN", Verdict::Unknown, "/proc/thread-self/status cannot be read");
            }
        }
        if Path::new("/proc/sys/net/netfilter/nf_conntrack_max").exists() {
            self.add(None, "connection tracking", Verdict::Good, "nf_conntrack is loaded");
        } else {
            self.add(
                None,
                "connection tracking",
                Verdict::Unknown,
                "nf_conntrack is not loaded; the rules of a service load it",
            );
        }
        match Sysctls::default().tcp_be_liberal() {
            Some(true) => {
                let detail = "on: iptables mode drops no packets that look invalid";
                self.add(Some(Mode::Iptables), "nf_conntrack_tcp_be_liberal", Verdict::Good, detail);
            }
            Some(false) => {
                let detail = "off: iptables mode drops packets that look invalid";
                self.add(Some(Mode::Iptables), "nf_conntrack_tcp_be_liberal", Verdict::Good, detail);
            }
            None => {}
        }
    }

    fn nftables(&mut self) {
        let mode = Some(Mode::Nftables);
        let opened = Socket::open(NetlinkFamily::NETFILTER, &Options::default());
        let mut socket = match opened {
            Ok(socket) => socket,
            Err(error) => return self.add(mode, "nf_tables", Verdict::Missing, error.to_string()),
        };
        match read::generation(&mut socket) {
            Ok(generation) => {
                self.add(mode, "nf_tables", Verdict::Good, format!("generation {}", generation.id));
            }
            Err(error) => return self.add(mode, "nf_tables", Verdict::Missing, error.to_string()),
        }
        for (feature, what, verdict) in [
            (Feature::Numgen, "numgen (choice of endpoints)", Verdict::Missing),
            (Feature::Hash, "hash (session affinity of IPv6)", Verdict::Missing),
            (Feature::Fib, "fib (local addresses)", Verdict::Missing),
            (Feature::Masquerade, "masquerade", Verdict::Missing),
            (Feature::ConcatenatedIntervals, "intervals in concatenations (source ranges)", Verdict::Missing),
        ] {
            match supports(&mut socket, feature) {
                Ok(true) => self.add(mode, what, Verdict::Good, ""),
                Ok(false) => self.add(mode, what, verdict, "the kernel refuses it"),
                Err(error) => self.add(mode, what, Verdict::Unknown, error.to_string()),
            }
        }
        match read::tables(&mut socket, sluicegate_nftables::Family::UNSPEC) {
            Ok(tables) => self.others.extend(tables.iter().map(|table| Other {
                place: format!("nftables table {} {}", table.family, table.name),
                owner: table_owner(table.family, table.name.as_ref()),
                count: 1,
            })),
            Err(error) => self.add(mode, "list of tables", Verdict::Unknown, error.to_string()),
        }
    }

    fn iptables(&mut self) {
        let mode = Some(Mode::Iptables);
        let chosen = iptables::choose().ok();
        for (family, back_end) in
            Family::BOTH.into_iter().flat_map(|family| BackEnd::BOTH.map(|back_end| (family, back_end)))
        {
            let what = format!("iptables for {family}, {back_end}");
            // Looking at it would make the kernel create its tables.
            if back_end == BackEnd::Legacy && !legacy_is_there(family) {
                self.add(mode, what, Verdict::Unknown, "ip_tables is not loaded, so it has no rules");
                continue;
            }
            let opened = iptables::open(Some(back_end), &[family]).map(|opened| opened.into_iter().next());
            match opened.and_then(|tables| tables.map(|mut tables| tables.list()).transpose()) {
                Ok(save) => {
                    let detail = if chosen == Some(back_end) { "the default here" } else { "" };
                    self.add(mode, what, Verdict::Good, detail);
                    let save = save.unwrap_or_default();
                    self.others.extend(others::of_save(&save, &format!("{family} {back_end}")));
                }
                Err(error) => self.add(mode, what, Verdict::Degraded, error.to_string()),
            }
        }
    }

    fn ipvs(&mut self) {
        let mode = Some(Mode::Ipvs);
        for (path, what) in [
            ("/proc/net/ip_vs", "ip_vs"),
            ("/sys/module/ip_set", "ip_set"),
            ("/sys/module/dummy", "dummy (device kube-ipvs0)"),
        ] {
            if Path::new(path).exists() {
                self.add(mode, what, Verdict::Good, "loaded");
            } else {
                let detail = "not loaded; the kernel loads it on demand if it can (try `modprobe`)";
                self.add(mode, what, Verdict::Unknown, detail);
            }
        }
        if fs::read_to_string("/proc/net/dev").is_ok_and(|devices| devices.contains("kube-ipvs0:")) {
            self.others.push(Other {
                place: "device kube-ipvs0".to_owned(),
                owner: "a service proxy in ipvs mode; `cleanup` removes it",
                count: 1,
            });
        }
    }

    fn sysctls(&mut self) {
        for mode in Mode::ALL {
            let needs = Needs {
                mode,
                ipv6: Path::new("/proc/net/if_inet6").exists(),
                localhost_node_ports: true,
                strict_arp: false,
                kernel: sysctl::kernel(),
            };
            for finding in Sysctls::default().check(&needs) {
                let verdict = match finding.state {
                    State::AsWanted => Verdict::Good,
                    State::Absent if finding.wanted.is_needed => Verdict::Unknown,
                    State::Absent => Verdict::Good,
                    State::Is(_) | State::Failed(_) => Verdict::Degraded,
                };
                let name = finding.wanted.path.replace('/', ".");
                self.add(Some(mode), name, verdict, finding.to_string());
            }
            if mode != Mode::Iptables && Sysctls::default().route_localnet() {
                let name = "net.ipv4.conf.all.route_localnet";
                self.add(Some(mode), name, Verdict::Degraded, format!("{name} {ROUTE_LOCALNET_LEFT}"));
            }
        }
    }
}

/// Returns whether a thread with this `/proc/PID/status` has `CAP_NET_ADMIN`. `None` when the text does not
/// say.
fn has_net_admin(status: &str) -> Option<bool> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let set = u64::from_str_radix(line.trim(), 16).ok()?;
    Some(set & (1 << CAP_NET_ADMIN) != 0)
}

fn legacy_is_there(family: Family) -> bool {
    let file = if family == Family::Ipv4 {
        "/proc/thread-self/net/ip_tables_names"
    } else {
        "/proc/thread-self/net/ip6_tables_names"
    };
    Path::new(file).exists()
}

/// `CAP_NET_ADMIN` (`linux/capability.h`).
const CAP_NET_ADMIN: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capability_is_read_from_the_set() {
        assert_eq!(has_net_admin("Name:\tx\nCapEff:\t000001ffffffffff\n"), Some(true));
        assert_eq!(has_net_admin("CapEff:\t0000000000001000\n"), Some(true));
        assert_eq!(has_net_admin("CapEff:\t0000000000000fff\n"), Some(false));
        assert_eq!(has_net_admin("CapEff:\tx\n"), None);
        assert_eq!(has_net_admin(""), None);
    }

    #[test]
    fn what_a_mode_lacks_makes_it_alone_unusable() {
        let mut diagnosis = Diagnosis::default();
        diagnosis.add(Some(Mode::Iptables), "x", Verdict::Missing, "");
        diagnosis.add(Some(Mode::Ipvs), "y", Verdict::Unknown, "");
        let usable = Mode::ALL.map(|mode| diagnosis.is_usable(mode));
        assert_eq!(usable, [true, false, true]);
        diagnosis.add(None, "z", Verdict::Missing, "");
        assert!(!diagnosis.is_usable(Mode::Nftables));
    }
}
