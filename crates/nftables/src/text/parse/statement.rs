//! Statements of a rule, and rules.

use crate::check::context::{Clash, Context};
use crate::check::judge::{Judge, NEVER_REACHED, is_terminal, named_sets};
use crate::check::{Definitions, KnownSets, LowerError};
use crate::datatype::DataType;
use crate::expr::{CtKey, ExthdrOp, MetaKey, ObjectKind};
use crate::name::Comment;
use crate::text::parse::constant::Typed;
use crate::text::parse::error::Problem;
use crate::text::parse::expression::needs_field;
use crate::text::parse::lexer::{Kind, Span};
use crate::text::parse::parser::{Parsed, Parser};
use crate::text::parse::phrase::Behind;
use crate::text::parse::primary::is_header;
use crate::text::parse::suggest::nearest;
use crate::tree::{
    BinaryOp, BoundChain, BoundRule, Ct, Expression, Fib, Mangle, Mapping, Match, MatchOp, ObjectName,
    ObjectReference, Statement, Statements, Value, Verdict, Vmap,
};

impl Parser<'_, '_> {
    /// The statements of a rule and its comment, up to its end.
    pub(crate) fn rule_body(&mut self) -> Parsed<(Statements, Option<Comment>)> {
        // The list is used again for the next rule.
        let mut list = std::mem::take(&mut self.statements);
        let result = self.rule_statements(&mut list);
        let statements = Statements::pack(&mut list, &mut self.packed);
        self.statements = list;
        Ok((statements, result?))
    }

    /// Appends the statements of a rule to an empty list, and returns the comment.
    fn rule_statements(&mut self, statements: &mut Vec<Statement>) -> Parsed<Option<Comment>> {
        if self.at_end() {
            return Err(self.expected("a statement"));
        }
        self.context = Context::of(self.family());
        let result = self.statements_to_end(statements);
        self.context = Context::default();
        result
    }

    fn statements_to_end(&mut self, statements: &mut Vec<Statement>) -> Parsed<Option<Comment>> {
        // Not noted one by one: a statement may have a chain of its own, with rules.
        let mut spans = Vec::new();
        let comment = self.statements_and_comment(statements, &mut spans);
        if let Some(places) = &mut self.places {
            places.statements(spans);
        }
        comment
    }

    fn statements_and_comment(
        &mut self,
        statements: &mut Vec<Statement>,
        spans: &mut Vec<Span>,
    ) -> Parsed<Option<Comment>> {
        while !self.at_end() {
            if self.is_word("comment") {
                if statements.is_empty() {
                    return Err(self.expected("a statement"));
                }
                self.next();
                let comment = self.comment()?;
                if !self.at_end() {
                    return Err(self
                        .expected("the end of the rule")
                        .help("a comment is the last thing of a rule"));
                }
                return Ok(Some(comment));
            }
            let (start, before) = (self.token.span, self.context);
            let statement = self.statement()?;
            if statements.last().is_some_and(is_terminal) {
                return Err(Problem::new(self.since(start), NEVER_REACHED));
            }
            self.judge(&statement, before, start)?;
            statements.push(statement);
            if self.places.is_some() {
                spans.push(self.since(start));
            }
        }
        Ok(None)
    }

    /// Judges a statement that has been read, behind those before it.
    fn judge(&mut self, statement: &Statement, before: Context, start: Span) -> Parsed<()> {
        let Some(table) = self.table.clone() else { return Ok(()) };
        let mut names = Vec::new();
        named_sets(statement, &mut names);
        let sets: Vec<_> = names.into_iter().filter_map(|name| self.set(name)).collect();
        let known: KnownSets<'_> = sets.iter().map(|set| (&set.id, &**set)).collect();
        let mut judge = Judge::behind(Definitions { table: &table, sets: &known }, before);
        judge.statement(statement).map_err(|error| self.refused(error, self.since(start)))?;
        self.context = judge.context();
        Ok(())
    }

    /// Places what the tree is refused for.
    pub(crate) fn refused(&self, error: LowerError, span: Span) -> Box<Problem> {
        match error {
            LowerError::Misplaced { message, help: Some(help) } => Problem::new(span, message).help(help),
            other => Problem::new(span, other.to_string()),
        }
    }

