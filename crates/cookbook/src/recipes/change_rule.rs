//! Load an existing nft file and change one rule of it: the others keep their counters and handles.

use std::error::Error;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Rule, TableId, Transaction, read, reconcile};

const FILE: &str = "
    table inet firewall {
        chain input {
            type filter hook input priority filter;
            tcp dport 22 counter accept
            tcp dport 80 counter accept
        }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    let mut wanted = Transaction::parse(FILE)?.into_content()?;
    reconcile::sync(&mut kernel, &wanted, &reconcile::Options::default())?;

    let input = TableId::new(Family::INET, "firewall".parse()?).chain("input".parse()?);
    let rules = wanted[0].rules_mut("input").ok_or("the file has no chain `input`")?;
    rules[0] = Rule::parse(&input, "ip saddr 10.0.0.0/8 tcp dport 22 counter accept")?;
    let synced = reconcile::sync(&mut kernel, &wanted, &reconcile::Options::default())?;
    print!("{}", synced.difference.transaction);
    for rule in read::ruleset(&mut kernel, Family::INET)?.content()[0].rules("input").unwrap_or_default() {
        println!("# {rule}");
    }
    Ok(())
}
