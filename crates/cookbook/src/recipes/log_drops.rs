//! Log what is dropped, but not each packet of a flood.

use std::error::Error;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Rule, TableId, Transaction, read};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    let chain = TableId::new(Family::INET, "firewall".parse()?).chain("refused".parse()?);
    let mut change = Transaction::parse("add table inet firewall; add chain inet firewall refused")?;
    for rule in [
        "limit rate 10/minute burst 20 packets log prefix \"refused: \" level info flags tcp options",
        "meta pkttype { broadcast, multicast } drop",
        "counter reject with icmpx port-unreachable",
    ] {
        change.add(Rule::parse(&chain, rule)?);
    }
    change.apply(&mut kernel)?;
    for table in read::ruleset(&mut kernel, Family::INET)?.content() {
        print!("{table}");
    }
    Ok(())
}
