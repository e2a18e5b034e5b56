//! Numbers that lie across the bytes of a header, and numbers that go from the network's order to the host's
//! and back.

use sluicegate_nftables::expr::{CtKey, MetaKey, PayloadBase};
use sluicegate_nftables::lang::*;

use super::*;
use crate::kernel::needs;

/// What the packets of these tests have; the router puts it there before its other rules see them.
const DSCP: u8 = 0x2e;
const LABEL: u32 = 0x6_5432;
const SPORT: u16 = 0x1234;
const DPORT: u16 = 0x5678;

fn with_bits(r: &mut Rules) {
    r.base(ChainType::Filter, Hook::Prerouting, -300)
        .rule([Mangle::new(Payload::IP6_DSCP, u32::from(DSCP)).into()])
        .rule([Mangle::new(Payload::IP6_FLOWLABEL, LABEL).into()]);
}

fn one_packet(lab: &Lab) {
    let server = udp(&lab.server, (SERVER6, DPORT));
    udp(&lab.client, ("::", SPORT)).send_to(b"?", (SERVER6, DPORT)).expect("a datagram is sent");
    received(&server);
}

/// Fields, and what of the key of a set they are.
fn fields() -> Vec<(Expression, Vec<u8>)> {
    let header = u64::from(6_u32 << 28 | u32::from(DSCP) << 22 | LABEL) << 32;
    // With the length of a datagram of one byte.
    let ports = u64::from(SPORT) << 48 | u64::from(DPORT) << 32 | 9 << 16;
    let at = |base, offset: u16, bits: u16| {
        let from = if base == PayloadBase::NETWORK { header } else { ports };
        let number = from << offset >> (64 - bits);
        let unused = 8 - usize::from(bits.div_ceil(8));
        (RawPayload { base, offset, bits }.into(), number.to_be_bytes()[unused..].to_vec())
    };
    let (net, ports) = (PayloadBase::NETWORK, PayloadBase::TRANSPORT);
    let named =
        [(Payload::IP6_DSCP.into(), vec![DSCP]), (Payload::IP6_FLOWLABEL.into(), vec![6, 0x54, 0x32])];
    let placed = [
        // In two bytes, and in three of which two are needed, and so on.
        at(net, 4, 10),
        at(net, 5, 6),
        at(net, 5, 12),
        at(net, 7, 16),
        at(net, 4, 17),
        at(net, 2, 29),
        at(ports, 3, 31),
        at(ports, 4, 33),
        at(ports, 7, 41),
        // This one ends where a byte does.
        at(net, 4, 20),
    ];
    named.into_iter().chain(placed).collect()
}

