//! Random histories: a few transactions over few names, so that most of what they say meets something that is
//! there.
//!
//! An operation is made of a few random bytes, which proptest makes fewer and smaller when it looks for the
//! least case.
//!
//! Left out is what the kernel decides by chance or by its version: the representation of sets with `policy
//! memory` and a size (it depends on the bytes of the kernel's structures), elements that expire meanwhile,
//! what asks modules that a kernel may lack (security contexts, flowtables), handles of tables, which count
//! on for as long as there is a namespace.

mod chains;
mod elements;
mod ground;
mod objects;
mod raw;
mod rules;
mod sets;
mod targets;

use std::time::Duration;

use proptest::prelude::*;
use sluicegate_nftables::*;

use crate::kernel::cases::{comment, name};
use elements::elements;
use ground::ground;
use sets::KINDS;

/// One transaction and how it is sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    pub(crate) transaction: Transaction,
    /// Only check it.
    pub(crate) check: bool,
    /// Only for this generation, or for one that is not.
    pub(crate) bound: bool,
    pub(crate) stale: bool,
    /// By the second of two programs.
    pub(crate) second: bool,
    /// That program has been started anew.
    pub(crate) reopen: bool,
    /// What is asked for afterwards.
    pub(crate) question: Option<Question>,
}

/// What is asked beside the list of everything, most of it setting counters and quotas back as they are read.
#[derive(Debug, Clone)]
pub(crate) enum Question {
    ResetRules(TableId, bool),
    ResetRule(ChainId, u64),
    ResetObjects(TableId, bool),
    ResetElements(SetId),
    /// One element by its key, which need not be as long as those of the set.
    Element(SetId, Vec<u8>, bool),
    /// One by its value.
    Find(Box<Set>, Element, bool),
    Object(ObjectId),
    Set(SetId),
    Chain(ChainId),
}

/// A few transactions, of which the first makes most of what the others use.
pub(crate) fn history() -> impl Strategy<Value = Vec<Step>> {
    let some = || prop::bits::u64::ANY;
    let base = (some(), some(), some(), some()).prop_map(|(a, b, c, d)| ground(a | b, a | c, d));
    let operations = prop::collection::vec(prop::array::uniform24(any::<u8>()), 1..14);
    let step = (operations, 0..40_u8, 0..12_u8, prop::array::uniform8(any::<u8>()));
    let step = step.prop_map(|(operations, how, who, asked)| {
        let mut transaction = Transaction::new();
        for bytes in operations {
            operation(&mut transaction, &mut Bytes(&bytes));
        }
        Step {
            transaction,
            check: how == 39,
            bound: how >= 37,
            stale: how == 38,
            second: who >= 9,
            reopen: [8, 11].contains(&who),
            question: question(&mut Bytes(&asked)),
        }
    });
    (base, prop::collection::vec(step, 1..7)).prop_map(|(transaction, steps)| {
        let base = Step { transaction, ..Step::default() };
        std::iter::once(base).chain(steps).collect()
    })
}

/// The bytes of an operation, one after the other; zeros when they are used up.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, limit: u8) -> u8 {
        self.next() % limit
    }

    fn one_in(&mut self, n: u8) -> bool {
        self.below(n) == n - 1
    }

    fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[usize::from(self.next()) % list.len()].clone()
    }

    /// A handle of something that one of these may have.
    fn handle(&mut self) -> u64 {
        u64::from(self.below(70)) + 1
    }

    fn comment(&mut self) -> Option<Comment> {
        self.one_in(8).then(|| comment(self.pick(&["a comment", "another", ""])))
    }
}

fn operation(tx: &mut Transaction, bytes: &mut Bytes<'_>) {
    let t = some_table(bytes);
    match bytes.below(36) {
        0 => {
            let flags = bytes.pick(&[
                TableFlags::empty(),
                TableFlags::empty(),
                TableFlags::DORMANT,
                TableFlags::OWNER,
                TableFlags::PERSIST,
                TableFlags::OWNER | TableFlags::PERSIST,
                TableFlags::OWNER | TableFlags::DORMANT,
                TableFlags::from_bits_retain(8),
            ]);
            let mut table = Table::new(t).flags(flags);
            table.comment = bytes.comment();
            make(tx, bytes, table);
        }
        1..=4 => {
            let chain = chains::chain(&t, bytes);
            make(tx, bytes, chain);
        }
        5..=12 => rules::rule(tx, &t, bytes),
        13..=15 => {
            let set = sets::some_set(&t, bytes);
            make(tx, bytes, set);
        }
        16..=23 => {
            let elements = elements(&t, bytes);
            match bytes.below(8) {
                0..=4 => make(tx, bytes, elements),
                5 | 6 => {
                    tx.delete(elements);
                }
                _ => {
                    tx.destroy(elements);
                }
            }
        }
        24 | 25 => {
            let object = objects::some_object(&t, bytes);
            make(tx, bytes, object);
        }
        26..=31 => {
            let target = targets::target(&t, bytes);
            if bytes.one_in(3) {
                tx.destroy(target)
            } else {
                tx.delete(target)
            };
        }
        32..=34 => targets::flush(tx, t, bytes),
        _ => targets::rename(tx, &t, bytes),
    }
}

fn make(tx: &mut Transaction, bytes: &mut Bytes<'_>, object: impl Into<Object>) {
    if bytes.one_in(4) {
        tx.create(object)
    } else {
        tx.add(object)
    };
}

fn question(bytes: &mut Bytes<'_>) -> Option<Question> {
    let what = bytes.below(16);
    let t = some_table(bytes);
    Some(match what {
        1 => Question::ResetRules(t, bytes.one_in(2)),
        2 => Question::ResetRule(t.chain(chains::chain_name(bytes)), bytes.handle()),
        3 => Question::ResetObjects(t, bytes.one_in(2)),
        4 => Question::ResetElements(sets::set_id(&t, bytes.below(KINDS))),
        5..=8 => {
            let kind = bytes.below(KINDS);
            let of = if bytes.one_in(8) { bytes.below(KINDS) } else { kind };
            let key = elements::key(of, bytes);
            Question::Element(sets::set_id(&t, kind), key.bytes().to_vec(), bytes.one_in(2))
        }
        12 | 13 => {
            let kind = bytes.below(KINDS);
            let set = sets::set(&t, kind, kind);
            Question::Find(Box::new(set), elements::element(kind, bytes), bytes.one_in(3))
        }
        9 => Question::Object(objects::object_id(&t, bytes)),
        10 => Question::Set(sets::set_id(&t, bytes.below(KINDS))),
        11 => Question::Chain(t.chain(chains::chain_name(bytes))),
        _ => return None,
    })
}

/// One of the tables, mostly the first.
fn some_table(bytes: &mut Bytes<'_>) -> TableId {
    table(bytes.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 4, 5, 5]))
}

fn table(number: u8) -> TableId {
    let family = [Family::IP, Family::INET, Family::IP6, Family::ARP, Family::BRIDGE, Family::NETDEV]
        [usize::from(number)];
    TableId::new(family, name(if number == 2 { "u" } else { "t" }))
}

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}
