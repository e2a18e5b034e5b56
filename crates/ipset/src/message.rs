//! Requests and answers of the ipset protocol: encoders beside decoders, without input or output.

use sluicegate_netlink::attr::{Attribute, Attributes, Writer};
use sluicegate_netlink::message::{Flags, Message};
use sluicegate_netlink::{Batch, DecodeError, MessageWriter};

use crate::entry::wire as entry_wire;
use crate::spec::wire as spec_wire;
use crate::text::Verb;
use crate::wire::{ListFlags, Put, SUBSYSTEM, cmd, command, data};
use crate::{Entry, Family, Header, Revisions, SetInfo, SetName, SetSpec, SetType};

/// Whether it is an error to add an entry that exists, or to delete one that does not.
///
/// ```no_run
/// use sluicegate_ipset::{Client, Exist, SetName};
///
/// let mut client = Client::open()?;
/// client.destroy(SetName::new("old")?, Exist::Ignore)?; // no error where there is none
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Exist {
    /// It is an error.
    #[default]
    Fail,
    /// It is not an error, as with `ipset -exist`: creating the same set again, adding an entry that exists
    /// (its options are replaced), deleting one that does not exist and, from about Linux 5.11 on, destroying
    /// a set that does not exist all succeed.
    Ignore,
}

/// The amount of detail in a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Names,
    Headers,
    All,
}

/// Opens a message and writes the attributes that all messages have.
fn open<'b>(batch: &'b mut Batch, protocol: u8, command: u8, flags: Flags) -> MessageWriter<'b> {
    // libipset writes AF_INET into the header, whatever the set's family is.
    let mut message = batch.netfilter(SUBSYSTEM, command, flags, Family::Ipv4.number(), command.into());
    message.put_u8(cmd::PROTOCOL, protocol);
    message
}

pub(crate) fn protocol(batch: &mut Batch, protocol: u8) {
    open(batch, protocol, command::PROTOCOL, Flags::ACK);
}

pub(crate) fn create(batch: &mut Batch, protocol: u8, revision: u8, spec: &SetSpec, exist: Exist) {
    let mut message = open(batch, protocol, command::CREATE, Flags::ACK | Flags::CREATE | exclusive(exist));
    message.put(cmd::SETNAME, spec.name().with_nul());
    message.put_str(cmd::TYPENAME, spec.set_type().name());
    message.put_u8(cmd::REVISION, revision);
    message.put_u8(cmd::FAMILY, spec.family().number());
    spec_wire::write(&mut message.nest(cmd::DATA), spec.options());
}

pub(crate) fn destroy(batch: &mut Batch, protocol: u8, set: Option<&SetName>, exist: Exist) {
    put_set(&mut open(batch, protocol, command::DESTROY, Flags::ACK | exclusive(exist)), set);
}

pub(crate) fn flush(batch: &mut Batch, protocol: u8, set: Option<&SetName>) {
    put_set(&mut open(batch, protocol, command::FLUSH, Flags::ACK), set);
}

pub(crate) fn rename(batch: &mut Batch, protocol: u8, from: &SetName, to: &SetName) {
    two_names(batch, protocol, command::RENAME, from, to);
}

pub(crate) fn swap(batch: &mut Batch, protocol: u8, from: &SetName, to: &SetName) {
    two_names(batch, protocol, command::SWAP, from, to);
}

pub(crate) fn list(batch: &mut Batch, protocol: u8, command: u8, set: Option<&SetName>, detail: Detail) {
    let mut message = open(batch, protocol, command, Flags::ACK | Flags::DUMP);
    put_set(&mut message, set);
    match detail {
        Detail::Names => message.net32(cmd::FLAGS, ListFlags::NAMES.bits()),
        Detail::Headers => message.net32(cmd::FLAGS, ListFlags::HEADERS.bits()),
        Detail::All => {}
    }
}

pub(crate) fn test(batch: &mut Batch, protocol: u8, set: &SetName, entry: &Entry) {
    let mut message = open(batch, protocol, command::TEST, Flags::ACK);
    message.put(cmd::SETNAME, set.with_nul());
    entry_wire::write(&mut message.nest(cmd::DATA), entry);
}

