//! Lowers statements to the kernel's expressions.

use std::time::Duration;

use crate::check::LowerError;
use crate::compile::constant::{Bounds, Place};
use crate::compile::lower::Lower;
use crate::compile::lower::load::WORDS;
use crate::compile::lower::lookup::{KeyForm, key_types};
use crate::compile::lower::mangle::exthdr;
use crate::compile::lower::nat::{address_part, port_flags};
use crate::datatype::{DataType, Order};
use crate::expr::{self, Data, DynsetFlags, DynsetOp, Expr, NatType, QueueFlags, Register, RejectType};
use crate::family::Family;
use crate::key::Part;
use crate::name::Name;
use crate::object::{Set, SetData};
use crate::tree::Expression;
use crate::tree::stateful::{stateful, synproxy_expr};
use crate::tree::statement::*;
use crate::wording::millis;

impl Lower<'_> {
    pub(crate) fn statement(&mut self, statement: &Statement) -> Result<(), LowerError> {
        match statement {
            Statement::Match(m) => self.matching(m)?,
            Statement::Verdict(verdict) => {
                self.push(expr::Immediate { dreg: Register::VERDICT, data: Data::Verdict(verdict.clone()) });
            }
            Statement::Bound(chain) => self.bound(chain)?,
            Statement::Vmap(vmap) => self.vmap(vmap)?,
            Statement::Counter(_)
            | Statement::Quota(_)
            | Statement::Limit(_)
            | Statement::Last(_)
            | Statement::Connlimit(_) => {
                // Elements of sets can carry these statements as well, with the same encoding.
                let state = stateful(statement)
                    .ok_or_else(|| unsupported("expected a stateful statement", statement))?;
                self.push(state);
            }
            Statement::Log(log) => self.log(log),
            Statement::Reject(reject) => self.reject(*reject)?,
            Statement::Dnat(nat) => self.nat(NatType::DNAT, nat)?,
            Statement::Snat(nat) => self.nat(NatType::SNAT, nat)?,
            Statement::Masquerade(nat) => {
                let (proto_min, proto_max) = self.ports(nat.port.as_ref(), 0)?;
                let flags = port_flags(nat);
                self.push(expr::Masq { flags, proto_min, proto_max });
            }
            Statement::Redirect(nat) => {
                let (proto_min, proto_max) = self.ports(nat.port.as_ref(), 0)?;
                let flags = port_flags(nat);
                self.push(expr::Redir { proto_min, proto_max, flags });
            }
            Statement::Tproxy(tproxy) => self.tproxy(tproxy)?,
            Statement::Dup(dup) => self.dup(dup)?,
            Statement::Fwd(fwd) => self.forward(fwd)?,
            Statement::Queue(queue) => self.queue(queue)?,
            Statement::Notrack => self.push(expr::Notrack {}),
            Statement::Mangle(mangle) => self.mangle(mangle)?,
            Statement::Set(update) => self.update(update)?,
            Statement::Meter(meter) => self.meter(meter)?,
            Statement::Synproxy(synproxy) => self.push(synproxy_expr(*synproxy)),
            Statement::FlowAdd(flowtable) => self.push(expr::FlowOffload { flowtable: flowtable.clone() }),
            Statement::Object(reference) => self.object(reference)?,
            Statement::ResetOption(option) => {
                self.push(exthdr(*option, None, true));
            }
            Statement::Raw(exprs) => self.out.exprs.extend(exprs.iter().cloned()),
        }
        Ok(())
    }

    fn log(&mut self, log: &Log) {
        self.push(expr::Log {
            group: log.group,
            prefix: log.prefix.as_ref().map(|prefix| prefix.as_str().to_owned()),
            snaplen: log.snaplen,
            queue_threshold: log.queue_threshold,
            level: log.level.map(u32::from),
            flags: (!log.flags.is_empty()).then_some(log.flags),
        });
    }

    fn reject(&mut self, reject: Reject) -> Result<(), LowerError> {
        let statement = Statement::Reject(reject);
        const PORT_UNREACHABLE: u8 = 3;
        const PORT_UNREACHABLE_V6: u8 = 4;
        const PORT_UNREACHABLE_ANY: u8 = 1;
        let (of, code) = match reject {
            // If the rule matches the network protocol, nft replies with a message of that protocol.
            Reject::Default => match self.known_network() {
                Some(Family::IP) => (RejectType::ICMP_UNREACH, PORT_UNREACHABLE),
                Some(Family::IP6) => (RejectType::ICMP_UNREACH, PORT_UNREACHABLE_V6),
                // In a chain that sees both families, an abstract code is needed, which the kernel translates
                // (`nft_reject_icmp_code`).
                _ => (RejectType::ICMPX_UNREACH, PORT_UNREACHABLE_ANY),
            },
            Reject::TcpReset => {
                // Only TCP has a reset: other packets must not match the rule, unless it says so.
                if !self.judge.context().ends_with_tcp() {
                    self.first(|lower| lower.imply_transport(6, &statement))?;
                }
                (RejectType::TCP_RST, 0)
            }
            // The kernel has no `reject` there, and says so.
            Reject::Icmp(code) | Reject::Icmpv6(code) if self.family() == Family::ARP => {
                (RejectType::ICMP_UNREACH, code)
            }
            Reject::Icmp(code) => {
                // The kernel cannot send ICMP in reply to IPv6: nft restricts the rule to the family of the
                // code, unless it matches packets of both.
                self.imply_network_of_code(Family::IP, &statement)?;
                (RejectType::ICMP_UNREACH, code)
            }
            Reject::Icmpv6(code) => {
                self.imply_network_of_code(Family::IP6, &statement)?;
                (RejectType::ICMP_UNREACH, code)
            }
            Reject::Icmpx(code) => (RejectType::ICMPX_UNREACH, code),
        };
        self.push(expr::Reject { of, code: Some(code) });
        Ok(())
    }

    fn imply_network_of_code(&mut self, family: Family, statement: &Statement) -> Result<(), LowerError> {
        match self.judge.context().has_left(family) {
            true => Ok(()),
            false => self.first(|lower| lower.imply_network(family, statement)),
        }
    }

    fn tproxy(&mut self, tproxy: &Tproxy) -> Result<(), LowerError> {
        let family = match (tproxy.family, self.family()) {
            (Some(family), _) => family,
            (None, own @ (Family::IP | Family::IP6)) => own,
            // Without an address, `NFPROTO_UNSPEC` applies to both families.
            (None, _) => Family::UNSPEC,
        };
        // Matches that the port implies would overwrite the register of the address.
        for operand in [&tproxy.address, &tproxy.port].into_iter().flatten() {
            self.imply(operand)?;
        }
        let mut word = 0;
        let mut register =
            |lower: &mut Self, value: &Option<Expression>, part: Part| -> Result<_, LowerError> {
                let Some(value) = value else { return Ok(None) };
                lower.load_for(value, part, word)?;
                let register = Register::word(word);
                // An address fills a 16-byte register.
                word += 4;
                Ok(Some(register))
            };
        let addr = register(self, &tproxy.address, address_part(family))?;
        let port = register(self, &tproxy.port, DataType::INET_SERVICE.into())?;
        self.push(expr::Tproxy { family: family.0.into(), addr, port });
        Ok(())
    }

    fn dup(&mut self, dup: &Dup) -> Result<(), LowerError> {
        // The family netdev has no addresses: there the device is the only operand.
        let (mut addr, mut device) = (None, None);
        // Matches that the device implies would overwrite the register of the address.
        for operand in [&dup.address, &dup.device].into_iter().flatten() {
            self.imply(operand)?;
        }
        if let Some(address) = &dup.address {
            let part = address_part(self.family());
            self.load_for(address, part, 0)?;
            addr = Some(Register::word(0));
        }
        if let Some(to) = &dup.device {
            // The device goes after the address, which may fill a 16-byte register.
            let word = if addr.is_some() { 4 } else { 0 };
            self.load_as(to, &[DataType::IFACE_INDEX.into()], word)?;
            device = Some(Register::word(word));
        }
        self.push(expr::Dup { addr, device });
        Ok(())
    }

    fn forward(&mut self, forward: &Fwd) -> Result<(), LowerError> {
        // nft matches what either operand implies before it loads the first.
        self.imply(&forward.device)?;
        if let Some((_, address)) = &forward.address {
            self.imply(address)?;
        }
        self.load_as(&forward.device, &[DataType::IFACE_INDEX.into()], 0)?;
        let (mut addr, mut family) = (None, None);
        if let Some((of, address)) = &forward.address {
            let part = address_part(*of);
            self.load_for(address, part, 4)?;
            (addr, family) = (Some(Register::word(4)), Some(u32::from(of.0)));
        }
        self.push(expr::Fwd { device: Register::word(0), addr, family });
        Ok(())
    }

    fn queue(&mut self, queue: &Queue) -> Result<(), LowerError> {
        let mut flags = QueueFlags::empty();
        flags.set(QueueFlags::BYPASS, queue.bypass);
        flags.set(QueueFlags::FANOUT, queue.fanout);
        let flags = (!flags.is_empty()).then_some(flags);
        let number = Place::of(DataType::INET_SERVICE.into());
        // Constants are attributes; only a computed queue number goes through a register
        // (`NFTA_QUEUE_SREG_QNUM`).
        if queue.to.is_constant() {
            let bounds = Bounds::of(&queue.to, number)?;
            let read = |bytes: &[u8]| bytes.try_into().map_or(0, u16::from_be_bytes);
            let (low, high) = (read(&bounds.low), read(&bounds.high));
            // The kernel takes the number of queues; nft sends 1 for a single one.
            let total = high.checked_sub(low).and_then(|more| more.checked_add(1));
            self.push(expr::Queue { number: Some(low), total: total.or(Some(1)), flags, sreg: None });
        } else {
            self.load_for(&queue.to, Part::Integer { bytes: 2, order: Order::Host }, 0)?;
            self.push(expr::Queue { number: None, total: None, flags, sreg: Some(Register::word(0)) });
        }
        Ok(())
    }

    fn update(&mut self, update: &SetUpdate) -> Result<(), LowerError> {
        // The implied matches of the value come first: their comparisons use the register of the key.
        self.imply(&update.key)?;
        update.value.iter().try_for_each(|value| self.imply(value))?;
        let known = self.set(&update.set);
        let bytes = self.load_typed(&update.key, &key_types(known))?;
        let mut data = None;
        if let Some(value) = &update.value {
            // The value goes after the key, to the next 16-byte register, or right behind the key where it has
            // no room there.
            let (end, wide) = (bytes.div_ceil(4), bytes.div_ceil(4).next_multiple_of(4));
            let length: usize = data_types(known).iter().map(|part| part.bytes().div_ceil(4)).sum();
            let fits = usize::try_from(wide).is_ok_and(|wide| wide + length <= WORDS as usize);
            let word = if fits { wide } else { end };
            self.load_as(value, &data_types(known), word)?;
            data = Some(Register::word(word));
        }
        let dynset = dynset(&update.set, update.timeout, &update.statements)?;
        let op = match update.op {
            SetOp::Add => DynsetOp::ADD,
            SetOp::Update => DynsetOp::UPDATE,
            SetOp::Delete => DynsetOp::DELETE,
        };
        self.push(expr::Dynset { op, data, ..dynset });
        Ok(())
    }

    fn meter(&mut self, meter: &Meter) -> Result<(), LowerError> {
        self.imply(&meter.key)?;
        self.load(&meter.key, 0)?;
        let number = self.meter_set(meter);
        self.push(expr::Dynset {
            set_id: Some(number),
            // With a timeout each packet renews the element (`update`), as nft does.
            op: if meter.timeout.is_some() { DynsetOp::UPDATE } else { DynsetOp::ADD },
            ..dynset(&meter.name, meter.timeout, &meter.statements)?
        });
        Ok(())
    }

    fn object(&mut self, reference: &ObjectReference) -> Result<(), LowerError> {
        let mut objref = expr::Objref { kind: None, name: None, sreg: None, set: None, set_id: None };
        match &reference.object {
            ObjectName::Named(name) => {
                objref.kind = Some(reference.kind);
                // A named object has a fixed kind; in a map the kind is that of the map.
                objref.name = Some(name.clone());
            }
            ObjectName::Map(key, map) => {
                self.imply(key)?;
                self.load_named(key, map)?;
                objref.sreg = Some(Register::word(0));
                objref.set = Some(map.clone());
            }
            ObjectName::Among(key, pairs) => {
                self.imply(key)?;
                let keys = self.load_key(key, &[], KeyForm::of(pairs.iter().map(|(key, _)| key)), 0)?;
                let (name, number) = self.anonymous_object_map(key, &keys, pairs, reference.kind)?;
                objref.sreg = Some(Register::word(0));
                (objref.set, objref.set_id) = (Some(name), Some(number));
            }
        }
        self.push(objref);
        Ok(())
    }
}

