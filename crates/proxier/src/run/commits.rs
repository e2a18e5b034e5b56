//! Commits of others to `nf_tables`, heard of as they happen.
//!
//! The loop listens only between its own syncs: a listener makes whoever commits several times slower, and its own commits
//! are no news. What happens while nobody listens shows in the generation, which the loop asks for when it listens again.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net;

use sluicegate_netlink::{Options, Protocol, Socket};
use sluicegate_nftables::Family;
use sluicegate_nftables::monitor::{Event, GROUP, Monitor};
use sluicegate_nftables::read::Generation;
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use crate::Error;
use crate::plan::nftables::TABLE;

/// A listener in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Commits {
    monitor: Monitor<Socket>,
    /// The same socket, for the runtime to wait for. tokio takes no descriptor but of its own types without `unsafe`; nothing is
    /// ever read through this one, and to epoll a socket is a socket.
    ready: UnixDatagram,
    /// Something of ours was among the events of the commit whose end has not come yet.
    touched: bool,
}

/// What somebody else did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// A commit that left our tables alone made this generation.
    Elsewhere(u32),
    /// A commit changed our tables.
    Ours {
        /// Who, as the kernel names it: `nft (process 1234)`.
        by: String,
    },
    /// Events were lost, or cannot be read: nobody knows what happened.
    Lost(String),
}

impl Commits {
    /// Begins to listen. Must be called inside a tokio runtime with its input and output enabled.
    ///
    /// # Errors
    /// [`Error::Kernel`] when there is no such socket, or the group must not be joined.
    pub fn listen() -> Result<Self, Error> {
        Self::with(&Options::default())
    }

    /// The same with a socket of one's own making, of whose options the size of the receive buffer matters.
    ///
    /// # Errors
    /// As [`listen`](Self::listen).
    pub fn with(options: &Options) -> Result<Self, Error> {
        let failed = |error| Error::kernel("listening for commits of others", error);
        let mut socket = Socket::open(Protocol::NETFILTER, options).map_err(failed)?;
        socket.join(GROUP).map_err(failed)?;
        socket.set_non_blocking(true).map_err(failed)?;
        let ready = socket.as_fd().try_clone_to_owned().map(net::UnixDatagram::from);
        let ready = ready.and_then(UnixDatagram::from_std);
        let ready =
            ready.map_err(|source| Error::Read { path: "the socket of nf_tables events".into(), source })?;
        Ok(Self { monitor: Monitor::new(socket), ready, touched: false })
    }

    /// Waits for commits, and says what they were, in order.
    pub async fn next(&mut self) -> Vec<Foreign> {
        loop {
            if let Err(error) = self.ready.readable().await {
                return vec![Foreign::Lost(error.to_string())];
            }
            let Self { monitor, ready, touched } = self;
            // Read inside, so that the runtime knows from when on it has to wait anew.
            let read = ready.try_io(Interest::READABLE, || {
                let seen = drain(monitor, touched);
                if seen.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(seen) }
            });
            if let Ok(seen) = read {
                return seen;
            }
        }
    }

    /// What has happened by now, without waiting.
    pub fn drain(&mut self) -> Vec<Foreign> {
        drain(&mut self.monitor, &mut self.touched)
    }
}

fn drain(monitor: &mut Monitor<Socket>, touched: &mut bool) -> Vec<Foreign> {
    let mut seen = Vec::new();
    loop {
        match monitor.events() {
            Ok(events) if events.is_empty() => return seen,
            Ok(events) => seen.extend(events.into_iter().filter_map(|event| take(event, touched))),
            Err(error) => {
                seen.push(Foreign::Lost(error.to_string()));
                return seen;
            }
        }
    }
}

/// What an event means; `touched` remembers what the events of a commit touched until its end comes.
fn take(event: Event, touched: &mut bool) -> Option<Foreign> {
    match event {
        Event::Generation(generation) => Some(if std::mem::take(touched) {
            Foreign::Ours { by: describe(&generation) }
        } else {
            Foreign::Elsewhere(generation.id)
        }),
        Event::Overrun => Some(Foreign::Lost("more happened than the receive buffer holds".to_owned())),
        event => {
            *touched |= event.table().is_none_or(|(family, table)| {
                table.as_str() == TABLE && (family == Family::IP || family == Family::IP6)
            });
            None
        }
    }
}

fn describe(generation: &Generation) -> String {
    match (&generation.process_name, generation.process) {
        (Some(name), Some(process)) => format!("{name} (process {process})"),
        (Some(name), None) => name.clone(),
        (None, Some(process)) => format!("process {process}"),
        (None, None) => "another process".to_owned(),
    }
}
