//! The kernel behind a netlink socket: the only file of this crate that does input and output.

use std::io;

use neli::consts::socket::{Msg, NlFamily};
use neli::socket::NlSocket;
use neli::utils::Groups;

/// What carries messages to the kernel and answers back. [`Socket`] is the real one, [`Script`](crate::Script) a fake.
pub trait Transport {
    /// Sends a buffer of one or more messages at once.
    ///
    /// # Errors
    /// Whatever the transport has.
    fn send(&mut self, messages: &[u8]) -> io::Result<()>;

    /// The next buffer of answers.
    ///
    /// The kernel has answered everything when [`send`](Self::send) returns, so this does not wait.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is no answer; `ENOBUFS` when answers were lost; or whatever the transport
    /// has.
    fn receive(&mut self) -> io::Result<&[u8]>;
}

/// A generic-netlink socket in the network namespace in which it was opened; later changes of the thread's namespace do
/// not matter.
pub struct Socket {
    socket: NlSocket,
    buffer: Vec<u8>,
}

impl Socket {
    /// The kernel puts at most 32 KiB of a dump into one answer, when the reader has offered that much from the start.
    const BUFFER: usize = 64 * 1024;

    /// Opens a socket.
    ///
    /// # Errors
    /// Those of `socket(2)` and `bind(2)`.
    pub fn open() -> io::Result<Self> {
        let socket = NlSocket::connect(NlFamily::Generic, None, Groups::empty())?;
        // A kernel before 4.12 cannot; it only costs words in errors.
        let _ = socket.enable_ext_ack(true);
        Ok(Self { socket, buffer: vec![0; Self::BUFFER] })
    }
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket").finish_non_exhaustive()
    }
}

impl Transport for Socket {
    fn send(&mut self, messages: &[u8]) -> io::Result<()> {
        let sent = self.socket.send(messages, Msg::empty())?;
        if sent == messages.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    fn receive(&mut self) -> io::Result<&[u8]> {
        let (length, _) = self.socket.recv(&mut self.buffer, Msg::DONTWAIT)?;
        self.buffer.get(..length).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}
