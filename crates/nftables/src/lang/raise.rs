//! From the kernel's expressions back to the typed language, as nft lists them. What the language cannot say stays as it is
//! ([`Statement::Raw`]); nothing is lost.

use std::collections::{HashMap, HashSet};

use crate::datatype::{DataType, Order};
use crate::expr::{
    self, BitwiseOp, CmpOp, Data, Expr, ExthdrFlags, FibFlags, HashType, LookupFlags, MetaKey,
};
use crate::expr::{PayloadBase, RangeOp, Register};
use crate::family::Family;
use crate::key::{Key, Part, integer};
use crate::lang::expression::*;
use crate::lang::exthdr::Exthdr;
use crate::lang::{Match, MatchOp, Payload, Statement, Vmap};
use crate::name::{InterfaceName, Name};
use crate::object::element::{prefix_length, wildcard};
use crate::object::{Element, ElementData, Set, SetData, SetFlags};

/// The sets of a table, by name, with the elements of those that belong to a rule.
pub(crate) type Sets = HashMap<Name, (Set, Vec<Element>)>;

/// The statements that these expressions are.
pub(crate) fn raise(family: Family, sets: &Sets, exprs: &[Expr]) -> Vec<Statement> {
    let mut raise = Raise::new(family, sets);
    for expr in exprs {
        if raise.expression(expr).is_none() {
            // Not half a rule in one language and half in another: registers may be shared.
            return vec![Statement::Raw(exprs.to_vec())];
        }
    }
    raise.out.into_iter().flatten().collect()
}

pub(crate) struct Raise<'a> {
    pub(crate) family: Family,
    sets: &'a Sets,
    registers: HashMap<u32, Held>,
    /// `None` where a statement turned out to be implied by a later one.
    pub(crate) out: Vec<Option<Statement>>,
    network: Option<u64>,
    transport: Option<u64>,
    /// Where in `out` the network and transport protocol were matched.
    network_at: Option<usize>,
    transport_at: Option<usize>,
    /// Where in `out` it was matched that there is an Ethernet header, or a VLAN tag.
    link_at: Option<usize>,
    vlan_at: Option<usize>,
    /// Registers whose bytes were turned, for a comparison by order or a look-up in a set of intervals.
    turned: HashSet<u32>,
    /// What the last `cmp` was about, to make a range of two.
    last: Option<(u32, CmpOp)>,
}

/// What a register holds.
#[derive(Debug, Clone)]
pub(crate) enum Held {
    /// Something of the packet, of so many bytes.
    Loaded {
        expression: Expression,
        bytes: u32,
        /// Kept bits and toggled bits.
        mask: Option<(Vec<u8>, Vec<u8>)>,
        /// Where it came from, if from a header.
        place: Option<(PayloadBase, u32)>,
    },
    /// A constant.
    Constant(Vec<u8>),
}

impl<'a> Raise<'a> {
    fn new(family: Family, sets: &'a Sets) -> Self {
        let network = match family {
            Family::IP | Family::IP6 | Family::ARP => Some(u64::from(family.0)),
            _ => None,
        };
        Self {
            family,
            sets,
            registers: HashMap::new(),
            out: Vec::new(),
            network,
            transport: None,
            network_at: None,
            transport_at: None,
            link_at: None,
            vlan_at: None,
            turned: HashSet::new(),
            last: None,
        }
    }

    pub(crate) fn say(&mut self, statement: impl Into<Statement>) -> Option<()> {
        self.out.push(Some(statement.into()));
        Some(())
    }

    fn hold(&mut self, register: Register, expression: Expression, bytes: u32) -> Option<()> {
        let held = Held::Loaded { expression, bytes, mask: None, place: None };
        self.turned.remove(&register.first_word()?);
        self.registers.insert(register.first_word()?, held);
        Some(())
    }

    fn hold_part(&mut self, register: Register, expression: Expression) -> Option<()> {
        let bytes = u32::try_from(expression.part()?.bytes()).ok()?;
        self.hold(register, expression, bytes)
    }

