//! Program another network namespace: a socket belongs to the namespace in which it was opened.

use std::error::Error;
use std::{io, thread};

use nix::sched::{CloneFlags, unshare};
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Family, Transaction, read};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut here = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    // A thread of its own goes there. For one with a name: setns(File::open("/run/netns/NAME")?, CLONE_NEWNET).
    let mut there = thread::spawn(|| -> io::Result<Socket> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        Socket::open(NetlinkFamily::NETFILTER, &Options::default()).map_err(io::Error::other)
    })
    .join()
    .map_err(|_| "the thread panicked")??;

    // From now on either is used from anywhere.
    Transaction::parse("add table ip in-the-other")?.apply(&mut there)?;
    println!("here: {} tables", read::tables(&mut here, Family::UNSPEC)?.len());
    println!("there: {} tables", read::tables(&mut there, Family::UNSPEC)?.len());
    Ok(())
}
