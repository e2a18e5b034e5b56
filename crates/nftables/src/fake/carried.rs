//! Expressions that the elements of a set carry: what counts and limits.

use sluicegate_netlink::attr::Attribute;

use crate::Family;
use crate::expr::{Expr, LimitType};
use crate::fake::complete::complete;
use crate::fake::demand;
use crate::fake::message::{Attrs, Done, E2BIG, EINVAL, ENOENT, EOPNOTSUPP, Refusal, refusal, refuse};
use crate::fake::set::{NFTA_SET_EXPR, NFTA_SET_EXPRESSIONS};
use crate::object::SetFlags;

/// The expressions that each element carries.
pub(super) fn of_set(of: Carriers<'_>, attrs: &Attrs<'_>, flags: SetFlags) -> Result<Vec<Expr>, Refusal> {
    if let Some(expr) = attrs.get(NFTA_SET_EXPR) {
        return Ok(vec![of.one(expr)?]);
    }
    let Some(exprs) = attrs.get(NFTA_SET_EXPRESSIONS) else { return Ok(Vec::new()) };
    if !flags.contains(SetFlags::EXPR) {
        return refuse(EINVAL);
    }
    of.list(exprs)
}

/// The elements that carry expressions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carriers<'s> {
    /// The family of their table.
    pub(super) family: Family,
    /// Whether their set cleans them up.
    pub(super) cleans: bool,
    /// What all elements of it carry, if that is so.
    pub(super) all: &'s [Expr],
}

impl Carriers<'_> {
    /// A list of expressions that may be part of an element.
    pub(super) fn list(self, list: &Attribute<'_>) -> Result<Vec<Expr>, Refusal> {
        let mut exprs = Vec::new();
        for item in list.attributes() {
            let item = item.map_err(|_| refusal(EINVAL))?;
            let wanted = self.all.get(exprs.len());
            if exprs.len() == MAX_EXPRS || (wanted.is_none() && !self.all.is_empty()) {
                return refuse(E2BIG);
            }
            let expr = self.one(&item)?;
            if wanted.is_some_and(|wanted| !is_alike(wanted, &expr)) {
                return refuse(EOPNOTSUPP);
            }
            exprs.push(expr);
        }
        if exprs.len() < self.all.len() { refuse(EOPNOTSUPP) } else { Ok(exprs) }
    }

    /// An expression that may be part of an element.
    pub(super) fn one(self, attribute: &Attribute<'_>) -> Result<Expr, Refusal> {
        let mut expr = Expr::decode_strictly(attribute).map_err(|_| refusal(EINVAL))?;
        is_stateful(&expr)?;
        demand::object(self.family, &expr)?;
        can_go(&expr, self.cleans)?;
        complete(&mut expr, self.family);
        Ok(expr)
    }
}

/// Whether an expression can be part of an element at all.
pub(super) fn is_stateful(expr: &Expr) -> Done {
    match expr {
        Expr::Counter(_) | Expr::Quota(_) | Expr::Limit(_) | Expr::Last(_) | Expr::Connlimit(_) => Ok(()),
        Expr::Unknown(_) => refuse(ENOENT),
        _ => refuse(EOPNOTSUPP),
    }
}

/// Whether two expressions are one operation of the kernel, which has one for packets and one for bytes.
pub(super) fn is_alike(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Limit(a), Expr::Limit(b)) => {
            a.of.unwrap_or(LimitType::PACKETS) == b.of.unwrap_or(LimitType::PACKETS)
        }
        _ => a.name() == b.name(),
    }
}

/// Some the kernel wants to clean up, which not every set can.
pub(super) fn can_go(expr: &Expr, cleans: bool) -> Done {
    if matches!(expr, Expr::Connlimit(_)) && !cleans { refuse(EOPNOTSUPP) } else { Ok(()) }
}

/// `NFT_SET_EXPR_MAX`
pub(super) const MAX_EXPRS: usize = 2;
