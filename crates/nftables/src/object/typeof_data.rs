//! The expression of a `typeof`, encoded in the user data of a set so that nft can list it. The format was
//! captured from nft 1.0.6 for each expression; that for fields inside tunnels is from the source code of nft
//! 1.1.

use crate::expr::{
    CtKey, Direction, ExthdrOp, FibFlags, FibResult, InnerType, MetaKey, NumgenMode, PayloadBase, RtKey,
    SocketKey, XfrmKey,
};
use crate::object::SetType;
use crate::object::userdata::{UserData, push, push_u32};
use crate::tree::exthdr::Exthdr;
use crate::tree::{
    Ct, Expression, Fib, Inner, Ipsec, Numgen, Osf, Payload, RawPayload, Rt, Socket, Symhash, tunnel_of,
};

/// Encodes a type as user data; `None` if nft stores none, or if it is longer than 255 bytes. For a `type`
/// with several parts the data only tell that it is a concatenation.
pub(crate) fn encode(of: &SetType) -> Option<Vec<u8>> {
    match of {
        SetType::Types(types) if types.len() > 1 => Some(expression(CONCAT, &[])),
        SetType::Parts(parts) if parts.len() > 1 => Some(expression(CONCAT, &[])),
        SetType::Types(_) | SetType::Parts(_) => None,
        SetType::Queue => Some(expression(VALUE, &numbers(&[QUEUE]))),
        SetType::Typeof(of) => note(of).filter(|note| u8::try_from(note.len()).is_ok()),
    }
}

/// Returns the user data for verdicts. Without these, nft ignores those of the keys.
pub(crate) fn verdict() -> Vec<u8> {
    expression(VERDICT, &[])
}

fn note(of: &Expression) -> Option<Vec<u8>> {
    let (number, data) = match of {
        Expression::Concat(list) => {
            let mut data = Vec::new();
            for (i, item) in list.iter().enumerate() {
                push(&mut data, u8::try_from(i).ok()?, &note(calculated_from(item))?);
            }
            (CONCAT, data)
        }
        Expression::Payload(payload) => (PAYLOAD, header_field(*payload, tunnel_of(*payload))),
        Expression::Inner(inner) => (PAYLOAD, header_field(inner.field, Some(inner.tunnel))),
        Expression::RawPayload(raw) => {
            if let Some(port) = raw.port() {
                return note(&port.into());
            }
            // nft numbers these headers from one.
            let base = match raw.base {
                PayloadBase::LINK => 1,
                PayloadBase::NETWORK => 2,
                PayloadBase::TRANSPORT => 3,
                PayloadBase::INNER => 4,
                _ => return None,
            };
            (PAYLOAD, numbers(&[0, 0, base, raw.offset.into(), raw.bits.into()]))
        }
        Expression::Exthdr(exthdr) => {
            let (header, field) = exthdr.numbers()?;
            let mut data = Vec::new();
            push_u32(&mut data, 1, field.into());
            if exthdr.op() != ExthdrOp::IPV6 {
                push_u32(&mut data, 2, exthdr.op().0);
            }
            push_u32(&mut data, 0, header.into());
            (EXTHDR, data)
        }
        Expression::Meta(key) => (META, numbers(&[key.0])),
        Expression::Ct(ct) => {
            let direction = ct.direction.map_or(u32::MAX, |Direction(direction)| direction.into());
            (CT, numbers(&[ct.key.0, direction]))
        }
        Expression::Rt(rt) => (RT, numbers(&[rt.key.0])),
        Expression::Socket(socket) => (SOCKET, numbers(&[socket.key.0])),
        Expression::Osf(_) => (OSF, Vec::new()),
        Expression::Fib(fib) => {
            let check = if fib.check { FibFlags::PRESENT } else { FibFlags::empty() };
            (FIB, numbers(&[fib.result.0, (fib.flags | check).bits()]))
        }
        Expression::Numgen(numgen) => (NUMGEN, numbers(&[numgen.mode.0, numgen.modulus, numgen.offset])),
        Expression::Jhash(hash) => {
            let seed = [hash.seed.unwrap_or(0), u32::from(hash.seed.is_some())];
            (HASH, numbers(&[0, hash.offset, hash.modulus, seed[0], seed[1]]))
        }
        Expression::Symhash(hash) => (HASH, numbers(&[1, hash.offset, hash.modulus, 0, 0])),
        Expression::Ipsec(ipsec) => (XFRM, numbers(&[ipsec.key.0, ipsec.number, u32::from(ipsec.out)])),
        _ => return None,
    };
    Some(expression(number, &data))
}

