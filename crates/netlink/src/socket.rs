//! The one place of the netfilter crates that opens a socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use netlink_sys::{Socket as RawSocket, SocketAddr};
use rustix::net::{RecvFlags, sockopt};

use crate::error::{EMSGSIZE, ENOBUFS};
use crate::{Error, Transport, Wait};

/// A netlink family (`NETLINK_*` of `linux/netlink.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protocol(pub i32);

impl Protocol {
    /// `NETLINK_ROUTE`: links, addresses, routes.
    pub const ROUTE: Self = Self(0);
    /// `NETLINK_NETFILTER`: nftables, ipset, conntrack.
    pub const NETFILTER: Self = Self(12);
    /// `NETLINK_GENERIC`: IPVS and other families with a name.
    pub const GENERIC: Self = Self(16);
}

/// How a [`Socket`] is set up. The defaults suit clients of netfilter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// How long an answer may take. A batch of 100,000 objects is answered when it is applied, so be generous. 30 s.
    pub timeout: Duration,
    /// Bytes of receive buffer to ask for: above `net.core.rmem_max` only with `CAP_NET_ADMIN`. 4 MiB.
    ///
    /// It bounds how many errors of one batch are heard of.
    pub receive_buffer: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), receive_buffer: 4 << 20 }
    }
}

/// A netlink socket that talks to the kernel only, with extended and capped acknowledgements.
///
/// It belongs to the network namespace of the thread that opens it, whatever that thread does later.
///
/// ```no_run
/// use sluicegate_netlink::{Options, Protocol, Socket};
///
/// let socket = Socket::open(Protocol::NETFILTER, &Options::default())?;
/// # Ok::<(), sluicegate_netlink::Error>(())
/// ```
#[derive(Debug)]
pub struct Socket {
    raw: RawSocket,
    timeout: Duration,
    port: u32,
    /// `SO_SNDBUF` as the kernel counts it, known once it was asked for.
    send_buffer: usize,
}

impl Socket {
    /// Opens a socket in the current network namespace.
    ///
    /// Neither needs a capability; most requests on it need `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// [`Error::Io`] with the failing call, such as `EPROTONOSUPPORT` from a kernel without the protocol.
    pub fn open(protocol: Protocol, options: &Options) -> Result<Self, Error> {
        let protocol = isize::try_from(protocol.0).unwrap_or(-1);
        let mut raw = RawSocket::new(protocol).map_err(|e| Error::io("socket", e))?;
        let port = raw.bind_auto().map_err(|e| Error::io("bind", e))?.port_number();
        // Connected to port 0, the kernel: a datagram of another process never gets here.
        raw.connect(&SocketAddr::new(0, 0)).map_err(|e| Error::io("connect", e))?;
        raw.set_ext_ack(true).map_err(|e| Error::io("NETLINK_EXT_ACK", e))?;
        raw.set_cap_ack(true).map_err(|e| Error::io("NETLINK_CAP_ACK", e))?;
        sockopt::set_socket_timeout(&raw, sockopt::Timeout::Recv, Some(options.timeout))
            .map_err(|e| Error::io("SO_RCVTIMEO", e))?;
        if sockopt::set_socket_recv_buffer_size_force(&raw, options.receive_buffer).is_err() {
            // Without the capability the kernel grants up to net.core.rmem_max.
            sockopt::set_socket_recv_buffer_size(&raw, options.receive_buffer)
                .map_err(|e| Error::io("SO_RCVBUF", e))?;
        }
        let send_buffer = sockopt::socket_send_buffer_size(&raw).map_err(|e| Error::io("SO_SNDBUF", e))?;
        Ok(Self { raw, timeout: options.timeout, port, send_buffer })
    }

    /// Joins a multicast group, to hear of changes. Answers and notifications then come through [`Transport::receive`].
    ///
    /// # Errors
    /// [`Error::Io`]; `EPERM` where the group is not open to ordinary users.
    pub fn join(&mut self, group: u32) -> Result<(), Error> {
        self.raw.add_membership(group).map_err(|e| Error::io("NETLINK_ADD_MEMBERSHIP", e))
    }

    /// Makes [`Transport::receive`] return at once with "nothing yet" instead of waiting for an answer: for a caller
    /// that waits for the descriptor itself, with poll or an event loop.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn set_non_blocking(&mut self, non_blocking: bool) -> Result<(), Error> {
        self.raw.set_non_blocking(non_blocking).map_err(|e| Error::io("O_NONBLOCK", e))
    }

    /// Bytes of receive buffer as the kernel counts them: twice what was granted, for its own structures (`SO_RCVBUF`).
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn receive_buffer(&self) -> Result<usize, Error> {
        sockopt::socket_recv_buffer_size(&self.raw).map_err(|e| Error::io("SO_RCVBUF", e))
    }

    fn grow_send_buffer(&mut self, size: usize) {
        let wanted = size.saturating_add(SEND_OVERHEAD).min(SEND_BUFFER_MAX);
        // The kernel doubles what it is given, to account for its own structures.
        let request = wanted.div_ceil(2);
        if sockopt::set_socket_send_buffer_size_force(&self.raw, request).is_err() {
            // Not permitted: take what net.core.wmem_max allows; send() says what is missing.
            let _ = sockopt::set_socket_send_buffer_size(&self.raw, request);
        }
        self.send_buffer = sockopt::socket_send_buffer_size(&self.raw).unwrap_or(self.send_buffer);
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.raw.as_fd()
    }
}

impl Transport for Socket {
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        let limit = self.send_limit(datagram.len());
        if datagram.len() > limit {
            return Err(Error::TooBig { size: datagram.len(), limit });
        }
        loop {
            match self.raw.send(datagram, 0) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(EMSGSIZE) => {
                    return Err(Error::TooBig { size: datagram.len(), limit });
                }
                Err(error) => return Err(Error::io("send", error)),
            }
        }
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, Error> {
        buffer.clear();
        buffer.reserve(RECEIVE_SIZE);
        let room = buffer.capacity();
        let flags = match wait {
            Wait::No => RecvFlags::DONTWAIT | RecvFlags::TRUNC,
            Wait::Answer => RecvFlags::TRUNC,
        };
        loop {
            // With MSG_TRUNC the result is the datagram's size, however much of it was read.
            match self.raw.recv(buffer, flags.bits().cast_signed()) {
                Ok(size) if size > room => {
                    buffer.clear();
                    return Err(Error::Truncated { read: room, size });
                }
                Ok(_) => return Ok(true),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock if wait == Wait::No => return Ok(false),
                    io::ErrorKind::WouldBlock => return Err(Error::TimedOut(self.timeout)),
                    _ if error.raw_os_error() == Some(ENOBUFS) => return Err(Error::Overrun),
                    _ => return Err(Error::io("recv", error)),
                },
            }
        }
    }

    fn send_limit(&mut self, size: usize) -> usize {
        if size.saturating_add(SEND_OVERHEAD) > self.send_buffer {
            self.grow_send_buffer(size);
        }
        self.send_buffer.saturating_sub(SEND_OVERHEAD)
    }

    fn port(&self) -> Option<u32> {
        Some(self.port)
    }
}

/// What the kernel keeps of `SO_SNDBUF` for itself: a datagram of the rest fits exactly (`netlink_sendmsg`).
const SEND_OVERHEAD: usize = 32;
/// The largest `SO_SNDBUF`: a positive int, doubled by the kernel.
const SEND_BUFFER_MAX: usize = 0x7fff_fffe;
/// Room for one datagram: dumps come in up to 32 KiB, errors of ipset in up to 64 KiB and a little.
const RECEIVE_SIZE: usize = 128 << 10;
