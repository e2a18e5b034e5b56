//! IPv6 extension headers, IP, TCP and DCCP options and SCTP chunks: the names of nft(8), "EXTENSION HEADER
//! EXPRESSIONS".

use std::fmt;

use crate::datatype::{DataType, Order};
use crate::expr::ExthdrOp;
use crate::key::Part;

/// A field of an extension header, option or chunk (`frag more-fragments`, `tcp option maxseg size`), or
/// without a field, the test for its presence (`exthdr frag`, `tcp option sack-perm`).
///
/// nft has names for the first two of the addresses in a routing header.
///
/// The names are those of nft 1.1; nft 1.0.6 lacks `rt2 addr` and the DCCP options. The types are those of
/// nft 1.0.6, in which the addresses of `ip option` and the subtypes of `tcp option mptcp` are numbers; later
/// versions accept numbers too. TCP and DCCP options can also be given by number.
///
/// ```
/// use sluicegate_nftables::expr::ExthdrOp;
/// use sluicegate_nftables::lang::exthdr::Exthdr;
///
/// let size = Exthdr::find(ExthdrOp::TCPOPT, "maxseg", "size").unwrap();
/// assert_eq!((size.kind(), size.offset(), size.bits()), (2, 16, 16));
/// assert_eq!(size.to_string(), "tcp option maxseg size");
/// assert_eq!(Exthdr::tcp_option(253).to_string(), "tcp option 253");
/// assert_eq!(Exthdr::tcp_option_at(253, 16, 32).to_string(), "tcp option @253,16,32");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Exthdr(Place);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Named(&'static Header, &'static Field),
    /// An option by its number: a range of bits, or the presence of the option.
    Option {
        op: ExthdrOp,
        kind: u8,
        at: Option<(u16, u16)>,
    },
}

