//! From the typed language to the kernel's expressions: implied matches, registers, sets without a name. What comes out is
//! what nft 1.0.6 makes of the same text, so that every nft lists it as its own.

use std::collections::HashMap;

use crate::datatype::{DataType, Order};
use crate::expr::{
    self, BitwiseOp, ByteorderOp, CmpOp, Data, Expr, ExthdrFlags, ExthdrOp, FibFlags, Register,
};
use crate::expr::{HashType, LookupFlags, MetaKey, NumgenMode, PayloadBase, RangeOp};
use crate::family::Family;
use crate::key::{Key, Part};
use crate::lang::constant::{Bounds, Place};
use crate::lang::{
    BinaryOp, Expression, Fib, Mapping, Match, MatchOp, Payload, Statement, Value, Verdict, Vmap,
};
use crate::name::Name;
use crate::object::{Element, ElementData, Set, SetData, SetFlags, SetId, SetType, TableId};

/// A rule as the kernel takes it, and the anonymous sets that have to be made before it.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    pub(crate) exprs: Vec<Expr>,
    pub(crate) sets: Vec<AnonymousSet>,
}

/// A set that belongs to one rule. The kernel chooses its name; in the batch it goes by its number.
#[derive(Debug)]
pub(crate) struct AnonymousSet {
    pub(crate) number: u32,
    pub(crate) set: Set,
    pub(crate) elements: Vec<Element>,
}

/// A rule that the kernel has no expressions for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// A constant of another type, or too large a number.
    #[error("{value} is no {wanted}")]
    Constant {
        /// The constant.
        value: String,
        /// What its place takes.
        wanted: String,
    },
    /// Something of the packet where the kernel takes constants only.
    #[error("`{expression}` is not a constant")]
    NotConstant {
        /// What is there.
        expression: String,
    },
    /// A range whose end comes before its start.
    #[error("the range {range} ends before it starts")]
    Backwards {
        /// The range.
        range: String,
    },
    /// A prefix longer than what it is of.
    #[error("a prefix of {length} bits is longer than its address of {bits}")]
    PrefixLength {
        /// Bits of the prefix.
        length: u8,
        /// Bits of the address.
        bits: usize,
    },
    /// The kernel cannot do this.
    #[error("{what}: `{expression}`")]
    Unsupported {
        /// Why.
        what: &'static str,
        /// The expression or statement.
        expression: String,
    },
    /// More than the sixteen words of registers hold.
    #[error("`{expression}` needs more than the 64 bytes of registers that there are")]
    Registers {
        /// The expression.
        expression: String,
    },
}

/// Lowers the statements of a rule. `numbers` counts the anonymous sets of a batch.
///
/// `sets` are those that are known: where a set has intervals, numbers in host order are looked up the other way round.
pub(crate) fn lower(
    table: &TableId,
    statements: &[Statement],
    sets: &KnownSets<'_>,
    numbers: &mut u32,
) -> Result<Lowered, LowerError> {
    let mut lower = Lower::new(table, sets, numbers);
    for statement in statements {
        lower.statement(statement)?;
    }
    Ok(lower.out)
}

/// Sets by what names them.
pub(crate) type KnownSets<'a> = HashMap<&'a SetId, &'a Set>;

pub(crate) struct Lower<'a> {
    pub(crate) table: &'a TableId,
    pub(crate) out: Lowered,
    sets: &'a KnownSets<'a>,
    numbers: &'a mut u32,
    /// The network and transport protocol that earlier matches of the rule have fixed.
    network: Option<u64>,
    transport: Option<u64>,
}

impl<'a> Lower<'a> {
    pub(crate) fn new(table: &'a TableId, sets: &'a KnownSets<'a>, numbers: &'a mut u32) -> Self {
        Self { table, out: Lowered::default(), sets, numbers, network: None, transport: None }
    }

    pub(crate) fn family(&self) -> Family {
        self.table.family
    }

    pub(crate) fn push(&mut self, expr: impl Into<Expr>) {
        self.out.exprs.push(expr.into());
    }

    /// Loads an expression, with what it implies, into the registers from a word on. Returns its bytes.
    pub(crate) fn load(&mut self, expression: &Expression, word: u32) -> Result<u32, LowerError> {
        self.imply(expression)?;
        self.load_plain(expression, word)
    }

