//! A socket for tasks of tokio (feature `tokio`).
//!
//! Two things take time with netlink, and they want different treatment. A request is worked off inside `sendmsg`, and a dump inside
//! `recvmsg`: the kernel never answers later, it keeps the thread until it is done, tens of milliseconds for a large
//! transaction. Waiting for readiness would not help there, so [`AsyncSocket::run`] holds whole conversations on a thread for
//! blocking work, and everything that is written for a [`Transport`](crate::Transport) can be used in it. What is really waited for are
//! notifications: [`AsyncSocket::receive`] waits for those by the runtime's event loop and needs no thread.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), sluicegate_netlink::Error> {
//! use sluicegate_netlink::message::Flags;
//! use sluicegate_netlink::tokio::AsyncSocket;
//! use sluicegate_netlink::{Batch, Error, Options, Protocol, Socket, dump};
//!
//! let socket = AsyncSocket::new(Socket::open(Protocol::ROUTE, &Options::default())?)?;
//! // RTM_GETLINK with a `struct ifinfomsg`: every link of this network namespace.
//! let mut links = Batch::new();
//! links.message(18, Flags::REQUEST | Flags::DUMP, 0).raw(&[0; 16]);
//! let kinds = socket.run(move |socket| dump(socket, &links, |message| Ok(Some(message.header.kind)))).await?;
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

/// A [`Socket`] that does not block the tasks of a runtime. Tasks can share it, behind an `Arc` say: they take turns.
#[derive(Debug)]
pub struct AsyncSocket {
    socket: Arc<Mutex<Socket>>,
    /// The same socket once more, for readiness: that can be waited for while nobody holds the lock.
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
            reason = "its successor is unsafe: the descriptor must stay the same and open, which an OwnedFd sees to"
        )]
        let ready = AsyncFd::with_interest(duplicate, Interest::READABLE);
        let ready = ready.map_err(|e| Error::io("epoll", e))?;
        Ok(Self { socket: Arc::new(Mutex::new(socket)), ready })
    }

    /// Holds a conversation on a thread for blocking work: `talk` gets the socket, and may call whatever takes a
    /// [`Transport`](crate::Transport). Waits for its turn when another task talks.
    ///
    /// Whoever stops waiting (a time-out, `select!`) does not stop `talk`, once it has started: it is carried to its end, as
    /// the kernel would do anyway, and the next one waits for that. So nothing is ever half sent or half read.
    ///
    /// # Errors
    /// What `talk` returns; [`Error::Io`] when the runtime shuts down before it starts.
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

    /// Waits until a datagram comes, however long that takes, and reads it into `buffer`, replacing what it holds.
    ///
    /// This is for notifications (see [`Socket::join`]). Whoever stops waiting loses nothing. Give notifications a socket of their own:
    /// [`exchange`](crate::exchange), in [`run`](Self::run), passes over whatever does not answer it.
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

    /// The socket, for blocking use again; `None` while a conversation still goes on.
    #[must_use]
    pub fn into_inner(self) -> Option<Socket> {
        Arc::into_inner(self.socket).map(Mutex::into_inner)
    }
}
