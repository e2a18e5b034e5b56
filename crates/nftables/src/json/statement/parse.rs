//! Statements: what a rule asks and does, in JSON.

use crate::check::context::Context;
use crate::check::judge::{Judge, NEVER_REACHED, is_terminal, named_sets};
use crate::check::{Definitions, KnownSets, LowerError};
use crate::datatype::DataType;
use crate::expr::{CtKey, ExthdrOp, LogFlags, ObjectKind};
use crate::family::Family;
use crate::json::constant;
use crate::json::error::JsonError;
use crate::json::expression::{self, of_packet, parse_mapping, types_of, verdict, without_shift};
use crate::json::node::{Node, Parsed, all};
use crate::json::object::{comment, flags, name, seconds};
use crate::json::scope::Within;
use crate::json::statement::nat;
use crate::key::Part;
use crate::name::Comment;
use crate::object::{Rule, Set, SetData, SetId, SetType};
use crate::text::parse::constant::Typed;
use crate::tree::{BYTE_UNITS, *};

/// The statements of a rule.
pub(in crate::json) fn list(node: &Node<'_>, within: Within<'_>) -> Parsed<Vec<Statement>> {
    let mut context = Context::of(within.family());
    let mut before = None;
    let statements = node.list("a list of statements")?.map(|of| {
        let statements = match of.value.as_str() {
            Some(text) => from_text(&of, text, within)?,
            None => vec![parse(&of, within)?],
        };
        for statement in &statements {
            if before.as_ref().is_some_and(is_terminal) {
                return Err(of.refused(NEVER_REACHED));
            }
            context = judged(statement, context, within).map_err(|error| of.refused(&error.to_string()))?;
            before = Some(statement.clone());
        }
        Ok(statements)
    });
    Ok(all(statements, within.max_mistakes())?.into_iter().flatten().collect())
}

/// Judges a statement behind those before it, as if it were text; returns what it establishes.
fn judged(statement: &Statement, before: Context, within: Within<'_>) -> Result<Context, LowerError> {
    let mut names = Vec::new();
    named_sets(statement, &mut names);
    let sets: Vec<_> = names.into_iter().filter_map(|name| within.set(name)).collect();
    let known: KnownSets<'_> = sets.iter().map(|set| (&set.id, set)).collect();
    let mut judge = Judge::behind(Definitions { table: within.table, sets: &known }, before);
    judge.statement(statement)?;
    Ok(judge.context())
}

/// A statement as text: nft lists so what it has no JSON for, such as `jump { ... }`.
fn from_text(node: &Node<'_>, text: &str, within: Within<'_>) -> Parsed<Vec<Statement>> {
    let sets = |id: &SetId| within.scope.set(&id.table, &id.name);
    let mut options = within.options().clone();
    options.sets = Some(&sets);
    let chain = within.table.chain(crate::Name::from_kernel(""));
    match Rule::parse_with(&chain, text, &options) {
        Ok(rule) if rule.comment.is_none() && !rule.statements.is_empty() => {
            let statements: Vec<_> = rule.statements.into();
            // nft refuses every text here; what it lists as an object is one here, too.
            let is_listed_as_text = |of: &Statement| match of {
                Statement::Bound(_) => true,
                Statement::Set(update) => update.value.is_some(),
                _ => false,
            };
            match statements.iter().all(is_listed_as_text) {
                true => Ok(statements),
                false => Err(node.wrong("an object, as {\"accept\": null}")),
            }
        }
        Ok(_) => Err(node.wrong("a statement")),
        Err(error) => {
            let why = error.mistakes.first().map(|mistake| format!(" ({})", mistake.message));
            Err(node.wrong(&format!("a statement{}", why.unwrap_or_default())))
        }
    }
}

/// What elements carry: a list of statements, or one.
fn stateful_list(node: Option<Node<'_>>, within: Within<'_>) -> Parsed<Vec<Statement>> {
    let Some(node) = node else { return Ok(Vec::new()) };
    all(node.one_or_more().iter().map(|of| parse(of, within)), within.max_mistakes())
}

