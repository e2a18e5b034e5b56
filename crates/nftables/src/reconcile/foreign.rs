//! Determines which unwanted objects stay, and which objects they refer to and thereby keep.

use std::collections::HashMap;

use crate::error::Error;
use crate::object::{Elements, SetFlags, SetId, StatefulObject};
use crate::read;
use crate::reconcile::kernel::{Kernel, Ref, refs_of_element};
use crate::reconcile::plan::{Plan, contains};
use crate::reconcile::rules::align;
use crate::reconcile::wanted::{Refs, Wanted};
use crate::reconcile::{Foreign, Options};
use crate::transaction::{Flush, Operation};

/// All named objects of a table that are not wanted.
#[derive(Default)]
pub(super) struct Candidates<'k> {
    all: Vec<Candidate<'k>>,
    by_name: HashMap<Ref<'k>, usize>,
}

/// An object that is not wanted.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'k> {
    pub(super) what: Named<'k>,
    /// Whether it stays.
    pub(super) stays: bool,
}

/// A named object in the kernel.
#[derive(Clone, Copy)]
pub(super) enum Named<'k> {
    Chain(&'k read::Chain),
    Set(&'k (read::Set, Vec<read::Element>)),
    Object(&'k read::Object),
    Flowtable(&'k read::Flowtable),
}

impl<'k> Candidates<'k> {
    pub(super) fn new(wanted: &Wanted<'_>, kernel: &Kernel<'k>, options: &Options<'_>) -> Self {
        let chains = kernel.chains.iter().map(|chain| Named::Chain(chain));
        let sets = kernel.sets.iter().map(|set| Named::Set(set));
        let objects = kernel.objects.iter().map(|object| Named::Object(object));
        let flowtables = kernel.flowtables.iter().map(|flowtable| Named::Flowtable(flowtable));
        let foreign = chains.chain(sets).chain(objects).chain(flowtables);
        let foreign = foreign.filter(|what| !wanted.has(what.reference()));
        let all: Vec<_> =
            foreign.map(|what| Candidate { what, stays: (options.keep)(what.foreign()) }).collect();
        let by_name = all.iter().enumerate().map(|(at, one)| (one.what.reference(), at)).collect();
        Self { all, by_name }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Marks the target of a reference as staying.
    pub(super) fn stays(&mut self, reference: Ref<'_>) {
        let by_name: &HashMap<Ref<'_>, usize> = &self.by_name;
        if let Some(one) = by_name.get(&reference).and_then(|at| self.all.get_mut(*at)) {
            one.stays = true;
        }
    }

    /// Keeps all objects that the rules and elements of staying objects refer to, transitively.
    pub(super) fn close(&mut self, kernel: &Kernel<'k>) {
        let mut waiting: Vec<usize> = (0..self.all.len()).filter(|at| self.is_kept(*at)).collect();
        while let Some(at) = waiting.pop() {
            let Some(one) = self.all.get(at).copied() else { continue };
            let mut found = Vec::new();
            match one.what {
                Named::Chain(chain) => {
                    kernel
                        .rules(&chain.name)
                        .iter()
                        .for_each(|rule| kernel.refs_of_rule(rule, &mut |r| found.push(r)));
                }
                Named::Set((set, elements)) => {
                    elements.iter().for_each(|element| refs_of_element(set, element, &mut |r| found.push(r)));
                }
                Named::Object(_) | Named::Flowtable(_) => {}
            }
            let found = found.iter().filter_map(|reference| self.by_name.get(reference).copied());
            let new: Vec<usize> = found.filter(|at| !self.is_kept(*at)).collect();
            for at in new {
                if let Some(one) = self.all.get_mut(at).filter(|one| !one.stays) {
                    one.stays = true;
                    waiting.push(at);
                }
            }
        }
    }

    pub(super) fn all(&self) -> &[Candidate<'k>] {
        &self.all
    }

    fn is_kept(&self, at: usize) -> bool {
        self.all.get(at).is_some_and(|one| one.stays)
    }
}

impl<'k> Named<'k> {
    pub(super) fn reference(&self) -> Ref<'k> {
        match self {
            Self::Chain(chain) => Ref::Chain(&chain.name),
            Self::Set((set, _)) => Ref::Set(&set.name),
            Self::Object(object) => Ref::Object(object.object_kind, &object.name),
            Self::Flowtable(flowtable) => Ref::Flowtable(&flowtable.name),
        }
    }

    fn foreign(&self) -> Foreign<'k> {
        match self {
            Self::Chain(chain) => Foreign::Chain(chain),
            Self::Set((set, _)) => Foreign::Set(set),
            Self::Object(object) => Foreign::Object(object),
            Self::Flowtable(flowtable) => Foreign::Flowtable(flowtable),
        }
    }
}

impl<'k> Plan<'_, 'k> {
    /// Deletes unwanted objects unless they stay, and adds again those that refer to a replaced object.
    pub(super) fn foreign(&mut self) -> Result<(), Error> {
        let candidates = std::mem::take(&mut self.candidates);
        let referred = self.referred_by_elements();
        for one in candidates.all() {
            match (one.stays, one.what) {
                (false, what) => self.remove(what, &referred),
                (true, _) if !self.is_whole() && self.replaced.is_empty() => {}
                (true, Named::Chain(chain)) => self.renew_chain(chain)?,
                (true, Named::Set((set, elements))) => self.renew_set(set, elements)?,
                (true, Named::Object(object)) if self.is_whole() => {
                    let typed = &self.kernel.content().objects;
                    let is_it =
                        |o: &&StatefulObject| (o.id.kind, &o.id.name) == (object.object_kind, &object.name);
                    typed.iter().find(is_it).into_iter().for_each(|typed| self.script.add(typed.clone()));
                }
                (true, Named::Flowtable(flowtable)) if self.is_whole() => {
                    let typed = self.kernel.content().flowtables.iter().find(|f| f.id.name == flowtable.name);
                    typed.into_iter().for_each(|typed| self.script.add(typed.clone()));
                }
                (true, Named::Object(_) | Named::Flowtable(_)) => {}
            }
        }
        Ok(())
    }

    /// Returns the chains to which elements in the kernel refer, if [`Options::empty_first`](super::Options)
    /// is set.
    fn referred_by_elements(&self) -> Refs<'k> {
        let mut found = Refs::new();
        if self.options.empty_first {
            for (set, elements) in &self.kernel.sets {
                for element in elements {
                    refs_of_element(set, element, &mut |reference| {
                        found.insert(reference);
                    });
                }
            }
        }
        found
    }

    fn remove(&mut self, what: Named<'k>, referred: &Refs<'k>) {
        let id = self.id();
        match what {
            Named::Chain(chain) => {
                let rules = self.kernel.rules(&chain.name).len();
                self.out.deleted.rules += rules;
                let chain = id.chain(chain.name.clone());
                if rules > 0 {
                    self.deleted.rules.push(Operation::Flush(Flush::Chain(chain.clone())));
                }
                if !self.is_whole() && contains(referred, what.reference()) {
                    self.out.emptied.push(chain);
                    return;
                }
                self.out.deleted.chains += 1;
                self.deleted.chains.push(Operation::Delete(chain.into()));
            }
            Named::Set((set, elements)) => {
                self.out.deleted.sets += 1;
                self.out.deleted.elements += elements.len();
                let map = set.flags.intersects(SetFlags::MAP | SetFlags::OBJECT);
                let set = SetId { map, ..id.set(set.name.clone()) };
                self.deleted.sets.push(Operation::Delete(set.into()));
            }
            Named::Object(object) => {
                self.out.deleted.objects += 1;
                let object = id.object(object.object_kind, object.name.clone());
                self.deleted.objects.push(Operation::Delete(object.into()));
            }
            Named::Flowtable(flowtable) => {
                self.out.deleted.flowtables += 1;
                self.deleted.flowtables.push(Operation::Delete(id.flowtable(flowtable.name.clone()).into()));
            }
        }
    }

    fn renew_chain(&mut self, chain: &'k read::Chain) -> Result<(), Error> {
        let theirs = self.kernel_rules(&chain.name, self.is_whole(), None)?;
        let (items, deleted) = align(&[], &theirs, &|_| true);
        if self.is_whole() {
            let typed = self.kernel.content().chains.iter().find(|(typed, _)| typed.id.name == chain.name);
            typed.into_iter().for_each(|(typed, _)| self.script.add(typed.clone()));
        }
        self.chain_rules(&self.id().chain(chain.name.clone()), chain.hook.is_some(), &items, &deleted);
        Ok(())
    }

    fn renew_set(&mut self, found: &'k read::Set, theirs: &'k [read::Element]) -> Result<(), Error> {
        let kernel = self.kernel;
        let typed = kernel.content().sets.iter().find(|(typed, _)| typed.id.name == found.name);
        let Some((typed, _)) = typed else { return Ok(()) };
        let whole = self.is_whole();
        let changes = self.compare_elements(typed, &[], (found, theirs), whole, &Options::keep_all())?;
        self.out.deleted.elements += changes.deleted_count;
        self.out.added.elements += changes.added.len();
        if whole {
            self.script.add(typed.clone());
        } else if !changes.deleted.is_empty() {
            let elements = Elements { set: typed.id.clone(), list: changes.deleted };
            self.deleted.elements.push(Operation::Delete(elements.into()));
        }
        self.add_elements(typed, changes.added);
        Ok(())
    }
}
