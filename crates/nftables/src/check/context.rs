//! The protocols that a rule has matched so far: they decide the meaning of later statements, and whether
//! nft accepts them.
//!
//! A match of any of several protocols tells none of them, but which there may be: nft 1.0.6 takes the last one
//! that was written, so that `meta nfproto { ipv4, ipv6 } reject` answers as for IPv6 alone.

use crate::check::LowerError;
use crate::expr::{CtKey, ExthdrOp, MetaKey};
use crate::family::Family;
use crate::tree::exthdr::Exthdr;
use crate::tree::{Ct, Expression, Match, MatchOp, Payload, Reject, Statement, Value};

/// The protocols fixed by the statements of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Context {
    /// The family of the table; `None` where a single expression is read, and no rule.
    family: Option<Family>,
    pub(crate) network: Option<Family>,
    /// Whether a match has left packets of IPv4, and of IPv6, where it has left those of several protocols.
    several: Option<[bool; 2]>,
    transport: Option<Transport>,
    /// The transport protocol that was written last, which is what nft 1.0.6 holds a `tcp reset` against: of
    /// `{ udp, tcp }` it is TCP.
    last_transport: Option<u64>,
    /// Whether the `EtherType` of the frame is that of a network protocol.
    is_untagged: bool,
    /// Whether the frame has a VLAN tag.
    is_tagged: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    One(u8),
    /// One of several, which nft does not tell apart: it refuses the fields of any.
    Several {
        one: u8,
        other: u8,
    },
    /// Another protocol than those whose fields the language has, or several, one of which is such.
    Unknown,
}

/// Why something is not possible where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Clash {
    /// No packet is of both protocols.
    Protocols { first: String, second: String, help: Option<&'static str> },
    /// It is said.
    Said { message: String, help: Option<String> },
}

impl Clash {
    pub(crate) fn said(message: impl Into<String>) -> Self {
        Self::Said { message: message.into(), help: None }
    }

    pub(crate) fn help(self, text: impl Into<String>) -> Self {
        match self {
            Self::Said { message, .. } => Self::Said { message, help: Some(text.into()) },
            other => other,
        }
    }

    /// Returns the error for an expression or statement.
    pub(crate) fn of(self, expression: &dyn std::fmt::Display) -> LowerError {
        match self {
            Self::Protocols { first, .. } => {
                LowerError::Conflict { known: first, expression: expression.to_string() }
            }
            Self::Said { message, help } => LowerError::Misplaced { message, help },
        }
    }
}

impl Context {
    /// That of a rule at its start.
    pub(crate) fn of(family: Family) -> Self {
        let network = matches!(family, Family::IP | Family::IP6 | Family::ARP).then_some(family);
        Self { family: Some(family), network, ..Self::default() }
    }

    pub(crate) fn family(self) -> Option<Family> {
        self.family
    }

    /// Refuses ports where no transport protocol is known.
    pub(crate) fn check_transport(self, what: &str) -> Result<(), Clash> {
        if self.family.is_none() || self.transport.is_some() {
            return Ok(());
        }
        Err(Clash::said(format!("{what} needs a match on the transport protocol before it"))
            .help("say `meta l4proto tcp`, or match a port"))
    }

    /// Whether the packets may still be of both IPv4 and IPv6.
    pub(crate) fn may_be_of_two_families(self) -> bool {
        self.network.is_none() && !matches!(self.family, None | Some(Family::IP | Family::IP6))
    }

    /// Whether a match has left packets of this family among those of several.
    pub(crate) fn has_left(self, family: Family) -> bool {
        match (self.several, family) {
            (Some([v4, _]), Family::IP) => v4,
            (Some([_, v6]), Family::IP6) => v6,
            _ => false,
        }
    }

    /// Notes a field of a header, which implies its protocol.
    pub(crate) fn meets(&mut self, field: Payload) -> Result<(), Clash> {
        let Some(family) = self.family else { return Ok(()) };
        let protocol = field.protocol();
        let wanted = match protocol {
            "ip" => Some(Family::IP),
            "ip6" => Some(Family::IP6),
            "arp" => Some(Family::ARP),
            "vlan" if self.is_untagged => return Err(conflict("ether", "vlan")),
            // Packets of both IP versions may carry any protocol number, so nft keeps the version that the
            // table or an earlier match determines.
            "icmp" | "igmp" | "icmpv6" if matches!(self.network, Some(Family::IP | Family::IP6)) => None,
            "icmp" | "igmp" => Some(Family::IP),
            "icmpv6" => Some(Family::IP6),
            _ => None,
        };
        // nft does not ask for the network protocol again once `meta l4proto` says what is in the packet.
        let is_known = field.transport().is_some_and(|of| self.transport == Some(Transport::One(of)));
        if let Some(wanted) = wanted.filter(|_| !is_known) {
            self.meets_network(wanted)?;
            if family == Family::INET && wanted == Family::ARP {
                return Err(Clash::said("a table of family inet has no ARP packets"));
            }
        }
        self.is_tagged |= protocol == "vlan";
        let Some(number) = field.transport() else { return Ok(()) };
        if self.network == Some(Family::ARP) && !is_known {
            return Err(conflict("arp", protocol));
        }
        let name = |number| Payload::protocol_of(number).unwrap_or("another protocol");
        match self.transport {
            Some(Transport::One(other)) if other != number => Err(conflict(name(other), protocol)),
            Some(Transport::Several { one, other }) => {
                let other = if one == number { other } else { one };
                Err(Clash::Protocols {
                    first: name(other).to_owned(),
                    second: protocol.to_owned(),
                    help: Some("match the fields of one protocol in each rule"),
                })
            }
            Some(Transport::Unknown) => Err(conflict("another protocol", protocol)),
            _ => {
                self.transport = Some(Transport::One(number));
                self.last_transport = Some(number.into());
                Ok(())
            }
        }
    }

