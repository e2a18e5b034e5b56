//! Compare two states of virtual servers, in the words of ipvsadm, without a kernel.

use std::error::Error;

use sluicegate_ipvs::{Command, Table, diff, text};

const NOW: &str = "\
-A -t 10.96.0.10:80 -s rr
-a -t 10.96.0.10:80 -r 10.244.1.7:8080 -m -w 1
-a -t 10.96.0.10:80 -r 10.244.1.8:8080 -m -w 1
";
const WANTED: &str = "\
-A -t 10.96.0.10:80 -s sh
-a -t 10.96.0.10:80 -r 10.244.1.8:8080 -m -w 3
";

pub fn main() -> Result<(), Box<dyn Error>> {
    for command in diff(&table(WANTED)?, &table(NOW)?) {
        println!("ipvsadm {command}");
    }
    Ok(())
}

/// What `ipvsadm -S -n` printed, as a table.
fn table(saved: &str) -> Result<Table, Box<dyn Error>> {
    let mut table = Table::new();
    for command in text::parse(saved)? {
        match command {
            Command::AddService { id, config } => drop(table.service(id, config)),
            Command::AddDestination { service, id, config } => {
                let of = table.get(&service).ok_or("a server before its service")?.config;
                table.service(service, of).destination(id, config);
            }
            other => return Err(format!("ipvsadm -S prints no `{other}`").into()),
        }
    }
    Ok(table)
}
