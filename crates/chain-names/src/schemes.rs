//! Schemes that are in use, checked against the values that their projects publish.
//!
//! For kube-proxy's names, [`ServicePort`](crate::ServicePort) is safer than these schemes, as it checks its
//! parts and joins them.

use crate::hashing::{Encoding, HashFunction, Hashing};

/// 16 characters of base32: kube-proxy's iptables mode, and kube-router.
const BASE32_16: Hashing = Hashing { function: HashFunction::Sha256, encoding: Encoding::Base32, length: 16 };

/// The names of kube-proxy (Kubernetes 1.36; the iptables names have been the same since 1.2, the nftables
/// ones since 1.29).
pub mod kube_proxy {
    use super::BASE32_16;
    use crate::{Encoding, Form, HashFunction, Hashing, NftName, Scheme, XtName};

    /// Chain of a service port, cluster traffic policy. Pieces: `namespace/name`, then `:port` unless the
    /// port has no name, then the protocol in lower case.
    pub const SVC: Scheme<'static, XtName> = Scheme::new("KUBE-SVC-", BASE32_16, Form::Hash);
    /// Chain of a service port, local traffic policy. Pieces as for [`SVC`].
    pub const SVL: Scheme<'static, XtName> = Scheme::new("KUBE-SVL-", BASE32_16, Form::Hash);
    /// Chain of a service port for traffic from outside. Pieces as for [`SVC`].
    pub const EXT: Scheme<'static, XtName> = Scheme::new("KUBE-EXT-", BASE32_16, Form::Hash);
    /// Chain of a service port with source ranges. Pieces as for [`SVC`].
    pub const FW: Scheme<'static, XtName> = Scheme::new("KUBE-FW-", BASE32_16, Form::Hash);
    /// Chain of an endpoint of a service port. Pieces as for [`SVC`], then `address:port` or
    /// `[address]:port`.
    pub const SEP: Scheme<'static, XtName> = Scheme::new("KUBE-SEP-", BASE32_16, Form::Hash);

    /// Chain of a service port, cluster traffic policy. Pieces: `namespace/name/protocol/port`, a port
    /// without name leaving the last empty.
    pub const NFT_SERVICE: Scheme<'static, NftName> = nft("service-");
    /// Chain of a service port, local traffic policy. Pieces as for [`NFT_SERVICE`].
    pub const NFT_LOCAL: Scheme<'static, NftName> = nft("local-");
    /// Chain of a service port for traffic from outside. Pieces as for [`NFT_SERVICE`].
    pub const NFT_EXTERNAL: Scheme<'static, NftName> = nft("external-");
    /// Chain of a service port with source ranges. Pieces as for [`NFT_SERVICE`].
    pub const NFT_FIREWALL: Scheme<'static, NftName> = nft("firewall-");
    /// Chain of an endpoint. Pieces as for [`NFT_SERVICE`], then `__address/port`, with `.` for every `:` of
    /// the address.
    pub const NFT_ENDPOINT: Scheme<'static, NftName> = nft("endpoint-");
    /// Set of the clients of an endpoint. Pieces as for [`NFT_ENDPOINT`].
    pub const NFT_AFFINITY: Scheme<'static, NftName> = nft("affinity-");

    /// The maximum length of a name without its prefix: 256 bytes less the 16 that kube-proxy reserves for
    /// prefixes.
    pub(crate) const NFT_BASE: usize = 240;

    pub(crate) const fn nft(prefix: &'static str) -> Scheme<'static, NftName> {
        let hashing = Hashing { function: HashFunction::Sha256, encoding: Encoding::Base32, length: 8 };
        Scheme::new(prefix, hashing, Form::HashAndText { separator: "-", most: NFT_BASE, ellipsis: "..." })
    }
}

/// The names of kube-router (`pkg/controllers/netpol` of 1.x and 2.x).
///
/// All pieces follow each other without separators. 2.x adds the family, `IPv4` or `IPv6`, to the inputs, and
/// puts `inet6:` before the name of an IPv6 set.
pub mod kube_router {
    use super::BASE32_16;
    use crate::{Form, IpsetName, Scheme, XtName};

