//! The fields of packet headers that nft(8) names, "PAYLOAD EXPRESSIONS".
//!
//! The numbers are those of nft 1.1. nft 1.0.6 lacks the fields of GRE, VXLAN and GENEVE, and `icmpv6 taddr`
//! and `daddr`: it lists fields of GRE as raw payload (`@th,...`) and cannot list fields inside a tunnel.

use std::fmt;

use crate::datatype::{DataType, Order};
use crate::expr::{InnerType, PayloadBase};
use crate::key::Part;

/// A named field of a packet header: `ip daddr`, `tcp flags`, `th dport`.
///
/// Only the fields that are constants of this type exist.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Payload {
    /// nft's numbers of the header and of its field, stored in the user data of `typeof` sets.
    header: u8,
    index: u8,
}

struct Row {
    protocol: &'static str,
    field: &'static str,
    base: PayloadBase,
    /// Offset from the start of the header, in bits.
    offset: u16,
    bits: u16,
    of: DataType,
    id: Payload,
}

macro_rules! fields {
    ($($base:ident $header:literal $protocol:literal {
        $($konst:ident $field:literal $index:literal: $offset:literal, $bits:literal, $of:ident;)* })*) => {
        impl Payload {
            $($(
                #[doc = concat!("`", $protocol, " ", $field, "`.")]
                pub const $konst: Self = Self { header: $header, index: $index };
            )*)*

            /// All fields, ordered by header. If several have the same place, the one that nft lists comes
            /// first.
            pub const ALL: &'static [Self] = &[$($(Self::$konst),*),*];
        }

        const ROWS: &[Row] = &[$($(Row {
            protocol: $protocol, field: $field, base: PayloadBase::$base, offset: $offset, bits: $bits,
                of: DataType::$of,
            id: Payload::$konst,
        }),*),*];
    };
}

