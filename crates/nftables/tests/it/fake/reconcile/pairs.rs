//! Random pairs of rulesets: whatever the one is, its difference makes it the other.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestError, TestRunner};
use sluicegate_nftables::fake::Fake;
use sluicegate_nftables::read::{self, Ruleset};
use sluicegate_nftables::reconcile::{self, Difference, Foreign, Options};
use sluicegate_nftables::*;

use crate::fake::history::{Step, history};

/// What a history leaves.
fn played(history: &[Step]) -> Fake {
    let mut fake = Fake::new();
    for operation in history.iter().flat_map(|step| step.transaction.operations()) {
        let mut alone = Transaction::new();
        alone.push(operation.clone());
        // Some are refused. Alone, that spoils no other.
        let _ = alone.apply(&mut fake);
    }
    fake
}

/// Tables by name, and everything in them by name: in which order they were made does not matter. What rules
/// put into sets is left out.
fn listed(ruleset: &Ruleset) -> BTreeMap<String, String> {
    let mut tables = BTreeMap::new();
    for mut content in ruleset.content() {
        content.objects.sort_by(|a, b| a.id.cmp(&b.id));
        content.flowtables.sort_by(|a, b| a.id.cmp(&b.id));
        content.sets.sort_by(|a, b| a.0.id.cmp(&b.0.id));
        content.chains.sort_by(|a, b| a.0.id.cmp(&b.0.id));
        for (set, elements) in &mut content.sets {
            if set.flags.contains(SetFlags::DYNAMIC) {
                elements.clear();
            }
            elements.sort_by_cached_key(ToString::to_string);
            // What a rule that fills the set gives it, also after that rule is gone.
            set.size = set.size.filter(|size| *size != 65_535);
        }
        for (chain, _) in &mut content.chains {
            if let Some(base) = &mut chain.base {
                base.devices.sort();
            }
        }
        tables.insert(content.table.id.to_string(), content.to_string());
    }
    tables
}

fn compare(
    kernel: &Ruleset,
    wanted: &[TableContent],
    options: &Options<'_>,
) -> Result<Difference, TestCaseError> {
    let difference = reconcile::difference(wanted, kernel, options);
    difference.map_err(|error| TestCaseError::fail(error.to_string()))
}

/// Wanted tables, and a kernel in which they were created; `None` where they cannot be: what a listing shows
/// of expressions that do nothing is nothing, and what kernels take is not always what the language takes.
fn target(history: &[Step]) -> Option<(Vec<TableContent>, Fake)> {
    let mut fake = Fake::new();
    let content = played(history).ruleset().content();
    for table in &content {
        table.to_transaction().apply(&mut fake).ok()?;
    }
    Some((content, fake))
}

/// The rules of each chain: their handles, texts, and expressions without numbers, which are names of a
/// rule's own and counts.
fn rules(ruleset: &Ruleset) -> HashMap<ChainId, Vec<(u64, String)>> {
    let exprs: HashMap<_, _> = ruleset.rules.iter().map(|rule| (rule.handle, &rule.expressions)).collect();
    let sets = ruleset.sets.iter().map(|(set, _)| set);
    let intervals: Vec<_> = sets.filter(|set| set.flags.contains(SetFlags::INTERVAL)).collect();
    let chains = ruleset.content().into_iter().flat_map(|table| table.chains);
    let text = |rule: &Rule| {
        let exprs = exprs.get(&rule.handle.unwrap()).map(|exprs| format!("{exprs:?}")).unwrap_or_default();
        // Single addresses are listed alike in a set of intervals and in another, but they are not alike.
        let table = &rule.chain.table;
        let is_of_table = |set: &&&read::Set| (set.family, &set.table) == (table.family, &table.name);
        let of_intervals = intervals.iter().filter(is_of_table);
        let count = of_intervals.filter(|set| exprs.contains(&format!("{:?}", set.name.as_str()))).count();
        let exprs: String = exprs.chars().filter(|c| !c.is_ascii_digit()).collect();
        (rule.handle.unwrap(), format!("{} {exprs} {count}", rule.body()))
    };
    chains.map(|(chain, list)| (chain.id, list.iter().map(text).collect())).collect()
}

