//! What nft lists, and what we print, is read back to the same trees.

use sluicegate_nftables::lang::parse::ParseOptions;
use sluicegate_nftables::{Rule, SetId, TableContent, Transaction};

use crate::language::format::{Context, contexts};
use crate::language::kernel::{self, namespace, nft};
use crate::language::known;
use crate::language::rules::{Other, each_file, is_sent_alike, parse, rules_of};

#[test]
fn what_nft_lists_is_read_back_to_what_is_listed() {
    if !testns::have(&["nft", "ip"]) {
        return;
    }
    let contexts = contexts();
    let others = each_file(&contexts, compare);
    known::check(known::LISTINGS, &others);
}

/// Loads the rules of a file by nft, and parses its listing.
fn compare<'a>(contexts: &'a [Context<'static>]) -> Vec<Other<'a>> {
    let Some(namespace) = namespace() else { return Vec::new() };
    let here: Vec<_> = contexts.iter().filter(|context| context.needs.is_none_or(kernel::has)).collect();
    let script: String = here.iter().map(|context| context.script(context.rules.iter().copied())).collect();
    let (listed, content, machine) = namespace.run(|| {
        nft(&script).unwrap_or_else(|e| panic!("{}: {e}", contexts[0].file));
        let listed = testns::sh("TZ=UTC nft list ruleset");
        (listed, kernel::ruleset().content(), kernel::machine())
    });
    let (mut others, options) = (Vec::new(), machine.options());
    for context in here {
        let place = format!("{} {}", context.family, context.table);
        let Some(held) = content.iter().find(|table| table.table.id.to_string() == place) else { continue };
        let block = block(&listed, &place);
        let lines = rule_lines(&block);
        let rules: Vec<_> = rules_of_chain(held).collect();
        assert_eq!((lines.len(), rules.len()), (context.rules.len(), context.rules.len()), "{place}");
        for ((rule, line), held) in context.rules.iter().zip(&lines).zip(rules) {
            if let Err((what, detail)) = read_back(context, line, held, &content, &options) {
                others.push(Other { file: context.file, rule, what, detail });
            }
        }
    }
    others
}

/// Parses a rule as it is listed; it has to be the rule that is held.
fn read_back(
    context: &Context<'_>,
    line: &str,
    held: &Rule,
    content: &[TableContent],
    options: &ParseOptions<'_>,
) -> Result<(), (&'static str, String)> {
    let sets = |id: &SetId| kernel::find(content, id);
    let mut options = options.clone();
    options.sets = Some(&sets);
    let transaction = parse(&context.command(line), &options).map_err(|error| ("listing refused", error))?;
    let read = rules_of(&transaction).next().ok_or(("listing refused", "without a rule".to_owned()))?;
    let mut bare = held.clone();
    (bare.handle, bare.position, bare.index) = (None, None, None);
    let alone = |rule: &Rule| {
        let mut transaction = Transaction::new();
        transaction.add(rule.clone());
        transaction
    };
    if *read == bare || is_sent_alike(&alone(read), &alone(&bare)) {
        return Ok(());
    }
    Err((
        "listing read otherwise",
        format!("{line}\nheld: {:?}\nread: {:?}", bare.statements, read.statements),
    ))
}

fn rules_of_chain(table: &TableContent) -> impl Iterator<Item = &Rule> {
    table.chains.iter().filter(|(chain, _)| chain.id.name.as_str() == "c").flat_map(|(_, rules)| rules)
}

/// The lines of one table.
fn block<'l>(listing: &'l str, place: &str) -> Vec<&'l str> {
    let head = format!("table {place} {{");
    listing.lines().skip_while(|line| *line != head).take_while(|line| *line != "}").collect()
}

/// Whether every brace outside of quotes is closed.
fn is_closed(text: &str) -> bool {
    let outside: String = text.split('"').step_by(2).collect();
    outside.matches('{').count() == outside.matches('}').count()
}

/// The rules of the chain `c`. One with a chain inside has several lines.
fn rule_lines(block: &[&str]) -> Vec<String> {
    let mut rules = Vec::new();
    let mut rule = String::new();
    let lines =
        block.iter().skip_while(|line| **line != "\tchain c {").skip(1).take_while(|line| **line != "\t}");
    for line in lines.filter(|line| !line.starts_with("\t\ttype ")) {
        rule += line;
        rule.push('\n');
        if is_closed(&rule) {
            rules.push(std::mem::take(&mut rule).trim().to_owned());
        }
    }
    rules
}
