//! Merges comparisons of adjacent header fields: `tcp sport 1 tcp dport 2` is a single load of four bytes.
//!
//! Which comparisons are merged, and where the result is placed, is as in nft 1.0.6, with two exceptions in
//! which merging changes the meaning of the rule, and which later versions fixed: comparisons with `!=`
//! (`tcp sport != 1 tcp dport != 2`) stay separate, and comparisons are not merged across another statement
//! (`tcp sport 1 counter tcp dport 2`). Bit masks that are not compared with `==` (`tcp flags syn`) stay
//! separate too.

use crate::compile::lower::Lower;
use crate::expr::{self, CmpOp, Data, Expr, InnerType, PayloadBase};
use crate::sort;

/// A load of whole bytes of a header, and the comparison with a constant that follows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Comparison {
    /// The position of the load among the expressions.
    at: usize,
    /// The tunnel, if the header is inside its packet.
    tunnel: Option<InnerType>,
    base: PayloadBase,
    offset: u32,
    len: u32,
    /// Whether the comparison is `==`; with `!=` it is never merged, and separates its neighbours.
    equal: bool,
    /// Whether the field determines the next header. Later loads rely on the comparison, so it may absorb
    /// others but must not be absorbed.
    is_protocol: bool,
}

impl Lower<'_> {
    /// Notes that the last two expressions load a field and compare it, so that they may be merged with
    /// others.
    pub(super) fn note_comparison(&mut self, is_protocol: bool) {
        let Some(at) = self.out.exprs.len().checked_sub(2) else { return };
        if let Some([load, Expr::Cmp(cmp)]) = self.out.exprs.get_mut(at..)
            && matches!(cmp.op, CmpOp::EQ | CmpOp::NEQ)
            && let Some((tunnel, load)) = load_of(load)
        {
            let (base, offset, len) = (load.base, load.offset, load.len);
            let equal = cmp.op == CmpOp::EQ;
            self.comparisons.push(Comparison { at, tunnel, base, offset, len, equal, is_protocol });
        }
    }

    /// Merges the comparisons that were noted since the last statement other than a match.
    pub(super) fn merge_adjacent(&mut self) {
        let mut comparisons = std::mem::take(&mut self.comparisons);
        // nft merges fields that are adjacent in the header, whatever their order in the rule.
        sort::by_key(&mut comparisons, |c| (c.tunnel, c.base.0, c.offset));
        let mut absorbed = Vec::new();
        let mut rest = comparisons.into_iter();
        let Some(mut last) = rest.next() else { return };
        for this in rest {
            if !last.merges_with(&this) {
                last = this;
                continue;
            }
            // A comparison that determines the protocol has to stay where it is, before the headers that rely
            // on it.
            let (kept, absorbed_at) = if this.is_protocol { (this.at, last.at) } else { (last.at, this.at) };
            last = Comparison { at: kept, len: last.len + this.len, is_protocol: false, ..last };
            self.merge(&last, absorbed_at, this.is_protocol);
            absorbed.push(absorbed_at);
        }
        // Each absorbed comparison is two expressions, a load and a comparison.
        let mut index = 0;
        self.out.exprs.retain(|_| {
            let stays = !absorbed.iter().any(|at| (*at..at + 2).contains(&index));
            index += 1;
            stays
        });
    }

    /// Extends a comparison by the data of the adjacent one, which is removed.
    fn merge(&mut self, merged: &Comparison, absorbed_at: usize, absorbed_is_first: bool) {
        let Some(Expr::Cmp(cmp)) = self.out.exprs.get(absorbed_at + 1) else { return };
        let other = cmp.data.value().unwrap_or_default().to_vec();
        if let Some(Expr::Cmp(cmp)) = self.out.exprs.get_mut(merged.at + 1)
            && let Data::Value(own) = &mut cmp.data
        {
            let (first, second) = if absorbed_is_first { (&*other, &**own) } else { (&**own, &*other) };
            *own = [first, second].concat().into();
        }
        // The merged load starts at the lower of the two offsets.
        if let Some((_, load)) = self.out.exprs.get_mut(merged.at).and_then(load_of) {
            (load.offset, load.len) = (merged.offset, merged.len);
        }
    }
}

impl Comparison {
    /// Adjusts the position after `by` expressions were inserted at the start.
    pub(super) fn move_down(&mut self, by: usize) {
        self.at += by;
    }

    fn merges_with(&self, next: &Self) -> bool {
        // NFT_REG_SIZE: a merged field has to fit one register.
        const REGISTER: u32 = 16;
        /// The kernel has a fast path for loads of up to this many bytes (`nft_payload_fast_eval`), but not
        /// from the link layer.
        const QUICK: u32 = 4;
        let total = self.len + next.len;
        let adjacent =
            (self.tunnel, self.base) == (next.tunnel, next.base) && self.offset + self.len == next.offset;
        // Merging two fast loads into a slow one is no gain, so nft does not.
        let quick = self.base != PayloadBase::LINK && self.len <= QUICK && next.len <= QUICK;
        adjacent && self.equal && next.equal && total <= REGISTER && (total <= QUICK || !quick)
    }
}

/// Returns the load of a header field, and the tunnel whose inner header it is from.
fn load_of(expr: &mut Expr) -> Option<(Option<InnerType>, &mut expr::Payload)> {
    match expr {
        Expr::Payload(load) => Some((None, load)),
        Expr::Inner(inner) => match &mut *inner.expr {
            Expr::Payload(load) => Some((Some(inner.of), load)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::lower::lower_alone;
    use crate::tree::{Counter, Match, MatchOp, Payload, Statement, TcpFlags};
    use crate::{Family, Port, TableId};

    /// Returns the offset and length of each header load.
    fn loads(statements: &[Statement]) -> Vec<(u32, u32)> {
        let table = TableId::new(Family::IP, "t".parse().unwrap());
        let lowered = lower_alone(&table, statements).unwrap();
        let load = |expr: &Expr| match expr {
            Expr::Payload(load) => Some((load.offset, load.len)),
            _ => None,
        };
        lowered.exprs.iter().filter_map(load).collect()
    }

    fn sport() -> Match {
        Match::new(Payload::TCP_SPORT, Port(1))
    }

    fn dport() -> Match {
        Match::new(Payload::TCP_DPORT, Port(2))
    }

    #[test]
    fn neighbours_are_compared_at_once_in_whatever_order() {
        assert_eq!(loads(&[sport().into(), dport().into()]), [(0, 4)]);
        assert_eq!(loads(&[dport().into(), sport().into()]), [(0, 4)]);
        let sequence = Match::new(Payload::TCP_SEQUENCE, 3_u32);
        assert_eq!(loads(&[sport().into(), dport().into(), sequence.into()]), [(0, 4), (4, 4)]);
    }

    #[test]
    fn what_would_mean_something_else_stays_apart() {
        let differ = |m: Match| Statement::from(Match { op: MatchOp::Neq, ..m });
        assert_eq!(loads(&[differ(sport()), differ(dport())]), [(0, 2), (2, 2)]);
        assert_eq!(loads(&[sport().into(), differ(sport()), dport().into()]), [(0, 2), (0, 2), (2, 2)]);
        let counter = Counter::default().into();
        assert_eq!(loads(&[sport().into(), counter, dport().into()]), [(0, 2), (2, 2)]);
        let any = Match::new(Payload::TCP_FLAGS, TcpFlags::SYN).into();
        let window = Match::new(Payload::TCP_WINDOW, 3_u32).into();
        assert_eq!(loads(&[any, window]), [(13, 1), (14, 2)]);
    }
}
