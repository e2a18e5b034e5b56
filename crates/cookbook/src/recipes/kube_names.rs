//! Find the chains that kube-proxy made for a Service: compute their names.

use std::error::Error;

use sluicegate_chain_names::{Endpoint, Protocol, ServicePort};

pub fn main() -> Result<(), Box<dyn Error>> {
    let service = ServicePort::new("demo", "dns", "dns", Protocol::Udp)?;
    let endpoint: Endpoint = "10.244.0.20:53".parse()?;
    println!("iptables: {}", service.iptables().service());
    println!("          {}", service.iptables_endpoint(&endpoint));
    println!("nftables: {}", service.nftables().service());
    println!("          {}", service.nftables_endpoint(&endpoint).chain());
    Ok(())
}
