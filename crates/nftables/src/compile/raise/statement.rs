//! Raises statements from the kernel's expressions.

use std::time::Duration;

use crate::check::context::Context;
use crate::compile::raise::constant::{in_bits, range_of_one};
use crate::compile::raise::{Content, Raise, port_of};
use crate::datatype::{DataType, Order};
use crate::expr::{self, DynsetOp, Expr, ExthdrOp, NatFlags, NatType, QueueFlags, Register, RejectType};
use crate::family::Family;
use crate::key::{Part, integer};
use crate::name::Comment;
use crate::object::{Element, SetData};
use crate::tree::exthdr::Exthdr;
use crate::tree::stateful::{state, synproxy};
use crate::tree::statement::*;
use crate::tree::{Ct, Expression, Payload, RawPayload, Value};

impl Raise<'_> {
    pub(super) fn statement(&mut self, expr: &Expr) -> Option<()> {
        match expr {
            Expr::Counter(_) | Expr::Quota(_) | Expr::Limit(_) | Expr::Last(_) | Expr::Connlimit(_) => {
                self.emit(state(expr)?)
            }
            Expr::Meta(m) => {
                let value = self.value(m.sreg?, m.key.part())?;
                self.emit(Mangle { key: m.key.into(), value })
            }
            Expr::Ct(c) => {
                let value = self.value(c.sreg?, c.key.part())?;
                self.emit(Mangle {
                    key: Ct { key: c.key, direction: c.direction, family: None }.into(),
                    value,
                })
            }
            Expr::Payload(p) => self.write(p),
            Expr::Exthdr(e) => self.option(e),
            Expr::Log(l) => self.log(l),
            Expr::Reject(r) => self.reject(r),
            Expr::Nat(n) => self.nat(n),
            Expr::Masq(m) => {
                let port = self.ports(m.proto_min, m.proto_max)?;
                self.emit(Statement::masquerade(PortNat { port, flags: shown(m.flags) }))
            }
            Expr::Redir(r) => {
                let port = self.ports(r.proto_min, r.proto_max)?;
                self.emit(Statement::redirect(PortNat { port, flags: shown(r.flags) }))
            }
            Expr::Tproxy(t) => self.tproxy(t),
            // In family netdev the device is the only operand, elsewhere the address.
            Expr::Dup(d) => {
                let address = self.optional(d.addr, address(self.family))?;
                let device = self.optional(d.device, DataType::IFACE_INDEX.into())?;
                self.emit(Dup { address, device })
            }
            Expr::Fwd(f) => {
                let device = self.value(f.device, DataType::IFACE_INDEX.into())?;
                let address = match (f.addr, f.family) {
                    (Some(register), Some(family)) => {
                        let family = Family(u8::try_from(family).ok()?);
                        Some((family, self.value(register, address(family))?))
                    }
                    _ => None,
                };
                self.emit(Fwd { device, address })
            }
            Expr::Queue(q) => self.queue(q),
            Expr::Notrack(_) => self.emit(Statement::Notrack),
            Expr::Dynset(d) => self.dynset(d),
            Expr::Synproxy(s) => self.emit(synproxy(s)),
            Expr::FlowOffload(f) => self.emit(Statement::FlowAdd(f.flowtable.clone())),
            Expr::Objref(o) => self.objref(o),
            // A module uses no register: the expressions beside it keep their meaning.
            Expr::XtMatch(_) | Expr::XtTarget(_) => self.emit(Statement::Raw(vec![expr.clone()])),
            _ => None,
        }
    }

    /// Raises a write to a header field: of the whole field, or of some of its bits, written back with their
    /// neighbours.
    fn write(&mut self, p: &expr::Payload) -> Option<()> {
        let (offset, bits) = (in_bits(p.offset)?, in_bits(p.len)?);
        let named = |offset, bits| self.field(p.base, offset, bits);
        if let Some(field) = named(offset, bits) {
            let value = self.value(p.sreg?, field.part())?;
            // The write implies the header just as a match of the field does.
            self.drop_implied_by_field(field, false);
            return self.emit(Mangle { key: field.into(), value });
        }
        let named_bits = self.write_bits(p, offset, bits);
        // Without a field name nft lists the bytes by offset.
        named_bits.or_else(|| self.write_raw(p, offset, bits))
    }

    /// Raises a write to bytes without a name.
    fn write_raw(&mut self, p: &expr::Payload, offset: u16, bits: u16) -> Option<()> {
        let part =
            Part::Integer { bytes: u8::try_from(p.len).ok().filter(|n| *n <= 16)?, order: Order::Network };
        // `@BASE,OFFSET,BITS set` has no syntax for checksums: nft lists a write so whatever checksums it mends.
        let value = self.value(p.sreg?, part)?;
        let raw = RawPayload { base: p.base, offset, bits }.into();
        let key = port_of(&raw).map_or(raw, Expression::from);
        self.emit(Mangle { key, value })
    }

    /// Raises bytes that are written back to where they were loaded from, with some of their bits changed.
    fn write_bits(&mut self, p: &expr::Payload, offset: u16, bits: u16) -> Option<()> {
        let Content::Loaded { mask: Some((mask, xor)), place, bytes, .. } = self.content(p.sreg?)? else {
            return None;
        };
        // Only bytes that were loaded from the same place contain the neighbours of the field.
        let in_place = (*place, *bytes) == (Some((p.base, p.offset)), p.len);
        let length = usize::try_from(p.len).ok().filter(|length| (1..=8).contains(length))?;
        if !in_place || (mask.len(), xor.len()) != (length, length) {
            return None;
        }
        let (mask, xor) = (integer(Order::Network, mask), integer(Order::Network, xor));
        let all = u64::MAX >> (64 - bits);
        // Returns the number of bits below a field, and a mask of the field's length.
        let place_of = |field: Payload| {
            let lead = self.offset_of(field).checked_sub(offset)?;
            let below = bits.checked_sub(lead)?.checked_sub(field.bits())?;
            Some((below, u64::MAX >> (64 - field.bits())))
        };
        let cleared = |field: &Payload| {
            place_of(*field).is_some_and(|(below, ones)| {
                let own = ones << below;
                mask == all & !own && xor & !own == 0
            })
        };
        let changed = |field: &Payload| {
            let touched = all & !mask | xor;
            place_of(*field).is_some_and(|(below, ones)| touched & !(ones << below) == 0 && touched != 0)
        };
        let fields = || self.known_fields(p.base).filter(|field| field.bits() <= 64);
        // A field is set if the mask clears all of its bits and no others; otherwise some of them are
        // changed.
        let set = fields().find(cleared);
        let field = set.or_else(|| fields().find(changed))?;
        let (below, ones) = place_of(field)?;
        let (mask, xor) = (mask >> below & ones, xor >> below & ones);
        let value = match set {
            Some(_) => Value::Number(xor).into(),
            None => changed_by(field.into(), mask, xor, ones),
        };
        self.drop_implied_by_field(field, false);
        self.emit(Mangle { key: field.into(), value })
    }

    fn option(&mut self, e: &expr::Exthdr) -> Option<()> {
        let op = e.op?;
        // Without a source register the kernel removes the option.
        if e.sreg.is_none() {
            let option = Exthdr::at(op, e.kind, 0, 8, true).filter(|_| op == ExthdrOp::TCPOPT)?;
            return self.emit(Statement::ResetOption(option));
        }
        let (offset, bits) = (in_bits(e.offset?)?, in_bits(e.len?)?);
        let option = Exthdr::at(op, e.kind, offset, bits, false)?;
        let value = self.value(e.sreg?, option.part())?;
        self.emit(Mangle { key: option.into(), value })
    }

    fn log(&mut self, l: &expr::Log) -> Option<()> {
        const WARN: u32 = 4;
        // The kernel always lists a level; nft does not list the default one.
        let level = l.level.filter(|level| *level != WARN || l.group.is_some());
        self.emit(Log {
            // Another program may send a prefix that no text of nft has.
            prefix: match l.prefix.as_deref().map(Comment::from_kernel) {
                Some(prefix) if !prefix.is_printable() => return None,
                prefix => prefix,
            },
            level: level.and_then(|level| u8::try_from(level).ok()),
            flags: l.flags.unwrap_or_default(),
            group: l.group,
            // Zero is the default of both.
            snaplen: l.snaplen.filter(|snaplen| *snaplen != 0),
            queue_threshold: l.queue_threshold.filter(|threshold| *threshold != 0),
        })
    }

    fn reject(&mut self, r: &expr::Reject) -> Option<()> {
        let code = r.code.unwrap_or(0);
        let reject = match (r.of, self.family) {
            // nft lists the match of TCP in tables of several families.
            (RejectType::TCP_RST, _) => {
                if matches!(self.family, Family::IP | Family::IP6) {
                    self.drop_transport_match();
                }
                Reject::TcpReset
            }
            // nft lists `reject` alone for the default code of the family.
            (RejectType::ICMPX_UNREACH, _) if code == 1 => Reject::Default,
            (RejectType::ICMPX_UNREACH, _) => Reject::Icmpx(code),
            (_, Family::IP) if code == 3 => Reject::Default,
            (_, Family::IP6) if code == 4 => Reject::Default,
            (_, Family::IP) => Reject::Icmp(code),
            (_, Family::IP6) => Reject::Icmpv6(code),
            _ => {
                // The family of the ICMP code implies the match of the network protocol, which nft drops.
                let known = [(Family::IP, Reject::Icmp(code)), (Family::IP6, Reject::Icmpv6(code))];
                if let Some((_, reject)) = known.iter().find(|(family, _)| self.network_is(*family)) {
                    self.drop_network_match();
                    *reject
                } else if self.is_of_both_families() {
                    // Of nft 1.0.6, which takes the family that was written last for that of all packets.
                    if code == 4 { Reject::Icmpv6(code) } else { Reject::Icmp(code) }
                } else {
                    // Read again, either code would imply the match of one family.
                    return None;
                }
            }
        };
        self.emit(reject)
    }

    /// Returns whether a match has left packets of IPv4 and of IPv6, as the judge of a rule sees it.
    fn is_of_both_families(&self) -> bool {
        let mut context = Context::of(self.family);
        self.out.iter().flatten().for_each(|statement| context.note_statement(statement));
        context.has_left(Family::IP) && context.has_left(Family::IP6)
    }

    fn nat(&mut self, n: &expr::Nat) -> Option<()> {
        let family = Family(u8::try_from(n.family).ok()?);
        let part = address(family);
        let words = u32::try_from(part.bytes() / 4).ok()?;
        // A concatenated map fills consecutive registers: address, then port.
        let behind = |register: Register| Some(Register::word(register.first_word()? + words));
        let wide = n.addr_min.and_then(|min| Some((self.map_in(min)?, behind(min)?)));
        let to = match wide {
            Some((map, next)) if n.proto_min == Some(next) => {
                self.drop_implied_by(&map);
                // The kernel lists the lower register as the upper one too if there is no range.
                match n.addr_max.filter(|max| Some(*max) != n.addr_min) {
                    Some(_) => NatTarget::ConcatInterval(map),
                    None => NatTarget::Concat(map),
                }
            }
            Some((map, next)) if n.addr_max == Some(next) => {
                self.drop_implied_by(&map);
                NatTarget::Interval(map)
            }
            _ => {
                if n.proto_min.is_some() {
                    self.keep_transport_match();
                }
                let (min, max) = (n.addr_min, n.addr_max.filter(|max| Some(*max) != n.addr_min));
                let address = self.span(min, max, part)?;
                match (address, self.ports(n.proto_min, n.proto_max)?) {
                    (Some(address), None) => NatTarget::Address(address),
                    (None, Some(port)) => NatTarget::Port(port),
                    (Some(address), Some(port)) => NatTarget::AddressPort(address, port),
                    (None, None) => return None,
                }
            }
        };
        // The table determines the family, except for concatenations, for which nft requires it.
        let own = matches!(self.family, Family::IP | Family::IP6)
            && matches!(to, NatTarget::Address(_) | NatTarget::Port(_) | NatTarget::AddressPort(..));
        // For a port alone the kernel stores the family of the table, `inet`, which nft does not list.
        let family = Some(family).filter(|family| !own && *family != Family::INET);
        let nat = Nat { family, to, flags: shown(n.flags) };
        self.emit(if n.of == NatType::SNAT { Statement::snat(nat) } else { Statement::dnat(nat) })
    }

    fn ports(&mut self, min: Option<Register>, max: Option<Register>) -> Option<Option<Expression>> {
        // nft lists all matches that the port's expression implies; those that the address implies are dropped.
        if min.is_some() {
            self.keep_all_matches();
        }
        // The kernel lists the lower register as the upper one too if there is no range.
        self.span(min, max.filter(|max| Some(*max) != min), DataType::INET_SERVICE.into())
    }

    /// Returns a single value, or the range between two registers.
    fn span(
        &mut self,
        min: Option<Register>,
        max: Option<Register>,
        part: Part,
    ) -> Option<Option<Expression>> {
        let low = self.optional(min, part)?;
        match (low, max) {
            (Some(Expression::Value(low)), Some(max)) => {
                let Expression::Value(high) = self.value(max, part)? else { return None };
                // nft lists an address range of a single address as a prefix.
                if low == high {
                    return Some(Some(range_of_one(low)));
                }
                Some(Some(Expression::Range(Box::new((low, high)))))
            }
            (low, None) => Some(low),
            (_, Some(_)) => None,
        }
    }

    fn optional(&mut self, register: Option<Register>, part: Part) -> Option<Option<Expression>> {
        match register {
            None => Some(None),
            Some(register) => self.value(register, part).map(Some),
        }
    }

    fn tproxy(&mut self, t: &expr::Tproxy) -> Option<()> {
        let family = Family(u8::try_from(t.family).ok()?);
        self.keep_transport_match();
        let of = self.optional(t.addr, address(family))?;
        self.keep_all_matches();
        let port = self.optional(t.port, DataType::INET_SERVICE.into())?;
        // A family of 0 (`NFPROTO_UNSPEC`) stands for both.
        let own = family == self.family || family == Family::UNSPEC;
        self.emit(Tproxy { family: (!own).then_some(family), address: of, port })
    }

    fn queue(&mut self, q: &expr::Queue) -> Option<()> {
        let flags = q.flags.unwrap_or_default();
        let to = match (q.sreg, q.number) {
            (Some(register), _) => {
                let expression = self.whole(self.content(register)?)?;
                self.drop_implied_by(&expression);
                expression
            }
            (None, Some(first)) => match q.total.unwrap_or(1) {
                // The kernel lists one queue as a total of 1.
                0 | 1 => Expression::from(first),
                total => Expression::range(first, first.checked_add(total - 1)?),
            },
            (None, None) => return None,
        };
        self.emit(Queue {
            to,
            bypass: flags.contains(QueueFlags::BYPASS),
            fanout: flags.contains(QueueFlags::FANOUT),
        })
    }

    fn dynset(&mut self, d: &expr::Dynset) -> Option<()> {
        let sets = self.sets;
        let (set, _) = sets.get(&d.set)?;
        let parts = match &set.data {
            Some(SetData::Value(of)) => of.parts(),
            _ => Vec::new(),
        };
        let key = self.key_of(d.key, set)?;
        self.drop_implied_by(&key);
        let value = d.data.map(|register| self.values(register, &parts));
        let value = match value {
            Some(None) => return None,
            given => given.flatten(),
        };
        let statements =
            d.expr.iter().map(|expr| &**expr).chain(&d.exprs).map(state).collect::<Option<_>>()?;
        // The kernel lists 0 if the set's own timeout applies.
        let timeout = d.timeout.filter(|timeout| *timeout != 0).map(Duration::from_millis);
        // nft creates the set of a meter as an anonymous one.
        if set.is_anonymous() && set.data.is_none() {
            let size = set.size.unwrap_or(0);
            return self.emit(Meter { name: d.set.clone(), size, key, timeout, statements });
        }
        self.emit(SetUpdate {
            op: match d.op {
                DynsetOp::ADD => SetOp::Add,
                DynsetOp::UPDATE => SetOp::Update,
                DynsetOp::DELETE => SetOp::Delete,
                _ => return None,
            },
            set: d.set.clone(),
            key,
            value,
            timeout,
            statements,
        })
    }

    fn objref(&mut self, o: &expr::Objref) -> Option<()> {
        let (kind, object) = match (o.kind, &o.name, &o.set) {
            (Some(kind), Some(name), _) => (kind, ObjectName::Named(name.clone())),
            (_, _, Some(map)) => {
                let sets = self.sets;
                let (set, elements) = sets.get(map)?;
                // A map in the rule does not tell the kind of the objects; the set does.
                let Some(SetData::Object(kind)) = set.data else { return None };
                let looked_up = self.looked_up(o.sreg?, set)?;
                self.drop_implied_by(&looked_up.key);
                let object = |element: &Element| element.object_name().cloned();
                let name = match set.is_anonymous() {
                    true => {
                        let pairs = elements.iter().map(|e| Some((looked_up.member(e)?, object(e)?)));
                        let pairs = pairs.collect::<Option<_>>()?;
                        ObjectName::Among(Box::new(looked_up.key), pairs)
                    }
                    false => ObjectName::Map(Box::new(looked_up.key), map.clone()),
                };
                (kind, name)
            }
            _ => return None,
        };
        self.emit(ObjectReference { kind, object })
    }
}

/// Returns `(x & mask) ^ xor` with the operator that a user would write.
fn changed_by(x: Expression, mask: u64, xor: u64, ones: u64) -> Expression {
    match (mask == ones, xor == 0) {
        (true, _) => x.xor(xor),
        (false, true) => x.and(mask),
        // Bits that the mask clears and the xor toggles are set.
        (false, false) if mask & xor == 0 && mask | xor == ones => x.or(xor),
        (false, false) if mask & xor == 0 => x.and(mask | xor).or(xor),
        (false, false) => x.and(mask).xor(xor),
    }
}

fn address(family: Family) -> Part {
    if family == Family::IP6 { DataType::IPV6_ADDR.into() } else { DataType::IPV4_ADDR.into() }
}

/// Returns the flags that nft lists: the kernel adds others that follow from the registers.
fn shown(flags: Option<NatFlags>) -> NatFlags {
    flags.unwrap_or_default()
        & (NatFlags::RANDOM | NatFlags::PERSISTENT | NatFlags::FULLY_RANDOM | NatFlags::NETMAP)
}