#[test]
fn bits_across_bytes_are_keys() {
    let Some(lab) = Lab::new() else { return };
    let mut tried: Vec<(String, Expression)> = Vec::new();
    lab.load(Family::IP6, |r| {
        with_bits(r);
        r.filter(Hook::Forward);
        let with_port = |field: &Expression| Expression::concat([field.clone(), Payload::UDP_DPORT.into()]);
        let mut add = |r: &mut Rules, how: &str, field: &Expression, statement: Statement| {
            let counter = format!("{how}{}", tried.len());
            tried.push((counter.clone(), field.clone()));
            let count = r.count(&counter);
            r.rule([statement, count]);
        };
        for (i, (field, bytes)) in fields().into_iter().enumerate() {
            let part = field.part().expect("a type");
            let key = |with_port: bool| {
                let mut key = Key::new();
                key.append(part, &bytes);
                if with_port {
                    key.append(DataType::INET_SERVICE.into(), &DPORT.to_be_bytes());
                }
                key
            };
            for pair in [false, true] {
                let looked_up = if pair { with_port(&field) } else { field.clone() };
                let parts = || SetType::Typeof(looked_up.clone());
                let names = ["s", "i", "v", "m", "d"].map(|kind| name(&format!("{kind}{i}_{pair}")));
                let [set, intervals, verdicts, marks, dynamic] = &names;
                let (id, ranged) = (r.table.set(set.clone()), r.table.set(intervals.clone()));
                let (vmap, map) = (r.table.map(verdicts.clone()), r.table.map(marks.clone()));
                r.tx.add(Set::new(id.clone(), parts())).add_element(&id, Element::new(key(pair)));
                r.tx.add(Set::new(ranged.clone(), parts()).flags(SetFlags::INTERVAL));
                r.tx.add_element(&ranged, Element::range(key(pair), key(pair)));
                r.tx.add(Set::verdict_map(vmap.clone(), parts()));
                r.tx.add_element(&vmap, Element::new(key(pair)).verdict(Verdict::Continue));
                r.tx.add(Set::map(map.clone(), parts(), DataType::MARK));
                r.tx.add_element(&map, Element::new(key(pair)).value(Mark(0x77)));
                let filled = Set::new(r.table.set(dynamic.clone()), parts()).flags(SetFlags::DYNAMIC);
                r.tx.add(filled.size(9));
                add(r, "set", &looked_up, Match::new(looked_up.clone(), Expression::named(set)).into());
                let interval = Match::new(looked_up.clone(), Expression::named(intervals));
                add(r, "interval", &looked_up, interval.into());
                add(r, "vmap", &looked_up, Vmap::new(looked_up.clone(), verdicts).into());
                add(r, "map", &looked_up, Mangle::new(MetaKey::MARK, looked_up.clone().map(marks)).into());
                // What the rule puts there, the next one finds.
                add(r, "update", &looked_up, SetUpdate::update(dynamic, looked_up.clone()).into());
                add(r, "found", &looked_up, Match::new(looked_up.clone(), Expression::named(dynamic)).into());
            }
        }
    });
    one_packet(&lab);
    let counted = lab.router.run(|| {
        let listed = read::ruleset(&mut netlink(), Family::UNSPEC).expect("a ruleset").content();
        let objects = listed.into_iter().flat_map(|table| table.objects);
        let counts = objects.filter_map(|object| match object.config {
            ObjectConfig::Counter(count) => Some((object.id.name.to_string(), count.packets)),
            _ => None,
        });
        counts.collect::<std::collections::HashMap<_, _>>()
    });
    let missed: Vec<_> = tried.iter().filter(|(counter, _)| counted[counter] != 1).collect();
    assert!(missed.is_empty(), "{} of {}: {missed:?}", missed.len(), tried.len());
    // What a rule has put there is what a person would have.
    let listed = lab.router.run(|| read::ruleset(&mut netlink(), Family::IP6).expect("a ruleset").content());
    for (i, (field, bytes)) in fields().iter().enumerate() {
        let is = |set: &Set| *set.id.name == *format!("d{i}_false");
        let (_, elements) = listed[0].sets.iter().find(|(set, _)| is(set)).expect("a set");
        assert_eq!(elements[0].key().bytes(), &bytes[..], "{field}");
    }
    let raw = |rule: &&Rule| rule.statements.iter().any(|s| matches!(s, Statement::Raw(_)));
    let raw: Vec<_> = listed[0].chains.iter().flat_map(|(_, rules)| rules).filter(raw).collect();
    assert!(raw.is_empty(), "{} are not understood, as {}", raw.len(), raw[0]);
}

#[test]
fn bits_across_bytes_are_masked_and_shifted() {
    let Some(lab) = Lab::new() else { return };
    let dscp = || Expression::from(Payload::IP6_DSCP);
    let dport = || Expression::from(Payload::UDP_DPORT);
    lab.load(Family::IP6, |r| {
        with_bits(r);
        r.filter(Hook::Forward);
        for (counter, left, right) in [
            ("dscp", dscp().and(0x0f_u32), u32::from(DSCP) & 0x0f),
            ("right", dport().binary(BinaryOp::ShiftRight, 4_u32), u32::from(DPORT >> 4)),
            ("left", dport().binary(BinaryOp::ShiftLeft, 4_u32), u32::from(DPORT << 4)),
        ] {
            let counter = r.count(counter);
            r.rule([Match::with(left, MatchOp::Eq, right).into(), counter]);
        }
    });
    one_packet(&lab);
    assert_eq!(["dscp", "right", "left"].map(|counter| lab.counted(counter)), [1; 3]);
}

