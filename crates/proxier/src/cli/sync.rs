//! `sync` and `diff`: program the current network namespace, or print what that would change.

use std::fmt::Display;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use sluicegate_proxier::Mode;
use sluicegate_proxier::doctor::{missing_device, of_other_nodes, of_this_node};
use sluicegate_service_rules::flows::PreviouslyProgrammed;
use sluicegate_service_rules::nftables::Applier;
use sluicegate_service_rules::{Backend, Present, Summary, present_in_other_modes};
use sluicegate_services::{Cluster, Family, Warning};

use super::Error;
use super::args::{ManifestArgs, NodeArgs, ProxyArgs};
use super::output::{OutputArgs, counted, tell};
use super::{iptables, ipvs};

#[derive(Args)]
pub(crate) struct Sync {
    #[command(flatten)]
    plan: PlanArgs,
    /// Go on where most of the cluster IPs that the kernel serves, or all, are not among the manifests or have
    /// no EndpointSlice there any more: without it that is refused, as it mostly means a wrong path, a volume
    /// that is not mounted, or a file that lost its content.
    #[arg(long)]
    allow_empty: bool,
}

#[derive(Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    plan: PlanArgs,
    /// Exit with status 1 if sync would change something, and with 2 after a failure.
    #[arg(long)]
    exit_code: bool,
}

#[derive(Args)]
struct PlanArgs {
    #[command(flatten)]
    manifests: ManifestArgs,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    proxy: ProxyArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Sync {
    pub(super) const fn settings(&mut self) -> (&mut ProxyArgs, &mut NodeArgs) {
        (&mut self.plan.proxy, &mut self.plan.node)
    }
}

impl Diff {
    pub(super) const fn settings(&mut self) -> (&mut ProxyArgs, &mut NodeArgs) {
        (&mut self.plan.proxy, &mut self.plan.node)
    }
}

impl PlanArgs {
    fn cluster(&self) -> Result<Cluster, Error> {
        self.proxy.check()?;
        let found = self.manifests.read()?;
        let node = self.node.node(&found.nodes)?;
        let nodes = found.nodes.clone();
        found.unknown.iter().for_each(|unknown| tell(format_args!("warning: {unknown}")));
        let cluster = self.proxy.cluster(found, node).0;
        // That nobody serves a port is usual while pods start, and for `check`.
        let told =
            cluster.warnings().into_iter().filter(|warning| !matches!(warning, Warning::Unserved { .. }));
        told.for_each(|warning| tell(format_args!("warning: {warning}")));
        self.proxy
            .unused_schedulers(&cluster)
            .iter()
            .for_each(|warning| tell(format_args!("warning: {warning}")));
        of_this_node(&cluster, &nodes, &self.proxy.node_port_addresses())
            .iter()
            .for_each(|warning| tell(format_args!("warning: {warning}")));
        if self.proxy.proxy_mode == Mode::Ipvs {
            of_other_nodes(&cluster, &nodes)
                .iter()
                .for_each(|warning| tell(format_args!("warning: {warning}")));
        }
        if let Some(why) = missing_device(&self.proxy.detect_local()?) {
            tell(format_args!("warning: {why}"));
        }
        Ok(cluster)
    }
}

/// What a sync did, in every mode.
#[derive(Default)]
pub(super) struct Outcome {
    /// What was changed, in words.
    pub(super) summary: String,
    pub(super) is_unchanged: bool,
    /// What is not as it should be, though it works.
    pub(super) notices: Vec<String>,
    /// What guards traffic and is missing.
    pub(super) faults: Vec<String>,
    /// The flows that were deleted, because they went on to endpoints or by frontends that are gone.
    pub(super) flows: usize,
}

impl Outcome {
    pub(super) fn of(synced: impl Display + Into<Summary>) -> Self {
        let (summary, synced) = (synced.to_string(), synced.into());
        Self { summary, is_unchanged: synced.is_unchanged, notices: synced.notices, ..Self::default() }
    }