/// What an element carries: those of its members that are statements.
pub(in crate::json) fn carried(of: &Node<'_>, within: Within<'_>) -> Parsed<Vec<Statement>> {
    let Some(members) = of.value.as_object() else { return Err(of.wrong("an object")) };
    let names = members.keys().filter(|name| STATEFUL.contains(&name.as_str()));
    let statements = names.filter_map(|name| Some((name, of.member(name)?)));
    statements.map(|(name, node)| statement(of, name, &node, within)).collect()
}

/// What each element of a set carries.
pub(in crate::json) fn of_set(of: &Node<'_>, within: Within<'_>) -> Parsed<Vec<Statement>> {
    stateful_list(of.given("stmt"), within)
}

/// A statement.
pub(in crate::json) fn parse(node: &Node<'_>, within: Within<'_>) -> Parsed<Statement> {
    let (word, of) = node.only("a statement")?;
    statement(node, word, &of, within)
}

fn statement(node: &Node<'_>, word: &str, of: &Node<'_>, within: Within<'_>) -> Parsed<Statement> {
    // nft takes whatever stands here for an object without members.
    if WITHOUT_MEMBERS.contains(&word) {
        of.null()?;
    } else if !(of.value.is_object() || of.value.is_null() || of.value.is_string() && NAMED.contains(&word)) {
        return Err(of.wrong("an object, or null"));
    }
    Ok(match word {
        "match" => comparison(of, within)?.into(),
        "accept" | "drop" | "continue" | "return" => verdict(node)?.into(),
        "jump" | "goto" => match of.given("rules") {
            Some(rules) => bound_chain(word, &rules, within)?.into(),
            None => verdict(node)?.into(),
        },
        "vmap" => {
            let key = of_packet(&of.need("key", "what is looked up")?, within)?;
            let map = parse_mapping(&of.need("data", "a map")?, &key, within, verdict)?;
            Vmap { key, map }.into()
        }
        "counter" => match is_reference(of, &[]) {
            true => reference(ObjectKind::COUNTER, of, within)?,
            false => counter(of)?.into(),
        },
        "quota" => match is_reference(of, &["val"]) {
            true => reference(ObjectKind::QUOTA, of, within)?,
            false => quota(of)?.into(),
        },
        "limit" => match is_reference(of, &["rate"]) {
            true => reference(ObjectKind::LIMIT, of, within)?,
            false => limit(of)?.into(),
        },
        "last" => {
            let used = of.given("used").map(|used| used.number("a time in milliseconds")).transpose()?;
            Last { used: used.map(std::time::Duration::from_millis) }.into()
        }
        "log" => log(of)?.into(),
        "reject" => reject(of, within)?.into(),
        "dnat" => Statement::dnat(nat::translation(of, within)?),
        "snat" => Statement::snat(nat::translation(of, within)?),
        "masquerade" => Statement::masquerade(nat::port_translation(of, within)?),
        "redirect" => Statement::redirect(nat::port_translation(of, within)?),
        "tproxy" => nat::tproxy(of, within)?.into(),
        "dup" => nat::dup(of, within)?.into(),
        "fwd" => nat::fwd(of, within)?.into(),
        "queue" => queue(of, within)?.into(),
        "notrack" => Statement::Notrack,
        "mangle" => mangle(of, within)?.into(),
        "set" => set_update(of, "set", within)?.into(),
        "map" => set_update(of, "map", within)?.into(),
        "meter" => meter(of, within)?.into(),
        "ct count" => match is_reference(of, &["val"]) {
            true => reference(ObjectKind::CONNLIMIT, of, within)?,
            false => {
                Connlimit { count: of.need("val", "a number")?.number("a number")?, over: is_inverse(of)? }
                    .into()
            }
        },
        "synproxy" => match is_reference(of, &["mss", "wscale", "flags"]) {
            true => reference(ObjectKind::SYNPROXY, of, within)?,
            false => synproxy(of)?.into(),
        },
        "flow" => {
            of.need("op", "add")?.word("add", &[("add", ())])?;
            let table = of.need("flowtable", "the name of a flowtable")?;
            let text = table.text("the name of a flowtable")?;
            Statement::FlowAdd(name_in(&table, text.strip_prefix('@').unwrap_or(text))?)
        }
        "ct helper" => reference(ObjectKind::CT_HELPER, of, within)?,
        "ct timeout" => reference(ObjectKind::CT_TIMEOUT, of, within)?,
        "ct expectation" => reference(ObjectKind::CT_EXPECT, of, within)?,
        "secmark" => reference(ObjectKind::SECMARK, of, within)?,
        "tunnel" => reference(ObjectKind::TUNNEL, of, within)?,
        "reset" => match of_packet(of, within)? {
            Expression::Exthdr(option) if option.op() == ExthdrOp::TCPOPT => Statement::ResetOption(option),
            _ => return Err(of.wrong("a TCP option")),
        },
        "xt" => {
            return Err(
                of.wrong("a statement of nft, not one of iptables (use iptables-nft for these rules)")
            );
        }
        _ => return Err(node.unknown_word("a statement", word, WORDS)),
    })
}

