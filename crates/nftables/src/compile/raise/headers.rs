//! Raises header fields, and drops the matches that they imply.

use crate::compile::lower::imply::{Link, family_of, offset_within};
use crate::compile::raise::constant::in_bits;
use crate::compile::raise::{Content, Raise};
use crate::expr::{self, CtKey, ExthdrFlags, ExthdrOp, MetaKey, PayloadBase};
use crate::family::Family;
use crate::tree::expression::*;
use crate::tree::exthdr::Exthdr;
use crate::tree::value::*;
use crate::tree::{Match, MatchOp, Payload, Statement};

/// The positions of the matches that determine headers, by layer. nft does not list such a match if a later
/// field implies it.
#[derive(Debug, Default)]
pub(super) struct Implied {
    link: Option<usize>,
    network: Option<usize>,
    transport: Option<usize>,
    /// A match of the ICMP message type, or of the header that follows AH or `IPComp`.
    inner: Option<usize>,
}

impl Implied {
    fn at(&mut self, base: PayloadBase) -> Option<&mut Option<usize>> {
        Some(match base {
            PayloadBase::LINK => &mut self.link,
            PayloadBase::NETWORK => &mut self.network,
            PayloadBase::TRANSPORT if self.transport.is_none() => &mut self.inner,
            PayloadBase::TRANSPORT => &mut self.transport,
            _ => return None,
        })
    }
}

