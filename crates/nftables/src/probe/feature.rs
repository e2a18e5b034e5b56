//! What can be asked for: each feature with its question.

use sluicegate_netlink::message::Flags;

use super::question::{Question, Scene, Spoilt};
use crate::datatype::DataType;
use crate::expr::{self, Expr, ObjectKind, Register};
use crate::family::Family;
use crate::lang::{Counter, Last, Payload};
use crate::name::{InterfaceName, Name};
use crate::object::*;

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident => $question:expr,)*) => {
        /// Something that not every kernel can do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Feature {
            $( $(#[$doc])* $name, )*
        }

        impl Feature {
            /// Every feature that can be asked for.
            pub const ALL: &'static [Self] = &[$( Self::$name, )*];

            pub(super) fn question(self) -> Question<'static> {
                match self {
                    $( Self::$name => $question, )*
                }
            }
        }
    };
}

features! {
    /// `destroy`: deleting what may not exist. Since Linux 6.3.
    Destroy => Question::Takes(Family::INET, |scene, tx| {
        tx.destroy(scene.table.set(Name::held("absent")));
    }),
    /// `reset rules`: reading rules and setting their counters back in one step. Since Linux 6.2.
    RuleReset => Question::Asks(NFT_MSG_GETRULE_RESET, Flags::empty()),
    /// `reset element`, `reset set`. Since Linux 6.5.
    ElementReset => Question::Asks(NFT_MSG_GETSETELEM_RESET, Flags::DUMP),
    /// `list hooks`: what is registered at the hooks of netfilter ([`read::hooks`](crate::read::hooks)). Since Linux 5.14, where built.
    RegisteredHooks => Question::RegisteredHooks,

    /// Comments of tables. Since Linux 5.10.
    TableComment => Question::Refuses(user_data(NFT_MSG_NEWTABLE, 6)),
    /// Comments of chains. Since Linux 5.10.
    ChainComment => Question::Refuses(user_data(NFT_MSG_NEWCHAIN, 12)),
    /// Comments of rules.
    RuleComment => Question::Refuses(user_data(NFT_MSG_NEWRULE, 7)),
    /// Comments of sets and maps, and what else nft notes with them (`typeof`, the byte order of keys).
    SetComment => Question::Refuses(user_data(NFT_MSG_NEWSET, 13)),
    /// Comments of stateful objects. Since Linux 5.10.
    ObjectComment => Question::Refuses(user_data(NFT_MSG_NEWOBJ, 8)),

    /// Tables that belong to a socket. Since Linux 5.12.
    TableOwner => Question::Takes(Family::INET, |_, tx| {
        tx.create(Table::new(other_table()).flags(TableFlags::OWNER));
    }),
    /// Tables that stay when their owner goes. Since Linux 6.9.
    TablePersist => Question::Takes(Family::INET, |_, tx| {
        tx.create(Table::new(other_table()).flags(TableFlags::OWNER | TableFlags::PERSIST));
    }),

    /// Chains of a rule's own: `jump { ... }`. Since Linux 5.9.
    BoundChains => Question::Refuses(Spoilt { command: NFT_MSG_NEWCHAIN, table: 1, attribute: NFTA_CHAIN_ID, value: &[0] }),
    /// NAT in tables of family inet. Since Linux 5.2.
    InetNat => Question::Takes(Family::INET, |scene, tx| {
        tx.add(base(scene, ChainType::Nat, Hook::Prerouting));
    }),
    /// The hook `ingress` in tables of family inet. Since Linux 5.10.
    InetIngress => Question::Takes(Family::INET, |scene, tx| {
        tx.add(base(scene, ChainType::Filter, Hook::Ingress).devices([lo()]));
    }),
    /// The hook `egress` in tables of family netdev. Since Linux 5.16, where built.
    Egress => Question::Takes(Family::NETDEV, |scene, tx| {
        tx.add(base(scene, ChainType::Filter, Hook::Egress).devices([lo()]));
    }),
    /// Chains of family netdev that have no device yet. Since Linux 6.4.
    ChainWithoutDevice => Question::Takes(Family::NETDEV, |scene, tx| {
        tx.add(base(scene, ChainType::Filter, Hook::Ingress));
    }),
    /// Deleting devices of a chain that stays. Since Linux 6.4.
    DeviceDeletion => Question::Takes(Family::NETDEV, |scene, tx| {
        let chain = base(scene, ChainType::Filter, Hook::Ingress).devices([lo()]);
        let devices = chain.id.devices([lo()]);
        tx.add(chain).delete(devices);
    }),
    /// Chains on devices that do not exist yet. Since Linux 6.16.
    AbsentDevice => Question::Takes(Family::NETDEV, |scene, tx| {
        tx.add(base(scene, ChainType::Filter, Hook::Ingress).devices([InterfaceName::held("sluicegate-none")]));
    }),
    /// Chains and flowtables on all devices whose names start alike (`veth*`). Since Linux 6.17, and 6.16.6 of the stable series.
    DevicePrefix => Question::Takes(Family::NETDEV, |scene, tx| {
        tx.add(base(scene, ChainType::Filter, Hook::Ingress).devices([InterfaceName::held("sluicegate-*")]));
    }),

    /// Intervals of concatenations. Since Linux 5.6.
    ConcatenatedIntervals => Question::Takes(Family::INET, |scene, tx| {
        let key = [DataType::IPV4_ADDR, DataType::INET_SERVICE];
        tx.add(Set::new(scene.set.clone(), key).flags(SetFlags::INTERVAL));
    }),
    /// The element `*`. Since Linux 5.13.
    CatchAll => Question::Takes(Family::INET, |scene, tx| {
        tx.add(Set::new(scene.set.clone(), DataType::IPV4_ADDR));
        tx.add_element(&scene.set, Element::catch_all());
    }),
    /// Several expressions an element. Since Linux 5.11.
    ElementExpressions => Question::Takes(Family::INET, |scene, tx| {
        let mut counted = Set::new(scene.set.clone(), DataType::IPV4_ADDR);
        counted.statements = vec![Counter::default().into(), Last::default().into()];
        tx.add(counted);
    }),
    /// Flowtables. Since Linux 4.16, where built.
    Flowtable => Question::Takes(Family::INET, |scene, tx| {
        tx.add(Flowtable::new(scene.table.flowtable(Name::held("f")), Priority(0)));
    }),
    /// Flowtables that count what they forward. Since Linux 5.7.
    FlowtableCounter => Question::Takes(Family::INET, |scene, tx| {
        let flowtable = Flowtable::new(scene.table.flowtable(Name::held("f")), Priority(0));
        tx.add(Flowtable { flags: FlowtableFlags::COUNTER, ..flowtable });
    }),

    /// The expression `last`. Since Linux 5.14.
    Last => Question::Expression(Family::INET, "last"),
    /// The expression `numgen`.
    Numgen => Question::Expression(Family::INET, "numgen"),
    /// The expression `hash`.
    Hash => Question::Expression(Family::INET, "hash"),
    /// The expression `fib`.
    Fib => Question::Expression(Family::INET, "fib"),
    /// The expression `nat`.
    Nat => Question::Expression(Family::INET, "nat"),
    /// The expression `masq`.
    Masquerade => Question::Expression(Family::INET, "masq"),
    /// The expression `redir`.
    Redirect => Question::Expression(Family::INET, "redir"),
    /// The expression `tproxy`.
    Tproxy => Question::Expression(Family::INET, "tproxy"),
    /// The expression `queue`.
    Queue => Question::Expression(Family::INET, "queue"),
    /// The expression `connlimit`.
    Connlimit => Question::Expression(Family::INET, "connlimit"),
    /// The expression `synproxy`.
    Synproxy => Question::Expression(Family::INET, "synproxy"),
    /// The expression `socket`.
    Socket => Question::Expression(Family::INET, "socket"),
    /// The expression `osf`.
    Osf => Question::Expression(Family::INET, "osf"),
    /// The expression `xfrm`.
    Xfrm => Question::Expression(Family::INET, "xfrm"),
    /// The expression `tunnel`.
    Tunnel => Question::Expression(Family::NETDEV, "tunnel"),
    /// The expression `inner`: looking into tunnels. Since Linux 6.2.
    Inner => Question::Expression(Family::INET, "inner"),

    /// `socket cgroupv2`. Since Linux 5.13.
    SocketCgroup => Question::TakesRule(Family::INET, || {
        vec![expr::Socket { key: expr::SocketKey::CGROUPV2, dreg: WORD, level: Some(1) }.into()]
    }),
    /// `@ih`: what comes after the transport header. Since Linux 5.16.
    InnerHeader => Question::TakesRule(Family::INET, || vec![load(expr::PayloadBase::INNER)]),
    /// `reset tcp option`. Since Linux 5.18.
    TcpOptionReset => Question::TakesRule(Family::INET, || vec![exthdr(expr::ExthdrOp::TCPOPT, None)]),
    /// Chunks of SCTP. Since Linux 5.14.
    SctpChunk => Question::TakesRule(Family::INET, || vec![exthdr(expr::ExthdrOp::SCTP, Some(WORD))]),
    /// Options of DCCP, where built.
    DccpOption => Question::TakesRule(Family::INET, || {
        vec![expr::Exthdr { flags: Some(expr::ExthdrFlags::PRESENT), ..dccp() }.into()]
    }),
    /// `&`, `|` and `^` of two values of the packet. Since Linux 6.13.
    BitwiseRegisters => Question::TakesRule(Family::INET, || {
        let and = expr::Bitwise {
            sreg: WORD,
            dreg: WORD,
            len: 4,
            mask: None,
            xor: None,
            op: Some(expr::BitwiseOp::AND),
            data: None,
            sreg2: Some(Register::word(4)),
        };
        vec![load(expr::PayloadBase::NETWORK), load_to(Register::word(4)), and.into()]
    }),

    /// `ct helper` objects.
    CtHelper => Question::Object(Family::INET, ObjectKind::CT_HELPER),
    /// `ct timeout` objects. Since Linux 4.19.
    CtTimeout => Question::Object(Family::INET, ObjectKind::CT_TIMEOUT),
    /// `ct expectation` objects. Since Linux 5.3.
    CtExpectation => Question::Object(Family::INET, ObjectKind::CT_EXPECT),
    /// `synproxy` objects. Since Linux 5.4.
    SynproxyObject => Question::Object(Family::INET, ObjectKind::SYNPROXY),
    /// `secmark` objects. Since Linux 4.20, where built.
    Secmark => Question::Object(Family::INET, ObjectKind::SECMARK),
    /// `tunnel` objects, of tables of family netdev. Since Linux 4.19, where built.
    TunnelObject => Question::Object(Family::NETDEV, ObjectKind::TUNNEL),
}

