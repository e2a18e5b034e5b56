//! Plans the changes to the objects of a table, and puts them in order.

use std::collections::{HashMap, HashSet};

use crate::error::Error;
use crate::listing::Script;
use crate::name::Name;
use crate::object::TableId;
use crate::reconcile::foreign::Candidates;
use crate::reconcile::kernel::{Kernel, Ref};
use crate::reconcile::wanted::{Refs, Wanted};
use crate::reconcile::{Difference, Options, Reason, chain, object};
use crate::transaction::{Operation, Target};

/// The planned changes of one table.
pub(super) struct Plan<'a, 'k> {
    pub(super) wanted: &'a Wanted<'a>,
    pub(super) kernel: &'a Kernel<'k>,
    pub(super) options: &'a Options<'a>,
    /// The reason if the whole table is replaced: then everything that stays is added again, and nothing is
    /// deleted separately.
    whole: Option<Reason>,
    pub(super) script: Script,
    pub(super) deleted: Deleted,
    pub(super) out: Difference,
    /// The replaced objects.
    pub(super) replaced: Refs<'a>,
    pub(super) candidates: Candidates<'k>,
    /// The unchanged sets to which new rules or elements refer.
    pub(super) known: HashSet<&'a Name>,
    /// Whether base chains or devices are added, which is not possible in the transaction that clears the
    /// table's flag `dormant`.
    pub(super) adds_hooks: bool,
}

/// Deleted objects by kind. Objects of each kind may refer to those of later kinds.
#[derive(Default)]
pub(super) struct Deleted {
    pub(super) rules: Vec<Operation>,
    pub(super) elements: Vec<Operation>,
    pub(super) devices: Vec<Operation>,
    pub(super) sets: Vec<Operation>,
    pub(super) chains: Vec<Operation>,
    pub(super) flowtables: Vec<Operation>,
    pub(super) objects: Vec<Operation>,
}

impl<'a, 'k> Plan<'a, 'k> {
    pub(super) fn new(
        wanted: &'a Wanted<'a>,
        kernel: &'a Kernel<'k>,
        options: &'a Options<'a>,
        whole: Option<Reason>,
    ) -> Self {
        Self {
            wanted,
            kernel,
            options,
            whole,
            script: Script::default(),
            deleted: Deleted::default(),
            out: Difference::new(0),
            replaced: Refs::new(),
            candidates: Candidates::new(wanted, kernel, options),
            known: HashSet::new(),
            adds_hooks: false,
        }
    }

    /// Plans the changes to all objects in the table.
    pub(super) fn parts(mut self) -> Result<Self, Error> {
        // Stateful objects come first, because elements and rules may refer to them.
        self.objects();
        self.flowtables();
        self.chains();
        self.sets()?;
        self.rules()?;
        self.candidates.close(self.kernel);
        self.foreign()?;
        Ok(self)
    }

    /// Returns the operations in order.
    pub(super) fn finish(mut self, toggled: bool) -> Difference {
        let id = self.id();
        if let Some(reason) = self.whole.take() {
            self.script.table.push(Operation::Delete(Target::Table(id.clone())));
            self.script.table.push(Operation::Add(self.wanted.content.table.clone().into()));
            self.out.replace(id.clone(), reason);
        } else {
            let Deleted { rules, elements, devices, sets, chains, flowtables, objects } = self.deleted;
            let steps = [rules, elements, devices, sets, chains, flowtables, objects];
            self.script.deleted = steps.into_iter().flatten().collect();
            if toggled {
                self.script.table.push(Operation::Add(self.wanted.content.table.clone().into()));
                self.out.changed.tables += 1;
            }
        }
        self.out.transaction = self.script.into();
        for name in self.known {
            if let Some((set, _)) = self.wanted.sets.get(name) {
                self.out.transaction.register_set(set.clone());
            }
        }
        self.out
    }

