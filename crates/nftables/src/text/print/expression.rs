//! Formats expressions in nft's syntax.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;

use crate::datatype::{DataType, Order};
use crate::expr::{CtKey, FibFlags, FibResult, MetaKey, SocketKey};
use crate::key::text::{Inet6, write_bits, write_labels, write_number, write_part};
use crate::key::{Part, integer_bytes};
use crate::tree::Payload;
use crate::tree::expression::*;
use crate::tree::value::*;
use crate::wording::{Wording, Words};

impl Words for Expression {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        Typed(self, &[], with).fmt(f)
    }
}

/// An expression, with the types of its constants in this context.
pub(super) struct Typed<'a>(pub(super) &'a Expression, pub(super) &'a [Kind], pub(super) Wording<'a>);

/// The type of a constant. Constants that are compared with raw payload are printed in hexadecimal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    part: Part,
    raw: bool,
    bits: Bits,
}

/// How several bits of a mask are separated: by a comma in a match of any of them, by `|` otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bits {
    List,
    Or,
    Number,
}

/// Returns the same types with another separator of bits.
pub(super) fn with_bits(bits: Bits, kinds: Vec<Kind>) -> Vec<Kind> {
    kinds.into_iter().map(|kind| Kind { bits, ..kind }).collect()
}

impl From<DataType> for Kind {
    fn from(of: DataType) -> Self {
        Part::from(of).into()
    }
}

impl From<Part> for Kind {
    fn from(part: Part) -> Self {
        Self { part, raw: false, bits: Bits::List }
    }
}

/// Returns the types of an expression's value, one for each part.
pub(super) fn kinds(of: &Expression) -> Vec<Kind> {
    match of {
        Expression::Concat(parts) => parts.iter().flat_map(kinds).collect(),
        // What is shifted is a number, and no value of the field's type any more.
        Expression::Binary(binary) if binary.op.is_shift() => {
            kinds(&binary.left).into_iter().map(|kind| plain_number(kind.part).into()).collect()
        }
        Expression::Binary(binary) if !kinds(&binary.left).is_empty() => kinds(&binary.left),
        other => {
            let raw = matches!(other, Expression::RawPayload(_));
            other.parts().into_iter().map(|part| Kind { raw, ..part.into() }).collect()
        }
    }
}

/// Returns the types of the keys of a map. nft prints a single raw part in decimal there.
pub(super) fn key_kinds(of: &Expression) -> Vec<Kind> {
    let kinds = match of {
        Expression::Concat(_) => kinds(of),
        single => without_raw(single),
    };
    with_bits(Bits::Or, kinds)
}

/// Returns the types of an expression's value, as if no part were raw payload.
pub(super) fn without_raw(of: &Expression) -> Vec<Kind> {
    of.parts().into_iter().map(Kind::from).collect()
}

