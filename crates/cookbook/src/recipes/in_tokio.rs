//! Apply and follow changes in tasks of tokio, without blocking a thread.

use std::error::Error;

use sluicegate_nftables::monitor::{Event, GROUP, Monitor};
use sluicegate_nftables::netlink::tokio::AsyncSocket;
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{ApplyOptions, Transaction};

pub fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let kernel = AsyncSocket::new(Socket::open(NetlinkFamily::NETFILTER, &Options::default())?)?;
        let mut listener = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
        listener.join(GROUP)?;
        let mut monitor = Monitor::with_transport(AsyncSocket::new(listener)?);

        let change = Transaction::parse("add table inet t; add chain inet t c")?;
        change.apply_async(&kernel, ApplyOptions::default()).await?;
        loop {
            for event in monitor.next().await? {
                match event {
                    Event::Table(..) => println!("a table"),
                    Event::Chain(..) => println!("a chain"),
                    Event::Generation(_) => {
                        println!("committed");
                        return Ok(());
                    }
                    _ => {}
                }
            }
        }
    })
}
