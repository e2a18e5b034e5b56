//! Filters of flows. Flows are compared here, and by the kernel as far as its own filter is reliable.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::protocol::has_ports;
use crate::tuple::PartialTuple;
use crate::wire::filter;
use crate::{
    Error, Family, Flow, Labels, Layer4, Protocol, ProtocolInfo, SctpState, Status, TcpState, Tuple,
};

/// The criteria that select flows. All must match; fields that are `None` are not compared.
///
/// ```
/// use std::net::IpAddr;
///
/// use sluicegate_conntrack::{Filter, Protocol, Side, Status};
///
/// // `conntrack -L -p udp --orig-dst 10.96.0.10 --orig-port-dst 53 --status SEEN_REPLY`
/// let service = Side::default().destination(IpAddr::from([10, 96, 0, 10])).destination_port(53_u16);
/// let filter = Filter::default().protocol(Protocol::UDP).original(service).status(Status::SEEN_REPLY);
/// assert_eq!(filter.original.destination_port, Some(53));
/// assert!(filter.check().is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Filter {
    /// The family of the addresses.
    pub family: Option<Family>,
    /// The transport protocol.
    pub protocol: Option<Protocol>,
    /// The direction of the first packet.
    pub original: Side,
    /// The direction of the answers.
    pub reply: Side,
    /// Status bits.
    pub status: StatusMatch,
    /// The mark.
    pub mark: Option<MarkMatch>,
    /// The zone of both directions; 0 means no zone.
    pub zone: Option<u16>,
    /// The translation of source or destination.
    pub nat: NatMatch,
    /// The state of a TCP connection.
    pub tcp_state: Option<TcpState>,
    /// The state of an SCTP association.
    pub sctp_state: Option<SctpState>,
    /// The id.
    pub id: Option<u32>,
    /// The labels that must be set. `Some` of none is a criterion as well: a flow that has some.
    pub labels: Option<Labels>,
}

/// The conditions on one direction of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Side {
    /// The network of the source address.
    pub source: Option<IpNet>,
    /// The network of the destination address.
    pub destination: Option<IpNet>,
    /// The source port; for GRE, the key.
    pub source_port: Option<u16>,
    /// The destination port; for GRE, the key.
    pub destination_port: Option<u16>,
    /// The type of ICMP messages.
    pub icmp_type: Option<u8>,
    /// The code of ICMP messages.
    pub icmp_code: Option<u8>,
    /// The identifier of ICMP messages.
    pub icmp_id: Option<u16>,
    /// The zone of this direction only; 0 means no zone.
    pub zone: Option<u16>,
}

/// Status bits that must be set, and bits that must not.
///
/// ```
/// use sluicegate_conntrack::{Filter, Status};
///
/// // `conntrack -L --status SEEN_REPLY`, and of those the flows whose source is not translated.
/// let mut filter = Filter::default().status(Status::SEEN_REPLY);
/// filter.status.unset = Status::SRC_NAT;
/// assert!(filter.check().is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StatusMatch {
    /// The bits that must be set.
    pub set: Status,
    /// The bits that must not be set.
    pub unset: Status,
}

/// A mark that is compared under a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkMatch {
    /// The value of the masked mark.
    pub value: u32,
    /// The bits that are compared.
    pub mask: u32,
}

/// The translations that a flow must have (`-n`, `-g`, `-j` of conntrack(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct NatMatch {
    /// The address and port that the source is translated to.
    pub source: Option<AddressPort>,
    /// The address and port that the destination is translated to.
    pub destination: Option<AddressPort>,
    /// The address and port that either is translated to.
    pub any: Option<AddressPort>,
}

/// An address and a port, each of which may be absent.
///
/// ```
/// use sluicegate_conntrack::{AddressPort, Filter};
///
/// // `conntrack -L -g 10.244.1.7`: flows whose destination was translated to this address.
/// let mut filter = Filter::default();
/// filter.nat.destination =
///     Some(AddressPort { address: Some([10, 244, 1, 7].into()), port: None });
/// assert!(filter.check().is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AddressPort {
    /// The address.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: Option<u16>,
}

