//! The right side of a comparison: constants, prefixes, ranges, lists and sets.

use std::cmp::Ordering;

use crate::check::judge::shifted_too_far;
use crate::datatype::DataType;
use crate::text::parse::constant::Typed;
use crate::text::parse::error::Problem;
use crate::text::parse::expression::{folded, prefix_of};
use crate::text::parse::lexer::{Kind, Span};
use crate::text::parse::parser::{Parsed, Parser};
use crate::text::parse::phrase::Behind;
use crate::tree::{BinaryOp, Elem, Expression, Statement, Value};

impl Parser<'_, '_> {
    /// Whatever may stand on the right side of a comparison, for types that the left side gives.
    pub(crate) fn right(&mut self, types: &[Typed]) -> Parsed<Expression> {
        match (self.token.kind, self.variable_starts_with()) {
            (Kind::OpenBrace, _) | (_, Some(Kind::OpenBrace)) => self.anonymous_set(types),
            (Kind::At, _) => self.set_reference().map(Expression::Named),
            (_, Some(Kind::At)) => self.variable(Self::set_reference).map(Expression::Named),
            _ => {
                let start = self.token.span;
                let first = self.concat_right(types)?;
                let list = self.is(Kind::Comma) && matches!(types, [_]) && first.is_constant();
                if list { self.list(first, types.first().copied(), start) } else { Ok(first) }
            }
        }
    }

    /// `{ 22, 80-90, 10.0.0.0/8 }`
    fn anonymous_set(&mut self, types: &[Typed]) -> Parsed<Expression> {
        let mut members = Vec::new();
        let start = self.token.span;
        self.set_of(&mut |parser| {
            let start = parser.token.span;
            let member = parser.member(types)?;
            if parser.is(Kind::Colon) {
                let mut problem = parser
                    .expected("`,` or `}`")
                    .help("only maps have values; say `map` or `vmap` before it");
                problem.span = start.to(problem.span);
                return Err(problem);
            }
            members.push(member);
            Ok(())
        })?;
        if members.is_empty() {
            // The members of a variable may be none.
            return Err(Problem::new(self.since(start), "expected a set that is not empty"));
        }
        Ok(Expression::Set(members))
    }

    /// The items in braces, or in the braces of a variable.
    pub(crate) fn set_of(&mut self, member: &mut dyn FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        if self.is(Kind::Dollar) {
            return self.variable(|parser| parser.set_of(member));
        }
        let start = self.want(Kind::OpenBrace, "`{`")?.span;
        self.newlines();
        if self.is(Kind::CloseBrace) {
            self.next();
            return Err(Problem::new(self.since(start), "expected a set that is not empty"));
        }
        self.members(member)
    }

    /// Members up to the closing brace.
    pub(crate) fn members(&mut self, member: &mut dyn FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        loop {
            self.newlines();
            match self.token.kind {
                Kind::CloseBrace => {
                    self.next();
                    return Ok(());
                }
                Kind::OpenBrace => self.deeper(|parser| {
                    parser.next();
                    parser.members(member)
                })?,
                // Members of a variable that are keys of a map have the value behind it.
                Kind::Dollar
                    if self.variable_starts_with() == Some(Kind::OpenBrace)
                        && !self.is_variable_of_keys() =>
                {
                    self.variable(|parser| {
                        // The value of the variable may be another variable.
                        if parser.is(Kind::Dollar) {
                            return parser.variable(|parser| parser.set_of(member));
                        }
                        parser.next();
                        parser.members(member)
                    })?;
                }
                _ => member(self)?,
            }
            self.newlines();
            if !self.eat(Kind::Comma) {
                if !self.is(Kind::CloseBrace) {
                    return Err(self.expected("`,` or `}`"));
                }
                self.next();
                return Ok(());
            }
            // As nft, which takes commas without a member between them.
            self.newlines();
            while self.eat(Kind::Comma) {
                self.newlines();
            }
        }
    }

    /// Whether the next tokens are `$NAME :`.
    fn is_variable_of_keys(&self) -> bool {
        let mut ahead = self.lexer;
        ahead.next();
        ahead.next().kind == Kind::Colon
    }

    /// A member of an anonymous set, or a key of an anonymous map, with its statements and comment.
    pub(crate) fn member(&mut self, types: &[Typed]) -> Parsed<Expression> {
        let value = match self.eat(Kind::Asterisk) {
            true => Expression::any(),
            false => self.concat_right(types)?,
        };
        let (mut statements, mut comment) = (Vec::new(), None);
        loop {
            match self.word() {
                "" => break,
                "timeout" | "expires" => {
                    return Err(self
                        .expected("`,` or `}`")
                        .help("only elements of sets with a name go by themselves"));
                }
                "comment" => {
                    if comment.is_some() {
                        return Err(Problem::new(self.token.span, "this has a comment already"));
                    }
                    self.next();
                    comment = Some(self.comment()?);
                }
                _ => match self.stateful()? {
                    Some(statement) => statements.push(statement),
                    None => break,
                },
            }
        }
        Ok(if statements.is_empty() && comment.is_none() {
            value
        } else {
            Elem { value, statements, comment }.into()
        })
    }

