//! Elements of named sets and maps, packed as they are parsed.

use std::time::Duration;

use crate::check::elements::{no_statements, takes_statements};
use crate::compile::constant::Place;
use crate::compile::lower::sets::{key_bounds, merged};
use crate::key::Key;
use crate::name::{Comment, Name};
use crate::object::{Element, Set, SetData, SetFlags};
use crate::text::parse::constant::Typed;
use crate::text::parse::error::Problem;
use crate::text::parse::expression::typed_parts;
use crate::text::parse::lexer::{Kind, Span};
use crate::text::parse::parser::{Parsed, Parser};
use crate::text::parse::plain::Plain;
use crate::tree::{Expression, Statement, Verdict};

/// The properties of an element other than its key.
#[derive(Debug, Default)]
struct Beside {
    statements: Vec<Statement>,
    /// Where the first statement is.
    statement: Option<Span>,
    timeout: Option<Duration>,
    expires: Option<Duration>,
    comment: Option<Comment>,
}

/// How the elements of a set are read.
struct Form<'s> {
    set: &'s Set,
    keys: Vec<Typed>,
    values: Vec<Typed>,
    /// Whether values in maps are optional: elements are deleted by key.
    key_only: bool,
    /// How most of them are read, where the types allow it.
    plain: Option<Plain>,
}

impl Parser<'_, '_> {
    /// `{ KEY [: VALUE], ... }` of a set or map, or a variable that is so.
    pub(crate) fn elements(&mut self, set: &Set, key_only: bool, out: &mut Vec<Element>) -> Parsed<()> {
        let values = match &set.data {
            Some(SetData::Value(of) | SetData::Interval(of)) => typed_parts(of),
            _ => Vec::new(),
        };
        let keys = typed_parts(&set.key);
        let intervals = set.flags.contains(SetFlags::INTERVAL);
        let plain = match &set.data {
            _ if key_only => Plain::of_set(&keys, intervals),
            None => Plain::of_set(&keys, intervals),
            Some(SetData::Value(_)) => Plain::of_map(&keys, &values, intervals),
            Some(SetData::Verdict) => Plain::of_verdict_map(&keys, intervals),
            Some(SetData::Interval(_) | SetData::Object(_)) => None,
        };
        let mut form = Form { set, keys, values, key_only, plain };
        if self.is(Kind::OpenBrace) && !self.is_value_of_variable() {
            self.reserve(out);
        }
        // A variable may be empty.
        if self.is(Kind::Dollar) && self.variable_starts_with() == Some(Kind::OpenBrace) {
            self.variable(|parser| parser.elements_of_variable(&mut form, out))?;
        } else {
            self.set_of(&mut |parser| parser.some_elements(&mut form, out))?;
        }
        if set.auto_merge && set.flags.contains(SetFlags::INTERVAL) && form.keys.len() == 1 && !key_only {
            let elements = std::mem::take(out);
            let before = self.places.as_ref().map(|_| elements.clone());
            *out = merged(elements);
            if let (Some(places), Some(before)) = (&mut self.places, before) {
                places.merge(&before, out);
            }
        }
        Ok(())
    }

    fn elements_of_variable(&mut self, form: &mut Form<'_>, out: &mut Vec<Element>) -> Parsed<()> {
        if self.is(Kind::Dollar) {
            return self.variable(|parser| parser.elements_of_variable(form, out));
        }
        self.next();
        self.members(&mut |parser| parser.some_elements(form, out))
    }

    /// One element, and those that follow it if all are plain.
    fn some_elements(&mut self, form: &mut Form<'_>, out: &mut Vec<Element>) -> Parsed<()> {
        if self.is(Kind::Dollar) && self.variable_starts_with() == Some(Kind::OpenBrace) {
            return self.elements_of_keys(form, out);
        }
        // Those that are read together have no places.
        if self.places.is_some() || !self.plain_elements(form, out) {
            out.push(self.element(form)?);
        }
        Ok(())
    }

    /// `$KEYS : VALUE`: the same value for each member of a variable.
    fn elements_of_keys(&mut self, form: &mut Form<'_>, out: &mut Vec<Element>) -> Parsed<()> {
        let mut keys = Vec::new();
        let key_only = std::mem::replace(&mut form.key_only, true);
        let plain = form.plain.take();
        let read = self.variable(|parser| parser.elements_of_variable(form, &mut keys));
        (form.key_only, form.plain) = (key_only, plain);
        read?;
        if form.set.data.is_none() || !self.is(Kind::Colon) {
            return Err(self.expected("`,` or `}`"));
        }
        self.next();
        let value = self.checkpoint();
        for key in keys {
            self.restore(value);
            out.push(self.element_value(key, form)?);
        }
        Ok(())
    }

