//! The expressions of a rule, as iptables-nft 1.8.9 writes them.
//!
//! The head of a rule, the ports and flags of `tcp` and `udp`, `mark`, `limit`, `NFLOG` and `TRACE` have
//! expressions of the kernel's own; every other match or target is one expression with the structure of its
//! extension. The tool loads everything into the first register.

use sluicegate_iptables_save::{Counters, Family};
use sluicegate_netlink::attr;
use sluicegate_nftables::Name;
use sluicegate_nftables::expr::kind::{
    Bitwise, Cmp, Counter, Immediate, Limit, Log, Meta, Payload, Range, XtMatch, XtTarget,
};
use sluicegate_nftables::expr::{
    Bytes, CmpOp, Data, Expr, Invert, LimitType, MetaKey, PayloadBase, RangeOp, Register, Unknown,
};
use sluicegate_nftables::lang::Verdict;

use super::head::{Head, Interface, Network, address_size};
use crate::extension::wire::Reader;
use crate::extension::{Binary, Mismatch};
use crate::rule::{Action, Rule, verdict_name};

/// Returns the expressions of a rule.
pub(super) fn expressions(rule: &Rule, counters: Counters, family: Family) -> Result<Vec<Expr>, Mismatch> {
    let head = Head::read(&rule.head, family).ok_or_else(|| Mismatch::expected("the head of a rule"))?;
    let mut out = Exprs(Vec::with_capacity(8));
    out.head(&head, family);
    for binary in &rule.matches {
        out.a_match(binary);
    }
    // Before the target: a counter behind it would never be reached.
    out.push(Counter { bytes: Some(counters.bytes), packets: Some(counters.packets) });
    out.action(&rule.action, head.goto)?;
    Ok(out.0)
}

struct Exprs(Vec<Expr>);

impl Exprs {
    fn push(&mut self, expr: impl Into<Expr>) {
        self.0.push(expr.into());
    }

    fn head(&mut self, head: &Head, family: Family) {
        self.interface(&head.input, MetaKey::IIFNAME);
        self.interface(&head.output, MetaKey::OIFNAME);
        if head.protocol != 0 {
            self.meta(MetaKey::L4PROTO);
            self.compare(equal_unless(head.not_protocol), [head.protocol]);
        }
        let (source, destination) = address_offsets(family);
        self.network(&head.source, source, family);
        self.network(&head.destination, destination, family);
        if head.fragment {
            self.payload(PayloadBase::NETWORK, FRAGMENT_OFFSET, 2);
            self.mask(&FRAGMENT_MASK);
            self.compare(equal_unless(!head.not_fragment), [0, 0]);
        }
    }

    /// A name with its end, or a prefix without one.
    fn interface(&mut self, interface: &Interface, key: MetaKey) {
        let name = interface.text();
        let Some((last, prefix)) = name.split_last() else { return };
        self.meta(key);
        match (last, prefix, interface.not) {
            (b'+', [], false) => (),
            // No interface at all.
            (b'+', [], true) => self.compare(CmpOp::EQ, NO_INTERFACE),
            (b'+', prefix, not) => self.compare(equal_unless(not), prefix),
            (_, _, not) => self.compare(equal_unless(not), [name, &[0]].concat()),
        }
    }

    /// Of a mask of whole bytes only these are compared; any other needs a `bitwise`.
    fn network(&mut self, network: &Network, offset: u32, family: Family) {
        let size = address_size(family);
        let address = network.address.get(..size).unwrap_or_default();
        let mask = network.mask.get(..size).unwrap_or_default();
        let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        if is_zero(address) && is_zero(mask) && !network.not {
            return;
        }
        let whole = mask.iter().take_while(|byte| **byte == u8::MAX).count();
        let compared = if is_zero(mask.get(whole..).unwrap_or_default()) { whole } else { size };
        self.payload(PayloadBase::NETWORK, offset, u32::try_from(compared).unwrap_or(u32::MAX));
        if compared != whole {
            self.mask(mask);
        }
        self.compare(equal_unless(network.not), address.get(..compared).unwrap_or_default());
    }

