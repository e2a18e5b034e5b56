//! Events: what others, and we, change while we look on; a copy of the ruleset that follows them.

mod follower;
mod mirror;
mod trace;

use sluicegate_netlink::message::{Flags, Message, Messages};
use sluicegate_netlink::{DecodeError, Error, Transport, Wait};

use crate::encode::SUBSYSTEM;
use crate::family::Family;
use crate::name::Name;
use crate::read;
pub use follower::{Commit, Follower, Lost};
pub use trace::{Trace, TraceConntrack, TraceDevice, TraceStep};

/// Reads events from a socket that has joined [`GROUP`].
///
/// ```no_run
/// use sluicegate_netlink::{Options, Protocol, Socket};
/// use sluicegate_nftables::monitor::{Event, GROUP, Monitor};
///
/// let mut socket = Socket::open(Protocol::NETFILTER, &Options::default())?;
/// socket.join(GROUP)?;
/// let mut monitor = Monitor::new(socket);
/// for event in monitor.events()? {
///     match event {
///         Event::Overrun => println!("events were lost: read everything again"),
///         event => println!("{event:?}"),
///     }
/// }
/// # Ok::<(), sluicegate_netlink::Error>(())
/// ```
///
/// A slow reader slows down whoever commits: two to six times, measured.
#[derive(Debug)]
pub struct Monitor<T> {
    transport: T,
    buffer: Vec<u8>,
}

/// Something that happened to the ruleset. The events of one commit come together, ended by [`Event::Generation`].
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
    /// A commit is complete; the ruleset is of this generation now.
    Generation(read::Generation),
    /// Events were lost (`ENOBUFS`): what is known of the ruleset has to be read again.
    Overrun,
    /// A step of a packet that is traced; comes to who has joined [`TRACE_GROUP`].
    Trace(Box<Trace>),
    /// A message that this crate does not know: its command (`nfnl_msg_type`).
    Unknown(u8),
}

/// Whether it is there now or gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// Made or changed.
    New,
    /// Deleted.
    Deleted,
}

/// Whether a rule is there now, and where, or gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleChange {
    /// Made.
    New(Place),
    /// Deleted.
    Deleted,
}

/// Where a new rule is in its chain, which has all other rules that the commit makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// Before all others.
    First,
    /// Behind the one with this handle, and before another one.
    After(u64),
    /// Behind all others.
    Last,
    /// Where the rule was whose deletion was told just before, which is the first or the last place: it replaces that one.
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

impl<T> Monitor<T> {
    /// Reads events from a transport that gets them.
    pub fn new(transport: T) -> Self {
        Self { transport, buffer: Vec::new() }
    }

    /// The transport, to send and read other things between events.
    pub fn into_inner(self) -> T {
        self.transport
    }

    fn decode(&self) -> Result<Vec<Event>, Error> {
        let messages = Messages::new(&self.buffer).map(|message| message.and_then(Event::decode));
        Ok(messages.filter_map(Result::transpose).collect::<Result<_, DecodeError>>()?)
    }
}

impl<T: Transport> Monitor<T> {
    /// The next events, as many as come in one datagram; empty when none came within the transport's time limit.
    ///
    /// # Errors
    /// When receiving fails, or what comes is malformed. Lost events are no error but [`Event::Overrun`].
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
    /// Waits for the next events, as many as come in one datagram, without keeping a thread (feature `tokio`). Whoever stops waiting
    /// loses nothing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), sluicegate_netlink::Error> {
    /// use std::time::Duration;
    ///
    /// use sluicegate_netlink::tokio::AsyncSocket;
    /// use sluicegate_netlink::{Options, Protocol, Socket};
    /// use sluicegate_nftables::monitor::{GROUP, Monitor};
    ///
    /// let mut socket = Socket::open(Protocol::NETFILTER, &Options::default())?;
    /// # if socket.join(GROUP).is_err() { return Ok(()) } // needs CAP_NET_ADMIN
    /// # #[cfg(any())]
    /// socket.join(GROUP)?;
    /// let mut monitor = Monitor::new(AsyncSocket::new(socket)?);
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
    /// Reads one message; `None` when it is not about nftables.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn decode(message: Message<'_>) -> Result<Option<Self>, DecodeError> {
        let [subsystem, command] = message.header.kind.to_be_bytes();
        if subsystem != SUBSYSTEM {
            return Ok(None);
        }
        let (header, attributes) = message.netfilter()?;
        let family = Family(header.family);
        let change = |new: u8| if command == new { Change::New } else { Change::Deleted };
        Ok(Some(match command {
            0 | 2 => Self::Table(change(0), read::Table::decode(family, attributes)?),
            3 | 5 => Self::Chain(change(3), read::Chain::decode(family, attributes)?),
            6 => {
                let rule = read::Rule::decode(family, attributes)?;
                Self::Rule(RuleChange::New(Place::of(&rule, message.header.flags)), rule)
            }
            8 => Self::Rule(RuleChange::Deleted, read::Rule::decode(family, attributes)?),
            9 | 11 => Self::Set(change(9), read::Set::decode(family, attributes)?),
            12 | 14 => {
                let name = |kind, what| -> Result<Name, DecodeError> {
                    read::name(&read::need(attributes.clone().find(kind)?, what)?)
                };
                let set = SetName {
                    family,
                    table: name(1, "NFTA_SET_ELEM_LIST_TABLE")?,
                    set: name(2, "NFTA_SET_ELEM_LIST_SET")?,
                };
                Self::Elements(change(12), set, read::Element::decode_list(attributes)?)
            }
            15 => Self::Generation(read::Generation::decode(attributes)?),
            17 => Self::Trace(Box::new(Trace::decode(family, attributes)?)),
            18 | 20 => Self::Object(change(18), read::Object::decode(family, attributes)?),
            22 | 24 => Self::Flowtable(change(22), read::Flowtable::decode(family, attributes)?),
            other => Self::Unknown(other),
        }))
    }

    /// The family and the name of the table that it is about, or that what it is about is in; `None` of a commit as a whole.
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

impl Place {
    /// The kernel says it by the rule before, and by flags where that is none, or there is none behind (`nf_tables_rule_notify`): what is
    /// added goes behind the others, and so does, to the flags, what replaces, but that is not made (`NLM_F_CREATE`).
    fn of(rule: &read::Rule, flags: Flags) -> Self {
        match rule.position {
            Some(handle) => Self::After(handle),
            None if !flags.contains(Flags::APPEND) => Self::First,
            None if flags.contains(Flags::CREATE) => Self::Last,
            None => Self::Replaced,
        }
    }
}

/// `NFNLGRP_NFTRACE`: the multicast group of [`Event::Trace`], for packets on which a rule has set `meta nftrace`.
pub const TRACE_GROUP: u32 = 9;

/// `NFNLGRP_NFTABLES`: the multicast group of these events.
pub const GROUP: u32 = 7;
