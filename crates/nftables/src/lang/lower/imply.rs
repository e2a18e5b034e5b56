//! Matches for what an expression takes for granted: `tcp dport` that the packet is TCP.

use crate::expr::{self, CmpOp, ExthdrOp, MetaKey, Register};
use crate::family::Family;
use crate::lang::constant::Place;
use crate::lang::lower::{Lower, LowerError};
use crate::lang::{Expression, MatchOp, Payload, Statement, Value};

/// The headers below the network's that are known to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Unknown,
    Ether,
    Vlan,
}

impl Lower<'_> {
    /// Matches for what an expression takes for granted: `tcp dport` that the packet is TCP.
    pub(crate) fn imply(&mut self, expression: &Expression) -> Result<(), LowerError> {
        match expression {
            Expression::Payload(payload) => self.imply_header(*payload)?,
            Expression::Inner(inner) => self.imply_inside(*inner)?,
            Expression::Exthdr(exthdr) => match exthdr.op() {
                ExthdrOp::IPV6 => self.first(|lower| lower.imply_network_by_header(Family::IP6)),
                ExthdrOp::IPV4 => self.first(|lower| lower.imply_network_by_header(Family::IP)),
                // The kernel looks for these itself, and finds none in another protocol's packets.
                _ => {}
            },
            Expression::Concat(list) => list.iter().try_for_each(|item| self.imply(item))?,
            Expression::Binary(binary) => {
                self.imply(&binary.left)?;
                self.imply(&binary.right)?;
            }
            Expression::Map(map) => self.imply(&map.key)?,
            Expression::Jhash(jhash) => self.imply(&jhash.of)?,
            _ => {}
        }
        Ok(())
    }

    /// What an extension header or a reject takes for granted nft asks before all else in the rule: a counter before them counts no other packets.
    pub(super) fn first(&mut self, imply: impl FnOnce(&mut Self)) {
        let rest = std::mem::take(&mut self.out.exprs);
        let mut comparisons = std::mem::take(&mut self.comparisons);
        imply(self);
        let moved = self.out.exprs.len();
        self.out.exprs.extend(rest);
        comparisons.iter_mut().for_each(|comparison| comparison.move_down(moved));
        if self.is_joined {
            // Nothing is joined across another statement.
            self.comparisons.clear();
        }
        self.comparisons.append(&mut comparisons);
    }

    fn imply_header(&mut self, payload: Payload) -> Result<(), LowerError> {
        match payload.protocol() {
            "ip" => self.imply_network(Family::IP),
            "ip6" => self.imply_network(Family::IP6),
            "arp" if self.family() == Family::INET => {
                return Err(LowerError::Unsupported {
                    what: "an inet table has no ARP packets",
                    expression: payload.to_string(),
                });
            }
            "arp" => self.imply_network_by_header(Family::ARP),
            "ether" => self.imply_ethernet(),
            "vlan" => self.imply_vlan(),
            // In a table of one family, and where the transport protocol is matched, that is enough.
            _ if matches!(self.family(), Family::IP | Family::IP6) => {}
            _ if payload.transport().is_some_and(|number| self.transport == Some(number.into())) => {}
            "icmp" | "igmp" => self.imply_network_by_header(Family::IP),
            "icmpv6" => self.imply_network_by_header(Family::IP6),
            "vxlan" | "geneve" => self.imply_carrier(payload.protocol(), &payload.into())?,
            _ => {}
        }
        if let Some(number) = payload.transport() {
            self.imply_transport(number.into());
        }
        self.imply_icmp_type(payload)
    }

    /// Where only some types of message have a field, it has to be one of these.
    fn imply_icmp_type(&mut self, field: Payload) -> Result<(), LowerError> {
        if self.icmp.narrow(field, &field.into())? {
            let of = icmp_type_of(field);
            self.load_payload(of.base(), of.offset(), of.bits(), 0);
            self.compare_icmp_type(of, field.icmp_types())?;
            self.may_be_joined(false);
        }
        Ok(())
    }

    /// Compares the type of message in the first register.
    pub(super) fn compare_icmp_type(&mut self, of: Payload, types: &[u8]) -> Result<(), LowerError> {
        if let [only] = types {
            self.compare(0, CmpOp::EQ, vec![*only]);
            return Ok(());
        }
        let members: Vec<Expression> = types.iter().map(|of| Value::Number((*of).into()).into()).collect();
        let (set, number) = self.anonymous_set(&of.into(), &[Place::of(of.part())], &members)?;
        self.push_lookup(MatchOp::In, set, Some(number));
        Ok(())
    }

    pub(crate) fn imply_network(&mut self, family: Family) {
        // Of a bridge's frames nft asks the kernel what is in them: it has seen through VLAN tags.
        let by_kernel = self.family() == Family::BRIDGE && self.link != Link::Vlan;
        self.imply_network_by(family, by_kernel);
    }

    /// As above, for what is above or beside IP: of that nft asks the frame, where there is one.
    fn imply_network_by_header(&mut self, family: Family) {
        self.imply_network_by(family, false);
    }

    fn imply_network_by(&mut self, family: Family, by_kernel: bool) {
        let own = self.family();
        if own == family || self.network == Some(u64::from(family.0)) {
            return;
        }
        self.network = Some(u64::from(family.0));
        let of = match family {
            Family::IP => 0x0800_u16,
            Family::ARP => 0x0806,
            _ => 0x86dd,
        };
        let header = match (self.link, own) {
            (Link::Vlan, _) => Payload::VLAN_TYPE,
            (Link::Ether, _) | (Link::Unknown, Family::BRIDGE) if !by_kernel => Payload::ETHER_TYPE,
            (_, Family::INET) => return self.match_meta(MetaKey::NFPROTO, vec![family.0]),
            _ => return self.match_meta(MetaKey::PROTOCOL, of.to_be_bytes().to_vec()),
        };
        self.match_type(header, of);
    }

    pub(crate) fn imply_transport(&mut self, protocol: u64) {
        if self.transport != Some(protocol) {
            self.transport = Some(protocol);
            self.match_meta(MetaKey::L4PROTO, vec![u8::try_from(protocol).unwrap_or(u8::MAX)]);
        }
    }

    fn imply_ethernet(&mut self) {
        if self.link == Link::Unknown && self.family() != Family::BRIDGE {
            self.match_meta(MetaKey::IIFTYPE, 1_u16.to_ne_bytes().to_vec());
        }
        if self.link == Link::Unknown {
            self.link = Link::Ether;
        }
    }

    fn imply_vlan(&mut self) {
        self.imply_ethernet();
        if self.link != Link::Vlan {
            self.link = Link::Vlan;
            self.match_type(Payload::ETHER_TYPE, 0x8100);
        }
    }

    /// The field of a link-layer header that says what comes next.
    fn match_type(&mut self, field: Payload, of: u16) {
        self.load_start(field, field.bits(), 0);
        self.compare(0, CmpOp::EQ, of.to_be_bytes().to_vec());
        self.may_be_joined(true);
    }

    fn match_meta(&mut self, key: MetaKey, bytes: Vec<u8>) {
        self.push(expr::Meta { dreg: Some(Register::word(0)), key, sreg: None });
        self.compare(0, CmpOp::EQ, bytes);
    }

    /// Bits from its base to a field.
    pub(super) fn offset_of(&self, field: Payload) -> u16 {
        offset_within(field, self.inner_tags)
    }

    /// Remembers the protocol that a match fixes, so that later ones need not imply it.
    pub(super) fn note_protocol(&mut self, left: &Expression, op: MatchOp, right: &Expression) {
        if !matches!(op, MatchOp::In | MatchOp::Eq) {
            return;
        }
        match left {
            Expression::Payload(field) => self.icmp.note(*field, right),
            Expression::Inner(inner) => self.inside.icmp.note(inner.field, right),
            _ => {}
        }
        let Expression::Value(Value::Number(number)) = right else { return };
        match left {
            // A protocol that nft has no header for tells it nothing.
            Expression::Meta(MetaKey::L4PROTO)
            | Expression::Payload(Payload::IP_PROTOCOL | Payload::IP6_NEXTHDR)
                if u8::try_from(*number).is_ok_and(|number| Payload::protocol_of(number).is_some()) =>
            {
                self.transport = Some(*number);
            }
            Expression::Inner(inner) => self.note_inside(*inner, *number),
            Expression::Meta(MetaKey::NFPROTO) => self.network = Some(*number),
            Expression::Meta(MetaKey::IIFTYPE) if *number == 1 && self.link == Link::Unknown => {
                self.link = Link::Ether;
            }
            Expression::Payload(Payload::ETHER_TYPE) if matches!(number, 0x8100 | 0x88a8) => {
                self.link = Link::Vlan;
            }
            Expression::Payload(Payload::VLAN_TYPE) if matches!(number, 0x8100 | 0x88a8) => {
                self.inner_tags = self.inner_tags.saturating_add(1);
            }
            // In family inet nft asks for the protocol again.
            Expression::Meta(MetaKey::PROTOCOL) if self.family() == Family::INET => {}
            Expression::Meta(MetaKey::PROTOCOL)
            | Expression::Payload(Payload::ETHER_TYPE | Payload::VLAN_TYPE) => {
                let family = family_of(*number);
                self.network = family.map(|family| family.0.into()).or(self.network);
            }
            _ => {}
        }
    }

    /// `meta protocol ip` where there is nothing else. nft leaves it out, unless the rule ends with it.
    pub(super) fn goes_without_saying(&self, statement: &Statement) -> bool {
        let Statement::Match(m) = statement else { return false };
        let (MatchOp::In | MatchOp::Eq, Expression::Value(Value::Number(number))) = (m.op, &m.right) else {
            return false;
        };
        let own = self.family();
        m.left == Expression::Meta(MetaKey::PROTOCOL)
            && matches!(own, Family::IP | Family::IP6)
            && family_of(*number) == Some(own)
    }
}

