//! The kernel's counters.

/// Counters since they were last set to zero, and rates.
///
/// They come from the 64-bit attribute (Linux 4.1), or on an older kernel from the 32-bit one, whose counters
/// of connections and packets wrap. The kernel's estimator updates them every two seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Scheduled connections.
    pub connections: u64,
    /// Packets from clients.
    pub packets_in: u64,
    /// Packets to clients that return through the director.
    pub packets_out: u64,
    /// Bytes from clients.
    pub bytes_in: u64,
    /// Bytes to clients.
    pub bytes_out: u64,
    /// Rates of these five, per second, averaged over some seconds.
    pub rate: Rate,
}

/// Rates per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rate {
    /// New connections.
    pub connections: u64,
    /// Packets from clients.
    pub packets_in: u64,
    /// Packets to clients.
    pub packets_out: u64,
    /// Bytes from clients.
    pub bytes_in: u64,
    /// Bytes to clients.
    pub bytes_out: u64,
}

/// The current numbers of connections of a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connections {
    /// Established connections.
    pub active: u32,
    /// All other connections: being opened or closed, and UDP flows.
    pub inactive: u32,
    /// Persistence templates: clients that are bound to the destination.
    pub persistent: u32,
}

impl Connections {
    /// Returns true if there is no connection in any state. A client may still be bound to the destination by
    /// persistence.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.active == 0 && self.inactive == 0
    }
}