/// Returns the operand of an operation, which nft stores instead of the operation.
fn calculated_from(of: &Expression) -> &Expression {
    match of {
        Expression::Binary(binary) => calculated_from(&binary.left),
        other => other,
    }
}

fn header_field(payload: Payload, tunnel: Option<InnerType>) -> Vec<u8> {
    let (header, field) = payload.numbers();
    let mut data = numbers(&[header.into(), field.into()]);
    // nft stores the length of a field without a type of its own.
    if payload.data_type() == crate::DataType::INTEGER {
        push_u32(&mut data, 4, payload.bits().into());
    }
    if let Some((_, number)) = TUNNELS.iter().find(|(of, _)| Some(*of) == tunnel) {
        push_u32(&mut data, 5, *number);
    }
    data
}

fn expression(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len() + 8);
    push_u32(&mut bytes, 0, number);
    push(&mut bytes, 1, data);
    bytes
}

/// Encodes numbers as entries with types 0, 1, 2, ...
fn numbers(values: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * 6);
    for (kind, value) in (0..).zip(values) {
        push_u32(&mut bytes, kind, *value);
    }
    bytes
}

/// Decodes user data to a type; `None` if this crate cannot express it, or if the data only tell that it is a
/// concatenation.
pub(crate) fn decode(bytes: &[u8]) -> Option<SetType> {
    match opened(bytes)? {
        (VALUE, data) => (number_of(data, 0)? == QUEUE).then_some(SetType::Queue),
        _ => decode_nested(bytes, 2).map(SetType::Typeof),
    }
}

/// Returns nft's number of an expression, and the data stored with it.
fn opened(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let entry = |kind| UserData::new(bytes).find(kind);
    Some((u32::from_ne_bytes(entry(0)?.try_into().ok()?), entry(1)?))
}

fn number_of(data: &[u8], kind: u8) -> Option<u32> {
    UserData::new(data).find(kind)?.try_into().ok().map(u32::from_ne_bytes)
}

fn decode_nested(bytes: &[u8], depth: u32) -> Option<Expression> {
    let (number, data) = opened(bytes)?;
    let value = |kind| number_of(data, kind);
    Some(match number {
        CONCAT => {
            let items = UserData::new(data).map(|(_, item)| decode_nested(item, depth.checked_sub(1)?));
            let items = items.collect::<Option<Vec<_>>>()?;
            return (!items.is_empty()).then_some(Expression::Concat(items));
        }
        PAYLOAD if value(0)? == 0 => {
            let base = match value(2)? {
                1 => PayloadBase::LINK,
                2 => PayloadBase::NETWORK,
                3 => PayloadBase::TRANSPORT,
                4 => PayloadBase::INNER,
                _ => return None,
            };
            let (offset, bits) = (u16::try_from(value(3)?).ok()?, u16::try_from(value(4)?).ok()?);
            Expression::RawPayload(RawPayload { base, offset, bits })
        }
        PAYLOAD => {
            let (header, field) = (u8::try_from(value(0)?).ok()?, u8::try_from(value(1)?).ok()?);
            let field = Payload::ALL.iter().copied().find(|p| p.numbers() == (header, field))?;
            match value(5) {
                Some(_) if tunnel_of(field).is_some() => field.into(),
                Some(number) => {
                    let (tunnel, _) = *TUNNELS.iter().find(|(_, of)| *of == number)?;
                    Inner { tunnel, field }.into()
                }
                None => field.into(),
            }
        }
        EXTHDR => {
            let numbers = (u8::try_from(value(0)?).ok()?, u8::try_from(value(1)?).ok()?);
            let op = value(2).map_or(ExthdrOp::IPV6, ExthdrOp);
            Exthdr::all().find(|e| e.op() == op && !e.is_presence() && e.numbers() == Some(numbers))?.into()
        }
        META => MetaKey(value(0)?).into(),
        CT => {
            let direction = value(1).and_then(|d| u8::try_from(d).ok()).map(Direction);
            Ct { key: CtKey(value(0)?), direction, family: None }.into()
        }
        RT => Expression::Rt(Rt { key: RtKey(value(0)?) }),
        SOCKET => Expression::Socket(Socket { key: SocketKey(value(0)?), level: None }),
        OSF => Expression::Osf(Osf { ttl: 0, version: false }),
        FIB | XFRM if value(1).is_some() && value(2).is_none() => {
            let flags = FibFlags::from_bits_retain(value(1)?);
            Fib {
                flags: flags - FibFlags::PRESENT,
                result: FibResult(value(0)?),
                check: flags.contains(FibFlags::PRESENT),
            }
            .into()
        }
        NUMGEN => Numgen { mode: NumgenMode(value(0)?), modulus: value(1)?, offset: value(2)? }.into(),
        HASH if value(0)? == 1 => Expression::Symhash(Symhash { modulus: value(2)?, offset: value(1)? }),
        XFRM | XFRM_LATER => {
            Expression::Ipsec(Ipsec { key: XfrmKey(value(0)?), number: value(1)?, out: value(2)? != 0 })
        }
        _ => return None,
    })
}

