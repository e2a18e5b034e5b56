//! The nft back end: tables of nftables as `iptables-nft` 1.8.9 keeps them.
//!
//! What the tool writes with expressions of the kernel's own is written so here, and any match or target
//! beside that as a `match` or `target` expression with the structure of the extension. So each lists, finds
//! and deletes the rules of the other.
//!
//! All lines of an input are one batch, which the kernel applies as a whole, and only to the generation of
//! the ruleset that it was made for: where another program committed in between, what the input names is
//! read again, and nothing of that change is lost. Rules are inserted, replaced and deleted by their handles,
//! so that what is read, planned and sent is what changes, however large the table is.
//!
//! What the kernel does with a batch is another matter, and the same for every program:
//!
//! - A new rule with a verdict, a jump, a match or a target has to be validated. For this the kernel visits
//!   every chain of the table and every rule that the base chains lead to (`nft_table_validate`,
//!   `nft_chain_validate`), before it commits. No batch that adds such a rule avoids it, in whatever order, as
//!   a replacement or in a new chain. With 50,000 rules behind a base chain that takes tens of milliseconds.
//! - A rule that was deleted is destroyed a grace period of RCU later. Until then every new rule with an
//!   extension of `nft_compat` waits (`nft_compat_wait_for_destructors`): of two changes in a row the second may
//!   take longer by some ten milliseconds.

mod builtin;
mod change;
mod decode;
mod encode;
mod head;
mod kernel;
mod list;
mod plan;
mod state;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use sluicegate_iptables_save::{Action, Changes, Entry as LineOf, Family, Rule, Save, Table as Lines};
use sluicegate_netlink::{Errno, Socket};
use sluicegate_nftables::expr::Expr;
use sluicegate_nftables::lang::Statement;
use sluicegate_nftables::{
    ApplyOptions, Error as NftError, Name, Object, Operation, SetFlags, TableId, read,
};

use crate::Error;
use crate::error::Fault;
use crate::extension::Kind;
use crate::foreign::View;
pub use crate::legacy::Restore;
use crate::rule::Kernel as _;
use builtin::{TABLES, base_chains, table_id};
use change::Change;
use kernel::Asked;
pub use list::RawTable;
use list::{has_lookups, have_links};
use plan::Plan;
use state::{Chain, Entry, KnownChain, KnownTable, OldRule, Rules, Table};

/// The tables of one family.
///
/// It remembers what it read and wrote of the ruleset, for as long as nobody else changes it.
///
/// ```no_run
/// use sluicegate_iptables_save::{Family, Save};
/// use sluicegate_xtables::nft::{Client, Restore};
///
/// let client = Client::open(Family::Ipv4)?;
/// let input = Save::parse("*nat\n:WEB - [0:0]\n-A WEB -p tcp --dport 80 -j REDIRECT --to-ports 8080\nCOMMIT\n")?;
/// client.restore(&input, Restore::default())?;
/// println!("{}", client.list("nat", false)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Client {
    kernel: Asked,
    commits: Cell<u32>,
}