    /// One expression; `None` where the language has no words for it.
    fn expression(&mut self, expr: &Expr) -> Option<()> {
        let last = self.last.take();
        match expr {
            Expr::Payload(p) if p.dreg.is_some() => self.payload(p),
            Expr::Meta(m) if m.dreg.is_some() => self.hold_part(m.dreg?, m.key.into()),
            Expr::Ct(c) if c.dreg.is_some() => {
                self.hold_part(c.dreg?, Ct { key: c.key, direction: c.direction }.into())
            }
            Expr::Rt(r) => self.hold_part(r.dreg, Expression::Rt(Rt { key: r.key })),
            Expr::Socket(s) => {
                let level = s.level.filter(|_| s.key == expr::SocketKey::CGROUPV2);
                self.hold_part(s.dreg, Expression::Socket(Socket { key: s.key, level }))
            }
            Expr::Osf(o) => {
                let version = o.flags.is_some_and(|flags| flags.contains(expr::OsfFlags::VERSION));
                self.hold_part(o.dreg, Expression::Osf(Osf { ttl: o.ttl.unwrap_or(0), version }))
            }
            Expr::Fib(f) => {
                let check = f.flags.contains(FibFlags::PRESENT);
                let fib = Fib { flags: f.flags - FibFlags::PRESENT, result: f.result, check };
                let bytes = Expression::Fib(Fib { check: false, ..fib }).part()?.bytes();
                self.hold(f.dreg, fib.into(), u32::try_from(bytes).ok()?)
            }
            Expr::Numgen(n) => {
                let numgen = Numgen { mode: n.mode, modulus: n.modulus, offset: n.offset.unwrap_or(0) };
                self.hold_part(n.dreg, numgen.into())
            }
            Expr::Hash(h) => self.hash(h),
            Expr::Xfrm(x) => {
                let ipsec = Ipsec { key: x.key, out: x.direction != 0, number: x.number.unwrap_or(0) };
                self.hold_part(x.dreg, Expression::Ipsec(ipsec))
            }
            Expr::Exthdr(e) if e.dreg.is_some() => self.exthdr(e),
            Expr::Immediate(i) if i.dreg == Register::VERDICT => match &i.data {
                Data::Verdict(verdict) => self.say(verdict.clone()),
                _ => None,
            },
            Expr::Immediate(i) => {
                let held = Held::Constant(i.data.value()?.to_vec());
                self.registers.insert(i.dreg.first_word()?, held);
                Some(())
            }
            Expr::Bitwise(b) => self.bitwise(b),
            Expr::Byteorder(b) if b.sreg == b.dreg => {
                self.turned.insert(b.sreg.first_word()?);
                Some(())
            }
            Expr::Cmp(c) => self.compare(c, last),
            Expr::Range(r) => self.range(r),
            Expr::Lookup(l) => self.lookup(l),
            other => self.statement(other),
        }
    }

    fn payload(&mut self, p: &expr::Payload) -> Option<()> {
        let (offset, bits) = (in_bits(p.offset)?, in_bits(p.len)?);
        let protocol = self.protocol(p.base);
        let named = Payload::ALL.iter().copied().find(|f| {
            f.base() == p.base && (f.offset(), f.bits()) == (offset, bits) && protocol == Some(f.protocol())
        });
        let expression = match named {
            Some(field) => {
                self.forget(field.base());
                field.into()
            }
            None => RawPayload { base: p.base, offset, bits }.into(),
        };
        let held = Held::Loaded { expression, bytes: p.len, mask: None, place: Some((p.base, p.offset)) };
        self.registers.insert(p.dreg?.first_word()?, held);
        Some(())
    }

