//! Every expression with every attribute, in our words and in libnftnl's: what we encode, libnftnl takes for
//! the same; what libnftnl builds, we decode to the same.

use std::collections::{BTreeMap, BTreeSet};

use sluicegate_conformance::reference::{Stated, attributes_of, rule_of, sys};

use sluicegate_netlink::attr::{self, Attributes};
use sluicegate_netlink::message::{Flags, Header, NfGenMsg, encode};
use sluicegate_nftables::expr::kind::*;
use sluicegate_nftables::expr::*;
use sluicegate_nftables::lang::Verdict;
use sluicegate_nftables::{Family, Name, read};

/// Kinds that libnftnl 1.2.4 does not know. It refuses to parse them, so that they are not compared; fields
/// that it does not know are `None` below.
const UNKNOWN_TO_LIBNFTNL: &[(&str, &str)] = &[("inner", "since libnftnl 1.2.5")];

fn name(name: &str) -> Name {
    Name::new(name).expect("a name of the test")
}

const fn reg(number: u32) -> Register {
    Register(number)
}

fn loaded_and_written() -> Vec<(Expr, Stated)> {
    use sys::*;
    vec![
        (
            Payload {
                dreg: Some(reg(1)),
                base: PayloadBase::TRANSPORT,
                offset: 2,
                len: 4,
                sreg: None,
                csum_type: None,
                csum_offset: None,
                csum_flags: None,
            }
            .into(),
            Stated::new("payload")
                .u32(NFTNL_EXPR_PAYLOAD_DREG, 1)
                .u32(NFTNL_EXPR_PAYLOAD_BASE, 2)
                .u32(NFTNL_EXPR_PAYLOAD_OFFSET, 2)
                .u32(NFTNL_EXPR_PAYLOAD_LEN, 4),
        ),
        (
            Payload {
                dreg: None,
                base: PayloadBase::NETWORK,
                offset: 12,
                len: 4,
                sreg: Some(reg(9)),
                csum_type: Some(ChecksumType::INET),
                csum_offset: Some(10),
                csum_flags: Some(ChecksumFlags::PSEUDO_HEADER),
            }
            .into(),
            Stated::new("payload")
                .u32(NFTNL_EXPR_PAYLOAD_BASE, 1)
                .u32(NFTNL_EXPR_PAYLOAD_OFFSET, 12)
                .u32(NFTNL_EXPR_PAYLOAD_LEN, 4)
                .u32(NFTNL_EXPR_PAYLOAD_SREG, 9)
                .u32(NFTNL_EXPR_PAYLOAD_CSUM_TYPE, 1)
                .u32(NFTNL_EXPR_PAYLOAD_CSUM_OFFSET, 10)
                .u32(NFTNL_EXPR_PAYLOAD_FLAGS, 1),
        ),
        (
            Meta { dreg: Some(reg(1)), key: MetaKey::SKGID, sreg: None }.into(),
            Stated::new("meta").u32(NFTNL_EXPR_META_KEY, 11).u32(NFTNL_EXPR_META_DREG, 1),
        ),
        (
            Meta { dreg: None, key: MetaKey::MARK, sreg: Some(reg(2)) }.into(),
            Stated::new("meta").u32(NFTNL_EXPR_META_KEY, 3).u32(NFTNL_EXPR_META_SREG, 2),
        ),
        (
            Ct { dreg: Some(reg(1)), key: CtKey::PROTO_DST, direction: Some(Direction::REPLY), sreg: None }
                .into(),
            Stated::new("ct").u32(NFTNL_EXPR_CT_DREG, 1).u32(NFTNL_EXPR_CT_KEY, 12).u8(NFTNL_EXPR_CT_DIR, 1),
        ),
        (
            Ct { dreg: None, key: CtKey::MARK, direction: None, sreg: Some(reg(3)) }.into(),
            Stated::new("ct").u32(NFTNL_EXPR_CT_KEY, 3).u32(NFTNL_EXPR_CT_SREG, 3),
        ),
        (
            Rt { dreg: reg(1), key: RtKey::MTU }.into(),
            Stated::new("rt").u32(NFTNL_EXPR_RT_KEY, 3).u32(NFTNL_EXPR_RT_DREG, 1),
        ),
        (
            Socket { key: SocketKey::CGROUPV2, dreg: reg(1), level: Some(4) }.into(),
            Stated::new("socket")
                .u32(NFTNL_EXPR_SOCKET_KEY, 3)
                .u32(NFTNL_EXPR_SOCKET_DREG, 1)
                .u32(NFTNL_EXPR_SOCKET_LEVEL, 4),
        ),
        (
            Osf { dreg: reg(1), ttl: Some(2), flags: Some(OsfFlags::VERSION) }.into(),
            Stated::new("osf")
                .u32(NFTNL_EXPR_OSF_DREG, 1)
                .u8(NFTNL_EXPR_OSF_TTL, 2)
                .u32(NFTNL_EXPR_OSF_FLAGS, 1),
        ),
        (
            Fib { dreg: reg(1), result: FibResult::ADDRTYPE, flags: FibFlags::DADDR | FibFlags::IIF }.into(),
            Stated::new("fib")
                .u32(NFTNL_EXPR_FIB_DREG, 1)
                .u32(NFTNL_EXPR_FIB_RESULT, 3)
                .u32(NFTNL_EXPR_FIB_FLAGS, 10),
        ),
        (
            Numgen { dreg: reg(1), modulus: 7, mode: NumgenMode::RANDOM, offset: Some(100) }.into(),
            Stated::new("numgen")
                .u32(NFTNL_EXPR_NG_DREG, 1)
                .u32(NFTNL_EXPR_NG_MODULUS, 7)
                .u32(NFTNL_EXPR_NG_TYPE, 1)
                .u32(NFTNL_EXPR_NG_OFFSET, 100),
        ),
        (
            Hash {
                sreg: Some(reg(2)),
                dreg: reg(1),
                len: Some(8),
                modulus: 5,
                seed: Some(0xdead),
                offset: Some(3),
                of: Some(HashType::JENKINS),
            }
            .into(),
            Stated::new("hash")
                .u32(NFTNL_EXPR_HASH_SREG, 2)
                .u32(NFTNL_EXPR_HASH_DREG, 1)
                .u32(NFTNL_EXPR_HASH_LEN, 8)
                .u32(NFTNL_EXPR_HASH_MODULUS, 5)
                .u32(NFTNL_EXPR_HASH_SEED, 0xdead)
                .u32(NFTNL_EXPR_HASH_OFFSET, 3)
                .u32(NFTNL_EXPR_HASH_TYPE, 0),
        ),
        (
            Xfrm { dreg: reg(1), key: XfrmKey::REQID, direction: 1, number: Some(2) }.into(),
            Stated::new("xfrm")
                .u32(NFTNL_EXPR_XFRM_DREG, 1)
                .u32(NFTNL_EXPR_XFRM_KEY, 5)
                .u8(NFTNL_EXPR_XFRM_DIR, 1)
                .u32(NFTNL_EXPR_XFRM_SPNUM, 2),
        ),
        (
            // NFTA_TUNNEL_MODE is none of libnftnl's.
            Tunnel { key: TunnelKey::ID, dreg: reg(1), mode: None }.into(),
            Stated::new("tunnel").u32(NFTNL_EXPR_TUNNEL_KEY, 1).u32(NFTNL_EXPR_TUNNEL_DREG, 1),
        ),
        (
            Exthdr {
                dreg: Some(reg(1)),
                kind: 2,
                offset: Some(3),
                len: Some(4),
                flags: Some(ExthdrFlags::PRESENT),
                op: Some(ExthdrOp::TCPOPT),
                sreg: None,
            }
            .into(),
            Stated::new("exthdr")
                .u32(NFTNL_EXPR_EXTHDR_DREG, 1)
                .u8(NFTNL_EXPR_EXTHDR_TYPE, 2)
                .u32(NFTNL_EXPR_EXTHDR_OFFSET, 3)
                .u32(NFTNL_EXPR_EXTHDR_LEN, 4)
                .u32(NFTNL_EXPR_EXTHDR_FLAGS, 1)
                .u32(NFTNL_EXPR_EXTHDR_OP, 1),
        ),
        (
            Exthdr {
                dreg: None,
                kind: 2,
                offset: Some(2),
                len: Some(2),
                flags: None,
                op: Some(ExthdrOp::TCPOPT),
                sreg: Some(reg(3)),
            }
            .into(),
            Stated::new("exthdr")
                .u8(NFTNL_EXPR_EXTHDR_TYPE, 2)
                .u32(NFTNL_EXPR_EXTHDR_OFFSET, 2)
                .u32(NFTNL_EXPR_EXTHDR_LEN, 2)
                .u32(NFTNL_EXPR_EXTHDR_OP, 1)
                .u32(NFTNL_EXPR_EXTHDR_SREG, 3),
        ),
    ]
}

