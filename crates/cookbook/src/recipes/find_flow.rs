//! Find a flow and kill it: the next packet is judged by the rules again.

use std::error::Error;

use sluicegate_conntrack::{Client, Filter, NewFlow, Protocol, Tuple};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut client = Client::open()?;
    // In place of traffic: two flows to a name server.
    for from in ["10.0.0.7:4001", "10.0.0.8:4002"] {
        let tuple =
            Tuple::with_ports(Protocol::UDP, from.parse()?, "10.96.0.10:53".parse()?).ok_or("families")?;
        client.create(&[NewFlow::new(tuple, 60)])?;
    }

    let mut filter = Filter::default(); // empty: every flow
    filter.protocol = Some(Protocol::UDP);
    filter.original.source = Some("10.0.0.7/32".parse()?);
    filter.original.destination_port = Some(53);
    for flow in client.delete_matching(&filter)? {
        println!("killed {} -> {}", flow.original.source(), flow.original.destination());
    }
    println!("{} left", client.list(&Filter::default())?.len());
    Ok(())
}
