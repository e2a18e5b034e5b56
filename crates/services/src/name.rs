//! Names: of a service, of one of its ports, and the protocols.

use std::fmt;
use std::sync::Arc;

use crate::Error;

/// `namespace/name` of a Service, checked: both parts are DNS labels, so they fit into names and comments of
/// rules.
///
/// ```
/// use sluicegate_services::ServiceName;
///
/// assert_eq!(ServiceName::new("demo", "web")?.to_string(), "demo/web");
/// # Ok::<(), sluicegate_services::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ServiceName {
    text: Arc<str>,
    slash: u8,
}

impl ServiceName {
    /// Creates a name from its two parts.
    ///
    /// ```
    /// use sluicegate_services::ServiceName;
    ///
    /// let name = ServiceName::new("demo", "web")?;
    /// assert_eq!((name.namespace(), name.name(), name.to_string().as_str()), ("demo", "web", "demo/web"));
    /// assert!(ServiceName::new("demo", "web; drop").is_err());
    /// # Ok::<(), sluicegate_services::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ServiceName`] when one of them is not a DNS label (RFC 1123: at most 63 of `a-z`, `0-9` and
    /// `-`, the first and the last not `-`).
    pub fn new(namespace: &str, name: &str) -> Result<Self, Error> {
        match u8::try_from(namespace.len()) {
            Ok(slash) if is_label(namespace) && is_label(name) => {
                Ok(Self { text: format!("{namespace}/{name}").into(), slash })
            }
            _ => Err(Error::ServiceName { namespace: namespace.to_owned(), name: name.to_owned() }),
        }
    }

    /// Returns the part before the slash.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.text.split_at(self.slash.into()).0
    }

    /// Returns the part after the slash.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text.get(usize::from(self.slash) + 1..).unwrap_or_default()
    }

    /// Returns `namespace/name`.
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

/// The name of one port of a service, the key of all rules planned for it. Its text omits the protocol.
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
///
/// ```
/// use sluicegate_services::Protocol;
///
/// assert_eq!((Protocol::Udp.as_str(), Protocol::Udp.number()), ("udp", 17));
/// ```
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

    /// Returns the name in lower case, as in rules and chain names.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }

    /// Returns the number in an IP header (IANA protocol numbers).
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }

    /// Reads the API's spelling; an absent field means TCP.
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

/// Returns `true` if the text is a DNS label of RFC 1123.
pub(crate) fn is_label(text: &str) -> bool {
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
    fn a_part_that_is_not_a_label_is_refused() {
        let long = "a".repeat(64);
        for bad in ["", "-a", "a-", "A", "a/b", "a b", "a\"", "a\n", "ä", long.as_str()] {
            assert!(ServiceName::new("demo", bad).is_err(), "{bad:?}");
            assert!(ServiceName::new(bad, "web").is_err(), "{bad:?}");
        }
    }
}
