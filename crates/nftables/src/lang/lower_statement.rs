//! Statements as the kernel's expressions.

use crate::datatype::DataType;
use crate::expr::{
    self, ChecksumFlags, ChecksumType, Data, DynsetFlags, DynsetOp, Expr, ExthdrOp, Invert, LimitType,
};
use crate::expr::{NatFlags, NatType, QueueFlags, Register, RejectType, SynproxyFlags};
use crate::family::Family;
use crate::key::Part;
use crate::lang::constant::{Bounds, Place};
use crate::lang::lower::{Lower, LowerError};
use crate::lang::statement::*;
use crate::lang::{Expression, Payload};

impl Lower<'_> {
    pub(crate) fn statement(&mut self, statement: &Statement) -> Result<(), LowerError> {
        match statement {
            Statement::Match(m) => self.matching(m)?,
            Statement::Verdict(verdict) => {
                self.push(expr::Immediate { dreg: Register::VERDICT, data: Data::Verdict(verdict.clone()) });
            }
            Statement::Vmap(vmap) => self.vmap(vmap)?,
            Statement::Counter(_)
            | Statement::Quota(_)
            | Statement::Limit(_)
            | Statement::Last
            | Statement::Connlimit(_) => {
                let state = stateful(statement).ok_or_else(|| unsupported("no state", statement))?;
                self.push(state);
            }
            Statement::Log(log) => self.log(log),
            Statement::Reject(reject) => self.reject(*reject),
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

    fn reject(&mut self, reject: Reject) {
        const PORT_UNREACHABLE: u8 = 3;
        const PORT_UNREACHABLE_V6: u8 = 4;
        const PORT_UNREACHABLE_ANY: u8 = 1;
        let (of, code) = match reject {
            Reject::Default => match self.family() {
                Family::IP => (RejectType::ICMP_UNREACH, PORT_UNREACHABLE),
                Family::IP6 => (RejectType::ICMP_UNREACH, PORT_UNREACHABLE_V6),
                _ => (RejectType::ICMPX_UNREACH, PORT_UNREACHABLE_ANY),
            },
            Reject::TcpReset => {
                self.imply_transport(6);
                (RejectType::TCP_RST, 0)
            }
            Reject::Icmp(code) => {
                self.imply_network(Family::IP);
                (RejectType::ICMP_UNREACH, code)
            }
            Reject::Icmpv6(code) => {
                self.imply_network(Family::IP6);
                (RejectType::ICMP_UNREACH, code)
            }
            Reject::Icmpx(code) => (RejectType::ICMPX_UNREACH, code),
        };
        self.push(expr::Reject { of, code: Some(code) });
    }

    fn nat(&mut self, of: NatType, nat: &Nat) -> Result<(), LowerError> {
        let family = match (nat.family, self.family()) {
            (Some(family), _) => family,
            (None, own @ (Family::IP | Family::IP6)) => own,
            (None, _) => family_of(&nat.to).ok_or_else(|| LowerError::Unsupported {
                what: "in this family, NAT has to say ip or ip6",
                expression: format!("{:?}", nat.to),
            })?,
        };
        let address = address_part(family);
        let mut out = expr::Nat {
            of,
            family: family.0.into(),
            addr_min: None,
            addr_max: None,
            proto_min: None,
            proto_max: None,
            flags: None,
        };
        let mut flags = nat.flags;
        match &nat.to {
            NatTarget::Address(to) => {
                flags |= self.addresses(to, address, &mut out)?;
            }
            NatTarget::Port(port) => {
                (out.proto_min, out.proto_max) = self.ports(Some(port), 0)?;
                flags |= NatFlags::PROTO_SPECIFIED;
            }
            NatTarget::AddressPort(to, port) => {
                flags |= self.addresses(to, address, &mut out)?;
                let word = out.addr_max.or(out.addr_min).and_then(Register::first_word).map_or(0, |w| w + 4);
                (out.proto_min, out.proto_max) = self.ports(Some(port), word)?;
                flags |= NatFlags::PROTO_SPECIFIED;
            }
            NatTarget::Concat(to) => {
                self.load_as(to, &[address, DataType::INET_SERVICE.into()], 0)?;
                let words = u32::try_from(address.bytes() / 4).unwrap_or(0);
                out.addr_min = Some(Register::word(0));
                out.proto_min = Some(Register::word(words));
            }
            NatTarget::Interval(to) => {
                self.load_as(to, &[address], 0)?;
                let words = u32::try_from(address.bytes() / 4).unwrap_or(0);
                out.addr_min = Some(Register::word(0));
                out.addr_max = Some(Register::word(words));
            }
        }
        out.flags = (!flags.is_empty()).then_some(flags);
        self.push(out);
        Ok(())
    }

    /// Loads one address, or the first and last of several; a prefix keeps the rest of the packet's address.
    fn addresses(
        &mut self,
        to: &Expression,
        part: Part,
        out: &mut expr::Nat,
    ) -> Result<NatFlags, LowerError> {
        let flags = match to {
            Expression::Prefix(_) => NatFlags::NETMAP,
            _ => NatFlags::empty(),
        };
        (out.addr_min, out.addr_max) = self.bounds(to, part, 0)?;
        Ok(flags)
    }

    fn ports(
        &mut self,
        port: Option<&Expression>,
        word: u32,
    ) -> Result<(Option<Register>, Option<Register>), LowerError> {
        port.map_or(Ok((None, None)), |port| self.bounds(port, DataType::INET_SERVICE.into(), word))
    }

    /// Loads a value, or the two bounds of a range, each into registers of its own.
    fn bounds(
        &mut self,
        of: &Expression,
        part: Part,
        word: u32,
    ) -> Result<(Option<Register>, Option<Register>), LowerError> {
        if !matches!(of, Expression::Range(_) | Expression::Prefix(_)) {
            self.load_as(of, &[part], word)?;
            return Ok((Some(Register::word(word)), None));
        }
        let bounds = Bounds::of(of, Place::of(part))?;
        self.immediate(bounds.low, word);
        self.immediate(bounds.high, word + 4);
        Ok((Some(Register::word(word)), Some(Register::word(word + 4))))
    }

    fn tproxy(&mut self, tproxy: &Tproxy) -> Result<(), LowerError> {
        let family = match (tproxy.family, self.family()) {
            (Some(family), _) => family,
            (None, own @ (Family::IP | Family::IP6)) => own,
            (None, _) => Family::UNSPEC,
        };
        let mut word = 0;
        let mut register = |lower: &mut Self, value: &Option<Expression>, part| -> Result<_, LowerError> {
            let Some(value) = value else { return Ok(None) };
            lower.load_as(value, &[part], word)?;
            let register = Register::word(word);
            word += 4;
            Ok(Some(register))
        };
        let addr = register(self, &tproxy.address, address_part(family))?;
        let port = register(self, &tproxy.port, DataType::INET_SERVICE.into())?;
        self.push(expr::Tproxy { family: family.0.into(), addr, port });
        Ok(())
    }

    fn dup(&mut self, dup: &Dup) -> Result<(), LowerError> {
        let (mut addr, mut device) = (None, None);
        if let Some(address) = &dup.address {
            self.load_as(address, &[address_part(self.family())], 0)?;
            addr = Some(Register::word(0));
        }
        if let Some(to) = &dup.device {
            let word = if addr.is_some() { 4 } else { 0 };
            self.load_as(to, &[DataType::IFACE_INDEX.into()], word)?;
            device = Some(Register::word(word));
        }
        self.push(expr::Dup { addr, device });
        Ok(())
    }

    fn forward(&mut self, forward: &Fwd) -> Result<(), LowerError> {
        self.load_as(&forward.device, &[DataType::IFACE_INDEX.into()], 0)?;
        let (mut addr, mut family) = (None, None);
        if let Some((of, address)) = &forward.address {
            self.load_as(address, &[address_part(*of)], 4)?;
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
        let number = Place { part: DataType::INET_SERVICE.into(), bytes: 2, shift: 0 };
        if queue.to.is_constant() {
            let bounds = Bounds::of(&queue.to, number)?;
            let read = |bytes: &[u8]| bytes.try_into().map_or(0, u16::from_be_bytes);
            let (low, high) = (read(&bounds.low), read(&bounds.high));
            // The kernel counts the queues; nft sends 1 for a single one by leaving it out.
            let total = high.checked_sub(low).and_then(|more| more.checked_add(1));
            self.push(expr::Queue { number: Some(low), total: total.or(Some(1)), flags, sreg: None });
        } else {
            self.load(&queue.to, 0)?;
            self.push(expr::Queue { number: None, total: None, flags, sreg: Some(Register::word(0)) });
        }
        Ok(())
    }

    fn mangle(&mut self, mangle: &Mangle) -> Result<(), LowerError> {
        let sreg = Some(Register::word(0));
        match &mangle.key {
            Expression::Meta(key) => {
                self.load_as(&mangle.value, &[key.part()], 0)?;
                self.push(expr::Meta { dreg: None, key: *key, sreg });
            }
            Expression::Ct(ct) => {
                self.load_as(&mangle.value, &[ct.key.part()], 0)?;
                self.push(expr::Ct { dreg: None, key: ct.key, direction: ct.direction, sreg });
            }
            Expression::Exthdr(option) if option.op() == ExthdrOp::TCPOPT => {
                self.load_as(&mangle.value, &[option.part()], 0)?;
                self.push(exthdr(*option, sreg, false));
            }
            Expression::Payload(payload) => self.mangle_payload(*payload, &mangle.value)?,
            other => {
                return Err(LowerError::Unsupported {
                    what: "this cannot be set",
                    expression: other.to_string(),
                });
            }
        }
        Ok(())
    }

    /// The kernel mends checksums of whole pairs of bytes only: a smaller field is read with its neighbours, changed, and
    /// written with them.
    fn mangle_payload(&mut self, payload: Payload, value: &Expression) -> Result<(), LowerError> {
        self.imply(&payload.into())?;
        let (csum_type, csum_offset, csum_flags) = checksum(payload);
        let first = payload.offset() / 8;
        let last = (payload.offset() + payload.bits()).div_ceil(8);
        let (mut start, mut end) = (first, last);
        if csum_type.is_some() {
            (start, end) = (first - first % 2, last.next_multiple_of(2));
        }
        let whole = payload.offset() == start * 8 && payload.bits() == (end - start) * 8;
        let (offset, len) = (u32::from(start), u32::from(end - start));
        if whole {
            self.load_as(value, &[payload.part()], 0)?;
        } else {
            let shift = end * 8 - payload.offset() - payload.bits();
            let wide = Part::Integer {
                bytes: u8::try_from(len).unwrap_or(16),
                order: crate::datatype::Order::Network,
            };
            let bounds = Bounds::of(value, Place { part: wide, bytes: usize::from(end - start), shift })?;
            self.push(expr::Payload {
                dreg: Some(Register::word(0)),
                base: payload.base(),
                offset,
                len,
                sreg: None,
                csum_type: None,
                csum_offset: None,
                csum_flags: None,
            });
            let ones = u64::MAX >> (64 - u32::from(payload.bits()));
            let field = crate::key::integer_bytes(
                crate::datatype::Order::Network,
                usize::from(end - start),
                ones << shift,
            );
            self.bitwise(0, field.into_iter().map(|byte| !byte).collect(), bounds.low);
        }
        self.push(expr::Payload {
            dreg: None,
            base: payload.base(),
            offset,
            len,
            sreg: Some(Register::word(0)),
            csum_type: Some(csum_type.unwrap_or(ChecksumType::NONE)),
            csum_offset: Some(csum_offset),
            csum_flags: Some(csum_flags),
        });
        Ok(())
    }

    fn update(&mut self, update: &SetUpdate) -> Result<(), LowerError> {
        let bytes = self.load(&update.key, 0)?;
        let mut data = None;
        if let Some(value) = &update.value {
            let word = bytes.div_ceil(4).next_multiple_of(4);
            self.load(value, word)?;
            data = Some(Register::word(word));
        }
        let mut exprs = update
            .statements
            .iter()
            .map(|s| stateful(s).ok_or_else(|| unsupported("an element cannot carry this", s)))
            .collect::<Result<Vec<_>, _>>()?;
        let single = if exprs.len() == 1 { exprs.pop().map(Box::new) } else { None };
        self.push(expr::Dynset {
            set: update.set.clone(),
            set_id: None,
            op: match update.op {
                SetOp::Add => DynsetOp::ADD,
                SetOp::Update => DynsetOp::UPDATE,
                SetOp::Delete => DynsetOp::DELETE,
            },
            key: Register::word(0),
            data,
            timeout: update.timeout.map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
            expr: single,
            flags: (!exprs.is_empty()).then_some(DynsetFlags::EXPR),
            exprs,
        });
        Ok(())
    }

    fn object(&mut self, reference: &ObjectReference) -> Result<(), LowerError> {
        let mut objref = expr::Objref { kind: None, name: None, sreg: None, set: None, set_id: None };
        match &reference.object {
            ObjectName::Named(name) => {
                objref.kind = Some(reference.kind);
                objref.name = Some(name.clone());
            }
            ObjectName::Map(key, map) => {
                self.load(key, 0)?;
                objref.sreg = Some(Register::word(0));
                objref.set = Some(map.clone());
            }
        }
        self.push(objref);
        Ok(())
    }
}

/// What a rule or an element can carry state of.
pub(crate) fn stateful(statement: &Statement) -> Option<Expr> {
    let over = |over| Some(if over { Invert::OVER } else { Invert::empty() });
    Some(match statement {
        Statement::Counter(c) => expr::Counter { bytes: Some(c.bytes), packets: Some(c.packets) }.into(),
        Statement::Quota(q) => {
            expr::Quota { bytes: q.bytes, flags: over(q.over), consumed: Some(q.used) }.into()
        }
        Statement::Limit(l) => expr::Limit {
            rate: l.rate,
            unit: l.per.seconds(),
            burst: Some(l.burst.unwrap_or(if l.bytes { 0 } else { DEFAULT_BURST })),
            of: Some(if l.bytes { LimitType::BYTES } else { LimitType::PACKETS }),
            flags: over(l.over),
        }
        .into(),
        Statement::Last => expr::Last { set: None, msecs: None }.into(),
        Statement::Connlimit(c) => expr::Connlimit { count: c.count, flags: over(c.over) }.into(),
        _ => return None,
    })
}

pub(crate) fn synproxy_expr(synproxy: Synproxy) -> expr::Synproxy {
    let mut flags = SynproxyFlags::empty();
    flags.set(SynproxyFlags::MSS, synproxy.mss.is_some());
    flags.set(SynproxyFlags::WSCALE, synproxy.wscale.is_some());
    flags.set(SynproxyFlags::TIMESTAMP, synproxy.timestamp);
    flags.set(SynproxyFlags::SACK_PERM, synproxy.sack_perm);
    expr::Synproxy { mss: synproxy.mss, wscale: synproxy.wscale, flags: Some(flags) }
}

fn exthdr(option: crate::lang::exthdr::Exthdr, sreg: Option<Register>, reset: bool) -> expr::Exthdr {
    expr::Exthdr {
        dreg: None,
        kind: option.kind(),
        offset: (!reset).then(|| u32::from(option.offset() / 8)),
        len: (!reset).then(|| u32::from(option.bits().div_ceil(8))),
        flags: None,
        op: Some(option.op()),
        sreg,
    }
}

/// What has to be mended when a field of a header changes: the header's own checksum, and the one behind it.
fn checksum(payload: Payload) -> (Option<ChecksumType>, u32, ChecksumFlags) {
    let none = ChecksumFlags::empty();
    match payload.protocol() {
        "ip" => {
            let address = matches!(payload, Payload::IP_SADDR | Payload::IP_DADDR);
            let flags = if address { ChecksumFlags::PSEUDO_HEADER } else { none };
            (Some(ChecksumType::INET), 10, flags)
        }
        "ip6" if matches!(payload, Payload::IP6_SADDR | Payload::IP6_DADDR) => {
            (None, 0, ChecksumFlags::PSEUDO_HEADER)
        }
        "tcp" => (Some(ChecksumType::INET), 16, none),
        "udp" | "udplite" => (Some(ChecksumType::INET), 6, none),
        "icmp" | "icmpv6" | "igmp" => (Some(ChecksumType::INET), 2, none),
        "sctp" => (Some(ChecksumType::SCTP), 8, none),
        _ => (None, 0, none),
    }
}

fn address_part(family: Family) -> Part {
    if family == Family::IP6 { DataType::IPV6_ADDR.into() } else { DataType::IPV4_ADDR.into() }
}

/// The family of a constant address.
fn family_of(to: &NatTarget) -> Option<Family> {
    let (NatTarget::Address(address) | NatTarget::AddressPort(address, _)) = to else { return None };
    let part = match address {
        Expression::Range(range) => Expression::Value(range.0.clone()).part(),
        Expression::Prefix(prefix) => Expression::Value(prefix.value.clone()).part(),
        other => other.part(),
    };
    match part?.data_type() {
        DataType::IPV4_ADDR => Some(Family::IP),
        DataType::IPV6_ADDR => Some(Family::IP6),
        _ => None,
    }
}

fn port_flags(nat: &PortNat) -> Option<NatFlags> {
    let mut flags = nat.flags;
    flags.set(NatFlags::PROTO_SPECIFIED, nat.port.is_some());
    (!flags.is_empty()).then_some(flags)
}

fn unsupported(what: &'static str, statement: &Statement) -> LowerError {
    LowerError::Unsupported { what, expression: statement.to_string() }
}

/// Packets that may come at once where a limit does not say.
const DEFAULT_BURST: u32 = 5;
