//! What does something to the packet: addresses, copies, refusals, logs.

use super::tracks;
use crate::Family;
use crate::expr::{
    Dup, Expr, Fwd, Log, LogFlags, Masq, Nat, NatFlags, Queue, Redir, Register, Reject, RejectType, Synproxy,
    SynproxyFlags, Tproxy,
};
use crate::fake::expression::Frame;
use crate::fake::message::{Done, EAFNOSUPPORT, EINVAL, EOPNOTSUPP, ERANGE, refuse};

pub(super) fn nat(frame: &Frame<'_>, family: Family, e: &Nat) -> Done {
    nat_flags(e.flags)?;
    if e.addr_min.is_none() && e.proto_min.is_none() {
        return refuse(EINVAL);
    }
    let of = protocol(e.family);
    if e.of.0 > 1 || (family != Family::INET && of != Some(family)) {
        return refuse(EOPNOTSUPP);
    }
    match (address(of), e.addr_min) {
        (None, Some(_)) => return refuse(EAFNOSUPPORT),
        (Some(bytes), Some(addr)) => {
            frame.load(addr, bytes)?;
            frame.load_some(e.addr_max, bytes)?;
        }
        (_, None) => {}
    }
    ports(frame, e.proto_min, e.proto_max)?;
    tracks(of.unwrap_or(Family::UNSPEC))
}

pub(super) fn masq(frame: &Frame<'_>, e: &Masq) -> Done {
    nat_flags(e.flags)?;
    ports(frame, e.proto_min, e.proto_max)
}

pub(super) fn redir(frame: &Frame<'_>, e: &Redir) -> Done {
    nat_flags(e.flags)?;
    ports(frame, e.proto_min, e.proto_max)
}

fn nat_flags(flags: Option<NatFlags>) -> Done {
    // NF_NAT_RANGE_MASK
    if flags.is_some_and(|flags| flags.bits() & !0x7f != 0) { refuse(EINVAL) } else { Ok(()) }
}

/// The highest counts only where there is a lowest.
fn ports(frame: &Frame<'_>, min: Option<Register>, max: Option<Register>) -> Done {
    let Some(min) = min else { return Ok(()) };
    frame.load(min, 2)?;
    frame.load_some(max, 2)
}

pub(super) fn reject(e: &Reject) -> Done {
    let good = match (e.of, e.code) {
        (RejectType::TCP_RST, _) | (RejectType::ICMP_UNREACH, Some(_)) => true,
        // NFT_REJECT_ICMPX_MAX
        (RejectType::ICMPX_UNREACH, Some(code)) => code <= 3,
        _ => false,
    };
    if good { Ok(()) } else { refuse(EINVAL) }
}

pub(super) fn tproxy(frame: &Frame<'_>, family: Family, e: &Tproxy) -> Done {
    if e.addr.is_none() && e.port.is_none() {
        return refuse(EINVAL);
    }
    let of = protocol(e.family);
    match family {
        Family::INET => {}
        Family::IP | Family::IP6 if of == Some(family) => {}
        Family::IP | Family::IP6 => return refuse(EINVAL),
        _ => return refuse(EOPNOTSUPP),
    }
    let unspecified = of == Some(Family::UNSPEC);
    if unspecified && e.addr.is_some() {
        return refuse(EINVAL);
    }
    let bytes = match address(of) {
        Some(bytes) => bytes,
        None if unspecified => 0,
        None => return refuse(EOPNOTSUPP),
    };
    e.addr.map_or(Ok(()), |addr| frame.load(addr, bytes))?;
    frame.load_some(e.port, 2)
}

pub(super) fn dup(frame: &Frame<'_>, family: Family, e: &Dup) -> Done {
    if family == Family::NETDEV {
        return e.device.map_or(refuse(EINVAL), |device| frame.load(device, 4));
    }
    let bytes = if family == Family::IP6 { 16 } else { 4 };
    e.addr.map_or(refuse(EINVAL), |addr| frame.load(addr, bytes))?;
    frame.load_some(e.device, 4)
}

pub(super) fn fwd(frame: &Frame<'_>, e: &Fwd) -> Done {
    let Some(addr) = e.addr else { return frame.load(e.device, 4) };
    let Some(family) = e.family else { return refuse(EINVAL) };
    let Some(bytes) = address(protocol(family)) else { return refuse(EOPNOTSUPP) };
    frame.load(e.device, 4)?;
    frame.load(addr, bytes)
}

pub(super) fn queue(frame: &Frame<'_>, e: &Queue) -> Done {
    if let Some(number) = e.number {
        let total = e.total.unwrap_or(1);
        if total == 0 {
            return refuse(EINVAL);
        }
        if number.checked_add(total - 1).is_none() {
            return refuse(ERANGE);
        }
    }
    frame.load_some(e.sreg, 2)?;
    if e.flags.is_some_and(|flags| flags.bits() & !3 != 0) { refuse(EINVAL) } else { Ok(()) }
}

pub(super) fn synproxy(family: Family, e: &Synproxy) -> Done {
    let known =
        SynproxyFlags::MSS | SynproxyFlags::WSCALE | SynproxyFlags::SACK_PERM | SynproxyFlags::TIMESTAMP;
    if e.flags.is_some_and(|flags| !(flags - known).is_empty()) {
        return refuse(EOPNOTSUPP);
    }
    tracks(family)
}

pub(super) fn log(e: &Log) -> Done {
    if e.prefix.as_ref().is_some_and(|prefix| prefix.len() > MAX_PREFIX) {
        return refuse(ERANGE);
    }
    // NF_LOG_MASK
    let known = LogFlags::from_bits_retain(0x2f);
    let wrong = match e.group {
        Some(_) => e.level.is_some() || e.flags.is_some(),
        // NFT_LOGLEVEL_AUDIT
        None => e.level.is_some_and(|level| level > 8) || e.flags.is_some_and(|f| !(f - known).is_empty()),
    };
    if wrong { refuse(EINVAL) } else { Ok(()) }
}

pub(super) fn connlimit(family: Family, expr: &Expr) -> Done {
    if let Expr::Connlimit(_) = expr { tracks(family) } else { Ok(()) }
}

/// `NFPROTO_*`
fn protocol(number: u32) -> Option<Family> {
    u8::try_from(number).ok().map(Family)
}

/// Bytes of an address.
fn address(family: Option<Family>) -> Option<usize> {
    match family {
        Some(Family::IP) => Some(4),
        Some(Family::IP6) => Some(16),
        _ => None,
    }
}

/// `NF_LOG_PREFIXLEN` without the NUL.
const MAX_PREFIX: usize = 127;
