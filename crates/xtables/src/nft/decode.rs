//! What the expressions of a rule say in terms of iptables, as iptables-nft 1.8.9 reads them.
//!
//! Rules that nft wrote into the same table are read as well as the tool reads them: a comparison that
//! iptables has no words for is left out, and an expression of another kind makes the whole table
//! incompatible.

use std::borrow::Cow;

use sluicegate_iptables_save::{Counters, Family};
use sluicegate_nftables::expr::kind::{Bitwise, Cmp, Immediate, Limit, Log, Meta, Range};
use sluicegate_nftables::expr::{
    BitwiseOp, CmpOp, Data, Expr, Invert, LimitType, MetaKey, PayloadBase, RangeOp, Register,
};
use sluicegate_nftables::lang::Verdict;

use super::encode::{
    FRAGMENT_OFFSET, INV_DESTINATION, INV_FLAGS, INV_SOURCE, LIMIT_SCALE, NFLOG_COPY_LENGTH, Ports,
    TCP_FLAGS_OFFSET, address_offsets,
};
use super::head::{Head, Interface, Network, address_size};
use crate::extension::wire::Writer;
use crate::extension::{Binary, Kind, codec_for};
use crate::rule::{Action, Rule};

/// What a rule of the kernel says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) rule: Rule,
    pub(super) counters: Counters,
    /// The prefix of `NFLOG` if it is longer than the structure of the extension can hold.
    pub(super) long_prefix: Option<String>,
    /// Whether something was left out that iptables has no words for: such a rule is not the same as one
    /// that these words describe.
    pub(super) passed_over: bool,
}

