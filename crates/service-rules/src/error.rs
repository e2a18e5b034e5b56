//! The errors of the crate.

use std::path::PathBuf;

use sluicegate_services::ServiceName;

/// An error of planning or programming the rules.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The number of a bit that a packet mark does not have.
    #[error("expected a masquerade bit from 0 to 31, found {bit}")]
    MasqueradeBit {
        /// The number.
        bit: u8,
    },
    /// A value of the settings or of the cluster is not valid.
    #[error(transparent)]
    Services(#[from] sluicegate_services::Error),
    /// A timeout of IPVS is longer than the kernel accepts.
    #[cfg(feature = "ipvs")]
    #[error("timeouts of IPVS: {source}")]
    Timeouts {
        /// The error, which names the timeout.
        source: Box<sluicegate_ipvs::Error>,
    },
    /// The kernel refused these services. Without them the others can be programmed.
    #[error("programming the services: {}", refusals(services))]
    Refused {
        /// The services, each with the kernel's reason, in the order of their names.
        services: Vec<(ServiceName, String)>,
    },
    /// Netlink failed, or the kernel refused a request that is not a transaction of `nf_tables`.
    #[error("{doing}: {source}{}", advice(source.is_permission_denied()))]
    Netlink {
        /// The operation that failed.
        doing: &'static str,
        /// The underlying error.
        source: sluicegate_netlink::Error,
    },
    /// `nf_tables` refused a transaction, or could not be reached.
    #[cfg(feature = "nftables")]
    #[error("{doing}: {source}{}", advice(source.is_permission_denied()))]
    Nftables {
        /// The operation that failed.
        doing: &'static str,
        /// The underlying error.
        source: Box<sluicegate_nftables::Error>,
    },
    /// A table of ours belongs to another process, and only that may change it.
    #[cfg(feature = "nftables")]
    #[error(
        "table {table} belongs to another process, by its netlink socket {owner} (flag owner), and only that may \
         change it: it can be programmed once that process has ended"
    )]
    Owned {
        /// The table.
        table: String,
        /// The port of the socket that owns it; mostly the number of the process.
        owner: u32,
    },
    /// The rules of iptables could not be listed or changed.
    #[cfg(feature = "iptables")]
    #[error("{doing}: {source}{}", iptables_advice(source.is_permission_denied()))]
    Iptables {
        /// The operation that failed.
        doing: &'static str,
        /// The underlying error.
        source: Box<sluicegate_xtables::Error>,
    },
    /// No change of iptables' rules leads to the plan: rules of other programs refer to our chains, or a rule
    /// cannot be read.
    #[cfg(feature = "iptables")]
    #[error("{doing}: {source}")]
    Rules {
        /// The operation that failed.
        doing: &'static str,
        /// The underlying error.
        source: Box<sluicegate_iptables_save::Error>,
    },
    /// A set could not be listed or changed.
    #[cfg(feature = "ipvs")]
    #[error("{doing}: {source}")]
    Ipset {
        /// The operation that failed.
        doing: &'static str,
        /// The underlying error.
        source: Box<sluicegate_ipset::Error>,
    },
    /// A virtual server could not be listed or changed.
    #[cfg(feature = "ipvs")]
    #[error("{doing}: {source}")]
    Ipvs {
        /// The operation that failed.
        doing: &'static str,
        /// The underlying error.
        source: Box<sluicegate_ipvs::Error>,
    },
    /// A sysctl could not be read or written.
    #[error("{}: {source}", path.display())]
    Sysctl {
        /// Its file.
        path: PathBuf,
        /// The underlying error.
        source: std::io::Error,
    },
    /// A back end from outside of this crate failed.
    #[error("{doing}: {source}")]
    Backend {
        /// The operation that failed.
        doing: &'static str,
        /// The underlying error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Returns `true` if a capability is missing.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Netlink { source, .. } => source.is_permission_denied(),
            #[cfg(feature = "nftables")]
            Self::Nftables { source, .. } => source.is_permission_denied(),
            #[cfg(feature = "iptables")]
            Self::Iptables { source, .. } => source.is_permission_denied(),
            #[cfg(feature = "ipvs")]
            Self::Ipset { source, .. } => source.is_permission_denied(),
            #[cfg(feature = "ipvs")]
            Self::Ipvs { source, .. } => source.is_permission_denied(),
            _ => false,
        }
    }

    /// Returns `true` if the kernel does not have iptables, IPVS, ipset, or another feature that is needed.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        match self {
            Self::Netlink { source, .. } => source.is_unsupported(),
            #[cfg(feature = "iptables")]
            Self::Iptables { source, .. } => source.is_unsupported(),
            #[cfg(feature = "ipvs")]
            Self::Ipvs { source, .. } => source.is_absent(),
            #[cfg(feature = "ipvs")]
            Self::Ipset { source, .. } => source.is_unsupported(),
            _ => false,
        }
    }

    /// Returns `true` if the kernel refused the content of the change: not for a lack of rights, memory or
    /// features.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Refused { .. } => true,
            #[cfg(feature = "nftables")]
            Self::Nftables { source, .. } => !source.failures().is_empty() && !source.is_permission_denied(),
            #[cfg(feature = "iptables")]
            Self::Iptables { source, .. } => source.is_refusal(),
            _ => false,
        }
    }

    /// Returns the services that the kernel refused, each with its reason; none for errors of another kind.
    #[must_use]
    pub fn refused(&self) -> &[(ServiceName, String)] {
        match self {
            Self::Refused { services } => services,
            _ => &[],
        }
    }

    /// Creates an error of a back end from outside of this crate.
    pub fn backend(doing: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Backend { doing, source: source.into() }
    }

    /// Combines two errors of one sync. Refused services of both are named together; they take precedence
    /// over any other error, which the next sync without them reports again.
    #[cfg(feature = "iptables")]
    pub(crate) fn both(first: Option<Self>, second: Self) -> Self {
        match (first, second) {
            (Some(Self::Refused { mut services }), Self::Refused { services: more }) => {
                services.extend(more);
                services.sort();
                services.dedup_by(|a, b| a.0 == b.0);
                Self::Refused { services }
            }
            (Some(first @ Self::Refused { .. }), _) => first,
            (_, second) => second,
        }
    }

    pub(crate) fn netlink(doing: &'static str, source: sluicegate_netlink::Error) -> Self {
        Self::Netlink { doing, source }
    }

    /// Creates the error of reading what `nf_tables` has, which sends no transaction.
    #[cfg(feature = "nftables")]
    pub(crate) fn reading(doing: &'static str, source: sluicegate_nftables::Error) -> Self {
        match source {
            sluicegate_nftables::Error::Netlink(source) => Self::netlink(doing, source),
            source => Self::nftables(doing, source),
        }
    }

    #[cfg(feature = "nftables")]
    pub(crate) fn nftables(doing: &'static str, source: sluicegate_nftables::Error) -> Self {
        Self::Nftables { doing, source: Box::new(source) }
    }

    #[cfg(feature = "ipvs")]
    pub(crate) fn ipset(doing: &'static str, source: sluicegate_ipset::Error) -> Self {
        Self::Ipset { doing, source: Box::new(source) }
    }

    #[cfg(feature = "ipvs")]
    pub(crate) fn ipvs(doing: &'static str, source: sluicegate_ipvs::Error) -> Self {
        Self::Ipvs { doing, source: Box::new(source) }
    }
}

