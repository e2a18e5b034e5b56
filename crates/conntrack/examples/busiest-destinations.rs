//! Counts the flows of each destination and prints the ten that have most. Flows are read one by one, so
//! that a table of any size takes little memory.
//!
//! ```text
//! sudo target/debug/examples/busiest-destinations
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Write as _};

use sluicegate_conntrack::{Client, Filter, Table};

fn main() -> Result<(), Box<dyn Error>> {
    let mut flows_of: HashMap<_, usize> = HashMap::new();
    let mut client = Client::open()?;
    for flow in client.flows(Table::Conntrack, &Filter::default())? {
        let tuple = flow?.original;
        let destination = (tuple.protocol, tuple.destination(), tuple.destination_port());
        *flows_of.entry(destination).or_default() += 1;
    }
    let mut busiest: Vec<_> = flows_of.into_iter().collect();
    busiest.sort_unstable_by_key(|&(_, flows)| std::cmp::Reverse(flows));

    let mut out = io::stdout().lock();
    writeln!(out, "destinations: {}", busiest.len())?;
    for ((protocol, address, port), flows) in busiest.iter().take(10) {
        let port = port.map_or_else(String::new, |port| format!(" port {port}"));
        writeln!(out, "{flows:>8} {protocol} {address}{port}")?;
    }
    Ok(())
}