#[derive(PartialEq, Eq, Hash)]
struct Header {
    op: ExthdrOp,
    name: &'static str,
    kind: u8,
    /// nft's number of the header, stored in the user data of `typeof` sets.
    number: u8,
    /// The fields that all headers of this kind have, and those that only this one has.
    fields: [&'static [Field]; 2],
}

#[derive(PartialEq, Eq, Hash)]
struct Field {
    /// The name of the field; empty for the header itself.
    name: &'static str,
    /// nft's number of the field, stored in the user data of `typeof` sets.
    index: u8,
    /// Offset in bits.
    offset: u16,
    bits: u16,
    of: DataType,
}

macro_rules! fields {
    ($($name:literal $index:literal: $offset:literal, $bits:literal, $of:ident;)*) => {
        &[$(Field { name: $name, index: $index, offset: $offset, bits: $bits, of: DataType::$of }),*]
    };
}

macro_rules! headers {
    ($($op:ident $name:literal $kind:literal $number:literal $common:ident { $($field:tt)* })*) => {
        const HEADERS: &[Header] = &[$(Header {
            op: ExthdrOp::$op, name: $name, kind: $kind, number: $number,
            fields: [$common, fields!($($field)*)],
        }),*];
    };
}

headers! {
    IPV6 "hbh" 0 1 IPV6 {}
    IPV6 "rt" 43 2 IPV6 { "type" 3: 16, 8, INTEGER; "seg-left" 4: 24, 8, INTEGER; }
    IPV6 "srh" 43 5 NONE {
        "last-entry" 1: 32, 8, INTEGER; "flags" 2: 40, 8, INTEGER; "tag" 3: 48, 16, INTEGER;
        "sid[1]" 4: 64, 128, IPV6_ADDR;
        "sid[2]" 5: 192, 128, IPV6_ADDR;
    }
    IPV6 "rt0" 43 3 NONE { "addr[1]" 2: 64, 128, IPV6_ADDR; "addr[2]" 3: 192, 128, IPV6_ADDR; }
    IPV6 "rt2" 43 4 NONE { "addr" 2: 64, 128, IPV6_ADDR; }
    IPV6 "frag" 44 6 NONE {
        "nexthdr" 1: 0, 8, INET_PROTO; "reserved" 2: 8, 8, INTEGER; "frag-off" 3: 16, 13, INTEGER;
        "reserved2" 4: 29, 2, INTEGER;
        "more-fragments" 5: 31, 1, INTEGER; "id" 6: 32, 32, INTEGER;
    }
    IPV6 "dst" 60 7 IPV6 {}
    IPV6 "mh" 135 8 IPV6 { "type" 3: 16, 8, MH_TYPE; "reserved" 4: 24, 8, INTEGER;
        "checksum" 5: 32, 16, INTEGER; }

    TCPOPT "eol" 0 0 NONE { "kind" 0: 0, 8, INTEGER; }
    TCPOPT "nop" 1 1 NONE { "kind" 0: 0, 8, INTEGER; }
    TCPOPT "maxseg" 2 2 OPTION { "size" 2: 16, 16, INTEGER; }
    TCPOPT "window" 3 3 OPTION { "count" 2: 16, 8, INTEGER; }
    TCPOPT "sack-perm" 4 4 OPTION {}
    TCPOPT "sack" 5 5 OPTION { "left" 2: 16, 32, INTEGER; "right" 3: 48, 32, INTEGER; }
    TCPOPT "sack1" 5 5 NONE { "left" 4: 80, 32, INTEGER; "right" 5: 112, 32, INTEGER; }
    TCPOPT "sack2" 5 5 NONE { "left" 6: 144, 32, INTEGER; "right" 7: 176, 32, INTEGER; }
    TCPOPT "sack3" 5 5 NONE { "left" 8: 208, 32, INTEGER; "right" 9: 240, 32, INTEGER; }
    TCPOPT "timestamp" 8 8 OPTION { "tsval" 2: 16, 32, INTEGER; "tsecr" 3: 48, 32, INTEGER; }
    TCPOPT "md5sig" 19 19 OPTION {}
    TCPOPT "mptcp" 30 30 OPTION { "subtype" 2: 16, 4, INTEGER; }
    TCPOPT "fastopen" 34 34 OPTION {}

    IPV4 "lsrr" 131 131 ROUTE {}
    IPV4 "rr" 7 7 ROUTE {}
    IPV4 "ssrr" 137 137 ROUTE {}
    IPV4 "ra" 148 148 NONE { "type" 1: 0, 8, INTEGER; "length" 2: 8, 8, INTEGER; "value" 3: 16, 16, INTEGER; }

    SCTP "data" 0 0 CHUNK {
        "tsn" 3: 32, 32, INTEGER; "stream" 4: 64, 16, INTEGER; "ssn" 5: 80, 16, INTEGER;
        "ppid" 6: 96, 32, INTEGER;
    }
    SCTP "init" 1 1 CHUNK {
        "init-tag" 3: 32, 32, INTEGER; "a-rwnd" 4: 64, 32, INTEGER; "num-outbound-streams" 5: 96, 16, INTEGER;
        "num-inbound-streams" 6: 112, 16, INTEGER; "initial-tsn" 7: 128, 32, INTEGER;
    }
    SCTP "init-ack" 2 2 CHUNK {
        "init-tag" 3: 32, 32, INTEGER; "a-rwnd" 4: 64, 32, INTEGER; "num-outbound-streams" 5: 96, 16, INTEGER;
        "num-inbound-streams" 6: 112, 16, INTEGER; "initial-tsn" 7: 128, 32, INTEGER;
    }
    SCTP "sack" 3 3 CHUNK {
        "cum-tsn-ack" 3: 32, 32, INTEGER; "a-rwnd" 4: 64, 32, INTEGER;
        "num-gap-ack-blocks" 5: 96, 16, INTEGER;
        "num-dup-tsns" 6: 112, 16, INTEGER;
    }
    SCTP "heartbeat" 4 4 CHUNK {}
    SCTP "heartbeat-ack" 5 5 CHUNK {}
    SCTP "abort" 6 6 CHUNK {}
    SCTP "shutdown" 7 7 CHUNK { "cum-tsn-ack" 3: 32, 32, INTEGER; }
    SCTP "shutdown-ack" 8 8 CHUNK {}
    SCTP "error" 9 9 CHUNK {}
    SCTP "cookie-echo" 10 10 CHUNK {}
    SCTP "cookie-ack" 11 11 CHUNK {}
    SCTP "ecne" 12 12 CHUNK { "lowest-tsn" 3: 32, 32, INTEGER; }
    SCTP "cwr" 13 13 CHUNK { "lowest-tsn" 3: 32, 32, INTEGER; }
    SCTP "shutdown-complete" 14 14 CHUNK {}
    SCTP "asconf-ack" 128 128 CHUNK { "seqno" 3: 32, 32, INTEGER; }
    SCTP "forward-tsn" 192 192 CHUNK { "new-cum-tsn" 3: 32, 32, INTEGER; }
    SCTP "asconf" 193 193 CHUNK { "seqno" 3: 32, 32, INTEGER; }
}

const NONE: &[Field] = &[];
const IPV6: &[Field] = fields! { "nexthdr" 1: 0, 8, INET_PROTO; "hdrlength" 2: 8, 8, INTEGER; };
const OPTION: &[Field] = fields! { "kind" 0: 0, 8, INTEGER; "length" 1: 8, 8, INTEGER; };
const ROUTE: &[Field] = fields! {
    "type" 1: 0, 8, INTEGER; "length" 2: 8, 8, INTEGER; "ptr" 4: 16, 8, INTEGER; "addr" 5: 24, 32, INTEGER;
};
const CHUNK: &[Field] =
    fields! { "type" 0: 0, 8, INTEGER; "flags" 1: 8, 8, INTEGER; "length" 2: 16, 16, INTEGER; };
const PRESENCE: &Field = &Field { name: "", index: 0, offset: 0, bits: 8, of: DataType::BOOLEAN };

impl Exthdr {
    /// Returns the field with these names: `find(ExthdrOp::TCPOPT, "maxseg", "size")`; an empty field name is
    /// the test for the header's presence.
    ///
    /// Accepts nft's alternative names too: `mss`, `noop`, `sack-permitted`, `sack0`.
    #[must_use]
    pub fn find(op: ExthdrOp, header: &str, field: &str) -> Option<Self> {
        let header = match (op, header, field) {
            (ExthdrOp::TCPOPT, "mss", _) => "maxseg",
            (ExthdrOp::TCPOPT, "noop", _) => "nop",
            (ExthdrOp::TCPOPT, "sack-permitted", _) => "sack-perm",
            (ExthdrOp::TCPOPT, "sack0", _) => "sack",
            // A packet has one SACK option; the numbers select one of its blocks.
            (ExthdrOp::TCPOPT, "sack1" | "sack2" | "sack3", "" | "kind" | "length") => "sack",
            (_, header, _) => header,
        };
        let header = HEADERS.iter().find(|h| h.op == op && h.name == header)?;
        header.all().find(|e| e.field().name == field)
    }

