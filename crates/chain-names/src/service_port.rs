//! One port of one service, which chains are named after.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, What};
use crate::name::character;

/// One port of one service, identified as in kube-proxy by namespace, name, port name and protocol.
///
/// It borrows its texts and is `Copy`. It prints as in kube-proxy's comments: `ns/name:port`, or `ns/name`
/// when the port has no name.
///
/// ```
/// use sluicegate_chain_names::{Protocol, ServicePort};
///
/// let port = ServicePort::new("kube-system", "kube-dns", "dns", Protocol::Udp)?;
/// assert_eq!(port.to_string(), "kube-system/kube-dns:dns");
/// assert_eq!(port.iptables().service(), "KUBE-SVC-TCOU7JCQXEZGVUNU");
/// # Ok::<(), sluicegate_chain_names::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServicePort<'a> {
    namespace: &'a str,
    name: &'a str,
    port: &'a str,
    protocol: Protocol,
}

impl<'a> ServicePort<'a> {
    /// Checks the parts of a service port; `port` is empty for a port without a name.
    ///
    /// # Errors
    /// When the namespace or the name is empty, or a part has anything but ASCII letters, digits and `- . _`.
    /// That is more than Kubernetes allows (DNS labels), and keeps out the separators of the formulas, so
    /// that different service ports never have the same text before hashing.
    pub fn new(namespace: &'a str, name: &'a str, port: &'a str, protocol: Protocol) -> Result<Self, Error> {
        check(What::Namespace, namespace)?;
        check(What::ServiceName, name)?;
        if !port.is_empty() {
            check(What::PortName, port)?;
        }
        Ok(Self { namespace, name, port, protocol })
    }

    /// Returns the service's namespace.
    #[must_use]
    pub const fn namespace(&self) -> &'a str {
        self.namespace
    }

    /// Returns the service's name.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the port's name; empty when it has none.
    #[must_use]
    pub const fn port(&self) -> &'a str {
        self.port
    }

    /// Returns the protocol.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }
}

impl fmt::Display for ServicePort<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.port.is_empty() { "" } else { ":" };
        write!(f, "{}/{}{colon}{}", self.namespace, self.name, self.port)
    }
}

/// A protocol that a service can have.
///
/// ```
/// use sluicegate_chain_names::Protocol;
///
/// assert_eq!("TCP".parse(), Ok(Protocol::Tcp)); // as a Service writes it
/// assert_eq!(Protocol::Tcp.as_str(), "tcp"); // as rules and names do
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// Prints the protocol as in names and rules: in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }
}

impl FromStr for Protocol {
    type Err = Error;

    /// Reads `TCP` as Kubernetes writes it, and `tcp` as rules do.
    fn from_str(text: &str) -> Result<Self, Error> {
        [Self::Tcp, Self::Udp, Self::Sctp]
            .into_iter()
            .find(|protocol| text.eq_ignore_ascii_case(protocol.as_str()))
            .ok_or_else(|| Error::UnknownProtocol { text: text.to_owned() })
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

fn check(what: What, text: &str) -> Result<(), Error> {
    if text.is_empty() {
        return Err(Error::Empty { what });
    }
    // All bytes before the first refused one are ASCII, so that it begins a character.
    match text.bytes().position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'.' | b'_')) {
        Some(at) => Err(character(what, text, at, "letters, digits and `- . _`")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_without_name_is_printed_without_a_colon() {
        let port = ServicePort::new("demo", "empty", "", Protocol::Tcp).unwrap();
        assert_eq!(port.to_string(), "demo/empty");
    }

    #[test]
    fn protocols_are_read_in_either_case() {
        for text in ["tcp", "TCP", "Tcp"] {
            assert_eq!(text.parse::<Protocol>().unwrap(), Protocol::Tcp);
        }
        assert_eq!("SCTP".parse::<Protocol>().unwrap().to_string(), "sctp");
        assert_eq!(
            "icmp".parse::<Protocol>().unwrap_err().to_string(),
            "expected the protocol tcp, udp or sctp, found \"icmp\""
        );
        assert!("".parse::<Protocol>().is_err());
    }

    #[test]
    fn the_error_names_the_part_that_is_not_valid() {
        let error =
            |namespace, name, port| ServicePort::new(namespace, name, port, Protocol::Tcp).unwrap_err();
        assert_eq!(error("", "b", "").to_string(), "namespace: expected at least one character, found none");
        assert_eq!(
            error("a", "", "").to_string(),
            "service name: expected at least one character, found none"
        );
        assert_eq!(
            error("a", "b", "p\0").to_string(),
            "port name: expected letters, digits and `- . _`, found '\\0' at byte 1 of \"p\\0\""
        );
        for bad in ["a/b", "a:b", "a b", "a\n", "\u{e9}", "a\u{7f}", "\"", "$(x)", "{", ";"] {
            assert!(error(bad, "b", "").is_invalid_character(), "{bad:?}");
            assert!(error("a", bad, "").is_invalid_character(), "{bad:?}");
            assert!(error("a", "b", bad).is_invalid_character(), "{bad:?}");
        }
    }
}
