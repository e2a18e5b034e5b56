//! Our messages as libnftnl 1.2.4 understands them, and libnftnl's as we do.

use std::net::Ipv4Addr;

use nftnl::{MsgType, ProtoFamily, nft_expr};
use sluicegate_conformance::tree::{Content, Node};
use sluicegate_conformance::{reference, tree};
use sluicegate_netlink::message::{Message, Messages};
use sluicegate_netlink::{Options, Protocol as NetlinkProtocol, Socket};
use sluicegate_nftables::expr::MetaKey;
use sluicegate_nftables::lang::{Match, Payload, Verdict};
use sluicegate_nftables::*;

#[allow(dead_code, unreachable_pub, reason = "shared with the tests of the crate itself")]
#[path = "../../nftables/tests/kernel/cases.rs"]
mod cases;

/// The lines of both messages that the other has not.
fn difference(ours: &[Node], theirs: &[Node]) -> String {
    let (ours, theirs) = (tree::lines(ours), tree::lines(theirs));
    let only = |a: &[String], b: &[String], mark: char| -> Vec<String> {
        a.iter().filter(|line| !b.contains(line)).map(|line| format!("  {mark} {line}")).collect()
    };
    [only(&ours, &theirs, '<'), only(&theirs, &ours, '>')].concat().join("\n")
}

/// What libnftnl writes otherwise without meaning something else; the kernel asks in neither case.
fn as_we_write(command: u8, mut message: Vec<Node>) -> Vec<Node> {
    const NFTA_LIST_ELEM: u16 = 1;
    match command {
        // It numbers the elements of a list (NFTA_SET_ELEM_LIST_ELEMENTS) where the header has one type for all.
        12..=14 => {
            for element in message.iter_mut().filter(|node| node.kind == 3).flat_map(Node::children) {
                element.kind = NFTA_LIST_ELEM;
            }
        }
        // It leaves out the NUL behind the names in an objref expression (NFTA_OBJREF_IMM_NAME, NFTA_OBJREF_SET_NAME).
        6..=8 => {
            for expression in message.iter_mut().filter(|node| node.kind == 4).flat_map(Node::children) {
                if expression.children().iter().any(|part| part.content == Content::Bytes(b"objref\0".into()))
                {
                    let fields = expression.children().iter_mut().flat_map(Node::children);
                    for field in fields.filter(|field| matches!(field.kind, 2 | 4)) {
                        if let Content::Bytes(name) = &mut field.content {
                            name.push(0);
                        }
                    }
                }
            }
        }
        18..=20 => {
            let kind = message.iter().find(|node| node.kind == 3).map(|node| node.content.clone());
            let data = message.iter_mut().filter(|node| node.kind == 4).flat_map(Node::children);
            match kind {
                // It leaves out the NUL behind the name of a ct helper (NFT_OBJECT_CT_HELPER, NFTA_CT_HELPER_NAME), too.
                Some(kind) if kind == Content::Bytes(vec![0, 0, 0, 3]) => {
                    for name in data.filter(|field| field.kind == 1) {
                        if let Content::Bytes(name) = &mut name.content {
                            name.push(0);
                        }
                    }
                }
                // It writes a time of 0 for states that have none (NFT_OBJECT_CT_TIMEOUT, NFTA_CT_TIMEOUT_DATA).
                Some(kind) if kind == Content::Bytes(vec![0, 0, 0, 7]) => {
                    for states in data.filter(|field| field.kind == 3) {
                        if let Content::Nested(states) = &mut states.content {
                            states.retain(|state| state.content != Content::Bytes(vec![0; 4]));
                        }
                    }
                }
                _ => {}
            }
        }
        _ => {}
    }
    message
}

fn command(message: &Message<'_>) -> Option<u8> {
    let [subsystem, command] = message.header.kind.to_be_bytes();
    (subsystem == 10).then_some(command)
}

#[test]
fn libnftnl_understands_every_object_as_it_was_meant() {
    let (mut compared, mut failed) = (0, Vec::new());
    for case in cases::all() {
        let batch = case.transaction.encode(ApplyOptions::default()).expect("it can be encoded");
        let bytes = batch.bytes().expect("no length passes its limit");
        let mut at = 0;
        for message in Messages::new(bytes) {
            let message = message.expect("a message of ours");
            let length = 16 + message.payload.len();
            let whole = &bytes[at..at + length];
            at += length.next_multiple_of(4);
            let Some(command) = command(&message) else { continue };
            let ours = tree::read(&message.payload[4..]).expect("attributes of ours");
            compared += 1;
            match reference::rebuild(whole) {
                Err(why) => failed.push(format!("{}: command {command}: {why}", case.name)),
                Ok(theirs) => {
                    let theirs = as_we_write(command, tree::read(&theirs).expect("attributes of libnftnl"));
                    if ours != theirs {
                        failed.push(format!(
                            "{}: command {command}:\n{}",
                            case.name,
                            difference(&ours, &theirs)
                        ));
                    }
                }
            }
        }
    }
    assert!(compared > 300, "only {compared} messages");
    assert!(failed.is_empty(), "{} of {compared} messages:\n{}", failed.len(), failed.join("\n"));
}

