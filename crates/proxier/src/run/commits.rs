//! Receives the commits of other programs to `nf_tables` as they happen.
//!
//! The loop listens only between its own syncs: a listener slows commits down several times, and the loop
//! knows its own. A commit that happens in between shows in the generation, which the loop asks for when it
//! listens again.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net;

use sluicegate_netlink::{NetlinkFamily, Options, Socket, Transport};
use sluicegate_nftables::Family;
use sluicegate_nftables::expr::{Data, Expr, Verdict};
use sluicegate_nftables::monitor::{Event, GROUP, Monitor};
use sluicegate_nftables::read::Generation;
use sluicegate_service_rules::{IsOurs, Object, TableChange};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use super::Error;

/// A listener for commits in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Commits {
    monitor: Monitor<Socket>,
    /// The same socket, for the runtime to wait for. Without `unsafe`, tokio takes descriptors only inside
    /// types of the standard library; nothing is read through this one, and epoll does not care about the
    /// type of a socket.
    ready: UnixDatagram,
    is_ours: IsOurs,
    /// Whether the events so far of the current commit touched our tables.
    touched: bool,
}

/// A commit of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// A commit that did not touch our tables, and led to this generation.
    OtherTables(u32),
    /// A commit that changed our tables.
    OurTables {
        /// The program, as the kernel names it: `nft (process 1234)`.
        by: String,
    },
    /// Events were lost or cannot be decoded, so any table may have changed.
    Lost(String),
}

impl Commits {
    /// Starts to listen. `is_ours` says which changes touch what is ours. Must be called inside a tokio
    /// runtime with I/O enabled.
    ///
    /// # Errors
    /// [`Error::Events`] when the kernel gives no such socket, or does not let it join the group.
    /// [`Error::Wait`] when the runtime cannot wait for it.
    pub fn listen(is_ours: IsOurs) -> Result<Self, Error> {
        Self::with(is_ours, &Options::default())
    }

    /// Starts to listen as [`listen`](Self::listen) does, with other socket options, such as a larger receive
    /// buffer.
    ///
    /// # Errors
    /// As [`listen`](Self::listen).
    pub fn with(is_ours: IsOurs, options: &Options) -> Result<Self, Error> {
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, options).map_err(Error::Events)?;
        socket.join(GROUP).map_err(Error::Events)?;
        socket.set_non_blocking(true).map_err(Error::Events)?;
        let ready = socket.as_fd().try_clone_to_owned().map(net::UnixDatagram::from);
        let ready = ready.and_then(UnixDatagram::from_std);
        let ready = ready.map_err(Error::Wait)?;
        Ok(Self { monitor: Monitor::with_transport(socket), ready, is_ours, touched: false })
    }

    /// Waits for commits, and returns them in order; none where a large one is not complete yet.
    pub async fn next(&mut self) -> Vec<Foreign> {
        loop {
            if let Err(error) = self.ready.readable().await {
                return vec![Foreign::Lost(error.to_string())];
            }
            let Self { monitor, ready, is_ours, touched } = self;
            // Reading inside `try_io` lets the runtime clear the readiness of the socket when there is
            // nothing left.
            let read = ready.try_io(Interest::READABLE, || {
                let (seen, is_all) = read(monitor, *is_ours, touched, MOST_AT_ONCE);
                if seen.is_empty() && is_all { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(seen) }
            });
            if let Ok(seen) = read {
                return seen;
            }
        }
    }

    /// Returns the commits that were received already, without waiting; the last is [`Foreign::Lost`] where
    /// events are left after very many of them.
    pub fn drain(&mut self) -> Vec<Foreign> {
        let (mut seen, is_all) = read(&mut self.monitor, self.is_ours, &mut self.touched, MOST_DATAGRAMS);
        if !is_all && !matches!(seen.last(), Some(Foreign::Lost(_))) {
            // Programs that commit faster than this reads must not keep the loop from its other work.
            seen.push(Foreign::Lost(format!("more than {MOST_DATAGRAMS} datagrams of events were queued")));
        }
        seen
    }
}

