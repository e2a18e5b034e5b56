//! `render`: prints the plan as a script. Needs no root, no kernel and no network.

use std::process::ExitCode;

use clap::Args;
use sluicegate_proxier::Mode;
use sluicegate_service_rules::nftables::Planner;

use super::Error;
use super::args::{ManifestArgs, NodeArgs, ProxyArgs};
use super::iptables::RenderArgs;
use super::ipvs;
use super::output::print;

#[derive(Args)]
pub(crate) struct Render {
    #[command(flatten)]
    manifests: ManifestArgs,
    #[command(flatten)]
    pub(super) node: NodeArgs,
    #[command(flatten)]
    pub(super) proxy: ProxyArgs,
    #[command(flatten)]
    iptables: RenderArgs,
}

impl Render {
    pub(crate) fn run(self) -> Result<ExitCode, Error> {
        self.proxy.check()?;
        let found = self.manifests.read()?;
        let node = self.node.node(&found.nodes)?;
        let (cluster, _) = self.proxy.cluster(found, node);
        let script = match self.proxy.proxy_mode {
            Mode::Nftables => {
                Planner::new(&self.proxy.settings()?, &cluster, None)?.replacement().to_string()
            }
            Mode::Iptables => self.iptables.render(&self.proxy.iptables()?, &cluster)?,
            Mode::Ipvs => ipvs::render(&self.proxy.ipvs()?, &self.iptables.families(&cluster), &cluster)?,
        };
        print(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
