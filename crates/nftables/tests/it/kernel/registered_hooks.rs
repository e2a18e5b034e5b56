//! What is registered at the hooks of netfilter, as nft lists it, and as packets meet it.

use std::net::UdpSocket;

use sluicegate_netlink::{Errno, NetlinkFamily, Options, Socket};
use sluicegate_nftables::expr::{CtKey, MetaKey};
use sluicegate_nftables::lang::{Counter, CtState, Mangle, Match, PortNat, Statement, Verdict};
use sluicegate_nftables::probe::{Feature, supports};
use sluicegate_nftables::read::{HookListing, RegisteredBy, RegisteredHook};
use sluicegate_nftables::*;

use crate::kernel::cases::name;
use crate::kernel::needs;

fn socket() -> Socket {
    Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket")
}

fn base(table: &TableId, chain: &str, kind: ChainType, hook: Hook, priority: i32) -> Chain {
    Chain::base(table.chain(name(chain)), kind, hook, Priority(priority))
}

fn on(device: &str) -> [InterfaceName; 1] {
    [InterfaceName::new(device).expect("a name")]
}

fn listed(family: Family, device: Option<&str>) -> Vec<RegisteredHook> {
    read::hooks(&mut socket(), family, device).expect("it answers").expect("it can tell")
}

fn text(family: Family, device: Option<&str>) -> String {
    HookListing(&listed(family, device)).to_string()
}

/// Chains of every family, of every type, a flowtable, connection tracking, NAT; at no hook more than two of
/// one priority.
fn scene() -> Transaction {
    let mut tx = Transaction::new();
    let table = |family| TableId::new(family, name("t"));
    for family in [Family::IP, Family::IP6, Family::INET, Family::ARP, Family::BRIDGE, Family::NETDEV] {
        tx.add(Table::new(table(family)));
    }
    let (ip, inet, arp) = (table(Family::IP), table(Family::INET), table(Family::ARP));
    let (bridge, netdev) = (table(Family::BRIDGE), table(Family::NETDEV));
    let filter = || ChainType::Filter;
    tx.add(base(&ip, "a", filter(), Hook::Input, 0)).add(base(&ip, "b", filter(), Hook::Input, 0));
    tx.add(base(&ip, "routed", ChainType::Route, Hook::Output, -150));
    tx.add(base(&table(Family::IP6), "late", filter(), Hook::Forward, i32::MAX));
    tx.add(base(&inet, "both", filter(), Hook::Input, -5))
        .add(base(&inet, "ingress_one", filter(), Hook::Ingress, 3).devices(on("one")));
    let nat = base(&inet, "masks", ChainType::Nat, Hook::Postrouting, 100);
    let masquerade = nat.id.rule().then(Statement::masquerade(PortNat::default()));
    tx.add(nat).add(masquerade);
    let tracked =
        inet.chain(name("both")).rule().then(Match::new(CtKey::STATE, CtState::NEW)).then(Verdict::Accept);
    tx.add(tracked);
    tx.add(base(&arp, "asks", filter(), Hook::Input, 0)).add(base(
        &arp,
        "answers",
        filter(),
        Hook::Output,
        -1,
    ));
    tx.add(base(&bridge, "f", filter(), Hook::Forward, i32::MIN));
    tx.add(base(&bridge, "p", filter(), Hook::Prerouting, -300));
    tx.add(base(&netdev, "ingress_one", filter(), Hook::Ingress, -7).devices(on("one")));
    tx.add(base(&netdev, "in_two", filter(), Hook::Ingress, 8).devices(on("two")));
    tx.add(base(&netdev, "out", filter(), Hook::Egress, 9).devices(on("two")));
    if needs::met("flowtable") {
        let mut flowtable = Flowtable::new(inet.flowtable(name("f")), Priority(10));
        flowtable.devices = on("one").to_vec();
        tx.add(flowtable);
    }
    tx
}

