//! Checks expressions that act on the packet: translations, copies, rejections, logs.

use sluicegate_netlink::Errno;

use super::tracks;
use crate::Family;
use crate::expr::{
    Dup, Expr, Fwd, Log, LogFlags, Masq, Nat, NatFlags, Queue, Redir, Register, Reject, RejectType, Synproxy,
    SynproxyFlags, Tproxy,
};
use crate::fake::expression::RuleContext;
use crate::fake::message::{Done, refuse};

pub(super) fn nat(context: &RuleContext<'_>, family: Family, e: &Nat) -> Done {
    nat_flags(e.flags)?;
    if e.addr_min.is_none() && e.proto_min.is_none() {
        return refuse(Errno::EINVAL);
    }
    let of = protocol(e.family);
    if e.of.0 > 1 || (family != Family::INET && of != Some(family)) {
        return refuse(Errno::EOPNOTSUPP);
    }
    match (address(of), e.addr_min) {
        (None, Some(_)) => return refuse(Errno::EAFNOSUPPORT),
        (Some(bytes), Some(addr)) => {
            context.load(addr, bytes)?;
            context.load_some(e.addr_max, bytes)?;
        }
        (_, None) => {}
    }
    ports(context, e.proto_min, e.proto_max)?;
    tracks(of.unwrap_or(Family::UNSPEC))
}

pub(super) fn masq(context: &RuleContext<'_>, e: &Masq) -> Done {
    nat_flags(e.flags)?;
    ports(context, e.proto_min, e.proto_max)
}

pub(super) fn redir(context: &RuleContext<'_>, e: &Redir) -> Done {
    nat_flags(e.flags)?;
    ports(context, e.proto_min, e.proto_max)
}

fn nat_flags(flags: Option<NatFlags>) -> Done {
    // NF_NAT_RANGE_MASK
    if flags.is_some_and(|flags| flags.bits() & !0x7f != 0) { refuse(Errno::EINVAL) } else { Ok(()) }
}

/// Checks the registers of ports. The kernel reads the highest only if there is a lowest.
fn ports(context: &RuleContext<'_>, min: Option<Register>, max: Option<Register>) -> Done {
    let Some(min) = min else { return Ok(()) };
    context.load(min, 2)?;
    context.load_some(max, 2)
}

pub(super) fn reject(e: &Reject) -> Done {
    let good = match (e.of, e.code) {
        (RejectType::TCP_RST, _) | (RejectType::ICMP_UNREACH, Some(_)) => true,
        // NFT_REJECT_ICMPX_MAX
        (RejectType::ICMPX_UNREACH, Some(code)) => code <= 3,
        _ => false,
    };
    if good { Ok(()) } else { refuse(Errno::EINVAL) }
}

pub(super) fn tproxy(context: &RuleContext<'_>, family: Family, e: &Tproxy) -> Done {
    if e.addr.is_none() && e.port.is_none() {
        return refuse(Errno::EINVAL);
    }
    let of = protocol(e.family);
    match family {
        Family::INET => {}
        Family::IP | Family::IP6 if of == Some(family) => {}
        Family::IP | Family::IP6 => return refuse(Errno::EINVAL),
        _ => return refuse(Errno::EOPNOTSUPP),
    }
    let unspecified = of == Some(Family::UNSPEC);
    if unspecified && e.addr.is_some() {
        return refuse(Errno::EINVAL);
    }
    let bytes = match address(of) {
        Some(bytes) => bytes,
        None if unspecified => 0,
        None => return refuse(Errno::EOPNOTSUPP),
    };
    e.addr.map_or(Ok(()), |addr| context.load(addr, bytes))?;
    context.load_some(e.port, 2)
}

pub(super) fn dup(context: &RuleContext<'_>, family: Family, e: &Dup) -> Done {
    if family == Family::NETDEV {
        return e.device.map_or(refuse(Errno::EINVAL), |device| context.load(device, 4));
    }
    let bytes = if family == Family::IP6 { 16 } else { 4 };
    e.addr.map_or(refuse(Errno::EINVAL), |addr| context.load(addr, bytes))?;
    context.load_some(e.device, 4)
}

pub(super) fn fwd(context: &RuleContext<'_>, e: &Fwd) -> Done {
    let Some(addr) = e.addr else { return context.load(e.device, 4) };
    let Some(family) = e.family else { return refuse(Errno::EINVAL) };
    let Some(bytes) = address(protocol(family)) else { return refuse(Errno::EOPNOTSUPP) };
    context.load(e.device, 4)?;
    context.load(addr, bytes)
}

pub(super) fn queue(context: &RuleContext<'_>, e: &Queue) -> Done {
    if let Some(number) = e.number {
        let total = e.total.unwrap_or(1);
        if total == 0 {
            return refuse(Errno::EINVAL);
        }
        if number.checked_add(total - 1).is_none() {
            return refuse(Errno::ERANGE);
        }
    }
    context.load_some(e.sreg, 2)?;
    if e.flags.is_some_and(|flags| flags.bits() & !3 != 0) { refuse(Errno::EINVAL) } else { Ok(()) }
}

pub(super) fn synproxy(family: Family, e: &Synproxy) -> Done {
    let known =
        SynproxyFlags::MSS | SynproxyFlags::WSCALE | SynproxyFlags::SACK_PERM | SynproxyFlags::TIMESTAMP;
    if e.flags.is_some_and(|flags| !(flags - known).is_empty()) {
        return refuse(Errno::EOPNOTSUPP);
    }
    tracks(family)
}

pub(super) fn log(e: &Log) -> Done {
    if e.prefix.as_ref().is_some_and(|prefix| prefix.len() > MAX_PREFIX) {
        return refuse(Errno::ERANGE);
    }
    // NF_LOG_MASK
    let known = LogFlags::from_bits_retain(0x2f);
    let wrong = match e.group {
        Some(_) => e.level.is_some() || e.flags.is_some(),
        // NFT_LOGLEVEL_AUDIT
        None => e.level.is_some_and(|level| level > 8) || e.flags.is_some_and(|f| !(f - known).is_empty()),
    };
    if wrong { refuse(Errno::EINVAL) } else { Ok(()) }
}

pub(super) fn connlimit(family: Family, expr: &Expr) -> Done {
    if let Expr::Connlimit(_) = expr { tracks(family) } else { Ok(()) }
}

/// Converts an `NFPROTO_*` number into a family.
fn protocol(number: u32) -> Option<Family> {
    u8::try_from(number).ok().map(Family)
}

/// Returns the length of an address in bytes.
fn address(family: Option<Family>) -> Option<usize> {
    match family {
        Some(Family::IP) => Some(4),
        Some(Family::IP6) => Some(16),
        _ => None,
    }
}

/// `NF_LOG_PREFIXLEN` without the NUL.
const MAX_PREFIX: usize = 127;
