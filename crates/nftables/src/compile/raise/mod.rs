//! Raises the kernel's expressions to the typed language, in the form that nft lists. A rule that the
//! language cannot express becomes [`Statement::Raw`] as a whole, so nothing is lost; modules of xtables, which
//! have nothing to do with the expressions beside them, become one each.
//!
//! The language cannot express what its statements are not lowered to again: each rule is compared
//! (`meaning`), so that no listing that can be loaded does something else than the kernel.

mod bits;
mod constant;
mod headers;
mod inner;
mod lookup;
mod matching;
mod meaning;
mod statement;

use std::collections::HashMap;

use crate::check::KnownSets;
use crate::compile::lower::imply::Link;
use crate::compile::lower::{Intervals, Lowered, Refused, lower};
use crate::compile::raise::constant::constant;
use crate::expr::{self, CtKey, Data, Expr, FibFlags, HashType, MetaKey, PayloadBase, Register};
use crate::family::Family;
use crate::key::{Part, is_byte_swapped};
use crate::name::Name;
use crate::object::{Element, Set, SetFlags, TableId};
use crate::tree::expression::*;
use crate::tree::{Payload, Statement};

/// Returns the statements that these expressions implement.
pub(crate) fn raise(context: &TableContext<'_>, exprs: &[Expr]) -> Vec<Statement> {
    let (family, sets) = (context.table.family, context.sets);
    let statements = in_words(Raise::new(family, sets), exprs);
    if matches!(statements[..], [Statement::Raw(_)]) {
        return statements;
    }
    let is_exact = |statements: &[Statement]| {
        let lowered = context.lowered(statements).ok()?;
        Some(meaning::is_same(family, sets, exprs, &lowered))
    };
    let first = is_exact(&statements);
    if first == Some(true) {
        return statements;
    }
    // A match that nft drops, since others mostly imply it, may be one that they do not.
    let whole = in_words(Raise { keeps_implied: true, ..Raise::new(family, sets) }, exprs);
    match (first, is_exact(&whole)) {
        (_, Some(true)) => whole,
        // nft's words, which neither nft nor we load: they cannot become something else.
        (None, None) => statements,
        _ => vec![Statement::Raw(exprs.to_vec())],
    }
}

fn in_words(mut raise: Raise<'_>, exprs: &[Expr]) -> Vec<Statement> {
    for expr in exprs {
        if raise.expression(expr).is_none() {
            // The whole rule becomes raw: later expressions may use the registers of this one, so a part of
            // it would not be valid.
            return vec![Statement::Raw(exprs.to_vec())];
        }
    }
    // The language has no statement for such a match alone.
    if raise.inside.has_unused_match() {
        return vec![Statement::Raw(exprs.to_vec())];
    }
    raise.out.into_iter().flatten().collect()
}

/// The sets of a table by name, with the elements of anonymous ones.
pub(crate) type Sets = HashMap<Name, (Set, Vec<Element>)>;

/// The table of rules, and its sets.
pub(crate) struct TableContext<'a> {
    table: &'a TableId,
    sets: &'a Sets,
    known: KnownSets<'a>,
}

impl<'a> TableContext<'a> {
    pub(crate) fn new(table: &'a TableId, sets: &'a Sets) -> Self {
        let named = sets.values().map(|(set, _)| set).filter(|set| !set.is_anonymous());
        Self { table, sets, known: named.map(|set| (&set.id, set)).collect() }
    }

    fn lowered(&self, statements: &[Statement]) -> Result<Lowered, Refused> {
        lower(self.table, statements, &self.known, &Intervals::new(), &mut 0)
    }
}

pub(crate) struct Raise<'a> {
    family: Family,
    sets: &'a Sets,
    registers: HashMap<u32, Content>,
    /// The statements so far; `None` for a match that a later statement implies.
    out: Vec<Option<Statement>>,
    link: Link,
    /// The number of VLAN tags after the first one.
    inner_tags: u16,
    network: Option<u64>,
    /// The network protocol that nft, too, has learned from the matches so far.
    determined_network: Option<u64>,
    transport: Option<u64>,
    /// The ICMP message type, if a match determines it.
    icmp: Option<u8>,
    /// The register with an address of a connection that was loaded by the key for both IP versions.
    address_of_any_family: Option<Register>,
    /// The positions in `out` of the matches that determine headers.
    implied: headers::Implied,
    /// The protocols of the encapsulated packet that are known.
    inside: inner::Inside,
    /// Whether matches that a later statement implies stay.
    keeps_implied: bool,
}

