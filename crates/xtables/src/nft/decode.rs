//! What the expressions of a rule say in terms of iptables.
//!
//! A rule of iptables is one of whose expressions every one became words that mean the same: what is left out
//! of a match means more packets. iptables-nft 1.8.9 leaves out what it does not know of sets, ranges,
//! operators and registers; such a rule has no words here. Of rules that nft wrote into the table, those are
//! read that the tool reads as they are.

use std::borrow::Cow;
use std::fmt;

use sluicegate_iptables_save::{Counters, Family, encode as bytes_of};
use sluicegate_netlink::attr::Attributes;
use sluicegate_nftables::expr::kind::{Bitwise, Cmp, Immediate, Limit, Log, Meta, Range};
use sluicegate_nftables::expr::{
    BitwiseOp, CmpOp, Data, Expr, Invert, LimitType, MetaKey, PayloadBase, RangeOp, Register, Unknown,
};
use sluicegate_nftables::lang::Verdict;

use super::encode::{
    FRAGMENT_MASK, FRAGMENT_OFFSET, INV_DESTINATION, INV_FLAGS, INV_SOURCE, LIMIT_SCALE, NFLOG_COPY_LENGTH,
    NFTA_LOG_GROUP, NFTA_LOG_PREFIX, NFTA_LOG_QTHRESHOLD, NFTA_LOG_SNAPLEN, NO_INTERFACE, Ports,
    TCP_FLAGS_OFFSET, address_offsets, limit_of,
};
use super::head::{Head, Interface, Network, address_size};
use crate::extension::wire::{Reader, Writer};
use crate::extension::{Binary, Kind, codec_for};
use crate::rule::{Action, Rule, is_chain};

/// What a rule of the kernel says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) rule: Rule,
    pub(super) counters: Counters,
    /// The prefix of `NFLOG` if it is longer than the structure of the extension can hold.
    pub(super) long_prefix: Option<String>,
}

/// Why a rule has no words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoWords {
    /// An expression for which iptables-nft takes the whole chain for incompatible: its name.
    Expression(String),
    /// What an expression says that has no words: `a set`.
    Meaning(&'static str),
}

impl fmt::Display for NoWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expression(name) => f.write_str(name),
            Self::Meaning(what) => f.write_str(what),
        }
    }
}

type Decode = Result<(), NoWords>;

/// Decodes a rule: its expressions, and the comment in its user data, where nft has comments. `links` has the
/// names of interfaces.
///
/// # Errors
/// What iptables has no words for.
pub(super) fn decode(
    exprs: &[Expr],
    comment: Option<&str>,
    family: Family,
    links: &dyn Fn(u32) -> Option<String>,
) -> Result<Decoded, NoWords> {
    if let Some(expr) = exprs.iter().find(|expr| !is_compatible(expr)) {
        return Err(NoWords::Expression(expr.name().to_owned()));
    }
    let mut decoder = Decoder::new(family, links);
    exprs.iter().try_for_each(|expr| decoder.expr(expr))?;
    if let Some(comment) = comment {
        let mut out = Writer::default();
        let kept = bytes_of(comment).iter().copied().take(COMMENT_SIZE - 1).collect::<Vec<_>>();
        out.bytes(&kept);
        out.zeros(COMMENT_SIZE - kept.len());
        decoder.push_match("comment", 0, out.finish());
    }
    Ok(decoder.finish())
}

/// Returns whether iptables-nft takes a table with this expression for one of its own.
fn is_compatible(expr: &Expr) -> bool {
    match expr {
        Expr::Limit(Limit { of, flags, .. }) => {
            of.is_none_or(|of| of == LimitType::PACKETS) && flags.is_none_or(|flags| flags == Invert::empty())
        }
        Expr::Log(log) => log.group.is_some(),
        Expr::Unknown(unknown) => nflog(unknown).is_some(),
        Expr::XtMatch(_)
        | Expr::XtTarget(_)
        | Expr::Payload(_)
        | Expr::Meta(_)
        | Expr::Cmp(_)
        | Expr::Bitwise(_)
        | Expr::Counter(_)
        | Expr::Immediate(_)
        | Expr::Lookup(_)
        | Expr::Range(_) => true,
        _ => false,
    }
}

