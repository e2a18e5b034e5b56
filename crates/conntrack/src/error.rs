//! The crate's errors.

use sluicegate_netlink::Errno;

use crate::FlowKey;
use crate::protocol::{Name, family_name};

/// Any failure of this crate.
///
/// ```no_run
/// use sluicegate_conntrack::{Client, Filter};
///
/// match Client::open().and_then(|mut client| client.list(&Filter::default())) {
///     Ok(flows) => println!("{} flows", flows.len()),
///     Err(error) if error.is_unsupported() => println!("this kernel tracks no connections"),
///     Err(error) => println!("{error}"), // the command, the error number and what it means
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The socket failed, the kernel refused a command as a whole, or its answer cannot be decoded.
    #[error("{command}: {source}{}", advice(command, source))]
    Netlink {
        /// The command: `list`, `get`, `delete`, `flush`, `count`, `create`, `update`, `statistics`,
        /// `events`.
        command: &'static str,
        /// The underlying error.
        source: sluicegate_netlink::Error,
    },
    /// The kernel refused to create, change or delete a flow.
    #[error(
        "{command} {} {} {}{}: {source}{}",
        family_name(.flow.original.family()),
        Name(.flow.original.protocol),
        .flow.original,
        also(*.more),
        advice(command, source)
    )]
    Flow {
        /// The command: `create`, `update`, `delete`, or `delete expectation`, whose tuple is the expected
        /// one.
        command: &'static str,
        /// The flow.
        flow: Box<FlowKey>,
        /// The number of further flows that were refused.
        more: usize,
        /// The kernel's answer.
        source: sluicegate_netlink::Error,
    },
    /// All flows match the filter of a deletion. Only [`Client::flush`](crate::Client::flush) deletes all
    /// flows.
    #[error(
        "expected a filter that leaves some flows out, found one that all match; use flush to empty the table"
    )]
    NoCriterion,
    /// A filter has addresses of both families, or of another than its family: no flow can match it.
    #[error("expected a filter with addresses of one family, found some of another")]
    MixedFamilies,
    /// The kernel's answer lacks a required attribute.
    #[error("{command}: the kernel's answer lacks {attribute}")]
    Answer {
        /// The command.
        command: &'static str,
        /// The C name of the attribute.
        attribute: &'static str,
    },
}

impl Error {
    /// Returns true when the flow of the command does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.netlink().is_some_and(sluicegate_netlink::Error::is_not_found)
    }

    /// Returns true when a flow with one of the tuples of the new one exists.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.netlink().is_some_and(sluicegate_netlink::Error::is_already_exists)
    }

    /// Returns true when `CAP_NET_ADMIN` is missing in the network namespace.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        self.netlink().is_some_and(sluicegate_netlink::Error::is_permission_denied)
    }

    /// Returns true when the kernel has no connection tracking over netlink (`nf_conntrack_netlink` is
    /// neither built in nor loaded).
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Netlink { command, source } | Self::Flow { command, source, .. } => {
                unsupported(command, source)
            }
            _ => false,
        }
    }

    /// Returns the error number with which the kernel refused the command, `None` for any other failure.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        self.netlink()?.errno()
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

/// Returns true when the kernel lacks the subsystem. nfnetlink answers `EINVAL` then, for which these
/// requests give no other reason.
fn unsupported(command: &str, source: &sluicegate_netlink::Error) -> bool {
    let bare = matches!(command, "list" | "count" | "flush" | "statistics");
    source.is_unsupported() || (bare && source.errno() == Some(Errno::EINVAL))
}

/// Returns advice on how to resolve the error, if there is any.
fn advice(command: &str, source: &sluicegate_netlink::Error) -> &'static str {
    if source.is_permission_denied() {
        "; this needs CAP_NET_ADMIN in the network namespace"
    } else if unsupported(command, source) {
        "; the kernel may lack the module nf_conntrack_netlink"
    } else {
        ""
    }
}

fn also(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" and {more} more") }
}
