//! The protocols that a rule has matched so far: they decide the meaning of later statements, and whether
//! nft accepts them.

use crate::expr::MetaKey;
use crate::family::Family;
use crate::text::parse::error::Problem;
use crate::text::parse::lexer::Span;
use crate::text::parse::parser::{Parsed, Parser};
use crate::tree::exthdr::Exthdr;
use crate::tree::{Ct, Expression, Match, MatchOp, Payload, Reject, Statement, Value};

/// The protocols fixed by the statements of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Context {
    /// Whether a whole rule is parsed, not a single expression.
    is_rule: bool,
    pub(crate) network: Option<Family>,
    transport: Option<Transport>,
    /// Whether the `EtherType` of the frame is that of a network protocol.
    is_untagged: bool,
    /// Whether the frame has a VLAN tag.
    is_tagged: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    One(u8),
    /// One of several, which nft does not tell apart: it refuses the fields of any.
    Several(u8, u8),
    /// Another protocol than those whose fields the language has.
    Unknown,
}

impl Context {
    /// That of a rule at its start.
    pub(crate) fn of(family: Family) -> Self {
        let network = matches!(family, Family::IP | Family::IP6 | Family::ARP).then_some(family);
        Self { is_rule: true, network, transport: None, is_untagged: false, is_tagged: false }
    }

    /// Refuses ports where no transport protocol is known.
    pub(crate) fn check_transport(self, what: &str, span: Span) -> Parsed<()> {
        if !self.is_rule || self.transport.is_some() {
            return Ok(());
        }
        Err(Problem::new(span, format!("{what} needs a match on the transport protocol before it"))
            .help("say `meta l4proto tcp`, or match a port"))
    }

    /// Whether a rule in a table of this family may still match packets of both IPv4 and IPv6.
    pub(crate) fn may_be_of_two_families(self, family: Family) -> bool {
        self.is_rule && self.network.is_none() && !matches!(family, Family::IP | Family::IP6)
    }
}

impl Parser<'_, '_> {
    /// Notes a field of a header, which implies its protocol.
    pub(crate) fn meets(&mut self, field: Payload, span: Span) -> Parsed<()> {
        if !self.context.is_rule {
            return Ok(());
        }
        let family = self.family();
        let protocol = field.protocol();
        let wanted = match protocol {
            "ip" => Some(Family::IP),
            "ip6" => Some(Family::IP6),
            "arp" => Some(Family::ARP),
            "vlan" if self.context.is_untagged => return Err(conflict("ether", "vlan", span)),
            // Packets of both IP versions may carry any protocol number, so nft keeps the version that the
            // table or an earlier match determines.
            "icmp" | "igmp" | "icmpv6" if matches!(self.context.network, Some(Family::IP | Family::IP6)) => {
                None
            }
            "icmp" | "igmp" => Some(Family::IP),
            "icmpv6" => Some(Family::IP6),
            _ => None,
        };
        // nft does not ask for the network protocol again once `meta l4proto` says what is in the packet.
        let is_known = field.transport().is_some_and(|of| self.context.transport == Some(Transport::One(of)));
        if let Some(wanted) = wanted.filter(|_| !is_known) {
            self.meets_network(wanted, span)?;
            if family == Family::INET && wanted == Family::ARP {
                return Err(Problem::new(span, "a table of family inet has no ARP packets"));
            }
        }
        self.context.is_tagged |= protocol == "vlan";
        let Some(number) = field.transport() else { return Ok(()) };
        if self.context.network == Some(Family::ARP) {
            return Err(conflict("arp", protocol, span));
        }
        let name = |number| Payload::protocol_of(number).unwrap_or("another protocol");
        match self.context.transport {
            Some(Transport::One(other)) if other != number => Err(conflict(name(other), protocol, span)),
            Some(Transport::Several(one, other)) => {
                let other = if one == number { other } else { one };
                Err(conflict(name(other), protocol, span)
                    .help("match the fields of one protocol in each rule"))
            }
            Some(Transport::Unknown) => Err(conflict("another protocol", protocol, span)),
            _ => {
                self.context.transport = Some(Transport::One(number));
                Ok(())
            }
        }
    }