    /// Places what a statement clashes with.
    pub(crate) fn clashed(&self, clash: Clash, span: Span) -> Box<Problem> {
        match clash {
            Clash::Protocols { first, second, help } => {
                let problem = Problem::new(
                    span,
                    format!("conflicting protocols: no packet is of {first} and of {second}"),
                );
                if let Some(help) = help { problem.help(help) } else { problem }
            }
            Clash::Said { message, help } => {
                let problem = Problem::new(span, message);
                if let Some(help) = help { problem.help(help) } else { problem }
            }
        }
    }

    /// One statement.
    pub(crate) fn statement(&mut self) -> Parsed<Statement> {
        let word = self.word();
        Ok(match word {
            "accept" | "drop" | "continue" | "return" => self.verdict()?.into(),
            "jump" | "goto" if self.second().kind == Kind::OpenBrace => self.bound_chain()?.into(),
            "jump" | "goto" => self.verdict()?.into(),
            "counter" | "limit" | "quota" if self.names_object() => self.object_by_name()?,
            "counter" | "limit" | "quota" | "last" => match self.stateful()? {
                Some(statement) => statement,
                None => return Err(self.expected("a statement")),
            },
            "log" => self.log()?.into(),
            "reject" => self.reject()?.into(),
            "dnat" | "snat" => self.nat()?,
            "masquerade" | "redirect" => self.port_nat()?,
            "tproxy" => self.tproxy()?.into(),
            "synproxy" if self.second_word() == "name" => self.object_by_name()?,
            "synproxy" => self.synproxy_statement()?.into(),
            "queue" => self.queue()?.into(),
            "dup" => self.dup()?.into(),
            "fwd" => self.fwd()?.into(),
            "notrack" => {
                self.next();
                Statement::Notrack
            }
            "flow" => self.flow()?,
            "add" | "update" | "delete" | "set" => self.set_update()?.into(),
            "meter" => self.meter()?.into(),
            "reset" => {
                self.next();
                self.want_word("tcp")?;
                self.want_word("option")?;
                Statement::ResetOption(self.option(ExthdrOp::TCPOPT)?)
            }
            "tunnel" if self.second_word() == "name" => self.object_by_name()?,
            "ct" => self.ct_statement()?,
            "xt" => return Err(self.no_words("a module of xtables, which only iptables-nft has words for")),
            "unknown" if self.second_word() == "expressions" => {
                return Err(self.no_words("expressions of another program, which have no words"));
            }
            _ => self.expression_statement()?,
        })
    }

    /// Refuses what stands in a listing for what the language cannot say: without it the rule would match more.
    fn no_words(&self, what: &str) -> Box<Problem> {
        Problem::new(self.token.span, format!("this stands for {what}: the rule cannot be loaded from text"))
            .help("let the program that made the rule make it again")
    }

    /// Whether the statement names a stateful object instead of creating its own state.
    fn names_object(&self) -> bool {
        self.second_word() == "name"
    }

    /// `accept`, `jump CHAIN`
    pub(crate) fn verdict(&mut self) -> Parsed<Verdict> {
        const VERDICTS: [&str; 6] = ["accept", "drop", "continue", "return", "jump", "goto"];
        let word = self.word();
        let verdict = match word {
            "accept" => Verdict::Accept,
            "drop" => Verdict::Drop,
            "continue" => Verdict::Continue,
            "return" => Verdict::Return,
            "jump" | "goto" => {
                self.next();
                let chain = match self.is(Kind::Dollar) {
                    true => self.variable(|parser| parser.name("the name of a chain"))?,
                    false => self.name("the name of a chain")?,
                };
                return Ok(if word == "jump" { Verdict::Jump(chain) } else { Verdict::Goto(chain) });
            }
            _ => return Err(self.expected("a verdict").meant(nearest(word, VERDICTS))),
        };
        self.next();
        Ok(verdict)
    }

