//! `render`, `sync` and `diff` in ipvs mode.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::{ArgAction, Args};
use ipnet::IpNet;
use sluicegate_ipvs::{Scheduler, Timeouts};
use sluicegate_proxier::config::{Config, parse_duration};
use sluicegate_proxier::sysctl::Sysctls;
use sluicegate_service_rules::ipvs::Applier;
use sluicegate_service_rules::ipvs::{ConnectionTimeouts, Planner, Settings};
use sluicegate_services::{Cluster, Family};

use super::Error;
use super::args::{ProxyArgs, boolean, cidr};
use super::check::strings;
use super::serve::needs;
use super::sync::{Guard, Outcome};
use super::value::ValueError;

/// The flags of ipvs mode, with kube-proxy's names.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Rules of ipvs mode")]
pub(crate) struct IpvsArgs {
    /// In ipvs mode, the scheduler that chooses an endpoint: rr, wrr, lc, wlc, sh, dh, mh, sed, nq, ...
    #[arg(long, value_name = "NAME", default_value = "rr", value_parser = scheduler)]
    pub(super) ipvs_scheduler: Scheduler,
    /// In ipvs mode, networks whose virtual servers belong to other programs and are never removed.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = cidr)]
    pub(super) ipvs_exclude_cidrs: Vec<IpNet>,
    /// In ipvs mode, require the sysctls that keep this node from answering ARP for service addresses on
    /// other devices.
    #[arg(
        long,
        value_name = "true|false",
        default_value_t = false,
        num_args = 0..=1,
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = boolean
    )]
    pub(super) ipvs_strict_arp: bool,
    /// In ipvs mode, the timeout of idle TCP connections (15m, 900s); 0s keeps that of the kernel.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    ipvs_tcp_timeout: Duration,
    /// In ipvs mode, the timeout of TCP connections after a FIN; 0s keeps that of the kernel.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    ipvs_tcpfin_timeout: Duration,
    /// In ipvs mode, the timeout of UDP flows; 0s keeps that of the kernel.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    ipvs_udp_timeout: Duration,
}

impl IpvsArgs {
    /// Sets the flags that were not given from a configuration file.
    pub(crate) fn fill(&mut self, config: &Config, given: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        fn set<T>(place: &mut T, value: Option<T>, given: bool) {
            if let Some(value) = value.filter(|_| !given) {
                *place = value;
            }
        }
        let name = config.ipvs_scheduler.as_deref().map(scheduler).transpose();
        let name = name.map_err(|reason| Error::flag("ipvs.scheduler", reason))?;
        set(&mut self.ipvs_scheduler, name, given("ipvs_scheduler"));
        let cidrs = config.ipvs_exclude_cidrs.clone();
        set(&mut self.ipvs_exclude_cidrs, cidrs, given("ipvs_exclude_cidrs"));
        set(&mut self.ipvs_strict_arp, config.ipvs_strict_arp, given("ipvs_strict_arp"));
        set(&mut self.ipvs_tcp_timeout, config.ipvs_tcp_timeout, given("ipvs_tcp_timeout"));
        set(&mut self.ipvs_tcpfin_timeout, config.ipvs_tcp_fin_timeout, given("ipvs_tcpfin_timeout"));
        set(&mut self.ipvs_udp_timeout, config.ipvs_udp_timeout, given("ipvs_udp_timeout"));
        Ok(())
    }

    /// Returns a warning where the scheduler is none that Linux has: whether this kernel has it shows with the
    /// first service alone.
    pub(crate) fn unknown_scheduler(&self) -> Option<String> {
        let (name, known) = (self.ipvs_scheduler, Scheduler::KNOWN);
        // The last is what the kernel reports of a service without one.
        let usual = known.iter().filter(|known| **known != Scheduler::NONE);
        let usual: Vec<_> = usual.map(Scheduler::as_str).collect();
        (!usual.contains(&name.as_str())).then(|| {
            format!(
                "--ipvs-scheduler {name}: Linux has no scheduler of this name, expected one of {}",
                usual.join(", ")
            )
        })
    }

    /// Returns the timeouts of connections.
    pub(crate) fn timeouts(&self) -> Timeouts {
        Timeouts {
            tcp: seconds(self.ipvs_tcp_timeout),
            tcp_fin: seconds(self.ipvs_tcpfin_timeout),
            udp: seconds(self.ipvs_udp_timeout),
        }
    }

    /// Returns the settings of these flags, and defaults for all others.
    pub(crate) fn settings(&self) -> Result<Settings, Error> {
        Ok(Settings {
            scheduler: self.ipvs_scheduler,
            exclude_cidrs: self.ipvs_exclude_cidrs.clone(),
            strict_arp: self.ipvs_strict_arp,
            timeouts: ConnectionTimeouts::new(self.timeouts())?,
            ..Settings::default()
        })
    }
}

/// Returns the whole plan as input of `ipset`, `ipvsadm`, `ip` and `iptables-restore`.
pub(crate) fn render(settings: &Settings, families: &[Family], cluster: &Cluster) -> Result<String, Error> {
    let script = |family: &Family| {
        let planner = Planner::new(*family, settings, cluster, None)?;
        Ok(planner.whole().script(*family).to_string())
    };
    families.iter().map(script).collect()
}

/// Programs the current network namespace.
pub(crate) fn sync(proxy: &ProxyArgs, guard: Guard, cluster: &mut Cluster) -> Result<Outcome, Error> {
    let mut applier = applier(proxy)?;
    guard.check(&applier.present()?, cluster)?;
    let synced = applier.sync(cluster, Instant::now())?;
    let findings = Sysctls::default().check(&needs(proxy, cluster)?);
    let notices = strings(findings.iter().filter(|finding| finding.is_problem()));
    Outcome { notices, ..Outcome::of(synced) }.clean_flows(&mut applier, cluster)
}

/// Returns what `sync` would do, as scripts.
pub(crate) fn diff(proxy: &ProxyArgs, cluster: &Cluster) -> Result<String, Error> {
    let changes = applier(proxy)?.difference(cluster)?;
    Ok(changes.iter().map(|(family, change)| change.script(*family).to_string()).collect())
}

/// Opens the applier of the current network namespace.
pub(crate) fn applier(proxy: &ProxyArgs) -> Result<Applier, Error> {
    let settings = Settings { random_fully: true, ..proxy.ipvs()? };
    Ok(Applier::open(proxy.iptables_backend, families(), settings)?)
}

/// Returns the families that the kernel has.
pub(crate) fn families() -> &'static [Family] {
    if Path::new("/proc/net/if_inet6").exists() { &Family::BOTH } else { &[Family::Ipv4] }
}

fn scheduler(text: &str) -> Result<Scheduler, ValueError> {
    // As with kube-proxy, none is the default.
    let name = if text.is_empty() { Scheduler::RR.as_str().to_owned() } else { text.to_owned() };
    Scheduler::new(&name).map_err(ValueError::invalid)
}

/// Rounds down to seconds. The settings refuse values that are too large for the kernel.
fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_scheduler_is_the_default_one() {
        assert_eq!(scheduler("").unwrap(), Scheduler::RR);
        assert_eq!(scheduler("mh").unwrap(), Scheduler::MH);
        assert!(scheduler("a scheduler of a very long name").is_err());
    }
}
