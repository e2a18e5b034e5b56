//! Roll back if the new rules lock us out: remember what was there, try, and put it back.

use std::error::Error;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Transaction, read, reconcile};

const NEW: &str = "
    add chain inet firewall input { type filter hook input priority filter; policy drop; }
    add rule inet firewall input tcp dport 22 accept
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    Transaction::parse("add table inet firewall")?.apply(&mut kernel)?;
    let service = TcpListener::bind("127.0.0.1:0")?;
    let address = service.local_addr()?;
    let reachable = || TcpStream::connect_timeout(&address, Duration::from_millis(300)).is_ok();

    let before = read::ruleset(&mut kernel, Family::INET)?.content();
    Transaction::parse(NEW)?.apply(&mut kernel)?;
    if !reachable() {
        let back = reconcile::sync(&mut kernel, &before, &reconcile::Options::default())?;
        print!("the service cannot be reached any more, so back:\n{}", back.difference.transaction);
    }
    println!("reachable: {}", reachable());
    Ok(())
}
