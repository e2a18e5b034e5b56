//! Adds the matches that an expression implies: `tcp dport` implies that the packet is TCP.

use std::fmt;

use crate::check::LowerError;
use crate::compile::constant::Place;
use crate::compile::lower::Lower;
use crate::expr::{self, CmpOp, CtKey, ExthdrOp, MetaKey, Register};
use crate::family::Family;
use crate::tree::{Ct, Expression, MatchOp, Payload, Statement, Value};

/// The link-layer headers that earlier matches have determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Unknown,
    Ether,
    Vlan,
}

impl Lower<'_> {
    /// Adds the matches that an expression implies: `tcp dport` implies that the packet is TCP.
    pub(crate) fn imply(&mut self, expression: &Expression) -> Result<(), LowerError> {
        match expression {
            Expression::Payload(payload) => self.imply_header(*payload)?,
            Expression::Inner(inner) => self.imply_inside(*inner)?,
            Expression::Exthdr(exthdr) => match exthdr.op() {
                ExthdrOp::IPV6 => {
                    self.first(|lower| lower.imply_network_by_header(Family::IP6, expression))?;
                }
                ExthdrOp::IPV4 => {
                    self.first(|lower| lower.imply_network_by_header(Family::IP, expression))?;
                }
                // The kernel looks for TCP options, SCTP chunks and DCCP options itself, and finds none in
                // packets of another protocol.
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

    /// Moves implied matches to the start of the rule, as nft does for extension headers and `reject`. A
    /// counter before them then counts only the packets that they match.
    pub(super) fn first(
        &mut self,
        imply: impl FnOnce(&mut Self) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let rest = std::mem::take(&mut self.out.exprs);
        let mut comparisons = std::mem::take(&mut self.comparisons);
        imply(self)?;
        // The positions of noted comparisons refer to the expressions that have just been moved.
        let moved = self.out.exprs.len();
        self.out.exprs.extend(rest);
        comparisons.iter_mut().for_each(|comparison| comparison.move_down(moved));
        if self.is_merged {
            // The comparisons before the last statement have been merged; the new ones must not be merged
            // across that statement.
            self.comparisons.clear();
        }
        self.comparisons.append(&mut comparisons);
        Ok(())
    }

    fn imply_header(&mut self, payload: Payload) -> Result<(), LowerError> {
        match payload.protocol() {
            "ip" => self.imply_network(Family::IP, &payload)?,
            "ip6" => self.imply_network(Family::IP6, &payload)?,
            // A chain of family inet is called for IPv4 and IPv6 packets only, so such a rule would never
            // match.
            "arp" if self.family() == Family::INET => {
                return Err(LowerError::Unsupported {
                    what: "a table of family inet sees no ARP packets",
                    expression: payload.to_string(),
                });
            }
            "arp" => self.imply_network_by_header(Family::ARP, &payload)?,
            "ether" => self.imply_ethernet(),
            "vlan" => self.imply_vlan(),
            // A table of one family determines the network protocol, and an ICMP protocol number its IP
            // version.
            _ if matches!(self.family(), Family::IP | Family::IP6) => {}
            _ if payload.transport().is_some_and(|number| self.transport == Some(number.into())) => {}
            // nft keeps the IP version of an earlier match: any of the two may carry any protocol number.
            "icmp" | "igmp" | "icmpv6" if self.known_network().is_some_and(is_ip) => {}
            "icmp" | "igmp" => self.imply_network_by_header(Family::IP, &payload)?,
            "icmpv6" => self.imply_network_by_header(Family::IP6, &payload)?,
            // VXLAN and GENEVE are identified by their UDP port only, which the rule has to match.
            "vxlan" | "geneve" => self.imply_carrier(payload.protocol(), &payload.into())?,
            _ => {}
        }
        if let Some(number) = payload.transport() {
            self.imply_transport(number.into(), &payload)?;
        }
        self.imply_icmp_type(payload)
    }

    /// Adds a match of the ICMP types that have the field, unless all have it.
    fn imply_icmp_type(&mut self, field: Payload) -> Result<(), LowerError> {
        // ICMP message types use the same bytes for different fields: `icmp id` of an echo request is the
        // start of `icmp gateway` of a redirect.
        if self.icmp.narrow(field, &field.into())? {
            let of = icmp_type_of(field);
            self.load_payload(of.base(), of.offset(), of.bits(), 0);
            self.compare_icmp_type(of, field.icmp_types())?;
            // Later fields of the message may be merged with this comparison.
            self.note_comparison(false);
        }
        Ok(())
    }

    /// Compares the ICMP type in the first register.
    pub(super) fn compare_icmp_type(&mut self, of: Payload, types: &[u8]) -> Result<(), LowerError> {
        // nft compares with a single type, and looks several up in an anonymous set.
        if let [only] = types {
            self.compare(0, CmpOp::EQ, vec![*only]);
            return Ok(());
        }
        let members: Vec<Expression> = types.iter().map(|of| Value::Number((*of).into()).into()).collect();
        let (set, number) = self.anonymous_set(&of.into(), &[Place::of(of.part())], &members)?;
        self.push_lookup(MatchOp::In, set, Some(number));
        Ok(())
    }

    /// Adds the match of the network protocol that `of` implies.
    pub(crate) fn imply_network(&mut self, family: Family, of: &dyn fmt::Display) -> Result<(), LowerError> {
        // In a bridge table nft matches `meta protocol`, for which the kernel has already skipped VLAN tags,
        // unless the rule matches a tag itself.
        let by_kernel = self.family() == Family::BRIDGE && self.link != Link::Vlan;
        self.imply_network_by(family, by_kernel, of)
    }

    /// Adds the match of the network protocol for a header that belongs to one IP version. If there is a
    /// link-layer header, nft matches its protocol field.
    fn imply_network_by_header(&mut self, family: Family, of: &dyn fmt::Display) -> Result<(), LowerError> {
        self.imply_network_by(family, false, of)
    }

    fn imply_network_by(
        &mut self,
        family: Family,
        by_kernel: bool,
        expression: &dyn fmt::Display,
    ) -> Result<(), LowerError> {
        let own = self.family();
        // The table or an earlier match determines the protocol already.
        if own == family || self.network == Some(u64::from(family.0)) {
            return Ok(());
        }
        let of_table = matches!(own, Family::IP | Family::IP6 | Family::ARP).then_some(own);
        let matched = || self.network.and_then(|number| u8::try_from(number).ok()).map(Family);
        if let Some(known) = of_table.or_else(matched) {
            return Err(conflict(&known.to_string(), expression));
        }
        self.network = Some(u64::from(family.0));
        let of = match family {
            Family::IP => 0x0800_u16,
            Family::ARP => 0x0806,
            _ => 0x86dd,
        };
        let header = match (self.link, own) {
            // After a VLAN tag the protocol is in the tag, not in the Ethernet header.
            (Link::Vlan, _) => Payload::VLAN_TYPE,
            (Link::Ether, _) | (Link::Unknown, Family::BRIDGE) if !by_kernel => Payload::ETHER_TYPE,
            // Chains of family inet see only IPv4 and IPv6, and the hook knows which, so the frame is not
            // needed.
            (_, Family::INET) => {
                self.match_meta(MetaKey::NFPROTO, vec![family.0]);
                return Ok(());
            }
            // In a netdev chain `meta nfproto` is the family of the hook, not of the packet.
            _ => {
                self.match_meta(MetaKey::PROTOCOL, of.to_be_bytes().to_vec());
                return Ok(());
            }
        };
        self.match_type(header, of);
        Ok(())
    }

    /// Adds the match of the transport protocol that `of` implies: once, however many fields of the header a
    /// rule matches.
    pub(crate) fn imply_transport(&mut self, protocol: u64, of: &dyn fmt::Display) -> Result<(), LowerError> {
        match self.transport {
            Some(known) if known == protocol => {}
            Some(known) => {
                let name = u8::try_from(known).ok().and_then(Payload::protocol_of);
                return Err(conflict(name.unwrap_or("another protocol"), of));
            }
            None => {
                self.transport = Some(protocol);
                self.match_meta(MetaKey::L4PROTO, vec![u8::try_from(protocol).unwrap_or(u8::MAX)]);
            }
        }
        Ok(())
    }

    fn imply_ethernet(&mut self) {
        // ARPHRD_ETHER: on devices of other types the bytes before the network header are not an Ethernet
        // header. Bridges only carry Ethernet frames.
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
            // The kernel stores the first VLAN tag outside of the frame, but inserts it for loads from the
            // link layer (`nft_payload_copy_vlan`), so it can be matched there.
            self.match_type(Payload::ETHER_TYPE, 0x8100);
        }
    }

    /// Matches the field of a link-layer header that contains the next protocol.
    fn match_type(&mut self, field: Payload, of: u16) {
        self.load_start(field, field.bits(), 0);
        self.compare(0, CmpOp::EQ, of.to_be_bytes().to_vec());
        // Later loads rely on this comparison: it may absorb others, but must not be absorbed.
        self.note_comparison(true);
    }

    fn match_meta(&mut self, key: MetaKey, bytes: Vec<u8>) {
        self.push(expr::Meta { dreg: Some(Register::word(0)), key, sreg: None });
        self.compare(0, CmpOp::EQ, bytes);
    }

    /// Returns the offset in bits of a field from its base.
    pub(super) fn offset_of(&self, field: Payload) -> u16 {
        offset_within(field, self.inner_tags)
    }

    /// Records the protocol that a match determines, so that later matches need not imply it.
    pub(super) fn note_protocol(&mut self, left: &Expression, op: MatchOp, right: &Expression) {
        // `!=`, `<` and `>` do not determine the protocol.
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
            // nft has no headers of other protocols, so it learns nothing from such a match.
            Expression::Meta(MetaKey::L4PROTO)
            | Expression::Payload(Payload::IP_PROTOCOL | Payload::IP6_NEXTHDR)
                if u8::try_from(*number).is_ok_and(|number| Payload::protocol_of(number).is_some()) =>
            {
                self.transport = Some(*number);
            }
            Expression::Inner(inner) => self.note_inside(*inner, *number),
            Expression::Meta(MetaKey::NFPROTO) | Expression::Ct(Ct { key: CtKey::L3PROTO, .. }) => {
                self.network = Some(*number);
            }
            // `meta iiftype ether` is the match that `ether` fields imply.
            Expression::Meta(MetaKey::IIFTYPE) if *number == 1 && self.link == Link::Unknown => {
                self.link = Link::Ether;
            }
            // 802.1Q or 802.1ad: a VLAN tag follows.
            Expression::Payload(Payload::ETHER_TYPE) if matches!(number, 0x8100 | 0x88a8) => {
                self.link = Link::Vlan;
            }
            // Another VLAN tag follows, so fields of `vlan` refer to that one.
            Expression::Payload(Payload::VLAN_TYPE) if matches!(number, 0x8100 | 0x88a8) => {
                self.inner_tags = self.inner_tags.saturating_add(1);
            }
            // In family inet nft adds `meta nfproto` all the same.
            Expression::Meta(MetaKey::PROTOCOL) if self.family() == Family::INET => {}
            Expression::Meta(MetaKey::PROTOCOL)
            | Expression::Payload(Payload::ETHER_TYPE | Payload::VLAN_TYPE) => {
                let family = family_of(*number);
                // Another EtherType tells nothing about IP.
                self.network = family.map(|family| family.0.into()).or(self.network);
            }
            _ => {}
        }
    }

    /// Returns whether a statement is `meta protocol ip` in a table of family ip, or the same for ip6. nft
    /// drops it, unless it is the last one of a rule.
    pub(super) fn is_implied(&self, statement: &Statement) -> bool {
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

fn is_ip(family: Family) -> bool {
    matches!(family, Family::IP | Family::IP6)
}

fn conflict(known: &str, expression: &dyn fmt::Display) -> LowerError {
    LowerError::Conflict { known: known.to_owned(), expression: expression.to_string() }
}

/// Returns the offset in bits of a field from its base. A field of `vlan` belongs to the innermost tag that
/// was matched.
pub(crate) fn offset_within(field: Payload, inner_tags: u16) -> u16 {
    /// `struct vlan_hdr`
    const TAG: u16 = 32;
    /// The kernel refuses to load from offsets above 255.
    const TOO_FAR: u16 = 64;
    let tags = if field.protocol() == "vlan" { inner_tags.min(TOO_FAR) } else { 0 };
    field.offset() + tags * TAG
}

/// Returns the network protocol of an Ethernet type.
pub(crate) fn family_of(ether_type: u64) -> Option<Family> {
    match ether_type {
        0x0800 => Some(Family::IP),
        0x86dd => Some(Family::IP6),
        0x0806 => Some(Family::ARP),
        _ => None,
    }
}

/// The ICMP types that earlier matches of the rule allow; empty without such a match.
#[derive(Debug, Default)]
pub(super) struct IcmpTypes(Vec<u8>);

impl IcmpTypes {
    /// Records a match of the ICMP type.
    fn note(&mut self, field: Payload, right: &Expression) {
        if !matches!(field, Payload::ICMP_TYPE | Payload::ICMPV6_TYPE) {
            return;
        }
        let number = |e: &Expression| match e.member() {
            Expression::Value(Value::Number(number)) => u8::try_from(*number).ok(),
            _ => None,
        };
        // A range or prefix among the members allows types that nft does not enumerate: it counts as no
        // match.
        self.0 = match right {
            Expression::Set(members) => members.iter().map(number).collect::<Option<_>>().unwrap_or_default(),
            single => number(single).into_iter().collect(),
        };
    }

    /// Returns whether the ICMP type has to be matched before a field that only some types have.
    pub(super) fn narrow(&mut self, field: Payload, expression: &Expression) -> Result<bool, LowerError> {
        let types = field.icmp_types();
        let fits = |known: &u8| types.contains(known);
        if types.is_empty() || !self.0.is_empty() && self.0.iter().all(fits) {
            return Ok(false);
        }
        // nft refuses the rule even if only some of the types lack the field.
        if !self.0.is_empty() {
            return Err(LowerError::Unsupported {
                what: "the rule matches an ICMP message type without this field",
                expression: expression.to_string(),
            });
        }
        // Later fields only need a match if they exclude some of these types.
        self.0 = types.to_vec();
        Ok(true)
    }
}

/// Returns the field with the ICMP type for another field of the message.
pub(super) fn icmp_type_of(field: Payload) -> Payload {
    if field.protocol() == "icmp" { Payload::ICMP_TYPE } else { Payload::ICMPV6_TYPE }
}
