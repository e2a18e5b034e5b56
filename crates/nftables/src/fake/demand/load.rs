//! What loads something of the packet into a register, or changes it there.

use super::{NAME, in_byte, is_inet, tracks};
use crate::Family;
use crate::expr::{
    ChecksumFlags, ChecksumType, Ct, CtKey, Expr, Exthdr, ExthdrFlags, ExthdrOp, Fib, FibFlags, FibResult,
    Inner, Meta, MetaKey, Osf, OsfFlags, Payload, PayloadBase, Rt, RtKey, Socket, SocketKey, Tunnel,
    TunnelKey, Xfrm, XfrmKey,
};
use crate::fake::expression::Frame;
use crate::fake::message::{Done, EAFNOSUPPORT, EINVAL, ENOENT, EOPNOTSUPP, ERANGE, Refusal, refuse};

pub(super) fn exists_payload(e: &Payload) -> Done {
    if e.base.0 > PayloadBase::INNER.0 {
        return refuse(EOPNOTSUPP);
    }
    if e.dreg.is_some() == e.sreg.is_some() {
        return refuse(EINVAL);
    }
    in_byte(e.len).map(drop)
}

pub(super) fn payload(frame: &mut Frame<'_>, e: &Payload) -> Done {
    let len = in_byte(e.len)?;
    if let Some(dreg) = e.dreg {
        return frame.store(dreg, len);
    }
    in_byte(e.csum_offset.unwrap_or(0))?;
    if e.csum_flags.is_some_and(|flags| !(flags - ChecksumFlags::PSEUDO_HEADER).is_empty()) {
        return refuse(EINVAL);
    }
    match e.csum_type {
        None | Some(ChecksumType::NONE | ChecksumType::INET) => {}
        Some(ChecksumType::SCTP)
            if e.base == PayloadBase::TRANSPORT && e.csum_offset == Some(SCTP_CHECKSUM) => {}
        Some(ChecksumType::SCTP) => return refuse(EINVAL),
        Some(_) => return refuse(EOPNOTSUPP),
    }
    frame.load_some(e.sreg, len)
}

pub(super) fn meta(frame: &mut Frame<'_>, family: Family, e: &Meta) -> Done {
    let bridge = [
        MetaKey::IBRNAME,
        MetaKey::OBRNAME,
        MetaKey::IBRPVID,
        MetaKey::IBRVPROTO,
        MetaKey::IBRHWADDR,
        MetaKey::BROUTE,
    ];
    if bridge.contains(&e.key) && family != Family::BRIDGE {
        return refuse(EOPNOTSUPP);
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
        return refuse(EOPNOTSUPP);
    }
    let len = e.key.part().bytes();
    frame.load_some(e.sreg, len)?;
    frame.store_some(e.dreg, len)
}

pub(super) fn ct(frame: &mut Frame<'_>, family: Family, e: &Ct) -> Done {
    let len = match e.sreg {
        Some(_) => ct_set(e)?,
        None => ct_get(family, e)?,
    };
    if e.direction.is_some_and(|direction| direction.0 > 1) {
        return refuse(EINVAL);
    }
    frame.load_some(e.sreg, len)?;
    frame.store_some(e.dreg, len)?;
    tracks(family)
}

fn ct_set(e: &Ct) -> Result<usize, Refusal> {
    match e.key {
        CtKey::ZONE => Ok(2),
        CtKey::MARK | CtKey::SECMARK | CtKey::EVENT | CtKey::LABEL if e.direction.is_some() => refuse(EINVAL),
        CtKey::MARK | CtKey::SECMARK | CtKey::EVENT => Ok(4),
        CtKey::LABEL => Ok(16),
        _ => refuse(EOPNOTSUPP),
    }
}

