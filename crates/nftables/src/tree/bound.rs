//! Anonymous chains of a rule: `jump { ... }` and `goto { ... }`.

use std::fmt::{self, Display, Formatter};

use crate::name::Comment;
use crate::tree::Statement;
use crate::wording::{Wording, Words};

/// `jump { RULE; ... }` or `goto { RULE; ... }`: an anonymous chain that belongs to the rule and is deleted
/// with it.
///
/// The kernel names it (`__chain1`), and reserves it for the rule: no other rule can jump to it, no rules can
/// be added to it later, and it cannot contain another anonymous chain. Since Linux 5.9
/// ([`Feature::BoundChains`](crate::probe::Feature::BoundChains)).
///
/// nft 1.0.6 crashes with a segmentation fault when it reads a rule with such a chain and a `position` or an
/// `index`. Sent by this crate, that works.
///
/// ```
/// use sluicegate_nftables::lang::{BoundChain, BoundRule, Counter, Match, Payload, Verdict};
/// use sluicegate_nftables::{Family, Port, TableId, Transaction};
///
/// let chain = TableId::new(Family::IP, "t".parse()?).chain("c".parse()?);
/// let local = Match::new(Payload::IP_SADDR, std::net::Ipv4Addr::LOCALHOST);
/// let ssh = BoundChain::jump([
///     BoundRule::new().then(local).then(Verdict::Accept),
///     BoundRule::new().then(Counter::default()).then(Verdict::Drop),
/// ]);
/// let mut transaction = Transaction::new();
/// transaction.add(chain.rule().then(Match::new(Payload::TCP_DPORT, Port(22))).then(ssh));
/// assert_eq!(
///     transaction.to_string(),
///     "add rule ip t c tcp dport 22 jump { ip saddr 127.0.0.1 accept; counter drop; }\n"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoundChain {
    /// Whether evaluation does not return after the chain (`goto`).
    pub goto: bool,
    /// The rules of the chain.
    pub rules: Vec<BoundRule>,
}

/// A rule of a [`BoundChain`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BoundRule {
    /// The statements of the rule.
    pub statements: Vec<Statement>,
    /// The comment of the rule.
    pub comment: Option<Comment>,
}

impl BoundChain {
    /// Creates `jump { ... }`: evaluation continues with the next statement after the chain.
    pub fn jump(rules: impl IntoIterator<Item = BoundRule>) -> Self {
        Self { goto: false, rules: rules.into_iter().collect() }
    }

    /// Creates `goto { ... }`: evaluation does not return after the chain.
    pub fn goto(rules: impl IntoIterator<Item = BoundRule>) -> Self {
        Self { goto: true, rules: rules.into_iter().collect() }
    }
}

impl BoundRule {
    /// Creates a rule without statements.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a statement.
    #[must_use]
    pub fn then(mut self, statement: impl Into<Statement>) -> Self {
        self.statements.push(statement.into());
        self
    }

    /// Sets the comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.comment = Some(comment);
        self
    }
}

impl From<BoundChain> for Statement {
    fn from(chain: BoundChain) -> Self {
        Self::Bound(Box::new(chain))
    }
}

/// Prints on one line; with `#`, on several lines as nft lists it.
impl Display for BoundChain {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(f, Wording::SCRIPT)
    }
}

impl Words for BoundChain {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        f.write_str(if self.goto { "goto {" } else { "jump {" })?;
        for rule in &self.rules {
            let rule = rule.worded(with);
            if f.alternate() { write!(f, "\n\t{rule}")? } else { write!(f, " {rule};")? }
        }
        f.write_str(if f.alternate() { "\n}" } else { " }" })
    }
}

impl Display for BoundRule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(f, Wording::SCRIPT)
    }
}

impl Words for BoundRule {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        write_rule(f, &self.statements, self.comment.as_ref(), with)
    }
}

/// Writes the statements of a rule, followed by its comment.
pub(crate) fn write_rule(
    f: &mut Formatter<'_>,
    statements: &[Statement],
    comment: Option<&Comment>,
    with: Wording<'_>,
) -> fmt::Result {
    for (i, statement) in statements.iter().enumerate() {
        if i > 0 {
            f.write_str(" ")?;
        }
        statement.write(f, with)?;
    }
    match comment {
        Some(comment) if statements.is_empty() => write!(f, "comment {comment}"),
        Some(comment) => write!(f, " comment {comment}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Verdict;

    #[test]
    fn it_prints_in_one_line_or_as_nft_lists_it() {
        let comment = Comment::new("why").unwrap();
        let chain =
            BoundChain::goto([BoundRule::new().then(Verdict::Drop).comment(comment), BoundRule::new()]);
        assert_eq!(chain.to_string(), "goto { drop comment \"why\"; ; }");
        assert_eq!(format!("{chain:#}"), "goto {\n\tdrop comment \"why\"\n\t\n}");
        assert_eq!(BoundChain::jump([]).to_string(), "jump { }");
    }
}
