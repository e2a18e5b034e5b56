//! Sends one request to a netfilter subsystem and prints the attributes of its answer: the way to a message
//! that no crate has a function for yet.
//!
//! ```text
//! unshare -rn cargo run -p sluicegate-netlink --example raw-request
//! ```

use std::error::Error;
use std::io::{self, Write as _};

use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, NetlinkFamily, Options, Socket, exchange};

/// `NFNL_SUBSYS_NFTABLES` of `linux/netfilter/nfnetlink.h`.
const NFTABLES: u8 = 10;
/// `NFT_MSG_GETGEN` of `linux/netfilter/nf_tables.h`: the generation of the ruleset, and who committed it.
const GETGEN: u8 = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let mut request = Batch::new();
    // The last number is the caller's: errors of the kernel lead back to it.
    drop(request.netfilter(NFTABLES, GETGEN, Flags::ACK, 0, 7));

    let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    let mut answers = Vec::new();
    let report = exchange(&mut socket, &[&request], |message| {
        let (_, attributes) = message.netfilter()?;
        for attribute in attributes {
            let attribute = attribute?;
            answers.push(format!("attribute {}: {:02x?}", attribute.kind, attribute.payload));
        }
        Ok(())
    })?;
    if let Some(refused) = report.errors.into_iter().next() {
        return Err(format!("request {:?}: {refused}", request.object(&refused)).into());
    }
    Ok(writeln!(io::stdout(), "{}", answers.join("\n"))?)
}
