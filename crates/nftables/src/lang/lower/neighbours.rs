//! Comparisons of fields that lie side by side in a header are made at once: `tcp sport 1 tcp dport 2` is one load of four
//! bytes.
//!
//! Which ones, and where the joined comparison stands, is as nft 1.0.6 has it, but for two cases in which that changes what the rule
//! means, and which later versions mended: fields that shall differ (`tcp sport != 1 tcp dport != 2`) stay apart, and nothing is joined across
//! another statement (`tcp sport 1 counter tcp dport 2`). Bit masks that are not compared with `==` (`tcp flags syn`) stay apart too.

use crate::expr::{self, CmpOp, Data, Expr, InnerType, PayloadBase};
use crate::lang::lower::Lower;

/// A load of whole bytes of a header, and the comparison with a constant behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Comparison {
    /// Where the load is among the expressions.
    at: usize,
    /// Where the header is inside a tunnel's packet.
    tunnel: Option<InnerType>,
    base: PayloadBase,
    offset: u32,
    len: u32,
    /// Else the field shall differ: it is not joined, but stands between others.
    equal: bool,
    /// The field says what the next header is. What follows relies on it, so it may be moved down, but never away.
    tells_protocol: bool,
}

impl Lower<'_> {
    /// Notes that the last two expressions load a field and compare it.
    pub(super) fn may_be_joined(&mut self, tells_protocol: bool) {
        let Some(at) = self.out.exprs.len().checked_sub(2) else { return };
        if let Some([load, Expr::Cmp(cmp)]) = self.out.exprs.get_mut(at..)
            && matches!(cmp.op, CmpOp::EQ | CmpOp::NEQ)
            && let Some((tunnel, load)) = load_of(load)
        {
            let (base, offset, len) = (load.base, load.offset, load.len);
            let equal = cmp.op == CmpOp::EQ;
            self.comparisons.push(Comparison { at, tunnel, base, offset, len, equal, tells_protocol });
        }
    }

    /// Joins what has been noted since the last statement that is no match.
    pub(super) fn join_neighbours(&mut self) {
        let mut comparisons = std::mem::take(&mut self.comparisons);
        comparisons.sort_by_key(|c| (c.tunnel, c.base.0, c.offset));
        let mut gone = Vec::new();
        let mut rest = comparisons.into_iter();
        let Some(mut last) = rest.next() else { return };
        for this in rest {
            if !last.joins(&this) {
                last = this;
                continue;
            }
            let (kept, lost) = if this.tells_protocol { (this.at, last.at) } else { (last.at, this.at) };
            last = Comparison { at: kept, len: last.len + this.len, tells_protocol: false, ..last };
            self.join(&last, lost, this.tells_protocol);
            gone.push(lost);
        }
        let mut index = 0;
        self.out.exprs.retain(|_| {
            let stays = !gone.iter().any(|at| (*at..at + 2).contains(&index));
            index += 1;
            stays
        });
    }

    /// Makes the comparison at one place say what that at the other said too.
    fn join(&mut self, joined: &Comparison, lost: usize, lost_is_first: bool) {
        let Some(Expr::Cmp(cmp)) = self.out.exprs.get(lost + 1) else { return };
        let other = cmp.data.value().unwrap_or_default().to_vec();
        if let Some(Expr::Cmp(cmp)) = self.out.exprs.get_mut(joined.at + 1)
            && let Data::Value(own) = &mut cmp.data
        {
            let (first, second) = if lost_is_first { (&*other, &**own) } else { (&**own, &*other) };
            *own = [first, second].concat().into();
        }
        if let Some((_, load)) = self.out.exprs.get_mut(joined.at).and_then(load_of) {
            (load.offset, load.len) = (joined.offset, joined.len);
        }
    }
}

impl Comparison {
    /// So many expressions were put before all others.
    pub(super) fn move_down(&mut self, by: usize) {
        self.at += by;
    }

    fn joins(&self, next: &Self) -> bool {
        // NFT_REG_SIZE
        const REGISTER: u32 = 16;
        /// Loads of up to so many bytes the kernel makes quickly, but not those of the link layer.
        const QUICK: u32 = 4;
        let total = self.len + next.len;
        let adjacent =
            (self.tunnel, self.base) == (next.tunnel, next.base) && self.offset + self.len == next.offset;
        let quick = self.base != PayloadBase::LINK && self.len <= QUICK && next.len <= QUICK;
        adjacent && self.equal && next.equal && total <= REGISTER && (total <= QUICK || !quick)
    }
}

/// The load of a header, and the tunnel that it is inside of.
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
    use crate::lang::lower::lower_alone;
    use crate::lang::{Counter, Match, MatchOp, Payload, Statement, TcpFlags};
    use crate::{Family, Port, TableId};

    /// Offset and length of each load of a header.
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
