//! From tables as they are to be to the operations of one batch.
//!
//! Chains come first, then rules, then the chains that go: a jump finds its chain, and no rule leads to a
//! chain that is deleted. Rules that stay keep their handles, by which the others are placed.

use sluicegate_iptables_save::{Counters, Family};
use sluicegate_nftables::expr::kind::Immediate;
use sluicegate_nftables::expr::{Data, Expr};
use sluicegate_nftables::lang::{Counter, Statement, Verdict};
use sluicegate_nftables::{ChainId, Name, Rule, RuleId, Table as TableObject, TableId, Transaction};

use super::builtin::table_id;
use super::state::{Chain, Entry, NewRule, OldRule, Rules, Table};

/// The operations of a batch.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) transaction: Transaction,
    /// For each operation: its table, and the line that asked for it, or 0.
    pub(super) origins: Vec<(String, usize)>,
    /// The operation that adds each new rule, in the order of tables, chains and rules.
    pub(super) added: Vec<usize>,
}

impl Plan {
    pub(super) fn new(tables: &[Table], family: Family) -> Self {
        let mut plan = Self::default();
        for table in tables {
            TablePlan { id: table_id(family, &table.name), table, plan: &mut plan }.operations();
        }
        plan
    }
}

struct TablePlan<'a> {
    id: TableId,
    table: &'a Table,
    plan: &'a mut Plan,
}