/// What a register has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Meta(MetaKey),
    Payload { base: PayloadBase, offset: u32, len: u32 },
    Constant { is_one: bool },
}

#[derive(Debug, Clone)]
struct Loaded {
    register: Register,
    source: Source,
    mask: Option<Vec<u8>>,
}

struct Decoder<'a> {
    family: Family,
    links: &'a dyn Fn(u32) -> Option<String>,
    head: Head,
    matches: Vec<Binary>,
    action: Option<Action>,
    counters: Counters,
    long_prefix: Option<String>,
    registers: Vec<Loaded>,
    /// The match of the first port or flag, to which the others belong.
    transport: Option<usize>,
    /// The conditions on ports, flags and ICMP types that were read already.
    seen: Conditions,
    /// Whether a match came that counts what it sees: a condition behind it in the kernel would be one before
    /// it in the words.
    counts: bool,
}

/// Conditions that there can be one of.
#[derive(Debug, Default)]
struct Conditions {
    source_port: Bound,
    destination_port: Bound,
    flags: bool,
    icmp: bool,
}

/// What is said of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Bound {
    #[default]
    Nothing,
    Low,
    High,
    Whole,
}

impl<'a> Decoder<'a> {
    fn new(family: Family, links: &'a dyn Fn(u32) -> Option<String>) -> Self {
        Self {
            family,
            links,
            head: Head::default(),
            matches: Vec::new(),
            action: None,
            counters: Counters::default(),
            long_prefix: None,
            registers: Vec::new(),
            transport: None,
            seen: Conditions::default(),
            counts: false,
        }
    }

    fn finish(self) -> Decoded {
        let action = self.action.unwrap_or(Action::Continue);
        let rule = Rule { head: self.head.write(self.family), matches: self.matches, action };
        Decoded { rule, counters: self.counters, long_prefix: self.long_prefix }
    }

    fn expr(&mut self, expr: &Expr) -> Decode {
        if let Expr::Counter(counter) = expr {
            let (packets, bytes) = (counter.packets.unwrap_or_default(), counter.bytes.unwrap_or_default());
            self.counters = Counters { packets, bytes };
            return Ok(());
        }
        if self.action.is_some() {
            return no("something behind the target");
        }
        match expr {
            Expr::Payload(load) => match load.dreg {
                Some(register) => {
                    let (base, offset, len) = (load.base, load.offset, load.len);
                    self.load(register, Source::Payload { base, offset, len });
                    Ok(())
                }
                None => no("a change of the packet"),
            },
            Expr::Meta(meta) => self.meta(meta),
            Expr::Bitwise(bits) => self.bitwise(bits),
            Expr::Cmp(compare) => self.compare(compare),
            Expr::Range(range) => self.range(range),
            Expr::Immediate(immediate) => self.immediate(immediate),
            Expr::Limit(limit) => self.limit(limit),
            Expr::Log(log) => self.log(log, &bytes_of(log.prefix.as_deref().unwrap_or_default())),
            Expr::Unknown(unknown) => match nflog(unknown) {
                Some((log, prefix)) => self.log(&log, prefix),
                None => no("an expression"),
            },
            Expr::XtMatch(module) => {
                self.counts |= &*module.name != "comment";
                self.push_match(&module.name, module.revision, module.info.clone());
                Ok(())
            }
            Expr::XtTarget(module) => {
                let revision = u8::try_from(module.revision).unwrap_or(u8::MAX);
                let name = Cow::Owned(module.name.to_string());
                self.action = Some(Action::Target(Binary { name, revision, data: module.info.clone() }));
                Ok(())
            }
            Expr::Lookup(_) => no("a set"),
            _ => no("an expression"),
        }
    }

