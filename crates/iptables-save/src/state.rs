//! The chains and rules that exist once every line of a save, or of the input of a restore, is applied.

mod change;

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::check::{BUILT_IN, TABLES};
use crate::tree::{Action, Chain, Command, Counters, Entry, Rule, Save, Table, Verb};
use crate::{Error, Family, normalise};

/// Tables by name, with their chains and rules.
///
/// ```
/// use sluicegate_iptables_save::{Save, State, diff};
///
/// let state = |rules: &'static str| State::of(&Save::parse(rules)?);
/// let now = state("*filter\n:WEB - [0:0]\n-A WEB -j DROP\nCOMMIT\n")?;
/// let wanted = state("*filter\n:WEB - [0:0]\n-A WEB -p icmp -j ACCEPT\n-A WEB -j DROP\nCOMMIT\n")?;
/// let changes = diff(&now, &wanted, |_, chain| chain == "WEB")?;
/// assert!(changes.to_string().contains("-I WEB 1 -p icmp -j ACCEPT"));
/// # Ok::<(), sluicegate_iptables_save::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State<'a> {
    pub(crate) family: Family,
    pub(crate) tables: BTreeMap<String, Chains<'a>>,
}

/// The chains of a table by name.
pub(crate) type Chains<'a> = BTreeMap<String, Contents<'a>>;

/// A chain of a [`State`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Contents<'a> {
    /// Of a built-in chain; a user-defined one has none.
    pub(crate) policy: Option<Cow<'a, str>>,
    pub(crate) counters: Option<Counters>,
    pub(crate) rules: Vec<Rule<'a>>,
}

impl<'a> State<'a> {
    /// Applies every line of `save` to empty tables, in order. The family is that of the tool which the first
    /// comment names, else IPv6 if any rule is one of ip6tables alone, else IPv4.
    ///
    /// # Errors
    /// [`Error::Rule`] with the line, if it cannot be applied: a rule number that does not exist, a chain
    /// that does not.
    pub fn of(save: &Save<'a>) -> Result<Self, Error> {
        Self::of_family(save, family_of(save))
    }

    /// Returns the same, for iptables or for ip6tables; lines with `-4` or `-6` are left out of the other.
    ///
    /// # Errors
    /// As [`State::of`].
    pub fn of_family(save: &Save<'a>, family: Family) -> Result<Self, Error> {
        let mut state = Self { family, tables: BTreeMap::new() };
        for table in save.tables() {
            let chains =
                state.tables.entry(table.name().to_owned()).or_insert_with(|| built_in(table.name()));
            let others = |entry: &&Entry<'_>| !matches!(entry, Entry::Rule(rule) if !rule.is_for(family));
            table.entries.iter().filter(others).try_for_each(|entry| apply(chains, entry))?;
        }
        Ok(state)
    }

    /// Returns the family of the tables: iptables or ip6tables.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Returns the names of the tables.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// Returns the names of the chains of a table.
    pub fn chains(&self, table: &str) -> impl Iterator<Item = &str> {
        self.tables.get(table).into_iter().flat_map(|chains| chains.keys().map(String::as_str))
    }

    /// Returns the rules of a chain, in order.
    #[must_use]
    pub fn rules(&self, table: &str, chain: &str) -> Option<&[Rule<'a>]> {
        Some(&self.tables.get(table)?.get(chain)?.rules)
    }

    /// Returns the rules of a chain in their normal form, or `None` if the chain does not exist.
    ///
    /// # Errors
    /// As [`State::normal`].
    pub fn normal_of(&self, table: &str, chain: &str) -> Result<Option<Vec<String>>, Error> {
        let Some(rules) = self.rules(table, chain) else { return Ok(None) };
        let words: Result<Vec<_>, _> = rules.iter().map(|rule| normal_words(rule, self.family)).collect();
        Ok(Some(words?.concat()))
    }

