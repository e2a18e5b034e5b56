//! Mark flows that exist already, so that rules and routes treat them alike from now on.

use std::error::Error;

use sluicegate_conntrack::{Client, Filter, FlowChange, NewFlow, Protocol, Tuple};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut client = Client::open()?;
    let (from, to) = ("10.0.0.7:4001".parse()?, "192.0.2.1:443".parse()?);
    client.create(&[NewFlow::new(Tuple::with_ports(Protocol::UDP, from, to).ok_or("families")?, 60)])?;

    let mut filter = Filter::default();
    filter.original.destination = Some("192.0.2.0/24".parse()?);
    let mut change = FlowChange::default();
    change.mark = Some(7);
    let changes: Vec<_> = client.list(&filter)?.iter().map(|flow| (flow.key(), change)).collect();
    client.update(&changes)?;
    for flow in client.list(&filter)? {
        println!("{} has mark {}", flow.original.destination(), flow.mark.unwrap_or_default());
    }
    Ok(())
}
