//! Checks expressions that compute numbers from registers, and limits.

use sluicegate_netlink::Errno;

use super::{bytes, in_byte};
use crate::expr::complete::PACKETS;
use crate::expr::{Bitwise, BitwiseOp, Byteorder, Hash, HashType, Limit, LimitType, Numgen, Range};
use crate::fake::expression::RuleContext;
use crate::fake::message::{Done, refuse};

pub(super) fn range(context: &RuleContext<'_>, e: &Range) -> Done {
    let (from, to) = (bytes(&e.from)?, bytes(&e.to)?);
    if from != to {
        return refuse(Errno::EINVAL);
    }
    context.load(e.sreg, from)?;
    if e.op.0 > 1 { refuse(Errno::EINVAL) } else { Ok(()) }
}

pub(super) fn bitwise(context: &mut RuleContext<'_>, e: &Bitwise) -> Done {
    let len = in_byte(e.len)?;
    context.load(e.sreg, len)?;
    context.store(e.dreg, len)?;
    let op = e.op.unwrap_or(BitwiseOp::BOOL);
    if op.0 > BitwiseOp::XOR.0 {
        return refuse(Errno::EOPNOTSUPP);
    }
    let of_len = |data: &Option<_>| data.as_ref().is_some_and(|data| bytes(data) == Ok(len));
    let (boolean, shift) = (op == BitwiseOp::BOOL, [BitwiseOp::LSHIFT, BitwiseOp::RSHIFT].contains(&op));
    let good = if boolean {
        e.data.is_none() && e.sreg2.is_none() && of_len(&e.mask) && of_len(&e.xor)
    } else if e.mask.is_some() || e.xor.is_some() {
        false
    } else if shift {
        let by = e.data.as_ref().and_then(|data| <[u8; 4]>::try_from(data.value()?).ok());
        e.sreg2.is_none() && by.is_some_and(|by| (1..32).contains(&u32::from_ne_bytes(by)))
    } else {
        e.data.is_some() != e.sreg2.is_some() && (e.sreg2.is_some() || of_len(&e.data))
    };
    if good { context.load_some(e.sreg2, len) } else { refuse(Errno::EINVAL) }
}

pub(super) fn byteorder(context: &mut RuleContext<'_>, e: &Byteorder) -> Done {
    if e.op.0 > 1 || !matches!(e.size, 2 | 4 | 8) {
        return refuse(Errno::EINVAL);
    }
    let len = in_byte(e.len)?;
    context.load(e.sreg, len)?;
    context.store(e.dreg, len)
}

pub(super) fn numgen(context: &mut RuleContext<'_>, e: &Numgen) -> Done {
    modulus(e.modulus, e.offset)?;
    context.store(e.dreg, 4)
}

pub(super) fn hash(context: &mut RuleContext<'_>, e: &Hash) -> Done {
    if e.of.is_none_or(|of| of == HashType::JENKINS) {
        let (Some(sreg), Some(len)) = (e.sreg, e.len) else { return refuse(Errno::EINVAL) };
        let len = in_byte(len)?;
        if len == 0 {
            return refuse(Errno::ERANGE);
        }
        context.load(sreg, len)?;
    }
    modulus(e.modulus, e.offset)?;
    context.store(e.dreg, 4)
}

/// Checks that the highest number, offset included, fits 32 bits.
fn modulus(modulus: u32, offset: Option<u32>) -> Done {
    let Some(highest) = modulus.checked_sub(1) else { return refuse(Errno::ERANGE) };
    if highest.checked_add(offset.unwrap_or(0)).is_none() { refuse(Errno::EOVERFLOW) } else { Ok(()) }
}

pub(super) fn limit(e: &Limit) -> Done {
    let of = e.of.unwrap_or(LimitType::PACKETS);
    if of.0 > LimitType::BYTES.0 {
        return refuse(Errno::EOPNOTSUPP);
    }
    if e.rate == 0 {
        return refuse(Errno::EINVAL);
    }
    let Some(nanoseconds) = e.unit.checked_mul(1_000_000_000) else { return refuse(Errno::EOVERFLOW) };
    let burst = match e.burst.unwrap_or(0) {
        0 if of == LimitType::PACKETS => PACKETS,
        burst => burst,
    };
    let burst = u64::from(burst);
    let Some(rate) = e.rate.checked_add(burst) else { return refuse(Errno::EOVERFLOW) };
    let tokens = match of {
        LimitType::PACKETS => (nanoseconds / e.rate).checked_mul(burst),
        _ => nanoseconds.checked_mul(rate),
    };
    if tokens.is_none() {
        return refuse(Errno::EOVERFLOW);
    }
    if e.flags.is_some_and(|flags| flags.bits() > 1) { refuse(Errno::EOPNOTSUPP) } else { Ok(()) }
}