fields! {
    LINK 17 "ether" {
        ETHER_DADDR "daddr" 1: 0, 48, ETHER_ADDR;
        ETHER_SADDR "saddr" 2: 48, 48, ETHER_ADDR;
        ETHER_TYPE "type" 3: 96, 16, ETHER_TYPE;
    }
    LINK 16 "vlan" {
        VLAN_PCP "pcp" 1: 112, 3, INTEGER;
        VLAN_DEI "dei" 2: 115, 1, INTEGER;
        VLAN_CFI "cfi" 3: 115, 1, INTEGER;
        VLAN_ID "id" 4: 116, 12, INTEGER;
        VLAN_TYPE "type" 5: 128, 16, ETHER_TYPE;
    }
    NETWORK 15 "arp" {
        ARP_HTYPE "htype" 1: 0, 16, INTEGER;
        ARP_PTYPE "ptype" 2: 16, 16, ETHER_TYPE;
        ARP_HLEN "hlen" 3: 32, 8, INTEGER;
        ARP_PLEN "plen" 4: 40, 8, INTEGER;
        ARP_OPERATION "operation" 5: 48, 16, ARP_OP;
        ARP_SADDR_ETHER "saddr ether" 6: 64, 48, ETHER_ADDR;
        ARP_SADDR_IP "saddr ip" 7: 112, 32, IPV4_ADDR;
        ARP_DADDR_ETHER "daddr ether" 8: 144, 48, ETHER_ADDR;
        ARP_DADDR_IP "daddr ip" 9: 192, 32, IPV4_ADDR;
    }
    NETWORK 12 "ip" {
        IP_VERSION "version" 1: 0, 4, INTEGER;
        IP_HDRLENGTH "hdrlength" 2: 4, 4, INTEGER;
        IP_DSCP "dscp" 3: 8, 6, DSCP;
        IP_ECN "ecn" 4: 14, 2, ECN;
        IP_LENGTH "length" 5: 16, 16, INTEGER;
        IP_ID "id" 6: 32, 16, INTEGER;
        IP_FRAG_OFF "frag-off" 7: 48, 16, INTEGER;
        IP_TTL "ttl" 8: 64, 8, INTEGER;
        IP_PROTOCOL "protocol" 9: 72, 8, INET_PROTO;
        IP_CHECKSUM "checksum" 10: 80, 16, INTEGER;
        IP_SADDR "saddr" 11: 96, 32, IPV4_ADDR;
        IP_DADDR "daddr" 12: 128, 32, IPV4_ADDR;
    }
    NETWORK 13 "ip6" {
        IP6_VERSION "version" 1: 0, 4, INTEGER;
        IP6_DSCP "dscp" 2: 4, 6, DSCP;
        IP6_ECN "ecn" 3: 10, 2, ECN;
        IP6_FLOWLABEL "flowlabel" 4: 12, 20, INTEGER;
        IP6_LENGTH "length" 5: 32, 16, INTEGER;
        IP6_NEXTHDR "nexthdr" 6: 48, 8, INET_PROTO;
        IP6_HOPLIMIT "hoplimit" 7: 56, 8, INTEGER;
        IP6_SADDR "saddr" 8: 64, 128, IPV6_ADDR;
        IP6_DADDR "daddr" 9: 192, 128, IPV6_ADDR;
    }
    TRANSPORT 4 "icmp" {
        ICMP_TYPE "type" 1: 0, 8, ICMP_TYPE;
        ICMP_CODE "code" 2: 8, 8, ICMP_CODE;
        ICMP_CHECKSUM "checksum" 3: 16, 16, INTEGER;
        ICMP_ID "id" 4: 32, 16, INTEGER;
        ICMP_SEQUENCE "sequence" 5: 48, 16, INTEGER;
        ICMP_GATEWAY "gateway" 6: 32, 32, INTEGER;
        ICMP_MTU "mtu" 7: 48, 16, INTEGER;
    }
    TRANSPORT 5 "igmp" {
        IGMP_TYPE "type" 1: 0, 8, IGMP_TYPE;
        IGMP_CHECKSUM "checksum" 2: 16, 16, INTEGER;
        IGMP_MRT "mrt" 3: 8, 8, INTEGER;
        IGMP_GROUP "group" 4: 32, 32, INTEGER;
    }
    TRANSPORT 14 "icmpv6" {
        ICMPV6_TYPE "type" 1: 0, 8, ICMPV6_TYPE;
        ICMPV6_CODE "code" 2: 8, 8, ICMPV6_CODE;
        ICMPV6_CHECKSUM "checksum" 3: 16, 16, INTEGER;
        ICMPV6_ID "id" 6: 32, 16, INTEGER;
        ICMPV6_SEQUENCE "sequence" 7: 48, 16, INTEGER;
        ICMPV6_PARAMETER_PROBLEM "parameter-problem" 4: 32, 32, INTEGER;
        ICMPV6_PACKET_TOO_BIG "mtu" 5: 32, 32, INTEGER;
        ICMPV6_MAX_DELAY "max-delay" 8: 32, 16, INTEGER;
        ICMPV6_TADDR "taddr" 9: 64, 128, IPV6_ADDR;
        ICMPV6_DADDR "daddr" 10: 192, 128, IPV6_ADDR;
    }
    TRANSPORT 8 "tcp" {
        TCP_SPORT "sport" 1: 0, 16, INET_SERVICE;
        TCP_DPORT "dport" 2: 16, 16, INET_SERVICE;
        TCP_SEQUENCE "sequence" 3: 32, 32, INTEGER;
        TCP_ACKSEQ "ackseq" 4: 64, 32, INTEGER;
        TCP_DOFF "doff" 5: 96, 4, INTEGER;
        TCP_RESERVED "reserved" 6: 100, 4, INTEGER;
        TCP_FLAGS "flags" 7: 104, 8, TCP_FLAG;
        TCP_WINDOW "window" 8: 112, 16, INTEGER;
        TCP_CHECKSUM "checksum" 9: 128, 16, INTEGER;
        TCP_URGPTR "urgptr" 10: 144, 16, INTEGER;
    }
    TRANSPORT 6 "udp" {
        UDP_SPORT "sport" 1: 0, 16, INET_SERVICE;
        UDP_DPORT "dport" 2: 16, 16, INET_SERVICE;
        UDP_LENGTH "length" 3: 32, 16, INTEGER;
        UDP_CHECKSUM "checksum" 4: 48, 16, INTEGER;
    }
    TRANSPORT 7 "udplite" {
        UDPLITE_SPORT "sport" 1: 0, 16, INET_SERVICE;
        UDPLITE_DPORT "dport" 2: 16, 16, INET_SERVICE;
        UDPLITE_CSUMCOV "csumcov" 3: 32, 16, INTEGER;
        UDPLITE_CHECKSUM "checksum" 4: 48, 16, INTEGER;
    }
    TRANSPORT 10 "sctp" {
        SCTP_SPORT "sport" 1: 0, 16, INET_SERVICE;
        SCTP_DPORT "dport" 2: 16, 16, INET_SERVICE;
        SCTP_VTAG "vtag" 3: 32, 32, INTEGER;
        SCTP_CHECKSUM "checksum" 4: 64, 32, INTEGER;
    }
    TRANSPORT 9 "dccp" {
        DCCP_SPORT "sport" 1: 0, 16, INET_SERVICE;
        DCCP_DPORT "dport" 2: 16, 16, INET_SERVICE;
        DCCP_TYPE "type" 3: 67, 4, DCCP_PKTTYPE;
    }
    TRANSPORT 1 "ah" {
        AH_NEXTHDR "nexthdr" 1: 0, 8, INET_PROTO;
        AH_HDRLENGTH "hdrlength" 2: 8, 8, INTEGER;
        AH_RESERVED "reserved" 3: 16, 16, INTEGER;
        AH_SPI "spi" 4: 32, 32, INTEGER;
        AH_SEQUENCE "sequence" 5: 64, 32, INTEGER;
    }
    TRANSPORT 2 "esp" {
        ESP_SPI "spi" 1: 0, 32, INTEGER;
        ESP_SEQUENCE "sequence" 2: 32, 32, INTEGER;
    }
    TRANSPORT 3 "comp" {
        COMP_NEXTHDR "nexthdr" 1: 0, 8, INET_PROTO;
        COMP_FLAGS "flags" 2: 8, 8, BITMASK;
        COMP_CPI "cpi" 3: 16, 16, INTEGER;
    }
    TRANSPORT 11 "th" {
        TH_SPORT "sport" 1: 0, 16, INET_SERVICE;
        TH_DPORT "dport" 2: 16, 16, INET_SERVICE;
    }
    TRANSPORT 20 "gre" {
        GRE_FLAGS "flags" 2: 0, 5, INTEGER;
        GRE_VERSION "version" 1: 13, 3, INTEGER;
        GRE_PROTOCOL "protocol" 3: 16, 16, ETHER_TYPE;
    }
    TUNNEL 18 "vxlan" {
        VXLAN_FLAGS "flags" 2: 0, 8, BITMASK;
        VXLAN_VNI "vni" 1: 32, 24, INTEGER;
    }
    TUNNEL 19 "geneve" {
        GENEVE_TYPE "type" 2: 16, 16, ETHER_TYPE;
        GENEVE_VNI "vni" 1: 32, 24, INTEGER;
    }
}

