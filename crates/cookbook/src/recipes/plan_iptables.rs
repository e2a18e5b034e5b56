//! Print kube-proxy's iptables rules for a Service, without a kernel.

use std::error::Error;

use sluicegate_service_rules::iptables::{Planner, Settings, Support};
use sluicegate_services::{Cluster, Family, Node, Port, Service, ServiceName};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut cluster = Cluster::new(Node::new("node-1", ["192.168.0.2".parse()?]));
    let web = ServiceName::new("demo", "web")?;
    cluster.set_service(&web, Service::new(["172.30.0.41".parse()?], [Port::tcp("http", 80)?])?);

    let settings = Settings::default();
    let planned =
        Planner::new(Family::Ipv4, &settings, Support::default(), &cluster, None)?.input().to_string();
    // A Service without endpoints refuses its clients.
    for line in planned.lines().filter(|line| line.contains("demo/web")) {
        println!("{line}");
    }
    Ok(())
}
