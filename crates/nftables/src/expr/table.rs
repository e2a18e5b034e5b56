//! The rows of the table of expressions: name, fields, attribute types (`linux/netfilter/nf_tables.h`).
//! `define.rs` generates the types, the encoder and the decoder from them.
//!
//! Large and rare expressions are `boxed`: a ruleset is a long list of expressions, and each takes the space
//! of the largest variant.

use sluicegate_netlink::attr::{Attribute, Writer};

use crate::expr::Data;
use crate::expr::define::{PADDING, Unknown, expressions};
use crate::expr::kinds::*;
use crate::expr::wire::{Fault, Field};
use crate::name::Name;

expressions! {
    /// Loads a part of the packet into a register, or writes one to it. It loads where `dreg` is set and
    /// writes where `sreg` is.
    Payload "payload" {
        /// Destination register.
        dreg: Option<Register> = 1 "NFTA_PAYLOAD_DREG",
        /// The header that the offset counts from.
        base: PayloadBase = 2 "NFTA_PAYLOAD_BASE",
        /// Offset from the start of the header, in bytes.
        offset: u32 = 3 "NFTA_PAYLOAD_OFFSET",
        /// Length in bytes.
        len: u32 = 4 "NFTA_PAYLOAD_LEN",
        /// Source register.
        sreg: Option<Register> = 5 "NFTA_PAYLOAD_SREG",
        /// The type of the checksum to update.
        csum_type: Option<ChecksumType> = 6 "NFTA_PAYLOAD_CSUM_TYPE",
        /// Offset of the checksum from the start of the header, in bytes.
        csum_offset: Option<u32> = 7 "NFTA_PAYLOAD_CSUM_OFFSET",
        /// Whether to update the checksum of the transport header as well.
        csum_flags: Option<ChecksumFlags> = 8 "NFTA_PAYLOAD_CSUM_FLAGS",
    }

    /// Compares a register with a constant. Ends the rule unless the comparison holds.
    Cmp "cmp" {
        /// The register to compare.
        sreg: Register = 1 "NFTA_CMP_SREG",
        /// The comparison operator.
        op: CmpOp = 2 "NFTA_CMP_OP",
        /// The constant to compare with; its length is the length of the comparison.
        data: Data = 3 "NFTA_CMP_DATA",
    }

    /// Computes `dreg = (sreg & mask) ^ xor`, or shifts a register.
    Bitwise boxed "bitwise" {
        /// Source register.
        sreg: Register = 1 "NFTA_BITWISE_SREG",
        /// Destination register.
        dreg: Register = 2 "NFTA_BITWISE_DREG",
        /// Length in bytes.
        len: u32 = 3 "NFTA_BITWISE_LEN",
        /// The mask.
        mask: Option<Data> = 4 "NFTA_BITWISE_MASK",
        /// The operand of the exclusive or.
        xor: Option<Data> = 5 "NFTA_BITWISE_XOR",
        /// The operation; mask and xor if absent.
        op: Option<BitwiseOp> = 6 "NFTA_BITWISE_OP",
        /// The number of bits to shift by, in host byte order; or the second operand (since Linux 6.13).
        data: Option<Data> = 7 "NFTA_BITWISE_DATA",
        /// The register of the second operand (since Linux 6.13).
        sreg2: Option<Register> = 8 "NFTA_BITWISE_SREG2",
    }

    /// Converts numbers between host and network byte order.
    Byteorder "byteorder" {
        /// Source register.
        sreg: Register = 1 "NFTA_BYTEORDER_SREG",
        /// Destination register.
        dreg: Register = 2 "NFTA_BYTEORDER_DREG",
        /// The direction of the conversion.
        op: ByteorderOp = 3 "NFTA_BYTEORDER_OP",
        /// Total length in bytes.
        len: u32 = 4 "NFTA_BYTEORDER_LEN",
        /// Size of each number in bytes: 2, 4 or 8.
        size: u32 = 5 "NFTA_BYTEORDER_SIZE",
    }

    /// Ends the rule unless a register is within (or outside) two bounds.
    Range boxed "range" {
        /// Source register.
        sreg: Register = 1 "NFTA_RANGE_SREG",
        /// Whether to match inside or outside the range.
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
        /// Source register: the key.
        sreg: Register = 2 "NFTA_LOOKUP_SREG",
        /// Destination register of a map's value; the verdict register for a verdict map.
        dreg: Option<Register> = 3 "NFTA_LOOKUP_DREG",
        /// The set's number in this batch, for sets whose name the kernel chooses.
        set_id: Option<u32> = 4 "NFTA_LOOKUP_SET_ID",
        /// Whether to end the rule if it is there instead.
        flags: Option<LookupFlags> = 5 "NFTA_LOOKUP_FLAGS",
    }

    /// Loads a constant into a register, or a verdict into the verdict register.
    Immediate "immediate" {
        /// Destination register.
        dreg: Register = 1 "NFTA_IMMEDIATE_DREG",
        /// The constant.
        data: Data = 2 "NFTA_IMMEDIATE_DATA",
    }

    /// Loads metadata of the packet, or sets it. It loads where `dreg` is set and sets where `sreg` is.
    Meta "meta" {
        /// Destination register.
        dreg: Option<Register> = 1 "NFTA_META_DREG",
        /// The metadata key.
        key: MetaKey = 2 "NFTA_META_KEY",
        /// Source register.
        sreg: Option<Register> = 3 "NFTA_META_SREG",
    }

    /// Loads a property of the packet's connection, or sets it. It loads where `dreg` is set and sets where
    /// `sreg` is.
    Ct "ct" {
        /// Destination register.
        dreg: Option<Register> = 1 "NFTA_CT_DREG",
        /// The conntrack key.
        key: CtKey = 2 "NFTA_CT_KEY",
        /// The direction of the connection.
        direction: Option<Direction> = 3 "NFTA_CT_DIRECTION",
        /// Source register.
        sreg: Option<Register> = 4 "NFTA_CT_SREG",
    }

    /// Loads a property of the packet's route.
    Rt "rt" {
        /// Destination register.
        dreg: Register = 1 "NFTA_RT_DREG",
        /// The route key.
        key: RtKey = 2 "NFTA_RT_KEY",
    }

    /// Loads a property of the packet's socket.
    Socket "socket" {
        /// The socket key.
        key: SocketKey = 1 "NFTA_SOCKET_KEY",
        /// Destination register.
        dreg: Register = 2 "NFTA_SOCKET_DREG",
        /// The ancestor's level, for `cgroupv2`.
        level: Option<u32> = 3 "NFTA_SOCKET_LEVEL",
    }

    /// Guesses the operating system that sent a SYN packet.
    Osf "osf" {
        /// Destination register of the name.
        dreg: Register = 1 "NFTA_OSF_DREG",
        /// How to compare the TTL.
        ttl: Option<u8> = 2 "NFTA_OSF_TTL",
        /// Flags (`NFT_OSF_F_*`): whether the version follows the name.
        flags: Option<OsfFlags> = 3 "NFTA_OSF_FLAGS",
    }

    /// Looks the packet up in the forwarding information base (the routing tables).
    Fib "fib" {
        /// Destination register.
        dreg: Register = 1 "NFTA_FIB_DREG",
        /// The result to load.
        result: FibResult = 2 "NFTA_FIB_RESULT",
        /// The fields of the packet to look up, and whether only the existence of a route is of interest.
        flags: FibFlags = 3 "NFTA_FIB_FLAGS",
    }

    /// Generates a number: incremental or random.
    Numgen "numgen" {
        /// Destination register.
        dreg: Register = 1 "NFTA_NG_DREG",
        /// The upper bound, excluded.
        modulus: u32 = 2 "NFTA_NG_MODULUS",
        /// Incremental or random.
        mode: NumgenMode = 3 "NFTA_NG_TYPE",
        /// Offset added to the number.
        offset: Option<u32> = 4 "NFTA_NG_OFFSET",
    }

    /// Hashes a register, or the packet (`symhash`).
    Hash boxed "hash" {
        /// Source register, for `jhash`.
        sreg: Option<Register> = 1 "NFTA_HASH_SREG",
        /// Destination register.
        dreg: Register = 2 "NFTA_HASH_DREG",
        /// Length of the hashed data in bytes.
        len: Option<u32> = 3 "NFTA_HASH_LEN",
        /// The upper bound of the hash, excluded.
        modulus: u32 = 4 "NFTA_HASH_MODULUS",
        /// The seed.
        seed: Option<u32> = 5 "NFTA_HASH_SEED",
        /// Offset added to the hash.
        offset: Option<u32> = 6 "NFTA_HASH_OFFSET",
        /// The hash function; `jhash` if absent.
        of: Option<HashType> = 7 "NFTA_HASH_TYPE",
    }

    /// Loads a property of an IPsec transformation (xfrm state) of the packet.
    Xfrm "xfrm" {
        /// Destination register.
        dreg: Register = 1 "NFTA_XFRM_DREG",
        /// The xfrm key.
        key: XfrmKey = 2 "NFTA_XFRM_KEY",
        /// The direction: 0 inbound (`XFRM_POLICY_IN`), 1 outbound.
        direction: u8 = 3 "NFTA_XFRM_DIR",
        /// The index of the transformation: inbound in the packet's secpath, outbound in the route's chain of
        /// transformations.
        number: Option<u32> = 4 "NFTA_XFRM_SPNUM",
    }

    /// Loads a property of the packet's tunnel metadata.
    Tunnel "tunnel" {
        /// The tunnel key.
        key: TunnelKey = 1 "NFTA_TUNNEL_KEY",
        /// Destination register.
        dreg: Register = 2 "NFTA_TUNNEL_DREG",
        /// Which tunnel metadata match: 0 in either direction (`NFT_TUNNEL_MODE_NONE`), 1 only of received
        /// packets (`_RX`), 2 only of packets to be transmitted (`_TX`).
        mode: Option<u32> = 3 "NFTA_TUNNEL_MODE",
    }

    /// Loads, finds, sets or removes an extension header, an option or a chunk. It loads where `dreg` is set,
    /// sets where `sreg` is, and removes a TCP option where neither is.
    Exthdr "exthdr" {
        /// Destination register.
        dreg: Option<Register> = 1 "NFTA_EXTHDR_DREG",
        /// The type of the header, option or chunk.
        kind: u8 = 2 "NFTA_EXTHDR_TYPE",
        /// Offset from the start of the header, option or chunk, in bytes.
        offset: Option<u32> = 3 "NFTA_EXTHDR_OFFSET",
        /// Length in bytes.
        len: Option<u32> = 4 "NFTA_EXTHDR_LEN",
        /// Flags (`NFT_EXTHDR_F_*`): whether to test for presence only.
        flags: Option<ExthdrFlags> = 5 "NFTA_EXTHDR_FLAGS",
        /// The kind of header; an IPv6 extension header if absent.
        op: Option<ExthdrOp> = 6 "NFTA_EXTHDR_OP",
        /// Source register.
        sreg: Option<Register> = 7 "NFTA_EXTHDR_SREG",
    }

    /// Runs an expression on the packet inside a tunnel (since Linux 6.2).
    Inner "inner" {
        /// The number of the inner header; only 0 is supported.
        number: u32 = 1 "NFTA_INNER_NUM",
        /// The type of the tunnel.
        of: InnerType = 2 "NFTA_INNER_TYPE",
        /// The inner headers that are present, and whether `header_size` applies (`NFT_INNER_*`).
        flags: InnerFlags = 3 "NFTA_INNER_FLAGS",
        /// Size of the tunnel header in bytes.
        header_size: u32 = 4 "NFTA_INNER_HDRSIZE",
        /// The expression: `payload` or `meta`.
        expr: Box<Expr> = 5 "NFTA_INNER_EXPR",
    }

    /// Translates the packet's source or destination address and port.
    Nat "nat" {
        /// Source or destination translation.
        of: NatType = 1 "NFTA_NAT_TYPE",
        /// The family of the addresses (`NFPROTO_*`).
        family: u32 = 2 "NFTA_NAT_FAMILY",
        /// The lowest address.
        addr_min: Option<Register> = 3 "NFTA_NAT_REG_ADDR_MIN",
        /// The highest address.
        addr_max: Option<Register> = 4 "NFTA_NAT_REG_ADDR_MAX",
        /// The lowest port.
        proto_min: Option<Register> = 5 "NFTA_NAT_REG_PROTO_MIN",
        /// The highest port.
        proto_max: Option<Register> = 6 "NFTA_NAT_REG_PROTO_MAX",
        /// Flags (`NF_NAT_RANGE_*`): how address and port are chosen.
        flags: Option<NatFlags> = 7 "NFTA_NAT_FLAGS",
    }

    /// Translates the packet's source address to that of the outgoing device.
    Masq "masq" {
        /// Flags (`NF_NAT_RANGE_*`): how the port is chosen.
        flags: Option<NatFlags> = 1 "NFTA_MASQ_FLAGS",
        /// The lowest port.
        proto_min: Option<Register> = 2 "NFTA_MASQ_REG_PROTO_MIN",
        /// The highest port.
        proto_max: Option<Register> = 3 "NFTA_MASQ_REG_PROTO_MAX",
    }

    /// Redirects the packet to this machine.
    Redir "redir" {
        /// The lowest port.
        proto_min: Option<Register> = 1 "NFTA_REDIR_REG_PROTO_MIN",
        /// The highest port.
        proto_max: Option<Register> = 2 "NFTA_REDIR_REG_PROTO_MAX",
        /// Flags (`NF_NAT_RANGE_*`): how the port is chosen.
        flags: Option<NatFlags> = 3 "NFTA_REDIR_FLAGS",
    }

    /// Rejects the packet with a reply.
    Reject "reject" {
        /// The type of the reply.
        of: RejectType = 1 "NFTA_REJECT_TYPE",
        /// The ICMP code.
        code: Option<u8> = 2 "NFTA_REJECT_ICMP_CODE",
    }

    /// Hands the packet to a local socket.
    Tproxy "tproxy" {
        /// The family of the address (`NFPROTO_*`); 0 for both.
        family: u32 = 1 "NFTA_TPROXY_FAMILY",
        /// The socket's address.
        addr: Option<Register> = 2 "NFTA_TPROXY_REG_ADDR",
        /// The socket's port.
        port: Option<Register> = 3 "NFTA_TPROXY_REG_PORT",
    }

    /// Sends a copy of the packet to a gateway, or out of a device.
    Dup "dup" {
        /// The gateway.
        addr: Option<Register> = 1 "NFTA_DUP_SREG_ADDR",
        /// The device.
        device: Option<Register> = 2 "NFTA_DUP_SREG_DEV",
    }

    /// Forwards the packet through another device.
    Fwd "fwd" {
        /// The device.
        device: Register = 1 "NFTA_FWD_SREG_DEV",
        /// The address of the next hop.
        addr: Option<Register> = 2 "NFTA_FWD_SREG_ADDR",
        /// The family of the address (`NFPROTO_*`).
        family: Option<u32> = 3 "NFTA_FWD_NFPROTO",
    }

    /// Queues the packet to a program in user space (`nfnetlink_queue`).
    Queue "queue" {
        /// The first queue.
        number: Option<u16> = 1 "NFTA_QUEUE_NUM",
        /// The number of queues.
        total: Option<u16> = 2 "NFTA_QUEUE_TOTAL",
        /// Flags (`NFT_QUEUE_FLAG_*`): `bypass` and `fanout`.
        flags: Option<QueueFlags> = 3 "NFTA_QUEUE_FLAGS",
        /// Source register of the queue number.
        sreg: Option<Register> = 4 "NFTA_QUEUE_SREG_QNUM",
    }

    /// Counts packets and bytes.
    Counter "counter" {
        /// The number of bytes.
        bytes: Option<u64> = 1 "NFTA_COUNTER_BYTES",
        /// The number of packets.
        packets: Option<u64> = 2 "NFTA_COUNTER_PACKETS",
    }

    /// Ends the rule once the quota is exceeded, or until it is.
    Quota "quota" {
        /// The quota in bytes.
        bytes: u64 = 1 "NFTA_QUOTA_BYTES",
        /// Flags (`NFT_QUOTA_F_*`): whether to match above the quota.
        flags: Option<Invert> = 2 "NFTA_QUOTA_FLAGS",
        /// The number of bytes consumed.
        consumed: Option<u64> = 4 "NFTA_QUOTA_CONSUMED",
    }

    /// Ends the rule for packets above the rate, or for those below it.
    Limit "limit" {
        /// The number of packets or bytes per unit of time.
        rate: u64 = 1 "NFTA_LIMIT_RATE",
        /// The unit of time in seconds.
        unit: u64 = 2 "NFTA_LIMIT_UNIT",
        /// The burst allowed above the rate.
        burst: Option<u32> = 3 "NFTA_LIMIT_BURST",
        /// Packets or bytes.
        of: Option<LimitType> = 4 "NFTA_LIMIT_TYPE",
        /// Flags (`NFT_LIMIT_F_*`): whether to match above the limit.
        flags: Option<Invert> = 5 "NFTA_LIMIT_FLAGS",
    }

    /// Records when the rule last matched.
    Last "last" {
        /// Whether it has matched at all.
        set: Option<u32> = 1 "NFTA_LAST_SET",
        /// Milliseconds since the last match.
        msecs: Option<u64> = 2 "NFTA_LAST_MSECS",
    }

    /// Logs the packet.
    Log boxed "log" {
        /// The group of `nfnetlink_log`.
        group: Option<u16> = 1 "NFTA_LOG_GROUP",
        /// The prefix of the message.
        prefix: Option<String> = 2 "NFTA_LOG_PREFIX",
        /// The number of bytes of the packet to copy.
        snaplen: Option<u32> = 3 "NFTA_LOG_SNAPLEN",
        /// The number of packets to queue before sending them.
        queue_threshold: Option<u16> = 4 "NFTA_LOG_QTHRESHOLD",
        /// The syslog level.
        level: Option<u32> = 5 "NFTA_LOG_LEVEL",
        /// Flags (`NF_LOG_*`): the fields to log.
        flags: Option<LogFlags> = 6 "NFTA_LOG_FLAGS",
    }

    /// Ends the rule when there are more connections than this, or fewer.
    Connlimit "connlimit" {
        /// The number of connections.
        count: u32 = 1 "NFTA_CONNLIMIT_COUNT",
        /// Flags (`NFT_CONNLIMIT_F_*`): whether to match above the count.
        flags: Option<Invert> = 2 "NFTA_CONNLIMIT_FLAGS",
    }

    /// Adds, updates or deletes an element of a set.
    Dynset boxed "dynset" {
        /// The set.
        set: Name = 1 "NFTA_DYNSET_SET_NAME",
        /// The number of the set in this batch.
        set_id: Option<u32> = 2 "NFTA_DYNSET_SET_ID",
        /// The operation.
        op: DynsetOp = 3 "NFTA_DYNSET_OP",
        /// Source register of the key.
        key: Register = 4 "NFTA_DYNSET_SREG_KEY",
        /// Source register of the value, for maps.
        data: Option<Register> = 5 "NFTA_DYNSET_SREG_DATA",
        /// The timeout of the element in milliseconds.
        timeout: Option<u64> = 6 "NFTA_DYNSET_TIMEOUT",
        /// The expression attached to the element.
        expr: Option<Box<Expr>> = 7 "NFTA_DYNSET_EXPR",
        /// Flags (`NFT_DYNSET_F_*`): whether the element carries expressions, and whether to invert the
        /// match.
        flags: Option<DynsetFlags> = 9 "NFTA_DYNSET_FLAGS",
        /// The expressions attached to the element, if several.
        exprs: Vec<Expr> = 10 "NFTA_DYNSET_EXPRESSIONS",
    }

    /// Exempts the packet from connection tracking.
    Notrack "notrack" {}

    /// Refers to a stateful object, by name or by a lookup in a map.
    Objref boxed "objref" {
        /// The kind of the object.
        kind: Option<ObjectKind> = 1 "NFTA_OBJREF_IMM_TYPE",
        /// The name of the object.
        name: Option<Name> = 2 "NFTA_OBJREF_IMM_NAME",
        /// Source register of the key.
        sreg: Option<Register> = 3 "NFTA_OBJREF_SET_SREG",
        /// The name of the map.
        set: Option<Name> = 4 "NFTA_OBJREF_SET_NAME",
        /// The number of the map in this batch.
        set_id: Option<u32> = 5 "NFTA_OBJREF_SET_ID",
    }

    /// Offloads the connection to a flowtable.
    FlowOffload "flow_offload" {
        /// The flowtable.
        flowtable: Name = 1 "NFTA_FLOW_TABLE_NAME",
    }

    /// Answers SYN packets on behalf of a server.
    Synproxy "synproxy" {
        /// Maximum segment size.
        mss: Option<u16> = 1 "NFTA_SYNPROXY_MSS",
        /// Window scale.
        wscale: Option<u8> = 2 "NFTA_SYNPROXY_WSCALE",
        /// Flags (`NF_SYNPROXY_OPT_*`): the TCP options to negotiate.
        flags: Option<SynproxyFlags> = 3 "NFTA_SYNPROXY_FLAGS",
    }

    /// A match extension of xtables, as iptables-nft uses it. Its data are the `struct` of the module in
    /// `linux/netfilter/xt_*.h`, in the machine's byte order, padded to a multiple of eight bytes. A module
    /// for one protocol (`tcp`, `multiport`) is only accepted where the rule matches that protocol before it.
    XtMatch "match" {
        /// The name of the module, in up to 28 bytes (`XT_EXTENSION_MAXNAMELEN` with its NUL), such as
        /// `comment` or `mark`. It need not be a keyword of nft.
        name: Box<str> = 1 "NFTA_MATCH_NAME",
        /// The revision of the module.
        revision: u32 = 2 "NFTA_MATCH_REV",
        /// The data of the module.
        info: Vec<u8> = 3 "NFTA_MATCH_INFO",
    }

    /// A target extension of xtables, as iptables-nft uses it. Its data are as in [`XtMatch`].
    XtTarget "target" {
        /// The name of the module, in up to 28 bytes (`XT_EXTENSION_MAXNAMELEN` with its NUL), such as `MARK`
        /// or `TEE`. It need not be a keyword of nft.
        name: Box<str> = 1 "NFTA_TARGET_NAME",
        /// The revision of the module.
        revision: u32 = 2 "NFTA_TARGET_REV",
        /// The data of the module.
        info: Vec<u8> = 3 "NFTA_TARGET_INFO",
    }
}
