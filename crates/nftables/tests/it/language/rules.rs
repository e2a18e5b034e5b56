//! Rules: parsed and sent by netlink in one namespace, loaded by nft in another.

use std::collections::{BTreeMap, BTreeSet};

use sluicegate_netlink::NetlinkFamily;
use sluicegate_nftables::lang::parse::ParseOptions;
use sluicegate_nftables::{ApplyOptions, Family, Object, Operation, Rule, Set, SetId, Transaction};

use crate::beside;
use crate::language::format::{Context, contexts};
use crate::language::kernel::{self, bytecode, namespace, nft, open};
use crate::language::known;

/// What came of a rule that is not as nft makes it.
pub(crate) struct Other<'a> {
    pub(crate) file: &'static str,
    pub(crate) rule: &'a str,
    /// What is otherwise.
    pub(crate) what: &'static str,
    pub(crate) detail: String,
}

#[test]
fn rules_are_sent_as_nft_sends_them() {
    if !testns::have(&["nft", "ip"]) {
        return;
    }
    let contexts = contexts();
    let others = each_file(&contexts, compare);
    let count: usize = contexts.iter().map(|context| context.rules.len()).sum();
    println!("{} of {count} rules are otherwise", others.len());
    known::check(known::RULES, &others);
    assert!(known::count(known::RULES) * 100 <= count, "more than one in a hundred is otherwise");
}

/// Tries the files beside each other.
pub(crate) fn each_file<'a>(
    contexts: &'a [Context<'static>],
    compare: impl Fn(&'a [Context<'static>]) -> Vec<Other<'a>> + Sync,
) -> Vec<Other<'a>> {
    let files: Vec<_> = contexts.chunk_by(|a, b| a.file == b.file).collect();
    let results = beside::each(&files, || Some(()), |(), file| compare(file));
    let mut others: Vec<_> = results.into_iter().flatten().collect();
    others.sort_by_key(|other| (other.file, other.rule, other.what));
    others
}

