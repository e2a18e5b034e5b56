//! Header fields of the packet inside a tunnel's, and the matches that they take for granted.

use crate::expr::{self, CmpOp, Expr, InnerFlags, InnerType, MetaKey, PayloadBase};
use crate::lang::expression::*;
use crate::lang::lower::{shape, tunnel_of};
use crate::lang::raise::constant::{constant, in_bits};
use crate::lang::raise::matching::prefix_of;
use crate::lang::raise::{Held, Raise};
use crate::lang::{Match, MatchOp, Payload};

/// What earlier expressions have fixed of the packet inside a tunnel's.
#[derive(Debug, Default)]
pub(super) struct Inside {
    tunnel: Option<InnerType>,
    ether_type: Option<u16>,
    transport: Option<u8>,
    icmp: Option<u8>,
    /// Where in `out` the type was matched in the Ethernet header, and that of an ICMP message.
    ether_type_at: Option<usize>,
    icmp_at: Option<usize>,
    /// What was matched of what the kernel knows, and no field has implied yet.
    unsaid: [bool; 2],
}

impl Inside {
    /// What was matched so far is shown, whatever later fields imply.
    pub(super) fn keep_said(&mut self) {
        (self.ether_type_at, self.icmp_at) = (None, None);
    }

    /// Whether something was matched that the language cannot say by itself.
    pub(super) fn is_unsaid(&self) -> bool {
        self.unsaid != [false; 2]
    }

    /// Whether a field's header is known to be there.
    fn has(&self, field: Payload) -> bool {
        match (field.base(), field.protocol()) {
            (PayloadBase::LINK, "vlan") => self.ether_type == Some(0x8100),
            (PayloadBase::LINK, "ether") => true,
            (PayloadBase::NETWORK, "ip") => self.ether_type == Some(0x0800),
            (PayloadBase::NETWORK, "ip6") => self.ether_type == Some(0x86dd),
            (PayloadBase::NETWORK, "arp") => self.ether_type == Some(0x0806),
            (PayloadBase::TRANSPORT, "th") => self.transport.is_none(),
            (PayloadBase::TRANSPORT, _) => field.transport() == self.transport,
            _ => false,
        }
    }

    /// The fields of the headers that are known to be at a base.
    fn fields(&self, base: PayloadBase) -> impl Iterator<Item = Payload> {
        let all = Payload::ALL.iter().copied().filter(move |f| f.base() == base && self.has(*f));
        all.filter(|f| match self.icmp {
            Some(of) => f.is_of_icmp_type(of),
            // Of an unknown type nft takes it to be an echo.
            None => f.icmp_types().len() != 1,
        })
    }

    /// A field that these bytes are, or that is cut out of them, or one that starts with them or that they start with.
    fn field(&self, base: PayloadBase, offset: u16, bits: u16) -> Option<Payload> {
        let around = |f: &Payload| {
            f.offset() / 8 * 8 == offset && (f.offset() % 8 + f.bits()).next_multiple_of(8) == bits
        };
        let start = |f: &Payload| f.offset() == offset && f.bits().is_multiple_of(8);
        let all = || self.fields(base);
        let exact = all().find(|f| (f.offset(), f.bits()) == (offset, bits));
        exact.or_else(|| all().find(around)).or_else(|| all().find(start))
    }
}

