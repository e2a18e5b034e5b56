//! The rules of the corpus in JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sluicegate_netlink::NetlinkFamily;
use sluicegate_nftables::lang::parse::ParseOptions;
use sluicegate_nftables::{Family, SetId, Transaction};

use crate::language::format::{Context, contexts};
use crate::language::json::scripts::without_expires;
use crate::language::json::{Listed, known, listing, nft};
use crate::language::kernel::{self, bytecode, namespace, open};
use crate::language::rules::{Other, each_file, listed_rules, parse, parse_beside};

#[test]
fn rules_are_listed_in_json_as_nft_lists_them() {
    run(known::LISTED, list);
}

#[test]
fn rules_that_nft_lists_in_json_are_read_back() {
    run(known::READ, read);
}

#[test]
fn rules_that_we_print_in_json_are_read_by_nft() {
    run(known::WRITTEN, write);
}

fn run(
    known: &[crate::language::known::Known],
    compare: impl for<'a> Fn(&'a [Context<'static>]) -> Vec<Other<'a>> + Sync,
) {
    if !testns::have(&["nft", "ip"]) {
        return;
    }
    let contexts = contexts();
    let others = each_file(&contexts, compare);
    let count: usize = contexts.iter().map(|context| context.rules.len()).sum();
    println!("{} of {count} rules are otherwise", others.len());
    crate::language::known::check(known, &others);
}

/// The contexts of a file that this kernel has what is needed for, and a script of all their rules.
fn loadable<'a>(contexts: &'a [Context<'static>]) -> (Vec<&'a Context<'static>>, String) {
    let here: Vec<_> = contexts.iter().filter(|context| context.needs.is_none_or(kernel::has)).collect();
    let script = here.iter().map(|context| context.script(context.rules.iter().copied())).collect();
    (here, script)
}

/// The tables without the rules.
fn ground(here: &[&Context<'_>]) -> String {
    here.iter().map(|context| context.script([])).collect()
}

/// Prints what nft loaded.
fn list<'a>(contexts: &'a [Context<'static>]) -> Vec<Other<'a>> {
    let Some(namespace) = namespace() else { return Vec::new() };
    let (here, script) = loadable(contexts);
    let (theirs, ours) = namespace.run(|| {
        kernel::nft(&script).unwrap_or_else(|e| panic!("{}: {e}", contexts[0].file));
        let content = kernel::ruleset().content();
        (Listed::by_nft(&listing()), Listed::by_us(&content, &kernel::machine()))
    });
    assert_eq!(theirs.len(), ours.len(), "{}", contexts[0].file);
    let mut rules = Rules::new(&here);
    let mut others = Vec::new();
    for (theirs, ours) in theirs.iter().zip(&ours) {
        let rule = rules.next(theirs);
        if without_expires(&theirs.text) == without_expires(&ours.text) {
            continue;
        }
        let rule = rule.unwrap_or_else(|| Box::leak(theirs.place().into_boxed_str()));
        let detail = format!("nft:  {}\nours: {}", theirs.text, ours.text);
        others.push(Other { file: contexts[0].file, rule, what: "listed otherwise", detail });
    }
    others
}

/// Reads what nft lists, rule by rule, and sends it elsewhere. It has to come out as it was, or as it comes
/// out where nft reads it: not everything that a rule does is in its JSON.
fn read<'a>(contexts: &'a [Context<'static>]) -> Vec<Other<'a>> {
    let (Some(first), Some(second), Some(third)) = (namespace(), namespace(), namespace()) else {
        return Vec::new();
    };
    let file = contexts[0].file;
    let (here, script) = loadable(contexts);
    let (listed, content, loaded) = first.run(|| {
        kernel::nft(&script).unwrap_or_else(|e| panic!("{file}: {e}"));
        (Listed::by_nft(&listing()), kernel::ruleset().content(), Loaded::read())
    });
    let sets = |id: &SetId| kernel::find(&content, id);
    let machine = second.run(|| {
        kernel::nft(&ground(&here)).unwrap_or_else(|e| panic!("{file}: {e}"));
        kernel::machine()
    });
    let mut options = machine.options();
    options.sets = Some(&sets);
    let mut rules = Rules::new(&here);
    let (mut others, mut good) = (Vec::new(), Vec::new());
    let mut together = Transaction::new();
    for object in &listed {
        let Some((context, number)) = rules.position(object) else { continue };
        let rule = context.rules[number];
        let mut other = |what, detail| {
            let detail = format!("{detail}\n{}", object.text);
            others.push(Other { file, rule, what, detail });
        };
        let document = json!({"nftables": [object.value]}).to_string();
        match Transaction::from_json_with(&document, &options) {
            Err(error) => other("refused by our reader", error.to_string()),
            Ok(transaction) => {
                let check = || kernel::check(&mut open(NetlinkFamily::NETFILTER), &transaction);
                match second.run(check) {
                    Err(error) => other("not sent", format!("{error}\n{transaction}")),
                    Ok(()) => {
                        together.append(transaction);
                        good.push((context, number, object));
                    }
                }
            }
        }
    }
    let again = second.run(|| {
        kernel::apply(&together).unwrap_or_else(|e| panic!("{file}: {e}"));
        Loaded::read()
    });
    let mut refused = Vec::new();
    let by_nft = third.run(|| {
        kernel::nft(&ground(&here)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let rules = good.iter().enumerate().map(|(at, (.., object))| (at, object.value.clone()));
        rules.collect::<Vec<_>>().chunks(32).for_each(|chunk| load(chunk, &mut refused));
        Loaded::read()
    });
    let refused: BTreeSet<usize> = refused.into_iter().map(|(at, _)| at).collect();
    let mut numbers: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for (at, (context, number, object)) in good.into_iter().enumerate() {
        let [ours, nft] = numbers.entry(place(context)).or_default();
        let is_read = !refused.contains(&at);
        if let Some((what, detail)) = loaded.difference(&again, context, [number, *ours])
            && (!is_read || by_nft.difference(&again, context, [*nft, *ours]).is_some())
        {
            let detail = format!("{detail}\n{}", object.text);
            others.push(Other { file, rule: context.rules[number], what, detail });
        }
        *ours += 1;
        *nft += usize::from(is_read);
    }
    others
}

/// Prints the rules as commands for nft.
fn write<'a>(contexts: &'a [Context<'static>]) -> Vec<Other<'a>> {
    let (Some(first), Some(second)) = (namespace(), namespace()) else { return Vec::new() };
    let file = contexts[0].file;
    let (here, script) = loadable(contexts);
    let loaded = first.run(|| {
        kernel::nft(&script).unwrap_or_else(|e| panic!("{file}: {e}"));
        Loaded::read()
    });
    let machine = second.run(|| {
        kernel::nft(&ground(&here)).unwrap_or_else(|e| panic!("{file}: {e}"));
        kernel::machine()
    });
    let options = machine.options();
    let mut others = Vec::new();
    for context in here {
        let commands = commands(context, &options);
        let mut refused = Vec::new();
        second.run(|| commands.chunks(32).for_each(|chunk| load(chunk, &mut refused)));
        let again = second.run(Loaded::read);
        let mut there = 0;
        for (number, command) in &commands {
            let rule = context.rules[*number];
            let mut other = |what, detail: &str| {
                let detail = format!("{detail}\n{command}");
                others.push(Other { file, rule, what, detail });
            };
            if let Some((_, error)) = refused.iter().find(|(refused, _)| refused == number) {
                other("refused by nft", error);
                continue;
            }
            if let Some((_, detail)) = loaded.difference(&again, context, [*number, there]) {
                other("read otherwise by nft", &detail);
            }
            there += 1;
        }
    }
    others
}

/// The rules as commands in JSON, but for those that our parser refuses.
fn commands(context: &Context<'_>, options: &ParseOptions<'_>) -> Vec<(usize, Value)> {
    let ground = parse(&context.script([]), options).unwrap_or_else(|e| panic!("{}: {e}", context.file));
    let command = |(number, rule): (usize, &&str)| {
        let transaction = parse_beside(&ground, &context.command(rule), options).ok()?;
        let command = transaction.operations().first()?.to_json();
        Some((number, command.into()))
    };
    context.rules.iter().enumerate().filter_map(command).collect()
}

/// Loads commands by nft, as many at once as it takes.
fn load(commands: &[(usize, Value)], refused: &mut Vec<(usize, String)>) {
    let document: Vec<Value> = commands.iter().map(|(_, command)| command.clone()).collect();
    let Err(error) = nft(&document) else { return };
    match commands {
        [] => {}
        [(number, _)] => refused.push((*number, error)),
        several => {
            let (left, right) = several.split_at(several.len() / 2);
            load(left, refused);
            load(right, refused);
        }
    }
}

fn place(context: &Context<'_>) -> String {
    format!("{} {}", context.family, context.table)
}

/// What is in a namespace: the rules of each table's chain `c`.
struct Loaded {
    text: crate::language::rules::Listed,
    code: std::collections::HashMap<(Family, String, String), Vec<String>>,
}

impl Loaded {
    /// Reads what is in this namespace.
    fn read() -> Self {
        Self { text: listed_rules(), code: bytecode(&kernel::ruleset()) }
    }

    /// Where a rule here is another than one there.
    fn difference(
        &self,
        there: &Self,
        context: &Context<'_>,
        [a, b]: [usize; 2],
    ) -> Option<(&'static str, String)> {
        let chain =
            (context.family.parse::<Family>().expect("a family"), context.table.clone(), "c".to_owned());
        let (code, other_code) = (&self.code[&chain][a], there.code[&chain].get(b)?);
        let place = place(context);
        let (text, other_text) = (&self.text.rules[&place][a], there.text.rules[&place].get(b)?);
        if text != other_text {
            return Some(("read otherwise", format!("< {text}\n> {other_text}")));
        }
        (code != other_code).then(|| ("other bytecode", format!("{text}\n< {code}\n> {other_code}")))
    }
}

/// Finds the rule of the corpus for each rule of a listing.
struct Rules<'c, 'a> {
    contexts: &'c [&'a Context<'static>],
    /// How many rules of each table were met.
    met: BTreeMap<String, usize>,
}

impl<'c, 'a> Rules<'c, 'a> {
    fn new(contexts: &'c [&'a Context<'static>]) -> Self {
        Self { contexts, met: BTreeMap::new() }
    }

    /// The context and the number of a rule of a chain `c`.
    fn position(&mut self, listed: &Listed) -> Option<(&'a Context<'static>, usize)> {
        let ("rule", of) = listed.object() else { return None };
        let text = |name: &str| of[name].as_str().unwrap_or_default();
        if text("chain") != "c" {
            return None;
        }
        let table = format!("{} {}", text("family"), text("table"));
        let context = self.contexts.iter().find(|context| place(context) == table)?;
        let met = self.met.entry(table).or_default();
        *met += 1;
        Some((context, *met - 1))
    }

    fn next(&mut self, listed: &Listed) -> Option<&'a str> {
        let (context, number) = self.position(listed)?;
        context.rules.get(number).copied()
    }
}
