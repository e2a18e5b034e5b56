//! Moves the constant of `KEY ^ CONSTANT` to the values that the key is looked up among, as nft does: that
//! takes an expression less. It is exact for single values only, so of ranges and prefixes nothing is moved,
//! which nft 1.0.6 does too.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::key::EtherAddr;
use crate::tree::{BinaryOp, Expression, Value};

/// Returns the key without `^ CONSTANT`, and the members (`of` has the value of each) with that constant; both as
/// they are where there is nothing to move, or not all of it can be.
pub(super) fn without_xor<'a, T: Clone>(
    key: &'a Expression,
    members: &'a [T],
    of: fn(&mut T) -> &mut Expression,
) -> (&'a Expression, Cow<'a, [T]>) {
    let (mut left, mut members) = (key, Cow::Borrowed(members));
    while let Some((inner, toggled)) = toggled(left) {
        let mut moved = members.to_vec();
        let is_moved = moved.iter_mut().all(|member| {
            let member = of(member);
            let Expression::Value(value) = member else { return false };
            let value = xor(value, toggled);
            value.map(|value| *member = value.into()).is_some()
        });
        if !is_moved {
            break;
        }
        (left, members) = (inner, Cow::Owned(moved));
    }
    (left, members)
}

/// Returns the two operands of `KEY ^ CONSTANT`.
pub(super) fn toggled(key: &Expression) -> Option<(&Expression, &Value)> {
    let Expression::Binary(binary) = key else { return None };
    match &binary.right {
        Expression::Value(value) if binary.op == BinaryOp::Xor && !binary.left.is_constant() => {
            Some((&binary.left, value))
        }
        _ => None,
    }
}

fn xor(value: &Value, toggled: &Value) -> Option<Value> {
    Some(match (value, toggled) {
        (Value::Number(value), Value::Number(toggled)) => Value::Number(value ^ toggled),
        (Value::Address(IpAddr::V4(value)), Value::Address(IpAddr::V4(toggled))) => {
            Value::Address(IpAddr::V4((value.to_bits() ^ toggled.to_bits()).into()))
        }
        (Value::Address(IpAddr::V6(value)), Value::Address(IpAddr::V6(toggled))) => {
            Value::Address(IpAddr::V6((value.to_bits() ^ toggled.to_bits()).into()))
        }
        (Value::Ether(value), Value::Ether(toggled)) => {
            let mut bytes = value.0;
            bytes.iter_mut().zip(toggled.0).for_each(|(byte, toggled)| *byte ^= toggled);
            Value::Ether(EtherAddr(bytes))
        }
        (Value::Bytes(value), Value::Bytes(toggled)) if value.len() == toggled.len() => {
            Value::Bytes(value.iter().zip(toggled.iter()).map(|(byte, toggled)| byte ^ toggled).collect())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::lower::lower_alone;
    use crate::expr::{self, BitwiseOp, CmpOp, Expr, MetaKey};
    use crate::tree::{Match, MatchOp, Payload};
    use crate::{Family, TableId};

    fn folded(key: &Expression, member: impl Into<Expression>) -> Option<Expression> {
        let members = [member.into()];
        let (left, members) = without_xor(key, &members, |member| member);
        (left != key).then(|| members[0].clone())
    }

    #[test]
    fn a_constant_moves_to_single_values_only() {
        let mark = || Expression::from(MetaKey::MARK).xor(3_u32);
        assert_eq!(folded(&mark(), 1_u32), Some(2_u32.into()));
        assert_eq!(folded(&mark().xor(4_u32), 1_u32), Some(6_u32.into()));
        assert_eq!(folded(&mark(), Expression::range(1_u32, 7_u32)), None);
        assert_eq!(folded(&mark(), Expression::prefix(4_u32, 30)), None);
        let address = |last| Expression::from(std::net::Ipv4Addr::new(192, 0, 2, last));
        let source = Expression::from(Payload::IP_SADDR).xor(address(1));
        assert_eq!(folded(&source, address(3)), Some(std::net::Ipv4Addr::new(0, 0, 0, 2).into()));
    }

    /// `mark ^ 3 >= 1` is not `mark >= 2`.
    #[test]
    fn it_moves_across_no_order() {
        let table = TableId::new(Family::IP, "t".parse().unwrap());
        let xors = |op| {
            let m = Match::with(Expression::from(MetaKey::MARK).xor(3_u32), op, 1_u32);
            let exprs = lower_alone(&table, &[m.into()]).unwrap().exprs;
            let is_xor = |e: &Expr| matches!(e, Expr::Bitwise(b) if b.op == Some(BitwiseOp::BOOL));
            let last = exprs.last().cloned();
            let Some(Expr::Cmp(expr::Cmp { op, .. })) = last else { panic!("{last:?}") };
            (exprs.iter().filter(|e| is_xor(e)).count(), op)
        };
        assert_eq!(xors(MatchOp::Eq), (0, CmpOp::EQ));
        assert_eq!(xors(MatchOp::Neq), (0, CmpOp::NEQ));
        assert_eq!(xors(MatchOp::Gte), (1, CmpOp::GTE));
        assert_eq!(xors(MatchOp::Lt), (1, CmpOp::LT));
    }
}