pub(crate) fn header(batch: &mut Batch, protocol: u8, set: &SetName) {
    put_set(&mut open(batch, protocol, command::HEADER, Flags::ACK), Some(set));
}

pub(crate) fn revisions(batch: &mut Batch, protocol: u8, kind: SetType, family: Family) {
    let mut message = open(batch, protocol, command::TYPE, Flags::ACK);
    message.put_str(cmd::TYPENAME, kind.name());
    message.put_u8(cmd::FAMILY, family.number());
}

pub(crate) fn index_of(batch: &mut Batch, protocol: u8, set: &SetName) {
    put_set(&mut open(batch, protocol, command::GET_BYNAME, Flags::ACK), Some(set));
}

pub(crate) fn name_of(batch: &mut Batch, protocol: u8, index: u16) {
    open(batch, protocol, command::GET_BYINDEX, Flags::ACK).net16(cmd::INDEX, index);
}

/// Writes one message with as many of the entries as fit, and returns their number.
///
/// Each entry has its number, counted from `first + 1`, as its line number: the kernel returns that of a
/// failing entry. (To the kernel, 0 means no number.)
pub(crate) fn entries(
    batch: &mut Batch,
    protocol: u8,
    verb: Verb,
    set: &SetName,
    entries: &[Entry],
    first: usize,
    exist: Exist,
) -> usize {
    let command = if verb == Verb::Add { command::ADD } else { command::DEL };
    let mut message = open(batch, protocol, command, Flags::ACK | exclusive(exist));
    message.put(cmd::SETNAME, set.with_nul());
    let mut line = u32::try_from(first).unwrap_or(u32::MAX);
    message.net32(cmd::LINENO, line);
    let mut adt = message.nest(cmd::ADT);
    let mut written = 0;
    for entry in entries {
        if adt.nest_len() + ENTRY_MAX > usize::from(u16::MAX) {
            break;
        }
        line = line.saturating_add(1);
        let mut nest = adt.nest(cmd::DATA);
        entry_wire::write(&mut nest, entry);
        nest.net32(data::LINENO, line);
        written += 1;
    }
    written
}

/// An upper limit of an entry's size: two IPv6 networks or ranges, two names, a comment of 255 bytes and the
/// other options.
const ENTRY_MAX: usize = 640;

fn exclusive(exist: Exist) -> Flags {
    if exist == Exist::Fail { Flags::EXCL } else { Flags::empty() }
}

fn put_set(message: &mut Writer<'_>, set: Option<&SetName>) {
    if let Some(set) = set {
        message.put(cmd::SETNAME, set.with_nul());
    }
}

fn two_names(batch: &mut Batch, protocol: u8, command: u8, from: &SetName, to: &SetName) {
    let mut message = open(batch, protocol, command, Flags::ACK);
    message.put(cmd::SETNAME, from.with_nul());
    message.put(cmd::SETNAME2, to.with_nul());
}

/// The attributes of an answer at command level.
#[derive(Debug, Default, Clone)]
pub(crate) struct Answer<'a> {
    pub(crate) protocol: Option<u8>,
    pub(crate) set: Option<SetName>,
    pub(crate) type_name: Option<&'a str>,
    pub(crate) revision: Option<u8>,
    pub(crate) family: Option<u8>,
    pub(crate) line: Option<u32>,
    /// The oldest version of the protocol, or revision of the type: the attribute number is the same.
    pub(crate) min: Option<u8>,
    pub(crate) index: Option<u16>,
    data: Option<Attribute<'a>>,
    adt: Option<Attribute<'a>>,
}

impl<'a> Answer<'a> {
    /// Reads a message.
    pub(crate) fn read(message: Message<'a>) -> Result<Self, DecodeError> {
        Self::read_attributes(message.netfilter()?.1)
    }

    pub(crate) fn read_attributes(attributes: Attributes<'a>) -> Result<Self, DecodeError> {
        let mut answer = Self::default();
        for attribute in attributes {
            let attribute = attribute?;
            match attribute.kind {
                cmd::PROTOCOL => answer.protocol = Some(attribute.u8()?),
                cmd::SETNAME => answer.set = SetName::from_kernel(attribute.payload),
                cmd::TYPENAME => answer.type_name = Some(attribute.str()?),
                cmd::REVISION => answer.revision = Some(attribute.u8()?),
                cmd::FAMILY => answer.family = Some(attribute.u8()?),
                cmd::LINENO => answer.line = Some(attribute.be32()?),
                cmd::MIN => answer.min = Some(attribute.u8()?),
                cmd::INDEX => answer.index = Some(attribute.be16()?),
                cmd::DATA => answer.data = Some(attribute),
                cmd::ADT => answer.adt = Some(attribute),
                _ => {}
            }
        }
        Ok(answer)
    }