impl Client {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`Error::Netlink`] if the kernel has no netfilter, [`Error::Socket`] without `CAP_NET_RAW`, which the
    /// names of sets are asked with.
    pub fn open(family: Family) -> Result<Self, Error> {
        Ok(Self { kernel: Asked::open(family)?, commits: Cell::new(0) })
    }

    /// Returns the family of the tables.
    #[must_use]
    pub fn family(&self) -> Family {
        self.kernel.family
    }

    /// Returns the names of the tables that the kernel has, in the order in which iptables-nft-save prints
    /// them. A table is made by the first line that needs it.
    ///
    /// # Errors
    /// [`Error::Netlink`] if the kernel does not answer.
    pub fn tables(&self) -> Result<Vec<&'static str>, Error> {
        let family = table_id(self.family(), "").family;
        let found = read::tables(&mut *self.kernel.socket.borrow_mut(), family)?;
        let exists = |name: &&str| found.iter().any(|table| table.name.as_str() == *name);
        Ok(TABLES.into_iter().filter(exists).collect())
    }

    /// Returns the generation of the ruleset, which each commit of any program counts on.
    ///
    /// # Errors
    /// [`Error::Netlink`] if the kernel does not answer.
    pub fn generation(&self) -> Result<u32, Error> {
        self.kernel.generation()
    }

    /// Returns the number of commits that this client has made.
    #[must_use]
    pub fn commits(&self) -> u32 {
        self.commits.get()
    }

    /// Returns the chains and rules of a table, as `iptables-nft-save` prints them: with the counters of the
    /// rules if `counters` says so, as with `-c`. A table or base chain that the kernel does not have yet is
    /// shown as it would be made.
    ///
    /// # Errors
    /// [`Error::Kernel`] for a name that is not that of one of iptables' tables, [`Error::Incompatible`] if
    /// the table has rules that iptables has no words for.
    pub fn list(&self, table: &str, counters: bool) -> Result<Lines<'static>, Error> {
        self.raw(table)?.list(counters, self.kernel.sets())
    }

    /// Returns a table with what others wrote into it: chains and rules as [`Client::list`] returns them, and
    /// what iptables has no words for, in its place. Such a rule stays as it is, whatever is changed beside
    /// it, and counts where rules have numbers.
    ///
    /// # Errors
    /// [`Error::Kernel`] for a name that is not that of one of iptables' tables.
    pub fn view(&self, table: &str, counters: bool) -> Result<View, Error> {
        self.raw(table)?.view(counters, self.kernel.sets())
    }

    /// Returns the same of one chain, which is read alone; `None` if there is no such chain.
    ///
    /// # Errors
    /// As [`Client::view`].
    pub fn view_chain(&self, table: &str, chain: &str, counters: bool) -> Result<Option<View>, Error> {
        let raw = self.read(table, Some(chain))?;
        let exists = raw.chains.iter().any(|found| found.name.as_str() == chain);
        if !exists && builtin::base_chain(table, chain).is_none() {
            return Ok(None);
        }
        let mut view = raw.view(counters, self.kernel.sets())?;
        view.table.entries.retain(|entry| !matches!(entry, LineOf::Chain(line) if line.name() != chain));
        // The kernel counts jumps to a chain and its rules together.
        let uses = raw.chains.iter().find(|found| found.name.as_str() == chain).map_or(0, |found| found.uses);
        view.references = Some(usize::try_from(uses).unwrap_or(usize::MAX).saturating_sub(raw.rules.len()));
        Ok(Some(view))
    }

    /// Returns a table as the kernel has it, in one generation, to be compared or kept.
    ///
    /// # Errors
    /// [`Error::Kernel`] for a name that is not that of one of iptables' tables.
    pub fn raw(&self, table: &str) -> Result<RawTable, Error> {
        self.read(table, None)
    }

    /// Reads a table with the rules of all chains, or of a single one.
    fn read(&self, table: &str, chain: Option<&str>) -> Result<RawTable, Error> {
        base_chains(table).ok_or_else(|| self.no_table(table))?;
        self.kernel.forget_sets();
        let id = table_id(self.family(), table);
        for _ in 0..ATTEMPTS {
            let before = self.kernel.generation()?;
            let mut raw = RawTable::new(self.family(), table.to_owned(), Vec::new(), Vec::new());
            {
                let socket = &mut *self.kernel.socket.borrow_mut();
                if let Some(found) = read::table(socket, &id)? {
                    (raw.chains, raw.rules) = match chain {
                        Some(chain) => {
                            let id = id.chain(Name::from_kernel(chain));
                            let found = read::chain(socket, &id)?;
                            let rules = match &found {
                                Some(_) => read::chain_rules(socket, &id)?,
                                None => Vec::new(),
                            };
                            (found.into_iter().collect(), rules)
                        }
                        None => {
                            let chains = read::chains(socket, &id)?;
                            let rules = read_rules(socket, &id, &chains)?;
                            (chains, rules)
                        }
                    };
                    if has_lookups(&raw.rules) {
                        for set in read::sets(socket, &id)? {
                            let elements = match set.flags.contains(SetFlags::ANONYMOUS) {
                                true => read::elements(socket, &id.set(set.name.clone()))?,
                                false => Vec::new(),
                            };
                            raw.sets.push((set, elements));
                        }
                    }
                    raw.table = Some(found);
                }
            }
            if have_links(&raw.rules) {
                raw.links = self.kernel.links()?;
            }
            if self.kernel.generation()? == before {
                return Ok(raw);
            }
        }
        Err(self.changing("reading", table))
    }

    /// Returns whether the kernel has a revision of an extension, by the kernel's name of it.
    ///
    /// # Errors
    /// [`Error::Netlink`] if the kernel does not answer, or has no `nft_compat`.
    pub fn has_revision(&self, kind: Kind, name: &str, revision: u8) -> Result<bool, Error> {
        self.kernel.has_revision(kind, name, revision)
    }

    /// Returns whether a chain has a rule, by its words, as `iptables -C` does.
    ///
    /// # Errors
    /// [`Error::Rule`] for words that cannot be a rule; [`Error::Line`] if there is no such chain.
    pub fn check(&self, table: &str, chain: &str, words: &str) -> Result<bool, Error> {
        let text = |source| Error::Text { table: table.to_owned(), source };
        let mut lines = Lines::new(table.to_owned()).map_err(text)?;
        lines.entries.push(LineOf::Rule(Rule::new(Action::Check, chain, words).map_err(text)?));
        for _ in 0..ATTEMPTS {
            let generation = self.kernel.refresh()?;
            let missing = || {
                let reason = format!("there is no chain {chain}");
                Error::Line {
                    table: table.to_owned(),
                    line: 0,
                    reason,
                    fault: Fault::NoChain,
                    name: chain.to_owned(),
                }
            };
            if builtin::base_chain(table, chain).is_none() && self.kernel.chain(table, chain)?.is_none() {
                return Err(missing());
            }
            let found = self.prepare_table(&mut Vec::new(), &lines, Restore::default());
            if self.kernel.generation()? != generation {
                continue;
            }
            return match found {
                Ok(()) => Ok(true),
                Err(error) if error.is_not_found() => Ok(false),
                Err(error) => Err(error),
            };
        }
        Err(self.changing("reading", table))
    }

    /// Carries out changes, as `iptables-nft-restore --noflush` does.
    ///
    /// # Errors
    /// As [`Client::restore`].
    pub fn apply(&self, changes: &Changes<'_>) -> Result<(), Error> {
        self.restore(changes.as_save(), Restore::default())
    }

    /// Restores input: all of it, or nothing.
    ///
    /// # Errors
    /// [`Error::Rule`], [`Error::Line`] and [`Error::Refused`] with the line at fault; [`Error::Kernel`] if
    /// other programs keep changing the ruleset.
    pub fn restore(&self, input: &Save<'_>, how: Restore) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            let generation = self.kernel.refresh()?;
            let mut tables = Vec::new();
            for lines in input.tables() {
                self.prepare_table(&mut tables, lines, how)?;
            }
            if self.send(&tables, generation).map_err(|error| with_words(error, input))? {
                return Ok(());
            }
        }
        Err(self.changing("changing", input.tables().next().map_or("", Lines::name)))
    }

    /// Reads, checks and encodes input as [`Client::restore`] does, and sends none of it: `--test`.
    ///
    /// # Errors
    /// As [`Client::restore`], but for what only the kernel refuses.
    pub fn test(&self, input: &Save<'_>, how: Restore) -> Result<(), Error> {
        self.kernel.refresh()?;
        let mut tables = Vec::new();
        input.tables().try_for_each(|lines| self.prepare_table(&mut tables, lines, how))
    }

    /// Carries out the lines for a table in memory.
    fn prepare_table(&self, tables: &mut Vec<Table>, lines: &Lines<'_>, how: Restore) -> Result<(), Error> {
        let name = lines.name();
        base_chains(name).ok_or_else(|| self.no_table(name))?;
        let at = match tables.iter().position(|table| table.name == name) {
            Some(at) => at,
            None => {
                tables.push(Table::read(name, &self.kernel)?);
                tables.len() - 1
            }
        };
        match tables.get_mut(at) {
            Some(table) => Change { table, how, kernel: &self.kernel, jumps: None }.table(lines),
            None => Ok(()),
        }
    }

    /// Sends a batch; false if the ruleset is not of this generation any more.
    fn send(&self, tables: &[Table], generation: u32) -> Result<bool, Error> {
        let plan = Plan::new(tables, self.family());
        if plan.transaction.is_empty() {
            return Ok(true);
        }
        // The kernel tells the handles of new rules, which costs as much again as to send them.
        let echo = plan.added.len() <= FOLLOWED_RULES;
        let mut options = ApplyOptions::default().generation(generation);
        options.echo = echo;
        let done = plan.transaction.apply_with(&mut *self.kernel.socket.borrow_mut(), options);
        match done {
            Ok(applied) => {
                // Without the events it is not known whether another program has committed since.
                let batches = u32::try_from(applied.batches).unwrap_or(u32::MAX);
                self.commits.set(self.commits.get().wrapping_add(batches));
                if applied.generation != generation.wrapping_add(batches) {
                    self.kernel.forget();
                    return Ok(true);
                }
                let handles: Vec<_> = plan.added.iter().map(|operation| applied.handle(*operation)).collect();
                let family = self.family();
                self.kernel.follow(applied.generation, |known| {
                    let mut handles = handles.into_iter();
                    tables.iter().for_each(|table| follow(known, table, &mut handles, family));
                });
                Ok(true)
            }
            Err(error) => {
                self.kernel.forget();
                if error.is_generation_changed() { Ok(false) } else { Err(self.refused(error, &plan)) }
            }
        }
    }

    /// Leads an error of the kernel back to the line.
    fn refused(&self, error: NftError, plan: &Plan) -> Error {
        let failure = error.failures().first().cloned();
        let Some(failure) = failure else {
            return match error {
                NftError::Netlink(error) => error.into(),
                other => Error::Refused {
                    table: plan.origins.first().map_or_else(String::new, |(table, _)| table.clone()),
                    line: 0,
                    operation: "sending the batch".to_owned(),
                    rule: String::new(),
                    errno: Errno::EINVAL,
                    reason: other.to_string(),
                },
            };
        };
        let origin = failure.operation.and_then(|operation| plan.origins.get(operation));
        let (table, line) = origin.or(plan.origins.first()).cloned().unwrap_or_default();
        let errno = failure.error.errno;
        let operation = failure.operation.and_then(|at| plan.transaction.operations().get(at));
        let modules = operation.map_or_else(Vec::new, modules);
        let reason = match (errno, failure.meaning.clone()) {
            (Errno::EINVAL, _) if !modules.is_empty() => {
                format!("{} is not for this table, chain or protocol, or not so", modules.join(", "))
            }
            (Errno::ENOENT, _) if !modules.is_empty() => {
                format!("the kernel lacks what the rule needs ({})", modules.join(", "))
            }
            (_, Some(meaning)) => meaning.into_owned(),
            (errno, None) => meaning_of(errno).to_owned(),
        };
        let operation = operation.map_or_else(
            || failure.object(),
            |operation| format!("{} {}", operation.verb(), operation.object()),
        );
        Error::Refused { table, line, operation, rule: String::new(), errno, reason }
    }

    fn no_table(&self, table: &str) -> Error {
        let reason = "there is no such table".to_owned();
        let (table, family) = (table.to_owned(), self.family());
        Error::Kernel { operation: "reading", table, family, errno: Errno::ENOENT, reason }
    }

    fn changing(&self, operation: &'static str, table: &str) -> Error {
        let reason = "other programs keep changing the ruleset".to_owned();
        let (table, family) = (table.to_owned(), self.family());
        Error::Kernel { operation, table, family, errno: Errno::EAGAIN, reason }
    }
}

