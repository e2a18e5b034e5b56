//! Keep a list fresh: only what was added and what is gone is sent, and no packet sees a list half full.

use std::error::Error;
use std::net::Ipv4Addr;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::reconcile::{self, sync};
use sluicegate_nftables::{DataType, Element, Family, Set, Table, TableContent, TableId};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    let yesterday = ["192.0.2.1", "192.0.2.2", "198.51.100.9"];
    let today = ["192.0.2.1", "198.51.100.9", "203.0.113.77"];
    for list in [yesterday, today, today] {
        let synced = sync(&mut kernel, &[wanted(&list)?], &reconcile::Options::default())?;
        println!("# {}\n{}", synced.difference, synced.difference.transaction);
    }
    Ok(())
}

/// The table as it should be. What else is in it is removed; other tables are not looked at.
fn wanted(list: &[&str]) -> Result<TableContent, Box<dyn Error>> {
    let table = TableId::new(Family::INET, "blocking".parse()?);
    let blocked = Set::new(table.set("blocked".parse()?), DataType::IPV4_ADDR);
    let addresses: Result<Vec<Ipv4Addr>, _> = list.iter().map(|address| address.parse()).collect();
    Ok(TableContent::new(Table::new(table)).set(blocked, addresses?.into_iter().map(Element::new)))
}
