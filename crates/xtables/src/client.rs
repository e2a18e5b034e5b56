//! The commands of iptables on single rules and chains, for both back ends.

use std::borrow::Cow;

use sluicegate_iptables_save::{Action, Changes, Command, Entry, Family, Item, Rule, Save, Table, Verb};

use crate::{BackEnd, Error, Fault, legacy, nft};

/// What both back ends do with the rules that are there, one command of iptables(8) a call.
///
/// `words` are those of a rule as they stand behind `-A CHAIN`, quoted as iptables-save quotes. Whoever has
/// several changes sends them together: [`apply`](Self::apply), or `restore` of a back end.
///
/// ```no_run
/// use sluicegate_xtables::{Client as _, Family, nft};
///
/// let client = nft::Client::open(Family::Ipv4)?;
/// client.ensure_chain("filter", "WEB")?;
/// client.ensure_rule("filter", "WEB", "-p tcp --dport 80 -j ACCEPT")?;
/// client.insert("filter", "INPUT", "-j WEB")?;
/// assert!(client.check("filter", "INPUT", "-j WEB")?);
/// client.delete("filter", "INPUT", "-j WEB")?;
/// # Ok::<(), sluicegate_xtables::Error>(())
/// ```
pub trait Client {
    /// Returns the family of the tables.
    fn family(&self) -> Family;

    /// Returns the back end.
    fn back_end(&self) -> BackEnd;

    /// Returns whether a chain has a rule, as `iptables -C` does.
    ///
    /// # Errors
    /// [`Error::Rule`] for words that cannot be a rule; [`Error::Line`] if there is no such chain.
    fn check(&self, table: &str, chain: &str, words: &str) -> Result<bool, Error>;

    /// Carries out changes, as `iptables-restore --noflush` does: each table as a whole or not at all.
    ///
    /// # Errors
    /// If a line does not fit to the rules that there are, or the kernel refuses it.
    fn apply(&self, changes: &Changes<'_>) -> Result<(), Error>;

    /// Adds a rule behind the last one of a chain: `iptables -A`.
    ///
    /// # Errors
    /// [`Error::Rule`] for words that cannot be a rule; [`Error::Line`] if there is no such chain.
    fn append(&self, table: &str, chain: &str, words: &str) -> Result<(), Error> {
        self.apply(&change(table, rule(Action::Append, table, chain, words)?)?)
    }

    /// Adds a rule before the first one of a chain: `iptables -I`.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn insert(&self, table: &str, chain: &str, words: &str) -> Result<(), Error> {
        self.apply(&change(table, rule(Action::Insert(None), table, chain, words)?)?)
    }

    /// Deletes the first rule of a chain that these words make: `iptables -D`.
    ///
    /// # Errors
    /// As [`append`](Self::append); without such a rule [`Error::is_not_found`] is true.
    fn delete(&self, table: &str, chain: &str, words: &str) -> Result<(), Error> {
        self.apply(&change(table, rule(Action::Delete, table, chain, words)?)?)
    }

    /// Creates a chain if there is none of that name: `iptables -N`. One that exists keeps its rules. Returns
    /// whether it was created.
    ///
    /// # Errors
    /// [`Error::Text`] or [`Error::Line`] for a name that a chain cannot have; if the kernel refuses it.
    fn ensure_chain(&self, table: &str, chain: &str) -> Result<bool, Error> {
        // Not a line `:CHAIN - [0:0]`: iptables-restore 1.8.9 empties the chain for that, even with
        // --noflush.
        let new = Command::new(Verb::New(Cow::Borrowed(chain)));
        let new = new.map_err(|source| Error::Text { table: table.to_owned(), source })?;
        match self.apply(&change(table, Entry::Command(new))?) {
            Ok(()) => Ok(true),
            Err(Error::Line { fault: Fault::Exists, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Adds a rule behind the last one of a chain unless the chain has it: `iptables -C`, then `-A`. Returns
    /// whether it was added.
    ///
    /// These are two steps: two programs that do this at the same moment may both add the rule, as with the
    /// tools.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn ensure_rule(&self, table: &str, chain: &str, words: &str) -> Result<bool, Error> {
        let is_missing = !self.check(table, chain, words)?;
        if is_missing {
            self.append(table, chain, words)?;
        }
        Ok(is_missing)
    }
}

macro_rules! client {
    ($($client:ty: $back_end:ident)*) => {$(
        impl Client for $client {
            fn family(&self) -> Family {
                Self::family(self)
            }

            fn back_end(&self) -> BackEnd {
                BackEnd::$back_end
            }

            fn check(&self, table: &str, chain: &str, words: &str) -> Result<bool, Error> {
                Self::check(self, table, chain, words)
            }

            fn apply(&self, changes: &Changes<'_>) -> Result<(), Error> {
                Self::apply(self, changes)
            }
        }
    )*};
}
client!(nft::Client: Nft legacy::Client: Legacy);

fn rule<'a>(action: Action, table: &str, chain: &'a str, words: &'a str) -> Result<Entry<'a>, Error> {
    let rule = Rule::new(action, chain, words);
    rule.map(Entry::Rule).map_err(|source| Error::Text { table: table.to_owned(), source })
}

fn change<'a>(table: &'a str, entry: Entry<'a>) -> Result<Changes<'a>, Error> {
    let text = |source| Error::Text { table: table.to_owned(), source };
    let mut lines = Table::new(table).map_err(text)?;
    lines.entries.push(entry);
    Ok(Changes::from_save(Save { items: vec![Item::Table(lines)] }))
}