/// A table, a base chain and rules, written with libnftnl's own interface.
fn by_libnftnl() -> nftnl::FinalizedBatch {
    let mut batch = nftnl::Batch::new();
    let table = nftnl::Table::new(c"t", ProtoFamily::Ipv4);
    batch.add(&table, MsgType::Add);
    let mut chain = nftnl::Chain::new(c"in", &table);
    chain.set_type(nftnl::ChainType::Filter);
    chain.set_hook(nftnl::Hook::In, -10);
    chain.set_policy(nftnl::Policy::Drop);
    batch.add(&chain, MsgType::Add);

    let mut rule = nftnl::Rule::new(&chain);
    rule.add_expr(&nft_expr!(payload ipv4 saddr));
    rule.add_expr(&nft_expr!(cmp == Ipv4Addr::new(10, 1, 2, 3)));
    rule.add_expr(&nft_expr!(verdict accept));
    batch.add(&rule, MsgType::Add);

    let mut rule = nftnl::Rule::new(&chain);
    rule.add_expr(&nft_expr!(meta l4proto));
    rule.add_expr(&nft_expr!(cmp == 6_u8));
    rule.add_expr(&nft_expr!(payload tcp dport));
    rule.add_expr(&nft_expr!(cmp != 22_u16.to_be()));
    rule.add_expr(&nft_expr!(verdict drop));
    batch.add(&rule, MsgType::Add);

    let mut rule = nftnl::Rule::new(&chain);
    rule.add_expr(&nft_expr!(meta mark));
    rule.add_expr(&nft_expr!(cmp == 0x4000_u32));
    rule.add_expr(&nft_expr!(verdict jump c"other".into()));
    batch.add(&rule, MsgType::Add);
    batch.finalize()
}

/// The same as values of ours.
fn by_us() -> Transaction {
    let table = TableId::new(Family::IP, cases::name("t"));
    let chain = table.chain(cases::name("in"));
    let mut tx = Transaction::new();
    tx.add(Table::new(table));
    tx.add(Chain::base(chain.clone(), ChainType::Filter, Hook::Input, Priority(-10)).policy(Policy::Drop));
    let address = Match::new(Payload::IP_SADDR, Ipv4Addr::new(10, 1, 2, 3));
    tx.add(chain.rule().then(address).then(Verdict::Accept));
    let port = Match::not(Payload::TCP_DPORT, Port(22));
    tx.add(chain.rule().then(port).then(Verdict::Drop));
    let jump = Verdict::Jump(cases::name("other"));
    tx.add(chain.rule().then(Match::new(MetaKey::MARK, Mark(0x4000))).then(jump));
    tx
}

fn messages(bytes: &[u8]) -> Vec<(u8, Vec<Node>)> {
    let all = Messages::new(bytes).map(|message| message.expect("a message"));
    all.filter_map(|message| {
        Some((command(&message)?, tree::read(message.payload.get(4..)?).expect("attributes")))
    })
    .collect()
}

#[test]
fn what_libnftnl_writes_for_the_same_rules_is_what_we_write() {
    let theirs: Vec<u8> = by_libnftnl().iter().flatten().copied().collect();
    let batch = by_us().encode(ApplyOptions::default()).expect("it can be encoded");
    let (theirs, ours) = (messages(&theirs), messages(batch.bytes().expect("it is short")));
    assert_eq!(theirs.len(), 5);
    assert_eq!(ours.len(), theirs.len());
    for ((command, ours), (their_command, theirs)) in ours.iter().zip(&theirs) {
        assert_eq!(command, their_command);
        let theirs = as_we_write(*their_command, theirs.clone());
        assert!(*ours == theirs, "command {command}:\n{}", difference(ours, &theirs));
    }
}

#[test]
fn what_libnftnl_puts_into_a_kernel_is_read_as_it_was_meant() {
    testns::netns(|| {
        let mut prepared = Transaction::new();
        let table = TableId::new(Family::IP, cases::name("t"));
        prepared.add(Table::new(table.clone())).add(Chain::new(table.chain(cases::name("other"))));
        let mut socket = Socket::open(NetlinkProtocol::NETFILTER, &Options::default()).expect("a socket");
        prepared.apply(&mut socket).expect("it can be applied");

        let theirs = mnl::Socket::new(mnl::Bus::Netfilter).expect("a socket of libmnl");
        theirs.send_all(&by_libnftnl()).expect("it can be sent");
        let held = read::ruleset(&mut socket, Family::IP, Some("t")).expect("a ruleset");
        let content = held.content().remove(0).to_string();
        assert_eq!(
            content,
            "table ip t {\n\tchain other {\n\t}\n\n\tchain in {\n\t\ttype filter hook input priority filter - 10; policy drop;\n\
             \t\tip saddr 10.1.2.3 accept\n\t\ttcp dport != 22 drop\n\t\tmeta mark 0x00004000 jump other\n\t}\n}\n"
        );
    });
}
