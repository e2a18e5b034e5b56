//! Prints the names that kube-proxy gives to the chains of a service port, and of an endpoint of it.
//!
//! ```text
//! cargo run -p sluicegate-chain-names --example chain-names
//! ```

use sluicegate_chain_names::{Endpoint, Protocol, ServicePort};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let service = ServicePort::new("demo", "dns", "dns", Protocol::Udp)?;
    let endpoint: Endpoint = "10.244.0.20:53".parse()?;
    println!("iptables: {}, {}", service.iptables().service(), service.iptables_endpoint(&endpoint));
    println!("nftables: {}, {}", service.nftables().service(), service.nftables_endpoint(&endpoint).chain());
    Ok(())
}