macro_rules! criteria {
    ($of:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        impl $of {$(
            $(#[$doc])*
            #[must_use]
            pub fn $field(mut self, $field: impl Into<$type>) -> Self {
                self.$field = Some($field.into());
                self
            }
        )*}
    };
}

criteria!(Filter {
    /// Selects flows of this family.
    family: Family,
    /// Selects flows of this transport protocol.
    protocol: Protocol,
    /// Selects flows with a mark.
    mark: MarkMatch,
    /// Selects flows of this zone, in both directions.
    zone: u16,
    /// Selects TCP connections in this state.
    tcp_state: TcpState,
    /// Selects SCTP associations in this state.
    sctp_state: SctpState,
    /// Selects the flow of this id.
    id: u32,
    /// Selects flows that have all of these labels; with an empty set: flows that have any label.
    labels: Labels,
});

criteria!(Side {
    /// Selects flows by the source address: one, or a network.
    source: IpNet,
    /// Selects flows by the destination address: one, or a network.
    destination: IpNet,
    /// Selects flows by the source port; for GRE, the key.
    source_port: u16,
    /// Selects flows by the destination port; for GRE, the key.
    destination_port: u16,
    /// Selects flows by the type of ICMP messages.
    icmp_type: u8,
    /// Selects flows by the code of ICMP messages.
    icmp_code: u8,
    /// Selects flows by the identifier of ICMP messages.
    icmp_id: u16,
    /// Selects flows by the zone of this direction only.
    zone: u16,
});

criteria!(NatMatch {
    /// Selects flows whose source is translated to this.
    source: AddressPort,
    /// Selects flows whose destination is translated to this.
    destination: AddressPort,
    /// Selects flows of which either is translated to this.
    any: AddressPort,
});

impl From<std::net::SocketAddr> for AddressPort {
    fn from(address: std::net::SocketAddr) -> Self {
        Self { address: Some(address.ip()), port: Some(address.port()) }
    }
}

impl Filter {
    /// Selects flows by the direction of the first packet.
    #[must_use]
    pub fn original(mut self, original: Side) -> Self {
        self.original = original;
        self
    }

    /// Selects flows by the direction of the answers.
    #[must_use]
    pub fn reply(mut self, reply: Side) -> Self {
        self.reply = reply;
        self
    }

    /// Selects flows that have all of these status bits.
    #[must_use]
    pub fn status(mut self, set: Status) -> Self {
        self.status.set = set;
        self
    }

    /// Selects flows that have none of these status bits.
    #[must_use]
    pub fn without_status(mut self, unset: Status) -> Self {
        self.status.unset = unset;
        self
    }

    /// Selects flows by their translation.
    #[must_use]
    pub fn nat(mut self, nat: NatMatch) -> Self {
        self.nat = nat;
        self
    }

    /// Returns true for a filter without criteria, which all flows match.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // An empty mask is not a criterion.
        let mark = self.mark.filter(|mark| *mark != MarkMatch { value: 0, mask: 0 });
        Self { mark, ..*self } == Self::default()
    }

    /// Checks that a flow can match: all addresses must be of one family, that of the filter.
    ///
    /// # Errors
    /// [`Error::MixedFamilies`].
    pub fn check(&self) -> Result<(), Error> {
        let mut families = self.families();
        let first = families.next();
        if families.any(|family| Some(family) != first) { Err(Error::MixedFamilies) } else { Ok(()) }
    }

    /// Returns whether a flow matches the filter.
    #[must_use]
    pub fn matches(&self, flow: &Flow) -> bool {
        let status = flow.status.unwrap_or_default();
        self.effective_family().is_none_or(|family| family == flow.family())
            && self.protocol.is_none_or(|protocol| protocol == flow.original.protocol)
            && self.original.matches(&flow.original)
            && self.reply.matches(&flow.reply)
            && status.contains(self.status.set)
            && !status.intersects(self.status.unset)
            && self.mark.is_none_or(|mark| flow.mark.is_some_and(|have| have & mark.mask == mark.value))
            && self.zone.is_none_or(|zone| flow.zone.unwrap_or(0) == zone)
            && self.id.is_none_or(|id| flow.id == Some(id))
            && self.tcp_state.is_none_or(|state| flow.protocol_info == Some(ProtocolInfo::Tcp { state }))
            && self.sctp_state.is_none_or(
                |want| matches!(flow.protocol_info, Some(ProtocolInfo::Sctp { state, .. }) if state == want),
            )
            && self.labels.is_none_or(|want| flow.labels.is_some_and(|have| have.contains_all(&want)))
            && self.nat.matches(flow)
    }

    /// Returns the family of the filter, or that of its addresses.
    #[must_use]
    pub fn effective_family(&self) -> Option<Family> {
        self.families().next()
    }

    fn families(&self) -> impl Iterator<Item = Family> {
        let Side { source, destination, .. } = self.original;
        let nets = [source, destination, self.reply.source, self.reply.destination];
        let nat = [self.nat.source, self.nat.destination, self.nat.any];
        let addresses = nets.into_iter().flatten().map(|net| net.addr());
        let addresses = addresses.chain(nat.into_iter().flatten().filter_map(|nat| nat.address));
        self.family.into_iter().chain(addresses.map(Family::of))
    }

    /// Returns the part of the filter that the kernel compares by `CTA_FILTER`: the part that all kernels
    /// compare correctly.
    ///
    /// That is nothing without a family, which the kernel requires, and no IPv6 addresses, whose comparison
    /// is inverted in some kernels (6.1, 6.18). Only the original direction is included, which filters
    /// usually name; the kernel walks the whole table in any case.
    pub(crate) fn kernel_part(&self) -> Option<(Family, PartialTuple, u32)> {
        let family = self.effective_family()?;
        let host = |net: Option<IpNet>| net.filter(|net| is_host(net) && family == Family::Ipv4);
        let Side { source, destination, source_port, destination_port, .. } = self.original;
        // The kernel does not compare ports without their protocol.
        let ports = self.protocol.filter(|protocol| has_ports(*protocol)).is_some();
        let tuple = PartialTuple {
            source: host(source).map(|net| net.addr()),
            destination: host(destination).map(|net| net.addr()),
            protocol: self.protocol,
            source_port: source_port.filter(|_| ports),
            destination_port: destination_port.filter(|_| ports),
        };
        let bits = [
            (tuple.source.is_some(), filter::IP_SRC),
            (tuple.destination.is_some(), filter::IP_DST),
            (tuple.protocol.is_some(), filter::PROTO_NUM),
            (tuple.source_port.is_some(), filter::SRC_PORT),
            (tuple.destination_port.is_some(), filter::DST_PORT),
        ];
        let flags = bits.into_iter().filter(|(set, _)| *set).fold(0, |flags, (_, bit)| flags | bit);
        (flags != 0).then_some((family, tuple, flags))
    }
}

