//! The crate's errors.

use crate::FlowKey;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel could not be talked to, refused a command as a whole, or said what cannot be understood.
    #[error("{command}: {source}{}", advice(command, source))]
    Netlink {
        /// The command: `list`, `get`, `delete`, `flush`, `count`, `create`, `update`, `statistics`, `events`.
        command: &'static str,
        /// What went wrong.
        source: sluicegate_netlink::Error,
    },
    /// The kernel refused to create, change or delete a flow.
    #[error("{command} {} {} {}{}: {source}{}", .flow.original.family(), .flow.original.protocol, .flow.original, also(*.more), advice(command, source))]
    Flow {
        /// The command: `create`, `update` or `delete`.
        command: &'static str,
        /// The flow.
        flow: Box<FlowKey>,
        /// How many more flows were refused.
        more: usize,
        /// The kernel's answer.
        source: sluicegate_netlink::Error,
    },
    /// A deletion without a criterion would empty the table, and only [`Client::flush`](crate::Client::flush) does that.
    #[error("the filter chooses all flows; emptying the table has a command of its own, flush")]
    NoCriterion,
    /// A filter names addresses of both families, or of another than it says: no flow can match it.
    #[error("the filter has addresses of different families")]
    MixedFamilies,
    /// The kernel answered without what the command asked for.
    #[error("{command}: the kernel's answer lacks {what}")]
    Answer {
        /// The command.
        command: &'static str,
        /// The C name of what is missing.
        what: &'static str,
    },
}

impl Error {
    /// True when what the command names does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.netlink().is_some_and(sluicegate_netlink::Error::is_not_found)
    }

    /// True when a flow with one of the tuples of the new one exists.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.netlink().is_some_and(sluicegate_netlink::Error::is_already_exists)
    }

    /// True when `CAP_NET_ADMIN` is missing in the network namespace.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        self.netlink().is_some_and(sluicegate_netlink::Error::is_permission_denied)
    }

    /// True when the kernel has no connection tracking over netlink (`nf_conntrack_netlink` is neither built in nor loaded).
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Netlink { command, source } | Self::Flow { command, source, .. } => {
                unsupported(command, source)
            }
            _ => false,
        }
    }

    /// The errno of the kernel's refusal, if that is what this is.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        self.netlink()?.kernel_code()
    }

    fn netlink(&self) -> Option<&sluicegate_netlink::Error> {
        match self {
            Self::Netlink { source, .. } | Self::Flow { source, .. } => Some(source),
            _ => None,
        }
    }

    pub(crate) fn of(command: &'static str) -> impl Fn(sluicegate_netlink::Error) -> Self {
        move |source| Self::Netlink { command, source }
    }
}

/// nfnetlink answers `EINVAL` for a subsystem that it does not have. Of our requests, these carry nothing else to object to.
fn unsupported(command: &str, source: &sluicegate_netlink::Error) -> bool {
    let bare = matches!(command, "list" | "count" | "flush" | "statistics");
    source.is_unsupported() || (bare && source.kernel_code() == Some(EINVAL))
}

/// What to do about it, where that is known.
fn advice(command: &str, source: &sluicegate_netlink::Error) -> &'static str {
    if source.is_permission_denied() {
        "; this needs CAP_NET_ADMIN in the network namespace"
    } else if unsupported(command, source) {
        "; is the module nf_conntrack_netlink there?"
    } else {
        ""
    }
}

fn also(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" and {more} more") }
}

const EINVAL: i32 = 22;
