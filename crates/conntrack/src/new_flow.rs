//! A flow that is to be created.

use crate::{AddressPort, FlowKey, ProtocolInfo, Status, Tuple};

/// A flow that is to be created, as by `conntrack -I`: for tests, and for who restores flows elsewhere.
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
    /// The reply direction: where it is not the original one turned round, there is a translation. Packets are translated so only
    /// by a kernel that translates anyway; [`source_nat`](Self::source_nat) and [`destination_nat`](Self::destination_nat) see to that.
    pub reply: Tuple,
    /// Seconds until it goes.
    pub timeout: u32,
    /// Its status. The kernel adds [`Status::CONFIRMED`] and refuses some others.
    pub status: Status,
    /// Its mark.
    pub mark: Option<u32>,
    /// The zone of both directions.
    pub zone: Option<u16>,
    /// The state of its protocol.
    pub protocol_info: Option<ProtocolInfo>,
    /// Have the kernel translate its source to this, as a rule of NAT would (`-n` of conntrack(8)): it changes the reply
    /// direction accordingly, and sees to it that no other flow has the same. What is not named stays.
    pub source_nat: Option<AddressPort>,
    /// The same of its destination (`-g`).
    pub destination_nat: Option<AddressPort>,
}

impl NewFlow {
    /// A flow without translation.
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

    /// What will identify it, without the id that only the kernel knows.
    #[must_use]
    pub const fn key(&self) -> FlowKey {
        FlowKey { original: self.original, zone: self.zone, id: None }
    }
}
