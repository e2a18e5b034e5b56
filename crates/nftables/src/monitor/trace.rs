//! What packets meet on their way: the trace of those with `meta nftrace set 1` (`enum nft_trace_attributes`).

use std::fmt;

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::Attributes;

use crate::expr::{Data, VerdictCode, decode_verdict};
use crate::family::Family;
use crate::name::Name;
use crate::object::Policy;
use crate::read::{name, need};

/// A step of a packet that is traced: a rule that it meets, the end of a chain's rules, or the policy of a base chain.
///
/// Printed, it is what `nft monitor trace` says, with the handle of the rule instead of its text: `trace id 2f9e66d3 ip t c rule handle 4
/// (verdict drop)`. nft leaves out the ends of chains' rules, which Linux 6.1 does not tell, and says a packet's headers in a line of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    /// The family of the chain's table.
    pub family: Family,
    /// The packet, as long as it is the same one.
    pub id: u32,
    /// What it has met.
    pub step: TraceStep,
    /// The table.
    pub table: Name,
    /// The chain.
    pub chain: Name,
    /// The handle of the rule.
    pub rule: Option<u64>,
    /// What comes of it; a verdict that nft's language cannot say is a code (`queue`, or `stolen` by an expression).
    pub verdict: Option<Data>,
    /// The policy of the chain, in the step that is about it.
    pub policy: Option<Policy>,
    /// The packet's mark, if it has one.
    pub mark: Option<u32>,
    /// `NFPROTO_*` of the packet; only in its first step of a chain, as are the devices and headers.
    pub protocol: Option<u32>,
    /// The device that it came in by.
    pub iif: Option<TraceDevice>,
    /// The device that it goes out by.
    pub oif: Option<TraceDevice>,
    /// The beginning of its link layer's header: at most 20 bytes, with VLAN tags.
    pub link_header: Vec<u8>,
    /// The beginning of its network layer's header: at most 40 bytes.
    pub network_header: Vec<u8>,
    /// The beginning of its transport layer's header: at most 20 bytes.
    pub transport_header: Vec<u8>,
    /// What connection tracking knows of it. Since Linux 6.16.
    pub conntrack: Option<TraceConntrack>,
}

/// What a packet has met (`enum nft_trace_types`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TraceStep {
    /// `NFT_TRACETYPE_POLICY`: the end of a base chain.
    Policy,
    /// `NFT_TRACETYPE_RETURN`: `return`.
    Return,
    /// `NFT_TRACETYPE_RULE`: a rule; without one, the end of a chain's rules.
    Rule,
    /// One that this crate does not know, by its number.
    Other(u32),
}

/// A device of a packet that is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct TraceDevice {
    /// Its index.
    pub index: u32,
    /// Its type, `ARPHRD_*`.
    pub kind: u16,
}

/// What connection tracking knows of a packet that is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct TraceConntrack {
    /// The identifier of its connection.
    pub id: u32,
    /// 0 in the direction in which the connection was opened, 1 in the other.
    pub direction: u8,
    /// `IPS_*`: what has become of the connection.
    pub status: u32,
    /// A bit for each state that the packet may be in, as `ct state` has them.
    pub state: u32,
}

