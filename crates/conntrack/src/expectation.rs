//! Expectations: flows that a helper has announced, as the data connection of FTP.

use std::fmt;

use bitflags::bitflags;
use sluicegate_netlink::DecodeError;
use sluicegate_netlink::message::Message;

use crate::Tuple;
use crate::flow::printable;

/// An expectation as the kernel reports it (`CTA_EXPECT_*`). A flow that matches
/// [`expected`](Self::expected) under [`mask`](Self::mask) belongs to the flow [`master`](Self::master).
///
/// It prints as a line of `conntrack -L expect`; see [`Format::expectation`](crate::Format::expectation) for
/// the other ways.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expectation {
    /// The original direction of the expected flow.
    pub expected: Tuple,
    /// Which bits of its addresses and ports are compared: a tuple of masks.
    pub mask: Tuple,
    /// The original direction of the flow that announced it.
    pub master: Tuple,
    /// The number of seconds until it is forgotten.
    pub timeout: Option<u32>,
    /// A number that distinguishes it from a later expectation of the same tuple.
    pub id: Option<u32>,
    /// The name of the helper, such as `ftp`.
    pub helper: Option<Box<str>>,
    /// The zone of its master; zone 0 is `None`.
    pub zone: Option<u16>,
    /// How long and for whom it is there.
    pub flags: ExpectationFlags,
    /// The class of the helper's policy that it counts for.
    pub class: Option<u32>,
}

/// The identity of an expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExpectationKey {
    /// The original direction of the expected flow. The kernel finds the expectation that covers it.
    pub expected: Tuple,
    /// The zone of its master.
    pub zone: Option<u16>,
    /// The id; `None` means the expectation that covers the tuple, whatever its id.
    pub id: Option<u32>,
}

bitflags! {
    /// The flags of an expectation (`NF_CT_EXPECT_*` of `linux/netfilter/nf_conntrack_common.h`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ExpectationFlags: u32 {
        /// `NF_CT_EXPECT_PERMANENT`: it stays after the first flow that matches.
        const PERMANENT = 1;
        /// `NF_CT_EXPECT_INACTIVE`: no flow matches it yet.
        const INACTIVE = 1 << 1;
        /// `NF_CT_EXPECT_USERSPACE`: a helper in user space made it.
        const USERSPACE = 1 << 2;

        const _ = !0;
    }
}

impl Expectation {
    /// Returns the identity of the expectation.
    #[must_use]
    pub const fn key(&self) -> ExpectationKey {
        ExpectationKey { expected: self.expected, zone: self.zone, id: self.id }
    }

    /// Decodes a message about an expectation (`IPCTNL_MSG_EXP_NEW`, `IPCTNL_MSG_EXP_DELETE`).
    ///
    /// # Errors
    /// When it is malformed or lacks a tuple.
    pub fn decode(message: Message<'_>) -> Result<Self, DecodeError> {
        let (_, attributes) = message.netfilter()?;
        let tuple = |kind, what| {
            let attribute = attributes.clone().find(kind)?.ok_or(DecodeError::Missing { what })?;
            Tuple::decode(&attribute)
        };
        let mut found = Self {
            expected: tuple(cta_expect::TUPLE, "CTA_EXPECT_TUPLE")?,
            mask: tuple(cta_expect::MASK, "CTA_EXPECT_MASK")?,
            master: tuple(cta_expect::MASTER, "CTA_EXPECT_MASTER")?,
            timeout: None,
            id: None,
            helper: None,
            zone: None,
            flags: ExpectationFlags::empty(),
            class: None,
        };
        for attribute in attributes {
            let attribute = attribute?;
            match attribute.kind {
                cta_expect::TIMEOUT => found.timeout = Some(attribute.be32()?),
                cta_expect::ID => found.id = Some(attribute.be32()?),
                cta_expect::HELP_NAME => found.helper = Some(printable(attribute.payload)),
                cta_expect::ZONE => found.zone = Some(attribute.be16()?).filter(|zone| *zone != 0),
                cta_expect::FLAGS => found.flags = ExpectationFlags::from_bits_retain(attribute.be32()?),
                cta_expect::CLASS => found.class = Some(attribute.be32()?),
                _ => {}
            }
        }
        Ok(found)
    }
}

/// Prints a line of `conntrack -L expect`.
impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::Format::default().expectation(self).fmt(f)
    }
}

/// `enum ctattr_expect`
pub(crate) mod cta_expect {
    /// `CTA_EXPECT_MASTER`, nested
    pub(crate) const MASTER: u16 = 1;
    /// `CTA_EXPECT_TUPLE`, nested
    pub(crate) const TUPLE: u16 = 2;
    /// `CTA_EXPECT_MASK`, nested
    pub(crate) const MASK: u16 = 3;
    /// `CTA_EXPECT_TIMEOUT`, be32, seconds
    pub(crate) const TIMEOUT: u16 = 4;
    /// `CTA_EXPECT_ID`, be32
    pub(crate) const ID: u16 = 5;
    /// `CTA_EXPECT_HELP_NAME`, string
    pub(crate) const HELP_NAME: u16 = 6;
    /// `CTA_EXPECT_ZONE`, be16
    pub(crate) const ZONE: u16 = 7;
    /// `CTA_EXPECT_FLAGS`, be32
    pub(crate) const FLAGS: u16 = 8;
    /// `CTA_EXPECT_CLASS`, be32
    pub(crate) const CLASS: u16 = 9;
}
