//! A table as iptables-save prints it.

use std::borrow::Cow;

use sluicegate_iptables_save::{Action as Line, Chain, Entry, Rule, Table};

use super::ruleset::{self, ChainId, Jump, Ruleset};
use crate::Error;
use crate::extension::{Binary, Sets};
use crate::foreign::{Foreign, ForeignReason, View, one_line};
use crate::plain::{self, Then};
use crate::rule::{self, Action, verdict_name};

/// Returns the lines of a table: chains, then rules, with the counters of the rules if these are wanted; and
/// what cannot be written so. With `only`, the rules of one chain.
pub(super) fn view(
    ruleset: &Ruleset,
    only: Option<&str>,
    counters: bool,
    sets: &dyn Sets,
) -> Result<View, Error> {
    let text = |source| Error::Text { table: ruleset.table.clone(), source };
    let mut view = View {
        table: Table::new(ruleset.table.clone()).map_err(text)?,
        foreign: Vec::new(),
        references: None,
    };
    let chains = ruleset.in_order();
    let named = |id: &ChainId| Some((*id, ruleset.chain(*id)?, ruleset.name(ruleset.chain(*id)?)));
    for (_, chain, name) in chains.iter().filter_map(named) {
        let policy = chain.hook.map(|_| Cow::Owned(verdict_name(chain.policy)));
        match Chain::new(name.clone().into_owned(), policy, Some(chain.counters())) {
            Ok(line) => view.table.entries.push(Entry::Chain(line)),
            Err(error) => {
                let (chain, reason) = (name.into_owned(), ForeignReason::Text(error.to_string()));
                view.foreign.push(Foreign { chain, number: None, text: String::new(), reason });
            }
        }
    }
    let wanted = |name: &str| only.is_none_or(|only| only == name) && Chain::new(name, None, None).is_ok();
    for (id, _, name) in chains.iter().filter_map(named).filter(|(_, _, name)| wanted(name)) {
        for (at, entry) in ruleset.rules(id).iter().enumerate() {
            let words = match plain_words(ruleset, entry, sets) {
                Some(words) => Ok(words),
                None => decode(ruleset, entry).words_in_general(ruleset.family, sets),
            };
            let line = words.map_err(ForeignReason::from);
            let line = line.and_then(|words| {
                Rule::new(Line::Append, name.clone().into_owned(), words)
                    .map_err(|error| ForeignReason::Text(error.to_string()))
            });
            let mut line = match line {
                Ok(line) => line,
                Err(reason) => {
                    let rule = decode(ruleset, entry);
                    let text = one_line(&rule.remarked(ruleset.family, sets).to_string());
                    let line = Rule::foreign(name.clone().into_owned(), &text);
                    let (chain, number) = (name.clone().into_owned(), Some(at + 1));
                    view.foreign.push(Foreign { chain, number, text, reason });
                    line.map_err(|source| Error::Text { table: ruleset.table.clone(), source })?
                }
            };
            line.set_counters(counters.then(|| ruleset.counters(entry)));
            view.table.entries.push(Entry::Rule(line));
        }
    }
    Ok(view)
}

/// Returns the words of a rule of the few forms that tables are full of.
fn plain_words(ruleset: &Ruleset, rule: &ruleset::Rule, sets: &dyn Sets) -> Option<String> {
    let family = ruleset.family;
    let entry = ruleset.entry(rule)?;
    let head = entry.bytes.get(..crate::entry::head_size(family))?;
    let name;
    let then = match (rule.jump, entry.target_extension()?) {
        (Jump::Chain(id), _) => {
            name = ruleset.name(ruleset.chain(id)?);
            Then::Chain(&name)
        }
        (Jump::Next, _) => Then::Continue,
        (Jump::None, target) => match entry.verdict() {
            Some(verdict) => Then::Verdict(verdict),
            None => {
                name = sluicegate_iptables_save::decode(target.name);
                Then::Target(&name, target.revision, target.data)
            }
        },
    };
    // One that cannot be read ends the matches, as in a rule that is decoded.
    let matches = entry.matches().flatten();
    let matches =
        matches.map(|found| (sluicegate_iptables_save::decode(found.name), found.revision, found.data));
    plain::words(head, matches, then, family, sets)
}

/// Returns a rule without the layout of a table.
pub(super) fn decode(ruleset: &Ruleset, entry: &ruleset::Rule) -> rule::Rule {
    let bytes = ruleset.bytes(entry);
    let head = bytes.get(..crate::entry::head_size(ruleset.family)).unwrap_or_default().to_vec();
    let Some(parts) = ruleset.entry(entry) else {
        return rule::Rule { head, matches: Vec::new(), action: Action::Continue };
    };
    let binary = |extension: super::layout::Extension<'_>| Binary {
        name: Cow::Owned(extension.name()),
        revision: extension.revision,
        data: extension.data.to_vec(),
    };
    let action = match (entry.jump, parts.target_extension()) {
        (Jump::Chain(id), _) => {
            Action::Chain(ruleset.chain(id).map(|chain| ruleset.name(chain).into_owned()).unwrap_or_default())
        }
        (Jump::Next, _) | (Jump::None, None) => Action::Continue,
        (Jump::None, Some(target)) => match parts.verdict() {
            Some(verdict) => Action::Verdict(verdict),
            None => Action::Target(binary(target)),
        },
    };
    rule::Rule { head, matches: parts.matches().flatten().map(binary).collect(), action }
}