/// Bits from its base to a field: those of a VLAN's header are meant to be in the innermost of the tags that were matched.
pub(crate) fn offset_within(field: Payload, inner_tags: u16) -> u16 {
    /// `struct vlan_hdr`
    const TAG: u16 = 32;
    /// The kernel loads nothing from farther than 255 bytes, and says so.
    const TOO_FAR: u16 = 64;
    let tags = if field.protocol() == "vlan" { inner_tags.min(TOO_FAR) } else { 0 };
    field.offset() + tags * TAG
}

/// The network protocol that a type of Ethernet frames stands for.
pub(crate) fn family_of(ether_type: u64) -> Option<Family> {
    match ether_type {
        0x0800 => Some(Family::IP),
        0x86dd => Some(Family::IP6),
        0x0806 => Some(Family::ARP),
        _ => None,
    }
}

/// The types of ICMP messages that earlier matches of a rule let through; none where there was no match.
#[derive(Debug, Default)]
pub(super) struct IcmpTypes(Vec<u8>);

impl IcmpTypes {
    /// Remembers a match on the type.
    fn note(&mut self, field: Payload, right: &Expression) {
        if !matches!(field, Payload::ICMP_TYPE | Payload::ICMPV6_TYPE) {
            return;
        }
        let number = |e: &Expression| match e.member() {
            Expression::Value(Value::Number(number)) => u8::try_from(*number).ok(),
            _ => None,
        };
        self.0 = match right {
            Expression::Set(members) => members.iter().map(number).collect::<Option<_>>().unwrap_or_default(),
            single => number(single).into_iter().collect(),
        };
    }

    /// Whether the type has to be matched before a field that not all have.
    pub(super) fn narrow(&mut self, field: Payload, expression: &Expression) -> Result<bool, LowerError> {
        let types = field.icmp_types();
        let fits = |known: &u8| types.contains(known);
        if types.is_empty() || !self.0.is_empty() && self.0.iter().all(fits) {
            return Ok(false);
        }
        if !self.0.is_empty() && !self.0.iter().any(fits) {
            return Err(LowerError::Unsupported {
                what: "the rule matches a type of ICMP message that does not have this",
                expression: expression.to_string(),
            });
        }
        self.0 = types.to_vec();
        Ok(true)
    }
}

/// The field that tells the types of messages apart which have another.
pub(super) fn icmp_type_of(field: Payload) -> Payload {
    if field.protocol() == "icmp" { Payload::ICMP_TYPE } else { Payload::ICMPV6_TYPE }
}