    fn a_match(&mut self, binary: &Binary) {
        let native = match &*binary.name {
            "tcp" => self.tcp(&binary.data),
            "udp" => self.udp(&binary.data),
            "mark" if binary.revision == 1 => self.mark(&binary.data),
            "limit" => self.limit(&binary.data),
            _ => None,
        };
        if native.is_none() {
            let name = (*binary.name).into();
            self.push(XtMatch { name, revision: binary.revision.into(), info: binary.data.clone() });
        }
    }

    /// `struct xt_tcp`: native unless it says nothing, or looks at an option.
    fn tcp(&mut self, data: &[u8]) -> Option<()> {
        let data = &mut Reader::new(data);
        let ports = Ports::read(data)?;
        let [option, mask, flags, nots]: [u8; 4] = data.array()?;
        let says_nothing = ports == Ports::ALL && [mask, flags, nots] == [0, 0, 0];
        if nots & !(INV_SOURCE | INV_DESTINATION | INV_FLAGS) != 0 || option != 0 || says_nothing {
            return None;
        }
        if mask != 0 {
            self.payload(PayloadBase::TRANSPORT, TCP_FLAGS_OFFSET, 1);
            self.mask(&[mask]);
            self.compare(equal_unless(nots & INV_FLAGS != 0), [flags]);
        }
        self.ports(ports, nots);
        Some(())
    }

    /// `struct xt_udp`: native unless it says nothing.
    fn udp(&mut self, data: &[u8]) -> Option<()> {
        let data = &mut Reader::new(data);
        let ports = Ports::read(data)?;
        let nots = data.u8()?;
        if nots & !(INV_SOURCE | INV_DESTINATION) != 0 || (ports == Ports::ALL && nots == 0) {
            return None;
        }
        self.ports(ports, nots);
        Some(())
    }

    fn ports(&mut self, Ports { source, destination }: Ports, nots: u8) {
        let [not_source, not_destination] = [nots & INV_SOURCE != 0, nots & INV_DESTINATION != 0];
        let single = |(low, high): (u16, u16)| low != 0 && low == high;
        if single(source) && single(destination) && not_source == not_destination {
            self.payload(PayloadBase::TRANSPORT, 0, 4);
            let both = [source.0.to_be_bytes(), destination.0.to_be_bytes()].concat();
            self.compare(equal_unless(not_source), both);
            return;
        }
        for (offset, range, not) in [(0, source, not_source), (2, destination, not_destination)] {
            // A negated range of all ports, which never matches, is left out: 1.8.9 does so.
            if range != (0, u16::MAX) {
                self.payload(PayloadBase::TRANSPORT, offset, 2);
                self.port(range, not);
            }
        }
    }

    fn port(&mut self, (low, high): (u16, u16), not: bool) {
        if low == high {
            self.compare(equal_unless(not), low.to_be_bytes());
        } else if low == 0 {
            self.compare(if not { CmpOp::GT } else { CmpOp::LTE }, high.to_be_bytes());
        } else {
            let op = if not { RangeOp::NEQ } else { RangeOp::EQ };
            let [from, to] = [low, high].map(|port| Data::Value(port.to_be_bytes().into()));
            self.push(Range { sreg: REGISTER, op, from, to });
        }
    }

    /// `struct xt_mark_mtinfo1`
    fn mark(&mut self, data: &[u8]) -> Option<()> {
        let data = &mut Reader::new(data);
        let [mark, mask] = [data.u32()?, data.u32()?];
        let not = data.u8()? != 0;
        self.meta(MetaKey::MARK);
        if mask != u32::MAX {
            self.mask(&mask.to_ne_bytes());
        }
        self.compare(equal_unless(not), mark.to_ne_bytes());
        Some(())
    }

    /// `struct xt_rateinfo`
    fn limit(&mut self, data: &[u8]) -> Option<()> {
        let data = &mut Reader::new(data);
        self.push(limit_of(data.u32()?, data.u32()?)?);
        Some(())
    }