fn computed() -> Vec<(Expr, Stated)> {
    use sys::*;
    let data = |bytes: &[u8]| Data::Value(bytes.into());
    vec![
        (
            Cmp { sreg: reg(1), op: CmpOp::GTE, data: data(&[1, 2, 3]) }.into(),
            Stated::new("cmp")
                .u32(NFTNL_EXPR_CMP_SREG, 1)
                .u32(NFTNL_EXPR_CMP_OP, 5)
                .bytes(NFTNL_EXPR_CMP_DATA, &[1, 2, 3]),
        ),
        (
            Range { sreg: reg(1), op: RangeOp::NEQ, from: data(&[0, 80]), to: data(&[0, 90]) }.into(),
            Stated::new("range")
                .u32(NFTNL_EXPR_RANGE_SREG, 1)
                .u32(NFTNL_EXPR_RANGE_OP, 1)
                .bytes(NFTNL_EXPR_RANGE_FROM_DATA, &[0, 80])
                .bytes(NFTNL_EXPR_RANGE_TO_DATA, &[0, 90]),
        ),
        (
            // The second source is younger than libnftnl 1.2.4.
            Bitwise {
                sreg: reg(2),
                dreg: reg(1),
                len: 4,
                mask: Some(data(&[255; 4])),
                xor: Some(data(&[1, 0, 0, 0])),
                op: Some(BitwiseOp::BOOL),
                data: None,
                sreg2: None,
            }
            .into(),
            Stated::new("bitwise")
                .u32(NFTNL_EXPR_BITWISE_SREG, 2)
                .u32(NFTNL_EXPR_BITWISE_DREG, 1)
                .u32(NFTNL_EXPR_BITWISE_LEN, 4)
                .bytes(NFTNL_EXPR_BITWISE_MASK, &[255; 4])
                .bytes(NFTNL_EXPR_BITWISE_XOR, &[1, 0, 0, 0])
                .u32(NFTNL_EXPR_BITWISE_OP, 0),
        ),
        (
            Bitwise {
                sreg: reg(2),
                dreg: reg(1),
                len: 4,
                mask: None,
                xor: None,
                op: Some(BitwiseOp::RSHIFT),
                data: Some(data(&[6, 0, 0, 0])),
                sreg2: None,
            }
            .into(),
            Stated::new("bitwise")
                .u32(NFTNL_EXPR_BITWISE_SREG, 2)
                .u32(NFTNL_EXPR_BITWISE_DREG, 1)
                .u32(NFTNL_EXPR_BITWISE_LEN, 4)
                .u32(NFTNL_EXPR_BITWISE_OP, 2)
                .bytes(NFTNL_EXPR_BITWISE_DATA, &[6, 0, 0, 0]),
        ),
        (
            Byteorder { sreg: reg(2), dreg: reg(1), op: ByteorderOp::HTON, len: 8, size: 4 }.into(),
            Stated::new("byteorder")
                .u32(NFTNL_EXPR_BYTEORDER_DREG, 1)
                .u32(NFTNL_EXPR_BYTEORDER_SREG, 2)
                .u32(NFTNL_EXPR_BYTEORDER_OP, 1)
                .u32(NFTNL_EXPR_BYTEORDER_LEN, 8)
                .u32(NFTNL_EXPR_BYTEORDER_SIZE, 4),
        ),
        (
            Immediate { dreg: reg(8), data: data(&[10, 0, 0, 1]) }.into(),
            Stated::new("immediate").u32(NFTNL_EXPR_IMM_DREG, 8).bytes(NFTNL_EXPR_IMM_DATA, &[10, 0, 0, 1]),
        ),
        (
            Immediate { dreg: Register::VERDICT, data: Data::Verdict(Verdict::Return) }.into(),
            Stated::new("immediate")
                .u32(NFTNL_EXPR_IMM_DREG, 0)
                .u32(NFTNL_EXPR_IMM_VERDICT, VerdictCode::RETURN.0),
        ),
        (
            Immediate { dreg: Register::VERDICT, data: Data::Verdict(Verdict::Goto(name("there"))) }.into(),
            Stated::new("immediate")
                .u32(NFTNL_EXPR_IMM_DREG, 0)
                .u32(NFTNL_EXPR_IMM_VERDICT, VerdictCode::GOTO.0)
                .text(NFTNL_EXPR_IMM_CHAIN, "there"),
        ),
        (
            Lookup { set: name("s"), sreg: reg(2), dreg: Some(reg(1)), set_id: Some(7), flags: None }.into(),
            Stated::new("lookup")
                .u32(NFTNL_EXPR_LOOKUP_SREG, 2)
                .u32(NFTNL_EXPR_LOOKUP_DREG, 1)
                .text(NFTNL_EXPR_LOOKUP_SET, "s")
                .u32(NFTNL_EXPR_LOOKUP_SET_ID, 7),
        ),
        (
            Lookup {
                set: name("s"),
                sreg: reg(2),
                dreg: None,
                set_id: None,
                flags: Some(LookupFlags::INVERT),
            }
            .into(),
            Stated::new("lookup")
                .u32(NFTNL_EXPR_LOOKUP_SREG, 2)
                .text(NFTNL_EXPR_LOOKUP_SET, "s")
                .u32(NFTNL_EXPR_LOOKUP_FLAGS, 1),
        ),
    ]
}

