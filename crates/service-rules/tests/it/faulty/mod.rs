//! A netlink socket that fails once, on request.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use sluicegate_netlink::{Error as NetlinkError, NetlinkFamily, Options, Socket, Transport, Wait};

/// What goes wrong, once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Nothing,
    /// Nothing is sent.
    Unsent,
    /// Half of the datagram is sent.
    Torn,
    /// It is sent, and no answer is read from then on.
    Unanswered,
    /// The receive buffer overflows.
    Overrun,
}

pub(crate) const KINDS: [Kind; 4] = [Kind::Unsent, Kind::Torn, Kind::Unanswered, Kind::Overrun];

/// The fault of sockets that share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fault(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    kind: Kind,
    /// It comes after so many sends, or receives.
    after: usize,
    is_dead: bool,
}

impl Fault {
    pub(crate) fn set(&self, kind: Kind, after: usize) {
        *self.lock() = State { kind, after, is_dead: false };
    }

    pub(crate) fn clear(&self) {
        *self.lock() = State::default();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with it")
    }
}

/// A socket with a fault.
pub(crate) struct Faulty {
    socket: Socket,
    fault: Fault,
}

impl Faulty {
    pub(crate) fn open(family: NetlinkFamily, fault: &Fault) -> Self {
        let socket = Socket::open(family, &Options::default()).expect("a socket");
        Self { socket, fault: fault.clone() }
    }

    /// Counts down, and returns the fault if it comes now.
    fn comes(&self, kinds: &[Kind]) -> Option<Kind> {
        let mut fault = self.fault.lock();
        if !kinds.contains(&fault.kind) {
            return None;
        }
        match fault.after.checked_sub(1) {
            Some(after) => {
                fault.after = after;
                None
            }
            None => Some(std::mem::take(&mut fault.kind)),
        }
    }
}

impl Transport for Faulty {
    fn send(&mut self, datagram: &[u8]) -> Result<(), NetlinkError> {
        let broken = Err(NetlinkError::TimedOut(Duration::ZERO));
        match self.comes(&[Kind::Unsent, Kind::Torn, Kind::Unanswered]) {
            Some(Kind::Unsent) => broken,
            Some(Kind::Torn) => {
                self.socket.send(&datagram[..datagram.len() / 2])?;
                broken
            }
            Some(_) => {
                self.fault.lock().is_dead = true;
                self.socket.send(datagram)
            }
            None => self.socket.send(datagram),
        }
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, NetlinkError> {
        if self.fault.lock().is_dead {
            return Err(NetlinkError::TimedOut(Duration::ZERO));
        }
        match self.comes(&[Kind::Overrun]) {
            Some(_) => Err(NetlinkError::Overrun),
            None => self.socket.receive(buffer, wait),
        }
    }

    fn send_limit(&mut self, size: usize) -> usize {
        self.socket.send_limit(size)
    }

    fn port(&self) -> Option<u32> {
        self.socket.port()
    }
}