    /// Notes an extension header or an option, which implies the protocol that has it.
    pub(crate) fn meets_extension(&mut self, field: Exthdr) -> Result<(), Clash> {
        match field.op() {
            _ if self.family.is_none() => Ok(()),
            ExthdrOp::IPV6 => self.meets_network(Family::IP6),
            ExthdrOp::IPV4 => self.meets_network(Family::IP),
            _ => Ok(()),
        }
    }

    /// Refuses what only packets of another network protocol have.
    pub(crate) fn check_network(self, wanted: Family) -> Result<(), Clash> {
        match self.network {
            Some(other) if other != wanted => Err(conflict(&other.to_string(), &wanted.to_string())),
            // A match has left packets of several protocols, but none of this one.
            None if self.several.is_some() && !self.has_left(wanted) => {
                Err(conflict("other protocols", &wanted.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what is done to packets of one network protocol where a match has left those of several: to nft
    /// 1.0.6 these are all of the one that was written last, and what it lists it refuses.
    pub(crate) fn check_only(self, wanted: Family) -> Result<(), Clash> {
        self.check_network(wanted)?;
        match self.network.is_none() && self.several.is_some() {
            true => Err(Clash::said(format!("the rule matches other packets than those of {wanted}"))
                .help("match one family in each rule")),
            false => Ok(()),
        }
    }

    fn meets_network(&mut self, wanted: Family) -> Result<(), Clash> {
        match self.network {
            Some(other) if other != wanted => Err(conflict(&other.to_string(), &wanted.to_string())),
            _ => {
                self.network = Some(wanted);
                self.note_network_of_frame();
                Ok(())
            }
        }
    }

    /// Notes that the frame has no VLAN tag, unless one was matched before: nft takes the network protocol for
    /// what is behind the Ethernet header then.
    fn note_network_of_frame(&mut self) {
        let is_frame = matches!(self.family, Some(Family::BRIDGE | Family::NETDEV));
        self.is_untagged |= is_frame && !self.is_tagged;
    }

    /// Refuses to ask for the family where the table has only one.
    pub(crate) fn check_meta(self, key: MetaKey) -> Result<(), Clash> {
        if key == MetaKey::NFPROTO && self.family.is_some_and(|family| family != Family::INET) {
            return Err(Clash::said("`meta nfproto` is only for tables of family inet"));
        }
        Ok(())
    }

    /// Notes the protocol that a statement fixes by comparing it.
    pub(crate) fn note_statement(&mut self, statement: &Statement) {
        let Statement::Match(comparison) = statement else { return };
        let Match { left, op: MatchOp::In | MatchOp::Eq, right } = &**comparison else { return };
        let mut is_whole = true;
        let numbers: Vec<u64> = match right {
            Expression::Value(Value::Number(number)) => vec![*number],
            Expression::Set(members) => members
                .iter()
                .filter_map(|member| match member.member() {
                    Expression::Value(Value::Number(number)) => Some(*number),
                    _ => {
                        is_whole = false;
                        None
                    }
                })
                .collect(),
            _ => return,
        };
        match left {
            Expression::Meta(MetaKey::L4PROTO)
            | Expression::Payload(Payload::IP_PROTOCOL | Payload::IP6_NEXTHDR) => {
                self.note_transport(&numbers, *left == Expression::Meta(MetaKey::L4PROTO));
            }
            Expression::Meta(MetaKey::NFPROTO) | Expression::Ct(Ct { key: CtKey::L3PROTO, .. }) => {
                let family =
                    |number: u64| u8::try_from(number).ok().map(Family).filter(|family| is_ip(*family));
                self.note_network(&numbers.iter().map(|number| family(*number)), is_whole);
            }
            Expression::Meta(MetaKey::PROTOCOL) => {
                self.note_network_of_frame();
                if matches!(self.family, Some(Family::BRIDGE | Family::NETDEV)) {
                    self.note_network(&numbers.iter().map(|number| network_of(*number)), is_whole);
                }
            }
            Expression::Payload(Payload::ETHER_TYPE | Payload::VLAN_TYPE) => {
                self.note_network(&numbers.iter().map(|number| network_of(*number)), is_whole);
                let is_frame = *left == Expression::Payload(Payload::ETHER_TYPE) && is_whole;
                let all = |of: fn(u64) -> bool| is_frame && numbers.iter().all(|number| of(*number));
                self.is_untagged |= all(|number| network_of(number).is_some());
                self.is_tagged |= all(|number| matches!(number, 0x8100 | 0x88a8 | 0x9100));
            }
            _ => {}
        }
    }

    /// Notes the network protocols that a rule has been narrowed to; `None` is one without fields.
    fn note_network(&mut self, networks: &(impl Iterator<Item = Option<Family>> + Clone), is_whole: bool) {
        let mut rest = networks.clone();
        let Some(first) = rest.next() else { return };
        if is_whole && rest.all(|other| other == first) {
            self.network = first.or(self.network);
            // Another protocol has packets of neither IP version.
            self.several = self.several.or((self.network.is_none()).then_some([false; 2]));
            return;
        }
        if self.network.is_none() {
            let has = |family| !is_whole || networks.clone().any(|network| network == Some(family));
            self.several = Some([has(Family::IP), has(Family::IP6)]);
        }
    }

    /// Notes the transport protocols that a rule has been narrowed to. `tells_others` tells whether nft learns
    /// that it is one of those without fields.
    fn note_transport(&mut self, numbers: &[u64], tells_others: bool) {
        let known = |number: &u64| u8::try_from(*number).ok().filter(|n| Payload::protocol_of(*n).is_some());
        let last = numbers.iter().rfind(|number| tells_others || known(number).is_some());
        self.last_transport = last.copied().or(self.last_transport);
        let mut all = numbers.iter().filter_map(known);
        let has_other = tells_others && numbers.iter().any(|number| known(number).is_none());
        let unknown = Some(Transport::Unknown);
        let noted = match (all.next(), all.find(|of| Some(*of) != numbers.iter().find_map(known))) {
            (Some(_), _) if has_other => unknown,
            (Some(one), Some(other)) => Some(Transport::Several { one, other }),
            // Others without fields among them are not told.
            (Some(_), None) if numbers.iter().any(|number| known(number).is_none()) => unknown,
            (Some(one), None) => Some(Transport::One(one)),
            (None, _) => unknown.filter(|_| tells_others && !numbers.is_empty()),
        };
        // Of those that were matched before nft forgets none.
        self.transport = match (self.transport, noted) {
            (Some(Transport::One(before)), Some(Transport::One(now))) if before != now => {
                Some(Transport::Several { one: before, other: now })
            }
            (Some(before @ (Transport::Several { .. } | Transport::Unknown)), _) => Some(before),
            (before, noted) => noted.or(before),
        };
    }

    /// Whether nft takes all packets for those of TCP, as that was written last.
    pub(crate) fn ends_with_tcp(self) -> bool {
        self.last_transport == Some(TCP.into())
    }

    /// Checks `reject` against the protocols that the rule has matched so far, and completes the default.
    pub(crate) fn check_reject(self, reject: Reject) -> Result<Reject, Clash> {
        let Some(family) = self.family else { return Ok(reject) };
        let wanted = match reject {
            Reject::Default if is_ip(family) => return Ok(reject),
            Reject::Default => {
                return Ok(match self.network {
                    Some(Family::IP) => Reject::Icmp(PORT_UNREACHABLE),
                    Some(Family::IP6) => Reject::Icmpv6(PORT_UNREACHABLE_V6),
                    _ => reject,
                });
            }
            Reject::TcpReset => {
                // A reset of something else drops it.
                return match self.last_transport {
                    None => Ok(reject),
                    Some(_) if self.ends_with_tcp() => Ok(reject),
                    Some(number) => {
                        let name = u8::try_from(number).ok().and_then(Payload::protocol_of);
                        let of = name.unwrap_or("another protocol");
                        Err(Clash::said(format!("`tcp reset` is not for packets of {of}"))
                            .help("match tcp before it, in a set as the last"))
                    }
                };
            }
            Reject::Icmpx(code) if code > 3 => {
                return Err(Clash::said(format!("expected a code from 0 to 3, found `{code}`")));
            }
            Reject::Icmpx(_) if is_ip(family) => {
                return Err(Clash::said(format!("`icmpx` is not for tables of family {family}"))
                    .help(if family == Family::IP { "say `icmp`" } else { "say `icmpv6`" }));
            }
            Reject::Icmpx(_) => return Ok(reject),
            Reject::Icmp(_) => Family::IP,
            Reject::Icmpv6(_) => Family::IP6,
        };
        self.check_network(wanted).map(|()| reject)
    }
}

fn is_ip(family: Family) -> bool {
    matches!(family, Family::IP | Family::IP6)
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

fn conflict(first: &str, second: &str) -> Clash {
    Clash::Protocols { first: first.to_owned(), second: second.to_owned(), help: None }
}

const PORT_UNREACHABLE: u8 = 3;
const PORT_UNREACHABLE_V6: u8 = 4;
const TCP: u8 = 6;