impl Display for Typed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(expression, kinds, with) = *self;
        let first = kinds.first().copied();
        match expression {
            // nft lists this field by a name that it cannot read.
            Expression::Payload(Payload::ICMPV6_PARAMETER_PROBLEM) if with.is_script() => {
                f.write_str("icmpv6 param-problem")
            }
            Expression::Payload(payload) => payload.fmt(f),
            Expression::RawPayload(raw) => write!(f, "@{},{},{}", raw.base, raw.offset, raw.bits),
            Expression::Exthdr(exthdr) => exthdr.fmt(f),
            Expression::Meta(key) => write_meta(f, *key),
            Expression::Ct(ct) => write_ct(f, *ct, with),
            Expression::Rt(rt) => write!(f, "rt {}", rt.key),
            Expression::Socket(socket) => socket.fmt(f),
            Expression::Osf(osf) => osf.fmt(f),
            Expression::Fib(fib) => fib.fmt(f),
            Expression::Numgen(numgen) => numgen.fmt(f),
            Expression::Jhash(jhash) => jhash.write(f, with),
            Expression::Symhash(symhash) => {
                write!(f, "symhash mod {}", symhash.modulus)?;
                write_offset(f, symhash.offset)
            }
            Expression::Ipsec(ipsec) => ipsec.fmt(f),
            Expression::Tunnel(key) => write!(f, "tunnel {key}"),
            Expression::Inner(inner) => write!(f, "{} {}", inner.tunnel, inner.field),
            Expression::Concat(list) => write_concat(f, list, kinds, with),
            Expression::Binary(binary) => write_binary(f, binary, kinds, with),
            Expression::Map(map) => {
                write!(f, "{} map ", map.key.worded(with))?;
                let value = |value: &_, f: &mut Formatter<'_>| Typed(value, kinds, with).fmt(f);
                write_mapping(f, &map.map, &key_kinds(&map.key), with, value)
            }
            Expression::Value(value) => write_value(f, value, first, with),
            Expression::Prefix(prefix) => {
                // A name without quotes is read together with the slash, and `0:1` takes none.
                let kind = first.filter(|kind| kind.part.data_type() != DataType::CLASSID);
                let is_quoted = match (&prefix.value, kind) {
                    (Value::Number(number), Some(kind)) => {
                        with.options.symbols.contains_key(&(kind.part.data_type(), *number))
                    }
                    _ => false,
                };
                write_value(f, &prefix.value, kind, if is_quoted { with } else { with.bare() })?;
                write!(f, "/{}", prefix.length)
            }
            Expression::Range(range) => {
                write_value(f, &range.0, first, with.bare())?;
                f.write_str("-")?;
                write_value(f, &range.1, first, with.bare())
            }
            Expression::Set(members) => write_set(f, members, &with_bits(Bits::Or, kinds.to_vec()), with),
            Expression::Any => f.write_str("*"),
            Expression::Elem(elem) => write_elem(f, elem, kinds, with),
            Expression::Named(name) => write!(f, "@{name}"),
        }
    }
}

/// Writes a concatenation; each part has its own type for constants.
fn write_concat(
    f: &mut Formatter<'_>,
    list: &[Expression],
    kinds: &[Kind],
    with: Wording<'_>,
) -> fmt::Result {
    for (i, expression) in list.iter().enumerate() {
        if i > 0 {
            f.write_str(" . ")?;
        }
        let kinds = kinds.get(i..=i).unwrap_or_default();
        match (expression, kinds) {
            (Expression::Prefix(prefix), [kind]) if with.avoids_prefix(kind.part) => {
                Typed(&range_of(prefix, kind.part), kinds, with).fmt(f)?;
            }
            // nft lists a range of a single address as that address, but only reads it as a range if it is a
            // prefix.
            (Expression::Prefix(prefix), [kind])
                if !with.is_script() && usize::from(prefix.length) == 8 * kind.part.bytes() =>
            {
                write_value(f, &prefix.value, Some(*kind), with)?;
            }
            _ => Typed(expression, kinds, with).fmt(f)?,
        }
    }
    Ok(())
}

fn range_of(prefix: &Prefix, part: Part) -> Expression {
    let Value::Number(low) = prefix.value else { return Expression::Prefix(Box::new(prefix.clone())) };
    let free = (part.bytes() * 8).saturating_sub(prefix.length.into());
    let free = u32::try_from(free).ok().and_then(|free| u64::MAX.checked_shr(64_u32.saturating_sub(free)));
    let free = free.unwrap_or(0);
    Expression::Range(Box::new((Value::Number(low & !free), Value::Number(low | free))))
}