impl Raise<'_> {
    pub(super) fn payload(&mut self, p: &expr::Payload) -> Option<()> {
        let (offset, bits) = (in_bits(p.offset)?, in_bits(p.len)?);
        // The same bytes have a different name in every header, so it depends on the matches before.
        let expression = match self.field(p.base, offset, bits) {
            Some(field) => field.into(),
            None => RawPayload { base: p.base, offset, bits }.into(),
        };
        let place = Some((p.base, p.offset));
        let content = Content::Loaded {
            expression,
            bytes: p.len,
            mask: None,
            place,
            moved: false,
            byte_swapped: false,
        };
        self.put(p.dreg?, content)
    }

    /// Returns the field at this place of the known headers.
    pub(super) fn field(&self, base: PayloadBase, offset: u16, bits: u16) -> Option<Payload> {
        self.known_fields(base).find(|field| (self.offset_of(*field), field.bits()) == (offset, bits))
    }

    /// Returns the offset in bits of a field from its base.
    pub(super) fn offset_of(&self, field: Payload) -> u16 {
        offset_within(field, self.inner_tags)
    }

    /// Returns the fields of the headers that are known to be at a base, in the order in which nft searches
    /// them.
    pub(super) fn known_fields(&self, base: PayloadBase) -> impl Iterator<Item = Payload> {
        let (link, protocol, icmp) = (self.link, self.protocol(base), self.icmp);
        Payload::ALL.iter().copied().filter(move |field| {
            field.base() == base
                && match base {
                    PayloadBase::LINK => match link {
                        Link::Unknown => false,
                        Link::Ether => field.protocol() == "ether",
                        Link::Vlan => true,
                    },
                    _ => protocol == Some(field.protocol()),
                }
                && match icmp {
                    Some(of) => field.is_of_icmp_type(of),
                    // If the type is unknown, nft assumes an echo message.
                    None => field.icmp_types().len() != 1,
                }
        })
    }

    pub(super) fn exthdr(&mut self, e: &expr::Exthdr) -> Option<()> {
        let presence = e.flags.is_some_and(|flags| flags.contains(ExthdrFlags::PRESENT));
        let op = e.op.unwrap_or(ExthdrOp::IPV6);
        let (offset, len) = (u16::try_from(e.offset?).ok()?, e.len?);
        let bits = in_bits(len)?;
        // The mask that follows identifies a bit field; until then any field in these bytes serves.
        let all = || {
            let starts_there = move |f: &Exthdr| (f.op(), f.kind(), f.offset() / 8) == (op, e.kind, offset);
            Exthdr::all().filter(move |f| starts_there(f) && !f.is_presence())
        };
        let field = Exthdr::at(op, e.kind, in_bits(offset.into())?, bits, presence)
            .or_else(|| all().find(|f| (f.offset() % 8 + f.bits()).div_ceil(8) * 8 == bits))
            // nft loads only the first bytes of a field for a prefix.
            .or_else(|| all().find(|f| f.offset().is_multiple_of(8) && f.bits() > bits))?;
        // These headers imply their network or transport protocol.
        match op {
            ExthdrOp::IPV6 | ExthdrOp::IPV4 => {
                self.drop_network_match();
            }
            ExthdrOp::TCPOPT => self.drop_transport_match(),
            _ => {}
        }
        self.load(e.dreg?, field.into(), len)
    }

    /// Returns the name of the network or transport protocol, if it is known.
    fn protocol(&self, base: PayloadBase) -> Option<&'static str> {
        match base {
            PayloadBase::NETWORK => match u8::try_from(self.network?).ok()? {
                2 => Some("ip"),
                10 => Some("ip6"),
                3 => Some("arp"),
                _ => None,
            },
            PayloadBase::TRANSPORT => match self.transport {
                None => Some("th"),
                Some(number) => u8::try_from(number).ok().and_then(Payload::protocol_of).or(Some("th")),
            },
            _ => None,
        }
    }

    pub(super) fn network_is(&self, family: Family) -> bool {
        self.network == Some(u64::from(family.0))
    }

    /// Records the protocols that a match determines. It is called before the match is emitted.
    pub(super) fn note(&mut self, left: &Expression, op: MatchOp, right: &Expression) {
        let (MatchOp::In | MatchOp::Eq, Expression::Value(Value::Number(number))) = (op, right) else {
            return;
        };
        let at = Some(self.out.len());
        match left {
            Expression::Meta(MetaKey::L4PROTO) | Expression::Ct(Ct { key: CtKey::PROTOCOL, .. }) => {
                // nft drops `meta protocol` or `meta nfproto` if the transport protocol implies it.
                self.drop_network_implied_by(*number);
                self.note_transport(*number);
            }
            Expression::Payload(Payload::IP_PROTOCOL | Payload::IP6_NEXTHDR) => self.note_transport(*number),
            Expression::Meta(MetaKey::NFPROTO) | Expression::Ct(Ct { key: CtKey::L3PROTO, .. }) => {
                self.network = Some(*number);
                self.implied.network = at.filter(|_| self.determines_network(left));
            }
            Expression::Meta(MetaKey::PROTOCOL)
            | Expression::Payload(Payload::ETHER_TYPE | Payload::VLAN_TYPE) => match number {
                // A VLAN tag follows. `meta protocol` cannot show one, because the kernel has already skipped
                // the tags.
                0x8100 | 0x88a8 if !matches!(left, Expression::Meta(_)) => {
                    (self.link, self.implied.link) = (Link::Vlan, at);
                    if *left == Expression::Payload(Payload::VLAN_TYPE) {
                        self.inner_tags = self.inner_tags.saturating_add(1);
                    }
                }
                _ => {
                    // Another EtherType tells nothing about IP.
                    let family = family_of(*number).map(|family| u64::from(family.0));
                    self.network = family.or(self.network);
                    self.implied.network = at.filter(|_| family.is_none() || self.determines_network(left));
                }
            },
            Expression::Meta(MetaKey::IIFTYPE) if *number == 1 => {
                (self.link, self.implied.link) = (Link::Ether, at);
            }
            Expression::Payload(field @ (Payload::ICMP_TYPE | Payload::ICMPV6_TYPE)) => {
                self.icmp = u8::try_from(*number).ok();
                // nft lists the match of an echo type even if a field implies it.
                let echo = match *field {
                    Payload::ICMP_TYPE => matches!(number, 0 | 8),
                    _ => matches!(number, 128 | 129),
                };
                self.implied.inner = at.filter(|_| !echo);
            }
            Expression::Inner(inner) => self.note_inside(inner.field, *number, self.out.len()),
            Expression::Payload(Payload::AH_NEXTHDR | Payload::COMP_NEXTHDR) => self.implied.inner = at,
            _ => {}
        }
    }

    /// Records the network protocol for fields that follow, if nft learns it from this match; returns whether
    /// no earlier match contradicts it. A match that contradicts an earlier one is never dropped: without
    /// it, nft refuses the fields of its protocol.
    fn determines_network(&mut self, left: &Expression) -> bool {
        // nft learns nothing from these.
        if matches!(left, Expression::Ct(_))
            || self.family == Family::INET && *left == Expression::Meta(MetaKey::PROTOCOL)
        {
            return true;
        }
        let before = std::mem::replace(&mut self.determined_network, self.network);
        before.is_none() || before == self.network
    }

    /// Records the transport protocol that the next match determines.
    fn note_transport(&mut self, number: u64) {
        // nft learns nothing from the number of a protocol that it has no header of.
        let known = self.transport.filter(|known| u8::try_from(*known).is_ok_and(has_header));
        self.implied.transport = Some(self.out.len()).filter(|_| known.is_none_or(|known| known == number));
        self.transport = Some(number);
    }

    /// Drops the matches that the fields of an expression imply, because nft does not list them.
    pub(super) fn drop_implied_by(&mut self, expression: &Expression) {
        match expression {
            Expression::Payload(field) => self.drop_implied_by_field(*field, false),
            Expression::Concat(list) => list.iter().for_each(|item| self.drop_implied_by(item)),
            Expression::Binary(binary) => {
                self.drop_implied_by(&binary.left);
                self.drop_implied_by(&binary.right);
            }
            Expression::Map(map) => self.drop_implied_by(&map.key),
            Expression::Jhash(jhash) => self.drop_implied_by(&jhash.of),
            _ => {}
        }
    }

    /// Drops the match of the header that a field implies, because nft does not list it. `compared` tells
    /// whether the field is compared with a single value.
    pub(super) fn drop_implied_by_field(&mut self, field: Payload, compared: bool) {
        let base = field.base();
        let Some(at) = self.implied.at(base).and_then(|at| *at) else { return };
        let Some(Some(Statement::Match(m))) = self.out.get(at) else { return };
        if self.may_drop(m, field, compared) {
            self.drop_at(at);
            if let Some(slot) = self.implied.at(base) {
                *slot = None;
            }
        }
    }

    fn may_drop(&self, m: &Match, field: Payload, compared: bool) -> bool {
        let Expression::Payload(of) = m.left else { return true };
        if matches!(self.family, Family::INET | Family::BRIDGE | Family::NETDEV) {
            // The match of `ip protocol` also determines the IP version, which the transport field does not
            // imply.
            if field.base() == PayloadBase::TRANSPORT && matches!(of.protocol(), "ip" | "ip6") {
                return false;
            }
            // nft keeps the match before a comparison with the next protocol of the same layer (`vlan type`).
            if of.base() == field.base() && (compared && is_protocol(field)) {
                return false;
            }
            if of.base() == field.base() && field.base() == PayloadBase::LINK {
                // Ethernet fields do not imply each other, but `vlan` implies the EtherType.
                return of == Payload::ETHER_TYPE && m.right == Expression::from(0x8100_u16);
            }
        }
        match of {
            // A field implies the ICMP type only if a single type has it.
            Payload::ICMP_TYPE | Payload::ICMPV6_TYPE => {
                of.protocol() == field.protocol()
                    && matches!(field.icmp_types(), [only] if self.icmp == Some(*only))
            }
            _ => true,
        }
    }

    /// Drops the match of the network protocol that a match of the transport protocol implies: in tables of
    /// several families only ICMP implies one.
    fn drop_network_implied_by(&mut self, protocol: u64) {
        let mixed = matches!(self.family, Family::INET | Family::BRIDGE | Family::NETDEV);
        let own = match protocol {
            1 if mixed => self.network_is(Family::IP),
            58 if mixed => self.network_is(Family::IP6),
            _ => !mixed && self.matches_table_family(),
        };
        if own {
            self.drop_network_match();
        }
    }

    /// Returns whether the last matched Ethernet type is that of the table's family.
    fn matches_table_family(&self) -> bool {
        let matched = self.implied.network.and_then(|at| self.out.get(at));
        let Some(Some(Statement::Match(m))) = matched else { return false };
        match m.right {
            Expression::Value(Value::Number(number)) => family_of(number) == Some(self.family),
            _ => false,
        }
    }

    /// Keeps the matches of the transport protocol: nft requires one before it reads a port that packets are
    /// translated to or handed over at, even if that port is looked up by a field of the protocol.
    pub(super) fn keep_transport_match(&mut self) {
        (self.implied.transport, self.implied.inner) = (None, None);
    }

    /// Keeps the matches of every layer, whatever a later expression implies.
    pub(super) fn keep_all_matches(&mut self) {
        self.implied = Implied::default();
    }

    pub(super) fn drop_transport_match(&mut self) {
        if let Some(at) = self.implied.transport.take() {
            self.drop_at(at);
        }
    }

    /// Drops the match of the network protocol; returns whether there is one.
    pub(super) fn drop_network_match(&mut self) -> bool {
        if self.keeps_implied {
            return false;
        }
        let at = self.implied.network.take();
        at.into_iter().for_each(|at| self.drop_at(at));
        at.is_some()
    }

    pub(super) fn drop_at(&mut self, at: usize) {
        if let Some(statement) = self.out.get_mut(at).filter(|_| !self.keeps_implied) {
            *statement = None;
        }
    }
}

fn has_header(protocol: u8) -> bool {
    Payload::protocol_of(protocol).is_some()
}

/// Returns whether a field determines the next header.
fn is_protocol(field: Payload) -> bool {
    matches!(
        field,
        Payload::ETHER_TYPE
            | Payload::VLAN_TYPE
            | Payload::IP_PROTOCOL
            | Payload::IP6_NEXTHDR
            | Payload::ICMP_TYPE
            | Payload::ICMPV6_TYPE
            | Payload::AH_NEXTHDR
            | Payload::COMP_NEXTHDR
    )
}
