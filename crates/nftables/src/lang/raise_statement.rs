//! Statements of the typed language from the kernel's expressions.

use crate::datatype::DataType;
use crate::expr::{self, DynsetOp, Expr, Invert, LimitType, NatFlags, NatType, RejectType, SynproxyFlags};
use crate::expr::{ExthdrOp, PayloadBase, QueueFlags, Register};
use crate::family::Family;
use crate::key::Part;
use crate::lang::exthdr::Exthdr;
use crate::lang::raise::{Held, Raise, in_bits, ones};
use crate::lang::statement::*;
use crate::lang::{Ct, Expression, Payload, Value};
use crate::name::Comment;
use crate::object::SetData;

impl Raise<'_> {
    pub(crate) fn statement(&mut self, expr: &Expr) -> Option<()> {
        match expr {
            Expr::Counter(_) | Expr::Quota(_) | Expr::Limit(_) | Expr::Last(_) | Expr::Connlimit(_) => {
                self.say(state(expr)?)
            }
            Expr::Meta(m) => {
                let value = self.value(m.sreg?, m.key.part())?;
                self.say(Mangle { key: m.key.into(), value })
            }
            Expr::Ct(c) => {
                let value = self.value(c.sreg?, c.key.part())?;
                self.say(Mangle { key: Ct { key: c.key, direction: c.direction }.into(), value })
            }
            Expr::Payload(p) => self.write(p),
            Expr::Exthdr(e) => self.option(e),
            Expr::Log(l) => self.log(l),
            Expr::Reject(r) => self.reject(r),
            Expr::Nat(n) => self.nat(n),
            Expr::Masq(m) => {
                let port = self.ports(m.proto_min, m.proto_max)?;
                self.say(Statement::Masquerade(PortNat { port, flags: shown(m.flags) }))
            }
            Expr::Redir(r) => {
                let port = self.ports(r.proto_min, r.proto_max)?;
                self.say(Statement::Redirect(PortNat { port, flags: shown(r.flags) }))
            }
            Expr::Tproxy(t) => self.tproxy(t),
            Expr::Dup(d) => {
                let address = self.optional(d.addr, address(self.family))?;
                let device = self.optional(d.device, DataType::IFACE_INDEX.into())?;
                self.say(Dup { address, device })
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
                self.say(Fwd { device, address })
            }
            Expr::Queue(q) => self.queue(q),
            Expr::Notrack(_) => self.say(Statement::Notrack),
            Expr::Dynset(d) => self.dynset(d),
            Expr::Synproxy(s) => self.say(synproxy(s)),
            Expr::FlowOffload(f) => self.say(Statement::FlowAdd(f.flowtable.clone())),
            Expr::Objref(o) => self.objref(o),
            _ => None,
        }
    }

    /// A field of a header is set: as a whole, or its bits among those of its neighbours.
    fn write(&mut self, p: &expr::Payload) -> Option<()> {
        let (offset, bits) = (in_bits(p.offset)?, in_bits(p.len)?);
        let named = |offset, bits| self.field(p.base, offset, bits);
        if let Some(field) = named(offset, bits) {
            let value = self.value(p.sreg?, field.part())?;
            self.forget_of(field);
            return self.say(Mangle { key: field.into(), value });
        }
        let Held::Loaded { mask: Some((mask, xor)), .. } = self.held(p.sreg?)? else { return None };
        let changed: Vec<u8> = mask.iter().map(|byte| !byte).collect();
        let (lead, width) = ones(&changed)?;
        let field = named(offset.checked_add(lead)?, width)?;
        let below = bits.checked_sub(lead)?.checked_sub(width)?;
        let number = crate::key::integer(crate::Order::Network, xor).checked_shr(below.into())?;
        self.forget_of(field);
        self.say(Mangle { key: field.into(), value: Value::Number(number).into() })
    }

    fn field(&self, base: PayloadBase, offset: u16, bits: u16) -> Option<Payload> {
        let protocol = self.header(base)?;
        let all = Payload::ALL.iter().copied();
        all.into_iter().find(|f| {
            f.base() == base && f.protocol() == protocol && (f.offset(), f.bits()) == (offset, bits)
        })
    }

    fn option(&mut self, e: &expr::Exthdr) -> Option<()> {
        let op = e.op?;
        if e.sreg.is_none() {
            let option = Exthdr::at(op, e.kind, 0, 8, true).filter(|_| op == ExthdrOp::TCPOPT)?;
            return self.say(Statement::ResetOption(option));
        }
        let (offset, bits) = (in_bits(e.offset?)?, in_bits(e.len?)?);
        let option = Exthdr::at(op, e.kind, offset, bits, false)?;
        let value = self.value(e.sreg?, option.part())?;
        self.say(Mangle { key: option.into(), value })
    }

    fn log(&mut self, l: &expr::Log) -> Option<()> {
        const WARN: u32 = 4;
        let level = l.level.filter(|level| *level != WARN || l.group.is_some());
        self.say(Log {
            prefix: l.prefix.as_deref().map(Comment::lossy),
            level: level.and_then(|level| u8::try_from(level).ok()),
            flags: l.flags.unwrap_or_default(),
            group: l.group,
            snaplen: l.snaplen.filter(|snaplen| *snaplen != 0),
            queue_threshold: l.queue_threshold.filter(|threshold| *threshold != 0),
        })
    }

    fn reject(&mut self, r: &expr::Reject) -> Option<()> {
        let code = r.code.unwrap_or(0);
        let reject = match (r.of, self.family) {
            (RejectType::TCP_RST, _) => {
                if matches!(self.family, Family::IP | Family::IP6) {
                    self.forget_transport();
                }
                Reject::TcpReset
            }
            (RejectType::ICMPX_UNREACH, _) if code == 1 => Reject::Default,
            (RejectType::ICMPX_UNREACH, _) => Reject::Icmpx(code),
            (_, Family::IP) if code == 3 => Reject::Default,
            (_, Family::IP6) if code == 4 => Reject::Default,
            (_, Family::IP) => Reject::Icmp(code),
            (_, Family::IP6) => Reject::Icmpv6(code),
            _ => {
                let v6 = self.network_is(Family::IP6);
                self.forget_network();
                if v6 { Reject::Icmpv6(code) } else { Reject::Icmp(code) }
            }
        };
        self.say(reject)
    }

    fn nat(&mut self, n: &expr::Nat) -> Option<()> {
        let family = Family(u8::try_from(n.family).ok()?);
        let part = address(family);
        let words = u32::try_from(part.bytes() / 4).ok()?;
        let behind = |register: Register| Some(Register::word(register.first_word()? + words));
        let wide = n.addr_min.and_then(|min| match self.held(min)? {
            Held::Loaded { expression: map @ Expression::Map(_), .. } => Some((map.clone(), behind(min)?)),
            _ => None,
        });
        let to = match wide {
            Some((map, next)) if n.proto_min == Some(next) => NatTarget::Concat(map),
            Some((map, next)) if n.addr_max == Some(next) => NatTarget::Interval(map),
            _ => {
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
        let own = matches!(self.family, Family::IP | Family::IP6)
            && !matches!(to, NatTarget::Concat(_) | NatTarget::Interval(_));
        let nat = Nat { family: (!own).then_some(family), to, flags: shown(n.flags) };
        self.say(if n.of == NatType::SNAT { Statement::Snat(nat) } else { Statement::Dnat(nat) })
    }

    fn ports(&self, min: Option<Register>, max: Option<Register>) -> Option<Option<Expression>> {
        self.span(min, max.filter(|max| Some(*max) != min), DataType::INET_SERVICE.into())
    }

    /// One value, or a range between two registers.
    fn span(&self, min: Option<Register>, max: Option<Register>, part: Part) -> Option<Option<Expression>> {
        let low = self.optional(min, part)?;
        match (low, max) {
            (Some(Expression::Value(low)), Some(max)) => {
                let Expression::Value(high) = self.value(max, part)? else { return None };
                if low == high {
                    return Some(Some(low.into()));
                }
                Some(Some(Expression::Range(Box::new((low, high)))))
            }
            (low, None) => Some(low),
            (_, Some(_)) => None,
        }
    }

    fn optional(&self, register: Option<Register>, part: Part) -> Option<Option<Expression>> {
        match register {
            None => Some(None),
            Some(register) => self.value(register, part).map(Some),
        }
    }

    fn tproxy(&mut self, t: &expr::Tproxy) -> Option<()> {
        let family = Family(u8::try_from(t.family).ok()?);
        let of = self.optional(t.addr, address(family))?;
        let port = self.optional(t.port, DataType::INET_SERVICE.into())?;
        let own = family == self.family || family == Family::UNSPEC;
        self.say(Tproxy { family: (!own).then_some(family), address: of, port })
    }

    fn queue(&mut self, q: &expr::Queue) -> Option<()> {
        let flags = q.flags.unwrap_or_default();
        let to = match (q.sreg, q.number) {
            (Some(register), _) => self.whole(self.held(register)?)?,
            (None, Some(first)) => match q.total.unwrap_or(1) {
                0 | 1 => Expression::from(first),
                total => Expression::range(first, first.checked_add(total - 1)?),
            },
            (None, None) => return None,
        };
        self.say(Queue {
            to,
            bypass: flags.contains(QueueFlags::BYPASS),
            fanout: flags.contains(QueueFlags::FANOUT),
        })
    }

    fn dynset(&mut self, d: &expr::Dynset) -> Option<()> {
        let (set, _) = self.set(&d.set)?;
        let key = self.key(d.key, set.key_bytes())?;
        let part = match &set.data {
            Some(SetData::Value(of)) => of.parts().first().copied(),
            _ => None,
        };
        let value = match (d.data, part) {
            (None, _) => None,
            (Some(register), Some(part)) => Some(self.value(register, part)?),
            (Some(_), None) => return None,
        };
        let statements =
            d.expr.iter().map(|expr| &**expr).chain(&d.exprs).map(state).collect::<Option<_>>()?;
        self.say(SetUpdate {
            op: match d.op {
                DynsetOp::ADD => SetOp::Add,
                DynsetOp::UPDATE => SetOp::Update,
                DynsetOp::DELETE => SetOp::Delete,
                _ => return None,
            },
            set: d.set.clone(),
            key,
            value,
            timeout: d.timeout.filter(|timeout| *timeout != 0).map(std::time::Duration::from_millis),
            statements,
        })
    }

    fn objref(&mut self, o: &expr::Objref) -> Option<()> {
        let (kind, object) = match (o.kind, &o.name, &o.set) {
            (Some(kind), Some(name), _) => (kind, ObjectName::Named(name.clone())),
            (_, _, Some(map)) => {
                let (set, _) = self.set(map)?;
                let Some(SetData::Object(kind)) = set.data else { return None };
                (kind, ObjectName::Map(Box::new(self.key(o.sreg?, set.key_bytes())?), map.clone()))
            }
            _ => return None,
        };
        self.say(ObjectReference { kind, object })
    }
}

/// The state of a rule or an element.
pub(crate) fn state(expr: &Expr) -> Option<Statement> {
    let over = |flags: Option<Invert>| flags.is_some_and(|flags| flags.contains(Invert::OVER));
    Some(match expr {
        Expr::Counter(c) => Counter { packets: c.packets.unwrap_or(0), bytes: c.bytes.unwrap_or(0) }.into(),
        Expr::Quota(q) => Quota { bytes: q.bytes, used: q.consumed.unwrap_or(0), over: over(q.flags) }.into(),
        Expr::Limit(l) => {
            let units = [TimeUnit::Second, TimeUnit::Minute, TimeUnit::Hour, TimeUnit::Day, TimeUnit::Week];
            let per = units.into_iter().find(|unit| unit.seconds() == l.unit)?;
            let bytes = l.of == Some(LimitType::BYTES);
            let default = if bytes { 0 } else { 5 };
            let burst = l.burst.filter(|burst| *burst != default);
            Limit { rate: l.rate, per, burst, bytes, over: over(l.flags) }.into()
        }
        Expr::Last(_) => Statement::Last,
        Expr::Connlimit(c) => Connlimit { count: c.count, over: over(c.flags) }.into(),
        _ => return None,
    })
}

pub(crate) fn synproxy(s: &expr::Synproxy) -> Synproxy {
    let flags = s.flags.unwrap_or_default();
    Synproxy {
        mss: s.mss.filter(|_| flags.contains(SynproxyFlags::MSS)),
        wscale: s.wscale.filter(|_| flags.contains(SynproxyFlags::WSCALE)),
        timestamp: flags.contains(SynproxyFlags::TIMESTAMP),
        sack_perm: flags.contains(SynproxyFlags::SACK_PERM),
    }
}

fn address(family: Family) -> Part {
    if family == Family::IP6 { DataType::IPV6_ADDR.into() } else { DataType::IPV4_ADDR.into() }
}

/// The flags that nft shows: the kernel adds what follows from the rest.
fn shown(flags: Option<NatFlags>) -> NatFlags {
    flags.unwrap_or_default() & (NatFlags::RANDOM | NatFlags::PERSISTENT | NatFlags::FULLY_RANDOM)
}
