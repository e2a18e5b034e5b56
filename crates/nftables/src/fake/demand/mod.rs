//! What each kind of expression demands of itself and of its table's family, as the kernel asks when a rule takes it up.
//!
//! The first question is whether there is such an expression at all ([`exists`]), and comes before anything is taken up.

mod action;
mod load;
mod number;

pub(super) use number::PACKETS;

use crate::Family;
use crate::expr::{Data, Expr, Register};
use crate::fake::expression::Frame;
use crate::fake::message::{
    Done, EINVAL, ENOENT, EOPNOTSUPP, EOVERFLOW, EPROTO, ERANGE, Refusal, refusal, refuse,
};

/// What the kernel asks of all expressions of a rule before it takes up the first.
pub(super) fn exists(expr: &Expr, family: Family) -> Done {
    let known = match expr {
        Expr::Unknown(_) => false,
        Expr::Fwd(_) | Expr::Tunnel(_) => family == Family::NETDEV,
        Expr::Dup(_) => [Family::IP, Family::IP6, Family::NETDEV].contains(&family),
        Expr::Masq(_) | Expr::Redir(_) => is_inet(family),
        Expr::Reject(_) => family != Family::ARP,
        Expr::Fib(_) => is_inet(family) || family == Family::NETDEV,
        _ => true,
    };
    if !known {
        return refuse(ENOENT);
    }
    match expr {
        Expr::Cmp(e) if e.op.0 > 5 => refuse(EINVAL),
        Expr::Cmp(e) => bytes(&e.data).map(drop),
        Expr::Objref(e)
            if (e.sreg.is_none() || (e.set.is_none() && e.set_id.is_none()))
                && (e.kind.is_none() || e.name.is_none()) =>
        {
            refuse(EOPNOTSUPP)
        }
        Expr::Fib(e) => load::exists_fib(e, family),
        Expr::Payload(e) => load::exists_payload(e),
        Expr::Exthdr(e) => load::exists_exthdr(e, family),
        Expr::Meta(e) => one_way(e.dreg, e.sreg),
        Expr::Ct(e) => one_way(e.dreg, e.sreg),
        Expr::Numgen(e) if e.mode.0 > 1 => refuse(EINVAL),
        Expr::Hash(e) if e.of.is_some_and(|of| of.0 > 1) => refuse(EOPNOTSUPP),
        Expr::Limit(e) if e.of.is_some_and(|of| of.0 > 1) => refuse(EOPNOTSUPP),
        Expr::Queue(e) if e.number.is_some() == e.sreg.is_some() => refuse(EINVAL),
        _ => Ok(()),
    }
}

/// What the kernel asks as it takes one up that refers to nothing else in the table.
pub(super) fn check(frame: &mut Frame<'_>, family: Family, expr: &Expr) -> Done {
    match expr {
        Expr::Payload(e) => load::payload(frame, e),
        Expr::Meta(e) => load::meta(frame, family, e),
        Expr::Ct(e) => load::ct(frame, family, e),
        Expr::Rt(e) => load::rt(frame, e),
        Expr::Socket(e) => load::socket(frame, family, e),
        Expr::Osf(e) => load::osf(frame, e),
        Expr::Fib(e) => load::fib(frame, e),
        Expr::Xfrm(e) => load::xfrm(frame, family, e),
        Expr::Tunnel(e) => load::tunnel(frame, e),
        Expr::Exthdr(e) => load::exthdr(frame, e),
        Expr::Inner(e) => load::inner(frame, e),
        Expr::Cmp(e) => frame.load(e.sreg, bytes(&e.data)?),
        Expr::Range(e) => number::range(frame, e),
        Expr::Bitwise(e) => number::bitwise(frame, e),
        Expr::Byteorder(e) => number::byteorder(frame, e),
        Expr::Numgen(e) => number::numgen(frame, e),
        Expr::Hash(e) => number::hash(frame, e),
        Expr::Nat(e) => action::nat(frame, family, e),
        Expr::Masq(e) => action::masq(frame, e),
        Expr::Redir(e) => action::redir(frame, e),
        Expr::Reject(e) => action::reject(e),
        Expr::Tproxy(e) => action::tproxy(frame, family, e),
        Expr::Dup(e) => action::dup(frame, family, e),
        Expr::Fwd(e) => action::fwd(frame, e),
        Expr::Queue(e) => action::queue(frame, e),
        Expr::Log(e) => action::log(e),
        _ => object(family, expr),
    }
}

/// What can be an object as well.
pub(super) fn object(family: Family, expr: &Expr) -> Done {
    match expr {
        Expr::Synproxy(e) => action::synproxy(family, e),
        _ => state(expr).and_then(|()| action::connlimit(family, expr)),
    }
}

/// Counters, quotas, limits, which are objects and parts of elements, too.
pub(super) fn state(expr: &Expr) -> Done {
    match expr {
        Expr::Quota(e) if i64::try_from(e.bytes).is_err() => refuse(EOVERFLOW),
        Expr::Quota(e) if e.consumed.is_some_and(|consumed| consumed > e.bytes) => refuse(EINVAL),
        Expr::Quota(e) if e.flags.is_some_and(|flags| flags.bits() > 1) => refuse(EINVAL),
        Expr::Limit(e) => number::limit(e),
        Expr::Connlimit(e) if e.flags.is_some_and(|flags| flags.bits() > 1) => refuse(EOPNOTSUPP),
        _ => Ok(()),
    }
}

/// A constant of one large register at most.
pub(super) fn bytes(data: &Data) -> Result<usize, Refusal> {
    match data.value().map(<[u8]>::len) {
        None | Some(0) => refuse(EINVAL),
        Some(len) if len > MAX_CONSTANT => refuse(EOVERFLOW),
        Some(len) => Ok(len),
    }
}

/// Loads or sets, not both and not neither.
fn one_way(dreg: Option<Register>, sreg: Option<Register>) -> Done {
    if dreg.is_some() == sreg.is_some() { refuse(EINVAL) } else { Ok(()) }
}

/// A number that the kernel keeps in a byte.
fn in_byte(number: u32) -> Result<usize, Refusal> {
    if number > 255 { refuse(ERANGE) } else { Ok(number as usize) }
}

/// Whether its hooks are those of the internet protocols.
pub(super) fn is_inet(family: Family) -> bool {
    [Family::IP, Family::IP6, Family::INET].contains(&family)
}

/// Connections are tracked for these families, and with its module for bridges.
pub(super) fn tracks(family: Family) -> Done {
    if is_inet(family) || family == Family::BRIDGE { Ok(()) } else { Err(refusal(EPROTO)) }
}

/// `sizeof(struct nft_data)`
const MAX_CONSTANT: usize = 16;
/// `IFNAMSIZ`, the names of helpers, and what osf writes.
const NAME: usize = 16;
