//! Flags of kube-proxy that have no effect here: each is accepted, with a warning that says why.

use std::collections::HashSet;

use clap::Args;
use sluicegate_proxier::config::why_no_effect;

use super::args::number;
use super::value::ValueError;

/// The flags; their values are not looked at.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Flags of kube-proxy without effect")]
#[allow(dead_code, reason = "what is given counts, not its value")]
pub(crate) struct CompatArgs {
    #[arg(long, hide = true)]
    kube_api_content_type: Option<String>,
    #[arg(long, hide = true, value_parser = rate)]
    kube_api_qps: Option<f32>,
    #[arg(long, hide = true, value_parser = number(i32::MIN..=i32::MAX))]
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

fn rate(text: &str) -> Result<f32, ValueError> {
    text.parse().map_err(|_| ValueError::expected("a number", text))
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

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use clap::CommandFactory as _;
    use sluicegate_proxier::config::{Config, FeatureGates, Gate};

    use super::*;

    /// The names in a file of data, without comments.
    fn names(text: &'static str) -> impl Iterator<Item = &'static str> {
        text.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
    }

    const FLAGS: &str = include_str!("../../testdata/kube-proxy/flags.txt");
    const FIELDS: &str = include_str!("../../testdata/kube-proxy/fields.txt");
    const GATES: &str = include_str!("../../testdata/kube-proxy/gates.txt");

    /// Says what a flag does here. In kube-proxy a flag that sets a field is ignored where there is a file: only
    /// those that have none, `--hostname-override` and those of the log are looked at (`Options.Complete` of
    /// cmd/kube-proxy/app/options.go).
    fn flag(name: &str) -> String {
        const BESIDE_A_FILE: [&str; 9] = [
            "cleanup",
            "config",
            "help",
            "hostname-override",
            "init-only",
            "logging-format",
            "master",
            "v",
            "version",
        ];
        match why_no_effect(name) {
            None if !BESIDE_A_FILE.contains(&name) && name != "write-config-to" => {
                "done; it overrides the file, where kube-proxy ignores it beside `--config`".to_owned()
            }
            why => treatment(why),
        }
    }

    fn treatment(why: Option<&str>) -> String {
        why.map_or("done".to_owned(), |why| format!("without effect: {why}"))
    }

    /// Says what a field does here; panics where it is not known.
    fn field(path: &str) -> String {
        let parse = |value: &str| {
            let (before, after): (Vec<_>, Vec<_>) =
                path.split('.').map(|part| (format!("{{{part}: "), "}")).unzip();
            let body = format!("{}{value}{}", before.concat(), after.concat());
            let head = "apiVersion: kubeproxy.config.k8s.io/v1alpha1, kind: KubeProxyConfiguration, ";
            Config::parse(Path::new("c"), &format!("{{{head}{}", body.trim_start_matches('{')))
        };
        let unset = parse("null").expect("a field may be null");
        assert!(
            unset.doubtful.is_empty(),
            "kube-proxy has {path}, and it is not known here: {:?}",
            unset.doubtful
        );
        let unused =
            parse("a value").ok().and_then(|config| config.unused.first().map(|note| note.text.clone()));
        treatment(unused.as_deref().map(|text| text.trim_start_matches("has no effect here: ")))
    }

    fn page() -> String {
        let mut page = "# What flags, fields and feature gates of kube-proxy do here\n\nMade from the code, for kube-proxy 1.36 \
                        and 1.37 on Linux. *Done* is as kube-proxy does it; what is without effect is taken, and \
                        `sluicegate-proxier run` names it at its start with the reason. Any other flag or gate is \
                        refused, and any other field of the file is ignored with a warning, as by kube-proxy. Flags and fields are the same in 1.36 \
                        and 1.37, but for the words `localhost` and `all` of `--nodeport-addresses`, which are of 1.37. \
                        `check`, `render`, `sync`, `diff`, `explain` and `doctor` take the file and the flags of rules \
                        as `run` does.\n"
            .to_owned();
        let program = crate::cli::Command::command();
        let run = program.find_subcommand("run").expect("the command");
        let is_taken = |name: &str| {
            run.get_arguments().any(|argument| argument.get_long() == Some(name)) || name == "help"
        };
        page += "\n## Flags\n\n| flag | here |\n|---|---|\n";
        for name in names(FLAGS) {
            assert!(is_taken(name), "kube-proxy has --{name}, and `run` does not take it");
            let _ = writeln!(page, "| `--{name}` | {} |", flag(name));
        }
        page += "\n## Fields of the configuration file\n\n| field | here |\n|---|---|\n";
        for path in names(FIELDS) {
            let _ = writeln!(page, "| `{path}` | {} |", field(path));
        }
        page += "\n## Feature gates\n\n| gate | by default | here | since |\n|---|---|---|---|\n";
        for gate in Gate::ALL {
            let (name, default, effect, since) = (gate.as_str(), gate.default(), gate.effect(), gate.since());
            let _ = writeln!(page, "| `{name}` | {default} | {effect} | {since} |");
        }
        page += "| `AllAlpha`, `AllBeta` | false | set those of their stage above that are not set | |\n\
                 | `NFTablesProxyMode` | true | false is refused, as by kube-proxy | |\n";
        let all: FeatureGates = names(GATES)
            .map(|line| {
                let (name, rest) = line.split_once(' ').expect("a name and a stage");
                let (_, default) = rest.split_once(' ').expect("a stage and a default");
                format!("{name}={default}")
            })
            .collect::<Vec<_>>()
            .join(",")
            .parse()
            .expect("every gate of Kubernetes is known");
        let mut by_reason = std::collections::BTreeMap::<_, Vec<_>>::new();
        for (name, why) in all.without_effect().filter(|(name, _)| *name != "NFTablesProxyMode") {
            by_reason.entry(why).or_default().push(format!("`{name}`"));
        }
        for (why, gates) in by_reason {
            let _ = writeln!(page, "| {} | | without effect: {why} | |", gates.join(", "));
        }
        page
    }

    #[test]
    fn the_page_of_flags_fields_and_gates_says_what_the_code_does() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("COMPATIBILITY.md");
        let page = page();
        if std::env::var_os("SLUICEGATE_WRITE_PAGES").is_some() {
            std::fs::write(&path, &page).expect("the page can be written");
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == page,
            "{} is out of date: run this test with SLUICEGATE_WRITE_PAGES=1",
            path.display()
        );
    }

    #[test]
    fn gates_that_act_have_the_default_and_stage_of_kubernetes() {
        for gate in Gate::ALL {
            let line =
                names(GATES).find(|line| line.split(' ').next() == Some(gate.as_str())).expect("a gate");
            let words: Vec<_> = line.split(' ').collect();
            assert_eq!(words[2], gate.default().to_string(), "{line}");
            let group = |text: &str| text.parse::<FeatureGates>().expect("gates").is_on(gate);
            assert_eq!(group("AllAlpha=true") != gate.default(), words[1] == "alpha", "{line}");
            assert_eq!(group("AllBeta=false") != gate.default(), words[1] == "beta", "{line}");
        }
    }
}