/// Loads all rules of a file in two namespaces.
pub(crate) fn compare<'a>(contexts: &'a [Context<'static>]) -> Vec<Other<'a>> {
    let (Some(by_nft), Some(by_us)) = (namespace(), namespace()) else { return Vec::new() };
    let mut others = Vec::new();
    let machine = by_us.run(kernel::machine);
    let options = machine.options();
    let mut taken: Vec<(&Context<'_>, Vec<&str>)> = Vec::new();
    for context in contexts {
        let mut good = Vec::new();
        let here = context.needs.is_none_or(kernel::has);
        let ground = parse(&context.script([]), &options).unwrap_or_else(|e| panic!("{}: {e}", context.file));
        if here {
            by_us.run(|| kernel::apply(&ground)).unwrap_or_else(|e| panic!("{}: {e}", context.file));
        }
        let checked = by_us.run(|| {
            let options = machine.options();
            let mut socket = open(NetlinkFamily::NETFILTER);
            let results = context.rules.iter().map(|rule| {
                let transaction = parse_beside(&ground, &context.command(rule), &options)
                    .map_err(|error| ("refused by the parser", error))?;
                again(&ground, &transaction, &options).map_err(|error| ("not read as printed", error))?;
                if here {
                    kernel::check(&mut socket, &transaction).map_err(|error| ("not sent", error))?;
                }
                Ok(())
            });
            results.collect::<Vec<_>>()
        });
        for (rule, result) in context.rules.iter().zip(checked) {
            match result {
                Ok(()) => good.push(*rule),
                Err((what, detail)) => others.push(Other { file: context.file, rule, what, detail }),
            }
        }
        if here {
            taken.push((context, good));
        }
    }
    let script: String = taken.iter().map(|(context, rules)| context.script(rules.iter().copied())).collect();
    let transaction = parse(&format!("flush ruleset\n{script}"), &options).unwrap_or_else(|e| panic!("{e}"));
    by_us.run(|| kernel::apply(&transaction)).unwrap_or_else(|e| panic!("{}: {e}", contexts[0].file));
    by_nft.run(|| nft(&script)).unwrap_or_else(|e| panic!("{}: {e}", contexts[0].file));
    let (theirs, ours) = (by_nft.run(kernel::ruleset), by_us.run(kernel::ruleset));
    let (their_code, our_code) = (bytecode(&theirs), bytecode(&ours));
    let (their_text, our_text) = (by_nft.run(listed_rules), by_us.run(listed_rules));
    for (context, rules) in taken {
        let family: Family = context.family.parse().expect("a family");
        let chain = (family, context.table.clone(), "c".to_owned());
        let code = (&their_code[&chain], &our_code[&chain]);
        assert_eq!((code.0.len(), code.1.len()), (rules.len(), rules.len()), "{}", context.file);
        let place = format!("{} {}", context.family, context.table);
        let text = (&their_text.rules[&place], &our_text.rules[&place]);
        for (number, rule) in rules.into_iter().enumerate() {
            let mut other = |what, (theirs, ours): (&str, &str)| {
                if theirs != ours {
                    let detail = format!("nft:\n{theirs}\nours:\n{ours}");
                    others.push(Other { file: context.file, rule, what, detail });
                }
            };
            other("other bytecode", (&code.0[number], &code.1[number]));
            other("listed otherwise", (&text.0[number], &text.1[number]));
        }
    }
    assert_eq!(their_text.rest, our_text.rest, "{}", contexts[0].file);
    others
}

pub(crate) fn parse(text: &str, options: &ParseOptions<'_>) -> Result<Transaction, String> {
    Transaction::parse_with(text, options).map_err(|error| error.to_string())
}

/// Parses a command about a table that another transaction makes.
pub(crate) fn parse_beside(
    ground: &Transaction,
    text: &str,
    options: &ParseOptions<'_>,
) -> Result<Transaction, String> {
    let is = |set: &&Set, id: &SetId| (&set.id.table, &set.id.name) == (&id.table, &id.name);
    let sets = |id: &SetId| sets(ground).find(|set| is(set, id)).cloned();
    let mut options = options.clone();
    options.sets = Some(&sets);
    parse(text, &options)
}

fn sets(transaction: &Transaction) -> impl Iterator<Item = &Set> {
    transaction.operations().iter().filter_map(|operation| match operation {
        Operation::Add(Object::Set(set)) => Some(&**set),
        _ => None,
    })
}

/// Reads what a transaction prints, which has to be the same transaction.
fn again(ground: &Transaction, transaction: &Transaction, options: &ParseOptions<'_>) -> Result<(), String> {
    let text = transaction.to_string();
    let read = parse_beside(ground, &text, options)?;
    let beside = |transaction: &Transaction| {
        let mut both = ground.clone();
        both.append(transaction.clone());
        both
    };
    let same = read == *transaction || is_sent_alike(&beside(&read), &beside(transaction));
    let printed = read.to_string();
    if same && printed == text {
        return Ok(());
    }
    Err(format!("printed: {text}again:   {printed}built: {transaction:?}\nread:  {read:?}"))
}

/// Trees may differ in what the kernel is not told: a number that is typed in one and not in the other.
pub(crate) fn is_sent_alike(one: &Transaction, other: &Transaction) -> bool {
    let sent = |transaction: &Transaction| {
        let batch = transaction.encode(ApplyOptions::default()).ok()?;
        Some(format!("{batch:?}"))
    };
    sent(one).is_some() && sent(one) == sent(other)
}

/// A listing taken apart: the rules of the chains `c`, and all other lines.
pub(crate) struct Listed {
    pub(crate) rules: BTreeMap<String, Vec<String>>,
    rest: Vec<String>,
}

/// The rules of each table's chain `c`, as nft lists them.
pub(crate) fn listed_rules() -> Listed {
    let text = testns::sh("TZ=UTC nft -s -a list ruleset");
    let (mut listed, mut table, mut within) =
        (Listed { rules: BTreeMap::new(), rest: Vec::new() }, String::new(), false);
    let mut rule = String::new();
    for line in text.lines() {
        let bare = line.split(" # handle ").next().unwrap_or_default();
        if let Some(name) = line.strip_prefix("table ") {
            table = name.split(" {").next().unwrap_or_default().to_owned();
            listed.rest.push(bare.to_owned());
        } else if bare == "\tchain c {" {
            within = true;
            listed.rules.insert(table.clone(), Vec::new());
        } else if within && line == "\t}" {
            within = false;
        } else if within && !line.starts_with("\t\ttype ") {
            // A rule with a chain inside has several lines, of which the last has the handle.
            let inner = line.starts_with("\t\t\t");
            rule += bare;
            if line.contains(" # handle ") && !inner {
                listed
                    .rules
                    .entry(table.clone())
                    .or_default()
                    .push(kernel::without_numbers(&std::mem::take(&mut rule)));
            } else {
                rule.push('\n');
            }
        } else {
            listed.rest.push(kernel::without_numbers(bare));
        }
    }
    listed
}

/// The rules of a transaction.
pub(crate) fn rules_of(transaction: &Transaction) -> impl Iterator<Item = &Rule> {
    transaction.operations().iter().filter_map(|operation| match operation {
        Operation::Add(Object::Rule(rule)) => Some(rule),
        _ => None,
    })
}

#[test]
fn every_known_difference_is_about_a_rule_of_the_corpus() {
    let contexts = contexts();
    let all: BTreeSet<_> =
        contexts.iter().flat_map(|context| context.rules.iter().map(|rule| (context.file, *rule))).collect();
    let known = known::RULES.iter().flat_map(|known| known.of).map(|(file, _, rule)| (*file, *rule));
    let strange: Vec<_> = known.filter(|of| !all.contains(of)).collect();
    assert!(strange.is_empty(), "{strange:?}");
}
