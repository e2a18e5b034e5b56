//! What is looked up in sets and maps of every type: nft refuses a key, or a value, of another type, and so
//! do we, where the transaction adds the set. What nft takes we take.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use sluicegate_netlink::{NetlinkFamily, Options, Socket as NetlinkSocket};
use sluicegate_nftables::expr::{
    CtKey, Direction, ExthdrOp, FibFlags, FibResult, MetaKey, NatFlags, NumgenMode, PayloadBase, RtKey,
    SocketKey, XfrmKey,
};
use sluicegate_nftables::lang::exthdr::Exthdr;
use sluicegate_nftables::lang::*;
use sluicegate_nftables::*;

use crate::kernel::cases::fields::{fields, is_unread};
use crate::kernel::cases::name;
use crate::kernel::parity::apply;

#[test]
fn keys_are_of_the_types_that_nft_takes() {
    if is_tried() {
        uses(&keys_and_types()).compare().check(6000, 1500);
    }
}

#[test]
fn concatenations_are_of_the_types_that_nft_takes() {
    if !is_tried() {
        return;
    }
    let parts: [Expression; 4] = [
        Payload::IP_SADDR.into(),
        Payload::TCP_DPORT.into(),
        MetaKey::MARK.into(),
        Payload::IP_LENGTH.into(),
    ];
    let mut keys = parts.to_vec();
    for one in &parts {
        keys.extend(parts.iter().map(|other| Expression::concat([one.clone(), other.clone()])));
        keys.push(Expression::concat([one.clone(), parts[0].clone(), parts[1].clone()]));
    }
    let pairs: Vec<_> = keys
        .iter()
        .flat_map(|key| keys.iter().map(|of| (key.clone(), SetType::Typeof(of.clone()))))
        .collect();
    uses(&pairs).compare().check(1500, 50);
}

#[test]
fn values_are_of_the_types_that_nft_takes() {
    if !is_tried() {
        return;
    }
    let pairs = [
        [DataType::IPV4_ADDR, DataType::INET_SERVICE],
        [DataType::INET_SERVICE, DataType::IPV4_ADDR],
        [DataType::IPV6_ADDR, DataType::INET_SERVICE],
    ];
    let given = types().into_iter().chain(pairs.map(SetType::from)).map(SetData::Value);
    let given: Vec<_> = given.chain([SetData::Verdict]).collect();
    let mut all = Pairs::default();
    // nft forgets the type of a map that NAT has asked for a port: one after the other, it asks for other
    // maps first.
    for taker in 0..takers(&name("m")).len() {
        for (i, data) in given.iter().enumerate() {
            let map = name(&format!("m{i}"));
            let (family, taker) = takers(&map).swap_remove(taker);
            let set = Set::verdict_map(chain(family).table.map(map), DataType::IPV4_ADDR);
            let mut set = set.flags(SetFlags::DYNAMIC).size(9);
            set.data = Some(data.clone());
            all.push(set, [Match::new(MetaKey::L4PROTO, Protocol::TCP).into(), taker]);
        }
    }
    all.compare().check(1000, 100);
}

/// nft 1.0.6 cuts those off that are not of whole words, and lists half of them.
#[test]
fn intervals_of_values_are_read_as_they_were_made() {
    let intervals: [(DataType, Key, Key); 4] = [
        (DataType::INET_SERVICE, Port(5).into(), Port(9).into()),
        (DataType::INET_PROTO, Protocol(5).into(), Protocol(9).into()),
        (DataType::ETHER_ADDR, EtherAddr([2, 0, 0, 0, 0, 1]).into(), EtherAddr([2, 0, 0, 0, 0, 7]).into()),
        (DataType::IPV4_ADDR, Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 0, 0, 7).into()),
    ];
    let Some(namespace) = testns::Netns::new() else { return };
    for (of, low, high) in intervals {
        let table = TableId::new(Family::IP, name("t"));
        let map = Set::interval_map(table.map(name("m")), DataType::MARK, of);
        let element = Element::new(Mark(1)).value_range(low, high);
        let mut tx = Transaction::new();
        tx.flush(Flush::Ruleset(Family::UNSPEC)).add(Table::new(table)).add(map.clone());
        tx.add_element(&map.id, element.clone());
        let content = namespace.run(|| {
            apply(&tx).unwrap();
            let mut socket = NetlinkSocket::open(NetlinkFamily::NETFILTER, &Options::default()).unwrap();
            read::ruleset(&mut socket, Family::IP).unwrap().content()
        });
        let (listed, elements) = &content[0].sets[0];
        assert_eq!((listed.to_string(), elements.as_slice()), (map.to_string(), &[element][..]), "{of}");
    }
}

