//! A captive portal: who has not agreed yet is led to our own web server, who has may pass for an hour.

use std::error::Error;
use std::time::Duration;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Element, EtherAddr, Family, TableId, Transaction, read};

const RULES: &str = "
    table inet portal {
        set agreed { type ether_addr; flags timeout; }
        chain prerouting {
            type nat hook prerouting priority dstnat;
            iifname wlan0 ether saddr != @agreed tcp dport 80 redirect to :8000
        }
        chain forward {
            type filter hook forward priority filter;
            iifname wlan0 ether saddr @agreed accept
            iifname wlan0 udp dport 53 accept
            iifname wlan0 reject with icmpx admin-prohibited
        }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(RULES)?.apply(&mut kernel)?;

    // Called by the web server, once somebody has clicked.
    let agreed = TableId::new(Family::INET, "portal".parse()?).set("agreed".parse()?);
    let client = [0x02, 0, 0, 0, 0, 7];
    let mut change = Transaction::new();
    change
        .add_element(&agreed, Element::new(EtherAddr(client)).timeout(Duration::from_secs(3600)))
        .apply(&mut kernel)?;
    println!("{change}has agreed: {}", read::element(&mut kernel, &agreed, &client)?.is_some());
    Ok(())
}
