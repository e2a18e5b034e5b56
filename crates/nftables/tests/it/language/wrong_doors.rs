//! The wrong rules of the corpus (`wrong/`) through the other doors: what is refused as text is refused as
//! JSON and as values, where there is a tree of it.
//!
//! A rule has one where each of its statements is right by itself, in a table of some family: it is their
//! order or their place that is wrong. What nft's text cannot say at all has no tree, and no other door.

use sluicegate_nftables::lang::Statement;
use sluicegate_nftables::lang::parse::{ParseOptions, Script};
use sluicegate_nftables::{
    ApplyOptions, Error, Family, Object, Operation, Rule, Set, SetId, TableId, Transaction,
};

use crate::language::format::wrong;
use crate::language::wrong::WORLD;

/// How many rules of the corpus have a tree at least.
const FLOOR: usize = 70;

/// What JSON takes: it says the IP version by the address. nft's own reader needs a match before it, which
/// nft leaves out of what it lists.
const TAKEN_AS_JSON: &[&str] = &["add rule inet t c ct reply daddr 10.0.0.1"];

const FAMILIES: [Family; 6] =
    [Family::IP, Family::IP6, Family::INET, Family::ARP, Family::BRIDGE, Family::NETDEV];

#[test]
fn what_text_refuses_is_refused_by_each_door() {
    let world = Transaction::parse(WORLD).expect("the world is right");
    let number = world.operations().len();
    let place = format!("/nftables/{number}/");
    let inputs = wrong();
    let rules: Vec<_> = inputs.iter().filter_map(|input| Some((input, Place::of(&input.text)?))).collect();
    let sets = |id: &SetId| set(&world, id).cloned();
    let mut options = ParseOptions::default();
    options.sets = Some(&sets);
    let (mut doors, mut faults) = (0, Vec::new());
    for (input, place_of) in &rules {
        // The kernel's refusals are its own.
        if !input.verdict.starts_with("nft") || Script::parse(&input.text, &Default::default()).is_ok() {
            continue;
        }
        let Some(statements) = statements(place_of, &options) else { continue };
        doors += 1;
        let rule = statements.into_iter().fold(place_of.chain(), Rule::then);
        let mut values = world.clone();
        values.add(rule);
        match values.encode(ApplyOptions::default()) {
            Err(Error::Statement { operation, .. }) if operation == number => {}
            other => faults.push(format!("values: {}: {:?}", input.text, other.map(drop))),
        }
        let is_taken = TAKEN_AS_JSON.contains(&input.text.as_str());
        match Transaction::from_json(&values.to_json().to_string()) {
            Err(error) if error.mistakes.iter().all(|mistake| mistake.path.starts_with(&place)) => {}
            Ok(_) if is_taken => {}
            other => faults.push(format!("JSON: {}: {:?}", input.text, other.map(drop))),
        }
    }
    println!("{} inputs, {} of them rules, {doors} through three doors", inputs.len(), rules.len());
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    // As many have one, and the corpus only grows.
    assert!(doors >= FLOOR, "{doors} rules have a tree");
}

/// Where a rule is added.
struct Place<'a> {
    table: TableId,
    chain: &'a str,
    statements: &'a str,
}

impl<'a> Place<'a> {
    /// That of `add rule ip t c tcp dport 22`, alone in one line.
    fn of(text: &'a str) -> Option<Self> {
        let rest = text.trim().strip_prefix("add rule ").filter(|rest| !rest.contains(['\n', ';']))?;
        let mut words = rest.splitn(4, ' ');
        let mut word = || words.next();
        let (family, table, chain) = (word()?.parse().ok()?, word()?.parse().ok()?, word()?);
        Some(Self { table: TableId::new(family, table), chain, statements: word()? })
    }

    fn chain(&self) -> Rule {
        self.table.chain(self.chain.parse().expect("a name")).rule()
    }
}

/// The fewest statements that these words can be, each as it is read alone.
fn statements(place: &Place<'_>, options: &ParseOptions<'_>) -> Option<Vec<Statement>> {
    let text = place.statements;
    let blanks: Vec<_> = text.match_indices(' ').map(|(at, _)| at).collect();
    let starts: Vec<_> = std::iter::once(0).chain(blanks.iter().map(|at| at + 1)).collect();
    let ends: Vec<_> = blanks.into_iter().chain([text.len()]).collect();
    // Those of the words before each.
    let mut before: Vec<Option<Vec<Statement>>> = vec![None; ends.len() + 1];
    before[0] = Some(Vec::new());
    for (first, start) in starts.iter().enumerate() {
        let Some(list) = before[first].clone() else { continue };
        for (last, end) in ends.iter().enumerate().skip(first) {
            let best = &mut before[last + 1];
            if best.as_ref().is_some_and(|best| best.len() <= list.len() + 1) {
                continue;
            }
            if let Some(statement) = statement(place, text[*start..*end].trim(), options) {
                *best = Some([list.as_slice(), &[statement]].concat());
            }
        }
    }
    before.pop()?
}

/// A statement as it is read in its family, or else in another.
fn statement(place: &Place<'_>, text: &str, options: &ParseOptions<'_>) -> Option<Statement> {
    // In another family the words may say an IP version that they do not say here.
    let versions = |text: &str| text.split(' ').filter(|word| matches!(*word, "ip" | "ip6")).count();
    std::iter::once(place.table.family)
        .chain(FAMILIES)
        .find_map(|family| Statement::parse_with(family, text, options).ok())
        .filter(|statement| versions(&statement.to_string()) <= versions(text))
}

/// A set of that name, of whichever table.
fn set<'a>(world: &'a Transaction, id: &SetId) -> Option<&'a Set> {
    world.operations().iter().find_map(|operation| match operation {
        Operation::Add(Object::Set(set)) if set.id.name == id.name => Some(&**set),
        _ => None,
    })
}