    fn element(&mut self, form: &mut Form<'_>) -> Parsed<Element> {
        let start = self.token.span;
        let mut element = if self.eat(Kind::Asterisk) {
            Element::catch_all()
        } else if let Some(element) = self.plain_key(form) {
            element
        } else {
            let key = self.concat_right(&form.keys)?;
            let packed = self.pack(&key, &form.keys, self.since(start))?;
            let span = self.since(start);
            match packed {
                (low, None) => Element::new(low),
                (low, Some(high)) => {
                    if !form.set.flags.contains(SetFlags::INTERVAL) {
                        return Err(Problem::new(
                            span,
                            "only sets with the flag `interval` hold ranges and prefixes",
                        )
                        .help(format!("add `flags interval;` to the set `{}`", form.set.id.name)));
                    }
                    Element::range(low, high)
                }
            }
        };
        let key = self.since(start);
        if let Some(places) = &mut self.places {
            places.key(key);
        }
        let form = &*form;
        let mut beside = Beside::default();
        self.beside(&mut beside)?;
        if self.is(Kind::Colon) {
            if form.set.data.is_none() {
                return Err(self
                    .expected("`,` or `}`")
                    .help(format!("`{}` is a set, not a map", form.set.id.name)));
            }
            self.next();
            element = self.element_value(element, form)?;
            // Also accepted: properties of the element after its value.
            self.beside(&mut beside)?;
        } else if form.set.data.is_some() && !form.key_only {
            return Err(Problem::new(self.since(start), "expected a value for this key of a map")
                .help("say `KEY : VALUE`"));
        }
        if let Some(span) = beside.statement.filter(|_| !takes_statements(form.set)) {
            let (message, help) = no_statements(form.set);
            return Err(Problem::new(span, message).help(help));
        }
        for statement in beside.statements {
            element = element.statement(statement);
        }
        if let Some(timeout) = beside.timeout {
            element = element.timeout(timeout);
        }
        if let Some(expires) = beside.expires {
            element = element.expires(expires);
        }
        Ok(match beside.comment {
            Some(comment) => element.comment(comment),
            None => element,
        })
    }

    fn beside(&mut self, beside: &mut Beside) -> Parsed<()> {
        loop {
            match self.word() {
                "" => return Ok(()),
                "timeout" => {
                    self.next();
                    beside.timeout = Some(match self.eat_word("never") {
                        true => Element::NEVER,
                        false => self.time("a timeout")?,
                    });
                }
                "expires" => {
                    self.next();
                    beside.expires = Some(self.time("a time")?);
                }
                "comment" => {
                    if beside.comment.is_some() {
                        return Err(Problem::new(self.token.span, "this element has a comment already"));
                    }
                    self.next();
                    beside.comment = Some(self.comment()?);
                }
                _ => {
                    let start = self.token.span;
                    let Some(statement) = self.stateful()? else { return Ok(()) };
                    beside.statement.get_or_insert(self.since(start));
                    beside.statements.push(statement);
                }
            }
        }
    }

    fn element_value(&mut self, element: Element, form: &Form<'_>) -> Parsed<Element> {
        match &form.set.data {
            Some(SetData::Verdict) => Ok(element.verdict(self.verdict_or_variable()?)),
            Some(SetData::Object(_)) => Ok(element.object(self.object_or_variable()?)),
            data => {
                let start = self.token.span;
                let value = self.concat_right(&form.values)?;
                let (low, high) = self.pack(&value, &form.values, self.since(start))?;
                let span = self.since(start);
                match (data, high) {
                    (Some(SetData::Interval(_)), high) => Ok(element.value_range(low, high.unwrap_or(low))),
                    (_, None) => Ok(element.value(low)),
                    (_, Some(_)) => Err(Problem::new(span, "the values of this map are no ranges")
                        .help("say `: interval` before their type")),
                }
            }
        }
    }

    fn verdict_or_variable(&mut self) -> Parsed<Verdict> {
        match self.is(Kind::Dollar) {
            true => self.variable(Self::verdict),
            false => self.verdict(),
        }
    }

    fn object_or_variable(&mut self) -> Parsed<Name> {
        match self.is(Kind::Dollar) {
            true => self.variable(|parser| parser.any_name("the name of an object")),
            false => self.any_name("the name of an object"),
        }
    }

    /// Reads plain elements as long as there are any. Returns whether there was one.
    fn plain_elements(&mut self, form: &mut Form<'_>, out: &mut Vec<Element>) -> bool {
        let Some(plain) = &mut form.plain else { return false };
        let start = self.token.span.start;
        let length = plain.elements(self.lexer.rest_from(start), out);
        if length > 0 {
            self.last = start + length;
            self.lexer.seek(self.last);
            self.token = self.lexer.next();
        }
        length > 0
    }

    /// Reads the key of an element that is plain but for what follows. Reads nothing where it is not.
    fn plain_key(&mut self, form: &mut Form<'_>) -> Option<Element> {
        let before = self.checkpoint();
        let start = self.token.span.start;
        let (element, length) = form.plain.as_mut()?.key(self.lexer.rest_from(start))?;
        self.last = start + length;
        self.lexer.seek(self.last);
        self.token = self.lexer.next();
        let ends = match self.token.kind {
            Kind::Comma | Kind::CloseBrace | Kind::Newline | Kind::Colon | Kind::End => true,
            Kind::Word => self.operator().is_none(),
            _ => false,
        };
        if !ends {
            self.restore(before);
        }
        ends.then_some(element)
    }

