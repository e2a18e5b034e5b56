//! Queries: `list`, `reset`, `get`, `monitor`, `describe`.

use crate::datatype::DataType;
use crate::expr::ObjectKind;
use crate::family::Family;
use crate::name::Name;
use crate::object::RuleId;
use crate::text::parse::error::Problem;
use crate::text::parse::lexer::Kind;
use crate::text::parse::parser::{Parsed, Parser};
use crate::text::parse::primary::is_header;
use crate::transaction::{Command, Description, MonitorEvent, MonitorFilter, MonitorObject, Subject, Within};
use crate::tree::Value;

impl Parser<'_, '_> {
    /// A query that starts with this word.
    pub(crate) fn query(&mut self, word: &str) -> Parsed<Command> {
        self.next();
        match word {
            "list" => self.subject(false).map(Command::List),
            "reset" => self.subject(true).map(Command::Reset),
            "get" => {
                self.want_word("element")?;
                self.element_command(true).map(Command::Get)
            }
            "monitor" => self.monitor().map(Command::Monitor),
            _ => self.description().map(Command::Describe),
        }
    }

    /// The subject of `list`.
    fn subject(&mut self, reset: bool) -> Parsed<Subject> {
        let word = self.word();
        let plural = match word {
            "counters" => Some(ObjectKind::COUNTER),
            "quotas" => Some(ObjectKind::QUOTA),
            "limits" => Some(ObjectKind::LIMIT),
            "secmarks" => Some(ObjectKind::SECMARK),
            "synproxys" => Some(ObjectKind::SYNPROXY),
            "tunnels" => Some(ObjectKind::TUNNEL),
            _ => None,
        };
        if let Some(kind) = plural {
            self.next();
            return Ok(Subject::Objects(kind, self.within()?));
        }
        if word == "ct" {
            let kind = match self.second_word() {
                "helpers" => Some(ObjectKind::CT_HELPER),
                "timeouts" => Some(ObjectKind::CT_TIMEOUT),
                "expectations" => Some(ObjectKind::CT_EXPECT),
                _ => None,
            };
            if let Some(kind) = kind {
                self.next();
                self.next();
                return Ok(Subject::Objects(kind, self.within()?));
            }
        }
        Ok(match word {
            "ruleset" => {
                self.next();
                Subject::Ruleset(self.any_family())
            }
            "tables" => {
                self.next();
                Subject::Tables(self.any_family())
            }
            "table" => {
                self.next();
                Subject::Table(self.table_id()?)
            }
            "chains" => {
                self.next();
                Subject::Chains(self.any_family())
            }
            "chain" => {
                self.next();
                Subject::Chain(self.chain_id()?)
            }
            "rules" => {
                self.next();
                if self.eat_word("chain") {
                    return Ok(Subject::RulesOf(self.chain_id()?));
                }
                Subject::Rules(self.within()?)
            }
            "rule" => {
                self.next();
                let chain = self.chain_id()?;
                Subject::Rule(RuleId { chain, handle: self.handle()? })
            }
            "sets" => {
                self.next();
                Subject::Sets(self.within()?)
            }
            "maps" => {
                self.next();
                Subject::Maps(self.within()?)
            }
            "set" | "map" => {
                self.next();
                Subject::Set(self.set_id(word == "map")?)
            }
            "element" if reset => {
                self.next();
                Subject::Elements(self.element_command(true)?)
            }
            "meters" => {
                self.next();
                Subject::Meters(self.within()?)
            }
            "meter" => {
                self.next();
                Subject::Meter(self.set_id(false)?)
            }
            "flow" => {
                self.next();
                if self.one_of(&[("tables", true), ("table", false)])? {
                    return Ok(Subject::Meters(self.within()?));
                }
                Subject::Meter(self.set_id(false)?)
            }
            "flowtables" => {
                self.next();
                Subject::Flowtables(self.within()?)
            }
            "flowtable" => {
                self.next();
                let table = self.table_id()?;
                Subject::Flowtable(table.flowtable(self.name("the name of a flowtable")?))
            }
            "hooks" => {
                self.next();
                let family = self.any_family();
                let device = self.devices()?.into_iter().next();
                Subject::Hooks { family, device }
            }
            _ => {
                let Some(kind) = self.object_kind() else { return Err(self.expected_one_of(SUBJECTS)) };
                // `list ct timeout table ip t` lists all of a table.
                if self.is_word("table") {
                    return Ok(Subject::Objects(kind, self.within()?));
                }
                let table = self.table_id()?;
                Subject::Object(table.object(kind, self.object_name(kind)?))
            }
        })
    }

    fn any_family(&mut self) -> Family {
        self.family_word().unwrap_or(Family::UNSPEC)
    }

