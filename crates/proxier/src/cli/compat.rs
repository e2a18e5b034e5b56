//! Flags of kube-proxy that have no effect here: each is accepted, with a warning that says why.

use std::collections::HashSet;

use clap::Args;
use sluicegate_proxier::config::why_no_effect;

/// The flags; their values are not looked at.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Flags of kube-proxy without effect")]
#[allow(dead_code, reason = "what is given counts, not its value")]
pub(crate) struct CompatArgs {
    #[arg(long, hide = true)]
    kube_api_content_type: Option<String>,
    #[arg(long, hide = true)]
    kube_api_qps: Option<f32>,
    #[arg(long, hide = true)]
    kube_api_burst: Option<i32>,
    #[arg(long, hide = true)]
    config_sync_period: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1)]
    profiling: Option<Option<String>>,
    #[arg(long, hide = true)]
    show_hidden_metrics_for_version: Option<String>,
    #[arg(long, hide = true)]
    vmodule: Option<String>,
    #[arg(long, hide = true)]
    log_flush_frequency: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1)]
    log_text_split_stream: Option<Option<String>>,
    #[arg(long, hide = true)]
    log_text_info_buffer_size: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1)]
    log_json_split_stream: Option<Option<String>>,
    #[arg(long, hide = true)]
    log_json_info_buffer_size: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1)]
    logtostderr: Option<Option<String>>,
    #[arg(long, hide = true, num_args = 0..=1)]
    alsologtostderr: Option<Option<String>>,
    #[arg(long, hide = true)]
    stderrthreshold: Option<String>,
    #[arg(long, hide = true)]
    log_dir: Option<String>,
    #[arg(long, hide = true)]
    log_file: Option<String>,
    #[arg(long, hide = true)]
    log_file_max_size: Option<String>,
    #[arg(long, hide = true)]
    log_backtrace_at: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1)]
    add_dir_header: Option<Option<String>>,
    #[arg(long, hide = true, num_args = 0..=1)]
    skip_headers: Option<Option<String>>,
    #[arg(long, hide = true, num_args = 0..=1)]
    skip_log_headers: Option<Option<String>>,
    #[arg(long, hide = true, num_args = 0..=1)]
    one_output: Option<Option<String>>,
    #[arg(long, hide = true)]
    boot_id_file: Option<String>,
    #[arg(long, hide = true)]
    machine_id_file: Option<String>,
}

impl CompatArgs {
    /// Returns one warning for each of these flags that was given.
    pub(crate) fn warnings(given: &HashSet<String>) -> Vec<String> {
        let mut flags: Vec<_> = given.iter().map(|name| name.replace('_', "-")).collect();
        flags.sort();
        let warning = |flag: &String| Some(format!("--{flag} has no effect here: {}", why_no_effect(flag)?));
        flags.iter().filter_map(warning).collect()
    }
}