fn ct_get(family: Family, e: &Ct) -> Result<usize, Refusal> {
    let directed = |len| if e.direction.is_some() { Ok(len) } else { refuse(EINVAL) };
    let undirected = |len| if e.direction.is_none() { Ok(len) } else { refuse(EINVAL) };
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
                _ => refuse(EAFNOSUPPORT),
            }
        }
        CtKey::SADDR_IP | CtKey::DADDR_IP => directed(4),
        CtKey::SADDR_IP6 | CtKey::DADDR_IP6 => directed(16),
        CtKey::PROTO_SRC | CtKey::PROTO_DST => directed(2),
        CtKey::PACKETS | CtKey::BYTES | CtKey::AVGPKT => Ok(8),
        CtKey::ZONE => Ok(2),
        _ => refuse(EOPNOTSUPP),
    }
}

pub(super) fn rt(frame: &mut Frame<'_>, e: &Rt) -> Done {
    let len = match e.key {
        RtKey::CLASSID | RtKey::NEXTHOP_IP => 4,
        RtKey::NEXTHOP_IP6 => 16,
        RtKey::MTU => 2,
        RtKey::IPSEC => 1,
        _ => return refuse(EOPNOTSUPP),
    };
    frame.store(e.dreg, len)
}

pub(super) fn socket(frame: &mut Frame<'_>, family: Family, e: &Socket) -> Done {
    in_byte(e.level.unwrap_or(0))?;
    if !is_inet(family) {
        return refuse(EOPNOTSUPP);
    }
    let len = match e.key {
        SocketKey::TRANSPARENT | SocketKey::WILDCARD => 1,
        SocketKey::MARK => 4,
        SocketKey::CGROUPV2 if e.level.is_none() => return refuse(EINVAL),
        SocketKey::CGROUPV2 => 8,
        _ => return refuse(EOPNOTSUPP),
    };
    frame.store(e.dreg, len)
}

pub(super) fn osf(frame: &mut Frame<'_>, e: &Osf) -> Done {
    if e.ttl.is_some_and(|ttl| ttl > 2) || e.flags.is_some_and(|flags| flags != OsfFlags::VERSION) {
        return refuse(EINVAL);
    }
    frame.store(e.dreg, NAME)
}

pub(super) fn exists_fib(e: &Fib, family: Family) -> Done {
    if e.flags.bits() & !FIB_FLAGS != 0 {
        return refuse(EINVAL);
    }
    let known = [FibResult::OIF, FibResult::OIFNAME, FibResult::ADDRTYPE].contains(&e.result);
    if known || ![Family::IP, Family::IP6].contains(&family) { Ok(()) } else { refuse(EOPNOTSUPP) }
}

pub(super) fn fib(frame: &mut Frame<'_>, e: &Fib) -> Done {
    let both = |of: FibFlags| e.flags.contains(of);
    let addresses = FibFlags::SADDR | FibFlags::DADDR;
    if both(addresses) || !e.flags.intersects(addresses) || both(FibFlags::IIF | FibFlags::OIF) {
        return refuse(EINVAL);
    }
    let len = match e.result {
        FibResult::OIF | FibResult::OIFNAME if both(FibFlags::OIF) => return refuse(EINVAL),
        // Only whether there is one can be asked without its name.
        FibResult::OIFNAME | FibResult::ADDRTYPE if both(FibFlags::PRESENT) => return refuse(EINVAL),
        FibResult::OIFNAME => NAME,
        FibResult::OIF | FibResult::ADDRTYPE => 4,
        _ => return refuse(EINVAL),
    };
    frame.store(e.dreg, len)
}

pub(super) fn xfrm(frame: &mut Frame<'_>, family: Family, e: &Xfrm) -> Done {
    if !is_inet(family) {
        return refuse(EOPNOTSUPP);
    }
    let len = match e.key {
        XfrmKey::REQID | XfrmKey::SPI | XfrmKey::DADDR_IP | XfrmKey::SADDR_IP => 4,
        XfrmKey::DADDR_IP6 | XfrmKey::SADDR_IP6 => 16,
        _ => return refuse(EINVAL),
    };
    if e.direction > 1 {
        return refuse(EINVAL);
    }
    // XFRM_MAX_DEPTH
    if e.number.unwrap_or(0) >= 6 {
        return refuse(ERANGE);
    }
    frame.store(e.dreg, len)
}

