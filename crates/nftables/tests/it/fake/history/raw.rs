//! Low-level expressions: any of any kind, and some that are wrong in one way or another.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use sluicegate_nftables::expr::kind::*;
use sluicegate_nftables::expr::*;
use sluicegate_nftables::lang::Verdict;
use sluicegate_nftables::{Family, TableId};

use super::Bytes;
use super::chains::chain_name;
use super::sets::{KINDS, set_name};
use crate::fake::expressions::expressions;
use crate::kernel::cases::name;

/// One of all expressions, after some that fill registers or not.
pub(super) fn any(family: Family, bytes: &mut Bytes<'_>) -> Vec<Expr> {
    let at = usize::from(bytes.next()) << 8 | usize::from(bytes.next());
    let one = with_all(family, |all| all[at % all.len()].clone());
    let fill = |dreg| Immediate { dreg: Register(dreg), data: value(16) }.into();
    match bytes.below(4) {
        0 => vec![one],
        1 => vec![fill(1), one],
        _ => vec![fill(1), fill(2), one],
    }
}

/// All expressions that a family's kernel has; they are many to make again for each rule.
fn with_all<T>(family: Family, take: impl FnOnce(&[Expr]) -> T) -> T {
    static ALL: LazyLock<Mutex<HashMap<u8, Vec<Expr>>>> = LazyLock::new(Mutex::default);
    let mut all = ALL.lock().expect("nobody panics with it");
    take(all.entry(family.0).or_insert_with(|| expressions(family)))
}

fn value(len: u8) -> Data {
    Data::Value(vec![1; usize::from(len)].into())
}

/// Expressions of which the one or the other is wrong.
pub(super) fn wrong(t: &TableId, bytes: &mut Bytes<'_>) -> Vec<Expr> {
    let sreg = Register(bytes.pick(&[1, 8, 9, 0, 23, 30]));
    let fill = |len| Expr::from(Immediate { dreg: Register(1), data: value(len) });
    let set = set_name(bytes.below(KINDS));
    let chain = chain_name(bytes);
    let set_id = bytes.pick(&[None, None, Some(1), Some(2)]);
    match bytes.below(10) {
        0 => vec![Cmp { sreg, op: CmpOp::EQ, data: value(bytes.below(30)) }.into()],
        1 => vec![Unknown::new(name("nothing"), Vec::new()).into()],
        2 => vec![
            Immediate { dreg: Register(0), data: Data::Verdict(Verdict::Jump(chain)) }.into(),
            Immediate { dreg: sreg, data: value(bytes.below(30)) }.into(),
            Cmp { sreg, op: CmpOp::EQ, data: value(bytes.below(20)) }.into(),
        ],
        3 => vec![Immediate { dreg: sreg, data: Data::Verdict(Verdict::Jump(chain)) }.into()],
        4 => vec![Immediate { dreg: Register(0), data: value(4) }.into()],
        5 => {
            let dreg = bytes.pick(&[None, Some(Register(0)), Some(Register(1)), Some(Register(23))]);
            let flags = bytes.pick(&[None, Some(LookupFlags::INVERT)]);
            let len = bytes.pick(&[4, 8, 16]);
            vec![fill(len), Lookup { set, sreg: Register(1), dreg, set_id, flags }.into()]
        }
        6 => {
            let data = Data::ChainId(
                bytes.pick(&[VerdictCode::JUMP, VerdictCode::GOTO]),
                1 + u32::from(bytes.below(3)),
            );
            vec![Immediate { dreg: Register(0), data }.into()]
        }
        7 => {
            let data = bytes.pick(&[None, Some(Register(1)), Some(Register(9))]);
            let expr = bytes.pick(&[None, Some(counter()), Some(notrack())]).map(Box::new);
            let exprs = bytes.pick(&[vec![], vec![counter()], vec![counter(), last()], vec![counter(); 3]]);
            let flags = bytes.pick(&[None, Some(DynsetFlags::INVERT), Some(DynsetFlags::EXPR)]);
            let timeout = bytes.pick(&[None, None, Some(0), Some(5000), Some(u64::MAX)]);
            let op = bytes.pick(&[DynsetOp::UPDATE, DynsetOp::ADD, DynsetOp::DELETE]);
            let key = Register(1);
            vec![fill(16), Dynset { set, set_id, op, key, data, timeout, expr, flags, exprs }.into()]
        }
        8 => {
            let (kind, n) = bytes.pick(&[(None, None), (Some(ObjectKind::COUNTER), Some(name("n")))]);
            let sreg = bytes.pick(&[None, Some(Register(1)), Some(Register(2))]);
            let set = bytes.pick(&[None, Some(set)]);
            vec![fill(4), Objref { kind, name: n, sreg, set, set_id }.into()]
        }
        _ if t.family == Family::NETDEV => {
            vec![fill(4), Fwd { device: Register(1), addr: None, family: None }.into()]
        }
        _ => vec![Immediate { dreg: Register(0), data: Data::Code(VerdictCode(3)) }.into()],
    }
}

fn counter() -> Expr {
    Counter { bytes: None, packets: None }.into()
}

fn last() -> Expr {
    Last { set: None, msecs: None }.into()
}

fn notrack() -> Expr {
    Notrack {}.into()
}