    /// Returns the test for the presence of a TCP option: `tcp option 253 exists`. An option with a name is
    /// printed by its name.
    #[must_use]
    pub fn tcp_option(kind: u8) -> Self {
        Self::option(ExthdrOp::TCPOPT, kind, None)
    }

    /// Returns bits of a TCP option, `tcp option @kind,offset,bits`; the offset is counted in bits from the
    /// start of the option. If these bits are a named field, returns that.
    #[must_use]
    pub fn tcp_option_at(kind: u8, offset: u16, bits: u16) -> Self {
        Self::option(ExthdrOp::TCPOPT, kind, Some((offset, bits)))
    }

    /// Returns the test for the presence of a DCCP option: `dccp option 3 exists` (Linux 6.4 with
    /// `NFT_EXTHDR_DCCP`, nft 1.0.8).
    #[must_use]
    pub fn dccp_option(kind: u8) -> Self {
        Self::option(ExthdrOp::DCCP, kind, None)
    }

    pub(crate) fn option(op: ExthdrOp, kind: u8, at: Option<(u16, u16)>) -> Self {
        let (offset, bits) = at.unwrap_or_default();
        Self::named(op, kind, offset, bits, at.is_none()).unwrap_or(Self(Place::Option { op, kind, at }))
    }

    /// Returns the field with this offset and length.
    #[must_use]
    pub fn at(op: ExthdrOp, kind: u8, offset: u16, bits: u16, presence: bool) -> Option<Self> {
        match op {
            ExthdrOp::TCPOPT if presence => Some(Self::tcp_option(kind)),
            ExthdrOp::TCPOPT => Some(Self::tcp_option_at(kind, offset, bits)),
            ExthdrOp::DCCP if presence => Some(Self::dccp_option(kind)),
            _ => Self::named(op, kind, offset, bits, presence),
        }
    }

