//! Checks expressions that load packet data into a register, or change packet data.

use sluicegate_netlink::Errno;

use super::{NAME, in_byte, is_inet, tracks};
use crate::Family;
use crate::expr::{
    ChecksumFlags, ChecksumType, Ct, CtKey, Expr, Exthdr, ExthdrFlags, ExthdrOp, Fib, FibFlags, FibResult,
    Inner, Meta, MetaKey, Osf, OsfFlags, Payload, PayloadBase, Rt, RtKey, Socket, SocketKey, Tunnel,
    TunnelKey, Xfrm, XfrmKey,
};
use crate::fake::expression::RuleContext;
use crate::fake::message::{Done, Refusal, refuse};

pub(super) fn exists_payload(e: &Payload) -> Done {
    if e.base.0 > PayloadBase::INNER.0 {
        return refuse(Errno::EOPNOTSUPP);
    }
    if e.dreg.is_some() == e.sreg.is_some() {
        return refuse(Errno::EINVAL);
    }
    in_byte(e.len).map(drop)
}

pub(super) fn payload(context: &mut RuleContext<'_>, e: &Payload) -> Done {
    let len = in_byte(e.len)?;
    if let Some(dreg) = e.dreg {
        return context.store(dreg, len);
    }
    in_byte(e.csum_offset.unwrap_or(0))?;
    if e.csum_flags.is_some_and(|flags| !(flags - ChecksumFlags::PSEUDO_HEADER).is_empty()) {
        return refuse(Errno::EINVAL);
    }
    match e.csum_type {
        None | Some(ChecksumType::NONE | ChecksumType::INET) => {}
        Some(ChecksumType::SCTP)
            if e.base == PayloadBase::TRANSPORT && e.csum_offset == Some(SCTP_CHECKSUM) => {}
        Some(ChecksumType::SCTP) => return refuse(Errno::EINVAL),
        Some(_) => return refuse(Errno::EOPNOTSUPP),
    }
    context.load_some(e.sreg, len)
}

pub(super) fn meta(context: &mut RuleContext<'_>, family: Family, e: &Meta) -> Done {
    let bridge = [
        MetaKey::IBRNAME,
        MetaKey::OBRNAME,
        MetaKey::IBRPVID,
        MetaKey::IBRVPROTO,
        MetaKey::IBRHWADDR,
        MetaKey::BROUTE,
    ];
    if bridge.contains(&e.key) && family != Family::BRIDGE {
        return refuse(Errno::EOPNOTSUPP);
    }
    let settable = [
        MetaKey::MARK,
        MetaKey::PRIORITY,
        MetaKey::SECMARK,
        MetaKey::PKTTYPE,
        MetaKey::NFTRACE,
        MetaKey::BROUTE,
    ];
    let loadable = e.key.name().is_some() && ![MetaKey::NFTRACE, MetaKey::BROUTE].contains(&e.key);
    if if e.sreg.is_some() { !settable.contains(&e.key) } else { !loadable } {
        return refuse(Errno::EOPNOTSUPP);
    }
    let len = e.key.part().bytes();
    context.load_some(e.sreg, len)?;
    context.store_some(e.dreg, len)
}

pub(super) fn ct(context: &mut RuleContext<'_>, family: Family, e: &Ct) -> Done {
    let len = match e.sreg {
        Some(_) => ct_set(e)?,
        None => ct_get(family, e)?,
    };
    if e.direction.is_some_and(|direction| direction.0 > 1) {
        return refuse(Errno::EINVAL);
    }
    context.load_some(e.sreg, len)?;
    context.store_some(e.dreg, len)?;
    tracks(family)
}

fn ct_set(e: &Ct) -> Result<usize, Refusal> {
    match e.key {
        CtKey::ZONE => Ok(2),
        CtKey::MARK | CtKey::SECMARK | CtKey::EVENT | CtKey::LABEL if e.direction.is_some() => {
            refuse(Errno::EINVAL)
        }
        CtKey::MARK | CtKey::SECMARK | CtKey::EVENT => Ok(4),
        CtKey::LABEL => Ok(16),
        _ => refuse(Errno::EOPNOTSUPP),
    }
}

