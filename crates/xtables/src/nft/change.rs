//! Lines of restore input, carried out on a table in memory as iptables-nft-restore carries them out.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sluicegate_iptables_save::{
    Action as Line, Chain as ChainLine, Command, Counters, Entry as LineOf, Place, Rule, Table as Lines,
    Verb, check,
};
use sluicegate_nftables::expr::Expr;
use sluicegate_nftables::{Comment, Policy, read};

use super::Restore;
use super::builtin::base_chain;
use super::encode::expressions;
use super::kernel::Asked;
use super::state::{Chain, Entry, KnownChain, NewRule, Rules, Table, jump_of};
use crate::Error;
use crate::error::Fault;
use crate::extension::Mismatch;
use crate::rule::{self, CompileError, VERDICTS};

/// A table that lines are carried out on.
pub(super) struct Change<'a> {
    pub(super) table: &'a mut Table,
    pub(super) how: Restore,
    pub(super) kernel: &'a Asked,
    /// The jumps that come and go, if no line was carried out since they were counted but deletions of
    /// chains, which are empty: there may be thousands in a row.
    pub(super) jumps: Option<Jumps>,
}

/// How many jumps to each chain come, less those that go: of rules of the kernel, by the name that the chain
/// has there, and of new ones, by its name after the lines so far.
#[derive(Default)]
pub(super) struct Jumps {
    old: HashMap<String, i64>,
    new: HashMap<String, i64>,
}

impl Table {
    pub(super) fn read(name: &str, kernel: &Asked) -> Result<Self, Error> {
        let existed = kernel.table_exists(name)?;
        let (flushed, needed, chains, renamed) = (false, existed, BTreeMap::new(), BTreeSet::new());
        Ok(Self { name: name.to_owned(), existed, flushed, needed, chains, renamed })
    }
}

