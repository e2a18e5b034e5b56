//! Errors in the words of the command line: with the flag that a value came from.

use std::io;
use std::path::PathBuf;

use sluicegate_proxier::{config, output, run, serve, source};
use sluicegate_service_rules::{Error as RulesError, Loss, explain};
use sluicegate_services::Error as ServicesError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A flag is missing, or its value cannot be used.
    #[error("{flag}: {reason}")]
    Flag { flag: String, reason: String },
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("standard output: {0}")]
    Write(io::Error),
    #[error(transparent)]
    Output(#[from] output::Error),
    #[error("starting threads: {0}")]
    Runtime(io::Error),
    #[error("waiting for signals: {0}")]
    Signals(io::Error),
    #[error(transparent)]
    Source(source::Error),
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error(transparent)]
    Run(#[from] run::Error),
    #[error("the services are programmed, but deleting flows that are stale by now failed: {0}")]
    Flows(sluicegate_conntrack::Error),
    #[error(transparent)]
    Rules(RulesError),
    #[error(transparent)]
    Explain(explain::Error),
    /// The file of --config has changed, so that the daemon has to be started anew.
    #[error("{}: the configuration has changed", .0.display())]
    ConfigChanged(PathBuf),
    /// A sync would remove most of what there is.
    #[error(
        "{0}: nothing is changed; look at --manifests, or say --allow-empty to remove what is missing there"
    )]
    MostWouldGo(Loss),
}

impl Error {
    /// Names the flag that a value came from.
    #[allow(clippy::needless_pass_by_value, reason = "errors are made to be consumed")]
    pub(crate) fn flag(flag: impl Into<String>, reason: impl ToString) -> Self {
        Self::Flag { flag: flag.into(), reason: reason.to_string() }
    }
}

impl From<source::Error> for Error {
    fn from(error: source::Error) -> Self {
        match error {
            #[cfg(feature = "kube")]
            source::Error::Kubeconfig { path, reason } => {
                Self::flag(format!("--kubeconfig {}", path.display()), reason)
            }
            #[cfg(feature = "kube")]
            source::Error::NotInPod(reason) => {
                Self::flag("no --kubeconfig, and this does not run in a pod", reason)
            }
            #[cfg(feature = "kube")]
            error @ source::Error::Url { .. } => Self::flag("--master", error),
            error => Self::Source(error),
        }
    }
}

impl From<explain::Error> for Error {
    fn from(error: explain::Error) -> Self {
        match error {
            explain::Error::Families { .. } => Self::flag("--from", error),
            explain::Error::NoInterface => Self::flag("--interface", error),
            explain::Error::Services(error) => RulesError::from(error).into(),
            error => Self::Explain(error),
        }
    }
}

impl From<RulesError> for Error {
    fn from(error: RulesError) -> Self {
        match &error {
            RulesError::MasqueradeBit { .. } => Self::flag("--iptables-masquerade-bit", error),
            RulesError::Timeouts { .. } => Self::flag("--ipvs-*-timeout", error),
            RulesError::Services(ServicesError::NoPodCidrs { .. }) => Self::flag(
                "--node-pod-cidr (or a Node manifest with spec.podCIDRs)",
                "expected with --detect-local-mode NodeCIDR, found none",
            ),
            _ => Self::Rules(error),
        }
    }
}

impl From<serve::Error> for Error {
    fn from(error: serve::Error) -> Self {
        match &error {
            serve::Error::Listen { server, .. } if server == "/metrics" => {
                Self::flag("--metrics-bind-address", error)
            }
            _ => Self::flag("--healthz-bind-address", error),
        }
    }
}
