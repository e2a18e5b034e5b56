//! Node ports on loopback addresses: which of them are rejected, and how many packets were (KEP-6032).
//!
//! The kernel drops a packet that leaves the node with a loopback source, so nothing is translated there. What
//! connects all the same is told at once, and counted by protocol in named counters, which keep what they have
//! counted when the rules change. Their names are those of kube-proxy 1.37.

use sluicegate_netlink::Transport;
use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::lang::{Counter, ObjectName, ObjectReference, Reject, Statement};
use sluicegate_nftables::{ObjectConfig, ObjectId, StatefulObject, TableId, read};
use sluicegate_services::{Family, Protocol};

use super::schema::{TABLE, fixed_name, nft_family};
use crate::Error;

/// What becomes of connections of the node to its node ports on loopback addresses.
///
/// ```
/// use sluicegate_service_rules::nftables::OnLocalhost;
/// use sluicegate_services::{Family, Protocol};
///
/// let forwarded = OnLocalhost::Rejected { forwarded: vec![Family::Ipv4] };
/// assert!(forwarded.rejects(Family::Ipv4, Protocol::Udp) && !forwarded.rejects(Family::Ipv4, Protocol::Tcp));
/// assert!(forwarded.rejects(Family::Ipv6, Protocol::Tcp));
/// assert!(!OnLocalhost::default().rejects(Family::Ipv4, Protocol::Udp));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnLocalhost {
    /// No rule is about them: they reach whoever listens on the loopback address, as in kube-proxy 1.36.
    #[default]
    Untouched,
    /// Those to node ports of services are rejected and counted, as kube-proxy 1.37 does with its feature gate.
    Rejected {
        /// The families whose TCP connections somebody accepts and forwards: these pass.
        forwarded: Vec<Family>,
    },
}

impl OnLocalhost {
    /// Returns whether connections of this protocol are rejected.
    #[must_use]
    pub fn rejects(&self, family: Family, protocol: Protocol) -> bool {
        match self {
            Self::Untouched => false,
            Self::Rejected { forwarded } => protocol != Protocol::Tcp || !forwarded.contains(&family),
        }
    }

    /// Returns the protocols that are rejected.
    pub(super) fn rejected(&self, family: Family) -> Vec<Protocol> {
        Protocol::ALL.into_iter().filter(|protocol| self.rejects(family, *protocol)).collect()
    }
}

/// Returns how many packets to node ports on loopback addresses were rejected, for the families that have a
/// table and the protocols that it rejects.
///
/// # Errors
/// [`Error::Netlink`] when they cannot be listed.
pub fn rejected_on_localhost(
    transport: &mut (impl Transport + ?Sized),
) -> Result<Vec<(Family, Protocol, u64)>, Error> {
    let mut found = Vec::new();
    for family in Family::BOTH {
        let table = TableId::new(nft_family(family), fixed_name(TABLE));
        for protocol in Protocol::ALL {
            let object = read::object(transport, &counter_id(&table, protocol))
                .map_err(|error| Error::reading("reading the counters of rejected packets", error))?;
            if let Some(packets) = object.as_ref().and_then(packets) {
                found.push((family, protocol, packets));
            }
        }
    }
    Ok(found)
}

/// Returns the counter of rejected packets.
pub(super) fn counter(table: &TableId, protocol: Protocol) -> StatefulObject {
    StatefulObject::new(counter_id(table, protocol), ObjectConfig::Counter(Counter::default()))
}

/// `counter name "localhost-nodeport-rejected-udp"`
pub(super) fn count(protocol: Protocol) -> Statement {
    let object = ObjectName::Named(fixed_name(counter_name(protocol)));
    ObjectReference { kind: ObjectKind::COUNTER, object }.into()
}

/// Returns the packets of a counter.
fn packets(counter: &read::Object) -> Option<u64> {
    match counter.config()? {
        ObjectConfig::Counter(counter) => Some(counter.packets),
        _ => None,
    }
}

/// `reject`, for TCP `reject with tcp reset`: while a socket connects, an ICMP error from the node's own output
/// chain only counts once the first packet is sent again, a second later (Linux 6.1).
pub(super) fn reject(protocol: Protocol) -> Statement {
    match protocol {
        Protocol::Tcp => Reject::TcpReset.into(),
        Protocol::Udp | Protocol::Sctp => Reject::Default.into(),
    }
}

fn counter_id(table: &TableId, protocol: Protocol) -> ObjectId {
    table.object(ObjectKind::COUNTER, fixed_name(counter_name(protocol)))
}

const fn counter_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "localhost-nodeport-rejected-tcp",
        Protocol::Udp => "localhost-nodeport-rejected-udp",
        Protocol::Sctp => "localhost-nodeport-rejected-sctp",
    }
}
