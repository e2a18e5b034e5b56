//! Computes the changes to elements and rules, and to everything that has to be added again with them.

use std::collections::HashSet;

use crate::error::Error;
use crate::listing::is_constant;
use crate::name::Name;
use crate::object::element::Form;
use crate::object::{ChainId, Element, Elements, Set, SetFlags};
use crate::read;
use crate::reconcile::body::Bodies;
use crate::reconcile::elements::{Context, Range, from_wanted};
use crate::reconcile::kernel::{Ref, refs_of_element};
use crate::reconcile::plan::{Plan, contains};
use crate::reconcile::rules::{Item, KernelRule, added, align, append_only, delete_rules};
use crate::reconcile::set::too_long;
use crate::reconcile::wanted::{refs_of_lowered, refs_of_wanted_element};
use crate::reconcile::{Foreign, Options, Reason, set};
use crate::transaction::Operation;
use crate::wording::millis;

impl<'a, 'k> Plan<'a, 'k> {
    pub(super) fn sets(&mut self) -> Result<(), Error> {
        for (wanted, elements) in &self.wanted.content.sets {
            if !self.candidates.is_empty() {
                let mut stays = |reference: Ref<'_>| self.candidates.stays(reference);
                elements.iter().for_each(|element| refs_of_wanted_element(wanted, element, &mut stays));
            }
            let kernel =
                self.kernel.set(&wanted.id.name).filter(|(set, _)| !set.flags.contains(SetFlags::ANONYMOUS));
            let Some((found, theirs)) = kernel else {
                self.out.added.sets += 1;
                self.out.added.elements += elements.len();
                self.script.add(wanted.clone());
                self.add_elements(wanted, elements.clone());
                continue;
            };
            self.set(wanted, elements, found, theirs)?;
        }
        Ok(())
    }

    fn set(
        &mut self,
        wanted: &'a Set,
        elements: &[Element],
        found: &'k read::Set,
        theirs: &'k [read::Element],
    ) -> Result<(), Error> {
        let fate = set::compare(wanted, elements.len(), found, self.options)?;
        let mut reason = match fate {
            set::Action::Replaced(reason) => Some(reason),
            _ if self.is_whole() => Some(Reason::Size),
            set::Action::Updated(size) => {
                self.out.changed.sets += 1;
                self.script.add(Set { size, ..wanted.clone() });
                None
            }
            set::Action::Same(size) => {
                self.out.sizes.extend(size.map(|size| (wanted.id.clone(), size)));
                None
            }
        };
        // With different types, the keys in the kernel cannot be compared with the wanted ones.
        let is_other = matches!(reason, Some(Reason::Flags | Reason::KeyType | Reason::DataType));
        let mut changes = match is_other {
            true => Changes { added: elements.to_vec(), deleted_count: theirs.len(), ..Changes::default() },
            false => {
                let (options, theirs) = (self.options, (found, theirs));
                let changes = self.compare_elements(wanted, elements, theirs, reason.is_some(), options)?;
                if reason.is_none() {
                    reason = changes.blocking_reason(wanted);
                }
                match reason {
                    Some(Reason::Elements | Reason::Constant) => {
                        self.compare_elements(wanted, elements, theirs, true, options)?
                    }
                    _ => changes,
                }
            }
        };
        self.out.deleted.elements += changes.deleted_count;
        self.out.added.elements += changes.added.len();
        if reason.is_none() && wanted.timeout.map(millis) != found.timeout.filter(|time| *time > 0) {
            // A new timeout of the set takes effect only when the transaction commits, so the elements get it
            // explicitly.
            let timeout = wanted.timeout.unwrap_or(Element::NEVER);
            for element in &mut changes.added {
                if element.get_timeout().is_none() {
                    *element = element.clone().timeout(timeout);
                }
            }
        }
        match reason {
            Some(reason) => {
                self.replace(Ref::Set(&wanted.id.name), &wanted.id, reason);
                self.out.deleted.sets += 1;
                self.out.added.sets += 1;
                self.deleted.sets.push(Operation::Delete((&wanted.id).into()));
                self.script.add(wanted.clone());
            }
            None if changes.deleted.is_empty() && changes.added.is_empty() => {}
            None => {
                self.known.insert(&wanted.id.name);
                let elements =
                    Elements { set: wanted.id.clone(), list: std::mem::take(&mut changes.deleted) };
                if !elements.list.is_empty() {
                    self.deleted.elements.push(Operation::Delete(elements.into()));
                }
            }
        }
        self.add_elements(wanted, changes.added);
        Ok(())
    }