/// Reads the rules of a table that has these chains.
///
/// A dump of the whole table costs the square of its size: for each message, which is 32 KiB at most, the
/// kernel walks past all rules that it has sent before (`__nf_tables_dump_rules`, Linux 6.18). A chain that
/// the request names is found by its hash. So many rules are read chain by chain. Whoever changes them in
/// between changes the generation, too.
fn read_rules(socket: &mut Socket, id: &TableId, chains: &[read::Chain]) -> Result<Vec<read::Rule>, Error> {
    // The kernel counts rules and jumps to the chain together: without either there are no rules.
    let filled = chains.iter().filter(|chain| chain.uses > 0);
    let (count, most) =
        filled.clone().fold((0, 0), |(count, most), chain| (count + 1, most + u64::from(chain.uses)));
    if most.saturating_mul(most) < DUMP_OF_A_CHAIN * count {
        return Ok(read::rules(socket, id)?);
    }
    let mut rules = Vec::new();
    for chain in filled {
        rules.append(&mut read::chain_rules(socket, &id.chain(chain.name.clone()))?);
    }
    Ok(rules)
}

/// Returns the names of the extensions in the rule of an operation.
fn modules(operation: &Operation) -> Vec<String> {
    let (Operation::Add(Object::Rule(rule)) | Operation::Insert(rule) | Operation::Replace(rule)) = operation
    else {
        return Vec::new();
    };
    let exprs = rule.statements.iter().filter_map(|statement| match statement {
        Statement::Raw(exprs) => Some(exprs),
        _ => None,
    });
    let names = exprs.flatten().filter_map(|expr| match expr {
        Expr::XtMatch(module) => Some(module.name.to_string()),
        Expr::XtTarget(module) => Some(module.name.to_string()),
        _ => None,
    });
    names.collect()
}