fn comparison(of: &Node<'_>, within: Within<'_>) -> Parsed<Match> {
    const OPERATORS: [(&str, MatchOp); 8] = [
        ("in", MatchOp::In),
        ("==", MatchOp::Eq),
        ("!=", MatchOp::Neq),
        ("<", MatchOp::Lt),
        (">", MatchOp::Gt),
        ("<=", MatchOp::Lte),
        (">=", MatchOp::Gte),
        ("!", MatchOp::None),
    ];
    let op = of.need("op", "an operator")?.word("an operator", &OPERATORS)?;
    let mut left = of_packet(&of.need("left", "something of a packet")?, within)?;
    let right = of.need("right", "what it is compared with")?;
    if let Expression::Fib(fib) = &mut left {
        // Whether there is a route is asked for by what the answer is compared with.
        fib.check |= right.value.is_boolean() || matches!(right.value.as_str(), Some("exists" | "missing"));
    }
    if let Expression::Ct(Ct { key: CtKey::SADDR | CtKey::DADDR, family: family @ None, .. }) = &mut left {
        // nft's text says the IP version by an earlier match, which is not looked at here.
        *family = address_family(right.value);
    }
    let types = types_of(&left);
    let value = expression::parse(&right, &types, within)?;
    let several = matches!(value, Expression::Set(_) | Expression::Named(_) | Expression::Range(_));
    let bits = types.iter().any(|of| of.data_type().is_bitmask());
    let is_one = matches!(&value, Expression::Set(members) if members.len() == 1);
    let op = match op {
        // To nft's text this is no operator, where that does not mean "any of the bits".
        // What is calculated is compared in so many words.
        MatchOp::Eq if matches!(left, Expression::Binary(_)) && !several => MatchOp::Eq,
        // A set of one member becomes that, which without an operator is any of its bits.
        MatchOp::Eq if bits && is_one && !matches!(left, Expression::Binary(_)) => MatchOp::Eq,
        MatchOp::Eq if several || !bits => MatchOp::In,
        MatchOp::None if !bits => return Err(of.wrong("bits, for the operator \"!\"")),
        op => op,
    };
    Ok(Match { left, op, right: value })
}

/// The IP version of the first address in a value.
fn address_family(value: &serde_json::Value) -> Option<Family> {
    match value {
        serde_json::Value::String(text) if text.contains(':') => Some(Family::IP6),
        serde_json::Value::String(_) => Some(Family::IP),
        serde_json::Value::Array(list) => list.first().and_then(address_family),
        serde_json::Value::Object(members) => members.values().find_map(address_family),
        _ => None,
    }
}

fn bound_chain(word: &str, rules: &Node<'_>, within: Within<'_>) -> Parsed<BoundChain> {
    let rule = |rule: Node<'_>| {
        Ok(BoundRule {
            statements: list(&rule.need("expr", "a list of statements")?, within)?,
            comment: comment(&rule)?,
        })
    };
    let rules = rules.list("a list of rules")?.map(rule).collect::<Parsed<_>>()?;
    Ok(BoundChain { goto: word == "goto", rules })
}