    fn named(op: ExthdrOp, kind: u8, offset: u16, bits: u16, presence: bool) -> Option<Self> {
        Self::all().find(|e| {
            (e.op(), e.kind(), e.is_presence()) == (op, kind, presence)
                && (presence || (e.offset(), e.bits()) == (offset, bits))
        })
    }

    /// Returns all named fields. If several have the same place, the one that nft lists comes first.
    pub fn all() -> impl Iterator<Item = Self> {
        HEADERS.iter().flat_map(Header::all)
    }

    /// Returns the kind of header.
    #[must_use]
    pub fn op(self) -> ExthdrOp {
        match self.0 {
            Place::Named(header, _) => header.op,
            Place::Option { op, .. } => op,
        }
    }

    /// Returns the type of the header or option (`NFTA_EXTHDR_TYPE`).
    #[must_use]
    pub fn kind(self) -> u8 {
        match self.0 {
            Place::Named(header, _) => header.kind,
            Place::Option { kind, .. } => kind,
        }
    }

    /// Returns the name of the header; `None` for an option that has only a number.
    #[must_use]
    pub fn header(self) -> Option<&'static str> {
        match self.0 {
            Place::Named(header, _) => Some(header.name),
            Place::Option { .. } => None,
        }
    }

    /// Returns the name of the field; empty for the test of presence, and for bits of an option without a
    /// name.
    #[must_use]
    pub fn field_name(self) -> &'static str {
        match self.0 {
            Place::Named(_, field) => field.name,
            Place::Option { .. } => "",
        }
    }

    /// Returns `true` for the test of presence.
    #[must_use]
    pub fn is_presence(self) -> bool {
        match self.0 {
            Place::Named(_, field) => field.name.is_empty(),
            Place::Option { at, .. } => at.is_none(),
        }
    }

    /// Returns the offset of the field from the start of the header, in bits.
    #[must_use]
    pub fn offset(self) -> u16 {
        match self.0 {
            Place::Named(_, field) => field.offset,
            Place::Option { at, .. } => at.map_or(0, |(offset, _)| offset),
        }
    }

    /// Returns the length of the field in bits.
    #[must_use]
    pub fn bits(self) -> u16 {
        match self.0 {
            Place::Named(_, field) => field.bits,
            Place::Option { at, .. } => at.map_or(PRESENCE.bits, |(_, bits)| bits),
        }
    }

    /// Returns the type of the value.
    #[must_use]
    pub fn part(self) -> Part {
        match self.field().of {
            DataType::INTEGER => Part::Integer {
                bytes: u8::try_from(self.bits().div_ceil(8)).unwrap_or(16),
                order: Order::Network,
            },
            of => Part::Type(of),
        }
    }

    /// Returns nft's numbers of the header and of the field; `None` for bits without a name, which nft cannot
    /// store in user data.
    pub(crate) fn numbers(self) -> Option<(u8, u8)> {
        match self.0 {
            Place::Named(header, field) => Some((header.number, field.index)),
            Place::Option { kind, at: None, .. } => Some((kind, PRESENCE.index)),
            Place::Option { .. } => None,
        }
    }

    fn field(self) -> &'static Field {
        const RAW: &Field = &Field { name: "@", index: 0, offset: 0, bits: 0, of: DataType::INTEGER };
        match self.0 {
            Place::Named(_, field) => field,
            Place::Option { at: None, .. } => PRESENCE,
            Place::Option { .. } => RAW,
        }
    }
}

