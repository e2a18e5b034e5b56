//! Syncing on a kernel that others change, too, and that refuses.

use sluicegate_nftables::fake::{Fake, Fault};
use sluicegate_nftables::lang::Verdict;
use sluicegate_nftables::reconcile::{self, Options};
use sluicegate_nftables::*;

use crate::cases::name;

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
