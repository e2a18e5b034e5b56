//! Blocks of tables: `table inet t { ... }`.

use crate::object::{ChainId, Elements, Rule, Table, TableFlags, TableId};
use crate::text::parse::chain::ChainBlock;
use crate::text::parse::command::Verb;
use crate::text::parse::error::Problem;
use crate::text::parse::lexer::{Kind, Span};
use crate::text::parse::parser::{Checkpoint, Parsed, Parser};
use crate::text::parse::suggest::nearest;
use crate::text::parse::variable::Moment;
use crate::transaction::{Command, Object, Operation};

/// The content of a table, in the order of creation: an object comes after those that it refers to.
#[derive(Debug, Default)]
struct Content {
    chains: Vec<Command>,
    objects: Vec<Command>,
    sets: Vec<Command>,
    flowtables: Vec<Command>,
    elements: Vec<Command>,
    rules: Vec<Command>,
    places: Places,
}

/// Where the content of a table is, in the same lists, if that is asked for.
#[derive(Debug, Default)]
struct Places {
    chains: Vec<Span>,
    objects: Vec<Span>,
    sets: Vec<Span>,
    flowtables: Vec<Span>,
    elements: Vec<Span>,
    rules: Vec<Span>,
}

/// A rule that refers to a set that had not been defined before it in the block.
struct Later<'t> {
    /// Its place among the rules.
    rule: usize,
    at: Checkpoint<'t>,
    moment: Moment,
}