/// Whether it names an object, or a map that gives one, and is not the statement itself, which has one of
/// these members.
fn is_reference(of: &Node<'_>, members: &[&str]) -> bool {
    of.value.is_string() || of.has("map") && !members.iter().any(|name| of.has(name))
}

fn reference(kind: ObjectKind, of: &Node<'_>, within: Within<'_>) -> Parsed<Statement> {
    let object = if of.value.is_string() {
        ObjectName::Named(name(of, "the name of an object")?)
    } else {
        let map = of.need("map", "a map, or the name of an object")?;
        let key = Box::new(of_packet(&map.need("key", "what is looked up")?, within)?);
        let to = |node: &Node<'_>| name(node, "the name of an object");
        match parse_mapping(&map.need("data", "a map")?, &key, within, to)? {
            Mapping::Named(map) => ObjectName::Map(key, map),
            Mapping::Anonymous(pairs) => ObjectName::Among(key, pairs),
        }
    };
    Ok(ObjectReference { kind, object }.into())
}

fn counter(of: &Node<'_>) -> Parsed<Counter> {
    if of.value.is_null() {
        return Ok(Counter::default());
    }
    let count = |name| of.need(name, "a number")?.number64("a number");
    Ok(Counter { packets: count("packets")?, bytes: count("bytes")? })
}

fn quota(of: &Node<'_>) -> Parsed<Quota> {
    let used = if of.has("used") { bytes(of, "used", "used_unit")? } else { 0 };
    Ok(Quota { bytes: bytes(of, "val", "val_unit")?, used, over: is_inverse(of)? })
}

/// A number of bytes in a unit.
fn bytes(of: &Node<'_>, value: &str, unit: &str) -> Parsed<u64> {
    let node = of.need(value, "a number")?;
    let number = node.number64("a number")?;
    let factor = match of.given(unit) {
        Some(unit) => unit.word("a unit", &BYTE_UNITS)?,
        None => 1,
    };
    number.checked_mul(factor).ok_or_else(|| node.wrong("a number of bytes below 2^64"))
}

/// A limit, of a rule or of an object.
pub(in crate::json) fn limit(of: &Node<'_>) -> Parsed<Limit> {
    let counts_bytes = match of.given("rate_unit") {
        Some(unit) => unit.text("a unit")? != "packets",
        None => false,
    };
    if !counts_bytes {
        // libnftables-json(5) calls it `unit`, which nft does not read: its limit of bytes is one of packets.
        for unit in ["unit", "burst_unit"].iter().filter_map(|name| of.given(name)) {
            unit.word("the unit of the rate, which `rate_unit` tells", &[("packets", ())])?;
        }
    }
    let node = of.need("rate", "a number")?;
    let rate = if counts_bytes { bytes(of, "rate", "rate_unit")? } else { node.number64("a number")? };
    if rate == 0 {
        return Err(node.wrong("a number above 0"));
    }
    let burst = match of.given("burst") {
        Some(node) => {
            let burst =
                if counts_bytes { bytes(of, "burst", "burst_unit")? } else { node.number("a number")? };
            Some(u32::try_from(burst).map_err(|_| node.wrong("a number of 32 bits"))?)
        }
        None => None,
    };
    Ok(Limit {
        rate,
        per: of.need("per", "a unit of time")?.word("a unit of time", &TimeUnit::NAMES)?,
        burst,
        bytes: counts_bytes,
        over: is_inverse(of)?,
    })
}

fn is_inverse(of: &Node<'_>) -> Parsed<bool> {
    of.given("inv").map_or(Ok(false), |node| node.is_true())
}