#[test]
fn bits_across_bytes_are_marks() {
    let Some(lab) = Lab::new() else { return };
    let number = |bytes: &[u8]| bytes.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    let fit = fields().into_iter().filter(|(_, bytes)| bytes.len() <= 4);
    let marks: Vec<_> = fit.map(|(field, bytes)| (field, number(&bytes))).collect();
    lab.load(Family::IP6, |r| {
        with_bits(r);
        mark_by(r, &marks);
    });
    one_packet(&lab);
    assert_marked(&lab, &marks);
}

/// Makes each value a packet's mark and its connection's, and counts where that is the number that it has to
/// be.
fn mark_by(r: &mut Rules, marks: &[(Expression, u32)]) {
    r.filter(Hook::Forward);
    for (i, (value, mark)) in marks.iter().enumerate() {
        let [meta, ct] = ["meta", "ct"].map(|of| r.count(&format!("{of}{i}")));
        r.rule([Mangle::new(MetaKey::MARK, value.clone()).into()])
            .rule([Match::new(MetaKey::MARK, *mark).into(), meta])
            .rule([Mangle::new(CtKey::MARK, value.clone()).into()])
            .rule([Match::new(CtKey::MARK, *mark).into(), ct]);
    }
}

/// One packet has met them, and each number was right.
fn assert_marked(lab: &Lab, marks: &[(Expression, u32)]) {
    for (i, (value, _)) in marks.iter().enumerate() {
        assert_eq!(["meta", "ct"].map(|of| lab.counted(&format!("{of}{i}"))), [1; 2], "{value}");
    }
}

/// Larger than a frame: the sender has to make the checksum itself, the router puts the packet together, the
/// server looks at the checksum.
fn send_large(lab: &Lab, port: u16) {
    let client = udp(&lab.client, (CLIENT, 0));
    client.send_to(&[7; 3000], (SERVER, port)).expect("a datagram is sent");
}

#[test]
fn a_udp_checksum_stays_right_or_absent() {
    let Some(lab) = Lab::new() else { return };
    let raw_port = RawPayload { base: PayloadBase::TRANSPORT, offset: 16, bits: 16 };
    lab.load(Family::IP, |r| {
        r.base(ChainType::Filter, Hook::Prerouting, -150)
            .rule([Match::new(CtKey::STATE, CtState::NEW).into()])
            .rule([to_port(1001), Mangle::new(Payload::UDP_CHECKSUM, 0_u32).into()])
            .rule([to_port(1001), Mangle::new(Payload::UDP_DPORT, Port(2001)).into()])
            .rule([to_port(1002), Mangle::new(Payload::UDP_DPORT, Port(2002)).into()])
            .rule([to_port(1003), Mangle::new(raw_port, 2003_u32).into()]);
        let none = Statement::from(Match::new(Payload::UDP_CHECKSUM, 0_u32));
        let [absent, every] = ["absent", "every"].map(|counter| r.count(counter));
        r.filter(Hook::Forward).rule([none, absent]).rule([every]);
    });
    let sockets = [2001, 2002, 2003].map(|port| udp(&lab.server, (SERVER, port)));
    [1003, 1001, 1002].into_iter().for_each(|port| send_large(&lab, port));
    received(&sockets[0]);
    received(&sockets[1]);
    // Bytes without a name have no checksum: the server takes a wrong one for what it is.
    lab.wait("every", 3);
    assert_eq!(waiting(&sockets[2]), 0);
    assert_eq!(lab.counted("absent"), 1);
}

