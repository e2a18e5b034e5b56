//! The netlink socket. No other file of the libraries opens one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use netlink_sys::{Socket as RawSocket, SocketAddr};
use rustix::net::{RecvFlags, sockopt};

use crate::{Errno, Error, Transport, Wait};

/// The kernel module or group that a socket talks to: the `netlink_family` of netlink(7), `NETLINK_*` of
/// `linux/netlink.h`.
///
/// ```
/// use sluicegate_netlink::NetlinkFamily;
///
/// /// `NETLINK_AUDIT` of `linux/netlink.h`: any number is a family.
/// const AUDIT: NetlinkFamily = NetlinkFamily(9);
/// assert_ne!(AUDIT, NetlinkFamily::NETFILTER);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NetlinkFamily(pub i32);

impl NetlinkFamily {
    /// `NETLINK_ROUTE`: links, addresses, routes.
    pub const ROUTE: Self = Self(0);
    /// `NETLINK_NETFILTER`: nftables, ipset, conntrack.
    pub const NETFILTER: Self = Self(12);
    /// `NETLINK_GENERIC`: IPVS and other families with a name.
    pub const GENERIC: Self = Self(16);
}

/// The options of a [`Socket`]. The defaults suit clients of netfilter.
///
/// ```no_run
/// use std::time::Duration;
///
/// use sluicegate_netlink::{NetlinkFamily, Options, Socket};
///
/// let mut options = Options::default();
/// options.timeout = Duration::from_secs(120); // for a million objects in one batch
/// let socket = Socket::open(NetlinkFamily::NETFILTER, &options)?;
/// # Ok::<(), sluicegate_netlink::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The time limit for an answer; 30 s by default. The kernel answers a batch once it is applied, which
    /// takes seconds for some 100,000 objects.
    pub timeout: Duration,
    /// The size of the receive buffer in bytes; 4 MiB by default. More than `net.core.rmem_max` needs
    /// `CAP_NET_ADMIN`; without it the kernel grants that limit.
    ///
    /// It bounds how many errors of one batch can be received.
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
/// use sluicegate_netlink::{NetlinkFamily, Options, Socket};
///
/// let socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
/// # Ok::<(), sluicegate_netlink::Error>(())
/// ```
#[derive(Debug)]
pub struct Socket {
    raw: RawSocket,
    timeout: Duration,
    port: u32,
    /// `SO_SNDBUF` as the kernel counts it.
    send_buffer: usize,
    non_blocking: bool,
}

impl Socket {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// This needs no capability; most requests on the socket need `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// [`Error::Io`] with the failing call, such as `EPROTONOSUPPORT` from a kernel without the family.
    pub fn open(family: NetlinkFamily, options: &Options) -> Result<Self, Error> {
        let family = isize::try_from(family.0).unwrap_or(-1);
        let mut raw = RawSocket::new(family).map_err(|e| Error::io("socket", e))?;
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
        Ok(Self { raw, timeout: options.timeout, port, send_buffer, non_blocking: false })
    }

    /// Joins a multicast group, to receive notifications. Answers and notifications then come through
    /// [`Transport::receive`].
    ///
    /// # Errors
    /// [`Error::Io`]; `EPERM` where the group is not open to ordinary users.
    pub fn join(&mut self, group: u32) -> Result<(), Error> {
        self.raw.add_membership(group).map_err(|e| Error::io("NETLINK_ADD_MEMBERSHIP", e))
    }

    /// Makes [`Transport::receive`] return false at once where it would wait for an answer: for a caller that
    /// waits for the descriptor itself, with poll or an event loop.
    ///
    /// [`exchange`](crate::exchange) and [`dump`](crate::dump) then fail with [`Error::WouldBlock`] if the
    /// answer is not queued yet.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn set_non_blocking(&mut self, non_blocking: bool) -> Result<(), Error> {
        self.raw.set_non_blocking(non_blocking).map_err(|e| Error::io("O_NONBLOCK", e))?;
        self.non_blocking = non_blocking;
        Ok(())
    }

    /// Returns the size of the receive buffer in bytes as the kernel counts it (`SO_RCVBUF`): twice the size
    /// that was granted, to account for its own structures.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn receive_buffer(&self) -> Result<usize, Error> {
        sockopt::socket_recv_buffer_size(&self.raw).map_err(|e| Error::io("SO_RCVBUF", e))
    }

    fn grow_send_buffer(&mut self, size: usize) {
        let wanted = size.saturating_add(SEND_OVERHEAD).min(SEND_BUFFER_MAX);
        // The kernel doubles the value, to account for its own structures.
        let request = wanted.div_ceil(2);
        if sockopt::set_socket_send_buffer_size_force(&self.raw, request).is_err() {
            // Without the capability net.core.wmem_max is the limit; send() reports how much is missing.
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
                Err(error) if Errno::from_io(&error) == Some(Errno::EMSGSIZE) => {
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
                    io::ErrorKind::WouldBlock if wait == Wait::No || self.non_blocking => return Ok(false),
                    io::ErrorKind::WouldBlock => return Err(Error::TimedOut(self.timeout)),
                    _ if Errno::from_io(&error) == Some(Errno::ENOBUFS) => return Err(Error::Overrun),
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

/// Bytes of `SO_SNDBUF` that no datagram can use (`netlink_sendmsg` compares with `sk_sndbuf - 32`).
const SEND_OVERHEAD: usize = 32;
/// The largest `SO_SNDBUF`: a positive int, doubled by the kernel.
const SEND_BUFFER_MAX: usize = 0x7fff_fffe;
/// Room for one datagram: dumps come in up to 32 KiB, errors of ipset in up to 64 KiB and a little.
const RECEIVE_SIZE: usize = 128 << 10;