/// nft's numbers of tunnel headers (`enum proto_desc_id`, since 1.0.7).
const TUNNELS: &[(InnerType, u32)] =
    &[(InnerType::VXLAN, 18), (InnerType::GENEVE, 19), (InnerType::GRE, 20), (InnerType::GRETAP, 21)];
/// nft's number of the only constant that represents a type (`CONSTANT_EXPR_NFQUEUE_ID`).
const QUEUE: u32 = 0;
/// nft's numbers of expressions (`enum expr_types`).
const VERDICT: u32 = 1;
const VALUE: u32 = 4;
const PAYLOAD: u32 = 7;
const EXTHDR: u32 = 8;
const META: u32 = 9;
const SOCKET: u32 = 10;
const OSF: u32 = 11;
const CT: u32 = 12;
const CONCAT: u32 = 13;
const NUMGEN: u32 = 23;
const HASH: u32 = 24;
const RT: u32 = 25;
/// The numbers of `fib` and `ipsec` until 1.1.5. 1.1.6 has `tunnel` before them (`EXPR_TUNNEL`, of which it
/// stores nothing), and so `fib` is 27 and `ipsec` 28. What is stored tells them apart: two numbers of a `fib`,
/// three of an `ipsec`. There are none that both versions read, so that what we store is for 1.0.6.
const FIB: u32 = 26;
const XFRM: u32 = 27;
const XFRM_LATER: u32 = 28;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typeof_is_noted_as_nft_notes_it() {
        // strace of nft 1.0.6: add map ip t m { typeof ip daddr . meta l4proto . th dport . numgen random mod
        // 2 : ... }
        let of = Expression::concat([
            Payload::IP_DADDR.into(),
            MetaKey::L4PROTO.into(),
            Payload::TH_DPORT.into(),
            Expression::random(2),
        ]);
        let captured = "00040d0000000158001400040700000001 0c00040c00000001040c000000010e00040900000001060004\
            100000000214000407000000010c00040b000000010402000000031a00041700000001120004010000000104020000000\
            20400000000";
        let note = encode(&SetType::Typeof(of.clone())).unwrap();
        assert_eq!(hex(&note), captured.replace(' ', ""));
        assert_eq!(decode(&note), Some(SetType::Typeof(of)));
    }

    #[test]
    fn what_has_no_type_is_noted_with_its_width() {
        // strace of nft 1.0.6: add set inet t s { typeof ip ttl; } and { typeof @nh,96,32; }
        let ttl = SetType::Typeof(Payload::IP_TTL.into());
        assert_eq!(hex(&encode(&ttl).unwrap()), "000407000000011200040c000000010408000000040408000000");
        let raw = RawPayload { base: PayloadBase::NETWORK, offset: 96, bits: 32 };
        let captured = "000407000000011e000400000000010400000000020402000000030460000000040420000000";
        assert_eq!(hex(&encode(&SetType::Typeof(Expression::RawPayload(raw))).unwrap()), captured);
    }

    #[test]
    fn every_header_of_raw_bytes_is_noted_as_itself_or_not_at_all() {
        for base in [PayloadBase::LINK, PayloadBase::NETWORK, PayloadBase::TRANSPORT, PayloadBase::INNER] {
            let of = Expression::RawPayload(RawPayload { base, offset: 32, bits: 32 });
            assert_eq!(note(&of).and_then(|note| decode(&note)), Some(SetType::Typeof(of)));
        }
        // nft has no number for the header of a tunnel.
        let tunnel = RawPayload { base: PayloadBase::TUNNEL, offset: 32, bits: 32 };
        assert_eq!(note(&Expression::RawPayload(tunnel)), None);
        let unknown = expression(PAYLOAD, &numbers(&[0, 0, 9, 32, 32]));
        assert_eq!(decode(&unknown), None);
    }

    #[test]
    fn numbers_of_queues_are_noted_as_the_constant_that_they_are() {
        // nft 1.1.2: constant_expr_build_udata.
        let note = encode(&SetType::Queue).unwrap();
        assert_eq!(hex(&note), "000404000000 0106000400000000".replace(' ', ""));
        assert_eq!(decode(&note), Some(SetType::Queue));
        assert_eq!(decode(&expression(VALUE, &numbers(&[1]))), None);
    }

    #[test]
    fn what_does_not_fit_is_not_noted_in_part() {
        let hash = Expression::Jhash(Box::new(crate::tree::Jhash {
            of: Payload::IP_SADDR.into(),
            modulus: 2,
            seed: Some(1),
            offset: 0,
        }));
        let noted = |parts| encode(&SetType::Typeof(Expression::concat(vec![hash.clone(); parts])));
        assert!(noted(6).is_some());
        assert_eq!(noted(7), None);
    }

    #[test]
    fn whether_there_is_a_route_is_noted_as_such() {
        for check in [false, true] {
            let of = Expression::from(Fib { flags: FibFlags::DADDR, result: FibResult::OIF, check });
            assert_eq!(note(&of).and_then(|note| decode(&note)), Some(SetType::Typeof(of)));
        }
    }

    #[test]
    fn numbers_of_both_orders_are_read() {
        let fib = Expression::from(Fib { flags: FibFlags::DADDR, result: FibResult::ADDRTYPE, check: false });
        let ipsec = Expression::Ipsec(Ipsec { key: XfrmKey::REQID, number: 0, out: true });
        let stored = |number, values: &[u32]| decode(&expression(number, &numbers(values)));
        for (of, numbers, values) in [
            (fib, [26, 27], [FibResult::ADDRTYPE.0, FibFlags::DADDR.bits()].as_slice()),
            (ipsec, [27, 28], &[XfrmKey::REQID.0, 0, 1]),
        ] {
            assert_eq!(note(&of), Some(expression(numbers[0], &self::numbers(values))));
            for number in numbers {
                assert_eq!(stored(number, values), Some(SetType::Typeof(of.clone())), "{number}");
            }
        }
        // What neither stores.
        for (number, values) in
            [(26, [1, 2, 3].as_slice()), (26, &[1]), (27, &[1]), (28, &[1, 2]), (29, &[1, 2, 3])]
        {
            assert_eq!(stored(number, values), None, "{number} {values:?}");
        }
    }

    #[test]
    fn a_field_inside_a_tunnel_is_noted_with_the_tunnel() {
        let inside = Inner { tunnel: InnerType::GENEVE, field: Payload::IP_DADDR };
        for of in [
            inside.into(),
            Payload::VXLAN_VNI.into(),
            Payload::GRE_VERSION.into(),
            Expression::from(Payload::IP_DADDR),
        ] {
            assert_eq!(note(&of).and_then(|note| decode(&note)), Some(SetType::Typeof(of)));
        }
        // Header 12 (ip), field 12, tunnel 19.
        assert_eq!(
            hex(&note(&inside.into()).unwrap()),
            "000407000000011200040c00000001040c000000050413000000"
        );
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
