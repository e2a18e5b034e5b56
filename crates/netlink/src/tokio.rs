//! A socket for tasks of tokio (feature `tokio`).
//!
//! Two operations take time with netlink, and they need different treatment. The kernel processes a request
//! inside `sendmsg` and a dump inside `recvmsg`: it never answers later, but blocks the thread until it is
//! done, for tens of milliseconds with a large transaction. Waiting for readiness would not help there, so
//! [`AsyncSocket::run`] runs whole conversations on a thread for blocking work, and any function that takes a
//! [`Transport`](crate::Transport) can be used in it. Notifications come at any time:
//! [`AsyncSocket::receive`] waits for them with the runtime's event loop and needs no thread.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), sluicegate_netlink::Error> {
//! use sluicegate_netlink::message::Flags;
//! use sluicegate_netlink::tokio::AsyncSocket;
//! use sluicegate_netlink::{Batch, Error, Options, NetlinkFamily, Socket, dump};
//!
//! let socket = AsyncSocket::new(Socket::open(NetlinkFamily::ROUTE, &Options::default())?)?;
//! // RTM_GETLINK with a `struct ifinfomsg`: every link of this network namespace.
//! let mut links = Batch::new();
//! links.message(18, Flags::REQUEST | Flags::DUMP, 0).raw(&[0; 16]);
//! let read = move |socket: &mut Socket| dump(socket, &links, |message| Ok(Some(message.header.kind)));
//! let kinds = socket.run(read).await?;
//! assert!(kinds.iter().all(|kind| *kind == 16)); // RTM_NEWLINK
//! # Ok(())
//! # }
//! ```

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use ::tokio::io::Interest;
use ::tokio::io::unix::AsyncFd;
use ::tokio::sync::Mutex;
use ::tokio::task;

use crate::{Error, Socket, Transport as _, Wait};

/// A [`Socket`] that does not block the tasks of a runtime. Tasks can share it, for instance in an `Arc`:
/// their conversations run one after the other.
#[derive(Debug)]
pub struct AsyncSocket {
    socket: Arc<Mutex<Socket>>,
    /// A duplicate of the socket for readiness, so that waiting does not need the lock.
    ready: AsyncFd<OwnedFd>,
}

impl AsyncSocket {
    /// Registers a socket with the runtime that this is called in.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be registered.
    ///
    /// # Panics
    /// Outside of a runtime of tokio, or in one without IO (`enable_io`).
    pub fn new(socket: Socket) -> Result<Self, Error> {
        let duplicate = socket.as_fd().try_clone_to_owned().map_err(|e| Error::io("dup", e))?;
        #[allow(
            deprecated,
            reason = "its successor is unsafe: the descriptor must stay open, which OwnedFd guarantees"
        )]
        let ready = AsyncFd::with_interest(duplicate, Interest::READABLE);
        let ready = ready.map_err(|e| Error::io("epoll", e))?;
        Ok(Self { socket: Arc::new(Mutex::new(socket)), ready })
    }

    /// Runs a conversation on a thread for blocking work: `talk` gets the socket, and may call any function
    /// that takes a [`Transport`](crate::Transport). Waits while another task uses the socket.
    ///
    /// Dropping the future (after a time-out, in `select!`) does not stop `talk` once it has started: it runs
    /// to its end, as the kernel would do anyway, and the next conversation waits for it. So no request is
    /// half sent and no answer half read.
    ///
    /// # Errors
    /// The errors of `talk`; [`Error::Io`] if the runtime shuts down before it starts.
    ///
    /// # Panics
    /// When `talk` does.
    pub async fn run<R, E>(
        &self,
        talk: impl FnOnce(&mut Socket) -> Result<R, E> + Send + 'static,
    ) -> Result<R, E>
    where
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let mut socket = Arc::clone(&self.socket).lock_owned().await;
        match task::spawn_blocking(move || talk(&mut socket)).await {
            Ok(done) => done,
            Err(failed) => match failed.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(cancelled) => Err(Error::io("spawn_blocking", io::Error::other(cancelled)).into()),
            },
        }
    }

    /// Waits until a datagram arrives, without a time limit, and reads it into `buffer`, replacing its
    /// content.
    ///
    /// This is for notifications (see [`Socket::join`]). Dropping the future loses no datagram. Use a
    /// separate socket for notifications: [`exchange`](crate::exchange), in [`run`](Self::run), discards
    /// datagrams that are not answers to its requests.
    ///
    /// # Errors
    /// [`Error::Overrun`] when notifications were lost, [`Error::Truncated`], [`Error::Io`].
    pub async fn receive(&self, buffer: &mut Vec<u8>) -> Result<(), Error> {
        loop {
            let mut ready = self.ready.readable().await.map_err(|e| Error::io("epoll", e))?;
            let mut socket = self.socket.lock().await;
            if socket.receive(buffer, Wait::No)? {
                return Ok(());
            }
            ready.clear_ready();
        }
    }

    /// Returns the socket, for blocking use; `None` while a conversation is still running.
    #[must_use]
    pub fn into_inner(self) -> Option<Socket> {
        Arc::into_inner(self.socket).map(Mutex::into_inner)
    }
}