    /// Notes an extension header or an option, which implies the protocol that has it.
    pub(crate) fn meets_extension(&mut self, field: Exthdr, span: Span) -> Parsed<()> {
        use crate::expr::ExthdrOp;
        match field.op() {
            _ if !self.context.is_rule => Ok(()),
            ExthdrOp::IPV6 => self.meets_network(Family::IP6, span),
            ExthdrOp::IPV4 => self.meets_network(Family::IP, span),
            _ => Ok(()),
        }
    }

    /// Refuses what only packets of another network protocol have.
    pub(crate) fn check_network(&self, wanted: Family, span: Span) -> Parsed<()> {
        match self.context.network {
            Some(other) if other != wanted => Err(conflict(&other.to_string(), &wanted.to_string(), span)),
            _ => Ok(()),
        }
    }

    fn meets_network(&mut self, wanted: Family, span: Span) -> Parsed<()> {
        match self.context.network {
            Some(other) if other != wanted => Err(conflict(&other.to_string(), &wanted.to_string(), span)),
            _ => {
                self.context.network = Some(wanted);
                self.note_network_of_frame();
                Ok(())
            }
        }
    }

    /// Notes that the frame has no VLAN tag, unless one was matched before: nft takes the network protocol for
    /// what is behind the Ethernet header then.
    fn note_network_of_frame(&mut self) {
        let is_frame = matches!(self.family(), Family::BRIDGE | Family::NETDEV);
        self.context.is_untagged |= is_frame && !self.context.is_tagged;
    }

    /// Refuses to ask for the family where the table has only one.
    pub(crate) fn check_meta(&self, key: MetaKey, span: Span) -> Parsed<()> {
        if key == MetaKey::NFPROTO && self.context.is_rule && self.family() != Family::INET {
            return Err(Problem::new(span, "`meta nfproto` is only for tables of family inet"));
        }
        Ok(())
    }

    /// Notes the protocol that a statement fixes by comparing it.
    pub(crate) fn note_statement(&mut self, statement: &Statement) {
        let Statement::Match(comparison) = statement else { return };
        let Match { left, op: MatchOp::In | MatchOp::Eq, right } = &**comparison else { return };
        let numbers: Vec<u64> = match right {
            Expression::Value(Value::Number(number)) => vec![*number],
            Expression::Set(members) => members
                .iter()
                .filter_map(|member| match member.member() {
                    Expression::Value(Value::Number(number)) => Some(*number),
                    _ => None,
                })
                .collect(),
            _ => return,
        };
        // Of several, nft keeps the last one where the network protocol is meant.
        let last = numbers.last().copied();
        match left {
            Expression::Meta(MetaKey::L4PROTO) => self.note_transport(&numbers, Some(Transport::Unknown)),
            Expression::Payload(Payload::IP_PROTOCOL | Payload::IP6_NEXTHDR) => {
                self.note_transport(&numbers, None);
            }
            Expression::Meta(MetaKey::NFPROTO)
            | Expression::Ct(Ct { key: crate::expr::CtKey::L3PROTO, .. }) => {
                if let Some(family) = last.and_then(|number| u8::try_from(number).ok()).map(Family)
                    && matches!(family, Family::IP | Family::IP6)
                {
                    self.context.network = Some(family);
                }
            }
            Expression::Meta(MetaKey::PROTOCOL) => {
                self.note_network_of_frame();
                if matches!(self.family(), Family::BRIDGE | Family::NETDEV) {
                    self.context.network = last.and_then(network_of).or(self.context.network);
                }
            }
            Expression::Payload(Payload::ETHER_TYPE | Payload::VLAN_TYPE) => {
                let network = last.and_then(network_of);
                self.context.network = network.or(self.context.network);
                let is_frame = *left == Expression::Payload(Payload::ETHER_TYPE);
                self.context.is_untagged |= is_frame && network.is_some();
                self.context.is_tagged |= is_frame && matches!(last, Some(0x8100 | 0x88a8 | 0x9100));
            }
            _ => {}
        }
    }