fn ct_get(family: Family, e: &Ct) -> Result<usize, Refusal> {
    let directed = |len| if e.direction.is_some() { Ok(len) } else { refuse(Errno::EINVAL) };
    let undirected = |len| if e.direction.is_none() { Ok(len) } else { refuse(Errno::EINVAL) };
    match e.key {
        CtKey::DIRECTION => undirected(1),
        CtKey::STATE | CtKey::STATUS | CtKey::MARK | CtKey::SECMARK | CtKey::EXPIRATION | CtKey::ID => {
            undirected(4)
        }
        CtKey::LABEL | CtKey::HELPER => undirected(NAME),
        CtKey::L3PROTO | CtKey::PROTOCOL => Ok(1),
        CtKey::SADDR | CtKey::DADDR => {
            directed(0)?;
            match family {
                Family::IP => Ok(4),
                Family::IP6 | Family::INET => Ok(16),
                _ => refuse(Errno::EAFNOSUPPORT),
            }
        }
        CtKey::SADDR_IP | CtKey::DADDR_IP => directed(4),
        CtKey::SADDR_IP6 | CtKey::DADDR_IP6 => directed(16),
        CtKey::PROTO_SRC | CtKey::PROTO_DST => directed(2),
        CtKey::PACKETS | CtKey::BYTES | CtKey::AVGPKT => Ok(8),
        CtKey::ZONE => Ok(2),
        _ => refuse(Errno::EOPNOTSUPP),
    }
}

pub(super) fn rt(context: &mut RuleContext<'_>, e: &Rt) -> Done {
    let len = match e.key {
        RtKey::CLASSID | RtKey::NEXTHOP_IP => 4,
        RtKey::NEXTHOP_IP6 => 16,
        RtKey::MTU => 2,
        RtKey::IPSEC => 1,
        _ => return refuse(Errno::EOPNOTSUPP),
    };
    context.store(e.dreg, len)
}

pub(super) fn socket(context: &mut RuleContext<'_>, family: Family, e: &Socket) -> Done {
    in_byte(e.level.unwrap_or(0))?;
    if !is_inet(family) {
        return refuse(Errno::EOPNOTSUPP);
    }
    let len = match e.key {
        SocketKey::TRANSPARENT | SocketKey::WILDCARD => 1,
        SocketKey::MARK => 4,
        SocketKey::CGROUPV2 if e.level.is_none() => return refuse(Errno::EINVAL),
        SocketKey::CGROUPV2 => 8,
        _ => return refuse(Errno::EOPNOTSUPP),
    };
    context.store(e.dreg, len)
}

pub(super) fn osf(context: &mut RuleContext<'_>, e: &Osf) -> Done {
    if e.ttl.is_some_and(|ttl| ttl > 2) || e.flags.is_some_and(|flags| flags != OsfFlags::VERSION) {
        return refuse(Errno::EINVAL);
    }
    context.store(e.dreg, NAME)
}

pub(super) fn exists_fib(e: &Fib, family: Family) -> Done {
    if e.flags.bits() & !FIB_FLAGS != 0 {
        return refuse(Errno::EINVAL);
    }
    let known = [FibResult::OIF, FibResult::OIFNAME, FibResult::ADDRTYPE].contains(&e.result);
    if known || ![Family::IP, Family::IP6].contains(&family) { Ok(()) } else { refuse(Errno::EOPNOTSUPP) }
}

pub(super) fn fib(context: &mut RuleContext<'_>, e: &Fib) -> Done {
    let both = |of: FibFlags| e.flags.contains(of);
    let addresses = FibFlags::SADDR | FibFlags::DADDR;
    if both(addresses) || !e.flags.intersects(addresses) || both(FibFlags::IIF | FibFlags::OIF) {
        return refuse(Errno::EINVAL);
    }
    let len = match e.result {
        FibResult::OIF | FibResult::OIFNAME if both(FibFlags::OIF) => return refuse(Errno::EINVAL),
        // `NFTA_FIB_F_PRESENT` loads only whether there is a route: the kernel accepts it with the index of a
        // device, not with its name or the type of an address.
        FibResult::OIFNAME | FibResult::ADDRTYPE if both(FibFlags::PRESENT) => return refuse(Errno::EINVAL),
        FibResult::OIFNAME => NAME,
        FibResult::OIF | FibResult::ADDRTYPE => 4,
        _ => return refuse(Errno::EINVAL),
    };
    context.store(e.dreg, len)
}

pub(super) fn xfrm(context: &mut RuleContext<'_>, family: Family, e: &Xfrm) -> Done {
    if !is_inet(family) {
        return refuse(Errno::EOPNOTSUPP);
    }
    let len = match e.key {
        XfrmKey::REQID | XfrmKey::SPI | XfrmKey::DADDR_IP | XfrmKey::SADDR_IP => 4,
        XfrmKey::DADDR_IP6 | XfrmKey::SADDR_IP6 => 16,
        _ => return refuse(Errno::EINVAL),
    };
    if e.direction > 1 {
        return refuse(Errno::EINVAL);
    }
    // XFRM_MAX_DEPTH
    if e.number.unwrap_or(0) >= 6 {
        return refuse(Errno::ERANGE);
    }
    context.store(e.dreg, len)
}

