//! Any of the kernel's expressions in rules: what is listed of them is read as what was listed, and sent as that,
//! or the listing says that it has no words, and no reader takes it.
//!
//! The bytes are read by a small language, so that most of them are loads, operations on registers, comparisons and
//! statements that belong together.

use sluicegate_nftables::expr::kind::{
    Bitwise, Byteorder, Cmp, Counter, Ct, Dup, Exthdr, Immediate, Lookup, Meta, Nat, Payload, Queue, Range,
    Redir, Reject, Rt,
};
use sluicegate_nftables::expr::{
    BitwiseOp, ByteorderOp, Bytes, CmpOp, CtKey, Data, Direction, Expr, ExthdrFlags, ExthdrOp, LookupFlags,
    MetaKey, NatType, PayloadBase, RangeOp, Register, RejectType, RtKey, Verdict,
};
use sluicegate_nftables::fake::Fake;
use sluicegate_nftables::lang::Statement;
use sluicegate_nftables::{
    ApplyOptions, Chain, DataType, Element, Family, Port, Set, SetFlags, Table, TableContent, TableId,
    Transaction,
};

pub(crate) fn run(data: &[u8]) {
    let mut from = From(data);
    let families = [Family::IP, Family::IP6, Family::INET, Family::BRIDGE, Family::ARP];
    let table = TableId::new(families[usize::from(from.byte()) % families.len()], "t".parse().unwrap());
    let chain = table.chain("c".parse().unwrap());
    let (plain, ranged) = (table.set("s".parse().unwrap()), table.set("r".parse().unwrap()));
    let mut world = Transaction::new();
    world.add(Table::new(table.clone())).add(Chain::new(chain.clone()));
    world.add(Set::new(plain.clone(), DataType::INET_SERVICE)).add_element(&plain, Element::new(Port(80)));
    world.add(Set::new(ranged, DataType::IPV4_ADDR).flags(SetFlags::INTERVAL));
    let mut fake = Fake::new();
    world.apply(&mut fake).expect("there is nothing yet");
    while !from.0.is_empty() {
        let count = usize::from(from.byte() % 12) + 1;
        let exprs: Vec<Expr> = (0..count).map_while(|_| from.expression()).collect();
        let mut rule = Transaction::new();
        rule.add(chain.rule().then(Statement::Raw(exprs)));
        // What the kernel refuses nobody lists.
        let _ = rule.apply(&mut fake);
    }
    fake.ruleset().content().iter().for_each(check);
}

/// Each rule by itself: one that has no words makes the whole unreadable.
fn check(content: &TableContent) {
    let mut bare = content.clone();
    bare.chains.clear();
    let world = |rule: Option<String>| {
        let mut text = bare.to_string();
        text.truncate(text.rfind('}').expect("a block"));
        format!("{text}\n\tchain c {{\n{}\t}}\n}}\n", rule.unwrap_or_default())
    };
    for (_, rules) in &content.chains {
        for rule in rules {
            // What loads a field and does nothing with it.
            if rule.statements.is_empty() {
                continue;
            }
            let is_raw = rule.statements.iter().any(|statement| matches!(statement, Statement::Raw(_)));
            let text = world(Some(format!("\t\t{}\n", rule.body())));
            let read = Transaction::parse(&text);
            if is_raw {
                assert!(read.is_err(), "{text}");
                continue;
            }
            // Some are as nft lists them, and refused by both.
            let Ok(read) = read else { continue };
            let mut listed = Transaction::parse(&world(None)).expect("without rules it is read");
            let mut new = rule.clone();
            new.handle = None;
            listed.add(new);
            let sent = |of: &Transaction| {
                of.encode(ApplyOptions::default()).map(|batch| format!("{:?}", batch.bytes()))
            };
            let (read, listed) = (sent(&read), sent(&listed));
            let is_same = matches!((&read, &listed), (Ok(read), Ok(listed)) if read == listed);
            assert!(is_same || read.is_err(), "{text}\n{:?}\nread: {read:?}", rule.statements);
        }
    }
}