    /// Compares the elements of a set. If all are added again, so are unwanted ones that stay.
    pub(super) fn compare_elements(
        &mut self,
        wanted: &Set,
        elements: &[Element],
        (found, theirs): (&'k read::Set, &'k [read::Element]),
        renew_all: bool,
        options: &Options<'_>,
    ) -> Result<Changes, Error> {
        let replaced = &self.replaced;
        let context = Context {
            family: self.wanted.content.table.id.family,
            wanted,
            kernel: found,
            options,
            is_replaced: &|reference| contains(replaced, reference),
            renew_all,
        };
        let (mut again, mut stay) = (HashSet::new(), Vec::new());
        let compared = context.compare(elements, theirs, &mut |range, element, add_again| {
            stay.push(element);
            if add_again {
                again.insert(range);
            }
        })?;
        let (mut added, form) = (compared.added, Form::of(wanted));
        if !again.is_empty() {
            let again: &HashSet<Range<'_>> = &again;
            let typed = self.kernel.typed_elements(&found.name).iter();
            added.extend(typed.filter(|element| again.contains(&from_wanted(form, element))).cloned());
        }
        if !self.candidates.is_empty() {
            for element in stay {
                refs_of_element(found, element, &mut |reference| self.candidates.stays(reference));
            }
        }
        let (deleted, unrepresentable, deleted_count) =
            (compared.deleted, compared.unrepresentable, compared.deleted_count);
        Ok(Changes { added, deleted, unrepresentable, deleted_count })
    }

    pub(super) fn add_elements(&mut self, set: &Set, list: Vec<Element>) {
        self.script.elements(Elements { set: set.id.clone(), list }, is_constant(set));
    }

    pub(super) fn rules(&mut self) -> Result<(), Error> {
        let (wanted, kernel, options) = (self.wanted, self.kernel, self.options);
        let intervals = wanted.intervals(kernel);
        let carries = |name: &Name| match wanted.sets.get(name) {
            Some((set, _)) => !set.statements.is_empty(),
            None => kernel.set(name).is_some_and(|(set, _)| !set.expressions.is_empty()),
        };
        let bodies = Bodies { family: self.id().family, defines_state: &carries };
        for (chain, rules) in &wanted.content.chains {
            let mut ours = Vec::with_capacity(rules.len());
            for rule in rules {
                let lowered = wanted.lower(rule, &intervals)?;
                if !self.candidates.is_empty() {
                    refs_of_lowered(&lowered, &mut |reference| self.candidates.stays(reference));
                }
                let mut body = Vec::new();
                bodies.wanted(&lowered, rule.comment.as_ref(), &mut body).map_err(too_long)?;
                ours.push((rule, body));
            }
            let all = self.is_whole() || self.replaced.contains(&Ref::Chain(&chain.id.name));
            let theirs = self.kernel_rules(&chain.id.name, all, Some(&bodies))?;
            let mut aligned = align(&ours, &theirs, &|rule| (options.keep)(Foreign::Rule(rule)));
            if chain.base.as_ref().is_some_and(|base| base.offload) {
                aligned = append_only(aligned, &theirs);
            }
            let (items, deleted) = aligned;
            if !self.candidates.is_empty() {
                for item in &items {
                    if let Item::Stays(rule) | Item::Again(rule) = item {
                        kernel.refs_of_rule(rule, &mut |reference| self.candidates.stays(reference));
                    }
                }
            }
            for item in &items {
                if let Item::Wanted(rule) = item {
                    let lowered = wanted.lower(rule, &intervals)?;
                    refs_of_lowered(&lowered, &mut |reference| self.knows(reference));
                }
            }
            self.chain_rules(&chain.id, chain.base.is_some(), &items, &deleted);
        }
        Ok(())
    }

    fn knows(&mut self, reference: Ref<'_>) {
        if let Ref::Set(name) = reference
            && let Some((name, _)) = self.wanted.sets.get_key_value(name)
        {
            self.known.insert(*name);
        }
    }

    /// Returns the rules of a chain in the kernel; without `bodies` they are not compared.
    pub(super) fn kernel_rules(
        &self,
        chain: &Name,
        all: bool,
        bodies: Option<&Bodies<'_>>,
    ) -> Result<Vec<KernelRule<'k>>, Error> {
        let mut rules = Vec::new();
        for rule in self.kernel.rules(chain) {
            let mut add_again = all;
            if !all && !self.replaced.is_empty() {
                self.kernel
                    .refs_of_rule(rule, &mut |reference| add_again |= contains(&self.replaced, reference));
            }
            let mut body = Vec::new();
            if let Some(bodies) = bodies {
                bodies.kernel(self.kernel, rule, &mut body).map_err(too_long)?;
            }
            rules.push(KernelRule { rule, body, add_again });
        }
        Ok(rules)
    }

    pub(super) fn chain_rules(
        &mut self,
        chain: &ChainId,
        base: bool,
        items: &[Item<'_>],
        deleted: &[&read::Rule],
    ) {
        let all = self.kernel.rules(&chain.name).len();
        self.out.deleted.rules += deleted.len();
        self.deleted.rules.extend(delete_rules(chain, deleted, all));
        for operation in added(items, Some(self.kernel)) {
            self.out.added.rules += 1;
            self.script.rule(operation, base);
        }
    }
}

/// The changes to the elements of a set.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) added: Vec<Element>,
    pub(super) deleted: Vec<Element>,
    /// Whether the kernel has an element that the types of the set cannot represent.
    unrepresentable: bool,
    /// The number of deleted elements.
    pub(super) deleted_count: usize,
}

impl Changes {
    /// Returns why the changes cannot be made in place, if they cannot.
    fn blocking_reason(&self, set: &Set) -> Option<Reason> {
        if self.unrepresentable {
            return Some(Reason::Elements);
        }
        let any = !self.added.is_empty() || !self.deleted.is_empty();
        (any && is_constant(set)).then_some(Reason::Constant)
    }
}
