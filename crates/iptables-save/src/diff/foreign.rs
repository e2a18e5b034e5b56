//! Rules of the owner in the chains of others.
//!
//! Such a rule is deleted by its words, so that a rule which another program inserts meanwhile is not hit
//! instead. `-D` with words deletes the first rule that is the same, which is why the rules that are left are
//! followed here.

use std::collections::HashMap;

use super::TableChange;
use crate::Error;
use crate::owner::Position;
use crate::state::normal_words;
use crate::tree::{Action, Entry, Rule};

/// A rule of a chain as it changes: the normal form of an owned one, `None` for one of others.
type Place = Option<String>;

/// The text of each owned rule as it was read, by its normal form.
type Texts = HashMap<String, String>;

impl TableChange<'_, '_> {
    /// Deletes and inserts the owned rules of a chain that is not owned.
    pub(super) fn change_foreign(&mut self, chain: &str) -> Result<(), Error> {
        let (have, wanted) = (self.current.get(chain), self.desired.get(chain));
        let is_owned = |rule: &&Rule<'_>| self.owns_rule(rule);
        let desired: Vec<_> = wanted.iter().flat_map(|wanted| &wanted.rules).filter(is_owned).collect();
        let all = have.map_or(&[][..], |have| &have.rules);
        if desired.is_empty() && !all.iter().any(|rule| is_owned(&rule)) {
            return Ok(());
        }
        let built_in = wanted.is_some_and(|wanted| wanted.policy.is_some());
        if have.is_none() && !built_in && !desired.is_empty() {
            return Err(self.wrong(chain, "is not there, and is not owned; a rule is wanted in it"));
        }
        let (mut places, texts) = self.places(all)?;
        let mut new = Vec::new();
        for rule in &desired {
            self.target_exists(chain, rule)?;
            for words in normal_words(rule, self.family)? {
                new.push((words, *rule));
            }
        }
        let wanted: Vec<_> = new.iter().map(|(words, _)| words.as_str()).collect();
        for words in gone(&places, &wanted) {
            let at = places.iter().position(|place| place.as_deref() == Some(&*words));
            at.into_iter().for_each(|at| drop(places.remove(at)));
            let text = texts.get(&words).unwrap_or(&words);
            let rule = Rule::new(Action::Delete, chain.to_owned(), text.to_owned())?;
            self.rules.push(Entry::Rule(rule));
        }
        self.insert(chain, places, &new)
    }

    /// Returns the rules of a chain, and the text of each owned one by its normal form.
    fn places(&self, rules: &[Rule<'_>]) -> Result<(Vec<Place>, Texts), Error> {
        let (mut places, mut texts) = (Vec::new(), Texts::new());
        for rule in rules {
            if !self.owns_rule(rule) {
                places.push(None);
                continue;
            }
            let normal = normal_words(rule, self.family)?;
            if let [one] = &normal[..] {
                texts.insert(one.clone(), rule.text().to_owned());
            }
            places.extend(normal.into_iter().map(Some));
        }
        Ok((places, texts))
    }

    /// Inserts what is missing: behind the owned rule before it, else before the one behind it, else where
    /// the owner wants it.
    fn insert(
        &mut self,
        chain: &str,
        mut places: Vec<Place>,
        new: &[(String, &Rule<'_>)],
    ) -> Result<(), Error> {
        let mut previous: Option<usize> = None;
        for (words, rule) in new {
            let first_owned = places.iter().position(Option::is_some);
            let next = previous.map_or(first_owned, |previous| {
                let rest = places.iter().enumerate().skip(previous + 1);
                rest.into_iter().find(|(_, place)| place.is_some()).map(|(at, _)| at)
            });
            if let Some(next) = next
                && places.get(next).is_some_and(|place| place.as_deref() == Some(words))
            {
                previous = Some(next);
                continue;
            }
            let at = match (previous, next, self.owner.position(self.table, rule)) {
                (Some(previous), ..) => previous + 1,
                (None, Some(next), _) => next,
                (None, None, Position::First) => 0,
                (None, None, Position::Last) => places.len(),
            };
            let number = i32::try_from(at + 1).ok().map(i32::unsigned_abs);
            let action = match number {
                Some(number) if at < places.len() || at == 0 => Action::Insert(Some(number)),
                _ => Action::Append,
            };
            self.rules.push(Entry::Rule(Rule::new(action, chain.to_owned(), words.clone())?));
            places.insert(at, Some(words.clone()));
            previous = Some(at);
        }
        Ok(())
    }
}

/// Returns the owned rules to be deleted, one after the other, each the first of its words: those that are
/// not wanted or too many, or all of them if the others are not in the wanted order.
fn gone(places: &[Place], wanted: &[&str]) -> Vec<String> {
    let mut left: Vec<&str> = places.iter().flatten().map(String::as_str).collect();
    let mut gone = Vec::new();
    let mut surplus: Vec<&str> = left.clone();
    for words in wanted {
        if let Some(at) = surplus.iter().position(|other| other == words) {
            surplus.remove(at);
        }
    }
    for words in surplus {
        let at = left.iter().position(|other| *other == words);
        if let Some(at) = at {
            left.remove(at);
        }
        gone.push(words.to_owned());
    }
    let mut rest = wanted.iter();
    if !left.iter().all(|words| rest.any(|wanted| wanted == words)) {
        gone.extend(left.into_iter().map(str::to_owned));
    }
    gone
}