#[test]
fn fields_of_headers_are_marks() {
    let Some(lab) = Lab::new() else { return };
    let (saddr, dport) = (|| Expression::from(Payload::IP_SADDR), || Expression::from(Payload::UDP_DPORT));
    let marks = [
        (saddr(), 0x0a01_0002_u32),
        (dport(), 1001),
        (Payload::UDP_LENGTH.into(), 9),
        (Payload::IP_PROTOCOL.into(), 17),
        (Payload::IP_DSCP.into(), 0x2e),
        (RawPayload { base: PayloadBase::NETWORK, offset: 96, bits: 24 }.into(), 0x000a_0100),
        (saddr().and(ip(0, 255, 0, 255)), 0x0001_0002),
        (dport().or(0x10000_u32), 0x10000 | 1001),
        (dport().and(0xff_u32).or(0x10000_u32), 0x10000 | 1001 & 0xff),
        (dport().xor(0x7_0001_u32), 0x7_0001 ^ 1001),
        (dport().binary(BinaryOp::ShiftLeft, 16_u32), 1001 << 16),
        (dport().binary(BinaryOp::ShiftRight, 4_u32), 1001 >> 4),
        (Expression::from(Payload::IP_DSCP).or(0x40_u32), 0x6e),
        (Expression::from(Payload::IP_DSCP).binary(BinaryOp::ShiftLeft, 26_u32).or(1_u32), 0x2e << 26 | 1),
    ];
    lab.load(Family::IP, |r| {
        r.base(ChainType::Filter, Hook::Prerouting, -300).rule([Mangle::new(
            Payload::IP_DSCP,
            u32::from(DSCP),
        )
        .into()]);
        mark_by(r, &marks);
    });
    let server = udp(&lab.server, (SERVER, 1001));
    lab.send((SERVER, 1001));
    received(&server);
    assert_marked(&lab, &marks);
}

#[test]
fn constants_are_parts_of_keys() {
    let Some(lab) = Lab::new() else { return };
    let key = |service: u16| {
        let parts = [Payload::IP_SADDR.into(), Mark(0x64).into(), Port(service).into()];
        Expression::concat(parts)
    };
    lab.load(Family::IP, |r| {
        let (seen, ranges) = (r.table.set(name("seen")), r.table.set(name("ranges")));
        let types = || [DataType::IPV4_ADDR, DataType::MARK, DataType::INET_SERVICE];
        r.tx.add(Set::new(seen.clone(), types()).flags(SetFlags::DYNAMIC).size(9));
        r.tx.add(Set::new(ranges.clone(), types()).flags(SetFlags::INTERVAL));
        let (low, high) = (Ipv4Addr::new(10, 1, 0, 0), Ipv4Addr::new(10, 1, 0, 255));
        let bounds = ((low, Mark(0x60), Port(80)), (high, Mark(0x6f), Port(90)));
        r.tx.add_element(&ranges, Element::range(bounds.0, bounds.1));
        let [own, other, inside, outside] =
            ["own", "other", "inside", "outside"].map(|counter| r.count(counter));
        let is_in = |service, set: &SetId| Match::new(key(service), Expression::named(&set.name)).into();
        r.filter(Hook::Forward)
            .rule([SetUpdate::update(&seen.name, key(80)).into()])
            .rule([is_in(80, &seen), own])
            .rule([is_in(81, &seen), other])
            .rule([is_in(85, &ranges), inside])
            .rule([is_in(91, &ranges), outside]);
    });
    let server = udp(&lab.server, (SERVER, 1001));
    lab.send((SERVER, 1001));
    received(&server);
    assert_eq!(["own", "other", "inside", "outside"].map(|counter| lab.counted(counter)), [1, 0, 1, 0]);
    let listed = lab.router.run(|| read::ruleset(&mut netlink(), Family::IP).expect("a ruleset").content());
    let (_, elements) = listed[0].sets.iter().find(|(set, _)| *set.id.name == *"seen").expect("a set");
    assert_eq!(elements[0].to_string(), "10.1.0.2 . 0x00000064 . 80");
}

