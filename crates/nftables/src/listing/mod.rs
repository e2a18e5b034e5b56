//! What the kernel holds, back in the typed language, and printed as `nft -s list ruleset` prints it.

mod object;
mod options;
mod set;
mod text;

use std::collections::HashMap;

use crate::expr::ObjectKind;
use crate::family::Family;
use crate::lang::raise::{Sets, raise};
use crate::lang::{BoundChain, BoundRule, Statement, Verdict};
use crate::name::{Comment, InterfaceName, Name};
use crate::object::*;
use crate::read;
pub(crate) use object::object_of;
pub use options::ListOptions;
pub(crate) use set::{elements_of, have_words, set_of};

/// A table and all that is in it, in the typed language.
///
/// Printed, it is what `nft -s list ruleset` says of it: without handles, counts and times that are left, which are said where
/// [`ListOptions`] ask for them. Rules that the language has no words for hold [`Statement::Raw`](crate::lang::Statement::Raw).
///
/// The words are those of nft 1.0.6, and those of the version that has them first where 1.0.6 has none. Later versions list some of it otherwise: the
/// default burst of a limit, names of devices in quotes, an element a line, how many elements a set has.
///
/// What nft 1.0.6 lists so that it cannot read it is listed so: names of several devices without quotes, even one that is a word of nft's language.
/// A [`Transaction`](crate::Transaction) prints such names in quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableContent {
    /// The table.
    pub table: Table,
    /// Its stateful objects; those of kinds newer than this crate are left out, and stay in [`read::Ruleset::objects`].
    pub objects: Vec<StatefulObject>,
    /// Its named sets and maps with their elements.
    pub sets: Vec<(Set, Vec<Element>)>,
    /// Its flowtables.
    pub flowtables: Vec<Flowtable>,
    /// Its chains with their rules, each with its handle. A chain that belongs to a rule is in that rule ([`Statement::Bound`]).
    pub chains: Vec<(Chain, Vec<Rule>)>,
    /// The handles of all these.
    pub handles: Handles,
}

/// The handles of a table and of what is in it, by name; those of rules are in the rules.
///
/// With one of them a chain is renamed ([`Transaction::rename_handle`](crate::Transaction::rename_handle)), or anything deleted that is still the
/// same ([`HandleId`](crate::HandleId)).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Handles {
    /// That of the table.
    pub table: u64,
    /// Those of stateful objects.
    pub objects: HashMap<(ObjectKind, Name), u64>,
    /// Those of named sets and maps.
    pub sets: HashMap<Name, u64>,
    /// Those of flowtables.
    pub flowtables: HashMap<Name, u64>,
    /// Those of chains.
    pub chains: HashMap<Name, u64>,
}

impl read::Ruleset {
    /// Everything in the typed language, table by table.
    ///
    /// ```no_run
    /// use sluicegate_netlink::{Options, Protocol, Socket};
    /// use sluicegate_nftables::{Family, read};
    ///
    /// let mut socket = Socket::open(Protocol::NETFILTER, &Options::default())?;
    /// for table in read::ruleset(&mut socket, Family::UNSPEC, None)?.content() {
    ///     print!("{table}"); // as `nft -s list ruleset`
    /// }
    /// # Ok::<(), sluicegate_netlink::Error>(())
    /// ```
    #[must_use]
    pub fn content(&self) -> Vec<TableContent> {
        let mut parts = Parts::default();
        self.sets.iter().for_each(|set| parts.of(set.0.family, &set.0.table).sets.push(set));
        self.chains.iter().for_each(|chain| parts.of(chain.family, &chain.table).chains.push(chain));
        for rule in &self.rules {
            parts.of(rule.family, &rule.table).rules.entry(&rule.chain).or_default().push(rule);
        }
        self.objects.iter().for_each(|object| parts.of(object.family, &object.table).objects.push(object));
        self.flowtables.iter().for_each(|held| parts.of(held.family, &held.table).flowtables.push(held));
        self.tables.iter().map(|held| parts.of(held.family, &held.name).content(held)).collect()
    }
}

/// Everything by its table. Nobody goes through all of it for each table: there may be as many of those.
#[derive(Default)]
struct Parts<'a>(HashMap<(Family, &'a Name), Held<'a>>);

impl<'a> Parts<'a> {
    fn of(&mut self, family: Family, table: &'a Name) -> &mut Held<'a> {
        self.0.entry((family, table)).or_default()
    }
}

/// What is in one table.
#[derive(Default)]
struct Held<'a> {
    sets: Vec<&'a (read::Set, Vec<read::Element>)>,
    chains: Vec<&'a read::Chain>,
    rules: HashMap<&'a Name, Vec<&'a read::Rule>>,
    objects: Vec<&'a read::Object>,
    flowtables: Vec<&'a read::Flowtable>,
}

