//! Every verb with every object that it knows: the message and its flags are those of nft, and libnftnl
//! understands it.
//!
//! Messages and flags were captured with `strace -f -e trace=sendmsg -v nft -f FILE`, nft 1.0.6 (Debian
//! 1.0.6-2+deb12u2). `destroy`, younger than that, and `replace` are as `linux/netfilter/nf_tables.h` and nft
//! 1.1 have them.

use std::collections::BTreeSet;

use sluicegate_conformance::tree::{Content, Node};
use sluicegate_conformance::{reference, tree};
use sluicegate_netlink::message::{Flags, Messages};
use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::lang::{Counter, Verdict};
use sluicegate_nftables::*;

/// The message type that nft sends (`NFT_MSG_...`), and the flags beside `NLM_F_REQUEST`.
type Sent = (u8, Flags);

const NONE: Flags = Flags::empty();
const CREATE: Flags = Flags::CREATE;
const EXCL: Flags = CREATE.union(Flags::EXCL);

fn name(name: &str) -> Name {
    Name::new(name).expect("a name of the test")
}

struct Names {
    t: TableId,
}

impl Names {
    fn chain(&self) -> ChainId {
        self.t.chain(name("c"))
    }

    fn rule(&self) -> Rule {
        self.chain().rule().then(Counter::default()).then(Verdict::Accept)
    }

    fn rule_id(&self) -> RuleId {
        RuleId { chain: self.chain(), handle: 7 }
    }

    fn set(&self) -> SetId {
        self.t.set(name("s"))
    }

    fn elements(&self) -> Elements {
        Elements::new(&self.set(), [Element::new(Port(80)), Element::new(Port(443))])
    }

    fn counter(&self) -> ObjectId {
        self.t.object(ObjectKind::COUNTER, name("o"))
    }

    fn flowtable(&self) -> FlowtableId {
        self.t.flowtable(name("f"))
    }

    fn objects(&self) -> [(Object, u8); 7] {
        let mut flowtable = Flowtable::new(self.flowtable(), Priority(1));
        flowtable.devices = vec![InterfaceName::new("eth0").expect("a name")];
        [
            (Table::new(self.t.clone()).into(), 0),
            (Chain::base(self.chain(), ChainType::Filter, Hook::Input, Priority(0)).into(), 3),
            (self.rule().into(), 6),
            (Set::new(self.set(), DataType::INET_SERVICE).into(), 9),
            (self.elements().into(), 12),
            (StatefulObject::new(self.counter(), ObjectConfig::Counter(Counter::default())).into(), 18),
            (flowtable.into(), 22),
        ]
    }

    /// Each with the commands that delete and destroy it.
    fn targets(&self) -> Vec<(Target, u8, u8)> {
        let t = &self.t;
        vec![
            (t.clone().into(), 2, 26),
            (self.chain().into(), 5, 27),
            (self.rule_id().into(), 8, 28),
            (self.set().into(), 11, 29),
            (self.elements().into(), 14, 30),
            (self.counter().into(), 20, 31),
            (self.flowtable().into(), 24, 32),
            (HandleId::Table(t.family, 1).into(), 2, 26),
            (HandleId::Chain(t.clone(), 2).into(), 5, 27),
            (HandleId::Set(t.clone(), 3).into(), 11, 29),
            (HandleId::Stateful(t.clone(), ObjectKind::COUNTER, 4).into(), 20, 31),
            (HandleId::Flowtable(t.clone(), 5).into(), 24, 32),
        ]
    }