    /// Loads a constant of a given type, or else as [`load`](Self::load).
    pub(crate) fn load_as(
        &mut self,
        expression: &Expression,
        parts: &[Part],
        word: u32,
    ) -> Result<u32, LowerError> {
        match (expression, parts) {
            (Expression::Value(value), [part]) => {
                let bytes = Place::of(*part).bytes(value)?;
                Ok(self.immediate(bytes, word))
            }
            (Expression::Concat(list), parts) if list.len() == parts.len() && expression.is_constant() => {
                let mut total = 0;
                for (item, part) in list.iter().zip(parts) {
                    let length = self.load_as(item, std::slice::from_ref(part), word + total / 4)?;
                    total += length.next_multiple_of(4);
                }
                Ok(total)
            }
            (Expression::Map(map), parts) => self.load_map(map, parts, word),
            _ => self.load(expression, word),
        }
    }

    pub(crate) fn immediate(&mut self, bytes: Vec<u8>, word: u32) -> u32 {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.push(expr::Immediate { dreg: Register::word(word), data: Data::Value(bytes) });
        length
    }

    fn load_plain(&mut self, expression: &Expression, word: u32) -> Result<u32, LowerError> {
        let field = self.load_field(expression, word)?;
        if field.mask.is_some() {
            self.mask(&field, word);
            self.shift(&field, word);
        }
        Ok(field.bytes)
    }

    /// Loads the bytes that an expression lies in; where it is a bit field, without cutting it out of them.
    fn load_field(&mut self, expression: &Expression, word: u32) -> Result<Field, LowerError> {
        let dreg = Register::word(word);
        let whole =
            |bytes: usize| Field { bytes: u32::try_from(bytes).unwrap_or(u32::MAX), mask: None, shift: 0 };
        let part = expression.part().map_or(0, Part::bytes);
        if word >= WORDS || word + u32::try_from(part.div_ceil(4)).unwrap_or(WORDS) > WORDS {
            return Err(LowerError::Registers { expression: expression.to_string() });
        }
        match expression {
            Expression::Payload(p) => return Ok(self.load_payload(p.base(), p.offset(), p.bits(), word)),
            Expression::RawPayload(p) => return Ok(self.load_payload(p.base, p.offset, p.bits, word)),
            Expression::Exthdr(exthdr) => {
                let field = Field::of(exthdr.offset(), exthdr.bits());
                self.push(expr::Exthdr {
                    dreg: Some(dreg),
                    kind: exthdr.kind(),
                    offset: Some(u32::from(exthdr.offset() / 8)),
                    len: Some(field.bytes),
                    flags: exthdr.is_presence().then_some(ExthdrFlags::PRESENT),
                    op: Some(exthdr.op()),
                    sreg: None,
                });
                return Ok(field);
            }
            Expression::Meta(key) => self.push(expr::Meta { dreg: Some(dreg), key: *key, sreg: None }),
            Expression::Ct(ct) => {
                self.push(expr::Ct { dreg: Some(dreg), key: ct.key, direction: ct.direction, sreg: None });
            }
            Expression::Rt(rt) => self.push(expr::Rt { dreg, key: rt.key }),
            Expression::Socket(socket) => {
                self.push(expr::Socket { key: socket.key, dreg, level: socket.level });
            }
            Expression::Osf(osf) => self.push(expr::Osf {
                dreg,
                ttl: Some(osf.ttl),
                flags: Some(if osf.version { expr::OsfFlags::VERSION } else { expr::OsfFlags::empty() }),
            }),
            Expression::Fib(fib) => {
                let flags = if fib.check { fib.flags | FibFlags::PRESENT } else { fib.flags };
                self.push(expr::Fib { dreg, result: fib.result, flags });
                // Whether there is a route is kept as wide as the route's interface would be.
                return Ok(whole(
                    Expression::Fib(Fib { check: false, ..*fib }).part().map_or(0, Part::bytes),
                ));
            }
            Expression::Numgen(numgen) => self.push(expr::Numgen {
                dreg,
                modulus: numgen.modulus,
                mode: NumgenMode(numgen.mode.0),
                offset: Some(numgen.offset),
            }),
            Expression::Jhash(jhash) => {
                // The result is put at `word`, what is hashed behind it.
                let from = word.next_multiple_of(4) + 4;
                let length = self.load_plain(&jhash.of, from)?;
                self.push(expr::Hash {
                    sreg: Some(Register::word(from)),
                    dreg,
                    len: Some(length),
                    modulus: jhash.modulus,
                    seed: jhash.seed,
                    offset: Some(jhash.offset),
                    of: Some(HashType::JENKINS),
                });
            }
            Expression::Symhash(symhash) => self.push(expr::Hash {
                sreg: None,
                dreg,
                len: None,
                modulus: symhash.modulus,
                seed: None,
                offset: Some(symhash.offset),
                of: Some(HashType::SYMMETRIC),
            }),
            Expression::Ipsec(ipsec) => self.push(expr::Xfrm {
                dreg,
                key: ipsec.key,
                direction: u8::from(ipsec.out),
                number: Some(ipsec.number),
            }),
            Expression::Concat(list) => {
                let mut total = 0;
                for item in list {
                    total += self.load_plain(item, word + total / 4)?.next_multiple_of(4);
                }
                return Ok(whole(usize::try_from(total).unwrap_or(0)));
            }
            Expression::Binary(_) => {
                return self.load_binary(expression, word).map(|bytes| whole(bytes as usize));
            }
            Expression::Map(map) => {
                let bytes = self.load_map(map, &[], word)?;
                return Ok(whole(bytes as usize));
            }
            Expression::Value(value) => {
                let part = expression.part().ok_or_else(|| LowerError::Unsupported {
                    what: "a number needs something that says its width",
                    expression: expression.to_string(),
                })?;
                let bytes = Place::of(part).bytes(value)?;
                self.immediate(bytes, word);
            }
            Expression::Prefix(_) | Expression::Range(_) | Expression::Set(_) | Expression::Named(_) => {
                return Err(LowerError::Unsupported {
                    what: "this is no single value",
                    expression: expression.to_string(),
                });
            }
        }
        Ok(whole(part))
    }

