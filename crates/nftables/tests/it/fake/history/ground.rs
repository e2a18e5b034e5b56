//! What the first transaction of a history makes.

use sluicegate_nftables::*;

use super::objects::{self, OBJECTS};
use super::sets::{self, KINDS};
use super::{chains, table};
use crate::kernel::cases::name;

/// Most of the objects that operations are about: a bit for each, of the first two tables and of one of the
/// others.
pub(super) fn ground(first: u64, second: u64, third: u64) -> Transaction {
    let mut tx = Transaction::new();
    fill(&mut tx, &table(0), first);
    fill(&mut tx, &table(1), second);
    let other = 2 + u8::try_from(third >> 62).expect("two bits");
    fill(&mut tx, &table(other), third & third >> 1);
    tx
}

fn fill(tx: &mut Transaction, t: &TableId, which: u64) {
    let mut which = Bits(which);
    if !which.next() {
        return;
    }
    tx.add(Table::new(t.clone()));
    for n in ["a", "b", "c"] {
        if which.next() {
            tx.add(Chain::new(t.chain(name(n))));
        }
    }
    for chain in chains::usual(t) {
        if which.next() {
            tx.add(chain);
        }
    }
    for kind in 0..OBJECTS {
        if which.next() {
            tx.add(objects::usual(t, kind));
        }
    }
    for kind in 0..KINDS {
        if which.next() {
            tx.add(sets::set(t, kind, kind));
        }
    }
}

struct Bits(u64);

impl Bits {
    fn next(&mut self) -> bool {
        let bit = self.0 & 1;
        self.0 >>= 1;
        bit == 1
    }
}
