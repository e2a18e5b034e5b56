//! Commands: what a script consists of.

use crate::family::Family;
use crate::object::{Chain, ChainId, Elements, HookDevices, HookOwner, Rule, RuleId, SetId, Table, TableId};
use crate::text::parse::chain::ChainBlock;
use crate::text::parse::error::Problem;
use crate::text::parse::lexer::{Kind, Span};
use crate::text::parse::parser::{Parsed, Parser};
use crate::text::parse::suggest::nearest;
use crate::transaction::{Command, Flush, HandleId, Object, Operation, Rename, Target};

/// The effect of a command on a new object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Add,
    Create,
}

impl Verb {
    pub(crate) fn of(self, object: impl Into<Object>) -> Operation {
        match self {
            Self::Add => Operation::Add(object.into()),
            Self::Create => Operation::Create(object.into()),
        }
    }
}

impl Parser<'_, '_> {
    /// All commands of a script.
    pub(crate) fn commands(&mut self, out: &mut Vec<Command>) {
        let result = self.items(&mut |parser| {
            parser.table = None;
            parser.make_room(out);
            parser.start = parser.token.span;
            parser.command(out)?;
            parser.place(out.len(), parser.start);
            if parser.is(Kind::End) { Ok(()) } else { parser.separator() }
        });
        if let Err(problem) = result {
            self.note(*problem);
        }
        while self.is(Kind::CloseBrace) {
            let problem = self.expected("a command");
            self.note(*problem);
            self.next();
            let result = self.items(&mut |parser| {
                parser.table = None;
                parser.command(out)?;
                if parser.is(Kind::End) { Ok(()) } else { parser.separator() }
            });
            if let Err(problem) = result {
                self.note(*problem);
            }
        }
    }

    fn command(&mut self, out: &mut Vec<Command>) -> Parsed<()> {
        let start = self.token.span;
        let word = self.word();
        match word {
            "add" => {
                self.next();
                self.added(Verb::Add, out)
            }
            "create" => {
                self.next();
                self.added(Verb::Create, out)
            }
            "insert" => {
                self.next();
                self.want_word("rule")?;
                let rule = self.placed_rule()?;
                out.push(Operation::Insert(rule).into());
                Ok(())
            }
            "replace" => {
                self.next();
                self.want_word("rule")?;
                let chain = self.chain_id()?;
                let handle = self.handle()?;
                self.table = Some(chain.table.clone());
                let (statements, comment) = self.rule_body()?;
                let rule = Rule { statements, comment, ..Rule::new(chain) };
                out.push(Operation::Replace(rule.handle(handle)).into());
                Ok(())
            }
            "delete" | "destroy" => {
                self.next();
                let target = self.target()?;
                let operation = match word {
                    "delete" => Operation::Delete(target),
                    _ => Operation::Destroy(target),
                };
                out.push(operation.into());
                Ok(())
            }
            "flush" => {
                self.next();
                let flush = self.flushed()?;
                out.push(Operation::Flush(flush).into());
                Ok(())
            }
            "rename" => {
                self.next();
                self.want_word("chain")?;
                let chain = self.chain_id()?;
                let name = self.name("the new name of the chain")?;
                out.push(Operation::Rename(Rename { chain, handle: None, name }).into());
                Ok(())
            }
            "list" | "reset" | "get" | "monitor" | "describe" => {
                let query = self.query(word)?;
                if self.operations_only {
                    return Err(Problem::new(
                        start,
                        format!("expected an operation, found the query `{word}`"),
                    )
                    .help("queries are read by `Script::parse`"));
                }
                out.push(query);
                Ok(())
            }
            "export" | "import" => {
                self.next();
                let span = if self.is(Kind::Word) { start.to(self.token.span) } else { start };
                Err(Problem::new(span, format!("`{word}` is no longer a command"))
                    .help("say `list ruleset` with `-j`"))
            }
            _ => self.added(Verb::Add, out),
        }
    }