impl TablePlan<'_> {
    fn operations(&mut self) {
        let table = self.table;
        if table.flushed && table.existed {
            let id = self.id.clone();
            self.note(0).delete(id);
        }
        if table.needed && (table.flushed || !table.existed) {
            let id = self.id.clone();
            self.note(0).add(TableObject::new(id));
        }
        table.chains.iter().for_each(|(name, chain)| self.chain(name, chain));
        table.chains.iter().for_each(|(name, chain)| self.rules(name, chain));
        for (name, chain) in table.chains.iter().filter(|(_, chain)| chain.was.is_some() && !chain.exists) {
            let id = self.chain_id(name);
            self.note(chain.line).delete(id);
        }
    }

    /// Notes where the next operation comes from.
    fn note(&mut self, line: usize) -> &mut Transaction {
        self.plan.origins.push((self.table.name.clone(), line));
        &mut self.plan.transaction
    }

    /// Returns the id of a chain. Until the batch is committed, a chain that it renames has its old name.
    fn chain_id(&self, name: &str) -> ChainId {
        let renamed = self.table.chains.get(name).and_then(|chain| chain.renamed.as_ref());
        self.id.chain(Name::from_kernel(renamed.map_or(name, |(old, _)| old)))
    }

    fn chain(&mut self, name: &str, chain: &Chain) {
        if !chain.exists {
            return;
        }
        let id = self.chain_id(name);
        if let (Some((_, handle)), Some(_)) = (&chain.renamed, &chain.was) {
            self.note(chain.line).rename_handle(id, *handle, Name::from_kernel(name));
        } else if let Some(base) = chain.base {
            if chain.was.is_some() && chain.policy.is_none() {
                return;
            }
            let mut object = base.object(id);
            let (policy, Counters { packets, bytes }) = chain.policy.unwrap_or(DEFAULT_POLICY);
            object.base.iter_mut().for_each(|base| base.policy = Some(policy));
            self.note(chain.line).add(object.counter(Counter { packets, bytes }));
        } else if chain.was.is_none() {
            self.note(chain.line).add(sluicegate_nftables::Chain::new(id));
        }
    }

    fn rules(&mut self, name: &str, chain: &Chain) {
        let id = self.chain_id(name);
        if !chain.exists {
            // Its rules may jump to another chain that goes.
            if chain.was.is_some() {
                self.note(chain.line).flush(id);
            }
            return;
        }
        match &chain.rules {
            Rules::Kernel { first, then } => {
                // Each goes before all others, so the last one is the first to go.
                let mut added = Vec::new();
                for rule in first.iter().rev() {
                    let object = self.rule(&id, rule);
                    added.push(self.plan.origins.len());
                    self.note(rule.line).insert(object);
                }
                self.plan.added.extend(added.into_iter().rev());
                then.iter().for_each(|rule| self.append(&id, rule));
            }
            Rules::List(entries) => {
                let kept = entries.iter().any(|entry| matches!(entry, Entry::Old(_)));
                let old = chain.was.as_ref().and_then(|was| was.rules.as_ref());
                match old {
                    Some(old) if kept => self.difference(&id, old, entries),
                    _ => {
                        let is_empty = chain.was.is_none() || old.is_some_and(|old| old.is_empty());
                        if !is_empty {
                            self.note(chain.line).flush(id.clone());
                        }
                        new_rules(entries).for_each(|rule| self.append(&id, rule));
                    }
                }
            }
        }
    }

    /// Leads from the old rules to entries that keep some of them, in order.
    fn difference(&mut self, id: &ChainId, old: &[std::sync::Arc<OldRule>], entries: &[Entry]) {
        let (mut at, mut new) = (0, Vec::new());
        for entry in entries {
            match entry {
                Entry::New(rule) => new.push(&**rule),
                Entry::Old(kept) => {
                    let rest = old.get(at..).unwrap_or_default();
                    let gone = rest.iter().take_while(|rule| rule.handle != kept.handle).count();
                    self.run(id, rest.get(..gone).unwrap_or_default(), &new, Some(kept.handle));
                    at += gone + 1;
                    new.clear();
                }
            }
        }
        self.run(id, old.get(at..).unwrap_or_default(), &new, None);
    }

    /// Replaces rules by new ones, all of which go before the rule with the handle `next`.
    fn run(&mut self, id: &ChainId, gone: &[std::sync::Arc<OldRule>], new: &[&NewRule], next: Option<u64>) {
        for (old, rule) in gone.iter().zip(new) {
            let object = self.rule(id, rule).handle(old.handle);
            self.added();
            self.note(rule.line).replace(object);
        }
        for old in gone.iter().skip(new.len()) {
            self.note(0).delete(RuleId { chain: id.clone(), handle: old.handle });
        }
        for rule in new.iter().skip(gone.len()) {
            match next {
                None => self.append(id, rule),
                Some(next) => {
                    let object = self.rule(id, rule).position(next);
                    self.added();
                    self.note(rule.line).insert(object);
                }
            }
        }
    }

    fn append(&mut self, id: &ChainId, rule: &NewRule) {
        let object = self.rule(id, rule);
        self.added();
        self.note(rule.line).add(object);
    }

    fn added(&mut self) {
        self.plan.added.push(self.plan.origins.len());
    }

    fn rule(&self, id: &ChainId, rule: &NewRule) -> Rule {
        let mut exprs = rule.exprs.clone();
        let renamed = |name: &str| self.table.chains.get(name).is_some_and(|chain| chain.renamed.is_some());
        if rule.jump.as_deref().is_some_and(renamed) {
            exprs.iter_mut().for_each(|expr| self.to_old_name(expr));
        }
        let mut object = id.rule().then(Statement::Raw(exprs));
        object.comment.clone_from(&rule.comment);
        object
    }

    fn to_old_name(&self, expr: &mut Expr) {
        if let Expr::Immediate(Immediate {
            data: Data::Verdict(Verdict::Jump(name) | Verdict::Goto(name)),
            ..
        }) = expr
        {
            *name = self.chain_id(name.as_str()).name;
        }
    }
}

/// Returns the entries that are new.
pub(super) fn new_rules(entries: &[Entry]) -> impl Iterator<Item = &NewRule> {
    entries.iter().filter_map(|entry| match entry {
        Entry::New(rule) => Some(&**rule),
        Entry::Old(_) => None,
    })
}

/// Of a base chain that is made because a rule needs it.
const DEFAULT_POLICY: (sluicegate_nftables::Policy, Counters) =
    (sluicegate_nftables::Policy::Accept, Counters { packets: 0, bytes: 0 });