fn done() -> Vec<(Expr, Stated)> {
    use sys::*;
    let counter = || Expr::from(Counter { bytes: Some(2), packets: Some(1) });
    let counted = || Stated::new("counter").u64(NFTNL_EXPR_CTR_PACKETS, 1).u64(NFTNL_EXPR_CTR_BYTES, 2);
    let update = |expr: Option<Expr>, exprs: Vec<Expr>, flags| Dynset {
        set: name("s"),
        set_id: Some(4),
        op: DynsetOp::UPDATE,
        key: reg(1),
        data: Some(reg(2)),
        timeout: Some(60_000),
        expr: expr.map(Box::new),
        flags,
        exprs,
    };
    let updated = || {
        Stated::new("dynset")
            .u32(NFTNL_EXPR_DYNSET_SREG_KEY, 1)
            .u32(NFTNL_EXPR_DYNSET_SREG_DATA, 2)
            .u32(NFTNL_EXPR_DYNSET_OP, 1)
            .u64(NFTNL_EXPR_DYNSET_TIMEOUT, 60_000)
            .text(NFTNL_EXPR_DYNSET_SET_NAME, "s")
            .u32(NFTNL_EXPR_DYNSET_SET_ID, 4)
    };
    let limit =
        Limit { rate: 10, unit: 60, burst: Some(5), of: Some(LimitType::BYTES), flags: Some(Invert::OVER) };
    let limited = Stated::new("limit")
        .u64(NFTNL_EXPR_LIMIT_RATE, 10)
        .u64(NFTNL_EXPR_LIMIT_UNIT, 60)
        .u32(NFTNL_EXPR_LIMIT_BURST, 5)
        .u32(NFTNL_EXPR_LIMIT_TYPE, 1)
        .u32(NFTNL_EXPR_LIMIT_FLAGS, 1);
    vec![
        (counter(), counted()),
        (
            Quota { bytes: 1 << 40, flags: Some(Invert::OVER), consumed: Some(9) }.into(),
            Stated::new("quota")
                .u64(NFTNL_EXPR_QUOTA_BYTES, 1 << 40)
                .u32(NFTNL_EXPR_QUOTA_FLAGS, 1)
                .u64(NFTNL_EXPR_QUOTA_CONSUMED, 9),
        ),
        (limit.clone().into(), limited.clone()),
        (
            Last { set: Some(1), msecs: Some(1234) }.into(),
            Stated::new("last").u64(NFTNL_EXPR_LAST_MSECS, 1234).u32(NFTNL_EXPR_LAST_SET, 1),
        ),
        (
            Connlimit { count: 20, flags: Some(Invert::OVER) }.into(),
            Stated::new("connlimit").u32(NFTNL_EXPR_CONNLIMIT_COUNT, 20).u32(NFTNL_EXPR_CONNLIMIT_FLAGS, 1),
        ),
        (
            update(Some(counter()), Vec::new(), None).into(),
            updated().inner(NFTNL_EXPR_DYNSET_EXPR, [counted()]),
        ),
        (
            update(None, vec![counter(), limit.into()], Some(DynsetFlags::EXPR)).into(),
            updated()
                .u32(NFTNL_EXPR_DYNSET_FLAGS, 2)
                .inner(NFTNL_EXPR_DYNSET_EXPRESSIONS, [counted(), limited]),
        ),
        (
            Log {
                group: None,
                prefix: Some("seen: ".to_owned()),
                snaplen: None,
                queue_threshold: None,
                level: Some(4),
                flags: Some(LogFlags::IP_OPTIONS),
            }
            .into(),
            Stated::new("log")
                .text(NFTNL_EXPR_LOG_PREFIX, "seen: ")
                .u32(NFTNL_EXPR_LOG_LEVEL, 4)
                .u32(NFTNL_EXPR_LOG_FLAGS, 4),
        ),
        (
            Log {
                group: Some(3),
                prefix: None,
                snaplen: Some(128),
                queue_threshold: Some(20),
                level: None,
                flags: None,
            }
            .into(),
            Stated::new("log")
                .u16(NFTNL_EXPR_LOG_GROUP, 3)
                .u32(NFTNL_EXPR_LOG_SNAPLEN, 128)
                .u16(NFTNL_EXPR_LOG_QTHRESHOLD, 20),
        ),
        (
            Objref {
                kind: Some(ObjectKind::QUOTA),
                name: Some(name("q")),
                sreg: None,
                set: None,
                set_id: None,
            }
            .into(),
            Stated::new("objref").u32(NFTNL_EXPR_OBJREF_IMM_TYPE, 2).text(NFTNL_EXPR_OBJREF_IMM_NAME, "q"),
        ),
        (
            Objref { kind: None, name: None, sreg: Some(reg(1)), set: Some(name("m")), set_id: Some(3) }
                .into(),
            Stated::new("objref")
                .u32(NFTNL_EXPR_OBJREF_SET_SREG, 1)
                .text(NFTNL_EXPR_OBJREF_SET_NAME, "m")
                .u32(NFTNL_EXPR_OBJREF_SET_ID, 3),
        ),
        (Notrack {}.into(), Stated::new("notrack")),
        (
            XtMatch { name: "comment".into(), revision: 1, info: vec![1, 2, 3, 4] }.into(),
            Stated::new("match")
                .text(NFTNL_EXPR_MT_NAME, "comment")
                .u32(NFTNL_EXPR_MT_REV, 1)
                .bytes(NFTNL_EXPR_MT_INFO, &[1, 2, 3, 4]),
        ),
        (
            XtTarget { name: "MARK".into(), revision: 2, info: vec![5, 6, 7, 8] }.into(),
            Stated::new("target")
                .text(NFTNL_EXPR_TG_NAME, "MARK")
                .u32(NFTNL_EXPR_TG_REV, 2)
                .bytes(NFTNL_EXPR_TG_INFO, &[5, 6, 7, 8]),
        ),
    ]
}

