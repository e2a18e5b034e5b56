//! Print the base chains that a Service needs in nftables mode, without a kernel.

use std::error::Error;

use sluicegate_service_rules::nftables::{Planner, Settings};
use sluicegate_services::{Cluster, Family, Node, Port, Service, ServiceName};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut cluster = Cluster::new(Node::new("node-1", ["192.168.0.2".parse()?]));
    let web = ServiceName::new("demo", "web")?;
    cluster.set_service(&web, Service::new(["172.30.0.41".parse()?], [Port::tcp("http", 80)?])?);

    let settings = Settings { families: vec![Family::Ipv4], ..Settings::default() };
    // The whole plan is what `nft -f` would read.
    let plan = Planner::new(&settings, &cluster, None)?.script().to_string();
    for line in plan.lines().filter(|line| line.contains(" hook ")) {
        println!("{line}");
    }
    Ok(())
}
