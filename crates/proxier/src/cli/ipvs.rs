//! `render`, `sync` and `diff` in ipvs mode.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use ipnet::IpNet;
use sluicegate_ipvs::{Scheduler, Timeouts};
use sluicegate_proxier::Error;
use sluicegate_proxier::apply::ipvs::Applier;
use sluicegate_proxier::config::{Config, parse_duration};
use sluicegate_proxier::model::{Cluster, Family, Node, parse_cidr};
use sluicegate_proxier::plan::ipvs::{Planner, Settings};
use sluicegate_proxier::sysctl::Sysctls;

use super::args::ProxyArgs;
use super::serve::needs;

/// The flags of this mode, by kube-proxy's names.
#[derive(Args, Clone, Debug)]
pub(crate) struct IpvsArgs {
    /// In ipvs mode, how a virtual server chooses an endpoint: rr, wrr, lc, wlc, sh, dh, mh, sed, nq, ...
    #[arg(long, value_name = "NAME", default_value = "rr", value_parser = scheduler)]
    ipvs_scheduler: Scheduler,
    /// In ipvs mode, networks whose virtual servers are somebody else's and are never removed.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = cidr)]
    ipvs_exclude_cidrs: Vec<IpNet>,
    /// In ipvs mode, want the sysctls with which this node answers ARP for service addresses on no other device.
    #[arg(long)]
    ipvs_strict_arp: bool,
    /// In ipvs mode, after how long an idle TCP connection is forgotten (15m, 900s); 0s leaves it as it is.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    ipvs_tcp_timeout: Duration,
    /// In ipvs mode, the same after a FIN.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    ipvs_tcpfin_timeout: Duration,
    /// In ipvs mode, the same of a UDP flow.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    ipvs_udp_timeout: Duration,
}

impl IpvsArgs {
    /// Takes from a configuration file what no flag says.
    pub(crate) fn fill(&mut self, config: &Config, given: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        fn set<T>(place: &mut T, value: Option<T>, given: bool) {
            if let Some(value) = value.filter(|_| !given) {
                *place = value;
            }
        }
        let wrong = |flag: &str, reason| Error::Flag { flag: flag.to_owned(), reason };
        let name = config.ipvs_scheduler.as_deref().map(scheduler).transpose();
        let name = name.map_err(|reason| wrong("ipvs.scheduler", reason))?;
        set(&mut self.ipvs_scheduler, name, given("ipvs_scheduler"));
        let cidrs = config.ipvs_exclude_cidrs.clone();
        set(&mut self.ipvs_exclude_cidrs, cidrs, given("ipvs_exclude_cidrs"));
        set(&mut self.ipvs_strict_arp, config.ipvs_strict_arp, given("ipvs_strict_arp"));
        set(&mut self.ipvs_tcp_timeout, config.ipvs_tcp_timeout, given("ipvs_tcp_timeout"));
        set(&mut self.ipvs_tcpfin_timeout, config.ipvs_tcp_fin_timeout, given("ipvs_tcpfin_timeout"));
        set(&mut self.ipvs_udp_timeout, config.ipvs_udp_timeout, given("ipvs_udp_timeout"));
        Ok(())
    }

    /// What these flags say; the rest is the default.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            scheduler: self.ipvs_scheduler,
            exclude_cidrs: self.ipvs_exclude_cidrs.clone(),
            strict_arp: self.ipvs_strict_arp,
            timeouts: Timeouts {
                tcp: seconds(self.ipvs_tcp_timeout),
                tcp_fin: seconds(self.ipvs_tcpfin_timeout),
                udp: seconds(self.ipvs_udp_timeout),
            },
            ..Settings::default()
        }
    }
}

/// Everything that the services want, as input of the tools that would make it.
pub(crate) fn render(settings: &Settings, families: &[Family], cluster: &Cluster) -> Result<String, Error> {
    let script = |family: &Family| {
        let planner = Planner::new(*family, settings, cluster, None)?;
        Ok(planner.whole().script(*family).to_string())
    };
    families.iter().map(script).collect()
}

/// Brings the current network namespace to the plan; says what was done.
pub(crate) fn sync(proxy: &ProxyArgs, cluster: &mut Cluster) -> Result<String, Error> {
    let synced = applier(proxy, cluster.node())?.sync(cluster, Instant::now())?;
    let findings = Sysctls::default().look(&needs(proxy, cluster));
    findings.iter().filter(|finding| finding.is_wanting()).for_each(|finding| eprintln!("{finding}"));
    Ok(synced.to_string())
}

/// What `sync` would do, as scripts.
pub(crate) fn diff(proxy: &ProxyArgs, cluster: &Cluster) -> Result<String, Error> {
    let changes = applier(proxy, cluster.node())?.difference(cluster)?;
    Ok(changes.iter().map(|(family, change)| change.script(*family).to_string()).collect())
}

/// What brings the current network namespace along.
pub(crate) fn applier(proxy: &ProxyArgs, node: &Node) -> Result<Applier, Error> {
    let settings = Settings { random_fully: true, ..proxy.ipvs(node) };
    Applier::open(proxy.iptables_backend.map(Into::into), families(), settings)
}

/// A kernel without IPv6 has no tables for it.
pub(crate) fn families() -> &'static [Family] {
    if Path::new("/proc/net/if_inet6").exists() { &Family::BOTH } else { &[Family::V4] }
}

fn scheduler(text: &str) -> Result<Scheduler, String> {
    // As with kube-proxy, none is the default.
    let name = if text.is_empty() { Scheduler::RR.as_str().to_owned() } else { text.to_owned() };
    Scheduler::new(&name).map_err(|error| error.to_string())
}

fn cidr(text: &str) -> Result<IpNet, String> {
    parse_cidr(text.trim()).ok_or_else(|| "not a CIDR (10.244.0.0/16)".to_owned())
}

/// Whole seconds; what is too much for the kernel the planner refuses.
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