    fn load_payload(&mut self, base: PayloadBase, offset: u16, bits: u16, word: u32) -> Field {
        let field = Field::of(offset, bits);
        self.push(expr::Payload {
            dreg: Some(Register::word(word)),
            base,
            offset: u32::from(offset / 8),
            len: field.bytes,
            sreg: None,
            csum_type: None,
            csum_offset: None,
            csum_flags: None,
        });
        field
    }

    /// Clears all bits but the field's.
    fn mask(&mut self, field: &Field, word: u32) {
        if let Some(mask) = &field.mask {
            let xor = vec![0; mask.len()];
            self.bitwise(word, mask.clone(), xor);
        }
    }

    fn shift(&mut self, field: &Field, word: u32) {
        if field.shift > 0 {
            self.shift_by(word, field.bytes, BitwiseOp::RSHIFT, u32::from(field.shift));
        }
    }

    fn shift_by(&mut self, word: u32, bytes: u32, op: BitwiseOp, by: u32) {
        let register = Register::word(word);
        self.push(expr::Bitwise {
            sreg: register,
            dreg: register,
            len: bytes,
            mask: None,
            xor: None,
            op: Some(op),
            data: Some(Data::Value(by.to_ne_bytes().to_vec())),
            sreg2: None,
        });
    }

    pub(crate) fn bitwise(&mut self, word: u32, mask: Vec<u8>, xor: Vec<u8>) {
        let register = Register::word(word);
        self.push(expr::Bitwise {
            sreg: register,
            dreg: register,
            len: u32::try_from(mask.len()).unwrap_or(u32::MAX),
            mask: Some(Data::Value(mask)),
            xor: Some(Data::Value(xor)),
            op: Some(BitwiseOp::BOOL),
            data: None,
            sreg2: None,
        });
    }

    /// All of `& | ^` with constants are one `(x & mask) ^ xor`.
    fn load_binary(&mut self, expression: &Expression, word: u32) -> Result<u32, LowerError> {
        let Expression::Binary(binary) = expression else {
            return self.load_plain(expression, word);
        };
        if let BinaryOp::ShiftLeft | BinaryOp::ShiftRight = binary.op {
            let bytes = self.load_binary(&binary.left, word)?;
            let by = Place { part: DataType::INTEGER.into(), bytes: 4, shift: 0 };
            let by = crate::key::integer(Order::Host, &Bounds::of(&binary.right, by)?.low);
            let op = if binary.op == BinaryOp::ShiftLeft { BitwiseOp::LSHIFT } else { BitwiseOp::RSHIFT };
            self.shift_by(word, bytes, op, u32::try_from(by).unwrap_or(u32::MAX));
            return Ok(bytes);
        }
        let (inner, ops) = flatten(binary);
        let bytes = self.load_binary(inner, word)?;
        let part = inner.part().ok_or_else(|| LowerError::Unsupported {
            what: "only one value at a time can be masked",
            expression: expression.to_string(),
        })?;
        let place = Place { part, bytes: bytes as usize, shift: 0 };
        let (mask, xor) = combine(&ops, place)?;
        self.bitwise(word, mask, xor);
        Ok(bytes)
    }