/// The content of a register.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// A value that depends on the packet, with its length in bytes.
    Loaded {
        expression: Expression,
        bytes: u32,
        /// The mask and the xor that were applied to it.
        mask: Option<(Vec<u8>, Vec<u8>)>,
        /// The header and offset that it was loaded from.
        place: Option<(PayloadBase, u32)>,
        /// Whether a bit field was shifted to the lowest bits.
        moved: bool,
        /// Whether it was byte-swapped: for a comparison with `<` or `>`, a lookup among intervals, or a
        /// shift.
        byte_swapped: bool,
    },
    /// A constant.
    Constant(Vec<u8>),
    /// A protocol inside a tunnel, which the language only expresses through the fields that imply it.
    Inside(MetaKey),
}

impl<'a> Raise<'a> {
    fn new(family: Family, sets: &'a Sets) -> Self {
        // A table of one family sees only that network protocol.
        let network = match family {
            Family::IP | Family::IP6 | Family::ARP => Some(u64::from(family.0)),
            _ => None,
        };
        Self {
            family,
            sets,
            registers: HashMap::new(),
            out: Vec::new(),
            // Bridges only carry Ethernet frames.
            link: if family == Family::BRIDGE { Link::Ether } else { Link::Unknown },
            inner_tags: 0,
            network,
            determined_network: network,
            transport: None,
            icmp: None,
            address_of_any_family: None,
            implied: headers::Implied::default(),
            inside: inner::Inside::default(),
            keeps_implied: false,
        }
    }

    /// Raises one expression; `None` if the language cannot express it.
    fn expression(&mut self, expr: &Expr) -> Option<()> {
        match expr {
            Expr::Payload(p) if p.dreg.is_some() => self.payload(p),
            Expr::Meta(m) if m.dreg.is_some() => self.load_part(m.dreg?, m.key.into()),
            Expr::Ct(c) if c.dreg.is_some() => {
                self.load_part(c.dreg?, self.connection(c).into())?;
                self.address_of_any_family = c.dreg.filter(|_| matches!(c.key, CtKey::SADDR | CtKey::DADDR));
                Some(())
            }
            Expr::Rt(r) => self.load_part(r.dreg, Expression::Rt(Rt { key: r.key })),
            Expr::Socket(s) => {
                // Only this key has a level.
                let level = s.level.filter(|_| s.key == expr::SocketKey::CGROUPV2);
                self.load_part(s.dreg, Expression::Socket(Socket { key: s.key, level }))
            }
            Expr::Osf(o) => {
                let version = o.flags.is_some_and(|flags| flags.contains(expr::OsfFlags::VERSION));
                self.load_part(o.dreg, Expression::Osf(Osf { ttl: o.ttl.unwrap_or(0), version }))
            }
            Expr::Fib(f) => {
                // The flag makes the lookup a test for a route, which the language expresses in the
                // comparison.
                let check = f.flags.contains(FibFlags::PRESENT);
                let fib = Fib { flags: f.flags - FibFlags::PRESENT, result: f.result, check };
                self.load(f.dreg, fib.into(), u32::try_from(fib.result_part().bytes()).ok()?)
            }
            Expr::Numgen(n) => {
                let numgen = Numgen { mode: n.mode, modulus: n.modulus, offset: n.offset.unwrap_or(0) };
                self.load_part(n.dreg, numgen.into())
            }
            Expr::Hash(h) => self.hash(h),
            Expr::Xfrm(x) => {
                let ipsec = Ipsec { key: x.key, out: x.direction != 0, number: x.number.unwrap_or(0) };
                self.load_part(x.dreg, Expression::Ipsec(ipsec))
            }
            Expr::Exthdr(e) if e.dreg.is_some() => self.exthdr(e),
            // nft has no syntax for a tunnel mode.
            Expr::Tunnel(t) if t.mode.is_none_or(|mode| mode == 0) => self.load_part(t.dreg, t.key.into()),
            Expr::Inner(i) => self.inner(i),
            Expr::Immediate(i) if i.dreg == Register::VERDICT => match &i.data {
                Data::Verdict(verdict) => self.emit(verdict.clone()),
                _ => None,
            },
            Expr::Immediate(i) => {
                let content = Content::Constant(i.data.value()?.to_vec());
                self.registers.insert(i.dreg.first_word()?, content);
                Some(())
            }
            Expr::Bitwise(b) => self.bitwise(b),
            Expr::Byteorder(b) if b.sreg == b.dreg => self.swap_register(b.sreg),
            Expr::Cmp(c) => self.compare(c),
            Expr::Range(r) => self.range(r),
            Expr::Lookup(l) => self.lookup(l),
            other => self.statement(other),
        }
    }

