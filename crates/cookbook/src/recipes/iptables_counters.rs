//! Read the counters of iptables rules.

use std::error::Error;
use std::net::UdpSocket;

use sluicegate_xtables::Family;
use sluicegate_xtables::iptables_save::Save;
use sluicegate_xtables::nft::{Client, Restore};

const RULES: &str =
    "*filter\n-A OUTPUT -p udp --dport 9 -j ACCEPT\n-A OUTPUT -p udp --dport 10 -j ACCEPT\nCOMMIT\n";

pub fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::open(Family::Ipv4)?;
    client.restore(&Save::parse(RULES)?, Restore::default())?;
    UdpSocket::bind("127.0.0.1:0")?.send_to(&[0; 72], "127.0.0.1:9")?;

    for rule in client.list("filter", true)?.rules() {
        let counters = rule.counters().unwrap_or_default();
        println!("{} packets, {} bytes: {}", counters.packets, counters.bytes, rule.spec()?.to_words()?);
    }
    Ok(())
}
