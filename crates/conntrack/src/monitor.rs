//! Events: flows that come, change and go.

use sluicegate_netlink::message::{Flags, Message, Messages};
use sluicegate_netlink::{DecodeError, Options, Protocol, Socket, Transport, Wait};

use crate::wire::{SUBSYSTEM, command};
use crate::{Error, Flow};

/// Reads events from a transport that gets them.
///
/// ```no_run
/// use sluicegate_conntrack::{Event, Monitor};
///
/// let mut monitor = Monitor::open()?;
/// loop {
///     for event in monitor.events()? {
///         match event {
///             Event::New(flow) => println!("{flow}"),
///             Event::Overrun => println!("events were lost: list the flows again"),
///             _ => {}
///         }
///     }
/// }
/// # Ok::<(), sluicegate_conntrack::Error>(())
/// ```
#[derive(Debug)]
pub struct Monitor<T = Socket> {
    transport: T,
    buffer: Vec<u8>,
}

/// Something that happened to a flow. Events tell less of it than a list does: no counters but at its end, no use count.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// It is there.
    New(Flow),
    /// Something of it changed.
    Update(Flow),
    /// It has gone.
    Destroy(Flow),
    /// Events were lost (`ENOBUFS`): what is known of flows has to be read again with [`Client::list`](crate::Client::list).
    Overrun,
    /// A message that this crate does not know: its command (`cntl_msg_types`).
    Unknown(u8),
}

/// An event, and who caused it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Heard {
    /// What happened.
    pub event: Event,
    /// The netlink port of the socket by which a program asked for it; `None` when it came of packets or of time, or the kernel did it.
    pub port: Option<u32>,
}

impl Monitor {
    /// Opens a socket in the current network namespace and joins the groups of all events.
    ///
    /// # Errors
    /// [`Error::is_permission_denied`] without `CAP_NET_ADMIN`.
    pub fn open() -> Result<Self, Error> {
        Self::open_groups(&GROUPS)
    }

    /// As [`open`](Self::open), of some groups only.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_groups(groups: &[u32]) -> Result<Self, Error> {
        Self::open_with(groups, &Options::default())
    }

    /// As [`open_groups`](Self::open_groups), with a socket of these options: the receive buffer is what has to hold all events
    /// that happen while nobody reads, and the time-out is how long [`events`](Self::events) waits.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(groups: &[u32], options: &Options) -> Result<Self, Error> {
        let fail = Error::of("events");
        let mut socket = Socket::open(Protocol::NETFILTER, options).map_err(&fail)?;
        for group in groups {
            socket.join(*group).map_err(&fail)?;
        }
        Ok(Self::new(socket))
    }
}

impl<T: Transport> Monitor<T> {
    /// Reads events from a transport that gets them: a socket that has joined some of [`GROUPS`].
    pub fn new(transport: T) -> Self {
        Self { transport, buffer: Vec::new() }
    }

    /// The next events, as many as come in one datagram; empty when none came within the transport's time limit.
    ///
    /// # Errors
    /// When receiving fails, or what comes is malformed. Lost events are no error but [`Event::Overrun`].
    pub fn events(&mut self) -> Result<Vec<Event>, Error> {
        Ok(self.heard()?.into_iter().map(|heard| heard.event).collect())
    }

    /// As [`events`](Self::events), with who caused each.
    ///
    /// # Errors
    /// As [`events`](Self::events).
    pub fn heard(&mut self) -> Result<Vec<Heard>, Error> {
        let fail = Error::of("events");
        match self.transport.receive(&mut self.buffer, Wait::Answer) {
            Ok(true) => {}
            Ok(false) | Err(sluicegate_netlink::Error::TimedOut(_)) => return Ok(Vec::new()),
            Err(sluicegate_netlink::Error::Overrun) => {
                return Ok(vec![Heard { event: Event::Overrun, port: None }]);
            }
            Err(error) => return Err(fail(error)),
        }
        let heard = |message: Message<'_>| -> Result<Option<Heard>, DecodeError> {
            let port = Some(message.header.port).filter(|port| *port != 0);
            Ok(Event::decode(message)?.map(|event| Heard { event, port }))
        };
        let messages = Messages::new(&self.buffer).map(|message| message.and_then(heard));
        let events: Result<_, DecodeError> = messages.filter_map(Result::transpose).collect();
        events.map_err(|error| fail(error.into()))
    }

    /// The transport, to wait for it, or to send and read other things between events.
    pub fn transport(&self) -> &T {
        &self.transport
    }
}

impl Event {
    /// Reads one message; `None` when it is not about flows.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn decode(message: Message<'_>) -> Result<Option<Self>, DecodeError> {
        let [subsystem, command] = message.header.kind.to_be_bytes();
        if subsystem != SUBSYSTEM {
            return Ok(None);
        }
        Ok(Some(match command {
            command::NEW if message.header.flags.intersects(Flags::CREATE | Flags::EXCL) => {
                Self::New(Flow::decode(message)?)
            }
            command::NEW => Self::Update(Flow::decode(message)?),
            command::DELETE => Self::Destroy(Flow::decode(message)?),
            other => Self::Unknown(other),
        }))
    }

    /// The flow, but for what is about none.
    #[must_use]
    pub const fn flow(&self) -> Option<&Flow> {
        match self {
            Self::New(flow) | Self::Update(flow) | Self::Destroy(flow) => Some(flow),
            Self::Overrun | Self::Unknown(_) => None,
        }
    }
}

/// `NFNLGRP_CONNTRACK_NEW`, `NFNLGRP_CONNTRACK_UPDATE`, `NFNLGRP_CONNTRACK_DESTROY`: the multicast groups of the three
/// kinds of events.
pub const GROUPS: [u32; 3] = [1, 2, 3];
