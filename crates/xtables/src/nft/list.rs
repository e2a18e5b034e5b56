//! A table as iptables-nft-save prints it.

use std::borrow::Cow;
use std::collections::HashMap;

use sluicegate_iptables_save::{Action as Line, Chain, Counters, Entry, Family, Rule, Table};
use sluicegate_nftables::read;

use super::builtin::base_chains;
use super::decode::{Decoded, decode};
use super::kernel::NF_ACCEPT;
use crate::Error;
use crate::extension::Sets;

/// A table as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawTable {
    /// The family.
    pub family: Family,
    /// The name of the table.
    pub name: String,
    /// Its chains.
    pub chains: Vec<read::Chain>,
    /// Its rules, in the order of each chain.
    pub rules: Vec<read::Rule>,
}

impl RawTable {
    /// Returns a table of chains and rules that were read otherwise, as from a capture.
    #[must_use]
    pub fn new(family: Family, name: String, chains: Vec<read::Chain>, rules: Vec<read::Rule>) -> Self {
        Self { family, name, chains, rules }
    }

    /// Returns the chains and rules, as [`Client::list`](super::Client::list) does. A base chain that the
    /// kernel does not have is shown as it would be made; base chains of others are not iptables'.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if there is a rule that iptables has no words for, [`Error::Text`] for names
    /// that iptables cannot write.
    pub fn list(&self, counters: bool, sets: &dyn Sets) -> Result<Table<'static>, Error> {
        let text = |source| Error::Text { table: self.name.clone(), source };
        let mut table = Table::new(self.name.clone()).map_err(text)?;
        let mut order: Vec<&str> = Vec::new();
        for base in base_chains(&self.name).unwrap_or_default() {
            let found = self.chains.iter().find(|chain| base.is(chain));
            let policy = found.and_then(|chain| chain.policy).unwrap_or(NF_ACCEPT);
            let policy = if policy == NF_ACCEPT { "ACCEPT" } else { "DROP" };
            let line = Chain::new(base.name, Some(Cow::Borrowed(policy)), Some(counters_of(found)));
            table.entries.push(Entry::Chain(line.map_err(text)?));
            order.extend(found.map(|_| base.name));
        }
        let mut user: Vec<_> = self.chains.iter().filter(|chain| chain.hook.is_none()).collect();
        user.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        for chain in user {
            let name = chain.name.as_str();
            let line = Chain::new(name.to_owned(), None, Some(counters_of(Some(chain)))).map_err(text)?;
            table.entries.push(Entry::Chain(line));
            order.push(name);
        }
        let mut rules: HashMap<&str, Vec<&read::Rule>> = HashMap::new();
        self.rules.iter().for_each(|rule| rules.entry(rule.chain.as_str()).or_default().push(rule));
        for chain in order {
            for rule in rules.get(chain).into_iter().flatten() {
                table.entries.push(Entry::Rule(self.line(rule, counters, sets)?));
            }
        }
        Ok(table)
    }

    fn line(&self, rule: &read::Rule, counters: bool, sets: &dyn Sets) -> Result<Rule<'static>, Error> {
        let text = |source| Error::Text { table: self.name.clone(), source };
        let chain = rule.chain.as_str().to_owned();
        let decoded = decode(&rule.expressions, rule.comment(), self.family).map_err(|expression| {
            Error::Incompatible { table: self.name.clone(), chain: chain.clone(), expression }
        })?;
        let words = words(&decoded, self.family, sets).map_err(text)?;
        let mut line = Rule::new(Line::Append, chain, words).map_err(text)?;
        line.set_counters(counters.then_some(decoded.counters));
        Ok(line)
    }
}

fn counters_of(chain: Option<&read::Chain>) -> Counters {
    let counter = chain.and_then(|chain| chain.counter);
    counter
        .map_or_else(Counters::default, |counter| Counters { packets: counter.packets, bytes: counter.bytes })
}

fn words(
    decoded: &Decoded,
    family: Family,
    sets: &dyn Sets,
) -> Result<String, sluicegate_iptables_save::Error> {
    let Some(prefix) = &decoded.long_prefix else { return decoded.rule.words(family, sets) };
    let mut spec = decoded.rule.spec(family, sets);
    let options = spec.target.iter_mut().flat_map(|target| &mut target.module.options);
    for option in options.filter(|option| option.name == "nflog-prefix") {
        *option = sluicegate_iptables_save::OptionUse::new("nflog-prefix", [Cow::Owned(prefix.clone())]);
    }
    crate::print::words(&spec)
}
