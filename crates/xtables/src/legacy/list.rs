//! A table as iptables-save prints it.

use std::borrow::Cow;

use sluicegate_iptables_save::{Action as Line, Chain, Entry, Rule, Table};

use super::ruleset::{self, ChainId, Jump, Ruleset};
use crate::Error;
use crate::extension::{Binary, Sets};
use crate::rule::{self, Action, verdict_name};

/// Returns the lines of a table: chains, then rules, with the counters of the rules if these are wanted.
pub(super) fn table(ruleset: &Ruleset, counters: bool, sets: &dyn Sets) -> Result<Table<'static>, Error> {
    let text = |source| Error::Text { table: ruleset.table.clone(), source };
    let mut table = Table::new(ruleset.table.clone()).map_err(text)?;
    let chains = ruleset.in_order();
    let named = |id: &ChainId| Some((*id, ruleset.chain(*id)?, ruleset.name(ruleset.chain(*id)?)));
    for (_, chain, name) in chains.iter().filter_map(named) {
        let policy = chain.hook.map(|_| Cow::Owned(verdict_name(chain.policy)));
        let line = Chain::new(name.into_owned(), policy, Some(chain.counters())).map_err(text)?;
        table.entries.push(Entry::Chain(line));
    }
    for (id, _, name) in chains.iter().filter_map(named) {
        for entry in &*ruleset.rules(id) {
            let words = decode(ruleset, entry).words(ruleset.family, sets).map_err(text)?;
            let mut line = Rule::new(Line::Append, name.clone().into_owned(), words).map_err(text)?;
            line.set_counters(counters.then(|| ruleset.counters(entry)));
            table.entries.push(Entry::Rule(line));
        }
    }
    Ok(table)
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