fn write_binary(f: &mut Formatter<'_>, binary: &Binary, of: &[Kind], with: Wording<'_>) -> fmt::Result {
    let own = with_bits(Bits::Or, kinds(&binary.left));
    let of = if own.is_empty() || is_number_for(&own, of) { of } else { &own };
    let of = match binary.op {
        // The number of bits is a plain number, whatever is shifted.
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => &[],
        _ => of,
    };
    let left = binary.left.worded(with);
    match &binary.left {
        Expression::Binary(inner) if inner.op.precedence() < binary.op.precedence() => write!(f, "({left})")?,
        _ => write!(f, "{left}")?,
    }
    write!(f, " {} ", binary.op)?;
    match (&binary.right, of.first()) {
        (Expression::Binary(inner), _) if inner.op.precedence() <= binary.op.precedence() => {
            write!(f, "({})", binary.right.worded(with))
        }
        (Expression::Value(value), Some(kind))
            if kind.part.data_type().is_bitmask() && value.count_ones() > 1 =>
        {
            write!(f, "({})", Typed(&binary.right, of, with))
        }
        _ => Typed(&binary.right, of, with).fmt(f),
    }
}

/// Returns whether a header's value is converted to a number in host byte order: what it is calculated with is
/// such a number.
fn is_number_for(own: &[Kind], of: &[Kind]) -> bool {
    matches!((own, of), ([own], [of]) if own.part.order() == Order::Network && of.part.order() == Order::Host)
}

/// Returns an integer of the same length.
fn plain_number(part: Part) -> Part {
    Part::Integer { bytes: u8::try_from(part.bytes()).unwrap_or(16), order: part.order() }
}

fn write_set(
    f: &mut Formatter<'_>,
    members: &[Expression],
    kinds: &[Kind],
    with: Wording<'_>,
) -> fmt::Result {
    if members.is_empty() {
        // As nft, with the two blanks.
        return f.write_str("{  }");
    }
    f.write_str("{ ")?;
    for (i, member) in members.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        Typed(member, kinds, with).fmt(f)?;
    }
    f.write_str(" }")
}

fn write_elem(f: &mut Formatter<'_>, elem: &Elem, kinds: &[Kind], with: Wording<'_>) -> fmt::Result {
    Typed(&elem.value, kinds, with).fmt(f)?;
    elem.statements.iter().try_for_each(|statement| write!(f, " {}", statement.worded(with)))?;
    elem.comment.iter().try_for_each(|comment| write!(f, " comment {comment}"))
}

pub(super) fn write_mapping<V>(
    f: &mut Formatter<'_>,
    map: &Mapping<V>,
    kinds: &[Kind],
    with: Wording<'_>,
    value: impl Fn(&V, &mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    let pairs = match map {
        Mapping::Named(name) => return write!(f, "@{name}"),
        Mapping::Anonymous(pairs) => pairs,
    };
    f.write_str("{ ")?;
    for (i, (key, v)) in pairs.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        Typed(key, kinds, with).fmt(f)?;
        f.write_str(" : ")?;
        value(v, f)?;
    }
    f.write_str(" }")
}

fn write_value(f: &mut Formatter<'_>, value: &Value, kind: Option<Kind>, with: Wording<'_>) -> fmt::Result {
    let with = if kind.is_some_and(|kind| kind.raw) { with.hexadecimal() } else { with };
    match (value, kind.map(|kind| kind.part)) {
        // nft reads a number as that of a bit.
        (Value::Number(number), Some(part)) if part.data_type() == DataType::CT_LABEL => {
            write_part(f, part, &integer_bytes(part.order(), part.bytes(), *number), with)
        }
        (Value::Number(number), Some(part)) => {
            let of = part.data_type();
            match kind.map(|kind| kind.bits) {
                Some(Bits::Or) if of.is_bitmask() && with.is_named() => {
                    write_bits(f, of, *number, " | ", with)
                }
                Some(Bits::Number) if of.is_bitmask() && number.count_ones() > 1 => {
                    write_number(f, of, *number, with.bare())
                }
                _ => write_number(f, of, *number, with),
            }
        }
        (Value::Number(number), None) => write!(f, "{number}"),
        // nft reads no address if it only knows the length of the value.
        (Value::Address(IpAddr::V4(address)), Some(part)) if is_integer(part, 4) => {
            write_part(f, part, &address.octets(), with)
        }
        (Value::Address(IpAddr::V6(address)), Some(part)) if is_integer(part, 16) => {
            write_part(f, part, &address.octets(), with)
        }
        (Value::Ether(address), Some(part)) if is_integer(part, 6) => write_part(f, part, &address.0, with),
        (Value::Address(IpAddr::V6(address)), _) => Inet6(*address).fmt(f),
        (Value::Address(address), _) => address.fmt(f),
        (Value::Ether(address), _) => address.fmt(f),
        (Value::Interface(name) | Value::Text(name), _) => name.fmt(f),
        (Value::Bytes(bytes), Some(part))
            if part.data_type() == DataType::CT_LABEL
                && part.bytes() == bytes.len()
                && kind.is_some_and(|kind| kind.bits == Bits::List) =>
        {
            write_labels(f, bytes, ",")
        }
        (Value::Bytes(bytes), Some(part)) if part.bytes() == bytes.len() => write_part(f, part, bytes, with),
        (Value::Bytes(bytes), _) => {
            f.write_str("0x")?;
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        }
    }
}

