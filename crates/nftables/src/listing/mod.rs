//! Converts the kernel's ruleset to the typed language, and prints it as `nft -s list ruleset` does.
//!
//! What nft looks up on the machine to print a listing (interface names, `/etc/iproute2`, the time zone) is a
//! value here, [`ListOptions`], which is passed to whatever prints (`wording::Wording`). Printing does no
//! input or output; only `read/list_options.rs` looks names up. Without such options the output is a script,
//! which has no time zone: hours and dates are numbers, which nft reads in the same way everywhere.
//!
//! The time zone is a single offset. nft uses the offset at each date, and for hours the current one; that
//! needs a time-zone database, which this crate does not have.

mod content;
mod edit;
mod object;
mod script;
mod text;

use std::borrow::Cow;
use std::collections::HashMap;

use crate::compile::raise::{Sets, TableContext, raise};
use crate::expr::{Expr, ObjectKind};
use crate::family::Family;
use crate::name::{Comment, InterfaceName, Name};
use crate::object::*;
use crate::read;
use crate::read::typed_set::{are_expressible, elements_of, set_of};
use crate::tree::{BoundChain, BoundRule, Statement, Verdict};
pub(crate) use object::object_of;
#[cfg(feature = "reconcile")]
pub(crate) use script::{Script, is_constant, target, without_position};
#[cfg(feature = "json")]
pub(crate) use text::indented;

/// A table with its whole content, in the typed language.
///
/// It prints as `nft -s list ruleset` does: without handles, counters and remaining times, unless
/// [`ListOptions`](crate::ListOptions) request them. A rule that the language cannot express is a
/// [`Statement::Raw`](crate::lang::Statement::Raw).
///
/// The text is that of nft 1.0.6, or of the first version that supports a feature. Later versions list some
/// things differently: the default burst of a limit, names of devices in quotes, one element per line, the
/// number of elements of a set.
///
/// Text of nft 1.0.6 that nft itself cannot read is printed in the same way: names of several devices have no
/// quotes, even if one is a keyword of nft. A [`Transaction`](crate::Transaction) prints such names in
/// quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableContent {
    /// The table.
    pub table: Table,
    /// Its stateful objects; objects of unknown kinds are only in [`read::Ruleset::objects`].
    pub objects: Vec<StatefulObject>,
    /// Its named sets and maps with their elements.
    pub sets: Vec<(Set, Vec<Element>)>,
    /// Its flowtables.
    pub flowtables: Vec<Flowtable>,
    /// Its chains with their rules, each with its handle. An anonymous chain is part of the rule that it
    /// belongs to ([`Statement::Bound`]).
    pub chains: Vec<(Chain, Vec<Rule>)>,
    /// The handles of all these objects.
    pub handles: Handles,
}

/// The handles of a table and of its objects, by name. The handles of rules are in the rules.
///
/// A handle identifies the object even if another one gets its name: it is used to rename a chain
/// ([`Transaction::rename_handle`](crate::Transaction::rename_handle)) or to delete an object
/// ([`HandleId`](crate::HandleId)).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Handles {
    /// The handle of the table.
    pub table: u64,
    /// The handles of stateful objects.
    pub objects: HashMap<(ObjectKind, Name), u64>,
    /// The handles of named sets and maps.
    pub sets: HashMap<Name, u64>,
    /// The handles of flowtables.
    pub flowtables: HashMap<Name, u64>,
    /// The handles of chains.
    pub chains: HashMap<Name, u64>,
}

impl TableContent {
    /// Returns whether a rule of it uses modules of xtables: the table is iptables-nft's, and cannot be loaded
    /// from the text that it prints as.
    #[must_use]
    pub fn uses_xtables(&self) -> bool {
        let is_module = |statement: &Statement| match statement {
            Statement::Raw(exprs) => {
                exprs.iter().any(|expr| matches!(expr, Expr::XtMatch(_) | Expr::XtTarget(_)))
            }
            _ => false,
        };
        self.chains.iter().flat_map(|(_, rules)| rules).any(|rule| rule.statements.iter().any(is_module))
    }
}

