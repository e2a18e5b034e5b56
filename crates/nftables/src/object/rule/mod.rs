//! Rules (`enum nft_rule_attributes`).

mod compat;
pub(crate) mod wire;

use std::fmt;

use crate::name::Comment;
use crate::object::ChainId;
use crate::tree::{Statement, Statements, write_rule};
use crate::wording::{ListOptions, Wording};

/// A rule: statements that are evaluated in order.
///
/// ```
/// use sluicegate_nftables::lang::{Match, Payload, Verdict};
/// use sluicegate_nftables::{Family, Port, TableId};
///
/// let input = TableId::new(Family::INET, "firewall".parse()?).chain("input".parse()?);
/// let rule = input.rule().then(Match::new(Payload::TCP_DPORT, Port(22))).then(Verdict::Accept);
/// assert_eq!(rule.body().to_string(), "tcp dport 22 accept");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The chain that contains it.
    pub chain: ChainId,
    /// The statements.
    pub statements: Statements,
    /// Its comment.
    pub comment: Option<Comment>,
    /// Its handle, if it was read; for `replace`, the handle of the rule to replace. Adding or inserting a
    /// rule ignores it, so a rule that was read can be added elsewhere.
    pub handle: Option<u64>,
    /// The handle of a rule in the chain: the new rule is added after it or inserted before it, instead of at
    /// the end or start of the chain.
    pub position: Option<u64>,
    /// The same place given by an index: 0 is the first rule of the chain. Ignored if there is a position.
    pub index: Option<u32>,
}

/// The id of a rule: its chain and the handle that the kernel gave it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId {
    /// The chain.
    pub chain: ChainId,
    /// The handle.
    pub handle: u64,
}

impl Rule {
    /// Creates an empty rule: it matches everything and does nothing. nft has no syntax for it.
    #[must_use]
    pub fn new(chain: ChainId) -> Self {
        Self {
            chain,
            statements: Statements::default(),
            comment: None,
            handle: None,
            position: None,
            index: None,
        }
    }

    /// Appends a statement.
    #[must_use]
    pub fn then(mut self, statement: impl Into<Statement>) -> Self {
        self.statements.push(statement);
        self
    }

    /// Appends statements.
    #[must_use]
    pub fn then_all(mut self, statements: impl IntoIterator<Item = Statement>) -> Self {
        statements.into_iter().for_each(|statement| self.statements.push(statement));
        self
    }

    /// Sets the comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.comment = Some(comment);
        self
    }

    /// Sets the handle of the rule to replace, for `replace`.
    #[must_use]
    pub fn handle(mut self, handle: u64) -> Self {
        self.handle = Some(handle);
        self
    }

    /// Puts the rule after (`add`) or before (`insert`) the rule with this handle.
    #[must_use]
    pub fn position(mut self, handle: u64) -> Self {
        self.position = Some(handle);
        self
    }

    /// Adds the rule after (`add`) or before (`insert`) the rule with this index; 0 is the first rule of the
    /// chain, as the preceding operations leave it.
    ///
    /// The kernel has no indices: [`Transaction::apply`](crate::Transaction::apply) lists the chain to find
    /// the rule. If another program changes the ruleset meanwhile, the kernel refuses the batch, and it is
    /// tried again. Prefer [`position`](Self::position) if the handle is known.
    #[must_use]
    pub fn index(mut self, index: u32) -> Self {
        self.index = Some(index);
        self
    }

    /// Returns the statements and the comment as nft lists them: on one line, or with `#`, with the rules of
    /// an anonymous chain on lines of their own. Interfaces and times are numbers.
    pub fn body(&self) -> impl fmt::Display + '_ {
        Body(self, Wording::SCRIPT)
    }

    /// Returns the statements and the comment as nft lists them with these options.
    pub fn body_with<'a>(&'a self, options: &'a ListOptions) -> impl fmt::Display + 'a {
        Body(self, Wording::new(options))
    }
}

struct Body<'a>(&'a Rule, Wording<'a>);

impl fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_rule(f, &self.0.statements.read(), self.0.comment.as_ref(), self.1)
    }
}

/// Formats the argument of an nft command: `rule ip t c position 7 tcp dport 22 accept`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, self.handle)
    }
}

impl Rule {
    /// Writes the rule, with the handle of the rule that it replaces, if any. nft reads
    /// `add rule ip t c handle 7` as `position 7`.
    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>, replaced: Option<u64>) -> fmt::Result {
        write!(f, "rule {}", self.chain)?;
        if let Some(handle) = replaced {
            write!(f, " handle {handle}")?;
        }
        if let Some(position) = self.position {
            write!(f, " position {position}")?;
        } else if let Some(index) = self.index {
            write!(f, " index {index}")?;
        }
        write!(f, " {}", self.body())
    }
}

impl ChainId {
    /// Creates an empty rule in the chain.
    #[must_use]
    pub fn rule(&self) -> Rule {
        Rule::new(self.clone())
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} handle {}", self.chain, self.handle)
    }
}
