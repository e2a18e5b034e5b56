//! Follow connections as they come and go.

use std::error::Error;

use sluicegate_conntrack::{Client, Event, Monitor, NewFlow, Protocol, Tuple};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut monitor = Monitor::open()?;

    let mut client = Client::open()?;
    let (from, to) = ("10.0.0.7:4001".parse()?, "10.96.0.10:53".parse()?);
    let flow = NewFlow::new(Tuple::with_ports(Protocol::UDP, from, to).ok_or("families")?, 60);
    client.create(std::slice::from_ref(&flow))?;
    client.delete(&[flow.key()])?;

    let mut seen = 0;
    while seen < 2 {
        for event in monitor.events()? {
            seen += 1;
            match event {
                Event::New(flow) => println!("new: to {}", flow.original.destination()),
                Event::Destroy(flow) => println!("over: to {}", flow.original.destination()),
                other => println!("{other:?}"),
            }
        }
    }
    Ok(())
}