impl Trace {
    /// Reads the attributes of a message about a packet.
    ///
    /// # Errors
    /// When they are malformed, or without a table, a chain and a packet.
    pub fn decode(family: Family, attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        let (mut id, mut step, mut table, mut chain) = (None, None, None, None);
        let mut trace = Self {
            family,
            id: 0,
            step: TraceStep::Other(0),
            table: Name::held(""),
            chain: Name::held(""),
            rule: None,
            verdict: None,
            policy: None,
            mark: None,
            protocol: None,
            iif: None,
            oif: None,
            link_header: Vec::new(),
            network_header: Vec::new(),
            transport_header: Vec::new(),
            conntrack: None,
        };
        for attribute in attributes {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_TRACE_TABLE => table = Some(name(&attribute)?),
                NFTA_TRACE_CHAIN => chain = Some(name(&attribute)?),
                NFTA_TRACE_RULE_HANDLE => trace.rule = Some(attribute.be64()?),
                NFTA_TRACE_TYPE => {
                    step = Some(match attribute.be32()? {
                        1 => TraceStep::Policy,
                        2 => TraceStep::Return,
                        3 => TraceStep::Rule,
                        other => TraceStep::Other(other),
                    });
                }
                NFTA_TRACE_VERDICT => trace.verdict = Some(decode_verdict(&attribute)?.0),
                NFTA_TRACE_ID => id = Some(attribute.be32()?),
                NFTA_TRACE_LL_HEADER => trace.link_header = attribute.payload.to_vec(),
                NFTA_TRACE_NETWORK_HEADER => trace.network_header = attribute.payload.to_vec(),
                NFTA_TRACE_TRANSPORT_HEADER => trace.transport_header = attribute.payload.to_vec(),
                NFTA_TRACE_IIF => trace.iif.get_or_insert_default().index = attribute.be32()?,
                NFTA_TRACE_IIFTYPE => trace.iif.get_or_insert_default().kind = attribute.be16()?,
                NFTA_TRACE_OIF => trace.oif.get_or_insert_default().index = attribute.be32()?,
                NFTA_TRACE_OIFTYPE => trace.oif.get_or_insert_default().kind = attribute.be16()?,
                NFTA_TRACE_MARK => trace.mark = Some(attribute.be32()?),
                NFTA_TRACE_NFPROTO => trace.protocol = Some(attribute.be32()?),
                NFTA_TRACE_POLICY => {
                    trace.policy = Some(if attribute.be32()? == 0 { Policy::Drop } else { Policy::Accept });
                }
                NFTA_TRACE_CT_ID => trace.conntrack.get_or_insert_default().id = attribute.be32()?,
                NFTA_TRACE_CT_DIRECTION => {
                    trace.conntrack.get_or_insert_default().direction = attribute.u8()?;
                }
                NFTA_TRACE_CT_STATUS => trace.conntrack.get_or_insert_default().status = attribute.be32()?,
                NFTA_TRACE_CT_STATE => trace.conntrack.get_or_insert_default().state = attribute.be32()?,
                _ => {}
            }
        }
        trace.id = need(id, "NFTA_TRACE_ID")?;
        trace.step = need(step, "NFTA_TRACE_TYPE")?;
        trace.table = need(table, "NFTA_TRACE_TABLE")?;
        trace.chain = need(chain, "NFTA_TRACE_CHAIN")?;
        Ok(trace)
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trace id {:08x} {} {} {}", self.id, self.family, self.table, self.chain)?;
        let verdict = || match &self.verdict {
            Some(Data::Verdict(verdict)) => format!("verdict {verdict}"),
            // The upper half is the number of a queue.
            Some(Data::Code(VerdictCode(code))) => match code & 0xff {
                2 => "verdict stolen".to_owned(),
                3 => format!("verdict queue to {}", code >> 16),
                4 => "verdict repeat".to_owned(),
                _ => format!("verdict {code}"),
            },
            _ => "no verdict".to_owned(),
        };
        match (self.step, self.rule, self.policy) {
            (TraceStep::Policy, _, Some(policy)) => write!(f, " policy {policy}")?,
            (TraceStep::Rule, Some(handle), _) => return write!(f, " rule handle {handle} ({})", verdict()),
            _ => write!(f, " {}", verdict())?,
        }
        match self.mark {
            Some(mark) => write!(f, " meta mark 0x{mark:08x}"),
            None => Ok(()),
        }
    }
}

const NFTA_TRACE_TABLE: u16 = 1;
const NFTA_TRACE_CHAIN: u16 = 2;
const NFTA_TRACE_RULE_HANDLE: u16 = 3;
const NFTA_TRACE_TYPE: u16 = 4;
const NFTA_TRACE_VERDICT: u16 = 5;
const NFTA_TRACE_ID: u16 = 6;
const NFTA_TRACE_LL_HEADER: u16 = 7;
const NFTA_TRACE_NETWORK_HEADER: u16 = 8;
const NFTA_TRACE_TRANSPORT_HEADER: u16 = 9;
const NFTA_TRACE_IIF: u16 = 10;
const NFTA_TRACE_IIFTYPE: u16 = 11;
const NFTA_TRACE_OIF: u16 = 12;
const NFTA_TRACE_OIFTYPE: u16 = 13;
const NFTA_TRACE_MARK: u16 = 14;
const NFTA_TRACE_NFPROTO: u16 = 15;
const NFTA_TRACE_POLICY: u16 = 16;
const NFTA_TRACE_CT_ID: u16 = 18;
const NFTA_TRACE_CT_DIRECTION: u16 = 19;
const NFTA_TRACE_CT_STATUS: u16 = 20;
const NFTA_TRACE_CT_STATE: u16 = 21;
