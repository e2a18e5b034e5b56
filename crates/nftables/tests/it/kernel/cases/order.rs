//! Numbers that nft 1.0.6 cannot read where they stand, or that it moves and turns otherwise than they have
//! to be.

use sluicegate_nftables::expr::{CtKey, MetaKey, NumgenMode, PayloadBase};

use super::*;

/// What later versions of nft read, and send alike.
pub(super) fn newer() -> Vec<Case> {
    let set_mark = |value: Expression| vec![Statement::from(Mangle::new(MetaKey::MARK, value))];
    let at = |offset, bits| Expression::from(RawPayload { base: PayloadBase::NETWORK, offset, bits });
    let fields = || [Payload::IP6_DSCP.into(), at(4, 10), at(7, 16), at(4, 17), at(2, 29)];
    let (meta, ct) = (|| Expression::from(MetaKey::MARK), || Expression::from(CtKey::MARK));
    let shifted = |key: MetaKey| Expression::from(key).binary(BinaryOp::ShiftLeft, 8_u32);
    let number = |offset| Expression::Numgen(Numgen { mode: NumgenMode::INCREMENTAL, modulus: 7, offset });
    let port_80 = || Statement::from(Match::new(Payload::TCP_DPORT, Port(80)));
    vec![
        rules(
            "numbers as addresses and ports",
            Family::IP,
            [
                vec![Statement::dnat(Nat::to(number(0x0a00_0001)))],
                vec![port_80(), Statement::dnat(Nat::to_port(number(0x0a00_0001), number(80)))],
                vec![
                    port_80(),
                    Statement::redirect(PortNat { port: Some(number(80)), ..PortNat::default() }),
                ],
                vec![Mangle::new(Payload::TCP_DPORT, number(80)).into()],
                vec![Dup { address: Some(number(0x0a00_0001)), device: None }.into()],
                vec![
                    port_80(),
                    Tproxy { family: None, address: Some(number(0x0a00_0001)), port: Some(number(80)) }
                        .into(),
                ],
            ],
        ),
        rules(
            "two values",
            Family::IP,
            [
                vec![Mangle::new(CtKey::MARK, ct().and(0xffff_0000_u32).or(meta().and(0xffff_u32))).into()],
                set_mark(ct().and(0xffff_0000_u32).or(meta().and(0xffff_u32))),
                set_mark(ct().or(Payload::IP_DSCP).or(0x200_u32)),
                set_mark(ct().xor(Payload::TCP_DPORT)),
                set_mark(Expression::from(Payload::TCP_DPORT).or(meta()).and(0xffff_u32)),
                set_mark(Expression::from(Payload::IP_DSCP).or(meta()).xor(0x700_u32)),
                set_mark(meta().and(ct().or(MetaKey::PRIORITY))),
                set_mark(meta().and(0xffff_0000_u32).or(shifted(MetaKey::CPU)).or(MetaKey::IIF)),
                vec![
                    Mangle::new(
                        Payload::IP_SADDR,
                        Expression::from(Payload::IP_SADDR).xor(Payload::IP_DADDR),
                    )
                    .into(),
                ],
                vec![
                    Mangle::new(
                        Payload::TCP_DPORT,
                        Expression::from(Payload::TCP_DPORT).or(Payload::TCP_SPORT),
                    )
                    .into(),
                ],
            ],
        ),
        rules("changed bits", Family::IP, {
            let changed = |field: Payload, change: fn(Expression) -> Expression| {
                vec![Statement::from(Mangle::new(field, change(field.into())))]
            };
            [
                changed(Payload::IP_DSCP, |dscp| dscp.or(1_u32)),
                changed(Payload::IP_DSCP, |dscp| dscp.and(0x1f_u32)),
                changed(Payload::IP_DSCP, |dscp| dscp.xor(0x3f_u32)),
                changed(Payload::IP_DSCP, |dscp| dscp.and(0x1f_u32).or(0x10_u32)),
                changed(Payload::IP_ECN, |ecn| ecn.and(1_u32)),
                changed(Payload::IP_TTL, |ttl| ttl.or(0x40_u32)),
                changed(Payload::TCP_DOFF, |doff| doff.or(1_u32)),
                changed(Payload::TCP_DPORT, |port| port.and(0xff_u32)),
            ]
        }),
        rules(
            "fields as marks",
            Family::IP,
            [
                set_mark(Payload::IP_SADDR.into()),
                set_mark(Payload::TCP_DPORT.into()),
                set_mark(Payload::IP_TTL.into()),
                set_mark(Payload::IP_DSCP.into()),
                set_mark(RawPayload { base: PayloadBase::TRANSPORT, offset: 8, bits: 24 }.into()),
                set_mark(Expression::from(Payload::IP_SADDR).and(0xff_u32)),
                set_mark(Expression::from(Payload::TCP_DPORT).and(0x100ff_u32).or(0x10000_u32)),
                set_mark(Expression::from(Payload::TCP_DPORT).xor(0x70001_u32)),
                set_mark(Expression::from(Payload::TCP_DPORT).binary(BinaryOp::ShiftLeft, 16_u32)),
                set_mark(Expression::from(Payload::IP_DSCP).or(0x40_u32)),
                set_mark(Expression::from(Payload::IP_DSCP).binary(BinaryOp::ShiftLeft, 2_u32).or(0x100_u32)),
                vec![Mangle::new(CtKey::ZONE, Expression::from(Payload::IP_ID)).into()],
                vec![Mangle::new(CtKey::MARK, Expression::from(Payload::IP_DADDR)).into()],
            ],
        ),
        case("constants in keys that are looked up", Family::IP, |tx, t, c| {
            let (set, ranges) = (t.set(name("s")), t.set(name("r")));
            let (map, vmap) = (t.map(name("m")), t.map(name("v")));
            let key = || [DataType::IPV4_ADDR, DataType::MARK, DataType::INET_SERVICE];
            tx.add(Set::new(set.clone(), key()))
                .add(Set::new(ranges.clone(), key()).flags(SetFlags::INTERVAL));
            tx.add(Set::map(map.clone(), key(), DataType::MARK)).add(Set::verdict_map(vmap.clone(), key()));
            let keys = || {
                [
                    [ip(10, 1, 1, 1).into(), MetaKey::MARK.into(), port(80)],
                    [Payload::IP_SADDR.into(), 100_u32.into(), Payload::TCP_DPORT.into()],
                ]
                .map(Expression::concat)
            };
            for key in keys() {
                tx.add(c.rule().then(Match::new(key.clone(), Expression::named(&set.name))));
                tx.add(c.rule().then(Match::not(key.clone(), Expression::named(&ranges.name))));
                tx.add(c.rule().then(Vmap::new(key.clone(), &vmap.name)));
                tx.add(c.rule().then(Mangle::new(MetaKey::MARK, key.map(&map.name))));
            }
        }),
        case("constants that are keys", Family::IP, |tx, t, c| {
            let (marks, map) = (t.set(name("s")), t.map(name("m")));
            tx.add(Set::new(marks.clone(), DataType::MARK).flags(SetFlags::DYNAMIC).size(9));
            let dynamic = Set::map(map.clone(), DataType::IPV4_ADDR, DataType::MARK).flags(SetFlags::DYNAMIC);
            tx.add(dynamic.size(9));
            tx.add(c.rule().then(SetUpdate::update(&marks.name, 100_u32)));
            let value = Some(MetaKey::MARK.into());
            tx.add(c.rule().then(SetUpdate { value, ..SetUpdate::update(&map.name, ip(10, 1, 1, 1)) }));
        }),
        case("keys of bits across bytes", Family::IP6, |tx, t, c| {
            for (i, field) in fields().into_iter().chain([at(4, 33)]).enumerate() {
                let (set, map) = (t.set(name(&format!("s{i}"))), t.map(name(&format!("m{i}"))));
                let pair = Expression::concat([field.clone(), Payload::UDP_DPORT.into()]);
                let filled = Set::new(set.clone(), SetType::Typeof(field.clone())).size(9);
                tx.add(filled.flags(SetFlags::DYNAMIC));
                tx.add(Set::map(map.clone(), SetType::Typeof(pair.clone()), DataType::MARK));
                tx.add(c.rule().then(Match::new(field.clone(), Expression::named(&set.name))));
                tx.add(c.rule().then(SetUpdate::update(&set.name, field)));
                tx.add(c.rule().then(Mangle::new(MetaKey::MARK, pair.map(&map.name))));
            }
        }),
        rules(
            "marks of bits across bytes",
            Family::IP6,
            fields()
                .into_iter()
                .flat_map(|field| [set_mark(field.clone()), vec![Mangle::new(CtKey::MARK, field).into()]]),
        ),
    ]
}
