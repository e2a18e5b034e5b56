//! The words of rules that occur in more than one place, spelled as kube-proxy does.

use std::fmt::Write as _;
use std::net::IpAddr;

use super::{Feature, Support};
use crate::model::LocalDetector;

/// What the operator and the node decide, in the words of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) support: Support,
    pub(super) masquerade_all: bool,
    pub(super) detector: LocalDetector,
    /// Node ports are answered on loopback as well (IPv4).
    pub(super) localhost: bool,
    /// This node's primary address.
    pub(super) node_ip: Option<IpAddr>,
    /// Rules of endpoints bear no comments: there are very many of them.
    pub(super) large: bool,
}

impl Style {
    pub(super) fn has(&self, feature: Feature) -> bool {
        self.support.has(feature)
    }

    /// `-m comment --comment "..." `, quoted if there is a blank in it; nothing where comments are not to be had.
    pub(super) fn comment(&self, text: impl std::fmt::Display) -> String {
        let mut words = String::new();
        if self.has(Feature::Comment) {
            // Writing to a String does not fail.
            let _ = write!(words, "{text}");
            let quote = if words.contains(' ') { "\"" } else { "" };
            return format!("-m comment --comment {quote}{words}{quote} ");
        }
        words
    }

    /// The comment of a rule of an endpoint, of which large clusters have too many.
    pub(super) fn endpoint_comment(&self, text: impl std::fmt::Display) -> String {
        if self.large { String::new() } else { self.comment(text) }
    }

    /// What only traffic of pods matches, if that can be told.
    pub(super) fn local(&self) -> Option<String> {
        match &self.detector {
            LocalDetector::None => None,
            LocalDetector::Cidr(net) => Some(format!("-s {net}")),
            LocalDetector::Interface(name) => Some(format!("-i {name}")),
            LocalDetector::InterfacePrefix(prefix) => Some(format!("-i {prefix}+")),
        }
    }
}
