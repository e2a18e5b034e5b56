//! Decide by a map instead of a list of rules: zones of interfaces, as firewalld has them.

use std::error::Error;

use sluicegate_nftables::expr::Verdict;
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Element, Family, InterfaceName, TableId, Transaction, read};

const RULES: &str = "
    table inet zones {
        map of-interface { type ifname : verdict; }
        chain home { tcp dport { 22, 445, 631 } accept; }
        chain public { tcp dport 443 accept; }
        chain input {
            type filter hook input priority filter; policy drop;
            ct state established,related accept
            iifname lo accept
            meta l4proto { icmp, ipv6-icmp } accept
            iifname vmap @of-interface
        }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(RULES)?.apply(&mut kernel)?;
    let zones = TableId::new(Family::INET, "zones".parse()?).map("of-interface".parse()?);
    let mut change = Transaction::new();
    for (interface, zone) in [("eth0", "public"), ("wlan0", "home")] {
        let name: InterfaceName = interface.parse()?;
        change.add_element(&zones, Element::new(name).verdict(Verdict::Jump(zone.parse()?)));
    }
    change.apply(&mut kernel)?;
    print!("{change}");
    println!("# {} interfaces have a zone", read::elements(&mut kernel, &zones)?.len());
    Ok(())
}