pub(super) fn tunnel(context: &mut RuleContext<'_>, e: &Tunnel) -> Done {
    let len = match e.key {
        TunnelKey::PATH => 1,
        TunnelKey::ID => 4,
        _ => return refuse(Errno::EOPNOTSUPP),
    };
    // NFT_TUNNEL_MODE_MAX
    if e.mode.unwrap_or(0) > 2 { refuse(Errno::EOPNOTSUPP) } else { context.store(e.dreg, len) }
}

pub(super) fn exists_exthdr(e: &Exthdr, family: Family) -> Done {
    let Some(op) = e.op else { return Ok(()) };
    let loads = e.dreg.is_some();
    let good = match op {
        _ if loads && e.sreg.is_some() => false,
        ExthdrOp::TCPOPT => true,
        ExthdrOp::IPV4 => loads && family != Family::IP6,
        ExthdrOp::IPV6 | ExthdrOp::SCTP | ExthdrOp::DCCP => loads,
        _ => false,
    };
    if good { Ok(()) } else { refuse(Errno::EOPNOTSUPP) }
}

pub(super) fn exthdr(context: &mut RuleContext<'_>, e: &Exthdr) -> Done {
    let Some(dreg) = e.dreg else { return exthdr_change(context, e) };
    let (Some(offset), Some(len)) = (e.offset, e.len) else { return refuse(Errno::EINVAL) };
    in_byte(offset)?;
    let len = in_byte(len)?;
    let flags = e.flags.unwrap_or(ExthdrFlags::empty());
    in_byte(flags.bits())?;
    let present = flags.contains(ExthdrFlags::PRESENT);
    if !(flags - ExthdrFlags::PRESENT).is_empty() || (present && len != 1) {
        return refuse(Errno::EINVAL);
    }
    match e.op {
        Some(ExthdrOp::IPV4) if !IP_OPTIONS.contains(&e.kind) => return refuse(Errno::EOPNOTSUPP),
        Some(ExthdrOp::DCCP) if !present => return refuse(Errno::EOPNOTSUPP),
        _ => {}
    }
    context.store(dreg, len)
}

/// Checks an expression that changes or removes a TCP option.
fn exthdr_change(context: &RuleContext<'_>, e: &Exthdr) -> Done {
    let Some(sreg) = e.sreg else {
        let removes = e.op.is_some() && e.flags.is_none() && e.offset.is_none() && e.len.is_none();
        return if removes { Ok(()) } else { refuse(Errno::EINVAL) };
    };
    let (Some(offset), Some(len), None) = (e.offset, e.len, e.flags) else { return refuse(Errno::EINVAL) };
    let (offset, len) = (in_byte(offset)?, in_byte(len)?);
    if offset < 2 || !matches!(len, 2 | 4) { refuse(Errno::EOPNOTSUPP) } else { context.load(sreg, len) }
}

pub(super) fn inner(context: &mut RuleContext<'_>, e: &Inner) -> Done {
    // NFT_INNER_MASK, NFT_INNER_HDRSIZE
    let flags = e.flags.bits();
    let sized = flags & 1 != 0;
    if flags & !15 != 0 || e.number != 0 || (sized && !(1..=64).contains(&e.header_size)) {
        return refuse(Errno::EOPNOTSUPP);
    }
    match e.expr.as_ref() {
        Expr::Payload(inner) => {
            let known = inner.base.0 <= PayloadBase::TRANSPORT.0 || inner.base == PayloadBase::TUNNEL;
            let Some(dreg) = inner.dreg.filter(|_| known) else {
                return refuse(if known { Errno::EINVAL } else { Errno::EOPNOTSUPP });
            };
            context.store(dreg, in_byte(inner.len)?)
        }
        Expr::Meta(inner) => {
            let len = match inner.key {
                MetaKey::PROTOCOL => 2,
                MetaKey::L4PROTO => 1,
                _ => return refuse(Errno::EOPNOTSUPP),
            };
            inner.dreg.map_or(refuse(Errno::EINVAL), |dreg| context.store(dreg, len))
        }
        Expr::Unknown(_) => refuse(Errno::ENOENT),
        _ => refuse(Errno::EOPNOTSUPP),
    }
}

/// `offsetof(struct sctphdr, checksum)`
const SCTP_CHECKSUM: u32 = 8;
/// `NFTA_FIB_F_ALL`
const FIB_FLAGS: u32 = 63;
/// `IPOPT_RR`, `IPOPT_LSRR`, `IPOPT_SSRR`, `IPOPT_RA`
const IP_OPTIONS: [u8; 4] = [7, 131, 137, 148];