    /// Returns data of the connection, an address with the IP version that the rest of the rule determines.
    fn connection(&self, c: &expr::Ct) -> Ct {
        let family = match c.key {
            CtKey::SADDR | CtKey::DADDR => {
                [Family::IP, Family::IP6].into_iter().find(|family| self.network_is(*family))
            }
            _ => None,
        };
        Ct { key: c.key, direction: c.direction, family }
    }

    fn hash(&mut self, h: &expr::Hash) -> Option<()> {
        let offset = h.offset.unwrap_or(0);
        if h.of == Some(HashType::SYMMETRIC) {
            return self.load_part(h.dreg, Expression::Symhash(Symhash { modulus: h.modulus, offset }));
        }
        // The matches that it implies are dropped where the hash is used.
        let of = self.loaded(h.sreg?, h.len?, &[], false)?;
        let (modulus, seed) = (h.modulus, h.seed);
        self.load_part(h.dreg, Expression::Jhash(Box::new(Jhash { of, modulus, seed, offset })))
    }

    fn load(&mut self, register: Register, expression: Expression, bytes: u32) -> Option<()> {
        let content =
            Content::Loaded { expression, bytes, mask: None, place: None, moved: false, byte_swapped: false };
        self.put(register, content)
    }

    /// Stores a value in registers: the values that it overlaps are gone.
    fn put(&mut self, register: Register, content: Content) -> Option<()> {
        self.address_of_any_family = None;
        let word = register.first_word()?;
        if let Content::Loaded { bytes, .. } = content {
            (1..bytes.div_ceil(4).min(16)).for_each(|more| drop(self.registers.remove(&(word + more))));
        }
        self.registers.insert(word, content);
        Some(())
    }

    fn load_part(&mut self, register: Register, expression: Expression) -> Option<()> {
        let bytes = u32::try_from(expression.part()?.bytes()).ok()?;
        self.load(register, expression, bytes)
    }

    fn content(&self, register: Register) -> Option<&Content> {
        self.registers.get(&register.first_word()?)
    }

    /// Returns the value of a register for a use that requires this type.
    fn value(&mut self, register: Register, part: Part) -> Option<Expression> {
        match self.content(register)? {
            Content::Constant(bytes) => Some(constant(part, bytes.get(..part.bytes()).unwrap_or(bytes))),
            // The kernel lists a constant with the length of the register's content, which may be longer than
            // the type.
            content => {
                let expression = self.whole(content).filter(is_expressible)?;
                // As many bytes as a mark has are taken as they are where they have no name, not as a number.
                if matches!(content, Content::Loaded { byte_swapped: true, expression, .. }
                    if matches!(expression, Expression::RawPayload(raw) if raw.bits == 32))
                {
                    return None;
                }
                self.drop_implied_by(&expression);
                Some(expression)
            }
        }
    }

    /// Returns the values of consecutive registers for a use that requires these types.
    fn values(&mut self, register: Register, parts: &[Part]) -> Option<Expression> {
        let mut word = register.first_word()?;
        if let [] | [_] = parts {
            return self.value(register, *parts.first()?);
        }
        // One lookup loads all values of a concatenated map.
        if let Some(map) = self.map_in(register) {
            self.drop_implied_by(&map);
            return Some(map);
        }
        let mut list = Vec::new();
        for part in parts {
            list.push(self.value(Register::word(word), *part)?);
            word = word.checked_add(u32::try_from(part.bytes().div_ceil(4)).ok()?)?;
        }
        Some(Expression::Concat(list))
    }

    /// Returns the lookup in a map whose result a register contains.
    fn map_in(&self, register: Register) -> Option<Expression> {
        match self.content(register)? {
            Content::Loaded { expression: map @ Expression::Map(_), .. } => Some(map.clone()),
            _ => None,
        }
    }

    /// Returns the key of a set in the registers from this one on.
    fn key_of(&self, register: Register, set: &Set) -> Option<Expression> {
        self.loaded(register, set.key_bytes(), &set.key.parts(), set.flags.contains(SetFlags::INTERVAL))
    }

