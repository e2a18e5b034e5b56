//! `--optimize`: rules that follow each other and differ only in the values that they compare become one, with a set
//! or a map.
//!
//! As nft 1.0.6, it looks at chains in the blocks of tables. Of a rule the comparisons come first, then what counts,
//! logs or refuses, at last a verdict or a translation:
//!
//! - the same verdict: `tcp dport 22 accept` and `tcp dport 80 accept` are `tcp dport { 22, 80 } accept`; with several
//!   comparisons, a concatenation of all of them;
//! - other verdicts: `ip saddr vmap { 10.0.0.1 : drop, 10.0.0.2 : accept }`;
//! - translations: `dnat to tcp dport map { 80 : 10.0.0.1, 81 : 10.0.0.2 }`;
//! - maps of verdicts of the same key: one map.
//!
//! Where nft 1.0.6 makes rules that do something else, they stay as they are: a counter would be lost beside a map
//! of verdicts, the first of two verdicts of the same key counts, and a set of bits (`tcp flags { syn, ack }`)
//! wants all other bits unset.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::IpAddr;

use sluicegate_nftables::lang::parse::Mistake;
use sluicegate_nftables::lang::{
    Expression, Map, Mapping, Match, MatchOp, Nat, NatTarget, Statement, Value, Verdict, Vmap,
};
use sluicegate_nftables::{ApplyOptions, Command, DataType, Family, Object, Operation, Rule, Transaction};

/// Rules that became one: the indexes of their commands, and the new rule.
pub(super) struct Merged {
    pub(super) commands: Vec<usize>,
    pub(super) rule: Rule,
}

/// Merges rules of a script. Returns what was merged, and which command each one that is left was at first.
pub(super) fn merge(commands: &mut Vec<Command>, places: &[Mistake]) -> (Vec<Merged>, Vec<usize>) {
    let mut all = Vec::new();
    let mut at = 0;
    while at < commands.len() {
        let run = run_of_rules(commands, places, at);
        all.extend(merge_run(commands, at, run));
        at += run.max(1);
    }
    let mut gone = HashSet::new();
    for Merged { commands: merged, rule } in &all {
        if let Some((first, rest)) = merged.split_first() {
            if let Some(command) = commands.get_mut(*first) {
                *command = Command::Operation(Operation::Add(Object::Rule(rule.clone())));
            }
            gone.extend(rest.iter().copied());
        }
    }
    let origins: Vec<_> = (0..commands.len()).filter(|index| !gone.contains(index)).collect();
    let mut index = 0;
    commands.retain(|_| {
        index += 1;
        !gone.contains(&(index - 1))
    });
    (all, origins)
}

/// What nft says of it: to standard output the new rules, to standard error which they replace.
pub(super) fn report(merged: &[Merged], places: &[Mistake], name: Option<&str>) -> String {
    let mut text = String::new();
    for Merged { commands, .. } in merged {
        text.push_str("Merging:\n");
        for place in commands.iter().filter_map(|command| places.get(*command)) {
            let name = place.source.as_deref().or(name).map(|name| format!("{name}:")).unwrap_or_default();
            let last = place.column + place.width.max(1) - 1;
            let _ = writeln!(text, "{name}{}:{}-{last}: {}", place.line, place.column, place.text);
        }
        text.push_str("into:\n\t\n");
    }
    text
}

fn rule_of(command: &Command) -> Option<&Rule> {
    match command {
        Command::Operation(Operation::Add(Object::Rule(rule))) => Some(rule),
        _ => None,
    }
}

/// How many rules of one chain follow each other, in the block of a table.
fn run_of_rules(commands: &[Command], places: &[Mistake], from: usize) -> usize {
    let Some(first) = commands.get(from).and_then(rule_of) else { return 0 };
    let rest = commands.iter().zip(places).skip(from);
    rest.take_while(|(command, place)| {
        rule_of(command).is_some_and(|rule| rule.chain == first.chain) && is_in_block(place)
    })
    .count()
}

/// The words of a command start at its place; a rule in a block has none before it.
fn is_in_block(place: &Mistake) -> bool {
    let text: String =
        place.text.chars().skip(place.column.saturating_sub(1).saturating_sub(place.cut)).collect();
    let mut words = text.split_whitespace();
    match words.next() {
        Some("rule") => false,
        Some("add" | "create" | "insert") => words.next().is_some_and(|word| word.starts_with('@')),
        // nft 1.0.6 leaves rules with variables alone.
        _ => !text.chars().take(place.width).any(|c| c == '$'),
    }
}

