//! Checks what each mode needs of the kernel, sysctls and capabilities, and which other programs have
//! rules. Changes nothing.
//!
//! What cannot be checked without a change is reported as unknown: whether a module that is not loaded can be
//! loaded, or which matches of iptables the kernel has (a sync tries them in a scratch chain).

mod foreign;
mod lost;
mod network;
mod others;

use std::fmt;
use std::fs;
use std::path::Path;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::probe::{Feature, supports};
use sluicegate_nftables::{self as nft, read};

use crate::Mode;
use crate::sysctl::{self, Needs, ROUTE_LOCALNET_LEFT, State, Sysctls};
use sluicegate_service_rules::iptables::{self, BackEnd};
use sluicegate_service_rules::nftables::{FASTPATH, TABLE, has_flowtables};

pub use lost::why_lost;
pub use network::{localnet_is_guarded, missing_device, of_objects, of_other_nodes, of_this_node};
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
    /// Whether [`others`](Self::others) lacks something, because it could not be listed.
    pub others_are_incomplete: bool,
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
    /// It may be as it is meant, or be why traffic is lost: somebody who knows has to look.
    Notice,
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
            Self::Notice => "notice",
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
        diagnosis.modes();
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
                // As kube-proxy's nftables mode, ours has no rule against such packets.
                let detail = "off: a segment that comes late, and so out of its window, is not translated back, \
                     and resets its connection; 1 prevents it";
                self.add(Some(Mode::Nftables), "nf_conntrack_tcp_be_liberal", Verdict::Notice, detail);
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
        let (verdict, detail) = match has_flowtables(&mut socket) {
            Ok(true) => {
                (Verdict::Good, "for --nftables-fastpath-after, past the chains of all programs".to_owned())
            }
            Ok(false) => {
                (Verdict::Notice, "not in this kernel: --nftables-fastpath-after does nothing".to_owned())
            }
            Err(error) => (Verdict::Unknown, error.to_string()),
        };
        self.add(mode, "flowtables (optional)", verdict, detail);
        for family in [nft::Family::IP, nft::Family::IP6] {
            let Ok(name) = nft::Name::new(TABLE) else { continue };
            let id = nft::TableId::new(family, name);
            match read::table(&mut socket, &id) {
                Ok(table) => {
                    if let Some(owner) = table.and_then(|table| table.owner) {
                        let detail = format!(
                            "belongs to another process (flag owner, netlink port {owner}, mostly its number): nobody \
                             else can change it until that one ends"
                        );
                        self.add(mode, format!("table {id}"), Verdict::Missing, detail);
                    }
                }
                Err(error) => self.add(mode, format!("table {id}"), Verdict::Unknown, error.to_string()),
            }
        }
        match foreign::tables(&mut socket) {
            Ok(tables) => {
                self.others.extend(tables.iter().map(|table| {
                    Other {
                        place: format!("nftables table {} {}", table.family, foreign::shown(&table.name)),
                        owner: std::str::from_utf8(&table.name)
                            .map_or("unknown", |name| table_owner(table.family, name)),
                        count: 1,
                    }
                }));
            }
            Err(error) => {
                self.others_are_incomplete = true;
                self.add(mode, "list of tables", Verdict::Unknown, error.to_string());
            }
        }
    }

    /// Notes the chains of nftables, those of iptables' nft back end among them.
    fn chains(&mut self, chains: &[foreign::Chain]) {
        for chain in chains {
            let Some(base) = chain.base.filter(|base| base.drops) else { continue };
            let (table, name) = (foreign::shown(&chain.table), foreign::shown(&chain.name));
            self.drops(
                format!("nftables table {} {table}, chain {name}", chain.family),
                &base.hook_name(chain.family),
            );
        }
        self.fastpath(chains);
        for family in Family::BOTH {
            self.others.extend(others::of_nft(chains, family));
        }
    }

    /// Notes which chains of others do not see what the flowtable of ours has taken.
    fn fastpath(&mut self, chains: &[foreign::Chain]) {
        let is_ours = |chain: &foreign::Chain| chain.table == TABLE.as_bytes();
        let forward: Vec<_> = chains
            .iter()
            .filter(|chain| chain.base.is_some_and(|base| base.hook_name(chain.family) == "forward"))
            .collect();
        if !forward.iter().any(|chain| is_ours(chain) && chain.name == FASTPATH.as_bytes()) {
            return;
        }
        let others: Vec<_> = forward
            .iter()
            .filter(|chain| {
                !is_ours(chain)
                    && [nft::Family::IP, nft::Family::IP6, nft::Family::INET].contains(&chain.family)
            })
            .map(|chain| {
                format!("{} {} {}", chain.family, foreign::shown(&chain.table), foreign::shown(&chain.name))
            })
            .collect();
        let others = match others.as_slice() {
            [] => "no forward chain of others is in nftables now".to_owned(),
            some => format!("among them now: {}", some.join(", ")),
        };
        let detail = format!(
            "established connections to services pass no chain of any program: NetworkPolicies that filter more than new \
             connections, counters and logs miss them; {others}"
        );
        self.add(Some(Mode::Nftables), "fast path (flowtable)", Verdict::Notice, detail);
    }

    /// Notes a chain that drops what no rule of it lets through.
    fn drops(&mut self, what: String, hook: &str) {
        let detail = format!(
            "policy drop in the hook {hook}: traffic of services is lost there, unless a rule of it lets it through"
        );
        self.add(None, what, Verdict::Notice, detail);
    }

    fn iptables(&mut self) {
        let mode = Some(Mode::Iptables);
        let chosen = iptables::choose().ok();
        let chains = Socket::open(NetlinkFamily::NETFILTER, &Options::default())
            .and_then(|mut socket| foreign::chains(&mut socket));
        for (family, back_end) in
            Family::BOTH.into_iter().flat_map(|family| BackEnd::BOTH.map(|back_end| (family, back_end)))
        {
            let what = format!("iptables for {family}, {back_end}");
            let detail = if chosen == Some(back_end) { "the default here" } else { "" };
            // Its rules are not read: those of others may have what no word of iptables says.
            if back_end == BackEnd::Nft {
                match &chains {
                    Ok(_) => self.add(mode, what, Verdict::Good, detail),
                    Err(error) => self.add(mode, what, Verdict::Degraded, error.to_string()),
                }
                continue;
            }
            // Looking at it would make the kernel create its tables.
            if !legacy_is_there(family) {
                self.add(mode, what, Verdict::Unknown, "ip_tables is not loaded, so it has no rules");
                continue;
            }
            let opened = iptables::open(Some(back_end), &[family]).map(|opened| opened.into_iter().next());
            match opened.and_then(|tables| tables.map(|mut tables| tables.list()).transpose()) {
                Ok(save) => {
                    self.add(mode, what, Verdict::Good, detail);
                    let save = save.unwrap_or_default();
                    for (table, chain) in others::dropping(&save) {
                        let what = format!("iptables {family} {back_end}, table {table}, chain {chain}");
                        self.drops(what, &chain.to_lowercase());
                    }
                    self.others.extend(others::of_save(&save, &format!("{family} {back_end}")));
                }
                Err(error) => {
                    self.others_are_incomplete = true;
                    self.add(mode, what, Verdict::Degraded, error.to_string());
                }
            }
        }
        match chains {
            Ok(chains) => self.chains(&chains),
            Err(error) => {
                self.others_are_incomplete = true;
                self.add(Some(Mode::Nftables), "list of chains", Verdict::Unknown, error.to_string());
            }
        }
    }

    /// Notes the rules of more than one mode.
    fn modes(&mut self) {
        let is_proxy = |other: &&Other| other.owner == others::PROXY;
        let of = |prefix: &str| self.others.iter().filter(is_proxy).any(|o| o.place.starts_with(prefix));
        let found =
            [("nftables", "nftables table"), ("iptables", "iptables "), ("ipvs", "device kube-ipvs0")]
                .map(|(mode, prefix)| (mode, of(prefix) || (mode == "ipvs" && of_ipvs(&self.others))));
        // ipvs mode has rules of iptables too.
        let modes: Vec<_> = found
            .iter()
            .filter(|(mode, is_found)| *is_found && !(*mode == "iptables" && found[2].1))
            .map(|(mode, _)| *mode)
            .collect();
        if modes.len() > 1 {
            let detail = format!(
                "rules of {} mode are there at once: which of them a packet meets first translates it; stop the \
                 proxy that should not run, and remove what it left with `cleanup`",
                modes.join(" and ")
            );
            self.add(None, "one mode at a time", Verdict::Notice, detail);
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
                owner: others::IPVS_PROXY,
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
                if localnet_is_guarded() {
                    let detail = "1, and KUBE-FIREWALL keeps others on the link from 127.0.0.0/8";
                    self.add(Some(mode), name, Verdict::Good, detail);
                    continue;
                }
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

fn of_ipvs(others: &[Other]) -> bool {
    others.iter().any(|other| other.owner == others::IPVS_PROXY)
}

fn legacy_is_there(family: Family) -> bool {
    Path::new(legacy_tables(family)).exists()
}

/// Returns the file with the names of iptables-legacy's tables.
const fn legacy_tables(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "/proc/thread-self/net/ip_tables_names",
        Family::Ipv6 => "/proc/thread-self/net/ip6_tables_names",
    }
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
