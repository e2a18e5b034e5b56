//! Why objects cannot be read.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Origin;
use crate::Visible;
use crate::yaml::Fault;

/// Why a source gives no objects.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory cannot be read.
    #[error("{}: {source}", Visible(&path.display().to_string()))]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Documents do not parse.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Manifests(
        /// Every document that does not parse, in order.
        Vec<ManifestError>,
    ),
    /// A kubeconfig file cannot be used.
    #[cfg(feature = "kube")]
    #[error("kubeconfig {}: {reason}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },
    /// There is no kubeconfig file, and the process does not run in a pod, where Kubernetes says how to reach
    /// the API server.
    #[cfg(feature = "kube")]
    #[error("no kubeconfig is given, and this process does not run in a pod: {0}")]
    NotInPod(
        /// What is missing.
        String,
    ),
    /// The URL of the API server is not valid.
    #[cfg(feature = "kube")]
    #[error("expected the URL of an API server (https://10.0.0.1:6443), found {url:?}: {reason}")]
    Url {
        /// What was found.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The kubeconfig file asks for a proxy in front of the API server.
    #[cfg(feature = "kube")]
    #[error("proxy-url {0}: an API server behind a proxy is not supported")]
    Proxy(
        /// The URL of the proxy.
        String,
    ),
}

impl Error {
    /// Returns true when a document of a manifest file does not parse.
    #[must_use]
    pub const fn is_manifest(&self) -> bool {
        matches!(self, Self::Manifests(_))
    }
}

/// A document that does not parse, or an object whose fields have the wrong types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The document, and the line of the offending text.
    pub origin: Origin,
    /// The column, from 1, where it is known.
    pub column: Option<usize>,
    /// What is wrong, after the path of the field where there is one.
    pub reason: String,
}

impl ManifestError {
    pub(super) fn new(file: Arc<Path>, document: usize, fault: Fault) -> Self {
        let Fault { line, column, reason } = fault;
        Self { origin: Origin { file, document, line }, column, reason }
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        write!(f, ": {}", Visible(&self.reason).clipped())
    }
}
