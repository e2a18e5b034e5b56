//! The line `packet:` of `monitor trace`: the headers of a packet, as nft 1.0.6 writes them.

use sluicegate_nftables::expr::{MetaKey, PayloadBase};
use sluicegate_nftables::lang::{Expression, Match, MatchOp, Payload, RawPayload, Value};
use sluicegate_nftables::monitor::{Trace, TraceDevice, TraceStep};
use sluicegate_nftables::{EtherAddr, Family, ListOptions, Rule, TableId};

/// The line, where the step has the headers: in the first of a chain, if a rule is what it reports.
pub(crate) fn packet(trace: &Trace, options: &ListOptions) -> Option<String> {
    let is_first = !trace.link_header.is_empty() || !trace.network_header.is_empty();
    if trace.step != TraceStep::Rule || !is_first {
        return None;
    }
    let mut rule = Rule::new(TableId::new(trace.family, trace.table.clone()).chain(trace.chain.clone()));
    for (key, device) in [(MetaKey::IIF, trace.iif), (MetaKey::OIF, trace.oif)] {
        if let Some(TraceDevice { index, .. }) = device {
            rule = rule.then(Match::new(key, index));
        }
    }
    for header in headers(trace) {
        rule.statements.extend(header.matches().map(Into::into));
    }
    let Trace { id, family, table, chain, .. } = trace;
    // Behind the last one nft has a blank.
    Some(format!("trace id {id:08x} {family} {table} {chain} packet: {} ", rule.body_with(options)))
}

/// A header, and what nft says of it.
struct Header<'a> {
    base: PayloadBase,
    bytes: &'a [u8],
    /// The fields that are printed, in this order.
    fields: &'static [Payload],
    /// The bytes whose fields nft knows; what follows is printed as it is.
    known: usize,
}

fn headers(trace: &Trace) -> [Header<'_>; 3] {
    const ARPHRD_ETHER: u16 = 1;
    let device = trace.iif.or(trace.oif);
    let is_ethernet = device.is_none_or(|device| device.kind == ARPHRD_ETHER);
    let (link, network, transport) = (&trace.link_header, &trace.network_header, &trace.transport_header);
    let (fields, known): (&[_], _) = match (is_ethernet, link.len()) {
        (false, _) => (&[], 0),
        (true, ..=ETHERNET) => (&[Payload::ETHER_SADDR, Payload::ETHER_DADDR], link.len()),
        (true, _) => (VLAN, link.len()),
    };
    let link = Header { base: PayloadBase::LINK, bytes: link, fields, known };
    let (fields, protocol) = match network_family(trace) {
        Some(Family::IP) => (IP, network.get(9)),
        Some(Family::IP6) => (IP6, network.get(6)),
        Some(Family::ARP) => (ARP, None),
        _ => (&[][..], None),
    };
    let known = if fields.is_empty() { 0 } else { network.len() };
    let network = Header { base: PayloadBase::NETWORK, bytes: network, fields, known };
    let of_protocol = protocol.and_then(|protocol| TRANSPORTS.iter().find(|(number, ..)| number == protocol));
    let (fields, known) = of_protocol.map_or((&[][..], 0), |(_, fields, known)| (*fields, *known));
    [link, network, Header { base: PayloadBase::TRANSPORT, bytes: transport, fields, known }]
}

/// `NFPROTO_*`, or what the frame says where the kernel does not.
fn network_family(trace: &Trace) -> Option<Family> {
    let by_number = trace.protocol.and_then(|number| u8::try_from(number).ok()).map(Family);
    if let Some(family @ (Family::IP | Family::IP6 | Family::ARP)) = by_number {
        return Some(family);
    }
    match trace.link_header.last_chunk()? {
        [0x08, 0x00] => Some(Family::IP),
        [0x86, 0xdd] => Some(Family::IP6),
        [0x08, 0x06] => Some(Family::ARP),
        _ => None,
    }
}

