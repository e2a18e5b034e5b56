//! Chains that devices run themselves: what the kernel takes of them where no driver has a say, on a device
//! that is not there.

use sluicegate_nftables::expr::MetaKey;
use sluicegate_nftables::fake::Fake;
use sluicegate_nftables::lang::*;
use sluicegate_nftables::*;

use sluicegate_netlink::Errno;

use crate::fake::outcome::{Outcome, normalized};
use crate::fake::{first_difference, flush, follows_this_kernel, history, socket, text};
use crate::kernel::cases::{ip, name};

fn table(family: Family) -> TableId {
    TableId::new(family, name("t"))
}

fn chain(family: Family, hook: Hook, priority: i32) -> Chain {
    let base = Chain::base(table(family).chain(name("c")), ChainType::Filter, hook, Priority(priority));
    let base = base.offload();
    match hook {
        Hook::Ingress | Hook::Egress => base.devices([InterfaceName::new("card0").expect("a name")]),
        _ => base,
    }
}

fn ingress() -> Chain {
    chain(Family::NETDEV, Hook::Ingress, 10)
}

fn rule() -> Rule {
    ingress().id.rule()
}

/// Transactions, each after the one before.
fn steps() -> Vec<(&'static str, Vec<Transaction>)> {
    let with = |fill: &dyn Fn(&mut Transaction)| {
        let mut tx = Transaction::new();
        tx.add(Table::new(table(Family::NETDEV)));
        fill(&mut tx);
        tx
    };
    let of = |chain: Chain| {
        with(&|tx| {
            tx.add(Table::new(chain.id.table.clone())).add(chain.clone());
        })
    };
    let ruled = |rule: Rule| {
        with(&|tx| {
            tx.add(ingress()).add(rule.clone());
        })
    };
    let drop_from = |last| rule().then(Match::new(Payload::IP_SADDR, ip(10, 0, 0, last))).then(Verdict::Drop);
    let mut plain = ingress();
    plain.base.as_mut().expect("a base chain").offload = false;
    let mut all: Vec<(&'static str, Vec<Transaction>)> = vec![
        ("at ingress", vec![of(ingress()), of(ingress())]),
        ("at egress", vec![of(chain(Family::NETDEV, Hook::Egress, 10))]),
        ("of inet, at ingress", vec![of(chain(Family::INET, Hook::Ingress, 10))]),
        ("of inet, of no device", vec![of(chain(Family::INET, Hook::Input, 10))]),
        ("at priority 0", vec![of(chain(Family::NETDEV, Hook::Ingress, 0))]),
        ("at a negative priority", vec![of(chain(Family::NETDEV, Hook::Ingress, -1))]),
        ("at the last priority", vec![of(chain(Family::NETDEV, Hook::Ingress, 65535))]),
        ("behind the last priority", vec![of(chain(Family::NETDEV, Hook::Ingress, 65536))]),
        ("with the policy accept", vec![of(ingress().policy(Policy::Accept))]),
        ("with the policy drop", vec![of(ingress().policy(Policy::Drop)), of(ingress())]),
        ("of inet with the policy drop", vec![of(chain(Family::INET, Hook::Input, 7).policy(Policy::Drop))]),
        ("with the policy drop later", vec![of(ingress()), of(ingress().policy(Policy::Drop))]),
        ("there without", vec![of(plain.clone()), of(ingress())]),
        ("there with, said without", vec![of(ingress()), of(plain)]),
        (
            "deleted",
            vec![
                ruled(drop_from(1)),
                with(&|tx| {
                    tx.delete(ingress().id);
                }),
            ],
        ),
        (
            "a rule inserted",
            vec![
                ruled(drop_from(1)),
                with(&|tx| {
                    tx.insert(drop_from(2));
                }),
            ],
        ),
        (
            "a rule replaced",
            vec![
                ruled(drop_from(1)),
                with(&|tx| {
                    tx.replace(drop_from(2).handle(2));
                }),
            ],
        ),
        (
            "a rule behind another",
            vec![
                ruled(drop_from(1)),
                with(&|tx| {
                    tx.add(drop_from(2).position(2));
                }),
            ],
        ),
    ];
    all.extend(rules().into_iter().map(|rule| ("a rule", vec![ruled(rule)])));
    all
}