    /// Makes room for the elements in the braces that follow.
    fn reserve(&mut self, out: &mut Vec<Element>) {
        let start = self.token.span.end;
        // Nothing is counted twice, also where braces are not closed.
        if start < self.counted {
            return;
        }
        let rest = self.lexer.rest_from(start);
        let (mut commas, mut bytes) = (0, 0);
        for chunk in rest.chunks(1 << 12) {
            let end = chunk.contains(&b'}').then(|| chunk.iter().position(|byte| *byte == b'}')).flatten();
            let chunk = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            commas += chunk.iter().filter(|byte| **byte == b',').count();
            bytes += chunk.len();
            if end.is_some() {
                break;
            }
        }
        self.counted = start + bytes;
        // Many commas may stand for few elements.
        let more = (commas + 1).min(bytes / SHORTEST);
        // A set may have its elements in many lists.
        if out.is_empty() { out.reserve_exact(more) } else { out.reserve(more) }
    }

    /// A constant as a key, and its upper bound where it is a range.
    fn pack(&self, value: &Expression, types: &[Typed], span: Span) -> Parsed<(Key, Option<Key>)> {
        let places: Vec<_> =
            types.iter().map(|typed| Place { bits: typed.bits, ..Place::of(typed.part) }).collect();
        key_bounds(&places, value).map_err(|error| Problem::new(span, error.to_string()))
    }
}

/// Bytes of the text of a short element of a list, with what is between it and the next.
const SHORTEST: usize = 4;

#[cfg(test)]
mod tests {
    use crate::Transaction;

    fn read(kind: &str, elements: &str) -> String {
        let script = format!("add {kind}\nadd element ip t s {{ {elements} }}");
        match Transaction::parse(&script) {
            Ok(transaction) => transaction.operations().last().map(ToString::to_string).unwrap_or_default(),
            Err(error) => {
                let mistake = error.mistakes.first().unwrap();
                format!("{}: {}", mistake.column, mistake.message)
            }
        }
    }

    #[test]
    fn elements_are_of_the_type_of_their_set() {
        let all = |kind: &str, elements: &str| {
            assert_eq!(read(kind, elements), format!("add element ip t s {{ {elements} }}"));
        };
        all("set ip t s { type ipv4_addr; flags interval; }", "10.0.0.0/8, 11.0.0.1-11.0.0.9, 12.0.0.1");
        all("set ip t s { type inet_proto . inet_service; }", "tcp . 80, udp . 53 comment \"dns\"");
        all("set ip t s { type ifname; flags interval; }", "\"eth*\", \"lo\"");
        all(
            "set ip t s { type ipv4_addr; timeout 1h; }",
            "1.1.1.1 timeout 5m expires 1m, 1.1.1.2 timeout never",
        );
        all(
            "map ip t s { type ipv4_addr . mark : verdict; flags interval; }",
            "10.0.0.0/8 . 0x00000001 : jump c, * : drop",
        );
        all("map ip t s { type ipv4_addr : counter; }", "1.1.1.1 : \"hits\"");
        all("map ip t s { type ipv4_addr : ipv4_addr . inet_service; }", "1.1.1.1 : 2.2.2.2 . 80");
        all("map ip t s { type mark : interval ipv4_addr; }", "0x00000001 : 10.0.0.0/8");
        all("set ip t s { type ipv4_addr; counter; }", "1.1.1.1 counter packets 1 bytes 2");
    }

    #[test]
    fn overlapping_ranges_are_one_where_the_set_says_so() {
        let set = "set ip t s { type inet_service; flags interval; auto-merge; }";
        assert_eq!(read(set, "5-9, 1-6, 10"), "add element ip t s { 1-10 }");
    }

    #[test]
    fn what_nft_refuses_is_refused() {
        let set = "set ip t s { type ipv4_addr; }";
        assert_eq!(
            read(set, "10.0.0.0/8"),
            "22: only sets with the flag `interval` hold ranges and prefixes"
        );
        assert_eq!(read(set, "1.1.1.1 : drop"), "30: expected `,` or `}`, found `:`");
        assert_eq!(read(set, "1.1.1.1, x"), "31: expected an IPv4 address, found `x`");
        assert_eq!(read(set, "1.1.1.1 1.1.1.2"), "30: expected `,` or `}`, found `1.1.1.2`");
        let map = "map ip t s { type ipv4_addr : verdict; }";
        assert_eq!(read(map, "1.1.1.1"), "22: expected a value for this key of a map");
        assert_eq!(read(map, "1.1.1.1 : 5"), "32: expected a verdict, found `5`");
    }
}