    /// The object that is added or created.
    fn added(&mut self, verb: Verb, out: &mut Vec<Command>) -> Parsed<()> {
        let start = self.token.span;
        match self.word() {
            "table" => {
                self.next();
                let id = self.table_id()?;
                if self.is(Kind::OpenBrace) {
                    return self.table_block(verb, &id, out);
                }
                out.push(verb.of(Table::new(id)).into());
            }
            "chain" => {
                self.next();
                let id = self.chain_id()?;
                if self.is(Kind::OpenBrace) {
                    return self.chain_command(verb, &id, out);
                }
                out.push(verb.of(Chain::new(id)).into());
            }
            "rule" if verb == Verb::Add => {
                self.next();
                let rule = self.placed_rule()?;
                out.push(verb.of(rule).into());
            }
            "set" | "map" => {
                let is_map = self.is_word("map");
                self.next();
                let id = self.set_id(is_map)?;
                self.table = Some(id.table.clone());
                let (set, elements) = self.set_block(id)?;
                let id = set.id.clone();
                out.push(verb.of(set).into());
                if !elements.is_empty() {
                    out.push(Operation::Add(Elements { set: id, list: elements }.into()).into());
                }
            }
            "element" => {
                self.next();
                let elements = self.element_command(false)?;
                out.push(verb.of(elements).into());
            }
            "flowtable" => {
                self.next();
                let table = self.table_id()?;
                let id = table.flowtable(self.name("the name of a flowtable")?);
                let flowtable = self.flowtable_block(id)?;
                out.push(verb.of(flowtable).into());
            }
            _ => {
                if let Some(kind) = self.object_kind() {
                    let table = self.table_id()?;
                    let name = self.object_name(kind)?;
                    let object = self.object(table.object(kind, name))?;
                    out.push(verb.of(object).into());
                    return Ok(());
                }
                let word = self.word();
                if word == "ct" {
                    return Err(self.found_instead("`helper`, `timeout` or `expectation`", self.second()));
                }
                if verb == Verb::Create {
                    return Err(self.expected("what to create").meant(nearest(word, OBJECTS)));
                }
                // `add` and `rule` may both be left out.
                let rule = self.placed_rule().map_err(|problem| self.not_a_rule(problem, start))?;
                out.push(verb.of(rule).into());
            }
        }
        Ok(())
    }

    /// The mistake for a command that starts with an unknown word.
    fn not_a_rule(&self, problem: Box<Problem>, start: Span) -> Box<Problem> {
        let word = self.lexer.text_of(start);
        let meant = nearest(word, VERBS.iter().chain(&OBJECTS).copied());
        match (meant, problem.help.is_none()) {
            (Some(meant), true) if problem.span.start <= start.end + 40 => {
                // To nft's grammar an unknown word may be a name, and what comes behind it is wrong.
                let span = Span { end: problem.span.end.max(start.end), ..start };
                Problem::new(span, format!("expected a command, found `{word}`")).meant(Some(meant))
            }
            _ => problem,
        }
    }

    /// `family`, or none.
    pub(crate) fn family_word(&mut self) -> Option<Family> {
        let family = match self.word() {
            "ip" => Family::IP,
            "ip6" => Family::IP6,
            "inet" => Family::INET,
            "arp" => Family::ARP,
            "bridge" => Family::BRIDGE,
            "netdev" => Family::NETDEV,
            _ => return None,
        };
        self.next();
        Some(family)
    }

    /// `[FAMILY] TABLE`
    pub(crate) fn table_id(&mut self) -> Parsed<TableId> {
        let family = self.family_word().unwrap_or(Family::IP);
        Ok(TableId::new(family, self.name("the name of a table")?))
    }

    /// `[FAMILY] TABLE CHAIN`
    pub(crate) fn chain_id(&mut self) -> Parsed<ChainId> {
        let table = self.table_id()?;
        let name = self.name("the name of a chain")?;
        Ok(table.chain(name))
    }

    /// `[FAMILY] TABLE SET`
    pub(crate) fn set_id(&mut self, map: bool) -> Parsed<SetId> {
        let table = self.table_id()?;
        let name = self.name(if map { "the name of a map" } else { "the name of a set" })?;
        Ok(SetId { table, name, map })
    }

    /// `handle N`
    pub(crate) fn handle(&mut self) -> Parsed<u64> {
        self.want_word("handle")?;
        self.number("a handle")
    }

    /// `CHAIN [position N|handle N|index N] STATEMENTS`
    fn placed_rule(&mut self) -> Parsed<Rule> {
        let mut rule = Rule::new(self.chain_id()?);
        match self.word() {
            "position" | "handle" => {
                self.next();
                rule.position = Some(self.number("a handle")?);
            }
            "index" => {
                self.next();
                rule.index = Some(self.small("an index")?);
            }
            _ => {}
        }
        self.table = Some(rule.chain.table.clone());
        (rule.statements, rule.comment) = self.rule_body()?;
        Ok(rule)
    }

