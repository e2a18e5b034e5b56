//! Commands: what a document asks to be done.

use std::collections::HashSet;

use serde_json::Value;

use crate::expr::ObjectKind;
use crate::family::Family;
use crate::json::element::{keys, parse_elements};
use crate::json::error::JsonError;
use crate::json::node::{Node, Parsed, ReadMembers, all};
use crate::json::object::*;
use crate::json::scope::{Scope, Within};
use crate::json::set;
use crate::object::*;
use crate::text::parse::script::make_dynamic;
use crate::text::parse::{ParseOptions, Script};
use crate::transaction::{
    Command, Flush, HandleId, Object, Operation, Rename, Subject, Target, Transaction, Within as Where,
};
use crate::tree::Statement;

impl Transaction {
    /// Reads commands, or a ruleset as `nft -j list ruleset` prints it, whose objects are then added.
    ///
    /// As `nft -j -f` of 1.0.6 reads it, with what later versions added: `destroy`, `typeof`, devices and
    /// comments of chains, flags of tables. Members that nothing is known of, which nft passes
    /// over, are mistakes. Constants in strings are resolved by the type of what they are compared with.
    ///
    /// Elements that lead to a chain are added behind all chains of the document, because a listing of nft
    /// 1.0.6 has sets before chains.
    ///
    /// # Errors
    /// [`JsonError`] with every mistake in its place.
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        Self::from_json_with(text, &ParseOptions::default())
    }

    /// Parses as above, with the names of the machine and the sets in the kernel.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn from_json_with(text: &str, options: &ParseOptions<'_>) -> Result<Self, JsonError> {
        let value: Value = serde_json::from_str(text).map_err(|error| JsonError::syntax(&error))?;
        Self::from_json_value(&value, options)
    }

    /// The same from a value.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn from_json_value(value: &Value, options: &ParseOptions<'_>) -> Result<Self, JsonError> {
        // Without queries, nothing but the transaction is left.
        Ok(read(value, options, false)?.split().0)
    }
}

impl Script {
    /// Reads commands, queries included, as [`Transaction::from_json_with`] reads those that change
    /// something.
    ///
    /// # Errors
    /// As [`Transaction::from_json`].
    pub fn from_json(text: &str, options: &ParseOptions<'_>) -> Result<Self, JsonError> {
        let value: Value = serde_json::from_str(text).map_err(|error| JsonError::syntax(&error))?;
        read(&value, options, true)
    }
}

fn read(value: &Value, options: &ParseOptions<'_>, queries: bool) -> Parsed<Script> {
    let read = ReadMembers::default();
    let root = Node::root(value, &read);
    let list = root.need("nftables", "a list of commands")?;
    if let Some(name) = value.as_object().and_then(|all| all.keys().find(|name| *name != "nftables")) {
        return Err(root
            .wrong("a document whose one member is \"nftables\"")
            .found(Some(&format!("{name:?}"))));
    }
    let mut reader = Reader { scope: Scope::new(options), made: Vec::new(), later: Vec::new(), queries };
    let commands = list.list("a list of commands")?.map(|command| match reader.command(&command) {
        Ok(()) => read.check_whole(&command),
        Err(error) => {
            read.clear();
            Err(error)
        }
    });
    all(commands, options.max_mistakes)?;
    reader.add_later();
    let Reader { scope, mut made, .. } = reader;
    let updated = updated_sets(&made);
    make_dynamic(&mut made, &updated, options);
    Ok(Script { commands: made, known: scope.into_found() })
}

/// The sets and maps that rules change. A listing in JSON does not say of either that it is dynamic.
fn updated_sets(commands: &[Command]) -> HashSet<SetId> {
    fn note(table: &TableId, statements: &[Statement], sets: &mut HashSet<SetId>) {
        for statement in statements {
            match statement {
                Statement::Set(update) => {
                    let map = update.value.is_some();
                    sets.insert(SetId { map, ..table.set(update.set.clone()) });
                }
                Statement::Bound(chain) => {
                    chain.rules.iter().for_each(|rule| note(table, &rule.statements, sets));
                }
                _ => {}
            }
        }
    }
    let mut sets = HashSet::new();
    for command in commands {
        if let Command::Operation(
            Operation::Add(Object::Rule(rule)) | Operation::Insert(rule) | Operation::Replace(rule),
        ) = command
        {
            note(&rule.chain.table, &rule.statements.read(), &mut sets);
        }
    }
    sets
}

