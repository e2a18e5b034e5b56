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
pub(crate) mod trace;

use sluicegate_netlink::message::{Flags, Message, Messages};
use sluicegate_netlink::{DecodeError, Error, NetlinkFamily, Options, Socket, Transport, Wait};

use crate::family::Family;
use crate::name::Name;
use crate::object::element::wire::{NFTA_SET_ELEM_LIST_SET, NFTA_SET_ELEM_LIST_TABLE};
use crate::read;
use crate::wire::message::*;
#[cfg(feature = "json")]
pub(crate) use follower::Reported;
pub use follower::{Commit, Follower, Lost};
pub use trace::{Trace, TraceConntrack, TraceDevice, TraceStep};

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
/// # Ok::<(), sluicegate_nftables::netlink::Error>(())
/// ```
///
/// A slow reader slows down every process that commits: by a factor of two to six, measured.
#[derive(Debug)]
pub struct Monitor<T = Socket> {
    transport: T,
    buffer: Vec<u8>,
}

/// A change of the ruleset, as the kernel sends it: [`Follower::apply`] turns it into the typed language. The
/// events of one commit arrive together, and [`Event::Generation`] ends them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A table.
    Table(Change, read::Table),
    /// A chain.
    Chain(Change, read::Chain),
    /// A rule.
    Rule(RuleChange, read::Rule),
    /// A set or a map.
    Set(Change, read::Set),
    /// Elements of a set or a map.
    Elements(Change, SetName, Vec<read::Element>),
    /// A stateful object.
    Object(Change, read::Object),
    /// A flowtable.
    Flowtable(Change, read::Flowtable),
    /// A commit is complete; carries the new generation of the ruleset.
    Generation(read::Generation),
    /// Events were lost (`ENOBUFS`): the ruleset has to be read again.
    Overrun,
    /// A step of a traced packet; sent to sockets that have joined [`TRACE_GROUP`].
    Trace(Box<Trace>),
    /// A message that this crate does not know: its command (`nfnl_msg_type`).
    Unknown(u8),
}

/// Whether an object was added or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// Added or changed.
    New,
    /// Deleted.
    Deleted,
}

/// Whether a rule was added, and where, or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleChange {
    /// Added.
    New(RulePosition),
    /// Deleted.
    Deleted,
}

/// The position of a new rule in its chain, once all rules of the commit are in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RulePosition {
    /// Before all other rules.
    First,
    /// After the rule with this handle, and before another one.
    After(u64),
    /// After all other rules.
    Last,
    /// The position of the rule whose deletion was reported just before, which was the first or the last:
    /// the new rule replaces it.
    Replaced,
}

/// The set that elements belong to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SetName {
    /// The family of its table.
    pub family: Family,
    /// Its table.
    pub table: Name,
    /// Its name.
    pub set: Name,
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
            Ok(false) | Err(Error::TimedOut(_)) => return Ok(Vec::new()),
            Err(Error::Overrun) => return Ok(vec![Event::Overrun]),
            Err(error) => return Err(error),
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
    /// # async fn main() -> Result<(), sluicegate_netlink::Error> {
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
            Err(Error::Overrun) => Ok(vec![Event::Overrun]),
            Err(error) => Err(error),
        }
    }
}