#[test]
fn what_is_registered_is_listed_as_nft_lists_it() {
    if !needs::met("registered hooks") || !testns::have(&["nft", "ip"]) {
        return;
    }
    testns::netns(|| {
        assert_eq!(testns::sh("ip link add one type veth peer name two"), "");
        scene().apply(&mut socket()).expect("a scene");
        // Another program that registers functions of its own, where there is one.
        let other = testns::try_sh("iptables-legacy -t raw -A PREROUTING -j ACCEPT").status.success();
        let nft = |what: &str| testns::sh(&format!("nft list hooks {what}"));
        for (family, device, what) in [
            (Family::IP, None, "ip"),
            (Family::IP6, None, "ip6"),
            (Family::INET, None, "inet"),
            (Family::ARP, None, "arp"),
            (Family::BRIDGE, None, "bridge"),
            (Family::NETDEV, Some("one"), "netdev device one"),
            (Family::NETDEV, Some("lo"), "netdev device lo"),
        ] {
            assert_eq!(text(family, device), nft(what), "{what}");
        }
        let everything = text(Family::UNSPEC, None);
        assert_eq!(everything, nft("") + &nft("arp"), "nft leaves ARP out");
        let out = "\thook egress {\n\t\t+0000000009 chain netdev t out [nf_tables]\n\t}\n}\n";
        let two = nft("netdev device two");
        let two = format!("{}{out}", two.strip_suffix("}\n").expect("a family"));
        assert_eq!(text(Family::NETDEV, Some("two")), two, "and egress");
        assert_eq!(text(Family::UNSPEC, Some("two")), everything.clone() + &two);

        for line in [
            "-0000000200 ipv4_conntrack_in [nf_conntrack]",
            "+0000000100 nf_nat_ipv6_out [nf_nat]",
            "-0000000150 chain ip t routed [nf_tables]",
            "+2147483647 chain ip6 t late [nf_tables]",
            "-2147483648 chain bridge t f [nf_tables]",
        ] {
            assert!(everything.contains(&format!("\t\t{line}\n")), "{line}:\n{everything}");
        }
        assert_eq!(everything.contains("-0000000300 ipt_do_table [ip_tables]\n"), other, "{everything}");
        assert!(!everything.contains("inet t masks"), "nf_nat runs it:\n{everything}");
    });
}

#[test]
fn whoever_is_registered_is_named() {
    if !needs::met("registered hooks") || !testns::have(&["ip"]) {
        return;
    }
    testns::netns(|| {
        assert_eq!(testns::sh("ip link add one type veth peer name two"), "");
        scene().apply(&mut socket()).expect("a scene");
        let ingress = read::hook(&mut socket(), Family::NETDEV, 0, Some("one"));
        let ingress = ingress.expect("it answers").expect("it can tell");
        let chain = |family| RegisteredBy::Chain(TableId::new(family, name("t")).chain(name("ingress_one")));
        let notified: Vec<_> = ingress.iter().take(2).map(|hook| (hook.priority, hook.by.clone())).collect();
        assert_eq!(notified, [(-7, Some(chain(Family::NETDEV))), (3, Some(chain(Family::INET)))]);
        assert!(ingress.iter().all(|hook| hook.device.as_deref() == Some("one")));
        assert_eq!(ingress.len(), if needs::met("flowtable") { 3 } else { 2 });

        // One chain of family inet is in two lists.
        for family in [Family::IP, Family::IP6] {
            let both = TableId::new(Family::INET, name("t")).chain(name("both"));
            let of_chain = |hook: &&RegisteredHook| hook.by == Some(RegisteredBy::Chain(both.clone()));
            let found: Vec<_> =
                listed(family, None).iter().filter(of_chain).map(RegisteredHook::hook).collect();
            assert_eq!(found, [Some(Hook::Input)]);
        }
        let known = |hook: &RegisteredHook| {
            hook.unknown.is_empty() && !matches!(hook.by, Some(RegisteredBy::Unknown { .. }))
        };
        assert!(listed(Family::UNSPEC, Some("two")).iter().all(known));

        let mut tx = Transaction::new();
        tx.flush(Flush::Ruleset(Family::UNSPEC));
        tx.apply(&mut socket()).expect("nothing is left");
        assert!(listed(Family::UNSPEC, Some("one")).iter().all(|hook| hook.by.is_none()));
        assert_eq!(listed(Family::ARP, Some("one")), []);
    });
}

