//! A flow as the kernel tells of it, and what identifies it.

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::message::Message;

use crate::wire::cta;
use crate::{Family, ProtocolInfo, Status, Tuple};

/// A flow as the kernel tells of it. What an event or an older kernel leaves out is `None`.
///
/// It prints as a line of `conntrack -L`; see [`Format`](crate::Format) for the other ways.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flow {
    /// The direction of the first packet.
    pub original: Tuple,
    /// The direction of the answers. Where a translation applies, it is not the original one turned round.
    pub reply: Tuple,
    /// What has become of it.
    pub status: Option<Status>,
    /// Seconds until it goes when no packet comes.
    pub timeout: Option<u32>,
    /// The state of its protocol.
    pub protocol_info: Option<ProtocolInfo>,
    /// `ct mark`. Absent when the kernel is built without.
    pub mark: Option<u32>,
    /// The zone of both directions; zone 0 is `None`. A zone of one direction is in its [`Tuple`].
    pub zone: Option<u16>,
    /// A number that tells it from a later flow with the same tuples.
    pub id: Option<u32>,
    /// How many parts of the kernel hold it.
    pub in_use: Option<u32>,
    /// Packets and bytes of each direction, original first; with `net.netfilter.nf_conntrack_acct`.
    pub counters: [Option<Counters>; 2],
    /// When it began and ended; with `net.netfilter.nf_conntrack_timestamp`.
    pub timestamps: Option<Timestamps>,
    /// The security context, as bytes of text.
    pub security_context: Option<Box<str>>,
    /// The security mark of kernels before 2.6.37.
    pub security_mark: Option<u32>,
    /// The helper that watches it, such as `ftp`.
    pub helper: Option<Box<str>>,
    /// Connection labels: bit n is in byte n / 8.
    pub labels: Option<[u8; 16]>,
}

/// Packets and bytes of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Counters {
    /// Packets.
    pub packets: u64,
    /// Their bytes, headers of the network layer included.
    pub bytes: u64,
}

/// When a flow began and ended, in nanoseconds of Unix time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Timestamps {
    /// When it began.
    pub start: u64,
    /// When it ended: only of an event.
    pub stop: Option<u64>,
}

/// What identifies a flow: its original tuple and zone, and its id, which tells it from a later one that looks alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// The original tuple.
    pub original: Tuple,
    /// The zone of both directions.
    pub zone: Option<u16>,
    /// The id; without, whatever flow has the tuple is meant.
    pub id: Option<u32>,
}

impl Flow {
    /// A flow of which only the tuples are known: to compare, and for tests.
    #[must_use]
    pub const fn between(original: Tuple, reply: Tuple) -> Self {
        Self {
            original,
            reply,
            status: None,
            timeout: None,
            protocol_info: None,
            mark: None,
            zone: None,
            id: None,
            in_use: None,
            counters: [None; 2],
            timestamps: None,
            security_context: None,
            security_mark: None,
            helper: None,
            labels: None,
        }
    }

    /// What identifies it.
    #[must_use]
    pub const fn key(&self) -> FlowKey {
        FlowKey { original: self.original, zone: self.zone, id: self.id }
    }

