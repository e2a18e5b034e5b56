//! A table as iptables-nft-save prints it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use sluicegate_iptables_save::{Action as Line, Chain, Counters, Entry, Family, Rule, Table};
use sluicegate_nftables::expr::{Expr, MetaKey};
use sluicegate_nftables::read;

use super::builtin::{BaseChain, base_chains};
use super::decode::{Decoded, NoWords, decode};
use super::kernel::NF_ACCEPT;
use crate::Error;
use crate::extension::Sets;
use crate::foreign::{Foreign, ForeignReason, View, one_line};
use crate::rule;

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
    /// The names of interfaces, if a rule has the number of one.
    pub links: BTreeMap<u32, String>,
    /// The table itself.
    pub table: Option<read::Table>,
    /// Its sets with the elements of those without a name, if a rule looks up in one, for the text of what has
    /// no words.
    pub sets: Vec<(read::Set, Vec<read::Element>)>,
}

impl RawTable {
    /// Returns a table of chains and rules that were read otherwise, as from a capture.
    #[must_use]
    pub fn new(family: Family, name: String, chains: Vec<read::Chain>, rules: Vec<read::Rule>) -> Self {
        Self { family, name, chains, rules, links: BTreeMap::new(), table: None, sets: Vec::new() }
    }

    /// Returns the chains and rules, as [`Client::list`](super::Client::list) does. A base chain that the
    /// kernel does not have is shown as it would be made; base chains of others are not iptables'.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if there is a rule that iptables has no words for, [`Error::Text`] for names
    /// that iptables cannot write.
    pub fn list(&self, counters: bool, sets: &dyn Sets) -> Result<Table<'static>, Error> {
        self.view(counters, sets)?.all_in_words()
    }

    /// Returns the chains and rules with what iptables has no words for, as
    /// [`Client::view`](super::Client::view) does.
    ///
    /// # Errors
    /// [`Error::Text`] if the name of the table is not one that iptables can write.
    pub fn view(&self, counters: bool, sets: &dyn Sets) -> Result<View, Error> {
        let text = |source| Error::Text { table: self.name.clone(), source };
        let mut view = View {
            table: Table::new(self.name.clone()).map_err(text)?,
            foreign: Vec::new(),
            references: None,
        };
        let mut order: Vec<&str> = Vec::new();
        let base = base_chains(&self.name).unwrap_or_default();
        for base in base {
            let found = self.chains.iter().find(|chain| base.is(chain));
            let policy = found.and_then(|chain| chain.policy).unwrap_or(NF_ACCEPT);
            let policy = if policy == NF_ACCEPT { "ACCEPT" } else { "DROP" };
            let line = Chain::new(base.name, Some(Cow::Borrowed(policy)), Some(counters_of(found)));
            view.table.entries.push(Entry::Chain(line.map_err(text)?));
            order.extend(found.map(|_| base.name));
        }
        let mut user: Vec<_> = self.chains.iter().filter(|chain| !is_one(chain, base)).collect();
        user.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        for chain in user {
            let name = chain.name.as_str();
            let reason = match Chain::new(name.to_owned(), None, Some(counters_of(Some(chain)))) {
                _ if chain.hook.is_some() => ForeignReason::BaseChain,
                _ if base.iter().any(|base| base.name == name) => ForeignReason::BaseChain,
                Err(error) => ForeignReason::Text(error.to_string()),
                Ok(line) => {
                    view.table.entries.push(Entry::Chain(line));
                    order.push(name);
                    continue;
                }
            };
            let chain = name.to_owned();
            view.foreign.push(Foreign { chain, number: None, text: String::new(), reason });
        }
        let mut rules: HashMap<&str, Vec<&read::Rule>> = HashMap::new();
        self.rules.iter().for_each(|rule| rules.entry(rule.chain.as_str()).or_default().push(rule));
        let mut without = Vec::new();
        for chain in order {
            for (at, rule) in rules.get(chain).into_iter().flatten().enumerate() {
                match self.line(rule, counters, sets) {
                    Ok(line) => view.table.entries.push(Entry::Rule(line)),
                    Err(reason) => {
                        let (chain, number) = (chain.to_owned(), Some(at + 1));
                        without.push((view.table.entries.len(), *rule));
                        view.foreign.push(Foreign { chain, number, text: String::new(), reason });
                        view.table.entries.push(Entry::Text(Cow::Borrowed("")));
                    }
                }
            }
        }
        self.add_text(&mut view, &without)?;
        Ok(view)
    }

    /// Writes the rules without words in the language of nft, in their places.
    fn add_text(&self, view: &mut View, without: &[(usize, &read::Rule)]) -> Result<(), Error> {
        if without.is_empty() {
            return Ok(());
        }
        let texts = self.texts(without.iter().map(|(_, rule)| (*rule).clone()).collect());
        let rules = view.foreign.iter_mut().filter(|foreign| foreign.number.is_some());
        for ((at, rule), foreign) in without.iter().zip(rules) {
            foreign.text = texts.get(&rule.handle).cloned().unwrap_or_default();
            let line = Rule::foreign(foreign.chain.clone(), &foreign.text);
            let line = line.map_err(|source| Error::Text { table: self.name.clone(), source })?;
            if let Some(entry) = view.table.entries.get_mut(*at) {
                *entry = Entry::Rule(line);
            }
        }
        Ok(())
    }

    /// Returns rules in the language of nft, by their handles.
    fn texts(&self, rules: Vec<read::Rule>) -> HashMap<u64, String> {
        let Some(table) = &self.table else { return HashMap::new() };
        let mut ruleset = read::Ruleset::new(vec![table.clone()]);
        ruleset.chains.clone_from(&self.chains);
        ruleset.rules = rules;
        ruleset.sets.clone_from(&self.sets);
        let content = ruleset.content();
        let rules = content.iter().flat_map(|table| &table.chains).flat_map(|(_, rules)| rules);
        rules.filter_map(|rule| Some((rule.handle?, one_line(&rule.body().to_string())))).collect()
    }

    fn line(
        &self,
        rule: &read::Rule,
        counters: bool,
        sets: &dyn Sets,
    ) -> Result<Rule<'static>, ForeignReason> {
        let text = |source: sluicegate_iptables_save::Error| ForeignReason::Text(source.to_string());
        let links = |index| self.links.get(&index).cloned();
        let decoded = decode(&rule.expressions, rule.comment().as_deref(), self.family, &links);
        let decoded = decoded.map_err(|error| match error {
            NoWords::Expression(name) => ForeignReason::Expression(name),
            NoWords::Meaning(what) => ForeignReason::Meaning(what.to_owned()),
        })?;
        let words = words(&decoded, self.family, sets)?;
        let mut line = Rule::new(Line::Append, rule.chain.as_str().to_owned(), words).map_err(text)?;
        line.set_counters(counters.then_some(decoded.counters));
        Ok(line)
    }
}