impl Side {
    fn matches(&self, tuple: &Tuple) -> bool {
        let within = |net: Option<IpNet>, address| net.is_none_or(|net| net.contains(&address));
        let port = |want: Option<u16>, have: Option<u16>| want.is_none_or(|want| have == Some(want));
        let (kind, code, id) = match tuple.layer4 {
            Layer4::Icmp { kind, code, id } => (Some(kind), Some(code), Some(id)),
            _ => (None, None, None),
        };
        within(self.source, tuple.source())
            && within(self.destination, tuple.destination())
            && port(self.source_port, tuple.source_port())
            && port(self.destination_port, tuple.destination_port())
            && self.icmp_type.is_none_or(|want| kind == Some(want))
            && self.icmp_code.is_none_or(|want| code == Some(want))
            && port(self.icmp_id, id)
            && self.zone.is_none_or(|want| tuple.zone.unwrap_or(0) == want)
    }
}

impl NatMatch {
    fn matches(&self, flow: &Flow) -> bool {
        let source = |want: AddressPort| {
            let (reply, original) = (&flow.reply, &flow.original);
            flow.has(Status::SRC_NAT_DONE)
                && want.matches(
                    (reply.destination(), reply.destination_port()),
                    (original.source(), original.source_port()),
                )
        };
        let destination = |want: AddressPort| {
            let (reply, original) = (&flow.reply, &flow.original);
            flow.has(Status::DST_NAT_DONE)
                && want.matches(
                    (reply.source(), reply.source_port()),
                    (original.destination(), original.destination_port()),
                )
        };
        self.source.is_none_or(source)
            && self.destination.is_none_or(destination)
            && self.any.is_none_or(|want| source(want) || destination(want))
    }
}

impl AddressPort {
    /// Returns true when the flow is translated to the address and port of the filter, or, if it has none, to
    /// any other.
    fn matches(&self, now: (IpAddr, Option<u16>), before: (IpAddr, Option<u16>)) -> bool {
        let address = self.address.map(|want| now.0 == want && now.0 != before.0);
        let port = self.port.map(|want| now.1 == Some(want) && now.1 != before.1);
        match (address, port) {
            (None, None) => now != before,
            (address, port) => address.unwrap_or(true) && port.unwrap_or(true),
        }
    }
}

