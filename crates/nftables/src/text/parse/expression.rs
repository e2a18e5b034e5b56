//! Expressions: packet fields, operators, maps and concatenations.

use crate::compile::constant::Place;
use crate::compile::lower::sets::{is_interval, key_bounds};
use crate::datatype::{DataType, Order};
use crate::expr::FibResult;
use crate::key::Part;
use crate::object::element::compare;
use crate::object::{SetData, SetType};
use crate::sort;
use crate::text::parse::constant::{Typed, Wrong, constant, number, untyped};
use crate::text::parse::error::Problem;
use crate::text::parse::lexer::{Kind, Span, Token};
use crate::text::parse::parser::{Parsed, Parser, is_keyword, keyword, unquoted};
use crate::text::parse::phrase::Behind;
use crate::text::parse::primary::is_header;
use crate::text::parse::statement::starts_statement;
use crate::tree::{BinaryOp, Expression, Map, Mapping, Prefix, Value};

impl Parser<'_, '_> {
    /// `ip saddr . tcp dport`. Constants in it are of these types, one for each part.
    pub(crate) fn concat(&mut self, types: &[Typed]) -> Parsed<Expression> {
        let start = self.token.span;
        let first = self.basic(types)?;
        if !self.is(Kind::Dot) {
            return Ok(first);
        }
        let mut parts = Vec::with_capacity(4);
        let mut add = |part: Expression| match part {
            Expression::Concat(list) => parts.extend(list),
            single => parts.push(single),
        };
        let mut span = self.since(start);
        self.check_part(&first, span)?;
        add(first);
        let mut at = 1;
        while self.eat(Kind::Dot) {
            let start = self.token.span;
            let part = self.basic(types.get(at..).unwrap_or_default())?;
            span = self.since(start);
            self.check_part(&part, span)?;
            add(part);
            at += 1;
        }
        Ok(Expression::Concat(parts))
    }

    /// Refuses text of no fixed length as a part of a concatenation: the parts behind it would have no place.
    fn check_part(&self, part: &Expression, span: Span) -> Parsed<()> {
        let is_text = match part {
            Expression::Fib(fib) => fib.result == FibResult::OIFNAME,
            part => !part.is_constant() && part.part().map(Part::data_type) == Some(DataType::STRING),
        };
        match is_text {
            true => Err(Problem::new(
                span,
                format!("expected a part of fixed length in a concatenation, found `{part}`, which is text"),
            )),
            false => Ok(()),
        }
    }

    /// One part of a concatenation: `meta mark & 0xff`.
    fn basic(&mut self, types: &[Typed]) -> Parsed<Expression> {
        self.binary(0, types)
    }

    fn binary(&mut self, least: u8, types: &[Typed]) -> Parsed<Expression> {
        let start = self.token.span;
        let mut left = self.primary(types)?;
        let mut count = 0;
        while let Some(op) = self.operator().filter(|op| op.precedence() >= least) {
            self.next();
            count += 1;
            if count > MAX_OPERATORS {
                return Err(Problem::new(
                    self.since(start),
                    format!("more than {MAX_OPERATORS} operations in a row"),
                ));
            }
            let integer = [Typed::from(DataType::INTEGER)];
            let wanted = types;
            let own = Typed::of(&left).map(|typed| [typed]);
            let types = match op {
                BinaryOp::ShiftLeft | BinaryOp::ShiftRight => &integer[..],
                // What is made of a header's field for a mark is a number of the mark's size.
                _ if is_number_for(own.as_ref().map(|[own]| *own), types.first().copied()) => types,
                _ => own.as_ref().map_or(types, |own| &own[..]),
            };
            let right = self.binary(op.precedence() + 1, types)?;
            left = match (&left, &right) {
                (Expression::Value(Value::Number(a)), Expression::Value(Value::Number(b))) => {
                    if op.is_shift() {
                        self.check_shift(&right, wanted, start)?;
                    }
                    Value::Number(folded(op, *a, *b)).into()
                }
                _ => left.binary(op, right),
            };
        }
        Ok(left)
    }

    /// The operator that comes next.
    pub(crate) fn operator(&self) -> Option<BinaryOp> {
        Some(match self.token.kind {
            Kind::And => BinaryOp::And,
            Kind::Or => BinaryOp::Or,
            Kind::Xor => BinaryOp::Xor,
            Kind::ShiftLeft => BinaryOp::ShiftLeft,
            Kind::ShiftRight => BinaryOp::ShiftRight,
            Kind::Word => match self.text() {
                "and" => BinaryOp::And,
                "or" => BinaryOp::Or,
                "xor" => BinaryOp::Xor,
                "lshift" => BinaryOp::ShiftLeft,
                "rshift" => BinaryOp::ShiftRight,
                _ => return None,
            },
            _ => return None,
        })
    }

