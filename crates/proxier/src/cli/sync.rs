//! `sync` and `diff`: program the current network namespace, or print what that would change.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use sluicegate_proxier::Mode;
use sluicegate_proxier::doctor::{missing_device, of_other_nodes};
use sluicegate_service_rules::flows::Former;
use sluicegate_service_rules::nftables::Applier;
use sluicegate_service_rules::{Backend, Summary};
use sluicegate_services::{Cluster, Family, Warning};

use super::Error;
use super::args::{ManifestArgs, NodeArgs, ProxyArgs};
use super::output::{OutputArgs, counted, tell};
use super::{iptables, ipvs};

#[derive(Args)]
pub(crate) struct Sync {
    #[command(flatten)]
    plan: PlanArgs,
    /// Go on where most of the cluster IPs that the kernel serves are not among the manifests, or all:
    /// without it that is refused, as it mostly means a wrong path, a volume that is not mounted, or a file
    /// that lost its content.
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

impl PlanArgs {
    fn cluster(&self) -> Result<Cluster, Error> {
        self.proxy.check_gates()?;
        let found = self.manifests.read()?;
        let node = self.node.node(&found.nodes)?;
        let nodes = found.nodes.clone();
        found.unknown.iter().for_each(|unknown| tell(format_args!("warning: {unknown}")));
        let cluster = self.proxy.cluster(found, node).0;
        // That nobody serves a port is usual while pods start, and for `check`.
        let told =
            cluster.warnings().into_iter().filter(|warning| !matches!(warning, Warning::Unserved { .. }));
        told.for_each(|warning| tell(format_args!("warning: {warning}")));
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
        let summary = synced.to_string();
        Self { summary, is_unchanged: synced.into().is_unchanged, ..Self::default() }
    }

    /// Deletes the stale flows, after a sync by this back end.
    pub(super) fn clean_flows(mut self, backend: &mut dyn Backend, cluster: &Cluster) -> Result<Self, Error> {
        let mut former = Former::everything();
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
pub(super) struct Guard {
    is_off: bool,
    wanted: BTreeSet<IpAddr>,
}

impl Guard {
    fn new(cluster: &Cluster, is_off: bool) -> Self {
        let services = cluster.service_names().filter_map(|name| cluster.service(name));
        Self { is_off, wanted: services.flat_map(|service| service.cluster_ips).flatten().collect() }
    }

    /// Fails if more than half of the cluster IPs that the kernel serves are not wanted any more, unless
    /// there are few of them and others come in their place.
    pub(super) fn check(&self, present: &BTreeSet<IpAddr>) -> Result<(), Error> {
        let gone = present.difference(&self.wanted).count();
        let is_most = 2 * gone > present.len();
        if !self.is_off && is_most && (gone >= MANY || 2 * self.wanted.len() < present.len()) {
            return Err(Error::MostWouldGo { gone, all: present.len() });
        }
        Ok(())
    }
}

impl Sync {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let mut cluster = self.plan.cluster()?;
        let proxy = &self.plan.proxy;
        let guard = Guard::new(&cluster, self.allow_empty);
        let outcome = match proxy.proxy_mode {
            Mode::Nftables => {
                let mut applier = Applier::open(proxy.settings()?)?;
                guard.check(&applier.cluster_ips()?)?;
                let synced = applier.sync(&mut cluster, Instant::now())?;
                Outcome::of(synced).clean_flows(&mut applier, &cluster)?
            }
            Mode::Iptables => iptables::sync(proxy, &guard, &mut cluster)?,
            Mode::Ipvs => ipvs::sync(proxy, &guard, &mut cluster)?,
        };
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

/// The number of cluster IPs from which on others in their place are no reason to remove them: as of the
/// daemon's doubt about objects that are gone.
const MANY: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_remove_most_of_what_there_is_is_refused() {
        let ips = |of: std::ops::Range<u8>| {
            of.map(|last| IpAddr::from([172, 30, 0, last])).collect::<BTreeSet<_>>()
        };
        let cases = [
            (0..0, 0..0, true),
            (0..0, 0..50, true),
            (0..1, 0..0, false),
            (0..2, 0..1, true),
            (0..3, 0..1, false),
            // One in place of another.
            (0..1, 9..10, true),
            (0..3, 20..23, true),
            (0..30, 0..15, true),
            (0..30, 0..14, false),
            (0..30, 30..90, false),
        ];
        for (present, wanted, passes) in cases {
            let guard = Guard { is_off: false, wanted: ips(wanted.clone()) };
            assert_eq!(guard.check(&ips(present.clone())).is_ok(), passes, "{present:?} {wanted:?}");
            assert!(Guard { is_off: true, ..guard }.check(&ips(present)).is_ok());
        }
    }
}
