//! Single chains and rules by the tool: whether they are there is asked first, so that each call may be
//! repeated.

use std::borrow::Cow;

use super::{Restore, Tool};
use crate::tree::{Action, Command, Entry, Item, Rule, Table, Verb};
use crate::{Changes, Error, Position, Save, State};

impl Tool {
    /// Returns the chains and rules that are there: of one table or of all.
    ///
    /// # Errors
    /// As [`Tool::save`], and those of [`Save::parse`] and [`State::of`].
    pub fn state(&self, table: Option<&str>) -> Result<State<'static>, Error> {
        let text = self.save(table, true)?;
        Ok(State::of_family(&Save::parse(&text)?, self.family())?.into_owned())
    }

    /// Creates a chain unless it exists, and returns whether it did not. An existing chain keeps its rules.
    ///
    /// ```no_run
    /// use sluicegate_iptables_save::restore::Tools;
    /// use sluicegate_iptables_save::{Family, Position};
    ///
    /// let tool = Tools::find(Family::Ipv4)?.usual.expect("iptables is installed");
    /// tool.ensure_chain("nat", "MINE")?;
    /// tool.ensure_rule("nat", "PREROUTING", Position::First, "-m comment --comment mine -j MINE")?;
    /// tool.remove_rule("nat", "PREROUTING", "-j MINE")?;
    /// # Ok::<(), sluicegate_iptables_save::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tool::state`] and [`Tool::apply`].
    pub fn ensure_chain(&self, table: &str, chain: &str) -> Result<bool, Error> {
        let mut state = self.state(Some(table))?;
        let is_new = state.ensure_chain(table, chain)?;
        if is_new {
            let verb = Verb::New(Cow::Owned(chain.to_owned()));
            self.send(table, [Entry::Command(Command::new(verb)?)])?;
        }
        Ok(is_new)
    }

    /// Puts a rule into a chain unless one is there that iptables saves alike; whether it was put there.
    ///
    /// Between looking and changing, another program may do the same; then the rule is there twice.
    ///
    /// # Errors
    /// As [`Tool::state`] and [`Tool::apply`]; [`Error::Diff`] if the chain is not there, [`Error::Rule`] if
    /// the words cannot be a rule.
    pub fn ensure_rule(
        &self,
        table: &str,
        chain: &str,
        position: Position,
        words: &str,
    ) -> Result<bool, Error> {
        let mut state = self.state(Some(table))?;
        let is_new = state.ensure_rule(table, chain, position, words)?;
        if is_new {
            let action = match position {
                Position::First => Action::Insert(None),
                Position::Last => Action::Append,
            };
            self.send(table, [Entry::Rule(Rule::new(action, chain.to_owned(), words.to_owned())?)])?;
        }
        Ok(is_new)
    }

    /// Deletes the rules of a chain that iptables saves as it would save `words`, by their words; how many
    /// there were.
    ///
    /// # Errors
    /// As [`Tool::state`] and [`Tool::apply`].
    pub fn remove_rule(&self, table: &str, chain: &str, words: &str) -> Result<usize, Error> {
        let state = self.state(Some(table))?;
        let rules = state.rules(table, chain).unwrap_or_default();
        let found = rules.iter().filter(|rule| rule.is_same(words, self.family()));
        let delete = |rule: &Rule<'_>| {
            Rule::new(Action::Delete, chain.to_owned(), rule.text().to_owned()).map(Entry::Rule)
        };
        let deletions: Vec<_> = found.map(delete).collect::<Result<_, _>>()?;
        let count = deletions.len();
        self.send(table, deletions)?;
        Ok(count)
    }

    /// Empties and deletes a user-defined chain, and returns whether it existed.
    ///
    /// # Errors
    /// As [`Tool::state`] and [`Tool::apply`], of which [`Error::cause`] is
    /// [`Cause::Busy`](crate::Cause::Busy) with some back ends if a rule jumps to the chain.
    pub fn remove_chain(&self, table: &str, chain: &str) -> Result<bool, Error> {
        let is_there = self.state(Some(table))?.rules(table, chain).is_some();
        if is_there {
            let chain = || Some(Cow::Owned(chain.to_owned()));
            let commands = [Command::new(Verb::Flush(chain()))?, Command::new(Verb::DeleteChain(chain()))?];
            self.send(table, commands.map(Entry::Command))?;
        }
        Ok(is_there)
    }

    fn send(&self, name: &str, entries: impl IntoIterator<Item = Entry<'static>>) -> Result<(), Error> {
        let mut table = Table::new(name.to_owned())?;
        table.entries.extend(entries);
        if table.entries.is_empty() {
            return Ok(());
        }
        let changes = Changes::from_save(Save { items: vec![Item::Table(table)] });
        self.apply(&changes, Restore { wait: Some(WAIT), ..Restore::default() })
    }
}

/// Seconds to wait for the xtables lock.
const WAIT: u32 = 5;