    /// Notes the transport protocols that a rule has been narrowed to; those without fields are `other`.
    fn note_transport(&mut self, numbers: &[u64], other: Option<Transport>) {
        let known = |number: &u64| u8::try_from(*number).ok().filter(|n| Payload::protocol_of(*n).is_some());
        let mut all = numbers.iter().filter_map(known);
        let has_other = other.is_some() && numbers.iter().any(|number| known(number).is_none());
        let noted = match (all.next(), all.find(|of| Some(*of) != numbers.iter().find_map(known))) {
            (Some(_), _) if has_other => other,
            (Some(one), Some(other)) => Some(Transport::Several(one, other)),
            (Some(one), None) => Some(Transport::One(one)),
            (None, _) => other.filter(|_| !numbers.is_empty()),
        };
        // Of those that were matched before nft forgets none.
        self.context.transport = match (self.context.transport, noted) {
            (Some(Transport::One(before)), Some(Transport::One(now))) if before != now => {
                Some(Transport::Several(before, now))
            }
            (Some(before @ (Transport::Several(..) | Transport::Unknown)), _) => Some(before),
            (before, noted) => noted.or(before),
        };
    }

    /// Checks `reject` against the protocols that the rule has matched so far, and completes the default.
    pub(crate) fn check_reject(&self, reject: Reject, span: Span) -> Parsed<Reject> {
        if !self.context.is_rule {
            return Ok(reject);
        }
        let family = self.family();
        let wanted = match reject {
            Reject::Default if matches!(family, Family::IP | Family::IP6) => return Ok(reject),
            Reject::Default => {
                return Ok(match self.context.network {
                    Some(Family::IP) => Reject::Icmp(PORT_UNREACHABLE),
                    Some(Family::IP6) => Reject::Icmpv6(PORT_UNREACHABLE_V6),
                    _ => reject,
                });
            }
            Reject::TcpReset => {
                return match self.context.transport {
                    Some(Transport::One(number)) if number != TCP => {
                        let name = Payload::protocol_of(number).unwrap_or("this protocol");
                        Err(Problem::new(span, format!("`tcp reset` is not for packets of {name}")))
                    }
                    Some(Transport::Several(..) | Transport::Unknown) => {
                        Err(Problem::new(span, "`tcp reset` is only for packets of tcp"))
                    }
                    _ => Ok(reject),
                };
            }
            Reject::Icmpx(_) if matches!(family, Family::IP | Family::IP6) => {
                return Err(Problem::new(span, format!("`icmpx` is not for tables of family {family}"))
                    .help(if family == Family::IP { "say `icmp`" } else { "say `icmpv6`" }));
            }
            Reject::Icmpx(_) => return Ok(reject),
            Reject::Icmp(_) => Family::IP,
            Reject::Icmpv6(_) => Family::IP6,
        };
        match self.context.network {
            Some(other) if other != wanted => Err(conflict(&other.to_string(), &wanted.to_string(), span)),
            _ => Ok(reject),
        }
    }
}

/// The network protocol of an `EtherType`.
fn network_of(ether_type: u64) -> Option<Family> {
    match ether_type {
        0x0800 => Some(Family::IP),
        0x0806 => Some(Family::ARP),
        0x86dd => Some(Family::IP6),
        _ => None,
    }
}

fn conflict(first: &str, second: &str, span: Span) -> Box<Problem> {
    Problem::new(span, format!("conflicting protocols: no packet is of {first} and of {second}"))
}

const PORT_UNREACHABLE: u8 = 3;
const PORT_UNREACHABLE_V6: u8 = 4;
const TCP: u8 = 6;
