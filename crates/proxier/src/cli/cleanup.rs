//! `cleanup`: removes everything that any mode of this proxier or of kube-proxy left.

use std::process::ExitCode;

use clap::Args;
use sluicegate_proxier::Mode;
use sluicegate_service_rules::nftables::{Applier, Settings};
use sluicegate_service_rules::{Cleaned, Error as RulesError, iptables, ipvs};

use super::Error;
use super::check::strings;
use super::output::{OutputArgs, tell};

#[derive(Args)]
pub(crate) struct Cleanup {
    /// The mode whose rules to remove; by default those of every mode.
    #[arg(long, value_name = "nftables|iptables|ipvs")]
    proxy_mode: Option<Mode>,
    #[command(flatten)]
    output: OutputArgs,
}

/// In this order, since some chains of ipvs mode have the names of chains of iptables mode.
const MODES: [Mode; 3] = [Mode::Nftables, Mode::Ipvs, Mode::Iptables];

impl Cleanup {
    /// Returns the command for every mode.
    pub(super) const fn every_mode() -> Self {
        Self { proxy_mode: None, output: OutputArgs::TEXT }
    }

    /// Removes everything that can be removed, and reports each failure.
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let mut all = Cleaned::default();
        for mode in MODES.into_iter().filter(|mode| self.proxy_mode.is_none_or(|only| only == *mode)) {
            let Cleaned { removed, failed, .. } = remove(mode);
            all.removed.extend(removed);
            all.failed.extend(failed.into_iter().filter(|error| self.is_reported(error)));
        }
        let mut text: String = all.removed.iter().map(|what| format!("removed {what}\n")).collect();
        if all.removed.is_empty() && all.failed.is_empty() {
            text.push_str("found nothing to remove\n");
        }
        all.failed.iter().for_each(|error| tell(format_args!("sluicegate-proxier: {error}")));
        self.output
            .print(&text, || serde_json::json!({ "removed": all.removed, "failed": strings(&all.failed) }))?;
        Ok(if all.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Returns false for a failure that only says that the kernel or the machine lacks a mode, unless the
    /// user asked for that mode.
    fn is_reported(&self, error: &RulesError) -> bool {
        self.proxy_mode.is_some() || !error.is_absent()
    }
}

fn remove(mode: Mode) -> Cleaned {
    match mode {
        Mode::Nftables => Applier::open(Settings::default()).and_then(|mut applier| applier.cleanup()).into(),
        Mode::Ipvs => ipvs::cleanup(),
        Mode::Iptables => iptables::cleanup(),
    }
}
