//! From one state to another by the smallest input of `iptables-restore --noflush`.
//!
//! The order inside a table is one that both back ends accept: chain lines first, which make new chains and empty those
//! that are rewritten or deleted; then rules, which may refer to any of them; then `-X`, when nothing refers to what it
//! deletes. A chain that is as it should be does not occur, so its rules keep their counters; of one that changes in a few
//! places, only those rules are deleted and inserted.

use std::collections::BTreeMap;

use crate::check::VERDICTS;
use crate::ext::{Family, find_target};
use crate::state::{Contents, State, normal_words};
use crate::tree::{Action, Chain, Command, Counters, Entry, Item, Rule, Save, Table, Verb};
use crate::{Error, Spec};

/// The input of `iptables-restore --noflush` that turns the owned chains of `current` into those of `desired`; without
/// tables if nothing is to be done. `owned` is asked with table and chain. Chains that are not owned are left alone,
/// whatever `desired` says of them.
///
/// ```
/// use sluicegate_iptables_save::{Save, State, diff};
/// let state = |text| State::of(&Save::parse(text).unwrap()).unwrap();
/// let current = state("*filter\n:MINE - [0:0]\n:OLD - [0:0]\n-A MINE -j OLD\nCOMMIT\n");
/// let desired = state("*filter\n:MINE - [0:0]\n-A MINE -j ACCEPT\nCOMMIT\n");
/// let input = diff(&current, &desired, |_, chain| chain == "MINE" || chain == "OLD").unwrap();
/// assert_eq!(input.to_string(), "*filter\n:OLD - [0:0]\n-D MINE 1\n-A MINE -j ACCEPT\n-X OLD\nCOMMIT\n");
/// ```
///
/// # Errors
/// [`Error::Diff`] if a chain cannot be deleted because a chain that is not owned refers to it, or if a rule would jump
/// to a chain that is not there. [`Error::Rule`] if a rule cannot be read.
pub fn diff(
    current: &State<'_>,
    desired: &State<'_>,
    owned: impl Fn(&str, &str) -> bool,
) -> Result<Save<'static>, Error> {
    let mut save = Save::default();
    let mut names: Vec<_> = current.tables.keys().chain(desired.tables.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let none = BTreeMap::new();
    let v6 = current.family == Family::V6 || desired.family == Family::V6;
    for name in names {
        let mut change = TableChange {
            family: if v6 { Family::V6 } else { Family::V4 },
            table: name,
            current: current.tables.get(name).unwrap_or(&none),
            desired: desired.tables.get(name).unwrap_or(&none),
            chains: Vec::new(),
            rules: Vec::new(),
            deletions: Vec::new(),
        };
        change.find(&|chain| owned(name, chain))?;
        let entries: Vec<_> = change.chains.into_iter().chain(change.rules).chain(change.deletions).collect();
        if !entries.is_empty() {
            let mut table = Table::new(name.clone())?;
            table.entries = entries;
            save.items.push(Item::Table(table));
        }
    }
    Ok(save)
}

struct TableChange<'s, 'a> {
    family: Family,
    table: &'s str,
    current: &'s BTreeMap<String, Contents<'a>>,
    desired: &'s BTreeMap<String, Contents<'a>>,
    chains: Vec<Entry<'static>>,
    rules: Vec<Entry<'static>>,
    deletions: Vec<Entry<'static>>,
}

impl TableChange<'_, '_> {
    fn find(&mut self, owned: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        for (chain, wanted) in self.desired.iter().filter(|(chain, _)| owned(chain)) {
            let before = self.rules.len();
            self.policy(chain, wanted)?;
            match self.current.get(chain) {
                Some(have) => self.change(chain, have, wanted)?,
                None if wanted.policy.is_none() => {
                    self.flush(chain)?;
                    self.append_all(chain, wanted)?;
                }
                // A built-in chain of a table that has not been used yet.
                None => self.append_all(chain, wanted)?,
            }
            if self.rules.len() > before || !self.current.contains_key(chain) {
                self.targets_exist(chain, wanted, owned)?;
            }
        }
        let gone =
            self.current.iter().filter(|(chain, _)| owned(chain) && !self.desired.contains_key(*chain));
        for (chain, have) in gone {
            self.not_referred_to(chain)?;
            match have.policy {
                Some(_) => self.reset(chain, have)?,
                None => self.delete(chain, owned)?,
            }
        }
        Ok(())
    }

    fn policy(&mut self, chain: &str, wanted: &Contents<'_>) -> Result<(), Error> {
        let have =
            self.current.get(chain).and_then(|contents| contents.policy.as_deref()).unwrap_or("ACCEPT");
        match wanted.policy.as_deref() {
            Some(policy) if policy != have => {
                let verb = Verb::Policy(chain.to_owned().into(), policy.to_owned().into(), None);
                self.rules.push(Entry::Command(Command::new(verb)));
                Ok(())
            }
            None if self.current.get(chain).is_some_and(|contents| contents.policy.is_some()) => {
                Err(self.wrong(chain, "is a built-in chain, and wanted as a user-defined one"))
            }
            _ => Ok(()),
        }
    }

