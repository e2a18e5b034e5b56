//! Balance connections over servers with nftables alone: each new one goes to the next entry of a map.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream};

use sluicegate_nftables::Transaction;
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};

const RULES: &str = "
    table ip balancing {
        chain output {
            type nat hook output priority -100;
            ip daddr 127.9.9.9 tcp dport 80 dnat to numgen inc mod 2 map {
                0 : 127.0.0.1 . 8001, 1 : 127.0.0.2 . 8001
            }
        }
    }
";

pub fn main() -> Result<(), Box<dyn Error>> {
    Transaction::parse(RULES)?.apply(&mut Socket::open(NetlinkFamily::NETFILTER, &Options::default())?)?;
    for address in ["127.0.0.1:8001", "127.0.0.2:8001"] {
        let server = TcpListener::bind(address)?;
        std::thread::spawn(move || {
            use std::io::Write as _;
            server.incoming().flatten().for_each(|mut client| drop(client.write_all(address.as_bytes())));
        });
    }
    let mut answered = BTreeSet::new();
    for _ in 0..4 {
        let mut who = String::new();
        TcpStream::connect("127.9.9.9:80")?.read_to_string(&mut who)?;
        answered.insert(who);
    }
    println!("{answered:?} answered");
    Ok(())
}
