//! States that are built and changed without writing text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Contents, State, built_in, normal_words};
use crate::check::{Place, chain_name, check};
use crate::tree::{Action, Counters, Rule};
use crate::{Error, Family, Position};

impl<'a> State<'a> {
    /// Returns a state without tables.
    ///
    /// ```
    /// use sluicegate_iptables_save::{Family, Position, State};
    ///
    /// let mut state = State::new(Family::Ipv4);
    /// state.ensure_chain("nat", "MINE").unwrap();
    /// state.ensure_rule("nat", "PREROUTING", Position::First, "-p tcp -j MINE").unwrap();
    /// state.append_rule("nat", "MINE", "-j DNAT --to-destination 10.0.0.2").unwrap();
    /// assert!(!state.ensure_rule("nat", "PREROUTING", Position::Last, "--protocol 6 -j MINE").unwrap());
    /// assert_eq!(state.remove_rule("nat", "MINE", "-j DNAT --to 10.0.0.2").unwrap(), 1);
    /// assert!(state.rules("nat", "MINE").unwrap().is_empty());
    /// ```
    #[must_use]
    pub fn new(family: Family) -> Self {
        Self { family, tables: BTreeMap::new() }
    }

    /// Adds a chain unless it exists, and returns whether it was added. A table that is not there is added
    /// with its built-in chains.
    ///
    /// # Errors
    /// [`Error::Diff`] if the name is not one of a chain.
    pub fn ensure_chain(&mut self, table: &str, chain: &str) -> Result<bool, Error> {
        if let Err(fault) = chain_name(chain) {
            return Err(wrong(table, chain, fault.to_string()));
        }
        let chains = self.tables.entry(table.to_owned()).or_insert_with(|| built_in(table));
        if chains.contains_key(chain) {
            return Ok(false);
        }
        chains.insert(chain.to_owned(), Contents::default());
        Ok(true)
    }

    /// Removes a chain with its rules, and returns whether it existed. A built-in chain loses its rules and
    /// stays.
    pub fn remove_chain(&mut self, table: &str, chain: &str) -> bool {
        let Some(chains) = self.tables.get_mut(table) else { return false };
        match chains.get_mut(chain) {
            None => return false,
            Some(contents) if contents.policy.is_some() => contents.rules.clear(),
            Some(_) => drop(chains.remove(chain)),
        }
        true
    }

    /// Returns the policy of a chain; `None` if it is a user-defined one, or not there.
    #[must_use]
    pub fn policy(&self, table: &str, chain: &str) -> Option<&str> {
        self.tables.get(table)?.get(chain)?.policy.as_deref()
    }

    /// Returns the counters of a chain, where they are known.
    #[must_use]
    pub fn counters(&self, table: &str, chain: &str) -> Option<Counters> {
        self.tables.get(table)?.get(chain)?.counters
    }

    /// Sets the policy of a built-in chain.
    ///
    /// # Errors
    /// [`Error::Diff`] if it is not a built-in chain, or the policy is neither `ACCEPT` nor `DROP`.
    pub fn set_policy(&mut self, table: &str, chain: &str, policy: &str) -> Result<(), Error> {
        let chains = self.tables.entry(table.to_owned()).or_insert_with(|| built_in(table));
        let policy = match policy {
            "ACCEPT" => "ACCEPT",
            "DROP" => "DROP",
            _ => {
                return Err(wrong(
                    table,
                    chain,
                    format!("expected the policy ACCEPT or DROP, found {policy}"),
                ));
            }
        };
        match chains.get_mut(chain) {
            Some(contents) if contents.policy.is_some() => contents.policy = Some(Cow::Borrowed(policy)),
            _ => return Err(wrong(table, chain, "is not a built-in chain, and so has no policy")),
        }
        Ok(())
    }

