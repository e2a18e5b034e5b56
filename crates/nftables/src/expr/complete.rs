//! The attributes that the kernel adds to an expression: a listing has more than what was sent.

#[cfg(feature = "fake")]
use std::borrow::Cow;

use crate::Family;
use crate::expr::*;

/// Fills in the attributes that the kernel lists although they were not sent.
pub(crate) fn complete(expr: &mut Expr, family: Family) {
    register::number(expr);
    match expr {
        Expr::Counter(e) => {
            default(&mut e.bytes);
            default(&mut e.packets);
        }
        Expr::Quota(e) => {
            default(&mut e.flags);
            default(&mut e.consumed);
        }
        Expr::Last(e) => {
            default(&mut e.set);
            default(&mut e.msecs);
        }
        Expr::Limit(e) => {
            let of = *e.of.get_or_insert(LimitType::PACKETS);
            let burst = if of == LimitType::PACKETS { PACKETS } else { 0 };
            e.burst = e.burst.filter(|burst| *burst > 0).or(Some(burst));
            default(&mut e.flags);
        }
        Expr::Connlimit(e) => e.flags = e.flags.filter(|flags| !flags.is_empty()),
        // The kernel shows one queue where no count was given, and flags even where none is set
        // (`nft_queue_dump`).
        Expr::Queue(e) => {
            if e.sreg.is_none() {
                e.total = e.total.or(Some(1));
            }
            default(&mut e.flags);
        }
        Expr::Log(e) if e.group.is_none() => {
            e.level = e.level.or(Some(WARNING));
            e.flags = e.flags.filter(|flags| !flags.is_empty());
            (e.snaplen, e.queue_threshold) = (None, None);
        }
        Expr::Log(e) => e.queue_threshold = e.queue_threshold.filter(|threshold| *threshold > 0),
        Expr::Payload(e) if e.sreg.is_some() => {
            e.csum_type = e.csum_type.or(Some(ChecksumType::NONE));
            default(&mut e.csum_offset);
            default(&mut e.csum_flags);
        }
        Expr::Reject(e) if e.of == RejectType::TCP_RST => e.code = None,
        Expr::Bitwise(e) => e.op = e.op.or(Some(BitwiseOp::BOOL)),
        Expr::Exthdr(e) => {
            default(&mut e.offset);
            default(&mut e.len);
            default(&mut e.flags);
            e.op = e.op.or(Some(ExthdrOp::IPV6));
        }
        // These two keys belong to the connection, not to one of its directions.
        Expr::Ct(e) if [CtKey::L3PROTO, CtKey::PROTOCOL].contains(&e.key) => e.direction = None,
        Expr::Hash(e) => {
            let of = *e.of.get_or_insert(HashType::JENKINS);
            if of == HashType::SYMMETRIC {
                (e.sreg, e.len, e.seed) = (None, None, None);
            }
            e.offset = e.offset.filter(|offset| *offset > 0);
        }
        Expr::Numgen(e) => default(&mut e.offset),
        Expr::Xfrm(e) => default(&mut e.number),
        Expr::Tunnel(e) => default(&mut e.mode),
        Expr::Synproxy(e) => {
            default(&mut e.mss);
            default(&mut e.wscale);
            default(&mut e.flags);
        }
        Expr::Osf(e) => {
            default(&mut e.ttl);
            default(&mut e.flags);
        }
        Expr::Nat(e) => nat(e),
        Expr::Masq(e) => e.proto_max = e.proto_min.and(e.proto_max.or(e.proto_min)),
        Expr::Redir(e) => {
            e.proto_max = e.proto_min.and(e.proto_max.or(e.proto_min));
            let known = e.proto_min.map_or(NatFlags::empty(), |_| NatFlags::PROTO_SPECIFIED);
            e.flags = some(e.flags.unwrap_or(known));
        }
        Expr::Socket(e) if e.key != SocketKey::CGROUPV2 => e.level = None,
        Expr::Dup(e) if family == Family::NETDEV => e.addr = None,
        Expr::Fwd(e) if e.addr.is_none() => e.family = None,
        Expr::Dynset(e) => {
            e.expr.as_deref_mut().into_iter().chain(&mut e.exprs).for_each(|expr| complete(expr, family));
        }
        _ => {}
    }
}

/// Returns an expression as the kernel lists it: a depleted quota has a flag, and its counter stops at the
/// limit.
#[cfg(feature = "fake")]
pub(crate) fn as_listed(expr: &Expr) -> Cow<'_, Expr> {
    let is_used_up = |expr: &Expr| {
        let Expr::Quota(e) = expr else { return false };
        e.consumed.is_some_and(|consumed| consumed >= e.bytes)
    };
    let end = |expr: &mut Expr| match expr {
        Expr::Quota(e) if e.consumed.is_some_and(|consumed| consumed >= e.bytes) => {
            e.consumed = Some(e.bytes);
            e.flags = Some(e.flags.unwrap_or_default() | DEPLETED);
        }
        _ => {}
    };
    let mut changed = Cow::Borrowed(expr);
    match expr {
        Expr::Dynset(e) if e.expr.as_deref().into_iter().chain(&e.exprs).any(is_used_up) => {
            if let Expr::Dynset(e) = changed.to_mut() {
                e.expr.as_deref_mut().into_iter().chain(&mut e.exprs).for_each(end);
            }
        }
        expr if is_used_up(expr) => end(changed.to_mut()),
        _ => {}
    }
    changed
}

fn nat(e: &mut Nat) {
    e.addr_max = e.addr_max.or(e.addr_min);
    e.proto_max = e.proto_max.or(e.proto_min);
    let address = e.addr_min.map_or(NatFlags::empty(), |_| NatFlags::MAP_IPS);
    let port = e.proto_min.map_or(NatFlags::empty(), |_| NatFlags::PROTO_SPECIFIED);
    e.flags = some(e.flags.unwrap_or_default() | address | port);
}

/// Returns the flags, or `None` if none is set: the kernel lists no empty flags.
fn some(flags: NatFlags) -> Option<NatFlags> {
    Some(flags).filter(|flags| !flags.is_empty())
}

fn default<T: Default>(value: &mut Option<T>) {
    value.get_or_insert_default();
}

/// `NFT_LIMIT_PKT_BURST_DEFAULT`
pub(crate) const PACKETS: u32 = 5;
/// `NFT_LOGLEVEL_WARNING`
const WARNING: u32 = 4;
/// `NFT_QUOTA_F_DEPLETED`
#[cfg(feature = "fake")]
const DEPLETED: Invert = Invert::from_bits_retain(2);