    /// Forgets what was in the registers that are written.
    fn load(&mut self, register: Register, source: Source) {
        let len = match source {
            Source::Payload { len, .. } => len,
            Source::Meta(_) | Source::Constant { .. } => 16,
        };
        let first = register_at(register);
        let last = first.saturating_add(len);
        self.registers.retain(|loaded| {
            let at = register_at(loaded.register);
            let len = match loaded.source {
                Source::Payload { len, .. } => len,
                Source::Meta(_) | Source::Constant { .. } => 16,
            };
            at.saturating_add(len) <= first || last <= at
        });
        self.registers.push(Loaded { register, source, mask: None });
    }

    fn loaded(&self, register: Register) -> Option<&Loaded> {
        self.registers.iter().find(|loaded| loaded.register == register)
    }

    /// A load; or `meta nftrace set 1`, which is `TRACE`.
    fn meta(&mut self, meta: &Meta) -> Decode {
        if let Some(register) = meta.dreg {
            self.load(register, Source::Meta(meta.key));
            return Ok(());
        }
        let source = meta.sreg.and_then(|register| self.loaded(register)).map(|loaded| loaded.source);
        if meta.key == MetaKey::NFTRACE && source == Some(Source::Constant { is_one: true }) {
            let trace = Binary { name: "TRACE".into(), revision: 0, data: Vec::new() };
            self.action = Some(Action::Target(trace));
            return Ok(());
        }
        no("a change of what belongs to the packet")
    }

    fn bitwise(&mut self, bits: &Bitwise) -> Decode {
        let mask = bits.mask.as_ref().and_then(Data::value).map(<[u8]>::to_vec);
        let xors =
            bits.xor.as_ref().and_then(Data::value).is_none_or(|xor| xor.iter().any(|byte| *byte != 0));
        let is_mask = !xors && bits.op.is_none_or(|op| op == BitwiseOp::BOOL) && bits.sreg == bits.dreg;
        let loaded = self.registers.iter_mut().find(|loaded| loaded.register == bits.sreg);
        match (loaded, mask) {
            (Some(loaded), Some(mask)) if is_mask && loaded.mask.is_none() => {
                loaded.mask = Some(mask);
                Ok(())
            }
            _ => no("an operation on bits"),
        }
    }

    fn compare(&mut self, Cmp { sreg, op, data }: &Cmp) -> Decode {
        let (Some(Loaded { source, mask, .. }), Some(value)) = (self.loaded(*sreg).cloned(), data.value())
        else {
            return no("a comparison of nothing");
        };
        match source {
            Source::Meta(key) => self.compare_meta(key, *op, value, mask.as_deref()),
            Source::Payload { base: PayloadBase::NETWORK, offset, len } if is_long(value, len) => {
                self.compare_network(offset, *op, value, mask.as_deref())
            }
            Source::Payload { base: PayloadBase::TRANSPORT, offset, len } if is_long(value, len) => {
                self.compare_transport(offset, *op, value, mask.as_deref())
            }
            Source::Payload { .. } | Source::Constant { .. } => no("a part of the packet"),
        }
    }

