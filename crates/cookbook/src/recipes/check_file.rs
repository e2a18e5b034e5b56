//! Check a file before it is loaded: every mistake with its line, and the kernel's own verdict.

use std::error::Error;

use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{ApplyOptions, Transaction};

const WRONG: &str = "add table ip t\nadd chain ip t c\nadd rule ip t c tcp dprot 22 accept\n";
const REFUSED: &str = "add table ip t\nadd chain ip t c\nadd rule ip t c jump d\n";
const GOOD: &str = "add table ip t\nadd chain ip t c\nadd rule ip t c tcp dport 22 accept\n";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    if let Err(mistake) = Transaction::parse(WRONG) {
        println!("{mistake}\n");
    }
    for script in [REFUSED, GOOD] {
        // The kernel checks everything and keeps nothing, as with `nft -c`.
        match Transaction::parse(script)?.apply_with(&mut kernel, ApplyOptions::default().check()) {
            Ok(_) => println!("the kernel would take this"),
            Err(refusal) => println!("{refusal}\n"),
        }
    }
    Ok(())
}