    /// Returns the expression that the registers from this one on contain, `bytes` long. Constants have these
    /// types; `intervals` tells whether it is looked up among intervals.
    fn loaded(&self, register: Register, bytes: u32, types: &[Part], intervals: bool) -> Option<Expression> {
        let first = register.first_word()?;
        let mut word = first;
        let end = word.checked_add(bytes.div_ceil(4))?;
        let mut parts = Vec::new();
        while word < end {
            let content = self.registers.get(&word)?;
            let (expression, length) = match content {
                Content::Loaded { bytes, moved, byte_swapped, .. } => {
                    // A bit field is byte-swapped to be shifted. nft before 1.0.8 did not swap, and later
                    // versions do not swap back.
                    if *byte_swapped && !intervals && (!moved || *bytes > 2) {
                        return None;
                    }
                    (self.whole(content).filter(is_expressible)?, *bytes)
                }
                Content::Constant(bytes) => {
                    // A constant has no type of its own: it takes the type of the key's field at this
                    // position.
                    let of = part_at(types, word - first)?;
                    let mut bytes = bytes.get(..of.bytes())?.to_vec();
                    // Numbers in host byte order are in network byte order among intervals.
                    if intervals && is_byte_swapped(of) {
                        bytes.reverse();
                    }
                    (constant(of, &bytes), u32::try_from(of.bytes()).ok()?)
                }
                Content::Inside(_) => return None,
            };
            parts.push(expression);
            word = word.checked_add(length.div_ceil(4).max(1))?;
        }
        if parts.len() > 1 {
            // In a concatenation nft lists these bytes as ports, even if the protocol has no ports.
            parts.iter_mut().for_each(|part| port_of(part).into_iter().for_each(|port| *part = port.into()));
        }
        if parts.len() == 1 { parts.pop() } else { Some(Expression::Concat(parts)) }
    }

    fn emit(&mut self, statement: impl Into<Statement>) -> Option<()> {
        let statement = statement.into();
        if !matches!(statement, Statement::Match(_)) {
            // The matches so far also apply to this statement, so a later one must not drop them.
            self.keep_all_matches();
            self.inside.keep_matches();
        }
        self.out.push(Some(statement));
        Some(())
    }
}

/// Returns whether nft can express it outside of a comparison.
fn is_expressible(expression: &Expression) -> bool {
    !matches!(expression, Expression::Fib(fib) if !fib.is_expressible())
}

/// Returns the port field that has the place of these bytes of the transport header in most protocols.
fn port_of(expression: &Expression) -> Option<Payload> {
    if let Expression::RawPayload(raw) = expression { raw.port() } else { None }
}

/// Returns the type of the field that starts at this 32-bit word of a key.
fn part_at(types: &[Part], word: u32) -> Option<Part> {
    let mut at = 0;
    for of in types {
        if at == word {
            return Some(*of);
        }
        at += u32::try_from(of.bytes().div_ceil(4)).ok()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::sample::Source;

    /// A packet without a connection goes past this rule.
    #[test]
    fn a_load_that_nobody_looks_at_and_that_can_end_the_rule_has_no_words() {
        let table = TableId::new(Family::INET, Name::from_kernel("t"));
        let load = expr::Ct { dreg: Some(Register::word(0)), key: CtKey::MARK, direction: None, sreg: None };
        let drop = expr::Immediate { dreg: Register::VERDICT, data: Data::Verdict(expr::Verdict::Drop) };
        let rule = [load.into(), drop.into()];
        let raised = raise(&TableContext::new(&table, &Sets::new()), &rule);
        assert_eq!(raised, [Statement::Raw(rule.to_vec())]);
    }

    proptest! {
        #[test]
        fn no_expressions_make_it_panic_or_are_lost(numbers in prop::collection::vec(any::<u64>(), 16..64),
            order in prop::collection::vec(any::<prop::sample::Index>(), 1..12)) {
            let all = Expr::samples(&mut Source::new(numbers));
            let exprs: Vec<_> = order.iter().map(|index| index.get(&all).clone()).collect();
            for family in [Family::IP, Family::INET, Family::BRIDGE] {
                let table = TableId::new(family, Name::from_kernel("t"));
                let statements = raise(&TableContext::new(&table, &Sets::new()), &exprs);
                let is_module = |expr: &Expr| matches!(expr, Expr::XtMatch(_) | Expr::XtTarget(_));
                for statement in &statements {
                    let Statement::Raw(kept) = statement else { continue };
                    prop_assert!(*kept == exprs || matches!(&kept[..], [only] if is_module(only)));
                }
                let _ = statements.iter().map(ToString::to_string).count();
            }
        }
    }
}