fn rules() -> Vec<Rule> {
    let matching = |left: Expression, right: Expression| rule().then(Match::new(left, right));
    let header = |field: Payload, right: Expression| matching(field.into(), right);
    let meta = |key, right: Expression| matching(Expression::Meta(key), right);
    let port = || Expression::from(Port(80));
    let mac = || Expression::from(EtherAddr([2, 0, 0, 0, 0, 1]));
    let set = || Expression::set([ip(1, 1, 1, 1), ip(2, 2, 2, 2)].map(Expression::from));
    let v6 = || Expression::from(std::net::Ipv6Addr::LOCALHOST);
    let matches = vec![
        rule(),
        header(Payload::IP_SADDR, ip(1, 2, 3, 4).into()),
        header(Payload::IP_DADDR, Expression::prefix(ip(10, 0, 0, 0), 8)),
        header(Payload::IP_DADDR, Expression::prefix(ip(10, 0, 0, 0), 9)),
        header(Payload::IP_SADDR, set()),
        header(Payload::IP_SADDR, Expression::range(ip(1, 1, 1, 1), ip(1, 1, 1, 5))),
        rule().then(Match::not(Payload::IP_SADDR, ip(1, 2, 3, 4))),
        header(Payload::IP_TTL, 64_u32.into()),
        header(Payload::IP_PROTOCOL, Protocol::TCP.into()),
        header(Payload::IP6_SADDR, v6()),
        header(Payload::IP6_NEXTHDR, Protocol::UDP.into()),
        header(Payload::IP6_HOPLIMIT, 3_u32.into()),
        header(Payload::TCP_DPORT, port()),
        header(Payload::UDP_SPORT, port()),
        header(Payload::TCP_SEQUENCE, 1_u32.into()),
        header(Payload::SCTP_DPORT, port()),
        header(Payload::ETHER_SADDR, mac()),
        header(Payload::ETHER_DADDR, mac()),
        header(Payload::VLAN_ID, 5_u32.into()),
        header(Payload::IP_SADDR, ip(1, 2, 3, 4).into()).then(Match::new(Payload::UDP_DPORT, Port(53))),
        meta(MetaKey::IIF, 1_u32.into()),
        meta(MetaKey::MARK, 1_u32.into()),
        meta(MetaKey::L4PROTO, Protocol::TCP.into()),
        meta(MetaKey::PROTOCOL, 0x0800_u32.into()),
        meta(MetaKey::IIFTYPE, 1_u32.into()),
        rule().then(Counter::default()),
    ];
    let mut all = matches.clone();
    all.extend(matches.iter().cloned().map(|rule| rule.then(Counter::default()).then(Verdict::Drop)));
    let ends = [
        Verdict::Accept.into(),
        Verdict::Return.into(),
        Verdict::Continue.into(),
        Statement::from(Mangle::new(MetaKey::MARK, 5_u32)),
        Fwd { device: 1_u32.into(), address: None }.into(),
        Dup { address: None, device: Some(1_u32.into()) }.into(),
        Fwd { device: 1_u32.into(), address: Some((Family::IP, ip(1, 2, 3, 4).into())) }.into(),
    ];
    all.extend(ends.map(|end| header(Payload::IP_SADDR, ip(1, 2, 3, 4).into()).then(end)));
    all
}

#[test]
fn a_chain_of_devices_is_taken_as_by_the_kernel() {
    if !follows_this_kernel() {
        return;
    }
    testns::netns(|| {
        let mut differ = Vec::new();
        for (what, transactions) in steps() {
            let (mut kernel, mut fake) = (socket(), Fake::new());
            for transaction in transactions {
                let said = transaction.to_string();
                let step = history::Step { transaction, ..history::Step::default() };
                let (ours, theirs) = (Outcome::of(&mut fake, &step), Outcome::of(&mut kernel, &step));
                if ours != theirs {
                    differ.push(format!("{what}: {said}fake: {ours:?}\nkernel: {theirs:?}\n"));
                    break;
                }
                let listed = read::ruleset(&mut kernel, Family::UNSPEC).expect("a ruleset");
                assert_eq!(text(&fake.ruleset()), text(&listed), "{what}: {said}");
                let difference = first_difference(&normalized(fake.ruleset()), &normalized(listed));
                assert!(difference.is_none(), "{what}: {said}{difference:?}");
            }
            flush(&mut socket());
        }
        assert!(differ.is_empty(), "{}", differ.join("\n"));
    });
}

#[test]
fn what_no_device_does_is_said() {
    let said = |fill: &dyn Fn(&mut Transaction)| {
        let mut tx = Transaction::new();
        tx.add(Table::new(table(Family::NETDEV)));
        fill(&mut tx);
        tx.apply(&mut Fake::new()).expect_err("no device does it").to_string()
    };
    let error = said(&|tx| {
        tx.add(ingress().policy(Policy::Drop));
    });
    assert!(error.contains("the batch: EOPNOTSUPP") && error.contains("the policy `drop`"), "{error}");
    let error = said(&|tx| {
        tx.add(ingress()).add(rule().then(Counter::default()));
    });
    assert!(error.contains("add rule netdev t c") && error.contains("a device can apply"), "{error}");
}

/// What is wrong with a batch as a whole is found when all else is taken: the kernel then blames the first
/// message.
#[test]
fn a_set_without_a_name_and_a_rule_is_the_fault_of_the_first_operation() {
    if !follows_this_kernel() {
        return;
    }
    testns::netns(|| {
        let mut transaction = Transaction::new();
        let set = table(Family::IP).set(name("s"));
        transaction.add(Table::new(table(Family::IP)));
        transaction.add(Set::new(set, DataType::IPV4_ADDR).flags(SetFlags::ANONYMOUS | SetFlags::CONSTANT));
        let step = history::Step { transaction, ..history::Step::default() };
        let theirs = Outcome::of(&mut socket(), &step);
        assert_eq!(Outcome::of(&mut Fake::new(), &step), theirs);
        assert!(
            matches!(theirs, Outcome::Refused(refusals) if refusals == [(Some(0), None, Errno::EINVAL, None)])
        );
    });
}