    /// The header that is known to be at a base.
    fn protocol(&self, base: PayloadBase) -> Option<&'static str> {
        match base {
            PayloadBase::LINK => Some("ether"),
            PayloadBase::NETWORK => match u8::try_from(self.network?).ok()? {
                2 => Some("ip"),
                10 => Some("ip6"),
                3 => Some("arp"),
                _ => None,
            },
            PayloadBase::TRANSPORT => match self.transport {
                None => Some("th"),
                Some(58) => Some("icmpv6"),
                Some(number) => Some(DataType::INET_PROTO.symbol_of(number).unwrap_or("th")),
            },
            _ => None,
        }
    }

    /// A field says which protocol it belongs to; nft does not show the match for it.
    fn forget(&mut self, base: PayloadBase) {
        let at = match base {
            PayloadBase::LINK => self.link_at.take(),
            PayloadBase::NETWORK => self.network_at.take(),
            PayloadBase::TRANSPORT if self.transport.is_some() => {
                if matches!(self.transport, Some(1 | 2 | 58))
                    && let Some(at) = self.network_at.take()
                {
                    self.drop_at(at);
                }
                self.transport_at.take()
            }
            _ => None,
        };
        if let Some(at) = at {
            self.drop_at(at);
        }
    }

    fn drop_at(&mut self, at: usize) {
        if let Some(statement) = self.out.get_mut(at) {
            *statement = None;
        }
    }

    pub(crate) fn forget_transport(&mut self) {
        if let Some(at) = self.transport_at.take() {
            self.drop_at(at);
        }
    }

    pub(crate) fn forget_network(&mut self) {
        if let Some(at) = self.network_at.take() {
            self.drop_at(at);
        }
    }

    fn exthdr(&mut self, e: &expr::Exthdr) -> Option<()> {
        let presence = e.flags.is_some_and(|flags| flags.contains(ExthdrFlags::PRESENT));
        let op = e.op.unwrap_or(expr::ExthdrOp::IPV6);
        let (offset, len) = (u16::try_from(e.offset?).ok()?, e.len?);
        let bits = in_bits(len)?;
        // A bit field is known by its mask, which comes next: any field in these bytes will do until then.
        let field = Exthdr::at(op, e.kind, in_bits(offset.into())?, bits, presence).or_else(|| {
            Exthdr::all().find(|f| {
                (f.op(), f.kind(), f.offset() / 8) == (op, e.kind, offset)
                    && !f.is_presence()
                    && (f.offset() % 8 + f.bits()).div_ceil(8) * 8 == bits
            })
        })?;
        if op == expr::ExthdrOp::IPV6 && self.family != Family::IP6 {
            self.forget_network();
        }
        self.hold(e.dreg?, field.into(), len)
    }

    fn hash(&mut self, h: &expr::Hash) -> Option<()> {
        let offset = h.offset.unwrap_or(0);
        if h.of == Some(HashType::SYMMETRIC) {
            return self.hold_part(h.dreg, Expression::Symhash(Symhash { modulus: h.modulus, offset }));
        }
        let of = self.key(h.sreg?, h.len?)?;
        let seed = h.seed.filter(|seed| *seed != 0);
        self.hold_part(h.dreg, Expression::Jhash(Box::new(Jhash { of, modulus: h.modulus, seed, offset })))
    }

    /// What the registers from one on hold, for a key of so many bytes.
    pub(crate) fn key(&self, register: Register, bytes: u32) -> Option<Expression> {
        let mut word = register.first_word()?;
        let end = word.checked_add(bytes.div_ceil(4))?;
        let mut parts = Vec::new();
        while word < end {
            let held = self.registers.get(&word)?;
            let (expression, length) = match held {
                Held::Loaded { bytes, .. } => (self.whole(held)?, *bytes),
                Held::Constant(_) => return None,
            };
            parts.push(expression);
            word = word.checked_add(length.div_ceil(4).max(1))?;
        }
        if parts.len() == 1 { parts.pop() } else { Some(Expression::Concat(parts)) }
    }

    /// A register's expression with what was done to its bits.
    pub(crate) fn whole(&self, held: &Held) -> Option<Expression> {
        let Held::Loaded { expression, mask, place, bytes } = held else { return None };
        let Some((mask, xor)) = mask else { return Some(expression.clone()) };
        if xor.iter().all(|byte| *byte == 0)
            && let Some(field) = self.bit_field(expression, *place, *bytes, mask)
        {
            return Some(field);
        }
        let part = expression.part()?;
        let number = |bytes: &[u8]| value(part, bytes);
        let all = mask.iter().all(|byte| *byte == 0xff);
        let none = xor.iter().all(|byte| *byte == 0);
        let or = mask.iter().zip(xor).all(|(m, x)| m & x == 0);
        let joined: Vec<u8> = mask.iter().zip(xor).map(|(m, x)| m | x).collect();
        let expression = expression.clone();
        Some(match (all, none) {
            (true, true) => expression,
            (true, false) => expression.xor(number(xor)),
            (false, true) => expression.and(number(mask)),
            // What is toggled where nothing is kept is set.
            (false, false) if or && joined.iter().all(|byte| *byte == 0xff) => expression.or(number(xor)),
            (false, false) if or => expression.and(number(&joined)).or(number(xor)),
            (false, false) => expression.and(number(mask)).xor(number(xor)),
        })
    }

    /// The field whose bits a mask keeps.
    fn bit_field(
        &self,
        expression: &Expression,
        place: Option<(PayloadBase, u32)>,
        bytes: u32,
        mask: &[u8],
    ) -> Option<Expression> {
        let (lead, bits) = ones(mask)?;
        match expression {
            Expression::Exthdr(e) => {
                let offset = e.offset() / 8 * 8 + lead;
                Exthdr::at(e.op(), e.kind(), offset, bits, false).map(Expression::from)
            }
            Expression::Payload(_) | Expression::RawPayload(_) => {
                let (base, start) = place?;
                let protocol = self.protocol(base)?;
                let offset = in_bits(start)?.checked_add(lead)?;
                let field = |f: &Payload| {
                    f.base() == base
                        && (f.offset(), f.bits()) == (offset, bits)
                        && u32::from((f.offset() % 8 + f.bits()).div_ceil(8)) == bytes
                        && (f.protocol() == protocol || f.protocol() == "vlan" && base == PayloadBase::LINK)
                };
                Payload::ALL.iter().copied().find(field).map(Expression::from)
            }
            _ => None,
        }
    }

    fn bitwise(&mut self, b: &expr::Bitwise) -> Option<()> {
        let (from, to) = (b.sreg.first_word()?, b.dreg.first_word()?);
        let held = self.registers.get(&from)?.clone();
        let new = match (b.op, held) {
            (None | Some(BitwiseOp::BOOL), Held::Loaded { expression, bytes, mask: None, place }) => {
                let mask = Some((b.mask.as_ref()?.value()?.to_vec(), b.xor.as_ref()?.value()?.to_vec()));
                Held::Loaded { expression, bytes, mask, place }
            }
            (Some(op @ (BitwiseOp::LSHIFT | BitwiseOp::RSHIFT)), held @ Held::Loaded { .. }) => {
                let by = integer(Order::Host, b.data.as_ref()?.value()?);
                self.shifted(op, &held, by)?
            }
            _ => return None,
        };
        self.registers.insert(to, new);
        Some(())
    }

    /// A bit field that was moved down to its place is that field; anything else is a shift.
    fn shifted(&self, op: BitwiseOp, held: &Held, by: u64) -> Option<Held> {
        let expression = self.whole(held)?;
        let Held::Loaded { bytes, mask, .. } = held else { return None };
        let named = matches!(&expression, Expression::Payload(_) | Expression::Exthdr(_)) && mask.is_some();
        let expression = match op {
            BitwiseOp::RSHIFT if named => expression,
            BitwiseOp::RSHIFT => expression.binary(BinaryOp::ShiftRight, by),
            _ => expression.binary(BinaryOp::ShiftLeft, by),
        };
        Some(Held::Loaded { expression, bytes: *bytes, mask: None, place: None })
    }

    fn compare(&mut self, c: &expr::Cmp, last: Option<(u32, CmpOp)>) -> Option<()> {
        let word = c.sreg.first_word()?;
        let data = c.data.value()?;
        if matches!(c.op, CmpOp::EQ | CmpOp::NEQ) && self.turned.contains(&word) {
            return None;
        }
        let held = self.registers.get(&word)?.clone();
        let Held::Loaded { expression, mask, place, bytes } = &held else { return None };
        let op = match c.op {
            CmpOp::EQ => MatchOp::In,
            CmpOp::NEQ => MatchOp::Neq,
            CmpOp::LT => MatchOp::Lt,
            CmpOp::GT => MatchOp::Gt,
            CmpOp::LTE => MatchOp::Lte,
            _ => MatchOp::Gte,
        };
        if let Some((mask, xor)) = mask
            && xor.iter().all(|byte| *byte == 0)
        {
            return self.compare_masked(&held, expression, mask, op, data);
        }
        if let (Some((base, start)), Expression::RawPayload(_)) = (place, expression)
            && matches!(op, MatchOp::In | MatchOp::Neq)
            && let Some(statements) = self.fields(*base, *start, *bytes, op, data)
        {
            self.forget(*base);
            statements.into_iter().for_each(|statement| self.out.push(Some(statement)));
            return Some(());
        }
        let left = self.whole(&held)?;
        let part = left.part()?;
        let ordered = matches!(op, MatchOp::Lt | MatchOp::Gt | MatchOp::Lte | MatchOp::Gte);
        let right = constant(part, &if ordered { turned(part, data) } else { data.to_vec() });
        if last == Some((word, CmpOp::GTE)) && c.op == CmpOp::LTE && self.make_range(&left, &right) {
            return Some(());
        }
        self.last = Some((word, c.op));
        if c.op != CmpOp::GTE {
            self.turned.remove(&word);
        }
        let op = if op == MatchOp::In && part.data_type().is_bitmask() { MatchOp::Eq } else { op };
        self.note(&left, op, &right);
        self.say(Match { left, op, right })
    }

    /// Two comparisons with the same thing are a range.
    fn make_range(&mut self, left: &Expression, high: &Expression) -> bool {
        let Some(Some(Statement::Match(m))) = self.out.last_mut() else { return false };
        let (Expression::Value(low), Expression::Value(high)) = (&m.right, high) else { return false };
        if m.left != *left || m.op != MatchOp::Gte {
            return false;
        }
        m.right = Expression::Range(Box::new((low.clone(), high.clone())));
        m.op = MatchOp::In;
        true
    }

    fn compare_masked(
        &mut self,
        held: &Held,
        expression: &Expression,
        mask: &[u8],
        op: MatchOp,
        data: &[u8],
    ) -> Option<()> {
        let whole = self.whole(held)?;
        if !matches!(whole, Expression::Binary(_)) {
            // A bit field, whose value lies some bits above the lowest.
            let (lead, bits) = ones(mask)?;
            let below = mask.len() * 8 - usize::from(lead + bits);
            let number = integer(Order::Network, data).checked_shr(u32::try_from(below).ok()?)?;
            self.forget_payload(&whole);
            return self.say(Match { left: whole, op, right: Value::Number(number).into() });
        }
        let part = expression.part()?;
        let zero = data.iter().all(|byte| *byte == 0);
        let left = expression.clone();
        if part.data_type().is_bitmask() && zero && matches!(op, MatchOp::In | MatchOp::Neq) {
            let op = if op == MatchOp::Neq { MatchOp::In } else { MatchOp::None };
            return self.say(Match { left, op, right: value(part, mask).into() });
        }
        if matches!(op, MatchOp::In | MatchOp::Neq)
            && let Some(length) = leading_ones(part, mask)
        {
            let right = Expression::Prefix(Prefix { value: value(part, data), length });
            return self.say(Match { left, op, right });
        }
        let op = if op == MatchOp::In { MatchOp::Eq } else { op };
        let ordered = matches!(op, MatchOp::Lt | MatchOp::Gt | MatchOp::Lte | MatchOp::Gte);
        let right = constant(part, &if ordered { turned(part, data) } else { data.to_vec() });
        self.say(Match { left: whole, op, right })
    }

    fn forget_payload(&mut self, expression: &Expression) {
        if let Expression::Payload(payload) = expression {
            self.forget(payload.base());
            if payload.protocol() == "vlan"
                && let Some(at) = self.vlan_at.take()
            {
                self.drop_at(at);
            }
        }
    }

    /// Bytes that are the start of one address, or several fields in a row: nft compares neighbours at once.
    fn fields(
        &self,
        base: PayloadBase,
        start: u32,
        bytes: u32,
        op: MatchOp,
        data: &[u8],
    ) -> Option<Vec<Statement>> {
        let protocol = self.protocol(base)?;
        let mut at = in_bits(start)?;
        let end = at.checked_add(in_bits(bytes)?)?;
        let mut rest = data;
        let mut statements = Vec::new();
        while at < end {
            let field = Payload::ALL.iter().copied().find(|f| {
                f.base() == base && f.protocol() == protocol && f.offset() == at && f.bits().is_multiple_of(8)
            })?;
            let bytes = usize::from(field.bits() / 8);
            let part = field.part();
            let right = match rest.split_at_checked(bytes) {
                Some((own, others)) => {
                    rest = others;
                    constant(part, own)
                }
                None if statements.is_empty() => {
                    let length = u8::try_from(rest.len() * 8).ok()?;
                    let mut padded = rest.to_vec();
                    padded.resize(bytes, 0);
                    Expression::Prefix(Prefix { value: value(part, &padded), length })
                }
                None => return None,
            };
            statements.push(Match { left: field.into(), op, right }.into());
            at += field.bits();
        }
        (statements.len() == 1 || op == MatchOp::In).then_some(statements)
    }

    /// Remembers the protocol that a match fixes.
    fn note(&mut self, left: &Expression, op: MatchOp, right: &Expression) {
        let (MatchOp::In, Expression::Value(Value::Number(number))) = (op, right) else { return };
        let at = self.out.len();
        match left {
            Expression::Meta(MetaKey::L4PROTO)
            | Expression::Payload(Payload::IP_PROTOCOL | Payload::IP6_NEXTHDR) => {
                (self.transport, self.transport_at) = (Some(*number), Some(at));
            }
            Expression::Meta(MetaKey::NFPROTO) => (self.network, self.network_at) = (Some(*number), Some(at)),
            Expression::Meta(MetaKey::PROTOCOL) | Expression::Payload(Payload::ETHER_TYPE) => {
                let family = match number {
                    0x0800 => Family::IP,
                    0x86dd => Family::IP6,
                    0x0806 => Family::ARP,
                    0x8100 => {
                        self.vlan_at = Some(at);
                        return;
                    }
                    _ => return,
                };
                (self.network, self.network_at) = (Some(family.0.into()), Some(at));
            }
            Expression::Meta(MetaKey::IIFTYPE) if *number == 1 => self.link_at = Some(at),
            _ => {}
        }
    }

    fn range(&mut self, r: &expr::Range) -> Option<()> {
        let held = self.registers.get(&r.sreg.first_word()?)?.clone();
        let left = self.whole(&held)?;
        let part = left.part()?;
        let (from, to) = (turned(part, r.from.value()?), turned(part, r.to.value()?));
        let right = Expression::Range(Box::new((value(part, &from), value(part, &to))));
        let op = if r.op == RangeOp::NEQ { MatchOp::Neq } else { MatchOp::In };
        self.say(Match { left, op, right })
    }

    fn lookup(&mut self, l: &expr::Lookup) -> Option<()> {
        let (set, elements) = self.sets.get(&l.set)?;
        if !self.turned.is_empty() && !set.flags.contains(SetFlags::INTERVAL) {
            return None;
        }
        self.turned.clear();
        let key = self.key(l.sreg, set.key_bytes())?;
        let anonymous = set.is_anonymous();
        let members = || elements.iter().map(|e| member(&key, e)).collect::<Option<Vec<_>>>();
        match (l.dreg, &set.data) {
            (None, _) => {
                let right =
                    if anonymous { Expression::Set(members()?) } else { Expression::Named(l.set.clone()) };
                let invert = l.flags.is_some_and(|flags| flags.contains(LookupFlags::INVERT));
                self.say(Match { left: key, op: if invert { MatchOp::Neq } else { MatchOp::In }, right })
            }
            (Some(Register::VERDICT), _) => {
                let map = if anonymous {
                    let verdict = |e: &Element| match e.data() {
                        ElementData::Verdict(verdict) => Some(verdict.clone()),
                        _ => None,
                    };
                    let pairs = members()?.into_iter().zip(elements).map(|(k, e)| Some((k, verdict(e)?)));
                    Mapping::Anonymous(pairs.collect::<Option<_>>()?)
                } else {
                    Mapping::Named(l.set.clone())
                };
                self.say(Vmap { key, map })
            }
            (Some(dreg), Some(SetData::Value(of))) => {
                let parts = of.parts();
                let map = if anonymous {
                    let pairs = members()?.into_iter().zip(elements).map(|(k, e)| Some((k, data_of(e)?)));
                    Mapping::Anonymous(pairs.collect::<Option<_>>()?)
                } else {
                    Mapping::Named(l.set.clone())
                };
                let bytes: usize = parts.iter().map(|part| part.bytes().next_multiple_of(4)).sum();
                let expression = Expression::Map(Box::new(Map { key, map }));
                self.hold(dreg, expression, u32::try_from(bytes).ok()?)
            }
            _ => None,
        }
    }

    /// The header at a base, for fields that are written.
    pub(crate) fn header(&self, base: PayloadBase) -> Option<&'static str> {
        self.protocol(base)
    }

    pub(crate) fn forget_of(&mut self, field: Payload) {
        self.forget(field.base());
    }

    pub(crate) fn network_is(&self, family: Family) -> bool {
        self.network == Some(u64::from(family.0))
    }

    pub(crate) fn set(&self, name: &Name) -> Option<&(Set, Vec<Element>)> {
        self.sets.get(name)
    }

    pub(crate) fn held(&self, register: Register) -> Option<&Held> {
        self.registers.get(&register.first_word()?)
    }

    /// A register's value where a value of this type is wanted.
    pub(crate) fn value(&self, register: Register, part: Part) -> Option<Expression> {
        match self.held(register)? {
            Held::Constant(bytes) => Some(constant(part, bytes.get(..part.bytes()).unwrap_or(bytes))),
            held @ Held::Loaded { .. } => self.whole(held),
        }
    }
}