    /// The family of its addresses.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.original.family()
    }

    /// Its source is translated: answers do not go to where the packets came from (`NFCT_GOPT_IS_SNAT`, `_IS_SPAT`).
    #[must_use]
    pub fn is_source_translated(&self) -> bool {
        self.has(Status::SRC_NAT_DONE)
            && (self.reply.destination() != self.original.source()
                || self.reply.destination_port() != self.original.source_port())
    }

    /// Its destination is translated: answers do not come from where the packets went to.
    #[must_use]
    pub fn is_destination_translated(&self) -> bool {
        self.has(Status::DST_NAT_DONE)
            && (self.reply.source() != self.original.destination()
                || self.reply.source_port() != self.original.destination_port())
    }

    /// All of these bits are known to be set.
    #[must_use]
    pub fn has(&self, bits: Status) -> bool {
        self.status.is_some_and(|status| status.contains(bits))
    }

    /// Reads a message that tells of a flow (`IPCTNL_MSG_CT_NEW`, `IPCTNL_MSG_CT_DELETE`).
    ///
    /// # Errors
    /// When it is malformed or lacks a tuple.
    pub fn decode(message: Message<'_>) -> Result<Self, DecodeError> {
        let (_, attributes) = message.netfilter()?;
        Self::decode_attributes(attributes)
    }

    /// Reads the attributes of such a message.
    ///
    /// # Errors
    /// When they are malformed or a tuple is missing.
    pub fn decode_attributes(attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        let tuple = |kind, what| {
            let attribute = attributes.clone().find(kind)?.ok_or(DecodeError::Missing { what })?;
            Tuple::decode(&attribute)
        };
        let original = tuple(cta::TUPLE_ORIG, "CTA_TUPLE_ORIG")?;
        let mut flow = Self::between(original, tuple(cta::TUPLE_REPLY, "CTA_TUPLE_REPLY")?);
        for attribute in attributes {
            flow.read(&attribute?)?;
        }
        Ok(flow)
    }

    fn read(&mut self, attribute: &Attribute<'_>) -> Result<(), DecodeError> {
        match attribute.kind {
            cta::STATUS => self.status = Some(Status::from_bits_retain(attribute.be32()?)),
            cta::TIMEOUT => self.timeout = Some(attribute.be32()?),
            cta::PROTOINFO => self.protocol_info = ProtocolInfo::decode(attribute)?,
            cta::MARK => self.mark = Some(attribute.be32()?),
            cta::ZONE => self.zone = Some(attribute.be16()?).filter(|zone| *zone != 0),
            cta::ID => self.id = Some(attribute.be32()?),
            cta::USE => self.in_use = Some(attribute.be32()?),
            cta::COUNTERS_ORIG => self.counters[0] = counters(attribute)?,
            cta::COUNTERS_REPLY => self.counters[1] = counters(attribute)?,
            cta::TIMESTAMP => self.timestamps = timestamps(attribute)?,
            cta::SECCTX => self.security_context = name(attribute)?,
            cta::SECMARK => self.security_mark = Some(attribute.be32()?),
            cta::HELP => self.helper = name(attribute)?,
            cta::LABELS => self.labels = attribute.payload.try_into().ok(),
            _ => {}
        }
        Ok(())
    }
}

/// `CTA_COUNTERS_*`; `None` when one of the two numbers is missing.
fn counters(nest: &Attribute<'_>) -> Result<Option<Counters>, DecodeError> {
    let (mut packets, mut bytes) = (None, None);
    for attribute in nest.attributes() {
        let attribute = attribute?;
        match attribute.kind {
            CTA_COUNTERS_PACKETS => packets = Some(attribute.be64()?),
            CTA_COUNTERS_BYTES => bytes = Some(attribute.be64()?),
            _ => {}
        }
    }
    Ok(packets.zip(bytes).map(|(packets, bytes)| Counters { packets, bytes }))
}

fn timestamps(nest: &Attribute<'_>) -> Result<Option<Timestamps>, DecodeError> {
    let (mut start, mut stop) = (None, None);
    for attribute in nest.attributes() {
        let attribute = attribute?;
        match attribute.kind {
            CTA_TIMESTAMP_START => start = Some(attribute.be64()?),
            CTA_TIMESTAMP_STOP => stop = Some(attribute.be64()?),
            _ => {}
        }
    }
    Ok(start.map(|start| Timestamps { start, stop }))
}

/// The name inside `CTA_HELP` and `CTA_SECCTX`. Bytes that are no text are replaced, so that a name never breaks a listing.
fn name(nest: &Attribute<'_>) -> Result<Option<Box<str>>, DecodeError> {
    let Some(attribute) = nest.attributes().find(NAME)? else { return Ok(None) };
    let end = attribute.payload.iter().position(|byte| *byte == 0).unwrap_or(attribute.payload.len());
    let text = String::from_utf8_lossy(attribute.payload.get(..end).unwrap_or_default());
    Ok(Some(text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()))
}

/// `CTA_COUNTERS_PACKETS`, be64
const CTA_COUNTERS_PACKETS: u16 = 1;
/// `CTA_COUNTERS_BYTES`, be64
const CTA_COUNTERS_BYTES: u16 = 2;
/// `CTA_TIMESTAMP_START`, be64
const CTA_TIMESTAMP_START: u16 = 1;
/// `CTA_TIMESTAMP_STOP`, be64
const CTA_TIMESTAMP_STOP: u16 = 2;
/// `CTA_HELP_NAME`, `CTA_SECCTX_NAME`, string
const NAME: u16 = 1;