fn sent_elsewhere() -> Vec<(Expr, Stated)> {
    use sys::*;
    vec![
        (
            Nat {
                of: NatType::DNAT,
                family: 2,
                addr_min: Some(reg(1)),
                addr_max: Some(reg(2)),
                proto_min: Some(reg(3)),
                proto_max: Some(reg(4)),
                flags: Some(NatFlags::PERSISTENT),
            }
            .into(),
            Stated::new("nat")
                .u32(NFTNL_EXPR_NAT_TYPE, 1)
                .u32(NFTNL_EXPR_NAT_FAMILY, 2)
                .u32(NFTNL_EXPR_NAT_REG_ADDR_MIN, 1)
                .u32(NFTNL_EXPR_NAT_REG_ADDR_MAX, 2)
                .u32(NFTNL_EXPR_NAT_REG_PROTO_MIN, 3)
                .u32(NFTNL_EXPR_NAT_REG_PROTO_MAX, 4)
                .u32(NFTNL_EXPR_NAT_FLAGS, 8),
        ),
        (
            Masq { flags: Some(NatFlags::FULLY_RANDOM), proto_min: Some(reg(1)), proto_max: Some(reg(2)) }
                .into(),
            Stated::new("masq")
                .u32(NFTNL_EXPR_MASQ_FLAGS, 16)
                .u32(NFTNL_EXPR_MASQ_REG_PROTO_MIN, 1)
                .u32(NFTNL_EXPR_MASQ_REG_PROTO_MAX, 2),
        ),
        (
            Redir { proto_min: Some(reg(1)), proto_max: Some(reg(2)), flags: Some(NatFlags::RANDOM) }.into(),
            Stated::new("redir")
                .u32(NFTNL_EXPR_REDIR_REG_PROTO_MIN, 1)
                .u32(NFTNL_EXPR_REDIR_REG_PROTO_MAX, 2)
                .u32(NFTNL_EXPR_REDIR_FLAGS, 4),
        ),
        (
            Reject { of: RejectType::ICMPX_UNREACH, code: Some(3) }.into(),
            Stated::new("reject").u32(NFTNL_EXPR_REJECT_TYPE, 2).u8(NFTNL_EXPR_REJECT_CODE, 3),
        ),
        (
            Tproxy { family: 10, addr: Some(reg(1)), port: Some(reg(2)) }.into(),
            Stated::new("tproxy")
                .u32(NFTNL_EXPR_TPROXY_FAMILY, 10)
                .u32(NFTNL_EXPR_TPROXY_REG_ADDR, 1)
                .u32(NFTNL_EXPR_TPROXY_REG_PORT, 2),
        ),
        (
            Dup { addr: Some(reg(1)), device: Some(reg(2)) }.into(),
            Stated::new("dup").u32(NFTNL_EXPR_DUP_SREG_ADDR, 1).u32(NFTNL_EXPR_DUP_SREG_DEV, 2),
        ),
        (
            Fwd { device: reg(1), addr: Some(reg(2)), family: Some(2) }.into(),
            Stated::new("fwd")
                .u32(NFTNL_EXPR_FWD_SREG_DEV, 1)
                .u32(NFTNL_EXPR_FWD_SREG_ADDR, 2)
                .u32(NFTNL_EXPR_FWD_NFPROTO, 2),
        ),
        (
            Queue { number: Some(3), total: Some(4), flags: Some(QueueFlags::FANOUT), sreg: None }.into(),
            Stated::new("queue")
                .u16(NFTNL_EXPR_QUEUE_NUM, 3)
                .u16(NFTNL_EXPR_QUEUE_TOTAL, 4)
                .u16(NFTNL_EXPR_QUEUE_FLAGS, 2),
        ),
        (
            Queue { number: None, total: None, flags: None, sreg: Some(reg(1)) }.into(),
            Stated::new("queue").u32(NFTNL_EXPR_QUEUE_SREG_QNUM, 1),
        ),
        (
            FlowOffload { flowtable: name("ft") }.into(),
            Stated::new("flow_offload").text(NFTNL_EXPR_FLOW_TABLE_NAME, "ft"),
        ),
        (
            Synproxy { mss: Some(1460), wscale: Some(7), flags: Some(SynproxyFlags::SACK_PERM) }.into(),
            Stated::new("synproxy")
                .u16(NFTNL_EXPR_SYNPROXY_MSS, 1460)
                .u8(NFTNL_EXPR_SYNPROXY_WSCALE, 7)
                .u32(NFTNL_EXPR_SYNPROXY_FLAGS, 4),
        ),
    ]
}

