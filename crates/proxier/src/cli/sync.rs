//! `sync`, `diff` and `cleanup`: the plan and the current network namespace.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use sluicegate_proxier::Error;
use sluicegate_proxier::apply::Applier;
use sluicegate_proxier::model::Cluster;
use sluicegate_proxier::plan::nftables::Settings;

use super::args::{ManifestArgs, NodeArgs, ProxyArgs};

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
pub(crate) struct Cleanup {}

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
    fn cluster(&self) -> Result<(Cluster, Settings), Error> {
        let found = self.manifests.read()?;
        let node = self.node.node(&found.nodes)?;
        let (cluster, _) = self.proxy.cluster(found, node);
        let settings = self.proxy.settings(&cluster);
        Ok((cluster, settings))
    }
}

impl Sync {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let (mut cluster, settings) = self.plan.cluster()?;
        let synced = Applier::open(settings)?.sync(&mut cluster, Instant::now())?;
        println!("{} services: {synced}", cluster.service_count());
        Ok(ExitCode::SUCCESS)
    }
}

impl Diff {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let (cluster, settings) = self.plan.cluster()?;
        let difference = Applier::open(settings)?.difference(&cluster)?;
        match write!(io::stdout().lock(), "{difference}") {
            // Whoever reads has seen enough: `diff | head`.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            Err(source) => Err(Error::Write { source }),
            Ok(()) => Ok(ExitCode::SUCCESS),
        }
    }
}

impl Cleanup {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let removed = Applier::open(Settings::default())?.cleanup()?;
        if removed.is_empty() {
            println!("nothing of ours was there");
        }
        for what in removed {
            println!("removed {what}");
        }
        Ok(ExitCode::SUCCESS)
    }
}