    /// Chain of a pod. Pieces: namespace, pod name, sync version.
    pub const POD_FW: Scheme<'static, XtName> = Scheme::new("KUBE-POD-FW-", BASE32_16, Form::Hash);
    /// Chain of a network policy. Pieces: namespace, policy name, sync version, family (2.x).
    pub const NWPLCY: Scheme<'static, XtName> = Scheme::new("KUBE-NWPLCY-", BASE32_16, Form::Hash);
    /// Set of source addresses. Pieces: namespace, policy name; for a rule of the policy `ingressrule` and
    /// its number, then the family (2.x), then `pod` or `ipblock`.
    pub const SRC: Scheme<'static, IpsetName> = Scheme::new("KUBE-SRC-", BASE32_16, Form::Hash);
    /// Set of destination addresses. Pieces as for [`SRC`], with `egressrule`.
    pub const DST: Scheme<'static, IpsetName> = Scheme::new("KUBE-DST-", BASE32_16, Form::Hash);
    /// [`SRC`] for IPv6, 2.x.
    pub const SRC_INET6: Scheme<'static, IpsetName> = Scheme::new("inet6:KUBE-SRC-", BASE32_16, Form::Hash);
    /// [`DST`] for IPv6, 2.x.
    pub const DST_INET6: Scheme<'static, IpsetName> = Scheme::new("inet6:KUBE-DST-", BASE32_16, Form::Hash);
}

/// The names of Calico's Felix, iptables dataplane (`libcalico-go/lib/hash`, `felix/rules`, `felix/ipsets`).
pub mod calico {
    use crate::{Encoding, Form, HashFunction, Hashing, IpsetName, Scheme, XtName};

    /// Chain to a workload. Piece: the interface.
    pub const TO_WORKLOAD: Scheme<'static, XtName> = chain("cali-tw-");
    /// Chain from a workload. Piece: the interface.
    pub const FROM_WORKLOAD: Scheme<'static, XtName> = chain("cali-fw-");
    /// Chain to a host endpoint. Piece: the interface.
    pub const TO_HOST: Scheme<'static, XtName> = chain("cali-th-");
    /// Chain from a host endpoint. Piece: the interface.
    pub const FROM_HOST: Scheme<'static, XtName> = chain("cali-fh-");
    /// Chain of the inbound rules of a policy. Piece: the policy's ID.
    pub const POLICY_INBOUND: Scheme<'static, XtName> = chain("cali-pi-");
    /// Chain of the outbound rules of a policy. Piece: the policy's ID.
    pub const POLICY_OUTBOUND: Scheme<'static, XtName> = chain("cali-po-");
    /// Chain of the inbound rules of a profile. Piece: its name, such as `kns.default` or
    /// `ksa.default.default`.
    pub const PROFILE_INBOUND: Scheme<'static, XtName> = chain("cali-pri-");
    /// Chain of the outbound rules of a profile. Piece: its name.
    pub const PROFILE_OUTBOUND: Scheme<'static, XtName> = chain("cali-pro-");

    /// IPv4 set of the addresses that a selector selects. Pieces: `s:`, the selector in its canonical form.
    pub const SELECTOR_SET: Scheme<'static, IpsetName> = Scheme::new("cali40s:", set_hashing(), Form::Hash);
    /// IPv6 set of the addresses that a selector selects. Pieces as for [`SELECTOR_SET`].
    pub const SELECTOR_SET_INET6: Scheme<'static, IpsetName> =
        Scheme::new("cali60s:", set_hashing(), Form::Hash);

    /// Returns the form of all of Calico's chains, for prefixes that are not named here.
    #[must_use]
    pub const fn chain(prefix: &str) -> Scheme<'_, XtName> {
        let hashing = Hashing { function: HashFunction::Sha256, encoding: Encoding::Base64Url, length: 43 };
        Scheme::new(prefix, hashing, Form::TextOrHash { mark: "_" })
    }

    /// The number of characters that the 31 bytes of a set's name leave after `cali40s:`.
    const fn set_hashing() -> Hashing {
        Hashing { function: HashFunction::Sha224, encoding: Encoding::Base64Url, length: 23 }
    }
}

/// The names of the reference CNI plugins (`pkg/utils/utils.go`): SHA-512 in hexadecimal that fills the 28
/// bytes.
pub mod cni {
    use crate::{Encoding, Form, HashFunction, Hashing, Scheme, XtName};

    /// Chain of a network's container. Pieces: network name, container ID.
    pub const CHAIN: Scheme<'static, XtName> = Scheme::new("CNI-", hashing(24), Form::Hash);
    /// portmap's DNAT chain. Pieces as for [`CHAIN`].
    pub const DNAT: Scheme<'static, XtName> = Scheme::new("CNI-DN-", hashing(21), Form::Hash);
    /// portmap's SNAT chain. Pieces as for [`CHAIN`].
    pub const SNAT: Scheme<'static, XtName> = Scheme::new("CNI-SN-", hashing(21), Form::Hash);

    const fn hashing(length: usize) -> Hashing {
        Hashing { function: HashFunction::Sha512, encoding: Encoding::Hex, length }
    }
}
