//! The error type of the crate.

use std::path::PathBuf;

/// Why a network could not be built, or services could not be programmed in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A namespace, a link or a server of the network cannot be created.
    #[error("{step}: {cause}")]
    Network {
        /// What was being done, to what.
        step: String,
        /// Why it failed.
        cause: String,
    },
    /// Manifests cannot be read.
    #[error(transparent)]
    Manifests(#[from] sluicegate_proxier::source::Error),
    /// Services cannot be planned or programmed.
    #[error(transparent)]
    Rules(#[from] sluicegate_service_rules::Error),
    /// The manifests lack a service or an address that a question is about.
    #[error("--manifests: {0}")]
    Missing(String),
    /// The program was built without a subcommand, and cargo cannot build it with.
    #[cfg(not(all(feature = "matrix", feature = "soak")))]
    #[error(
        "{subcommand} is built by `cargo run -p sluicegate-lab --features {subcommand} -- {subcommand}`{cause}"
    )]
    Rebuild {
        /// The subcommand.
        subcommand: &'static str,
        /// Why that was not done, after a colon.
        cause: String,
    },
    /// Standard output cannot be written.
    #[error(transparent)]
    Output(#[from] sluicegate_proxier::output::Error),
    /// The report cannot be written.
    #[error("--report: {}: {source}", path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn network(step: impl Into<String>, cause: impl std::fmt::Display) -> Self {
        Self::Network { step: step.into(), cause: cause.to_string() }
    }
}