fn log(of: &Node<'_>) -> Parsed<Log> {
    const FLAGS: [(&str, LogFlags); 6] = [
        ("tcp sequence", LogFlags::TCP_SEQUENCE),
        ("tcp options", LogFlags::TCP_OPTIONS),
        ("ip options", LogFlags::IP_OPTIONS),
        ("skuid", LogFlags::SKUID),
        ("ether", LogFlags::ETHER),
        ("all", LogFlags::all()),
    ];
    let level = match of.given("level") {
        Some(level) => {
            let words: Vec<_> = (0_u8..).zip(Log::LEVELS).map(|(number, word)| (word, number)).collect();
            Some(level.word("a level", &words)?)
        }
        None => None,
    };
    let number = |name| of.given(name);
    Ok(Log {
        prefix: match of.given("prefix") {
            Some(node) => {
                let prefix = Comment::from_script(node.text("a text")?);
                Some(prefix.map_err(|error| node.wrong(&format!("a prefix ({})", error.reason)))?)
            }
            None => None,
        },
        level,
        flags: flags(of, "a flag of log", &FLAGS)?
            .into_iter()
            .fold(LogFlags::empty(), |all, flag| all | flag),
        group: number("group").map(|node| node.number("a number of 16 bits")).transpose()?,
        snaplen: number("snaplen").map(|node| node.number("a number of 32 bits")).transpose()?,
        queue_threshold: number("queue-threshold")
            .map(|node| node.number("a number of 16 bits"))
            .transpose()?,
    })
}

fn reject(of: &Node<'_>, within: Within<'_>) -> Parsed<Reject> {
    let Some(kind) = of.given("type") else {
        return match of.given("expr") {
            Some(_) => Err(of.wrong("a member \"type\" beside \"expr\"")),
            None => Ok(Reject::Default),
        };
    };
    let codes = [
        ("tcp reset", None),
        ("icmp", Some(DataType::ICMP_CODE)),
        ("icmpv6", Some(DataType::ICMPV6_CODE)),
        ("icmpx", Some(DataType::ICMPX_CODE)),
    ];
    let Some(types) = kind.word("a type of reject", &codes)? else { return Ok(Reject::TcpReset) };
    let code = match of.given("expr") {
        Some(node) => match constant::parse(&node, Some(types.into()), within)? {
            Value::Number(code) => u8::try_from(code).map_err(|_| node.wrong("a code"))?,
            _ => return Err(node.wrong("a code")),
        },
        // As nft 1.0.6 has it, which completes only a reply without a type.
        None => 0,
    };
    Ok(match types {
        DataType::ICMP_CODE => Reject::Icmp(code),
        DataType::ICMPV6_CODE => Reject::Icmpv6(code),
        _ => Reject::Icmpx(code),
    })
}

fn queue(of: &Node<'_>, within: Within<'_>) -> Parsed<Queue> {
    let number = Part::Integer { bytes: 2, order: crate::Order::Host };
    let to = match of.given("num") {
        Some(node) => expression::parse(&node, &[number.into()], within)?,
        None => 0_u16.into(),
    };
    let names = flags(of, "a flag of queue", &[("bypass", true), ("fanout", false)])?;
    Ok(Queue { to, bypass: names.contains(&true), fanout: names.contains(&false) })
}

fn mangle(of: &Node<'_>, within: Within<'_>) -> Parsed<Mangle> {
    let key = of_packet(&of.need("key", "what is changed")?, within)?;
    let value = expression::parse(&of.need("value", "to what")?, &types_of(&key), within)?;
    Ok(Mangle { key, value })
}

fn set_update(of: &Node<'_>, word: &str, within: Within<'_>) -> Parsed<SetUpdate> {
    let operations = [("add", SetOp::Add), ("update", SetOp::Update), ("delete", SetOp::Delete)];
    let op = of.need("op", "what is done")?.word("an operation", &operations)?;
    let node = of.need(word, "the name of a set, as \"@name\"")?;
    let text = node.text("the name of a set, as \"@name\"")?;
    let text = text.strip_prefix('@').ok_or_else(|| node.wrong("the name of a set, as \"@name\""))?;
    let name = name_in(&node, text)?;
    if within.is_wrong(&name) {
        return Err(JsonError::consequence());
    }
    let known = within.set(&name);
    let (keys, values) = known.as_ref().map(types).unwrap_or_default();
    let (key, timeout) = key(&of.need("elem", "an element")?, &keys, within)?;
    let value = match word {
        "map" => Some(expression::parse(&of.need("data", "a value")?, &values, within)?),
        _ => None,
    };
    Ok(SetUpdate { op, set: name, key, value, timeout, statements: stateful_list(of.given("stmt"), within)? })
}

