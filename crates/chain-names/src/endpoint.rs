//! The endpoint of a service port: an address and a port.

use std::cmp::Ordering;
use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::str::FromStr;

use crate::error::Error;
use crate::name::Text;

/// An address and a port, written `10.0.0.1:80` or `[fd00::1]:80`.
///
/// kube-proxy's formulas hash this text, so the spelling counts. An endpoint that is read from text keeps
/// that spelling. One that is made from an address has the canonical one of RFC 5952, an IPv4 address in IPv6
/// clothes (`::ffff:10.0.0.1`) being the IPv4 address: that is how kube-proxy itself writes the addresses it
/// takes from `EndpointSlice`s. [`canonical`](Self::canonical) leads from the one to the other.
///
/// ```
/// use sluicegate_chain_names::Endpoint;
///
/// let endpoint: Endpoint = "[FD00:0::1]:80".parse()?;
/// assert_eq!(endpoint.to_string(), "[FD00:0::1]:80");
/// assert_eq!(endpoint.canonical().to_string(), "[fd00::1]:80");
/// assert!("10.0.0.1".parse::<Endpoint>().is_err());
/// # Ok::<(), sluicegate_chain_names::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Endpoint {
    text: Text<MOST>,
    ip: IpAddr,
    port: NonZero<u16>,
}

impl Endpoint {
    /// Returns an endpoint in its canonical spelling; 1 to 65535 is a port.
    #[must_use]
    pub fn new(ip: IpAddr, port: NonZero<u16>) -> Self {
        let ip = ip.to_canonical();
        let mut text = Text::new();
        write!(text, "{}", SocketAddr::new(ip, port.get())).expect("no address and port are longer");
        Self { text, ip, port }
    }

    /// Returns the same endpoint in its canonical spelling.
    #[must_use]
    pub fn canonical(&self) -> Self {
        Self::new(self.ip, self.port)
    }

    /// Returns the address.
    #[must_use]
    pub const fn ip(&self) -> IpAddr {
        self.ip
    }

    /// Returns the port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port.get()
    }

    /// Returns the text: `address:port` or `[address]:port`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.text.as_str()
    }

    /// Returns `address/port` with `.` for every `:`, which an nftables name cannot have.
    pub(crate) fn nftables_text(&self) -> Text<MOST> {
        let address = self.as_str().rsplit_once(':').map_or("", |(address, _)| address);
        let mut text = Text::new();
        for (i, group) in address.trim_matches(['[', ']']).split(':').enumerate() {
            let dot = if i == 0 { "" } else { "." };
            write!(text, "{dot}{group}").expect("as long as before");
        }
        write!(text, "/{}", self.port).expect("as long as before");
        text
    }
}

// Endpoints are equal if their spelling is, as names depend on it.
impl PartialEq for Endpoint {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Endpoint {}

impl PartialOrd for Endpoint {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Endpoint {
    /// Compares as text, as kube-proxy does: `10.0.0.10:80` comes before `10.0.0.9:80`.
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Endpoint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({:?})", self.as_str())
    }
}

impl TryFrom<SocketAddr> for Endpoint {
    type Error = Error;

    /// Refuses port 0 and a scope ID: every node must be able to reach an endpoint.
    fn try_from(address: SocketAddr) -> Result<Self, Error> {
        let refused = |expected| Err(Error::Endpoint { text: address.to_string(), expected });
        if matches!(address, SocketAddr::V6(v6) if v6.scope_id() != 0) {
            return refused(SCOPED);
        }
        match NonZero::new(address.port()) {
            Some(port) => Ok(Self::new(address.ip(), port)),
            None => refused("a port from 1 to 65535"),
        }
    }
}

impl FromStr for Endpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = |expected| Error::Endpoint { text: text.to_owned(), expected };
        if text.contains('%') {
            return Err(refused(SCOPED));
        }
        let address: SocketAddr = text.parse().map_err(|_| refused(expected(text)))?;
        let port = NonZero::new(address.port()).ok_or_else(|| refused("a port from 1 to 65535"))?;
        if text.rsplit_once(':').is_some_and(|(_, digits)| digits.starts_with('0')) {
            return Err(refused("a port without a leading zero"));
        }
        let mut kept = Text::new();
        if !kept.push(text) {
            return Err(refused("an address and a port of at most 53 bytes"));
        }
        Ok(Self { text: kept, ip: address.ip(), port })
    }
}

