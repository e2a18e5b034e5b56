//! Modules of xtables in nftables' rules, as iptables-nft makes them.

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::expr::kind::{XtMatch, XtTarget};
use sluicegate_nftables::expr::{Expr, MetaKey};
use sluicegate_nftables::lang::{Match, Payload, Statement};
use sluicegate_nftables::*;

use crate::kernel::cases::name;
use crate::kernel::parity::apply;

/// `struct xt_comment_info` of `linux/netfilter/xt_comment.h`, revision 0.
fn comment(text: &str) -> XtMatch {
    let mut info = text.as_bytes().to_vec();
    info.resize(256, 0);
    XtMatch { name: "comment".into(), revision: 0, info }
}

/// `struct xt_length_info` of `linux/netfilter/xt_length.h`: minimum, maximum, inverted; filled up to eight
/// bytes.
fn length(min: u16, max: u16) -> XtMatch {
    let info = [min, max, 0, 0].iter().flat_map(|half| half.to_ne_bytes()).collect();
    XtMatch { name: "length".into(), revision: 0, info }
}

/// `struct xt_mark_tginfo2` of `linux/netfilter/xt_mark.h`: mark, mask.
fn set_mark(mark: u32, mask: u32) -> XtTarget {
    let info = [mark, mask].iter().flat_map(|word| word.to_ne_bytes()).collect();
    XtTarget { name: "MARK".into(), revision: 2, info }
}

const LINE: &str = "-A INPUT -m comment --comment \"of another program\" -m length --length 100:200 \
                    -j MARK --set-xmark 0x5/0xffffffff";

fn exprs() -> Vec<Expr> {
    vec![comment("of another program").into(), length(100, 200).into(), set_mark(5, u32::MAX).into()]
}

/// The table that iptables-nft keeps its filter rules in, with such a rule.
fn filter() -> Transaction {
    let table = TableId::new(Family::IP, name("filter"));
    let chain = table.chain(name("INPUT"));
    let mut transaction = Transaction::new();
    let base = Chain::base(chain.clone(), ChainType::Filter, Hook::Input, Priority(0)).policy(Policy::Accept);
    transaction.add(Table::new(table)).add(base);
    transaction.add(chain.rule().then(Statement::Raw(exprs())));
    transaction
}

/// The expressions of the only rule, without its counter.
fn listed() -> Vec<Expr> {
    let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
    let mut rules =
        read::chain_rules(&mut socket, &TableId::new(Family::IP, name("filter")).chain(name("INPUT")))
            .expect("rules");
    assert_eq!(rules.len(), 1);
    let counter = Expr::from(expr::kind::Counter { bytes: Some(0), packets: Some(0) });
    rules.remove(0).expressions.into_iter().filter(|expr| *expr != counter).collect()
}

#[test]
fn a_match_and_a_target_are_loaded_and_read_back() {
    let Some(namespace) = testns::Netns::new() else { return };
    namespace.run(|| {
        apply(&filter()).expect("the kernel has nft_compat and the modules");
        assert_eq!(listed(), exprs());
    });
}

/// `struct xt_tcp` of `linux/netfilter/xt_tcpudp.h`: source ports, destination ports, an option, flags;
/// filled up to sixteen bytes.
fn tcp(ports: (u16, u16)) -> XtMatch {
    let mut info: Vec<u8> =
        [0, u16::MAX, ports.0, ports.1].iter().flat_map(|half| half.to_ne_bytes()).collect();
    info.resize(16, 0);
    XtMatch { name: "tcp".into(), revision: 0, info }
}

/// Such a module takes rules of its protocol only: the kernel has to be told, and does not tell it.
#[test]
fn a_module_of_a_protocol_is_taken_behind_a_match_of_it() {
    testns::netns(|| {
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        for (family, protocol) in
            [(Family::IP, Payload::IP_PROTOCOL), (Family::IP6, Payload::IP6_NEXTHDR)].into_iter()
        {
            let chain = TableId::new(family, name("t")).chain(name("c"));
            let mut world = Transaction::new();
            world.add(Table::new(chain.table.clone())).add(Chain::new(chain.clone()));
            world.apply(&mut socket).expect("a chain");
            let mut add = |rule: Rule| {
                let mut tx = Transaction::new();
                tx.add(rule.then(Statement::Raw(vec![tcp((1, 5)).into()])));
                tx.apply(&mut socket).map(drop)
            };
            let tcp_protocol = Protocol::TCP;
            add(chain.rule().then(Match::new(MetaKey::L4PROTO, tcp_protocol))).expect("it is of TCP");
            add(chain.rule().then(Match::new(protocol, tcp_protocol))).expect("it is of TCP");
            let other = Protocol::UDP;
            for rule in [
                chain.rule(),
                chain.rule().then(Match::new(MetaKey::L4PROTO, other)),
                chain.rule().then(Match::not(MetaKey::L4PROTO, tcp_protocol)),
            ] {
                let error = add(rule).expect_err("it is not of TCP alone").to_string();
                assert!(
                    error.contains("EINVAL") && error.contains("a match for its protocol before it"),
                    "{error}"
                );
            }
        }
    });
}

/// A rule of iptables that was read can be sent: what the kernel does not list is found again.
#[test]
fn a_rule_of_iptables_with_a_module_of_a_protocol_is_sent_as_it_was_read() {
    if !testns::have(&["iptables-nft", "iptables-nft-save"]) {
        return;
    }
    let line = "-A INPUT -p tcp -m multiport --dports 80,443 -j ACCEPT";
    testns::netns(|| {
        let _ = testns::sh(&format!("iptables-nft {line}"));
        let saved = || testns::sh("iptables-nft-save -t filter | grep ^-A");
        let before = saved();
        assert_eq!(before.trim(), line);
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        let content = read::ruleset(&mut socket, Family::IP).expect("a ruleset").content();
        let rule = content[0].chains.iter().find_map(|(_, rules)| rules.first()).expect("a rule");
        let mut tx = Transaction::new();
        tx.flush(&rule.chain).add(rule.clone());
        tx.apply(&mut socket).expect("it was taken before");
        assert_eq!(saved(), before);
    });
}

#[test]
fn iptables_lists_them_as_its_own() {
    if !testns::have(&["iptables-nft", "iptables-nft-save"]) {
        return;
    }
    let Some(namespace) = testns::Netns::new() else { return };
    namespace.run(|| {
        apply(&filter()).expect("the kernel has nft_compat and the modules");
        let saved = testns::sh("iptables-nft-save -t filter");
        assert!(saved.lines().any(|line| line == LINE), "{saved}");
    });
}

#[test]
fn those_of_iptables_are_the_same() {
    if !testns::have(&["iptables-nft"]) {
        return;
    }
    let Some(namespace) = testns::Netns::new() else { return };
    namespace.run(|| {
        let _ = testns::sh(&format!("iptables-nft {LINE}"));
        assert_eq!(listed(), exprs());
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        let content = read::ruleset(&mut socket, Family::IP).expect("a ruleset").content();
        let rule =
            &content[0].chains.iter().find(|(chain, _)| *chain.id.name == *"INPUT").expect("INPUT").1[0];
        let words: Vec<_> = rule.statements.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["xt match comment", "xt match length", "counter", "xt target MARK"]);
        let error = Rule::parse(&rule.chain, &rule.body().to_string()).unwrap_err().to_string();
        assert!(error.contains("a module of xtables"), "{error}");
    });
}
