//! Sets and maps: their types, flags and elements.

use std::rc::Rc;

use crate::datatype::DataType;
use crate::expr::ObjectKind;
use crate::object::{Element, Set, SetData, SetFlags, SetId, SetPolicy, SetType};
use crate::text::parse::error::Problem;
use crate::text::parse::lexer::{Kind, Span};
use crate::text::parse::parser::{Parsed, Parser};
use crate::text::parse::suggest::nearest;
use crate::tree::Expression;

impl Parser<'_, '_> {
    /// The block of a set or a map, and the elements in it.
    pub(crate) fn set_block(&mut self, id: SetId) -> Parsed<(Set, Vec<Element>)> {
        // From the name of the set to the brace.
        let name = Span { start: self.last.saturating_sub(id.name.len()), end: self.token.span.end };
        let is_map = id.map;
        let mut set = Set::new(id, SetType::Types(Vec::new()));
        let (mut typed, mut elements, mut later) = (false, Vec::new(), None);
        let noted = self.problems.len();
        self.block(&mut |parser| {
            let span = parser.token.span;
            match parser.word() {
                "type" | "typeof" => {
                    if typed {
                        return Err(Problem::new(span, "this set has a type already"));
                    }
                    parser.type_line(&mut set, is_map)?;
                    typed = true;
                }
                "elements" => {
                    parser.next();
                    parser.want(Kind::Assign, "`=`")?;
                    if typed {
                        parser.elements(&set, false, &mut elements)?;
                    } else {
                        // The type may follow.
                        later = Some(parser.checkpoint());
                        parser.skip_braces()?;
                    }
                    return Ok(());
                }
                "auto-merge" => {
                    parser.next();
                    set.auto_merge = true;
                    return Ok(());
                }
                _ => parser.set_property(&mut set)?,
            }
            parser.separator()
        })?;
        if !typed {
            return Err(Problem::new(name, "a set needs the type of its keys")
                .help("say `type` or `typeof`")
                .follows(self.problems.len() > noted));
        }
        if let Some(later) = later {
            let before = self.checkpoint();
            self.restore(later);
            let result = self.elements(&set, false, &mut elements);
            self.restore(before);
            result?;
        }
        let known = SetId { map: false, ..set.id.clone() };
        self.sets.insert(known, Some(Rc::new(set.clone())));
        Ok((set, elements))
    }

    /// Skips what is in braces, or a variable.
    fn skip_braces(&mut self) -> Parsed<()> {
        if self.eat(Kind::Dollar) {
            self.next();
            return Ok(());
        }
        let braces = self.braces;
        self.want(Kind::OpenBrace, "`{`")?;
        while self.braces > braces {
            if self.is(Kind::End) {
                return Err(self.expected("`}`"));
            }
            self.next();
        }
        Ok(())
    }

    fn set_property(&mut self, set: &mut Set) -> Parsed<()> {
        let span = self.token.span;
        match self.word() {
            "flags" => {
                const FLAGS: [(&str, SetFlags); 4] = [
                    ("constant", SetFlags::CONSTANT),
                    ("interval", SetFlags::INTERVAL),
                    ("timeout", SetFlags::TIMEOUT),
                    ("dynamic", SetFlags::DYNAMIC),
                ];
                self.next();
                set.flags |= self.one_of(&FLAGS)?;
                while self.eat(Kind::Comma) {
                    set.flags |= self.one_of(&FLAGS)?;
                }
            }
            "timeout" => {
                self.next();
                set.timeout = Some(self.time("a timeout")?);
                set.flags |= SetFlags::TIMEOUT;
            }
            "gc-interval" => {
                self.next();
                set.gc_interval = Some(self.time("a time")?);
            }
            "size" => {
                self.next();
                set.size = Some(self.small("a number of elements")?);
            }
            "policy" => {
                self.next();
                let policies = [("performance", SetPolicy::Performance), ("memory", SetPolicy::Memory)];
                set.policy = Some(self.one_of(&policies)?);
            }
            "comment" => {
                self.next();
                if set.comment.is_some() {
                    return Err(Problem::new(span, "this set has a comment already"));
                }
                set.comment = Some(self.comment()?);
            }
            word => {
                let mut any = false;
                while let Some(statement) = self.stateful()? {
                    any = true;
                    set.statements.push(statement);
                }
                if !any {
                    return Err(self.expected("a property of the set").meant(nearest(word, PROPERTIES)));
                }
            }
        }
        Ok(())
    }

    /// `type ipv4_addr . inet_service : verdict`, `typeof ip saddr : meta mark`
    fn type_line(&mut self, set: &mut Set, is_map: bool) -> Parsed<()> {
        let is_typeof = self.is_word("typeof");
        self.next();
        set.key = self.set_type(is_typeof)?;
        if !is_map {
            return match self.is(Kind::Colon) {
                true => Err(self.expected("the end of the line").help("a set that maps is a `map`")),
                false => Ok(()),
            };
        }
        if !self.is(Kind::Colon) {
            return Err(self.expected("`:` and the type of the values"));
        }
        self.next();
        if self.eat_word("interval") {
            set.data = Some(SetData::Interval(self.set_type(is_typeof)?));
            return Ok(());
        }
        let object = match self.word() {
            "counter" => Some(ObjectKind::COUNTER),
            "quota" => Some(ObjectKind::QUOTA),
            "limit" => Some(ObjectKind::LIMIT),
            "secmark" => Some(ObjectKind::SECMARK),
            "synproxy" => Some(ObjectKind::SYNPROXY),
            "tunnel" if self.second_word().is_empty() => Some(ObjectKind::TUNNEL),
            "ct" => match self.second_word() {
                "helper" if !is_typeof => Some(ObjectKind::CT_HELPER),
                "timeout" => Some(ObjectKind::CT_TIMEOUT),
                "expectation" => Some(ObjectKind::CT_EXPECT),
                "count" => Some(ObjectKind::CONNLIMIT),
                _ => None,
            },
            _ => None,
        };
        if let Some(kind) = object {
            if self.next().kind == Kind::Word
                && matches!(self.word(), "helper" | "timeout" | "expectation" | "count")
            {
                self.next();
            }
            set.data = Some(SetData::Object(kind));
            return Ok(());
        }
        if self.eat_word("verdict") {
            set.data = Some(SetData::Verdict);
            return Ok(());
        }
        set.data = Some(SetData::Value(match self.is_word("queue") {
            true => {
                self.next();
                SetType::Queue
            }
            false => self.set_type(is_typeof)?,
        }));
        Ok(())
    }

