//! Lines of restore input, carried out on a table in memory as iptables-restore carries them out.

use sluicegate_iptables_save::{Action as Line, Chain, Command, Counters, Entry, Place, Rule, Table, Verb};

use super::Restore;
use super::ruleset::{self, ChainId, CounterMap, HOOKS, Jump, Ruleset, Used, encode_rule, is_same};
use crate::Error;
use crate::error::Fault;
use crate::rule::{self, Action, Kernel, VERDICTS};

/// A table that lines are carried out on.
pub(super) struct Change<'a> {
    pub(super) ruleset: &'a mut Ruleset,
    pub(super) how: Restore,
    pub(super) kernel: &'a dyn Kernel,
    /// The lines of the rules that are new to the kernel.
    pub(super) new_rules: &'a mut Vec<usize>,
    /// The chains that rules jump to, if no line was carried out since they were looked for but deletions of
    /// chains, which are empty: there may be thousands in a row.
    pub(super) used: Option<Used>,
}

impl Change<'_> {
    pub(super) fn table(&mut self, table: &Table<'_>) -> Result<(), Error> {
        if self.how.flush {
            self.flush_all();
        }
        if table.entries.len() > MANY_LINES {
            self.ruleset.index();
        }
        table.entries.iter().try_for_each(|entry| {
            if !matches!(entry, Entry::Command(command) if matches!(command.verb(), Verb::DeleteChain(_))) {
                self.used = None;
            }
            match entry {
                Entry::Chain(chain) => self.declare(chain),
                Entry::Rule(rule) if !rule.is_for(self.ruleset.family) => Ok(()),
                Entry::Rule(rule) => self.rule(rule),
                Entry::Command(command) => self.command(command),
                _ => Ok(()),
            }
        })
    }

    /// Removes all rules and user-defined chains; policies stay.
    fn flush_all(&mut self) {
        for id in self.ruleset.chain_ids() {
            match self.ruleset.chain(id) {
                Some(chain) if chain.hook.is_some() && self.ruleset.count(id) == 0 => (),
                Some(chain) if chain.hook.is_some() => self.ruleset.clear(id),
                _ => self.ruleset.remove(id),
            }
        }
    }

    fn error(&self, fault: Fault, line: usize, reason: impl Into<String>) -> Error {
        Error::Line {
            table: self.ruleset.table.clone(),
            line,
            reason: reason.into(),
            fault,
            name: String::new(),
        }
    }

    fn find(&self, name: &str, line: usize) -> Result<ChainId, Error> {
        self.ruleset
            .find(name)
            .ok_or_else(|| self.error(Fault::NoChain, line, format!("there is no chain {name}")))
    }

    fn chain(&mut self, id: ChainId, line: usize) -> Result<&mut ruleset::Chain, Error> {
        let missing = self.error(Fault::NoChain, line, "there is no such chain");
        self.ruleset.chain_mut(id).ok_or(missing)
    }

    fn rules(&mut self, id: ChainId, line: usize) -> Result<&mut Vec<ruleset::Rule>, Error> {
        let missing = self.error(Fault::NoChain, line, "there is no such chain");
        self.ruleset.rules_mut(id).ok_or(missing)
    }

    /// A chain line empties a user-defined chain, which is an error where all chains were removed before, and
    /// sets the policy of a built-in one.
    fn declare(&mut self, line: &Chain<'_>) -> Result<(), Error> {
        let found = self.ruleset.find(line.name());
        let built_in = found.and_then(|id| self.ruleset.chain(id)).is_some_and(|chain| chain.hook.is_some());
        match found {
            Some(_) if built_in => (),
            Some(_) if self.how.flush => {
                return Err(self.error(
                    Fault::Exists,
                    line.line(),
                    format!("the chain {} exists already", line.name()),
                ));
            }
            Some(id) => self.ruleset.clear(id),
            None => {
                self.create(line.name(), line.line())?;
            }
        }
        match line.policy() {
            None => Ok(()),
            Some(policy) => {
                let counters = line.counters().filter(|_| self.how.counters).unwrap_or_default();
                self.policy(line.name(), policy, counters, line.line())
            }
        }
    }

    fn create(&mut self, name: &str, line: usize) -> Result<ChainId, Error> {
        if self.ruleset.find(name).is_some() {
            return Err(self.error(Fault::Exists, line, format!("the chain {name} exists already")));
        }
        // In a table without this hook, too, the name is taken.
        if HOOKS.contains(&name) {
            let table = &self.ruleset.table;
            return Err(self.error(Fault::Name, line, format!("table {table} has no built-in chain {name}")));
        }
        if VERDICTS.iter().any(|(verdict, _)| *verdict == name) || name == "ERROR" {
            return Err(self.error(Fault::Name, line, format!("a chain cannot have the name {name}")));
        }
        Ok(self.ruleset.create(name))
    }

    fn policy(&mut self, name: &str, policy: &str, counters: Counters, line: usize) -> Result<(), Error> {
        let id = self.find(name, line)?;
        let verdict = VERDICTS.iter().take(2).find(|(verdict, _)| *verdict == policy);
        let wrong = self.error(
            Fault::Policy,
            line,
            format!("expected ACCEPT or DROP for the policy of {name}, found {policy}"),
        );
        let no_policy =
            self.error(Fault::NotBuiltIn, line, format!("{name} is not a built-in chain and has no policy"));
        let (_, verdict) = *verdict.ok_or(wrong)?;
        let chain = self.chain(id, line)?;
        if chain.hook.is_none() {
            return Err(no_policy);
        }
        chain.policy = verdict;
        chain.policy_counters = CounterMap::Set(counters);
        Ok(())
    }

    fn rule(&mut self, line: &Rule<'_>) -> Result<(), Error> {
        let number = line.line();
        let id = self.find(line.chain(), number)?;
        match line.action() {
            Line::Append => {
                let rules = self.compile(line)?;
                self.rules(id, number)?.extend(rules);
            }
            Line::Insert(at) => {
                let rules = self.compile(line)?;
                let at = self.place(id, at.unwrap_or(1), true, number)?;
                self.rules(id, number)?.splice(at..at, rules);
            }
            Line::Replace(at) => {
                let rules = self.compile(line)?;
                let at = self.place(id, at, false, number)?;
                if rules.len() > 1 {
                    return Err(self.error(
                        Fault::Several,
                        number,
                        "a rule is replaced by a single one, not by one for each address",
                    ));
                }
                self.rules(id, number)?.splice(at..=at, rules);
            }
            Line::DeleteNumber(at) => {
                let at = self.place(id, at, false, number)?;
                self.rules(id, number)?.remove(at);
            }
            Line::Delete => {
                for rule in self.compile(line)? {
                    let at = self.same(id, &rule).ok_or_else(|| self.no_rule(line))?;
                    self.rules(id, number)?.remove(at);
                }
                self.new_rules.pop();
            }
            Line::Check => {
                for rule in self.compile(line)? {
                    self.same(id, &rule).ok_or_else(|| self.no_rule(line))?;
                }
                self.new_rules.pop();
            }
            other => return Err(self.error(Fault::Other, number, format!("cannot carry out {other:?}"))),
        }
        Ok(())
    }

    fn no_rule(&self, line: &Rule<'_>) -> Error {
        self.error(
            Fault::NoRule,
            line.line(),
            format!("chain {} has no rule `{}`", line.chain(), line.text().trim()),
        )
    }

    /// Returns the index of a rule that is given by its number from 1.
    fn place(&self, id: ChainId, number: u32, behind: bool, line: usize) -> Result<usize, Error> {
        let count = self.ruleset.count(id) + usize::from(behind);
        let at =
            usize::try_from(number).ok().and_then(|number| number.checked_sub(1)).filter(|at| *at < count);
        at.ok_or_else(|| {
            let name = self.ruleset.chain(id).map(|chain| self.ruleset.name(chain)).unwrap_or_default();
            self.error(Fault::NoNumber, line, format!("chain {name} has no rule number {number}"))
        })
    }

    fn same(&self, id: ChainId, wanted: &ruleset::Rule) -> Option<usize> {
        let bytes = self.ruleset.bytes(wanted);
        self.ruleset.rules(id).iter().position(|rule| {
            is_same(self.ruleset.bytes(rule), bytes, [rule.jump, wanted.jump], self.ruleset.family)
        })
    }

    fn compile(&mut self, line: &Rule<'_>) -> Result<Vec<ruleset::Rule>, Error> {
        let wrong = |source| Error::Rule {
            table: self.ruleset.table.clone(),
            chain: line.chain().to_owned(),
            line: line.line(),
            rule: line.text().trim().to_owned(),
            source: Box::new(source),
        };
        let place = Place { table: &self.ruleset.table, chain: line.chain(), family: self.ruleset.family };
        let (rules, counters) =
            rule::Rule::compile_for_legacy(line.text(), place, self.kernel).map_err(wrong)?;
        let counters = rule::first_counters(line, counters, self.how.counters)
            .map_err(|reason| self.error(Fault::Other, line.line(), reason))?;
        let mut compiled = Vec::with_capacity(rules.len());
        for rule in &rules {
            let jump = match &rule.action {
                Action::Continue => Jump::Next,
                Action::Chain(name) => match self.ruleset.find(name) {
                    Some(id) if self.ruleset.chain(id).is_some_and(|chain| chain.hook.is_none()) => {
                        Jump::Chain(id)
                    }
                    _ => {
                        let reason = format!("there is no chain or target {name}");
                        return Err(self.error(Fault::NoTarget, line.line(), reason).about(name));
                    }
                },
                Action::Verdict(_) | Action::Target(_) => Jump::None,
            };
            let bytes = encode_rule(rule, self.ruleset.family).map_err(|cause| wrong(cause.into()))?;
            compiled.push(ruleset::Rule::new(bytes, jump, counters));
        }
        self.new_rules.push(line.line());
        Ok(compiled)
    }

    fn command(&mut self, command: &Command<'_>) -> Result<(), Error> {
        let line = command.line();
        match command.verb() {
            Verb::New(name) => self.create(name, line).map(drop),
            Verb::DeleteChain(Some(name)) => {
                let id = self.find(name, line)?;
                self.delete_chain(id, line)
            }
            Verb::DeleteChain(None) => {
                let all: Vec<_> = self.ruleset.chain_ids().collect();
                let user = |id: &ChainId| self.ruleset.chain(*id).is_some_and(|chain| chain.hook.is_none());
                let all: Vec<_> = all.into_iter().filter(user).collect();
                all.into_iter().try_for_each(|id| self.delete_chain(id, line))
            }
            Verb::Flush(name) => {
                for id in self.named_or_all(name.as_deref(), line)? {
                    self.ruleset.clear(id);
                }
                Ok(())
            }
            Verb::Policy(name, policy, counters) => {
                self.policy(name, policy, counters.unwrap_or_default(), line)
            }
            Verb::Zero(name, Some(number)) => {
                let id = self.find(name.as_deref().unwrap_or_default(), line)?;
                let at = self.place(id, *number, false, line)?;
                self.zero(id, Some(at));
                Ok(())
            }
            Verb::Zero(name, None) => {
                for id in self.named_or_all(name.as_deref(), line)? {
                    self.zero(id, None);
                }
                Ok(())
            }
            Verb::Rename(old, new) => {
                let id = self.find(old, line)?;
                if self.ruleset.chain(id).is_some_and(|chain| chain.hook.is_some()) {
                    return Err(self.error(
                        Fault::BuiltIn,
                        line,
                        format!("{old} is a built-in chain, which keeps its name"),
                    ));
                }
                let fresh = self.create(new, line)?;
                self.ruleset.remove(fresh);
                self.ruleset.rename(id, new);
                Ok(())
            }
            other => Err(self.error(Fault::Other, line, format!("cannot carry out {other:?}"))),
        }
    }

    fn named_or_all(&self, name: Option<&str>, line: usize) -> Result<Vec<ChainId>, Error> {
        match name {
            Some(name) => self.find(name, line).map(|id| vec![id]),
            None => Ok(self.ruleset.chain_ids().collect()),
        }
    }

    fn delete_chain(&mut self, id: ChainId, line: usize) -> Result<(), Error> {
        let Some(chain) = self.ruleset.chain(id) else { return Ok(()) };
        let name = self.ruleset.name(chain);
        if chain.hook.is_some() {
            return Err(self.error(
                Fault::BuiltIn,
                line,
                format!("{name} is a built-in chain, which cannot be deleted"),
            ));
        }
        if self.ruleset.is_used(self.used.get_or_insert_with(|| self.ruleset.used()), id) {
            return Err(self
                .error(Fault::InUse, line, format!("a rule jumps to the chain {name}"))
                .about(&name));
        }
        if self.ruleset.count(id) > 0 {
            return Err(self
                .error(Fault::NotEmpty, line, format!("the chain {name} is not empty"))
                .about(&name));
        }
        self.ruleset.remove(id);
        Ok(())
    }

    /// Sets counters to zero: of one rule, or of all and the policy.
    fn zero(&mut self, id: ChainId, only: Option<usize>) {
        let Some(chain) = self.ruleset.chain(id) else { return };
        let zeroed = |map: CounterMap, seen: Counters| match map {
            CounterMap::Old(number) => CounterMap::Since(number, seen),
            // As the tool does: what the same input sets, stays.
            CounterMap::Since(..) | CounterMap::Set(_) => map,
        };
        let policy = zeroed(chain.policy_counters, chain.counters());
        let rules = self.ruleset.rules(id);
        let rules = rules.iter().enumerate().filter(|(at, _)| only.is_none_or(|only| only == *at));
        let rules: Vec<_> =
            rules.map(|(at, rule)| (at, zeroed(rule.counters, self.ruleset.counters(rule)))).collect();
        for (at, map) in rules {
            if let Some(rule) = self.ruleset.rules_mut(id).and_then(|rules| rules.get_mut(at)) {
                rule.counters = map;
            }
        }
        if let Some(chain) = self.ruleset.chain_mut(id).filter(|chain| only.is_none() && chain.hook.is_some())
        {
            chain.policy_counters = policy;
        }
    }
}

/// From how many lines on names of chains are indexed: to index thousands of them takes as long as to look
/// for hundreds.
const MANY_LINES: usize = 500;