fn all() -> Vec<(Expr, Stated)> {
    [loaded_and_written(), computed(), done(), sent_elsewhere()].concat()
}

/// Returns a message about a rule of one expression.
fn message(expr: &Expr) -> Vec<u8> {
    let attributes = attr::encode(|w| {
        w.put_str(1, "t");
        w.put_str(2, "c");
        expr.encode(&mut w.nest(4), 1);
    });
    let family = NfGenMsg { family: Family::IP.0, version: 0, resource: 0 }.bytes();
    let payload = [&family[..], &attributes.expect("it is short")].concat();
    encode(Header { kind: 10 << 8 | 6, flags: Flags::empty(), sequence: 1, port: 0 }, &payload)
}

#[test]
fn libnftnl_finds_every_attribute_under_its_name_and_no_other() {
    for (expr, stated) in all() {
        let found = attributes_of(&message(&expr)).unwrap_or_else(|why| panic!("{expr:?}: {why}"));
        let mut missing: BTreeMap<_, _> = stated.attributes.into_iter().collect();
        for (attribute, theirs) in found {
            if stated.inner.as_ref().is_some_and(|(holder, _)| *holder == attribute) {
                continue;
            }
            let ours = missing.remove(&attribute);
            let ours =
                ours.unwrap_or_else(|| panic!("{expr:?}: libnftnl has attribute {attribute}: {theirs:?}"));
            // It says of some texts that they end before their NUL, and of names of modules how much room
            // they have.
            let text = ours.strip_suffix(&[0]).unwrap_or(&ours);
            let rest = theirs.strip_prefix(text).unwrap_or(&[1]);
            assert!(
                ours == theirs || rest.iter().all(|byte| *byte == 0),
                "{expr:?}: {attribute} is {theirs:?}"
            );
        }
        assert!(missing.is_empty(), "{expr:?}: libnftnl does not have {missing:?}");
    }
}