/// Bytes as bits, where that many can be meant.
pub(crate) fn in_bits(bytes: u32) -> Option<u16> {
    u16::try_from(bytes.checked_mul(8)?).ok()
}

/// A member of an anonymous set as a constant: a value, a prefix, a range, or a concatenation of such.
fn member(key: &Expression, element: &Element) -> Option<Expression> {
    if element.is_catch_all() {
        return Some(Expression::any());
    }
    bounds(key, element.key(), element.end())
}

/// The value that an element of an anonymous map gives.
fn data_of(element: &Element) -> Option<Expression> {
    match element.data() {
        ElementData::Value(value) => bounds(&Expression::Concat(Vec::new()), value, None),
        ElementData::Range(range) => bounds(&Expression::Concat(Vec::new()), &range.0, Some(&range.1)),
        _ => None,
    }
}

/// `of` says the types where the key's own are only widths: a bit field's values lie above the lowest bit.
fn bounds(of: &Expression, low: &Key, high: Option<&Key>) -> Option<Expression> {
    let high = high.unwrap_or(low);
    let wanted = of.parts();
    let single = low.types().len() == 1;
    let mut parts = Vec::new();
    for (i, ((part, l), (_, h))) in low.parts().zip(high.parts()).enumerate() {
        let shift = if single { field_shift(of) } else { 0 };
        let part = wanted.get(i).copied().filter(|p| p.bytes() == part.bytes()).unwrap_or(part);
        let down = |bytes: &[u8]| match value(part, bytes) {
            Value::Number(number) => Value::Number(number.checked_shr(shift.into()).unwrap_or(0)),
            other => other,
        };
        parts.push(match prefix_length(part, l, h) {
            _ if l == h => Expression::Value(down(l)),
            Some(length) => Expression::Prefix(Prefix { value: down(l), length: u8::try_from(length).ok()? }),
            None => match wildcard(part, l, h) {
                Some(stem) => Expression::Value(Value::Interface(InterfaceName::held(&(stem + "*")))),
                None => Expression::Range(Box::new((down(l), down(h)))),
            },
        });
    }
    if parts.len() == 1 { parts.pop() } else { Some(Expression::Concat(parts)) }
}

