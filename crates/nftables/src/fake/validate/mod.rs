//! The checks that the kernel makes for each kind of expression when a rule is added: of its attributes, and
//! of the family of its table.
//!
//! Whether the expression exists at all ([`exists`]) is checked first, for all expressions of a rule.

mod action;
mod load;
mod number;

use sluicegate_netlink::Errno;

use crate::Family;
use crate::expr::{Data, Expr, Register};
use crate::fake::expression::RuleContext;
use crate::fake::message::{Done, Refusal, refusal, refuse};

/// Checks what the kernel checks of all expressions of a rule before it initialises the first.
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
        return refuse(Errno::ENOENT);
    }
    match expr {
        Expr::Cmp(e) if e.op.0 > 5 => refuse(Errno::EINVAL),
        Expr::Cmp(e) => bytes(&e.data).map(drop),
        Expr::Objref(e)
            if (e.sreg.is_none() || (e.set.is_none() && e.set_id.is_none()))
                && (e.kind.is_none() || e.name.is_none()) =>
        {
            refuse(Errno::EOPNOTSUPP)
        }
        Expr::Fib(e) => load::exists_fib(e, family),
        Expr::Payload(e) => load::exists_payload(e),
        Expr::Exthdr(e) => load::exists_exthdr(e, family),
        Expr::Meta(e) => loads_or_sets(e.dreg, e.sreg),
        Expr::Ct(e) => loads_or_sets(e.dreg, e.sreg),
        Expr::Numgen(e) if e.mode.0 > 1 => refuse(Errno::EINVAL),
        Expr::Hash(e) if e.of.is_some_and(|of| of.0 > 1) => refuse(Errno::EOPNOTSUPP),
        Expr::Limit(e) if e.of.is_some_and(|of| of.0 > 1) => refuse(Errno::EOPNOTSUPP),
        Expr::Queue(e) if e.number.is_some() == e.sreg.is_some() => refuse(Errno::EINVAL),
        _ => Ok(()),
    }
}

/// Checks what the kernel checks when it initialises an expression that refers to nothing else in the table.
pub(super) fn check(context: &mut RuleContext<'_>, family: Family, expr: &Expr) -> Done {
    match expr {
        Expr::Payload(e) => load::payload(context, e),
        Expr::Meta(e) => load::meta(context, family, e),
        Expr::Ct(e) => load::ct(context, family, e),
        Expr::Rt(e) => load::rt(context, e),
        Expr::Socket(e) => load::socket(context, family, e),
        Expr::Osf(e) => load::osf(context, e),
        Expr::Fib(e) => load::fib(context, e),
        Expr::Xfrm(e) => load::xfrm(context, family, e),
        Expr::Tunnel(e) => load::tunnel(context, e),
        Expr::Exthdr(e) => load::exthdr(context, e),
        Expr::Inner(e) => load::inner(context, e),
        Expr::Cmp(e) => context.load(e.sreg, bytes(&e.data)?),
        Expr::Range(e) => number::range(context, e),
        Expr::Bitwise(e) => number::bitwise(context, e),
        Expr::Byteorder(e) => number::byteorder(context, e),
        Expr::Numgen(e) => number::numgen(context, e),
        Expr::Hash(e) => number::hash(context, e),
        Expr::Nat(e) => action::nat(context, family, e),
        Expr::Masq(e) => action::masq(context, e),
        Expr::Redir(e) => action::redir(context, e),
        Expr::Reject(e) => action::reject(e),
        Expr::Tproxy(e) => action::tproxy(context, family, e),
        Expr::Dup(e) => action::dup(context, family, e),
        Expr::Fwd(e) => action::fwd(context, e),
        Expr::Queue(e) => action::queue(context, e),
        Expr::Log(e) => action::log(e),
        _ => object(family, expr),
    }
}

/// Checks an expression that can also be a stateful object.
pub(super) fn object(family: Family, expr: &Expr) -> Done {
    match expr {
        Expr::Synproxy(e) => action::synproxy(family, e),
        _ => state(expr).and_then(|()| action::connlimit(family, expr)),
    }
}

/// Checks a counter, quota or limit: an expression that can also be an object, or be carried by an element.
pub(super) fn state(expr: &Expr) -> Done {
    match expr {
        Expr::Quota(e) if i64::try_from(e.bytes).is_err() => refuse(Errno::EOVERFLOW),
        Expr::Quota(e) if e.consumed.is_some_and(|consumed| consumed > e.bytes) => refuse(Errno::EINVAL),
        Expr::Quota(e) if e.flags.is_some_and(|flags| flags.bits() > 1) => refuse(Errno::EINVAL),
        Expr::Limit(e) => number::limit(e),
        Expr::Connlimit(e) if e.flags.is_some_and(|flags| flags.bits() > 1) => refuse(Errno::EOPNOTSUPP),
        _ => Ok(()),
    }
}

/// Returns the length of a constant, which has to fit one 16-byte register.
pub(super) fn bytes(data: &Data) -> Result<usize, Refusal> {
    match data.value().map(<[u8]>::len) {
        None | Some(0) => refuse(Errno::EINVAL),
        Some(len) if len > MAX_CONSTANT => refuse(Errno::EOVERFLOW),
        Some(len) => Ok(len),
    }
}

/// Checks that an expression either loads or sets.
fn loads_or_sets(dreg: Option<Register>, sreg: Option<Register>) -> Done {
    if dreg.is_some() == sreg.is_some() { refuse(Errno::EINVAL) } else { Ok(()) }
}

/// Returns a number that the kernel stores in a byte.
fn in_byte(number: u32) -> Result<usize, Refusal> {
    if number > 255 { refuse(Errno::ERANGE) } else { Ok(number as usize) }
}

/// Returns whether the hooks of the family are those of the internet protocols.
pub(super) fn is_inet(family: Family) -> bool {
    [Family::IP, Family::IP6, Family::INET].contains(&family)
}

/// Checks that connections are tracked in the family; for bridges a module does that.
pub(super) fn tracks(family: Family) -> Done {
    if is_inet(family) || family == Family::BRIDGE { Ok(()) } else { Err(refusal(Errno::EPROTO)) }
}

/// `sizeof(struct nft_data)`
const MAX_CONSTANT: usize = 16;
/// `IFNAMSIZ`; also the maximum length of a helper's name, and of the name that osf loads.
const NAME: usize = 16;
