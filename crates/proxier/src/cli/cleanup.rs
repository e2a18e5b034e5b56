//! `cleanup`: removes what any mode of ours or of kube-proxy left.

use std::process::ExitCode;

use clap::Args;
use sluicegate_iptables_save::restore::{BackEnd, Tool};
use sluicegate_proxier::Error;
use sluicegate_proxier::apply::iptables::all_tools;
use sluicegate_proxier::apply::{self, Applier, Cleaned};
use sluicegate_proxier::plan::iptables;
use sluicegate_proxier::plan::nftables::Settings;

use super::args::ProxyMode;

#[derive(Args)]
pub(crate) struct Cleanup {
    /// What to remove; without it, that of every mode.
    #[arg(long, value_enum)]
    proxy_mode: Option<ProxyMode>,
}

/// In this order: some chains of ipvs mode bear the names of those of iptables mode.
const MODES: [ProxyMode; 3] = [ProxyMode::Nftables, ProxyMode::Ipvs, ProxyMode::Iptables];

impl Cleanup {
    /// What cannot be cleaned up does not keep the rest from it.
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
            all.failed.extend(failed.into_iter().filter(|error| self.is_told(error)));
        }
        all.removed.iter().for_each(|what| println!("removed {what}"));
        all.failed.iter().for_each(|error| eprintln!("sluicegate-proxier: {error}"));
        if all.removed.is_empty() && all.failed.is_empty() {
            println!("nothing of ours was there");
        }
        Ok(if all.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn tools(&self) -> Result<Vec<Tool>, Error> {
        if self.proxy_mode == Some(ProxyMode::Nftables) { Ok(Vec::new()) } else { installed() }
    }

    /// What this kernel or machine does not have, nobody can have used; who asks for that mode is told all the same.
    fn is_told(&self, error: &Error) -> bool {
        self.proxy_mode.is_some() || !(error.is_not_found() || error.is_absent())
    }
}

fn remove(mode: ProxyMode, tools: &[Tool]) -> Cleaned {
    match mode {
        ProxyMode::Nftables => {
            Applier::open(Settings::default()).and_then(|mut applier| applier.cleanup()).into()
        }
        ProxyMode::Ipvs => apply::ipvs::cleanup(tools),
        ProxyMode::Iptables => {
            apply::iptables::Applier::new(tools.to_vec(), iptables::Settings::default()).cleanup()
        }
    }
}

/// The tools of iptables that are installed and that the kernel has something for.
fn installed() -> Result<Vec<Tool>, Error> {
    let mut tools = match all_tools() {
        Ok(tools) => tools,
        // Nobody can have used tools that are not there.
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let is_nft = |tool: &Tool| tool.back_end() == BackEnd::Nft;
    if tools.iter().any(is_nft) && !Applier::open(Settings::default())?.has_nf_tables()? {
        eprintln!(
            "this kernel has no nf_tables, and so nothing of ours there: iptables' nft back end is passed over"
        );
        tools.retain(|tool| !is_nft(tool));
    }
    Ok(tools)
}