/// Returns the types of a map's values; empty if its definition is not known.
fn data_types(map: Option<&Set>) -> Vec<Part> {
    match map.and_then(|map| map.data.as_ref()) {
        Some(SetData::Value(of)) => of.parts(),
        _ => Vec::new(),
    }
}

/// Returns the expression that adds an element with the key in the first register.
fn dynset(
    set: &Name,
    timeout: Option<Duration>,
    statements: &[Statement],
) -> Result<expr::Dynset, LowerError> {
    let mut exprs = statements.iter().map(element_expr).collect::<Result<Vec<_>, _>>()?;
    // A single expression has an attribute of its own; the one for several exists since Linux 5.11.
    let single = if exprs.len() == 1 { exprs.pop().map(Box::new) } else { None };
    Ok(expr::Dynset {
        set: set.clone(),
        set_id: None,
        op: DynsetOp::ADD,
        key: Register::word(0),
        data: None,
        timeout: timeout.map(millis),
        expr: single,
        flags: (!exprs.is_empty()).then_some(DynsetFlags::EXPR),
        exprs,
    })
}

/// Lowers a statement that an element carries.
pub(crate) fn element_expr(statement: &Statement) -> Result<Expr, LowerError> {
    stateful(statement).ok_or_else(|| unsupported("an element cannot carry this statement", statement))
}

fn unsupported(what: &'static str, statement: &Statement) -> LowerError {
    LowerError::Unsupported { what, expression: statement.to_string() }
}