impl Event {
    /// Decodes one message; `None` if it is not about nftables.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn decode(message: Message<'_>) -> Result<Option<Self>, DecodeError> {
        let [subsystem, command] = message.header.kind.to_be_bytes();
        if subsystem != SUBSYSTEM {
            return Ok(None);
        }
        let (header, attributes) = message.netfilter()?;
        let family = Family(header.family);
        let change = |new: u8| if command == new { Change::New } else { Change::Deleted };
        Ok(Some(match command {
            NFT_MSG_NEWTABLE | NFT_MSG_DELTABLE => {
                Self::Table(change(NFT_MSG_NEWTABLE), read::Table::decode(family, attributes)?)
            }
            NFT_MSG_NEWCHAIN | NFT_MSG_DELCHAIN => {
                Self::Chain(change(NFT_MSG_NEWCHAIN), read::Chain::decode(family, attributes)?)
            }
            NFT_MSG_NEWRULE => {
                let rule = read::Rule::decode(family, attributes)?;
                Self::Rule(RuleChange::New(RulePosition::of(&rule, message.header.flags)), rule)
            }
            NFT_MSG_DELRULE => Self::Rule(RuleChange::Deleted, read::Rule::decode(family, attributes)?),
            NFT_MSG_NEWSET | NFT_MSG_DELSET => {
                Self::Set(change(NFT_MSG_NEWSET), read::Set::decode(family, attributes)?)
            }
            NFT_MSG_NEWSETELEM | NFT_MSG_DELSETELEM => {
                let name = |kind, what| -> Result<Name, DecodeError> {
                    read::name(&read::need(attributes.clone().find(kind)?, what)?)
                };
                let set = SetName {
                    family,
                    table: name(NFTA_SET_ELEM_LIST_TABLE, "NFTA_SET_ELEM_LIST_TABLE")?,
                    set: name(NFTA_SET_ELEM_LIST_SET, "NFTA_SET_ELEM_LIST_SET")?,
                };
                Self::Elements(change(NFT_MSG_NEWSETELEM), set, read::Element::decode_list(attributes)?)
            }
            NFT_MSG_NEWGEN => Self::Generation(read::Generation::decode(attributes)?),
            NFT_MSG_TRACE => Self::Trace(Box::new(Trace::decode(family, attributes)?)),
            NFT_MSG_NEWOBJ | NFT_MSG_DELOBJ => {
                Self::Object(change(NFT_MSG_NEWOBJ), read::Object::decode(family, attributes)?)
            }
            NFT_MSG_NEWFLOWTABLE | NFT_MSG_DELFLOWTABLE => {
                Self::Flowtable(change(NFT_MSG_NEWFLOWTABLE), read::Flowtable::decode(family, attributes)?)
            }
            other => Self::Unknown(other),
        }))
    }

    /// Returns the family and the name of the table that the event is about, or that contains its object;
    /// `None` for the end of a commit.
    #[must_use]
    pub fn table(&self) -> Option<(Family, &Name)> {
        Some(match self {
            Self::Table(_, table) => (table.family, &table.name),
            Self::Chain(_, chain) => (chain.family, &chain.table),
            Self::Rule(_, rule) => (rule.family, &rule.table),
            Self::Set(_, set) => (set.family, &set.table),
            Self::Elements(_, set, _) => (set.family, &set.table),
            Self::Object(_, object) => (object.family, &object.table),
            Self::Flowtable(_, flowtable) => (flowtable.family, &flowtable.table),
            Self::Trace(trace) => (trace.family, &trace.table),
            Self::Generation(_) | Self::Overrun | Self::Unknown(_) => return None,
        })
    }
}

impl RulePosition {
    /// Returns the position of the rule of an event. The kernel reports the handle of the preceding rule,
    /// and uses flags where there is no preceding or no following rule (`nf_tables_rule_notify`):
    /// `NLM_F_APPEND` for a rule at the end. A replacement has the same flags, but not `NLM_F_CREATE`.
    fn of(rule: &read::Rule, flags: Flags) -> Self {
        match rule.position {
            Some(handle) => Self::After(handle),
            None if !flags.contains(Flags::APPEND) => Self::First,
            None if flags.contains(Flags::CREATE) => Self::Last,
            None => Self::Replaced,
        }
    }
}

/// `NFNLGRP_NFTRACE`: the multicast group of [`Event::Trace`], for packets on which a rule has set `meta
/// nftrace`.
pub const TRACE_GROUP: u32 = 9;

/// `NFNLGRP_NFTABLES`: the multicast group of all other events.
pub const GROUP: u32 = 7;