struct Reader<'a> {
    scope: Scope<'a>,
    made: Vec<Command>,
    /// Whether commands that only ask are taken, too.
    queries: bool,
    /// Elements that lead to chains, which may come later.
    later: Vec<Elements>,
}

impl Reader<'_> {
    fn command(&mut self, node: &Node<'_>) -> Parsed<()> {
        if let Some(metainfo) = node.member("metainfo") {
            metainfo.pass_over_all();
            return check_version(&metainfo);
        }
        let members = node.value.as_object().ok_or_else(|| node.wrong("a command"))?;
        let Some((verb, of)) = VERBS.iter().find_map(|verb| Some((*verb, node.member(verb)?))) else {
            // As a listing has it.
            return match members.keys().find(|name| is_object(name)) {
                Some(_) => self.add(node, "add", true),
                None => {
                    let name = members.keys().next().map_or("", String::as_str);
                    Err(node.unknown_word("a command", name, &VERBS))
                }
            };
        };
        match verb {
            "add" | "create" => self.add(&of, verb, false),
            "insert" | "replace" => {
                self.add_later();
                self.place(&of, verb)
            }
            "delete" | "destroy" => {
                self.add_later();
                let target = self.target(&of)?;
                self.made.push(match verb {
                    "delete" => Operation::Delete(target).into(),
                    _ => Operation::Destroy(target).into(),
                });
                Ok(())
            }
            "flush" => {
                self.add_later();
                self.made.push(Operation::Flush(flushed(&of)?).into());
                Ok(())
            }
            "rename" => {
                self.add_later();
                let chain = of.need("chain", "a chain")?;
                let newname = chain.need("newname", "a name")?;
                let id = table_id(&chain)?.chain(own_name(&chain)?);
                let rename = Rename { chain: id, handle: handle(&chain)?, name: name(&newname, "a name")? };
                self.made.push(Operation::Rename(rename).into());
                Ok(())
            }
            "list" | "reset" if self.queries => {
                self.add_later();
                let subject = subject(&of)?;
                self.made.push(if verb == "list" { Command::List(subject) } else { Command::Reset(subject) });
                Ok(())
            }
            _ => Err(node.wrong("a command that changes the ruleset")),
        }
    }

    fn add_later(&mut self) {
        for elements in self.later.drain(..) {
            self.made.push(Operation::Add(elements.into()).into());
        }
    }

    fn add(&mut self, node: &Node<'_>, verb: &str, listed: bool) -> Parsed<()> {
        let (word, of) = object_in(node)?;
        // A listing has them; the kernel gives another one.
        of.pass_over(&["handle"]);
        let object: Object = match word {
            "table" => parse_table(&of)?.into(),
            "chain" => parse_chain(&of)?.into(),
            "rule" => {
                self.add_later();
                let mut rule = parse_rule(&of, &self.scope)?;
                if !listed {
                    rule.index = of.given("index").map(|node| node.number("a number")).transpose()?;
                    rule.position = of.given("position").map(|node| node.number("a handle")).transpose()?;
                }
                rule.into()
            }
            "set" | "map" | "meter" => return self.add_set(&of, verb, word == "map"),
            "element" => {
                let (set, within) = self.known_set(&of)?;
                let within = Within { scope: &self.scope, table: &within };
                let list = parse_elements(&of.need("elem", "elements")?, &set, within)?;
                self.add_later();
                Elements { set: set.id, list }.into()
            }
            "flowtable" => parse_flowtable(&of)?.into(),
            _ => parse_stateful(&of, kind(word).ok_or_else(|| unknown_object(node, word))?)?.into(),
        };
        self.push(verb, object);
        Ok(())
    }

    fn push(&mut self, verb: &str, object: Object) {
        self.made.push(if verb == "create" {
            Operation::Create(object).into()
        } else {
            Operation::Add(object).into()
        });
    }

    fn add_set(&mut self, of: &Node<'_>, verb: &str, is_map: bool) -> Parsed<()> {
        let (set, list) = match set::parse(of, is_map, &self.scope) {
            Ok(read) => read,
            Err(error) => {
                if let (Ok(table), Ok(name)) = (table_id(of), own_name(of)) {
                    self.scope.add_wrong(table, name);
                }
                return Err(error);
            }
        };
        self.scope.add(&set);
        let elements = Elements { set: set.id.clone(), list };
        self.push(verb, set.into());
        if elements.list.is_empty() {
            return Ok(());
        }
        match elements.list.iter().any(leads_to_chain) {
            true => self.later.push(elements),
            false => self.made.push(Operation::Add(elements.into()).into()),
        }
        Ok(())
    }

    /// The set that elements belong to, of which something has to be known.
    fn known_set(&self, of: &Node<'_>) -> Parsed<(Set, TableId)> {
        let table = table_id(of)?;
        let node = of.need("name", "the name of a set")?;
        let name = name(&node, "the name of a set")?;
        if self.scope.is_wrong(&table, &name) {
            return Err(JsonError::consequence());
        }
        let set = self.scope.set(&table, &name).ok_or_else(|| {
            node.wrong("a set that was added before, or that the options know: elements are read by its type")
        })?;
        Ok((set, table))
    }

    fn place(&mut self, of: &Node<'_>, verb: &str) -> Parsed<()> {
        let node = of.need("rule", "a rule")?;
        let mut rule = parse_rule(&node, &self.scope)?;
        let handle = handle(&node)?;
        if verb == "replace" {
            node.need("handle", "the handle of the rule to replace")?;
            rule.handle = handle;
            self.made.push(Operation::Replace(rule).into());
        } else {
            rule.position = handle;
            rule.index = node.given("index").map(|node| node.number("a number")).transpose()?;
            self.made.push(Operation::Insert(rule).into());
        }
        Ok(())
    }

    fn target(&self, node: &Node<'_>) -> Parsed<Target> {
        let (word, of) = object_in(node)?;
        // Whoever deletes what was listed may give all of it; only what tells which it is matters.
        of.pass_over(DESCRIPTION);
        if word != "element" {
            of.pass_over(&["elem"]);
        }
        if word == "table" {
            let family = family(&of)?;
            return match (of.given("name"), handle(&of)?) {
                (Some(node), _) => Ok(TableId::new(family, name(&node, "a name")?).into()),
                (None, Some(handle)) => Ok(HandleId::Table(family, handle).into()),
                (None, None) => Err(of.wrong("a member \"name\" or \"handle\"")),
            };
        }
        let table = table_id(&of)?;
        if word == "rule" {
            let chain = table.chain(name(&of.need("chain", "the name of a chain")?, "the name of a chain")?);
            let handle = of.need("handle", "the handle of the rule")?.number("a handle")?;
            return Ok(RuleId { chain, handle }.into());
        }
        if word == "element" {
            let (set, table) = self.known_set(&of)?;
            let within = Within { scope: &self.scope, table: &table };
            let list = keys(&of.need("elem", "elements")?, &set, within)?;
            return Ok(Elements { set: set.id, list }.into());
        }
        match (of.given("name"), handle(&of)?) {
            (Some(node), _) => {
                let name = name(&node, "a name")?;
                let devices = devices(&of)?;
                Ok(match word {
                    "chain" if !devices.is_empty() => table.chain(name).devices(devices).into(),
                    "chain" => table.chain(name).into(),
                    "set" | "meter" => table.set(name).into(),
                    "map" => table.map(name).into(),
                    "flowtable" if !devices.is_empty() => table.flowtable(name).devices(devices).into(),
                    "flowtable" => table.flowtable(name).into(),
                    _ => Target::Stateful(table.object(known_kind(&of, word)?, name)),
                })
            }
            (None, Some(handle)) => Ok(Target::Handle(match word {
                "chain" => HandleId::Chain(table, handle),
                "set" | "map" | "meter" => HandleId::Set(table, handle),
                "flowtable" => HandleId::Flowtable(table, handle),
                _ => HandleId::Stateful(table, known_kind(&of, word)?, handle),
            })),
            (None, None) => Err(of.wrong("a member \"name\" or \"handle\"")),
        }
    }
}