fn merge_run(commands: &[Command], from: usize, count: usize) -> Vec<Merged> {
    let rules: Vec<_> = commands.iter().skip(from).take(count).filter_map(rule_of).collect();
    let parts: Vec<_> = rules.iter().map(|rule| Parts::of(rule)).collect();
    let mut all = Vec::new();
    let mut start = 0;
    while start < parts.len() {
        let same = |other: &Option<Parts<'_>>| match (parts.get(start), other) {
            (Some(Some(first)), Some(other)) => first.is_like(other),
            _ => false,
        };
        let length = parts.iter().skip(start).take_while(|other| same(other)).count().max(1);
        let group: Vec<_> = parts.iter().skip(start).take(length).flatten().collect();
        if length > 1
            && let Some(chain) = rules.get(start).map(|rule| &rule.chain)
            && let Some(statements) = merged(&group, chain.table.family)
        {
            let rule = statements.into_iter().fold(Rule::new(chain.clone()), Rule::then);
            if is_valid(&rule) {
                all.push(Merged { commands: (from + start..from + start + length).collect(), rule });
            }
        }
        start += length;
    }
    all
}

/// Whether the rule can be sent: keys that overlap cannot be one map.
fn is_valid(rule: &Rule) -> bool {
    let mut transaction = Transaction::new();
    transaction.add(rule.clone());
    transaction.encode(ApplyOptions::default()).is_ok()
}

/// A rule: what it compares, what it does then, and how it ends.
struct Parts<'r> {
    matches: Vec<&'r Match>,
    others: Vec<&'r Statement>,
    end: End<'r>,
}