    pub(super) fn id(&self) -> &'a TableId {
        &self.wanted.content.table.id
    }

    pub(super) fn is_whole(&self) -> bool {
        self.whole.is_some()
    }

    /// Records that an object is replaced. If the whole table is replaced, its objects are not listed.
    pub(super) fn replace(&mut self, reference: Ref<'a>, object: impl Into<Target>, reason: Reason) {
        self.replaced.insert(reference);
        if !self.is_whole() {
            self.out.replace(object, reason);
        }
    }

    fn objects(&mut self) {
        let kernel: HashMap<_, _> =
            self.kernel.objects.iter().map(|o| ((o.object_kind, &o.name), *o)).collect();
        for wanted in &self.wanted.content.objects {
            let key = (wanted.id.kind, &wanted.id.name);
            let Some(found) = kernel.get(&key) else {
                self.out.added.objects += 1;
                self.script.add(wanted.clone());
                continue;
            };
            match object::compare(wanted, found) {
                object::Action::Same if !self.is_whole() => {}
                object::Action::Updated if !self.is_whole() => {
                    self.out.changed.objects += 1;
                    self.script.add(wanted.clone());
                }
                fate => {
                    let reason = match fate {
                        object::Action::Replaced(reason) => reason,
                        _ => Reason::Configuration,
                    };
                    self.replace(Ref::Object(key.0, key.1), Target::Stateful(wanted.id.clone()), reason);
                    self.out.deleted.objects += 1;
                    self.out.added.objects += 1;
                    self.deleted.objects.push(Operation::Delete(Target::Stateful(wanted.id.clone())));
                    self.script.add(object::with_state(wanted, found));
                }
            }
        }
    }

    fn flowtables(&mut self) {
        let kernel: HashMap<_, _> = self.kernel.flowtables.iter().map(|f| (&f.name, *f)).collect();
        for wanted in &self.wanted.content.flowtables {
            let id = &wanted.id;
            let Some(found) = kernel.get(&id.name) else {
                self.out.added.flowtables += 1;
                self.script.add(wanted.clone());
                continue;
            };
            match chain::compare_flowtable(wanted, found) {
                chain::Action::Same if !self.is_whole() => {}
                chain::Action::Updated { again, deleted } if !self.is_whole() => {
                    self.out.changed.flowtables += 1;
                    if !deleted.is_empty() {
                        self.deleted.devices.push(Operation::Delete(id.devices(deleted).into()));
                    }
                    if again {
                        self.script.add(wanted.clone());
                    }
                }
                fate => {
                    let reason = chain::Action::reason(fate);
                    self.replace(Ref::Flowtable(&id.name), Target::Flowtable(id.clone()), reason);
                    self.out.deleted.flowtables += 1;
                    self.out.added.flowtables += 1;
                    self.deleted.flowtables.push(Operation::Delete(Target::Flowtable(id.clone())));
                    self.script.add(wanted.clone());
                }
            }
        }
    }

    fn chains(&mut self) {
        let kernel: HashMap<_, _> = self.kernel.chains.iter().map(|c| (&c.name, *c)).collect();
        for (wanted, _) in &self.wanted.content.chains {
            let (id, base) = (&wanted.id, wanted.base.is_some());
            let Some(found) = kernel.get(&id.name) else {
                self.adds_hooks |= base;
                self.out.added.chains += 1;
                self.script.add(wanted.clone());
                continue;
            };
            match chain::compare(wanted, found) {
                chain::Action::Same if !self.is_whole() => {}
                chain::Action::Updated { again, deleted } if !self.is_whole() => {
                    let has_devices = wanted.base.as_ref().is_some_and(|base| !base.devices.is_empty());
                    self.adds_hooks |= !deleted.is_empty() || has_devices;
                    self.out.changed.chains += 1;
                    if !deleted.is_empty() {
                        self.deleted.devices.push(Operation::Delete(id.devices(deleted).into()));
                    }
                    if again {
                        self.script.add(chain::update(wanted));
                    }
                }
                fate => {
                    self.adds_hooks |= base;
                    self.replace(Ref::Chain(&id.name), id, chain::Action::reason(fate));
                    self.out.deleted.chains += 1;
                    self.out.added.chains += 1;
                    self.deleted.chains.push(Operation::Delete(id.into()));
                    self.script.add(wanted.clone());
                }
            }
        }
    }
}

/// Returns whether an object is in a list.
pub(super) fn contains(refs: &Refs<'_>, reference: Ref<'_>) -> bool {
    refs.contains(&reference)
}