    /// `10.0.0.1 . 80-90`
    pub(crate) fn concat_right(&mut self, types: &[Typed]) -> Parsed<Expression> {
        let start = self.token.span;
        let value = self.some_parts(types)?;
        let count = if let Expression::Concat(parts) = &value { parts.len() } else { 1 };
        self.check_parts(count, types, start)?;
        Ok(value)
    }

    /// The same with as many of the parts as there are.
    pub(crate) fn some_parts(&mut self, types: &[Typed]) -> Parsed<Expression> {
        let start = self.token.span;
        let first = self.part(types)?;
        if !self.is(Kind::Dot) {
            return Ok(first);
        }
        let mut parts = match first {
            Expression::Concat(parts) => parts,
            single => vec![single],
        };
        while self.eat(Kind::Dot) {
            match self.part(types.get(parts.len()..).unwrap_or_default())? {
                Expression::Concat(list) => parts.extend(list),
                single => parts.push(single),
            }
            if parts.len() > MAX_PARTS {
                return Err(Problem::new(
                    self.since(start),
                    format!("a value has at most {MAX_PARTS} parts"),
                ));
            }
        }
        Ok(Expression::Concat(parts))
    }

    fn check_parts(&self, count: usize, types: &[Typed], start: Span) -> Parsed<()> {
        // Inside of a variable the other parts may follow.
        if types.is_empty() || types.len() == count || self.is_value_of_variable() {
            return Ok(());
        }
        let expected = match types.len() {
            1 => "a value of one part".to_owned(),
            parts => format!("a value of {parts} parts"),
        };
        let names: Vec<_> = types.iter().map(|typed| typed.data_type().name()).collect();
        let found = if count == 1 { "one".to_owned() } else { count.to_string() };
        Err(Problem::new(self.since(start), format!("expected {expected}, found {found}"))
            .help(format!("the type is {}", names.join(" . "))))
    }

    /// One part: a value, a prefix or a range.
    fn part(&mut self, types: &[Typed]) -> Parsed<Expression> {
        let start = self.token.span;
        let typed = types.first().copied();
        let value = self.right_binary(0, types)?;
        match self.token.kind {
            // Behind one value of bits a number is the length of a prefix, and words are a mask (nft 1.0.6).
            Kind::Slash
                if typed.is_none_or(|typed| !typed.data_type().is_bitmask()) || self.is_before_number() =>
            {
                self.prefix(value, typed, start)
            }
            Kind::Dash => {
                self.next();
                let last = self.right_binary(0, types)?;
                self.range(value, last, typed, start)
            }
            _ => Ok(value),
        }
    }

    /// Returns whether one number is behind the next token, and no list.
    fn is_before_number(&self) -> bool {
        let mut ahead = self.lexer;
        let token = ahead.next();
        let is_number = ahead.text_of(token.span).starts_with(|first: char| first.is_ascii_digit());
        is_number && ahead.next().kind != Kind::Comma
    }

    /// `VALUE/length`, from the slash on.
    pub(crate) fn prefix(
        &mut self,
        value: Expression,
        typed: Option<Typed>,
        start: Span,
    ) -> Parsed<Expression> {
        self.next();
        let length = match self.number("the length of a prefix") {
            Err(problem) => return Err(self.with_phrase(problem, Behind::Value)),
            Ok(length) => length,
        };
        let span = self.since(start);
        match value {
            Expression::Value(value) => match prefix_of(value, length, typed) {
                Ok(prefix) => Ok(Expression::Prefix(Box::new(prefix))),
                Err(wrong) => Err(Problem::new(span, wrong.to_string())),
            },
            _ => Err(Problem::new(span, "only a single value has a prefix")),
        }
    }

    /// From one value to another.
    pub(crate) fn range(
        &self,
        low: Expression,
        high: Expression,
        typed: Option<Typed>,
        start: Span,
    ) -> Parsed<Expression> {
        let span = self.since(start);
        let (Expression::Value(low), Expression::Value(high)) = (low, high) else {
            return Err(Problem::new(span, "a range is from one value to another"));
        };
        // Hours go past midnight.
        let is_hour = typed.is_some_and(|typed| typed.data_type() == DataType::HOUR);
        match order(&low, &high) {
            Some(Ordering::Greater) if !is_hour => {
                Err(Problem::new(span, "expected a range, but this one ends before it starts"))
            }
            None => Err(Problem::new(span, "expected a range of two values of one type")),
            _ => Ok(Expression::Range(Box::new((low, high)))),
        }
    }