/// Returns what was expected in the place of text that is not an address and a port.
fn expected(text: &str) -> &'static str {
    let is_address = text.parse::<IpAddr>().is_ok();
    if !is_address && !text.starts_with('[') && text.matches(':').count() > 1 {
        "an IPv6 address in brackets ([address]:port)"
    } else {
        "an address and a port (address:port or [address]:port)"
    }
}

const SCOPED: &str = "an address without a scope (`%`), which means something on one node only";

/// `[`, 45 bytes of an IPv6 address that ends in an IPv4 one, `]:`, and 5 of port.
const MOST: usize = 53;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_endpoints_fit() {
        let endpoint: Endpoint = "[2001:db81:1111:2222:3333:4444:5555:6666]:65535".parse().unwrap();
        assert_eq!(endpoint.nftables_text().as_str(), "2001.db81.1111.2222.3333.4444.5555.6666/65535");
        let text = "[0000:0000:0000:0000:0000:ffff:255.255.255.255]:65535";
        assert_eq!(text.len(), MOST);
        let endpoint: Endpoint = text.parse().unwrap();
        assert_eq!(endpoint.nftables_text().as_str(), "0000.0000.0000.0000.0000.ffff.255.255.255.255/65535");
        assert_eq!(endpoint.canonical().as_str(), "255.255.255.255:65535");
    }

    #[test]
    fn text_keeps_its_spelling_and_an_address_has_one() {
        for (text, canonical) in [
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("[::ffff:10.0.0.1]:80", "10.0.0.1:80"),
            ("[2001:DB8:0:0:0:0:0:1]:443", "[2001:db8::1]:443"),
            ("[fd80:abcd:12::a1b2:c3d4:e5f6:9999]:80", "[fd80:abcd:12:0:a1b2:c3d4:e5f6:9999]:80"),
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.as_str(), text);
            assert_eq!(endpoint.canonical().as_str(), canonical);
        }
    }

    #[test]
    fn endpoints_are_sorted_as_text() {
        let mut endpoints: Vec<Endpoint> =
            ["10.0.0.9:80", "10.0.0.10:80"].iter().map(|e| e.parse().unwrap()).collect();
        endpoints.sort();
        assert_eq!(endpoints[0].as_str(), "10.0.0.10:80");
    }

    #[test]
    fn text_that_is_not_an_endpoint_is_refused_with_a_reason() {
        for (text, expected) in [
            ("", "an address and a port (address:port or [address]:port)"),
            ("10.0.0.1", "an address and a port (address:port or [address]:port)"),
            ("fd00::1", "an address and a port (address:port or [address]:port)"),
            ("fd00::1:99999", "an IPv6 address in brackets ([address]:port)"),
            ("10.0.0.1:0", "a port from 1 to 65535"),
            ("10.0.0.1:080", "a port without a leading zero"),
            ("10.0.0.1:65536", "an address and a port (address:port or [address]:port)"),
            ("10.0.0.1:http", "an address and a port (address:port or [address]:port)"),
            ("10.0.0.256:80", "an address and a port (address:port or [address]:port)"),
            ("web:80", "an address and a port (address:port or [address]:port)"),
            (" 10.0.0.1:80", "an address and a port (address:port or [address]:port)"),
            ("10.0.0.1:80\n", "an address and a port (address:port or [address]:port)"),
            ("[fe80::1%eth0]:80", SCOPED),
            ("[fe80::1%3]:80", SCOPED),
        ] {
            let error = text.parse::<Endpoint>().unwrap_err();
            assert_eq!(error.to_string(), format!("expected {expected}, found {text:?}"));
        }
    }

    #[test]
    fn a_socket_address_without_port_or_with_scope_is_refused() {
        use std::net::{Ipv6Addr, SocketAddrV6};
        assert!(Endpoint::try_from(SocketAddr::from(([10, 0, 0, 1], 0))).is_err());
        assert!(
            Endpoint::try_from(SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::LOCALHOST, 80, 0, 3))).is_err()
        );
        assert_eq!(
            Endpoint::try_from(SocketAddr::from(([10, 0, 0, 1], 80))).unwrap().to_string(),
            "10.0.0.1:80"
        );
    }
}
