//! Flags of connection tracking's limits and timeouts.

use std::time::Duration;

use clap::Args;
use sluicegate_proxier::config::parse_duration;
use sluicegate_proxier::sysctl::{Conntrack, Sysctls};

use super::args::{boolean, number};

/// kube-proxy's flags. Those that are given are set; the defaults are set with `--set-sysctls`.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection tracking")]
pub(crate) struct ConntrackArgs {
    /// The most connections to track for each core (32768); 0 leaves the limit as it is.
    #[arg(long, value_name = "NUMBER", value_parser = number(0..=u32::MAX))]
    conntrack_max_per_core: Option<u32>,
    /// The most connections to track, however few cores there are (131072).
    #[arg(long, value_name = "NUMBER", value_parser = number(0..=u32::MAX))]
    conntrack_min: Option<u32>,
    /// The timeout of idle TCP connections (24h); 0 leaves it as it is.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    conntrack_tcp_timeout_established: Option<Duration>,
    /// The timeout of TCP connections that the other side closed (1h); 0 leaves it as it is.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    conntrack_tcp_timeout_close_wait: Option<Duration>,
    /// Accept TCP packets outside of windows.
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true", value_parser = boolean)]
    conntrack_tcp_be_liberal: Option<bool>,
    /// The timeout of UDP flows without an answer; 0 leaves it as it is.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    conntrack_udp_timeout: Option<Duration>,
    /// The timeout of UDP flows in both directions; 0 leaves it as it is.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    conntrack_udp_timeout_stream: Option<Duration>,
}

impl ConntrackArgs {
    /// Returns the values of these flags, of the file, and the defaults if asked for.
    pub(crate) fn all(&self, file: Conntrack, with_defaults: bool) -> Conntrack {
        let given = Conntrack {
            max_per_core: self.conntrack_max_per_core,
            min: self.conntrack_min,
            tcp_established: self.conntrack_tcp_timeout_established,
            tcp_close_wait: self.conntrack_tcp_timeout_close_wait,
            tcp_be_liberal: self.conntrack_tcp_be_liberal,
            udp: self.conntrack_udp_timeout,
            udp_stream: self.conntrack_udp_timeout_stream,
        };
        let all = given.or(file);
        if with_defaults { all.or(Conntrack::KUBE_PROXY) } else { all }
    }

    /// Sets the sysctls of [`Self::all`]. Logs what was done.
    pub(crate) fn set(all: &Conntrack) {
        let cores = std::thread::available_parallelism()
            .map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX));
        for line in Sysctls::default().set_conntrack(all, cores) {
            match line {
                Ok(line) => tracing::info!("{line}"),
                Err(line) => tracing::warn!("{line}"),
            }
        }
    }
}