    /// A built-in chain that is not mentioned any more is empty, with its usual policy.
    fn reset(&mut self, chain: &str, have: &Contents<'_>) -> Result<(), Error> {
        let wanted = Contents { policy: Some("ACCEPT".into()), ..Contents::default() };
        self.policy(chain, &wanted)?;
        self.change(chain, have, &wanted)
    }

    fn change(&mut self, chain: &str, have: &Contents<'_>, wanted: &Contents<'_>) -> Result<(), Error> {
        let old = self.normal(&have.rules)?;
        let new = self.normal(&wanted.rules)?;
        let old: Vec<_> = old.iter().map(Vec::as_slice).collect();
        let wanted_words: Vec<_> = new.iter().flatten().map(String::as_str).collect();
        if old.concat() == wanted_words {
            return Ok(());
        }
        // One spelling of several rules is saved as several: only then do the lists differ in length.
        let have_words: Vec<_> = old.iter().flat_map(|words| words.iter().map(String::as_str)).collect();
        let edits = edits(&have_words, &wanted_words).map(|edits| self.edit(chain, &edits)).transpose()?;
        let whole = self.rewrite(chain, have, wanted)?;
        let size = |(chains, rules): &(Vec<Entry<'_>>, Vec<Entry<'_>>)| {
            chains.iter().chain(rules).map(|entry| entry.to_string().len()).sum::<usize>()
        };
        let whole_size = size(&whole);
        let (chains, rules) = match edits.map(|rules| (Vec::new(), rules)) {
            Some(edits) if size(&edits) <= whole_size => edits,
            _ => whole,
        };
        self.chains.extend(chains);
        self.rules.extend(rules);
        Ok(())
    }

    fn normal(&self, rules: &[Rule<'_>]) -> Result<Vec<Vec<String>>, Error> {
        rules.iter().map(|rule| normal_words(rule, self.family)).collect()
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
            Some(_) => chains.push(Entry::Command(Command::new(Verb::Flush(Some(chain.to_owned().into()))))),
            None => chains.push(chain_line(chain)?),
        }
        let rules = wanted.rules.iter().map(|rule| append(chain, rule)).collect::<Result<_, _>>()?;
        Ok((chains, rules))
    }

