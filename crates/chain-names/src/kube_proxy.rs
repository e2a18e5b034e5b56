//! The names that kube-proxy gives to the chains and sets of a service port and of its endpoints.

use std::fmt;

use crate::endpoint::Endpoint;
use crate::hashing::{HashText, Hashing};
use crate::name::{Name, NftName, Text, XtName};
use crate::scheme::Scheme;
use crate::schemes::kube_proxy as scheme;
use crate::service_port::ServicePort;

impl ServicePort<'_> {
    /// Returns the names of its chains in iptables mode, which share one hash.
    #[must_use]
    pub fn iptables(&self) -> IptablesNames {
        IptablesNames { hash: hash(scheme::SVC.hashing(), &self.iptables_pieces("")) }
    }

    /// Returns the name of the chain of one of its endpoints in iptables mode, `KUBE-SEP-...`.
    #[must_use]
    pub fn iptables_endpoint(&self, endpoint: &Endpoint) -> XtName {
        let hash = hash(scheme::SEP.hashing(), &self.iptables_pieces(endpoint.as_str()));
        join(scheme::SEP.prefix(), hash.as_str())
    }

    /// Returns the names of its chains in nftables mode, which differ in their prefix only.
    #[must_use]
    pub fn nftables(&self) -> NftablesNames {
        NftablesNames { base: nftables_base(&self.nftables_pieces("", "")) }
    }

    /// Returns the names of the chain and the affinity set of one of its endpoints in nftables mode.
    #[must_use]
    pub fn nftables_endpoint(&self, endpoint: &Endpoint) -> NftablesEndpointNames {
        let text = endpoint.nftables_text();
        NftablesEndpointNames { base: nftables_base(&self.nftables_pieces("__", text.as_str())) }
    }

    /// Returns `ns/name:porttcp10.0.0.1:80`, without separators before the protocol and the endpoint.
    fn iptables_pieces<'b>(&'b self, endpoint: &'b str) -> [&'b str; 7] {
        let colon = if self.port().is_empty() { "" } else { ":" };
        [self.namespace(), "/", self.name(), colon, self.port(), self.protocol().as_str(), endpoint]
    }

    /// `ns/name/tcp/port__10.0.0.1/80`.
    fn nftables_pieces<'b>(&'b self, separator: &'b str, endpoint: &'b str) -> [&'b str; 9] {
        let protocol = self.protocol().as_str();
        [self.namespace(), "/", self.name(), "/", protocol, "/", self.port(), separator, endpoint]
    }
}

/// The names of the iptables chains of one service port: a prefix for each chain, and 16 characters of hash.
///
/// ```
/// use sluicegate_chain_names::{Protocol, ServicePort};
///
/// let names = ServicePort::new("demo", "dns", "dns", Protocol::Udp)?.iptables();
/// assert_eq!(names.service(), "KUBE-SVC-IXHL676EY46F5RLS");
/// assert_eq!(names.local(), "KUBE-SVL-IXHL676EY46F5RLS");
/// # Ok::<(), sluicegate_chain_names::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct IptablesNames {
    hash: HashText,
}

impl IptablesNames {
    /// Returns the chain for all endpoints: `KUBE-SVC-...`.
    #[must_use]
    pub fn service(&self) -> XtName {
        self.name(scheme::SVC)
    }

    /// Returns the chain for the endpoints on this node: `KUBE-SVL-...`.
    #[must_use]
    pub fn local(&self) -> XtName {
        self.name(scheme::SVL)
    }

    /// Returns the chain for traffic to load-balancer and external addresses and node ports: `KUBE-EXT-...`.
    #[must_use]
    pub fn external(&self) -> XtName {
        self.name(scheme::EXT)
    }

    /// Returns the chain for load-balancer source ranges: `KUBE-FW-...`.
    #[must_use]
    pub fn firewall(&self) -> XtName {
        self.name(scheme::FW)
    }

    fn name(&self, scheme: Scheme<'static, XtName>) -> XtName {
        join(scheme.prefix(), self.hash.as_str())
    }
}

impl fmt::Debug for IptablesNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IptablesNames({:?})", self.hash.as_str())
    }
}

/// The names of the nftables chains of one service port: different prefixes before
/// `AXK6CI2C-demo/web/tcp/http`.
///
/// ```
/// use sluicegate_chain_names::{Protocol, ServicePort};
///
/// let names = ServicePort::new("demo", "dns", "dns", Protocol::Udp)?.nftables();
/// assert_eq!(names.service(), "service-34HOXUJH-demo/dns/udp/dns");
/// assert_eq!(names.firewall(), "firewall-34HOXUJH-demo/dns/udp/dns");
/// # Ok::<(), sluicegate_chain_names::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct NftablesNames {
    base: Text<{ scheme::NFT_BASE }>,
}

impl NftablesNames {
    /// Returns the chain for all endpoints: `service-...`.
    #[must_use]
    pub fn service(&self) -> NftName {
        self.name(scheme::NFT_SERVICE)
    }

    /// Returns the chain for the endpoints on this node: `local-...`.
    #[must_use]
    pub fn local(&self) -> NftName {
        self.name(scheme::NFT_LOCAL)
    }

    /// Returns the chain for traffic to load-balancer and external addresses and node ports: `external-...`.
    #[must_use]
    pub fn external(&self) -> NftName {
        self.name(scheme::NFT_EXTERNAL)
    }

