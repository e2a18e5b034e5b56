//! `doctor`: prints what each mode needs and finds, which other programs have rules, and which services of
//! manifests claim the same frontend.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use comfy_table::{ContentArrangement, Table};
use serde_json::{Value, json};
use sluicegate_proxier::Mode;
use sluicegate_proxier::doctor::{
    Check, Diagnosis, Verdict, missing_device, of_objects, of_other_nodes, of_this_node,
};
use sluicegate_proxier::terminal;
use sluicegate_service_rules::connected_networks;

use super::Error;
use super::args::{ManifestArgs, NodeArgs, ProxyArgs, forbidden};
use super::check::strings;
use super::output::{OutputArgs, counted};

// It exits with status 0 if a mode works without a fault (that of --proxy-mode, if it is given) and nothing
// is wrong with the manifests, otherwise with 1.
#[derive(Args)]
#[command(mut_arg("proxy_mode", |mode| {
    mode.help("The mode that has to work; without it, and without a file that names one, any").hide_default_value(true)
}))]
pub(crate) struct Doctor {
    /// Files, or directories of files, whose Services are checked for claims to the same address and port;
    /// `-` reads standard input.
    #[arg(long = "manifests", value_name = "PATH", num_args = 1..)]
    manifests: Vec<PathBuf>,
    /// The flags and the file that `run` gets, to see what they lead to here.
    #[command(flatten)]
    pub(super) proxy: ProxyArgs,
    /// The remarks on that file.
    #[arg(skip)]
    pub(super) remarks: Vec<String>,
    #[command(flatten)]
    pub(super) node: NodeArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// How well a mode works here.
struct Found<'a> {
    mode: Mode,
    /// What it needs and does not have.
    missing: Vec<&'a str>,
    /// What is not as it should be.
    degraded: Vec<&'a str>,
    /// What may be meant, and may be why traffic is lost.
    notices: usize,
    /// Whether something cannot be known without a change.
    is_unknown: bool,
}

/// What is wrong with the manifests.
#[derive(Default)]
struct Faults {
    invalid: Vec<String>,
    conflicts: Vec<String>,
    /// What is valid and probably not meant.
    warnings: Vec<String>,
}

impl Doctor {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let mut diagnosis = Diagnosis::run();
        if let Some(why) = missing_device(&self.proxy.detect_local()?) {
            let what = "interface of pods".to_owned();
            diagnosis.checks.push(Check { mode: None, what, verdict: Verdict::Degraded, detail: why });
        }
        diagnosis.checks.extend(self.settings());
        let wanted = |mode: &Mode| self.mode().is_none_or(|only| only == *mode);
        let found: Vec<_> =
            Mode::ALL.into_iter().filter(wanted).map(|mode| Found::of(mode, &diagnosis)).collect();
        let faults = self.faults()?;
        self.output.print(&self.text(&diagnosis, &found, &faults), || object(&diagnosis, &found, &faults))?;
        let is_well = found.iter().any(Found::is_well) && faults.count() == 0;
        Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Returns the frontends that services of the manifests claim in vain, and what is invalid in them.
    fn faults(&self) -> Result<Faults, Error> {
        if self.manifests.is_empty() {
            return Ok(Faults::default());
        }
        let found = ManifestArgs { manifests: self.manifests.clone() }.read()?;
        let node = self.node.node(&found.nodes)?;
        let (nodes, mut warnings) = (found.nodes.clone(), found.unknown.clone());
        let (mut cluster, problems) = found.into_cluster(node);
        self.proxy.configure(&mut cluster);
        warnings.extend(cluster.forbidden_external_ips().map(|(name, left_out)| forbidden(name, left_out)));
        warnings.extend(strings(cluster.warnings()));
        warnings.extend(self.proxy.unused_schedulers(&cluster));
        warnings.extend(of_this_node(&cluster, &nodes, &self.proxy.node_port_addresses()));
        match connected_networks() {
            Ok(networks) => warnings.extend(of_objects(&cluster, &networks)),
            Err(error) => warnings.push(format!("addresses cannot be compared with this node's: {error}")),
        }
        if self.mode() == Some(Mode::Ipvs) {
            warnings.extend(of_other_nodes(&cluster, &nodes));
        }
        Ok(Faults { invalid: strings(&problems), conflicts: strings(cluster.conflicts()), warnings })
    }

    /// Returns the mode that has to work, if there is one.
    fn mode(&self) -> Option<Mode> {
        self.proxy.is_mode_named().then_some(self.proxy.proxy_mode)
    }

    /// Returns what of the flags and the file `run` would refuse, or would take and not act on.
    fn settings(&self) -> Vec<Check> {
        let of = |verdict, what: &str, detail| Check { mode: None, what: what.to_owned(), verdict, detail };
        let notice = |what: &str, detail| of(Verdict::Notice, what, detail);
        let mut found: Vec<_> =
            self.remarks.iter().map(|remark| notice("configuration", remark.clone())).collect();
        let gates = self.proxy.gates();
        found.extend(gates.without_effect().map(|(name, why)| {
            notice(&format!("feature gate {name}"), format!("has no effect here: {why}"))
        }));
        match self.proxy.check_mode() {
            Ok(warnings) => found.extend(warnings.into_iter().map(|warning| notice("flags", warning))),
            Err(error) => found.push(of(Verdict::Degraded, "flags", format!("`run` refuses {error}"))),
        }
        found
    }

