//! What a request says and how it is refused: attributes by number, with the kernel's errors where one is not as it should be.

use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::message::Flags;

use crate::name::Name;

/// One message of a batch, or one that asks for something.
pub(super) struct Request<'a> {
    pub(super) command: u8,
    pub(super) flags: Flags,
    pub(super) family: u8,
    /// The port of the socket that sent it.
    pub(super) port: u32,
    pub(super) attrs: Attrs<'a>,
}

impl Request<'_> {
    /// What the kernel finds wrong with lengths before it looks for the object: here, with those by which
    /// [`probe`](crate::probe) finds out whether an attribute is known.
    pub(super) fn check_lengths(&self) -> Done {
        let user_data = match self.command {
            command::NEWTABLE => 6,
            command::NEWCHAIN => 12,
            command::NEWRULE => 7,
            command::NEWSET => 13,
            command::NEWOBJ => 8,
            _ => return Ok(()),
        };
        if let Some(long) = self.attrs.get(user_data).filter(|data| data.payload.len() > NFT_USERDATA_MAXLEN)
        {
            return Err(refusal(ERANGE).at(Some(long)));
        }
        if self.command == command::NEWCHAIN {
            self.attrs.be32(NFTA_CHAIN_ID)?;
        }
        Ok(())
    }
}

/// Why a message is refused: a positive errno, and the place of the attribute that is to blame where the kernel names one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: i32,
    pub(super) offset: Option<usize>,
}

pub(super) type Done = Result<(), Refusal>;

impl Refusal {
    /// Blames an attribute, in place of any that is blamed already.
    pub(super) fn at(self, attribute: Option<&Attribute<'_>>) -> Self {
        Self { offset: attribute.map(|attribute| attribute.offset), ..self }
    }
}

/// A refusal that blames no attribute.
pub(super) fn refusal(code: i32) -> Refusal {
    Refusal { code, offset: None }
}

pub(super) fn refuse<T>(code: i32) -> Result<T, Refusal> {
    Err(refusal(code))
}

/// The attributes of a message or a nest. Of two with one number the later counts, as in the kernel.
pub(super) struct Attrs<'a> {
    list: [Option<Attribute<'a>>; KINDS],
}

impl<'a> Attrs<'a> {
    pub(super) fn read(attributes: Attributes<'a>) -> Result<Self, Refusal> {
        let mut list = [None; KINDS];
        for attribute in attributes {
            let attribute = attribute.map_err(|_| refusal(EINVAL))?;
            if let Some(slot) = list.get_mut(usize::from(attribute.kind)) {
                *slot = Some(attribute);
            }
        }
        Ok(Self { list })
    }

    /// Those of a nest; none where there is no nest.
    pub(super) fn nested(nest: Option<&Attribute<'a>>) -> Result<Self, Refusal> {
        nest.map_or_else(|| Ok(Self { list: [None; KINDS] }), |nest| Self::read(nest.attributes()))
    }

    pub(super) fn get(&self, kind: u16) -> Option<&Attribute<'a>> {
        self.list.get(usize::from(kind))?.as_ref()
    }

    pub(super) fn has(&self, kind: u16) -> bool {
        self.get(kind).is_some()
    }

    /// One without which nothing goes.
    pub(super) fn need(&self, kind: u16) -> Result<&Attribute<'a>, Refusal> {
        self.get(kind).ok_or(refusal(EINVAL))
    }

    pub(super) fn be32(&self, kind: u16) -> Result<Option<u32>, Refusal> {
        self.number(kind, Attribute::be32)
    }

    pub(super) fn be64(&self, kind: u16) -> Result<Option<u64>, Refusal> {
        self.number(kind, Attribute::be64)
    }

    /// A name of at most 255 bytes.
    pub(super) fn name(&self, kind: u16) -> Result<Option<Name>, Refusal> {
        let Some(attribute) = self.get(kind) else { return Ok(None) };
        let text = attribute.str().map_err(|_| refusal(EINVAL).at(Some(attribute)))?;
        if text.len() > MAX_NAME {
            return Err(refusal(ERANGE).at(Some(attribute)));
        }
        Ok(Some(Name::held(text)))
    }

    /// The bytes of one, or none.
    pub(super) fn bytes(&self, kind: u16) -> Vec<u8> {
        self.get(kind).map_or_else(Vec::new, |attribute| attribute.payload.to_vec())
    }

    fn number<T>(
        &self,
        kind: u16,
        read: impl Fn(&Attribute<'a>) -> Result<T, sluicegate_netlink::DecodeError>,
    ) -> Result<Option<T>, Refusal> {
        self.get(kind)
            .map(|attribute| read(attribute).map_err(|_| refusal(ERANGE).at(Some(attribute))))
            .transpose()
    }
}