    /// `jump { ... }`
    fn bound_chain(&mut self) -> Parsed<BoundChain> {
        let goto = self.is_word("goto");
        self.next();
        self.next();
        let mut rules = Vec::new();
        let context = self.context;
        self.deeper(|parser| {
            loop {
                while parser.eat(Kind::Newline) || parser.eat(Kind::Semicolon) {}
                if parser.eat(Kind::CloseBrace) {
                    return Ok(());
                }
                let mut statements = Vec::new();
                let comment = parser.rule_statements(&mut statements)?;
                rules.push(BoundRule { statements, comment });
                parser.separator()?;
            }
        })?;
        self.context = context;
        Ok(BoundChain { goto, rules })
    }

    /// What ends a statement: a new line or `;`.
    pub(crate) fn separator(&mut self) -> Parsed<()> {
        if self.eat(Kind::Newline) || self.eat(Kind::Semicolon) || self.is_included && self.is(Kind::End) {
            return Ok(());
        }
        let problem = self.expected("`;` or the end of the line");
        let problem = if self.is(Kind::Word) { self.with_phrase(problem, Behind::Left) } else { problem };
        Err(if self.is(Kind::CloseBrace) { problem.help("put a `;` before the `}`") } else { problem })
    }

    /// `counter name "x"`, `tunnel name "x"`
    fn object_by_name(&mut self) -> Parsed<Statement> {
        let kind = match self.word() {
            "counter" => ObjectKind::COUNTER,
            "limit" => ObjectKind::LIMIT,
            "quota" => ObjectKind::QUOTA,
            "tunnel" => ObjectKind::TUNNEL,
            _ => ObjectKind::SYNPROXY,
        };
        self.next();
        self.next();
        self.object_reference(kind)
    }

    /// The name of a stateful object, or a map that gives it.
    pub(crate) fn object_reference(&mut self, kind: ObjectKind) -> Parsed<Statement> {
        let object = match (self.token.kind, self.packet_expression_starts()) {
            (Kind::Dollar, _) => {
                ObjectName::Named(self.variable(|parser| parser.any_name("the name of an object"))?)
            }
            // To nft that is the start of an expression, wherever it ends.
            (Kind::Word, false) if needs_field(self.word()) => return Err(self.wrong_field(self.word())),
            (Kind::Word | Kind::Quoted, false) => ObjectName::Named(self.any_name("the name of an object")?),
            _ => {
                let key = self.concat(&[])?;
                self.want_word("map")?;
                let types = self.types_of(&key);
                let mapping = self.mapping(&types, &mut |parser| match parser.is(Kind::Dollar) {
                    true => parser.variable(|parser| parser.any_name("the name of an object")),
                    false => parser.any_name("the name of an object"),
                })?;
                match mapping {
                    Mapping::Named(map) => ObjectName::Map(Box::new(key), map),
                    Mapping::Anonymous(pairs) => ObjectName::Among(Box::new(key), pairs),
                }
            }
        };
        Ok(ObjectReference { kind, object }.into())
    }

    /// Whether the next words are a packet expression, and not a name.
    fn packet_expression_starts(&self) -> bool {
        let mut ahead = self.lexer;
        // The name of an object stands alone.
        let behind = ahead.next();
        !matches!(behind.kind, Kind::Newline | Kind::Semicolon | Kind::CloseBrace | Kind::End)
            && self.token.kind == Kind::Word
            && self.starts_packet_expression()
    }

    fn starts_packet_expression(&self) -> bool {
        let (word, second) = (self.word(), self.second_word());
        match word {
            "meta" | "ct" | "fib" | "socket" | "osf" | "numgen" | "jhash" | "symhash" | "rt" | "exthdr" => {
                true
            }
            _ if is_header(word) => {
                crate::text::parse::primary::find_field(word, second).is_some()
                    || matches!(second, "option" | "chunk")
            }
            _ => matches!(second, "map" | "and" | "or" | "xor") || self.second().kind == Kind::Dot,
        }
    }

    /// `ct count`, `ct helper set`, and everything else that starts with `ct`.
    fn ct_statement(&mut self) -> Parsed<Statement> {
        let mut ahead = self.lexer;
        let (key, set) = (ahead.next(), ahead.next());
        let sets = self.lexer.text_of(set.span) == "set";
        let kind = match self.lexer.text_of(key.span) {
            "count" => return Ok(self.connlimit()?.into()),
            "helper" if sets => ObjectKind::CT_HELPER,
            "timeout" if sets => ObjectKind::CT_TIMEOUT,
            "expectation" if sets => ObjectKind::CT_EXPECT,
            _ => return self.expression_statement(),
        };
        self.next();
        self.next();
        self.next();
        self.object_reference(kind)
    }