impl Payload {
    /// Returns the field with this name: `find("ip", "daddr")`.
    #[must_use]
    pub fn find(protocol: &str, field: &str) -> Option<Self> {
        ROWS.iter().find(|row| row.protocol == protocol && row.field == field).map(|row| row.id)
    }

    /// Returns the name of the header: `ip`.
    #[must_use]
    pub fn protocol(self) -> &'static str {
        self.row().protocol
    }

    /// Returns the name of the field: `daddr`.
    #[must_use]
    pub fn field(self) -> &'static str {
        self.row().field
    }

    /// Returns the kernel's name for the start of the header (`NFTA_PAYLOAD_BASE`).
    #[must_use]
    pub fn base(self) -> PayloadBase {
        self.row().base
    }

    /// Returns the offset of the field from the start of the header, in bits.
    #[must_use]
    pub fn offset(self) -> u16 {
        self.row().offset
    }

    /// Returns the length of the field in bits.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.row().bits
    }

    /// Returns the data type of the field.
    #[must_use]
    pub fn data_type(self) -> DataType {
        self.row().of
    }

    /// Returns the type of the field as a part of a key.
    #[must_use]
    pub fn part(self) -> Part {
        match self.row().of {
            DataType::INTEGER => Part::Integer {
                bytes: u8::try_from(self.row().bits.div_ceil(8)).unwrap_or(16),
                order: Order::Network,
            },
            of => Part::Type(of),
        }
    }

    /// Returns the transport protocol of the header; `None` for headers of other layers, and for `th`, which
    /// stands for any transport protocol.
    #[must_use]
    pub fn transport(self) -> Option<u8> {
        TRANSPORTS.iter().find(|(name, _)| *name == self.protocol()).map(|(_, number)| *number)
    }

    /// Returns the name of the header of a transport protocol: `udp` for 17.
    #[must_use]
    pub fn protocol_of(transport: u8) -> Option<&'static str> {
        TRANSPORTS.iter().find(|(_, number)| *number == transport).map(|(name, _)| *name)
    }

    /// Returns the ICMP message types that have this field; empty if all have it. If a rule does not match
    /// the type, nft adds such a match.
    #[must_use]
    pub fn icmp_types(self) -> &'static [u8] {
        match self {
            Self::ICMP_ID | Self::ICMP_SEQUENCE => &[8, 0],
            Self::ICMP_GATEWAY => &[5],
            Self::ICMP_MTU => &[3],
            Self::ICMPV6_ID | Self::ICMPV6_SEQUENCE => &[128, 129],
            Self::ICMPV6_PARAMETER_PROBLEM => &[4],
            Self::ICMPV6_PACKET_TOO_BIG => &[2],
            Self::ICMPV6_MAX_DELAY => &[130],
            Self::ICMPV6_TADDR => &[130, 131, 132, 135, 136, 137],
            Self::ICMPV6_DADDR => &[137],
            _ => &[],
        }
    }

    /// Returns whether messages of this ICMP type have the field.
    pub(crate) fn is_of_icmp_type(self, of: u8) -> bool {
        self.icmp_types().is_empty() || self.icmp_types().contains(&of)
    }

    /// Returns nft's numbers of the header and of the field.
    pub(crate) fn numbers(self) -> (u8, u8) {
        (self.header, self.index)
    }

    /// Returns the field with nft's numbers of its header and of itself.
    #[cfg(feature = "text")]
    pub(crate) fn from_numbers(header: u8, index: u8) -> Option<Self> {
        let field = Self { header, index };
        (field.row().id == field).then_some(field)
    }

    fn row(self) -> &'static Row {
        // Values of this type are only created from the rows.
        let place = PLACES.get(usize::from(self.header)).and_then(|of| of.get(usize::from(self.index)));
        place.and_then(|place| ROWS.get(*place)).unwrap_or(&ROWS[0])
    }
}