/// nft knows the version 1.
fn check_version(of: &Node<'_>) -> Parsed<()> {
    match of.given("json_schema_version") {
        Some(node) if node.value.as_i64().is_some_and(|version| version > 1) => {
            Err(node.wrong("a version of the format that is known, which is 1"))
        }
        _ => Ok(()),
    }
}

fn leads_to_chain(element: &Element) -> bool {
    element.target().is_some()
}

fn flushed(node: &Node<'_>) -> Parsed<Flush> {
    let (word, of) = object_in(node)?;
    Ok(match word {
        "ruleset" => match of.given("family") {
            Some(_) => Flush::Ruleset(family(&of)?),
            None => Flush::Ruleset(Family::UNSPEC),
        },
        "table" => TableId::new(family(&of)?, own_name(&of)?).into(),
        "chain" => table_id(&of)?.chain(own_name(&of)?).into(),
        "set" | "meter" => table_id(&of)?.set(own_name(&of)?).into(),
        "map" => table_id(&of)?.map(own_name(&of)?).into(),
        _ => {
            return Err(node.unknown_word(
                "what can be flushed",
                word,
                &["ruleset", "table", "chain", "set", "map"],
            ));
        }
    })
}

/// What is listed or reset: one object, or with an `s` all of them.
fn subject(node: &Node<'_>) -> Parsed<Subject> {
    let members = node.value.as_object().ok_or_else(|| node.wrong("what to list"))?;
    let Some((word, of)) = members.keys().next().and_then(|word| Some((word.as_str(), node.member(word)?)))
    else {
        return Err(node.wrong("what to list"));
    };
    let any_family = || of.given("family").map_or(Ok(Family::UNSPEC), |_| family(&of));
    let within = || match of.given("table") {
        Some(_) => Ok(Where::Table(table_id(&of)?)),
        None => any_family().map(Where::Family),
    };
    let set = |map| Ok(SetId { table: table_id(&of)?, name: own_name(&of)?, map });
    Ok(match word {
        "ruleset" => Subject::Ruleset(any_family()?),
        "tables" => Subject::Tables(any_family()?),
        "table" => match of.given("name") {
            Some(_) => Subject::Table(TableId::new(family(&of)?, own_name(&of)?)),
            None => Subject::Tables(any_family()?),
        },
        "chains" => Subject::Chains(any_family()?),
        "chain" => Subject::Chain(table_id(&of)?.chain(own_name(&of)?)),
        "rules" => Subject::Rules(within()?),
        "sets" => Subject::Sets(within()?),
        "maps" => Subject::Maps(within()?),
        "meters" => Subject::Meters(within()?),
        "flowtables" => Subject::Flowtables(within()?),
        "set" => Subject::Set(set(false)?),
        "map" => Subject::Set(set(true)?),
        "meter" => Subject::Meter(set(false)?),
        "flowtable" => Subject::Flowtable(table_id(&of)?.flowtable(own_name(&of)?)),
        word => match (kind(word), word.strip_suffix('s').and_then(kind)) {
            (Some(kind), _) => Subject::Object(table_id(&of)?.object(kind, own_name(&of)?)),
            (None, Some(kind)) => Subject::Objects(kind, within()?),
            (None, None) => return Err(unknown_object(node, word)),
        },
    })
}