impl Raise<'_> {
    pub(super) fn inner(&mut self, i: &expr::Inner) -> Option<()> {
        if i.number != 0 || shape(i.of) != Some((i.header_size, i.flags)) {
            return None;
        }
        match &*i.expr {
            Expr::Payload(p) if p.base == PayloadBase::TUNNEL => self.tunnel_header(i.of, p),
            Expr::Payload(p) => self.inner_payload(i.of, p),
            Expr::Meta(m @ expr::Meta { key: MetaKey::PROTOCOL | MetaKey::L4PROTO, .. }) => {
                self.enter(i.of);
                self.registers.insert(m.dreg?.first_word()?, Held::Inside(m.key));
                Some(())
            }
            _ => None,
        }
    }

    fn tunnel_header(&mut self, tunnel: InnerType, p: &expr::Payload) -> Option<()> {
        let place = (in_bits(p.offset)?, in_bits(p.len)?);
        let mut own = Payload::ALL.iter().copied().filter(|f| tunnel_of(*f) == Some(tunnel));
        let field = own.find(|f| (f.offset(), f.bits()) == place)?;
        self.hold(p.dreg?, field.into(), p.len)
    }

    fn inner_payload(&mut self, tunnel: InnerType, p: &expr::Payload) -> Option<()> {
        self.enter(tunnel);
        let field = self.inside.field(p.base, in_bits(p.offset)?, in_bits(p.len)?)?;
        self.forget_inside(field);
        self.hold(p.dreg?, Inner { tunnel, field }.into(), p.len)
    }

    /// GRE is implied by what is inside it.
    fn enter(&mut self, tunnel: InnerType) {
        if matches!(tunnel, InnerType::GRE | InnerType::GRETAP) && self.transport == Some(47) {
            self.forget_transport();
        }
        if self.inside.tunnel.replace(tunnel) != Some(tunnel) {
            let unsaid = self.inside.unsaid;
            self.inside = Inside { tunnel: Some(tunnel), unsaid, ..Inside::default() };
        }
    }

    /// What a field says of the packet inside need not be said.
    fn forget_inside(&mut self, field: Payload) {
        let [network, transport] = &mut self.inside.unsaid;
        *transport &= field.transport().is_none();
        let link =
            self.inside.tunnel.and_then(shape).is_some_and(|(_, flags)| flags.contains(InnerFlags::LL));
        // The type in the Ethernet header is implied by some, what the kernel made of it by others.
        let by_header = match field.protocol() {
            "vlan" | "arp" | "icmp" | "igmp" | "icmpv6" => link,
            "ip" | "ip6" => false,
            _ => return,
        };
        if !by_header {
            *network = false;
        } else if !*network && let Some(at) = self.inside.ether_type_at.take() {
            self.drop_at(at);
        }
        if let ([only], Some(known)) = (field.icmp_types(), self.inside.icmp)
            && *only == known
            && let Some(at) = self.inside.icmp_at.take()
        {
            self.drop_at(at);
        }
    }

    /// The protocol inside a tunnel.
    pub(super) fn compare_inside(&mut self, held: &Held, op: CmpOp, data: &[u8]) -> Option<()> {
        let Held::Inside(key) = held else { return None };
        match (*key, op, data) {
            (MetaKey::PROTOCOL, CmpOp::EQ, [high, low]) => {
                self.inside.ether_type = Some(u16::from_be_bytes([*high, *low]));
                self.inside.ether_type_at = None;
                self.inside.unsaid[0] = true;
            }
            (MetaKey::L4PROTO, CmpOp::EQ, [number]) => {
                self.inside.transport = Some(*number);
                self.inside.unsaid[1] = true;
            }
            _ => return None,
        }
        Some(())
    }

    /// Remembers what a match on the packet inside fixes.
    pub(super) fn note_inside(&mut self, field: Payload, number: u64, at: usize) {
        let byte = u8::try_from(number).ok();
        match field {
            Payload::ETHER_TYPE => {
                (self.inside.ether_type, self.inside.ether_type_at) = (u16::try_from(number).ok(), Some(at));
            }
            Payload::IP_PROTOCOL | Payload::IP6_NEXTHDR => self.inside.transport = byte,
            Payload::ICMP_TYPE | Payload::ICMPV6_TYPE => {
                (self.inside.icmp, self.inside.icmp_at) = (byte, Some(at));
            }
            _ => {}
        }
    }

    /// Bytes inside a tunnel as the fields that lie in them: nft compares neighbours at once. Of the last field it may be the beginning only,
    /// a prefix.
    pub(super) fn say_inside(&mut self, inner: Inner, op: MatchOp, data: &[u8]) -> Option<()> {
        let (mut at, mut rest) = (inner.field.offset(), data);
        let mut matches = Vec::new();
        while !rest.is_empty() {
            let mut fields = self.inside.fields(inner.field.base());
            let field = fields.find(|f| f.offset() == at && f.bits().is_multiple_of(8))?;
            let (part, bytes) = (field.part(), usize::from(field.bits() / 8));
            let right = match rest.split_at_checked(bytes) {
                Some((own, others)) => {
                    rest = others;
                    constant(part, own)
                }
                None => prefix_of(part, std::mem::take(&mut rest))?,
            };
            matches.push((field, right));
            at += field.bits();
        }
        // Several fields that differ as a whole are not each another.
        if op != MatchOp::In && (op != MatchOp::Neq || matches.len() > 1) {
            return None;
        }
        for (field, right) in matches {
            let left = Expression::Inner(Inner { field, ..inner });
            self.forget_inside(field);
            self.note(&left, op, &right);
            self.say(Match { left, op, right })?;
        }
        Some(())
    }

    /// The field of the same header whose bits a mask keeps.
    pub(super) fn inner_bit_field(&self, inner: Inner, lead: u16, bits: u16) -> Option<Expression> {
        let offset = inner.field.offset() / 8 * 8 + lead;
        let mut all = Payload::ALL.iter().copied().filter(|f| f.protocol() == inner.field.protocol());
        let field = all.find(|f| (f.offset(), f.bits()) == (offset, bits))?;
        Some(Inner { field, ..inner }.into())
    }
}
