//! Any two scripts as what the kernel has and what is wanted, separated by a NUL: nothing panics, and what is
//! wanted is there after one transaction, so that the next comparison finds nothing to do.
use sluicegate_nftables::fake::Fake;
use sluicegate_nftables::reconcile::{Options, difference, sync};
use sluicegate_nftables::{TableContent, Transaction};

pub(crate) fn run(text: &str) {
    let (have, want) = text.split_once('\0').unwrap_or((text, ""));
    let Some(wanted) = listing(want) else { return };
    let Some(mut kernel) = kernel(have) else { return };
    // What a kernel refuses from an empty ruleset is not to be had.
    let Some(mut other) = kernel_of_nothing(&wanted) else { return };
    if sync(&mut kernel, &wanted, &Options::default()).is_ok() {
        let left = difference(&wanted, &kernel.ruleset(), &Options::default()).expect("it was sent before");
        assert!(left.is_empty(), "{}", left.transaction);
    }
    let left = difference(&wanted, &other.ruleset(), &Options::default()).expect("it was sent before");
    assert!(left.is_empty(), "{}", left.transaction);
    let again = sync(&mut other, &wanted, &Options::default()).expect("nothing to send");
    assert!(again.difference.is_empty());
}

/// Applies a script to a kernel.
fn kernel(script: &str) -> Option<Fake> {
    let mut kernel = Fake::new();
    Transaction::parse(script).ok()?.apply(&mut kernel).ok()?;
    Some(kernel)
}

/// Returns the tables that a script makes.
fn listing(script: &str) -> Option<Vec<TableContent>> {
    Some(kernel(script)?.ruleset().content())
}

fn kernel_of_nothing(wanted: &[TableContent]) -> Option<Fake> {
    let mut kernel = Fake::new();
    sync(&mut kernel, wanted, &Options::default()).ok()?;
    Some(kernel)
}