/// A kernel only keeps these rules: what one does with them, all do, and a guest takes long.
fn is_tried() -> bool {
    testns::guest().is_none() && testns::have(&["nft"])
}

/// Rules, each with the set or map that it looks into.
#[derive(Default)]
struct Pairs(Vec<(Set, Rule)>);

impl Pairs {
    fn push(&mut self, set: Set, statements: impl IntoIterator<Item = Statement>) {
        let rule = chain(set.id.table.family).rule();
        self.0.push((set, statements.into_iter().fold(rule, Rule::then)));
    }

    /// Asks nft and us what is wrong with each rule.
    fn compare(&self) -> Outcome {
        let Some(namespace) = testns::Netns::new() else { return Outcome::default() };
        let mut transaction = Transaction::new();
        for family in [Family::IP, Family::INET, Family::ARP, Family::BRIDGE, Family::NETDEV] {
            transaction.add(Table::new(chain(family).table)).add(Chain::new(chain(family)));
        }
        let sets: BTreeMap<_, _> = self.0.iter().map(|(set, _)| (&set.id, set)).collect();
        sets.values().for_each(|set| _ = transaction.add((*set).clone()));
        namespace.run(|| apply(&transaction)).expect("sets and maps");
        let theirs = namespace.run(|| refusals(&self.0));
        let mut outcome = Outcome::default();
        for ((set, rule), theirs) in self.0.iter().zip(theirs) {
            outcome.note(set, rule, theirs.as_deref());
        }
        outcome
    }
}

fn chain(family: Family) -> ChainId {
    TableId::new(family, name("t")).chain(name("c"))
}

/// What nft says of each rule by itself.
fn refusals(rules: &[(Set, Rule)]) -> Vec<Option<String>> {
    /// It stops at the tenth error.
    const ERRORS: usize = 10;
    let mut said: Vec<Option<String>> = Vec::new();
    while said.len() < rules.len() {
        let some: Vec<_> = rules.iter().skip(said.len()).take(2 * ERRORS).collect();
        let script: String = some.iter().map(|(_, rule)| format!("add {rule}\n")).collect();
        let output = testns::feed(&["nft", "-c", "-f", "-"], &script);
        let text = String::from_utf8_lossy(&output.stderr);
        // What cannot be read, or is not there, says nothing of types.
        let is_asked = !text.contains("syntax error") && !text.contains("did you mean");
        assert!(is_asked && output.status.code().is_some(), "{script}{text}");
        let errors: BTreeMap<usize, &str> = text.lines().filter_map(error).collect();
        let whole =
            if errors.len() < ERRORS { some.len() } else { errors.last_key_value().map_or(0, |e| *e.0) };
        said.extend((1..=whole).map(|line| errors.get(&line).map(|error| (*error).to_owned())));
    }
    said
}

/// `/dev/stdin:3:20-25: Error: what`
fn error(line: &str) -> Option<(usize, &str)> {
    let (place, what) = line.split_once(": Error: ")?;
    Some((place.split(':').nth(1)?.parse().ok()?, what))
}

