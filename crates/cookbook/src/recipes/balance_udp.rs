//! Balance UDP over two servers with IPVS.

use std::error::Error;

use sluicegate_ipvs::{
    Client, DestinationConfig, Endpoint, Forward, Scheduler, ServiceConfig, ServiceId, Table,
};

pub fn main() -> Result<(), Box<dyn Error>> {
    let dns = ServiceId::udp(Endpoint::new([10, 96, 0, 10], 53));
    let server = |last| Endpoint::new([10, 244, 1, last], 53);
    let config = DestinationConfig::new(Forward::Masquerade);

    let mut wanted = Table::new();
    let service = wanted.service(dns, ServiceConfig::new(Scheduler::RR).one_packet());
    service.destination(server(7), config).destination(server(8), config);

    let mut client = Client::open()?;
    // Services that the closure refuses are others', and stay.
    for command in client.sync(&wanted, |id| *id == dns)? {
        println!("{command}"); // as arguments of ipvsadm
    }
    for listing in client.list(|_| true)? {
        println!("{}: {} servers", listing.service.id, listing.destinations.len());
    }
    Ok(())
}