    fn compare_meta(&mut self, key: MetaKey, op: CmpOp, value: &[u8], mask: Option<&[u8]>) -> Decode {
        let not = is_not(op)?;
        if mask.is_some() && key != MetaKey::MARK {
            return no("an operation on bits");
        }
        match key {
            MetaKey::L4PROTO => self.protocol(value, not),
            MetaKey::IIFNAME | MetaKey::OIFNAME => {
                let found = interface(value, not).ok_or(NoWords::Meaning("the name of an interface"))?;
                self.interface(key == MetaKey::IIFNAME, found)
            }
            MetaKey::IIF | MetaKey::OIF => {
                let index = value.try_into().map(u32::from_ne_bytes).ok();
                let name = index.and_then(|index| (self.links)(index));
                let name = name.map(|name| [&bytes_of(&name)[..], &[0]].concat());
                let found = name.and_then(|name| interface(&name, not));
                let found = found.ok_or(NoWords::Meaning("the number of an interface"))?;
                self.interface(key == MetaKey::IIF, found)
            }
            MetaKey::MARK => {
                let mut out = Writer::default();
                out.u32(number(value)?);
                out.u32(mask.map_or(Ok(u32::MAX), number)?);
                out.u8(not.into());
                out.zeros(7);
                self.make_match("mark", 1, out.finish())
            }
            MetaKey::PKTTYPE => {
                let [kind] = *value else { return no("the type of the packet") };
                let mut out = Writer::default();
                out.u32(kind.into());
                out.u32(not.into());
                self.make_match("pkttype", 0, out.finish())
            }
            _ => no("what belongs to the packet"),
        }
    }

    fn protocol(&mut self, value: &[u8], not: bool) -> Decode {
        match *value {
            [protocol] if protocol != 0 && self.head.protocol == 0 => {
                self.first()?;
                (self.head.protocol, self.head.not_protocol) = (protocol, not);
                Ok(())
            }
            _ => no("a protocol"),
        }
    }

    fn interface(&mut self, input: bool, found: Interface) -> Decode {
        self.first()?;
        let place = if input { &mut self.head.input } else { &mut self.head.output };
        if *place != Interface::default() {
            return no("a second interface");
        }
        *place = found;
        Ok(())
    }

    /// Refuses a condition of the head behind a match that counts.
    fn first(&self) -> Decode {
        if self.counts { no("a condition behind a match that counts") } else { Ok(()) }
    }

    fn compare_network(&mut self, offset: u32, op: CmpOp, value: &[u8], mask: Option<&[u8]>) -> Decode {
        let (source, destination) = address_offsets(self.family);
        let size = address_size(self.family);
        if offset == source || offset == destination {
            let found = network(value, mask, size, is_not(op)?).ok_or(NoWords::Meaning("an address"))?;
            self.first()?;
            let place = if offset == source { &mut self.head.source } else { &mut self.head.destination };
            if *place != Network::default() {
                return no("a second address");
            }
            *place = found;
            return Ok(());
        }
        match (self.family, offset, value, mask) {
            // The next header of IPv6 need not be the protocol, which extension headers may hide.
            (Family::Ipv4, 9, _, None) => self.protocol(value, is_not(op)?),
            (Family::Ipv4, 8, [hops], None) => self.hops("ttl", op, *hops),
            (Family::Ipv6, 7, [hops], None) => self.hops("hl", op, *hops),
            (Family::Ipv4, FRAGMENT_OFFSET, [0, 0], Some(mask)) if mask == FRAGMENT_MASK => {
                let not = is_not(op)?;
                self.first()?;
                if self.head.fragment {
                    return no("a second condition of fragments");
                }
                self.head.fragment = true;
                self.head.not_fragment = !not;
                Ok(())
            }
            _ => no("a part of the header"),
        }
    }

    /// `struct ipt_ttl_info`, `struct ip6t_hl_info`
    fn hops(&mut self, name: &str, op: CmpOp, hops: u8) -> Decode {
        let (mode, hops) = match op {
            CmpOp::EQ => (0, Some(hops)),
            CmpOp::NEQ => (1, Some(hops)),
            CmpOp::LT => (2, Some(hops)),
            CmpOp::LTE => (2, hops.checked_add(1)),
            CmpOp::GT => (3, Some(hops)),
            CmpOp::GTE => (3, hops.checked_sub(1)),
            _ => (0, None),
        };
        let hops = hops.ok_or(NoWords::Meaning("a number of hops"))?;
        self.make_match(name, 0, vec![mode, hops, 0, 0, 0, 0, 0, 0])
    }