    /// Returns the normal form: tables and chains in order, built-in chains first, rules as [`normalise`]
    /// spells them, with counters of zero and without comments. Two states that iptables would save alike
    /// have equal normal forms.
    ///
    /// # Errors
    /// As [`normalise`], with the line of the rule.
    pub fn normal(&self) -> Result<String, Error> {
        let mut text = String::new();
        for (name, chains) in &self.tables {
            text.push_str(&format!("*{name}\n"));
            for (chain, contents) in in_order(chains) {
                text.push_str(&format!(":{chain} {} [0:0]\n", contents.policy.as_deref().unwrap_or("-")));
            }
            for (chain, contents) in in_order(chains) {
                for rule in &contents.rules {
                    for words in normal_words(rule, self.family)? {
                        text.push_str(&Rule::new(Action::Append, chain, words)?.to_string());
                    }
                }
            }
            text.push_str("COMMIT\n");
        }
        Ok(text)
    }
}

fn family_of(save: &Save<'_>) -> Family {
    for comment in save.comments() {
        if comment.contains("ip6tables") {
            return Family::Ipv6;
        }
        if comment.contains("iptables") {
            return Family::Ipv4;
        }
    }
    let mut rules = save.tables().flat_map(Table::rules);
    let is_v6 = |rule: &Rule<'_>| crate::read::guess_family(rule.text()) == Family::Ipv6;
    if rules.any(is_v6) { Family::Ipv6 } else { Family::Ipv4 }
}

/// Returns the words of a rule in their normal form; of one that has no words, its text, which no words are.
pub(crate) fn normal_words(rule: &Rule<'_>, family: Family) -> Result<Vec<String>, Error> {
    if rule.is_foreign() {
        return Ok(vec![rule.text().to_owned()]);
    }
    normalise(rule.text(), family).map_err(|error| error.on_line(rule.line().max(1)))
}

/// Chains as iptables-save orders them: built-in ones as packets meet them, then the others by name.
fn in_order<'s, 'a>(chains: &'s Chains<'a>) -> impl Iterator<Item = (&'s str, &'s Contents<'a>)> {
    let first = BUILT_IN.iter().filter_map(|name| Some((*name, chains.get(*name)?)));
    let rest = chains.iter().filter(|(name, _)| !BUILT_IN.contains(&name.as_str()));
    first.chain(rest.map(|(name, contents)| (name.as_str(), contents)))
}

fn built_in<'a>(table: &str) -> Chains<'a> {
    let known = TABLES.iter().find(|(name, _)| *name == table);
    let names = known.map_or(&[][..], |(_, chains)| *chains).iter();
    let contents = Contents { policy: Some(Cow::Borrowed("ACCEPT")), ..Contents::default() };
    names.map(|name| ((*name).to_owned(), contents.clone())).collect()
}

fn apply<'a>(chains: &mut Chains<'a>, entry: &Entry<'a>) -> Result<(), Error> {
    match entry {
        Entry::Text(_) => Ok(()),
        Entry::Chain(chain) => {
            declare(chains, chain);
            Ok(())
        }
        Entry::Rule(rule) => change(chains, rule),
        Entry::Command(command) => run(chains, command),
    }
}

/// A chain line empties a user-defined chain, and sets the policy of a built-in one.
fn declare<'a>(chains: &mut Chains<'a>, chain: &Chain<'a>) {
    let place = chains.entry(chain.name().to_owned()).or_default();
    if chain.policy.is_none() {
        *place = Contents::default();
    }
    place.policy.clone_from(&chain.policy);
    place.counters = chain.counters();
}