    /// Looks a key up and leaves the value where the key was.
    fn load_map(&mut self, map: &crate::lang::Map, wanted: &[Part], word: u32) -> Result<u32, LowerError> {
        self.imply(&map.key)?;
        let key = self.load_key(&map.key, matches!(map.map, Mapping::Anonymous(_)), word)?;
        let intervals = match &map.map {
            Mapping::Named(name) => self.has_intervals(name),
            Mapping::Anonymous(pairs) => pairs.iter().any(|(key, _)| is_interval(key)),
        };
        self.turn(intervals, &key, word);
        let (set, set_id, bytes) = match &map.map {
            Mapping::Named(name) => (name.clone(), None, wanted.iter().map(|p| p.bytes()).sum()),
            Mapping::Anonymous(pairs) => {
                let own = pairs.first().map(|(_, value)| value.parts()).unwrap_or_default();
                let parts = if wanted.is_empty() { own } else { wanted.to_vec() };
                let bytes = padded(&parts);
                let (name, number) = self.anonymous_map(&key, pairs, &parts)?;
                (name, Some(number), bytes)
            }
        };
        let register = Register::word(word);
        self.push(expr::Lookup { set, sreg: register, dreg: Some(register), set_id, flags: None });
        Ok(u32::try_from(bytes).unwrap_or(u32::MAX))
    }

    /// Loads what a set or map is looked up with. Members of a set made for the rule are shifted instead of the packet's bit field.
    fn load_key(&mut self, key: &Expression, anonymous: bool, word: u32) -> Result<Vec<Place>, LowerError> {
        if let Expression::Concat(list) = key {
            self.load_plain(key, word)?;
            return list.iter().map(|item| self.place(item)).collect();
        }
        let field = self.load_field(key, word)?;
        self.mask(&field, word);
        if !anonymous {
            self.shift(&field, word);
        }
        let place = self.place(key)?;
        let shift = if anonymous { field.shift } else { 0 };
        Ok(vec![Place { bytes: field.bytes as usize, shift, ..place }])
    }

    fn place(&self, expression: &Expression) -> Result<Place, LowerError> {
        expression.part().map(Place::of).ok_or_else(|| LowerError::Unsupported {
            what: "the type of this is not known here",
            expression: expression.to_string(),
        })
    }

    /// Matches for what an expression takes for granted: `tcp dport` that the packet is TCP.
    pub(crate) fn imply(&mut self, expression: &Expression) -> Result<(), LowerError> {
        match expression {
            Expression::Payload(payload) => self.imply_header(*payload),
            Expression::Exthdr(exthdr) => match exthdr.op() {
                ExthdrOp::IPV6 => self.imply_network(Family::IP6),
                ExthdrOp::IPV4 => self.imply_network(Family::IP),
                ExthdrOp::TCPOPT => {}
                ExthdrOp::SCTP => self.imply_transport(132),
                _ => {}
            },
            Expression::Concat(list) => list.iter().try_for_each(|item| self.imply(item))?,
            Expression::Binary(binary) => self.imply(&binary.left)?,
            Expression::Map(map) => self.imply(&map.key)?,
            Expression::Jhash(jhash) => self.imply(&jhash.of)?,
            _ => {}
        }
        Ok(())
    }

    fn imply_header(&mut self, payload: Payload) {
        match payload.protocol() {
            "ip" => self.imply_network(Family::IP),
            "ip6" => self.imply_network(Family::IP6),
            "arp" => self.imply_network(Family::ARP),
            "ether" => self.imply_ethernet(),
            "vlan" => self.imply_vlan(),
            "icmp" => {
                self.imply_network(Family::IP);
                self.imply_transport(1);
            }
            "igmp" => {
                self.imply_network(Family::IP);
                self.imply_transport(2);
            }
            "icmpv6" => {
                self.imply_network(Family::IP6);
                self.imply_transport(58);
            }
            protocol => {
                if let Some(number) = DataType::INET_PROTO.value_of(protocol) {
                    self.imply_transport(number);
                }
            }
        }
    }

    pub(crate) fn imply_network(&mut self, family: Family) {
        let own = self.family();
        if own == family || self.network == Some(u64::from(family.0)) {
            return;
        }
        let (key, bytes) = match (own, family) {
            (Family::INET, _) => (MetaKey::NFPROTO, vec![family.0]),
            (_, Family::IP) => (MetaKey::PROTOCOL, vec![0x08, 0x00]),
            (_, Family::ARP) => (MetaKey::PROTOCOL, vec![0x08, 0x06]),
            _ => (MetaKey::PROTOCOL, vec![0x86, 0xdd]),
        };
        self.network = Some(u64::from(family.0));
        self.match_meta(key, bytes);
    }

    pub(crate) fn imply_transport(&mut self, protocol: u64) {
        if self.transport != Some(protocol) {
            self.transport = Some(protocol);
            self.match_meta(MetaKey::L4PROTO, vec![u8::try_from(protocol).unwrap_or(u8::MAX)]);
        }
    }