    fn compare_transport(&mut self, offset: u32, op: CmpOp, value: &[u8], mask: Option<&[u8]>) -> Decode {
        let protocol = if self.head.not_protocol { 0 } else { self.head.protocol };
        match (protocol, offset, value, mask) {
            (ICMP | ICMPV6, 0, _, None) => self.icmp(protocol, op, value),
            (TCP | UDP, 0, [a, b], None) => self.port(Some(u16::from_be_bytes([*a, *b])), None, op),
            (TCP | UDP, 2, [a, b], None) => self.port(None, Some(u16::from_be_bytes([*a, *b])), op),
            // The tool writes two ports that are negated so, and reads them again as what it was given.
            (TCP | UDP, 0, [a, b, c, d], None) if matches!(op, CmpOp::EQ | CmpOp::NEQ) => {
                self.port(Some(u16::from_be_bytes([*a, *b])), Some(u16::from_be_bytes([*c, *d])), op)
            }
            (TCP, TCP_FLAGS_OFFSET, [flags], Some([mask])) if mask & !TCP_FLAGS == 0 && !self.seen.flags => {
                let (flags, mask, not) = (*flags, *mask, is_not(op)?);
                self.seen.flags = true;
                self.transport(|info| {
                    info.flags = flags;
                    info.mask = mask;
                    info.nots |= if not { INV_FLAGS } else { 0 };
                })
            }
            _ => no("a part of the transport header"),
        }
    }

    /// `struct ipt_icmp`, `struct ip6t_icmp`: the type, and the code if it is compared as well. iptables has no
    /// other conditions of the tool's for what nft compares: 1.8.9 reads `!=` as `==`.
    fn icmp(&mut self, protocol: u8, op: CmpOp, value: &[u8]) -> Decode {
        let (name, any) = match (self.family, protocol) {
            (Family::Ipv4, ICMP) => ("icmp", Some(u8::MAX)),
            (Family::Ipv6, ICMPV6) => ("icmp6", None),
            _ => return no("a part of the transport header"),
        };
        let (kind, codes) = match *value {
            [kind] => (kind, [0, u8::MAX]),
            [kind, code] => (kind, [code, code]),
            _ => return no("a part of the transport header"),
        };
        if op != CmpOp::EQ || Some(kind) == any || self.seen.icmp {
            return no("a type of ICMP");
        }
        self.seen.icmp = true;
        self.make_match(name, 0, vec![kind, codes[0], codes[1], 0, 0, 0, 0, 0])
    }

    fn port(&mut self, source: Option<u16>, destination: Option<u16>, op: CmpOp) -> Decode {
        for (port, at) in [(source, 0), (destination, 2)] {
            let Some(port) = port else { continue };
            let none = NoWords::Meaning("no port");
            match op {
                CmpOp::EQ => self.ports(at, (port, port), false, Bound::Whole)?,
                CmpOp::NEQ => self.ports(at, (port, port), true, Bound::Whole)?,
                CmpOp::LTE => self.ports(at, (0, port), false, Bound::High)?,
                // The tool has 0:1 for what is below 1.
                CmpOp::LT if port > 1 => self.ports(at, (0, port - 1), false, Bound::High)?,
                CmpOp::GTE => self.ports(at, (port, u16::MAX), false, Bound::Low)?,
                CmpOp::GT => {
                    let low = port.checked_add(1).ok_or(none)?;
                    self.ports(at, (low, u16::MAX), false, Bound::Low)?;
                }
                _ => return Err(none),
            }
        }
        Ok(())
    }

    /// Notes a range of ports; of two there has to be one limit from each.
    fn ports(&mut self, offset: u32, range: (u16, u16), not: bool, bound: Bound) -> Decode {
        let seen = if offset == 0 { &mut self.seen.source_port } else { &mut self.seen.destination_port };
        let both = matches!((*seen, bound), (Bound::Low, Bound::High) | (Bound::High, Bound::Low));
        if *seen != Bound::Nothing && !both {
            return no("a second condition of the same port");
        }
        *seen = if both { Bound::Whole } else { bound };
        let mut is_empty = false;
        self.transport(|info| {
            let (place, bit) = match offset {
                0 => (&mut info.ports.source, INV_SOURCE),
                _ => (&mut info.ports.destination, INV_DESTINATION),
            };
            if both {
                *place = (place.0.max(range.0), place.1.min(range.1));
                is_empty = place.0 > place.1;
            } else {
                *place = range;
            }
            info.nots |= if not { bit } else { 0 };
        })?;
        if is_empty { no("no port") } else { Ok(()) }
    }

