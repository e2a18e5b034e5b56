//! Chains of a rule's own: `jump { ... }` and `goto { ... }`.

use std::fmt::{self, Display, Formatter};

use crate::lang::{Statement, Wording, Words};
use crate::name::Comment;

/// `jump { RULE; ... }` or `goto { RULE; ... }`: a chain that belongs to the rule and goes with it.
///
/// The kernel gives it a name (`__chain1`) that nobody else may use: no other rule jumps to it, and no rule is added to it later. It holds no
/// other such chain. Since Linux 5.9 ([`Feature::BoundChains`](crate::probe::Feature::BoundChains)).
///
/// nft 1.0.6 ends with a segmentation fault when it reads a rule that has one and a `position` or an `index`. By netlink that works.
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
pub struct BoundChain {
    /// Whether the packet does not come back (`goto`).
    pub goto: bool,
    /// Its rules.
    pub rules: Vec<BoundRule>,
}

/// A rule of a [`BoundChain`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BoundRule {
    /// Its statements.
    pub statements: Vec<Statement>,
    /// Its comment.
    pub comment: Option<Comment>,
}

impl BoundChain {
    /// `jump { ... }`: to come back.
    pub fn jump(rules: impl IntoIterator<Item = BoundRule>) -> Self {
        Self { goto: false, rules: rules.into_iter().collect() }
    }

    /// `goto { ... }`: not to come back.
    pub fn goto(rules: impl IntoIterator<Item = BoundRule>) -> Self {
        Self { goto: true, rules: rules.into_iter().collect() }
    }
}

impl BoundRule {
    /// A rule without statements.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
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
}

impl From<BoundChain> for Statement {
    fn from(chain: BoundChain) -> Self {
        Self::Bound(chain)
    }
}

/// In one line; with `#`, in lines as nft lists it.
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

/// Writes the statements of a rule, and its comment behind them.
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
    use crate::lang::Verdict;

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
