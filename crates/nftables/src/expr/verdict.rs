//! The verdict of a rule, of an element of a map or of an immediate expression.

use crate::name::Name;

/// A verdict: how evaluation of the packet continues.
///
/// ```
/// use sluicegate_nftables::{Family, TableId, lang::Verdict};
///
/// let input = TableId::new(Family::INET, "firewall".parse()?).chain("input".parse()?);
/// let jump = input.rule().then(Verdict::Jump("web".parse()?));
/// assert_eq!(jump.body().to_string(), "jump web");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// `accept`: ends the evaluation of this base chain; later base chains still see the packet.
    Accept,
    /// `drop`
    Drop,
    /// `continue`: continues with the next rule.
    Continue,
    /// `return`: continues with the rule after the jump.
    Return,
    /// `jump CHAIN`: continues with the chain, and returns to the next rule at its end.
    Jump(Name),
    /// `goto CHAIN`: continues with the chain, and does not return to this one.
    Goto(Name),
}
