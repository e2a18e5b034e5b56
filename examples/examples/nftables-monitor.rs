//! Prints what happens to the ruleset, as `nft monitor` does, in a task of tokio.
//!
//! ```text
//! sudo target/debug/examples/nftables-monitor       # until it is interrupted
//! sudo target/debug/examples/nftables-monitor 10    # for ten seconds
//! ```

use std::time::Duration;

use sluicegate_netlink::tokio::AsyncSocket;
use sluicegate_netlink::{Options, Protocol, Socket};
use sluicegate_nftables::Family;
use sluicegate_nftables::monitor::{Follower, GROUP, Monitor};

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
    // Joined first, read then: what is told twice is passed over.
    let requests = AsyncSocket::new(Socket::open(Protocol::NETFILTER, &Options::default())?)?;
    let read = || requests.run(|socket| Follower::read(socket, Family::UNSPEC, None));
    let mut follower = read().await?;
    println!("# generation {}: {} rules", follower.generation(), follower.ruleset().rules.len());
    loop {
        for event in monitor.next().await? {
            match follower.take(event) {
                Ok(Some(commit)) => {
                    print!("{}", commit.transaction);
                    let by = commit.generation.process_name.unwrap_or_default();
                    println!("# new generation {} by {by}", commit.generation.id);
                }
                Ok(None) => {}
                Err(lost) => {
                    follower = read().await?;
                    println!("# {lost}; read again: generation {}", follower.generation());
                }
            }
        }
    }
}