#[test]
fn what_libnftnl_builds_is_decoded_as_it_was_meant() {
    for (expr, stated) in all() {
        let mut payload = rule_of(&[stated]);
        // libnftnl leaves names that it was not given out.
        payload.extend(
            attr::encode(|w| {
                w.put_str(1, "t");
                w.put_str(2, "c");
            })
            .expect("it is short"),
        );
        let rule = read::Rule::decode(Family::IP, Attributes::new(&payload)).expect("a rule of libnftnl's");
        assert_eq!(rule.expressions, [expr]);
    }
}

#[test]
fn every_kind_is_compared() {
    let compared: BTreeSet<_> = all().iter().map(|(expr, _)| expr.name().to_owned()).collect();
    let unknown: BTreeSet<_> = UNKNOWN_TO_LIBNFTNL.iter().map(|(name, _)| (*name).to_owned()).collect();
    let kinds: BTreeSet<_> = Expr::NAMES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(kinds, compared.union(&unknown).cloned().collect());
    assert!(compared.is_disjoint(&unknown), "libnftnl knows what it is said not to");
}

#[test]
fn every_attribute_of_a_kind_is_compared() {
    let mut seen: BTreeMap<String, BTreeSet<u16>> = BTreeMap::new();
    for (expr, _) in all() {
        let bytes = attr::encode(|w| expr.encode(w, 1)).expect("it is short");
        let whole = Attributes::new(&bytes).next().expect("an attribute").expect("ours");
        let data = whole.attributes().find(2).expect("attributes of ours");
        let kinds = data.into_iter().flat_map(|data| data.attributes()).map(|a| a.expect("ours").kind);
        seen.entry(expr.name().to_owned()).or_default().extend(kinds);
    }
    for (name, last) in LAST {
        let expected: BTreeSet<u16> = (1..=*last).filter(|kind| !NO_VALUE.contains(&(name, *kind))).collect();
        assert_eq!(seen.remove(*name).unwrap_or_default(), expected, "{name}");
    }
    assert!(seen.is_empty(), "{seen:?}");
}