    fn imply_ethernet(&mut self) {
        if !matches!(self.family(), Family::BRIDGE | Family::NETDEV) {
            self.match_meta(MetaKey::IIFTYPE, 1_u16.to_ne_bytes().to_vec());
        }
    }

    fn imply_vlan(&mut self) {
        self.load_payload(PayloadBase::LINK, 96, 16, 0);
        self.compare(0, CmpOp::EQ, vec![0x81, 0x00]);
    }

    fn match_meta(&mut self, key: MetaKey, bytes: Vec<u8>) {
        self.push(expr::Meta { dreg: Some(Register::word(0)), key, sreg: None });
        self.compare(0, CmpOp::EQ, bytes);
    }

    fn compare(&mut self, word: u32, op: CmpOp, bytes: Vec<u8>) {
        self.push(expr::Cmp { sreg: Register::word(word), op, data: Data::Value(bytes) });
    }

    pub(crate) fn matching(&mut self, m: &Match) -> Result<(), LowerError> {
        self.imply(&m.left)?;
        self.note_protocol(m);
        let right = match &m.right {
            // One member is no set, but where it is a concatenation nft keeps it one.
            Expression::Set(members) => match members.as_slice() {
                [only] if !matches!(only, Expression::Concat(_)) => only,
                _ => &m.right,
            },
            right => right,
        };
        match right {
            Expression::Named(name) => self.look_up(&m.left, m.op, name.clone(), None),
            Expression::Set(members) => {
                let keys = self.load_key(&m.left, true, 0)?;
                self.turn(members.iter().any(is_interval), &keys, 0);
                let (name, number) = self.anonymous_set(&keys, members)?;
                self.push_lookup(m.op, name, Some(number));
                Ok(())
            }
            Expression::Concat(_) => {
                let keys = self.load_key(&m.left, true, 0)?;
                self.turn(is_interval(right), &keys, 0);
                let (name, number) = self.anonymous_set(&keys, std::slice::from_ref(right))?;
                self.push_lookup(m.op, name, Some(number));
                Ok(())
            }
            Expression::Prefix(prefix) => self.match_prefix(m, prefix),
            Expression::Range(_) => self.match_range(m, right),
            Expression::Value(value) => self.match_value(m, value),
            other => Err(LowerError::NotConstant { expression: other.to_string() }),
        }
    }

    /// Remembers the protocol that a match fixes, so that later ones need not imply it.
    fn note_protocol(&mut self, m: &Match) {
        let (MatchOp::In | MatchOp::Eq, Expression::Value(Value::Number(number))) = (m.op, &m.right) else {
            return;
        };
        match &m.left {
            Expression::Meta(MetaKey::L4PROTO)
            | Expression::Payload(Payload::IP_PROTOCOL | Payload::IP6_NEXTHDR) => {
                self.transport = Some(*number);
            }
            Expression::Meta(MetaKey::NFPROTO) => self.network = Some(*number),
            Expression::Meta(MetaKey::PROTOCOL) | Expression::Payload(Payload::ETHER_TYPE) => {
                self.network = match number {
                    0x0800 => Some(Family::IP.0.into()),
                    0x86dd => Some(Family::IP6.0.into()),
                    0x0806 => Some(Family::ARP.0.into()),
                    _ => self.network,
                };
            }
            _ => {}
        }
    }

    fn look_up(
        &mut self,
        left: &Expression,
        op: MatchOp,
        set: Name,
        number: Option<u32>,
    ) -> Result<(), LowerError> {
        self.load_named(left, &set)?;
        self.push_lookup(op, set, number);
        Ok(())
    }

    /// Loads the key of a named set.
    fn load_named(&mut self, key: &Expression, set: &Name) -> Result<(), LowerError> {
        if !self.has_intervals(set) {
            return self.load_plain(key, 0).map(drop);
        }
        let keys = self.load_key(key, false, 0)?;
        self.turn(true, &keys, 0);
        Ok(())
    }

    fn has_intervals(&self, name: &Name) -> bool {
        let id = |map| SetId { table: self.table.clone(), name: name.clone(), map };
        let set = self.sets.get(&id(false)).or_else(|| self.sets.get(&id(true)));
        set.is_some_and(|set| set.flags.contains(SetFlags::INTERVAL))
    }

    /// Intervals are compared in network order: numbers in host order are turned before they are looked up in them.
    fn turn(&mut self, intervals: bool, keys: &[Place], word: u32) {
        let mut word = word;
        for place in keys.iter().filter(|_| intervals) {
            let size = u32::try_from(place.bytes).unwrap_or(0);
            if crate::object::element::is_turned(place.part) && matches!(size, 2 | 4 | 8) {
                let register = Register::word(word);
                self.push(expr::Byteorder {
                    sreg: register,
                    dreg: register,
                    op: ByteorderOp::HTON,
                    len: size,
                    size,
                });
            }
            word += size.div_ceil(4);
        }
    }