#[test]
fn bits_of_two_values_are_joined() {
    if !needs::met("two values") {
        return;
    }
    let Some(lab) = Lab::new() else { return };
    let (meta, ct) = (|| Expression::from(MetaKey::MARK), || Expression::from(CtKey::MARK));
    let (first, second) = (0x1234_5678_u32, 0x9abc_def0_u32);
    let tried = [
        (meta().and(ct()), first & second),
        (meta().or(ct()), first | second),
        (meta().xor(ct()), first ^ second),
        (ct().and(0xffff_0000_u32).or(meta().and(0xffff_u32)), 0x9abc_5678),
        (meta().and(ct().or(0xff_u32)), first & (second | 0xff)),
        (meta().xor(Payload::UDP_DPORT).or(0x200_u32), first ^ 1001 | 0x200),
        (Expression::from(Payload::UDP_DPORT).or(meta()).and(0xffff_u32), (first | 1001) & 0xffff),
        (Expression::from(Payload::IP_PROTOCOL).xor(meta()).or(0x300_u32), first ^ 17 | 0x300),
        (Expression::from(Payload::IP_SADDR).xor(Payload::IP_DADDR), 0x0a01_0002 ^ 0x0a02_0002),
    ];
    lab.load(Family::IP, |r| {
        r.filter(Hook::Forward);
        for (i, (value, is)) in tried.iter().enumerate() {
            let counter = r.count(&format!("counter{i}"));
            r.rule([
                Mangle::new(MetaKey::MARK, first).into(),
                Mangle::new(CtKey::MARK, second).into(),
                Mangle::new(MetaKey::MARK, value.clone()).into(),
                Match::new(MetaKey::MARK, *is).into(),
                counter,
            ]);
        }
    });
    let server = udp(&lab.server, (SERVER, 1001));
    lab.send((SERVER, 1001));
    received(&server);
    for (i, (value, _)) in tried.iter().enumerate() {
        assert_eq!(lab.counted(&format!("counter{i}")), 1, "{value}");
    }
}

#[test]
fn bits_are_changed_among_others() {
    let Some(lab) = Lab::new() else { return };
    let dscp = || Expression::from(Payload::IP_DSCP);
    lab.load(Family::IP, |r| {
        r.base(ChainType::Filter, Hook::Prerouting, -300)
            .rule([Mangle::new(Payload::IP_DSCP, 0x29_u32).into()])
            .rule([Mangle::new(Payload::IP_TTL, 0x35_u32).into()])
            .rule([Mangle::new(Payload::IP_DSCP, dscp().or(0x4_u32)).into()])
            .rule([Mangle::new(Payload::IP_DSCP, dscp().and(0x3e_u32)).into()])
            .rule([Mangle::new(Payload::IP_DSCP, dscp().xor(0x10_u32)).into()])
            .rule([Mangle::new(
                Payload::IP_TTL,
                Expression::from(Payload::IP_TTL).and(0x3f_u32).or(0x2_u32),
            )
            .into()]);
    });
    load(&lab.server, Family::IP, |r| {
        let [dscp, ttl, kept] = ["dscp", "ttl", "kept"].map(|counter| r.count(counter));
        r.filter(Hook::Input)
            .rule([Match::new(Payload::IP_DSCP, 0x3c_u32).into(), dscp])
            // The router takes one.
            .rule([Match::new(Payload::IP_TTL, 0x36_u32).into(), ttl])
            .rule([
                Match::new(Payload::IP_HDRLENGTH, 5_u32).into(),
                Match::new(Payload::IP_ECN, 0_u32).into(),
                Match::new(Payload::IP_PROTOCOL, 17_u32).into(),
                kept,
            ]);
    });
    let server = udp(&lab.server, (SERVER, 1001));
    lab.send((SERVER, 1001));
    received(&server);
    assert_eq!(["dscp", "ttl", "kept"].map(|counter| lab.server.run(|| counted(counter))), [1; 3]);
}
