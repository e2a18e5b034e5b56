//! Our messages as libnftnl 1.2.4 understands them, and libnftnl's as we do.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use nftnl::{MsgType, ProtoFamily, nft_expr};
use sluicegate_conformance::tree::{Content, Node};
use sluicegate_conformance::{reference, tree};
use sluicegate_netlink::message::{Message, Messages};
use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::expr::MetaKey;
use sluicegate_nftables::lang::{Counter, Last, Match, Payload, Verdict};
use sluicegate_nftables::*;

#[allow(dead_code, unreachable_pub, reason = "shared with the tests of the crate itself")]
#[path = "../../../nftables/tests/it/kernel/cases/mod.rs"]
mod cases;

/// Returns the lines of both messages that the other has not.
fn difference(ours: &[Node], theirs: &[Node]) -> String {
    let (ours, theirs) = (tree::lines(ours), tree::lines(theirs));
    let only = |a: &[String], b: &[String], mark: char| -> Vec<String> {
        a.iter().filter(|line| !b.contains(line)).map(|line| format!("  {mark} {line}")).collect()
    };
    [only(&ours, &theirs, '<'), only(&theirs, &ours, '>')].concat().join("\n")
}

/// Returns what libnftnl writes otherwise without meaning something else; the kernel asks in neither case.
fn as_we_write(command: u8, mut message: Vec<Node>) -> Vec<Node> {
    const NFTA_LIST_ELEM: u16 = 1;
    match command {
        // It numbers the elements of a list (NFTA_SET_ELEM_LIST_ELEMENTS) where the header has one type for
        // all.
        12..=14 => {
            for element in message.iter_mut().filter(|node| node.kind == 3).flat_map(Node::children) {
                element.kind = NFTA_LIST_ELEM;
            }
        }
        // It leaves out the NUL behind the names in an objref expression (NFTA_OBJREF_IMM_NAME,
        // NFTA_OBJREF_SET_NAME).
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
                // It leaves out the NUL behind the name of a ct helper (NFT_OBJECT_CT_HELPER,
                // NFTA_CT_HELPER_NAME), too.
                Some(kind) if kind == Content::Bytes(vec![0, 0, 0, 3]) => {
                    for name in data.filter(|field| field.kind == 1) {
                        if let Content::Bytes(name) = &mut name.content {
                            name.push(0);
                        }
                    }
                }
                // And behind the context of a secmark (NFT_OBJECT_SECMARK, NFTA_SECMARK_CTX).
                Some(kind) if kind == Content::Bytes(vec![0, 0, 0, 8]) => {
                    for context in data.filter(|field| field.kind == 1) {
                        if let Content::Bytes(context) = &mut context.content {
                            context.push(0);
                        }
                    }
                }
                // It writes a time of 0 for states that have none (NFT_OBJECT_CT_TIMEOUT,
                // NFTA_CT_TIMEOUT_DATA).
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

/// Returns what libnftnl keeps of a tunnel (`NFT_OBJECT_TUNNEL`): it loses the flags
/// (`NFTA_TUNNEL_KEY_FLAGS`), and leaves out the nest of VXLAN's options (`NFTA_TUNNEL_KEY_OPTS_VXLAN`),
/// which the kernel wants.
fn kept(mut message: Vec<Node>) -> Vec<Node> {
    let tunnel =
        message.iter().any(|node| node.kind == 3 && node.content == Content::Bytes(vec![0, 0, 0, 6]));
    let data = message.iter_mut().filter(|node| tunnel && node.kind == 4).flat_map(Node::children);
    for field in data {
        match (field.kind, &mut field.content) {
            (4, Content::Bytes(flags)) => flags.clear(),
            (9, Content::Nested(options)) => {
                for vxlan in options.iter_mut().filter(|option| option.kind == 1) {
                    let inner = vxlan.children().first().map(|gbp| gbp.content.clone());
                    vxlan.content = inner.unwrap_or(vxlan.content.clone());
                }
            }
            _ => {}
        }
    }
    message
}

fn inner(node: &Node) -> &[Node] {
    match &node.content {
        Content::Nested(nodes) => nodes,
        Content::Bytes(_) => &[],
    }
}

fn command(message: &Message<'_>) -> Option<u8> {
    let [subsystem, command] = message.header.kind.to_be_bytes();
    (subsystem == 10).then_some(command)
}

#[test]
fn libnftnl_understands_every_object_as_it_was_meant() {
    let (mut compared, mut failed) = (0, Vec::new());
    let mut seen: BTreeMap<u8, BTreeSet<u16>> = BTreeMap::new();
    let mut kinds = BTreeSet::new();
    // libnftnl writes the number of a chain in a batch and cannot read it: it ends with a segmentation fault.
    // Bytes of nft's own are in the crate's captured messages.
    let more = [cases::objects::tunnels(), cases::objects::secmarks(), with_all_attributes()];
    for case in cases::all().into_iter().filter(|case| case.name != "chains of rules").chain(more) {
        let batch = case.transaction.encode(ApplyOptions::default()).expect("it can be encoded");
        let bytes = batch.bytes().expect("no length passes its limit");
        let mut at = 0;
        for message in Messages::new(bytes) {
            let message = message.expect("a message of ours");
            let length = 16 + message.payload.len();
            let whole = &bytes[at..at + length];
            at += length.next_multiple_of(4);
            let Some(command) = command(&message) else { continue };
            let ours = kept(tree::read(&message.payload[4..]).expect("attributes of ours"));
            compared += 1;
            let attributes = seen.entry(command).or_default();
            match command {
                // NFTA_SET_ELEM_LIST_ELEMENTS
                12 => {
                    let elements = ours.iter().filter(|node| node.kind == 3).flat_map(inner);
                    attributes.extend(elements.flat_map(inner).map(|node| node.kind));
                }
                _ => attributes.extend(ours.iter().map(|node| node.kind)),
            }
            // NFTA_OBJ_TYPE
            let of_objects = ours.iter().filter(|node| command == 18 && node.kind == 3);
            kinds.extend(of_objects.map(|node| node.content.clone()));
            match reference::rebuild(whole) {
                Err(why) => failed.push(format!("{}: command {command}: {why}", case.name)),
                Ok(theirs) => {
                    let theirs =
                        kept(as_we_write(command, tree::read(&theirs).expect("attributes of libnftnl")));
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
    let expected = ATTRIBUTES.iter().map(|(command, kinds)| (*command, kinds.iter().copied().collect()));
    assert_eq!(seen, expected.collect());
    // libnftnl 1.2.4 has no limits of connections (NFT_OBJECT_CONNLIMIT, 5).
    let every = [1, 2, 3, 4, 6, 7, 8, 9, 10].map(|kind| Content::Bytes(vec![0, 0, 0, kind]));
    assert_eq!(kinds, BTreeSet::from(every));
}

/// What can be said of an object by the message that makes it (`NFT_MSG_NEW...`, `NFTA_..._*`): all of it has
/// to be compared. Left out are what only the kernel says (`USE`, `HANDLE`, `OWNER`, counters of chains),
/// padding, and numbers of chains (above).
const ATTRIBUTES: &[(u8, &[u16])] = &[
    (0, &[1, 2, 6]),
    // NFTA_CHAIN_HANDLE: of the chain that is renamed.
    (3, &[1, 2, 3, 4, 5, 7, 10, 12]),
    // NFTA_RULE_HANDLE and POSITION: of rules that are replaced and placed.
    (6, &[1, 2, 3, 4, 5, 6, 7]),
    (9, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 17, 18]),
    // Of the elements in it.
    (12, &[1, 2, 3, 4, 5, 6, 7, 9, 10, 11]),
    (18, &[1, 2, 3, 4, 8]),
    (22, &[1, 2, 3, 7]),
];

/// Returns what no transaction that a kernel takes in one go has.
fn with_all_attributes() -> cases::Case {
    let table = TableId::new(Family::INET, cases::name("t"));
    let (chain, set) = (table.chain(cases::name("c")), table.set(cases::name("s")));
    let mut tx = Transaction::new();
    tx.add(Table::new(table).flags(TableFlags::DORMANT));
    tx.rename_handle(chain.clone(), 7, cases::name("d"));
    tx.add(chain.rule().then(Verdict::Accept).position(5));
    tx.replace(chain.rule().then(Verdict::Drop).handle(5));
    let module = expr::kind::XtMatch { name: "tcp".into(), revision: 0, info: vec![0; 16] };
    let of_tcp = chain.rule().then(Match::new(MetaKey::L4PROTO, Protocol::TCP));
    tx.add(of_tcp.then(lang::Statement::Raw(vec![module.into()])));
    let statements = || [Counter::default().into(), Last::default().into()];
    let mut made = Set::new(set.clone(), DataType::INET_SERVICE).timeout(Duration::from_secs(60));
    made.gc_interval = Some(Duration::from_secs(5));
    made.policy = Some(SetPolicy::Memory);
    made.statements = statements().into();
    tx.add(made);
    let element = Element::new(Port(80)).timeout(Duration::from_secs(30)).expires(Duration::from_secs(20));
    tx.add_element(&set, statements().into_iter().fold(element, Element::statement));
    cases::Case { name: "all attributes", transaction: tx }
}

/// Returns a table, a base chain and rules, written with libnftnl's own interface.
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

/// Returns the same as values of ours.
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
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        prepared.apply(&mut socket).expect("it can be applied");

        let theirs = mnl::Socket::new(mnl::Bus::Netfilter).expect("a socket of libmnl");
        theirs.send_all(&by_libnftnl()).expect("it can be sent");
        let held = read::ruleset(&mut socket, TableId::new(Family::IP, cases::name("t"))).expect("a ruleset");
        let content = held.content().remove(0).to_string();
        assert_eq!(
            content,
            "table ip t {\n\tchain other {\n\t}\n\n\tchain in {\n\t\ttype filter hook input priority filter \
             - 10; policy drop;\n\
             \t\tip saddr 10.1.2.3 accept\n\t\ttcp dport != 22 drop\n\t\tmeta mark 0x00004000 jump \
             other\n\t}\n}\n"
        );
    });
}
