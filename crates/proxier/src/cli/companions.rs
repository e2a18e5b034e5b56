//! Flags that do nothing in another mode, or without another flag.
//!
//! What would silently not be programmed is refused. Flags of kube-proxy, which gives them in every mode and
//! reads those of its own, are taken with a warning, and so are intervals.

use sluicegate_proxier::Mode;
use sluicegate_proxier::config::DetectLocalMode;
use sluicegate_service_rules::nftables::Counting;

use super::Error;
use super::args::ProxyArgs;

/// The flags that one or two modes have, and whether others refuse them.
const OF_MODES: [(&str, &[Mode], bool); 16] = [
    ("layout", NFTABLES, true),
    ("service-cluster-ip-range", NFTABLES, true),
    ("iptables-backend", &[Mode::Iptables, Mode::Ipvs], true),
    ("nftables-sync-period", NFTABLES, false),
    ("nftables-min-sync-period", NFTABLES, false),
    ("iptables-localhost-nodeports", &[Mode::Iptables], false),
    // As in kube-proxy, whose nftables mode has no flags of its own.
    ("iptables-sync-period", &[Mode::Iptables, Mode::Nftables], false),
    ("iptables-min-sync-period", &[Mode::Iptables, Mode::Nftables], false),
    ("ipvs-sync-period", IPVS, false),
    ("ipvs-min-sync-period", IPVS, false),
    ("ipvs-scheduler", IPVS, false),
    ("ipvs-exclude-cidrs", IPVS, false),
    ("ipvs-strict-arp", IPVS, false),
    ("ipvs-tcp-timeout", IPVS, false),
    ("ipvs-tcpfin-timeout", IPVS, false),
    ("ipvs-udp-timeout", IPVS, false),
];
const NFTABLES: &[Mode] = &[Mode::Nftables];
const IPVS: &[Mode] = &[Mode::Ipvs];

/// Refuses the given flags that would silently not be acted on. Returns a warning for each of those that
/// may be given in vain.
pub(super) fn check(proxy: &ProxyArgs) -> Result<Vec<String>, Error> {
    let is_given = |flag: &str| proxy.given.contains(&flag.replace('-', "_"));
    let mut warnings = Vec::new();
    for (flag, modes, is_refused) in OF_MODES {
        if !is_given(flag) || modes.contains(&proxy.proxy_mode) {
            continue;
        }
        let modes: Vec<_> = modes.iter().map(|mode| mode.as_str()).collect();
        let (modes, found) = (modes.join(" or "), proxy.proxy_mode);
        if is_refused {
            let reason = format!("expected --proxy-mode {modes}, found {found}, which does not have it");
            return Err(Error::flag(format!("--{flag}"), reason));
        }
        warnings.push(format!("--{flag} has no effect in {found} mode: it is for {modes} mode"));
    }
    if is_given("service-metrics-series") && proxy.service_metrics == Counting::Off {
        let reason = "expected --service-metrics as well: without it no frontend has a series";
        return Err(Error::flag("--service-metrics-series", reason));
    }
    let detects = proxy.detect_local_mode.unwrap_or_default();
    for (flag, of) in [
        ("cluster-cidr", DetectLocalMode::ClusterCidr),
        ("pod-bridge-interface", DetectLocalMode::BridgeInterface),
        ("pod-interface-name-prefix", DetectLocalMode::InterfaceNamePrefix),
    ] {
        if is_given(flag) && detects != of {
            let (of, found) = (of.as_str(), detects.as_str());
            warnings
                .push(format!("--{flag} has no effect: it is for --detect-local-mode {of}, found {found}"));
        }
    }
    Ok(warnings)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Command;

    /// The flags whose help says that they are for one mode.
    #[test]
    fn every_flag_of_one_mode_is_known() {
        let program = Command::command();
        let run = program.find_subcommand("run").expect("the command");
        for argument in run.get_arguments() {
            let Some(flag) = argument.get_long() else { continue };
            let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
            let is_of_modes = help.is_some_and(|help| {
                ["In nftables mode", "In iptables mode", "In iptables and ipvs mode", "In ipvs mode"]
                    .iter()
                    .any(|start| help.starts_with(start))
            });
            // These are checked beside what they need, in `ProxyArgs::check_mode` and `Run::run`.
            let elsewhere =
                ["nftables-scheduler", "nftables-fastpath-after", "service-metrics", "ipvs-drain"];
            let is_known = OF_MODES.iter().any(|(name, ..)| *name == flag) || elsewhere.contains(&flag);
            assert!(!is_of_modes || is_known, "--{flag}");
        }
        for (flag, ..) in OF_MODES {
            assert!(run.get_arguments().any(|argument| argument.get_long() == Some(flag)), "--{flag}");
        }
    }
}
