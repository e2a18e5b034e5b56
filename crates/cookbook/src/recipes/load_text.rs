//! Load nft's own language: a whole firewall as text, without nft.

use std::error::Error;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Transaction, read};

const FIREWALL: &str = "
    table inet firewall {
        chain input {
            type filter hook input priority filter; policy drop;
            ct state vmap { established : accept, related : accept, invalid : drop }
            iifname lo accept
            meta l4proto { icmp, ipv6-icmp } accept
            tcp dport { ssh, 80, 443 } accept comment \"what we serve\"
        }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(FIREWALL)?.apply(&mut kernel)?;
    for table in read::ruleset(&mut kernel, Family::INET)?.content() {
        print!("{table}"); // as `nft list ruleset` prints it
    }
    Ok(())
}