    fn action(&mut self, action: &Action, goto: bool) -> Result<(), Mismatch> {
        let verdict = match action {
            Action::Continue => return Ok(()),
            Action::Verdict(number) => match number {
                -2 => Verdict::Accept,
                -1 => Verdict::Drop,
                -5 => Verdict::Return,
                // The kernel's compatibility layer has no `QUEUE`, and the tool fails as well.
                other => {
                    return Err(Mismatch::Verdict { name: verdict_name(*other) });
                }
            },
            Action::Chain(chain) if goto => Verdict::Goto(Name::from_kernel(chain)),
            Action::Chain(chain) => Verdict::Jump(Name::from_kernel(chain)),
            Action::Target(binary) if binary.name == "NFLOG" => {
                let log = nflog(&binary.data);
                self.0.push(log.ok_or_else(|| Mismatch::expected("a struct xt_nflog_info"))?);
                return Ok(());
            }
            Action::Target(binary) if binary.name == "TRACE" => {
                self.push(Immediate { dreg: TRACE_REGISTER, data: Data::Value([1].into()) });
                self.push(Meta { dreg: None, key: MetaKey::NFTRACE, sreg: Some(TRACE_REGISTER) });
                return Ok(());
            }
            Action::Target(binary) => {
                let name = (*binary.name).into();
                self.push(XtTarget { name, revision: binary.revision.into(), info: binary.data.clone() });
                return Ok(());
            }
        };
        self.push(Immediate { dreg: Register::VERDICT, data: Data::Verdict(verdict) });
        Ok(())
    }

    fn meta(&mut self, key: MetaKey) {
        self.push(Meta { dreg: Some(REGISTER), key, sreg: None });
    }

    fn payload(&mut self, base: PayloadBase, offset: u32, len: u32) {
        self.push(Payload {
            dreg: Some(REGISTER),
            base,
            offset,
            len,
            sreg: None,
            csum_type: None,
            csum_offset: None,
            csum_flags: None,
        });
    }

    fn mask(&mut self, mask: &[u8]) {
        self.push(Bitwise {
            sreg: REGISTER,
            dreg: REGISTER,
            len: u32::try_from(mask.len()).unwrap_or(u32::MAX),
            mask: Some(Data::Value(mask.into())),
            xor: Some(Data::Value(vec![0; mask.len()].into())),
            op: None,
            data: None,
            sreg2: None,
        });
    }

    fn compare(&mut self, op: CmpOp, data: impl Into<Bytes>) {
        self.push(Cmp { sreg: REGISTER, op, data: Data::Value(data.into()) });
    }
}

/// Returns the rate for a time that one packet takes, in the longest unit that divides by it well.
pub(super) fn limit_of(cost: u32, burst: u32) -> Option<Limit> {
    let cost = u64::from(cost);
    let mut best = LIMIT_UNITS.first()?;
    for seconds in LIMIT_UNITS.iter().skip(1) {
        let time = LIMIT_SCALE * seconds;
        if cost > time || time.checked_div(cost)? < time.checked_rem(cost)? {
            break;
        }
        best = seconds;
    }
    Some(Limit {
        rate: (LIMIT_SCALE * best).checked_div(cost)?,
        unit: *best,
        burst: Some(burst),
        of: Some(LimitType::PACKETS),
        flags: Some(Invert::empty()),
    })
}

