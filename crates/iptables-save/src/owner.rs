//! What belongs to a program among the rules of others: whole chains, or single rules.

use crate::{Family, Rule, normalise};

/// Says which chains and rules are the caller's, and so what [`diff_owned`](crate::diff_owned) may change.
///
/// ```
/// use sluicegate_iptables_save::{Owned, Save, State, diff_owned};
/// let state = |text| State::of(&Save::parse(text).unwrap()).unwrap();
/// let current = state("*filter\n-A INPUT -j LOG\n-A INPUT -m comment --comment mine -j DROP\nCOMMIT\n");
/// let desired = state("*filter\n:MINE - [0:0]\n-A INPUT -m comment --comment mine -j MINE\nCOMMIT\n");
/// let owner = Owned::new(|_, chain| chain == "MINE", |_, rule| rule.has_comment("mine"));
/// assert_eq!(
///     diff_owned(&current, &desired, &owner).unwrap().to_string(),
///     "*filter\n:MINE - [0:0]\n-D INPUT -m comment --comment mine -j DROP\n\
///      -I INPUT 1 -m comment --comment mine -j MINE\nCOMMIT\n"
/// );
/// ```
pub trait Owner {
    /// Returns whether the chain is the caller's, with every rule in it.
    fn owns_chain(&self, table: &str, chain: &str) -> bool;

    /// Returns whether a rule in a chain of others is the caller's. Such a rule is deleted by its words,
    /// never by its number, as its neighbours may change at any time.
    fn owns_rule(&self, table: &str, rule: &Rule<'_>) -> bool {
        let _ = (table, rule);
        false
    }

    /// Returns where a rule is put in a chain of others in which no owned rule stands yet.
    fn position(&self, table: &str, rule: &Rule<'_>) -> Position {
        let _ = (table, rule);
        Position::First
    }
}

/// A place in a chain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Position {
    /// Before all other rules, as `-I` without a number puts a rule.
    #[default]
    First,
    /// Behind all other rules, as `-A` does.
    Last,
}

/// An [`Owner`] by two closures.
#[derive(Debug, Clone, Copy)]
pub struct Owned<C, R> {
    chains: C,
    rules: R,
}

impl<C: Fn(&str, &str) -> bool, R: Fn(&str, &Rule<'_>) -> bool> Owned<C, R> {
    /// Returns the owner of the chains for which `chains` returns true, asked with table and chain, and in
    /// other chains of the rules for which `rules` does, asked with table and rule.
    #[must_use]
    pub fn new(chains: C, rules: R) -> Self {
        Self { chains, rules }
    }
}

impl<C: Fn(&str, &str) -> bool, R: Fn(&str, &Rule<'_>) -> bool> Owner for Owned<C, R> {
    fn owns_chain(&self, table: &str, chain: &str) -> bool {
        (self.chains)(table, chain)
    }

    fn owns_rule(&self, table: &str, rule: &Rule<'_>) -> bool {
        (self.rules)(table, rule)
    }
}

impl Rule<'_> {
    /// Returns whether a comment of the rule is `text`.
    #[must_use]
    pub fn has_comment(&self, text: &str) -> bool {
        let Ok(spec) = self.spec() else { return false };
        let mut comments = spec.matches.iter().filter(|module| module.name == "comment");
        comments.any(|module| module.value("comment") == Some(text))
    }

    /// Returns whether the target of the rule is `name`: a verdict, an extension, or a chain.
    #[must_use]
    pub fn has_target(&self, name: &str) -> bool {
        self.spec().is_ok_and(|spec| spec.target_name() == Some(name))
    }

    /// Returns whether iptables would save the rule as it would save `words`.
    #[must_use]
    pub fn is_same(&self, words: &str, family: Family) -> bool {
        self.text() == words
            || matches!((normalise(self.text(), family), normalise(words, family)), (Ok(a), Ok(b)) if a == b)
    }
}
