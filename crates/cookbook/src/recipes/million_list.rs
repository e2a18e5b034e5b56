//! Keep a list of a million addresses fresh: what is sent is the difference of two lists.

use std::collections::BTreeSet;
use std::error::Error;
use std::net::Ipv4Addr;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, TableId, Transaction, read};

const LENGTH: u32 = 20_000; // 1_000_000 works as well, and takes fifty times as long

const RULES: &str = "
    table inet blocking {
        set blocked { type ipv4_addr; size 2000000; }
        chain input { type filter hook input priority -10; ip saddr @blocked counter drop; }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(RULES)?.apply(&mut kernel)?;
    let blocked = TableId::new(Family::INET, "blocking".parse()?).set("blocked".parse()?);
    // What the set has. A program that is started anew asks the kernel: `read::elements`.
    let mut known = BTreeSet::new();
    for day in [0, 100, 100] {
        let fetched: BTreeSet<_> = (day..day + LENGTH).map(|n| Ipv4Addr::from(0x0a00_0000 + n)).collect();
        let new: Vec<_> = fetched.difference(&known).copied().collect();
        let gone: Vec<_> = known.difference(&fetched).copied().collect();
        println!("{} to add, {} to delete", new.len(), gone.len());
        let mut change = Transaction::new();
        for address in new {
            change.add_element(&blocked, address);
        }
        for address in gone {
            change.delete_element(&blocked, address);
        }
        change.apply(&mut kernel)?; // all of it, or nothing
        known = fetched;
    }
    println!("{} addresses are blocked", read::elements(&mut kernel, &blocked)?.len());
    Ok(())
}
