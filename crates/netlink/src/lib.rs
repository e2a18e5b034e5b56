//! Netlink for netfilter: the part that nftables, ipset and conntrack clients share.
//!
//! * [`attr`] writes attributes into one buffer, without an allocation each, and reads them without ever indexing
//!   past an end.
//! * [`message`] holds the headers (`nlmsghdr`, `nfgenmsg`) and walks the messages of a datagram.
//! * [`Batch`] is many messages sent as one datagram. Each message has its own sequence number, and any attribute can
//!   be tagged with a number of the caller's, so that an error of the kernel leads back to the object it is about.
//! * [`reply`] reads answers: data, acknowledgements, errors with the kernel's extended report, the end of a dump.
//! * [`Socket`] talks to the kernel; [`Transport`] is what it and [`scripted::Script`], the one for tests, have in
//!   common. [`exchange`] and [`dump`] hold a whole conversation over either.
//! * With the feature `tokio`, `tokio::AsyncSocket` is a socket for tasks of tokio. Without it everything blocks, and no runtime is needed.
//!
//! Everything but [`Socket`] is values in, values out, and needs neither root nor Linux' answers.
//!
//! # What it does not do
//!
//! It knows no rule, set or flow: those are the crates above. It has no background task and no global state, never
//! loads a module, and hides nothing that the kernel says: a receive buffer that overflowed (`ENOBUFS`), a dump that
//! changed under the reader and a truncated datagram are errors.
//!
//! # Example
//!
//! One message with a nested attribute, sent to a scripted kernel that acknowledges it:
//!
//! ```
//! use sluicegate_netlink::{Batch, exchange, message::Flags, scripted::{self, Script}};
//!
//! let mut batch = Batch::new();
//! let mut message = batch.message(0x0a03, Flags::REQUEST | Flags::ACK, 7);
//! message.put_str(1, "inner");
//! let mut nest = message.nest(2);
//! nest.put_be32(1, 80);
//! drop(nest);
//! drop(message);
//!
//! let mut kernel = Script::new();
//! kernel.expect(batch.bytes()?).reply(scripted::ack(1));
//! let report = exchange(&mut kernel, &[&batch], |_| Ok(()))?;
//! assert!(report.errors.is_empty());
//! # Ok::<(), sluicegate_netlink::Error>(())
//! ```
//!
//! Sources: `linux/netlink.h`, `linux/netfilter/nfnetlink.h`; behaviour measured on Linux 6.1, 6.12 and 6.18.
#![forbid(unsafe_code)]

pub mod attr;
mod batch;
mod error;
pub mod message;
pub mod reply;
pub mod scripted;
mod socket;
#[cfg(feature = "tokio")]
pub mod tokio;
mod transport;

pub use batch::{Batch, MessageWriter};
pub use error::{DecodeError, Error, TooLong, errno_name};
pub use reply::KernelError;
pub use socket::{Options, Protocol, Socket};
pub use transport::{Report, Transport, Wait, dump, dump_into, dump_once, exchange};