impl<'t> Parser<'t, '_> {
    /// The block of a table.
    pub(crate) fn table_block(&mut self, verb: Verb, id: &TableId, out: &mut Vec<Command>) -> Parsed<()> {
        let mut table = Table::new(id.clone());
        let (mut content, mut later) = (Content::default(), Vec::new());
        self.table = Some(id.clone());
        self.missing = Some(0);
        let head = self.since(self.start);
        let before = self.moment;
        self.moment = self.variables.open(before);
        let result = self.block(&mut |parser| {
            parser.table = Some(id.clone());
            if parser.table_property(&mut table)? {
                return parser.separator();
            }
            parser.table_item(id, &mut content, &mut later)?;
            parser.separator()
        });
        self.missing = None;
        for Later { rule, at, moment } in later {
            let here = (self.checkpoint(), self.moment);
            self.restore(at);
            self.moment = moment;
            match self.rule_body() {
                Ok((statements, comment)) => {
                    if let Some(Command::Operation(Operation::Add(Object::Rule(rule)))) =
                        content.rules.get_mut(rule)
                    {
                        (rule.statements, rule.comment) = (statements, comment);
                    }
                }
                Err(problem) => self.note(*problem),
            }
            self.restore(here.0);
            self.moment = here.1;
            if self.is_full() {
                self.stop();
            }
        }
        self.moment = self.variables.now(before);
        if let Some(places) = &mut self.places {
            let Places { chains, objects, sets, flowtables, elements, rules } = content.places;
            places.commands.push(head);
            let content = [chains, objects, sets, flowtables, elements, rules];
            content.iter().for_each(|of| places.commands.extend(of));
        }
        out.push(verb.of(table).into());
        out.append(&mut content.chains);
        out.append(&mut content.objects);
        out.append(&mut content.sets);
        out.append(&mut content.flowtables);
        out.append(&mut content.elements);
        // The longer list stays where it is.
        if content.rules.len() > out.len() {
            content.rules.splice(..0, out.drain(..));
            *out = content.rules;
        } else {
            out.append(&mut content.rules);
        }
        result
    }

    /// `flags dormant`, `comment "x"`. Whether there was one.
    fn table_property(&mut self, table: &mut Table) -> Parsed<bool> {
        const FLAGS: [(&str, TableFlags); 3] = [
            ("dormant", TableFlags::DORMANT),
            ("owner", TableFlags::OWNER),
            ("persist", TableFlags::PERSIST),
        ];
        let span = self.token.span;
        match self.word() {
            "flags" => {
                self.next();
                table.flags |= self.one_of(&FLAGS)?;
                while self.eat(Kind::Comma) {
                    table.flags |= self.one_of(&FLAGS)?;
                }
                Ok(true)
            }
            "comment" => {
                self.next();
                if table.comment.is_some() {
                    return Err(Problem::new(span, "this table has a comment already"));
                }
                table.comment = Some(self.comment()?);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn table_item(
        &mut self,
        table: &TableId,
        content: &mut Content,
        later: &mut Vec<Later<'t>>,
    ) -> Parsed<()> {
        let (start, word) = (self.token.span, self.word());
        match word {
            "chain" => {
                self.next();
                let id = table.chain(self.name("the name of a chain")?);
                content.places.chains.push(self.since(start));
                self.chain_block(id, content, later)
            }
            "set" | "map" => {
                self.next();
                let name =
                    self.name(if word == "map" { "the name of a map" } else { "the name of a set" })?;
                let id = if word == "map" { table.map(name) } else { table.set(name) };
                content.places.sets.push(self.since(start));
                let result = self.set_block(id);
                if let Some(places) = &mut self.places {
                    places.keys_of(start);
                }
                let (set, elements) = result?;
                if !elements.is_empty() {
                    content.places.elements.extend(content.places.sets.last());
                    let elements = Elements { set: set.id.clone(), list: elements };
                    content.elements.push(Operation::Add(elements.into()).into());
                }
                content.sets.push(Operation::Add(set.into()).into());
                Ok(())
            }
            "flowtable" => {
                self.next();
                let id = table.flowtable(self.name("the name of a flowtable")?);
                content.places.flowtables.push(self.since(start));
                let flowtable = self.flowtable_block(id)?;
                content.flowtables.push(Operation::Add(flowtable.into()).into());
                Ok(())
            }
            _ => {
                let Some(kind) = self.object_kind() else {
                    let problem = match word {
                        "ct" => self.found_instead("`helper`, `timeout` or `expectation`", self.second()),
                        _ => self.expected("what a table holds").meant(nearest(word, ITEMS)),
                    };
                    return Err(problem);
                };
                let name = self.object_name(kind)?;
                content.places.objects.push(self.since(start));
                if !self.is(Kind::OpenBrace) {
                    return Err(self.expected("`{`"));
                }
                let object = self.object(table.object(kind, name))?;
                content.objects.push(Operation::Add(object.into()).into());
                Ok(())
            }
        }
    }

    /// The block of a chain in a table's.
    fn chain_block(&mut self, id: ChainId, content: &mut Content, later: &mut Vec<Later<'t>>) -> Parsed<()> {
        let (mut block, start) = (ChainBlock::default(), self.token.span);
        let before = self.moment;
        self.moment = self.variables.open(before);
        let Content { rules, places, .. } = &mut *content;
        let result = self.block(&mut |parser| {
            if parser.chain_property(&mut block)? {
                return Ok(());
            }
            let (at, start) = (parser.checkpoint(), parser.token.span);
            parser.missing = Some(0);
            let body = parser.rule_body();
            let span = parser.since(start);
            if let Some(all) = &mut parser.places {
                all.statements_of(span);
                places.rules.push(span);
            }
            let mut rule = Rule::new(id.clone());
            if parser.missing.is_some_and(|missing| missing > 0) {
                // References that are not known yet are resolved at the end of the table.
                later.push(Later { rule: rules.len(), at, moment: parser.moment });
                rules.push(Operation::Add(rule.into()).into());
                parser.recover(parser.braces_at(at));
                return parser.separator();
            }
            (rule.statements, rule.comment) = body?;
            parser.make_room(rules);
            rules.push(Operation::Add(rule.into()).into());
            parser.separator()
        });
        self.moment = self.variables.now(before);
        let made = self.chain_of(block, id, start)?;
        content.chains.push(Operation::Add(made.into()).into());
        result
    }
}

const ITEMS: [&str; 13] = [
    "chain",
    "set",
    "map",
    "flowtable",
    "counter",
    "quota",
    "limit",
    "secmark",
    "synproxy",
    "tunnel",
    "ct",
    "flags",
    "comment",
];

#[cfg(test)]
mod tests {
    use crate::Transaction;

    #[test]
    fn what_refers_to_something_comes_behind_it() {
        let script = "table inet t {
            comment \"x\"
            chain c {
                type nat hook prerouting priority dstnat
                dnat ip to ip daddr . tcp dport map @where
                tcp dport 22 counter name \"hits\" jump d
            }
            chain d { }
            counter hits { }
            map where { type ipv4_addr . inet_service : ipv4_addr . inet_service; elements = { 1.1.1.1 . 80 \
            : 2.2.2.2 . 8080 } }
        }";
        let transaction = Transaction::parse(script).unwrap();
        assert_eq!(
            transaction.to_string(),
            "\
add table inet t { comment \"x\" ; }
add chain inet t c { type nat hook prerouting priority -100 ; }
add chain inet t d
add counter inet t hits
add map inet t where { type ipv4_addr . inet_service : ipv4_addr . inet_service ; }
add element inet t where { 1.1.1.1 . 80 : 2.2.2.2 . 8080 }
add rule inet t c dnat ip to ip daddr . tcp dport map @where
add rule inet t c tcp dport 22 counter name \"hits\" jump d
"
        );
    }

    #[test]
    fn every_mistake_is_found() {
        let script = "table inet t {
  chain c {
    tcp dport sssh accept
    tcp dport 22 acept
    ip saddr { 1.1.1.1, x, 1.1.1.3 } drop
    ip saddr @later tcp dport foo
    accept
  }
  set later { type ipv4_addr; elements = { 1.1.1.1/40 } }
  foo
}
bar
add rule inet t c accept";
        let error = Transaction::parse(script).unwrap_err();
        let found: Vec<_> = error.mistakes.iter().map(|mistake| (mistake.line, mistake.column)).collect();
        assert_eq!(found, [(3, 15), (4, 18), (5, 25), (6, 31), (9, 44), (10, 3), (12, 4)]);
        assert!(!error.is_cut);
    }

    #[test]
    fn only_so_many_mistakes_are_looked_for() {
        let script = "foo bar\n".repeat(1000);
        let error = Transaction::parse(&script).unwrap_err();
        assert_eq!((error.mistakes.len(), error.is_cut), (20, true));
        assert!(error.to_string().ends_with("error: too many mistakes; the rest of the text was not read"));
    }
}