/// Adds the words of the rule that was refused.
fn with_words(error: Error, input: &Save<'_>) -> Error {
    match error {
        Error::Refused { table, line, operation, errno, reason, .. } if line > 0 => {
            let rule = input.tables().flat_map(Lines::rules).find(|rule| rule.line() == line);
            let rule = rule.map_or_else(String::new, |rule| rule.text().trim().to_owned());
            Error::Refused { table, line, operation, rule, errno, reason }
        }
        other => other,
    }
}

/// Says what a table of the kernel is after a batch. `handles` are those of the new rules, in order.
fn follow(
    known: &mut HashMap<String, KnownTable>,
    table: &Table,
    handles: &mut impl Iterator<Item = Option<u64>>,
    family: Family,
) {
    let entry = known.entry(table.name.clone()).or_default();
    entry.exists = table.needed;
    if table.flushed || !table.existed {
        entry.whole = true;
        entry.chains.clear();
    }
    for (name, chain) in &table.chains {
        if let Some((old, _)) = &chain.renamed {
            entry.chains.insert(old.clone(), None);
        }
        let now = chain.exists.then(|| KnownChain {
            is_base: chain.is_base(),
            is_accepting: chain.policy_now() == sluicegate_nftables::Policy::Accept,
            rules: rules_now(chain, handles, family),
        });
        entry.chains.insert(name.clone(), now);
    }
}

