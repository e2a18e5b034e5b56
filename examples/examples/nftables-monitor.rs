//! Prints what happens to the ruleset, as `nft monitor` does, in a task of tokio.
//!
//! ```text
//! sudo target/debug/examples/nftables-monitor       # until it is interrupted
//! sudo target/debug/examples/nftables-monitor 10    # for ten seconds
//! ```

use std::time::Duration;

use sluicegate_netlink::tokio::AsyncSocket;
use sluicegate_netlink::{Options, Protocol, Socket};
use sluicegate_nftables::monitor::{Event, GROUP, Monitor};
use sluicegate_nftables::{Family, read};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map(|text| text.parse()).transpose()?;
    let watch = watch();
    match seconds {
        Some(seconds) => tokio::time::timeout(Duration::from_secs(seconds), watch).await.unwrap_or(Ok(())),
        None => watch.await,
    }
}

async fn watch() -> Result<(), Box<dyn std::error::Error>> {
    let mut listener = Socket::open(Protocol::NETFILTER, &Options::default())?;
    listener.join(GROUP)?;
    let mut monitor = Monitor::new(AsyncSocket::new(listener)?);
    // Joined first, listed then: a change in between is in the listing, or is an event, or both.
    let requests = AsyncSocket::new(Socket::open(Protocol::NETFILTER, &Options::default())?)?;
    let held = requests.run(|socket| read::ruleset(socket, Family::UNSPEC, None)).await?;
    println!("generation {}: {} tables, {} rules", held.generation, held.tables.len(), held.rules.len());
    loop {
        for event in monitor.next().await? {
            match event {
                Event::Overrun => println!("events were lost: everything has to be read again"),
                event => println!("{event:?}"),
            }
        }
    }
}