/// How far above the lowest bit of its bytes a bit field ends.
fn field_shift(of: &Expression) -> u16 {
    let (offset, bits) = match of {
        Expression::Payload(p) => (p.offset(), p.bits()),
        Expression::Exthdr(e) => (e.offset(), e.bits()),
        _ => return 0,
    };
    (offset % 8 + bits).div_ceil(8) * 8 - offset % 8 - bits
}

/// Bytes as a constant of a type.
pub(crate) fn constant(part: Part, bytes: &[u8]) -> Expression {
    Expression::Value(value(part, bytes))
}

pub(crate) fn value(part: Part, bytes: &[u8]) -> Value {
    let of = part.data_type();
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == 0);
        let text =
            String::from_utf8_lossy(bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default()).into_owned();
        // A name that is cut before its NUL stands for all that start so.
        InterfaceName::held(&if end.is_none() && bytes.len() < 16 { text + "*" } else { text })
    };
    match (of, bytes.len()) {
        (DataType::IPV4_ADDR, 4) => {
            <[u8; 4]>::try_from(bytes).map_or(Value::Bytes(bytes.to_vec()), |b| Value::Address(b.into()))
        }
        (DataType::IPV6_ADDR, 16) => {
            <[u8; 16]>::try_from(bytes).map_or(Value::Bytes(bytes.to_vec()), |b| Value::Address(b.into()))
        }
        (DataType::ETHER_ADDR | DataType::LL_ADDR, 6) => <[u8; 6]>::try_from(bytes)
            .map_or(Value::Bytes(bytes.to_vec()), |b| Value::Ether(crate::EtherAddr(b))),
        (DataType::IFNAME, _) => Value::Interface(text(bytes)),
        (DataType::STRING, _) => Value::Text(text(bytes)),
        (_, 0..=8) => Value::Number(integer(part.order(), bytes)),
        _ => Value::Bytes(bytes.to_vec()),
    }
}

