//! What this kernel can do, found by asking it: each question is a batch that is checked and thrown away.

use sluicegate_netlink::Transport;

use crate::apply::ApplyOptions;
use crate::datatype::DataType;
use crate::error::Error;
use crate::expr::{self, Expr, Register};
use crate::family::Family;
use crate::lang::{Payload, Statement, Verdict};
use crate::name::Name;
use crate::object::*;
use crate::transaction::Transaction;

/// Something that not every kernel can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Feature {
    /// `destroy`: deleting what may not exist. Since Linux 6.3.
    Destroy,
    /// Intervals of concatenations. Since Linux 5.6.
    ConcatenatedIntervals,
    /// The element `*`. Since Linux 5.13.
    CatchAll,
    /// Several expressions an element. Since Linux 5.11.
    ElementExpressions,
    /// NAT in tables of family inet. Since Linux 5.2.
    InetNat,
    /// The hook `ingress` in tables of family inet. Since Linux 5.10.
    InetIngress,
    /// Flowtables. Since Linux 4.16, where built.
    Flowtable,
    /// Tables that belong to a socket. Since Linux 5.12.
    TableOwner,
    /// The expression `last`. Since Linux 5.14.
    Last,
    /// The expression `numgen`.
    Numgen,
    /// The expression `fib`.
    Fib,
    /// The expression `masq`.
    Masquerade,
    /// The expression `synproxy`.
    Synproxy,
    /// The expression `socket`.
    Socket,
    /// The expression `osf`.
    Osf,
    /// The expression `xfrm`.
    Xfrm,
}

impl Feature {
    /// Every feature that can be asked for.
    pub const ALL: [Self; 16] = [
        Self::Destroy,
        Self::ConcatenatedIntervals,
        Self::CatchAll,
        Self::ElementExpressions,
        Self::InetNat,
        Self::InetIngress,
        Self::Flowtable,
        Self::TableOwner,
        Self::Last,
        Self::Numgen,
        Self::Fib,
        Self::Masquerade,
        Self::Synproxy,
        Self::Socket,
        Self::Osf,
        Self::Xfrm,
    ];
}

/// Whether this kernel can do something. It may load a module to find out, as it would for a real rule; nothing else changes.
///
/// # Errors
/// When it cannot be asked: no permission, no `nf_tables`, no answer.
pub fn supports(transport: &mut (impl Transport + ?Sized), feature: Feature) -> Result<bool, Error> {
    let question = question(feature);
    let options = ApplyOptions { check: true, ..ApplyOptions::default() };
    match question.apply_with(transport, options) {
        Ok(_) => Ok(true),
        Err(error @ Error::Rejected { .. }) if !error.is_permission_denied() => Ok(false),
        Err(error) => Err(error),
    }
}

fn question(feature: Feature) -> Transaction {
    let table = TableId::new(Family::INET, Name::held("sluicegate-probe"));
    let set = table.set(Name::held("s"));
    let chain = table.chain(Name::held("c"));
    let mut tx = Transaction::new();
    if feature == Feature::Destroy {
        tx.destroy(table);
        return tx;
    }
    if feature == Feature::TableOwner {
        tx.add(Table::new(table).flags(TableFlags::OWNER));
        return tx;
    }
    tx.add(Table::new(table.clone())).add(Chain::new(chain.clone()));
    let nat = |hook| Chain::base(table.chain(Name::held("b")), ChainType::Nat, hook, Priority(0));
    match feature {
        Feature::ConcatenatedIntervals => {
            tx.add(Set::new(set, [DataType::IPV4_ADDR, DataType::INET_SERVICE]).flags(SetFlags::INTERVAL));
        }
        Feature::CatchAll => {
            tx.add(Set::new(set.clone(), DataType::IPV4_ADDR)).add_element(&set, Element::catch_all());
        }
        Feature::ElementExpressions => {
            let mut counted = Set::new(set, DataType::IPV4_ADDR);
            counted.statements = vec![crate::lang::Counter::default().into(), Statement::Last];
            tx.add(counted);
        }
        Feature::InetNat => {
            tx.add(nat(Hook::Prerouting));
        }
        Feature::InetIngress => {
            let lo = crate::name::InterfaceName::held("lo");
            let base =
                Chain::base(table.chain(Name::held("b")), ChainType::Filter, Hook::Ingress, Priority(0));
            tx.add(base.devices([lo]));
        }
        Feature::Flowtable => {
            tx.add(Flowtable::new(table.flowtable(Name::held("f")), Priority(0)));
        }
        other => {
            tx.add(chain.rule().then(Statement::Raw(expression(other))).then(Verdict::Accept));
        }
    }
    tx
}

/// A rule's expressions that only a kernel with the feature takes.
fn expression(feature: Feature) -> Vec<Expr> {
    let dreg = Register::word(0);
    vec![match feature {
        Feature::Last => expr::Last { set: None, msecs: None }.into(),
        Feature::Numgen => {
            expr::Numgen { dreg, modulus: 2, mode: expr::NumgenMode::RANDOM, offset: None }.into()
        }
        Feature::Fib => {
            expr::Fib { dreg, result: expr::FibResult::ADDRTYPE, flags: expr::FibFlags::DADDR }.into()
        }
        Feature::Masquerade => expr::Masq { flags: None, proto_min: None, proto_max: None }.into(),
        Feature::Synproxy => {
            expr::Synproxy { mss: Some(1460), wscale: None, flags: Some(expr::SynproxyFlags::MSS) }.into()
        }
        Feature::Socket => expr::Socket { key: expr::SocketKey::MARK, dreg, level: None }.into(),
        Feature::Osf => expr::Osf { dreg, ttl: Some(0), flags: None }.into(),
        Feature::Xfrm => expr::Xfrm { dreg, key: expr::XfrmKey::REQID, direction: 0, number: None }.into(),
        // The others are asked for by objects.
        _ => expr::Payload {
            dreg: Some(dreg),
            base: Payload::IP_SADDR.base(),
            offset: 0,
            len: 4,
            sreg: None,
            csum_type: None,
            csum_offset: None,
            csum_flags: None,
        }
        .into(),
    }]
}