    /// `[FAMILY]` or `table [FAMILY] TABLE`
    fn within(&mut self) -> Parsed<Within> {
        if self.eat_word("table") {
            return Ok(Within::Table(self.table_id()?));
        }
        let family = self.family_word();
        // Newer versions of nft leave the word out.
        match (family, self.is(Kind::Word)) {
            (Some(family), true) => {
                let name = self.name("the name of a table")?;
                Ok(Within::Table(crate::TableId::new(family, name)))
            }
            (family, _) => Ok(Within::Family(family.unwrap_or(Family::UNSPEC))),
        }
    }

    fn monitor(&mut self) -> Parsed<MonitorFilter> {
        let event = match self.word() {
            "new" => Some(MonitorEvent::New),
            "destroy" => Some(MonitorEvent::Destroy),
            _ => None,
        };
        if event.is_some() {
            self.next();
        }
        let object = match self.word() {
            "tables" => Some(MonitorObject::Tables),
            "chains" => Some(MonitorObject::Chains),
            "rules" => Some(MonitorObject::Rules),
            "sets" => Some(MonitorObject::Sets),
            "elements" => Some(MonitorObject::Elements),
            "ruleset" => Some(MonitorObject::Ruleset),
            "trace" => Some(MonitorObject::Trace),
            _ => None,
        };
        if object.is_some() {
            self.next();
        }
        self.eat_word("vm");
        let json = self.eat_word("json");
        if !self.at_end() {
            return Err(self.expected_one_of(&[
                "new", "destroy", "tables", "chains", "rules", "sets", "elements", "ruleset", "trace", "json",
            ]));
        }
        Ok(MonitorFilter { event, object, json })
    }

    fn description(&mut self) -> Parsed<Description> {
        let start = self.token.span;
        let before = self.checkpoint();
        if let Some(expression) = self.packet_expression()? {
            return Ok(Description::Expression(expression));
        }
        let word = self.word();
        match DataType::from_name(word) {
            Some(of) => {
                self.next();
                Ok(Description::Type(of))
            }
            // nft describes any other word as a symbol without a type.
            None if self.is(Kind::Word) && Name::new(word).is_ok() => {
                self.next();
                Ok(Description::Expression(word.into()))
            }
            None if self.is(Kind::Quoted) => {
                let symbol = self.string("a symbol")?;
                Ok(Description::Expression(symbol.into()))
            }
            None => match self.constant(None) {
                Ok(crate::tree::Expression::Value(Value::Number(number))) => {
                    Ok(Description::Expression(number.into()))
                }
                Ok(expression) => Ok(Description::Expression(expression)),
                Err(_) if is_header(word) => {
                    self.restore(before);
                    Err(self.wrong_field(word))
                }
                Err(_) => {
                    Err(Problem::new(start, format!("expected an expression or a data type, found `{word}`")))
                }
            },
        }
    }
}

const SUBJECTS: &[&str] = &[
    "ruleset",
    "tables",
    "table",
    "chains",
    "chain",
    "rules",
    "rule",
    "sets",
    "set",
    "maps",
    "map",
    "meters",
    "meter",
    "flowtables",
    "flowtable",
    "counters",
    "counter",
    "quotas",
    "quota",
    "limits",
    "limit",
    "secmarks",
    "secmark",
    "synproxys",
    "synproxy",
    "ct",
    "hooks",
];

#[cfg(test)]
mod tests {
    use crate::text::parse::{ParseOptions, Script};

    fn read(text: &str) -> String {
        match Script::parse(text, &ParseOptions::default()) {
            Ok(script) => script.commands.first().map(ToString::to_string).unwrap_or_default(),
            Err(error) => error.mistakes.first().unwrap().message.clone(),
        }
    }

    #[test]
    fn what_is_printed_is_read() {
        for query in [
            "list ruleset",
            "list ruleset ip6",
            "list tables",
            "list table inet t",
            "list chains bridge",
            "list chain ip t c",
            "list sets table ip t",
            "list set ip t s",
            "list map ip t m",
            "list meters",
            "list flowtables",
            "list counters table ip t",
            "list ct helpers table ip t",
            "list ct timeout table ip t",
            "list quota ip t q",
            "list ct helper ip t h",
            "list hooks inet",
            "reset counters",
            "reset rules table ip t",
            "reset rule ip t c handle 5",
            "monitor new rules json",
            "monitor",
            "describe tcp flags",
            "describe ct_state",
            "describe \"foo\"",
        ] {
            assert_eq!(read(query), query);
        }
    }

    #[test]
    fn what_nft_refuses_is_refused() {
        assert!(read("list foo").starts_with("expected `ruleset`, `tables`"));
        assert!(read("monitor foo").starts_with("expected `new`, `destroy`"));
        assert_eq!(read("get set ip t s"), "expected `element`, found `set`");
        assert!(read("describe accept").starts_with("expected an expression or a data type"));
    }
}
