//! What makes numbers of numbers, compares and looks up.

use sluicegate_nftables::expr::kind::*;
use sluicegate_nftables::expr::*;

use super::{FILLED, FILLED_TOO};
use crate::kernel::cases::name;

/// What makes numbers of numbers, compares and looks up.
pub(super) fn numbers(all: &mut Vec<Expr>) {
    let mut add = |expr: Expr| all.push(expr);
    let value = |len: usize| Data::Value(vec![1; len].into());
    for mode in (0..=2).map(NumgenMode) {
        for (modulus, offset) in [(0, None), (7, None), (7, Some(3)), (u32::MAX, Some(3))] {
            add(Numgen { dreg: FILLED, modulus, mode, offset }.into());
        }
    }
    for of in [None, Some(HashType(0)), Some(HashType(1)), Some(HashType(2))] {
        for (sreg, len) in
            [(Some(FILLED), Some(4)), (Some(FILLED), None), (None, Some(4)), (Some(FILLED), Some(0))]
        {
            for (modulus, offset) in [(0, None), (9, None), (9, Some(1)), (u32::MAX, Some(9))] {
                add(Hash { sreg, dreg: FILLED, len, modulus, seed: None, offset, of }.into());
            }
        }
    }
    add(Hash {
        sreg: Some(FILLED),
        dreg: FILLED,
        len: Some(256),
        modulus: 1,
        seed: Some(5),
        offset: None,
        of: None,
    }
    .into());
    for op in (0..=6).map(CmpOp) {
        [0, 1, 4, 16, 17, 64, 65]
            .into_iter()
            .for_each(|len| add(Cmp { sreg: FILLED, op, data: value(len) }.into()));
    }
    for op in (0..=2).map(RangeOp) {
        [(4, 4), (4, 5), (16, 16), (0, 0)]
            .into_iter()
            .for_each(|(from, to)| add(Range { sreg: FILLED, op, from: value(from), to: value(to) }.into()));
    }
    for op in [None].into_iter().chain((0..=6).map(|op| Some(BitwiseOp(op)))) {
        let nothing = Bitwise {
            sreg: FILLED,
            dreg: FILLED,
            len: 4,
            mask: None,
            xor: None,
            op,
            data: None,
            sreg2: None,
        };
        add(nothing.clone().into());
        add(Bitwise { mask: Some(value(4)), xor: Some(value(4)), ..nothing.clone() }.into());
        add(Bitwise { mask: Some(value(4)), xor: Some(value(2)), ..nothing.clone() }.into());
        add(Bitwise { mask: Some(value(4)), ..nothing.clone() }.into());
        add(Bitwise { data: Some(value(4)), ..nothing.clone() }.into());
        add(Bitwise { data: Some(Data::Value(40_u32.to_ne_bytes().into())), ..nothing.clone() }.into());
        add(Bitwise { data: Some(Data::Value(3_u32.to_ne_bytes().into())), ..nothing.clone() }.into());
        add(Bitwise { sreg2: Some(FILLED_TOO), ..nothing.clone() }.into());
        add(Bitwise { sreg2: Some(FILLED_TOO), data: Some(value(4)), ..nothing.clone() }.into());
        add(Bitwise { len: 0, mask: Some(value(4)), xor: Some(value(4)), ..nothing.clone() }.into());
        add(Bitwise { len: 256, ..nothing }.into());
    }
    for op in (0..=2).map(ByteorderOp) {
        for (len, size) in [(2, 2), (4, 4), (8, 8), (4, 1), (4, 2), (2, 4), (6, 4), (0, 2), (16, 3)] {
            add(Byteorder { sreg: FILLED, dreg: FILLED, op, len, size }.into());
        }
    }
    add(Lookup { set: name("s"), sreg: FILLED, dreg: None, set_id: None, flags: None }.into());
    add(Lookup { set: name("absent"), sreg: FILLED, dreg: None, set_id: None, flags: None }.into());
    add(Objref {
        kind: Some(ObjectKind::COUNTER),
        name: Some(name("n")),
        sreg: None,
        set: None,
        set_id: None,
    }
    .into());
    add(Objref { kind: Some(ObjectKind::QUOTA), name: Some(name("n")), sreg: None, set: None, set_id: None }
        .into());
    add(Objref { kind: Some(ObjectKind(99)), name: Some(name("n")), sreg: None, set: None, set_id: None }
        .into());
    add(Objref { kind: None, name: None, sreg: Some(FILLED), set: Some(name("s")), set_id: None }.into());
    for carried in [None, Some(counter()), Some(Expr::Notrack(Notrack {})), Some(connlimit())] {
        let expr = carried.map(Box::new);
        let (set, set_id, data, timeout, exprs) = (name("s"), None, None, None, Vec::new());
        let dynset = Dynset {
            set,
            set_id,
            op: DynsetOp::UPDATE,
            key: FILLED,
            data,
            timeout,
            expr,
            flags: None,
            exprs,
        };
        add(Dynset { op: DynsetOp(3), ..dynset.clone() }.into());
        add(Dynset { op: DynsetOp::DELETE, ..dynset.clone() }.into());
        add(Dynset { flags: Some(DynsetFlags::INVERT), ..dynset.clone() }.into());
        add(Dynset { flags: Some(DynsetFlags::from_bits_retain(4)), ..dynset.clone() }.into());
        add(Dynset { timeout: Some(9), ..dynset.clone() }.into());
        add(dynset.into());
    }
}

pub(super) fn counter() -> Expr {
    Counter { bytes: None, packets: None }.into()
}

pub(super) fn connlimit() -> Expr {
    Connlimit { count: 3, flags: None }.into()
}