    /// `SET { ... }`, with the type that the set has.
    pub(crate) fn element_command(&mut self, key_only: bool) -> Parsed<Elements> {
        let start = self.token.span;
        let table = self.table_id()?;
        let id = table.set(self.name("the name of a set")?);
        // Whether the set is missing or its table, nobody has said here.
        let span = self.since(start);
        self.table = Some(id.table.clone());
        let Some(set) = self.set(&id.name) else {
            return Err(Problem::new(span, format!("the type of the set `{}` is not known", id.name))
                .unknown_set()
                .help("the text does not add it, and `ParseOptions::sets` does not give it"));
        };
        let mut list = Vec::new();
        self.elements(&set, key_only, &mut list)?;
        Ok(Elements { set: SetId { map: set.data.is_some(), ..id }, list })
    }

    /// The object that is deleted.
    fn target(&mut self) -> Parsed<Target> {
        let word = self.word();
        match word {
            "table" => {
                self.next();
                let family = self.family_word().unwrap_or(Family::IP);
                if self.is_word("handle") {
                    return Ok(HandleId::Table(family, self.handle()?).into());
                }
                Ok(TableId::new(family, self.name("the name of a table")?).into())
            }
            "chain" => {
                self.next();
                let table = self.table_id()?;
                if self.is_word("handle") {
                    return Ok(HandleId::Chain(table, self.handle()?).into());
                }
                let chain = table.chain(self.name("the name of a chain")?);
                if !self.is(Kind::OpenBrace) {
                    return Ok(chain.into());
                }
                self.table = Some(chain.table.clone());
                let mut block = ChainBlock::default();
                self.block(&mut |parser| match parser.chain_property(&mut block)? {
                    true => Ok(()),
                    false => Err(parser.expected_one_of(&["devices", "type"])),
                })?;
                let devices = block.into_devices();
                Ok(HookDevices { hook: HookOwner::Chain(chain), devices }.into())
            }
            "rule" => {
                self.next();
                let chain = self.chain_id()?;
                Ok(RuleId { chain, handle: self.handle()? }.into())
            }
            "set" | "map" => {
                self.next();
                let table = self.table_id()?;
                if self.is_word("handle") {
                    return Ok(HandleId::Set(table, self.handle()?).into());
                }
                let name = self.name("the name of a set")?;
                Ok(SetId { table, name, map: word == "map" }.into())
            }
            "element" => {
                self.next();
                Ok(self.element_command(true)?.into())
            }
            "flowtable" => {
                self.next();
                let table = self.table_id()?;
                if self.is_word("handle") {
                    return Ok(HandleId::Flowtable(table, self.handle()?).into());
                }
                let id = table.flowtable(self.name("the name of a flowtable")?);
                if !self.is(Kind::OpenBrace) {
                    return Ok(id.into());
                }
                let devices = self.flowtable_block(id.clone())?.devices;
                Ok(HookDevices { hook: HookOwner::Flowtable(id), devices }.into())
            }
            _ => {
                let Some(kind) = self.object_kind() else {
                    return Err(self.expected("what to delete").meant(nearest(word, OBJECTS)));
                };
                let table = self.table_id()?;
                if self.is_word("handle") {
                    return Ok(HandleId::Stateful(table, kind, self.handle()?).into());
                }
                Ok(table.object(kind, self.object_name(kind)?).into())
            }
        }
    }

    /// The object that is flushed.
    fn flushed(&mut self) -> Parsed<Flush> {
        let word = self.word();
        match word {
            "ruleset" => {
                self.next();
                Ok(Flush::Ruleset(self.family_word().unwrap_or(Family::UNSPEC)))
            }
            "table" => {
                self.next();
                Ok(self.table_id()?.into())
            }
            "chain" => {
                self.next();
                Ok(self.chain_id()?.into())
            }
            "set" | "map" | "meter" => {
                self.next();
                self.flushed_set(word == "map")
            }
            "flow" => {
                self.next();
                self.want_word("table")?;
                self.flushed_set(false)
            }
            _ => Err(self.expected_one_of(&["ruleset", "table", "chain", "set", "map", "meter"])),
        }
    }

    /// The set or the map to flush. To nft neither is the other, to the kernel both are sets.
    fn flushed_set(&mut self, map: bool) -> Parsed<Flush> {
        let start = self.token.span;
        let id = self.set_id(map)?;
        self.table = Some(id.table.clone());
        if self.set(&id.name).is_some_and(|known| known.data.is_some() != map) {
            let (asked, is) = if map { ("map", "set") } else { ("set", "map") };
            return Err(Problem::new(
                self.since(start),
                format!("No such file or directory: there is no {asked} `{}`, it is a {is}", id.name),
            )
            .help(format!("say `flush {is}`")));
        }
        Ok(id.into())
    }