    fn text(&self, diagnosis: &Diagnosis, found: &[Found<'_>], faults: &Faults) -> String {
        let mut checks = table(["mode", "requirement", "state", "detail"]);
        for check in &diagnosis.checks {
            let mode = check.mode.map_or("every", Mode::as_str);
            checks.add_row([mode, &check.what, &check.verdict.to_string(), &check.detail]);
        }
        let mut text = format!("{checks}\n");
        faults.invalid.iter().for_each(|invalid| text += &format!("invalid: {invalid}\n"));
        faults.conflicts.iter().for_each(|conflict| text += &format!("conflict: {conflict}\n"));
        faults.warnings.iter().for_each(|warning| text += &format!("warning: {warning}\n"));
        if !self.manifests.is_empty() && faults.conflicts.is_empty() {
            text.push_str("no services claim the same frontend\n");
        }
        if diagnosis.others_are_incomplete {
            text.push_str("rules of other programs may be missing below: some could not be listed\n");
        }
        if diagnosis.others.is_empty() {
            if !diagnosis.others_are_incomplete {
                text.push_str("no rules of other programs\n");
            }
        } else {
            let mut others = table(["found", "owner", "chains"]);
            for other in &diagnosis.others {
                let count =
                    if other.place.starts_with("iptables") { other.count.to_string() } else { String::new() };
                others.add_row([other.place.clone(), other.owner.to_owned(), count]);
            }
            let _ = writeln!(text, "{others}");
        }
        for found in found {
            let _ = writeln!(text, "{} mode: {}", found.mode, found.verdict());
        }
        if faults.count() > 0 {
            let _ = writeln!(text, "manifests: {}", counted(faults.count(), "problem"));
        }
        if !faults.warnings.is_empty() {
            let _ = writeln!(text, "manifests: {}", counted(faults.warnings.len(), "warning"));
        }
        text
    }
}

impl<'a> Found<'a> {
    fn of(mode: Mode, diagnosis: &'a Diagnosis) -> Self {
        let with = |verdict| {
            let concerns =
                move |check: &&Check| check.verdict == verdict && check.mode.is_none_or(|of| of == mode);
            diagnosis.checks.iter().filter(concerns)
        };
        let names = |verdict| with(verdict).map(|check: &Check| check.what.as_str()).collect();
        Self {
            mode,
            missing: names(Verdict::Missing),
            degraded: names(Verdict::Degraded),
            notices: with(Verdict::Notice).count(),
            is_unknown: with(Verdict::Unknown).any(|check| check.mode.is_some()),
        }
    }

    fn is_well(&self) -> bool {
        self.missing.is_empty() && self.degraded.is_empty()
    }

    /// Returns what the table says of it, in few words.
    fn verdict(&self) -> String {
        let verdict = self.verdict_of_needs();
        if self.notices == 0 { verdict } else { format!("{verdict}; {}", counted(self.notices, "notice")) }
    }

    fn verdict_of_needs(&self) -> String {
        let modules = "works if the kernel can load the missing modules";
        match (self.missing.as_slice(), self.degraded.as_slice()) {
            ([], []) if self.is_unknown => modules.to_owned(),
            ([], []) => "works".to_owned(),
            ([], degraded) => {
                let works = if self.is_unknown { modules } else { "works" };
                format!("{works}, with {}: {}", counted(degraded.len(), "fault"), degraded.join(", "))
            }
            (missing, _) => format!("does not work here: missing {}", missing.join(", ")),
        }
    }
}

impl Faults {
    fn count(&self) -> usize {
        self.invalid.len() + self.conflicts.len()
    }
}

fn object(diagnosis: &Diagnosis, found: &[Found<'_>], faults: &Faults) -> Value {
    let modes = found.iter().map(|found| {
        json!({
            "mode": found.mode.as_str(),
            "works": found.missing.is_empty(),
            "missing": found.missing,
            "degraded": found.degraded,
            "notices": found.notices,
            "unknown": found.is_unknown,
        })
    });
    let checks = diagnosis.checks.iter().map(|check| {
        json!({
            "mode": check.mode.map(Mode::as_str),
            "requirement": check.what,
            "state": check.verdict.to_string(),
            "detail": check.detail,
        })
    });
    let others = diagnosis.others.iter();
    let others =
        others.map(|other| json!({ "place": other.place, "owner": other.owner, "chains": other.count }));
    json!({
        "modes": modes.collect::<Vec<_>>(),
        "checks": checks.collect::<Vec<_>>(),
        "others": others.collect::<Vec<_>>(),
        "othersAreIncomplete": diagnosis.others_are_incomplete,
        "invalid": faults.invalid,
        "conflicts": faults.conflicts,
        "warnings": faults.warnings,
    })
}

/// Returns a table with this header, which fits where its width is known.
pub(super) fn table<'h>(header: impl IntoIterator<Item = &'h str>) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED).set_header(header);
    match terminal::width() {
        Some(columns) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table
}
