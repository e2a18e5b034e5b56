//! The one error type of the crate.

use std::path::PathBuf;

use crate::lab::LabError;
use crate::source::ManifestError;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The output cannot be written.
    #[error("standard output: {source}")]
    Write {
        /// What the system said.
        source: std::io::Error,
    },
    /// Documents that do not parse, all of them.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Manifests(Vec<ManifestError>),
    /// A flag is missing, or its value cannot be used.
    #[error("{flag}: {reason}")]
    Flag {
        /// Which.
        flag: String,
        /// Why.
        reason: String,
    },
    /// A throw-away network could not be made.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The kernel refused, or could not be talked to.
    #[error("{doing}: {source}{}", advice(source))]
    Kernel {
        /// What was being done.
        doing: &'static str,
        /// What it said.
        source: sluicegate_nftables::Error,
    },
    /// iptables could not be run, refused its input, or printed what cannot be read.
    #[error("{doing}: {source}")]
    Iptables {
        /// What was being done.
        doing: &'static str,
        /// What went wrong.
        source: Box<sluicegate_iptables_save::Error>,
    },
}

impl Error {
    /// True when a document of a manifest file does not parse.
    #[must_use]
    pub const fn is_manifest(&self) -> bool {
        matches!(self, Self::Manifests(_))
    }

    /// True when a flag is missing or has a bad value.
    #[must_use]
    pub const fn is_flag(&self) -> bool {
        matches!(self, Self::Flag { .. })
    }

    /// True when a capability is missing.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Kernel { source, .. } => source.is_permission_denied(),
            Self::Iptables { source, .. } => {
                source.cause() == Some(sluicegate_iptables_save::Cause::Permission)
            }
            _ => false,
        }
    }

    /// True when a tool that is to be run is not installed.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Iptables { source, .. } if source.is_not_found())
    }

    pub(crate) fn kernel(doing: &'static str, source: sluicegate_netlink::Error) -> Self {
        Self::nftables(doing, source.into())
    }

    pub(crate) fn nftables(doing: &'static str, source: sluicegate_nftables::Error) -> Self {
        Self::Kernel { doing, source }
    }
}

/// What to do about it, where that is known.
fn advice(error: &sluicegate_nftables::Error) -> &'static str {
    if error.is_permission_denied() {
        "; this needs CAP_NET_ADMIN in the network namespace: run it as root, or with `setcap cap_net_admin+ep`, or in a \
         container with NET_ADMIN"
    } else {
        ""
    }
}