fn longest(a: &[(u64, String)], b: &[(u64, String)]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for (_, text) in a {
        let mut diagonal = 0;
        for j in 1..=b.len() {
            let above = row[j];
            row[j] = if b[j - 1].1 == *text { diagonal + 1 } else { above.max(row[j - 1]) };
            diagonal = above;
        }
    }
    row[b.len()]
}

fn check(a: &[Step], b: &[Step]) -> Result<(), TestCaseError> {
    let Some((content, target)) = target(b) else { return Err(TestCaseError::reject("cannot be wanted")) };
    let mut kernel = played(a);
    let (before, wanted) = (kernel.ruleset(), target.ruleset());
    let all = Options::default().keep(&|_| false);

    let none = compare(&wanted, &content, &all)?;
    prop_assert!(none.is_empty(), "a ruleset differs from itself:\n{}{none}\n{target}", none.transaction);

    let difference = compare(&before, &content, &all)?;
    let say = || format!("{difference}\n{}\n-- from\n{}\n-- to\n{target}", difference.transaction, played(a));
    if let Err(error) = difference.transaction.apply(&mut kernel) {
        prop_assert!(false, "refused: {error}\n{}", say());
    }
    let after = kernel.ruleset();
    prop_assert_eq!(listed(&after), listed(&wanted), "{}", say());
    let rest = compare(&after, &content, &all)?;
    prop_assert!(rest.is_empty(), "and then\n{}{rest}\n{}", rest.transaction, say());

    if difference.replaced.is_empty() {
        let (was, is) = (rules(&before), rules(&after));
        for (chain, is) in is {
            let Some(was) = was.get(&chain) else { continue };
            let stayed = is.iter().filter(|rule| was.contains(rule)).count();
            prop_assert_eq!(stayed, longest(was, &is), "rules of {} were touched: {}", chain, say());
        }
    }
    Ok(())
}

/// What is not wanted stays where that is asked for, and so does what it refers to.
fn check_kept(a: &[Step], b: &[Step]) -> Result<(), TestCaseError> {
    // Where a table is replaced, what is kept of it is created again.
    let (Some(_), Some((content, target))) = (target(a), target(b)) else {
        return Err(TestCaseError::reject("cannot be wanted"));
    };
    let mut kernel = played(a);
    let (before, wanted) = (kernel.ruleset(), target.ruleset());
    let difference = compare(&before, &content, &Options::keep_all())?;
    let say = || format!("{difference}\n{}\n-- from\n{}\n-- to\n{target}", difference.transaction, played(a));
    if let Err(error) = difference.transaction.apply(&mut kernel) {
        // Two that cannot be together: intervals that overlap, a set that is full, jumps in a circle.
        let errnos: Vec<Errno> = error.failures().iter().map(|failure| failure.error.errno).collect();
        let possible = [Errno::EEXIST, Errno::ENFILE, Errno::EMLINK, Errno::EBUSY, Errno::EOPNOTSUPP];
        let all = errnos.iter().all(|errno| possible.contains(errno));
        prop_assert!(all && !errnos.is_empty(), "refused: {error}\n{}", say());
        return Ok(());
    }
    let after = kernel.ruleset();
    let names = |ruleset: &Ruleset| -> Vec<String> {
        let chains = ruleset.chains.iter().filter(|chain| !chain.name.starts_with("__"));
        let sets = ruleset.sets.iter().filter(|(set, _)| !set.flags.contains(SetFlags::ANONYMOUS));
        chains
            .map(|chain| format!("chain {} {} {}", chain.family, chain.table, chain.name))
            .chain(sets.map(|(set, _)| format!("set {} {} {}", set.family, set.table, set.name)))
            .chain(ruleset.tables.iter().map(|table| format!("table {} {}", table.family, table.name)))
            .collect()
    };
    let now = names(&after);
    for name in names(&before).into_iter().chain(names(&wanted)) {
        prop_assert!(now.contains(&name), "{name} is gone: {}", say());
    }
    let rest = compare(&after, &content, &Options::keep_all())?;
    // Of intervals that overlap with one that stays, the kernel makes something else.
    let intervals: Vec<_> =
        wanted.sets.iter().filter(|(set, _)| set.flags.contains(SetFlags::INTERVAL)).collect();
    let is_overlap = |operation: &Operation| match operation {
        Operation::Add(Object::Elements(elements)) => {
            intervals.iter().any(|(set, _)| set.name == elements.set.name)
        }
        _ => false,
    };
    let rest_is_overlap = rest.transaction.operations().iter().all(is_overlap);
    prop_assert!(rest_is_overlap, "and then\n{}{rest}\n{}", rest.transaction, say());
    Ok(())
}