/// Reads numbers of bytes; of none they are zero.
struct From<'a>(&'a [u8]);

impl From<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn among<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::from(self.byte()) % list.len()]
    }

    /// Mostly the first register, as most rules have it.
    fn register(&mut self) -> Register {
        self.among(&[
            Register(1),
            Register(1),
            Register(1),
            Register(2),
            Register(9),
            Register(10),
            Register(12),
        ])
    }

    fn length(&mut self) -> usize {
        self.among(&[1, 2, 3, 4, 4, 6, 8, 16])
    }

    fn bytes(&mut self, length: usize) -> Bytes {
        let kind = self.byte();
        let bytes: Vec<u8> = (0..length)
            .map(|at| match kind % 8 {
                0 => 0,
                1 => 0xff,
                // Ones from the start, or at the end.
                2 => 0xff_u8
                    .checked_shl(
                        8_u32.saturating_sub(u32::from(kind >> 3).saturating_sub(8 * at as u32)).min(8),
                    )
                    .unwrap_or(0),
                3 => {
                    if at + 1 == length {
                        kind >> 3
                    } else {
                        0
                    }
                }
                4 => {
                    if at == 0 {
                        kind >> 3
                    } else {
                        0
                    }
                }
                _ => self.byte(),
            })
            .collect();
        bytes.as_slice().into()
    }

    fn value(&mut self, length: usize) -> Data {
        Data::Value(self.bytes(length))
    }

    fn expression(&mut self) -> Option<Expr> {
        if self.0.is_empty() {
            return None;
        }
        Some(match self.byte() % 20 {
            0..=2 => Payload {
                dreg: Some(self.register()),
                base: self.among(&[PayloadBase::LINK, PayloadBase::NETWORK, PayloadBase::TRANSPORT]),
                offset: u32::from(self.byte() % 40),
                len: self.length() as u32,
                sreg: None,
                csum_type: None,
                csum_offset: None,
                csum_flags: None,
            }
            .into(),
            3 => Meta {
                dreg: Some(self.register()),
                key: self.among(&[
                    MetaKey::MARK,
                    MetaKey::NFPROTO,
                    MetaKey::L4PROTO,
                    MetaKey::PROTOCOL,
                    MetaKey::IIFTYPE,
                    MetaKey::IIFNAME,
                    MetaKey::LEN,
                    MetaKey::PRIORITY,
                ]),
                sreg: None,
            }
            .into(),
            // What mostly follows such a load, so that headers have names.
            4 => Cmp {
                sreg: Register(1),
                op: CmpOp::EQ,
                data: Data::Value(
                    self.among(&[&[2][..], &[10], &[6], &[17], &[1], &[58], &[8, 0], &[1, 0], &[0x81, 0]])
                        .into(),
                ),
            }
            .into(),
            5 | 6 => {
                let length = self.length();
                let op = self.among(&[
                    CmpOp::EQ,
                    CmpOp::EQ,
                    CmpOp::NEQ,
                    CmpOp::LT,
                    CmpOp::GTE,
                    CmpOp::GT,
                    CmpOp::LTE,
                ]);
                Cmp { sreg: self.register(), op, data: self.value(length) }.into()
            }
            7 | 8 => {
                let length = self.length();
                Bitwise {
                    sreg: self.register(),
                    dreg: self.register(),
                    len: length as u32,
                    mask: Some(self.value(length)),
                    xor: Some(self.value(length)),
                    op: Some(BitwiseOp::BOOL),
                    data: None,
                    sreg2: None,
                }
                .into()
            }
            9 => Bitwise {
                sreg: self.register(),
                dreg: self.register(),
                len: self.length() as u32,
                mask: None,
                xor: None,
                op: Some(self.among(&[BitwiseOp::LSHIFT, BitwiseOp::RSHIFT])),
                data: Some(Data::Value(u32::from(self.byte() % 33).to_ne_bytes()[..].into())),
                sreg2: None,
            }
            .into(),
            10 => {
                let register = self.register();
                Byteorder {
                    sreg: register,
                    dreg: register,
                    op: self.among(&[ByteorderOp::NTOH, ByteorderOp::HTON]),
                    len: self.length() as u32,
                    size: self.among(&[2, 4, 8]),
                }
                .into()
            }
            11 => {
                let length = self.length();
                let op = self.among(&[RangeOp::EQ, RangeOp::NEQ]);
                Range { sreg: self.register(), op, from: self.value(length), to: self.value(length) }.into()
            }
            12 => Lookup {
                set: self.among(&["s", "r"]).parse().expect("a name"),
                sreg: self.register(),
                dreg: None,
                set_id: None,
                flags: Some(self.among(&[LookupFlags::empty(), LookupFlags::INVERT])),
            }
            .into(),
            13 => {
                let length = self.length();
                Immediate { dreg: self.register(), data: self.value(length) }.into()
            }
            14 => Ct {
                dreg: Some(self.register()),
                key: self.among(&[
                    CtKey::MARK,
                    CtKey::STATE,
                    CtKey::SADDR,
                    CtKey::SADDR_IP,
                    CtKey::PROTO_DST,
                    CtKey::ZONE,
                ]),
                direction: self.among(&[None, Some(Direction::ORIGINAL)]),
                sreg: None,
            }
            .into(),
            15 => Exthdr {
                dreg: Some(self.register()),
                kind: self.among(&[2, 3, 44, 43, 0, 30]),
                offset: Some(u32::from(self.byte() % 8)),
                len: Some(self.length() as u32),
                flags: Some(self.among(&[ExthdrFlags::empty(), ExthdrFlags::empty(), ExthdrFlags::PRESENT])),
                op: Some(self.among(&[ExthdrOp::IPV6, ExthdrOp::TCPOPT])),
                sreg: None,
            }
            .into(),
            16 => match self.byte() % 4 {
                0 => Meta {
                    dreg: None,
                    key: self.among(&[MetaKey::MARK, MetaKey::PRIORITY]),
                    sreg: Some(self.register()),
                }
                .into(),
                1 => Ct {
                    dreg: None,
                    key: self.among(&[CtKey::MARK, CtKey::ZONE]),
                    direction: None,
                    sreg: Some(self.register()),
                }
                .into(),
                2 => Rt {
                    dreg: self.register(),
                    key: self.among(&[RtKey::CLASSID, RtKey::NEXTHOP_IP, RtKey::NEXTHOP_IP6]),
                }
                .into(),
                _ => Payload {
                    dreg: None,
                    base: self.among(&[PayloadBase::NETWORK, PayloadBase::TRANSPORT]),
                    offset: u32::from(self.byte() % 40),
                    len: self.length() as u32,
                    sreg: Some(self.register()),
                    csum_type: None,
                    csum_offset: None,
                    csum_flags: None,
                }
                .into(),
            },
            17 => match self.byte() % 5 {
                0 => Nat {
                    of: self.among(&[NatType::SNAT, NatType::DNAT]),
                    family: self.among(&[2, 10]),
                    addr_min: Some(self.register()),
                    addr_max: None,
                    proto_min: self.among(&[None, Some(Register(2))]),
                    proto_max: None,
                    flags: None,
                }
                .into(),
                1 => Redir { proto_min: Some(self.register()), proto_max: None, flags: None }.into(),
                2 => Dup { addr: Some(self.register()), device: None }.into(),
                3 => Queue { number: None, total: None, flags: None, sreg: Some(self.register()) }.into(),
                _ => Reject {
                    of: self.among(&[
                        RejectType::ICMP_UNREACH,
                        RejectType::TCP_RST,
                        RejectType::ICMPX_UNREACH,
                    ]),
                    code: Some(self.byte() % 5),
                }
                .into(),
            },
            18 => Counter { bytes: Some(0), packets: Some(0) }.into(),
            _ => Immediate {
                dreg: Register::VERDICT,
                data: Data::Verdict(match self.byte() % 3 {
                    0 => Verdict::Accept,
                    1 => Verdict::Drop,
                    _ => Verdict::Return,
                }),
            }
            .into(),
        })
    }
}
