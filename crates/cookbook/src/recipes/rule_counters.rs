//! Read what rules have counted, as `iptables -L -v` shows it.

use std::error::Error;
use std::net::UdpSocket;

use sluicegate_nftables::lang::Statement;
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Transaction, read};

const RULES: &str = "
    table inet firewall {
        chain output {
            type filter hook output priority filter;
            udp dport 53 counter accept comment \"names\"
            udp dport 123 counter accept comment \"time\"
        }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(RULES)?.apply(&mut kernel)?;
    UdpSocket::bind("127.0.0.1:0")?.send_to(&[0; 72], "127.0.0.1:53")?;

    for table in read::ruleset(&mut kernel, Family::INET)?.content() {
        for rule in table.rules("output").unwrap_or_default() {
            let comment = rule.comment.as_ref().map_or("?", |comment| comment.as_str());
            for statement in &rule.statements {
                let Statement::Counter(counter) = statement else { continue };
                println!("{comment}: {} packets, {} bytes", counter.packets, counter.bytes);
            }
        }
    }
    Ok(())
}