    fn edit(&self, chain: &str, edits: &[Edit<'_>]) -> Result<Vec<Entry<'static>>, Error> {
        let rule = |edit: &Edit<'_>| match edit {
            Edit::Delete(number) => Rule::new(Action::DeleteNumber(*number), chain.to_owned(), ""),
            Edit::Insert(number, words) => {
                Rule::new(Action::Insert(Some(*number)), chain.to_owned(), (*words).to_owned())
            }
            Edit::Append(words) => Rule::new(Action::Append, chain.to_owned(), (*words).to_owned()),
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

    /// No chain that stays refers to one that goes.
    fn not_referred_to(&self, chain: &str) -> Result<(), Error> {
        for (other, contents) in self.desired {
            for rule in &contents.rules {
                if target_of(rule)?.as_deref() == Some(chain) {
                    return Err(self.wrong(other, format!("jumps to {chain}, which is not there")));
                }
            }
        }
        Ok(())
    }

    /// Empties a chain, so that it refers to nothing, and deletes it at the end.
    fn delete(&mut self, chain: &str, owned: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        for (other, contents) in self.current.iter().filter(|(other, _)| !owned(other)) {
            for rule in &contents.rules {
                if target_of(rule)?.as_deref() == Some(chain) {
                    return Err(self.wrong(
                        chain,
                        format!("cannot be deleted: chain {other}, which is not owned, refers to it"),
                    ));
                }
            }
        }
        self.flush(chain)?;
        let verb = Verb::DeleteChain(Some(chain.to_owned().into()));
        self.deletions.push(Entry::Command(Command::new(verb)));
        Ok(())
    }

    /// Every chain that a rule jumps to is there in the end.
    fn targets_exist(
        &self,
        chain: &str,
        wanted: &Contents<'_>,
        owned: &dyn Fn(&str) -> bool,
    ) -> Result<(), Error> {
        for rule in &wanted.rules {
            let Some(target) = target_of(rule)? else { continue };
            let there = if owned(&target) {
                self.desired.contains_key(&*target)
            } else {
                self.current.contains_key(&*target)
            };
            let known = VERDICTS.contains(&&*target) || find_target(&target, self.family).is_some();
            let has_options =
                !Spec::read(rule.text())?.target.is_some_and(|target| target.module.options.is_empty());
            if !there && !known && !has_options {
                return Err(self.wrong(chain, format!("jumps to {target}, which is not there")));
            }
        }
        Ok(())
    }

    fn wrong(&self, chain: &str, reason: impl Into<String>) -> Error {
        Error::Diff { table: self.table.to_owned(), chain: chain.to_owned(), reason: reason.into() }
    }
}

fn chain_line(chain: &str) -> Result<Entry<'static>, Error> {
    Chain::new(chain.to_owned(), None, Some(Counters::default())).map(Entry::Chain)
}

fn append(chain: &str, rule: &Rule<'_>) -> Result<Entry<'static>, Error> {
    Rule::new(Action::Append, chain.to_owned(), rule.text().to_owned()).map(Entry::Rule)
}

fn target_of<'r>(rule: &'r Rule<'_>) -> Result<Option<std::borrow::Cow<'r, str>>, Error> {
    Ok(rule.spec()?.target.map(|target| target.module.name))
}

/// A step from one list of rules to another; numbers count from 1 in the list as it is at that step.
enum Edit<'r> {
    Delete(u32),
    Insert(u32, &'r str),
    Append(&'r str),
}

/// The fewest deletions and insertions, or `None` where finding them costs more than writing all anew.
fn edits<'r>(old: &[&str], new: &[&'r str]) -> Option<Vec<Edit<'r>>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail =
        old.iter().skip(head).rev().zip(new.iter().skip(head).rev()).take_while(|(a, b)| a == b).count();
    let old_middle = old.get(head..old.len() - tail)?;
    let new_middle = new.get(head..new.len() - tail)?;
    if old_middle.len().saturating_mul(new_middle.len()) > MOST_CELLS {
        return None;
    }
    let kept = longest_common(old_middle, new_middle);
    let number = |at: usize| u32::try_from(at + 1).ok();
    let mut edits = Vec::new();
    for at in (0..old_middle.len()).rev().filter(|at| !kept.iter().any(|(old, _)| old == at)) {
        edits.push(Edit::Delete(number(head + at)?));
    }
    for (at, words) in new_middle.iter().enumerate().filter(|(at, _)| !kept.iter().any(|(_, new)| new == at))
    {
        let behind = tail > 0 || kept.iter().any(|(_, new)| *new > at);
        edits.push(if behind { Edit::Insert(number(head + at)?, words) } else { Edit::Append(words) });
    }
    Some(edits)
}

/// A longest common subsequence, as pairs of indices.
fn longest_common(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let width = new.len() + 1;
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    let cell =
        |lengths: &[u32], row: usize, column: usize| lengths.get(row * width + column).copied().unwrap_or(0);
    for (row, a) in old.iter().enumerate().rev() {
        for (column, b) in new.iter().enumerate().rev() {
            let length = match a == b {
                true => cell(&lengths, row + 1, column + 1) + 1,
                false => cell(&lengths, row + 1, column).max(cell(&lengths, row, column + 1)),
            };
            if let Some(place) = lengths.get_mut(row * width + column) {
                *place = length;
            }
        }
    }
    let (mut row, mut column, mut pairs) = (0, 0, Vec::new());
    while let (Some(a), Some(b)) = (old.get(row), new.get(column)) {
        if a == b {
            pairs.push((row, column));
            (row, column) = (row + 1, column + 1);
        } else if cell(&lengths, row + 1, column) >= cell(&lengths, row, column + 1) {
            row += 1;
        } else {
            column += 1;
        }
    }
    pairs
}

/// Above this many comparisons a chain is written anew.
const MOST_CELLS: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn input(current: &str, desired: &str, owned: &[&str]) -> Result<String, Error> {
        let state = |body: &str| {
            State::of(&Save::parse(&format!("*filter\n{body}COMMIT\n")).unwrap().into_owned()).unwrap()
        };
        let save = diff(&state(current), &state(desired), |_, chain| owned.contains(&chain))?;
        Ok(save.to_string().replace("*filter\n", "").replace("COMMIT\n", ""))
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
            "-D A 2\n-I A 2 -p tcp -m tcp --dport 5 -m comment --comment \"a longer comment here\" -j ACCEPT\n"
        );
        let grown = input(&rules(&[1, 2]), &rules(&[1, 2, 3]), &["A"]).unwrap();
        assert!(grown.starts_with("-A A ") && grown.lines().count() == 1, "{grown}");
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
    fn a_jump_into_nowhere_is_refused() {
        let error = input("", ":A - [0:0]\n-A A -j B\n", &["A", "B"]).unwrap_err();
        assert_eq!(error.to_string(), "table filter, chain A: jumps to B, which is not there");
    }

    #[test]
    fn built_in_chains_get_their_policy_and_are_flushed_by_command() {
        let changed = input("-A INPUT -j LOG\n", ":INPUT DROP [0:0]\n", &["INPUT"]).unwrap();
        assert_eq!(changed, "-F INPUT\n-P INPUT DROP\n");
    }

    proptest! {
        #[test]
        fn doing_the_edits_gives_the_new_list(old in prop::collection::vec("[a-d]", 0..12), new in prop::collection::vec("[a-d]", 0..12)) {
            let words = |list: &[String]| list.to_vec();
            let (a, b): (Vec<&str>, Vec<&str>) = (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let mut list = words(&old);
            for edit in edits(&a, &b).unwrap() {
                match edit {
                    Edit::Delete(number) => { list.remove(number as usize - 1); }
                    Edit::Insert(number, text) => list.insert(number as usize - 1, text.to_owned()),
                    Edit::Append(text) => list.push(text.to_owned()),
                }
            }
            prop_assert_eq!(list, new);
        }
    }
}
