//! Chains and rules of a table that iptables has no words for, and tables that have them.

use std::fmt;

use sluicegate_iptables_save::{Table, printable};

use crate::Error;
use crate::rule::NoWords;

/// A table with all that it has: what iptables has words for, and what not.
///
/// ```no_run
/// use sluicegate_xtables::{Family, nft};
///
/// let view = nft::Client::open(Family::Ipv4)?.view("filter", false)?;
/// for rule in &view.foreign {
///     println!("{}: {} ({})", rule.chain, rule.text, rule.reason); // no words of iptables for it
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct View {
    /// The chains and rules. In the place of a rule without words stands one for which
    /// [`is_foreign`](sluicegate_iptables_save::Rule::is_foreign) is true, so that rules keep their numbers.
    pub table: Table<'static>,
    /// What has no words, chain by chain.
    pub foreign: Vec<Foreign>,
    /// How many rules jump to the chain, in the view of a single one.
    pub references: Option<usize>,
}

impl View {
    /// Returns the table, if iptables has words for all of it. Base chains of others, which stay whatever is
    /// done with the table, are left out.
    ///
    /// # Errors
    /// [`Error::Incompatible`] with the first rule or chain without words.
    pub fn all_in_words(self) -> Result<Table<'static>, Error> {
        let first = self.foreign.into_iter().find(|foreign| foreign.reason != ForeignReason::BaseChain);
        match first {
            None => Ok(self.table),
            Some(Foreign { chain, reason, .. }) => {
                let expression = reason.to_string();
                Err(Error::Incompatible { table: self.table.name().to_owned(), chain, expression })
            }
        }
    }
}

/// A rule or chain that iptables has no words for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Foreign {
    /// The chain; bytes that are not UTF-8 as [`decode`](sluicegate_iptables_save::decode) has them.
    pub chain: String,
    /// The number of the rule in its chain, from 1; `None` for the chain itself.
    pub number: Option<usize>,
    /// The rule in the language of nft, in one line; of a rule of the legacy back end its words, with escapes.
    pub text: String,
    /// Why it has no words.
    pub reason: ForeignReason,
}

/// Why iptables has no words for something.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForeignReason {
    /// A rule has an expression of this name, for which iptables-nft refuses to list the chain.
    Expression(String),
    /// The expressions of a rule are such as iptables has, but not what they say together.
    Meaning(String),
    /// The structure of a match or target, or the head of a rule, cannot be expressed as iptables options.
    Structure(NoWords),
    /// A chain has a hook, but is not one of iptables' built-in chains.
    BaseChain,
    /// The name of a chain, or the text in a rule, cannot be written in a line of iptables.
    Text(String),
}

impl From<NoWords> for ForeignReason {
    fn from(no_words: NoWords) -> Self {
        match no_words {
            NoWords::Extension { .. } | NoWords::Head => Self::Structure(no_words),
            NoWords::Chain(_) | NoWords::Text(_) => Self::Text(no_words.to_string()),
        }
    }
}

impl fmt::Display for ForeignReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expression(name) => write!(f, "{name}"),
            Self::Meaning(what) | Self::Text(what) => f.write_str(what),
            Self::Structure(what) => what.fmt(f),
            Self::BaseChain => f.write_str("a base chain of its own"),
        }
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chain = printable(&self.chain);
        match self.number {
            Some(number) => write!(f, "chain {chain}, rule {number}: {}: {}", self.reason, self.text),
            None => write!(f, "chain {chain}: {}", self.reason),
        }
    }
}

/// Returns text with escapes for what would end its line, and for bytes that are not UTF-8.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().fold(String::new(), |mut line, c| {
        // A character that stands for a byte is one of a private use area, as no other text has it.
        match c.is_control() || c >= '\u{10ff80}' {
            true => line.push_str(&printable(c.encode_utf8(&mut [0; 4]))),
            false => line.push(c),
        }
        line
    })
}
