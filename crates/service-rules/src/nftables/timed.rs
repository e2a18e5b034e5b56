//! A transport that measures the messages and bytes that are sent, and the time that the kernel takes.

use std::time::{Duration, Instant};

use sluicegate_netlink::message::Messages;
use sluicegate_netlink::{Error, Transport, Wait};

/// Wraps a transport and measures it.
#[derive(Debug)]
pub(super) struct Timed<T> {
    inner: T,
    messages: usize,
    bytes: usize,
    kernel: Duration,
}

impl<T> Timed<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, messages: 0, bytes: 0, kernel: Duration::ZERO }
    }

    /// Resets the totals.
    pub(super) fn reset(&mut self) {
        (self.messages, self.bytes, self.kernel) = (0, 0, Duration::ZERO);
    }

    /// Returns the messages, bytes and time since the last reset.
    pub(super) fn totals(&self) -> (usize, usize, Duration) {
        (self.messages, self.bytes, self.kernel)
    }
}

impl<T: Transport> Transport for Timed<T> {
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        self.messages += Messages::new(datagram).count();
        self.bytes += datagram.len();
        let start = Instant::now();
        let sent = self.inner.send(datagram);
        self.kernel += start.elapsed();
        sent
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, Error> {
        self.inner.receive(buffer, wait)
    }

    fn send_limit(&mut self, size: usize) -> usize {
        self.inner.send_limit(size)
    }

    fn port(&self) -> Option<u32> {
        self.inner.port()
    }
}
