//! `cleanup`: removes what any mode of ours or of kube-proxy left.

use std::process::ExitCode;

use clap::Args;
use sluicegate_proxier::Error;
use sluicegate_proxier::apply::Applier;
use sluicegate_proxier::plan::nftables::Settings;

use super::args::ProxyMode;
use super::{iptables, ipvs};

#[derive(Args)]
pub(crate) struct Cleanup {
    /// What to remove; without it, that of every mode.
    #[arg(long, value_enum)]
    proxy_mode: Option<ProxyMode>,
}

/// In this order: some chains of ipvs mode bear the names of those of iptables mode.
const MODES: [ProxyMode; 3] = [ProxyMode::Nftables, ProxyMode::Ipvs, ProxyMode::Iptables];

impl Cleanup {
    /// One mode that cannot be cleaned up does not keep the others from it.
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let mut status = ExitCode::SUCCESS;
        let mut is_clean = true;
        for mode in MODES.into_iter().filter(|mode| self.proxy_mode.is_none_or(|only| only == *mode)) {
            match remove(mode) {
                Ok(removed) => {
                    is_clean &= removed.is_empty();
                    removed.iter().for_each(|what| println!("removed {what}"));
                }
                // What this kernel or machine does not have, nobody can have used.
                Err(error) if self.proxy_mode.is_none() && is_nothing_there(&error) => {}
                Err(error) => {
                    eprintln!("sluicegate-proxier: {error}");
                    status = ExitCode::FAILURE;
                    is_clean = false;
                }
            }
        }
        if is_clean {
            println!("nothing of ours was there");
        }
        Ok(status)
    }
}

fn remove(mode: ProxyMode) -> Result<Vec<String>, Error> {
    match mode {
        ProxyMode::Nftables => Applier::open(Settings::default())?.cleanup(),
        ProxyMode::Ipvs => ipvs::cleanup(),
        ProxyMode::Iptables => iptables::cleanup(),
    }
}

fn is_nothing_there(error: &Error) -> bool {
    error.is_not_found() || error.is_absent()
}