fn is_host(net: &IpNet) -> bool {
    net.prefix_len() == net.max_prefix_len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(change: impl FnOnce(&mut Filter)) -> Filter {
        let mut filter = Filter::default();
        change(&mut filter);
        filter
    }

    #[test]
    fn methods_set_the_fields_of_their_names() {
        let (net, nat) =
            ("10.0.0.0/8".parse::<IpNet>().unwrap(), AddressPort { address: None, port: Some(80) });
        let side = Side::default().source(net).destination(net).source_port(1_u16).destination_port(2_u16);
        let side = side.icmp_type(3_u8).icmp_code(4_u8).icmp_id(5_u16).zone(6_u16);
        let expected = Side {
            source: Some(net),
            destination: Some(net),
            source_port: Some(1),
            destination_port: Some(2),
            icmp_type: Some(3),
            icmp_code: Some(4),
            icmp_id: Some(5),
            zone: Some(6),
        };
        assert_eq!(side, expected);
        let (mark, labels) = (MarkMatch { value: 1, mask: 3 }, Labels::default());
        let nat = NatMatch::default().source(nat).destination(nat).any(nat);
        let made = Filter::default().family(Family::Ipv4).protocol(Protocol::TCP).original(side).reply(side);
        let made = made.status(Status::ASSURED).without_status(Status::DYING).mark(mark).zone(7_u16).nat(nat);
        let made =
            made.tcp_state(TcpState::ESTABLISHED).sctp_state(SctpState::CLOSED).id(8_u32).labels(labels);
        let expected = Filter {
            family: Some(Family::Ipv4),
            protocol: Some(Protocol::TCP),
            original: side,
            reply: side,
            status: StatusMatch { set: Status::ASSURED, unset: Status::DYING },
            mark: Some(mark),
            zone: Some(7),
            nat: NatMatch { source: nat.source, destination: nat.source, any: nat.source },
            tcp_state: Some(TcpState::ESTABLISHED),
            sctp_state: Some(SctpState::CLOSED),
            id: Some(8),
            labels: Some(labels),
        };
        assert_eq!(made, expected);
    }

    #[test]
    fn an_empty_mask_is_not_a_criterion() {
        assert!(Filter::default().is_empty());
        assert!(filter(|f| f.mark = Some(MarkMatch { value: 0, mask: 0 })).is_empty());
        for criterion in [
            filter(|f| f.family = Some(Family::Ipv4)),
            filter(|f| f.protocol = Some(Protocol::UDP)),
            filter(|f| f.original.destination_port = Some(0)),
            filter(|f| f.reply.zone = Some(0)),
            filter(|f| f.mark = Some(MarkMatch { value: 0, mask: 1 })),
            filter(|f| f.zone = Some(0)),
            filter(|f| f.status.unset = Status::SEEN_REPLY),
            filter(|f| f.nat.any = Some(AddressPort::default())),
            filter(|f| f.original.source = Some("10.0.0.0/8".parse().unwrap())),
            filter(|f| f.id = Some(0)),
        ] {
            assert!(!criterion.is_empty(), "{criterion:?}");
        }
    }

    #[test]
    fn the_kernel_never_compares_addresses_of_ipv6() {
        let v6 = filter(|f| {
            f.original.destination = Some("fd00::a/128".parse().unwrap());
            f.protocol = Some(Protocol::UDP);
            f.original.destination_port = Some(53);
        });
        let (family, tuple, flags) = v6.kernel_part().unwrap();
        assert_eq!(
            (family, tuple.destination, flags),
            (Family::Ipv6, None, filter::PROTO_NUM | filter::DST_PORT)
        );
        let only_address = filter(|f| f.original.destination = Some("fd00::a/128".parse().unwrap()));
        assert_eq!(only_address.kernel_part(), None);
    }

    #[test]
    fn the_kernel_compares_hosts_but_not_networks() {
        let v4 = filter(|f| {
            f.original.source = Some("10.0.0.0/8".parse().unwrap());
            f.original.destination = Some("10.96.0.10/32".parse().unwrap());
        });
        let (_, tuple, flags) = v4.kernel_part().unwrap();
        assert_eq!((tuple.source, flags), (None, filter::IP_DST));
    }

    #[test]
    fn addresses_of_two_families_match_nothing_and_are_refused() {
        let mixed = filter(|f| {
            f.original.source = Some("10.0.0.0/8".parse().unwrap());
            f.family = Some(Family::Ipv6);
        });
        assert!(matches!(mixed.check(), Err(Error::MixedFamilies)));
    }
}
