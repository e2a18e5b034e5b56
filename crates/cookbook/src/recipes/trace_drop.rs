//! Find the rule that drops a packet: trace it through the ruleset.

use std::error::Error;
use std::net::UdpSocket;

use sluicegate_nftables::expr::{Data, Verdict};
use sluicegate_nftables::monitor::{Event, Monitor, TRACE_GROUP};
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Transaction, read};

const RULES: &str = "
    table inet firewall {
        chain input {
            type filter hook input priority filter;
            udp dport 9 meta nftrace set 1
            tcp dport 22 accept
            udp dport 1-1023 counter drop comment \"no old services\"
        }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(RULES)?.apply(&mut kernel)?;
    let mut listener = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    listener.join(TRACE_GROUP)?;
    UdpSocket::bind("127.0.0.1:0")?.send_to(b"?", "127.0.0.1:9")?;

    let firewall = read::ruleset(&mut kernel, Family::INET)?.content();
    let mut monitor = Monitor::with_transport(listener);
    loop {
        for event in monitor.events()? {
            let Event::Trace(step) = event else { continue };
            let rules = firewall[0].rules(&step.chain).unwrap_or_default().iter();
            rules.filter(|rule| rule.handle == step.rule).for_each(|rule| println!("{rule}"));
            if step.verdict == Some(Data::Verdict(Verdict::Drop)) {
                println!("dropped");
                return Ok(());
            }
        }
    }
}