fn change<'a>(chains: &mut Chains<'a>, rule: &Rule<'a>) -> Result<(), Error> {
    let missing = || wrong(rule.line(), rule.chain(), "there is no such chain");
    let rules = &mut chains.get_mut(rule.chain()).ok_or_else(missing)?.rules;
    let at = |number: u32, most: usize| {
        let at =
            usize::try_from(number).ok().and_then(|number| number.checked_sub(1)).filter(|at| *at < most);
        at.ok_or_else(|| wrong(rule.line(), &number.to_string(), "there is no rule of that number"))
    };
    let mut kept = rule.clone();
    kept.set_action(Action::Append);
    match rule.action() {
        Action::Append => rules.push(kept),
        Action::Insert(number) => {
            let at = at(number.unwrap_or(1), rules.len() + 1)?;
            rules.insert(at, kept);
        }
        Action::Replace(number) => {
            let at = at(number, rules.len())?;
            rules.splice(at..=at, [kept]);
        }
        Action::DeleteNumber(number) => {
            rules.remove(at(number, rules.len())?);
        }
        Action::Delete => {
            let at =
                same(rules, rule)?.ok_or_else(|| wrong(rule.line(), rule.text(), "there is no such rule"))?;
            rules.remove(at);
        }
        Action::Check => (),
    }
    Ok(())
}

/// Returns the first rule that is the same in its normal form.
fn same(rules: &[Rule<'_>], wanted: &Rule<'_>) -> Result<Option<usize>, Error> {
    let family = crate::read::guess_family(wanted.text());
    let normal = normal_words(wanted, family)?;
    for (at, rule) in rules.iter().enumerate() {
        if normal_words(rule, family)? == normal {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn run<'a>(chains: &mut Chains<'a>, command: &Command<'a>) -> Result<(), Error> {
    let missing = |chain: &str| wrong(command.line(), chain, "there is no such chain");
    match command.verb() {
        Verb::New(chain) => match chains.insert(chain.to_string(), Contents::default()) {
            None => Ok(()),
            Some(_) => Err(wrong(command.line(), chain, "the chain exists already")),
        },
        Verb::DeleteChain(Some(chain)) => match chains.get(&**chain) {
            None => Err(missing(chain)),
            Some(contents) if !contents.rules.is_empty() => {
                Err(wrong(command.line(), chain, "the chain is not empty"))
            }
            Some(_) => {
                chains.remove(&**chain);
                Ok(())
            }
        },
        Verb::DeleteChain(None) => {
            chains.retain(|_, contents| contents.policy.is_some() || !contents.rules.is_empty());
            Ok(())
        }
        Verb::Flush(Some(chain)) => {
            chains.get_mut(&**chain).ok_or_else(|| missing(chain))?.rules.clear();
            Ok(())
        }
        Verb::Flush(None) => {
            chains.values_mut().for_each(|contents| contents.rules.clear());
            Ok(())
        }
        Verb::Policy(chain, policy, counters) => {
            let contents = chains.get_mut(&**chain).ok_or_else(|| missing(chain))?;
            contents.policy = Some(policy.clone());
            contents.counters = *counters;
            Ok(())
        }
        Verb::Zero(chain, number) => zero(chains, chain.as_deref(), *number)
            .ok_or_else(|| missing(chain.as_deref().unwrap_or_default())),
        Verb::Rename(old, new) => {
            let contents = chains.remove(&**old).ok_or_else(|| missing(old))?;
            chains.insert(new.to_string(), contents);
            Ok(())
        }
    }
}

fn zero(chains: &mut Chains<'_>, chain: Option<&str>, number: Option<u32>) -> Option<()> {
    let places: Vec<_> = match chain {
        Some(chain) => vec![chains.get_mut(chain)?],
        None => chains.values_mut().collect(),
    };
    for contents in places {
        let wanted = |at: usize| number.is_none_or(|number| u32::try_from(at + 1) == Ok(number));
        let rules = contents.rules.iter_mut().enumerate().filter(|(at, _)| wanted(*at));
        rules.for_each(|(_, rule)| rule.set_counters(rule.counters().map(|_| Counters::default())));
        if number.is_none() {
            contents.counters = contents.counters.map(|_| Counters::default());
        }
    }
    Some(())
}

fn wrong(line: usize, word: &str, reason: &str) -> Error {
    let (word, reason) = (word.to_owned(), reason.to_owned());
    Error::Rule { line: line.max(1), column: 1, word, reason, fault: Box::new(crate::RuleFault::Other) }
}
