//! `sync` and `diff`: program the current network namespace, or print what that would change.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use sluicegate_proxier::Mode;
use sluicegate_service_rules::nftables::Applier;
use sluicegate_services::Cluster;

use super::Error;
use super::args::{ManifestArgs, NodeArgs, ProxyArgs};
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
            Mode::Nftables => {
                Applier::open(proxy.settings()?)?.sync(&mut cluster, Instant::now())?.to_string()
            }
            Mode::Iptables => {
                let (synced, is_unguarded) = iptables::sync(proxy, &mut cluster)?;
                if is_unguarded {
                    println!("{} services: {synced}", cluster.service_count());
                    return Ok(ExitCode::FAILURE);
                }
                synced
            }
            Mode::Ipvs => ipvs::sync(proxy, &mut cluster)?,
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
            Mode::Nftables => Applier::open(proxy.settings()?)?.difference(&cluster)?.to_string(),
            Mode::Iptables => iptables::diff(proxy, &cluster)?,
            Mode::Ipvs => ipvs::diff(proxy, &cluster)?,
        };
        match write!(io::stdout().lock(), "{difference}") {
            // The reader has closed the pipe, as in `diff | head`.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            Err(error) => Err(Error::Write(error)),
            Ok(()) => Ok(ExitCode::SUCCESS),
        }
    }
}
