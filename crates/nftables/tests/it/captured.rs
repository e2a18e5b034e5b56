//! What nft sends for some commands, byte for byte, against what we send for the same objects; and what a
//! kernel answers to some.
//!
//! Captured with `strace -e trace=sendmsg -e write=all nft -f FILE`, nft 1.0.6 (Debian 1.0.6-2+deb12u2),
//! Linux 6.18, x86-64. Messages are compared by their attributes; sequence numbers are each program's own
//! affair.
#![cfg(target_endian = "little")]

use std::net::Ipv4Addr;
use std::time::Duration;

use sluicegate_netlink::message::Messages;
use sluicegate_netlink::scripted::Script;
use sluicegate_nftables::expr::{MetaKey, ObjectKind};
use sluicegate_nftables::lang::{
    BoundChain, BoundRule, Expression, ObjectName, ObjectReference, Payload, Verdict,
};
use sluicegate_nftables::*;

/// The attributes of the messages of a transaction, without the frame of the batch.
fn attributes(fill: impl FnOnce(&mut Transaction, &TableId)) -> Vec<String> {
    let mut tx = Transaction::new();
    fill(&mut tx, &TableId::new(Family::IP, Name::new("t").unwrap()));
    let batch = tx.encode(ApplyOptions::default()).unwrap();
    let messages: Vec<_> = Messages::new(batch.bytes().unwrap()).map(Result::unwrap).collect();
    let inner = &messages[1..messages.len() - 1];
    inner.iter().map(|m| m.payload[4..].iter().map(|byte| format!("{byte:02x}")).collect()).collect()
}

fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

fn comment(text: &str) -> Comment {
    Comment::new(text).unwrap()
}

/// Attributes in hexadecimal: type, payload, padded.
fn attribute(kind: u16, payload: &str) -> String {
    let length = u16::try_from(payload.len() / 2 + 4).unwrap();
    let header = [length.to_le_bytes(), kind.to_le_bytes()].concat();
    let header: String = header.iter().map(|byte| format!("{byte:02x}")).collect();
    let padding = "00".repeat((4 - payload.len() / 2 % 4) % 4);
    format!("{header}{payload}{padding}")
}

const NESTED: u16 = 0x8000;

#[test]
fn a_table_with_a_comment() {
    // add table ip t { comment "tc"; }
    let ours = attributes(|tx, t| {
        tx.add(Table::new(t.clone()).comment(comment("tc")));
    });
    let captured = [attribute(1, "7400"), attribute(2, "00000000"), attribute(6, "0003746300")].concat();
    assert_eq!(ours, [captured]);
}

#[test]
fn a_base_chain() {
    // add chain ip t b { type filter hook prerouting priority -110; policy drop; comment "cc"; }
    let ours = attributes(|tx, t| {
        let chain = Chain::base(t.chain(name("b")), ChainType::Filter, Hook::Prerouting, Priority(-110));
        tx.add(chain.policy(Policy::Drop).comment(comment("cc")));
    });
    let hook = [attribute(1, "00000000"), attribute(2, "ffffff92")].concat();
    let captured = [
        attribute(1, "7400"),
        attribute(3, "6200"),
        attribute(7, "66696c74657200"),
        attribute(5, "00000000"),
        attribute(4 | NESTED, &hook),
        attribute(12, "0003636300"),
    ];
    assert_eq!(ours, [captured.concat()]);
}

#[test]
fn a_set_of_intervals_of_concatenations_with_a_timeout() {
    // add set ip t s1 { type ipv4_addr; comment "hello"; } add set ip t s2 { type ipv4_addr . inet_proto .
    // inet_service; flags timeout,interval; timeout 3h; size 100; auto-merge; }
    let ours = attributes(|tx, t| {
        tx.add(Set::new(t.set(name("s1")), DataType::IPV4_ADDR).comment(comment("hello")));
        let types = [DataType::IPV4_ADDR, DataType::INET_PROTO, DataType::INET_SERVICE];
        let mut set = Set::new(t.set(name("s2")), types).flags(SetFlags::INTERVAL).size(100);
        set.auto_merge = true;
        tx.add(set.timeout(Duration::from_secs(10_800)));
    });
    let first = [
        attribute(1, "7400"),
        attribute(2, "733100"),
        attribute(3, "00000000"),
        attribute(4, "00000007"),
        attribute(5, "00000004"),
        attribute(10, "00000001"),
        attribute(13, "000402000000070668656c6c6f00"),
    ];
    let fields: String = ["00000004", "00000001", "00000002"]
        .map(|bytes| attribute(1 | NESTED, &attribute(1, bytes)))
        .concat();
    let description = [attribute(1, "00000064"), attribute(2 | NESTED, &fields)].concat();
    let second = [
        attribute(1, "7400"),
        attribute(2, "733200"),
        attribute(3, "00000094"),
        attribute(4, "0000730d"),
        attribute(5, "0000000c"),
        attribute(10, "00000002"),
        attribute(9 | NESTED, &description),
        attribute(11, "0000000000a4cb80"),
        attribute(13, "000400000000020401000000030800040d0000000100"),
    ];
    assert_eq!(ours, [first.concat(), second.concat()]);
}