impl read::Ruleset {
    /// Converts the ruleset to the typed language, table by table.
    ///
    /// ```no_run
    /// use sluicegate_nftables::netlink::{Options, NetlinkFamily, Socket};
    /// use sluicegate_nftables::{Family, read};
    ///
    /// let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default())?;
    /// for table in read::ruleset(&mut socket, Family::UNSPEC)?.content() {
    ///     print!("{table}"); // as `nft -s list ruleset`
    /// }
    /// # Ok::<(), sluicegate_nftables::Error>(())
    /// ```
    #[must_use]
    pub fn content(&self) -> Vec<TableContent> {
        let mut parts = self.by_table();
        self.tables
            .iter()
            .map(|from_kernel| parts.of(from_kernel.family, &from_kernel.name).content(from_kernel))
            .collect()
    }

    /// Converts one table to the typed language.
    #[cfg(feature = "reconcile")]
    pub(crate) fn content_of(&self, table: &read::Table) -> TableContent {
        self.by_table().of(table.family, &table.name).content(table)
    }

    fn by_table(&self) -> ByTable<'_> {
        let mut parts = ByTable::default();
        self.sets.iter().for_each(|set| parts.of(set.0.family, &set.0.table).sets.push(set));
        self.chains.iter().for_each(|chain| parts.of(chain.family, &chain.table).chains.push(chain));
        for rule in &self.rules {
            parts.of(rule.family, &rule.table).rules.entry(&rule.chain).or_default().push(rule);
        }
        self.objects.iter().for_each(|object| parts.of(object.family, &object.table).objects.push(object));
        self.flowtables.iter().for_each(|from_kernel| {
            parts.of(from_kernel.family, &from_kernel.table).flowtables.push(from_kernel);
        });
        parts
    }
}

/// All objects grouped by table, so that the conversion takes linear time even if there are thousands of
/// tables.
#[derive(Default)]
struct ByTable<'a>(HashMap<(Family, &'a Name), TableObjects<'a>>);

impl<'a> ByTable<'a> {
    fn of(&mut self, family: Family, table: &'a Name) -> &mut TableObjects<'a> {
        self.0.entry((family, table)).or_default()
    }
}

/// The objects of one table.
#[derive(Default)]
struct TableObjects<'a> {
    sets: Vec<&'a (read::Set, Vec<read::Element>)>,
    chains: Vec<&'a read::Chain>,
    rules: HashMap<&'a Name, Vec<&'a read::Rule>>,
    objects: Vec<&'a read::Object>,
    flowtables: Vec<&'a read::Flowtable>,
}

impl TableObjects<'_> {
    fn content(&self, from_kernel: &read::Table) -> TableContent {
        let table = table_of(from_kernel);
        let id = &table.id;
        let mut sets: Sets = HashMap::new();
        let mut named = Vec::new();
        for (set, elements) in &self.sets {
            let typed = set_of(id, set);
            if typed.is_anonymous() && !are_expressible(elements) {
                continue;
            }
            let mut elements = elements_of(&typed, elements);
            if !typed.is_anonymous() {
                named.push((typed.clone(), std::mem::take(&mut elements)));
            }
            sets.insert(set.name.clone(), (typed, elements));
        }
        let context = TableContext::new(id, &sets);
        let (bound, chains): (Vec<&read::Chain>, Vec<_>) =
            self.chains.iter().partition(|chain| chain.flags.contains(read::ChainFlags::BINDING));
        let bound: Bound = bound
            .into_iter()
            .map(|chain| (chain.name.clone(), bound_rules(self.rules_of(id, chain, &context).1.into_iter())))
            .collect();
        let chains = chains.into_iter().map(|chain| {
            let (typed, mut rules) = self.rules_of(id, chain, &context);
            rules.iter_mut().for_each(|rule| {
                insert_bound_rules(rule.statements.to_mut(), |name| bound.get(name).cloned());
            });
            (typed, rules)
        });
        TableContent {
            chains: chains.collect(),
            objects: self.objects.iter().filter_map(|from_kernel| object_of(id, from_kernel)).collect(),
            flowtables: self.flowtables.iter().map(|from_kernel| flowtable_of(id, from_kernel)).collect(),
            sets: named,
            handles: self.handles(from_kernel),
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
                .map(|from_kernel| ((from_kernel.object_kind, from_kernel.name.clone()), from_kernel.handle))
                .collect(),
            sets: named.map(|(set, _)| (set.name.clone(), set.handle)).collect(),
            flowtables: self
                .flowtables
                .iter()
                .map(|from_kernel| (from_kernel.name.clone(), from_kernel.handle))
                .collect(),
            chains: self
                .chains
                .iter()
                .map(|from_kernel| (from_kernel.name.clone(), from_kernel.handle))
                .collect(),
        }
    }

    fn rules_of(
        &self,
        table: &TableId,
        chain: &read::Chain,
        context: &TableContext<'_>,
    ) -> (Chain, Vec<Rule>) {
        let typed = chain_of(table, chain);
        let rules = self.rules.get(&chain.name).into_iter().flatten();
        let rules = rules.map(|rule| rule_of(&typed.id, rule, context)).collect();
        (typed, rules)
    }
}

