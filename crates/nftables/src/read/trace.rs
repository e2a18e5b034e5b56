//! The steps of packets with `meta nftrace set 1` through the ruleset (`enum nft_trace_attributes`).

use std::fmt;

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::Attributes;

use crate::expr::{Data, VerdictCode, decode_verdict};
use crate::family::Family;
use crate::name::Name;
use crate::object::Policy;
use crate::wire::attributes::attributes;
use crate::wire::decode::{name, need};

/// A step of a traced packet: a rule that it matches, the end of a chain's rules, or the policy of a base
/// chain.
///
/// Displayed, it is a line of `nft monitor trace`, with the handle of the rule instead of its text: `trace
/// id 2f9e66d3 ip t c rule handle 4 (verdict drop)`. nft leaves out the ends of chains' rules, which Linux
/// 6.1 does not report, and prints a packet's headers on a line of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    /// The family of the chain's table.
    pub family: Family,
    /// The identifier of the packet, the same in all of its steps.
    pub id: u32,
    /// The kind of step.
    pub step: TraceStep,
    /// The table.
    pub table: Name,
    /// The chain.
    pub chain: Name,
    /// The handle of the rule.
    pub rule: Option<u64>,
    /// The verdict; one that nft's language cannot express is a code (`queue`, or `stolen` by an
    /// expression).
    pub verdict: Option<Data>,
    /// The policy of the chain, in the step at the end of a base chain.
    pub policy: Option<Policy>,
    /// The packet's mark, if it has one.
    pub mark: Option<u32>,
    /// `NFPROTO_*` of the packet; only in its first step in a chain, like the devices and headers.
    pub protocol: Option<u32>,
    /// The input device.
    pub iif: Option<TraceDevice>,
    /// The output device.
    pub oif: Option<TraceDevice>,
    /// The start of its link layer header: at most 20 bytes, with VLAN tags.
    pub link_header: Vec<u8>,
    /// The start of its network layer header: at most 40 bytes.
    pub network_header: Vec<u8>,
    /// The start of its transport layer header: at most 20 bytes.
    pub transport_header: Vec<u8>,
    /// The connection tracking state of the packet. Since Linux 6.16.
    pub conntrack: Option<TraceConntrack>,
}

/// The kind of a trace step (`enum nft_trace_types`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TraceStep {
    /// `NFT_TRACETYPE_POLICY`: the end of a base chain.
    Policy,
    /// `NFT_TRACETYPE_RETURN`: `return`.
    Return,
    /// `NFT_TRACETYPE_RULE`: a rule; without one, the end of a chain's rules.
    Rule,
    /// A type that this crate does not know, by its number.
    Other(u32),
}

/// A device of a traced packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct TraceDevice {
    /// Its index.
    pub index: u32,
    /// Its type, `ARPHRD_*`.
    pub kind: u16,
}

/// The connection tracking state of a traced packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct TraceConntrack {
    /// The identifier of its connection.
    pub id: u32,
    /// 0 in the direction in which the connection was opened, 1 in the other.
    pub direction: u8,
    /// `IPS_*`: the status bits of the connection.
    pub status: u32,
    /// A bit for each state of the packet, with the values of `ct state`.
    pub state: u32,
}

impl Trace {
    /// Parses the attributes of a trace message.
    ///
    /// # Errors
    /// If they are malformed, or the table, the chain or the packet is missing.
    pub fn decode(family: Family, attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        let (mut id, mut step, mut table, mut chain) = (None, None, None, None);
        let mut trace = Self {
            family,
            id: 0,
            step: TraceStep::Other(0),
            table: Name::from_kernel(""),
            chain: Name::from_kernel(""),
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

attributes! {
    TRACE: "enum nft_trace_attributes, linux/netfilter/nf_tables.h" {
        NFTA_TRACE_TABLE = 1,
        NFTA_TRACE_CHAIN = 2,
        NFTA_TRACE_RULE_HANDLE = 3,
        NFTA_TRACE_TYPE = 4,
        NFTA_TRACE_VERDICT = 5,
        NFTA_TRACE_ID = 6,
        NFTA_TRACE_LL_HEADER = 7,
        NFTA_TRACE_NETWORK_HEADER = 8,
        NFTA_TRACE_TRANSPORT_HEADER = 9,
        NFTA_TRACE_IIF = 10,
        NFTA_TRACE_IIFTYPE = 11,
        NFTA_TRACE_OIF = 12,
        NFTA_TRACE_OIFTYPE = 13,
        NFTA_TRACE_MARK = 14,
        NFTA_TRACE_NFPROTO = 15,
        NFTA_TRACE_POLICY = 16,
        NFTA_TRACE_CT_ID = 18,
        NFTA_TRACE_CT_DIRECTION = 19,
        NFTA_TRACE_CT_STATUS = 20,
        NFTA_TRACE_CT_STATE = 21,
    }
}
