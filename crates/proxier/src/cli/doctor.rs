//! `doctor`: prints what each mode needs and finds, which other programs have rules, and which services of
//! manifests claim the same frontend.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use comfy_table::{ContentArrangement, Table};
use sluicegate_proxier::Mode;
use sluicegate_proxier::doctor::{Check, Diagnosis, Verdict};

use super::Error;
use super::args::{ManifestArgs, NodeArgs};

#[derive(Args)]
pub(crate) struct Doctor {
    /// Files, or directories of files, whose Services are checked for claims to the same address and port.
    #[arg(long = "manifests", value_name = "PATH", num_args = 1..)]
    manifests: Vec<PathBuf>,
    #[command(flatten)]
    node: NodeArgs,
}

impl Doctor {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let diagnosis = Diagnosis::run();
        let mut checks = table(["mode", "requirement", "state", "detail"]);
        for check in &diagnosis.checks {
            let mode = check.mode.map_or("every", Mode::as_str);
            checks.add_row([mode, &check.what, &check.verdict.to_string(), &check.detail]);
        }
        println!("{checks}");
        for mode in Mode::ALL {
            let is_unknown = |check: &Check| check.mode == Some(mode) && check.verdict == Verdict::Unknown;
            let usable = match (diagnosis.is_usable(mode), diagnosis.checks.iter().any(is_unknown)) {
                (false, _) => "does not work here",
                (true, true) => "works if the kernel can load the missing modules",
                (true, false) => "works",
            };
            println!("{mode} mode: {usable}");
        }
        self.conflicts()?;
        if diagnosis.others.is_empty() {
            println!("no rules of other programs");
            return Ok(ExitCode::SUCCESS);
        }
        let mut others = table(["found", "owner", "chains"]);
        for other in &diagnosis.others {
            let count =
                if other.place.starts_with("iptables") { other.count.to_string() } else { String::new() };
            others.add_row([other.place.clone(), other.owner.to_owned(), count]);
        }
        println!("{others}");
        Ok(ExitCode::SUCCESS)
    }
}

impl Doctor {
    /// Prints the frontends that services of the manifests claim in vain.
    fn conflicts(&self) -> Result<(), Error> {
        if self.manifests.is_empty() {
            return Ok(());
        }
        let found = ManifestArgs { manifests: self.manifests.clone() }.read()?;
        let node = self.node.node(&found.nodes)?;
        let (cluster, problems) = found.into_cluster(node);
        problems.iter().for_each(|problem| println!("invalid: {problem}"));
        cluster.conflicts().for_each(|conflict| println!("conflict: {conflict}"));
        if cluster.conflict_count() == 0 {
            println!("no services claim the same frontend");
        }
        Ok(())
    }
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED).set_header(header);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table
}
