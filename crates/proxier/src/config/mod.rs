//! The configuration file: kube-proxy's `KubeProxyConfiguration` (`kubeproxy.config.k8s.io/v1alpha1`), YAML
//! or JSON.
//!
//! A field that kube-proxy does not have, as a newer version may, and one that comes twice do not keep a node
//! from its rules, as in kube-proxy, which reads leniently where reading strictly fails: they are in
//! [`Config::doubtful`] with their lines. A value that a field cannot have is an error. A field that
//! kube-proxy has and this proxier ignores is in [`Config::unused`] when it has a value, with the reason, so
//! that nobody relies on it in vain. Flags override the file: that is done by the command line.

mod detect_local;
mod duration;
mod error;
mod fields;
mod gates;
mod no_effect;

use std::fmt;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use sluicegate_services::NodePortAddresses;

use crate::Mode;
use crate::sysctl::Conntrack;
use crate::yaml::{self, Fault};

pub use detect_local::{DetectLocalMode, DetectLocalModeError};
pub use duration::{DurationError, format_duration, parse_duration};
pub use error::Error;
pub use gates::{FeatureGates, Gate, GateError};
pub use no_effect::why_no_effect;

/// The values of a configuration file. A field that is missing, or has the value that kube-proxy writes for a
/// missing one (`""`, `null`, `0s`), is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// `mode`: `iptables`, `ipvs` or `nftables`.
    pub mode: Option<Mode>,
    /// `hostnameOverride`.
    pub hostname_override: Option<String>,
    /// `bindAddress`.
    pub bind_address: Option<IpAddr>,
    /// `bindAddressHardFail`.
    pub bind_address_hard_fail: Option<bool>,
    /// `clusterCIDR`.
    pub cluster_cidrs: Option<Vec<IpNet>>,
    /// `detectLocalMode`.
    pub detect_local_mode: Option<DetectLocalMode>,
    /// `detectLocal.bridgeInterface`.
    pub bridge_interface: Option<String>,
    /// `detectLocal.interfaceNamePrefix`.
    pub interface_name_prefix: Option<String>,
    /// `nodePortAddresses`.
    pub node_port_addresses: Option<NodePortAddresses>,
    /// `healthzBindAddress`.
    pub healthz_bind_address: Option<String>,
    /// `metricsBindAddress`.
    pub metrics_bind_address: Option<String>,
    /// `clientConnection.kubeconfig`.
    pub kubeconfig: Option<PathBuf>,
    /// `iptables`.
    pub iptables: Rules,
    /// `iptables.localhostNodePorts`.
    pub localhost_node_ports: Option<bool>,
    /// `nftables`.
    pub nftables: Rules,
    /// `ipvs`, which has no fields `masqueradeAll` and `masqueradeBit`.
    pub ipvs: Rules,
    /// `ipvs.scheduler`.
    pub ipvs_scheduler: Option<String>,
    /// `ipvs.excludeCIDRs`.
    pub ipvs_exclude_cidrs: Option<Vec<IpNet>>,
    /// `ipvs.strictARP`.
    pub ipvs_strict_arp: Option<bool>,
    /// `ipvs.tcpTimeout`.
    pub ipvs_tcp_timeout: Option<Duration>,
    /// `ipvs.tcpFinTimeout`.
    pub ipvs_tcp_fin_timeout: Option<Duration>,
    /// `ipvs.udpTimeout`.
    pub ipvs_udp_timeout: Option<Duration>,
    /// `logging.verbosity`.
    pub verbosity: Option<u32>,
    /// `logging.format`.
    pub log_format: Option<String>,
    /// `oomScoreAdj`.
    pub oom_score_adj: Option<i32>,
    /// `conntrack`. Zero leaves a sysctl as it is.
    pub conntrack: Conntrack,
    /// `featureGates`.
    pub feature_gates: FeatureGates,
    /// The fields that have a value and are ignored.
    pub unused: Vec<Note>,
    /// The fields that kube-proxy does not have, and those that come twice, of which the last one counts.
    pub doubtful: Vec<Note>,
}

