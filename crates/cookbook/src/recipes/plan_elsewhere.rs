//! Plan Services on one machine and load them on another, as rk8s does: the node needs no cluster, no nft.

use std::error::Error;
use std::time::Instant;

use sluicegate_nftables::lang::parse::ParseOptions;
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{self as nft, Transaction, read};
use sluicegate_service_rules::nftables::{Planner, Settings};
use sluicegate_services::{
    Cluster, Family, Node, Port, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort,
};

pub fn main() -> Result<(), Box<dyn Error>> {
    // The control plane, for `node-1`: all rules, then what changes. Both are nft's JSON.
    let mut cluster = Cluster::new(Node::new("node-1", ["192.168.0.2".parse()?]));
    let web = ServiceName::new("demo", "web")?;
    cluster.set_service(&web, Service::new(["172.30.0.41".parse()?], [Port::tcp("http", 80)?])?);
    let settings = Settings { families: vec![Family::Ipv4], ..Settings::default() };
    let mut planner = Planner::new(&settings, &cluster, None)?;
    cluster.take_changes(); // all of them are in the plan
    let all = planner.replacement().to_json().to_string();

    let endpoint = SliceEndpoint::new("10.244.1.7".parse()?).on_node("node-2");
    let slice = Slice::new(web.clone(), Family::Ipv4, [SlicePort::tcp("http", 8080)?], [endpoint])?;
    cluster.set_slice(&SliceName::new("demo", "web-1"), slice);
    let changes = cluster.take_changes();
    let change = planner.sync(&cluster, &changes, Instant::now()).to_json().to_string();

    // The node: the text is read and judged as nft reads it, beside the sets that the kernel has.
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    for text in [all, change] {
        let mut tables = read::ruleset(&mut kernel, nft::Family::IP)?.content().into_iter();
        let sets = tables.find(|table| &*table.table.id.name == "kube-proxy").map(|table| table.sets);
        let known = |id: &nft::SetId| Some(sets.iter().flatten().find(|(set, _)| set.id == *id)?.0.clone());
        let mut options = ParseOptions::default();
        options.sets = Some(&known);
        let received = Transaction::from_json_with(&text, &options)?;
        received.apply(&mut kernel)?;
        received.to_string().lines().filter(|line| line.contains(".41 ")).for_each(|line| println!("{line}"));
    }
    Ok(())
}