/// What we say of a rule's types.
fn refusal(set: &Set, rule: &Rule) -> Option<String> {
    let mut transaction = Transaction::new();
    transaction.add(set.clone()).add(rule.clone());
    match transaction.encode(ApplyOptions::default()) {
        Err(Error::Statement { cause, .. })
            if matches!(*cause, LowerError::KeyType { .. } | LowerError::ValueType { .. }) =>
        {
            Some(cause.to_string())
        }
        _ => None,
    }
}

/// What came of all pairs.
#[derive(Debug, Default)]
struct Outcome {
    /// By nft and by us.
    refused: usize,
    taken: usize,
    /// Refused by nft 1.0.6 alone, or by us, which is known.
    left: usize,
    wrong: Vec<String>,
}

impl Outcome {
    fn note(&mut self, set: &Set, rule: &Rule, theirs: Option<&str>) {
        let ours = refusal(set, rule);
        match (theirs.is_some_and(|theirs| theirs.contains("datatype mismatch")), &ours) {
            (true, Some(_)) => self.refused += 1,
            (false, None) => self.taken += 1,
            (true, None) if is_left(set, rule) => self.left += 1,
            (false, Some(_)) if is_of_other_form(set, rule) => self.left += 1,
            _ => self.wrong.push(format!("{set}\n{rule}\n  nft: {theirs:?}\n  we: {ours:?}")),
        }
    }

    /// That nothing is otherwise, and how many were compared.
    fn check(&self, refused: usize, taken: usize) {
        println!("{} are refused, {} taken, {} left", self.refused, self.taken, self.left);
        assert!(self.wrong.is_empty(), "{} are otherwise:\n{}", self.wrong.len(), self.wrong.join("\n"));
        let is_skipped = self.refused + self.taken == 0;
        assert!(is_skipped || self.refused >= refused && self.taken >= taken, "too few: {self:?}");
    }
}

/// What we refuse and nft does not: to it, what a map gives says whether NAT has a port, which here the form
/// of the target says.
fn is_of_other_form(map: &Set, rule: &Rule) -> bool {
    let Some(SetData::Value(values)) = &map.data else { return false };
    let parts = values.parts().len();
    rule.statements.iter().any(|statement| match statement {
        Statement::Dnat(nat) | Statement::Snat(nat) => match nat.to {
            NatTarget::Address(_) => parts == 2,
            NatTarget::Concat(_) => parts == 1,
            _ => false,
        },
        _ => false,
    })
}

/// What nft 1.0.6 refuses and we do not.
fn is_left(set: &Set, rule: &Rule) -> bool {
    let text = rule.body().to_string();
    let single = |of: &SetType| match of.parts().as_slice() {
        [part] => Some(part.data_type()),
        _ => None,
    };
    let (keys, values) = match &set.data {
        Some(SetData::Value(values)) => (single(&set.key), single(values)),
        _ => (single(&set.key), None),
    };
    let (is_update, is_mangled) = (text.contains("update @"), text.contains("mark set"));
    // Bytes by place may be of any type, and so may what is shifted. Addresses of IP options and subtypes of
    // MPTCP have types of their own since; ports of conntrack and the interface of a route have them here.
    ["@nh,", " << ", "tcp option @", "ip option", "option mptcp", " proto-src", " proto-dst", " oifname"]
        .iter()
        .any(|word| text.contains(word))
        // Marks take any number in later versions, but not where a set is only asked whether it has it.
        || keys == Some(DataType::MARK) && (is_update || text.contains("map @"))
        || is_mangled && values.is_some_and(|of| of.bytes() <= 4)
        || is_update && values == Some(DataType::MARK)
        // Integers of other widths.
        || is_update && [keys, values].contains(&Some(DataType::INTEGER))
}

