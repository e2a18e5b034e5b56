//! Names: of a service, of one of its ports, and the protocols.

use std::fmt;
use std::sync::Arc;

/// `namespace/name` of a Service, checked: both parts are DNS labels, so they fit into names and comments of rules.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ServiceName {
    text: Arc<str>,
    slash: u8,
}

impl ServiceName {
    /// A name from its two parts; `None` when one of them is not a DNS label (RFC 1123: at most 63 of `a-z`, `0-9`,
    /// `-`, the first and last of them no `-`).
    ///
    /// ```
    /// use sluicegate_proxier::model::ServiceName;
    ///
    /// let name = ServiceName::new("demo", "web").unwrap();
    /// assert_eq!((name.namespace(), name.name(), name.to_string().as_str()), ("demo", "web", "demo/web"));
    /// assert_eq!(ServiceName::new("demo", "web; drop"), None);
    /// ```
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Option<Self> {
        let slash = u8::try_from(namespace.len()).ok()?;
        (is_label(namespace) && is_label(name))
            .then(|| Self { text: format!("{namespace}/{name}").into(), slash })
    }

    /// The part before the slash.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.text.split_at(self.slash.into()).0
    }

    /// The part after the slash.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text.get(usize::from(self.slash) + 1..).unwrap_or_default()
    }

    /// `namespace/name`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl Ord for ServiceName {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.namespace(), self.name()).cmp(&(other.namespace(), other.name()))
    }
}

impl PartialOrd for ServiceName {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// What names one port of a service: the key of everything planned for it. The text leaves the protocol out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortName {
    /// The service.
    pub service: ServiceName,
    /// The name of the port; empty for the only port of a service that does not name it.
    pub port: Arc<str>,
    /// The protocol.
    pub protocol: Protocol,
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.port {
            "" => write!(f, "{}", self.service),
            port => write!(f, "{}:{port}", self.service),
        }
    }
}

/// The transport protocols that a Service port may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Sctp];

    /// The name in lower case, as in rules and chain names.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }

    /// The number in an IP header (IANA protocol numbers).
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }

    /// From the API's spelling; a field that is absent means TCP.
    #[must_use]
    pub fn from_api(text: Option<&str>) -> Option<Self> {
        match text {
            None | Some("TCP") => Some(Self::Tcp),
            Some("UDP") => Some(Self::Udp),
            Some("SCTP") => Some(Self::Sctp),
            Some(_) => None,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// True for a DNS label of RFC 1123.
pub(super) fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_by_namespace_then_name() {
        // As plain text `a-b/x` would come before `a/x`.
        let a = ServiceName::new("a", "x").unwrap();
        let b = ServiceName::new("a-b", "x").unwrap();
        assert!(a < b);
    }

    #[test]
    fn what_is_not_a_label_is_no_name() {
        let long = "a".repeat(64);
        for bad in ["", "-a", "a-", "A", "a/b", "a b", "a\"", "a\n", "ä", long.as_str()] {
            assert_eq!(ServiceName::new("demo", bad), None, "{bad:?}");
            assert_eq!(ServiceName::new(bad, "web"), None, "{bad:?}");
        }
    }
}
