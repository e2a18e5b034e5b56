//! From one state to another by the smallest input of `iptables-restore --noflush`.
//!
//! The order inside a table is one that both back ends accept: chain lines first, which make new chains and
//! empty those that are rewritten or deleted; then rules, which may refer to any of them; then `-X`, when
//! nothing refers to what it deletes. A chain that is as it should be does not occur, so its rules keep their
//! counters; of one that changes in a few places, only those rules are replaced, deleted and inserted.

mod foreign;
mod sequence;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::changes::Changes;
use crate::check::{TABLES, VERDICTS};
use crate::ext::{Family, find_target};
use crate::owner::{Owned, Owner};
use crate::state::{Contents, State, normal_words};
use crate::tree::{Action, Chain, Command, Counters, Entry, Item, Rule, Save, Table, Verb};
use crate::words::split;
use crate::{Error, Spec};

/// Returns the smallest changes that turn what is owned of `current` into what `desired` has of it.
///
/// `owned` is asked with table and chain. Chains that are not owned are left alone, whatever `desired` says
/// of them; [`diff_owned`] also changes single rules in them.
///
/// Smallest means: as few rules as possible are deleted and inserted, and of several ways to do so the one
/// with the shortest rules is taken. The cost follows the change: lists of 20,000 rules that differ in a few
/// places take milliseconds.
///
/// ```
/// use sluicegate_iptables_save::{Save, State, diff};
/// let state = |text| State::of(&Save::parse(text).unwrap()).unwrap();
/// let current = state("*filter\n:MINE - [0:0]\n:OLD - [0:0]\n-A MINE -j OLD\nCOMMIT\n");
/// let desired = state("*filter\n:MINE - [0:0]\n-A MINE -p tcp -j ACCEPT\nCOMMIT\n");
/// let changes = diff(&current, &desired, |_, chain| chain == "MINE" || chain == "OLD").unwrap();
/// assert_eq!(changes.to_string(), "*filter\n:OLD - [0:0]\n-R MINE 1 -p tcp -j ACCEPT\n-X OLD\nCOMMIT\n");
/// ```
///
/// # Errors
/// [`Error::Diff`] if a chain cannot be deleted because a rule that is not owned refers to it, if a rule
/// would jump to a chain that is not there, or if iptables refuses the policy of a chain. [`Error::Rule`] if
/// a rule cannot be read.
pub fn diff(
    current: &State<'_>,
    desired: &State<'_>,
    owned: impl Fn(&str, &str) -> bool,
) -> Result<Changes<'static>, Error> {
    diff_owned(current, desired, &Owned::new(owned, |_, _| false))
}

/// As [`diff`], for an [`Owner`] of single rules in the chains of others too.
///
/// # Errors
/// As [`diff`], and [`Error::Diff`] if a rule is wanted in a chain that is neither there nor owned.
pub fn diff_owned(
    current: &State<'_>,
    desired: &State<'_>,
    owner: &dyn Owner,
) -> Result<Changes<'static>, Error> {
    let mut save = Save::default();
    let names: BTreeSet<_> = current.tables.keys().chain(desired.tables.keys()).collect();
    let none = BTreeMap::new();
    let v6 = current.family == Family::Ipv6 || desired.family == Family::Ipv6;
    for name in names {
        let mut change = TableChange {
            family: if v6 { Family::Ipv6 } else { Family::Ipv4 },
            table: name,
            current: current.tables.get(name).unwrap_or(&none),
            desired: desired.tables.get(name).unwrap_or(&none),
            owner,
            chains: Vec::new(),
            rules: Vec::new(),
            deletions: Vec::new(),
        };
        change.find()?;
        let entries: Vec<_> = change.chains.into_iter().chain(change.rules).chain(change.deletions).collect();
        if !entries.is_empty() {
            let mut table = Table::new(name.clone())?;
            table.entries = entries;
            save.items.push(Item::Table(table));
        }
    }
    Ok(Changes::from_save(save))
}

struct TableChange<'s, 'a> {
    family: Family,
    table: &'s str,
    current: &'s BTreeMap<String, Contents<'a>>,
    desired: &'s BTreeMap<String, Contents<'a>>,
    owner: &'s dyn Owner,
    chains: Vec<Entry<'static>>,
    rules: Vec<Entry<'static>>,
    deletions: Vec<Entry<'static>>,
}

