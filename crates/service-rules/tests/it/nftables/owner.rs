//! The services that the parts of a plan belong to.

use std::net::Ipv4Addr;

use sluicegate_nftables::{Object, Operation};
use sluicegate_service_rules::nftables::{Layout, Planner, Settings};
use sluicegate_services::{
    Cluster, Family, Node, Port, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort,
};

#[test]
fn objects_with_the_name_of_a_service_belong_to_it() {
    let mut cluster = Cluster::new(Node::default());
    for index in 1..=3 {
        let name = ServiceName::new("demo", &format!("web-{index}")).unwrap();
        let ip = Ipv4Addr::new(172, 30, 0, index).into();
        cluster.set_service(&name, Service::new([ip], [Port::tcp("http", 80).unwrap()]).unwrap());
        let endpoints = [1, 2].map(|place| SliceEndpoint::new(Ipv4Addr::new(10, 244, index, place).into()));
        let ports = [SlicePort::tcp("http", 8080).unwrap()];
        let slice = Slice::new(name.clone(), Family::Ipv4, ports, endpoints).unwrap();
        cluster.set_slice(&SliceName::new("demo", name.name()), slice);
    }
    let settings = Settings { layout: Layout::Chains, ..Settings::default() };
    let mut planner = Planner::new(&settings, &cluster, None).unwrap();
    let owners = planner.owners();
    let mut owned = 0;
    for operation in planner.script().operations() {
        let chain = match operation {
            Operation::Add(Object::Chain(chain)) => &chain.id.name,
            Operation::Add(Object::Rule(rule)) => &rule.chain.name,
            _ => continue,
        };
        // kube-proxy's names contain the service: `service-AXK6CI2C-demo/web/tcp/http`.
        let is_own = owners.of(operation, None).is_some_and(|owner| chain.contains(owner.as_str()));
        assert_eq!(is_own, chain.contains('/'), "{chain}");
        owned += usize::from(chain.contains('/'));
    }
    assert_eq!(owned, 6, "a chain of each service, and its rule");
}