impl Header<'_> {
    fn matches(&self) -> impl Iterator<Item = Match> {
        let fields = self.fields.iter().filter_map(|field| {
            let value = value(*field, self.bytes)?;
            let op = if *field == Payload::TCP_FLAGS { MatchOp::Eq } else { MatchOp::In };
            Some(Match::with(*field, op, value))
        });
        fields.chain(self.rest())
    }

    /// The bytes behind the fields that nft knows: `@th,64,96 0x...`
    fn rest(&self) -> Option<Match> {
        let rest = self.bytes.get(self.known..).filter(|rest| !rest.is_empty())?;
        let bits = |bytes: usize| u16::try_from(8 * bytes).ok();
        let raw = RawPayload { base: self.base, offset: bits(self.known)?, bits: bits(rest.len())? };
        let value = match rest.len() {
            ..=8 => Value::Number(number(rest)),
            _ => Value::Bytes(rest.into()),
        };
        Some(Match::with(Expression::RawPayload(raw), MatchOp::In, value))
    }
}

/// The value of a field in a header.
fn value(field: Payload, header: &[u8]) -> Option<Value> {
    let (offset, bits) = (usize::from(field.offset()), usize::from(field.bits()));
    let bytes = header.get(offset / 8..(offset + bits).div_ceil(8))?;
    Some(match bits {
        128 => Value::from(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        48 => Value::from(EtherAddr(bytes.try_into().ok()?)),
        32 if matches!(field, Payload::IP_SADDR | Payload::IP_DADDR) => {
            Value::from(std::net::Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?))
        }
        _ => {
            let behind = bytes.len() * 8 - offset % 8 - bits;
            Value::Number(number(bytes) >> behind & (u64::MAX >> (64 - bits)))
        }
    })
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The length of an Ethernet header without a tag.
const ETHERNET: usize = 14;
const VLAN: &[Payload] =
    &[Payload::ETHER_SADDR, Payload::ETHER_DADDR, Payload::VLAN_PCP, Payload::VLAN_DEI, Payload::VLAN_ID];
const IP: &[Payload] = &[
    Payload::IP_SADDR,
    Payload::IP_DADDR,
    Payload::IP_DSCP,
    Payload::IP_ECN,
    Payload::IP_TTL,
    Payload::IP_ID,
    Payload::IP_PROTOCOL,
    Payload::IP_LENGTH,
];
const IP6: &[Payload] = &[
    Payload::IP6_SADDR,
    Payload::IP6_DADDR,
    Payload::IP6_DSCP,
    Payload::IP6_ECN,
    Payload::IP6_HOPLIMIT,
    Payload::IP6_FLOWLABEL,
    Payload::IP6_NEXTHDR,
    Payload::IP6_LENGTH,
];
const ARP: &[Payload] = &[Payload::ARP_OPERATION];
/// The fields of each transport protocol, and the bytes of its header that nft knows. nft takes the first
/// field that it has for a place: `parameter-problem` in all messages of `ICMPv6`.
#[rustfmt::skip]
const TRANSPORTS: &[(u8, &[Payload], usize)] = &[
    (1, &[Payload::ICMP_TYPE, Payload::ICMP_CODE, Payload::ICMP_ID, Payload::ICMP_SEQUENCE], 8),
    (2, &[Payload::IGMP_TYPE, Payload::IGMP_MRT], 2),
    (6, &[Payload::TCP_SPORT, Payload::TCP_DPORT, Payload::TCP_FLAGS, Payload::TCP_WINDOW], 20),
    (17, &[Payload::UDP_SPORT, Payload::UDP_DPORT, Payload::UDP_LENGTH], 8),
    (50, &[Payload::ESP_SPI, Payload::ESP_SEQUENCE], 8),
    (51, &[Payload::AH_SPI, Payload::AH_HDRLENGTH, Payload::AH_NEXTHDR], 12),
    (58, &[Payload::ICMPV6_TYPE, Payload::ICMPV6_CODE, Payload::ICMPV6_PARAMETER_PROBLEM], 8),
    (132, &[Payload::SCTP_SPORT, Payload::SCTP_DPORT, Payload::SCTP_VTAG], 12),
    (
        136,
        &[Payload::UDPLITE_SPORT, Payload::UDPLITE_DPORT, Payload::UDPLITE_CSUMCOV, Payload::UDPLITE_CHECKSUM],
        8,
    ),
];
