//! Ask which endpoints of a Service get traffic on this node, while some of them end.

use std::error::Error;

use sluicegate_services::{
    Cluster, Family, Node, Port, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort, categorize,
};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut cluster = Cluster::new(Node::new("node-1", ["192.168.0.2".parse()?]));
    let web = ServiceName::new("demo", "web")?;
    cluster.set_service(&web, Service::new(["172.30.0.41".parse()?], [Port::tcp("http", 80)?])?);

    let mut ending = SliceEndpoint::new("10.244.1.7".parse()?);
    (ending.ready, ending.terminating) = (false, true);
    let endpoints = [ending, SliceEndpoint::new("10.244.2.9".parse()?)];
    let slice = Slice::new(web.clone(), Family::Ipv4, [SlicePort::tcp("http", 8080)?], endpoints)?;
    cluster.set_slice(&SliceName::new("demo", "web-1"), slice);

    for port in cluster.ports(&web, Family::Ipv4) {
        for endpoint in &categorize(&port, &cluster.topology()).cluster {
            println!("{}", endpoint.address);
        }
    }
    Ok(())
}