    /// A statement that starts with an expression: a comparison, a map of verdicts, a change.
    fn expression_statement(&mut self) -> Parsed<Statement> {
        let start = self.token.span;
        let word = self.word();
        if matches!(self.token.kind, Kind::Quoted | Kind::OpenBrace)
            || !word.is_empty() && !self.may_start_expression()
        {
            return Err(self.unknown_statement());
        }
        let mut left = self.key()?;
        match self.word() {
            "set" => return self.mangle(left, start),
            "vmap" => {
                self.next();
                let types = self.types_of(&left);
                let map = self.mapping(&types, &mut Self::verdict_of_map)?;
                return Ok(Vmap { key: left, map }.into());
            }
            "map" => {
                self.next();
                left = self.map(left, &[])?;
            }
            _ => {}
        }
        if left.is_constant() {
            let constant = self.since(start);
            return Err(self.with_phrase(
                Problem::new(constant, "expected something of the packet, found a constant"),
                Behind::Left,
            ));
        }
        self.matching(left, start).map(Statement::from)
    }

    /// The expression that is compared, looked up or changed. Constants in a key that is looked up have the
    /// types of the keys of the set or map.
    fn key(&mut self) -> Parsed<Expression> {
        let before = self.checkpoint();
        match self.concat(&[]) {
            Ok(key) => Ok(key),
            Err(problem) => {
                self.restore(before);
                let types = self.types_of_set_ahead().filter(|types| !types.is_empty()).ok_or(problem)?;
                self.concat(&types)
            }
        }
    }

    fn verdict_of_map(&mut self) -> Parsed<Verdict> {
        match self.is(Kind::Dollar) {
            true => self.variable(Self::verdict),
            false => self.verdict(),
        }
    }

    fn may_start_expression(&self) -> bool {
        let word = self.word();
        KEYWORDS.contains(&word) || word.starts_with(|c: char| c.is_ascii_digit())
    }

    fn unknown_statement(&self) -> Box<Problem> {
        let word = self.word();
        let problem = self.expected("a statement");
        self.with_phrase(problem, Behind::Left)
            .meant(nearest(word, KEYWORDS.iter().chain(STATEMENTS).copied()))
    }

    /// The mistake for a word where a constant is not possible.
    pub(crate) fn unknown(&self, token: crate::text::parse::lexer::Token) -> Box<Problem> {
        let text = self.lexer.text_of(token.span);
        self.found_instead("an expression", token).meant(nearest(text, KEYWORDS.iter().copied()))
    }

    /// Refuses to compare several parts with single values, as nft does: they are looked up in a set.
    fn check_concatenation(&self, left: &Expression, right: &Expression, whole: Span) -> Parsed<()> {
        match (left, right) {
            (Expression::Concat(_), Expression::Set(_) | Expression::Named(_)) => Ok(()),
            // The brace that closes nothing is the first mistake to nft.
            (Expression::Concat(_), _) if self.is(Kind::CloseBrace) && self.braces == 0 => {
                Err(self.expected("the end of the rule"))
            }
            (Expression::Concat(_), _) => Err(Problem::new(
                whole,
                format!("expected a set to look `{left}` up in, found a single value"),
            )
            .help(format!("say `{{ {right} }}`"))),
            _ => Ok(()),
        }
    }