/// The rules of anonymous chains, by the names that the kernel gave the chains.
type Bound = HashMap<Name, Vec<BoundRule>>;

pub(crate) fn bound_rules(rules: impl Iterator<Item = Rule>) -> Vec<BoundRule> {
    rules.map(|rule| BoundRule { statements: rule.statements.into(), comment: rule.comment }).collect()
}

/// Replaces jumps to anonymous chains by the rules of those chains.
pub(crate) fn insert_bound_rules(
    statements: &mut [Statement],
    bound: impl Fn(&Name) -> Option<Vec<BoundRule>>,
) {
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

pub(crate) fn table_of(from_kernel: &read::Table) -> Table {
    Table {
        flags: from_kernel.flags,
        comment: comment(from_kernel.comment()),
        ..Table::new(TableId::new(from_kernel.family, from_kernel.name.clone()))
    }
}

pub(crate) fn chain_of(table: &TableId, from_kernel: &read::Chain) -> Chain {
    let base = from_kernel.hook.as_ref().and_then(|hook| {
        Some(BaseChain {
            kind: match from_kernel.kind.as_deref()? {
                "filter" => ChainType::Filter,
                "nat" => ChainType::Nat,
                "route" => ChainType::Route,
                other => ChainType::Other(Name::from_kernel(other)),
            },
            hook: Hook::ALL.iter().copied().find(|h| h.number(from_kernel.family) == Some(hook.number))?,
            priority: Priority(hook.priority),
            policy: match from_kernel.policy {
                Some(0) => Some(Policy::Drop),
                Some(_) => Some(Policy::Accept),
                None => None,
            },
            devices: devices_of(&hook.devices),
            offload: from_kernel.flags.contains(read::ChainFlags::HW_OFFLOAD),
        })
    });
    Chain {
        base,
        comment: comment(from_kernel.comment()),
        ..Chain::new(table.chain(from_kernel.name.clone()))
    }
}

/// Returns the devices of a hook without duplicates. The kernel lists a single device twice, by itself and in
/// a list.
pub(crate) fn devices_of(names: &[String]) -> Vec<InterfaceName> {
    let mut devices: Vec<_> = names.iter().map(|device| InterfaceName::from_kernel(device)).collect();
    devices.dedup();
    devices
}

pub(crate) fn rule_of(chain: &ChainId, from_kernel: &read::Rule, context: &TableContext<'_>) -> Rule {
    Rule {
        statements: raise(context, &from_kernel.expressions).into(),
        comment: comment(from_kernel.comment()),
        handle: Some(from_kernel.handle),
        ..Rule::new(chain.clone())
    }
}

pub(crate) fn flowtable_of(table: &TableId, from_kernel: &read::Flowtable) -> Flowtable {
    Flowtable {
        id: table.flowtable(from_kernel.name.clone()),
        priority: Priority(from_kernel.priority),
        devices: devices_of(&from_kernel.devices),
        flags: from_kernel.flags,
    }
}

fn comment(text: Option<Cow<'_, str>>) -> Option<Comment> {
    text.map(|text| Comment::from_kernel(&text))
}