/// Reads queued events, up to the first loss: after one, everything is compared anyway. Returns whether none
/// is left.
fn read<T: Transport>(
    monitor: &mut Monitor<T>,
    is_ours: IsOurs,
    touched: &mut bool,
    most: usize,
) -> (Vec<Foreign>, bool) {
    let mut seen = Vec::new();
    for _ in 0..most {
        match monitor.events() {
            Ok(events) if events.is_empty() => return (seen, true),
            Ok(events) => seen.extend(events.into_iter().filter_map(|event| take(event, is_ours, touched))),
            Err(error) => seen.push(Foreign::Lost(error.to_string())),
        }
        if matches!(seen.last(), Some(Foreign::Lost(_))) {
            break;
        }
    }
    (seen, false)
}

/// Returns the commit that an event ends, if it ends one. `touched` is kept between the events of one commit.
fn take(event: Event, is_ours: IsOurs, touched: &mut bool) -> Option<Foreign> {
    match event {
        Event::Generation(generation) => Some(if std::mem::take(touched) {
            Foreign::OurTables { by: describe(&generation) }
        } else {
            Foreign::OtherTables(generation.id)
        }),
        Event::Overrun => Some(Foreign::Lost("the receive buffer overflowed".to_owned())),
        event => {
            *touched |= concerns(&event, is_ours);
            None
        }
    }
}

/// Returns whether an event touches what is ours; one that is unknown may.
fn concerns(event: &Event, is_ours: IsOurs) -> bool {
    let Some((family, table)) = event.table() else { return true };
    let what = match event {
        Event::Table(..) => Object::Table,
        Event::Chain(_, chain) => Object::Chain(chain.name.as_str()),
        Event::Rule(_, rule) => Object::Rule(rule.chain.as_str(), rule.expressions.iter().find_map(target)),
        _ => Object::Other,
    };
    (family == Family::IP || family == Family::IP6) && is_ours(&TableChange { table: table.as_str(), what })
}

/// Returns the chain that an expression leads to.
fn target(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Immediate(immediate) => match &immediate.data {
            Data::Verdict(Verdict::Jump(chain) | Verdict::Goto(chain)) => Some(chain.as_str()),
            _ => None,
        },
        _ => None,
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

/// The most datagrams of one turn of the loop.
const MOST_AT_ONCE: usize = 1024;
/// The most datagrams that are read before a sync; a commit of a large table is thousands of them.
const MOST_DATAGRAMS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use sluicegate_netlink::{Error, Wait};
    use sluicegate_nftables::fake::Fake;
    use sluicegate_nftables::{Table, TableId, Transaction};

    use super::*;

    /// A socket that gives the same at every read.
    struct Endless(Result<Vec<u8>, ()>);

    impl Transport for Endless {
        fn send(&mut self, _: &[u8]) -> Result<(), Error> {
            Ok(())
        }

        fn receive(&mut self, buffer: &mut Vec<u8>, _: Wait) -> Result<bool, Error> {
            let datagram = self.0.as_ref().map_err(|()| Error::Overrun)?;
            buffer.clone_from(datagram);
            Ok(true)
        }

        fn send_limit(&mut self, _: usize) -> usize {
            usize::MAX
        }
    }

    #[test]
    fn a_receive_buffer_that_always_overflows_is_a_single_loss() {
        let mut monitor = Monitor::with_transport(Endless(Err(())));
        let (seen, _) = read(&mut monitor, |change| change.table == "t", &mut false, MOST_DATAGRAMS);
        assert!(matches!(&*seen, [Foreign::Lost(_)]));
    }

    #[test]
    fn events_without_end_are_read_by_turns() {
        let mut kernel = Fake::new();
        let mut listener = kernel.open();
        listener.join(GROUP).unwrap();
        let mut commit = Transaction::new();
        commit.add(Table::new(TableId::new(Family::IP, "other".parse().unwrap())));
        commit.apply(&mut kernel).unwrap();
        let mut datagram = Vec::new();
        assert!(listener.receive(&mut datagram, Wait::No).unwrap());
        let mut monitor = Monitor::with_transport(Endless(Ok(datagram)));
        let (seen, is_all) = read(&mut monitor, |change| change.table == "ours", &mut false, 100);
        assert!(!is_all);
        assert!(seen.iter().all(|seen| matches!(seen, Foreign::OtherTables(_))), "{seen:?}");
    }
}