    /// The rest of a comparison.
    fn matching(&mut self, mut left: Expression, whole: Span) -> Parsed<Match> {
        let compared = self.since(whole);
        let op = self.comparison();
        let types = self.types_of(&left);
        if self.at_end() {
            return Err(self.expected(&format!("a value to compare `{left}` with")));
        }
        if let Expression::Fib(fib) = &left
            && matches!(self.word(), "exists" | "missing")
        {
            left = Fib { check: true, ..*fib }.into();
            let right = Value::Number(u64::from(self.is_word("exists"))).into();
            self.next();
            return Ok(Match { left, op: op.unwrap_or(MatchOp::In), right });
        }
        let start = self.token.span;
        if !matches!(left, Expression::Fib(_))
            && types.is_empty()
            && !self.is(Kind::At)
            && !self.is(Kind::OpenBrace)
        {
            return Err(Problem::new(start, format!("the type of `{left}` is not known")));
        }
        let mut right = self.right(&types)?;
        self.check_concatenation(&left, &right, compared)?;
        let ordered = matches!(op, Some(MatchOp::Lt | MatchOp::Gt | MatchOp::Lte | MatchOp::Gte));
        if let Expression::Set(members) = &mut right
            && ordered
            && let [only @ Expression::Value(_)] = members.as_slice()
        {
            right = only.clone();
        }
        if self.is(Kind::Slash)
            && let [typed] = types.as_slice()
            && typed.data_type().is_bitmask()
        {
            return self.masked(left, op, right, *typed);
        }
        if op == Some(MatchOp::None) && !types.iter().all(|typed| typed.data_type().is_bitmask()) {
            return Err(Problem::new(self.since(whole), format!("`!` asks for bits, and `{left}` has none"))
                .help("say `!=`"));
        }
        self.check_comparison(&left, op, &right, start)?;
        let op = match op.unwrap_or(MatchOp::In) {
            // A look-up is the same with and without it.
            MatchOp::Eq if is_calculated(&left) && !matches!(right, Expression::Value(_)) => MatchOp::In,
            op => op,
        };
        Ok(Match { left, op, right })
    }

    /// `tcp flags syn / syn,ack`, from the slash on.
    fn masked(
        &mut self,
        left: Expression,
        op: Option<MatchOp>,
        right: Expression,
        typed: Typed,
    ) -> Parsed<Match> {
        let start = self.next().span;
        let mask = self.right(&[typed])?;
        if matches!(left, Expression::Binary(_)) {
            let problem = Problem::new(self.since(start), format!("`{left}` has a mask already"));
            return Err(problem.help("combine the masks: `KEY & MASK == BITS`"));
        }
        let op = match op {
            None | Some(MatchOp::Eq) => MatchOp::Eq,
            Some(MatchOp::Neq) => MatchOp::Neq,
            Some(_) => {
                return Err(Problem::new(self.since(start), "bits behind a mask are equal or not"));
            }
        };
        Ok(Match { left: left.binary(BinaryOp::And, mask), op, right })
    }

    /// Refuses operators other than equality where only equality is possible.
    fn check_comparison(
        &self,
        left: &Expression,
        op: Option<MatchOp>,
        right: &Expression,
        start: Span,
    ) -> Parsed<()> {
        let ordered = matches!(op, Some(MatchOp::Lt | MatchOp::Gt | MatchOp::Lte | MatchOp::Gte));
        let single = matches!(right, Expression::Value(_));
        if !ordered || single && !matches!(left, Expression::Concat(_)) {
            return Ok(());
        }
        Err(Problem::new(self.since(start), "only a single value is below or above another"))
    }

    /// The operator of a comparison, if there is one.
    fn comparison(&mut self) -> Option<MatchOp> {
        let op = match self.token.kind {
            Kind::Equal => MatchOp::Eq,
            Kind::NotEqual => MatchOp::Neq,
            Kind::Less => MatchOp::Lt,
            Kind::LessEqual => MatchOp::Lte,
            Kind::Greater => MatchOp::Gt,
            Kind::GreaterEqual => MatchOp::Gte,
            Kind::Not => MatchOp::None,
            Kind::Word => match self.text() {
                "eq" => MatchOp::Eq,
                "ne" => MatchOp::Neq,
                "lt" => MatchOp::Lt,
                "le" => MatchOp::Lte,
                "gt" => MatchOp::Gt,
                "ge" => MatchOp::Gte,
                "not" => MatchOp::None,
                _ => return None,
            },
            _ => return None,
        };
        self.next();
        Some(op)
    }