    fn range(&mut self, Range { sreg, op, from, to }: &Range) -> Decode {
        let place = self.loaded(*sreg).filter(|loaded| loaded.mask.is_none()).map(|loaded| loaded.source);
        let port = |data: &Data| data.value().and_then(|value| <[u8; 2]>::try_from(value).ok());
        let protocol = if self.head.not_protocol { 0 } else { self.head.protocol };
        match (place, port(from), port(to), protocol) {
            (
                Some(Source::Payload { base: PayloadBase::TRANSPORT, offset: offset @ (0 | 2), len: 2 }),
                Some(low),
                Some(high),
                TCP | UDP,
            ) => {
                let range = (u16::from_be_bytes(low), u16::from_be_bytes(high));
                self.ports(offset, range, *op == RangeOp::NEQ, Bound::Whole)
            }
            _ => no("a range"),
        }
    }

    /// Changes the match of `tcp` or `udp`, whichever the protocol is, and adds it first.
    fn transport(&mut self, change: impl FnOnce(&mut Transport)) -> Decode {
        let name = match self.head.protocol {
            TCP if !self.head.not_protocol => "tcp",
            UDP if !self.head.not_protocol => "udp",
            _ => return no("a part of the transport header"),
        };
        let at = match self.transport {
            Some(at) => {
                if self.counts && self.matches.len() != at + 1 {
                    self.first()?;
                }
                at
            }
            None => {
                self.push_match(name, 0, Transport::NOTHING.write(name));
                self.matches.len() - 1
            }
        };
        self.transport = Some(at);
        let none = NoWords::Meaning("a part of the transport header");
        let binary = self.matches.get_mut(at).ok_or_else(|| none.clone())?;
        let mut info = Transport::read(binary).ok_or(none)?;
        change(&mut info);
        binary.data = info.write(&binary.name);
        Ok(())
    }

    fn immediate(&mut self, Immediate { dreg, data }: &Immediate) -> Decode {
        let action = match data {
            Data::Value(value) => {
                self.load(*dreg, Source::Constant { is_one: *value == [1][..] });
                return Ok(());
            }
            Data::Verdict(Verdict::Accept) => Action::Verdict(-2),
            Data::Verdict(Verdict::Drop) => Action::Verdict(-1),
            Data::Verdict(Verdict::Return) => Action::Verdict(-5),
            Data::Verdict(Verdict::Continue) => Action::Continue,
            Data::Verdict(Verdict::Jump(chain)) if is_chain(chain.as_str(), Some(self.family)) => {
                Action::Chain(chain.as_str().to_owned())
            }
            Data::Verdict(Verdict::Goto(chain)) if is_chain(chain.as_str(), None) => {
                self.head.goto = true;
                Action::Chain(chain.as_str().to_owned())
            }
            _ => return no("a verdict"),
        };
        self.action = Some(action);
        Ok(())
    }

    /// `struct xt_rateinfo`
    fn limit(&mut self, limit: &Limit) -> Decode {
        self.counts = true;
        let cost = (LIMIT_SCALE.saturating_mul(limit.unit)).checked_div(limit.rate).unwrap_or_default();
        let cost = u32::try_from(cost).ok().filter(|cost| *cost > 0);
        let burst = limit.burst.unwrap_or_default();
        // A time for one packet that is not whole is another rate.
        let again = cost.and_then(|cost| limit_of(cost, burst));
        let same = |again: &Limit| {
            u128::from(again.rate) * u128::from(limit.unit) == u128::from(limit.rate) * u128::from(again.unit)
        };
        let (Some(cost), Some(_)) = (cost, again.filter(same)) else { return no("a rate") };
        let mut out = Writer::default();
        out.u32(cost);
        out.u32(burst);
        out.zeros(32);
        self.make_match("limit", 0, out.finish())
    }

