//! What this kernel, its tools, sysctls and rights allow for each mode, and who else writes rules here. Looks, and changes nothing.
//!
//! What a look cannot tell without a change is said to be not known: whether a module that is not loaded could be, or which matches of
//! iptables the kernel has (a sync finds that out in a scratch chain).

mod others;

use std::fmt;
use std::fs;
use std::path::Path;

use sluicegate_iptables_save::restore::{BackEnd, Tool, Tools};
use sluicegate_netlink::{Options, Protocol, Socket};
use sluicegate_nftables::probe::{Feature, supports};
use sluicegate_nftables::read;

use crate::model::Family;
use crate::plan::iptables::tool_family;
use crate::serve::Mode;
use crate::sysctl::{self, Needs, State, Sysctls};

pub use others::{Other, whose_chain, whose_table};

/// What was found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Diagnosis {
    /// What modes need.
    pub checks: Vec<Check>,
    /// Tables and chains that are here already.
    pub others: Vec<Other>,
}

/// One thing that some mode needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The mode that needs it; `None` for every mode.
    pub mode: Option<Mode>,
    /// What was looked at.
    pub what: String,
    /// How it is.
    pub verdict: Verdict,
    /// What that means, or what there is.
    pub detail: String,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// The mode works, but not all of it or not well.
    Wanting,
    /// The mode does not work.
    Missing,
    /// Not to be told without changing something.
    Unknown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Good => "ok",
            Self::Wanting => "wanting",
            Self::Missing => "missing",
            Self::Unknown => "not known",
        })
    }
}

impl Diagnosis {
    /// Looks at the network namespace of the calling thread, and at the machine.
    #[must_use]
    pub fn make() -> Self {
        let mut diagnosis = Self::default();
        diagnosis.rights();
        diagnosis.nftables();
        diagnosis.iptables();
        diagnosis.ipvs();
        diagnosis.sysctls();
        diagnosis
    }

    /// A mode can work here, as far as a look can tell.
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
            self.add(None, "connection tracking", Verdict::Good, "nf_conntrack is there");
        } else {
            self.add(
                None,
                "connection tracking",
                Verdict::Unknown,
                "nf_conntrack is not loaded; rules of a service load it",
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
        let opened = Socket::open(Protocol::NETFILTER, &Options::default());
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
                whose: whose_table(table.family, table.name.as_ref()),
                count: 1,
            })),
            Err(error) => self.add(mode, "list of tables", Verdict::Unknown, error.to_string()),
        }
    }

    fn iptables(&mut self) {
        let mode = Some(Mode::Iptables);
        for family in Family::BOTH {
            let tools = match Tools::find(tool_family(family)) {
                Ok(tools) => tools,
                Err(error) => {
                    self.add(
                        mode,
                        format!("iptables-restore for {family}"),
                        Verdict::Missing,
                        error.to_string(),
                    );
                    continue;
                }
            };
            let usual = tools.usual.as_ref().map(Tool::back_end);
            for tool in tools.legacy.iter().chain(&tools.nft) {
                let (a, b, c) = tool.version();
                let is_usual = if usual == Some(tool.back_end()) { ", the usual one" } else { "" };
                let name = if tool.back_end() == BackEnd::Legacy { "legacy" } else { "nft" };
                let what = format!("iptables-restore for {family}, {name}");
                // Asking the tool would make the kernel load the module.
                if tool.back_end() == BackEnd::Legacy && !legacy_is_there(family) {
                    let detail = format!(
                        "{a}.{b}.{c}{is_usual}; ip_tables is not loaded, so that there are no rules of it"
                    );
                    self.add(mode, what, Verdict::Unknown, detail);
                    continue;
                }
                match tool.save(None, false) {
                    Ok(text) => {
                        self.add(mode, what, Verdict::Good, format!("{a}.{b}.{c}{is_usual}"));
                        self.others.extend(others::of_save(&text, &format!("{family} {name}")));
                    }
                    Err(error) => self.add(mode, what, Verdict::Wanting, error.to_string()),
                }
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
                self.add(mode, what, Verdict::Good, "is there");
            } else {
                let detail = "is not loaded; the kernel loads it where it may (`modprobe` tells)";
                self.add(mode, what, Verdict::Unknown, detail);
            }
        }
        if fs::read_to_string("/proc/net/dev").is_ok_and(|devices| devices.contains("kube-ipvs0:")) {
            self.others.push(Other {
                place: "device kube-ipvs0".to_owned(),
                whose: "a service proxy in ipvs mode; `cleanup` removes it",
                count: 1,
            });
        }
    }

    fn sysctls(&mut self) {
        for mode in [Mode::Nftables, Mode::Iptables, Mode::Ipvs] {
            let needs = Needs {
                mode,
                ipv6: Path::new("/proc/net/if_inet6").exists(),
                localhost_node_ports: true,
                strict_arp: false,
                kernel: sysctl::kernel(),
            };
            for finding in Sysctls::default().look(&needs) {
                let verdict = match finding.state {
                    State::AsWanted => Verdict::Good,
                    State::Absent if finding.wanted.is_needed => Verdict::Unknown,
                    State::Absent => Verdict::Good,
                    State::Is(_) | State::Failed(_) => Verdict::Wanting,
                };
                let name = finding.wanted.path.replace('/', ".");
                self.add(Some(mode), name, verdict, finding.to_string());
            }
        }
    }
}

/// Whether a thread with this `/proc/PID/status` may write rules; `None` when that does not say.
fn has_net_admin(status: &str) -> Option<bool> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let set = u64::from_str_radix(line.trim(), 16).ok()?;
    Some(set & (1 << CAP_NET_ADMIN) != 0)
}

fn legacy_is_there(family: Family) -> bool {
    let file = if family == Family::V4 { "/proc/net/ip_tables_names" } else { "/proc/net/ip6_tables_names" };
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
        let usable = [Mode::Nftables, Mode::Iptables, Mode::Ipvs].map(|mode| diagnosis.is_usable(mode));
        assert_eq!(usable, [true, false, true]);
        diagnosis.add(None, "z", Verdict::Missing, "");
        assert!(!diagnosis.is_usable(Mode::Nftables));
    }
}
