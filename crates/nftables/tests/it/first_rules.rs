//! The first rules of somebody who knows nft and has just added this crate: they have to compile as one
//! would guess, and mean what nft's text for them means.

#![allow(clippy::wildcard_imports, reason = "this is how it begins")]

use std::net::{Ipv4Addr, Ipv6Addr};

use sluicegate_nftables::expr::*;
use sluicegate_nftables::lang::*;
use sluicegate_nftables::*;

/// A statement, and the text that nft has for it.
fn says(rule: &Rule, text: &str) {
    assert_eq!(rule.body().to_string(), text);
    // It can be sent, and its text means the same.
    let mut transaction = Transaction::new();
    transaction.add(rule.clone());
    let sent = |transaction: &Transaction| {
        let batch = transaction.encode(ApplyOptions::default()).expect("it can be sent");
        batch.bytes().expect("it has a length").to_vec()
    };
    let parsed = Transaction::parse(&format!("add rule {} {text}", rule.chain)).expect("nft's text");
    assert_eq!(sent(&transaction), sent(&parsed), "{text}");
}

#[test]
fn the_first_rules_are_as_one_would_guess() -> Result<(), Error> {
    let table = TableId::new(Family::INET, "filter".parse()?);
    let input = table.chain("input".parse()?);
    let (logged, trusted) = (table.chain("logged".parse()?), table.set("trusted".parse()?));
    let rule = || input.rule();

    // An interface, by its name.
    says(&rule().then(Match::new(MetaKey::IIFNAME, "lo")).then(Verdict::Accept), "iifname \"lo\" accept");
    says(&rule().then(Match::new(MetaKey::IIFNAME, ["eth0", "veth*"])), "iifname { \"eth0\", \"veth*\" }");
    let own = InterfaceName::new(r"veth\*")?;
    assert_eq!(rule().then(Match::new(MetaKey::OIFNAME, &own)).body().to_string(), r#"oifname "veth\*""#);
    // What is known, and what is not.
    let known = CtState::ESTABLISHED | CtState::RELATED;
    says(
        &rule().then(Match::new(CtKey::STATE, known)).then(Verdict::Accept),
        "ct state established,related accept",
    );
    says(
        &rule().then(Match::new(CtKey::STATE, CtState::INVALID)).then(Verdict::Drop),
        "ct state invalid drop",
    );
    // A port, several, and a range of them.
    says(&rule().then(Match::new(Payload::TCP_DPORT, 22)).then(Verdict::Accept), "tcp dport 22 accept");
    says(&rule().then(Match::new(Payload::TCP_DPORT, [80, 443])), "tcp dport { 80, 443 }");
    says(&rule().then(Match::new(Payload::UDP_DPORT, 1024..=65535)), "udp dport 1024-65535");
    // Addresses: one, a network, not one, a set by its name.
    says(&rule().then(Match::new(Payload::IP_SADDR, Ipv4Addr::LOCALHOST)), "ip saddr 127.0.0.1");
    let private = Expression::prefix(Ipv4Addr::new(10, 0, 0, 0), 8);
    says(&rule().then(Match::new(Payload::IP_SADDR, private)), "ip saddr 10.0.0.0/8");
    says(&rule().then(Match::not(Payload::IP6_DADDR, Ipv6Addr::LOCALHOST)), "ip6 daddr != ::1");
    says(&rule().then(Match::new(Payload::IP_SADDR, &trusted.name)), "ip saddr @trusted");
    says(&rule().then(Match::new(Payload::IP_SADDR, &trusted)), "ip saddr @trusted");
    // Fields that are compared together.
    says(
        &rule().then(Match::new([Payload::IP_SADDR, Payload::IP_DADDR], &trusted)),
        "ip saddr . ip daddr @trusted",
    );
    says(
        &rule().then(Match::new((Payload::IP_SADDR, MetaKey::IIFNAME), &trusted)),
        "ip saddr . iifname @trusted",
    );
    // Messages of ICMP.
    says(&rule().then(Match::new(Payload::ICMP_TYPE, IcmpType::ECHO_REQUEST)), "icmp type echo-request");
    let neighbours = [Icmpv6Type::ND_NEIGHBOR_SOLICIT, Icmpv6Type::ND_NEIGHBOR_ADVERT];
    says(
        &rule().then(Match::new(Payload::ICMPV6_TYPE, neighbours)),
        "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert }",
    );
    // Limits, logs, counters, verdicts by a map.
    says(
        &rule().then(Limit::packets(10, TimeUnit::Second).burst(20)).then(Counter::default()),
        "limit rate 10/second burst 20 packets counter",
    );
    let log = Log { prefix: Some(Comment::new("dropped ")?), ..Log::default() };
    says(&rule().then(log), "log prefix \"dropped \"");
    says(
        &rule().then(Vmap::new(
            Payload::TCP_DPORT,
            [(22, Verdict::Accept), (23, Verdict::Goto(logged.name.clone()))],
        )),
        "tcp dport vmap { 22 : accept, 23 : goto logged }",
    );
    // What is answered.
    says(&rule().then(Reject::TcpReset), "reject with tcp reset");
    says(&rule().then(Reject::icmpx(IcmpxCode::ADMIN_PROHIBITED)), "reject with icmpx admin-prohibited");
    says(&rule().then(Match::new(MetaKey::PKTTYPE, PacketType::BROADCAST)), "meta pkttype broadcast");
    says(&rule().then(Match::new(Payload::IP_TTL, 1_u8)), "ip ttl 1");
    says(&rule().then(Mangle::new(MetaKey::MARK, 0x10)), "meta mark set 0x00000010");

    // Translations.
    let pre = TableId::new(Family::IP, "nat".parse()?).chain("pre".parse()?);
    let web = || pre.rule().then(Match::new(Payload::TCP_DPORT, 80));
    says(&web().then(Statement::redirect(8080)), "tcp dport 80 redirect to :8080");
    says(&web().then(Statement::redirect(PortNat::default())), "tcp dport 80 redirect");
    says(&web().then(Statement::masquerade(1024..=2048)), "tcp dport 80 masquerade to :1024-2048");
    let persistent = PortNat::default().flags(NatFlags::PERSISTENT);
    says(&pre.rule().then(Statement::masquerade(persistent)), "masquerade persistent");
    says(&web().then(Statement::dnat(Ipv4Addr::new(10, 0, 0, 1))), "tcp dport 80 dnat to 10.0.0.1");
    let to = Nat::to_port(Ipv4Addr::new(10, 0, 0, 1), 8080);
    says(&web().then(Statement::dnat(to)), "tcp dport 80 dnat to 10.0.0.1:8080");

    // ARP.
    let arp = TableId::new(Family::ARP, "neighbours".parse()?).chain("in".parse()?);
    says(
        &arp.rule().then(Match::new(Payload::ARP_OPERATION, ArpOperation::REQUEST)),
        "arp operation request",
    );
    Ok(())
}

#[test]
fn a_value_that_does_not_fit_is_refused_with_what_was_expected() {
    let chain = TableId::new(Family::IP, Name::new("t").unwrap()).chain(Name::new("c").unwrap());
    for (rule, expected) in [
        (chain.rule().then(Match::new(Payload::IP_TTL, -1)), "found 18446744073709551615"),
        (chain.rule().then(Match::new(Payload::IP_TTL, 256)), "found 256"),
        (chain.rule().then(Match::new(Payload::IP_SADDR, "10.0.0.1")), "expected ipv4_addr"),
        (chain.rule().then(Match::new(MetaKey::IIFNAME, "")), "expected ifname"),
        (chain.rule().then(Match::new(MetaKey::IIFNAME, "sixteen_bytes_12")), "expected ifname"),
        (chain.rule().then(Match::new(MetaKey::IIFNAME, "a\"; flush ruleset\n")), "expected ifname"),
    ] {
        let mut transaction = Transaction::new();
        transaction.add(rule);
        let error = transaction.encode(ApplyOptions::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        // Whatever the text, it stays in its quotes.
        assert_eq!(transaction.to_string().lines().count(), 1);
        assert!(!transaction.to_string().contains("a\";"));
    }
}

/// A program that returns an error prints it by `Debug`.
#[test]
fn errors_are_readable_where_main_returns_them() {
    assert_eq!(
        format!("{:?}", Name::new("drop").unwrap_err()),
        "expected a name that is not a keyword of nft's language, found \"drop\""
    );
    let error: Error = Name::new("a b").unwrap_err().into();
    assert_eq!(format!("{error:?}"), "expected text without ' ', found \"a b\"");
    let chain = TableId::new(Family::IP, Name::new("t").unwrap()).chain(Name::new("c").unwrap());
    let mut transaction = Transaction::new();
    transaction.add(chain.rule().then(Match::new(Payload::IP_TTL, 256)));
    let error = transaction.encode(ApplyOptions::default()).unwrap_err();
    assert_eq!(
        format!("{error:?}"),
        "operation 1: rule ip t c ip ttl 256: expected integer of 1 byte, found 256"
    );
    let error = Transaction::parse("add rule ip t c tcp dport sssh").unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
    let error = Error::from(sluicegate_netlink::Error::Overrun);
    assert_eq!(format!("{error:?}"), error.to_string());
}
