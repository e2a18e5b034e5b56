//! Generated trees of every kind: what is printed, as text or as JSON, is read as the same tree.
//!
//! `PROPTEST_CASES=20000 cargo test -p sluicegate-nftables --all-features --test trees` tries more of them.

mod command;
mod expression;
mod object;
mod statement;

use std::collections::BTreeSet;
use std::fmt::Debug;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use sluicegate_nftables::lang::Statement;
use sluicegate_nftables::lang::parse::{ParseOptions, Script};
use sluicegate_nftables::{Family, Name, Operation, Rule, Set, SetId, TableId, Transaction};

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

pub(crate) fn table(family: Family) -> TableId {
    TableId::new(family, name("t"))
}

proptest! {
    #[test]
    fn rules_are_read_as_they_are_printed((family, statement) in statement::every_kind()) {
        check_rule(family, vec![statement])?;
    }

    #[test]
    fn comparisons_are_read_as_they_are_printed(comparison in expression::comparison()) {
        check_rule(Family::INET, vec![comparison.into()])?;
    }

    #[test]
    fn rules_of_several_statements_are_read_as_they_are_printed(
        counts in prop::collection::vec(statement::stateful(), 0..4),
        last in statement::of_family(Family::INET),
    ) {
        check_rule(Family::INET, counts.into_iter().chain([last]).collect())?;
    }

    #[test]
    fn operations_are_read_as_they_are_printed(operation in command::operation()) {
        check(&operation)?;
    }

    #[test]
    fn commands_are_read_as_they_are_printed(command in command::every_kind()) {
        let text = command.to_string();
        let sets = |id: &SetId| known_set(id);
        let mut options = ParseOptions::default();
        options.sets = Some(&sets);
        let script = Script::parse(&text, &options);
        let script = script.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(script.commands, vec![command], "{}", text);
    }
}

fn check_rule(family: Family, statements: Vec<Statement>) -> Result<(), TestCaseError> {
    let chain = table(family_for(family, &statements)).chain(name("c"));
    let statements = statement::with_ports(statements);
    check(&Operation::Add(Rule::new(chain).then_all(statements).into()))
}

/// ARP packets are in tables of their own.
pub(crate) fn family_for(family: Family, statements: &[Statement]) -> Family {
    let of_arp = |of: &Statement| of.to_string().starts_with("arp ");
    if statements.iter().any(of_arp) { Family::ARP } else { family }
}

/// Prints an operation and reads it, both ways.
fn check(operation: &Operation) -> Result<(), TestCaseError> {
    let mut transaction = Transaction::new();
    transaction.push(operation.clone());
    let sets = |id: &SetId| known_set(id);
    let mut options = ParseOptions::default();
    options.sets = Some(&sets);

    let text = transaction.to_string();
    let read = Transaction::parse_with(&text, &options).map_err(|e| TestCaseError::fail(e.to_string()))?;
    prop_assert_eq!(read.operations(), transaction.operations(), "{}", text);
    prop_assert_eq!(read.to_string(), text);
    #[cfg(feature = "json")]
    {
        let json = transaction.to_json().to_string();
        let read = Transaction::from_json_with(&json, &options)
            .map_err(|error| TestCaseError::fail(format!("{error}\n{json}")))?;
        prop_assert_eq!(read.operations(), transaction.operations(), "{}", json);
        prop_assert_eq!(read.to_json().to_string(), json);
    }
    Ok(())
}

/// A set that rules and elements refer to. Whether a name is that of a set or of a map a text may not say.
fn known_set(id: &SetId) -> Option<Set> {
    let same = |of: &SetId| (of.table.family, &of.name) == (id.table.family, &id.name);
    object::sets().into_iter().find(|set| same(&set.id))
}

/// Low-level expressions have neither text nor JSON that can be read: both say so.
#[test]
fn low_level_expressions_are_not_read() {
    use sluicegate_nftables::expr::Expr;
    use sluicegate_nftables::expr::kind::Counter;
    let low_level = Expr::Counter(Counter { bytes: Some(0), packets: Some(0) });
    let rule = table(Family::INET).chain(name("c")).rule().then(Statement::Raw(vec![low_level]));
    let mut transaction = Transaction::new();
    transaction.add(rule);
    Transaction::parse(&transaction.to_string()).expect_err("a rule without statements");
    #[cfg(feature = "json")]
    Transaction::from_json(&transaction.to_json().to_string()).expect_err("no statement of nft");
}

