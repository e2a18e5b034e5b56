//! `cleanup`: removes everything that any mode of this proxier or of kube-proxy left.

use std::process::ExitCode;

use clap::Args;
use sluicegate_iptables_save::restore::{BackEnd, Tool};
use sluicegate_proxier::Mode;
use sluicegate_service_rules::iptables::all_tools;
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
        let tools = match self.tools() {
            Ok(tools) => tools,
            Err(error) => {
                all.failed.push(error);
                Vec::new()
            }
        };
        for mode in MODES.into_iter().filter(|mode| self.proxy_mode.is_none_or(|only| only == *mode)) {
            let Cleaned { removed, failed, .. } = remove(mode, &tools);
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

    fn tools(&self) -> Result<Vec<Tool>, RulesError> {
        if self.proxy_mode == Some(Mode::Nftables) { Ok(Vec::new()) } else { installed() }
    }

    /// Returns false for a failure that only says that the kernel or the machine lacks a mode, unless the
    /// user asked for that mode.
    fn is_reported(&self, error: &RulesError) -> bool {
        self.proxy_mode.is_some() || !(error.is_not_found() || error.is_absent())
    }
}

fn remove(mode: Mode, tools: &[Tool]) -> Cleaned {
    match mode {
        Mode::Nftables => Applier::open(Settings::default()).and_then(|mut applier| applier.cleanup()).into(),
        Mode::Ipvs => ipvs::cleanup(tools),
        Mode::Iptables => iptables::Applier::new(tools.to_vec(), iptables::Settings::default()).cleanup(),
    }
}

/// Returns the installed tools of iptables, without those whose kernel interface is absent.
fn installed() -> Result<Vec<Tool>, RulesError> {
    let mut tools = match all_tools() {
        Ok(tools) => tools,
        // Without a tool there are no rules to remove.
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let is_nft = |tool: &Tool| tool.back_end() == BackEnd::Nft;
    if tools.iter().any(is_nft) && !Applier::open(Settings::default())?.has_nf_tables()? {
        tell("this kernel has no nf_tables: skipping the nft back end of iptables");
        tools.retain(|tool| !is_nft(tool));
    }
    Ok(tools)
}