/// Each key with each type: looked up in a set and in a map, and put into a set.
fn uses(pairs: &[(Expression, SetType)]) -> Pairs {
    let (mut all, mut seen) = (Pairs::default(), Vec::new());
    for (key, of) in pairs {
        let table = chain(family_of(key)).table;
        if !seen.contains(&of) {
            seen.push(of);
        }
        let number = seen.iter().position(|seen| *seen == of).unwrap();
        let [set, map, dynamic] = ["s", "m", "d"].map(|word| name(&format!("{word}{number}")));
        let found = Match::new(key.clone(), Expression::named(&set));
        all.push(Set::new(table.set(set), of.clone()), [found.into()]);
        let vmap = Vmap::new(key.clone(), &map);
        all.push(Set::verdict_map(table.map(map), of.clone()), [vmap.into()]);
        let update = SetUpdate::update(&dynamic, key.clone());
        all.push(Set::new(table.set(dynamic), of.clone()).flags(SetFlags::DYNAMIC).size(9), [update.into()]);
    }
    all
}

/// The first key of each kind and type with all types; the others with their own, ports and marks.
fn keys_and_types() -> Vec<(Expression, SetType)> {
    let (mut seen, mut pairs) = (Vec::new(), Vec::new());
    for key in keys() {
        let own = key.part().map(Part::data_type);
        let kind = (std::mem::discriminant(&key), own);
        let is_first = !seen.contains(&kind);
        seen.push(kind);
        let close = [own, Some(DataType::INET_SERVICE), Some(DataType::MARK)];
        let is_close = |of: &SetType| close.contains(&of.parts().first().map(|part| part.data_type()));
        let chosen = types().into_iter().filter(|of| is_first || is_close(of));
        pairs.extend(chosen.map(|of| (key.clone(), of)));
    }
    pairs
}

/// The types that can stand behind `type`, and integers of two widths.
fn types() -> Vec<SetType> {
    let unnamed = [
        DataType::VERDICT,
        DataType::BITMASK,
        DataType::INTEGER,
        DataType::STRING,
        DataType::LL_ADDR,
        DataType::CT_LABEL,
        DataType::CT_EVENT,
        // nft finds another by its name.
        DataType::DATE,
    ];
    let named = DataType::ALL.iter().copied().filter(|of| !unnamed.contains(of)).map(SetType::from);
    let integers = [Payload::IP_LENGTH, Payload::TCP_SEQUENCE].map(|field| SetType::Typeof(field.into()));
    named.chain(integers).collect()
}

/// Every kind of key.
fn keys() -> Vec<Expression> {
    let is_presence = |field: &Expression| matches!(field, Expression::Exthdr(e) if e.is_presence());
    let mut keys: Vec<_> =
        fields().into_iter().filter(|field| !is_unread(field) && !is_presence(field)).collect();
    let newer = [MetaKey::BROUTE, MetaKey::IBRHWADDR];
    keys.extend(MetaKey::ALL.iter().filter(|key| !newer.contains(key)).map(|key| Expression::from(*key)));
    for key in CtKey::ALL.iter().copied() {
        let direction = match key {
            CtKey::SADDR | CtKey::DADDR => continue,
            CtKey::PROTO_SRC | CtKey::PROTO_DST => Some(Direction::ORIGINAL),
            CtKey::SADDR_IP | CtKey::DADDR_IP | CtKey::SADDR_IP6 | CtKey::DADDR_IP6 => Some(Direction::REPLY),
            _ => None,
        };
        keys.push(Ct { key, direction, family: None }.into());
    }
    keys.extend(RtKey::ALL.iter().map(|key| Expression::Rt(Rt { key: *key })));
    let level = |key| (key == SocketKey::CGROUPV2).then_some(1);
    keys.extend(
        SocketKey::ALL.iter().map(|key| Expression::Socket(Socket { key: *key, level: level(*key) })),
    );
    keys.extend(XfrmKey::ALL.iter().map(|key| Expression::Ipsec(Ipsec { key: *key, out: false, number: 0 })));
    let fib = |result| Fib { flags: FibFlags::DADDR, result, check: false }.into();
    keys.extend([FibResult::ADDRTYPE, FibResult::OIF, FibResult::OIFNAME].map(fib));
    let of = Payload::IP_SADDR.into();
    keys.extend([
        Expression::Osf(Osf { ttl: 0, version: false }),
        Numgen { mode: NumgenMode::INCREMENTAL, modulus: 2, offset: 0 }.into(),
        Expression::Symhash(Symhash { modulus: 2, offset: 0 }),
        Expression::Jhash(Box::new(Jhash { of, modulus: 2, seed: Some(1), offset: 0 })),
        RawPayload { base: PayloadBase::NETWORK, offset: 96, bits: 32 }.into(),
        Expression::from(MetaKey::MARK).and(0xff_u32),
        Expression::from(Payload::IP_SADDR).and(Ipv4Addr::new(255, 0, 0, 255)),
        Expression::from(Payload::TCP_DPORT).binary(BinaryOp::ShiftLeft, 1_u32),
    ]);
    keys
}

