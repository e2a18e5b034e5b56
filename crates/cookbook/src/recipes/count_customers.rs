//! Count traffic by customer: a counter in each element of a set, and how to read it.

use std::error::Error;
use std::net::UdpSocket;

use sluicegate_nftables::lang::Statement;
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Transaction, read};

const RULES: &str = "
    table inet accounting {
        set customers {
            type ipv4_addr; flags interval; counter
            elements = { 127.0.1.0/24 comment \"Smith\", 127.0.2.0/24 comment \"Miller\" }
        }
        chain output { type filter hook output priority filter; ip daddr @customers; }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse(RULES)?.apply(&mut kernel)?;

    let socket = UdpSocket::bind("0.0.0.0:0")?;
    for to in ["127.0.1.1:9", "127.0.2.1:9", "127.0.2.9:9"] {
        socket.send_to(&[0; 100], to)?;
    }
    for table in read::ruleset(&mut kernel, Family::INET)?.content() {
        for element in table.elements("customers") {
            let customer = element.get_comment().map_or("?", |comment| comment.as_str());
            for statement in element.statements() {
                let Statement::Counter(counter) = statement else { continue };
                println!("{customer}: {counter:?}");
            }
        }
    }
    Ok(())
}
