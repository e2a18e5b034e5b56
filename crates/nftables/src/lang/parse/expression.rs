//! Expressions: packet fields, operators, maps and concatenations.

use crate::datatype::Order;
use crate::lang::parse::constant::{Typed, Wrong, constant, number, untyped};
use crate::lang::parse::error::Problem;
use crate::lang::parse::lexer::{Kind, Token};
use crate::lang::parse::parser::{Parsed, Parser, unquoted};
use crate::lang::parse::phrase::Behind;
use crate::lang::parse::statement::starts_statement;
use crate::lang::{BinaryOp, Expression, Map, Mapping, Prefix, Value};
use crate::object::{SetData, SetType};

impl Parser<'_, '_> {
    /// `ip saddr . tcp dport`. Constants in it are of these types, one for each part.
    pub(crate) fn concat(&mut self, types: &[Typed]) -> Parsed<Expression> {
        let first = self.basic(types)?;
        if !self.is(Kind::Dot) {
            return Ok(first);
        }
        let mut parts = Vec::with_capacity(4);
        let mut add = |part: Expression| match part {
            Expression::Concat(list) => parts.extend(list),
            single => parts.push(single),
        };
        add(first);
        let mut at = 1;
        while self.eat(Kind::Dot) {
            add(self.basic(types.get(at..).unwrap_or_default())?);
            at += 1;
        }
        Ok(Expression::Concat(parts))
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
            let integer = [Typed::from(crate::DataType::INTEGER)];
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
        if crate::lang::parse::primary::is_header(text) && token.kind == Kind::Word && typed.is_none() {
            return Err(self.wrong_field(text));
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
            Kind::Colon => typed.data_type() == crate::DataType::ETHER_ADDR,
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
    pub(crate) fn mapping<V>(
        &mut self,
        keys: &[Typed],
        value: &mut dyn FnMut(&mut Self) -> Parsed<V>,
    ) -> Parsed<Mapping<V>> {
        match (self.token.kind, self.variable_starts_with()) {
            (Kind::At, _) => self.set_reference().map(Mapping::Named),
            (_, Some(Kind::At)) => self.variable(Self::set_reference).map(Mapping::Named),
            _ => {
                let mut pairs = Vec::new();
                self.set_of(&mut |parser| {
                    let key = parser.member(keys)?;
                    if !parser.eat(Kind::Colon) {
                        let problem = parser.expected("`:` and a value for this key of a map");
                        return Err(problem.help("say `KEY : VALUE`"));
                    }
                    let value = value(parser)?;
                    pairs.push((key, value));
                    Ok(())
                })?;
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
                // A part of which the type is not known leaves all others without their place.
                if types.iter().any(Vec::is_empty) { Vec::new() } else { types.concat() }
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

/// A prefix of a value, or the reason that it is invalid.
pub(crate) fn prefix_of(value: Value, length: u64, typed: Option<Typed>) -> Result<Prefix, String> {
    let width = match (&value, typed) {
        (_, Some(typed)) => typed.width(),
        (Value::Address(std::net::IpAddr::V4(_)), None) => 32,
        (Value::Address(_), None) => 128,
        (_, None) => 64,
    };
    let name = typed.map(Typed::data_type);
    if matches!(value, Value::Interface(_) | Value::Text(_)) || name.is_some_and(crate::DataType::is_bitmask)
    {
        return Err(format!("a {} has no prefix", name.map_or("name", crate::DataType::name)));
    }
    match u8::try_from(length).ok().filter(|length| usize::from(*length) <= width) {
        Some(length) => Ok(Prefix { value, length }),
        None => Err(format!("expected a prefix of at most {width} bits, found `{length}`")),
    }
}

/// Operations that may follow each other without parentheses.
const MAX_OPERATORS: usize = 64;
/// Tokens of a statement that are looked through for the name of a set.
const MAX_AHEAD: usize = 200;