/// Returns whether rules have the number of an interface.
pub(super) fn have_links(rules: &[read::Rule]) -> bool {
    let of_link = |expr: &Expr| matches!(expr, Expr::Meta(meta) if is_link(meta.key));
    rules.iter().any(|rule| rule.expressions.iter().any(of_link))
}

fn is_link(key: MetaKey) -> bool {
    matches!(key, MetaKey::IIF | MetaKey::OIF)
}

/// Returns whether rules look up in sets.
pub(super) fn has_lookups(rules: &[read::Rule]) -> bool {
    rules.iter().any(|rule| rule.expressions.iter().any(|expr| matches!(expr, Expr::Lookup(_))))
}

fn is_one(chain: &read::Chain, base: &[BaseChain]) -> bool {
    base.iter().any(|base| base.is(chain))
}

fn counters_of(chain: Option<&read::Chain>) -> Counters {
    let counter = chain.and_then(|chain| chain.counter);
    counter
        .map_or_else(Counters::default, |counter| Counters { packets: counter.packets, bytes: counter.bytes })
}

fn words(decoded: &Decoded, family: Family, sets: &dyn Sets) -> Result<String, rule::NoWords> {
    let Some(prefix) = &decoded.long_prefix else { return decoded.rule.words(family, sets) };
    let mut spec = decoded.rule.spec(family, sets)?;
    let options = spec.target.iter_mut().flat_map(|target| &mut target.module.options);
    for option in options.filter(|option| option.name == "nflog-prefix") {
        *option = sluicegate_iptables_save::OptionUse::new("nflog-prefix", [Cow::Owned(prefix.clone())]);
    }
    Ok(crate::print::words(&spec)?)
}