    fn primary(&mut self, types: &[Typed]) -> Parsed<Expression> {
        match self.token.kind {
            Kind::OpenParen => self.deeper(|parser| {
                parser.next();
                let inner = parser.basic(types)?;
                parser.want(Kind::CloseParen, "`)`")?;
                Ok(inner)
            }),
            Kind::Dollar => self.variable(|parser| parser.right(types)),
            _ => match self.packet_expression()? {
                Some(expression) => Ok(expression),
                // Where an expression may stand, that is not a constant to nft. It lists `ip protocol set tcp`,
                // though, so that protocols are read.
                None if self.is(Kind::Word) && needs_field(self.text()) && !is_protocol(types) => {
                    Err(self.wrong_field(self.text()))
                }
                None => self.constant(types.first().copied()),
            },
        }
    }

    /// A constant of a type.
    pub(crate) fn constant(&mut self, typed: Option<Typed>) -> Parsed<Expression> {
        let token = self.token;
        let text = self.lexer.text_of(token.span);
        let text = match token.kind {
            Kind::Number(value) => {
                self.next();
                return match typed {
                    Some(typed) => match number(value, typed) {
                        Ok(value) => Ok(value.into()),
                        Err(wrong) => Err(self.wrong(token, &wrong)),
                    },
                    None => Ok(Value::Number(value).into()),
                };
            }
            Kind::Word | Kind::Star => text,
            Kind::Quoted => unquoted(text),
            Kind::Bracketed => text.trim_matches(['[', ']']),
            // Only bits of a header may start so where a set may not.
            Kind::At => return self.raw_payload(),
            _ => return Err(self.expected("an expression")),
        };
        if is_header(text) && token.kind == Kind::Word && typed.is_none() {
            return Err(self.wrong_field(text));
        }
        if token.kind == Kind::Word
            && let Some(typed) = typed
            && is_text(typed)
            && is_keyword(text)
            && !TEXT_KEYWORDS.contains(&text)
        {
            return Err(keyword(token.span, &typed.wanted(), text).help("put it in quotes"));
        }
        self.next();
        match typed {
            Some(typed) => match constant(text, typed, self.options) {
                Ok(value) => Ok(value.into()),
                Err(wrong) if self.is_out_of_place(typed) => {
                    Err(self.with_phrase(self.wrong(token, &wrong), Behind::Value))
                }
                Err(wrong) => Err(self.wrong(token, &wrong)),
            },
            None => match untyped(text) {
                Some(value) => Ok(value.into()),
                None => Err(self.unknown(token)),
            },
        }
    }

    /// Whether the next token cannot follow a constant, so that nft refuses it and not the constant.
    fn is_out_of_place(&self, typed: Typed) -> bool {
        match self.token.kind {
            Kind::Equal | Kind::NotEqual | Kind::Less | Kind::LessEqual | Kind::Greater => true,
            Kind::GreaterEqual | Kind::CloseParen | Kind::OpenBrace => true,
            Kind::Number(_) => true,
            Kind::Colon => typed.data_type() == DataType::ETHER_ADDR,
            Kind::Word => {
                self.braces > 0 && self.text().contains(':')
                    || matches!(self.text(), "eq" | "ne" | "lt" | "gt" | "le" | "ge" | "map")
                    || !starts_statement(self.text())
            }
            _ => false,
        }
    }

    pub(crate) fn wrong(&self, token: Token, wrong: &Wrong) -> Box<Problem> {
        self.found_instead(&wrong.expected, token).meant(wrong.meant.as_deref())
    }

    /// The value of a statement: `meta mark set VALUE`.
    pub(crate) fn value(&mut self, types: &[Typed]) -> Parsed<Expression> {
        let start = self.token.span;
        let before = self.checkpoint();
        let first = match self.concat(types) {
            // A key that is looked up has its own type, not that of the value.
            Ok(Expression::Binary(_)) if self.is_word("map") => {
                self.restore(before);
                self.concat(&[])?
            }
            Ok(first) => first,
            Err(problem) => {
                // Constants in a key that is looked up have the types of the map's keys.
                self.restore(before);
                match self.types_of_set_ahead() {
                    Some(keys) => self.concat(&keys)?,
                    None => match self.concat(&[]) {
                        Ok(key) if self.is_word("map") => key,
                        _ => return Err(problem),
                    },
                }
            }
        };
        if self.eat_word("map") {
            return self.map(first, types);
        }
        if !first.is_constant() {
            return Ok(first);
        }
        match self.token.kind {
            Kind::Slash => self.prefix(first, types.first().copied(), start),
            Kind::Dash => {
                self.next();
                let last = self.basic(types)?;
                self.range(first, last, types.first().copied(), start)
            }
            Kind::Comma if types.first().is_some_and(|typed| typed.data_type().is_bitmask()) => {
                self.list(first, types.first().copied(), start)
            }
            _ => Ok(first),
        }
    }

