//! The one error type of the crate.

use std::path::PathBuf;

use crate::lab::LabError;
use crate::model::ServiceName;
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
    /// A configuration file cannot be used: every reason, with its line.
    #[error("{}", problems.iter().map(|problem| format!("{}: {problem}", path.display())).collect::<Vec<_>>().join("\n"))]
    Config {
        /// Which.
        path: PathBuf,
        /// Each with its line and field.
        problems: Vec<crate::config::Note>,
    },
    /// A flag is missing, or its value cannot be used.
    #[error("{flag}: {reason}")]
    Flag {
        /// Which.
        flag: String,
        /// Why.
        reason: String,
    },
    /// The configuration of the Kubernetes API source cannot be used.
    #[error("{what}: {reason}")]
    Api {
        /// Which part of it.
        what: String,
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
    /// The kernel refused what belongs to these services, each with its reason, and so the change as a whole. Without them it can be
    /// applied.
    #[error("programming the services: {}", services.iter().map(|(name, why)| format!("service {name}: {why}")).collect::<Vec<_>>().join("\n"))]
    Refused {
        /// Each with what the kernel said, in the order of names.
        services: Vec<(ServiceName, String)>,
    },
    /// Another proxier runs in this network namespace.
    #[error(
        "{holder} is a proxier of this network namespace already, and two would undo each other's work; stop that one first"
    )]
    Locked {
        /// Who has the lock.
        holder: String,
    },
    /// The source of objects has ended, so that nothing new would ever be heard of.
    #[error("the source of Services and EndpointSlices has ended")]
    SourceEnded,
    /// iptables could not be run, refused its input, or printed what cannot be read.
    #[error("{doing}: {source}")]
    Iptables {
        /// What was being done.
        doing: &'static str,
        /// What went wrong.
        source: Box<sluicegate_iptables_save::Error>,
    },
    /// A set could not be listed or changed.
    #[error("{doing}: {source}")]
    Ipset {
        /// What was being done.
        doing: &'static str,
        /// What went wrong.
        source: Box<sluicegate_ipset::Error>,
    },
    /// A virtual server could not be listed or changed.
    #[error("{doing}: {source}")]
    Ipvs {
        /// What was being done.
        doing: &'static str,
        /// What went wrong.
        source: Box<sluicegate_ipvs::Error>,
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
            Self::Ipset { source, .. } => source.is_permission_denied(),
            Self::Ipvs { source, .. } => source.is_permission_denied(),
            _ => false,
        }
    }

    /// True when a tool that is to be run is not installed.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Iptables { source, .. } if source.is_not_found())
    }

    /// True when another proxier runs in this network namespace.
    #[must_use]
    pub const fn is_locked(&self) -> bool {
        matches!(self, Self::Locked { .. })
    }

    /// The services that the kernel refuses, each with its reason; none for errors of another kind.
    #[must_use]
    pub fn refused(&self) -> &[(ServiceName, String)] {
        match self {
            Self::Refused { services } => services,
            _ => &[],
        }
    }

    /// True when the kernel has no IPVS, no ipset, or none of what else was asked for.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        match self {
            Self::Ipvs { source, .. } => source.is_absent(),
            Self::Ipset { source, .. } => source.is_unsupported(),
            Self::Kernel { source: sluicegate_nftables::Error::Netlink(source), .. } => {
                source.is_unsupported()
            }
            _ => false,
        }
    }

    /// Two errors of one sync in one: services that are refused are named together, and before anything else, as the rest can be told
    /// again without them.
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

    /// The kernel took the change for wrong, whoever's part of it that was: it was asked, it was able, and it said no.
    pub(crate) fn is_refusal(&self) -> bool {
        use sluicegate_iptables_save::Cause;
        match self {
            Self::Kernel { source, .. } => !source.failures().is_empty() && !source.is_permission_denied(),
            Self::Iptables { source, .. } => {
                !matches!(source.cause(), None | Some(Cause::Permission | Cause::Locked))
            }
            Self::Refused { .. } => true,
            _ => false,
        }
    }

    pub(crate) fn kernel(doing: &'static str, source: sluicegate_netlink::Error) -> Self {
        Self::nftables(doing, source.into())
    }

    pub(crate) fn ipset(doing: &'static str, source: sluicegate_ipset::Error) -> Self {
        Self::Ipset { doing, source: Box::new(source) }
    }

    pub(crate) fn ipvs(doing: &'static str, source: sluicegate_ipvs::Error) -> Self {
        Self::Ipvs { doing, source: Box::new(source) }
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
