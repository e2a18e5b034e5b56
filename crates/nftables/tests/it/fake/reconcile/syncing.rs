//! Syncing on a kernel that others change, too, and that refuses.

use sluicegate_nftables::fake::{Fake, Fault};
use sluicegate_nftables::lang::Verdict;
use sluicegate_nftables::reconcile::{self, Options};
use sluicegate_nftables::*;

use crate::kernel::cases::name;

fn wanted(rules: usize) -> TableContent {
    let chain = TableId::new(Family::IP, name("t")).chain(name("c"));
    let rule = chain.rule().then(Verdict::Return);
    TableContent::new(Table::new(chain.table.clone())).chain(Chain::new(chain), vec![rule; rules])
}

fn sync(kernel: &mut Fake, rules: usize) -> Result<reconcile::Synced, Error> {
    reconcile::sync(kernel, &[wanted(rules)], &Options::default())
}

#[test]
fn a_foreign_commit_in_between_leads_to_another_reading() {
    let mut kernel = Fake::new();
    sync(&mut kernel, 2).unwrap();
    let mut theirs = Transaction::new();
    theirs.flush(TableId::new(Family::IP, name("t")).chain(name("c")));
    kernel.inject(Fault::Meanwhile(theirs));
    let synced = sync(&mut kernel, 3).unwrap();
    assert_eq!((synced.reads, synced.difference.added.rules), (2, 3));
    assert_eq!(kernel.ruleset().rules.len(), 3);
    let synced = sync(&mut kernel, 3).unwrap();
    assert!(synced.difference.is_empty() && synced.applied.is_none());
}

#[test]
fn what_is_refused_piece_by_piece_is_replaced_whole() {
    let mut kernel = Fake::new();
    sync(&mut kernel, 1).unwrap();
    kernel.inject(Fault::Refuse(Errno::EBUSY));
    let synced = sync(&mut kernel, 2).unwrap();
    let why = synced.difference.replaced[0].to_string();
    assert!(why.starts_with("table ip t replaced: the kernel refused to change it in place: "), "{why}");
    assert_eq!(kernel.ruleset().rules.len(), 2);
    assert!(sync(&mut kernel, 2).unwrap().difference.is_empty());
}

#[test]
fn what_is_refused_whole_is_an_error_and_changes_nothing() {
    let mut kernel = Fake::new();
    sync(&mut kernel, 1).unwrap();
    kernel.inject(Fault::Refuse(Errno::ENOMEM));
    kernel.inject(Fault::Refuse(Errno::ENOMEM));
    assert!(matches!(sync(&mut kernel, 2), Err(Error::Rejected { .. })));
    assert_eq!(kernel.ruleset().rules.len(), 1);
}

#[test]
fn wanted_elements_that_merge_are_equal_to_what_they_were_merged_to() {
    let mut kernel = Fake::new();
    let wanted = |ranges: &[(u16, u16)]| {
        let set = Set::new(TableId::new(Family::IP, name("t")).set(name("s")), DataType::INET_SERVICE);
        let elements = ranges.iter().map(|(low, high)| Element::range(Port(*low), Port(*high))).collect();
        let mut content = TableContent::new(Table::new(set.id.table.clone()));
        content.sets.push((set.auto_merge(), elements));
        [content]
    };
    let overlapping = wanted(&[(10, 20), (15, 30), (31, 40), (50, 50)]);
    reconcile::sync(&mut kernel, &overlapping, &Options::default()).unwrap();
    let again = reconcile::sync(&mut kernel, &overlapping, &Options::default()).unwrap();
    assert!(again.difference.is_empty(), "{}", again.difference.transaction);
    let less = reconcile::sync(&mut kernel, &wanted(&[(10, 12), (50, 50)]), &Options::default()).unwrap();
    assert_eq!((less.difference.deleted.elements, less.difference.added.elements), (1, 1));
}