    /// The types of the keys of the set or map that is named later in this statement; none where it is not
    /// known.
    pub(crate) fn types_of_set_ahead(&mut self) -> Option<Vec<Typed>> {
        let mut ahead = self.lexer;
        for _ in 0..MAX_AHEAD {
            let token = ahead.next();
            match token.kind {
                Kind::At => {
                    let name = ahead.next();
                    let name = crate::Name::new(self.lexer.text_of(name.span)).ok();
                    let set = name.and_then(|name| self.set(&name));
                    return Some(set.map(|set| typed_parts(&set.key)).unwrap_or_default());
                }
                Kind::Newline | Kind::Semicolon | Kind::OpenBrace | Kind::CloseBrace | Kind::End => break,
                _ => {}
            }
        }
        None
    }

    /// Behind `KEY map`.
    pub(crate) fn map(&mut self, key: Expression, values: &[Typed]) -> Parsed<Expression> {
        let keys = self.types_of(&key);
        let map = self.mapping(&keys, &mut |parser| parser.right_of_map(values))?;
        Ok(Expression::Map(Box::new(Map { key, map })))
    }

    /// A map, named or given in place, whose values are read so.
    pub(crate) fn mapping<V: PartialEq>(
        &mut self,
        keys: &[Typed],
        value: &mut dyn FnMut(&mut Self) -> Parsed<V>,
    ) -> Parsed<Mapping<V>> {
        match (self.token.kind, self.variable_starts_with()) {
            (Kind::At, _) => self.set_reference().map(Mapping::Named),
            (_, Some(Kind::At)) => self.variable(Self::set_reference).map(Mapping::Named),
            _ => {
                // nft does not compare what is looked up in a map with the results that there may be.
                let keys: Vec<_> = keys.iter().copied().map(Typed::without_limit).collect();
                let (mut pairs, mut spans) = (Vec::new(), Vec::new());
                let start = self.token.span;
                self.set_of(&mut |parser| {
                    let start = parser.token.span;
                    let key = parser.member(&keys)?;
                    spans.push(parser.since(start));
                    if !parser.eat(Kind::Colon) {
                        let problem = parser.expected("`:` and a value for this key of a map");
                        return Err(problem.help("say `KEY : VALUE`"));
                    }
                    let value = value(parser)?;
                    pairs.push((key, value));
                    Ok(())
                })?;
                if pairs.is_empty() {
                    return Err(Problem::new(self.since(start), "expected a map that is not empty"));
                }
                if let [typed] = keys.as_slice() {
                    check_intervals(*typed, &pairs, &spans)?;
                }
                Ok(Mapping::Anonymous(pairs))
            }
        }
    }

    /// A value of a map that is given in place.
    fn right_of_map(&mut self, types: &[Typed]) -> Parsed<Expression> {
        self.concat_right(types)
    }

    /// `@name`
    pub(crate) fn set_reference(&mut self) -> Parsed<crate::Name> {
        self.want(Kind::At, "`@` and the name of a set")?;
        self.name("the name of a set")
    }

    /// The types that an expression gives to the value it is compared with; empty where they are not known.
    pub(crate) fn types_of(&mut self, expression: &Expression) -> Vec<Typed> {
        match expression {
            Expression::Concat(parts) => {
                let types: Vec<_> = parts.iter().map(|part| self.types_of(part)).collect();
                Typed::concatenated(&types)
            }
            Expression::Map(map) => match &map.map {
                Mapping::Named(name) => {
                    let set = self.set(name);
                    match set.as_ref().and_then(|set| set.data.as_ref()) {
                        Some(SetData::Value(of) | SetData::Interval(of)) => typed_parts(of),
                        _ => Vec::new(),
                    }
                }
                Mapping::Anonymous(pairs) => match pairs.first() {
                    Some((_, value)) => value.parts().into_iter().map(Typed::from).collect(),
                    None => Vec::new(),
                },
            },
            Expression::Binary(binary) if Typed::of(expression).is_none() => self.types_of(&binary.left),
            other => Typed::of(other).into_iter().collect(),
        }
    }
}