    fn push_lookup(&mut self, op: MatchOp, set: Name, set_id: Option<u32>) {
        let flags = (op == MatchOp::Neq).then_some(LookupFlags::INVERT);
        self.push(expr::Lookup { set, sreg: Register::word(0), dreg: None, set_id, flags });
    }

    fn match_value(&mut self, m: &Match, value: &Value) -> Result<(), LowerError> {
        let field = self.load_field(&m.left, 0)?;
        self.mask(&field, 0);
        let part = self.place(&m.left)?.part;
        let place = Place { part, bytes: field.bytes as usize, shift: field.shift };
        if let Value::Interface(name) | Value::Text(name) = value
            && let Some(stem) = name.as_str().strip_suffix('*')
        {
            self.compare(0, equality(m)?, stem.as_bytes().to_vec());
            return Ok(());
        }
        let bytes = place.bytes(value)?;
        let bits = part.data_type().is_bitmask() && !matches!(m.left, Expression::Binary(_));
        match m.op {
            MatchOp::In | MatchOp::None if bits => {
                let op = if m.op == MatchOp::In { CmpOp::NEQ } else { CmpOp::EQ };
                let zero = vec![0; bytes.len()];
                self.bitwise(0, bytes, zero.clone());
                self.compare(0, op, zero);
            }
            MatchOp::In | MatchOp::Eq | MatchOp::Neq => self.compare(0, equality(m)?, bytes),
            MatchOp::Lt | MatchOp::Gt | MatchOp::Lte | MatchOp::Gte => {
                let bytes = self.in_network_order(part, bytes, 0);
                self.compare(0, order(m.op), bytes);
            }
            MatchOp::None => {
                return Err(LowerError::Unsupported {
                    what: "this is no bit mask",
                    expression: m.to_string(),
                });
            }
        }
        Ok(())
    }

    fn match_prefix(&mut self, m: &Match, prefix: &crate::lang::Prefix) -> Result<(), LowerError> {
        let right = Expression::Prefix(prefix.clone());
        let bounds = Bounds::of(&right, self.place(&m.left)?)?;
        let (whole, rest) = (usize::from(prefix.length / 8), prefix.length % 8);
        if let Expression::Payload(payload) = &m.left
            && rest == 0
            && whole > 0
        {
            // Whole bytes: load only these.
            let bytes = bounds.low.get(..whole).unwrap_or_default().to_vec();
            self.load_payload(payload.base(), payload.offset(), u16::from(prefix.length), 0);
            self.compare(0, equality(m)?, bytes);
            return Ok(());
        }
        self.load_plain(&m.left, 0)?;
        let mask: Vec<u8> = bounds.low.iter().zip(&bounds.high).map(|(low, high)| !(low ^ high)).collect();
        let zero = vec![0; mask.len()];
        self.bitwise(0, mask, zero);
        self.compare(0, equality(m)?, bounds.low);
        Ok(())
    }

    fn match_range(&mut self, m: &Match, right: &Expression) -> Result<(), LowerError> {
        let field = self.load_field(&m.left, 0)?;
        self.mask(&field, 0);
        let part = self.place(&m.left)?.part;
        let bounds = Bounds::of(right, Place { part, bytes: field.bytes as usize, shift: field.shift })?;
        let low = self.in_network_order(part, bounds.low, 0);
        let high = if part.order() == Order::Host { reversed(bounds.high) } else { bounds.high };
        if equality(m)? == CmpOp::NEQ {
            let (from, to) = (Data::Value(low), Data::Value(high));
            self.push(expr::Range { sreg: Register::word(0), op: RangeOp::NEQ, from, to });
        } else {
            self.compare(0, CmpOp::GTE, low);
            self.compare(0, CmpOp::LTE, high);
        }
        Ok(())
    }

    /// Order is by bytes: what is in host order has to be turned before it is compared so.
    fn in_network_order(&mut self, part: Part, bytes: Vec<u8>, word: u32) -> Vec<u8> {
        let size = u32::try_from(bytes.len()).unwrap_or(0);
        if part.order() == Order::Network || size == 1 {
            return bytes;
        }
        let register = Register::word(word);
        self.push(expr::Byteorder { sreg: register, dreg: register, op: ByteorderOp::HTON, len: size, size });
        reversed(bytes)
    }

