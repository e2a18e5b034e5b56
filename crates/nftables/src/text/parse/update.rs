//! Statements that change sets: `add @s { ... }`, `meter`.

use crate::name::Name;
use crate::object::SetData;
use crate::text::parse::constant::Typed;
use crate::text::parse::error::Problem;
use crate::text::parse::expression::typed_parts;
use crate::text::parse::lexer::Kind;
use crate::text::parse::parser::{Parsed, Parser};
use crate::tree::{Meter, SetOp, SetUpdate, Statement};
use std::time::Duration;

impl Parser<'_, '_> {
    /// `add|update|delete @SET { KEY [timeout T] [STATEMENTS] [: VALUE] }`, and the older `set add KEY @SET`
    pub(crate) fn set_update(&mut self) -> Parsed<SetUpdate> {
        let older = self.eat_word("set");
        let op = self.one_of(&[("add", SetOp::Add), ("update", SetOp::Update), ("delete", SetOp::Delete)])?;
        if older {
            let key = self.concat(&[])?;
            let (timeout, statements) = self.element_parts()?;
            let set = self.set_name()?;
            self.note_update(&set);
            return Ok(SetUpdate { op, set, key, value: None, timeout, statements });
        }
        let set = self.set_name()?;
        self.note_update(&set);
        let known = self.set(&set);
        let keys = known.as_ref().map(|set| typed_parts(&set.key)).unwrap_or_default();
        let values = match known.as_ref().and_then(|set| set.data.as_ref()) {
            Some(SetData::Value(of) | SetData::Interval(of)) => typed_parts(of),
            _ => Vec::new(),
        };
        self.want(Kind::OpenBrace, "`{`")?;
        let start = self.token.span;
        let key = self.concat(&keys)?;
        let (mut timeout, mut statements) = self.element_parts()?;
        let value = match self.eat(Kind::Colon) {
            true => Some(self.value(&values)?),
            false => None,
        };
        if value.is_some() && timeout.is_none() && statements.is_empty() {
            (timeout, statements) = self.element_parts()?;
        }
        self.want(Kind::CloseBrace, "`}`")?;
        self.check_width(&key, &keys, &set, start)?;
        Ok(SetUpdate { op, set, key, value, timeout, statements })
    }

    /// Whether a key has as many parts as the keys of the set.
    fn check_width(
        &self,
        key: &crate::tree::Expression,
        keys: &[Typed],
        set: &Name,
        start: crate::text::parse::lexer::Span,
    ) -> Parsed<()> {
        let parts = if let crate::tree::Expression::Concat(parts) = key { parts.len() } else { 1 };
        if keys.is_empty() || keys.len() == parts || matches!(key, crate::tree::Expression::Map(_)) {
            return Ok(());
        }
        let wanted = keys.len();
        Err(Problem::new(self.since(start), format!("the keys of @{set} have {wanted} parts, not {parts}")))
    }

    /// Notes that a rule changes a set, for which it has to be dynamic.
    fn note_update(&mut self, name: &Name) {
        if let Some(table) = &self.table {
            self.updated.insert(table.set(name.clone()));
        }
    }

    fn set_name(&mut self) -> Parsed<Name> {
        match self.is(Kind::Dollar) {
            true => self.variable(Self::set_reference),
            false => self.set_reference(),
        }
    }

    /// The properties of an element other than its key.
    fn element_parts(&mut self) -> Parsed<(Option<Duration>, Vec<Statement>)> {
        let (mut timeout, mut statements) = (None, Vec::new());
        loop {
            match self.word() {
                "timeout" => {
                    self.next();
                    timeout = Some(self.time("a timeout")?);
                }
                "expires" => {
                    return Err(Problem::new(
                        self.token.span,
                        "a rule gives elements a `timeout`, not an end",
                    ));
                }
                "comment" => {
                    return Err(Problem::new(self.token.span, "elements that a rule makes have no comments"));
                }
                _ => match self.stateful()? {
                    Some(statement) => statements.push(statement),
                    None => return Ok((timeout, statements)),
                },
            }
        }
    }

    /// `meter NAME [size N] { KEY [timeout T] STATEMENT }`, and the older `flow table NAME { ... }`
    pub(crate) fn meter(&mut self) -> Parsed<Meter> {
        if self.next().kind == Kind::Word && self.is_word("table") {
            self.next();
        }
        let name = self.name("the name of a meter")?;
        let size = match self.eat_word("size") {
            true => self.small("a number of elements")?,
            false => DEFAULT_SIZE,
        };
        self.want(Kind::OpenBrace, "`{`")?;
        let key = self.concat(&[])?;
        let (timeout, statements) = self.element_parts()?;
        if statements.is_empty() {
            return Err(self.expected("a statement that carries state, such as `counter` or `limit`"));
        }
        self.want(Kind::CloseBrace, "`}`")?;
        Ok(Meter { name, size, key, timeout, statements })
    }
}

/// nft's default for a meter without a size.
const DEFAULT_SIZE: u32 = 65_535;

#[cfg(test)]
mod tests {
    use crate::Family;
    use crate::tree::Statement;

    fn read(text: &str) -> String {
        match Statement::parse(Family::IP, text) {
            Ok(statement) => statement.to_string(),
            Err(error) => error.mistakes.first().unwrap().message.clone(),
        }
    }

    #[test]
    fn what_is_printed_is_read() {
        for text in [
            "add @s { ip saddr }",
            "update @s { ip saddr . tcp dport timeout 1m limit rate over 3/minute counter }",
            "delete @s { ip saddr }",
            "add @m { ip saddr : meta mark }",
        ] {
            assert_eq!(read(text), text);
        }
        assert_eq!(read("set add ip saddr timeout 5s @s"), "add @s { ip saddr timeout 5s }");
        let meter = "meter m size 65535 { ip saddr limit rate 3/minute }";
        assert_eq!(read("meter m { ip saddr limit rate 3/minute }"), meter);
        assert_eq!(read("flow table m { ip saddr limit rate 3/minute }"), meter);
    }

    #[test]
    fn what_nft_refuses_is_refused() {
        assert_eq!(read("add @s { }"), "expected an expression, found `}`");
        assert_eq!(read("add s { ip saddr }"), "expected `@` and the name of a set, found `s`");
        assert!(read("meter m { ip saddr }").starts_with("expected a statement that carries state"));
    }
}
