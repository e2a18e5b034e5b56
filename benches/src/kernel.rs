//! Sends encoded batches to `nf_tables`: the kernel's own time, below which no library can get.

use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, NetlinkFamily, Options, Socket, exchange};

/// `NFNL_SUBSYS_NFTABLES` of `linux/netfilter/nfnetlink.h`.
const SUBSYSTEM: u8 = 10;
/// `NFT_MSG_GETGEN` of `linux/netfilter/nf_tables.h`.
const GET_GENERATION: u8 = 16;

/// Opens a socket for netfilter in the network namespace of the calling thread.
///
/// # Panics
///
/// If the kernel refuses the socket.
#[must_use]
pub fn socket() -> Socket {
    Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a netlink socket can be opened")
}

/// Sends an encoded batch and waits until the kernel has committed it.
///
/// The messages of a batch need not ask for an acknowledgement. A request for the generation follows, and its
/// answer shows that the batch before it is done.
///
/// # Panics
///
/// If the kernel refuses a message.
pub fn send(socket: &mut Socket, batch: &Batch) {
    let mut last = Batch::starting_at(batch.next_sequence());
    drop(last.netfilter(SUBSYSTEM, GET_GENERATION, Flags::ACK, 0, 0));
    let report = exchange(socket, &[batch, &last], |_| Ok(())).expect("the kernel answers");
    assert!(report.errors.is_empty(), "{:?}", report.errors);
}