impl Change<'_> {
    pub(super) fn table(&mut self, lines: &Lines<'_>) -> Result<(), Error> {
        if self.how.flush {
            self.table.flushed = true;
            self.table.needed = false;
            self.table.chains.clear();
            self.table.renamed.clear();
        } else if named_chains(lines) > MANY_CHAINS {
            self.kernel.read_chains(&self.table.name)?;
        }
        lines.entries.iter().try_for_each(|entry| {
            if !matches!(entry, LineOf::Command(command) if matches!(command.verb(), Verb::DeleteChain(_))) {
                self.jumps = None;
            }
            match entry {
                LineOf::Chain(chain) => self.declare(chain),
                LineOf::Rule(rule) if !rule.is_for(self.kernel.family) => Ok(()),
                LineOf::Rule(rule) => self.rule(rule),
                LineOf::Command(command) => self.command(command),
                _ => Ok(()),
            }
        })
    }

    fn error(&self, fault: Fault, line: usize, reason: impl Into<String>) -> Error {
        Error::Line {
            table: self.table.name.clone(),
            line,
            reason: reason.into(),
            fault,
            name: String::new(),
        }
    }

    /// Returns a chain, whether it exists or not.
    fn any_chain(&mut self, name: &str) -> Result<&mut Chain, Error> {
        if !self.table.chains.contains_key(name) {
            let was = match self.table.flushed {
                true => None,
                false => self.kernel.chain(&self.table.name, name)?,
            };
            let is_regular = was.as_ref().is_some_and(|was| !was.is_base);
            let base = base_chain(&self.table.name, name).filter(|_| !is_regular);
            self.table.chains.insert(name.to_owned(), Chain::new(was, base));
        }
        self.table.chains.get_mut(name).ok_or_else(|| Error::Line {
            table: self.table.name.clone(),
            line: 0,
            reason: format!("there is no chain {name}"),
            fault: Fault::NoChain,
            name: name.to_owned(),
        })
    }

    /// Returns a chain that exists, or a base chain, which the tool takes for existing.
    fn find(&mut self, name: &str, line: usize) -> Result<&mut Chain, Error> {
        let missing = self.error(Fault::NoChain, line, format!("there is no chain {name}"));
        let chain = self.any_chain(name)?;
        if chain.exists || chain.base.is_some() { Ok(chain) } else { Err(missing) }
    }

    /// Returns a chain that a rule is added to, and makes it if it is a base chain.
    fn needed(&mut self, name: &str, line: usize) -> Result<&mut Chain, Error> {
        let chain = self.find(name, line)?;
        if !chain.exists {
            chain.line = line;
        }
        chain.exists = true;
        self.table.needed = true;
        self.find(name, line)
    }

    /// A chain line empties a user-defined chain, and sets the policy of a built-in one.
    fn declare(&mut self, line: &ChainLine<'_>) -> Result<(), Error> {
        let number = line.line();
        let chain = self.any_chain(line.name())?;
        if chain.base.is_some() {
            let counters = line.counters().filter(|_| self.how.counters).unwrap_or_default();
            return self.policy(line.name(), line.policy(), counters, number);
        }
        if chain.exists {
            chain.flush();
            chain.line = number;
            return Ok(());
        }
        self.create(line.name(), number)
    }

    fn create(&mut self, name: &str, line: usize) -> Result<(), Error> {
        if VERDICTS.iter().any(|(verdict, _)| *verdict == name) {
            return Err(self.error(Fault::Name, line, format!("a chain cannot have the name {name}")));
        }
        if self.table.renamed.contains(name) {
            let reason = format!("{name} is renamed by the same input, which cannot create it again");
            return Err(self.error(Fault::Other, line, reason));
        }
        let exists = self.error(Fault::Exists, line, format!("the chain {name} exists already"));
        let chain = self.any_chain(name)?;
        if chain.exists || chain.base.is_some() {
            return Err(exists);
        }
        chain.exists = true;
        chain.line = line;
        chain.flush();
        self.table.needed = true;
        Ok(())
    }

    /// Sets a policy; `None` is `-`, which leaves it as it is.
    fn policy(
        &mut self,
        name: &str,
        policy: Option<&str>,
        counters: Counters,
        line: usize,
    ) -> Result<(), Error> {
        let wanted = match policy {
            None => None,
            Some("ACCEPT") => Some(Policy::Accept),
            Some("DROP") => Some(Policy::Drop),
            Some(other) => {
                let reason = format!("expected ACCEPT or DROP for the policy of {name}, found {other}");
                return Err(self.error(Fault::Policy, line, reason));
            }
        };
        let no_policy =
            self.error(Fault::NotBuiltIn, line, format!("{name} is not a built-in chain and has no policy"));
        if self.find(name, line)?.base.is_none() {
            return Err(no_policy);
        }
        let chain = self.needed(name, line)?;
        let now = chain.policy_now();
        chain.policy = Some((wanted.unwrap_or(now), counters));
        chain.line = line;
        Ok(())
    }

    fn rule(&mut self, line: &Rule<'_>) -> Result<(), Error> {
        let (name, number) = (line.chain(), line.line());
        match line.action() {
            Line::Append => {
                let rules = self.compile(line)?;
                match &mut self.needed(name, number)?.rules {
                    Rules::Kernel { then, .. } => then.extend(rules),
                    Rules::List(entries) => entries.extend(rules.into_iter().map(Entry::from)),
                }
            }
            Line::Insert(at) => {
                let rules = self.compile(line)?;
                // Before all others: which they are is not needed.
                if let (1, Rules::Kernel { first, .. }) =
                    (at.unwrap_or(1), &mut self.needed(name, number)?.rules)
                {
                    rules.into_iter().rev().for_each(|rule| first.push_front(rule));
                    return Ok(());
                }
                let at = self.place(name, at.unwrap_or(1), true, number)?;
                self.entries(name, number)?.splice(at..at, rules.into_iter().map(Entry::from));
            }
            Line::Replace(at) => {
                let rules = self.compile(line)?;
                let at = self.place(name, at, false, number)?;
                if rules.len() > 1 {
                    let reason = "a rule is replaced by a single one, not by one for each address";
                    return Err(self.error(Fault::Several, number, reason));
                }
                self.entries(name, number)?.splice(at..=at, rules.into_iter().map(Entry::from));
            }
            Line::DeleteNumber(at) => {
                let at = self.place(name, at, false, number)?;
                self.entries(name, number)?.remove(at);
            }
            Line::Delete => {
                for rule in self.compile(line)? {
                    let at = self.same(line, &rule)?;
                    self.entries(name, number)?.remove(at);
                }
            }
            Line::Check => {
                for rule in self.compile(line)? {
                    self.same(line, &rule)?;
                }
            }
            other => return Err(self.error(Fault::Other, number, format!("cannot carry out {other:?}"))),
        }
        Ok(())
    }

    /// Returns the rules of a chain one by one, which reads them from the kernel first.
    fn entries(&mut self, name: &str, line: usize) -> Result<&mut Vec<Entry>, Error> {
        self.find(name, line)?;
        self.read_old(name)?;
        let unread = self.error(Fault::Other, line, format!("the rules of the chain {name} were not read"));
        let chain = self.find(name, line)?;
        if let Rules::Kernel { first, then } = &mut chain.rules {
            let old = match &chain.was {
                None => Vec::new(),
                Some(KnownChain { rules: Some(old), .. }) => old.iter().cloned().map(Entry::Old).collect(),
                Some(_) => return Err(unread),
            };
            let (first, new) = (first.drain(..).map(Entry::from), then.drain(..).map(Entry::from));
            chain.rules = Rules::List(first.chain(old).chain(new).collect());
        }
        match &mut chain.rules {
            Rules::List(entries) => Ok(entries),
            Rules::Kernel { .. } => Err(unread),
        }
    }

    /// Reads the rules that the kernel has in a chain.
    fn read_old(&mut self, name: &str) -> Result<(), Error> {
        let Some(chain) = self.table.chains.get(name) else { return Ok(()) };
        let in_kernel = chain.kernel_name(name);
        if chain.was.as_ref().is_none_or(|was| was.rules.is_some()) {
            return Ok(());
        }
        let rules = self.kernel.rules(&self.table.name, in_kernel)?;
        if let Some(was) = self.table.chains.get_mut(name).and_then(|chain| chain.was.as_mut()) {
            was.rules = Some(rules);
        }
        Ok(())
    }

    /// Returns the index of a rule that is given by its number from 1.
    fn place(&mut self, name: &str, number: u32, behind: bool, line: usize) -> Result<usize, Error> {
        let count = self.entries(name, line)?.len() + usize::from(behind);
        let at =
            usize::try_from(number).ok().and_then(|number| number.checked_sub(1)).filter(|at| *at < count);
        at.ok_or_else(|| {
            self.error(Fault::NoNumber, line, format!("chain {name} has no rule number {number}"))
        })
    }

    fn same(&mut self, line: &Rule<'_>, wanted: &NewRule) -> Result<usize, Error> {
        let family = self.kernel.family;
        let key = wanted.key(family);
        let entries = self.entries(line.chain(), line.line())?;
        let found = key.and_then(|key| entries.iter().position(|entry| entry.is(&key, family)));
        found.ok_or_else(|| {
            let reason = format!("chain {} has no rule `{}`", line.chain(), line.text().trim());
            self.error(Fault::NoRule, line.line(), reason)
        })
    }

    fn compile(&mut self, line: &Rule<'_>) -> Result<Vec<NewRule>, Error> {
        self.find(line.chain(), line.line())?;
        let table = self.table.name.clone();
        let wrong = |source| Error::Rule {
            table: table.clone(),
            chain: line.chain().to_owned(),
            line: line.line(),
            rule: line.text().trim().to_owned(),
            source: Box::new(source),
        };
        let family = self.kernel.family;
        let place = Place { table: &table, chain: line.chain(), family };
        let (rules, counters) =
            rule::Rule::compile_for_nft(line.text(), place, self.kernel).map_err(wrong)?;
        let counters = rule::first_counters(line, counters, self.how.counters)
            .map_err(|reason| self.error(Fault::Other, line.line(), reason))?;
        let mut compiled = Vec::with_capacity(rules.len());
        for rule in &rules {
            let jump = jump_of(&rule.action);
            if let Some(name) = &jump {
                let chain = self.any_chain(name)?;
                if !chain.exists || chain.is_base() {
                    let reason = format!("there is no chain or target {name}");
                    return Err(self.error(Fault::NoTarget, line.line(), reason).about(name));
                }
            }
            let value = |cause: Mismatch| wrong(cause.into());
            let mut exprs = expressions(rule, counters, family).map_err(value)?;
            whole_prefix(&mut exprs, line.text(), place).map_err(wrong)?;
            compiled.push(NewRule { exprs, comment: None, jump, line: line.line() });
        }
        Ok(compiled)
    }

    fn command(&mut self, command: &Command<'_>) -> Result<(), Error> {
        let line = command.line();
        match command.verb() {
            Verb::New(name) => self.create(name, line),
            Verb::DeleteChain(Some(name)) => self.delete_chain(name, line),
            Verb::DeleteChain(None) => {
                for name in self.all_chains()? {
                    let chain = self.any_chain(&name)?;
                    if chain.exists && !chain.is_base() {
                        self.delete_chain(&name, line)?;
                    }
                }
                Ok(())
            }
            Verb::Flush(name) => {
                for name in self.named_or_all(name.as_deref(), line)? {
                    let chain = self.find(&name, line)?;
                    chain.flush();
                    chain.line = line;
                }
                Ok(())
            }
            Verb::Policy(name, policy, counters) => {
                self.policy(name, Some(policy), counters.unwrap_or_default(), line)
            }
            Verb::Zero(name, Some(number)) => {
                let name = name.as_deref().unwrap_or_default();
                let at = self.place(name, *number, false, line)?;
                self.zero(name, Some(at), line)
            }
            Verb::Zero(name, None) => self
                .named_or_all(name.as_deref(), line)?
                .iter()
                .try_for_each(|name| self.zero(name, None, line)),
            Verb::Rename(old, new) => self.rename(old, new, line),
            other => Err(self.error(Fault::Other, line, format!("cannot carry out {other:?}"))),
        }
    }

    /// Returns the names of the chains that exist.
    fn all_chains(&mut self) -> Result<Vec<String>, Error> {
        if !self.table.flushed {
            for name in self.kernel.chain_names(&self.table.name)? {
                self.any_chain(&name)?;
            }
        }
        let chains = self.table.chains.iter().filter(|(_, chain)| chain.exists);
        Ok(chains.map(|(name, _)| name.clone()).collect())
    }

    /// Returns chains that are given by a name, or all but the base chains of others.
    fn named_or_all(&mut self, name: Option<&str>, line: usize) -> Result<Vec<String>, Error> {
        if let Some(name) = name {
            return self.find(name, line).map(|_| vec![name.to_owned()]);
        }
        let mut names = self.all_chains()?;
        let chains = &self.table.chains;
        names.retain(|name| chains.get(name).is_some_and(|chain| chain.base.is_some() || !chain.is_base()));
        Ok(names)
    }

    fn delete_chain(&mut self, name: &str, line: usize) -> Result<(), Error> {
        if self.find(name, line)?.is_base() {
            return Err(self.error(
                Fault::BuiltIn,
                line,
                format!("{name} is a built-in chain, which cannot be deleted"),
            ));
        }
        if !self.entries(name, line)?.is_empty() {
            return Err(self
                .error(Fault::NotEmpty, line, format!("the chain {name} is not empty"))
                .about(name));
        }
        if self.is_used(name)? {
            return Err(self
                .error(Fault::InUse, line, format!("a rule jumps to the chain {name}"))
                .about(name));
        }
        let chain = self.find(name, line)?;
        chain.exists = false;
        chain.line = line;
        Ok(())
    }

    /// Returns whether a rule jumps to a chain: the kernel counts those of all chains, to which the changes
    /// so far are added.
    fn is_used(&mut self, name: &str) -> Result<bool, Error> {
        if self.jumps.is_none() {
            self.jumps = Some(self.count_jumps()?);
        }
        let Some(chain) = self.table.chains.get(name) else { return Ok(false) };
        let in_kernel = chain.kernel_name(name);
        let mut uses = 0;
        if let Some(was) = &chain.was {
            let (_, counted) = self.kernel.handle_and_uses(&self.table.name, in_kernel)?;
            let own = was.rules.as_ref().map_or(0, |rules| rules.len());
            uses = i64::from(counted) - i64::try_from(own).unwrap_or(i64::MAX);
        }
        if let Some(Jumps { old, new }) = &self.jumps {
            uses += old.get(in_kernel).unwrap_or(&0) + new.get(name).unwrap_or(&0);
        }
        Ok(uses > 0)
    }

    fn count_jumps(&mut self) -> Result<Jumps, Error> {
        let flushed = self.table.chains.iter().filter(|(_, chain)| matches!(chain.rules, Rules::List(_)));
        let flushed: Vec<_> = flushed.map(|(name, _)| name.clone()).collect();
        flushed.iter().try_for_each(|name| self.read_old(name))?;
        let mut jumps = Jumps::default();
        let add = |to: &mut HashMap<String, i64>, jump: &Option<String>, count: i64| {
            jump.iter().for_each(|chain| *to.entry(chain.clone()).or_default() += count);
        };
        for chain in self.table.chains.values() {
            match &chain.rules {
                Rules::Kernel { first, then } => {
                    first.iter().chain(then).for_each(|rule| add(&mut jumps.new, &rule.jump, 1));
                }
                Rules::List(entries) => {
                    let old = chain.was.as_ref().and_then(|was| was.rules.as_ref());
                    let old = old.into_iter().flat_map(|old| old.iter());
                    old.for_each(|rule| add(&mut jumps.old, &rule.jump, -1));
                    entries.iter().for_each(|entry| match entry {
                        Entry::Old(rule) => add(&mut jumps.old, &rule.jump, 1),
                        Entry::New(rule) => add(&mut jumps.new, &rule.jump, 1),
                    });
                }
            }
        }
        Ok(jumps)
    }

    fn rename(&mut self, old: &str, new: &str, line: usize) -> Result<(), Error> {
        if self.find(old, line)?.is_base() {
            return Err(self.error(
                Fault::BuiltIn,
                line,
                format!("{old} is a built-in chain, which keeps its name"),
            ));
        }
        self.create(new, line)?;
        let replaced = self.table.chains.remove(new);
        let mut chain = self.table.chains.remove(old).unwrap_or_else(|| Chain::new(None, None));
        if replaced.is_some_and(|chain| chain.was.is_some()) {
            let reason = format!("{new} is deleted by the same input, which cannot rename to it as well");
            return Err(self.error(Fault::Other, line, reason));
        }
        if chain.was.is_some() {
            let in_kernel = chain.renamed.take().map_or_else(|| old.to_owned(), |(name, _)| name);
            self.table.renamed.remove(&in_kernel);
            let (handle, _) = self.kernel.handle_and_uses(&self.table.name, &in_kernel)?;
            if in_kernel != new {
                self.table.renamed.insert(in_kernel.clone());
                chain.renamed = Some((in_kernel, handle));
            }
        }
        chain.line = line;
        self.table.chains.insert(new.to_owned(), chain);
        // What is known of the kernel's chain of the old name is about the renamed one.
        self.table.chains.insert(old.to_owned(), Chain::new(None, None));
        Ok(())
    }

    /// Sets counters to zero: of one rule, or of all and the policy. A counter is part of its rule, which is
    /// replaced.
    fn zero(&mut self, name: &str, only: Option<usize>, line: usize) -> Result<(), Error> {
        let missing = self.error(Fault::NoChain, line, format!("there is no chain {name}"));
        let chain = self.find(name, line)?;
        // The tool makes a built-in chain for other commands, but not for this one.
        if !chain.exists {
            return Err(missing);
        }
        if only.is_none() && chain.base.is_some() {
            let policy = chain.policy_now();
            chain.policy = Some((policy, Counters::default()));
        }
        let in_kernel = chain.kernel_name(name).to_owned();
        let raw = match &chain.was {
            Some(_) => self.kernel.raw_rules(&self.table.name, &in_kernel)?,
            None => Vec::new(),
        };
        for (at, entry) in self.entries(name, line)?.iter_mut().enumerate() {
            if only.is_some_and(|only| only != at) {
                continue;
            }
            match entry {
                Entry::New(rule) => {
                    zero_counters(&mut rule.exprs);
                }
                Entry::Old(old) => {
                    let rule = raw.iter().find(|rule| rule.handle == old.handle);
                    // A rule with a set of its own cannot be added a second time.
                    let Some(rule) = rule.filter(|rule| !has_set(rule)) else { continue };
                    let mut exprs = rule.expressions.clone();
                    if zero_counters(&mut exprs) {
                        let comment = rule.comment().map(|comment| Comment::from_kernel(&comment));
                        *entry = NewRule { exprs, comment, jump: old.jump.clone(), line }.into();
                    }
                }
            }
        }
        Ok(())
    }
}

