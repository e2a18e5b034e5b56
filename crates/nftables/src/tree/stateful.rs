//! Statements that keep state, as the expressions of the kernel and back: rules, elements and sets have them.

use std::time::Duration;

use crate::expr::{self, Expr, Invert, LimitType, SynproxyFlags};
use crate::tree::{Connlimit, Counter, Last, Limit, Quota, Statement, Synproxy, TimeUnit};

/// Lowers a stateful statement of a rule or an element; `None` for other statements.
pub(crate) fn stateful(statement: &Statement) -> Option<Expr> {
    // The kernel lists flags even if they are empty, so nft always sends them.
    let over = |over| Some(if over { Invert::OVER } else { Invert::empty() });
    Some(match statement {
        Statement::Counter(c) => expr::Counter { bytes: Some(c.bytes), packets: Some(c.packets) }.into(),
        Statement::Quota(q) => {
            expr::Quota { bytes: q.bytes, flags: over(q.over), consumed: Some(q.used) }.into()
        }
        Statement::Limit(l) => expr::Limit {
            rate: l.rate,
            unit: l.per.seconds(),
            // nft sends its default burst explicitly.
            burst: Some(l.burst.unwrap_or(if l.bytes { 0 } else { DEFAULT_BURST })),
            of: Some(if l.bytes { LimitType::BYTES } else { LimitType::PACKETS }),
            flags: over(l.over),
        }
        .into(),
        Statement::Last(last) => {
            let msecs = last.used.map(|used| u64::try_from(used.as_millis()).unwrap_or(u64::MAX));
            expr::Last { set: msecs.map(|_| 1), msecs }.into()
        }
        Statement::Connlimit(c) => expr::Connlimit { count: c.count, flags: over(c.over) }.into(),
        _ => return None,
    })
}

pub(crate) fn synproxy_expr(synproxy: Synproxy) -> expr::Synproxy {
    let mut flags = SynproxyFlags::empty();
    flags.set(SynproxyFlags::MSS, synproxy.mss.is_some());
    flags.set(SynproxyFlags::WSCALE, synproxy.wscale.is_some());
    flags.set(SynproxyFlags::TIMESTAMP, synproxy.timestamp);
    flags.set(SynproxyFlags::SACK_PERM, synproxy.sack_perm);
    expr::Synproxy { mss: synproxy.mss, wscale: synproxy.wscale, flags: Some(flags) }
}

/// Raises the state of a rule or an element.
pub(crate) fn state(expr: &Expr) -> Option<Statement> {
    let over = |flags: Option<Invert>| flags.is_some_and(|flags| flags.contains(Invert::OVER));
    Some(match expr {
        Expr::Counter(c) => Counter { packets: c.packets.unwrap_or(0), bytes: c.bytes.unwrap_or(0) }.into(),
        Expr::Quota(q) => Quota { bytes: q.bytes, used: q.consumed.unwrap_or(0), over: over(q.flags) }.into(),
        Expr::Limit(l) => {
            let units = [TimeUnit::Second, TimeUnit::Minute, TimeUnit::Hour, TimeUnit::Day, TimeUnit::Week];
            let per = units.into_iter().find(|unit| unit.seconds() == l.unit)?;
            let bytes = l.of == Some(LimitType::BYTES);
            // nft lists a burst only if it differs from its default.
            let default = if bytes { 0 } else { 5 };
            let burst = l.burst.filter(|burst| *burst != default);
            Limit { rate: l.rate, per, burst, bytes, over: over(l.flags) }.into()
        }
        Expr::Last(l) => {
            // `NFTA_LAST_SET` tells whether there has been a match; without one the time has no meaning.
            let msecs = l.msecs.filter(|_| l.set.is_some_and(|set| set != 0));
            Last { used: msecs.map(Duration::from_millis) }.into()
        }
        Expr::Connlimit(c) => Connlimit { count: c.count, over: over(c.flags) }.into(),
        _ => return None,
    })
}

pub(crate) fn synproxy(s: &expr::Synproxy) -> Synproxy {
    let flags = s.flags.unwrap_or_default();
    Synproxy {
        // The kernel lists the numbers even if their options are not set.
        mss: s.mss.filter(|_| flags.contains(SynproxyFlags::MSS)),
        wscale: s.wscale.filter(|_| flags.contains(SynproxyFlags::WSCALE)),
        timestamp: flags.contains(SynproxyFlags::TIMESTAMP),
        sack_perm: flags.contains(SynproxyFlags::SACK_PERM),
    }
}

/// The burst of packets that nft uses if a limit has none.
const DEFAULT_BURST: u32 = 5;