    /// Returns the type, family and revision of an answer to HEADER.
    pub(crate) fn identity(&self) -> Result<Identity, DecodeError> {
        let name = self.type_name.ok_or(missing("IPSET_ATTR_TYPENAME"))?;
        let family = self.family.ok_or(missing("IPSET_ATTR_FAMILY"))?;
        let revision = self.revision.ok_or(missing("IPSET_ATTR_REVISION"))?;
        let known =
            SetType::ALL.into_iter().find(|kind| kind.name() == name).zip(Family::from_number(family));
        Ok(match known {
            Some((kind, family)) if kind.families().contains(&family) => {
                Identity::Known(Header { kind, family, revision })
            }
            _ => Identity::Unknown { kind: name.to_owned(), family },
        })
    }

    /// Returns the revisions of a type from an answer to TYPE. Old kernels (about 2.6.39) report one only.
    pub(crate) fn revisions(&self) -> Result<Revisions, DecodeError> {
        let max = self.revision.ok_or(missing("IPSET_ATTR_REVISION"))?;
        Ok(Revisions { min: self.min.unwrap_or(max), max })
    }
}

/// The type of a set, or the name and family number of an unknown type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Identity {
    Known(Header),
    Unknown { kind: String, family: u8 },
}

/// Reads the messages of a dump. The first message of a set describes it, and each has some of its entries.
#[derive(Debug, Default)]
pub(crate) struct ListReader {
    current: Option<(SetName, Header)>,
}

/// The part of a listing in one message of a dump.
#[derive(Debug)]
pub(crate) enum Piece {
    /// The name of a set, if only names were requested.
    Name(SetName),
    /// A set, and its first entries.
    Set(Box<SetInfo>, Vec<Entry>),
    /// More entries of the last set.
    More(Vec<Entry>),
    /// A set of an unknown type.
    Unknown { set: SetName, kind: String, family: u8 },
}

impl ListReader {
    /// Reads one message of a dump.
    pub(crate) fn read(&mut self, message: Message<'_>, detail: Detail) -> Result<Piece, DecodeError> {
        let answer = Answer::read(message)?;
        let set = answer.set.ok_or(missing("IPSET_ATTR_SETNAME"))?;
        if detail == Detail::Names {
            return Ok(Piece::Name(set));
        }
        let Some(description) = answer.data else {
            let header = self.current.filter(|(name, _)| *name == set).ok_or(missing("IPSET_ATTR_DATA"))?.1;
            return Ok(Piece::More(read_entries(header, answer.adt)?));
        };
        let header = match answer.identity()? {
            Identity::Known(header) => header,
            Identity::Unknown { kind, family } => return Ok(Piece::Unknown { set, kind, family }),
        };
        self.current = Some((set, header));
        let described = spec_wire::read(header.kind, header.family, description.attributes())?;
        let info = SetInfo {
            name: set,
            kind: header.kind,
            family: header.family,
            revision: header.revision,
            index: answer.index,
            options: described.options,
            memory: described.memory.unwrap_or(0),
            references: described.references.unwrap_or(0),
            entries: described.elements,
        };
        Ok(Piece::Set(Box::new(info), read_entries(header, answer.adt)?))
    }
}

fn read_entries(header: Header, adt: Option<Attribute<'_>>) -> Result<Vec<Entry>, DecodeError> {
    let Some(adt) = adt else {
        return Ok(Vec::new());
    };
    let mut entries = Vec::new();
    for entry in adt.attributes() {
        let entry = entry?;
        // An element without attributes is an entry that has expired meanwhile.
        if !entry.payload.is_empty() {
            entries.push(entry_wire::read(header.kind, header.family, entry.attributes())?);
        }
    }
    Ok(entries)
}

fn missing(what: &'static str) -> DecodeError {
    DecodeError::Missing { what }
}
