//! The rows of the table of expressions: name, fields, attribute types (`linux/netfilter/nf_tables.h`). `define.rs` makes everything else
//! about them from it.
//!
//! What is large and rare is `boxed`: a ruleset is a long list of expressions, each as large as the largest.

use sluicegate_netlink::attr::{Attribute, Writer};

use crate::expr::Data;
use crate::expr::define::{PADDING, Unknown, expressions};
use crate::expr::kinds::*;
use crate::expr::wire::{Fault, Field};
use crate::name::Name;

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
    Bitwise boxed "bitwise" {
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
    Range boxed "range" {
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
    Hash boxed "hash" {
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

    /// Runs an expression on the packet inside a tunnel's (Linux 6.2).
    Inner "inner" {
        /// 0, the only one.
        number: u32 = 1 "NFTA_INNER_NUM",
        /// What it is wrapped in.
        of: InnerType = 2 "NFTA_INNER_TYPE",
        /// What is parsed.
        flags: InnerFlags = 3 "NFTA_INNER_FLAGS",
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
    Log boxed "log" {
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
    Dynset boxed "dynset" {
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
    Objref boxed "objref" {
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

    /// A match of xtables, put there by iptables-nft. Its data is that module's own: its `struct` of `linux/netfilter/xt_*.h`, in the machine's
    /// byte order, filled up to a multiple of eight bytes. A module that is for one protocol (`tcp`, `multiport`) is taken where the rule has a match of that
    /// protocol before it.
    XtMatch "match" {
        /// The module, in up to 28 bytes (`XT_EXTENSION_MAXNAMELEN` with its NUL). Its names are not nft's: `comment`, `mark`.
        name: Box<str> = 1 "NFTA_MATCH_NAME",
        /// Its revision.
        revision: u32 = 2 "NFTA_MATCH_REV",
        /// Its data.
        info: Vec<u8> = 3 "NFTA_MATCH_INFO",
    }

    /// A target of xtables, put there by iptables-nft. Its data is that module's own, as of a match.
    XtTarget "target" {
        /// The module, in up to 28 bytes (`XT_EXTENSION_MAXNAMELEN` with its NUL). Its names are not nft's: `comment`, `mark`.
        name: Box<str> = 1 "NFTA_TARGET_NAME",
        /// Its revision.
        revision: u32 = 2 "NFTA_TARGET_REV",
        /// Its data.
        info: Vec<u8> = 3 "NFTA_TARGET_INFO",
    }
}