    pub(crate) fn vmap(&mut self, vmap: &Vmap) -> Result<(), LowerError> {
        self.imply(&vmap.key)?;
        let (set, set_id) = match &vmap.map {
            Mapping::Named(name) => {
                self.load_named(&vmap.key, name)?;
                (name.clone(), None)
            }
            Mapping::Anonymous(pairs) => {
                let keys = self.load_key(&vmap.key, true, 0)?;
                self.turn(pairs.iter().any(|(key, _)| is_interval(key)), &keys, 0);
                let (name, number) = self.anonymous_vmap(&keys, pairs)?;
                (name, Some(number))
            }
        };
        let dreg = Some(Register::VERDICT);
        self.push(expr::Lookup { set, sreg: Register::word(0), dreg, set_id, flags: None });
        Ok(())
    }

    fn anonymous_set(&mut self, keys: &[Place], members: &[Expression]) -> Result<(Name, u32), LowerError> {
        let elements = members.iter().map(|member| element(keys, member)).collect::<Result<_, _>>()?;
        Ok(self.anonymous(keys, None, elements))
    }

    fn anonymous_vmap(
        &mut self,
        keys: &[Place],
        pairs: &[(Expression, Verdict)],
    ) -> Result<(Name, u32), LowerError> {
        let elements = pairs
            .iter()
            .map(|(key, verdict)| Ok(element(keys, key)?.verdict(verdict.clone())))
            .collect::<Result<_, _>>()?;
        Ok(self.anonymous(keys, Some(SetData::Verdict), elements))
    }

    fn anonymous_map(
        &mut self,
        keys: &[Place],
        pairs: &[(Expression, Expression)],
        data: &[Part],
    ) -> Result<(Name, u32), LowerError> {
        let places: Vec<_> = data.iter().copied().map(Place::of).collect();
        let elements = pairs
            .iter()
            .map(|(key, value)| {
                let (low, high) = key_bounds(&places, value)?;
                Ok(match high {
                    None => element(keys, key)?.value(low),
                    Some(high) => element(keys, key)?.value_range(low, high),
                })
            })
            .collect::<Result<_, _>>()?;
        let of = SetType::Types(data.iter().map(|part| part.data_type()).collect());
        Ok(self.anonymous(keys, Some(SetData::Value(of)), elements))
    }

    fn anonymous(
        &mut self,
        keys: &[Place],
        data: Option<SetData>,
        mut elements: Vec<Element>,
    ) -> (Name, u32) {
        *self.numbers += 1;
        let number = *self.numbers;
        let name = Name::held(if data.is_some() { "__map%d" } else { "__set%d" });
        let id = SetId { table: self.table.clone(), name: name.clone(), map: data.is_some() };
        let mut set = Set::new(id, SetType::Parts(keys.iter().map(|place| place.wide_part()).collect()));
        set.flags = SetFlags::ANONYMOUS | SetFlags::CONSTANT;
        if elements.iter().any(|e| e.end().is_some()) {
            set.flags |= SetFlags::INTERVAL;
            if keys.len() == 1 {
                elements = merged(elements);
            }
        }
        set.data = data;
        let sized = crate::object::element::wire_count(&set, &elements);
        set.size = u32::try_from(sized).ok();
        self.out.sets.push(AnonymousSet { number, set, elements });
        (name, number)
    }
}

impl Place {
    /// The part that a key of this place has: where a bit field makes the value wider than its type, an integer.
    fn wide_part(self) -> Part {
        if self.bytes == self.part.bytes() {
            return self.part;
        }
        Part::Integer { bytes: u8::try_from(self.bytes).unwrap_or(16), order: self.part.order() }
    }
}

/// Bytes in a register, and which of their bits count.
struct Field {
    bytes: u32,
    mask: Option<Vec<u8>>,
    shift: u16,
}

impl Field {
    /// The bytes that so many bits from an offset lie in.
    fn of(offset: u16, bits: u16) -> Self {
        let bytes = (offset % 8 + bits).div_ceil(8);
        let shift = bytes * 8 - offset % 8 - bits;
        let mask = (bits != bytes * 8 && bytes <= 8).then(|| {
            let ones = u64::MAX >> (64 - u32::from(bits));
            crate::key::integer_bytes(Order::Network, usize::from(bytes), ones << shift)
        });
        Self { bytes: u32::from(bytes), mask, shift }
    }
}

/// The innermost operand and what is done with it, in order.
fn flatten(binary: &crate::lang::Binary) -> (&Expression, Vec<(BinaryOp, &Expression)>) {
    let mut ops = vec![(binary.op, &binary.right)];
    let mut inner = &binary.left;
    while let Expression::Binary(b) = inner
        && !matches!(b.op, BinaryOp::ShiftLeft | BinaryOp::ShiftRight)
    {
        ops.push((b.op, &b.right));
        inner = &b.left;
    }
    ops.reverse();
    (inner, ops)
}

