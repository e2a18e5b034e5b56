//! IPv6 extension headers, IP and TCP options and SCTP chunks: the names of nft(8), "EXTENSION HEADER EXPRESSIONS".

use std::fmt;

use crate::datatype::{DataType, Order};
use crate::expr::ExthdrOp;
use crate::key::Part;

/// A field of an extension header, option or chunk (`frag more-fragments`, `tcp option maxseg size`), or, without a field,
/// whether there is one (`exthdr frag`, `tcp option sack-perm`).
#[derive(Clone, Copy)]
pub struct Exthdr(&'static Row);

struct Row {
    op: ExthdrOp,
    header: &'static str,
    kind: u8,
    /// Empty for the header itself.
    field: &'static str,
    /// In bits.
    offset: u16,
    bits: u16,
    of: DataType,
    /// nft's number of the header and of the field, kept in the user data of `typeof` sets.
    numbers: (u8, u8),
}

macro_rules! headers {
    ($($op:ident $header:literal $kind:literal $number:literal { $($field:literal $index:literal: $offset:literal, $bits:literal, $of:ident;)* })*) => {
        const ROWS: &[Row] = &[$(
            Row { op: ExthdrOp::$op, header: $header, kind: $kind, field: "", offset: 0, bits: 8, of: DataType::BOOLEAN, numbers: ($number, 0) },
            $(Row { op: ExthdrOp::$op, header: $header, kind: $kind, field: $field, offset: $offset, bits: $bits, of: DataType::$of, numbers: ($number, $index) },)*
        )*];
    };
}

headers! {
    IPV6 "hbh" 0 1 { "nexthdr" 1: 0, 8, INET_PROTO; "hdrlength" 2: 8, 8, INTEGER; }
    IPV6 "rt" 43 2 { "nexthdr" 1: 0, 8, INET_PROTO; "hdrlength" 2: 8, 8, INTEGER; "type" 3: 16, 8, INTEGER; "seg-left" 4: 24, 8, INTEGER; }
    IPV6 "frag" 44 6 {
        "nexthdr" 1: 0, 8, INET_PROTO; "reserved" 2: 8, 8, INTEGER; "frag-off" 3: 16, 13, INTEGER; "reserved2" 4: 29, 2, INTEGER;
        "more-fragments" 5: 31, 1, INTEGER; "id" 6: 32, 32, INTEGER;
    }
    IPV6 "dst" 60 7 { "nexthdr" 1: 0, 8, INET_PROTO; "hdrlength" 2: 8, 8, INTEGER; }
    IPV6 "mh" 135 8 {
        "nexthdr" 1: 0, 8, INET_PROTO; "hdrlength" 2: 8, 8, INTEGER; "type" 3: 16, 8, MH_TYPE; "reserved" 4: 24, 8, INTEGER;
        "checksum" 5: 32, 16, INTEGER;
    }
    TCPOPT "eol" 0 0 { "kind" 0: 0, 8, INTEGER; }
    TCPOPT "nop" 1 1 { "kind" 0: 0, 8, INTEGER; }
    TCPOPT "maxseg" 2 2 { "kind" 0: 0, 8, INTEGER; "length" 1: 8, 8, INTEGER; "size" 2: 16, 16, INTEGER; }
    TCPOPT "window" 3 3 { "kind" 0: 0, 8, INTEGER; "length" 1: 8, 8, INTEGER; "count" 2: 16, 8, INTEGER; }
    TCPOPT "sack-perm" 4 4 { "kind" 0: 0, 8, INTEGER; "length" 1: 8, 8, INTEGER; }
    TCPOPT "sack" 5 5 { "kind" 0: 0, 8, INTEGER; "length" 1: 8, 8, INTEGER; "left" 2: 16, 32, INTEGER; "right" 3: 48, 32, INTEGER; }
    TCPOPT "timestamp" 8 8 { "kind" 0: 0, 8, INTEGER; "length" 1: 8, 8, INTEGER; "tsval" 2: 16, 32, INTEGER; "tsecr" 3: 48, 32, INTEGER; }
    TCPOPT "md5sig" 19 19 { "kind" 0: 0, 8, INTEGER; "length" 1: 8, 8, INTEGER; }
    TCPOPT "mptcp" 30 30 { "kind" 0: 0, 8, INTEGER; "length" 1: 8, 8, INTEGER; "subtype" 2: 16, 4, INTEGER; }
    TCPOPT "fastopen" 34 34 { "kind" 0: 0, 8, INTEGER; "length" 1: 8, 8, INTEGER; }
    IPV4 "lsrr" 131 131 { "type" 1: 0, 8, INTEGER; "length" 2: 8, 8, INTEGER; "value" 3: 24, 32, INTEGER; "ptr" 4: 16, 8, INTEGER; "addr" 5: 24, 32, INTEGER; }
    IPV4 "rr" 7 7 { "type" 1: 0, 8, INTEGER; "length" 2: 8, 8, INTEGER; "ptr" 4: 16, 8, INTEGER; "addr" 5: 24, 32, INTEGER; }
    IPV4 "ssrr" 137 137 { "type" 1: 0, 8, INTEGER; "length" 2: 8, 8, INTEGER; "ptr" 4: 16, 8, INTEGER; "addr" 5: 24, 32, INTEGER; }
    IPV4 "ra" 148 148 { "type" 1: 0, 8, INTEGER; "length" 2: 8, 8, INTEGER; "value" 3: 16, 16, INTEGER; }
    SCTP "data" 0 0 {
        "type" 0: 0, 8, INTEGER; "flags" 1: 8, 8, INTEGER; "length" 2: 16, 16, INTEGER; "tsn" 3: 32, 32, INTEGER;
        "stream" 4: 64, 16, INTEGER; "ssn" 5: 80, 16, INTEGER; "ppid" 6: 96, 32, INTEGER;
    }
    SCTP "init" 1 1 {
        "type" 0: 0, 8, INTEGER; "flags" 1: 8, 8, INTEGER; "length" 2: 16, 16, INTEGER; "init-tag" 3: 32, 32, INTEGER;
        "a-rwnd" 4: 64, 32, INTEGER; "num-outbound-streams" 5: 96, 16, INTEGER; "num-inbound-streams" 6: 112, 16, INTEGER;
        "initial-tsn" 7: 128, 32, INTEGER;
    }
    SCTP "init-ack" 2 2 { "type" 0: 0, 8, INTEGER; "flags" 1: 8, 8, INTEGER; "length" 2: 16, 16, INTEGER; "init-tag" 3: 32, 32, INTEGER; }
    SCTP "sack" 3 3 { "type" 0: 0, 8, INTEGER; "flags" 1: 8, 8, INTEGER; "length" 2: 16, 16, INTEGER; "cum-tsn-ack" 3: 32, 32, INTEGER; }
    SCTP "heartbeat" 4 4 { "type" 0: 0, 8, INTEGER; "flags" 1: 8, 8, INTEGER; "length" 2: 16, 16, INTEGER; }
    SCTP "heartbeat-ack" 5 5 { "type" 0: 0, 8, INTEGER; "flags" 1: 8, 8, INTEGER; "length" 2: 16, 16, INTEGER; }
    SCTP "abort" 6 6 { "type" 0: 0, 8, INTEGER; "flags" 1: 8, 8, INTEGER; "length" 2: 16, 16, INTEGER; }
    SCTP "shutdown" 7 7 { "type" 0: 0, 8, INTEGER; "flags" 1: 8, 8, INTEGER; "length" 2: 16, 16, INTEGER; "cum-tsn-ack" 3: 32, 32, INTEGER; }
    SCTP "shutdown-ack" 8 8 { "type" 0: 0, 8, INTEGER; "flags" 1: 8, 8, INTEGER; "length" 2: 16, 16, INTEGER; }
    SCTP "error" 9 9 { "type" 0: 0, 8, INTEGER; "flags" 1: 8, 8, INTEGER; "length" 2: 16, 16, INTEGER; }
    SCTP "cookie-echo" 10 10 { "type" 0: 0, 8, INTEGER; "flags" 1: 8, 8, INTEGER; "length" 2: 16, 16, INTEGER; }
    SCTP "cookie-ack" 11 11 { "type" 0: 0, 8, INTEGER; "flags" 1: 8, 8, INTEGER; "length" 2: 16, 16, INTEGER; }
}

impl Exthdr {
    /// The field with these names: `find(ExthdrOp::TCPOPT, "maxseg", "size")`; an empty field asks for the header's presence.
    #[must_use]
    pub fn find(op: ExthdrOp, header: &str, field: &str) -> Option<Self> {
        Self::all().find(|e| e.0.op == op && e.0.header == header && e.0.field == field)
    }

    /// The field at this place.
    #[must_use]
    pub fn at(op: ExthdrOp, kind: u8, offset: u16, bits: u16, presence: bool) -> Option<Self> {
        Self::all().find(|e| {
            let row = e.0;
            (row.op, row.kind, row.field.is_empty()) == (op, kind, presence)
                && (presence || (row.offset, row.bits) == (offset, bits))
        })
    }

    /// Every field that has a name.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(Self)
    }

    /// Which sort of header.
    #[must_use]
    pub fn op(self) -> ExthdrOp {
        self.0.op
    }

    /// The header's type: the protocol's number, or the option's.
    #[must_use]
    pub fn kind(self) -> u8 {
        self.0.kind
    }

    /// True where only the presence of the header is asked for.
    #[must_use]
    pub fn is_presence(self) -> bool {
        self.0.field.is_empty()
    }

    /// Bits between the start of the header and the field.
    #[must_use]
    pub fn offset(self) -> u16 {
        self.0.offset
    }

    /// Bits of the field.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0.bits
    }

    /// The type of the value.
    #[must_use]
    pub fn part(self) -> Part {
        match self.0.of {
            DataType::INTEGER => Part::Integer {
                bytes: u8::try_from(self.0.bits.div_ceil(8)).unwrap_or(16),
                order: Order::Network,
            },
            of => Part::Type(of),
        }
    }

    pub(crate) fn numbers(self) -> (u8, u8) {
        self.0.numbers
    }
}

impl PartialEq for Exthdr {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Exthdr {}

impl fmt::Debug for Exthdr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// As nft writes it.
impl fmt::Display for Exthdr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { op, header, field, .. } = self.0;
        match (*op, field.is_empty()) {
            (ExthdrOp::IPV6, true) => write!(f, "exthdr {header}"),
            (ExthdrOp::IPV6, false) => write!(f, "{header} {field}"),
            (op, true) => write!(f, "{op} {header}"),
            (op, false) => write!(f, "{op} {header} {field}"),
        }
    }
}
