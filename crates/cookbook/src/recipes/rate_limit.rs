//! Limit the rate of new connections, for all and for each source.

use std::error::Error;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Transaction, read};

const RULES: &str = "
    table inet limits {
        set by-source {
            type ipv4_addr; size 65535; flags dynamic, timeout; timeout 1m;
        }
        chain input {
            type filter hook input priority filter;
            # One source: ten new connections a minute to ssh.
            tcp dport 22 ct state new add @by-source { ip saddr limit rate over 10/minute burst 5 packets } drop
            # All together: two hundred a second.
            tcp dport 443 ct state new limit rate over 200/second burst 50 packets counter drop
            icmp type echo-request limit rate 5/second accept
        }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(RULES)?.apply(&mut kernel)?;
    for table in read::ruleset(&mut kernel, Family::INET)?.content() {
        print!("{table}");
    }
    Ok(())
}
