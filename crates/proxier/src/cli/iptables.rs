//! `render`, `sync` and `diff` in iptables mode.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use clap::{Args, ValueEnum};
use sluicegate_service_rules::iptables::Applier;
use sluicegate_service_rules::iptables::{Feature, Planner, Settings, Support};
use sluicegate_services::{Cluster, Family};

use super::Error;
use super::args::ProxyArgs;
use super::check::strings;
use super::sync::{Guard, Outcome};

/// The flags of `render` in iptables mode.
#[derive(Args, Clone, Debug)]
pub(crate) struct RenderArgs {
    /// In iptables and ipvs mode, the family to print; by default every family that services have, each below
    /// the name of its tool.
    #[arg(long, value_enum)]
    family: Option<FamilyArg>,
    /// In iptables mode, omit rules that need these: nfacct, recent, sctp, ... (`sync` detects what the
    /// kernel lacks).
    #[arg(long, value_name = "FEATURE,...", value_delimiter = ',')]
    without: Vec<Feature>,
    /// In iptables mode, masquerade with random ports, as `sync` does where it can (iptables 1.6.2 and
    /// newer).
    #[arg(long)]
    random_fully: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FamilyArg {
    Ipv4,
    Ipv6,
}

impl RenderArgs {
    /// Returns the input of `iptables-restore --noflush` as kube-proxy writes it.
    pub(crate) fn render(&self, settings: &Settings, cluster: &Cluster) -> Result<String, Error> {
        let random = (!self.random_fully).then_some(Feature::RandomFully);
        let support = Support::without(self.without.iter().copied().chain(random));
        let families = self.families(cluster);
        let mut text = String::new();
        for family in &families {
            if families.len() > 1 {
                let _ = writeln!(text, "# {}", tool(*family));
            }
            let planner = Planner::new(*family, settings, support.clone(), cluster, None)?;
            let _ = write!(text, "{}", planner.kube_proxy_input());
        }
        Ok(text)
    }

    /// Returns the families to print.
    pub(crate) fn families(&self, cluster: &Cluster) -> Vec<Family> {
        match self.family {
            Some(FamilyArg::Ipv4) => return vec![Family::Ipv4],
            Some(FamilyArg::Ipv6) => return vec![Family::Ipv6],
            None => {}
        }
        let has = |family: &Family| cluster.services().any(|service| service.has(*family));
        let families: Vec<_> = Family::BOTH.into_iter().filter(has).collect();
        if families.is_empty() { vec![Family::Ipv4] } else { families }
    }
}

/// Programs the current network namespace.
pub(crate) fn sync(proxy: &ProxyArgs, guard: Guard, cluster: &mut Cluster) -> Result<Outcome, Error> {
    let mut applier = applier(proxy)?;
    guard.check(&applier.present()?, cluster)?;
    let synced = applier.sync(cluster, Instant::now())?;
    let (notices, faults) = (strings(synced.notices()), strings(synced.faults()));
    Outcome { notices, faults, ..Outcome::of(synced) }.clean_flows(&mut applier, cluster)
}

/// Returns what `sync` would send.
pub(crate) fn diff(proxy: &ProxyArgs, cluster: &Cluster) -> Result<String, Error> {
    let mut text = String::new();
    for (family, input) in applier(proxy)?.difference(cluster)? {
        if !input.items.is_empty() {
            let _ = write!(text, "# {}\n{input}", tool(family));
        }
    }
    Ok(text)
}

pub(crate) fn applier(proxy: &ProxyArgs) -> Result<Applier, Error> {
    // A kernel without IPv6 has no tables for it.
    let has_v6 = Path::new("/proc/net/if_inet6").exists();
    let families: &[Family] = if has_v6 { &Family::BOTH } else { &[Family::Ipv4] };
    Ok(Applier::open(proxy.iptables_backend, families, proxy.iptables()?)?)
}

const fn tool(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "iptables-restore --noflush",
        Family::Ipv6 => "ip6tables-restore --noflush",
    }
}
