//! Follows what happens to the ruleset, and what traced packets meet.
//!
//! Start with [`Follower`]: it keeps a copy of the ruleset, and turns the events of each commit into
//! operations of the typed language. An [`Event`] by itself carries what the kernel sends: expressions
//! instead of statements, bytes instead of addresses, of a deleted object often its handle alone. The copy
//! supplies the rest.
//!
//! ```no_run
//! use sluicegate_nftables::monitor::{Follower, Monitor};
//! use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
//! use sluicegate_nftables::{Family, Object, Operation, Target};
//!
//! // Join the group first: commits that the copy includes already are skipped.
//! let mut monitor = Monitor::open()?;
//! let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
//! let mut follower = Follower::read(&mut socket, Family::UNSPEC)?;
//! loop {
//!     for event in monitor.events()? {
//!         let commit = match follower.apply(event) {
//!             Ok(Some(commit)) => commit,
//!             Ok(None) => continue,
//!             Err(_lost) => {
//!                 follower = Follower::read(&mut socket, Family::UNSPEC)?;
//!                 continue;
//!             }
//!         };
//!         for operation in commit.transaction.operations() {
//!             match operation {
//!                 Operation::Add(Object::Rule(rule)) => {
//!                     println!("{} has a new rule {:?}", rule.chain, rule.statements);
//!                 }
//!                 Operation::Delete(Target::Elements(elements)) => {
//!                     elements.list.iter().for_each(|element| println!("{} lost {}", elements.set, element.key()));
//!                 }
//!                 other => println!("{other}"),
//!             }
//!         }
//!     }
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! How [`Follower`] keeps up with the kernel:
//!
//! * It stores objects by handle, which is the kernel's order, rules in a list for each chain, and elements
//!   by key, so an event costs only what it changes. The typed listing is built on request.
//! * When the first event of a commit is sent, all its rules are in place, so the event of a rule may name a
//!   preceding rule whose own event comes later: the rule waits for that one. The first and the last rule are
//!   reported without a position, and flags tell which it is; a rule that replaces the first or the last one
//!   goes to the position of the rule that was deleted before.
//! * A commit is applied as a whole when its generation arrives. If the generation is not newer than that of
//!   the copy, the commit was already read; if it is not the next one, events were lost, and so is the copy
//!   ([`Lost`]). The same is true if the copy does not have the object of an event.
//! * The kernel sends no events for changes by packets and time, for the size that a set gets because a rule
//!   adds elements, and for tables that are deleted with their owner.
//! * Before Linux 6.4 the event of a deletion describes the whole object, since then only its name and
//!   handle; if it lists devices, only those were deleted. The deletion of all devices of an unused object is
//!   taken for the deletion of the object.

mod follower;
mod mirror;
mod text;

use sluicegate_netlink::message::Messages;
use sluicegate_netlink::{self as netlink, DecodeError, NetlinkFamily, Options, Socket, Transport, Wait};

use crate::error::Error;
pub use crate::read::event::{Change, Event, GROUP, RuleChange, RulePosition, SetName, TRACE_GROUP};
pub use crate::read::trace::{Trace, TraceConntrack, TraceDevice, TraceStep};
#[cfg(feature = "json")]
pub(crate) use follower::Reported;
pub use follower::{Commit, Follower, Lost};

/// Reads events from a transport that receives them, such as a socket that has joined [`GROUP`]. For typed
/// changes, hand the events to a [`Follower`].
///
/// ```no_run
/// use sluicegate_nftables::monitor::{Event, Monitor};
///
/// let mut monitor = Monitor::open()?;
/// for event in monitor.events()? {
///     match event {
///         Event::Overrun => println!("events were lost: read everything again"),
///         event => println!("{event:?}"),
///     }
/// }
/// # Ok::<(), sluicegate_nftables::Error>(())
/// ```
///
/// A slow reader slows down every process that commits: by a factor of two to six, measured.
#[derive(Debug)]
pub struct Monitor<T = Socket> {
    transport: T,
    buffer: Vec<u8>,
}

impl Monitor {
    /// Opens a socket in the current network namespace and joins [`GROUP`]. For other groups or options, open
    /// a socket and use [`with_transport`](Self::with_transport).
    ///
    /// # Errors
    /// [`Error`] if the kernel has no netfilter, or does not let the socket join, which takes
    /// `CAP_NET_ADMIN`.
    pub fn open() -> Result<Self, Error> {
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
        socket.join(GROUP)?;
        Ok(Self::with_transport(socket))
    }
}

impl<T> Monitor<T> {
    /// Reads events from this transport: a socket that has joined [`GROUP`] or [`TRACE_GROUP`], or a fake.
    pub fn with_transport(transport: T) -> Self {
        Self { transport, buffer: Vec::new() }
    }

    /// Returns the transport, to send and receive other messages between events.
    pub fn into_inner(self) -> T {
        self.transport
    }

    fn decode(&self) -> Result<Vec<Event>, Error> {
        let messages = Messages::new(&self.buffer).map(|message| message.and_then(Event::decode));
        Ok(messages.filter_map(Result::transpose).collect::<Result<_, DecodeError>>()?)
    }
}

impl<T: Transport> Monitor<T> {
    /// Returns the events of the next datagram; empty if none arrives within the transport's time limit.
    ///
    /// # Errors
    /// If receiving fails, or a message is malformed. Lost events are not an error but [`Event::Overrun`].
    pub fn events(&mut self) -> Result<Vec<Event>, Error> {
        match self.transport.receive(&mut self.buffer, Wait::Answer) {
            Ok(true) => {}
            Ok(false) | Err(netlink::Error::TimedOut(_)) => return Ok(Vec::new()),
            Err(netlink::Error::Overrun) => return Ok(vec![Event::Overrun]),
            Err(error) => return Err(error.into()),
        }
        self.decode()
    }
}

#[cfg(feature = "tokio")]
impl Monitor<sluicegate_netlink::tokio::AsyncSocket> {
    /// Waits for the events of the next datagram without blocking the thread (feature `tokio`). It is cancel
    /// safe: no event is lost when the future is dropped.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), sluicegate_nftables::Error> {
    /// use std::time::Duration;
    ///
    /// use sluicegate_nftables::netlink::tokio::AsyncSocket;
    /// use sluicegate_nftables::netlink::{Options, NetlinkFamily, Socket};
    /// use sluicegate_nftables::monitor::{GROUP, Monitor};
    ///
    /// let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    /// # if socket.join(GROUP).is_err() { return Ok(()) } // needs CAP_NET_ADMIN
    /// # #[cfg(any())]
    /// socket.join(GROUP)?;
    /// let mut monitor = Monitor::with_transport(AsyncSocket::new(socket)?);
    /// match tokio::time::timeout(Duration::from_millis(10), monitor.next()).await {
    ///     Ok(events) => println!("{:?}", events?),
    ///     Err(_) => println!("nothing happened so far"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`events`](Monitor::events).
    pub async fn next(&mut self) -> Result<Vec<Event>, Error> {
        match self.transport.receive(&mut self.buffer).await {
            Ok(()) => self.decode(),
            Err(netlink::Error::Overrun) => Ok(vec![Event::Overrun]),
            Err(error) => Err(error.into()),
        }
    }
}