#[derive(PartialEq)]
enum End<'r> {
    None,
    Verdict(&'r Verdict),
    Vmap(&'r Vmap),
    Dnat(&'r Nat),
    Snat(&'r Nat),
}

impl<'r> Parts<'r> {
    /// The parts of a rule; `None` for one that cannot be merged.
    fn of(rule: &'r Rule) -> Option<Self> {
        let mut parts = Self { matches: Vec::new(), others: Vec::new(), end: End::None };
        for statement in &rule.statements {
            if parts.end != End::None {
                return None;
            }
            match statement {
                Statement::Match(of) if parts.others.is_empty() && is_mergeable(of) => parts.matches.push(of),
                Statement::Counter(_) | Statement::Notrack | Statement::Log(_) | Statement::Reject(_) => {
                    parts.others.push(statement);
                }
                Statement::Verdict(verdict) => parts.end = End::Verdict(verdict),
                Statement::Vmap(map) => parts.end = End::Vmap(map),
                Statement::Dnat(to) => parts.end = End::Dnat(to),
                Statement::Snat(to) => parts.end = End::Snat(to),
                _ => return None,
            }
        }
        Some(parts)
    }

    /// The comparison of this expression with this operator.
    fn with(&self, of: &Match) -> Option<&'r Match> {
        self.matches.iter().find(|own| own.left == of.left && own.op == of.op).copied()
    }

    fn is_like(&self, other: &Self) -> bool {
        let ends = match (&self.end, &other.end) {
            (End::None, End::None) | (End::Verdict(_), End::Verdict(_)) => true,
            (End::Vmap(one), End::Vmap(other)) => one.key == other.key,
            (End::Dnat(one), End::Dnat(other)) | (End::Snat(one), End::Snat(other)) => {
                let kinds = matches!(
                    (&one.to, &other.to),
                    (NatTarget::Address(_), NatTarget::Address(_))
                        | (NatTarget::AddressPort(..), NatTarget::AddressPort(..))
                );
                kinds && one.family == other.family && one.flags == other.flags
            }
            _ => false,
        };
        ends && self.others == other.others
            && self.matches.len() == other.matches.len()
            && self.matches.iter().all(|of| other.with(of).is_some())
    }
}

/// A comparison with values that can stand in a set.
fn is_mergeable(of: &Match) -> bool {
    let plain = |value: &Expression| {
        matches!(value, Expression::Value(_) | Expression::Prefix(_) | Expression::Range(_))
    };
    let is_plain = match &of.right {
        Expression::Set(members) => members.iter().all(plain),
        value => plain(value),
    };
    let has_bits = of.left.part().is_some_and(|part| BITS.contains(&part.data_type()));
    is_plain
        && matches!(of.op, MatchOp::In | MatchOp::Eq)
        && !matches!(of.left, Expression::Concat(_))
        && !has_bits
}

/// Types whose values are sets of bits, of which several may be set. Of a connection's state only one is.
const BITS: [DataType; 4] = [DataType::TCP_FLAG, DataType::CT_STATUS, DataType::CT_LABEL, DataType::CT_EVENT];

/// The values of a comparison, each by itself.
fn values(of: &Match) -> Vec<Expression> {
    let list = match &of.right {
        Expression::Set(members) => members.clone(),
        value => vec![value.clone()],
    };
    let is_state = of.left.part().is_some_and(|part| part.data_type() == DataType::CT_STATE);
    let single = |value: Expression| match value {
        Expression::Value(Value::Number(bits)) if is_state => (0..32)
            .map(|bit| bits & (1 << bit))
            .filter(|bit| *bit != 0)
            .map(|bit| Expression::Value(Value::Number(bit)))
            .collect(),
        value => vec![value],
    };
    list.into_iter().flat_map(single).collect()
}

/// The statements of one rule in the place of several; `None` where that would be another rule.
fn merged(group: &[&Parts<'_>], family: Family) -> Option<Vec<Statement>> {
    let first = group.first()?;
    if let End::Vmap(map) = &first.end {
        return merged_maps(group, first, map);
    }
    if first.matches.is_empty() {
        return None;
    }
    let left: Vec<_> = first.matches.iter().map(|of| of.left.clone()).collect();
    let key = match <[Expression; 1]>::try_from(left) {
        Ok([only]) => only,
        Err(several) => Expression::Concat(several),
    };
    let keys = |parts: &&Parts<'_>| -> Option<Vec<Expression>> {
        let mut all: Vec<Vec<Expression>> = vec![Vec::new()];
        for of in &first.matches {
            let values = values(parts.with(of)?);
            all = all
                .into_iter()
                .flat_map(|start| {
                    values.iter().map(move |value| [start.clone(), vec![value.clone()]].concat())
                })
                .collect();
        }
        let joined = |parts: Vec<Expression>| match <[Expression; 1]>::try_from(parts) {
            Ok([only]) => only,
            Err(several) => Expression::Concat(several),
        };
        Some(all.into_iter().map(joined).collect())
    };
    let keys: Vec<(Vec<Expression>, &&Parts<'_>)> =
        group.iter().map(|parts| Some((keys(parts)?, parts))).collect::<Option<_>>()?;
    let others = || first.others.iter().map(|of| (*of).clone());
    let pairs =
        || keys.iter().flat_map(|(keys, parts)| keys.iter().map(move |key| (key.clone(), &parts.end)));
    let is_same = group.iter().all(|parts| parts.end == first.end);
    match &first.end {
        End::None | End::Verdict(_) if is_same => {
            let mut members: Vec<Expression> = Vec::new();
            let mut known = HashSet::new();
            for (member, _) in pairs() {
                if known.insert(member.to_string()) {
                    members.push(member);
                }
            }
            let mut statements = vec![Statement::from(Match::new(key, Expression::set(members)))];
            statements.extend(others());
            if let End::Verdict(verdict) = &first.end {
                statements.push(Statement::Verdict((*verdict).clone()));
            }
            Some(statements)
        }
        // What is counted or logged per rule has no place beside a map.
        _ if !first.others.is_empty() => None,
        End::Verdict(_) => {
            let pairs: Vec<_> = pairs()
                .filter_map(|(key, end)| match end {
                    End::Verdict(verdict) => Some((key, (*verdict).clone())),
                    _ => None,
                })
                .collect();
            has_no_key_twice(pairs.iter().map(|(key, _)| key))
                .then(|| vec![Statement::Vmap(Box::new(Vmap { key, map: Mapping::Anonymous(pairs) }))])
        }
        End::Dnat(of) | End::Snat(of) => {
            let data = |to: &Nat| match &to.to {
                NatTarget::Address(address) => is_value(address).then(|| address.clone()),
                NatTarget::AddressPort(address, port) => (is_value(address) && is_value(port))
                    .then(|| Expression::Concat(vec![address.clone(), port.clone()])),
                _ => None,
            };
            let pairs: Vec<_> = pairs()
                .map(|(key, end)| match end {
                    End::Dnat(to) | End::Snat(to) => Some((key, data(to)?)),
                    _ => None,
                })
                .collect::<Option<_>>()?;
            if !has_no_key_twice(pairs.iter().map(|(key, _)| key)) {
                return None;
            }
            let map = Expression::Map(Box::new(Map { key, map: Mapping::Anonymous(pairs) }));
            let mut nat = (*of).clone();
            if matches!(nat.to, NatTarget::AddressPort(..)) {
                nat.family =
                    nat.family.or(Some(family).filter(|family| [Family::IP, Family::IP6].contains(family)));
                nat.to = NatTarget::Concat(map);
            } else {
                nat.to = NatTarget::Address(map);
            }
            Some(vec![match &first.end {
                End::Dnat(_) => Statement::Dnat(Box::new(nat)),
                _ => Statement::Snat(Box::new(nat)),
            }])
        }
        _ => None,
    }
}

fn is_value(of: &Expression) -> bool {
    matches!(of, Expression::Value(_))
}

/// Rules that are a map of verdicts alone: a packet that the first map does not know comes to the next.
fn merged_maps(group: &[&Parts<'_>], first: &Parts<'_>, map: &Vmap) -> Option<Vec<Statement>> {
    if !first.matches.is_empty() || !first.others.is_empty() {
        return None;
    }
    let mut pairs = Vec::new();
    for parts in group {
        let End::Vmap(Vmap { map: Mapping::Anonymous(own), .. }) = &parts.end else { return None };
        pairs.extend(own.iter().cloned());
    }
    let is_plain = |key: &Expression| {
        matches!(
            key,
            Expression::Value(_) | Expression::Prefix(_) | Expression::Range(_) | Expression::Concat(_)
        )
    };
    let fits =
        pairs.iter().all(|(key, _)| is_plain(key)) && has_no_key_twice(pairs.iter().map(|(key, _)| key));
    fits.then(|| {
        vec![Statement::Vmap(Box::new(Vmap { key: map.key.clone(), map: Mapping::Anonymous(pairs) }))]
    })
}

/// Whether no packet has two of the keys, so that their order does not matter.
fn has_no_key_twice<'e>(keys: impl Iterator<Item = &'e Expression> + Clone) -> bool {
    let mut known = HashSet::new();
    if !keys.clone().all(|key| known.insert(key.to_string())) {
        return false;
    }
    let parts = |key: &Expression| match key {
        Expression::Concat(parts) => parts.iter().map(bounds).collect::<Option<Vec<_>>>(),
        key => bounds(key).map(|bounds| vec![bounds]),
    };
    if !keys.clone().any(has_interval) {
        return true;
    }
    // Each is compared with all others: more than these stay as they are.
    const MOST: usize = 1000;
    let Some(all) = keys.map(parts).collect::<Option<Vec<_>>>() else { return false };
    let overlap = |one: &[(u128, u128)], other: &[(u128, u128)]| {
        one.iter().zip(other).all(|((from, to), (first, last))| from <= last && first <= to)
    };
    all.len() <= MOST
        && all.iter().enumerate().all(|(at, one)| all.iter().skip(at + 1).all(|other| !overlap(one, other)))
}

fn has_interval(key: &Expression) -> bool {
    match key {
        Expression::Concat(parts) => parts.iter().any(has_interval),
        Expression::Prefix(_) | Expression::Range(_) => true,
        // `eth*` stands for many names.
        Expression::Value(Value::Text(_) | Value::Interface(_)) => key.to_string().contains('*'),
        _ => false,
    }
}

/// The first and the last value of a key; `None` for one that is not a number.
fn bounds(key: &Expression) -> Option<(u128, u128)> {
    let number = |value: &Value| match value {
        Value::Number(number) => Some(u128::from(*number)),
        Value::Address(IpAddr::V4(address)) => Some(u128::from(address.to_bits())),
        Value::Address(IpAddr::V6(address)) => Some(address.to_bits()),
        _ => None,
    };
    match key {
        Expression::Value(value) => number(value).map(|value| (value, value)),
        Expression::Range(ends) => Some((number(&ends.0)?, number(&ends.1)?)),
        Expression::Prefix(prefix) => {
            let first = number(&prefix.value)?;
            let width = match &prefix.value {
                Value::Address(IpAddr::V4(_)) => 32,
                Value::Address(IpAddr::V6(_)) => 128,
                _ => return None,
            };
            let rest = u32::checked_sub(width, u32::from(prefix.length))?;
            let mask = u128::MAX.checked_shr(128 - rest).filter(|_| rest > 0).unwrap_or(0);
            Some((first & !mask, first | mask))
        }
        _ => None,
    }
}
