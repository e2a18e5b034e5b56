//! What the kernel counts.

/// Counters since the last zero, and rates.
///
/// From the 64-bit attribute where the kernel has it (Linux 4.1), else from the 32-bit one, whose counters of
/// connections and packets wrap. An estimator fills them every two seconds: they lag by so much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections scheduled.
    pub connections: u64,
    /// Packets from clients.
    pub packets_in: u64,
    /// Packets to clients, as far as they come back through the director.
    pub packets_out: u64,
    /// Bytes from clients.
    pub bytes_in: u64,
    /// Bytes to clients.
    pub bytes_out: u64,
    /// Rates of the five, per second, averaged over some seconds.
    pub rate: Rate,
}

/// Rates per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// Connections of a destination at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Established ones.
    pub active: u32,
    /// All others: being opened, being closed, datagram flows.
    pub inactive: u32,
    /// Persistence templates: clients that are bound to it.
    pub persistent: u32,
}

impl Connections {
    /// No connection of any state; a client may still be bound to it by persistence.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.active == 0 && self.inactive == 0
    }
}