/// The first of three chains of one priority that sees a packet marks it, and then no other does.
#[test]
fn functions_of_one_priority_are_in_the_order_in_which_packets_meet_them() {
    if !needs::met("registered hooks") || !testns::have(&["nft", "ip"]) {
        return;
    }
    testns::netns(|| {
        let table = TableId::new(Family::IP, name("t"));
        let mut tx = Transaction::new();
        tx.add(Table::new(table.clone()));
        tx.add(base(&table, "count", ChainType::Filter, Hook::Output, 2));
        for mark in 1..=4_u32 {
            let chain = base(&table, &format!("c{mark}"), ChainType::Filter, Hook::Output, 1);
            let rule = chain.id.rule().then(Match::new(MetaKey::MARK, Mark(0)));
            tx.add(chain).add(rule.then(Mangle::new(MetaKey::MARK, Mark(mark))));
            let count = table.chain(name("count")).rule().then(Match::new(MetaKey::MARK, Mark(mark)));
            tx.add(count.then(Counter::default()));
        }
        tx.apply(&mut socket()).expect("chains");
        let to = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let from = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        from.send_to(b"?", to.local_addr().expect("an address")).expect("a datagram is sent");

        let counted = testns::sh("nft list chain ip t count");
        let counts: Vec<_> = counted.lines().filter(|line| line.contains("counter")).collect();
        let met = counts.iter().position(|line| line.contains("packets 1 ")).expect("it is counted") + 1;
        let output = |listing: &str| -> Vec<String> {
            listing.lines().filter(|line| line.contains("chain ip t c")).map(str::to_owned).collect()
        };
        let ours = output(&text(Family::IP, None));
        assert!(ours[0].contains(&format!("chain ip t c{met} ")), "{ours:?}\n{counted}");
        // nft has another order there.
        let mut swapped = ours;
        swapped[1..4].reverse();
        assert_eq!(output(&testns::sh("nft list hooks ip")), swapped);
    });
}

#[test]
fn a_list_over_several_datagrams_is_whole() {
    if !needs::met("registered hooks") {
        return;
    }
    testns::netns(|| {
        let table = TableId::new(Family::ARP, name("t"));
        let mut tx = Transaction::new();
        tx.add(Table::new(table.clone()));
        let priorities = 1000..1600;
        for priority in priorities.clone().rev() {
            tx.add(base(&table, &format!("c{priority}"), ChainType::Filter, Hook::Input, priority));
        }
        tx.apply(&mut socket()).expect("chains");
        let found: Vec<_> = listed(Family::ARP, None).iter().map(|hook| hook.priority).collect();
        assert_eq!(found, priorities.collect::<Vec<_>>());
    });
}

#[test]
fn a_kernel_that_cannot_tell_says_so_and_others_refuse_what_is_not_there() {
    testns::netns(|| {
        let mut socket = socket();
        let can = supports(&mut socket, Feature::RegisteredHooks).expect("it answers");
        for family in [Family::UNSPEC, Family::IP, Family::INET, Family::ARP, Family::BRIDGE] {
            let hooks = read::hooks(&mut socket, family, Some("lo")).expect("it answers");
            assert_eq!(hooks.is_some(), can, "{family}");
        }
        if !can {
            assert_eq!(read::hooks(&mut socket, Family::NETDEV, None).expect("it answers"), None);
            assert_eq!(read::hooks(&mut socket, Family::NETDEV, Some("no")).expect("it answers"), None);
            return;
        }
        let mut code = |family, number, device| {
            let answer = read::hook(&mut socket, family, number, device);
            answer.expect_err("there is none").errno().expect("the kernel refuses")
        };
        assert_eq!(code(Family::NETDEV, 0, Some("no")), Errno::ENODEV);
        assert_eq!(code(Family::NETDEV, 0, None), Errno::EINVAL);
        assert_eq!(code(Family::NETDEV, 2, Some("lo")), Errno::EOPNOTSUPP);
        assert_eq!(code(Family::IP, 99, None), Errno::EINVAL);
        assert_eq!(code(Family(12), 0, None), Errno::EPROTONOSUPPORT);
        assert_eq!(read::hooks(&mut socket, Family(12), None).expect("it answers"), Some(Vec::new()));
    });
}

#[test]
fn the_fake_cannot_tell() {
    let mut fake = fake::Fake::new();
    assert!(!supports(&mut fake, Feature::RegisteredHooks).expect("it answers"));
    assert_eq!(read::hooks(&mut fake, Family::UNSPEC, None).expect("it answers"), None);
}
