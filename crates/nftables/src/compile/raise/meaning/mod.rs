//! What expressions do to a packet, whatever the way: a listing has to say just that.
//!
//! The kernel's expressions load numbers into registers, move their bits and compare them. Here every bit of a
//! register is a constant, or a bit of something that was loaded. So two rules that load other bytes, or shift
//! them or not, have the same tests of bits if they are left with the same packets; and between the tests they
//! do the same. nft 1.0.6 emits shifts in the wrong byte order, masks shorter than their field and more that its
//! own words do not say: such a rule has no words.

mod set;
mod test;

use crate::compile::lower::{Before, Lowered};
use crate::compile::raise::Sets;
use crate::expr::complete::complete;
use crate::expr::{
    self, BitwiseOp, CmpOp, CtKey, Data, DynsetFlags, Expr, ExthdrFlags, LookupFlags, MetaKey, PayloadBase,
    RangeOp, Register,
};
use crate::family::Family;
use crate::name::Name;
use crate::object::{Element, Set, SetData};
use crate::tree::{Expression, Fib, Rt, Socket};
use set::Members;
use test::{Bit, Sorted, Test, Tests, bits_of, step};

/// Returns whether a rule and what its statements are lowered to do the same. Where that cannot be told, they
/// do not.
pub(super) fn is_same(family: Family, sets: &Sets, rule: &[Expr], lowered: &Lowered) -> bool {
    if are_alike(family, rule, &lowered.exprs) {
        return true;
    }
    let named = |name: &Name, _| sets.get(name).map(|(set, elements)| (set, elements.as_slice()));
    let own = |name: &Name, number: Option<u32>| {
        let found = lowered.before.iter().find_map(|before| match before {
            Before::Set(set) if Some(set.number) == number => Some((&set.set, set.elements.as_slice())),
            _ => None,
        });
        found.or_else(|| named(name, None))
    };
    let mut sources = Vec::new();
    let Some(first) = Evaluator::new(family, &mut sources, &named).run(rule) else { return false };
    let Some(second) = Evaluator::new(family, &mut sources, &own).run(&lowered.exprs) else { return false };
    first.len() == second.len() && first.iter().zip(&second).all(|(a, b)| a.is_same(b))
}

/// Returns whether the expressions are the same one by one, as most are.
fn are_alike(family: Family, rule: &[Expr], lowered: &[Expr]) -> bool {
    let whole = |expr: &Expr| {
        let mut expr = expr.clone();
        complete(&mut expr, family);
        expr
    };
    rule.len() == lowered.len()
        && rule.iter().zip(lowered).all(|(own, lowered)| own == lowered || whole(own) == whole(lowered))
}

/// Finds a set by its name, or by its number in a batch.
type FindSet<'a> = dyn Fn(&Name, Option<u32>) -> Option<(&'a Set, &'a [Element])> + 'a;

/// Something that is loaded: the expression without its register, what it is computed of, and how often the
/// packet was changed before.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    expr: Expr,
    of: Vec<Operand>,
    time: u32,
}

/// What an expression works on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Operand {
    Bits(Vec<Bit>),
    Set(Members),
    /// The bits of a header that change, by their place.
    Written(Vec<(u32, Bit)>),
}

/// Tests, and what is done with the packets that pass them; at the end of the rule nothing.
struct Group {
    tests: Tests,
    done: Option<(Expr, Vec<Operand>)>,
    /// The end of the bits that were loaded of what a packet may not have, or not so much of.
    needs: Sorted<u32, u32>,
}

impl Group {
    fn is_same(&self, other: &Self) -> bool {
        self.tests.are_same(&other.tests)
            && (self.tests.never || self.done == other.done && self.needs == other.needs)
    }
}

struct Evaluator<'m, 's> {
    family: Family,
    sources: &'m mut Vec<Source>,
    find: &'m FindSet<'s>,
    /// Bits in the order of memory, of each byte the highest first.
    registers: Vec<Bit>,
    groups: Vec<Group>,
    tests: Tests,
    known: Sorted<(u32, u32), bool>,
    needs: Sorted<u32, u32>,
    /// How often the packet may have changed.
    time: u32,
    numbers: u32,
    network: Option<Family>,
}