    fn all(&self) -> Vec<(Operation, Sent)> {
        let mut all = Vec::new();
        for (object, command) in self.objects() {
            if let Object::Rule(rule) = &object {
                all.push((Operation::Add(object.clone()), (command, CREATE | Flags::APPEND)));
                all.push((Operation::Insert(rule.clone()), (command, CREATE)));
                all.push((Operation::Replace(rule.clone().handle(7)), (command, Flags::REPLACE)));
            } else {
                all.push((Operation::Add(object.clone()), (command, CREATE)));
                all.push((Operation::Create(object), (command, EXCL)));
            }
        }
        let rename = Rename::new(self.chain(), name("d")).handle(3);
        all.push((Operation::Rename(rename), (3, NONE)));
        for (target, delete, destroy) in self.targets() {
            all.push((Operation::Delete(target.clone()), (delete, NONE)));
            all.push((Operation::Destroy(target), (destroy, NONE)));
        }
        all.push((Operation::Flush(Flush::Ruleset(Family::INET)), (2, NONE)));
        all.push((Operation::Flush(Flush::Table(self.t.clone())), (8, NONE)));
        all.push((Operation::Flush(Flush::Chain(self.chain())), (8, NONE)));
        all.push((Operation::Flush(Flush::Set(self.set())), (14, NONE)));
        all
    }
}

fn all() -> Vec<(Operation, Sent)> {
    Names { t: TableId::new(Family::INET, name("t")) }.all()
}

#[test]
fn each_is_the_message_that_nft_sends_and_libnftnl_understands() {
    for (operation, (command, flags)) in all() {
        let what = format!("{} {}", operation.verb(), operation.object());
        let mut tx = Transaction::new();
        tx.push(operation);
        let batch = tx.encode(ApplyOptions::default()).expect("it can be encoded");
        let bytes = batch.bytes().expect("it is short");
        let messages: Vec<_> =
            Messages::new(bytes).map(|message| message.expect("a message of ours")).collect();
        let [_, message, _] = messages.as_slice() else { panic!("{what}: {} messages", messages.len()) };
        assert_eq!(message.header.kind.to_be_bytes(), [10, command], "{what}");
        // The kernel makes tables without being asked to (nft leaves NLM_F_CREATE out), and looks at no such
        // flag.
        assert_eq!(message.header.flags, Flags::REQUEST | flags, "{what}");
        let at = bytes.len() - 20 - (16 + message.payload.len());
        let whole = &bytes[at..bytes.len() - 20];
        let theirs = reference::rebuild(whole).unwrap_or_else(|why| panic!("{what}: {why}"));
        let read = |bytes| as_we_write(command, tree::read(bytes).expect("attributes"));
        assert_eq!(read(&message.payload[4..]), read(&theirs), "{what}");
    }
}

/// Without what libnftnl writes otherwise and nobody looks at.
fn as_we_write(command: u8, mut message: Vec<Node>) -> Vec<Node> {
    match command {
        // It numbers the elements of a list.
        12 | 14 | 30 => {
            message.iter_mut().flat_map(Node::children).for_each(|element| element.kind = NFTA_LIST_ELEM);
        }
        // It gives an object that is to be deleted an empty configuration (NFTA_OBJ_DATA).
        20 | 31 => message.retain(|node| node.content != Content::Nested(Vec::new())),
        _ => {}
    }
    message
}

const NFTA_LIST_ELEM: u16 = 1;

#[test]
fn every_verb_is_here_with_every_object_that_it_knows() {
    let words = |operation: &Operation| {
        let object = operation.object();
        format!("{} {}", operation.verb(), object.split(' ').next().unwrap_or_default())
    };
    let here: BTreeSet<_> = all().iter().map(|(operation, _)| words(operation)).collect();
    let mut expected = BTreeSet::new();
    for object in ["table", "chain", "set", "element", "counter", "flowtable"] {
        expected.extend(["add", "create", "delete", "destroy"].map(|verb| format!("{verb} {object}")));
    }
    expected.extend(["add", "insert", "replace", "delete", "destroy"].map(|verb| format!("{verb} rule")));
    expected.extend(["table", "chain", "set", "ruleset"].map(|object| format!("flush {object}")));
    expected.insert("rename chain".to_owned());
    assert_eq!(here, expected);
}
