//! `doctor`: what each mode finds here, and who else writes rules.

use std::process::ExitCode;

use clap::Args;
use comfy_table::{ContentArrangement, Table};
use sluicegate_proxier::Error;
use sluicegate_proxier::doctor::{Check, Diagnosis, Verdict};
use sluicegate_proxier::serve::Mode;

#[derive(Args)]
pub(crate) struct Doctor {}

impl Doctor {
    pub(crate) fn run(&self) -> Result<ExitCode, Error> {
        let diagnosis = Diagnosis::make();
        let mut checks = table(["mode", "what", "state", "detail"]);
        for check in &diagnosis.checks {
            let mode = check.mode.map_or("every", Mode::as_str);
            checks.add_row([mode, &check.what, &check.verdict.to_string(), &check.detail]);
        }
        println!("{checks}");
        for mode in [Mode::Nftables, Mode::Iptables, Mode::Ipvs] {
            let is_unknown = |check: &Check| check.mode == Some(mode) && check.verdict == Verdict::Unknown;
            let usable = match (diagnosis.is_usable(mode), diagnosis.checks.iter().any(is_unknown)) {
                (false, _) => "cannot work here",
                (true, true) => "works where the kernel can load what is not loaded",
                (true, false) => "nothing that it needs is missing",
            };
            println!("{mode} mode: {usable}");
        }
        if diagnosis.others.is_empty() {
            println!("nobody else writes rules here");
            return Ok(ExitCode::SUCCESS);
        }
        let mut others = table(["here already", "whose", "chains"]);
        for other in &diagnosis.others {
            let count =
                if other.place.starts_with("iptables") { other.count.to_string() } else { String::new() };
            others.add_row([other.place.clone(), other.whose.to_owned(), count]);
        }
        println!("{others}");
        Ok(ExitCode::SUCCESS)
    }
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED).set_header(header);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table
}
