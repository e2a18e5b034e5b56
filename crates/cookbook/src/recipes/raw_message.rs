//! Send a message that no crate has a function for.

use std::error::Error;

use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, NetlinkFamily, Options, Socket, exchange};

/// `NFNL_SUBSYS_NFTABLES` of `linux/netfilter/nfnetlink.h`.
const NFTABLES: u8 = 10;
/// `NFT_MSG_GETGEN` of `linux/netfilter/nf_tables.h`.
const GETGEN: u8 = 16;

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut request = Batch::new();
    // The last number is yours: errors of the kernel lead back to it.
    drop(request.netfilter(NFTABLES, GETGEN, Flags::ACK, 0, 7));

    let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    let report = exchange(&mut socket, &[&request], |message| {
        let (_, attributes) = message.netfilter()?;
        for attribute in attributes {
            let attribute = attribute?;
            println!("attribute {}: {} bytes", attribute.kind, attribute.payload.len());
        }
        Ok(())
    })?;
    for refused in &report.errors {
        println!("request {:?} was refused: {refused}", request.object(refused));
    }
    Ok(())
}