/// `struct xt_nflog_info`; `None` if it is too short. A prefix that is not UTF-8 is written as the bytes that
/// it is, which the expression has no form for.
fn nflog(data: &[u8]) -> Option<Expr> {
    let data = &mut Reader::new(data);
    let length = data.u32()?;
    let [group, threshold, flags] = [data.u16()?, data.u16()?, data.u16()?];
    data.skip(2)?;
    let prefix = data.take(64)?;
    let end = prefix.iter().position(|byte| *byte == 0).unwrap_or(prefix.len());
    let prefix = prefix.get(..end)?;
    let log = Log {
        group: Some(group),
        prefix: None,
        snaplen: (flags & NFLOG_COPY_LENGTH != 0).then_some(length),
        queue_threshold: (threshold != 0).then_some(threshold),
        level: None,
        flags: None,
    };
    match std::str::from_utf8(prefix) {
        Ok(text) => Some(Log { prefix: (!text.is_empty()).then(|| text.to_owned()), ..log }.into()),
        Err(_) => {
            let attributes = attr::encode(|out| {
                out.put_be16(NFTA_LOG_GROUP, group);
                out.put(NFTA_LOG_PREFIX, &[prefix, &[0]].concat());
                log.snaplen.iter().for_each(|length| out.put_be32(NFTA_LOG_SNAPLEN, *length));
                log.queue_threshold.iter().for_each(|count| out.put_be16(NFTA_LOG_QTHRESHOLD, *count));
            });
            Some(Unknown::new(Name::from_kernel("log"), attributes.ok()?).into())
        }
    }
}

fn equal_unless(not: bool) -> CmpOp {
    if not { CmpOp::NEQ } else { CmpOp::EQ }
}

/// Ports of source and destination, each from the lowest to the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) source: (u16, u16),
    pub(super) destination: (u16, u16),
}

impl Ports {
    pub(super) const ALL: Self = Self { source: (0, u16::MAX), destination: (0, u16::MAX) };

    pub(super) fn read(data: &mut Reader<'_>) -> Option<Self> {
        Some(Self { source: (data.u16()?, data.u16()?), destination: (data.u16()?, data.u16()?) })
    }
}

/// Returns where the header has its addresses.
pub(super) const fn address_offsets(family: Family) -> (u32, u32) {
    match family {
        Family::Ipv4 => (12, 16),
        Family::Ipv6 => (8, 24),
    }
}

/// `NFT_REG_1`
const REGISTER: Register = Register(1);
/// `NFT_REG32_01`, which the tool takes for `TRACE` alone.
const TRACE_REGISTER: Register = Register(9);
/// Where an IPv4 header has flags and offset of a fragment.
pub(super) const FRAGMENT_OFFSET: u32 = 6;
/// What the tool compares the name of an interface with that cannot be: one has no slash.
pub(super) const NO_INTERFACE: &[u8] = b"INVAL/D\0";
/// `IP_OFFMASK` (`netinet/ip.h`)
pub(super) const FRAGMENT_MASK: [u8; 2] = [0x1f, 0xff];
/// Where a TCP header has its flags.
pub(super) const TCP_FLAGS_OFFSET: u32 = 13;
/// `XT_TCP_INV_SRCPT`, `XT_UDP_INV_SRCPT`
pub(super) const INV_SOURCE: u8 = 0x01;
/// `XT_TCP_INV_DSTPT`, `XT_UDP_INV_DSTPT`
pub(super) const INV_DESTINATION: u8 = 0x02;
/// `XT_TCP_INV_FLAGS`
pub(super) const INV_FLAGS: u8 = 0x04;
/// `XT_LIMIT_SCALE`: the parts of a second.
pub(super) const LIMIT_SCALE: u64 = 10_000;
/// Day, hour, minute and second.
const LIMIT_UNITS: [u64; 4] = [86_400, 3600, 60, 1];
/// `XT_NFLOG_F_COPY_LEN`
pub(super) const NFLOG_COPY_LENGTH: u16 = 1;
/// `NFTA_LOG_GROUP`
pub(super) const NFTA_LOG_GROUP: u16 = 1;
/// `NFTA_LOG_PREFIX`
pub(super) const NFTA_LOG_PREFIX: u16 = 2;
/// `NFTA_LOG_SNAPLEN`
pub(super) const NFTA_LOG_SNAPLEN: u16 = 3;
/// `NFTA_LOG_QTHRESHOLD`
pub(super) const NFTA_LOG_QTHRESHOLD: u16 = 4;
