//! Delete the flows of a UDP service whose server is gone: a client that keeps sending would never notice.

use std::error::Error;
use std::net::SocketAddr;

use sluicegate_conntrack::stale::{self, Services};
use sluicegate_conntrack::{AddressPort, Client, NewFlow, Protocol, Tuple};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut client = Client::open()?;
    let dns: SocketAddr = "10.96.0.10:53".parse()?;
    // Two clients, translated to two servers.
    for (from, server) in [("10.0.0.7:4001", "10.244.1.7:53"), ("10.0.0.8:4002", "10.244.2.9:53")] {
        let server: SocketAddr = server.parse()?;
        let mut flow =
            NewFlow::new(Tuple::with_ports(Protocol::UDP, from.parse()?, dns).ok_or("families")?, 60);
        flow.destination_nat = Some(AddressPort { address: Some(server.ip()), port: Some(server.port()) });
        client.create(&[flow])?;
    }

    // What is true now: one server.
    let mut services = Services::new();
    services.frontend(Protocol::UDP, dns, ["10.244.2.9:53".parse()?]);
    let report = stale::sync(&mut client, &services)?;
    println!("{} deleted, {} left", report.deleted, client.count()?);
    Ok(())
}