/// Returns the rules of a chain after a batch, if all their handles are known.
fn rules_now(
    chain: &Chain,
    handles: &mut impl Iterator<Item = Option<u64>>,
    family: Family,
) -> Option<Arc<Vec<Arc<OldRule>>>> {
    let mut added = |rule: &state::NewRule| {
        let handle = handles.next()??;
        Some(Arc::new(OldRule { handle, key: rule.key(family), jump: rule.jump.clone() }))
    };
    let old = chain.was.as_ref().and_then(|was| was.rules.as_ref());
    // Every new rule has to take its handle, even if that of one before it is not known.
    let all: Vec<_> = match &chain.rules {
        Rules::Kernel { first, then } if first.is_empty() && then.is_empty() && chain.was.is_some() => {
            return old.cloned();
        }
        Rules::Kernel { first, then } => {
            let first: Vec<_> = first.iter().map(&mut added).collect();
            let new: Vec<_> = then.iter().map(&mut added).collect();
            let between = if chain.was.is_none() { Vec::new() } else { old?.to_vec() };
            first.into_iter().chain(between.into_iter().map(Some)).chain(new).collect()
        }
        Rules::List(entries) => entries
            .iter()
            .map(|entry| match entry {
                Entry::Old(rule) => Some(Arc::clone(rule)),
                Entry::New(rule) => added(rule),
            })
            .collect(),
    };
    all.into_iter().collect::<Option<_>>().map(Arc::new)
}

fn meaning_of(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOENT => "the kernel lacks a match, a target, a chain or a set that the rule needs",
        Errno::EPERM => "CAP_NET_ADMIN is missing",
        Errno::EINVAL => "its log (dmesg) may say why",
        Errno::ELOOP => "chains jump in a loop",
        Errno::EBUSY => "a rule still jumps to the chain",
        Errno::ENOMEM => "there is not enough memory",
        _ => "the kernel refuses it",
    }
}

/// How many pairs of rules the kernel passes in a dump of all in about the time that a dump of one chain
/// takes.
const DUMP_OF_A_CHAIN: u64 = 50_000;
/// How often a change is made again after another program changed the ruleset in between.
const ATTEMPTS: usize = 10;
/// Up to how many new rules their handles are asked for.
const FOLLOWED_RULES: usize = 1000;
