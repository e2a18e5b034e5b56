//! Objects that nft 1.0.6 has no words for, or that a kernel takes only with a security module.

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::probe::{Feature, has_object_kind, supports};
use sluicegate_nftables::*;

use crate::kernel::cases::{self, Case};
use crate::kernel::parity;

fn socket() -> Socket {
    Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket")
}

/// Loads a case and compares what is held with what was meant: the objects, and the rules that use them.
fn is_held_as_meant(case: &Case) {
    let mut socket = socket();
    case.transaction.apply(&mut socket).unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let listed = read::ruleset(&mut socket, Family::UNSPEC).expect("a ruleset").content().remove(0);
    let (mut objects, mut rules) = (Vec::new(), Vec::new());
    for operation in case.transaction.operations() {
        match operation {
            Operation::Add(Object::Stateful(object)) => objects.push(StatefulObject::clone(object)),
            Operation::Add(Object::Rule(rule)) => rules.push(rule.statements.clone()),
            _ => {}
        }
    }
    let by_name = |object: &StatefulObject| object.id.clone();
    let mut found = listed.objects.clone();
    found.sort_by_key(by_name);
    objects.sort_by_key(by_name);
    assert_eq!(found, objects, "{}", case.name);
    let found: Vec<_> =
        listed.chains.iter().flat_map(|(_, rules)| rules).map(|r| r.statements.clone()).collect();
    assert_eq!(found, rules, "{}", case.name);

    // They go as they came.
    let mut tx = Transaction::new();
    for (chain, rules) in &listed.chains {
        tx.flush(&chain.id);
        assert!(rules.len() >= objects.len() || rules.is_empty());
    }
    objects.iter().for_each(|object| {
        tx.delete(object.id.clone());
    });
    tx.apply(&mut socket).unwrap_or_else(|error| panic!("{}: {error}", case.name));
    assert!(read::objects(&mut socket, Family::UNSPEC).expect("objects").is_empty());
}

#[test]
fn tunnels_are_held_as_they_were_meant() {
    testns::netns(|| {
        if !supports(&mut socket(), Feature::TunnelObject).expect("it answers") {
            assert!(cases::objects::tunnels().transaction.apply(&mut socket()).is_err());
            return;
        }
        is_held_as_meant(&cases::objects::tunnels());
    });
}

/// Before Linux 6.18, several options may overwrite the kernel's memory: nothing of that is to be tried
/// there.
#[test]
fn options_of_geneve_are_held_as_they_were_meant() {
    testns::netns(|| {
        if !supports(&mut socket(), Feature::TunnelObject).expect("it answers")
            || crate::kernel::probing::version() < (6, 18)
        {
            return testns::lacks("tunnel objects that do no harm");
        }
        is_held_as_meant(&cases::objects::geneve());
    });
}

#[test]
fn limits_of_connections_are_held_as_they_were_meant() {
    testns::netns(|| {
        if !has_object_kind(&mut socket(), Family::IP, ObjectKind::CONNLIMIT).expect("it answers") {
            assert!(cases::objects::connlimits().transaction.apply(&mut socket()).is_err());
            return;
        }
        is_held_as_meant(&cases::objects::connlimits());
    });
}

/// Loaded by netlink and read back. nft 1.0.6, which has no words for them, lists what is only to be checked
/// nevertheless.
#[test]
fn types_that_nft_1_0_6_cannot_say_are_held_as_they_were_meant() {
    let queue = crate::kernel::needs::met("queue");
    testns::netns(|| {
        let case = cases::objects::types(queue);
        let mut socket = socket();
        case.transaction.apply(&mut socket).expect("the kernel takes them");
        let listed = read::ruleset(&mut socket, Family::UNSPEC).expect("a ruleset").content().remove(0);
        let text = listed.to_string();
        for wanted in [
            "typeof ip saddr . tcp dport : queue",
            "10.0.0.1 . 81 : 258 }",
            if queue { "queue flags bypass to ip saddr . tcp dport map @queues" } else { "" },
            "typeof fib daddr check : verdict",
            "fib daddr check vmap @routed",
        ] {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
        if testns::have(&["nft"]) {
            // It takes the note of a queue for one that it can read, and ends with a segmentation fault.
            let mut tx = Transaction::new();
            let table = TableId::new(Family::IP, cases::name("t"));
            tx.flush(table.chain(cases::name("c"))).delete(table.map(cases::name("queues")));
            tx.apply(&mut socket).expect("no rule uses it");
            let listed = testns::sh("nft list ruleset");
            assert!(listed.contains("map routed"), "{listed}");
        }
    });
}

/// Before, the kernel did not tell these from those that have the timeout of their set.
#[test]
fn elements_that_never_go_are_held_as_such() {
    testns::netns(|| {
        if crate::kernel::probing::version() < (6, 12) {
            return testns::lacks("elements known to stay");
        }
        let case = cases::objects::never();
        let mut socket = socket();
        case.transaction.apply(&mut socket).expect("the kernel takes them");
        let listed = read::ruleset(&mut socket, Family::UNSPEC).expect("a ruleset").content().remove(0);
        let text = listed.to_string();
        assert!(text.contains("1 timeout never comment \"stays\", 2 timeout 1m, 3 }"), "{text}");
        assert!(text.contains("10.0.0.0-10.0.0.9 timeout never : accept"), "{text}");
        // With all that is told, these have no rest of time.
        let mut options = ListOptions::default();
        options.state = true;
        let text = listed.display(&options).to_string();
        assert!(text.contains("1 timeout never comment"), "{text}");
        assert!(text.contains("2 timeout 1m expires "), "{text}");
    });
}

#[test]
fn timeouts_of_all_protocols_are_held_as_they_were_meant() {
    testns::netns(|| {
        assert!(supports(&mut socket(), Feature::CtTimeout).expect("it answers"));
        is_held_as_meant(&cases::objects::timeouts(false));
        let dccp = cases::objects::timeouts(true);
        Transaction::new().flush(Flush::Ruleset(Family::UNSPEC)).apply(&mut socket()).expect("all goes");
        if dccp.transaction.apply(&mut socket()).is_err() {
            return testns::lacks("connections of DCCP");
        }
        Transaction::new().flush(Flush::Ruleset(Family::UNSPEC)).apply(&mut socket()).expect("all goes");
        is_held_as_meant(&dccp);
    });
}

/// Where a security module knows the context, as in a guest, the object is held; else the kernel says that it
/// knows none, and whose fault it was.
#[test]
fn a_secmark_is_held_or_refused_by_name() {
    testns::netns(|| {
        let case = cases::objects::secmarks();
        let mut socket = socket();
        assert!(supports(&mut socket, Feature::Secmark).expect("it answers"), "the kind is known");
        let Err(error) = case.transaction.apply(&mut socket) else {
            Transaction::new().flush(Flush::Ruleset(Family::UNSPEC)).apply(&mut socket).expect("all goes");
            is_held_as_meant(&case);
            return parity::compare(&case).expect("nft loads and lists it alike");
        };
        assert!(
            testns::guest().is_none_or(|guest| guest != "qemu"),
            "it knows security contexts, yet {error}"
        );
        let failure = &error.failures()[0];
        let modules = std::fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
        assert!(!modules.contains("selinux"), "{modules} knows security contexts, yet {error}");
        assert_eq!(
            (failure.operation, failure.verb, failure.object().as_str()),
            (Some(2), "add", "secmark inet t ssh")
        );
        assert!(error.to_string().contains("no security module"), "{error}");
    });
}