fn is_integer(part: Part, bytes: usize) -> bool {
    part.data_type() == DataType::INTEGER && part.bytes() == bytes
}

fn write_meta(f: &mut Formatter<'_>, key: MetaKey) -> fmt::Result {
    match key {
        MetaKey::IIF
        | MetaKey::OIF
        | MetaKey::IIFNAME
        | MetaKey::OIFNAME
        | MetaKey::IIFGROUP
        | MetaKey::OIFGROUP => key.fmt(f),
        key => write!(f, "meta {key}"),
    }
}

impl Display for Ct {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_ct(f, *self, Wording::SCRIPT)
    }
}

fn write_ct(f: &mut Formatter<'_>, ct: Ct, with: Wording<'_>) -> fmt::Result {
    f.write_str("ct ")?;
    if let Some(direction) = ct.direction {
        write!(f, "{direction} ")?;
    }
    // In a listing nft names the IP version, which stands for another key where it is read.
    if let (CtKey::SADDR | CtKey::DADDR, Some(family)) = (ct.key, ct.family)
        && !with.is_script()
    {
        write!(f, "{family} ")?;
    }
    write!(f, "{}", ct.key)
}

impl Display for Socket {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "socket {}", self.key)?;
        match self.key {
            // In user data of a `typeof` the level is not stored.
            SocketKey::CGROUPV2 => write!(f, " level {}", self.level.unwrap_or(0)),
            _ => Ok(()),
        }
    }
}

impl Display for Osf {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.ttl {
            1 => "osf ttl loose ",
            2 => "osf ttl skip ",
            _ => "osf ",
        })?;
        f.write_str(if self.version { "version" } else { "name" })
    }
}

impl Display for Fib {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const NAMES: [(FibFlags, &str); 5] = [
            (FibFlags::SADDR, "saddr"),
            (FibFlags::DADDR, "daddr"),
            (FibFlags::MARK, "mark"),
            (FibFlags::IIF, "iif"),
            (FibFlags::OIF, "oif"),
        ];
        f.write_str("fib ")?;
        let names = NAMES.iter().filter(|(flag, _)| self.flags.contains(*flag)).map(|(_, name)| *name);
        for (i, name) in names.enumerate() {
            if i > 0 {
                f.write_str(" . ")?;
            }
            f.write_str(name)?;
        }
        match self.result {
            FibResult::OIF if self.check => f.write_str(" check"),
            result => write!(f, " {result}"),
        }
    }
}

impl Display for Numgen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "numgen {} mod {}", self.mode, self.modulus)?;
        write_offset(f, self.offset)
    }
}

impl Words for Jhash {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        write!(f, "jhash {} mod {}", self.of.worded(with), self.modulus)?;
        if let Some(seed) = self.seed {
            write!(f, " seed {seed:#x}")?;
        }
        write_offset(f, self.offset)
    }
}

