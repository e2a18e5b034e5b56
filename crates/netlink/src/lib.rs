#![doc = include_str!("../README.md")]
//!
//! # Where to find what
//!
//! * [`attr`] writes attributes into one buffer, without an allocation each, and reads them with every length
//!   checked.
//! * [`message`] has the headers (`nlmsghdr`, `nfgenmsg`) and iterates over the messages of a datagram.
//! * [`generic`] finds the number of a family of generic netlink and writes the header of its messages.
//! * [`Batch`] is many messages sent as one datagram. Each message has its own sequence number, and any
//!   attribute can be tagged with a number of the caller's, so that an error of the kernel can be traced back
//!   to the object that it is about.
//! * [`reply`] reads answers: data, acknowledgements, errors with the kernel's extended acknowledgement, the
//!   end of a dump.
//! * [`Socket`] talks to the kernel. It and [`scripted::Script`], which is for tests, implement
//!   [`Transport`]. [`exchange`] and [`dump`] run a whole conversation over either.
//! * [`text`] represents strings of the kernel that are not UTF-8.
//! * With the feature `tokio`, `tokio::AsyncSocket` is a socket for tasks of tokio. Without it everything
//!   blocks, and no runtime is needed.
//!
//! Everything but [`Socket`] is values in, values out, and needs neither root nor Linux.
//!
//! # What it does not do
//!
//! It does not know rules, sets or flows: the crates that depend on it do. It has no background task and no
//! global state, never loads a module, and hides no failure: an overflow of the receive buffer (`ENOBUFS`), a
//! dump of objects that changed meanwhile and a truncated datagram are errors.
//!
//! Sources: `linux/netlink.h`, `linux/netfilter/nfnetlink.h`; behaviour measured on Linux 6.1, 6.12 and 6.18.
//!
//! # How it works
//!
//! * A length that does not fit its field is recorded and makes the whole batch unsendable. It is never
//!   wrapped.
//! * Every message of a batch has a sequence number of its own, and any attribute can be tagged with a
//!   number of the caller's. The sequence number and the offset of an error determine the nearest tag at or
//!   before it, so that one element among thousands in a message is identified. The tag is a plain `u64`, not
//!   a type parameter: encoders of attributes need not be generic.
//! * Whether a transaction succeeded is known from the answer to a request (`NFT_MSG_GETGEN`) that is sent
//!   immediately after it. `sendmsg` returns only when the batch is done, so every error is queued before
//!   that answer, both on Linux 6.1, which never acknowledges `NFNL_MSG_BATCH_END`, and on 6.18. The answer
//!   also contains the new generation.
//! * Once a message did not fit the receive buffer, the kernel queues none until all are read. If the
//!   expected answer arrives, no error and no event before it was lost.
//! * With `NLM_F_ECHO`, events come before all acknowledgements, in the order of the batch. Those of
//!   elements have sequence number 0. A message for another port is never an answer.
//! * The socket is connected to port 0, so the kernel drops datagrams of other processes. Answers that are
//!   left from an interrupted conversation are discarded before the next one.
//! * `ENOBUFS`, `MSG_TRUNC` and `NLM_F_DUMP_INTR` are never ignored. A dump of objects that changed meanwhile
//!   is repeated, at most eight times, and then is an error.
//! * The kernel processes a request inside `sendmsg` and a dump inside `recvmsg`. With the feature `tokio`,
//!   conversations therefore run on a thread for blocking work; only for notifications does the event loop
//!   wait. On a non-blocking socket, a conversation whose answer is not queued is an error.
//! * `SO_SNDBUFFORCE` is tried only when a datagram needs it. If the kernel refuses it, the error says how
//!   much can be sent, and the caller splits its batch.
#![forbid(unsafe_code)]

pub mod attr;
mod batch;
mod errno;
mod error;
mod family;
pub mod generic;
pub mod message;
mod protocol;
pub mod reply;
pub mod scripted;
mod socket;
pub mod text;
#[cfg(feature = "tokio")]
pub mod tokio;
mod transport;

pub use batch::{Batch, MessageWriter};
pub use errno::Errno;
pub use error::{DecodeError, Error, TooLong, write_error};
pub use family::Family;
pub use protocol::{Protocol, UnknownProtocol};
pub use reply::KernelError;
pub use socket::{NetlinkFamily, Options, Socket};
pub use transport::{
    Dumping, MOST_OVERRUNS, Report, Transport, Wait, discard, dump, dump_into, dump_once, exchange,
};