impl Header {
    fn all(&'static self) -> impl Iterator<Item = Exthdr> {
        let fields = self.fields.into_iter().flatten();
        self.asked_for()
            .then_some(PRESENCE)
            .into_iter()
            .chain(fields)
            .map(move |f| Exthdr(Place::Named(self, f)))
    }

    /// Returns whether `exthdr NAME` is valid: some names only denote fields of another header.
    fn asked_for(&self) -> bool {
        !matches!(self.name, "srh" | "rt0" | "rt2" | "sack1" | "sack2" | "sack3")
    }
}

impl fmt::Debug for Exthdr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Formats the field in nft's syntax.
impl fmt::Display for Exthdr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Place::Named(Header { op: ExthdrOp::IPV6, name, .. }, Field { name: "", .. }) => {
                write!(f, "exthdr {name}")
            }
            Place::Named(Header { op: ExthdrOp::IPV6, name, .. }, field) => {
                write!(f, "{name} {}", field.name)
            }
            Place::Named(Header { op, name, .. }, Field { name: "", .. }) => write!(f, "{op} {name}"),
            Place::Named(Header { op, name, .. }, field) => write!(f, "{op} {name} {}", field.name),
            Place::Option { op, kind, at: None } => write!(f, "{op} {kind}"),
            Place::Option { op, kind, at: Some((offset, bits)) } => write!(f, "{op} @{kind},{offset},{bits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_names_and_by_its_place() {
        for field in Exthdr::all() {
            let header = field.header().unwrap();
            assert_eq!(Exthdr::find(field.op(), header, field.field().name), Some(field));
            let at = Exthdr::at(field.op(), field.kind(), field.offset(), field.bits(), field.is_presence())
                .unwrap();
            // Routing headers of different types have fields at the same place: nft lists the newest type.
            assert!(at == field || matches!(header, "rt0" | "rt2"), "{field} is read as {at}");
        }
    }

    #[test]
    fn other_spellings_are_the_same_field() {
        let tcp = |header, field| Exthdr::find(ExthdrOp::TCPOPT, header, field).map(|e| e.to_string());
        assert_eq!(tcp("mss", "size").as_deref(), Some("tcp option maxseg size"));
        assert_eq!(tcp("sack0", "left").as_deref(), Some("tcp option sack left"));
        assert_eq!(tcp("sack2", "").as_deref(), Some("tcp option sack"));
        assert_eq!(tcp("sack2", "left").as_deref(), Some("tcp option sack2 left"));
        assert_eq!(tcp("sack2", "tsval"), None);
        assert_eq!(Exthdr::find(ExthdrOp::IPV6, "srh", ""), None, "nft has no `exthdr srh`");
    }

    #[test]
    fn options_without_a_name_go_by_number() {
        assert_eq!(Exthdr::tcp_option(4).to_string(), "tcp option sack-perm");
        assert_eq!(Exthdr::tcp_option_at(2, 16, 16).to_string(), "tcp option maxseg size");
        assert_eq!(Exthdr::tcp_option_at(5, 144, 32).to_string(), "tcp option sack2 left");
        assert_eq!(Exthdr::dccp_option(45).to_string(), "dccp option 45");
        assert_eq!(Exthdr::at(ExthdrOp::SCTP, 77, 0, 8, false), None);
    }
}