    /// `KEY set VALUE`, from `set` on.
    fn mangle(&mut self, key: Expression, start: Span) -> Parsed<Statement> {
        let possible = matches!(
            key,
            Expression::Payload(_)
                | Expression::RawPayload(_)
                | Expression::Exthdr(_)
                | Expression::Meta(_)
                | Expression::Ct(_)
        );
        if !possible {
            return Err(Problem::new(self.since(start), format!("`{key}` cannot be set")));
        }
        self.next();
        match key {
            Expression::Meta(MetaKey::SECMARK) if !self.is_word("ct") => {
                return self.object_reference(ObjectKind::SECMARK);
            }
            Expression::Ct(Ct { key: CtKey::HELPER, .. }) => {
                return self.object_reference(ObjectKind::CT_HELPER);
            }
            _ => {}
        }
        let mut types = self.types_of(&key);
        // nft lists events with commas, and takes them so.
        if let (Expression::Ct(Ct { key: CtKey::EVENT, .. }), []) = (&key, types.as_slice()) {
            types = vec![DataType::CT_EVENT.into()];
        }
        Ok(Mangle { key, value: self.value(&types)? }.into())
    }
}

fn is_calculated(left: &Expression) -> bool {
    matches!(left, Expression::Binary(_))
}

/// Whether a statement of a rule may start with a word.
pub(crate) fn starts_statement(word: &str) -> bool {
    KEYWORDS.contains(&word) || STATEMENTS.contains(&word)
}

/// Words that expressions start with.
pub(crate) const KEYWORDS: &[&str] = &[
    "ip",
    "ip6",
    "tcp",
    "udp",
    "th",
    "icmp",
    "icmpv6",
    "ether",
    "vlan",
    "arp",
    "igmp",
    "ah",
    "esp",
    "comp",
    "udplite",
    "dccp",
    "sctp",
    "gre",
    "vxlan",
    "geneve",
    "gretap",
    "meta",
    "ct",
    "rt",
    "rt0",
    "rt2",
    "srh",
    "hbh",
    "frag",
    "dst",
    "mh",
    "exthdr",
    "fib",
    "socket",
    "osf",
    "numgen",
    "jhash",
    "symhash",
    "ipsec",
    "tunnel",
    "mark",
    "iif",
    "iifname",
    "iiftype",
    "oif",
    "oifname",
    "oiftype",
    "skuid",
    "skgid",
    "nftrace",
    "rtclassid",
    "ibriport",
    "ibrname",
    "obriport",
    "obrname",
    "pkttype",
    "cpu",
    "iifgroup",
    "oifgroup",
    "cgroup",
    "time",
    "day",
    "hour",
];

/// Words that other statements start with.
const STATEMENTS: &[&str] = &[
    "accept",
    "drop",
    "continue",
    "return",
    "jump",
    "goto",
    "counter",
    "limit",
    "quota",
    "last",
    "log",
    "reject",
    "dnat",
    "snat",
    "masquerade",
    "redirect",
    "tproxy",
    "synproxy",
    "queue",
    "dup",
    "fwd",
    "notrack",
    "flow",
    "add",
    "update",
    "delete",
    "set",
    "meter",
    "reset",
    "comment",
];

#[cfg(test)]
mod tests {
    use crate::tree::{Match, MatchOp, Payload, TcpFlags, Verdict};
    use crate::{Family, Rule, TableId};

    fn rule(family: Family, text: &str) -> Result<Rule, String> {
        let chain = TableId::new(family, "t".parse().unwrap()).chain("c".parse().unwrap());
        Rule::parse(&chain, text).map_err(|error| error.to_string())
    }

    fn read(text: &str) -> String {
        rule(Family::INET, text).map_or_else(|error| error, |rule| rule.body().to_string())
    }

    fn first_line(text: &str) -> String {
        let error = rule(Family::INET, text).unwrap_err();
        let mistake = error.lines().next().unwrap_or_default().to_owned();
        let help = error.lines().last().unwrap_or_default().trim_start_matches([' ', '|', '^']).to_owned();
        if help.is_empty() { mistake } else { format!("{mistake} / {help}") }
    }

