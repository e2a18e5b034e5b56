//! Change nothing if somebody else was faster: a commit for one generation of the ruleset.

use std::error::Error;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{ApplyOptions, Transaction, read};

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    let seen = read::generation(&mut kernel)?.id;

    // Meanwhile another program commits.
    Transaction::parse("add table ip theirs")?.apply(&mut kernel)?;

    let ours = Transaction::parse("add table ip ours")?;
    match ours.apply_with(&mut kernel, ApplyOptions::default().generation(seen)) {
        Ok(_) => println!("nobody was faster"),
        Err(error) if error.is_generation_changed() => println!("read again, decide again, send again"),
        Err(error) => return Err(error.into()),
    }
    let now = read::generation(&mut kernel)?.id;
    ours.apply_with(&mut kernel, ApplyOptions::default().generation(now))?;
    println!("applied");
    Ok(())
}