    /// `a,b,c`: any of some bits.
    pub(crate) fn list(
        &mut self,
        first: Expression,
        typed: Option<Typed>,
        start: Span,
    ) -> Parsed<Expression> {
        let of = typed.map(Typed::data_type);
        if !of.is_some_and(DataType::is_bitmask) {
            let types: Vec<_> = typed.into_iter().collect();
            while self.eat(Kind::Comma) {
                self.right_binary(0, &types)?;
            }
            // The brace that closes nothing is the first mistake to nft.
            if self.is(Kind::CloseBrace) && self.braces == 0 {
                return Err(self.expected("the end of the rule"));
            }
            let name = of.map_or("this type", |of| of.name());
            return Err(Problem::new(self.since(start), format!("a list is for bits, and {name} has none"))
                .help("put values of which any will do in braces: `{ 1, 2 }`"));
        }
        let types: Vec<_> = typed.into_iter().collect();
        let mut bits = first;
        while self.eat(Kind::Comma) {
            let more = self.right_binary(0, &types)?;
            bits = joined(BinaryOp::Or, bits, more)
                .ok_or_else(|| Problem::new(self.since(start), "expected a list of bits"))?;
        }
        Ok(bits)
    }

    /// Constants, and what is calculated from them.
    fn right_binary(&mut self, least: u8, types: &[Typed]) -> Parsed<Expression> {
        let start = self.token.span;
        let mut left = self.right_primary(types)?;
        while let Some(op) = self.operator().filter(|op| op.precedence() >= least) {
            self.next();
            let integer = [Typed::from(DataType::INTEGER)];
            let shift = matches!(op, BinaryOp::ShiftLeft | BinaryOp::ShiftRight);
            let right = self.right_binary(op.precedence() + 1, if shift { &integer } else { types })?;
            if shift {
                self.check_shift(&right, types, start)?;
            }
            left = joined(op, left, right).ok_or_else(|| {
                Problem::new(self.since(start), "expected numbers or bits to calculate with")
            })?;
        }
        Ok(left)
    }

    /// Refuses to shift a constant by all of its bits or more.
    pub(crate) fn check_shift(&self, by: &Expression, types: &[Typed], start: Span) -> Parsed<()> {
        let bits = types.first().map_or(64, |typed| typed.width().min(64));
        match by {
            Expression::Value(Value::Number(by)) if *by >= bits as u64 => {
                Err(self.clashed(shifted_too_far(*by, bits as u64), self.since(start)))
            }
            _ => Ok(()),
        }
    }

    fn right_primary(&mut self, types: &[Typed]) -> Parsed<Expression> {
        match self.token.kind {
            Kind::OpenParen => self.deeper(|parser| {
                parser.next();
                let inner = parser.right_binary(0, types)?;
                parser.want(Kind::CloseParen, "`)`")?;
                Ok(inner)
            }),
            Kind::Dollar => self.variable(|parser| parser.right(types)),
            _ => self.constant(types.first().copied()),
        }
    }

    /// A statement that carries state, if one comes next: `counter`, `limit`, `quota`, `last`, `ct count`.
    pub(crate) fn stateful(&mut self) -> Parsed<Option<Statement>> {
        Ok(Some(match self.word() {
            "counter" => self.counter()?.into(),
            "limit" => self.limit()?.into(),
            "quota" => self.quota()?.into(),
            "last" => self.last_used()?.into(),
            "ct" if self.second_word() == "count" => self.connlimit()?.into(),
            _ => return Ok(None),
        }))
    }
}

/// The result of an operation on two constants; `None` where it has none.
fn joined(op: BinaryOp, left: Expression, right: Expression) -> Option<Expression> {
    match (left, right) {
        (Expression::Value(Value::Number(a)), Expression::Value(Value::Number(b))) => {
            Some(Value::Number(folded(op, a, b)).into())
        }
        // Labels are more bits than a number has.
        (Expression::Value(a), Expression::Value(b)) if op == BinaryOp::Or => {
            let bits = bits(&a)? | bits(&b)?;
            Some(Value::Bytes(bits.to_ne_bytes().into()).into())
        }
        _ => None,
    }
}

fn bits(value: &Value) -> Option<u128> {
    match value {
        Value::Number(number) => Some((*number).into()),
        Value::Bytes(bytes) => (&**bytes).try_into().ok().map(u128::from_ne_bytes),
        _ => None,
    }
}

fn order(low: &Value, high: &Value) -> Option<Ordering> {
    match (low, high) {
        (Value::Number(low), Value::Number(high)) => Some(low.cmp(high)),
        (Value::Address(low), Value::Address(high)) if low.is_ipv4() == high.is_ipv4() => Some(low.cmp(high)),
        (Value::Ether(low), Value::Ether(high)) => Some(low.0.cmp(&high.0)),
        (Value::Bytes(low), Value::Bytes(high)) if low.len() == high.len() => Some(low.cmp(high)),
        (Value::Number(_), Value::Bytes(_)) => Some(Ordering::Less),
        _ => None,
    }
}

/// `NFT_REG32_COUNT` words hold no more.
const MAX_PARTS: usize = 16;
