//! Learn what the kernel refused: the operation, the object, the reason, and what it means there.

use std::error::Error;
use std::net::Ipv4Addr;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{DataType, Elements, Family, Set, TableId, Transaction};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    let set = TableId::new(Family::IP, "t".parse()?).set("small".parse()?);
    let mut change = Transaction::parse("add table ip t; add chain ip t c; add rule ip t c jump nowhere")?;
    change.add(Set::new(set.clone(), DataType::IPV4_ADDR).size(2));
    change.add(Elements::new(&set, (1..=3).map(|last| Ipv4Addr::new(192, 0, 2, last))));

    let Err(error) = change.apply(&mut kernel) else { return Err("the kernel took it".into()) };
    println!("{error}\n");
    for failure in error.failures() {
        let operation = failure.operation.ok_or("the batch as a whole was refused")?;
        println!("{}: {}", change.operations()[operation], failure.error);
    }
    Ok(())
}