/// Refuses keys of a map that overlap, which the kernel does not notice in an anonymous map.
fn check_intervals<V: PartialEq>(typed: Typed, pairs: &[(Expression, V)], spans: &[Span]) -> Parsed<()> {
    // Hours go past midnight.
    if typed.data_type() == DataType::HOUR || !pairs.iter().any(|(key, _)| is_interval(key)) {
        return Ok(());
    }
    let place = [Place::of(typed.part)];
    let bounds = pairs.iter().zip(spans).filter_map(|((key, value), span)| {
        let (low, high) = key_bounds(&place, key.member()).ok()?;
        Some((low, high.unwrap_or(low), value, *span))
    });
    let mut bounds: Vec<_> = bounds.collect();
    // Of two that start alike nft underlines the one that was written first.
    bounds.reverse();
    sort::by(&mut bounds, |(low, ..), (other, ..)| compare(low, other));
    let overlap = bounds.windows(2).find_map(|pair| match pair {
        [(low, high, value, _), (other_low, other_high, other, span)] if compare(other_low, high).is_le() => {
            (low != other_low || high != other_high || value != other).then_some(*span)
        }
        _ => None,
    });
    match overlap {
        None => Ok(()),
        Some(span) => Err(Problem::new(span, "conflicting intervals: this key overlaps another one")
            .help("give each key to one value only")),
    }
}

/// Whether a word is nothing without the field of a header behind it.
pub(crate) fn needs_field(word: &str) -> bool {
    is_header(word) && !TEXT_KEYWORDS.contains(&word)
}

fn is_protocol(types: &[Typed]) -> bool {
    types.first().is_some_and(|typed| typed.data_type() == DataType::INET_PROTO)
}

fn is_text(typed: Typed) -> bool {
    matches!(typed.data_type(), DataType::IFNAME | DataType::STRING)
}

/// Whether a header value is converted to a number in host byte order.
fn is_number_for(own: Option<Typed>, wanted: Option<Typed>) -> bool {
    let order = |typed: Option<Typed>| typed.map(|typed| typed.part.order());
    (order(own), order(wanted)) == (Some(Order::Network), Some(Order::Host))
}

/// The types of the parts of a key or a value of a set.
pub(crate) fn typed_parts(of: &SetType) -> Vec<Typed> {
    match of {
        SetType::Typeof(Expression::Concat(parts)) => parts.iter().filter_map(Typed::of).collect(),
        SetType::Typeof(expression) => Typed::of(expression).into_iter().collect(),
        other => other.parts().into_iter().map(Typed::from).collect(),
    }
}

/// The result of an operation on two numbers.
pub(crate) fn folded(op: BinaryOp, a: u64, b: u64) -> u64 {
    let shift = u32::try_from(b).unwrap_or(u32::MAX);
    match op {
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::ShiftLeft => a.checked_shl(shift).unwrap_or(0),
        BinaryOp::ShiftRight => a.checked_shr(shift).unwrap_or(0),
    }
}

/// Why a value cannot have the prefix.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WrongPrefix {
    #[error("a {0} has no prefix")]
    None(&'static str),
    #[error("expected a prefix of at most {most} bits, found `{found}`")]
    TooLong { most: usize, found: u64 },
}

/// A prefix of a value.
pub(crate) fn prefix_of(value: Value, length: u64, typed: Option<Typed>) -> Result<Prefix, WrongPrefix> {
    let width = match (&value, typed) {
        (_, Some(typed)) => typed.width(),
        (Value::Address(std::net::IpAddr::V4(_)), None) => 32,
        (Value::Address(_), None) => 128,
        (_, None) => 64,
    };
    let name = typed.map(Typed::data_type);
    if matches!(value, Value::Interface(_) | Value::Text(_)) || name.is_some_and(DataType::is_bitmask) {
        return Err(WrongPrefix::None(name.map_or("name", DataType::name)));
    }
    match u8::try_from(length).ok().filter(|length| usize::from(*length) <= width) {
        Some(length) => Ok(Prefix { value, length }),
        None => Err(WrongPrefix::TooLong { most: width, found: length }),
    }
}

/// Operations that may follow each other without parentheses.
const MAX_OPERATORS: usize = 64;
/// Keywords that are text without quotes as well: `keyword_expr` in nft's grammar.
const TEXT_KEYWORDS: [&str; 9] = ["arp", "dnat", "ecn", "ether", "ip", "ip6", "reset", "snat", "vlan"];
/// Tokens of a statement that are looked through for the name of a set.
const MAX_AHEAD: usize = 200;
