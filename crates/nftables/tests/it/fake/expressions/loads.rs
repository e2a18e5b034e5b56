//! What fills a register from the packet.

use sluicegate_nftables::expr::kind::Tunnel;
use sluicegate_nftables::expr::kind::*;
use sluicegate_nftables::expr::*;

use super::FILLED;
use super::numbers::counter;

/// What fills a register from the packet and what belongs to it, and what changes that.
pub(super) fn loads(all: &mut Vec<Expr>) {
    let mut add = |expr: Expr| all.push(expr);
    for base in (0..6).map(PayloadBase) {
        let load = Payload {
            dreg: Some(FILLED),
            base,
            offset: 0,
            len: 4,
            sreg: None,
            csum_type: None,
            csum_offset: None,
            csum_flags: None,
        };
        add(Payload { len: 0, ..load.clone() }.into());
        add(load.clone().into());
        add(Payload { dreg: None, sreg: Some(FILLED), ..load.clone() }.into());
        for csum_type in (1..4).map(ChecksumType) {
            let csum_type = Some(csum_type);
            let change =
                Payload { dreg: None, sreg: Some(FILLED), csum_type, csum_offset: Some(4), ..load.clone() };
            add(Payload { csum_flags: Some(ChecksumFlags::all()), ..change.clone() }.into());
            add(change.into());
        }
        add(Payload { sreg: Some(FILLED), ..load }.into());
    }
    for key in (0..=38).map(MetaKey) {
        add(Meta { dreg: Some(FILLED), key, sreg: None }.into());
        add(Meta { dreg: None, key, sreg: Some(FILLED) }.into());
    }
    for key in (0..=24).map(CtKey) {
        for direction in [None, Some(Direction(0)), Some(Direction(1)), Some(Direction(2))] {
            add(Ct { dreg: Some(FILLED), key, direction, sreg: None }.into());
        }
        add(Ct { dreg: None, key, direction: None, sreg: Some(FILLED) }.into());
    }
    add(Ct { dreg: None, key: CtKey::ZONE, direction: Some(Direction(0)), sreg: Some(FILLED) }.into());
    (0..=5).map(RtKey).for_each(|key| add(Rt { dreg: FILLED, key }.into()));
    for key in (0..=4).map(SocketKey) {
        add(Socket { key, dreg: FILLED, level: None }.into());
        add(Socket { key, dreg: FILLED, level: Some(2) }.into());
    }
    add(Socket { key: SocketKey::CGROUPV2, dreg: FILLED, level: Some(256) }.into());
    for (ttl, flags) in [(None, None), (Some(2), Some(OsfFlags::all())), (Some(3), None)] {
        add(Osf { dreg: FILLED, ttl, flags }.into());
    }
    for result in (0..=4).map(FibResult) {
        for flags in [0, 1, 2, 3, 1 | 8, 2 | 8, 1 | 16, 2 | 16, 1 | 8 | 16, 1 | 32, 2 | 4, 1 | 64, 8] {
            add(Fib { dreg: FILLED, result, flags: FibFlags::from_bits_retain(flags) }.into());
        }
    }
    for key in (0..=7).map(XfrmKey) {
        for direction in 0..=3 {
            add(Xfrm { dreg: FILLED, key, direction, number: None }.into());
        }
        add(Xfrm { dreg: FILLED, key, direction: 0, number: Some(6) }.into());
    }
    for key in (0..=2).map(TunnelKey) {
        for mode in [None, Some(0), Some(1), Some(2), Some(3)] {
            add(Tunnel { key, dreg: FILLED, mode }.into());
        }
    }
    for op in (0..=5).map(ExthdrOp) {
        let load = Exthdr {
            dreg: Some(FILLED),
            kind: 2,
            offset: Some(0),
            len: Some(2),
            flags: None,
            op: Some(op),
            sreg: None,
        };
        add(Exthdr { kind: 0, ..load.clone() }.into());
        add(Exthdr { flags: Some(ExthdrFlags::all()), ..load.clone() }.into());
        add(Exthdr { flags: Some(ExthdrFlags::PRESENT), ..load.clone() }.into());
        add(Exthdr { dreg: None, sreg: Some(FILLED), ..load.clone() }.into());
        add(Exthdr { dreg: None, sreg: Some(FILLED), len: Some(3), ..load.clone() }.into());
        add(Exthdr { dreg: None, ..load.clone() }.into());
        add(Exthdr { dreg: None, len: None, offset: None, ..load.clone() }.into());
        add(Exthdr { sreg: Some(FILLED), ..load.clone() }.into());
        add(Exthdr { kind: 130, ..load.clone() }.into());
        add(Exthdr { offset: Some(256), ..load.clone() }.into());
        add(load.into());
    }
    let inner = |of, flags, header_size, expr| Inner {
        number: 0,
        of: InnerType(of),
        flags: InnerFlags::from_bits_retain(flags),
        header_size,
        expr: Box::new(expr),
    };
    let protocol: Expr = Meta { dreg: Some(FILLED), key: MetaKey::L4PROTO, sreg: None }.into();
    let payload = |base| -> Expr {
        let (csum_type, csum_offset, csum_flags) = (None, None, None);
        Payload {
            dreg: Some(FILLED),
            base,
            offset: 0,
            len: 2,
            sreg: None,
            csum_type,
            csum_offset,
            csum_flags,
        }
        .into()
    };
    for of in 0..4 {
        add(inner(of, 15, 8, protocol.clone()).into());
        (0..6).map(PayloadBase).for_each(|base| add(inner(of, 15, 8, payload(base)).into()));
        add(inner(of, 0, 8, protocol.clone()).into());
        add(inner(of, 14, 8, protocol.clone()).into());
        add(inner(of, 31, 8, protocol.clone()).into());
        add(inner(of, 15, 0, protocol.clone()).into());
        add(inner(of, 15, 65, protocol.clone()).into());
    }
    add(Inner { number: 1, ..inner(0, 15, 8, protocol) }.into());
    add(inner(0, 15, 8, Meta { dreg: Some(FILLED), key: MetaKey::MARK, sreg: None }.into()).into());
    add(inner(0, 15, 8, Meta { dreg: Some(FILLED), key: MetaKey::PROTOCOL, sreg: None }.into()).into());
    add(inner(0, 15, 8, counter()).into());
}
