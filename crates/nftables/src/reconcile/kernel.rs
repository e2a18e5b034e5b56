//! The kernel's ruleset, table by table, and the references in it.

use std::cell::OnceCell;
use std::collections::HashMap;

use crate::expr::{Data, Expr, ObjectKind};
use crate::family::Family;
use crate::listing::{TableContent, target};
use crate::name::Name;
use crate::object::{Element, Rule, SetFlags};
use crate::read::{self, ChainFlags, Ruleset};
use crate::tree::Verdict;

/// A table in the kernel.
pub(super) struct Kernel<'k> {
    pub(super) table: &'k read::Table,
    /// The chains except anonymous ones.
    pub(super) chains: Vec<&'k read::Chain>,
    /// The rules of each chain.
    rules: HashMap<&'k Name, Vec<&'k read::Rule>>,
    /// The anonymous chains.
    bound: HashMap<&'k Name, ()>,
    /// The sets except anonymous ones.
    pub(super) sets: Vec<&'k (read::Set, Vec<read::Element>)>,
    by_name: HashMap<&'k Name, &'k (read::Set, Vec<read::Element>)>,
    pub(super) objects: Vec<&'k read::Object>,
    pub(super) flowtables: Vec<&'k read::Flowtable>,
    ruleset: &'k Ruleset,
    typed: OnceCell<Typed>,
}

/// The table in the typed language.
struct Typed {
    content: TableContent,
    /// The index of the chain and the position in it for each rule, by handle.
    rules: HashMap<u64, (usize, usize)>,
    sets: HashMap<Name, usize>,
}