impl Held<'_> {
    fn content(&self, held: &read::Table) -> TableContent {
        let table = table_of(held);
        let id = &table.id;
        let mut sets: Sets = HashMap::new();
        let mut named = Vec::new();
        for (set, elements) in &self.sets {
            let typed = set_of(id, set);
            if typed.is_anonymous() && !have_words(elements) {
                continue;
            }
            let mut elements = elements_of(&typed, elements);
            if !typed.is_anonymous() {
                named.push((typed.clone(), std::mem::take(&mut elements)));
            }
            sets.insert(set.name.clone(), (typed, elements));
        }
        let (bound, chains): (Vec<&read::Chain>, Vec<_>) =
            self.chains.iter().partition(|chain| chain.flags.contains(read::ChainFlags::BINDING));
        let bound: Bound = bound
            .into_iter()
            .map(|chain| (chain.name.clone(), bound_rules(self.rules_of(id, chain, &sets).1.into_iter())))
            .collect();
        let chains = chains.into_iter().map(|chain| {
            let (typed, mut rules) = self.rules_of(id, chain, &sets);
            rules.iter_mut().for_each(|rule| put_in(&mut rule.statements, |name| bound.get(name).cloned()));
            (typed, rules)
        });
        TableContent {
            chains: chains.collect(),
            objects: self.objects.iter().filter_map(|held| object_of(id, held)).collect(),
            flowtables: self.flowtables.iter().map(|held| flowtable_of(id, held)).collect(),
            sets: named,
            handles: self.handles(held),
            table,
        }
    }

    fn handles(&self, table: &read::Table) -> Handles {
        let named = self.sets.iter().filter(|(set, _)| !set.flags.contains(SetFlags::ANONYMOUS));
        Handles {
            table: table.handle,
            objects: self
                .objects
                .iter()
                .map(|held| ((held.object_kind, held.name.clone()), held.handle))
                .collect(),
            sets: named.map(|(set, _)| (set.name.clone(), set.handle)).collect(),
            flowtables: self.flowtables.iter().map(|held| (held.name.clone(), held.handle)).collect(),
            chains: self.chains.iter().map(|held| (held.name.clone(), held.handle)).collect(),
        }
    }

    fn rules_of(&self, table: &TableId, chain: &read::Chain, sets: &Sets) -> (Chain, Vec<Rule>) {
        let typed = chain_of(table, chain);
        let rules = self.rules.get(&chain.name).into_iter().flatten();
        let rules = rules.map(|rule| rule_of(&typed.id, rule, sets)).collect();
        (typed, rules)
    }
}

/// The chains that belong to a rule, by the names that the kernel gave them.
type Bound = HashMap<Name, Vec<BoundRule>>;

pub(crate) fn bound_rules(rules: impl Iterator<Item = Rule>) -> Vec<BoundRule> {
    rules.map(|rule| BoundRule { statements: rule.statements, comment: rule.comment }).collect()
}

/// Puts such chains where a rule jumps to them.
pub(crate) fn put_in(statements: &mut [Statement], bound: impl Fn(&Name) -> Option<Vec<BoundRule>>) {
    for statement in statements {
        let found = match statement {
            Statement::Verdict(Verdict::Jump(to)) => bound(to).map(|rules| (false, rules)),
            Statement::Verdict(Verdict::Goto(to)) => bound(to).map(|rules| (true, rules)),
            _ => None,
        };
        if let Some((goto, rules)) = found {
            *statement = BoundChain { goto, rules }.into();
        }
    }
}

pub(crate) fn table_of(held: &read::Table) -> Table {
    Table {
        flags: held.flags,
        comment: comment(held.comment()),
        ..Table::new(TableId::new(held.family, held.name.clone()))
    }
}

pub(crate) fn chain_of(table: &TableId, held: &read::Chain) -> Chain {
    let base = held.hook.as_ref().and_then(|hook| {
        Some(BaseChain {
            kind: match held.kind.as_deref()? {
                "filter" => ChainType::Filter,
                "nat" => ChainType::Nat,
                "route" => ChainType::Route,
                other => ChainType::Other(Name::held(other)),
            },
            hook: Hook::ALL.iter().copied().find(|h| h.number(held.family) == Some(hook.number))?,
            priority: Priority(hook.priority),
            policy: match held.policy {
                Some(0) => Some(Policy::Drop),
                Some(_) => Some(Policy::Accept),
                None => None,
            },
            devices: devices_of(&hook.devices),
            offload: held.flags.contains(read::ChainFlags::HW_OFFLOAD),
        })
    });
    Chain { id: table.chain(held.name.clone()), base, comment: comment(held.comment()) }
}

/// The kernel says a single device twice, by itself and in a list.
pub(crate) fn devices_of(names: &[String]) -> Vec<InterfaceName> {
    let mut devices: Vec<_> = names.iter().map(|device| InterfaceName::held(device)).collect();
    devices.dedup();
    devices
}

pub(crate) fn rule_of(chain: &ChainId, held: &read::Rule, sets: &Sets) -> Rule {
    Rule {
        statements: raise(held.family, sets, &held.expressions),
        comment: comment(held.comment()),
        handle: Some(held.handle),
        ..Rule::new(chain.clone())
    }
}

pub(crate) fn flowtable_of(table: &TableId, held: &read::Flowtable) -> Flowtable {
    Flowtable {
        id: table.flowtable(held.name.clone()),
        priority: Priority(held.priority),
        devices: devices_of(&held.devices),
        flags: held.flags,
    }
}

fn comment(text: Option<&str>) -> Option<Comment> {
    text.map(Comment::lossy)
}