    #[test]
    fn words_and_signs_are_the_same_operators() {
        let rule = rule(Family::IP, "tcp dport ge 1024 tcp flags & (syn | ack) == syn drop").unwrap();
        let flags = crate::tree::Expression::from(Payload::TCP_FLAGS).and(TcpFlags::SYN | TcpFlags::ACK);
        assert_eq!(
            rule.statements[..],
            [
                Match::with(Payload::TCP_DPORT, MatchOp::Gte, crate::Port(1024)).into(),
                Match::with(flags, MatchOp::Eq, TcpFlags::SYN).into(),
                Verdict::Drop.into(),
            ]
        );
        assert_eq!(read("meta mark and 0xff eq 7"), "meta mark & 0x000000ff == 0x00000007");
        assert_eq!(read("tcp flags syn / syn,ack"), "tcp flags syn / syn,ack");
        assert_eq!(read("ct state ! new,related"), "ct state ! related,new");
    }

    #[test]
    fn a_number_behind_one_value_of_bits_is_no_mask() {
        // To nft 1.0.6 it is the length of a prefix, which means something else than whoever writes it means.
        for text in
            ["tcp flags 2/3", "ct state != 8/3", "ct state 8 / 32", "tcp flags syn / 3", "tcp flags { 2/3 }"]
        {
            assert!(read(text).contains("has no prefix"), "{text}: {}", read(text));
        }
        assert_eq!(read("tcp flags syn,ack / syn,ack,fin"), "tcp flags syn,ack / fin,syn,ack");
    }

    #[test]
    fn whether_there_is_a_route_is_said_by_what_it_is_compared_with() {
        assert_eq!(read("fib saddr . iif oif missing drop"), "fib saddr . iif oif missing drop");
        assert_eq!(read("fib daddr type local"), "fib daddr type local");
    }

    #[test]
    fn chains_of_a_rule_are_read_with_their_rules() {
        assert_eq!(
            read("jump { ip saddr 1.1.1.1 accept; counter; }"),
            "jump { ip saddr 1.1.1.1 accept; counter; }"
        );
    }

    #[test]
    fn the_words_at_fault_are_named() {
        assert_eq!(
            first_line("acept"),
            "error: expected a statement, found `acept` / did you mean `accept`?"
        );
        assert_eq!(
            first_line("tcp dprt 22"),
            "error: expected a field of the header `tcp`, found `dprt` / did you mean `dport`?"
        );
        assert_eq!(
            first_line("ct state establishd"),
            "error: expected a value of type ct_state, found `establishd` / did you mean `established`?"
        );
        assert_eq!(
            first_line("tcp dport 22,23"),
            "error: a list is for bits, and inet_service has none / put values of which any will do in \
                braces: `{ 1, 2 }`"
        );
        assert_eq!(
            first_line("tcp dport 80-22"),
            "error: expected a range, but this one ends before it starts"
        );
        assert_eq!(
            first_line("ip saddr . tcp dport 1.1.1.1"),
            "error: expected a value of 2 parts, found one / the type is ipv4_addr . inet_service"
        );
        assert_eq!(
            first_line("ip saddr 1.1.1.1/33"),
            "error: expected a prefix of at most 32 bits, found `33`"
        );
        assert_eq!(
            first_line("accept counter"),
            "error: this is never reached: the statement before it ends the rule"
        );
        assert_eq!(
            first_line("tcp dport 22 udp dport 53"),
            "error: conflicting protocols: no packet is of tcp and of udp"
        );
        assert_eq!(
            first_line("redirect to :80"),
            "error: a port needs a match on the transport protocol before it / say `meta l4proto tcp`, or \
                match a port"
        );
        assert_eq!(
            first_line("tcp dport"),
            "error: expected a value to compare `tcp dport` with, found the end of the text"
        );
        assert_eq!(first_line("(((((1)))))"), "error: expected something of the packet, found a constant");
    }

    #[test]
    fn nothing_is_nested_without_bound() {
        let deep = format!("tcp dport {}22{}", "(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(first_line(&deep), "error: this is nested deeper than 64 levels");
        let deep = format!("tcp dport {}22{}", "{".repeat(100_000), "}".repeat(100_000));
        assert_eq!(first_line(&deep), "error: this is nested deeper than 64 levels");
        let deep = format!("{}accept;{}", "jump { ".repeat(100_000), "}".repeat(100_000));
        assert_eq!(first_line(&deep), "error: this is nested deeper than 64 levels");
        let long = format!("meta mark set meta mark{}", " & 1".repeat(100_000));
        assert_eq!(first_line(&long), "error: more than 64 operations in a row");
    }
}