    /// `add chain T C { ... }`
    fn chain_command(&mut self, verb: Verb, id: &ChainId, out: &mut Vec<Command>) -> Parsed<()> {
        self.table = Some(id.table.clone());
        let mut block = ChainBlock::default();
        // The chain comes before its rules, and is known after them.
        let place = out.len();
        out.push(verb.of(Chain::new(id.clone())).into());
        self.place(out.len(), self.start);
        let before = self.moment;
        self.moment = self.variables.open(before);
        let result = self.block(&mut |parser| {
            if parser.chain_property(&mut block)? {
                return Ok(());
            }
            let start = parser.token.span;
            let (statements, comment) = parser.rule_body()?;
            let rule = Rule { statements, comment, ..Rule::new(id.clone()) };
            parser.make_room(out);
            out.push(Operation::Add(rule.into()).into());
            parser.place(out.len(), start);
            parser.separator()
        });
        self.moment = self.variables.now(before);
        result?;
        let made = self.chain_of(block, id.clone(), self.start)?;
        if let Some(chain) = out.get_mut(place) {
            *chain = verb.of(made).into();
        }
        Ok(())
    }
}

/// Words that commands start with.
const VERBS: &[&str] = &[
    "add", "create", "insert", "replace", "delete", "destroy", "flush", "rename", "list", "reset", "get",
    "monitor", "describe", "include", "define", "redefine", "undefine",
];

/// The kinds of objects that commands name.
const OBJECTS: [&str; 13] = [
    "table",
    "chain",
    "rule",
    "set",
    "map",
    "element",
    "flowtable",
    "counter",
    "quota",
    "limit",
    "secmark",
    "synproxy",
    "ct",
];

#[cfg(test)]
mod tests {
    use crate::Transaction;

    fn read(text: &str) -> String {
        match Transaction::parse(text) {
            Ok(transaction) => transaction.to_string().trim_end().to_owned(),
            Err(error) => {
                let mistake = error.mistakes.first().unwrap();
                mistake.help.iter().fold(mistake.message.clone(), |message, help| message + " / " + help)
            }
        }
    }

    #[test]
    fn what_is_printed_is_read() {
        for command in [
            "add table inet t { comment \"x\" ; flags dormant ; }",
            "create chain ip t c",
            "insert rule ip t c position 7 accept",
            "add rule ip t c index 3 accept comment \"x\"",
            "replace rule ip t c handle 5 drop",
            "rename chain ip t c d",
            "delete rule ip t c handle 5",
            "delete table ip handle 5",
            "delete chain ip t handle 5",
            "delete set ip t handle 5",
            "delete counter ip t handle 5",
            "delete flowtable inet t f",
            "delete chain netdev t c { devices = { \"eth0\" } ; }",
            "destroy map ip t m",
            "delete ct helper ip t h",
            "flush ruleset",
            "flush ruleset ip6",
            "flush table ip t",
            "flush chain ip t c",
            "flush map ip t m",
        ] {
            assert_eq!(read(command), command);
        }
    }

    #[test]
    fn words_that_go_without_saying_may_be_left_out() {
        assert_eq!(read("add rule t c accept"), "add rule ip t c accept");
        assert_eq!(read("rule inet t c accept"), "add rule inet t c accept");
        assert_eq!(read("inet t c accept"), "add rule inet t c accept");
        assert_eq!(read("table t"), "add table ip t");
        assert_eq!(read("add rule ip t c handle 7 accept"), "add rule ip t c position 7 accept");
    }

    #[test]
    fn what_nft_refuses_is_refused() {
        assert_eq!(read("ad rule ip t c accept"), "expected a command, found `ad` / did you mean `add`?");
        assert_eq!(read("create foo"), "expected what to create, found `foo`");
        assert_eq!(read("delete tabel t"), "expected what to delete, found `tabel` / did you mean `table`?");
        assert_eq!(
            read("add chain ip t drop"),
            "expected the name of a chain (a name that is not a keyword of nft's language), found \"drop\""
        );
        assert_eq!(
            read("list ruleset"),
            "expected an operation, found the query `list` / queries are read by `Script::parse`"
        );
        assert_eq!(
            read("add element ip t s { 1 }"),
            "the type of the set `s` is not known / the text does not add it, and `ParseOptions::sets` does \
                not give it"
        );
    }
}
