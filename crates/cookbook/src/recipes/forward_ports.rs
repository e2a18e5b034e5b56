//! Forward ports to a container, for IPv4 and IPv6: one rule a family, a map for the ports.

use std::error::Error;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Element, Family, Port, TableId, Transaction, read};

const RULES: &str = "
    table inet forwarding {
        map ports4 { type inet_service : ipv4_addr . inet_service; }
        map ports6 { type inet_service : ipv6_addr . inet_service; }
        chain prerouting {
            type nat hook prerouting priority dstnat;
            fib daddr type local dnat ip to tcp dport map @ports4
            fib daddr type local dnat ip6 to tcp dport map @ports6
        }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(RULES)?.apply(&mut kernel)?;

    // A container comes: 8080 of this machine is 80 of its addresses. No rule changes.
    let table = TableId::new(Family::INET, "forwarding".parse()?);
    let (v4, v6) = (std::net::Ipv4Addr::new(10, 88, 0, 5), "fd00:88::5".parse::<std::net::Ipv6Addr>()?);
    let mut change = Transaction::new();
    change.add_element(&table.map("ports4".parse()?), Element::new(Port(8080)).value((v4, Port(80))));
    change.add_element(&table.map("ports6".parse()?), Element::new(Port(8080)).value((v6, Port(80))));
    change.apply(&mut kernel)?;

    for table in read::ruleset(&mut kernel, Family::INET)?.content() {
        print!("{table}");
    }
    Ok(())
}
