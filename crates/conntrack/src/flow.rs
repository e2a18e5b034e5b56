//! Flows as the kernel reports them, and their identity.

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::message::Message;
use sluicegate_netlink::text::decode;

use crate::wire::cta;
use crate::{Family, Labels, ProtocolInfo, Status, Tuple};

/// A flow as the kernel reports it. Attributes that an event or an older kernel omits are `None`.
///
/// It prints as a line of `conntrack -L`; see [`Format`](crate::Format) for the other ways.
///
/// ```no_run
/// use sluicegate_conntrack::{Client, Filter, Status};
///
/// for flow in Client::open()?.list(&Filter::default())? {
///     if flow.status.is_some_and(|status| status.contains(Status::DST_NAT)) {
///         println!("{} was sent on to {}", flow.original.destination(), flow.reply.source());
///     }
/// }
/// # Ok::<(), sluicegate_conntrack::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flow {
    /// The direction of the first packet.
    pub original: Tuple,
    /// The direction of the answers. It is the inverse of the original one unless addresses are translated.
    pub reply: Tuple,
    /// The state bits of the flow.
    pub status: Option<Status>,
    /// The number of seconds without a packet after which the flow expires.
    pub timeout: Option<u32>,
    /// The state of its protocol.
    pub protocol_info: Option<ProtocolInfo>,
    /// The mark (`ct mark`). Absent if the kernel is built without marks.
    pub mark: Option<u32>,
    /// The zone of both directions; zone 0 is `None`. A zone of one direction is in its [`Tuple`].
    pub zone: Option<u16>,
    /// A number that distinguishes it from a later flow with the same tuples.
    pub id: Option<u32>,
    /// The reference count.
    pub in_use: Option<u32>,
    /// Packets and bytes of each direction, original first; with `net.netfilter.nf_conntrack_acct`.
    pub counters: [Option<Counters>; 2],
    /// The times of its creation and deletion; with `net.netfilter.nf_conntrack_timestamp`.
    pub timestamps: Option<Timestamps>,
    /// The security context.
    pub security_context: Option<Box<str>>,
    /// The security mark of kernels before 2.6.37.
    pub security_mark: Option<u32>,
    /// The name of its helper, such as `ftp`.
    pub helper: Option<Box<str>>,
    /// Connection labels. The kernel tells of them when one is set.
    pub labels: Option<Labels>,
}

/// Packets and bytes of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Counters {
    /// The number of packets.
    pub packets: u64,
    /// The number of bytes, including network-layer headers.
    pub bytes: u64,
}

/// The times of a flow's creation and deletion, in nanoseconds of Unix time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Timestamps {
    /// The time of its creation.
    pub start: u64,
    /// The time of its deletion, which only an event has.
    pub stop: Option<u64>,
}

/// The identity of a flow: its original tuple and zone, and its id, which distinguishes it from a later flow
/// with the same tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// The original tuple.
    pub original: Tuple,
    /// The zone of both directions.
    pub zone: Option<u16>,
    /// The id; `None` means the flow that has the tuple, whatever its id.
    pub id: Option<u32>,
}

impl Flow {
    /// Returns a flow that has only tuples, for comparisons and tests.
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

    /// Returns the identity of the flow.
    #[must_use]
    pub const fn key(&self) -> FlowKey {
        FlowKey { original: self.original, zone: self.zone, id: self.id }
    }

    /// Returns the family of its addresses.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.original.family()
    }

    /// Returns true when its source is translated: answers have another destination than the source of the
    /// packets (`NFCT_GOPT_IS_SNAT`, `_IS_SPAT`).
    #[must_use]
    pub fn is_source_translated(&self) -> bool {
        self.has(Status::SRC_NAT_DONE)
            && (self.reply.destination() != self.original.source()
                || self.reply.destination_port() != self.original.source_port())
    }

    /// Returns true when its destination is translated: answers have another source than the destination of
    /// the packets.
    #[must_use]
    pub fn is_destination_translated(&self) -> bool {
        self.has(Status::DST_NAT_DONE)
            && (self.reply.source() != self.original.destination()
                || self.reply.source_port() != self.original.destination_port())
    }

    /// Returns true when all of these bits are known to be set.
    #[must_use]
    pub fn has(&self, bits: Status) -> bool {
        self.status.is_some_and(|status| status.contains(bits))
    }

    /// Decodes a message about a flow (`IPCTNL_MSG_CT_NEW`, `IPCTNL_MSG_CT_DELETE`).
    ///
    /// # Errors
    /// When it is malformed or lacks a tuple.
    pub fn decode(message: Message<'_>) -> Result<Self, DecodeError> {
        let (_, attributes) = message.netfilter()?;
        Self::decode_attributes(attributes)
    }

    /// Decodes the attributes of such a message.
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
            cta::LABELS => self.labels = attribute.payload.try_into().ok().map(Labels),
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

/// Returns the name inside `CTA_HELP` and `CTA_SECCTX`. Control characters are replaced, so that a name
/// does not break a listing; bytes that are not UTF-8 are represented as [`decode`] does.
fn name(nest: &Attribute<'_>) -> Result<Option<Box<str>>, DecodeError> {
    Ok(nest.attributes().find(NAME)?.map(|attribute| printable(attribute.payload)))
}

/// Returns the text before the first NUL, without control characters.
pub(crate) fn printable(payload: &[u8]) -> Box<str> {
    let text = decode(payload.split(|byte| *byte == 0).next().unwrap_or_default());
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
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
