//! Compares two states of a virtual server as values, and prints the commands between them as arguments of
//! `ipvsadm`. With `--apply` the second state is given to the kernel.
//!
//! ```text
//! cargo run -p sluicegate-ipvs --example virtual-server
//! ```

use std::error::Error;
use std::io::{self, Write as _};

use sluicegate_ipvs::{
    Client, DestinationConfig, Endpoint, Forward, Scheduler, ServiceConfig, ServiceId, Table, diff,
};

fn main() -> Result<(), Box<dyn Error>> {
    let web = ServiceId::tcp(Endpoint::new([10, 96, 0, 10], 80));
    let server = |last| Endpoint::new([10, 244, 1, last], 8080);
    let weight = |weight| DestinationConfig::new(Forward::Masquerade).weight(weight);

    let mut before = Table::new();
    let service = before.service(web, ServiceConfig::new(Scheduler::RR));
    service.destination(server(7), weight(1)).destination(server(8), weight(1));

    // One server drains, one is new, and the sources of connections decide from now on.
    let mut after = Table::new();
    let service = after.service(web, ServiceConfig::new(Scheduler::SH));
    service.destination(server(7), weight(0)).destination(server(8), weight(1));
    service.destination(server(9), weight(1));

    let mut out = io::stdout().lock();
    for command in diff(&after, &before) {
        writeln!(out, "{command}")?;
    }
    if std::env::args().any(|argument| argument == "--apply") {
        let sent = Client::open()?.sync(&after, |id| *id == web)?;
        writeln!(out, "# {} commands sent", sent.len())?;
    }
    Ok(())
}