/// More than any object of `nf_tables` has attributes.
const KINDS: usize = 24;
const NFT_USERDATA_MAXLEN: usize = 256;
const NFTA_CHAIN_ID: u16 = 11;
/// `NFT_NAME_MAXLEN` without the NUL.
const MAX_NAME: usize = 255;

pub(super) const EPERM: i32 = 1;
pub(super) const ENOENT: i32 = 2;
pub(super) const E2BIG: i32 = 7;
pub(super) const EBUSY: i32 = 16;
pub(super) const EEXIST: i32 = 17;
pub(super) const EINVAL: i32 = 22;
pub(super) const ENFILE: i32 = 23;
pub(super) const EFBIG: i32 = 27;
pub(super) const EMLINK: i32 = 31;
pub(super) const ERANGE: i32 = 34;
pub(super) const ELOOP: i32 = 40;
pub(super) const ENODATA: i32 = 61;
pub(super) const EPROTO: i32 = 71;
pub(super) const EOVERFLOW: i32 = 75;
pub(super) const ERESTART: i32 = 85;
pub(super) const EOPNOTSUPP: i32 = 95;
pub(super) const EAFNOSUPPORT: i32 = 97;

/// `NFNL_SUBSYS_NFTABLES`
pub(super) const SUBSYSTEM: u8 = 10;

/// `enum nf_tables_msg_types`
pub(super) mod command {
    pub(in crate::fake) const NEWTABLE: u8 = 0;
    pub(in crate::fake) const GETTABLE: u8 = 1;
    pub(in crate::fake) const DELTABLE: u8 = 2;
    pub(in crate::fake) const NEWCHAIN: u8 = 3;
    pub(in crate::fake) const GETCHAIN: u8 = 4;
    pub(in crate::fake) const DELCHAIN: u8 = 5;
    pub(in crate::fake) const NEWRULE: u8 = 6;
    pub(in crate::fake) const GETRULE: u8 = 7;
    pub(in crate::fake) const DELRULE: u8 = 8;
    pub(in crate::fake) const NEWSET: u8 = 9;
    pub(in crate::fake) const GETSET: u8 = 10;
    pub(in crate::fake) const DELSET: u8 = 11;
    pub(in crate::fake) const NEWSETELEM: u8 = 12;
    pub(in crate::fake) const GETSETELEM: u8 = 13;
    pub(in crate::fake) const DELSETELEM: u8 = 14;
    pub(in crate::fake) const NEWGEN: u8 = 15;
    pub(in crate::fake) const GETGEN: u8 = 16;
    pub(in crate::fake) const NEWOBJ: u8 = 18;
    pub(in crate::fake) const GETOBJ: u8 = 19;
    pub(in crate::fake) const DELOBJ: u8 = 20;
    pub(in crate::fake) const GETOBJ_RESET: u8 = 21;
    pub(in crate::fake) const NEWFLOWTABLE: u8 = 22;
    pub(in crate::fake) const GETFLOWTABLE: u8 = 23;
    pub(in crate::fake) const DELFLOWTABLE: u8 = 24;
    pub(in crate::fake) const GETRULE_RESET: u8 = 25;
    pub(in crate::fake) const DESTROYTABLE: u8 = 26;
    pub(in crate::fake) const DESTROYCHAIN: u8 = 27;
    pub(in crate::fake) const DESTROYRULE: u8 = 28;
    pub(in crate::fake) const DESTROYSET: u8 = 29;
    pub(in crate::fake) const DESTROYSETELEM: u8 = 30;
    pub(in crate::fake) const DESTROYOBJ: u8 = 31;
    pub(in crate::fake) const DESTROYFLOWTABLE: u8 = 32;
    pub(in crate::fake) const GETSETELEM_RESET: u8 = 33;
}
