//! Follow what others change in the ruleset, in nft's words.

use std::error::Error;

use sluicegate_nftables::monitor::{Follower, GROUP, Monitor};
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Transaction};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    // Listen first, then read: nothing is missed, and what was read already is skipped.
    let mut listener = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    listener.join(GROUP)?;
    let mut monitor = Monitor::with_transport(listener);
    let mut follower = Follower::read(&mut kernel, Family::UNSPEC)?;

    let others =
        ["add table ip t; add chain ip t c", "add rule ip t c tcp dport 80 accept", "delete table ip t"];
    for change in others {
        Transaction::parse(change)?.apply(&mut kernel)?;
        let mut commit = None;
        while commit.is_none() {
            for event in monitor.events()? {
                commit = follower.apply(event)?; // an error means: events were lost, read again
            }
        }
        println!("# a commit");
        commit.iter().for_each(|commit| print!("{}", commit.transaction));
    }
    Ok(())
}
