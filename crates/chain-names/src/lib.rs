#![doc = include_str!("../README.md")]
//!
//! # Where to find what
//!
//! | who | names | from here |
//! |---|---|---|
//! | kube-proxy, iptables mode | `KUBE-SVC-`, `KUBE-SVL-`, `KUBE-EXT-`, `KUBE-FW-`, `KUBE-SEP-` + 16 characters | [`ServicePort::iptables`], [`ServicePort::iptables_endpoint`] |
//! | kube-proxy, nftables mode | `service-`, `local-`, `external-`, `firewall-`, `endpoint-`, `affinity-` + 8 characters + `-` + readable text | [`ServicePort::nftables`], [`ServicePort::nftables_endpoint`] |
//! | kube-router | `KUBE-POD-FW-`, `KUBE-NWPLCY-`, ipsets `KUBE-SRC-`, `KUBE-DST-` | [`schemes::kube_router`] |
//! | Calico | `cali-tw-`, `cali-fw-`, `cali-pi-`, ..., ipsets `cali40s:` | [`schemes::calico`] |
//! | the CNI plugins | `CNI-`, `CNI-DN-` | [`schemes::cni`] |
//! | you | any prefix, hash function, encoding, hash length and limit | [`Scheme`] |
//!
//! A [`ServicePort`] is hashed once for its four chains; keep the [`IptablesNames`] or [`NftablesNames`].
//!
//! # The names are values
//!
//! [`XtName`], [`IpsetName`] and [`NftName`] are `Copy`, store their text inline, and compare and hash as
//! that text. They are always names that the tool accepts: not too long, not empty, without spaces, quotes or
//! control characters, so that they can be written into a script without quotes. Creating one needs no
//! allocation. See [`NftName`] for the reason that it is as large as its limit.
//!
//! # What it does not do
//!
//! It does not access the kernel, and does not know which chains exist. It cannot invert a hash: only
//! nftables names contain the text, unless it was truncated. Two objects can have the same name: with 16
//! base32 characters (80 bits) that does not happen by chance, and with the 8 characters of the nftables form
//! (40 bits) only truncated names depend on the hash.
#![forbid(unsafe_code)]

mod endpoint;
mod error;
mod hashing;
mod kube_proxy;
mod name;
mod scheme;
pub mod schemes;
mod service_port;

pub use endpoint::Endpoint;
pub use error::{Error, What};
pub use hashing::{Encoding, HashFunction, HashText, Hashing};
pub use kube_proxy::{
    IptablesNames, NftablesEndpointNames, NftablesNames, is_iptables_chain, is_nftables_affinity_set,
    is_nftables_chain,
};
pub use name::{IpsetName, Name, NftName, XtName};
pub use scheme::{Form, Scheme};
pub use service_port::{Protocol, ServicePort};
