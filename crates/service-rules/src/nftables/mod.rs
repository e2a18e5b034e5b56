//! Services by nftables: the tables `ip kube-proxy` and `ip6 kube-proxy`, over netlink.
//!
//! [`Settings`] choose the [`Layout`] and more, [`Planner`] computes transactions for a cluster, [`Applier`]
//! sends them, and [`Synced`] is the result of a sync. As a [`Backend`](crate::Backend) it has the measure
//! [`STALE_CHAINS_KEPT`].
//!
//! # How it works
//!
//! * `port.rs` determines for both layouts which traffic goes where. A layout only determines how that is
//!   expressed in rules.
//! * Endpoints are numbered in the order of the sorted list, and a frontend that two ports claim belongs to
//!   the first name, so that a plan does not depend on its history.
//! * nft 1.0.6 can list and load again what the maps layout programs. That is why there is one map of
//!   endpoints for each protocol: for an existing map with `typeof ... : ip daddr . th dport` nft cannot
//!   create a rule (`conflicting protocols`), and with `tcp dport` it silently adds `meta l4proto tcp` to a
//!   rule for all protocols.
//! * In the maps layout no service has a verdict of its own: of each new verdict in a map that base chains
//!   reach, the kernel walks the whole map again to look for loops, 4 ms at 50,000 services. A frontend has
//!   the code of a chain, a number; the few codes in use have the verdicts. So a service is added in the same
//!   time at every size, for which the first packet of a connection pays 0.2 of its 8 us on the way out.
//!   Frontends without endpoints keep their verdicts, as there are few.
//! * Under session affinity the maps layout binds clients to ids of endpoints, which are hashes of their
//!   addresses: a restart finds the same ones, and an endpoint that is removed loses its clients with its
//!   element. Between two lookups the code, or the id, is in the packet's priority, because nft 1.0.6 cannot
//!   list a lookup that uses the result of another. The first packet of a connection to a service so leaves
//!   with priority 0, whatever `SO_PRIORITY` its socket had.
//!   A client starts at the endpoint that a hash of its address chooses. One map has the clients of all
//!   services of a protocol: at most 262144, before Linux 6.5 65535. Clients that find it full, whoever filled
//!   it, still come to the endpoint of their hash, and leave it only when the endpoints of their service
//!   change.
//! * The elements of frontends come after those that they lead to, and the rules of base chains come last: a
//!   transaction that has to be sent in several batches makes nothing reachable before it is complete.
//! * Chains that are no longer used are flushed at once, and deleted in a separate transaction more than a
//!   second later. Before Linux 6.2 the kernel counts the references of deleted elements for some time.
//! * The first sync reconciles with the kernel. Later ones list nothing, unless a transaction failed or the
//!   generation shows that another program has committed. Every transaction names its generation, so that the
//!   kernel refuses it after the commit of another program.
//! * After a commit the generation is computed, not requested: the kernel's answer may already be the
//!   generation of another program's commit.

mod applier;
mod base;
mod chain;
#[cfg(test)]
mod content_tests;
mod counts;
mod element;
mod family;
mod journey;
mod localhost;
mod owner;
mod planner;
mod port;
mod present;
mod programmed;
mod schema;
mod settings;
mod synced;
mod table;
mod timed;

pub use applier::{Applier, has_flowtables};
pub use base::FASTPATH;
pub use counts::{Connections, connections};
pub use journey::{End, Hop, Journey, Place, Tracer};
pub use localhost::{OnLocalhost, rejected_on_localhost};
pub use owner::Owners;
pub use planner::Planner;
pub use schema::TABLE;
pub use settings::{Counting, Fastpath, LOOPBACK, Layout, Settings};
pub use synced::{Changes, STALE_CHAINS_KEPT, Synced};
