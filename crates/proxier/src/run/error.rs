//! Why the daemon cannot run.

use std::io;
use std::time::Duration;

/// Why the daemon cannot start, or ends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another proxier runs in this network namespace.
    #[error(
        "{holder} is a proxier of this network namespace already, and two would undo each other's work; stop \
            that one first"
    )]
    Locked {
        /// The process that has the lock.
        holder: String,
    },
    /// The lock of the network namespace cannot be taken.
    #[error("taking the lock of the network namespace, which needs CAP_NET_ADMIN there: {0}")]
    Lock(
        /// What the system said.
        io::Error,
    ),
    /// The sync period is zero, or shorter than the minimum.
    #[error("expected a sync period above 0 and not below the minimum of {min:?}, found {sync:?}")]
    Intervals {
        /// The sync period.
        sync: Duration,
        /// The minimum sync period.
        min: Duration,
    },
    /// The events of `nf_tables` cannot be received.
    #[error("listening for commits of others: {0}")]
    Events(
        /// What the kernel said.
        sluicegate_netlink::Error,
    ),
    /// The runtime cannot wait for the events of `nf_tables`.
    #[error("waiting for commits of others: {0}")]
    Wait(
        /// What the system said.
        io::Error,
    ),
    /// The kernel does not allow this process to program it, from the first sync on.
    #[error("{0}")]
    Forbidden(
        /// What was refused, and the right that is missing.
        String,
    ),
    /// The first sync could not be made for minutes, for want of something that only the operator can give.
    #[error("{reason}, for {} s now; nothing can be programmed", waited.as_secs())]
    Missing {
        /// What is missing.
        reason: String,
        /// For how long it was waited for.
        waited: Duration,
    },
    /// The source of objects has no right to them.
    #[error("{0}: this was refused for minutes, and nothing can be programmed without it")]
    Hopeless(
        /// What was refused.
        String,
    ),
    /// The source of objects has ended: no change would be seen any more.
    #[error("the source of Services and EndpointSlices has ended")]
    SourceEnded,
}

impl Error {
    /// Returns true when another proxier runs in this network namespace.
    #[must_use]
    pub const fn is_locked(&self) -> bool {
        matches!(self, Self::Locked { .. })
    }
}