    fn set_type(&mut self, is_typeof: bool) -> Parsed<SetType> {
        let start = self.token.span;
        if is_typeof {
            let expression = self.concat(&[])?;
            if expression.parts().is_empty() || is_constant(&expression) {
                return Err(Problem::new(self.since(start), "expected an expression that has a type"));
            }
            self.check_key(expression.parts().iter().map(|part| part.bytes()), start)?;
            let of = SetType::Typeof(expression);
            of.check().map_err(|error| self.refused(error, self.since(start)))?;
            return Ok(of);
        }
        let mut types = vec![self.data_type()?];
        while self.eat(Kind::Dot) {
            types.push(self.data_type()?);
        }
        self.check_key(types.iter().map(|of| of.bytes()), start)?;
        Ok(SetType::Types(types))
    }

    /// Whether a key fits into the registers.
    fn check_key(&self, bytes: impl ExactSizeIterator<Item = usize>, start: Span) -> Parsed<()> {
        let parts = bytes.len();
        let total: usize = bytes.map(|bytes| bytes.next_multiple_of(4)).sum();
        if parts > MAX_PARTS || total > MAX_BYTES {
            return Err(Problem::new(
                self.since(start),
                format!("a key has at most {MAX_PARTS} parts and {MAX_BYTES} bytes"),
            ));
        }
        Ok(())
    }

    pub(crate) fn data_type(&mut self) -> Parsed<DataType> {
        let span = self.token.span;
        let word = self.word();
        let names = DataType::ALL.iter().map(|of| of.name());
        match DataType::from_name(word) {
            Some(of @ (DataType::INTEGER | DataType::STRING | DataType::BITMASK)) => {
                Err(Problem::new(span, format!("the type {of} does not say how wide it is"))
                    .help("say `typeof` and an expression"))
            }
            Some(DataType::VERDICT) => Err(Problem::new(span, "a verdict is what a map gives, not a key")),
            Some(of) => {
                self.next();
                Ok(of)
            }
            None => Err(self.expected("the name of a data type").meant(nearest(word, names))),
        }
    }
}

fn is_constant(expression: &Expression) -> bool {
    match expression {
        Expression::Concat(parts) => parts.iter().any(is_constant),
        other => other.is_constant(),
    }
}

const PROPERTIES: [&str; 12] = [
    "type",
    "typeof",
    "flags",
    "timeout",
    "gc-interval",
    "size",
    "policy",
    "auto-merge",
    "elements",
    "comment",
    "counter",
    "limit",
];
/// Those of a [`Key`](crate::Key).
const MAX_PARTS: usize = 8;
const MAX_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use crate::Transaction;

    fn read(block: &str) -> String {
        match Transaction::parse(&format!("add {block}")) {
            Ok(transaction) => transaction.to_string().trim_end().trim_start_matches("add ").to_owned(),
            Err(error) => error.mistakes.iter().map(|m| m.message.as_str()).collect::<Vec<_>>().join("; "),
        }
    }

    #[test]
    fn what_is_printed_is_read() {
        for block in [
            "set ip t s { type ipv4_addr . inet_service ; size 10 ; flags interval ; auto-merge ; }",
            "set ip t s { typeof ip saddr . meta mark ; policy memory ; counter ; timeout 1h ; gc-interval \
                5s ; }",
            "map ip t m { type ipv4_addr : verdict ; comment \"x\" ; }",
            "map ip t m { type ipv4_addr : interval ipv4_addr . inet_service ; flags interval ; }",
            "map ip t m { typeof ip saddr : ip daddr ; }",
            "map ip t m { type ipv4_addr : counter ; }",
            "map ip t m { typeof ip saddr : queue ; }",
        ] {
            assert_eq!(read(block), block);
        }
    }

    #[test]
    fn elements_may_come_before_the_type() {
        let set = "set ip t s { elements = { 1.1.1.1 }; type ipv4_addr; }";
        assert_eq!(read(set), "set ip t s { type ipv4_addr ; }\nadd element ip t s { 1.1.1.1 }");
    }

    #[test]
    fn what_nft_refuses_is_refused() {
        assert_eq!(read("set ip t s { }"), "a set needs the type of its keys");
        assert_eq!(read("set ip t s { type integer; }"), "the type integer does not say how wide it is");
        assert!(
            read("set ip t s { type ipv4_adr; }")
                .starts_with("expected the name of a data type, found `ipv4_adr`")
        );
        assert!(read("set ip t s { type ipv4_addr : verdict; }").starts_with("expected the end of the line"));
        assert!(
            read("set ip t s { type ipv4_addr; flags intervall; }")
                .starts_with("expected `constant`, `interval`")
        );
        let wide = "set ip t s { type ipv6_addr . ipv6_addr . ipv6_addr . ipv6_addr . mark; }";
        assert!(read(wide).starts_with("a key has at most 8 parts and 64 bytes"));
    }
}
