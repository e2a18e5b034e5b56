//! What devices do themselves (`flags offload`): which rules a device can follow (`nf_tables_offload.c`). That a device is one that can is a
//! matter of its driver, and here every device can.

use std::collections::HashMap;

use crate::expr::{
    BitwiseOp, Cmp, CmpOp, Data, Expr, Immediate, Meta, MetaKey, Payload, PayloadBase, Register,
};
use crate::fake::message::{Done, EOPNOTSUPP, refuse};
use crate::fake::state::Held;
use crate::lang::Verdict;

/// A rule of a chain that is offloaded: it compares what a device can compare, and does something then.
pub(super) fn follows(rule: &[Held]) -> Done {
    let mut device = Device::default();
    let can = rule.iter().all(|held| device.can(&held.expr));
    if can && device.acts { Ok(()) } else { refuse(EOPNOTSUPP) }
}

/// What a device has been told so far.
#[derive(Default)]
struct Device {
    /// The registers that hold something that it can compare, and how many bytes of that.
    fields: HashMap<Register, u32>,
    /// What the next comparison says.
    next: Option<Says>,
    ether_type: Option<[u8; 2]>,
    protocol: Option<u8>,
    acts: bool,
}

#[derive(Clone, Copy)]
enum Says {
    EtherType,
    Protocol,
}

impl Device {
    fn can(&mut self, expr: &Expr) -> bool {
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

    fn act(&mut self, can: bool) -> bool {
        self.acts = true;
        can
    }

    fn meta(&mut self, key: MetaKey, into: Register) -> bool {
        let (bytes, says) = match key {
            MetaKey::PROTOCOL => (2, Some(Says::EtherType)),
            MetaKey::L4PROTO => (1, Some(Says::Protocol)),
            MetaKey::IIF => (4, None),
            MetaKey::IIFTYPE => (2, None),
            _ => return false,
        };
        self.load(into, bytes, says)
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
            Some((_, bytes, says)) if load.len <= *bytes => self.load(into, *bytes, *says),
            _ => false,
        }
    }

    fn load(&mut self, into: Register, bytes: u32, says: Option<Says>) -> bool {
        self.fields.insert(into, bytes);
        self.next = says.or(self.next);
        true
    }

    fn compare(&mut self, cmp: &Cmp) -> bool {
        let Data::Value(value) = &cmp.data else { return false };
        let fits = self.fields.get(&cmp.sreg).is_some_and(|bytes| value.len() <= *bytes as usize);
        match (self.next.take(), &**value) {
            (Some(Says::EtherType), [high, low]) => self.ether_type = Some([*high, *low]),
            (Some(Says::Protocol), [protocol]) => self.protocol = Some(*protocol),
            _ => {}
        }
        fits && cmp.op == CmpOp::EQ
    }
}

/// Where a field is, how many bytes it has, and what it says of what follows.
type Field = (u32, u32, Option<Says>);

const ETHERNET: &[Field] = &[
    (0, 6, None),
    (6, 6, None),
    (12, 2, Some(Says::EtherType)),
    // Tags, and what is behind them.
    (14, 2, None),
    (16, 2, Some(Says::EtherType)),
    (18, 2, None),
    (20, 2, Some(Says::EtherType)),
];
const IPV4: &[Field] = &[(9, 1, Some(Says::Protocol)), (12, 4, None), (16, 4, None)];
const IPV6: &[Field] = &[(6, 1, Some(Says::Protocol)), (8, 16, None), (24, 16, None)];
const PORTS: &[Field] = &[(0, 2, None), (2, 2, None)];
const TCP: u8 = 6;
const UDP: u8 = 17;
