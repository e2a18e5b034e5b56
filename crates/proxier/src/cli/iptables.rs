//! `render`, `sync` and `diff` in iptables mode.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use clap::{Args, ValueEnum};
use sluicegate_proxier::Error;
use sluicegate_proxier::apply::iptables::Applier;
use sluicegate_proxier::model::{Cluster, Family, Node};
use sluicegate_proxier::plan::iptables::{Feature, Planner, Settings, Support};

use super::args::ProxyArgs;

/// What `render` is to print in iptables mode.
#[derive(Args, Clone, Debug)]
pub(crate) struct RenderArgs {
    /// In iptables and ipvs mode, the family to print; without it, those that services have, each below the name of its
    /// tool.
    #[arg(long, value_enum)]
    family: Option<FamilyArg>,
    /// In iptables mode, leave out what needs these: nfacct, recent, sctp, ... (`sync` finds out what the kernel lacks)
    #[arg(long, value_name = "FEATURE,...", value_delimiter = ',')]
    without: Vec<Feature>,
    /// In iptables mode, masquerade with random ports, as `sync` does where it can (iptables 1.6.2 and newer).
    #[arg(long)]
    random_fully: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FamilyArg {
    Ipv4,
    Ipv6,
}

impl RenderArgs {
    /// The input of `iptables-restore --noflush`.
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
            let _ = write!(text, "{}", planner.input());
        }
        Ok(text)
    }

    /// The families to print.
    pub(crate) fn families(&self, cluster: &Cluster) -> Vec<Family> {
        match self.family {
            Some(FamilyArg::Ipv4) => return vec![Family::V4],
            Some(FamilyArg::Ipv6) => return vec![Family::V6],
            None => {}
        }
        let has = |family: &Family| cluster.services().any(|service| service.has(*family));
        let families: Vec<_> = Family::BOTH.into_iter().filter(has).collect();
        if families.is_empty() { vec![Family::V4] } else { families }
    }
}

/// Brings the current network namespace to the plan; says what was done.
pub(crate) fn sync(proxy: &ProxyArgs, cluster: &mut Cluster) -> Result<String, Error> {
    let synced = applier(proxy, cluster.node())?.sync(cluster, Instant::now())?;
    synced.notices().for_each(|notice| eprintln!("{notice}"));
    Ok(synced.to_string())
}

/// What `sync` would send.
pub(crate) fn diff(proxy: &ProxyArgs, cluster: &Cluster) -> Result<String, Error> {
    let mut text = String::new();
    for (family, input) in applier(proxy, cluster.node())?.difference(cluster)? {
        if !input.items.is_empty() {
            let _ = write!(text, "# {}\n{input}", tool(family));
        }
    }
    Ok(text)
}

pub(crate) fn applier(proxy: &ProxyArgs, node: &Node) -> Result<Applier, Error> {
    // A kernel without IPv6 has no tables for it.
    let has_v6 = Path::new("/proc/net/if_inet6").exists();
    let families: &[Family] = if has_v6 { &Family::BOTH } else { &[Family::V4] };
    Applier::find(proxy.iptables_backend.map(Into::into), families, proxy.iptables(node))
}

const fn tool(family: Family) -> &'static str {
    match family {
        Family::V4 => "iptables-restore --noflush",
        Family::V6 => "ip6tables-restore --noflush",
    }
}