/// The family whose tables can have it.
fn family_of(expression: &Expression) -> Family {
    match expression {
        Expression::Payload(field) if field.protocol() == "arp" => Family::ARP,
        Expression::Meta(MetaKey::IBRNAME | MetaKey::OBRNAME | MetaKey::IBRPVID | MetaKey::IBRVPROTO) => {
            Family::BRIDGE
        }
        _ => Family::INET,
    }
}

/// Statements that take what a map gives for `ip saddr`, or put something into it.
fn takers(map: &Name) -> Vec<(Family, Statement)> {
    let given = || Expression::from(Payload::IP_SADDR).map(map);
    let nat = |family, to| Nat { family: Some(family), to, flags: NatFlags::empty() };
    let dnat = |to| Statement::dnat(nat(Family::IP, to));
    let tproxy = |address, port| Tproxy { family: Some(Family::IP), address, port }.into();
    let port = Some(given());
    let mut inet: Vec<Statement> = vec![
        dnat(NatTarget::Address(given())),
        dnat(NatTarget::AddressPort(Ipv4Addr::LOCALHOST.into(), given())),
        dnat(NatTarget::Concat(given())),
        Statement::snat(nat(Family::IP6, NatTarget::Address(given()))),
        Statement::redirect(PortNat { port, ..PortNat::default() }),
        tproxy(Some(given()), None),
        tproxy(None, Some(given())),
        Queue { to: given(), bypass: false, fanout: false }.into(),
        Vmap::new(Payload::IP_SADDR, map).into(),
    ];
    let maxseg = Exthdr::find(ExthdrOp::TCPOPT, "maxseg", "size").unwrap();
    let changed: [Expression; 10] = [
        MetaKey::MARK.into(),
        MetaKey::PRIORITY.into(),
        MetaKey::PKTTYPE.into(),
        CtKey::MARK.into(),
        CtKey::ZONE.into(),
        Payload::IP_DADDR.into(),
        Payload::ETHER_SADDR.into(),
        Payload::TCP_DPORT.into(),
        Payload::IP_ID.into(),
        maxseg.into(),
    ];
    inet.extend(changed.map(|key| Mangle::new(key, given()).into()));
    let put: [Expression; 6] = [
        MetaKey::CPU.into(),
        MetaKey::MARK.into(),
        MetaKey::IIFNAME.into(),
        Payload::IP_DADDR.into(),
        Payload::TCP_DPORT.into(),
        Payload::IP_LENGTH.into(),
    ];
    let update = |value| SetUpdate { value: Some(value), ..SetUpdate::update(map, Payload::IP_SADDR) };
    inet.extend(put.map(|value| update(value).into()));
    let others = [
        (Family::IP, Statement::dnat(Nat::to(given()))),
        (Family::IP, Dup { address: Some(given()), device: None }.into()),
        (Family::NETDEV, Dup { address: None, device: Some(given()) }.into()),
        (Family::NETDEV, Fwd { device: given(), address: None }.into()),
    ];
    inet.into_iter().map(|statement| (Family::INET, statement)).chain(others).collect()
}