impl<'m, 's> Evaluator<'m, 's> {
    fn new(family: Family, sources: &'m mut Vec<Source>, find: &'m FindSet<'s>) -> Self {
        let network = matches!(family, Family::IP | Family::IP6).then_some(family);
        let mut machine = Self {
            family,
            sources,
            find,
            registers: vec![Bit::Const(false); WORDS * 32],
            groups: Vec::new(),
            tests: Tests::default(),
            known: Sorted::default(),
            needs: Sorted::default(),
            time: 0,
            numbers: 0,
            network,
        };
        // A table of one family sees only its packets.
        if let Some(network) = network {
            let (source, bits) = (machine.meta(MetaKey::NFPROTO), bits_of(&[network.0]));
            (0..).zip(bits).for_each(|(at, bit)| machine.known.set((source, at), bit));
        }
        machine
    }

    fn meta(&mut self, key: MetaKey) -> u32 {
        let key = expr::Meta { dreg: Some(Register::VERDICT), key, sreg: None };
        self.source(key.into(), Vec::new())
    }

    fn run(mut self, rule: &[Expr]) -> Option<Vec<Group>> {
        for expr in rule {
            self.expression(expr)?;
        }
        self.finish(None);
        Some(self.groups)
    }

    /// Ends the tests before something is done.
    fn finish(&mut self, done: Option<(Expr, Vec<Operand>)>) {
        let mut tests = std::mem::take(&mut self.tests);
        tests.behind(&self.known);
        tests.fixed.iter().for_each(|(place, bit)| self.known.set(*place, *bit));
        self.groups.push(Group { tests, done, needs: self.needs.clone() });
    }