/// The error for a name that is none of those known: of a mode, a layout, a feature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {}, found {found:?}", alternatives(expected))]
#[non_exhaustive]
pub struct UnknownName {
    /// The names that are known.
    pub expected: Vec<&'static str>,
    /// The name that was given.
    pub found: String,
}

impl UnknownName {
    pub(crate) fn new(expected: impl IntoIterator<Item = &'static str>, found: &str) -> Self {
        Self { expected: expected.into_iter().collect(), found: found.to_owned() }
    }
}

fn alternatives(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// Prints refused services, one on each line.
fn refusals(services: &[(ServiceName, String)]) -> String {
    let lines: Vec<_> = services.iter().map(|(name, reason)| format!("service {name}: {reason}")).collect();
    lines.join("\n")
}

/// Returns the advice to give when a capability is missing.
const fn advice(is_permission_denied: bool) -> &'static str {
    if is_permission_denied {
        "; this needs CAP_NET_ADMIN in the network namespace: run it as root, or with `setcap \
         cap_net_admin+ep`, or in a container with NET_ADMIN"
    } else {
        ""
    }
}

/// Returns the advice to give when a right to change iptables' rules is missing.
#[cfg(feature = "iptables")]
const fn iptables_advice(is_permission_denied: bool) -> &'static str {
    if is_permission_denied {
        "; this needs CAP_NET_ADMIN and CAP_NET_RAW in the network namespace, and with the legacy back end a \
            lock file that \
         this user may write (XTABLES_LOCKFILE)"
    } else {
        ""
    }
}
