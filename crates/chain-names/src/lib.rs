//! Names of packet-filter chains and sets for objects with longer names: service ports, endpoints, policies.
//!
//! iptables allows 28 bytes for a chain, ipset 31 for a set, nftables 255 for either. Programs that create a
//! chain for every service therefore use a hash in its name. This crate computes the names exactly as
//! well-known programs do:
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
//! ```
//! use sluicegate_chain_names::{Protocol, ServicePort};
//!
//! let web = ServicePort::new("demo", "web", "http", Protocol::Tcp)?;
//! let endpoint = "10.244.0.10:8080".parse()?;
//!
//! assert_eq!(web.iptables().service(), "KUBE-SVC-XRY76EGRC3BSCIIJ");
//! assert_eq!(web.iptables_endpoint(&endpoint), "KUBE-SEP-AEXJBL2DDECPIHGN");
//! assert_eq!(web.nftables().service(), "service-AXK6CI2C-demo/web/tcp/http");
//! # Ok::<(), sluicegate_chain_names::Error>(())
//! ```
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