    /// `struct xt_nflog_info`
    fn log(&mut self, log: &Log, prefix: &[u8]) -> Decode {
        if log.level.is_some_and(|level| level != 0) || log.flags.is_some_and(|flags| !flags.is_empty()) {
            return no("a log level");
        }
        let mut out = Writer::default();
        out.u32(log.snaplen.unwrap_or_default());
        out.u16(log.group.unwrap_or_default());
        out.u16(log.queue_threshold.unwrap_or_default());
        out.u16(if log.snaplen.is_some() { NFLOG_COPY_LENGTH } else { 0 });
        out.zeros(2);
        let kept = prefix.get(..63).unwrap_or(prefix);
        out.bytes(kept);
        out.zeros(64 - kept.len());
        out.align(8);
        if kept.len() < prefix.len() {
            self.long_prefix = Some(sluicegate_iptables_save::decode(prefix).into_owned());
        }
        let data = out.finish();
        self.action = Some(Action::Target(Binary { name: "NFLOG".into(), revision: 0, data }));
        Ok(())
    }

    /// Adds a match that expressions of the kernel's own say, if it has words.
    fn make_match(&mut self, name: &str, revision: u8, data: Vec<u8>) -> Decode {
        let has_words = codec_for(Kind::Match, name, revision, self.family)
            .is_some_and(|codec| codec.decode(&data, self.family, &crate::NoSets).is_some());
        if !has_words {
            return no("a value");
        }
        self.push_match(name, revision.into(), data);
        Ok(())
    }

    fn push_match(&mut self, name: &str, revision: u32, data: Vec<u8>) {
        let revision = u8::try_from(revision).unwrap_or(u8::MAX);
        let known = codec_for(Kind::Match, name, revision, self.family).map(crate::Codec::kernel_name);
        let name = known.map_or_else(|| Cow::Owned(name.to_owned()), Cow::Borrowed);
        self.matches.push(Binary { name, revision, data });
    }
}

fn no(what: &'static str) -> Decode {
    Err(NoWords::Meaning(what))
}

/// Returns whether a comparison is negated, if it is one of equality.
fn is_not(op: CmpOp) -> Result<bool, NoWords> {
    match op {
        CmpOp::EQ => Ok(false),
        CmpOp::NEQ => Ok(true),
        _ => Err(NoWords::Meaning("an order")),
    }
}

fn is_long(value: &[u8], len: u32) -> bool {
    u32::try_from(value.len()) == Ok(len)
}

/// Returns where a register begins among all: there are four of 16 bytes and 16 of 4 bytes in the same place
/// (`enum nft_registers`).
fn register_at(register: Register) -> u32 {
    match register.0 {
        number @ 0..8 => number.saturating_sub(1) * 16,
        number => (number - 8).saturating_mul(4),
    }
}

/// Reads the `log` of an iptables rule whose prefix is not UTF-8, which has no form of its own.
fn nflog(unknown: &Unknown) -> Option<(Log, &[u8])> {
    if unknown.name.as_str() != "log" || !unknown.rest.is_empty() {
        return None;
    }
    let mut log =
        Log { group: None, prefix: None, snaplen: None, queue_threshold: None, level: None, flags: None };
    let mut prefix = &[][..];
    for attribute in Attributes::new(unknown.data.as_deref()?) {
        let attribute = attribute.ok()?;
        match attribute.kind {
            NFTA_LOG_GROUP => log.group = Some(attribute.be16().ok()?),
            NFTA_LOG_PREFIX => {
                let bytes = attribute.payload;
                prefix = bytes.strip_suffix(&[0]).unwrap_or(bytes);
            }
            NFTA_LOG_SNAPLEN => log.snaplen = Some(attribute.be32().ok()?),
            NFTA_LOG_QTHRESHOLD => log.queue_threshold = Some(attribute.be16().ok()?),
            _ => return None,
        }
    }
    log.group.is_some().then_some((log, prefix))
}