/// User data that no kernel that has it for such an object accepts.
const fn user_data(command: u8, attribute: u16) -> Spoilt {
    Spoilt { command, table: 1, attribute, value: &[0; NFT_USERDATA_MAXLEN + 1] }
}

fn other_table() -> TableId {
    TableId::new(Family::INET, Name::held("sluicegate-probe-2"))
}

fn base(scene: &Scene, kind: ChainType, hook: Hook) -> Chain {
    Chain::base(scene.table.chain(Name::held("b")), kind, hook, Priority(0))
}

fn lo() -> InterfaceName {
    InterfaceName::held("lo")
}

fn load(base: expr::PayloadBase) -> Expr {
    expr::Payload { base, ..payload(WORD) }.into()
}

fn load_to(register: Register) -> Expr {
    payload(register).into()
}

fn payload(dreg: Register) -> expr::Payload {
    expr::Payload {
        dreg: Some(dreg),
        base: Payload::IP_SADDR.base(),
        offset: 12,
        len: 4,
        sreg: None,
        csum_type: None,
        csum_offset: None,
        csum_flags: None,
    }
}

fn exthdr(op: expr::ExthdrOp, dreg: Option<Register>) -> Expr {
    let (offset, len) = (dreg.map(|_| 0), dreg.map(|_| 4));
    expr::Exthdr { dreg, kind: 2, offset, len, flags: None, op: Some(op), sreg: None }.into()
}

fn dccp() -> expr::Exthdr {
    expr::Exthdr {
        dreg: Some(WORD),
        kind: 1,
        offset: Some(0),
        len: Some(1),
        flags: None,
        op: Some(expr::ExthdrOp::DCCP),
        sreg: None,
    }
}

const WORD: Register = Register::word(0);
/// `NFT_USERDATA_MAXLEN`
const NFT_USERDATA_MAXLEN: usize = 256;
const NFT_MSG_NEWTABLE: u8 = 0;
const NFT_MSG_NEWCHAIN: u8 = 3;
const NFT_MSG_NEWRULE: u8 = 6;
const NFT_MSG_NEWSET: u8 = 9;
const NFT_MSG_NEWOBJ: u8 = 18;
const NFT_MSG_GETRULE_RESET: u8 = 25;
const NFT_MSG_GETSETELEM_RESET: u8 = 33;
const NFTA_CHAIN_ID: u16 = 11;