/// Every variant of the language is generated: a new one has to get a strategy, or a reason here.
#[test]
fn every_variant_is_generated() {
    const STATEMENT: &str = include_str!("../../../src/tree/statement.rs");
    const VERDICT: &str = include_str!("../../../src/expr/verdict.rs");
    const EXPRESSION: &str = include_str!("../../../src/tree/expression.rs");
    const VALUE: &str = include_str!("../../../src/tree/value.rs");
    const OPERATION: &str = include_str!("../../../src/transaction/operation.rs");
    const COMMAND: &str = include_str!("../../../src/transaction/command.rs");
    const SET: &str = include_str!("../../../src/object/set/mod.rs");
    const ELEMENT: &str = include_str!("../../../src/object/element/mod.rs");
    const STATEFUL: &str = include_str!("../../../src/object/stateful/mod.rs");
    const TUNNEL: &str = include_str!("../../../src/object/stateful/tunnel.rs");

    let statements = || statement::every_kind().prop_map(|(_, statement)| statement);
    // Low-level expressions are not read: see the test above.
    generates(STATEMENT, "Statement", &["Raw"], statements(), first_word);
    generates(STATEMENT, "MatchOp", &[], expression::comparison(), |of| format!("{:?}", of.op));
    generates(VERDICT, "Verdict", &[], statement::verdict(), first_word);
    generates(STATEMENT, "TimeUnit", &[], statement::limit(), |of| format!("{:?}", of.per));
    generates(STATEMENT, "Reject", &[], statement::reject(), first_word);
    generates(STATEMENT, "NatTarget", &[], statement::nat(Family::IP), |of| first_word(&of.to));
    generates(STATEMENT, "SetOp", &[], statement::set_update(), |of| format!("{:?}", of.op));
    generates(STATEMENT, "ObjectName", &[], statement::object_reference(), |of| first_word(&of.object));
    generates(EXPRESSION, "Expression", &[], expression::every_kind(), first_word);
    generates(EXPRESSION, "BinaryOp", &[], expression::calculated(), Clone::clone);
    generates(EXPRESSION, "Mapping", &[], statement::vmap(), |of| first_word(&of.map));
    generates(VALUE, "Value", &[], expression::value(), first_word);
    generates(OPERATION, "Operation", &[], command::operation(), first_word);
    generates(OPERATION, "Object", &[], object::every_kind(), first_word);
    generates(OPERATION, "Target", &[], command::target(), first_word);
    generates(OPERATION, "HandleId", &[], command::handle_id(), first_word);
    generates(OPERATION, "Flush", &[], command::flush(), first_word);
    // Operations have their own test.
    generates(COMMAND, "Command", &["Operation"], command::every_kind(), first_word);
    generates(COMMAND, "Subject", &[], command::subject(), first_word);
    generates(COMMAND, "Within", &[], command::within(), first_word);
    generates(COMMAND, "MonitorEvent", &[], command::every_kind(), |of| format!("{of:?}"));
    generates(COMMAND, "MonitorObject", &[], command::every_kind(), |of| format!("{of:?}"));
    generates(COMMAND, "Description", &[], command::every_kind(), |of| format!("{of:?}"));
    // nft has no word for the width of an integer: see the test of JSON.
    generates(SET, "SetType", &["Parts"], object::set(), |of| format!("{of:?}"));
    generates(SET, "SetData", &[], object::set(), |of| format!("{of:?}"));
    // The other policy is the default, which is not printed.
    generates(SET, "SetPolicy", &["Performance"], object::set(), |of| format!("{of:?}"));
    generates(ELEMENT, "ElementData", &[], object::elements(), |of| {
        of.list.iter().map(|element| format!("{:?} ", element.data())).collect()
    });
    generates(STATEFUL, "ObjectConfig", &[], object::config(), first_word);
    generates(TUNNEL, "TunnelEndpoints", &[], object::config(), |of| format!("{of:?}"));
    generates(TUNNEL, "TunnelOptions", &[], object::config(), |of| format!("{of:?}"));
}

fn first_word(of: &impl Debug) -> String {
    format!("{of:?}").split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

/// Fails for variants of an enum that a strategy does not generate. `words` gives the name of the variant of
/// a value, or a text with the names of all variants in it.
fn generates<T: Debug>(
    source: &str,
    name: &str,
    exempt: &[&str],
    strategy: impl Strategy<Value = T>,
    words: impl Fn(&T) -> String,
) {
    let mut missing: BTreeSet<&str> = variants(source, name);
    assert!(missing.len() > 1, "no variants of {name}: {missing:?}");
    exempt.iter().for_each(|of| assert!(missing.remove(of), "{name} has no {of}"));
    let mut runner = TestRunner::deterministic();
    for _ in 0..5000 {
        let value = strategy.new_tree(&mut runner).expect("a value").current();
        let text = words(&value);
        text.split(|c: char| !c.is_alphanumeric()).for_each(|word| {
            missing.remove(word);
        });
        if missing.is_empty() {
            return;
        }
    }
    panic!("{name}: not generated: {missing:?}");
}

/// The names of the variants of an enum in a source file.
fn variants<'s>(source: &'s str, name: &str) -> BTreeSet<&'s str> {
    let head = format!("pub enum {name}");
    let body =
        source.lines().skip_while(|line| !line.starts_with(&head)).skip(1).take_while(|line| *line != "}");
    let names = body.filter_map(|line| {
        let word = line.strip_prefix("    ")?;
        let end = word.find([',', '(', ' ']).unwrap_or(word.len());
        word.get(..end).filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase()))
    });
    names.collect()
}
