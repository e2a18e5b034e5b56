//! Prints which endpoints of a Service get traffic on a node, while one of them terminates and then all do.
//!
//! ```text
//! cargo run -p sluicegate-services --example endpoints
//! ```

use std::error::Error;
use std::io::{self, Write as _};

use sluicegate_services::{
    Cluster, Family, Node, Port, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort, categorize,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut cluster = Cluster::new(Node::new("node-1", ["192.168.0.2".parse()?]));
    let web = ServiceName::new("demo", "web")?;
    cluster.set_service(&web, Service::new(["172.30.0.41".parse()?], [Port::tcp("http", 80)?])?);

    let mut out = io::stdout().lock();
    for terminating in 0..=2 {
        let mut endpoints = Vec::new();
        for (index, address) in ["10.244.1.7", "10.244.2.9"].into_iter().enumerate() {
            let mut endpoint = SliceEndpoint::new(address.parse()?);
            // Its Pod is being deleted, and still answers.
            if index < terminating {
                endpoint.ready = false;
                endpoint.terminating = true;
            }
            endpoints.push(endpoint);
        }
        let slice = Slice::new(web.clone(), Family::Ipv4, [SlicePort::tcp("http", 8080)?], endpoints)?;
        cluster.set_slice(&SliceName::new("demo", "web-1"), slice);

        // A planner is told which Services changed, and asks for their ports.
        for name in cluster.take_changes().names() {
            for port in cluster.ports(name, Family::Ipv4) {
                let chosen = categorize(&port, &cluster.topology());
                let addresses: Vec<_> = chosen.cluster.iter().map(|one| one.address.to_string()).collect();
                writeln!(out, "{terminating} terminating: traffic to {}", addresses.join(", "))?;
            }
        }
    }
    Ok(())
}
