//! The features, each with the question that is sent to the kernel.

use sluicegate_netlink::message::Flags;

use super::question::{InvalidValue, Question, Scene};
use crate::datatype::DataType;
use crate::expr::{self, Expr, ObjectKind, Register};
use crate::family::Family;
use crate::name::{InterfaceName, Name};
use crate::object::chain::wire::{NFTA_CHAIN_ID, NFTA_CHAIN_TABLE, NFTA_CHAIN_USERDATA};
use crate::object::rule::wire::NFTA_RULE_USERDATA;
use crate::object::set::wire::NFTA_SET_USERDATA;
use crate::object::stateful::wire::NFTA_OBJ_USERDATA;
use crate::object::table::wire::NFTA_TABLE_USERDATA;
use crate::object::*;
use crate::tree::{Counter, Last, Payload};
use crate::wire::message::*;

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident => $question:expr,)*) => {
        /// A feature that not every kernel has.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Feature {
            $( $(#[$doc])* $name, )*
        }

        impl Feature {
            /// All features.
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
    /// `destroy`: deletes an object if it exists. Since Linux 6.3.
    Destroy => Question::Accepts(Family::INET, |scene, tx| {
        tx.destroy(scene.table.set(Name::from_kernel("absent")));
    }),
    /// `reset rules`: lists rules and resets their counters in one step. Since Linux 6.2.
    RuleReset => Question::KnowsMessage(NFT_MSG_GETRULE_RESET, Flags::empty()),
    /// `reset element`, `reset set`. Since Linux 6.5.
    ElementReset => Question::KnowsMessage(NFT_MSG_GETSETELEM_RESET, Flags::DUMP),
    /// `list hooks`: the functions registered at netfilter hooks ([`read::hooks`](crate::read::hooks)). Since
    /// Linux 5.14; a build option.
    RegisteredHooks => Question::RegisteredHooks,

    /// Comments of tables. Since Linux 5.10.
    TableComment => Question::RefusesValue(user_data(NFT_MSG_NEWTABLE, NFTA_TABLE_USERDATA)),
    /// Comments of chains. Since Linux 5.10.
    ChainComment => Question::RefusesValue(user_data(NFT_MSG_NEWCHAIN, NFTA_CHAIN_USERDATA)),
    /// Comments of rules.
    RuleComment => Question::RefusesValue(user_data(NFT_MSG_NEWRULE, NFTA_RULE_USERDATA)),
    /// Comments of sets and maps, and the other data that nft stores (`typeof`, the byte order of keys).
    SetComment => Question::RefusesValue(user_data(NFT_MSG_NEWSET, NFTA_SET_USERDATA)),
    /// Comments of stateful objects. Since Linux 5.10.
    ObjectComment => Question::RefusesValue(user_data(NFT_MSG_NEWOBJ, NFTA_OBJ_USERDATA)),

    /// Tables that belong to a socket (`owner`). Since Linux 5.12.
    TableOwner => Question::Accepts(Family::INET, |_, tx| {
        tx.create(Table::new(other_table()).flags(TableFlags::OWNER));
    }),
    /// Tables that are not deleted with their owner (`persist`). Since Linux 6.9.
    TablePersist => Question::Accepts(Family::INET, |_, tx| {
        tx.create(Table::new(other_table()).flags(TableFlags::OWNER | TableFlags::PERSIST));
    }),

    /// Anonymous chains: `jump { ... }`. Since Linux 5.9.
    BoundChains => Question::RefusesValue(InvalidValue { command: NFT_MSG_NEWCHAIN, table: NFTA_CHAIN_TABLE,
        attribute: NFTA_CHAIN_ID, value: &[0] }),
    /// NAT in tables of family inet. Since Linux 5.2.
    InetNat => Question::Accepts(Family::INET, |scene, tx| {
        tx.add(base(scene, ChainType::Nat, Hook::Prerouting));
    }),
    /// The hook `ingress` in tables of family inet. Since Linux 5.10.
    InetIngress => Question::Accepts(Family::INET, |scene, tx| {
        tx.add(base(scene, ChainType::Filter, Hook::Ingress).devices([lo()]));
    }),
    /// The hook `egress` in tables of family netdev. Since Linux 5.16; a build option.
    Egress => Question::Accepts(Family::NETDEV, |scene, tx| {
        tx.add(base(scene, ChainType::Filter, Hook::Egress).devices([lo()]));
    }),
    /// Chains of family netdev without devices. Since Linux 6.4.
    ChainWithoutDevice => Question::Accepts(Family::NETDEV, |scene, tx| {
        tx.add(base(scene, ChainType::Filter, Hook::Ingress));
    }),
    /// Deleting devices of a chain. Since Linux 6.4.
    DeviceDeletion => Question::Accepts(Family::NETDEV, |scene, tx| {
        let chain = base(scene, ChainType::Filter, Hook::Ingress).devices([lo()]);
        let devices = chain.id.devices([lo()]);
        tx.add(chain).delete(devices);
    }),
    /// Chains on devices that do not exist yet. Since Linux 6.16.
    AbsentDevice => Question::Accepts(Family::NETDEV, |scene, tx| {
        let devices = [InterfaceName::from_kernel("sluicegate-none")];
        tx.add(base(scene, ChainType::Filter, Hook::Ingress).devices(devices));
    }),
    /// Chains and flowtables for all devices with a prefix (`veth*`). Since Linux 6.17, and in the stable
    /// series since 6.16.6.
    DevicePrefix => Question::Accepts(Family::NETDEV, |scene, tx| {
        let devices = [InterfaceName::from_kernel("sluicegate-*")];
        tx.add(base(scene, ChainType::Filter, Hook::Ingress).devices(devices));
    }),

    /// Intervals of concatenations. Since Linux 5.6.
    ConcatenatedIntervals => Question::Accepts(Family::INET, |scene, tx| {
        let key = [DataType::IPV4_ADDR, DataType::INET_SERVICE];
        tx.add(Set::new(scene.set.clone(), key).flags(SetFlags::INTERVAL));
    }),
    /// The catch-all element `*`. Since Linux 5.13.
    CatchAll => Question::Accepts(Family::INET, |scene, tx| {
        tx.add(Set::new(scene.set.clone(), DataType::IPV4_ADDR));
        tx.add_element(&scene.set, Element::catch_all());
    }),
    /// Several expressions in an element. Since Linux 5.11.
    ElementExpressions => Question::Accepts(Family::INET, |scene, tx| {
        let mut counted = Set::new(scene.set.clone(), DataType::IPV4_ADDR);
        counted.statements = vec![Counter::default().into(), Last::default().into()];
        tx.add(counted);
    }),
    /// Flowtables in tables of family `inet`, which has those of both IP versions. Since Linux 4.16; a build option.
    Flowtable => Question::Accepts(Family::INET, |scene, tx| {
        tx.add(Flowtable::new(scene.table.flowtable(Name::from_kernel("f")), Priority(0)));
    }),
    /// Flowtables with counters. Since Linux 5.7.
    FlowtableCounter => Question::Accepts(Family::INET, |scene, tx| {
        let flowtable = Flowtable::new(scene.table.flowtable(Name::from_kernel("f")), Priority(0));
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
    /// The expression `inner`, which matches inside tunnels. Since Linux 6.2.
    Inner => Question::Expression(Family::INET, "inner"),

    /// `socket cgroupv2`. Since Linux 5.13.
    SocketCgroup => Question::AcceptsRule(Family::INET, || {
        vec![expr::Socket { key: expr::SocketKey::CGROUPV2, dreg: WORD, level: Some(1) }.into()]
    }),
    /// `@ih`: the data after the transport header. Since Linux 5.16.
    InnerHeader => Question::AcceptsRule(Family::INET, || vec![load(expr::PayloadBase::INNER)]),
    /// `reset tcp option`. Since Linux 5.18.
    TcpOptionReset => Question::AcceptsRule(Family::INET, || vec![exthdr(expr::ExthdrOp::TCPOPT, None)]),
    /// SCTP chunks. Since Linux 5.14.
    SctpChunk => Question::AcceptsRule(Family::INET, || vec![exthdr(expr::ExthdrOp::SCTP, Some(WORD))]),
    /// DCCP options; a build option.
    DccpOption => Question::AcceptsRule(Family::INET, || {
        vec![expr::Exthdr { flags: Some(expr::ExthdrFlags::PRESENT), ..dccp() }.into()]
    }),
    /// `&`, `|` and `^` with two values that depend on the packet. Since Linux 6.13.
    BitwiseRegisters => Question::AcceptsRule(Family::INET, || {
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
    /// `secmark` objects. Since Linux 4.20; a build option.
    Secmark => Question::Object(Family::INET, ObjectKind::SECMARK),
    /// `tunnel` objects, in tables of family netdev. Since Linux 4.19; a build option.
    TunnelObject => Question::Object(Family::NETDEV, ObjectKind::TUNNEL),
}

/// Returns a question with user data that are too long. A kernel with user data for such objects refuses
/// them; others ignore the attribute.
const fn user_data(command: u8, attribute: u16) -> InvalidValue {
    InvalidValue { command, table: 1, attribute, value: &[0; NFT_USERDATA_MAXLEN + 1] }
}

fn other_table() -> TableId {
    TableId::new(Family::INET, Name::from_kernel("sluicegate-probe-2"))
}

fn base(scene: &Scene, kind: ChainType, hook: Hook) -> Chain {
    Chain::base(scene.table.chain(Name::from_kernel("b")), kind, hook, Priority(0))
}

fn lo() -> InterfaceName {
    InterfaceName::from_kernel("lo")
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