#[test]
fn a_map_by_typeof() {
    // add map ip t m2 { typeof ip daddr . meta l4proto . th dport . numgen random mod 2 : ip daddr . tcp
    // dport; size 1000; }
    let ours = attributes(|tx, t| {
        let key = Expression::concat([
            Payload::IP_DADDR.into(),
            MetaKey::L4PROTO.into(),
            Payload::TH_DPORT.into(),
            Expression::random(2),
        ]);
        let data = Expression::concat([Payload::IP_DADDR.into(), Payload::TCP_DPORT.into()]);
        tx.add(Set::map(t.map(name("m2")), key, data).size(1000));
    });
    let user_data = "000400000000010400000000036000040d00000001580014000407000000010c00040c00000001040c000000\
        010e00040900000001060004100000000214000407000000010c00040b000000010402000000031a000417000000\
        0112000401000000010402000000020400000000043400040d000000012c0014000407000000010c00040c000000\
        01040c0000000114000407000000010c000408000000010402000000060400000000";
    let captured = [
        attribute(1, "7400"),
        attribute(2, "6d3200"),
        attribute(3, "00000008"),
        attribute(4, "001cc344"),
        attribute(5, "00000010"),
        attribute(6, "000001cd"),
        attribute(7, "00000008"),
        // Its number in the batch: the first set here, the fifth there.
        attribute(10, "00000001"),
        attribute(9 | NESTED, &attribute(1, "000003e8")),
        attribute(13, user_data),
    ];
    assert_eq!(ours, [captured.concat()]);
}

#[test]
fn an_element_with_a_comment_and_a_verdict() {
    // add element ip t m1 { 1.2.3.4 . tcp . 80 comment "e" : goto lb }
    let ours = attributes(|tx, t| {
        let key = (Ipv4Addr::new(1, 2, 3, 4), Protocol::TCP, Port(80));
        let element = Element::new(key).comment(comment("e")).verdict(Verdict::Goto(name("lb")));
        tx.add_element(&t.map(name("m1")), element);
    });
    let verdict = [attribute(1, "fffffffc"), attribute(2, "6c6200")].concat();
    let element = [
        attribute(1 | NESTED, &attribute(1, "010203040600000000500000")),
        attribute(2 | NESTED, &attribute(2 | NESTED, &verdict)),
        attribute(6, "00026500"),
    ];
    let list = attribute(1 | NESTED, &element.concat());
    // nft names the set by its number in the batch too.
    let captured = [attribute(1, "7400"), attribute(2, "6d3100"), attribute(3 | NESTED, &list)];
    assert_eq!(ours, [captured.concat()]);
}

#[test]
fn a_chain_of_a_rule() {
    // add rule ip t c goto { accept comment "in"; } comment "cc"
    let ours = attributes(|tx, t| {
        let inner = BoundRule::new().then(Verdict::Accept).comment(comment("in"));
        tx.add(t.chain(name("c")).rule().then(BoundChain::goto([inner])).comment(comment("cc")));
    });
    let immediate = |verdict: &str| {
        let data = attribute(2 | NESTED, &attribute(2 | NESTED, verdict));
        let data = attribute(2 | NESTED, &[attribute(1, "00000000"), data].concat());
        let name = attribute(1, "696d6d65646961746500");
        attribute(4 | NESTED, &attribute(1 | NESTED, &[name, data].concat()))
    };
    let chain = [attribute(1, "7400"), attribute(11, "00000001"), attribute(10, "00000004")];
    let inner = [
        attribute(1, "7400"),
        attribute(11, "00000001"),
        immediate(&attribute(1, "00000001")),
        attribute(7, "0003696e00"),
    ];
    let goto = [attribute(1, "fffffffc"), attribute(3, "00000001")].concat();
    let rule = [attribute(1, "7400"), attribute(2, "6300"), immediate(&goto), attribute(7, "0003636300")];
    assert_eq!(ours, [chain.concat(), inner.concat(), rule.concat()]);
}

#[test]
fn a_secmark_and_the_rule_that_uses_it() {
    // add secmark ip t ssh { "system_u:object_r:x:s0"; }, add rule ip t c meta secmark set "ssh"
    let ours = attributes(|tx, t| {
        let context = SecurityContext::new("system_u:object_r:x:s0").unwrap();
        let id = t.object(ObjectKind::SECMARK, name("ssh"));
        tx.add(StatefulObject::new(id, context.into()));
        let object = ObjectName::Named(name("ssh"));
        tx.add(t.chain(name("c")).rule().then(ObjectReference { kind: ObjectKind::SECMARK, object }));
    });
    // nft leaves out the NUL behind the context, and behind the name in the rule.
    let context = "73797374656d5f753a6f626a6563745f723a783a733000";
    let secmark = [
        attribute(1, "7400"),
        attribute(2, "73736800"),
        attribute(3, "00000008"),
        attribute(4 | NESTED, &attribute(1, context)),
    ];
    let fields = [attribute(1, "00000008"), attribute(2, "73736800")].concat();
    let objref = [attribute(1, "6f626a72656600"), attribute(2 | NESTED, &fields)].concat();
    let rule =
        [attribute(1, "7400"), attribute(2, "6300"), attribute(4 | NESTED, &attribute(1 | NESTED, &objref))];
    assert_eq!(ours, [secmark.concat(), rule.concat()]);
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|digits| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap())
        .collect()
}

