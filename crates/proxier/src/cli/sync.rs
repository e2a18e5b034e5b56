//! `sync` and `diff`: the plan and the current network namespace.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use sluicegate_proxier::Error;
use sluicegate_proxier::apply::Applier;
use sluicegate_proxier::model::Cluster;

use super::args::{ManifestArgs, NodeArgs, ProxyArgs, ProxyMode};
use super::{iptables, ipvs};

#[derive(Args)]
pub(crate) struct Sync {
    #[command(flatten)]
    plan: PlanArgs,
}

#[derive(Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    plan: PlanArgs,
}

#[derive(Args)]
struct PlanArgs {
    #[command(flatten)]
    manifests: ManifestArgs,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    proxy: ProxyArgs,
}

impl PlanArgs {
    fn cluster(&self) -> Result<Cluster, Error> {
        let found = self.manifests.read()?;
        let node = self.node.node(&found.nodes)?;
        Ok(self.proxy.cluster(found, node).0)
    }
}

impl Sync {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let mut cluster = self.plan.cluster()?;
        let proxy = &self.plan.proxy;
        let synced = match proxy.proxy_mode {
            ProxyMode::Nftables => {
                Applier::open(proxy.settings(cluster.node()))?.sync(&mut cluster, Instant::now())?.to_string()
            }
            ProxyMode::Iptables => iptables::sync(proxy, &mut cluster)?,
            ProxyMode::Ipvs => ipvs::sync(proxy, &mut cluster)?,
        };
        println!("{} services: {synced}", cluster.service_count());
        Ok(ExitCode::SUCCESS)
    }
}

impl Diff {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let cluster = self.plan.cluster()?;
        let proxy = &self.plan.proxy;
        let difference = match proxy.proxy_mode {
            ProxyMode::Nftables => {
                Applier::open(proxy.settings(cluster.node()))?.difference(&cluster)?.to_string()
            }
            ProxyMode::Iptables => iptables::diff(proxy, &cluster)?,
            ProxyMode::Ipvs => ipvs::diff(proxy, &cluster)?,
        };
        match write!(io::stdout().lock(), "{difference}") {
            // Whoever reads has seen enough: `diff | head`.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            Err(source) => Err(Error::Write { source }),
            Ok(()) => Ok(ExitCode::SUCCESS),
        }
    }
}