/// Decodes a rule: its expressions, and the comment in its user data, where nft has comments.
///
/// # Errors
/// The name of the first expression that iptables has nothing like.
pub(super) fn decode(exprs: &[Expr], comment: Option<&str>, family: Family) -> Result<Decoded, String> {
    if let Some(expr) = exprs.iter().find(|expr| !is_compatible(expr)) {
        return Err(expr.name().to_owned());
    }
    let mut decoder = Decoder::new(family);
    exprs.iter().for_each(|expr| decoder.expr(expr));
    if let Some(comment) = comment {
        let mut out = Writer::default();
        let kept = comment.bytes().take(COMMENT_SIZE - 1).collect::<Vec<_>>();
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
    Constant { is_zero: bool },
}

#[derive(Debug, Clone)]
struct Loaded {
    register: Register,
    source: Source,
    mask: Option<Vec<u8>>,
}

struct Decoder {
    family: Family,
    head: Head,
    matches: Vec<Binary>,
    action: Action,
    counters: Counters,
    long_prefix: Option<String>,
    passed_over: bool,
    registers: Vec<Loaded>,
    /// The match of the first port, to which the others belong.
    transport: Option<usize>,
}

impl Decoder {
    fn new(family: Family) -> Self {
        Self {
            family,
            head: Head::default(),
            matches: Vec::new(),
            action: Action::Continue,
            counters: Counters::default(),
            long_prefix: None,
            passed_over: false,
            registers: Vec::new(),
            transport: None,
        }
    }

    fn finish(self) -> Decoded {
        let rule = Rule { head: self.head.write(self.family), matches: self.matches, action: self.action };
        let (counters, long_prefix, passed_over) = (self.counters, self.long_prefix, self.passed_over);
        Decoded { rule, counters, long_prefix, passed_over }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Counter(counter) => {
                let (packets, bytes) =
                    (counter.packets.unwrap_or_default(), counter.bytes.unwrap_or_default());
                self.counters = Counters { packets, bytes };
            }
            Expr::Payload(load) => {
                if let Some(register) = load.dreg {
                    self.load(
                        register,
                        Source::Payload { base: load.base, offset: load.offset, len: load.len },
                    );
                }
            }
            Expr::Meta(meta) => self.meta(meta),
            Expr::Bitwise(bits) => self.bitwise(bits),
            Expr::Cmp(compare) => self.compare(compare),
            Expr::Range(range) => self.range(range),
            Expr::Immediate(immediate) => self.immediate(immediate),
            Expr::Limit(limit) => self.limit(limit),
            Expr::Log(log) => self.log(log),
            Expr::XtMatch(module) => {
                self.push_match(&module.name, module.revision, module.info.clone());
            }
            Expr::XtTarget(module) => {
                let revision = u8::try_from(module.revision).unwrap_or(u8::MAX);
                let name = Cow::Owned(module.name.to_string());
                self.action = Action::Target(Binary { name, revision, data: module.info.clone() });
            }
            _ => self.passed_over = true,
        }
    }

    fn load(&mut self, register: Register, source: Source) {
        self.registers.retain(|loaded| loaded.register != register);
        self.registers.push(Loaded { register, source, mask: None });
    }

    fn loaded(&self, register: Register) -> Option<&Loaded> {
        self.registers.iter().find(|loaded| loaded.register == register)
    }

    /// A load; or `meta nftrace set 1`, which is `TRACE`.
    fn meta(&mut self, meta: &Meta) {
        if let Some(register) = meta.dreg {
            self.load(register, Source::Meta(meta.key));
        } else if let Some(source) = meta.sreg.and_then(|register| self.loaded(register)) {
            if meta.key == MetaKey::NFTRACE && source.source == (Source::Constant { is_zero: false }) {
                self.action = Action::Target(Binary { name: "TRACE".into(), revision: 0, data: Vec::new() });
                return;
            }
            self.passed_over = true;
        } else {
            self.passed_over = true;
        }
    }

    fn bitwise(&mut self, bits: &Bitwise) {
        let mask = bits.mask.as_ref().and_then(Data::value).map(<[u8]>::to_vec);
        let Some(loaded) = self.loaded(bits.sreg).cloned().zip(mask).map(|(loaded, mask)| Loaded {
            register: bits.dreg,
            mask: Some(mask),
            ..loaded
        }) else {
            self.passed_over = true;
            return;
        };
        // The second operation on a register, or one with an `xor`, has no words.
        let xors =
            bits.xor.as_ref().and_then(Data::value).is_some_and(|xor| xor.iter().any(|byte| *byte != 0));
        self.passed_over |= xors || bits.op.is_some_and(|op| op != BitwiseOp::BOOL);
        self.registers.retain(|other| other.register != bits.dreg);
        self.registers.push(loaded);
    }

    fn compare(&mut self, Cmp { sreg, op, data }: &Cmp) {
        let (Some(Loaded { source, mask, .. }), Some(value)) = (self.loaded(*sreg).cloned(), data.value())
        else {
            self.passed_over = true;
            return;
        };
        match source {
            Source::Meta(key) => self.compare_meta(key, *op, value, mask.as_deref()),
            Source::Payload { base: PayloadBase::NETWORK, offset, len } => {
                self.compare_network(offset, len, *op, value, mask.as_deref());
            }
            Source::Payload { base: PayloadBase::TRANSPORT, offset, .. } => {
                self.compare_transport(offset, *op, value, mask.as_deref());
            }
            Source::Payload { .. } | Source::Constant { .. } => self.passed_over = true,
        }
    }

    fn compare_meta(&mut self, key: MetaKey, op: CmpOp, value: &[u8], mask: Option<&[u8]>) {
        let not = op == CmpOp::NEQ;
        match key {
            MetaKey::L4PROTO => {
                self.head.protocol = value.first().copied().unwrap_or_default();
                self.head.not_protocol |= not;
            }
            MetaKey::IIFNAME => self.head.input = interface(value, self.head.input.not || not),
            MetaKey::OIFNAME => self.head.output = interface(value, self.head.output.not || not),
            MetaKey::MARK => {
                let mut out = Writer::default();
                out.u32(number(value));
                out.u32(mask.map_or(u32::MAX, number));
                out.u8(not.into());
                out.zeros(7);
                self.push_match("mark", 1, out.finish());
            }
            MetaKey::PKTTYPE => {
                let mut out = Writer::default();
                out.u32(value.first().copied().unwrap_or_default().into());
                out.u32(not.into());
                self.push_match("pkttype", 0, out.finish());
            }
            _ => self.passed_over = true,
        }
    }

    fn compare_network(&mut self, offset: u32, len: u32, op: CmpOp, value: &[u8], mask: Option<&[u8]>) {
        let not = op == CmpOp::NEQ;
        let (source, destination) = address_offsets(self.family);
        let (protocol, hops) = match self.family {
            Family::Ipv4 => (9, 8),
            Family::Ipv6 => (6, 7),
        };
        let size = address_size(self.family);
        let first = value.first().copied().unwrap_or_default();
        if offset == source {
            self.head.source = network(value, mask, len, size, self.head.source.not || not);
        } else if offset == destination {
            self.head.destination = network(value, mask, len, size, self.head.destination.not || not);
        } else if offset == protocol {
            self.head.protocol = first;
            self.head.not_protocol |= not;
        } else if offset == hops {
            // nft compares the hop limit together with what is beside it, which the tool reads as 0.
            self.passed_over |= value.len() != 1;
            self.hops(op, if value.len() == 1 { first } else { 0 });
        } else if offset == FRAGMENT_OFFSET && self.family == Family::Ipv4 {
            self.head.fragment = true;
            self.head.not_fragment |= !not;
        } else {
            self.passed_over = true;
        }
    }

    /// `struct ipt_ttl_info`, `struct ip6t_hl_info`
    fn hops(&mut self, op: CmpOp, hops: u8) {
        let (mode, hops) = match op {
            CmpOp::EQ => (0, Some(hops)),
            CmpOp::NEQ => (1, Some(hops)),
            CmpOp::LT => (2, Some(hops)),
            CmpOp::LTE => (2, hops.checked_add(1)),
            CmpOp::GT => (3, Some(hops)),
            _ => (3, hops.checked_sub(1)),
        };
        if let Some(hops) = hops {
            let name = if self.family == Family::Ipv4 { "ttl" } else { "hl" };
            self.push_match(name, 0, vec![mode, hops, 0, 0, 0, 0, 0, 0]);
        }
    }

    fn compare_transport(&mut self, offset: u32, op: CmpOp, value: &[u8], mask: Option<&[u8]>) {
        match (offset, value) {
            (0, [a, b]) => self.port(Some(u16::from_be_bytes([*a, *b])), None, op),
            (2, [a, b]) => self.port(None, Some(u16::from_be_bytes([*a, *b])), op),
            (0, [a, b, c, d]) => {
                self.port(Some(u16::from_be_bytes([*a, *b])), Some(u16::from_be_bytes([*c, *d])), op);
            }
            (TCP_FLAGS_OFFSET, [flags]) if self.head.protocol == TCP => {
                let mask = mask.map_or(u8::MAX, |mask| mask.first().copied().unwrap_or_default());
                let (flags, not) = (*flags, op == CmpOp::NEQ);
                self.transport(|info| {
                    info.flags = flags;
                    info.mask = mask;
                    info.nots |= if not { INV_FLAGS } else { 0 };
                });
            }
            _ => self.passed_over = true,
        }
    }

    fn port(&mut self, source: Option<u16>, destination: Option<u16>, op: CmpOp) {
        let change = |range: &mut (u16, u16), nots: &mut u8, bit: u8, port: Option<u16>| {
            let Some(port) = port else { return };
            match op {
                CmpOp::EQ | CmpOp::NEQ => {
                    *range = (port, port);
                    *nots |= if op == CmpOp::NEQ { bit } else { 0 };
                }
                CmpOp::LT => range.1 = port.saturating_sub(1).max(1),
                CmpOp::LTE => range.1 = port,
                CmpOp::GT => range.0 = port.saturating_add(1),
                _ => range.0 = port,
            }
        };
        self.transport(|info| {
            change(&mut info.ports.source, &mut info.nots, INV_SOURCE, source);
            change(&mut info.ports.destination, &mut info.nots, INV_DESTINATION, destination);
        });
    }

    fn range(&mut self, Range { sreg, op, from, to }: &Range) {
        let Some(Source::Payload { base: PayloadBase::TRANSPORT, offset, .. }) =
            self.loaded(*sreg).map(|loaded| loaded.source)
        else {
            self.passed_over = true;
            return;
        };
        let port = |data: &Data| data.value().and_then(|value| <[u8; 2]>::try_from(value).ok());
        let (Some(low), Some(high)) = (port(from), port(to)) else {
            self.passed_over = true;
            return;
        };
        let range = (u16::from_be_bytes(low), u16::from_be_bytes(high));
        let not = *op == RangeOp::NEQ;
        match offset {
            0 => self.transport(|info| {
                info.ports.source = range;
                info.nots |= if not { INV_SOURCE } else { 0 };
            }),
            2 => self.transport(|info| {
                info.ports.destination = range;
                info.nots |= if not { INV_DESTINATION } else { 0 };
            }),
            _ => self.passed_over = true,
        }
    }

    /// Changes the match of `tcp` or `udp`, whichever the protocol is, and adds it first.
    fn transport(&mut self, change: impl FnOnce(&mut Transport)) {
        let name = match self.head.protocol {
            TCP => "tcp",
            UDP => "udp",
            _ => {
                self.passed_over = true;
                return;
            }
        };
        let at = match self.transport {
            Some(at) => at,
            None => {
                self.push_match(name, 0, Transport::NOTHING.write(name));
                self.matches.len() - 1
            }
        };
        self.transport = Some(at);
        let Some(binary) = self.matches.get_mut(at) else { return };
        let Some(mut info) = Transport::read(binary) else { return };
        change(&mut info);
        binary.data = info.write(&binary.name);
    }

    fn immediate(&mut self, Immediate { dreg, data }: &Immediate) {
        self.action = match data {
            Data::Value(value) => {
                let is_zero = value.first().is_none_or(|byte| *byte == 0);
                return self.load(*dreg, Source::Constant { is_zero });
            }
            Data::Verdict(Verdict::Accept) => Action::Verdict(-2),
            Data::Verdict(Verdict::Drop) => Action::Verdict(-1),
            Data::Verdict(Verdict::Return) => Action::Verdict(-5),
            Data::Verdict(Verdict::Jump(chain)) => Action::Chain(chain.as_str().to_owned()),
            Data::Verdict(Verdict::Goto(chain)) => {
                self.head.goto = true;
                Action::Chain(chain.as_str().to_owned())
            }
            _ => {
                self.passed_over = true;
                return;
            }
        };
    }

    /// `struct xt_rateinfo`
    fn limit(&mut self, limit: &Limit) {
        let cost = (LIMIT_SCALE.saturating_mul(limit.unit)).checked_div(limit.rate).unwrap_or_default();
        let mut out = Writer::default();
        out.u32(u32::try_from(cost).unwrap_or(u32::MAX));
        out.u32(limit.burst.unwrap_or_default());
        out.zeros(32);
        self.push_match("limit", 0, out.finish());
    }

    /// `struct xt_nflog_info`
    fn log(&mut self, log: &Log) {
        let mut out = Writer::default();
        out.u32(log.snaplen.unwrap_or_default());
        out.u16(log.group.unwrap_or_default());
        out.u16(log.queue_threshold.unwrap_or_default());
        out.u16(if log.snaplen.is_some() { NFLOG_COPY_LENGTH } else { 0 });
        out.zeros(2);
        let prefix = log.prefix.as_deref().unwrap_or_default();
        let kept = prefix.as_bytes().get(..63).unwrap_or(prefix.as_bytes());
        out.bytes(kept);
        out.zeros(64 - kept.len());
        out.align(8);
        self.long_prefix = (kept.len() < prefix.len()).then(|| prefix.to_owned());
        let data = out.finish();
        self.action = Action::Target(Binary { name: "NFLOG".into(), revision: 0, data });
    }

    fn push_match(&mut self, name: &str, revision: u32, data: Vec<u8>) {
        let revision = u8::try_from(revision).unwrap_or(u8::MAX);
        let known = codec_for(Kind::Match, name, revision, self.family).map(crate::Codec::kernel_name);
        let name = known.map_or_else(|| Cow::Owned(name.to_owned()), Cow::Borrowed);
        self.matches.push(Binary { name, revision, data });
    }
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
        let data = &mut crate::extension::wire::Reader::new(&binary.data);
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

/// A name with its end, or the beginning of names, which iptables writes with a `+`.
fn interface(value: &[u8], not: bool) -> Interface {
    let mut interface = Interface { not, ..Interface::default() };
    let end = value.iter().position(|byte| *byte == 0);
    let name = value.get(..end.unwrap_or(value.len())).unwrap_or_default();
    let counted = name.len() + usize::from(end.is_some());
    if counted > interface.name.len() {
        return interface;
    }
    let plus = if end.is_none() { &b"+"[..] } else { b"" };
    let bytes = name.iter().chain(plus);
    interface.name.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    interface.mask.iter_mut().take(counted).for_each(|byte| *byte = u8::MAX);
    interface
}

/// Without a mask, the bytes that were loaded count.
fn network(value: &[u8], mask: Option<&[u8]>, len: u32, size: usize, not: bool) -> Network {
    let mut network = Network { not, ..Network::default() };
    network.address.iter_mut().take(size).zip(value).for_each(|(place, byte)| *place = *byte);
    let len = usize::try_from(len).unwrap_or(usize::MAX).min(size);
    match mask {
        Some(mask) => {
            network.mask.iter_mut().take(size).zip(mask).for_each(|(place, byte)| *place = *byte);
        }
        None => network.mask.iter_mut().take(len).for_each(|byte| *byte = u8::MAX),
    }
    network
}

/// Reads a number in the byte order of the machine.
fn number(bytes: &[u8]) -> u32 {
    bytes.try_into().map(u32::from_ne_bytes).unwrap_or_default()
}

/// `XT_MAX_COMMENT_LEN`
const COMMENT_SIZE: usize = 256;
const TCP: u8 = 6;
const UDP: u8 = 17;