impl TableChange<'_, '_> {
    fn find(&mut self) -> Result<(), Error> {
        let (current, desired, owner, table) = (self.current, self.desired, self.owner, self.table);
        let owns = |chain: &str| owner.owns_chain(table, chain);
        for (chain, wanted) in desired.iter().filter(|(chain, _)| owns(chain)) {
            let before = self.rules.len();
            self.policy(chain, wanted)?;
            match current.get(chain) {
                Some(have) => self.change(chain, have, wanted)?,
                None if wanted.policy.is_none() => {
                    self.flush(chain)?;
                    self.append_all(chain, wanted)?;
                }
                // A built-in chain of a table that has not been used yet.
                None => self.append_all(chain, wanted)?,
            }
            for entry in self.rules.get(before..).unwrap_or_default() {
                if let Entry::Rule(rule) = entry {
                    self.target_exists(chain, rule)?;
                }
            }
        }
        let others: BTreeSet<_> = current.keys().chain(desired.keys()).collect();
        for chain in others.into_iter().filter(|chain| !owns(chain)) {
            self.change_foreign(chain)?;
        }
        let gone = current.iter().filter(|(chain, _)| owns(chain) && !desired.contains_key(*chain));
        let gone: Vec<_> = gone.collect();
        if gone.is_empty() {
            return Ok(());
        }
        // Of all rules at once: thousands of chains may go.
        let owned = |chain: &str, rule: &Rule<'_>| owns(chain) || owns_rule(owner, table, rule);
        let names = Names::of(gone.iter().map(|(chain, _)| chain.as_str()));
        let stays = referrers(desired, &names, owned)?;
        let foreign = referrers(current, &names, |chain, rule| !owned(chain, rule))?;
        for (chain, have) in gone {
            if let Some(other) = stays.get(chain.as_str()) {
                return Err(self.wrong(other, format!("jumps to {chain}, which is not there")));
            }
            match have.policy {
                Some(_) => self.reset(chain, have)?,
                None => self.delete(chain, foreign.get(chain.as_str()).copied())?,
            }
        }
        Ok(())
    }

    fn owns(&self, chain: &str) -> bool {
        self.owner.owns_chain(self.table, chain)
    }