pub(super) fn tunnel(frame: &mut Frame<'_>, e: &Tunnel) -> Done {
    let len = match e.key {
        TunnelKey::PATH => 1,
        TunnelKey::ID => 4,
        _ => return refuse(EOPNOTSUPP),
    };
    // NFT_TUNNEL_MODE_MAX
    if e.mode.unwrap_or(0) > 2 { refuse(EOPNOTSUPP) } else { frame.store(e.dreg, len) }
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
    if good { Ok(()) } else { refuse(EOPNOTSUPP) }
}

pub(super) fn exthdr(frame: &mut Frame<'_>, e: &Exthdr) -> Done {
    let Some(dreg) = e.dreg else { return exthdr_change(frame, e) };
    let (Some(offset), Some(len)) = (e.offset, e.len) else { return refuse(EINVAL) };
    in_byte(offset)?;
    let len = in_byte(len)?;
    let flags = e.flags.unwrap_or(ExthdrFlags::empty());
    in_byte(flags.bits())?;
    let present = flags.contains(ExthdrFlags::PRESENT);
    if !(flags - ExthdrFlags::PRESENT).is_empty() || (present && len != 1) {
        return refuse(EINVAL);
    }
    match e.op {
        Some(ExthdrOp::IPV4) if !IP_OPTIONS.contains(&e.kind) => return refuse(EOPNOTSUPP),
        Some(ExthdrOp::DCCP) if !present => return refuse(EOPNOTSUPP),
        _ => {}
    }
    frame.store(dreg, len)
}

/// A TCP option is changed, or removed.
fn exthdr_change(frame: &Frame<'_>, e: &Exthdr) -> Done {
    let Some(sreg) = e.sreg else {
        let removes = e.op.is_some() && e.flags.is_none() && e.offset.is_none() && e.len.is_none();
        return if removes { Ok(()) } else { refuse(EINVAL) };
    };
    let (Some(offset), Some(len), None) = (e.offset, e.len, e.flags) else { return refuse(EINVAL) };
    let (offset, len) = (in_byte(offset)?, in_byte(len)?);
    if offset < 2 || !matches!(len, 2 | 4) { refuse(EOPNOTSUPP) } else { frame.load(sreg, len) }
}

pub(super) fn inner(frame: &mut Frame<'_>, e: &Inner) -> Done {
    // NFT_INNER_MASK, NFT_INNER_HDRSIZE
    let flags = e.flags.bits();
    let sized = flags & 1 != 0;
    if flags & !15 != 0 || e.number != 0 || (sized && !(1..=64).contains(&e.header_size)) {
        return refuse(EOPNOTSUPP);
    }
    match e.expr.as_ref() {
        Expr::Payload(inner) => {
            let known = inner.base.0 <= PayloadBase::TRANSPORT.0 || inner.base == PayloadBase::TUNNEL;
            let Some(dreg) = inner.dreg.filter(|_| known) else {
                return refuse(if known { EINVAL } else { EOPNOTSUPP });
            };
            frame.store(dreg, in_byte(inner.len)?)
        }
        Expr::Meta(inner) => {
            let len = match inner.key {
                MetaKey::PROTOCOL => 2,
                MetaKey::L4PROTO => 1,
                _ => return refuse(EOPNOTSUPP),
            };
            inner.dreg.map_or(refuse(EINVAL), |dreg| frame.store(dreg, len))
        }
        Expr::Unknown(_) => refuse(ENOENT),
        _ => refuse(EOPNOTSUPP),
    }
}

/// `offsetof(struct sctphdr, checksum)`
const SCTP_CHECKSUM: u32 = 8;
/// `NFTA_FIB_F_ALL`
const FIB_FLAGS: u32 = 63;
/// `IPOPT_RR`, `IPOPT_LSRR`, `IPOPT_SSRR`, `IPOPT_RA`
const IP_OPTIONS: [u8; 4] = [7, 131, 137, 148];
