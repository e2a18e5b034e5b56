//! Raises header fields of an encapsulated packet, and drops the matches that they imply.

use crate::compile::lower::shape;
use crate::compile::raise::constant::{constant, in_bits};
use crate::compile::raise::matching::prefix_of;
use crate::compile::raise::{Content, Raise};
use crate::expr::{self, CmpOp, Expr, InnerFlags, InnerType, MetaKey, PayloadBase};
use crate::tree::expression::*;
use crate::tree::{Match, MatchOp, Payload, tunnel_of};

/// The protocols of the encapsulated packet that earlier expressions have determined.
#[derive(Debug, Default)]
pub(super) struct Inside {
    tunnel: Option<InnerType>,
    ether_type: Option<u16>,
    transport: Option<u8>,
    icmp: Option<u8>,
    /// The positions in `out` of the matches of the inner Ethernet type and of the inner ICMP type.
    ether_type_at: Option<usize>,
    icmp_at: Option<usize>,
    /// Whether a match of the inner `meta protocol` or `meta l4proto` is not yet implied by a field.
    unused: [bool; 2],
}

impl Inside {
    /// Keeps the matches so far, even if later fields imply them.
    pub(super) fn keep_matches(&mut self) {
        (self.ether_type_at, self.icmp_at) = (None, None);
    }

    /// Returns whether there was a match that the language cannot express by itself.
    pub(super) fn has_unused_match(&self) -> bool {
        self.unused != [false; 2]
    }

    /// Returns whether the header of a field is known to be present.
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

    /// Returns the fields of the headers that are known to be at a base.
    fn fields(&self, base: PayloadBase) -> impl Iterator<Item = Payload> {
        let all = Payload::ALL.iter().copied().filter(move |f| f.base() == base && self.has(*f));
        all.filter(|f| match self.icmp {
            Some(of) => f.is_of_icmp_type(of),
            // If the type is unknown, nft assumes an echo message.
            None => f.icmp_types().len() != 1,
        })
    }

    /// Returns the field at this place; or else one that the bytes contain as a bit field; or else one of
    /// which they are the start, or which starts with them.
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
        // Other sizes or flags belong to a tunnel that nft does not support, and could not be reproduced.
        if i.number != 0 || shape(i.of) != Some((i.header_size, i.flags)) {
            return None;
        }
        match &*i.expr {
            Expr::Payload(p) if p.base == PayloadBase::TUNNEL => self.tunnel_header(i.of, p),
            Expr::Payload(p) => self.inner_payload(i.of, p),
            Expr::Meta(m @ expr::Meta { key: MetaKey::PROTOCOL | MetaKey::L4PROTO, .. }) => {
                // A comparison with the protocol follows, which the language expresses through a later field.
                self.enter(i.of);
                self.registers.insert(m.dreg?.first_word()?, Content::Inside(m.key));
                Some(())
            }
            _ => None,
        }
    }

    fn tunnel_header(&mut self, tunnel: InnerType, p: &expr::Payload) -> Option<()> {
        let place = (in_bits(p.offset)?, in_bits(p.len)?);
        // The fields of the tunnel's own header are relative to that header, so the place identifies them.
        let mut own = Payload::ALL.iter().copied().filter(|f| tunnel_of(*f) == Some(tunnel));
        let field = own.find(|f| (f.offset(), f.bits()) == place)?;
        self.load(p.dreg?, field.into(), p.len)
    }

    fn inner_payload(&mut self, tunnel: InnerType, p: &expr::Payload) -> Option<()> {
        self.enter(tunnel);
        let field = self.inside.field(p.base, in_bits(p.offset)?, in_bits(p.len)?)?;
        self.drop_implied_inside(field);
        self.load(p.dreg?, Inner { tunnel, field }.into(), p.len)
    }

    /// Enters a tunnel, and drops the match of GRE that it implies.
    fn enter(&mut self, tunnel: InnerType) {
        if matches!(tunnel, InnerType::GRE | InnerType::GRETAP) && self.transport == Some(47) {
            self.drop_transport_match();
        }
        if self.inside.tunnel.replace(tunnel) != Some(tunnel) {
            // Matches inside another tunnel determine nothing about this one.
            let unused = self.inside.unused;
            self.inside = Inside { tunnel: Some(tunnel), unused, ..Inside::default() };
        }
    }

    /// Drops the matches inside the tunnel that a field implies.
    fn drop_implied_inside(&mut self, field: Payload) {
        let [network, transport] = &mut self.inside.unused;
        // A field of a transport header implies the transport protocol.
        *transport &= field.transport().is_none();
        let link =
            self.inside.tunnel.and_then(shape).is_some_and(|(_, flags)| flags.contains(InnerFlags::LL));
        // `ip` and `ip6` imply the inner `meta protocol`; the other fields imply the inner `EtherType`.
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
        // A field implies the ICMP type only if a single type has it.
        if let ([only], Some(known)) = (field.icmp_types(), self.inside.icmp)
            && *only == known
            && let Some(at) = self.inside.icmp_at.take()
        {
            self.drop_at(at);
        }
    }

    /// Raises a comparison with a protocol inside a tunnel.
    pub(super) fn compare_inside(&mut self, content: &Content, op: CmpOp, data: &[u8]) -> Option<()> {
        let Content::Inside(key) = content else { return None };
        match (*key, op, data) {
            (MetaKey::PROTOCOL, CmpOp::EQ, [high, low]) => {
                self.inside.ether_type = Some(u16::from_be_bytes([*high, *low]));
                self.inside.ether_type_at = None;
                self.inside.unused[0] = true;
            }
            (MetaKey::L4PROTO, CmpOp::EQ, [number]) => {
                self.inside.transport = Some(*number);
                self.inside.unused[1] = true;
            }
            _ => return None,
        }
        Some(())
    }

    /// Records the protocols that a match on the inner packet determines.
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

    /// Raises a comparison of bytes inside a tunnel as matches of the fields in them: nft merges comparisons
    /// of adjacent fields. The last field may be compared in part, as a prefix.
    pub(super) fn emit_inside(&mut self, inner: Inner, op: MatchOp, data: &[u8]) -> Option<()> {
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
        // `!=` of several fields together is not `!=` of each.
        if op != MatchOp::In && (op != MatchOp::Neq || matches.len() > 1) {
            return None;
        }
        for (field, right) in matches {
            let left = Expression::Inner(Inner { field, ..inner });
            self.drop_implied_inside(field);
            self.note(&left, op, &right);
            self.emit(Match { left, op, right })?;
        }
        Some(())
    }

    /// Returns the field of the same header whose bits a mask keeps.
    pub(super) fn inner_bit_field(&self, inner: Inner, lead: u16, bits: u16) -> Option<Expression> {
        let offset = inner.field.offset() / 8 * 8 + lead;
        let mut all = Payload::ALL.iter().copied().filter(|f| f.protocol() == inner.field.protocol());
        let field = all.find(|f| (f.offset(), f.bits()) == (offset, bits))?;
        Some(Inner { field, ..inner }.into())
    }
}
