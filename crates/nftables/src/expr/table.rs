//! The table of expressions: name, fields, attribute types. Everything else about them is made from it.

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, NLA_F_NESTED, Writer};

use crate::expr::Data;
use crate::expr::kinds::*;
use crate::expr::wire::Field;
use crate::name::Name;

macro_rules! expressions {
    ($(
        $(#[$doc:meta])*
        $kind:ident $name:literal { $( $(#[$field_doc:meta])* $field:ident: $of:ty = $attribute:literal $c:literal, )* }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $kind {
                $( $(#[$field_doc])* #[doc = concat!("`", $c, "`")] pub $field: $of, )*
            }

            impl $kind {
                fn encode(&self, #[allow(unused_variables, reason = "some have no field")] w: &mut Writer<'_>) {
                    $( self.$field.put(w, $attribute); )*
                }

                /// `None` where it says more than there are fields for, and the whole is wanted.
                fn decode(data: Option<&Attribute<'_>>, whole: bool) -> Result<Option<Self>, DecodeError> {
                    let mut newer = false;
                    $( let mut $field = None; )*
                    if let Some(data) = data {
                        for attribute in data.attributes() {
                            let attribute = attribute?;
                            match attribute.kind {
                                $( $attribute => $field = Some(attribute), )*
                                kind if attribute.payload.is_empty() && PADDING.contains(&($name, kind)) => {}
                                _ => newer = true,
                            }
                        }
                    }
                    if newer && whole {
                        return Ok(None);
                    }
                    Ok(Some(Self { $( $field: Field::get($field.as_ref(), $c)?, )* }))
                }
            }

            #[cfg(test)]
            impl crate::expr::sample::Sample for $kind {
                fn sample(#[allow(unused_variables, reason = "some have no field")] source: &mut crate::expr::sample::Source) -> Self {
                    Self { $( $field: crate::expr::sample::Sample::sample(source), )* }
                }
            }

            impl From<$kind> for Expr {
                fn from(expr: $kind) -> Self {
                    Self::$kind(expr)
                }
            }
        )*

        /// An expression.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Expr {
            $( $(#[$doc])* $kind($kind), )*
            /// One that this crate does not know, or not all of, as it came.
            Unknown(Unknown),
        }

        #[cfg(test)]
        impl Expr {
            /// One of every kind.
            pub(crate) fn samples(source: &mut crate::expr::sample::Source) -> Vec<Self> {
                vec![$( <$kind as crate::expr::sample::Sample>::sample(source).into(), )*]
            }
        }

        impl Expr {
            /// The names of all that have a type of their own here.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Its name in the kernel (`NFTA_EXPR_NAME`).
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $( Self::$kind(_) => $name, )*
                    Self::Unknown(unknown) => &unknown.name,
                }
            }

            pub(crate) fn encode_data(&self, w: &mut Writer<'_>) {
                match self {
                    $( Self::$kind(expr) => expr.encode(w), )*
                    Self::Unknown(unknown) => w.raw(&unknown.data),
                }
            }

            fn decode_data(name: &str, data: Option<&Attribute<'_>>, whole: bool) -> Result<Self, DecodeError> {
                let known = match name {
                    $( $name => $kind::decode(data, whole)?.map(Self::$kind), )*
                    _ => None,
                };
                Ok(known.unwrap_or_else(|| Self::Unknown(Unknown {
                    name: Name::held(name),
                    data: data.map(|data| data.payload.to_vec()).unwrap_or_default(),
                })))
            }
        }
    };
}

expressions! {
    /// Loads a part of the packet into a register, or writes one to it. It loads where `dreg` is set and writes where `sreg` is.
    Payload "payload" {
        /// Where to.
        dreg: Option<Register> = 1 "NFTA_PAYLOAD_DREG",
        /// The header.
        base: PayloadBase = 2 "NFTA_PAYLOAD_BASE",
        /// Bytes from its start.
        offset: u32 = 3 "NFTA_PAYLOAD_OFFSET",
        /// Bytes.
        len: u32 = 4 "NFTA_PAYLOAD_LEN",
        /// Where from.
        sreg: Option<Register> = 5 "NFTA_PAYLOAD_SREG",
        /// The checksum to mend.
        csum_type: Option<ChecksumType> = 6 "NFTA_PAYLOAD_CSUM_TYPE",
        /// Its place, in bytes from the start of the header.
        csum_offset: Option<u32> = 7 "NFTA_PAYLOAD_CSUM_OFFSET",
        /// Whether the transport header's is to be mended too.
        csum_flags: Option<ChecksumFlags> = 8 "NFTA_PAYLOAD_CSUM_FLAGS",
    }

    /// Ends the rule unless a register compares with a constant as wanted.
    Cmp "cmp" {
        /// What is compared.
        sreg: Register = 1 "NFTA_CMP_SREG",
        /// How.
        op: CmpOp = 2 "NFTA_CMP_OP",
        /// With what; its length says how much is compared.
        data: Data = 3 "NFTA_CMP_DATA",
    }

    /// `dreg = (sreg & mask) ^ xor`, or a shift.
    Bitwise "bitwise" {
        /// Where from.
        sreg: Register = 1 "NFTA_BITWISE_SREG",
        /// Where to.
        dreg: Register = 2 "NFTA_BITWISE_DREG",
        /// Bytes.
        len: u32 = 3 "NFTA_BITWISE_LEN",
        /// The mask.
        mask: Option<Data> = 4 "NFTA_BITWISE_MASK",
        /// What is toggled.
        xor: Option<Data> = 5 "NFTA_BITWISE_XOR",
        /// What is done; absent means mask and xor.
        op: Option<BitwiseOp> = 6 "NFTA_BITWISE_OP",
        /// By how many bits to shift, in host order; or the other operand, since Linux 6.13.
        data: Option<Data> = 7 "NFTA_BITWISE_DATA",
        /// The other operand, since Linux 6.13.
        sreg2: Option<Register> = 8 "NFTA_BITWISE_SREG2",
    }

    /// Swaps bytes between host and network order.
    Byteorder "byteorder" {
        /// Where from.
        sreg: Register = 1 "NFTA_BYTEORDER_SREG",
        /// Where to.
        dreg: Register = 2 "NFTA_BYTEORDER_DREG",
        /// Which way.
        op: ByteorderOp = 3 "NFTA_BYTEORDER_OP",
        /// Bytes in all.
        len: u32 = 4 "NFTA_BYTEORDER_LEN",
        /// Bytes of each number: 2, 4 or 8.
        size: u32 = 5 "NFTA_BYTEORDER_SIZE",
    }

    /// Ends the rule unless a register is within (or outside) two bounds.
    Range "range" {
        /// What is compared.
        sreg: Register = 1 "NFTA_RANGE_SREG",
        /// Inside or outside.
        op: RangeOp = 2 "NFTA_RANGE_OP",
        /// The lower bound, included.
        from: Data = 3 "NFTA_RANGE_FROM_DATA",
        /// The upper bound, included.
        to: Data = 4 "NFTA_RANGE_TO_DATA",
    }

    /// Looks a key up in a set or map. Ends the rule if it is not there.
    Lookup "lookup" {
        /// The set.
        set: Name = 1 "NFTA_LOOKUP_SET",
        /// The key.
        sreg: Register = 2 "NFTA_LOOKUP_SREG",
        /// Where a map's value goes; the verdict for a verdict map.
        dreg: Option<Register> = 3 "NFTA_LOOKUP_DREG",
        /// The set's number in this batch, for sets whose name the kernel chooses.
        set_id: Option<u32> = 4 "NFTA_LOOKUP_SET_ID",
        /// Whether to end the rule if it is there instead.
        flags: Option<LookupFlags> = 5 "NFTA_LOOKUP_FLAGS",
    }

    /// Puts a constant into a register; a verdict into register 0.
    Immediate "immediate" {
        /// Where to.
        dreg: Register = 1 "NFTA_IMMEDIATE_DREG",
        /// The constant.
        data: Data = 2 "NFTA_IMMEDIATE_DATA",
    }

    /// Loads something known of the packet, or sets it. It loads where `dreg` is set and sets where `sreg` is.
    Meta "meta" {
        /// Where to.
        dreg: Option<Register> = 1 "NFTA_META_DREG",
        /// What.
        key: MetaKey = 2 "NFTA_META_KEY",
        /// Where from.
        sreg: Option<Register> = 3 "NFTA_META_SREG",
    }

    /// Loads something known of the packet's connection, or sets it. It loads where `dreg` is set and sets where `sreg` is.
    Ct "ct" {
        /// Where to.
        dreg: Option<Register> = 1 "NFTA_CT_DREG",
        /// What.
        key: CtKey = 2 "NFTA_CT_KEY",
        /// Of which direction.
        direction: Option<Direction> = 3 "NFTA_CT_DIRECTION",
        /// Where from.
        sreg: Option<Register> = 4 "NFTA_CT_SREG",
    }

    /// Loads something of the packet's route.
    Rt "rt" {
        /// Where to.
        dreg: Register = 1 "NFTA_RT_DREG",
        /// What.
        key: RtKey = 2 "NFTA_RT_KEY",
    }

    /// Loads something of the packet's socket.
    Socket "socket" {
        /// What.
        key: SocketKey = 1 "NFTA_SOCKET_KEY",
        /// Where to.
        dreg: Register = 2 "NFTA_SOCKET_DREG",
        /// The ancestor's level, for `cgroupv2`.
        level: Option<u32> = 3 "NFTA_SOCKET_LEVEL",
    }

    /// Guesses the operating system that sent a SYN.
    Osf "osf" {
        /// Where its name goes.
        dreg: Register = 1 "NFTA_OSF_DREG",
        /// How the TTL is compared.
        ttl: Option<u8> = 2 "NFTA_OSF_TTL",
        /// Name, or name and version.
        flags: Option<OsfFlags> = 3 "NFTA_OSF_FLAGS",
    }

    /// Asks the routing table.
    Fib "fib" {
        /// Where to.
        dreg: Register = 1 "NFTA_FIB_DREG",
        /// What to give.
        result: FibResult = 2 "NFTA_FIB_RESULT",
        /// What to look up.
        flags: FibFlags = 3 "NFTA_FIB_FLAGS",
    }

    /// Generates a number.
    Numgen "numgen" {
        /// Where to.
        dreg: Register = 1 "NFTA_NG_DREG",
        /// It is below this.
        modulus: u32 = 2 "NFTA_NG_MODULUS",
        /// Counting or random.
        mode: NumgenMode = 3 "NFTA_NG_TYPE",
        /// Added to it.
        offset: Option<u32> = 4 "NFTA_NG_OFFSET",
    }

    /// Hashes a register, or the packet.
    Hash "hash" {
        /// What is hashed, for `jhash`.
        sreg: Option<Register> = 1 "NFTA_HASH_SREG",
        /// Where to.
        dreg: Register = 2 "NFTA_HASH_DREG",
        /// Bytes that are hashed.
        len: Option<u32> = 3 "NFTA_HASH_LEN",
        /// It is below this.
        modulus: u32 = 4 "NFTA_HASH_MODULUS",
        /// Where the hash starts from.
        seed: Option<u32> = 5 "NFTA_HASH_SEED",
        /// Added to it.
        offset: Option<u32> = 6 "NFTA_HASH_OFFSET",
        /// Which hash; absent means `jhash`.
        of: Option<HashType> = 7 "NFTA_HASH_TYPE",
    }

    /// Loads something of how xfrm transformed the packet.
    Xfrm "xfrm" {
        /// Where to.
        dreg: Register = 1 "NFTA_XFRM_DREG",
        /// What.
        key: XfrmKey = 2 "NFTA_XFRM_KEY",
        /// 0: it came in (`XFRM_POLICY_IN`), 1: it goes out.
        direction: u8 = 3 "NFTA_XFRM_DIR",
        /// Which of several.
        number: Option<u32> = 4 "NFTA_XFRM_SPNUM",
    }

    /// Loads something of the packet's tunnel.
    Tunnel "tunnel" {
        /// What.
        key: TunnelKey = 1 "NFTA_TUNNEL_KEY",
        /// Where to.
        dreg: Register = 2 "NFTA_TUNNEL_DREG",
        /// Any direction, in or out.
        mode: Option<u32> = 3 "NFTA_TUNNEL_MODE",
    }

    /// Loads, finds, sets or removes an extension header, an option or a chunk. It loads where `dreg` is set, sets where `sreg` is, and
    /// removes a TCP option where neither is.
    Exthdr "exthdr" {
        /// Where to.
        dreg: Option<Register> = 1 "NFTA_EXTHDR_DREG",
        /// Its type.
        kind: u8 = 2 "NFTA_EXTHDR_TYPE",
        /// Bytes from its start.
        offset: Option<u32> = 3 "NFTA_EXTHDR_OFFSET",
        /// Bytes.
        len: Option<u32> = 4 "NFTA_EXTHDR_LEN",
        /// Whether only its presence is asked for.
        flags: Option<ExthdrFlags> = 5 "NFTA_EXTHDR_FLAGS",
        /// Which sort of header; absent means IPv6's.
        op: Option<ExthdrOp> = 6 "NFTA_EXTHDR_OP",
        /// Where from.
        sreg: Option<Register> = 7 "NFTA_EXTHDR_SREG",
    }

    /// Runs an expression on the packet inside a tunnel's.
    Inner "inner" {
        /// 0, the only one.
        number: u32 = 1 "NFTA_INNER_NUM",
        /// VXLAN 0, GENEVE 1, GRE 2 ...
        of: u32 = 2 "NFTA_INNER_TYPE",
        /// What is parsed.
        flags: u32 = 3 "NFTA_INNER_FLAGS",
        /// Bytes of the tunnel's header.
        header_size: u32 = 4 "NFTA_INNER_HDRSIZE",
        /// The expression: `payload` or `meta`.
        expr: Box<Expr> = 5 "NFTA_INNER_EXPR",
    }

    /// Changes the packet's source or destination.
    Nat "nat" {
        /// Which of them.
        of: NatType = 1 "NFTA_NAT_TYPE",
        /// The addresses' family.
        family: u32 = 2 "NFTA_NAT_FAMILY",
        /// The lowest address.
        addr_min: Option<Register> = 3 "NFTA_NAT_REG_ADDR_MIN",
        /// The highest.
        addr_max: Option<Register> = 4 "NFTA_NAT_REG_ADDR_MAX",
        /// The lowest port.
        proto_min: Option<Register> = 5 "NFTA_NAT_REG_PROTO_MIN",
        /// The highest.
        proto_max: Option<Register> = 6 "NFTA_NAT_REG_PROTO_MAX",
        /// How to choose.
        flags: Option<NatFlags> = 7 "NFTA_NAT_FLAGS",
    }

    /// Changes the packet's source to that of the device it leaves by.
    Masq "masq" {
        /// How to choose.
        flags: Option<NatFlags> = 1 "NFTA_MASQ_FLAGS",
        /// The lowest port.
        proto_min: Option<Register> = 2 "NFTA_MASQ_REG_PROTO_MIN",
        /// The highest.
        proto_max: Option<Register> = 3 "NFTA_MASQ_REG_PROTO_MAX",
    }

    /// Changes the packet's destination to this machine.
    Redir "redir" {
        /// The lowest port.
        proto_min: Option<Register> = 1 "NFTA_REDIR_REG_PROTO_MIN",
        /// The highest.
        proto_max: Option<Register> = 2 "NFTA_REDIR_REG_PROTO_MAX",
        /// How to choose.
        flags: Option<NatFlags> = 3 "NFTA_REDIR_FLAGS",
    }

    /// Refuses the packet.
    Reject "reject" {
        /// How.
        of: RejectType = 1 "NFTA_REJECT_TYPE",
        /// ICMP's code.
        code: Option<u8> = 2 "NFTA_REJECT_ICMP_CODE",
    }

    /// Hands the packet to a local socket.
    Tproxy "tproxy" {
        /// The address' family.
        family: u32 = 1 "NFTA_TPROXY_FAMILY",
        /// The socket's address.
        addr: Option<Register> = 2 "NFTA_TPROXY_REG_ADDR",
        /// The socket's port.
        port: Option<Register> = 3 "NFTA_TPROXY_REG_PORT",
    }

    /// Sends a copy of the packet elsewhere.
    Dup "dup" {
        /// The gateway.
        addr: Option<Register> = 1 "NFTA_DUP_SREG_ADDR",
        /// The device.
        device: Option<Register> = 2 "NFTA_DUP_SREG_DEV",
    }

    /// Sends the packet out of another device.
    Fwd "fwd" {
        /// The device.
        device: Register = 1 "NFTA_FWD_SREG_DEV",
        /// The neighbour.
        addr: Option<Register> = 2 "NFTA_FWD_SREG_ADDR",
        /// The address' family.
        family: Option<u32> = 3 "NFTA_FWD_NFPROTO",
    }

    /// Hands the packet to user space.
    Queue "queue" {
        /// The first queue.
        number: Option<u16> = 1 "NFTA_QUEUE_NUM",
        /// How many.
        total: Option<u16> = 2 "NFTA_QUEUE_TOTAL",
        /// How to choose.
        flags: Option<QueueFlags> = 3 "NFTA_QUEUE_FLAGS",
        /// A computed queue.
        sreg: Option<Register> = 4 "NFTA_QUEUE_SREG_QNUM",
    }

    /// Counts packets and bytes.
    Counter "counter" {
        /// Bytes.
        bytes: Option<u64> = 1 "NFTA_COUNTER_BYTES",
        /// Packets.
        packets: Option<u64> = 2 "NFTA_COUNTER_PACKETS",
    }

    /// Ends the rule when so many bytes have passed (or until then).
    Quota "quota" {
        /// The limit.
        bytes: u64 = 1 "NFTA_QUOTA_BYTES",
        /// Which side of it matches.
        flags: Option<Invert> = 2 "NFTA_QUOTA_FLAGS",
        /// Bytes so far.
        consumed: Option<u64> = 4 "NFTA_QUOTA_CONSUMED",
    }

    /// Ends the rule when packets come too fast (or unless).
    Limit "limit" {
        /// How many in a unit of time.
        rate: u64 = 1 "NFTA_LIMIT_RATE",
        /// The unit, in seconds.
        unit: u64 = 2 "NFTA_LIMIT_UNIT",
        /// How many at once.
        burst: Option<u32> = 3 "NFTA_LIMIT_BURST",
        /// Packets or bytes.
        of: Option<LimitType> = 4 "NFTA_LIMIT_TYPE",
        /// Which side of it matches.
        flags: Option<Invert> = 5 "NFTA_LIMIT_FLAGS",
    }

    /// Notes when it was last reached.
    Last "last" {
        /// Whether it ever was.
        set: Option<u32> = 1 "NFTA_LAST_SET",
        /// Milliseconds ago.
        msecs: Option<u64> = 2 "NFTA_LAST_MSECS",
    }

    /// Logs the packet.
    Log "log" {
        /// A group of `nfnetlink_log`.
        group: Option<u16> = 1 "NFTA_LOG_GROUP",
        /// What the line starts with.
        prefix: Option<String> = 2 "NFTA_LOG_PREFIX",
        /// Bytes of the packet.
        snaplen: Option<u32> = 3 "NFTA_LOG_SNAPLEN",
        /// Packets to collect.
        queue_threshold: Option<u16> = 4 "NFTA_LOG_QTHRESHOLD",
        /// syslog's level.
        level: Option<u32> = 5 "NFTA_LOG_LEVEL",
        /// What to say.
        flags: Option<LogFlags> = 6 "NFTA_LOG_FLAGS",
    }

    /// Ends the rule when there are more (or fewer) connections.
    Connlimit "connlimit" {
        /// How many.
        count: u32 = 1 "NFTA_CONNLIMIT_COUNT",
        /// Which side of it matches.
        flags: Option<Invert> = 2 "NFTA_CONNLIMIT_FLAGS",
    }

    /// Adds, renews or deletes an element of a set.
    Dynset "dynset" {
        /// The set.
        set: Name = 1 "NFTA_DYNSET_SET_NAME",
        /// Its number in this batch.
        set_id: Option<u32> = 2 "NFTA_DYNSET_SET_ID",
        /// What is done.
        op: DynsetOp = 3 "NFTA_DYNSET_OP",
        /// The key.
        key: Register = 4 "NFTA_DYNSET_SREG_KEY",
        /// The value, for maps.
        data: Option<Register> = 5 "NFTA_DYNSET_SREG_DATA",
        /// Milliseconds until it goes.
        timeout: Option<u64> = 6 "NFTA_DYNSET_TIMEOUT",
        /// An expression that it carries.
        expr: Option<Box<Expr>> = 7 "NFTA_DYNSET_EXPR",
        /// Whether it carries expressions.
        flags: Option<DynsetFlags> = 9 "NFTA_DYNSET_FLAGS",
        /// Several expressions that it carries.
        exprs: Vec<Expr> = 10 "NFTA_DYNSET_EXPRESSIONS",
    }

    /// Leaves the packet out of connection tracking.
    Notrack "notrack" {}

    /// Uses a stateful object, named or found by a map.
    Objref "objref" {
        /// What kind.
        kind: Option<ObjectKind> = 1 "NFTA_OBJREF_IMM_TYPE",
        /// Its name.
        name: Option<Name> = 2 "NFTA_OBJREF_IMM_NAME",
        /// The key.
        sreg: Option<Register> = 3 "NFTA_OBJREF_SET_SREG",
        /// The map.
        set: Option<Name> = 4 "NFTA_OBJREF_SET_NAME",
        /// Its number in this batch.
        set_id: Option<u32> = 5 "NFTA_OBJREF_SET_ID",
    }

    /// Hands the connection to a flowtable.
    FlowOffload "flow_offload" {
        /// The flowtable.
        flowtable: Name = 1 "NFTA_FLOW_TABLE_NAME",
    }

    /// Answers SYNs on behalf of a server.
    Synproxy "synproxy" {
        /// Maximum segment size.
        mss: Option<u16> = 1 "NFTA_SYNPROXY_MSS",
        /// Window scale.
        wscale: Option<u8> = 2 "NFTA_SYNPROXY_WSCALE",
        /// Which options.
        flags: Option<SynproxyFlags> = 3 "NFTA_SYNPROXY_FLAGS",
    }

    /// A match of xtables, put there by iptables-nft. Its data is that module's own.
    XtMatch "match" {
        /// The module.
        name: Name = 1 "NFTA_MATCH_NAME",
        /// Its revision.
        revision: u32 = 2 "NFTA_MATCH_REV",
        /// Its data.
        info: Vec<u8> = 3 "NFTA_MATCH_INFO",
    }

    /// A target of xtables, put there by iptables-nft. Its data is that module's own.
    XtTarget "target" {
        /// The module.
        name: Name = 1 "NFTA_TARGET_NAME",
        /// Its revision.
        revision: u32 = 2 "NFTA_TARGET_REV",
        /// Its data.
        info: Vec<u8> = 3 "NFTA_TARGET_INFO",
    }
}

/// An expression of a kernel newer than this crate, or one of this crate's with attributes that only a newer kernel has: leaving those
/// out could change what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// `NFTA_EXPR_NAME`
    pub name: Name,
    /// The payload of `NFTA_EXPR_DATA`.
    pub data: Vec<u8>,
}

impl Expr {
    /// Appends it as an attribute of this type.
    pub fn encode(&self, w: &mut Writer<'_>, kind: u16) {
        let mut expr = w.nest(kind);
        expr.put_str(NFTA_EXPR_NAME, self.name());
        match self {
            // As it came, to the byte: what it is made of is not known.
            Self::Unknown(unknown) => expr.put(NFTA_EXPR_DATA | NLA_F_NESTED, &unknown.data),
            // It has no data, not even none: libnftnl writes nothing there.
            Self::Notrack(_) => {}
            known => known.encode_data(&mut expr.nest(NFTA_EXPR_DATA)),
        }
    }

    /// Reads the data of an expression of this name: stateful objects have the same. What only a newer kernel has is left out; who asks
    /// keeps the bytes.
    pub(crate) fn decode_bytes(name: &str, data: &[u8]) -> Result<Self, DecodeError> {
        let data = Attribute { kind: NFTA_EXPR_DATA, nested: true, payload: data, offset: 0 };
        Self::decode_data(name, Some(&data), false)
    }

    /// Reads it from an attribute that [`encode`](Self::encode) or the kernel wrote.
    ///
    /// # Errors
    /// When the bytes are not attributes, one has the wrong size, or one that the expression needs is absent.
    pub fn decode(attribute: &Attribute<'_>) -> Result<Self, DecodeError> {
        let (mut name, mut data) = (None, None);
        for inner in attribute.attributes() {
            let inner = inner?;
            match inner.kind {
                NFTA_EXPR_NAME => name = Some(inner.str()?),
                NFTA_EXPR_DATA => data = Some(inner),
                _ => {}
            }
        }
        Self::decode_data(name.ok_or(DecodeError::Missing { what: "NFTA_EXPR_NAME" })?, data.as_ref(), true)
    }
}

impl crate::expr::wire::Value for Box<Expr> {
    fn write(&self, w: &mut Writer<'_>, kind: u16) {
        self.encode(w, kind);
    }

    fn read(attribute: &Attribute<'_>) -> Result<Self, DecodeError> {
        Expr::decode(attribute).map(Self::new)
    }
}

/// Attributes without content that some machines need to align 64-bit numbers (`NFTA_*_PAD`).
const PADDING: &[(&str, u16)] = &[("counter", 3), ("dynset", 8), ("last", 3), ("limit", 6), ("quota", 3)];
/// `NFTA_EXPR_NAME`
const NFTA_EXPR_NAME: u16 = 1;
/// `NFTA_EXPR_DATA`
const NFTA_EXPR_DATA: u16 = 2;