fn write_offset(f: &mut Formatter<'_>, offset: u32) -> fmt::Result {
    if offset == 0 { Ok(()) } else { write!(f, " offset {offset}") }
}

impl Display for Ipsec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ipsec {} ", if self.out { "out" } else { "in" })?;
        if self.number > 0 {
            write!(f, "spnum {} ", self.number)?;
        }
        self.key.fmt(f)
    }
}

impl BinaryOp {
    /// Returns the operator's precedence in nft's language; an operand with lower precedence needs
    /// parentheses.
    pub(crate) fn precedence(self) -> u8 {
        match self {
            Self::Or => 0,
            Self::Xor => 1,
            Self::And => 2,
            Self::ShiftLeft | Self::ShiftRight => 3,
        }
    }
}

impl Display for BinaryOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{ExthdrOp, PayloadBase};
    use crate::tree::exthdr::Exthdr;
    use crate::tree::{Match, MatchOp, MptcpSubtype, Payload, Statement, Verdict, Vmap};
    use crate::{EtherAddr, Port};
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn an_address_is_a_number_where_nft_knows_only_a_width() {
        let address = Ipv4Addr::new(10, 0, 0, 1);
        let is = |left: Expression, right: Expression| Match::new(left, right).to_string();
        let raw = |base, offset, bits| RawPayload { base, offset, bits }.into();
        let option = Exthdr::find(ExthdrOp::IPV4, "rr", "addr").unwrap();
        assert_eq!(is(option.into(), address.into()), "ip option rr addr 167772161");
        assert_eq!(is(raw(PayloadBase::NETWORK, 96, 32), address.into()), "@nh,96,32 0xa000001");
        let network = Expression::prefix(address, 8);
        assert_eq!(is(Payload::IP_SADDR.into(), network), "ip saddr 10.0.0.1/8");
        assert_eq!(is(raw(PayloadBase::NETWORK, 192, 128), Ipv6Addr::LOCALHOST.into()), "@nh,192,128 0x1");
        let ether = EtherAddr([2, 0, 0, 0, 0, 1]);
        assert_eq!(is(raw(PayloadBase::LINK, 48, 48), ether.into()), "@ll,48,48 0x20000000001");
        assert_eq!(is(raw(PayloadBase::TRANSPORT, 16, 16), Port(80).into()), "@th,16,16 0x50");
    }

    #[test]
    fn subtypes_of_mptcp_are_numbers_to_every_nft() {
        let subtype = Exthdr::find(ExthdrOp::TCPOPT, "mptcp", "subtype").unwrap();
        let join = Match::new(subtype, MptcpSubtype::MP_JOIN);
        assert_eq!(join.to_string(), "tcp option mptcp subtype 1");
    }

    #[test]
    fn whether_there_is_a_route_is_said_so_that_no_nft_takes_it_for_an_interface() {
        let check = Fib { flags: FibFlags::DADDR | FibFlags::IIF, result: FibResult::OIF, check: true };
        assert_eq!(Expression::from(check).to_string(), "fib daddr . iif check");
        assert_eq!(Match::new(check, 1_u32).to_string(), "fib daddr . iif oif exists");
        assert_eq!(Match::not(check, 0_u32).to_string(), "fib daddr . iif oif != missing");
        assert_eq!(Match::with(check, MatchOp::Lt, 1_u32).to_string(), "fib daddr . iif check < exists");
        let set = Expression::set([0_u32, 1]);
        assert_eq!(Match::new(check, set).to_string(), "fib daddr . iif check { missing, exists }");
        let vmap = Vmap::new(check, vec![(0_u32.into(), Verdict::Drop)]);
        assert_eq!(Statement::from(vmap).to_string(), "fib daddr . iif check vmap { missing : drop }");
        let index = Fib { check: false, ..check };
        assert_eq!(Match::new(index, 1_u32).to_string(), "fib daddr . iif oif 1");
    }
}
