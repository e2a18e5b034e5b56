//! What makes numbers of numbers, and limits.

use super::{bytes, in_byte};
use crate::expr::{Bitwise, BitwiseOp, Byteorder, Hash, HashType, Limit, LimitType, Numgen, Range};
use crate::fake::expression::Frame;
use crate::fake::message::{Done, EINVAL, EOPNOTSUPP, EOVERFLOW, ERANGE, refuse};

pub(super) fn range(frame: &Frame<'_>, e: &Range) -> Done {
    let (from, to) = (bytes(&e.from)?, bytes(&e.to)?);
    if from != to {
        return refuse(EINVAL);
    }
    frame.load(e.sreg, from)?;
    if e.op.0 > 1 { refuse(EINVAL) } else { Ok(()) }
}

pub(super) fn bitwise(frame: &mut Frame<'_>, e: &Bitwise) -> Done {
    let len = in_byte(e.len)?;
    frame.load(e.sreg, len)?;
    frame.store(e.dreg, len)?;
    let op = e.op.unwrap_or(BitwiseOp::BOOL);
    if op.0 > BitwiseOp::XOR.0 {
        return refuse(EOPNOTSUPP);
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
    if good { frame.load_some(e.sreg2, len) } else { refuse(EINVAL) }
}

pub(super) fn byteorder(frame: &mut Frame<'_>, e: &Byteorder) -> Done {
    if e.op.0 > 1 || !matches!(e.size, 2 | 4 | 8) {
        return refuse(EINVAL);
    }
    let len = in_byte(e.len)?;
    frame.load(e.sreg, len)?;
    frame.store(e.dreg, len)
}

pub(super) fn numgen(frame: &mut Frame<'_>, e: &Numgen) -> Done {
    modulus(e.modulus, e.offset)?;
    frame.store(e.dreg, 4)
}

pub(super) fn hash(frame: &mut Frame<'_>, e: &Hash) -> Done {
    if e.of.is_none_or(|of| of == HashType::JENKINS) {
        let (Some(sreg), Some(len)) = (e.sreg, e.len) else { return refuse(EINVAL) };
        let len = in_byte(len)?;
        if len == 0 {
            return refuse(ERANGE);
        }
        frame.load(sreg, len)?;
    }
    modulus(e.modulus, e.offset)?;
    frame.store(e.dreg, 4)
}

/// The highest number, offset included, has to be one.
fn modulus(modulus: u32, offset: Option<u32>) -> Done {
    let Some(highest) = modulus.checked_sub(1) else { return refuse(ERANGE) };
    if highest.checked_add(offset.unwrap_or(0)).is_none() { refuse(EOVERFLOW) } else { Ok(()) }
}

pub(super) fn limit(e: &Limit) -> Done {
    let of = e.of.unwrap_or(LimitType::PACKETS);
    if of.0 > LimitType::BYTES.0 {
        return refuse(EOPNOTSUPP);
    }
    if e.rate == 0 {
        return refuse(EINVAL);
    }
    let Some(nanoseconds) = e.unit.checked_mul(1_000_000_000) else { return refuse(EOVERFLOW) };
    let burst = match e.burst.unwrap_or(0) {
        0 if of == LimitType::PACKETS => PACKETS,
        burst => burst,
    };
    let burst = u64::from(burst);
    let Some(rate) = e.rate.checked_add(burst) else { return refuse(EOVERFLOW) };
    let tokens = match of {
        LimitType::PACKETS => (nanoseconds / e.rate).checked_mul(burst),
        _ => nanoseconds.checked_mul(rate),
    };
    if tokens.is_none() {
        return refuse(EOVERFLOW);
    }
    if e.flags.is_some_and(|flags| flags.bits() > 1) { refuse(EOPNOTSUPP) } else { Ok(()) }
}

/// `NFT_LIMIT_PKT_BURST_DEFAULT`
pub(in crate::fake) const PACKETS: u32 = 5;
