//! `render`: prints the plan as a script. Needs no root, no kernel and no network.

use std::io::{self, BufWriter, Write as _};
use std::process::ExitCode;

use clap::Args;
use sluicegate_proxier::Mode;
use sluicegate_service_rules::nftables::Planner;

use super::Error;
use super::args::{ManifestArgs, NodeArgs, ProxyArgs};
use super::iptables::RenderArgs;
use super::ipvs;

#[derive(Args)]
pub(crate) struct Render {
    #[command(flatten)]
    manifests: ManifestArgs,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    proxy: ProxyArgs,
    #[command(flatten)]
    iptables: RenderArgs,
}

impl Render {
    pub(crate) fn run(self) -> Result<ExitCode, Error> {
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
        let mut out = BufWriter::new(io::stdout().lock());
        match write!(out, "{script}").and_then(|()| out.flush()) {
            // The reader has closed the pipe, as in `render | head`.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            Err(error) => Err(Error::Write(error)),
            Ok(()) => Ok(ExitCode::SUCCESS),
        }
    }
}