/// `(x & mask) ^ xor` for a row of operations with constants.
fn combine(ops: &[(BinaryOp, &Expression)], place: Place) -> Result<(Vec<u8>, Vec<u8>), LowerError> {
    let mut mask = vec![0xff; place.bytes];
    let mut xor = vec![0; place.bytes];
    for (op, constant) in ops {
        let constant = Bounds::of(constant, place)?.low;
        for ((m, x), c) in mask.iter_mut().zip(&mut xor).zip(constant) {
            (*m, *x) = match op {
                BinaryOp::And => (*m & c, *x & c),
                BinaryOp::Or => (*m & !c, *x & !c | c),
                _ => (*m, *x ^ c),
            };
        }
    }
    Ok((mask, xor))
}

/// Whether a member of a set is more than one value.
fn is_interval(member: &Expression) -> bool {
    match member {
        Expression::Prefix(_) | Expression::Range(_) => true,
        Expression::Value(Value::Interface(name) | Value::Text(name)) => name.as_str().ends_with('*'),
        Expression::Concat(parts) => parts.iter().any(is_interval),
        _ => false,
    }
}

/// Bytes of a value in registers.
fn padded(parts: &[Part]) -> usize {
    match parts {
        [only] => only.bytes(),
        parts => parts.iter().map(|part| part.bytes().next_multiple_of(4)).sum(),
    }
}

fn element(keys: &[Place], member: &Expression) -> Result<Element, LowerError> {
    if matches!(member, Expression::Set(members) if members.is_empty()) {
        return Ok(Element::catch_all());
    }
    Ok(match key_bounds(keys, member)? {
        (low, None) => Element::new(low),
        (low, Some(high)) => Element::range(low, high),
    })
}

/// A constant as a key, and its upper bound where it is a range.
fn key_bounds(places: &[Place], constant: &Expression) -> Result<(Key, Option<Key>), LowerError> {
    let parts: &[Expression] = match constant {
        Expression::Concat(parts) => parts,
        single => std::slice::from_ref(single),
    };
    if parts.len() != places.len() {
        return Err(LowerError::Constant {
            value: constant.to_string(),
            wanted: format!("value of {} parts", places.len()),
        });
    }
    let (mut low, mut high, mut single) = (Key::new(), Key::new(), true);
    for (part, place) in parts.iter().zip(places) {
        let bounds = Bounds::of(part, *place)?;
        single &= bounds.is_single();
        low.append(place.wide_part(), &bounds.low);
        high.append(place.wide_part(), &bounds.high);
    }
    Ok((low, (!single).then_some(high)))
}

/// Ranges that touch or overlap are one, as nft makes them in a set without a name.
fn merged(mut elements: Vec<Element>) -> Vec<Element> {
    if elements.iter().any(|e| *e.data() != ElementData::None || e.is_catch_all()) {
        return elements;
    }
    let order = |e: &Element| crate::object::element::sortable(e.key());
    elements.sort_by_key(order);
    let mut out: Vec<Element> = Vec::with_capacity(elements.len());
    for element in elements {
        let end = *element.end().unwrap_or(element.key());
        if let Some(last) = out.last_mut() {
            let last_end = *last.end().unwrap_or(last.key());
            let touches = crate::object::element::successor(&last_end).is_none_or(|next| {
                crate::object::element::sortable(element.key()) <= crate::object::element::sortable(&next)
            });
            if touches {
                let high = std::cmp::max_by_key(end, last_end, crate::object::element::sortable);
                *last = Element::range(*last.key(), high);
                continue;
            }
        }
        out.push(element);
    }
    out
}

fn equality(m: &Match) -> Result<CmpOp, LowerError> {
    match m.op {
        MatchOp::In | MatchOp::Eq => Ok(CmpOp::EQ),
        MatchOp::Neq => Ok(CmpOp::NEQ),
        _ => {
            Err(LowerError::Unsupported { what: "this can only be equal or not", expression: m.to_string() })
        }
    }
}

fn order(op: MatchOp) -> CmpOp {
    match op {
        MatchOp::Lt => CmpOp::LT,
        MatchOp::Gt => CmpOp::GT,
        MatchOp::Lte => CmpOp::LTE,
        _ => CmpOp::GTE,
    }
}

fn reversed(mut bytes: Vec<u8>) -> Vec<u8> {
    if cfg!(target_endian = "little") {
        bytes.reverse();
    }
    bytes
}

/// `NFT_REG32_COUNT`
const WORDS: u32 = 16;
