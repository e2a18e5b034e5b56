//! Expressions that the elements of a set carry: counters, quotas, limits and the like.

use sluicegate_netlink::Errno;
use sluicegate_netlink::attr::Attribute;

use crate::Family;
use crate::expr::complete::complete;
use crate::expr::{Expr, LimitType};
use crate::fake::message::{Attrs, Done, Refusal, refusal, refuse};
use crate::fake::validate;
use crate::object::SetFlags;
use crate::object::set::wire::*;

/// Returns the expressions that each element of a set carries.
pub(super) fn of_set(of: Carriers<'_>, attrs: &Attrs<'_>, flags: SetFlags) -> Result<Vec<Expr>, Refusal> {
    if let Some(expr) = attrs.get(NFTA_SET_EXPR) {
        return Ok(vec![of.one(expr)?]);
    }
    let Some(exprs) = attrs.get(NFTA_SET_EXPRESSIONS) else { return Ok(Vec::new()) };
    if !flags.contains(SetFlags::EXPR) {
        return refuse(Errno::EINVAL);
    }
    of.list(exprs)
}

/// The set whose elements carry expressions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carriers<'s> {
    /// The family of the table.
    pub(super) family: Family,
    /// Whether the kernel can garbage-collect elements by their expressions, which `ct count` needs.
    pub(super) supports_gc: bool,
    /// The expressions that the set defines for all its elements, if it does.
    pub(super) all: &'s [Expr],
}

impl Carriers<'_> {
    /// Decodes a list of expressions that an element may carry.
    pub(super) fn list(self, list: &Attribute<'_>) -> Result<Vec<Expr>, Refusal> {
        let mut exprs = Vec::new();
        for item in list.attributes() {
            let item = item.map_err(|_| refusal(Errno::EINVAL))?;
            let wanted = self.all.get(exprs.len());
            if exprs.len() == MAX_EXPRS || (wanted.is_none() && !self.all.is_empty()) {
                return refuse(Errno::E2BIG);
            }
            let expr = self.one(&item)?;
            if wanted.is_some_and(|wanted| !is_alike(wanted, &expr)) {
                return refuse(Errno::EOPNOTSUPP);
            }
            exprs.push(expr);
        }
        if exprs.len() < self.all.len() { refuse(Errno::EOPNOTSUPP) } else { Ok(exprs) }
    }

    /// Decodes an expression that an element may carry.
    pub(super) fn one(self, attribute: &Attribute<'_>) -> Result<Expr, Refusal> {
        let mut expr = Expr::decode_strictly(attribute).map_err(|_| refusal(Errno::EINVAL))?;
        is_stateful(&expr)?;
        validate::object(self.family, &expr)?;
        check_gc(&expr, self.supports_gc)?;
        complete(&mut expr, self.family);
        Ok(expr)
    }
}

/// Returns whether an element can carry such an expression.
pub(super) fn is_stateful(expr: &Expr) -> Done {
    match expr {
        Expr::Counter(_) | Expr::Quota(_) | Expr::Limit(_) | Expr::Last(_) | Expr::Connlimit(_) => Ok(()),
        Expr::Unknown(_) => refuse(Errno::ENOENT),
        _ => refuse(Errno::EOPNOTSUPP),
    }
}

/// Returns whether both expressions are of the same kernel type; limits of packets and of bytes are two
/// types.
pub(super) fn is_alike(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Limit(a), Expr::Limit(b)) => {
            a.of.unwrap_or(LimitType::PACKETS) == b.of.unwrap_or(LimitType::PACKETS)
        }
        _ => a.name() == b.name(),
    }
}

/// Refuses expressions that need garbage collection in a set without it.
pub(super) fn check_gc(expr: &Expr, supports_gc: bool) -> Done {
    if matches!(expr, Expr::Connlimit(_)) && !supports_gc { refuse(Errno::EOPNOTSUPP) } else { Ok(()) }
}

/// `NFT_SET_EXPR_MAX`
pub(super) const MAX_EXPRS: usize = 2;