/// Order comparisons are made in network order.
fn turned(part: Part, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if crate::object::element::is_turned(part) {
        bytes.reverse();
    }
    bytes
}

/// Where the ones of a mask start and how many there are, if they are in one row.
pub(crate) fn ones(mask: &[u8]) -> Option<(u16, u16)> {
    if mask.len() > 8 {
        return None;
    }
    let number = integer(Order::Network, mask);
    let width = u32::try_from(mask.len() * 8).ok()?;
    let (lead, bits) = (number.leading_zeros() - (64 - width), number.count_ones());
    let below = width - lead.min(width) - bits.min(width - lead.min(width));
    let row = bits > 0 && number >> below == u64::MAX >> (64 - bits);
    Some((u16::try_from(lead).ok()?, u16::try_from(bits).ok()?)).filter(|_| row)
}

/// The length of a prefix that a mask is.
fn leading_ones(part: Part, mask: &[u8]) -> Option<u8> {
    let mask = turned(part, mask);
    let bits: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
    let leading: u32 = {
        let whole = mask.iter().take_while(|byte| **byte == 0xff).count();
        u32::try_from(whole).ok()? * 8 + mask.get(whole).map_or(0, |byte| byte.leading_ones())
    };
    (bits == leading && bits > 0).then(|| u8::try_from(bits).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::sample::Source;

    proptest! {
        #[test]
        fn no_expressions_make_it_panic_or_are_lost(numbers in prop::collection::vec(any::<u64>(), 16..64), order in prop::collection::vec(any::<prop::sample::Index>(), 1..12)) {
            let all = Expr::samples(&mut Source::new(numbers));
            let exprs: Vec<_> = order.iter().map(|index| index.get(&all).clone()).collect();
            for family in [Family::IP, Family::INET, Family::BRIDGE] {
                let statements = raise(family, &Sets::new(), &exprs);
                if let [Statement::Raw(kept)] = statements.as_slice() {
                    prop_assert_eq!(kept, &exprs);
                }
                let _ = statements.iter().map(ToString::to_string).count();
            }
        }
    }
}