/// A conversation of nft 1.0.6 with Linux 6.12.117 (Debian, amd64), captured with `strace -e
/// trace=sendto,recvmsg -e read=3 -e write=3`.
fn talk(question: &str, answer: &str) -> Script {
    let mut kernel = Script::new();
    kernel
        .expect(&bytes(question))
        .reply(bytes(answer))
        .reply(bytes("140000000300020001000000ad00000000000000"));
    kernel
}

#[test]
fn what_is_registered_for_a_device() {
    // nft list hooks netdev device one
    let mut kernel = talk(
        "24000000000c0103010000000000000005000000080003006f6e65000800010000000000",
        "74000000000c02000100000000000000050000000e0005006e665f7461626c6573000000180004006e66745f646f5f636861\
         696e5f6e657464657600080001000000000008000200000000002800068008000200000000011c000180060001006e000000\
         060003006900000005000200050000007c000000000c02000100000000000000050000000e0005006e665f7461626c657300\
         00001e0004006e66745f646f5f636861696e5f696e65745f696e677265737300000008000100000000000800020000000003\
         2800068008000200000000011c0001800600010069000000060003006700000005000200010000005c000000000c02000100\
         00000000000005000000170005006e665f666c6f775f7461626c655f696e657400001e0004006e665f666c6f775f6f66666c\
         6f61645f696e65745f686f6f6b00000008000100000000000800020000000007",
    );
    let hooks = read::hook(&mut kernel, Family::NETDEV, 0, Some("one")).unwrap().unwrap();
    let table = |family, table| TableId::new(family, name(table));
    let [first, second, third] = &hooks[..] else { panic!("{hooks:?}") };
    assert_eq!(first.by, Some(read::RegisteredBy::Chain(table(Family::NETDEV, "n").chain(name("i")))));
    assert_eq!(second.by, Some(read::RegisteredBy::Chain(table(Family::INET, "i").chain(name("g")))));
    assert_eq!(second.function.as_deref(), Some("nft_do_chain_inet_ingress"));
    assert_eq!((third.priority, &third.by, third.hook()), (7, &None, Some(Hook::Ingress)));
    assert_eq!(third.device.as_deref(), Some("one"));
    assert!(hooks.iter().all(|hook| hook.unknown.is_empty()));
    assert_eq!(
        read::HookListing(&hooks).to_string(),
        "\
family netdev {
\thook ingress {
\t\t 0000000000 chain netdev n i [nf_tables]
\t\t+0000000003 chain inet i g [nf_tables]
\t\t+0000000007 nf_flow_offload_inet_hook [nf_flow_table_inet]
\t}
}
"
    );
    kernel.finish();
}

#[test]
fn what_is_registered_before_routing() {
    // nft list hooks ip
    let mut kernel = talk(
        "1c000000000c01030100000000000000020000000800010000000000",
        "54000000000c0200010000000000000002000000130005006e665f6465667261675f6970763400001a000400697076345f63\
         6f6e6e747261636b5f646566726167000000080001000000000008000200fffffe7050000000000c02000100000000000000\
         02000000110005006e665f636f6e6e747261636b0000000016000400697076345f636f6e6e747261636b5f696e0000000800\
         01000000000008000200ffffff384c000000000c02000100000000000000020000000b0005006e665f6e617400001c000400\
         6e665f6e61745f697076345f7072655f726f7574696e6700080001000000000008000200ffffff9c",
    );
    let hooks = read::hook(&mut kernel, Family::IP, 0, None).unwrap().unwrap();
    assert_eq!(
        read::HookListing(&hooks).to_string(),
        "\
family ip {
\thook prerouting {
\t\t-0000000400 ipv4_conntrack_defrag [nf_defrag_ipv4]
\t\t-0000000200 ipv4_conntrack_in [nf_conntrack]
\t\t-0000000100 nf_nat_ipv4_pre_routing [nf_nat]
\t}
}
"
    );
    kernel.finish();
}

#[test]
fn a_kernel_that_cannot_tell_what_is_registered() {
    // nft list hooks ip, on Linux 6.18 without CONFIG_NETFILTER_NETLINK_HOOK.
    let question = "1c000000000c01030100000000000000020000000800010000000000";
    let answer = format!("300000000200000001000000575a0000eaffffff{question}");
    let mut kernel = Script::new();
    kernel.expect(&bytes(question)).reply(bytes(&answer));
    // It is asked again, as it might have meant the hook.
    kernel.expect(&bytes(question)).reply(bytes(&answer));
    assert_eq!(read::hooks(&mut kernel, Family::IP, None).unwrap(), None);
    kernel.finish();
}
