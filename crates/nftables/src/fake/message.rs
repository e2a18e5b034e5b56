//! Requests and refusals: attributes by number, and the kernel's errors for missing or malformed ones.

use sluicegate_netlink::Errno;
use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::message::Flags;
use sluicegate_netlink::text;

use crate::name::Name;
use crate::object::chain::wire::*;
use crate::object::rule::wire::*;
use crate::object::set::wire::*;
use crate::object::stateful::wire::*;
use crate::object::table::wire::*;
use crate::wire::message::*;

/// A message of a batch, or a request for a dump or an object.
pub(super) struct Request<'a> {
    pub(super) command: u8,
    pub(super) flags: Flags,
    pub(super) family: u8,
    /// The port of the sending socket.
    pub(super) port: u32,
    pub(super) attrs: Attrs<'a>,
}

impl Request<'_> {
    /// Refuses lengths that the kernel refuses before it looks for the object. Among others these are the
    /// attributes that [`probe`](crate::probe) uses to find out whether a kernel supports them.
    pub(super) fn check_lengths(&self) -> Done {
        let user_data = match self.command {
            NFT_MSG_NEWTABLE => NFTA_TABLE_USERDATA,
            NFT_MSG_NEWCHAIN => NFTA_CHAIN_USERDATA,
            NFT_MSG_NEWRULE => NFTA_RULE_USERDATA,
            NFT_MSG_NEWSET => NFTA_SET_USERDATA,
            NFT_MSG_NEWOBJ => NFTA_OBJ_USERDATA,
            _ => return Ok(()),
        };
        if let Some(long) = self.attrs.get(user_data).filter(|data| data.payload.len() > NFT_USERDATA_MAXLEN)
        {
            return Err(refusal(Errno::ERANGE).at(Some(long)));
        }
        if self.command == NFT_MSG_NEWCHAIN {
            self.attrs.be32(NFTA_CHAIN_ID)?;
        }
        Ok(())
    }
}

/// The reason why a message is refused: an errno, and the offset of the attribute at fault if the kernel
/// reports one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) errno: Errno,
    pub(super) offset: Option<usize>,
}

pub(super) type Done = Result<(), Refusal>;

impl Refusal {
    /// Sets the attribute at fault, replacing any set before.
    pub(super) fn at(self, attribute: Option<&Attribute<'_>>) -> Self {
        Self { offset: attribute.map(|attribute| attribute.offset), ..self }
    }
}

/// Creates a refusal without an attribute.
pub(super) fn refusal(errno: Errno) -> Refusal {
    Refusal { errno, offset: None }
}

pub(super) fn refuse<T>(errno: Errno) -> Result<T, Refusal> {
    Err(refusal(errno))
}

/// The attributes of a message or a nest. As in the kernel, the last one counts if several have the same
/// number.
pub(super) struct Attrs<'a> {
    list: [Option<Attribute<'a>>; KINDS],
}

impl<'a> Attrs<'a> {
    pub(super) fn read(attributes: Attributes<'a>) -> Result<Self, Refusal> {
        let mut list = [None; KINDS];
        for attribute in attributes {
            let attribute = attribute.map_err(|_| refusal(Errno::EINVAL))?;
            if let Some(slot) = list.get_mut(usize::from(attribute.kind)) {
                *slot = Some(attribute);
            }
        }
        Ok(Self { list })
    }

    /// Decodes the attributes of a nest; empty if the nest is absent.
    pub(super) fn nested(nest: Option<&Attribute<'a>>) -> Result<Self, Refusal> {
        nest.map_or_else(|| Ok(Self { list: [None; KINDS] }), |nest| Self::read(nest.attributes()))
    }

    pub(super) fn get(&self, kind: u16) -> Option<&Attribute<'a>> {
        self.list.get(usize::from(kind))?.as_ref()
    }

    pub(super) fn has(&self, kind: u16) -> bool {
        self.get(kind).is_some()
    }

    /// Returns an attribute that must be present.
    pub(super) fn need(&self, kind: u16) -> Result<&Attribute<'a>, Refusal> {
        self.get(kind).ok_or(refusal(Errno::EINVAL))
    }

    pub(super) fn be32(&self, kind: u16) -> Result<Option<u32>, Refusal> {
        self.number(kind, Attribute::be32)
    }

    pub(super) fn be64(&self, kind: u16) -> Result<Option<u64>, Refusal> {
        self.number(kind, Attribute::be64)
    }

    /// Returns a name of at most 255 bytes.
    pub(super) fn name(&self, kind: u16) -> Result<Option<Name>, Refusal> {
        let Some(attribute) = self.get(kind) else { return Ok(None) };
        let text = attribute.text().map_err(|_| refusal(Errno::EINVAL).at(Some(attribute)))?;
        if text::byte_len(&text) > MAX_NAME {
            return Err(refusal(Errno::ERANGE).at(Some(attribute)));
        }
        Ok(Some(Name::from_kernel(&text)))
    }

    /// Returns the payload of an attribute; empty if it is absent.
    pub(super) fn bytes(&self, kind: u16) -> Vec<u8> {
        self.get(kind).map_or_else(Vec::new, |attribute| attribute.payload.to_vec())
    }

    fn number<T>(
        &self,
        kind: u16,
        read: impl Fn(&Attribute<'a>) -> Result<T, sluicegate_netlink::DecodeError>,
    ) -> Result<Option<T>, Refusal> {
        self.get(kind)
            .map(|attribute| read(attribute).map_err(|_| refusal(Errno::ERANGE).at(Some(attribute))))
            .transpose()
    }
}

/// An upper bound of the attribute numbers of any `nf_tables` object.
const KINDS: usize = 24;
const NFT_USERDATA_MAXLEN: usize = 256;
/// `NFT_NAME_MAXLEN` without the NUL.
const MAX_NAME: usize = 255;
