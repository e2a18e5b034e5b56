//! Block a list of a hundred thousand addresses: one lookup for each packet, however long the list.

use std::error::Error;
use std::net::Ipv4Addr;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{DataType, Elements, Family, Set, TableId, Transaction, read};

const LENGTH: u32 = 100_000; // a million works as well

const RULES: &str = "
    add table inet blocking
    add chain inet blocking input { type filter hook input priority -10; }
    add rule inet blocking input ip saddr @blocked counter drop
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    let blocked = TableId::new(Family::INET, "blocking".parse()?).set("blocked".parse()?);
    let addresses = (0..LENGTH).map(|n| Ipv4Addr::from(0x0a00_0000 + n));

    let mut change = Transaction::parse("add table inet blocking")?;
    // Room for twice as many: a set that knows its size is filled faster, and refuses more than that.
    change.add(Set::new(blocked.clone(), DataType::IPV4_ADDR).size(2 * LENGTH));
    change.add(Elements::new(&blocked, addresses));
    change.append(Transaction::parse(RULES)?);
    change.apply(&mut kernel)?;

    println!("{} addresses are blocked", read::elements(&mut kernel, &blocked)?.len());
    Ok(())
}
