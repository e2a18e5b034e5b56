//! Test without root: a kernel in memory takes the same messages and refuses what the kernel refuses.

use std::error::Error;

use sluicegate_nftables::fake::{Fake, Fault};
use sluicegate_nftables::netlink::{Errno, Transport};
use sluicegate_nftables::{Error as NftError, Transaction};

/// What you want to test: it takes any transport.
fn open(kernel: &mut impl Transport, port: u16) -> Result<(), Box<dyn Error>> {
    let rules = format!("add table ip t; add chain ip t c; add rule ip t c tcp dport {port} accept");
    Ok(Transaction::parse(&rules)?.apply(kernel).map(drop)?)
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut kernel = Fake::new();
    open(&mut kernel, 22)?;
    print!("{kernel}"); // as `nft -s list ruleset`

    kernel.inject(Fault::Refuse(Errno::ENOMEM));
    let refused = open(&mut kernel, 80).expect_err("a fault was injected");
    println!("{refused}");
    println!("of our kind: {}", refused.is::<NftError>());
    Ok(())
}
