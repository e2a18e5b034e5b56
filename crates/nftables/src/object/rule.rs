//! Rules (`enum nft_rule_attributes`).

use std::fmt;

use sluicegate_netlink::attr::Writer;

use crate::expr::Expr;
use crate::expr::wire::NFTA_LIST_ELEM;
use crate::family::Family;
use crate::lang::{Statement, Wording, write_rule};
use crate::listing::ListOptions;
use crate::name::Comment;
use crate::object::{ChainId, compat, userdata};

/// A rule: statements in the order in which a packet meets them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The chain that it is in.
    pub chain: ChainId,
    /// The statements.
    pub statements: Vec<Statement>,
    /// Its comment.
    pub comment: Option<Comment>,
    /// Its handle, where it was read; for `replace`, that of the rule that it replaces. To whatever adds or inserts it, it says nothing: what was read
    /// in one place can be added in another.
    pub handle: Option<u64>,
    /// The handle of a rule of the chain: added after it, inserted before it, instead of at the chain's end or start.
    pub position: Option<u64>,
    /// The same by counting: 0 is the chain's first rule. Ignored where there is a position.
    pub index: Option<u32>,
}

/// What names a rule: its chain and the handle that the kernel gave it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId {
    /// The chain.
    pub chain: ChainId,
    /// The handle.
    pub handle: u64,
}

impl Rule {
    /// An empty rule: it matches everything and does nothing. nft reads no text of one.
    #[must_use]
    pub fn new(chain: ChainId) -> Self {
        Self { chain, statements: Vec::new(), comment: None, handle: None, position: None, index: None }
    }

    /// With one more statement at its end.
    #[must_use]
    pub fn then(mut self, statement: impl Into<Statement>) -> Self {
        self.statements.push(statement.into());
        self
    }

    /// With a comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.comment = Some(comment);
        self
    }

    /// In the place of the rule with this handle, for `replace`.
    #[must_use]
    pub fn handle(mut self, handle: u64) -> Self {
        self.handle = Some(handle);
        self
    }

    /// After (`add`) or before (`insert`) the rule with this handle.
    #[must_use]
    pub fn position(mut self, handle: u64) -> Self {
        self.position = Some(handle);
        self
    }

    /// After (`add`) or before (`insert`) the rule with this index, 0 being the first of the chain as the operations before leave it.
    ///
    /// The kernel knows no indices: [`Transaction::apply`](crate::Transaction::apply) lists the chain to find the rule, and has the batch
    /// refused, and starts again, where somebody else changed the ruleset meanwhile. Prefer [`position`](Self::position) where the handle
    /// is known.
    #[must_use]
    pub fn index(mut self, index: u32) -> Self {
        self.index = Some(index);
        self
    }

    /// Its statements and comment, as nft lists them: in one line, or, with `#`, with the rules of a chain of its own in lines of theirs.
    /// Interfaces and times are numbers.
    pub fn body(&self) -> impl fmt::Display + '_ {
        Body(self, Wording::SCRIPT)
    }

    /// Its statements and comment, as nft lists them on a machine.
    pub fn body_with<'a>(&'a self, options: &'a ListOptions) -> impl fmt::Display + 'a {
        Body(self, Wording::new(options))
    }
}

struct Body<'a>(&'a Rule, Wording<'a>);

impl fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_rule(f, &self.0.statements, self.0.comment.as_ref(), self.1)
    }
}

/// As nft's commands say it: `rule ip t c position 7 tcp dport 22 accept`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, self.handle)
    }
}

impl Rule {
    /// With the handle of the rule that it replaces, if it does. To nft, `add rule ip t c handle 7` is `position 7`.
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

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} handle {}", self.chain, self.handle)
    }
}

impl Rule {
    /// Appends its attributes, with statements that are lowered already, and the handle of the rule that it replaces, if it does.
    pub(crate) fn encode(&self, exprs: &[Expr], replaced: Option<u64>, w: &mut Writer<'_>) {
        w.put_str(NFTA_RULE_TABLE, &self.chain.table.name);
        w.put_str(NFTA_RULE_CHAIN, &self.chain.name);
        if let Some(handle) = replaced {
            w.put_be64(NFTA_RULE_HANDLE, handle);
        }
        if let Some(position) = self.position {
            w.put_be64(NFTA_RULE_POSITION, position);
        }
        encode_body(self.chain.table.family, exprs, self.comment.as_ref(), w);
    }
}

/// Appends what a rule does, what its modules of xtables have to know, and its comment.
pub(crate) fn encode_body(family: Family, exprs: &[Expr], comment: Option<&Comment>, w: &mut Writer<'_>) {
    let mut list = w.nest(NFTA_RULE_EXPRESSIONS);
    exprs.iter().for_each(|expr| expr.encode(&mut list, NFTA_LIST_ELEM));
    drop(list);
    compat::encode(family, exprs, w);
    if let Some(comment) = comment {
        w.put(NFTA_RULE_USERDATA, &userdata::comment(userdata::RULE_COMMENT, comment));
    }
}

pub(crate) const NFTA_RULE_TABLE: u16 = 1;
pub(crate) const NFTA_RULE_CHAIN: u16 = 2;
pub(crate) const NFTA_RULE_HANDLE: u16 = 3;
pub(crate) const NFTA_RULE_EXPRESSIONS: u16 = 4;
pub(crate) const NFTA_RULE_POSITION: u16 = 6;
pub(crate) const NFTA_RULE_USERDATA: u16 = 7;
pub(crate) const NFTA_RULE_CHAIN_ID: u16 = 11;