/// Completes a prefix of `NFLOG` that fills the structure of the extension, and may be longer: the expression
/// has room for all of it.
fn whole_prefix(exprs: &mut [Expr], words: &str, place: Place<'_>) -> Result<(), CompileError> {
    let fills = |prefix: &String| prefix.len() == NFLOG_PREFIX;
    for expr in exprs {
        let Expr::Log(log) = expr else { continue };
        if !log.prefix.as_ref().is_some_and(fills) {
            continue;
        }
        let specs = check(words, place)?.normal(place.family)?;
        let module = specs.first().and_then(|spec| spec.target.as_ref()).map(|target| &target.module);
        let prefix = module.and_then(|module| module.option("nflog-prefix")?.value());
        log.prefix = prefix.map(str::to_owned).or(log.prefix.take());
    }
    Ok(())
}

/// Sets the counters among expressions to zero, and returns whether they were not.
fn zero_counters(exprs: &mut [Expr]) -> bool {
    let mut changed = false;
    for expr in exprs {
        if let Expr::Counter(counter) = expr {
            changed |= counter.packets.unwrap_or_default() != 0 || counter.bytes.unwrap_or_default() != 0;
            (counter.packets, counter.bytes) = (Some(0), Some(0));
        }
    }
    changed
}

fn has_set(rule: &read::Rule) -> bool {
    rule.expressions.iter().any(|expr| matches!(expr, Expr::Lookup(_) | Expr::Dynset(_) | Expr::Objref(_)))
}

/// Returns how many chains the lines name, at most.
fn named_chains(lines: &Lines<'_>) -> usize {
    lines.entries.iter().filter(|entry| !matches!(entry, LineOf::Text(_))).count()
}

/// The bytes of a prefix for which `struct xt_nflog_info` has room.
const NFLOG_PREFIX: usize = 63;
/// From how many lines on all chains are read at once, not one by one: a request for one takes about as long
/// as some forty chains of a dump.
const MANY_CHAINS: usize = 500;