    fn source(&mut self, expr: Expr, of: Vec<Operand>) -> u32 {
        let wanted = Source { expr, of, time: self.time };
        let at = self.sources.iter().position(|source| *source == wanted).unwrap_or_else(|| {
            self.sources.push(wanted);
            self.sources.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    fn bits(&self, register: Register, bytes: usize) -> Option<&[Bit]> {
        let start = usize::try_from(register.first_word()?).ok()? * 32;
        self.registers.get(start..start.checked_add(bytes.checked_mul(8)?)?)
    }

    /// Stores bits; the rest of the last word becomes zero.
    fn store(&mut self, register: Register, bits: impl Iterator<Item = Bit>, bytes: usize) -> Option<()> {
        let start = usize::try_from(register.first_word()?).ok()? * 32;
        let words = bytes.div_ceil(4).max(1);
        let place = self.registers.get_mut(start..start.checked_add(words.checked_mul(32)?)?)?;
        place.fill(Bit::Const(false));
        place.iter_mut().zip(bits.take(bytes * 8)).for_each(|(place, bit)| *place = bit);
        Some(())
    }

    /// Loads bytes of something, from a bit of it on.
    fn load(&mut self, to: Register, expr: Expr, of: Vec<Operand>, from: u32, bytes: u32) -> Option<()> {
        // What a packet does not have ends the rule, whether it is looked at or not: a connection, a socket, a
        // device, the rest of a header.
        let may_end = match &expr {
            Expr::Meta(meta) => !OF_EVERY_PACKET.contains(&meta.key),
            Expr::Numgen(_) | Expr::Hash(_) => false,
            _ => true,
        };
        let source = self.source(expr, of);
        let end = from.checked_add(bytes.checked_mul(8)?)?;
        if may_end && end > self.given(source) {
            let needed = self.needs.get(source).unwrap_or(0);
            self.needs.set(source, end.max(needed));
        }
        let bits = (from..end).map(|at| Bit::Of { source, at, inverted: false });
        self.store(to, bits, usize::try_from(bytes).ok()?)
    }

    /// Returns the number of bits that every packet has of a header.
    fn given(&self, source: u32) -> u32 {
        let source = usize::try_from(source).ok().and_then(|at| self.sources.get(at));
        match (source.map(|source| &source.expr), self.network) {
            (Some(Expr::Payload(p)), Some(network)) if p.base == PayloadBase::NETWORK => {
                if network == Family::IP { 160 } else { 320 }
            }
            _ => 0,
        }
    }

    fn expression(&mut self, expr: &Expr) -> Option<()> {
        let mut bare = expr.clone();
        complete(&mut bare, self.family);
        bare.registers(&mut |register| *register = Register::VERDICT);
        match expr {
            Expr::Payload(expr::Payload { dreg: Some(to), base, offset, len, .. }) => {
                // The protocol in a header of IPv4 is that of the packet; behind one of IPv6 other headers may be.
                if let (Some(Family::IP), PayloadBase::NETWORK, 9, 1) = (self.network, *base, *offset, *len) {
                    let key = MetaKey::L4PROTO;
                    let meta = expr::Meta { dreg: Some(Register::VERDICT), key, sreg: None };
                    return self.load(*to, meta.into(), Vec::new(), 0, 1);
                }
                if let Expr::Payload(p) = &mut bare {
                    (p.offset, p.len) = (0, 0);
                }
                self.load(*to, bare, Vec::new(), offset.checked_mul(8)?, *len)
            }
            Expr::Exthdr(expr::Exthdr { dreg: Some(to), offset, len, flags, .. }) => {
                if flags.is_some_and(|flags| flags.contains(ExthdrFlags::PRESENT)) {
                    return self.load(*to, bare, Vec::new(), 0, 1);
                }
                if let Expr::Exthdr(e) = &mut bare {
                    (e.offset, e.len) = (None, None);
                }
                self.load(*to, bare, Vec::new(), offset.unwrap_or(0).checked_mul(8)?, len.unwrap_or(0))
            }
            Expr::Inner(inner) => match &*inner.expr {
                Expr::Payload(expr::Payload { dreg: Some(to), offset, len, .. }) => {
                    if let Expr::Inner(inner) = &mut bare
                        && let Expr::Payload(p) = &mut *inner.expr
                    {
                        (p.offset, p.len) = (0, 0);
                    }
                    self.load(*to, bare, Vec::new(), offset.checked_mul(8)?, *len)
                }
                Expr::Meta(expr::Meta { dreg: Some(to), key, .. }) => {
                    self.load(*to, bare, Vec::new(), 0, width(key.part().bytes())?)
                }
                _ => None,
            },
            Expr::Meta(expr::Meta { dreg: Some(to), key, .. }) => {
                self.load(*to, bare, Vec::new(), 0, width(key.part().bytes())?)
            }
            Expr::Ct(expr::Ct { dreg: Some(to), key, .. }) => {
                // The key of any family is that of the packet's.
                let of_one = match (*key, self.network) {
                    (CtKey::SADDR, Some(Family::IP)) => CtKey::SADDR_IP,
                    (CtKey::DADDR, Some(Family::IP)) => CtKey::DADDR_IP,
                    (CtKey::SADDR, Some(Family::IP6)) => CtKey::SADDR_IP6,
                    (CtKey::DADDR, Some(Family::IP6)) => CtKey::DADDR_IP6,
                    (key, _) => key,
                };
                if let Expr::Ct(c) = &mut bare {
                    c.key = of_one;
                }
                // Connections of other families do not have these.
                let family = match of_one {
                    CtKey::SADDR_IP | CtKey::DADDR_IP => Some(Family::IP),
                    CtKey::SADDR_IP6 | CtKey::DADDR_IP6 => Some(Family::IP6),
                    _ => None,
                };
                if let Some(family) = family {
                    let (source, low) = (self.meta(MetaKey::NFPROTO), bits_of(&[family.0]));
                    let bits = (0..8).map(|at| Bit::Of { source, at, inverted: false }).collect();
                    let high = low.clone();
                    self.tests.add(Test::Within { bits, low, high, negated: false });
                    self.network = Some(family);
                }
                let bytes = match of_one {
                    CtKey::SADDR | CtKey::DADDR => 16,
                    key => key.part().bytes(),
                };
                self.load(*to, bare, Vec::new(), 0, width(bytes)?)
            }
            Expr::Rt(r) => self.load_part(r.dreg, bare, &Expression::Rt(Rt { key: r.key })),
            Expr::Socket(s) => {
                self.load_part(s.dreg, bare, &Expression::Socket(Socket { key: s.key, level: s.level }))
            }
            Expr::Osf(o) => self.load(o.dreg, bare, Vec::new(), 0, 16),
            Expr::Fib(f) => {
                let fib = Fib { flags: f.flags, result: f.result, check: false };
                self.load(f.dreg, bare, Vec::new(), 0, width(fib.result_part().bytes())?)
            }
            Expr::Numgen(n) => {
                // Each gives a number of its own.
                self.numbers += 1;
                let number = bits_of(&self.numbers.to_be_bytes());
                let own = Operand::Bits(number.into_iter().map(Bit::Const).collect());
                self.load(n.dreg, bare, vec![own], 0, 4)
            }
            Expr::Hash(h) => {
                let bytes = usize::try_from(h.len.unwrap_or(0)).ok()?;
                let of = match h.sreg {
                    Some(register) => vec![Operand::Bits(self.bits(register, bytes)?.to_vec())],
                    None => Vec::new(),
                };
                self.load(h.dreg, bare, of, 0, 4)
            }
            Expr::Xfrm(x) => self.load(x.dreg, bare, Vec::new(), 0, width(x.key.part().bytes())?),
            Expr::Tunnel(t) => self.load(t.dreg, bare, Vec::new(), 0, width(t.key.part().bytes())?),
            Expr::Immediate(i) if i.dreg != Register::VERDICT => {
                let bytes = i.data.value()?;
                let bits = bits_of(bytes).into_iter().map(Bit::Const);
                self.store(i.dreg, bits, bytes.len())
            }
            Expr::Bitwise(b) => self.bitwise(b, bare),
            Expr::Byteorder(b) => self.byteorder(b),
            Expr::Cmp(c) => self.compare(c),
            Expr::Range(r) => {
                let (from, to) = (r.from.value()?, r.to.value()?);
                let bits = self.bits(r.sreg, from.len())?.to_vec();
                let (low, high) = (bits_of(from), bits_of(to));
                (low.len() == high.len()).then_some(())?;
                let negated = match r.op {
                    RangeOp::EQ => false,
                    RangeOp::NEQ => true,
                    _ => return None,
                };
                self.tests.add(Test::Within { bits, low, high, negated });
                Some(())
            }
            Expr::Lookup(l) => self.lookup(l, bare),
            Expr::Unknown(_) => None,
            _ => self.act(expr, bare),
        }
    }

    fn load_part(&mut self, to: Register, bare: Expr, of: &Expression) -> Option<()> {
        self.load(to, bare, Vec::new(), 0, width(of.part()?.bytes())?)
    }

    fn bitwise(&mut self, b: &expr::Bitwise, bare: Expr) -> Option<()> {
        let bytes = usize::try_from(b.len).ok()?;
        let words = bytes.div_ceil(4);
        let from = self.bits(b.sreg, words * 4)?.to_vec();
        let to: Vec<Bit> = match (b.op, &b.data, b.sreg2) {
            (None | Some(BitwiseOp::BOOL), ..) => {
                // The rest of a shorter operand is zero.
                let operand = |data: &Option<Data>| {
                    let mut bytes = data.as_ref()?.value()?.to_vec();
                    bytes.resize(words * 4, 0);
                    Some(bits_of(&bytes))
                };
                let (mask, xor) = (operand(&b.mask)?, operand(&b.xor)?);
                let all = from.iter().zip(mask).zip(xor);
                all.map(|((bit, mask), xor)| {
                    let bit = if mask { *bit } else { Bit::Const(false) };
                    if xor { bit.inverted() } else { bit }
                })
                .collect()
            }
            (Some(op @ (BitwiseOp::LSHIFT | BitwiseOp::RSHIFT)), Some(data), _) => {
                let by = <[u8; 4]>::try_from(data.value()?).ok()?;
                let by = usize::try_from(u32::from_ne_bytes(by)).ok()?;
                (words > 0 && (1..32).contains(&by)).then_some(())?;
                // The words are numbers of the machine, one behind the other.
                let mut number: Vec<Bit> = from.chunks(32).flat_map(in_machine_order).collect();
                match op {
                    BitwiseOp::LSHIFT => number.rotate_left(by),
                    _ => number.rotate_right(by),
                }
                let free = match op {
                    BitwiseOp::LSHIFT => number.len() - by..number.len(),
                    _ => 0..by,
                };
                number.get_mut(free)?.fill(Bit::Const(false));
                number.chunks(32).flat_map(in_machine_order).collect()
            }
            (Some(_), data, second) => {
                let with = match (data, second) {
                    (_, Some(register)) => self.bits(register, words * 4)?.to_vec(),
                    (Some(data), None) => {
                        let mut bytes = data.value()?.to_vec();
                        bytes.resize(words * 4, 0);
                        bits_of(&bytes).into_iter().map(Bit::Const).collect()
                    }
                    _ => return None,
                };
                let mut bare = bare;
                if let Expr::Bitwise(b) = &mut bare {
                    (b.data, b.sreg2) = (None, None);
                }
                let source = self.source(bare, vec![Operand::Bits(from), Operand::Bits(with)]);
                let all = 0..u32::try_from(words * 32).ok()?;
                all.map(|at| Bit::Of { source, at, inverted: false }).collect()
            }
        };
        self.store(b.dreg, to.into_iter(), words * 4)
    }

    fn byteorder(&mut self, b: &expr::Byteorder) -> Option<()> {
        let (size, bytes) = (usize::try_from(b.size).ok()?, usize::try_from(b.len).ok()?);
        // Several numbers of two bytes are one in each word or one behind the other, by the kernel's version.
        if !matches!(size, 2 | 4 | 8) || size == 2 && bytes > 3 {
            return None;
        }
        // What does not fill a number stays as it is.
        let whole = bytes - bytes % size;
        let mut bits = self.bits(b.sreg, whole)?.to_vec();
        if cfg!(target_endian = "little") {
            bits =
                bits.chunks(size * 8).flat_map(|number| number.chunks(8).rev().flatten().copied()).collect();
        }
        let start = usize::try_from(b.dreg.first_word()?).ok()? * 32;
        let place = self.registers.get_mut(start..start + bits.len())?;
        place.copy_from_slice(&bits);
        Some(())
    }

    fn compare(&mut self, c: &expr::Cmp) -> Option<()> {
        let data = c.data.value()?;
        let bits = self.bits(c.sreg, data.len())?.to_vec();
        if c.op == CmpOp::EQ {
            self.note_network(&bits, data);
        }
        let of = bits_of(data);
        let (least, most) = (vec![false; of.len()], vec![true; of.len()]);
        let (mut low, mut high) = (of.clone(), of);
        let mut negated = false;
        let is_possible = match c.op {
            CmpOp::EQ => true,
            CmpOp::NEQ => {
                negated = true;
                true
            }
            CmpOp::LT => {
                low = least;
                step(&mut high, false)
            }
            CmpOp::LTE => {
                low = least;
                true
            }
            CmpOp::GT => {
                high = most;
                step(&mut low, true)
            }
            CmpOp::GTE => {
                high = most;
                true
            }
            _ => return None,
        };
        match is_possible {
            true => self.tests.add(Test::Within { bits, low, high, negated }),
            false => self.tests.never = true,
        }
        Some(())
    }

    /// Notes the IP version that a comparison leaves.
    fn note_network(&mut self, bits: &[Bit], data: &[u8]) {
        let Some(Bit::Of { source, at, inverted: false }) = bits.first() else { return };
        let Some(source) = usize::try_from(*source).ok().and_then(|at| self.sources.get(at)) else { return };
        let is_type = match &source.expr {
            Expr::Meta(m) if m.key == MetaKey::NFPROTO => {
                self.network = match data {
                    [2] => Some(Family::IP),
                    [10] => Some(Family::IP6),
                    _ => return,
                };
                return;
            }
            Expr::Meta(m) => m.key == MetaKey::PROTOCOL,
            Expr::Payload(p) => p.base == PayloadBase::LINK && *at == 96,
            _ => false,
        };
        match data {
            [0x08, 0x00] if is_type => self.network = Some(Family::IP),
            [0x86, 0xdd] if is_type => self.network = Some(Family::IP6),
            _ => {}
        }
    }

    fn members(&self, name: &Name, number: Option<u32>, key: Register) -> Option<Members> {
        let (set, elements) = (self.find)(name, number)?;
        let bytes = usize::try_from(set.key_bytes()).ok()?;
        Members::of(self.bits(key, bytes)?, set, elements)
    }

    fn lookup(&mut self, l: &expr::Lookup, mut bare: Expr) -> Option<()> {
        let members = self.members(&l.set, l.set_id, l.sreg)?;
        if let Expr::Lookup(l) = &mut bare {
            (l.set, l.set_id, l.flags) = (Name::from_kernel(""), None, None);
        }
        match l.dreg {
            None => {
                let negated = l.flags.is_some_and(|flags| flags.contains(LookupFlags::INVERT));
                members.tests(negated).into_iter().for_each(|test| self.tests.add(test));
                Some(())
            }
            Some(Register::VERDICT) => {
                self.finish(Some((bare, vec![Operand::Set(members)])));
                self.time += 1;
                Some(())
            }
            Some(to) => {
                let (set, _) = (self.find)(&l.set, l.set_id)?;
                let of = match set.data.as_ref()? {
                    SetData::Value(of) => width(crate::key::width(&of.parts()))?,
                    SetData::Interval(of) => width(crate::key::width(&of.parts()) * 2)?,
                    _ => return None,
                };
                // Where the key is not there, the rule ends.
                self.tests.add(Test::Among { members: members.clone(), negated: false });
                self.load(to, bare, vec![Operand::Set(members)], 0, of)
            }
        }
    }

    /// Notes an expression that does something, with what it takes from registers.
    fn act(&mut self, expr: &Expr, mut bare: Expr) -> Option<()> {
        let address = |family: Family| if family == Family::IP6 { 16 } else { 4 };
        let mut of = Vec::new();
        let mut take = |register: Option<Register>, bytes: usize| {
            if let Some(register) = register {
                of.push(Operand::Bits(self.bits(register, bytes)?.to_vec()));
            }
            Some(())
        };
        match expr {
            Expr::Meta(m) => take(m.sreg, m.key.part().bytes())?,
            Expr::Ct(c) => take(c.sreg, c.key.part().bytes())?,
            Expr::Payload(p) => {
                let mut header = bare.clone();
                if let Expr::Payload(p) = &mut header {
                    *p = load_of(p.base);
                }
                let bits = self.bits(p.sreg?, usize::try_from(p.len).ok()?)?.to_vec();
                let source = self.source(header, Vec::new());
                let places = (p.offset.checked_mul(8)?..).zip(bits);
                // Bits that are written back as they were may be any number of neighbours.
                let is_changed =
                    |(at, bit): &(u32, Bit)| *bit != Bit::Of { source, at: *at, inverted: false };
                of.push(Operand::Written(places.filter(is_changed).collect()));
            }
            Expr::Exthdr(e) => take(e.sreg, usize::try_from(e.len.unwrap_or(0)).ok()?)?,
            Expr::Nat(n) => {
                let family = Family(u8::try_from(n.family).ok()?);
                take(n.addr_min, address(family))?;
                take(n.addr_max.or(n.addr_min), address(family))?;
                take(n.proto_min, 2)?;
                take(n.proto_max.or(n.proto_min), 2)?;
            }
            Expr::Masq(m) => {
                take(m.proto_min, 2)?;
                take(m.proto_max.or(m.proto_min), 2)?;
            }
            Expr::Redir(r) => {
                take(r.proto_min, 2)?;
                take(r.proto_max.or(r.proto_min), 2)?;
            }
            Expr::Tproxy(t) => {
                take(t.addr, address(Family(u8::try_from(t.family).ok()?)))?;
                take(t.port, 2)?;
            }
            Expr::Dup(d) => {
                take(d.addr.filter(|_| self.family != Family::NETDEV), address(self.family))?;
                take(d.device, 4)?;
            }
            Expr::Fwd(f) => {
                take(Some(f.device), 4)?;
                let family = Family(u8::try_from(f.family.unwrap_or(0)).ok()?);
                take(f.addr, address(family))?;
            }
            Expr::Queue(q) => take(q.sreg, 2)?,
            Expr::Objref(o) => {
                if let (Some(set), Some(key)) = (&o.set, o.sreg) {
                    of.push(Operand::Set(self.members(set, o.set_id, key)?));
                }
            }
            Expr::Dynset(d) => {
                of.push(Operand::Set(self.members(&d.set, d.set_id, d.key)?));
                if let Some(register) = d.data {
                    let (set, _) = (self.find)(&d.set, d.set_id)?;
                    let bytes = match set.data.as_ref()? {
                        SetData::Value(of) => crate::key::width(&of.parts()),
                        SetData::Interval(of) => crate::key::width(&of.parts()) * 2,
                        _ => return None,
                    };
                    of.push(Operand::Bits(self.bits(register, bytes)?.to_vec()));
                }
            }
            _ => {}
        }
        match &mut bare {
            // nft lists a write whatever checksums it mends, and which it mends depends on its version.
            Expr::Payload(p) => *p = load_of(p.base),
            Expr::Objref(o) => (o.set, o.set_id) = (None, None),
            Expr::Dynset(d) => {
                (d.set, d.set_id) = (Name::from_kernel(""), None);
                // The kernel lists both, if they are nothing, too.
                d.timeout = d.timeout.filter(|timeout| *timeout > 0);
                d.flags = d.flags.filter(|flags| flags.contains(DynsetFlags::INVERT));
                if d.exprs.len() == 1 {
                    d.expr = d.exprs.pop().map(Box::new);
                }
            }
            _ => {}
        }
        let leaves_packet = matches!(
            bare,
            Expr::Counter(_)
                | Expr::Quota(_)
                | Expr::Limit(_)
                | Expr::Last(_)
                | Expr::Log(_)
                | Expr::Connlimit(_)
        );
        self.finish(Some((bare, of)));
        self.time += u32::from(!leaves_packet);
        Some(())
    }
}

/// Returns the bits of a word as those of a number, the highest first, or the other way round.
fn in_machine_order(word: &[Bit]) -> Vec<Bit> {
    match cfg!(target_endian = "little") {
        true => word.chunks(8).rev().flatten().copied().collect(),
        false => word.to_vec(),
    }
}

/// Returns the source of the bits of a header.
fn load_of(base: PayloadBase) -> expr::Payload {
    expr::Payload {
        dreg: Some(Register::VERDICT),
        base,
        offset: 0,
        len: 0,
        sreg: None,
        csum_type: None,
        csum_offset: None,
        csum_flags: None,
    }
}

fn width(bytes: usize) -> Option<u32> {
    u32::try_from(bytes).ok()
}

/// What every packet has (`nft_meta_get_eval`).
const OF_EVERY_PACKET: [MetaKey; 6] =
    [MetaKey::LEN, MetaKey::PROTOCOL, MetaKey::PRIORITY, MetaKey::MARK, MetaKey::NFPROTO, MetaKey::L4PROTO];

/// `NFT_REG32_COUNT`, and as many words as a value may be longer.
const WORDS: usize = 32;
