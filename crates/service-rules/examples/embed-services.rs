//! Kubernetes Services in another program: objects built by hand, planned as nftables rules, applied,
//! printed.
//!
//! It needs no root, for what it programs is an in-memory `nf_tables`; `Applier::open(settings)` programs the
//! kernel.
//!
//! ```text
//! cargo run -p sluicegate-service-rules --example embed-services
//! ```

use std::error::Error;
use std::io::{self, Write as _};
use std::time::Instant;

use sluicegate_nftables::fake::Fake;
use sluicegate_service_rules::nftables::{Applier, Planner, Settings};
use sluicegate_services::{
    Cluster, Family, Node, Port, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut cluster = Cluster::new(Node::new("node-1", ["192.168.0.2".parse()?]));
    let web = ServiceName::new("demo", "web")?;
    let port = Port::tcp("http", 80)?.with_node_port(30080)?;
    cluster.set_service(&web, Service::new(["172.30.0.41".parse()?], [port])?);
    let slice = SliceName::new("demo", "web-1");
    cluster.set_slice(&slice, endpoints(&web, &["10.244.1.7", "10.244.2.9"])?);

    // The plan alone is a value, which prints as what `nft -f` takes.
    let settings = Settings { families: vec![Family::Ipv4], ..Settings::default() };
    let mut out = io::stdout().lock();
    writeln!(out, "# the plan\n{}", Planner::new(&settings, &cluster, None)?.script())?;

    let kernel = Fake::new();
    let mut applier = Applier::with_transport(kernel.open(), settings);
    writeln!(out, "# first sync: {}", applier.sync(&mut cluster, Instant::now())?)?;

    // From now on a sync costs what changed: here one endpoint.
    cluster.set_slice(&slice, endpoints(&web, &["10.244.1.7", "10.244.3.3"])?);
    let moved = applier.sync(&mut cluster, Instant::now())?;
    Ok(writeln!(out, "# one endpoint moved: {moved}\n\n{kernel}")?)
}

/// Ready endpoints of a service at these addresses.
fn endpoints(service: &ServiceName, addresses: &[&str]) -> Result<Slice, Box<dyn Error>> {
    let mut endpoints = Vec::new();
    for address in addresses {
        endpoints.push(SliceEndpoint::new(address.parse()?).on_node("node-2"));
    }
    Ok(Slice::new(service.clone(), Family::Ipv4, [SlicePort::tcp("http", 8080)?], endpoints)?)
}
