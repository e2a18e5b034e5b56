//! Events: flows that are created, changed and destroyed.

use sluicegate_netlink::message::{Flags, Message, Messages};
use sluicegate_netlink::{DecodeError, NetlinkFamily, Options, Socket, Transport, Wait};

use crate::wire::{EXPECTATIONS, SUBSYSTEM, command, expectation};
use crate::{Error, Expectation, Flow};

/// Receives events from a transport.
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

/// An event of a flow or an expectation. Flows in events have fewer fields than listed ones: counters only
/// when they are destroyed, and no reference count.
///
/// ```no_run
/// use sluicegate_conntrack::{Event, Monitor};
///
/// let mut monitor = Monitor::open()?;
/// loop {
///     for event in monitor.events()? {
///         match event {
///             Event::Destroy(flow) => println!("ended: {flow}"),
///             Event::Overrun => println!("events were lost: list the flows again"),
///             _ => {}
///         }
///     }
/// }
/// # Ok::<(), sluicegate_conntrack::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A flow was created.
    New(Flow),
    /// A flow has changed.
    Update(Flow),
    /// A flow was destroyed.
    Destroy(Flow),
    /// An expectation was created ([`EXPECTATION_GROUPS`]).
    ExpectationNew(Expectation),
    /// An expectation was destroyed: its flow came, its master ended, it timed out or it was deleted.
    ExpectationDestroy(Expectation),
    /// Events were lost (`ENOBUFS`): flows have to be read again with
    /// [`Client::list`](crate::Client::list).
    Overrun,
    /// An unknown message, with its command (`cntl_msg_types`).
    Unknown(u8),
}

/// An event with the netlink port that caused it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventWithPort {
    /// The kind of event.
    pub event: Event,
    /// The netlink port of the program that requested the change; `None` if packets, a timeout or the kernel
    /// itself caused it.
    pub port: Option<u32>,
}

impl Monitor {
    /// Opens a socket in the network namespace of the calling thread and joins the groups of all events.
    ///
    /// # Errors
    /// [`Error::is_permission_denied`] without `CAP_NET_ADMIN`.
    pub fn open() -> Result<Self, Error> {
        Self::open_groups(&GROUPS)
    }

    /// Opens a socket as [`open`](Self::open) does, and joins these groups only.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_groups(groups: &[u32]) -> Result<Self, Error> {
        Self::open_with(groups, &Options::default())
    }

    /// Opens a socket as [`open_groups`](Self::open_groups) does, with these options. The receive buffer has
    /// to be large enough for all events between two reads, and the timeout limits the time that
    /// [`events`](Self::events) waits.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(groups: &[u32], options: &Options) -> Result<Self, Error> {
        let fail = Error::of("events");
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, options).map_err(&fail)?;
        for group in groups {
            socket.join(*group).map_err(&fail)?;
        }
        Ok(Self::with_transport(socket))
    }
}

impl<T: Transport> Monitor<T> {
    /// Receives events from a transport of the caller's, such as a socket that has joined some of [`GROUPS`].
    pub fn with_transport(transport: T) -> Self {
        Self { transport, buffer: Vec::new() }
    }

    /// Returns the next events, as many as come in one datagram; empty when none came within the transport's
    /// time limit.
    ///
    /// # Errors
    /// If receiving fails, or a message is malformed. Lost events are not an error but an [`Event::Overrun`].
    pub fn events(&mut self) -> Result<Vec<Event>, Error> {
        Ok(self.events_with_ports()?.into_iter().map(|event| event.event).collect())
    }

    /// Returns events as [`events`](Self::events) does, each with the port that caused it.
    ///
    /// # Errors
    /// As [`events`](Self::events).
    pub fn events_with_ports(&mut self) -> Result<Vec<EventWithPort>, Error> {
        let fail = Error::of("events");
        match self.transport.receive(&mut self.buffer, Wait::Answer) {
            Ok(true) => {}
            Ok(false) | Err(sluicegate_netlink::Error::TimedOut(_)) => return Ok(Vec::new()),
            Err(sluicegate_netlink::Error::Overrun) => {
                return Ok(vec![EventWithPort { event: Event::Overrun, port: None }]);
            }
            Err(error) => return Err(fail(error)),
        }
        let decode = |message: Message<'_>| -> Result<Option<EventWithPort>, DecodeError> {
            let port = Some(message.header.port).filter(|port| *port != 0);
            Ok(Event::decode(message)?.map(|event| EventWithPort { event, port }))
        };
        let messages = Messages::new(&self.buffer).map(|message| message.and_then(decode));
        let events: Result<_, DecodeError> = messages.filter_map(Result::transpose).collect();
        events.map_err(|error| fail(error.into()))
    }

    /// Returns the transport, to wait for its descriptor, for instance.
    pub fn transport(&self) -> &T {
        &self.transport
    }
}

impl Event {
    /// Decodes a message; `None` if it is about neither flows nor expectations.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn decode(message: Message<'_>) -> Result<Option<Self>, DecodeError> {
        let [subsystem, command] = message.header.kind.to_be_bytes();
        if subsystem == EXPECTATIONS {
            return Ok(Some(match command {
                expectation::NEW => Self::ExpectationNew(Expectation::decode(message)?),
                expectation::DELETE => Self::ExpectationDestroy(Expectation::decode(message)?),
                other => Self::Unknown(other),
            }));
        }
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

    /// Returns the flow of the event, if it has one.
    #[must_use]
    pub const fn flow(&self) -> Option<&Flow> {
        match self {
            Self::New(flow) | Self::Update(flow) | Self::Destroy(flow) => Some(flow),
            _ => None,
        }
    }
}

/// `NFNLGRP_CONNTRACK_NEW`, `NFNLGRP_CONNTRACK_UPDATE`, `NFNLGRP_CONNTRACK_DESTROY`: the multicast groups of
/// the three kinds of events.
pub const GROUPS: [u32; 3] = [1, 2, 3];

/// `NFNLGRP_CONNTRACK_EXP_NEW`, `NFNLGRP_CONNTRACK_EXP_UPDATE`, `NFNLGRP_CONNTRACK_EXP_DESTROY`: the groups
/// of the events of expectations. The kernel sends nothing to the second one. It sends events of expectations
/// only if it kept events for their master, which it does for flows that began while somebody listened, or
/// with `net.netfilter.nf_conntrack_events=1`.
pub const EXPECTATION_GROUPS: [u32; 3] = [4, 5, 6];
