//! Hardware offload (`flags offload`): which rules a device can take over (`nf_tables_offload.c`). Whether a
//! particular device can depends on its driver; here every device can.

use std::collections::HashMap;

use sluicegate_netlink::Errno;

use crate::expr::{
    BitwiseOp, Cmp, CmpOp, Data, Expr, Immediate, Meta, MetaKey, Payload, PayloadBase, Register,
};
use crate::fake::message::{Done, refuse};
use crate::fake::state::StoredExpr;
use crate::tree::Verdict;

/// Checks a rule of an offloaded chain: it has to match something that a device can match, and then act on
/// the packet.
pub(super) fn check_rule(rule: &[StoredExpr]) -> Done {
    let mut device = Device::default();
    let supported = rule.iter().all(|stored| device.supports(&stored.expr));
    if supported && device.acts { Ok(()) } else { refuse(Errno::EOPNOTSUPP) }
}

/// The matches that were collected for the device so far.
#[derive(Default)]
struct Device {
    /// The registers with a field that the device can match, and the length of that field in bytes.
    fields: HashMap<Register, u32>,
    /// What the next comparison determines about the packet.
    next: Option<Determines>,
    ether_type: Option<[u8; 2]>,
    protocol: Option<u8>,
    acts: bool,
}

#[derive(Clone, Copy)]
enum Determines {
    EtherType,
    Protocol,
}

impl Device {
    fn supports(&mut self, expr: &Expr) -> bool {
        match expr {
            Expr::Counter(_) => true,
            Expr::Meta(Meta { key, dreg: Some(dreg), .. }) => self.meta(*key, *dreg),
            Expr::Payload(load @ Payload { dreg: Some(dreg), .. }) => self.payload(load, *dreg),
            Expr::Bitwise(bits) => {
                let toggles =
                    matches!(&bits.xor, Some(Data::Value(xor)) if xor.iter().any(|byte| *byte != 0));
                let masks = bits.op.is_none_or(|op| op == BitwiseOp::BOOL) && !toggles;
                masks && bits.sreg == bits.dreg && self.fields.get(&bits.sreg) == Some(&bits.len)
            }
            Expr::Cmp(cmp) => self.compare(cmp),
            Expr::Immediate(Immediate { data: Data::Verdict(verdict), .. }) => {
                self.acts = true;
                matches!(verdict, Verdict::Accept | Verdict::Drop)
            }
            Expr::Immediate(Immediate { data, .. }) => matches!(data, Data::Value(_)),
            Expr::Fwd(fwd) => self.act(fwd.addr.is_none()),
            Expr::Dup(dup) => self.act(dup.device.is_some()),
            _ => false,
        }
    }

    fn act(&mut self, supported: bool) -> bool {
        self.acts = true;
        supported
    }

    fn meta(&mut self, key: MetaKey, into: Register) -> bool {
        let (bytes, determines) = match key {
            MetaKey::PROTOCOL => (2, Some(Determines::EtherType)),
            MetaKey::L4PROTO => (1, Some(Determines::Protocol)),
            MetaKey::IIF => (4, None),
            MetaKey::IIFTYPE => (2, None),
            _ => return false,
        };
        self.load(into, bytes, determines)
    }

    fn payload(&mut self, load: &Payload, into: Register) -> bool {
        let field = match load.base {
            PayloadBase::LINK => ETHERNET.iter().find(|field| field.0 == load.offset),
            PayloadBase::NETWORK => match self.ether_type {
                Some([0x08, 0x00]) => IPV4.iter().find(|field| field.0 == load.offset),
                Some([0x86, 0xdd]) => IPV6.iter().find(|field| field.0 == load.offset),
                _ => None,
            },
            PayloadBase::TRANSPORT if matches!(self.protocol, Some(TCP | UDP)) => {
                PORTS.iter().find(|field| field.0 == load.offset)
            }
            _ => None,
        };
        match field {
            Some((_, bytes, determines)) if load.len <= *bytes => self.load(into, *bytes, *determines),
            _ => false,
        }
    }

    fn load(&mut self, into: Register, bytes: u32, determines: Option<Determines>) -> bool {
        self.fields.insert(into, bytes);
        self.next = determines.or(self.next);
        true
    }

    fn compare(&mut self, cmp: &Cmp) -> bool {
        let Data::Value(value) = &cmp.data else { return false };
        let fits = self.fields.get(&cmp.sreg).is_some_and(|bytes| value.len() <= *bytes as usize);
        match (self.next.take(), &**value) {
            (Some(Determines::EtherType), [high, low]) => self.ether_type = Some([*high, *low]),
            (Some(Determines::Protocol), [protocol]) => self.protocol = Some(*protocol),
            _ => {}
        }
        fits && cmp.op == CmpOp::EQ
    }
}

/// The offset and length of a field in bytes, and what a comparison with it determines about later fields.
type Field = (u32, u32, Option<Determines>);

const ETHERNET: &[Field] = &[
    (0, 6, None),
    (6, 6, None),
    (12, 2, Some(Determines::EtherType)),
    // The VLAN tags, and the EtherType after them.
    (14, 2, None),
    (16, 2, Some(Determines::EtherType)),
    (18, 2, None),
    (20, 2, Some(Determines::EtherType)),
];
const IPV4: &[Field] = &[(9, 1, Some(Determines::Protocol)), (12, 4, None), (16, 4, None)];
const IPV6: &[Field] = &[(6, 1, Some(Determines::Protocol)), (8, 16, None), (24, 16, None)];
const PORTS: &[Field] = &[(0, 2, None), (2, 2, None)];
const TCP: u8 = 6;
const UDP: u8 = 17;