/// A named object that rules and elements refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Ref<'a> {
    Chain(&'a Name),
    Set(&'a Name),
    Object(ObjectKind, &'a Name),
    Flowtable(&'a Name),
}

impl<'k> Kernel<'k> {
    /// Groups a ruleset by table.
    pub(super) fn tables(ruleset: &'k Ruleset) -> HashMap<(Family, &'k Name), Self> {
        let mut all: HashMap<_, _> = ruleset
            .tables
            .iter()
            .map(|table| ((table.family, &table.name), Self::new(table, ruleset)))
            .collect();
        for chain in &ruleset.chains {
            let Some(kernel) = all.get_mut(&(chain.family, &chain.table)) else { continue };
            if chain.flags.contains(ChainFlags::BINDING) {
                kernel.bound.insert(&chain.name, ());
            } else {
                kernel.chains.push(chain);
            }
        }
        for rule in &ruleset.rules {
            let Some(kernel) = all.get_mut(&(rule.family, &rule.table)) else { continue };
            kernel.rules.entry(&rule.chain).or_default().push(rule);
        }
        for set in &ruleset.sets {
            let Some(kernel) = all.get_mut(&(set.0.family, &set.0.table)) else { continue };
            kernel.by_name.insert(&set.0.name, set);
            if !set.0.flags.contains(SetFlags::ANONYMOUS) {
                kernel.sets.push(set);
            }
        }
        for object in &ruleset.objects {
            if let Some(kernel) = all.get_mut(&(object.family, &object.table)) {
                kernel.objects.push(object);
            }
        }
        for flowtable in &ruleset.flowtables {
            if let Some(kernel) = all.get_mut(&(flowtable.family, &flowtable.table)) {
                kernel.flowtables.push(flowtable);
            }
        }
        all
    }

    fn new(table: &'k read::Table, ruleset: &'k Ruleset) -> Self {
        Self {
            table,
            chains: Vec::new(),
            rules: HashMap::new(),
            bound: HashMap::new(),
            sets: Vec::new(),
            by_name: HashMap::new(),
            objects: Vec::new(),
            flowtables: Vec::new(),
            ruleset,
            typed: OnceCell::new(),
        }
    }

    /// Returns the rules of a chain, in order.
    pub(super) fn rules(&self, chain: &Name) -> &[&'k read::Rule] {
        self.rules.get(chain).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns a set, which may be anonymous.
    pub(super) fn set(&self, name: &Name) -> Option<&'k (read::Set, Vec<read::Element>)> {
        self.by_name.get(name).copied()
    }

    /// Returns an anonymous set.
    pub(super) fn anonymous(&self, name: &Name) -> Option<&'k (read::Set, Vec<read::Element>)> {
        self.set(name).filter(|(set, _)| set.flags.contains(SetFlags::ANONYMOUS))
    }

    /// Returns the rules of an anonymous chain; `None` for other chains.
    pub(super) fn bound(&self, chain: &Name) -> Option<&[&'k read::Rule]> {
        self.bound.contains_key(chain).then(|| self.rules(chain))
    }

    /// Calls `found` with each object that a rule refers to, directly or through its anonymous sets and
    /// chains.
    pub(super) fn refs_of_rule(&self, rule: &'k read::Rule, found: &mut dyn FnMut(Ref<'k>)) {
        for expr in &rule.expressions {
            refs_of_expr(expr, &mut |reference| match reference {
                Ref::Set(name) => match self.anonymous(name) {
                    Some((set, elements)) => {
                        elements.iter().for_each(|element| refs_of_element(set, element, found));
                    }
                    None => found(reference),
                },
                Ref::Chain(name) => match self.bound(name) {
                    Some(rules) => rules.iter().for_each(|rule| self.refs_of_rule(rule, found)),
                    None => found(reference),
                },
                _ => found(reference),
            });
        }
    }

    /// Returns a rule in the typed language.
    pub(super) fn typed_rule(&self, rule: &read::Rule) -> Option<Rule> {
        let typed = self.typed();
        let (chain, at) = typed.rules.get(&rule.handle)?;
        typed.content.chains.get(*chain)?.1.get(*at).cloned()
    }

    /// Returns the elements of a set in the typed language.
    pub(super) fn typed_elements(&self, set: &Name) -> &[Element] {
        let typed = self.typed();
        let found = typed.sets.get(set).and_then(|at| typed.content.sets.get(*at));
        found.map(|(_, elements)| elements.as_slice()).unwrap_or_default()
    }

    /// Returns the table in the typed language. It is converted on first use, which takes as long as listing
    /// it, and only needed if unwanted objects have to be added again.
    pub(super) fn content(&self) -> &TableContent {
        &self.typed().content
    }

    fn typed(&self) -> &Typed {
        self.typed.get_or_init(|| {
            let content = self.ruleset.content_of(self.table);
            let mut rules = HashMap::new();
            for (chain, (_, list)) in content.chains.iter().enumerate() {
                let handles =
                    list.iter().enumerate().filter_map(|(at, rule)| Some((rule.handle?, (chain, at))));
                rules.extend(handles);
            }
            let sets =
                content.sets.iter().enumerate().map(|(at, (set, _))| (set.id.name.clone(), at)).collect();
            Typed { content, rules, sets }
        })
    }
}

/// Calls `found` with each object that an expression refers to directly.
pub(super) fn refs_of_expr<'e>(expr: &'e Expr, found: &mut dyn FnMut(Ref<'e>)) {
    match expr {
        Expr::Lookup(lookup) => found(Ref::Set(&lookup.set)),
        Expr::Dynset(dynset) => found(Ref::Set(&dynset.set)),
        Expr::Objref(reference) => match (&reference.set, reference.kind, &reference.name) {
            (Some(set), ..) => found(Ref::Set(set)),
            (None, Some(kind), Some(name)) => found(Ref::Object(kind, name)),
            _ => {}
        },
        Expr::FlowOffload(offload) => found(Ref::Flowtable(&offload.flowtable)),
        Expr::Immediate(immediate) => {
            if let Data::Verdict(verdict) = &immediate.data {
                refs_of_verdict(verdict, found);
            }
        }
        _ => {}
    }
}

/// Calls `found` with each object that an element refers to.
pub(super) fn refs_of_element<'e>(
    set: &read::Set,
    element: &'e read::Element,
    found: &mut dyn FnMut(Ref<'e>),
) {
    match (&element.data, &element.details().object, set.object_kind) {
        (Some(Data::Verdict(verdict)), ..) => refs_of_verdict(verdict, found),
        (_, Some(name), Some(kind)) => found(Ref::Object(kind, name)),
        _ => {}
    }
}

pub(super) fn refs_of_verdict<'e>(verdict: &'e Verdict, found: &mut dyn FnMut(Ref<'e>)) {
    if let Some(chain) = target(verdict) {
        found(Ref::Chain(chain));
    }
}