/// Padding, and attributes that libnftnl 1.2.4 does not know.
const NO_VALUE: &[(&str, u16)] = &[("bitwise", 8), ("dynset", 8), ("quota", 3), ("tunnel", 3)];

/// The last attribute of each kind (`NFTA_*_MAX` of `linux/netfilter/nf_tables.h`, Linux 6.12), but for
/// padding at the end.
const LAST: &[(&str, u16)] = &[
    ("bitwise", 8),
    ("byteorder", 5),
    ("cmp", 3),
    ("connlimit", 2),
    ("counter", 2),
    ("ct", 4),
    ("dup", 2),
    ("dynset", 10),
    ("exthdr", 7),
    ("fib", 3),
    ("flow_offload", 1),
    ("fwd", 3),
    ("hash", 7),
    ("immediate", 2),
    ("last", 2),
    ("limit", 5),
    ("log", 6),
    ("lookup", 5),
    ("masq", 3),
    ("match", 3),
    ("meta", 3),
    ("nat", 7),
    ("notrack", 0),
    ("numgen", 4),
    ("objref", 5),
    ("osf", 3),
    ("payload", 8),
    ("queue", 4),
    ("quota", 4),
    ("range", 4),
    ("redir", 3),
    ("reject", 2),
    ("rt", 2),
    ("socket", 3),
    ("synproxy", 3),
    ("target", 3),
    ("tproxy", 3),
    ("tunnel", 3),
    ("xfrm", 4),
];
