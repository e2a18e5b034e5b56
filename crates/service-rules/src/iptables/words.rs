//! Parts of rule specifications that several rules have, in kube-proxy's spelling.

use std::fmt::Write as _;
use std::net::IpAddr;

use sluicegate_services::{Cluster, Family, LocalDetector};

use super::{Feature, Settings, Support};

/// The settings and properties of the node, as parts of rule specifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) support: Support,
    pub(super) masquerade_all: bool,
    pub(super) detector: LocalDetector,
    /// Whether the loopback address answers node ports as well (IPv4).
    pub(super) localhost: bool,
    /// This node's primary address.
    pub(super) node_ip: Option<IpAddr>,
    /// Whether rules of endpoints have no comments, because there are very many of them.
    pub(super) large: bool,
}

impl Style {
    pub(super) fn has(&self, feature: Feature) -> bool {
        self.support.has(feature)
    }

    /// Returns whether node ports are answered on loopback. Without connection tracking there is no rule that
    /// keeps others on the link from what listens there, so they are not.
    pub(super) fn answers_localhost(&self, settings: &Settings, family: Family, cluster: &Cluster) -> bool {
        self.has(Feature::Conntrack) && settings.answers_localhost(family, cluster)
    }

    /// Returns `-m comment --comment "..." `, quoted if the text has a blank; an empty string if comments are
    /// not supported.
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

    /// Returns the comment of an endpoint's rule; an empty string in a large cluster.
    pub(super) fn endpoint_comment(&self, text: impl std::fmt::Display) -> String {
        if self.large { String::new() } else { self.comment(text) }
    }

    /// Returns the match for traffic from pods, if there is a local detector.
    pub(super) fn local(&self) -> Option<String> {
        match &self.detector {
            LocalDetector::None => None,
            LocalDetector::Cidr(net) => Some(format!("-s {net}")),
            LocalDetector::Interface(name) => Some(format!("-i {name}")),
            LocalDetector::InterfacePrefix(prefix) => Some(format!("-i {prefix}+")),
        }
    }
}