/// `struct xt_tcp`, and `struct xt_udp`, which has neither option nor flags.
#[derive(Debug, Clone, Copy)]
struct Transport {
    ports: Ports,
    option: u8,
    mask: u8,
    flags: u8,
    nots: u8,
}

impl Transport {
    const NOTHING: Self = Self { ports: Ports::ALL, option: 0, mask: 0, flags: 0, nots: 0 };

    fn read(binary: &Binary) -> Option<Self> {
        let data = &mut Reader::new(&binary.data);
        let ports = Ports::read(data)?;
        let [option, mask, flags] = if binary.name == "tcp" { data.array()? } else { [0; 3] };
        Some(Self { ports, option, mask, flags, nots: data.u8()? })
    }

    fn write(&self, name: &str) -> Vec<u8> {
        let mut out = Writer::default();
        for port in [self.ports.source, self.ports.destination].iter().flat_map(|(low, high)| [low, high]) {
            out.u16(*port);
        }
        if name == "tcp" {
            out.bytes(&[self.option, self.mask, self.flags]);
        }
        out.u8(self.nots);
        out.align(8);
        out.finish()
    }
}

/// A name with its end, or the beginning of names, which iptables writes with a `+`. No interface at all is
/// `! -i +`.
fn interface(value: &[u8], not: bool) -> Option<Interface> {
    let mut interface = Interface { not, ..Interface::default() };
    if value == NO_INTERFACE && !not {
        interface.name.first_mut().into_iter().for_each(|byte| *byte = b'+');
        interface.not = true;
        return Some(interface);
    }
    let end = value.iter().position(|byte| *byte == 0);
    let (name, rest) = value.split_at_checked(end.unwrap_or(value.len()))?;
    // A plus at the end of a name would be read as the beginning of names.
    let is_name = !name.is_empty() && rest.iter().all(|byte| *byte == 0);
    if !is_name || (end.is_some() && name.ends_with(b"+")) {
        return None;
    }
    let counted = name.len() + usize::from(end.is_some());
    let plus = if end.is_none() { &b"+"[..] } else { b"\0" };
    let bytes = [name, plus].concat();
    interface
        .name
        .get_mut(..bytes.len())
        .filter(|_| bytes.len() < 16 || end.is_some())?
        .copy_from_slice(&bytes);
    interface.mask.iter_mut().take(counted).for_each(|byte| *byte = u8::MAX);
    Some(interface)
}

/// Without a mask, the bytes that were loaded count. An address with bits beside the mask is none.
fn network(value: &[u8], mask: Option<&[u8]>, size: usize, not: bool) -> Option<Network> {
    let mut network = Network { not, ..Network::default() };
    network.address.get_mut(..value.len()).filter(|_| value.len() <= size)?.copy_from_slice(value);
    match mask {
        Some(mask) => network.mask.get_mut(..value.len())?.copy_from_slice(mask.get(..value.len())?),
        None => network.mask.get_mut(..value.len())?.fill(u8::MAX),
    }
    let mut bits = network.address.iter().zip(&network.mask);
    bits.all(|(address, mask)| address & !mask == 0).then_some(network)
}

/// Reads a number in the byte order of the machine.
fn number(bytes: &[u8]) -> Result<u32, NoWords> {
    bytes.try_into().map(u32::from_ne_bytes).map_err(|_| NoWords::Meaning("a number"))
}

/// `XT_MAX_COMMENT_LEN`
const COMMENT_SIZE: usize = 256;
/// The flags that have names: `FIN` to `URG`.
const TCP_FLAGS: u8 = 0x3f;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
