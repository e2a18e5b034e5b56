//! Ban an address for ten minutes: the kernel lifts the ban by itself.

use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Element, Family, TableId, Transaction, read};

const RULES: &str = "
    table inet bans {
        set banned { type ipv4_addr; flags timeout; timeout 1h; }
        chain input { type filter hook input priority -10; ip saddr @banned drop; }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(RULES)?.apply(&mut kernel)?;

    let banned = TableId::new(Family::INET, "bans".parse()?).set("banned".parse()?);
    let ban = Element::new(Ipv4Addr::new(192, 0, 2, 7)).timeout(Duration::from_secs(600));
    let mut change = Transaction::new();
    change.add_element(&banned, ban).apply(&mut kernel)?;

    for table in read::ruleset(&mut kernel, Family::INET)?.content() {
        for element in table.elements("banned") {
            println!("{} for {:?}", element.key(), element.get_timeout().unwrap_or_default());
        }
    }
    Ok(())
}