/// The types of the keys and of the values of a set.
fn types(of: &Set) -> (Vec<Typed>, Vec<Typed>) {
    let values = match &of.data {
        Some(SetData::Value(of) | SetData::Interval(of)) => types_in(of),
        _ => Vec::new(),
    };
    (types_in(&of.key), values)
}

/// The types that a set's type is of.
pub(in crate::json) fn types_in(of: &SetType) -> Vec<Typed> {
    match of {
        SetType::Typeof(of) => types_of(of),
        other => constant::types(&other.parts()),
    }
}

/// The key of an element that a rule makes, and after what time that goes.
fn key(
    node: &Node<'_>,
    types: &[Typed],
    within: Within<'_>,
) -> Parsed<(Expression, Option<std::time::Duration>)> {
    let Some(elem) = node.given("elem") else {
        return Ok((without_shift(expression::parse(node, types, within)?), None));
    };
    let timeout = elem.given("timeout").map(|timeout| seconds(&timeout)).transpose()?;
    Ok((without_shift(expression::parse(&elem.need("val", "a key")?, types, within)?), timeout))
}

fn meter(of: &Node<'_>, within: Within<'_>) -> Parsed<Meter> {
    let (key, timeout) = key(&of.need("key", "the key of the meter")?, &[], within)?;
    let size = match of.given("size") {
        Some(node) => node.number("a number of 32 bits")?,
        None => u16::MAX.into(),
    };
    let statements = of.need("stmt", "a statement")?;
    Ok(Meter {
        name: name(&of.need("name", "the name of the meter")?, "the name of the meter")?,
        size,
        key,
        timeout,
        statements: stateful_list(Some(statements), within)?,
    })
}

fn synproxy(of: &Node<'_>) -> Parsed<Synproxy> {
    let names = flags(of, "a flag of synproxy", &[("timestamp", true), ("sack-perm", false)])?;
    Ok(Synproxy {
        mss: of.given("mss").map(|node| node.number("a number of 16 bits")).transpose()?,
        wscale: of.given("wscale").map(|node| node.number("a number up to 255")).transpose()?,
        timestamp: names.contains(&true),
        sack_perm: names.contains(&false),
    })
}

fn name_in(node: &Node<'_>, text: &str) -> Parsed<crate::Name> {
    crate::json::object::checked_name(node, text, "a name")
}

/// The statements that are one word.
const WITHOUT_MEMBERS: &[&str] = &["accept", "drop", "continue", "return", "notrack"];
/// The statements that may be the name of an object.
const NAMED: &[&str] = &[
    "counter",
    "quota",
    "limit",
    "ct count",
    "synproxy",
    "ct helper",
    "ct timeout",
    "ct expectation",
    "secmark",
    "tunnel",
];
/// The statements that an element may carry.
const STATEFUL: &[&str] = &["counter", "limit", "quota", "last", "ct count"];
const WORDS: &[&str] = &[
    "accept",
    "drop",
    "continue",
    "return",
    "jump",
    "goto",
    "match",
    "vmap",
    "counter",
    "quota",
    "limit",
    "last",
    "log",
    "reject",
    "dnat",
    "snat",
    "masquerade",
    "redirect",
    "tproxy",
    "dup",
    "fwd",
    "queue",
    "notrack",
    "mangle",
    "set",
    "map",
    "meter",
    "ct count",
    "synproxy",
    "flow",
    "ct helper",
    "ct timeout",
    "ct expectation",
    "secmark",
    "tunnel",
    "reset",
];