/// The object that a command is about.
fn object_in<'n>(node: &'n Node<'_>) -> Parsed<(&'n str, Node<'n>)> {
    let members = node.value.as_object().ok_or_else(|| node.wrong("an object of a ruleset"))?;
    let found = members.keys().find(|name| is_object(name) || *name == "ruleset");
    match found.and_then(|name| Some((name.as_str(), node.member(name)?))) {
        Some(found) => Ok(found),
        None => Err(unknown_object(node, members.keys().next().map_or("", String::as_str))),
    }
}

fn unknown_object(node: &Node<'_>, word: &str) -> JsonError {
    node.unknown_word("an object of a ruleset", word, &OBJECTS)
}

fn is_object(word: &str) -> bool {
    OBJECTS.contains(&word) || kind(word).is_some()
}

fn kind(word: &str) -> Option<ObjectKind> {
    KINDS.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind)
}

fn known_kind(node: &Node<'_>, word: &str) -> Parsed<ObjectKind> {
    kind(word).ok_or_else(|| unknown_object(node, word))
}

/// What a listing says of an object beside what tells which one it is.
const DESCRIPTION: &[&str] = &[
    "handle",
    "flags",
    "comment",
    "type",
    "hook",
    "prio",
    "policy",
    "expr",
    "map",
    "size",
    "timeout",
    "gc-interval",
    "auto-merge",
    "stmt",
    "packets",
    "bytes",
    "used",
    "inv",
    "rate",
    "per",
    "burst",
    "unit",
    "protocol",
    "l3proto",
    "dport",
    "context",
    "mss",
    "wscale",
    "val",
];
const VERBS: [&str; 12] = [
    "add", "create", "insert", "replace", "delete", "destroy", "flush", "rename", "list", "reset", "get",
    "monitor",
];
const OBJECTS: [&str; 8] = ["table", "chain", "rule", "set", "map", "meter", "element", "flowtable"];