    /// Returns the chain for load-balancer source ranges: `firewall-...`.
    #[must_use]
    pub fn firewall(&self) -> NftName {
        self.name(scheme::NFT_FIREWALL)
    }

    fn name(&self, scheme: Scheme<'static, NftName>) -> NftName {
        join(scheme.prefix(), self.base.as_str())
    }
}

impl fmt::Debug for NftablesNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NftablesNames({:?})", self.base.as_str())
    }
}

/// The names of the nftables chain and set of one endpoint, which exist only if a service has session
/// affinity.
///
/// ```
/// use sluicegate_chain_names::{Protocol, ServicePort};
///
/// let port = ServicePort::new("demo", "dns", "dns", Protocol::Udp)?;
/// let names = port.nftables_endpoint(&"10.244.0.20:53".parse()?);
/// assert_eq!(names.chain(), "endpoint-PAAF6AAY-demo/dns/udp/dns__10.244.0.20/53");
/// # Ok::<(), sluicegate_chain_names::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct NftablesEndpointNames {
    base: Text<{ scheme::NFT_BASE }>,
}

impl NftablesEndpointNames {
    /// Returns the chain: `endpoint-...`.
    #[must_use]
    pub fn chain(&self) -> NftName {
        join(scheme::NFT_ENDPOINT.prefix(), self.base.as_str())
    }

    /// Returns the set of the clients that are bound to it: `affinity-...`.
    #[must_use]
    pub fn affinity(&self) -> NftName {
        join(scheme::NFT_AFFINITY.prefix(), self.base.as_str())
    }
}

impl fmt::Debug for NftablesEndpointNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NftablesEndpointNames({:?})", self.base.as_str())
    }
}

/// Returns true for an iptables chain that kube-proxy creates for a service or an endpoint, and deletes with
/// it, but not for its fixed chains (`KUBE-SERVICES`, ...).
///
/// ```
/// use sluicegate_chain_names::is_iptables_chain;
///
/// assert!(is_iptables_chain("KUBE-SVC-IXHL676EY46F5RLS"));
/// assert!(!is_iptables_chain("INPUT"));
/// ```
#[must_use]
pub fn is_iptables_chain(name: &str) -> bool {
    [scheme::SVC, scheme::SVL, scheme::SEP, scheme::FW, scheme::EXT]
        .iter()
        .any(|scheme| name.starts_with(scheme.prefix()))
}

/// Returns true for an nftables chain of kube-proxy's table that belongs to a service or an endpoint: as in
/// kube-proxy, one with a `/` in its name.
///
/// ```
/// use sluicegate_chain_names::is_nftables_chain;
///
/// assert!(is_nftables_chain("service-34HOXUJH-demo/dns/udp/dns"));
/// assert!(!is_nftables_chain("services"));
/// ```
#[must_use]
pub fn is_nftables_chain(name: &str) -> bool {
    name.contains('/')
}

/// Returns true for an nftables set of kube-proxy's table with the clients of an endpoint.
#[must_use]
pub fn is_nftables_affinity_set(name: &str) -> bool {
    name.starts_with(scheme::NFT_AFFINITY.prefix())
}

fn hash(hashing: Hashing, pieces: &[&str]) -> HashText {
    hashing.of(pieces).expect("SHA-256 in base32 has 52 characters")
}

fn nftables_base(pieces: &[&str]) -> Text<{ scheme::NFT_BASE }> {
    scheme::NFT_SERVICE.tail(pieces).expect("text is cut to fit, and a service port is never empty")
}

/// Joins a prefix and the rest of a name without checking it. Service ports and endpoints have only
/// characters that all names can have, and the longest name is within the limits: 25 of 28 bytes, and 249 of
/// 255.
fn join<N: Name>(prefix: &str, rest: &str) -> N {
    let name = N::assemble(&[prefix, rest]).expect("the longest keeps within the limit");
    debug_assert!(N::new(name.as_str()).is_ok(), "{name} has a character that its parts should not have");
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service_port::Protocol;

    #[test]
    fn chains_of_kube_proxy_are_recognised() {
        let port = ServicePort::new("demo", "dns", "dns", Protocol::Udp).unwrap();
        let endpoint = "10.244.0.20:53".parse().unwrap();
        let iptables = port.iptables();
        for ours in [iptables.service(), iptables.local(), iptables.external(), iptables.firewall()] {
            assert!(is_iptables_chain(&ours), "{ours}");
        }
        assert!(is_iptables_chain(&port.iptables_endpoint(&endpoint)));
        assert!(
            ["KUBE-SERVICES", "KUBE-FIREWALL", "KUBE-MARK-MASQ", "INPUT"]
                .iter()
                .all(|name| !is_iptables_chain(name))
        );

        let names = port.nftables_endpoint(&endpoint);
        assert!(is_nftables_chain(&port.nftables().service()) && is_nftables_chain(&names.chain()));
        assert!(!is_nftables_chain("nat-prerouting"));
        assert!(is_nftables_affinity_set(&names.affinity()) && !is_nftables_affinity_set("cluster-ips"));
    }

    #[test]
    fn debug_shows_the_part_after_the_prefix() {
        let port = ServicePort::new("demo", "web", "http", Protocol::Tcp).unwrap();
        assert_eq!(format!("{:?}", port.iptables()), "IptablesNames(\"XRY76EGRC3BSCIIJ\")");
        assert_eq!(format!("{:?}", port.nftables()), "NftablesNames(\"AXK6CI2C-demo/web/tcp/http\")");
    }
}