/// The fields that the sections of all modes have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// `masqueradeAll`.
    pub masquerade_all: Option<bool>,
    /// `masqueradeBit`.
    pub masquerade_bit: Option<u8>,
    /// `syncPeriod`.
    pub sync_period: Option<Duration>,
    /// `minSyncPeriod`. Zero, which kubeadm writes, means the default.
    pub min_sync_period: Option<Duration>,
}

/// A remark on a place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, where it is known.
    pub column: Option<usize>,
    /// The field, as a path: `iptables.masqueradeBit`. Empty for the file as a whole.
    pub field: String,
    /// The remark.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        match self.field.as_str() {
            "" => write!(f, ": {}", self.text),
            field => write!(f, ": {field}: {}", self.text),
        }
    }
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Read`] when the file cannot be read, [`Error::Invalid`] with every problem in it.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bytes = fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        match yaml::decode(bytes) {
            Ok(text) => Self::parse(path, &text),
            Err(fault) => Err(Error::Invalid { path: path.to_owned(), problems: vec![fault.into()] }),
        }
    }

    /// Parses the text of a file. `path` is the name of the file in messages.
    ///
    /// ```
    /// use std::path::Path;
    /// use sluicegate_proxier::config::Config;
    ///
    /// let text = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\nclustrCIDR: 10.0.0.0/8\n";
    /// let config = Config::parse(Path::new("config.conf"), text)?;
    /// assert_eq!(
    ///     config.doubtful[0].to_string(),
    ///     "line 4, column 1: clustrCIDR: kube-proxy has no such field; it is ignored"
    /// );
    /// # Ok::<(), sluicegate_proxier::config::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] with every problem.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let invalid = |problems| Error::Invalid { path: path.to_owned(), problems };
        let (line, text, another) = first_document(text);
        match yaml::parse_leniently(text, line) {
            Ok((Some(root), doubled)) => {
                let mut config = fields::read(&root).map_err(invalid)?;
                config.doubtful.extend(another.map(|line| Note {
                    line,
                    column: None,
                    field: String::new(),
                    text: "another document begins; the first one counts alone, as in kube-proxy".to_owned(),
                }));
                config.doubtful.extend(doubled.into_iter().map(|fault| {
                    let mut note = Note::from(fault);
                    note.text += "; the last one counts";
                    note
                }));
                Ok(config)
            }
            Ok((None, _)) => Err(invalid(vec![Note::of_file("the file is empty")])),
            Err(fault) => Err(invalid(vec![fault.into()])),
        }
    }
}

/// Returns the first document that says something, with its first line, and the line of the marker before
/// another one.
fn first_document(text: &str) -> (usize, &str, Option<usize>) {
    let says_something = |text: &str| {
        text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with(['#', '%']))
    };
    let (mut first, mut start, mut offset) = (1, 0, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let is_marker = line.strip_prefix("---").is_some_and(|rest| {
            rest.trim().is_empty() || rest.starts_with([' ', '\t']) && rest.trim_start().starts_with('#')
        });
        if is_marker && says_something(text.get(start..offset).unwrap_or_default()) {
            let is_another = text.get(offset + line.len()..).is_some_and(says_something);
            return (first, text.get(start..offset).unwrap_or_default(), is_another.then_some(number + 1));
        }
        offset += line.len();
        if is_marker {
            (first, start) = (number + 2, offset);
        }
    }
    (first, text.get(start..).unwrap_or_default(), None)
}

impl Note {
    fn of_file(text: &str) -> Self {
        Self { line: 1, column: None, field: String::new(), text: text.to_owned() }
    }
}

impl From<Fault> for Note {
    fn from(Fault { line, column, reason }: Fault) -> Self {
        Self { line, column, field: String::new(), text: reason }
    }
}

#[cfg(test)]
mod tests;
