//! Services in, rules out: a service proxy inside of your own program.

use std::error::Error;
use std::time::Instant;

use sluicegate_service_rules::nftables::{Applier, Settings};
use sluicegate_services::{
    Cluster, Family, Node, Port, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort,
};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut cluster = Cluster::new(Node::new("node-1", ["192.168.0.2".parse()?]));
    let web = ServiceName::new("demo", "web")?;
    cluster.set_service(&web, Service::new(["172.30.0.41".parse()?], [Port::tcp("http", 80)?])?);

    let mut applier = Applier::open(Settings { families: vec![Family::Ipv4], ..Settings::default() })?;
    for servers in [&["10.244.1.7", "10.244.2.9"][..], &["10.244.1.7", "10.244.3.3"][..]] {
        let mut endpoints = Vec::new();
        for address in servers {
            endpoints.push(SliceEndpoint::new(address.parse()?).on_node("node-2"));
        }
        let slice = Slice::new(web.clone(), Family::Ipv4, [SlicePort::tcp("http", 8080)?], endpoints)?;
        cluster.set_slice(&SliceName::new("demo", "web-1"), slice);
        // The first sync compares with the kernel, each later one costs what changed.
        let changes = applier.sync(&mut cluster, Instant::now())?.changes;
        println!("elements: {} added, {} deleted", changes.elements_added, changes.elements_deleted);
    }
    Ok(())
}