    fn policy(&mut self, chain: &str, wanted: &Contents<'_>) -> Result<(), Error> {
        let have =
            self.current.get(chain).and_then(|contents| contents.policy.as_deref()).unwrap_or("ACCEPT");
        match wanted.policy.as_deref() {
            Some(policy) if policy != have => {
                self.policy_is_possible(chain, policy)?;
                let verb = Verb::Policy(chain.to_owned().into(), policy.to_owned().into(), None);
                self.rules.push(Entry::Command(Command::new(verb)?));
                Ok(())
            }
            None if self.current.get(chain).is_some_and(|contents| contents.policy.is_some()) => {
                Err(self.wrong(chain, "is a built-in chain, and wanted as a user-defined one"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a policy that `-P` of iptables 1.8.9 refuses, with either back end.
    fn policy_is_possible(&self, chain: &str, policy: &str) -> Result<(), Error> {
        let built_in = TABLES.iter().find(|(table, _)| *table == self.table).map(|(_, chains)| *chains);
        if built_in.is_some_and(|chains| !chains.contains(&chain)) {
            return Err(self.wrong(chain, format!("a user-defined chain has no policy, found {policy}")));
        }
        if !matches!(policy, "ACCEPT" | "DROP") {
            return Err(self.wrong(chain, format!("expected the policy ACCEPT or DROP, found {policy}")));
        }
        if self.table == "nat" && policy == "DROP" {
            return Err(self.wrong(
                chain,
                "iptables refuses the policy DROP in table nat, which is not for filtering; \
                 set it in table filter",
            ));
        }
        Ok(())
    }

    /// A built-in chain that is not mentioned any more is empty, with its default policy.
    fn reset(&mut self, chain: &str, have: &Contents<'_>) -> Result<(), Error> {
        let wanted = Contents { policy: Some("ACCEPT".into()), ..Contents::default() };
        self.policy(chain, &wanted)?;
        self.change(chain, have, &wanted)
    }

    fn change(&mut self, chain: &str, have: &Contents<'_>, wanted: &Contents<'_>) -> Result<(), Error> {
        let (head, tail) = alike(&have.rules, &wanted.rules);
        let middle = |length: usize| head..length - tail;
        let old = have.rules.get(middle(have.rules.len())).unwrap_or_default();
        let new = wanted.rules.get(middle(wanted.rules.len())).unwrap_or_default();
        if self.is_listing(old, new)? {
            return Ok(());
        }
        let aligned = self.align(old, new)?;
        if aligned.is_equal() {
            return Ok(());
        }
        let keeps_none = aligned.kept.is_empty() && head == 0 && tail == 0;
        let edits = edits(&aligned, head, tail == 0).map(|edits| self.edit(chain, &edits)).transpose()?;
        let (chains, rules) = match edits {
            Some(edits) if !keeps_none => (Vec::new(), edits),
            edits => {
                let whole = self.rewrite(chain, have, wanted)?;
                let size = |entries: &[Entry<'_>]| {
                    entries.iter().map(|entry| entry.to_string().len()).sum::<usize>()
                };
                match edits {
                    Some(edits) if size(&edits) <= size(&whole.0) + size(&whole.1) => (Vec::new(), edits),
                    _ => whole,
                }
            }
        };
        self.chains.extend(chains);
        self.rules.extend(rules);
        Ok(())
    }

    /// Returns whether the old rules are the new ones as iptables-save prints them. This costs least, and is
    /// so of most chains of rules that were written by an earlier run.
    fn is_listing(&self, old: &[Rule<'_>], new: &[Rule<'_>]) -> Result<bool, Error> {
        if old.len() != new.len() {
            return Ok(false);
        }
        for (old, new) in old.iter().zip(new).filter(|(old, new)| old.text() != new.text()) {
            if !matches!(&*normal_words(new, self.family)?, [normal] if normal == old.text()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Finds what is kept of two lists of rules.
    ///
    /// Reading rules is what costs, so each is read once at most. Those with the same words on both sides are
    /// matched first, and only the other new ones are read. An old rule in the words of their normal form, in
    /// which iptables-save prints it, is not read either.
    fn align<'r>(&self, old: &'r [Rule<'_>], new: &'r [Rule<'_>]) -> Result<Aligned<'r>, Error> {
        let (olds, news): (Vec<_>, Vec<_>) =
            (old.iter().map(Rule::text).collect(), new.iter().map(Rule::text).collect());
        if olds.iter().chain(&news).any(|words| may_list_addresses(words)) {
            let (old, new) = (self.normal(old)?, self.normal(new)?);
            let kept = kept(&old, &new);
            return Ok(Aligned { kept, old: old.len(), new });
        }
        let same = sequence::kept(&olds, &news);
        let others = |len: usize, side: fn(&(usize, usize)) -> usize| {
            let mut kept = same.iter().map(side).peekable();
            (0..len).filter(move |at| kept.next_if_eq(at).is_none())
        };
        let mut words: Vec<_> = news.iter().map(|words| Cow::Borrowed(*words)).collect();
        for at in others(news.len(), |pair| pair.1) {
            if let (Some(rule), Some(words)) = (new.get(at), words.get_mut(at)) {
                *words = Cow::Owned(self.normal_one(rule)?);
            }
        }
        let come: HashSet<&str> =
            others(news.len(), |pair| pair.1).filter_map(|at| Some(&**words.get(at)?)).collect();
        let normal = |rule: &'r Rule<'_>| match come.contains(rule.text()) {
            true => Ok(Cow::Borrowed(rule.text())),
            false => self.normal_one(rule).map(Cow::Owned),
        };
        let (mut gone, mut respelled) = (Vec::new(), false);
        if !come.is_empty() {
            for rule in others(olds.len(), |pair| pair.0).filter_map(|at| old.get(at)) {
                let words = normal(rule)?;
                respelled |= come.contains(&*words);
                gone.push(words);
            }
        }
        if !respelled {
            return Ok(Aligned { kept: same, old: old.len(), new: words });
        }
        // A rule that is on both sides may be one of the others in another spelling.
        let both: Vec<_> =
            same.iter().filter_map(|(at, _)| old.get(*at)).map(normal).collect::<Result<_, _>>()?;
        let mut before: Vec<_> = olds.iter().map(|words| Cow::Borrowed(*words)).collect();
        let places: Vec<_> = others(olds.len(), |pair| pair.0).collect();
        for (at, words) in places.into_iter().zip(gone) {
            before.get_mut(at).into_iter().for_each(|place| *place = words.clone());
        }
        for ((old, new), normal) in same.iter().zip(both) {
            before.get_mut(*old).into_iter().for_each(|place| *place = normal.clone());
            words.get_mut(*new).into_iter().for_each(|place| *place = normal.clone());
        }
        Ok(Aligned { kept: kept(&before, &words), old: old.len(), new: words })
    }

    /// Returns the normal form of a rule that lists no addresses.
    fn normal_one(&self, rule: &Rule<'_>) -> Result<String, Error> {
        Ok(normal_words(rule, self.family)?.concat())
    }

    /// Returns the normal forms of rules; one that lists addresses has several.
    fn normal(&self, rules: &[Rule<'_>]) -> Result<Vec<Cow<'static, str>>, Error> {
        let words: Result<Vec<_>, _> = rules.iter().map(|rule| normal_words(rule, self.family)).collect();
        Ok(words?.into_iter().flatten().map(Cow::Owned).collect())
    }

    /// Empties the chain and appends all its rules.
    fn rewrite(
        &self,
        chain: &str,
        have: &Contents<'_>,
        wanted: &Contents<'_>,
    ) -> Result<(Vec<Entry<'static>>, Vec<Entry<'static>>), Error> {
        let mut chains = Vec::new();
        match have.policy {
            // A chain line of a built-in chain would set its policy and empty nothing.
            Some(_) if have.rules.is_empty() => (),
            Some(_) => chains.push(Entry::Command(Command::new(Verb::Flush(Some(chain.to_owned().into())))?)),
            None => chains.push(chain_line(chain)?),
        }
        let rules = wanted.rules.iter().map(|rule| append(chain, rule)).collect::<Result<_, _>>()?;
        Ok((chains, rules))
    }

    fn edit(&self, chain: &str, edits: &[Edit<'_>]) -> Result<Vec<Entry<'static>>, Error> {
        let rule = |edit: &Edit<'_>| {
            let (action, words) = match *edit {
                Edit::Delete(number) => (Action::DeleteNumber(number), ""),
                Edit::Replace(number, words) => (Action::Replace(number), words),
                Edit::Insert(number, words) => (Action::Insert(Some(number)), words),
                Edit::Append(words) => (Action::Append, words),
            };
            Rule::new(action, chain.to_owned(), words.to_owned())
        };
        edits.iter().map(|edit| rule(edit).map(Entry::Rule)).collect()
    }

    fn flush(&mut self, chain: &str) -> Result<(), Error> {
        self.chains.push(chain_line(chain)?);
        Ok(())
    }

    fn append_all(&mut self, chain: &str, wanted: &Contents<'_>) -> Result<(), Error> {
        for rule in &wanted.rules {
            self.rules.push(append(chain, rule)?);
        }
        Ok(())
    }

    /// Empties a chain, so that it refers to nothing, and deletes it at the end. `foreign` is a chain with a
    /// rule that is not owned and refers to it.
    fn delete(&mut self, chain: &str, foreign: Option<&str>) -> Result<(), Error> {
        if let Some(other) = foreign {
            let reason = format!("cannot be deleted: chain {other}, which is not owned, refers to it");
            return Err(self.wrong(chain, reason));
        }
        self.flush(chain)?;
        let verb = Verb::DeleteChain(Some(chain.to_owned().into()));
        self.deletions.push(Entry::Command(Command::new(verb)?));
        Ok(())
    }

    /// Checks that the chain that a rule jumps to is there in the end.
    fn target_exists(&self, chain: &str, rule: &Rule<'_>) -> Result<(), Error> {
        let Some(target) = target_of(rule)? else { return Ok(()) };
        let there = if self.owns(&target) {
            self.desired.contains_key(&*target)
        } else {
            self.current.contains_key(&*target)
        };
        let known = VERDICTS.contains(&&*target) || find_target(&target, self.family).is_some();
        let has_options =
            !Spec::read(rule.text())?.target.is_some_and(|target| target.module.options.is_empty());
        if there || known || has_options {
            return Ok(());
        }
        Err(self.wrong(chain, format!("jumps to {target}, which is not there")))
    }

    fn owns_rule(&self, rule: &Rule<'_>) -> bool {
        owns_rule(self.owner, self.table, rule)
    }

    fn wrong(&self, chain: &str, reason: impl Into<String>) -> Error {
        Error::Diff { table: self.table.to_owned(), chain: chain.to_owned(), reason: reason.into() }
    }
}

/// Returns whether a rule is the owner's; one without words is nobody's.
fn owns_rule(owner: &dyn Owner, table: &str, rule: &Rule<'_>) -> bool {
    !rule.is_foreign() && owner.owns_rule(table, rule)
}

/// Returns how many rules at the beginning and at the end of two lists have the same words, and so need no
/// reading. A rule that lists addresses ends both: it is several rules, which are numbered one by one.
fn alike(old: &[Rule<'_>], new: &[Rule<'_>]) -> (usize, usize) {
    let same = |(a, b): &(&Rule<'_>, &Rule<'_>)| a.text() == b.text() && !may_list_addresses(a.text());
    let head = old.iter().zip(new).take_while(same).count();
    let rest = old.iter().skip(head).rev().zip(new.iter().skip(head).rev());
    (head, rest.take_while(same).count())
}

/// Returns whether there is a comma in what may be the value of `-s` or `-d`.
fn may_list_addresses(words: &str) -> bool {
    let mut before = Cow::Borrowed("");
    words.contains(',')
        && split(words).flatten().any(|word| {
            let option = std::mem::replace(&mut before, word.text);
            let names = ["--source", "--src", "--destination", "--dst"];
            let is_address = matches!(&*option, "-s" | "-d")
                || option.len() > 2 && names.iter().any(|name| name.starts_with(&*option));
            is_address && before.contains(',')
        })
}

fn chain_line(chain: &str) -> Result<Entry<'static>, Error> {
    Chain::new(chain.to_owned(), None, Some(Counters::default())).map(Entry::Chain)
}

fn append(chain: &str, rule: &Rule<'_>) -> Result<Entry<'static>, Error> {
    Rule::new(Action::Append, chain.to_owned(), rule.text().to_owned()).map(Entry::Rule)
}

fn target_of<'r>(rule: &'r Rule<'_>) -> Result<Option<Cow<'r, str>>, Error> {
    Ok(rule.spec()?.target.map(|target| target.module.name))
}

/// Returns the targets of some of the rules, each with the first chain that has a rule with it.
fn referrers<'s>(
    chains: &'s BTreeMap<String, Contents<'_>>,
    names: &Names<'_>,
    of: impl Fn(&str, &Rule<'_>) -> bool,
) -> Result<BTreeMap<Cow<'s, str>, &'s str>, Error> {
    let mut targets = BTreeMap::new();
    for (chain, contents) in chains {
        let rules = contents.rules.iter().filter(|rule| !rule.is_foreign() && names.may_be_in(rule.text()));
        for rule in rules.filter(|rule| of(chain, rule)) {
            if let Some(target) = target_of(rule)? {
                targets.entry(target).or_insert(chain.as_str());
            }
        }
    }
    Ok(targets)
}

/// Names of chains that rules may jump to.
struct Names<'n> {
    names: HashSet<&'n str>,
    /// A bit for each length that one of them has.
    lengths: u64,
}

impl<'n> Names<'n> {
    fn of(names: impl Iterator<Item = &'n str>) -> Self {
        let names: HashSet<_> = names.collect();
        let lengths = names.iter().fold(0, |lengths, name| lengths | Self::bit(name.len()));
        Self { names, lengths }
    }

    fn bit(length: usize) -> u64 {
        1 << length.min(63)
    }

    /// Returns whether words may have one of the names as their target. Reading a rule costs more than
    /// looking for the names, and most rules have none of them.
    fn may_be_in(&self, words: &str) -> bool {
        let is_one = |word: &str| self.lengths & Self::bit(word.len()) != 0 && self.names.contains(word);
        let mut parts = words.split([' ', '\t', '"', '\'', '=']);
        // What is escaped is read in any case, and so is an option with its value in one word.
        words.contains('\\')
            || parts.any(|part| {
                let value = part.strip_prefix("-j").or_else(|| part.strip_prefix("-g"));
                is_one(part) || value.is_some_and(is_one)
            })
    }
}

/// A step from one list of rules to another; numbers count from 1 in the list as it is at that step.
enum Edit<'r> {
    Delete(u32),
    Replace(u32, &'r str),
    Insert(u32, &'r str),
    Append(&'r str),
}

/// Returns the pairs of indices of the rules that are kept of lists of words.
fn kept(old: &[Cow<'_, str>], new: &[Cow<'_, str>]) -> Vec<(usize, usize)> {
    let (old, new): (Vec<_>, Vec<_>) =
        (old.iter().map(|words| &**words).collect(), new.iter().map(|words| &**words).collect());
    sequence::kept(&old, &new)
}

/// Two lists of rules and the pairs of their indices that are kept.
struct Aligned<'r> {
    kept: Vec<(usize, usize)>,
    /// How many rules the old list has.
    old: usize,
    /// The words of the rules of the new list.
    new: Vec<Cow<'r, str>>,
}

impl Aligned<'_> {
    fn is_equal(&self) -> bool {
        self.kept.len() == self.old && self.kept.len() == self.new.len()
    }
}

/// Returns the steps from the old list to the new one that leave alone what is kept; `None` if a number is
/// too large.
///
/// `before` rules stand before both lists; `last` says that none follow. The steps go from the end to the
/// beginning, so that the numbers are those of the old list.
fn edits<'r>(aligned: &'r Aligned<'_>, before: usize, last: bool) -> Option<Vec<Edit<'r>>> {
    let Aligned { kept, old, new } = aligned;
    // iptables counts rules in an int.
    let number = |at: usize| i32::try_from(before + at + 1).ok().map(i32::unsigned_abs);
    let mut edits = Vec::new();
    let mut end = (*old, new.len());
    for start in kept.iter().rev().map(|pair| Some(*pair)).chain([None]) {
        let first = start.map_or((0, 0), |(a, b)| (a + 1, b + 1));
        let (gone, come) = (first.0..end.0, first.1..end.1);
        let both = gone.len().min(come.len());
        let words = new.get(come.clone()).unwrap_or_default();
        for (at, words) in gone.clone().zip(words) {
            edits.push(Edit::Replace(number(at)?, words));
        }
        for at in gone.clone().skip(both).rev() {
            edits.push(Edit::Delete(number(at)?));
        }
        for (at, words) in words.iter().enumerate().skip(both) {
            let append = last && gone.end == *old;
            edits.push(if append {
                Edit::Append(words)
            } else {
                Edit::Insert(number(gone.start + at)?, words)
            });
        }
        end = start.unwrap_or_default();
    }
    Some(edits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn input(current: &str, desired: &str, owned: &[&str]) -> Result<String, Error> {
        let state = |body: &str| {
            State::of(&Save::parse(&format!("*filter\n{body}COMMIT\n")).unwrap().into_owned()).unwrap()
        };
        let changes = diff(&state(current), &state(desired), |_, chain| owned.contains(&chain))?;
        Ok(changes.to_string().replace("*filter\n", "").replace("COMMIT\n", ""))
    }

    #[test]
    fn equal_rules_in_other_spellings_are_no_difference() {
        let current = ":A - [5:6]\n[7:8] -A A -p tcp -m tcp --dport 80 -j ACCEPT\n";
        assert_eq!(input(current, ":A - [0:0]\n-A A -p tcp --dport http -j ACCEPT\n", &["A"]).unwrap(), "");
    }

    #[test]
    fn a_change_in_the_middle_touches_that_rule_alone() {
        let rules = |ports: &[u32]| {
            let rule = |port: &u32| {
                format!(
                    "-A A -p tcp --dport {port} -m comment --comment \"a longer comment here\" -j ACCEPT\n"
                )
            };
            format!(":A - [0:0]\n{}", ports.iter().map(rule).collect::<String>())
        };
        let changed = input(&rules(&[1, 2, 3, 4]), &rules(&[1, 5, 3, 4]), &["A"]).unwrap();
        assert_eq!(
            changed,
            "-R A 2 -p tcp -m tcp --dport 5 -m comment --comment \"a longer comment here\" -j ACCEPT\n"
        );
        let grown = input(&rules(&[1, 2]), &rules(&[1, 2, 3]), &["A"]).unwrap();
        assert!(grown.starts_with("-A A ") && grown.lines().count() == 1, "{grown}");
    }

    #[test]
    fn rules_that_are_only_spelled_differently_are_kept() {
        let current =
            ":A - [0:0]\n-A A -p udp -j LOG\n-A A -p tcp -m tcp --dport 80 -j DROP\n-A A -j ACCEPT\n";
        let desired = ":A - [0:0]\n-A A -j ACCEPT\n-A A -p udp -j LOG\n-A A -p tcp --dport http -j DROP\n";
        assert_eq!(input(current, desired, &["A"]).unwrap(), "-D A 3\n-I A 1 -j ACCEPT\n");
        let lists = ":A - [0:0]\n-A A -s 10.0.0.1,10.0.0.2 -j DROP\n-A A -j LOG\n";
        let saved = ":A - [0:0]\n-A A -s 10.0.0.1/32 -j DROP\n-A A -s 10.0.0.2/32 -j DROP\n-A A -j LOG\n";
        assert_eq!(input(saved, lists, &["A"]).unwrap(), "");
        assert_eq!(input(&saved.replace("LOG", "ACCEPT"), lists, &["A"]).unwrap(), "-R A 3 -j LOG\n");
    }

    #[test]
    fn foreign_chains_are_left_alone_and_keep_what_they_refer_to() {
        assert_eq!(input(":F - [0:0]\n-A F -j ACCEPT\n", ":F - [0:0]\n", &["A"]).unwrap(), "");
        let error = input(":A - [0:0]\n:F - [0:0]\n-A F -j A\n", "", &["A"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "table filter, chain A: cannot be deleted: chain F, which is not owned, refers to it"
        );
    }

    #[test]
    fn a_chain_that_goes_is_found_in_every_spelling_of_a_jump_to_it() {
        for jump in ["-j OLD", "-jOLD", "--jump=OLD", "-g \"OLD\"", "-j 'OLD'", "-j O\\LD", "-p tcp -g\tOLD"]
        {
            let rule = Rule::new(Action::Append, "FORWARD", jump).unwrap();
            let names = Names::of(["OTHER", "OLD"].into_iter());
            let is_target = matches!(target_of(&rule), Ok(Some(target)) if target == "OLD");
            assert!(!is_target || names.may_be_in(jump), "{jump}");
        }
        let names = Names::of(["OLD"].into_iter());
        assert!(names.may_be_in("-j OLD") && names.may_be_in("-g \"OLD\""));
        assert!(!names.may_be_in("-m comment --comment OLDER -j NEW"));
    }

    #[test]
    fn a_jump_into_nowhere_is_refused() {
        let error = input("", ":A - [0:0]\n-A A -j B\n", &["A", "B"]).unwrap_err();
        assert_eq!(error.to_string(), "table filter, chain A: jumps to B, which is not there");
    }

    #[test]
    fn built_in_chains_get_their_policy_and_are_flushed_by_command() {
        let changed = input("-A INPUT -j LOG\n", ":INPUT DROP [0:0]\n", &["INPUT"]).unwrap();
        assert_eq!(changed, "-F INPUT\n-P INPUT DROP\n");
    }

    #[test]
    fn two_changes_far_apart_in_a_long_chain_are_two_lines() {
        let rules = |changed: [u32; 2]| {
            let rule = |number: u32| {
                let target = if changed.contains(&number) { "DROP" } else { "ACCEPT" };
                format!("-A A -s 10.{}.{}.{}/32 -j {target}\n", number >> 16, number >> 8 & 255, number & 255)
            };
            State::of(
                &Save::parse(&format!(
                    "*filter\n:A - [0:0]\n{}COMMIT\n",
                    (0..20_000).map(rule).collect::<String>()
                ))
                .unwrap()
                .into_owned(),
            )
            .unwrap()
        };
        let changes = diff(&rules([5_000, 6_100]), &rules([7_000, 19_000]), |_, _| true).unwrap();
        let expected = "*filter\n-R A 19001 -s 10.0.74.56/32 -j DROP\n-R A 7001 -s 10.0.27.88/32 -j DROP\n\
                        -R A 6101 -s 10.0.23.212/32 -j ACCEPT\n-R A 5001 -s 10.0.19.136/32 -j ACCEPT\n\
                        COMMIT\n";
        assert_eq!(changes.to_string(), expected);
    }

    #[test]
    fn policies_that_iptables_refuses_are_refused_with_the_reason() {
        let state = |text: &str| State::of(&Save::parse(text).unwrap().into_owned()).unwrap();
        for (table, chain, policy, reason) in [
            (
                "nat",
                "PREROUTING",
                "DROP",
                "iptables refuses the policy DROP in table nat, which is not for filtering; set it in table \
                 filter",
            ),
            ("filter", "INPUT", "QUEUE", "expected the policy ACCEPT or DROP, found QUEUE"),
            ("filter", "A", "DROP", "a user-defined chain has no policy, found DROP"),
        ] {
            let desired = state(&format!("*{table}\n:{chain} {policy} [0:0]\nCOMMIT\n"));
            let error = diff(&state(""), &desired, |_, _| true).unwrap_err();
            assert_eq!(error.to_string(), format!("table {table}, chain {chain}: {reason}"));
            assert!(diff(&desired, &desired, |_, _| true).unwrap().is_empty());
        }
    }

    fn foreign(current: &str, desired: &str) -> Result<String, Error> {
        let state = |body: &str| {
            State::of(&Save::parse(&format!("*filter\n{body}COMMIT\n")).unwrap().into_owned()).unwrap()
        };
        let owner = Owned::new(
            |_, chain| chain == "MINE",
            |_, rule| rule.has_comment("mine") || rule.has_target("MINE"),
        );
        let changes = diff_owned(&state(current), &state(desired), &owner)?;
        Ok(changes.to_string().replace("*filter\n", "").replace("COMMIT\n", ""))
    }

    #[test]
    fn a_rule_in_a_chain_of_others_is_deleted_by_its_words_and_its_neighbours_stay() {
        let current = ":MINE - [0:0]\n-A INPUT -j ACCEPT\n-A INPUT -j MINE\n-A INPUT -j DROP\n";
        assert_eq!(foreign(current, "").unwrap(), ":MINE - [0:0]\n-D INPUT -j MINE\n-X MINE\n");
        assert_eq!(foreign(current, ":MINE - [0:0]\n-A INPUT -j MINE\n").unwrap(), "");
        assert_eq!(
            foreign("-A INPUT -j DROP\n", ":MINE - [0:0]\n-A INPUT -j MINE\n-A INPUT -j RETURN\n").unwrap(),
            ":MINE - [0:0]\n-I INPUT 1 -j MINE\n"
        );
    }

    #[test]
    fn owned_rules_among_others_keep_their_order() {
        let rule = |port: u32| {
            format!("-A INPUT -p tcp -m tcp --dport {port} -m comment --comment mine -j ACCEPT\n")
        };
        let other = "-A INPUT -j LOG\n";
        let current = format!("{other}{}{other}{}", rule(1), rule(3));
        let desired = format!("{}{}{}", rule(1), rule(2), rule(3));
        assert_eq!(foreign(&current, &desired).unwrap(), rule(2).replace("-A INPUT", "-I INPUT 3"));
        let swapped = foreign(&current, &format!("{}{}", rule(3), rule(1))).unwrap();
        let deleted = |port| rule(port).replace("-A", "-D");
        let inserted = |port, at: u32| rule(port).replace("-A INPUT", &format!("-I INPUT {at}"));
        assert_eq!(swapped, format!("{}{}{}{}", deleted(1), deleted(3), inserted(3, 1), inserted(1, 2)));
        // Of twelve that are the same, eleven go.
        let twelve = rule(1).repeat(12);
        assert_eq!(foreign(&twelve, &rule(1)).unwrap(), deleted(1).repeat(11));
    }

    #[test]
    fn a_rule_is_known_in_the_words_of_its_listing() {
        let table = |rules: &str| format!("*filter\n:MINE - [0:0]\n{rules}COMMIT\n");
        let state = |rules: &str| State::of(&Save::parse(&table(rules)).unwrap().into_owned()).unwrap();
        let changes = |old: &str, new: &str| diff(&state(old), &state(new), |_, chain| chain == "MINE");
        let listed = "-A MINE -s 10.0.0.1/32 -j ACCEPT\n-A MINE -s 10.0.0.2/32 -j ACCEPT\n";
        let list = "-A MINE -s 10.0.0.1,10.0.0.2 -j ACCEPT\n";
        assert_eq!(changes(listed, list).unwrap().to_string(), "");
        let one = "-A MINE -s 10.0.0.1 -j ACCEPT\n";
        assert_eq!(
            changes(listed, &format!("{one}-A MINE -s 10.0.0.2 -j ACCEPT\n")).unwrap().to_string(),
            ""
        );
        let other = changes(listed, &format!("{one}-A MINE -s 10.0.0.3 -j ACCEPT\n")).unwrap().to_string();
        assert_eq!(other, "*filter\n-R MINE 2 -s 10.0.0.3/32 -j ACCEPT\nCOMMIT\n");
    }

    #[test]
    fn a_rule_of_ours_in_a_chain_that_is_not_there_is_refused() {
        let error = foreign("", ":THEIRS - [0:0]\n:MINE - [0:0]\n-A THEIRS -j MINE\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "table filter, chain THEIRS: is not there, and is not owned; a rule is wanted in it"
        );
    }

    proptest! {
        #[test]
        fn owned_rules_of_any_chain_become_those_that_are_wanted(
            old in prop::collection::vec(("[a-d]", prop::bool::ANY), 0..10),
            new in prop::collection::vec("[a-d]", 0..6),
        ) {
            let line = |name: &str, mine: bool| {
                let whose = if mine { "mine" } else { "theirs" };
                format!("-A INPUT -m comment --comment {name} -m comment --comment {whose} -j ACCEPT\n")
            };
            let text = |body: String| format!("*filter\n{body}COMMIT\n");
            let current = text(old.iter().map(|(name, mine)| line(name, *mine)).collect());
            let desired = text(new.iter().map(|name| line(name, true)).collect());
            let state = |text: &str| State::of(&Save::parse(text).unwrap().into_owned()).unwrap();
            let owner = Owned::new(|_, _| false, |_, rule| rule.has_comment("mine"));
            let changes = diff_owned(&state(&current), &state(&desired), &owner).unwrap();
            let by_number = |line: &str| line.starts_with("-D INPUT ") && !line.starts_with("-D INPUT -m");
            prop_assert!(!changes.to_string().lines().any(by_number));
            let both = format!("{current}{changes}");
            let after = state(&both);
            let rules = after.rules("filter", "INPUT").unwrap();
            let of = |comment: &str| -> Vec<String> {
                let found = rules.iter().filter(|rule| rule.has_comment(comment));
                found.map(|rule| format!("-A INPUT {}\n", rule.text())).collect()
            };
            prop_assert_eq!(of("mine"), new.iter().map(|name| line(name, true)).collect::<Vec<_>>());
            let theirs = old.iter().filter(|(_, mine)| !mine).map(|(name, _)| line(name, false));
            prop_assert_eq!(of("theirs"), theirs.collect::<Vec<_>>());
        }

        #[test]
        fn doing_the_edits_gives_the_new_list(
            old in prop::collection::vec("[a-d]", 0..12),
            new in prop::collection::vec("[a-d]", 0..12),
        ) {
            let a: Vec<_> = old.iter().map(String::as_str).collect();
            let b: Vec<_> = new.iter().map(String::as_str).collect();
            let mut list = old.clone();
            let kept = sequence::kept(&a, &b);
            let aligned = Aligned { kept, old: a.len(), new: b.into_iter().map(Cow::Borrowed).collect() };
            for edit in edits(&aligned, 0, true).unwrap() {
                match edit {
                    Edit::Delete(number) => { list.remove(number as usize - 1); }
                    Edit::Replace(number, text) => text.clone_into(&mut list[number as usize - 1]),
                    Edit::Insert(number, text) => list.insert(number as usize - 1, text.to_owned()),
                    Edit::Append(text) => list.push(text.to_owned()),
                }
            }
            prop_assert_eq!(list, new);
        }
    }
}