/// The index of each field's row, by nft's numbers of header and field.
static PLACES: [[usize; 16]; 32] = {
    let mut places = [[0; 16]; 32];
    let mut at = 0;
    while at < ROWS.len() {
        places[ROWS[at].id.header as usize][ROWS[at].id.index as usize] = at;
        at += 1;
    }
    places
};

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Formats the field in nft's syntax.
impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.row().protocol, self.row().field)
    }
}

/// The headers of transport protocols, by protocol number (`IPPROTO_*` of `linux/in.h`).
const TRANSPORTS: &[(&str, u8)] = &[
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("comp", 108),
    ("sctp", 132),
    ("udplite", 136),
];

/// Returns the tunnel to whose own header a field belongs.
pub(crate) fn tunnel_of(field: Payload) -> Option<InnerType> {
    match field.protocol() {
        "vxlan" => Some(InnerType::VXLAN),
        "geneve" => Some(InnerType::GENEVE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_name() {
        for field in Payload::ALL {
            assert_eq!(Payload::find(field.protocol(), field.field()), Some(*field));
        }
    }

    #[test]
    fn every_transport_header_but_any_has_a_number() {
        for field in Payload::ALL.iter().filter(|field| field.base() == PayloadBase::TRANSPORT) {
            let name = field.transport().and_then(Payload::protocol_of);
            assert_eq!(name.unwrap_or("th"), field.protocol());
        }
    }
}
