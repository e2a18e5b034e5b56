//! A flow to create.

use crate::{AddressPort, FlowKey, ProtocolInfo, Status, Tuple};

/// A flow to create, as by `conntrack -I`: for tests, and to restore flows on another machine.
///
/// ```
/// use sluicegate_conntrack::{NewFlow, Protocol, Tuple};
///
/// let client = "10.0.0.1:1000".parse().unwrap();
/// let (service, server) = ("10.96.0.10:53".parse().unwrap(), "10.244.0.5:53".parse().unwrap());
/// let original = Tuple::with_ports(Protocol::UDP, client, service).unwrap();
/// let mut flow = NewFlow::new(original, 30);
/// flow.reply = Tuple::with_ports(Protocol::UDP, server, client).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewFlow {
    /// The original direction.
    pub original: Tuple,
    /// The reply direction. If it is not the inverse of the original one, packets are translated, but only if
    /// NAT is active in the kernel, which [`source_nat`](Self::source_nat) and
    /// [`destination_nat`](Self::destination_nat) ensure.
    pub reply: Tuple,
    /// The number of seconds until it expires.
    pub timeout: u32,
    /// Its status. The kernel adds [`Status::CONFIRMED`] and refuses some others.
    pub status: Status,
    /// Its mark.
    pub mark: Option<u32>,
    /// The zone of both directions.
    pub zone: Option<u16>,
    /// The state of its protocol.
    pub protocol_info: Option<ProtocolInfo>,
    /// The address and port that the kernel translates the source to, as a NAT rule does (`-n` of
    /// conntrack(8)). The kernel changes the reply direction accordingly, and ensures that no other flow has
    /// the same.
    pub source_nat: Option<AddressPort>,
    /// The same for the destination (`-g`).
    pub destination_nat: Option<AddressPort>,
}

impl NewFlow {
    /// Returns a flow without translation.
    #[must_use]
    pub fn new(original: Tuple, timeout: u32) -> Self {
        Self {
            original,
            reply: original.inverted(),
            timeout,
            status: Status::CONFIRMED,
            mark: None,
            zone: None,
            protocol_info: None,
            source_nat: None,
            destination_nat: None,
        }
    }

    /// Returns the identity that the flow will have, without the id that the kernel assigns.
    #[must_use]
    pub const fn key(&self) -> FlowKey {
        FlowKey { original: self.original, zone: self.zone, id: None }
    }
}