fn run(check: impl Fn(&[Step], &[Step]) -> Result<(), TestCaseError>) {
    run_cases(60, check);
}

/// So many cases, unless more are asked for.
fn run_cases(usual: u32, check: impl Fn(&[Step], &[Step]) -> Result<(), TestCaseError>) {
    let asked = std::env::var("SLUICEGATE_RECONCILE_CASES").ok().and_then(|n| n.parse().ok());
    let cases = asked.unwrap_or(usual);
    let config = Config {
        cases,
        max_global_rejects: 4 * cases,
        max_shrink_iters: 3000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    };
    let pair = (history(), history(), any::<bool>()).prop_map(|(a, b, related)| {
        // Half of the pairs have a beginning in common.
        let b = if related { a.iter().take(2).cloned().chain(b.into_iter().skip(1)).collect() } else { b };
        (a, b)
    });
    match TestRunner::new(config).run(&pair, |(a, b)| check(&a, &b)) {
        Ok(()) => {}
        // The least case that fails is part of the reason, as text.
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_difference_makes_one_ruleset_another_and_touches_nothing_else() {
    run(check);
}

#[test]
fn what_is_not_wanted_stays_where_that_is_asked_for() {
    run(check_kept);
}

/// The fake leaves nothing but what a kernel takes; so both rulesets can be created there.
#[test]
fn a_real_kernel_is_brought_from_one_ruleset_to_another() {
    if !crate::fake::follows_this_kernel() {
        return;
    }
    testns::netns(|| {
        let socket = std::cell::RefCell::new(crate::fake::socket());
        run_cases(16, |a, b| {
            let (Some((before, _)), Some((wanted, created))) = (target(a), target(b)) else {
                return Err(TestCaseError::reject("cannot be wanted"));
            };
            let mut socket = socket.borrow_mut();
            let options = Options::default().keep(&|_| false);
            let fail = |error: Error| TestCaseError::fail(error.to_string());
            crate::fake::flush(&mut socket);
            reconcile::sync(&mut *socket, &before, &options).map_err(fail)?;
            let synced = reconcile::sync(&mut *socket, &wanted, &options).map_err(fail)?.difference;
            let is_refused =
                |replaced: &reconcile::Replaced| matches!(replaced.reason, reconcile::Reason::Refused(_));
            prop_assert!(!synced.replaced.iter().any(is_refused), "{synced}\n{}", synced.transaction);
            let kernel = read::ruleset(&mut *socket, Family::UNSPEC).expect("the kernel lists its rules");
            prop_assert_eq!(listed(&kernel), listed(&created.ruleset()), "{}", synced.transaction);
            let rest = reconcile::sync(&mut *socket, &wanted, &options).map_err(fail)?.difference;
            prop_assert!(rest.is_empty(), "and then {rest}\n{}", rest.transaction);
            Ok(())
        });
    });
}

#[test]
fn tables_of_others_stay_by_default() {
    let table =
        |name| TableContent::new(Table::new(TableId::new(Family::IP, crate::kernel::cases::name(name))));
    let mut fake = Fake::new();
    table("theirs").to_transaction().apply(&mut fake).unwrap();
    let difference = reconcile::difference(&[table("ours")], &fake.ruleset(), &Options::default()).unwrap();
    assert_eq!(difference.transaction.to_string(), "add table ip ours\n");
    let options = Options::default().keep(&|foreign| !matches!(foreign, Foreign::Table(_)));
    let difference = reconcile::difference(&[table("ours")], &fake.ruleset(), &options).unwrap();
    assert_eq!(difference.transaction.to_string(), "add table ip ours\ndelete table ip theirs\n");
}