    /// Deletes the stale flows, after a sync by this back end.
    pub(super) fn clean_flows(mut self, backend: &mut dyn Backend, cluster: &Cluster) -> Result<Self, Error> {
        let mut former = PreviouslyProgrammed::everything();
        former.add_programmed(backend.take_found());
        for family in Family::BOTH {
            match backend.clean_flows(cluster, &former, family) {
                Ok(report) => self.flows += report.map_or(0, |report| report.deleted),
                // Without connection tracking there are no stale flows.
                Err(error) if error.is_unsupported() => {}
                Err(error) => return Err(Error::Flows(error)),
            }
        }
        Ok(self)
    }
}

/// Refuses a sync that would remove most of what there is.
#[derive(Clone, Copy)]
pub(super) struct Guard {
    is_off: bool,
}

impl Guard {
    /// Fails if most of what the kernel serves is missing in the cluster.
    pub(super) fn check(self, present: &Present, cluster: &Cluster) -> Result<(), Error> {
        match present.lost_in(cluster).filter(|_| !self.is_off) {
            Some(loss) => Err(Error::MostWouldGo(loss)),
            None => Ok(()),
        }
    }
}

impl Sync {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let mut cluster = self.plan.cluster()?;
        let proxy = &self.plan.proxy;
        let guard = Guard { is_off: self.allow_empty };
        let mut outcome = match proxy.proxy_mode {
            Mode::Nftables => {
                let mut applier = Applier::open(proxy.settings()?)?;
                guard.check(&applier.present()?, &cluster)?;
                let synced = applier.sync(&mut cluster, Instant::now())?;
                Outcome::of(synced).clean_flows(&mut applier, &cluster)?
            }
            Mode::Iptables => iptables::sync(proxy, guard, &mut cluster)?,
            Mode::Ipvs => ipvs::sync(proxy, guard, &mut cluster)?,
        };
        outcome.notices.extend(left_by_others(proxy.proxy_mode));
        outcome.notices.iter().for_each(tell);
        outcome.faults.iter().for_each(|fault| tell(format_args!("sluicegate-proxier: {fault}")));
        let services = cluster.service_count();
        let flows = match outcome.flows {
            0 => String::new(),
            flows => format!("; {} deleted", counted(flows, "stale flow")),
        };
        let text = format!("{}: {}{flows}\n", counted(services, "service"), outcome.summary);
        self.plan.output.print(&text, || {
            json!({
                "mode": proxy.proxy_mode.as_str(),
                "services": services,
                "changed": !outcome.is_unchanged,
                "summary": outcome.summary,
                "notices": outcome.notices,
                "faults": outcome.faults,
                "staleFlowsDeleted": outcome.flows,
            })
        })?;
        Ok(if outcome.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Says that rules of another mode serve clients as well, which `run` would remove.
fn left_by_others(running: Mode) -> Option<String> {
    match present_in_other_modes(running) {
        Ok(present) if present.cluster_ips.is_empty() => None,
        Ok(present) => Some(format!(
            "rules of another mode than {running} are in place and serve {} as well, as they were: `run` removes them, \
             and so does `sluicegate-proxier cleanup --proxy-mode MODE`",
            counted(present.cluster_ips.len(), "cluster IP")
        )),
        Err(error) => Some(format!(
            "it is not known whether rules of another mode than {running} are in place: {error}"
        )),
    }
}

impl Diff {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        match self.print() {
            Ok(true) if self.exit_code => Ok(ExitCode::from(1)),
            Ok(_) => Ok(ExitCode::SUCCESS),
            // As with diff(1): a failure is not a difference.
            Err(error) if self.exit_code => {
                tell(format_args!("sluicegate-proxier: {error}"));
                Ok(ExitCode::from(2))
            }
            Err(error) => Err(error),
        }
    }

    /// Prints the difference, and returns whether there is one.
    fn print(&self) -> Result<bool, Error> {
        let cluster = self.plan.cluster()?;
        let proxy = &self.plan.proxy;
        let difference = match proxy.proxy_mode {
            Mode::Nftables => Applier::open(proxy.settings()?)?.difference(&cluster)?.to_string(),
            Mode::Iptables => iptables::diff(proxy, &cluster)?,
            Mode::Ipvs => ipvs::diff(proxy, &cluster)?,
        };
        let is_changed = !difference.is_empty();
        self.plan.output.print(
            &difference,
            || json!({ "mode": proxy.proxy_mode.as_str(), "changed": is_changed, "script": difference }),
        )?;
        Ok(is_changed)
    }
}