    /// Returns the rules of a chain to be changed; their [`Action`] does not matter.
    pub fn rules_mut(&mut self, table: &str, chain: &str) -> Option<&mut Vec<Rule<'a>>> {
        Some(&mut self.tables.get_mut(table)?.get_mut(chain)?.rules)
    }

    /// Returns whether a chain has a rule that iptables saves as it would save `words`.
    ///
    /// # Errors
    /// As [`normalise`](crate::normalise).
    pub fn has_rule(&self, table: &str, chain: &str, words: &str) -> Result<bool, Error> {
        Ok(!self.find(table, chain, words)?.is_empty())
    }

    /// Adds a rule behind those of a chain.
    ///
    /// # Errors
    /// [`Error::Diff`] if the chain is not there, [`Error::Rule`] if the words cannot be a rule in it.
    pub fn append_rule(&mut self, table: &str, chain: &str, words: &str) -> Result<(), Error> {
        self.put(table, chain, Position::Last, words)
    }

    /// Adds a rule before those of a chain.
    ///
    /// # Errors
    /// As [`State::append_rule`].
    pub fn insert_rule(&mut self, table: &str, chain: &str, words: &str) -> Result<(), Error> {
        self.put(table, chain, Position::First, words)
    }

    /// Adds a rule unless the chain has one that iptables saves alike; whether it was added.
    ///
    /// # Errors
    /// As [`State::append_rule`].
    pub fn ensure_rule(
        &mut self,
        table: &str,
        chain: &str,
        position: Position,
        words: &str,
    ) -> Result<bool, Error> {
        if self.has_rule(table, chain, words)? {
            return Ok(false);
        }
        self.put(table, chain, position, words)?;
        Ok(true)
    }

    /// Removes the rules of a chain that iptables saves as it would save `words`; how many there were.
    ///
    /// # Errors
    /// As [`normalise`](crate::normalise).
    pub fn remove_rule(&mut self, table: &str, chain: &str, words: &str) -> Result<usize, Error> {
        let found = self.find(table, chain, words)?;
        if let Some(rules) = self.rules_mut(table, chain) {
            found.iter().rev().for_each(|at| drop(rules.remove(*at)));
        }
        Ok(found.len())
    }

    /// Returns the same state, owning all its text.
    #[must_use]
    pub fn into_owned(self) -> State<'static> {
        let own = |contents: Contents<'_>| Contents {
            policy: contents.policy.map(|policy| Cow::Owned(policy.into_owned())),
            counters: contents.counters,
            rules: contents.rules.into_iter().map(Rule::into_owned).collect(),
        };
        let tables = self.tables.into_iter().map(|(name, chains)| {
            (name, chains.into_iter().map(|(name, contents)| (name, own(contents))).collect())
        });
        State { family: self.family, tables: tables.collect() }
    }

    fn find(&self, table: &str, chain: &str, words: &str) -> Result<Vec<usize>, Error> {
        let wanted = crate::normalise(words, self.family)?;
        let mut found = Vec::new();
        for (at, rule) in self.rules(table, chain).unwrap_or_default().iter().enumerate() {
            if rule.text() == words || normal_words(rule, self.family)? == wanted {
                found.push(at);
            }
        }
        Ok(found)
    }

    fn put(&mut self, table: &str, chain: &str, position: Position, words: &str) -> Result<(), Error> {
        check(words, Place { table, chain, family: self.family })?;
        let rule = Rule::new(Action::Append, chain.to_owned(), words.to_owned())?;
        let chains = self.tables.entry(table.to_owned()).or_insert_with(|| built_in(table));
        let Some(contents) = chains.get_mut(chain) else {
            return Err(wrong(table, chain, "is not there; a rule is wanted in it"));
        };
        let at = match position {
            Position::First => 0,
            Position::Last => contents.rules.len(),
        };
        contents.rules.insert(at, rule);
        Ok(())
    }
}

fn wrong(table: &str, chain: &str, reason: impl Into<String>) -> Error {
    Error::Diff { table: table.to_owned(), chain: chain.to_owned(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Save, diff};

    #[test]
    fn a_state_that_is_built_equals_one_that_is_read() {
        let mut built = State::new(Family::Ipv4);
        assert!(built.ensure_chain("filter", "MINE").unwrap());
        assert!(!built.ensure_chain("filter", "MINE").unwrap());
        built.append_rule("filter", "MINE", "-j DROP").unwrap();
        built.insert_rule("filter", "MINE", "-p udp -j ACCEPT").unwrap();
        built.set_policy("filter", "FORWARD", "DROP").unwrap();
        let text = "*filter\n:MINE - [0:0]\n:FORWARD DROP [0:0]\n-A MINE -p udp -j ACCEPT\n-A MINE -j DROP\n\
                    COMMIT\n";
        let read = State::of_family(&Save::parse(text).unwrap(), Family::Ipv4).unwrap();
        assert_eq!(built.normal().unwrap(), read.normal().unwrap());
        assert!(diff(&read, &built, |_, _| true).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason() {
        let mut state = State::new(Family::Ipv4);
        let message = |error: Error| error.to_string();
        assert_eq!(
            message(state.append_rule("filter", "MINE", "-j DROP").unwrap_err()),
            "table filter, chain MINE: is not there; a rule is wanted in it"
        );
        assert_eq!(
            message(state.append_rule("filter", "INPUT", "--nonsense").unwrap_err()),
            "line 1, column 1: `--nonsense`: no such option"
        );
        assert_eq!(
            message(state.set_policy("filter", "INPUT", "QUEUE").unwrap_err()),
            "table filter, chain INPUT: expected the policy ACCEPT or DROP, found QUEUE"
        );
        assert!(state.set_policy("filter", "MINE", "DROP").is_err());
        assert!(state.ensure_chain("filter", "two words").is_err());
        assert!(state.remove_chain("filter", "INPUT") && !state.remove_chain("filter", "MINE"));
    }
}
