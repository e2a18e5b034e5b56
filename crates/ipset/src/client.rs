//! The client: sends commands over a transport; its errors name the set and the entry.

use std::collections::HashMap;

use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::{
    Batch, DecodeError, KernelError, NetlinkFamily, Options as SocketOptions, Report, Socket, Transport,
    dump, exchange,
};

use crate::message::{self, Answer, Detail, Exist, Identity, ListReader, Piece};
use crate::text::{Command, Verb};
use crate::wire::{PROTOCOL, PROTOCOL_MIN, command};
use crate::{
    Entry, Errno, Error, Family, Header, Listing, Refusal, Revisions, SetInfo, SetName, SetSpec, SetType,
    ipset_errno,
};

/// A client of the kernel's ipset.
///
/// Each method sends one command and waits for the kernel's answer. The client asks the kernel once for the
/// version of its protocol, and for the revisions of each type that is created.
///
/// ```no_run
/// use std::net::Ipv4Addr;
/// use sluicegate_ipset::{Client, CreateOptions, Element, Entry, Exist, Family, SetName, SetSpec, SetType};
///
/// let mut client = Client::open()?;
/// let set = SetName::new("allowed")?;
/// let spec = SetSpec::new(set, SetType::HashIp, Family::Ipv4, CreateOptions::default())?;
/// client.create(&spec, Exist::Ignore)?;
/// let entry = Entry::new(SetType::HashIp, Family::Ipv4, Element::Ip(Ipv4Addr::new(192, 0, 2, 1).into()))?;
/// client.add(set, std::slice::from_ref(&entry), Exist::Fail)?;
/// assert!(client.test(set, &entry)?);
/// # Ok::<(), sluicegate_ipset::Error>(())
/// ```
#[derive(Debug)]
pub struct Client<T = Socket> {
    transport: T,
    protocol: Option<u8>,
    revisions: HashMap<(SetType, Family), Revisions>,
    sequence: u32,
}

impl Client {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`Error::Netlink`].
    pub fn open() -> Result<Self, Error> {
        Socket::open(NetlinkFamily::NETFILTER, &SocketOptions::default())
            .map(Self::with_transport)
            .map_err(|source| Error::Netlink { command: "open", source })
    }
}

impl<T: Transport> Client<T> {
    /// Uses a transport of the caller's: a socket, or one for tests.
    pub fn with_transport(transport: T) -> Self {
        Self { transport, protocol: None, revisions: HashMap::new(), sequence: 1 }
    }

    /// Returns the transport.
    pub fn into_transport(self) -> T {
        self.transport
    }

    /// Returns the oldest and the newest version of the protocol that the kernel supports.
    ///
    /// # Errors
    /// [`Error::Refused`] by a kernel without ipset, [`Error::Netlink`].
    pub fn protocol(&mut self) -> Result<(u8, u8), Error> {
        let mut batch = self.batch();
        message::protocol(&mut batch, PROTOCOL);
        self.ask(&batch, &RequestContext::command("protocol"), |answer| {
            Ok(answer.protocol.map(|max| (answer.min.unwrap_or(max), max)))
        })?
        .ok_or(Error::Answer { command: "protocol", attribute: "IPSET_ATTR_PROTOCOL" })
    }

    /// Returns the revisions of a type that the kernel has. A kernel that may load modules loads that of the
    /// type.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ipset_errno::FIND_TYPE`] when it does not have the type.
    pub fn revisions(&mut self, kind: SetType, family: Family) -> Result<Revisions, Error> {
        if let Some(revisions) = self.revisions.get(&(kind, family)) {
            return Ok(*revisions);
        }
        let protocol = self.version()?;
        let mut batch = self.batch();
        message::revisions(&mut batch, protocol, kind, family);
        let about = RequestContext { kind: Some(kind), ..RequestContext::command("type") };
        let revisions = self
            .ask(&batch, &about, |answer| answer.revisions().map(Some))?
            .ok_or(Error::Answer { command: "type", attribute: "IPSET_ATTR_REVISION" })?;
        self.revisions.insert((kind, family), revisions);
        Ok(revisions)
    }

    /// Returns the revision that sets of this type are created with: the newest that both the kernel and this
    /// crate support.
    ///
    /// # Errors
    /// [`Error::TypeRevision`] when there is none, and as [`revisions`](Self::revisions).
    pub fn revision(&mut self, kind: SetType, family: Family) -> Result<u8, Error> {
        let kernel = self.revisions(kind, family)?;
        let (oldest, newest) = kind.revisions();
        let revision = newest.min(kernel.max);
        if revision < oldest.max(kernel.min) {
            return Err(Error::TypeRevision { kind, family, kernel });
        }
        Ok(revision)
    }

    /// Creates a set.
    ///
    /// # Errors
    /// [`Error::NeedsRevision`] when the kernel does not have an option; [`Error::is_already_exists`], with
    /// [`Exist::Ignore`] only when the set that exists differs.
    pub fn create(&mut self, spec: &SetSpec, exist: Exist) -> Result<(), Error> {
        let protocol = self.version()?;
        let kind = spec.set_type();
        let revision = self.revision(kind, spec.family())?;
        if let Some((needs, option)) = spec.needs().filter(|(needs, _)| *needs > revision) {
            return Err(Error::NeedsRevision { option, kind, needs, has: revision });
        }
        let mut batch = self.batch();
        message::create(&mut batch, protocol, revision, spec, exist);
        self.tell(&batch, &RequestContext { kind: Some(kind), ..RequestContext::set("create", spec.name()) })
    }

    /// Destroys a set.
    ///
    /// # Errors
    /// [`Error::is_not_found`], [`Error::is_busy`] when a rule or list refers to it.
    pub fn destroy(&mut self, set: SetName, exist: Exist) -> Result<(), Error> {
        let protocol = self.version()?;
        let mut batch = self.batch();
        message::destroy(&mut batch, protocol, Some(&set), exist);
        match self.tell(&batch, &RequestContext::set("destroy", set)) {
            // Kernels before Linux 5.11 ignore IPSET_FLAG_EXIST here.
            Err(error) if exist == Exist::Ignore && error.is_not_found() => Ok(()),
            other => other,
        }
    }

    /// Destroys all sets, or none when one of them is in use.
    ///
    /// # Errors
    /// [`Error::is_busy`].
    pub fn destroy_all(&mut self) -> Result<(), Error> {
        let protocol = self.version()?;
        let mut batch = self.batch();
        message::destroy(&mut batch, protocol, None, Exist::Fail);
        self.tell(&batch, &RequestContext::command("destroy"))
    }

    /// Removes all entries of a set.
    ///
    /// # Errors
    /// [`Error::is_not_found`].
    pub fn flush(&mut self, set: SetName) -> Result<(), Error> {
        let protocol = self.version()?;
        let mut batch = self.batch();
        message::flush(&mut batch, protocol, Some(&set));
        self.tell(&batch, &RequestContext::set("flush", set))
    }

    /// Removes all entries of all sets.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Netlink`].
    pub fn flush_all(&mut self) -> Result<(), Error> {
        let protocol = self.version()?;
        let mut batch = self.batch();
        message::flush(&mut batch, protocol, None);
        self.tell(&batch, &RequestContext::command("flush"))
    }

    /// Renames a set.
    ///
    /// # Errors
    /// [`Error::is_not_found`]; [`ipset_errno::EXIST_SETNAME2`] when the new name is taken;
    /// [`Error::is_busy`] when a rule or list refers to the set.
    pub fn rename(&mut self, from: SetName, to: SetName) -> Result<(), Error> {
        let protocol = self.version()?;
        let mut batch = self.batch();
        message::rename(&mut batch, protocol, &from, &to);
        self.tell(&batch, &RequestContext::set("rename", from))
    }

    /// Exchanges the names of two sets of one type and family, also while rules refer to them.
    ///
    /// # Errors
    /// [`Error::is_not_found`]; [`ipset_errno::EXIST_SETNAME2`] when the second does not exist;
    /// [`ipset_errno::TYPE_MISMATCH`].
    pub fn swap(&mut self, from: SetName, to: SetName) -> Result<(), Error> {
        let protocol = self.version()?;
        let mut batch = self.batch();
        message::swap(&mut batch, protocol, &from, &to);
        self.tell(&batch, &RequestContext::set("swap", from))
    }

    /// Adds entries, as many to a message as fit, and as many messages to a datagram as the socket takes.
    ///
    /// This is not a transaction: the kernel stops a *message* at its first bad entry and goes on with the
    /// next message. To have all or nothing, fill another set and swap: [`replace`](Self::replace).
    ///
    /// # Errors
    /// [`Error::Refused`] with the first entry that was refused, and how many messages failed besides.
    pub fn add(&mut self, set: SetName, entries: &[Entry], exist: Exist) -> Result<(), Error> {
        self.change(Verb::Add, set, entries, exist, SendMode::Pipelined)
    }

    /// Deletes entries, in the same manner.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn delete(&mut self, set: SetName, entries: &[Entry], exist: Exist) -> Result<(), Error> {
        self.change(Verb::Delete, set, entries, exist, SendMode::Pipelined)
    }

    /// Adds entries and stops at the first that is refused: those before it are in the set, those after it
    /// are not.
    ///
    /// # Errors
    /// [`Error::Refused`] with that entry.
    pub fn add_in_order(&mut self, set: SetName, entries: &[Entry], exist: Exist) -> Result<(), Error> {
        self.change(Verb::Add, set, entries, exist, SendMode::InOrder)
    }

    /// Deletes entries and stops at the first that is refused.
    ///
    /// # Errors
    /// [`Error::Refused`] with that entry.
    pub fn delete_in_order(&mut self, set: SetName, entries: &[Entry], exist: Exist) -> Result<(), Error> {
        self.change(Verb::Delete, set, entries, exist, SendMode::InOrder)
    }

    /// Returns whether an entry is in the set. For types that store networks: whether the address is in one
    /// of them.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the entry is a range; [`Error::is_not_found`] when there is no such set.
    pub fn test(&mut self, set: SetName, entry: &Entry) -> Result<bool, Error> {
        entry.check_test()?;
        let protocol = self.version()?;
        let mut batch = self.batch();
        message::test(&mut batch, protocol, &set, entry);
        let about = RequestContext {
            kind: Some(entry.set_type()),
            entry: Some(entry),
            ..RequestContext::set("test", set)
        };
        match self.tell(&batch, &about) {
            Ok(()) => Ok(true),
            Err(Error::Refused(refusal)) if refusal.errno == ipset_errno::EXIST => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the names of all sets.
    ///
    /// # Errors
    /// [`Error::Netlink`].
    pub fn names(&mut self) -> Result<Vec<SetName>, Error> {
        let pieces = self.dump(command::LIST, None, Detail::Names)?;
        Ok(pieces
            .into_iter()
            .filter_map(|piece| if let Piece::Name(name) = piece { Some(name) } else { None })
            .collect())
    }

    /// Describes one set or all, without their entries.
    ///
    /// # Errors
    /// [`Error::is_not_found`], [`Error::UnknownType`].
    pub fn infos(&mut self, set: Option<SetName>) -> Result<Vec<SetInfo>, Error> {
        let pieces = self.dump(command::LIST, set, Detail::Headers)?;
        Ok(assemble(pieces)?.into_iter().map(|listing| listing.info).collect())
    }

    /// Lists one set or all, with their entries.
    ///
    /// A set that changes while it is read may be listed with some of the changes and without others.
    ///
    /// # Errors
    /// [`Error::is_not_found`], [`Error::UnknownType`].
    pub fn list(&mut self, set: Option<SetName>) -> Result<Vec<Listing>, Error> {
        assemble(self.dump(command::LIST, set, Detail::All)?)
    }

    /// Lists one set or all as [`list`](Self::list) does, but sets come before the lists that contain them.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn save(&mut self, set: Option<SetName>) -> Result<Vec<Listing>, Error> {
        assemble(self.dump(command::SAVE, set, Detail::All)?)
    }

    /// Returns the type, family and revision of a set.
    ///
    /// # Errors
    /// [`Error::is_not_found`], [`Error::UnknownType`].
    pub fn header(&mut self, set: SetName) -> Result<Header, Error> {
        let protocol = self.version()?;
        let mut batch = self.batch();
        message::header(&mut batch, protocol, &set);
        let identity = self
            .ask(&batch, &RequestContext::set("header", set), |answer| answer.identity().map(Some))?
            .ok_or(Error::Answer { command: "header", attribute: "IPSET_ATTR_TYPENAME" })?;
        match identity {
            Identity::Known(header) => Ok(header),
            Identity::Unknown { kind, family } => Err(Error::UnknownType { set, kind, family }),
        }
    }

    /// Returns the number of a set, from protocol 7 (Linux 5.1) on.
    ///
    /// # Errors
    /// [`Error::is_not_found`].
    pub fn index_of(&mut self, set: SetName) -> Result<u16, Error> {
        let protocol = self.version()?;
        let mut batch = self.batch();
        message::index_of(&mut batch, protocol, &set);
        self.ask(&batch, &RequestContext::set("get by name", set), |answer| Ok(answer.index))?
            .ok_or(Error::Answer { command: "get by name", attribute: "IPSET_ATTR_INDEX" })
    }

    /// Returns the name of the set with this number, from protocol 7 (Linux 5.1) on.
    ///
    /// # Errors
    /// [`Error::is_not_found`].
    pub fn name_of(&mut self, index: u16) -> Result<SetName, Error> {
        let protocol = self.version()?;
        let mut batch = self.batch();
        message::name_of(&mut batch, protocol, index);
        self.ask(&batch, &RequestContext::command("get by index"), |answer| Ok(answer.set))?
            .ok_or(Error::Answer { command: "get by index", attribute: "IPSET_ATTR_SETNAME" })
    }

    /// Carries one command out. A `test` that fails is a refusal.
    ///
    /// # Errors
    /// Those of the command.
    pub fn apply(&mut self, command: &Command, exist: Exist) -> Result<(), Error> {
        match command {
            Command::Create(spec) => self.create(spec, exist),
            Command::Add(set, entry) => self.add(*set, std::slice::from_ref(entry), exist),
            Command::Delete(set, entry) => self.delete(*set, std::slice::from_ref(entry), exist),
            Command::Test(set, entry) => match self.test(*set, entry)? {
                true => Ok(()),
                false => {
                    let kind = Some(entry.set_type());
                    let about =
                        RequestContext { kind, entry: Some(entry), ..RequestContext::set("test", *set) };
                    Err(about.refused(ipset_errno::EXIST))
                }
            },
            Command::Destroy(Some(set)) => self.destroy(*set, exist),
            Command::Destroy(None) => self.destroy_all(),
            Command::Flush(Some(set)) => self.flush(*set),
            Command::Flush(None) => self.flush_all(),
            Command::Rename(from, to) => self.rename(*from, *to),
            Command::Swap(from, to) => self.swap(*from, *to),
        }
    }

    fn change(
        &mut self,
        verb: Verb,
        set: SetName,
        entries: &[Entry],
        exist: Exist,
        mode: SendMode,
    ) -> Result<(), Error> {
        let protocol = self.version()?;
        let kind = entries.first().map(Entry::set_type);
        let about = RequestContext { kind, entries, ..RequestContext::set(verb.name(), set) };
        let room = match mode {
            SendMode::InOrder => 1,
            SendMode::Pipelined => self.transport.send_limit(PIPELINE),
        };
        let mut refusals = Refusals::default();
        let mut done = 0;
        while done < entries.len() {
            let mut batch = self.batch();
            batch.reserve(room.min(entries.len().saturating_sub(done).saturating_mul(64)).max(MESSAGE_MAX));
            while done < entries.len() && (batch.is_empty() || batch.len() + MESSAGE_MAX <= room) {
                let rest = entries.get(done..).unwrap_or_default();
                done += message::entries(&mut batch, protocol, verb, &set, rest, done, exist);
            }
            self.sequence = batch.next_sequence();
            let report = self.exchange(&batch, about.command)?;
            refusals.collect(&about, report);
            if mode == SendMode::InOrder && refusals.first.is_some() {
                break;
            }
        }
        refusals.into_result()
    }

    fn dump(&mut self, command: u8, set: Option<SetName>, detail: Detail) -> Result<Vec<Piece>, Error> {
        let name = if command == command::SAVE { "save" } else { "list" };
        let protocol = self.version()?;
        let mut batch = self.batch();
        message::list(&mut batch, protocol, command, set.as_ref(), detail);
        self.sequence = batch.next_sequence();
        let mut reader = ListReader::default();
        dump(&mut self.transport, &batch, |message| Ok(Some(reader.read(message, detail)?))).map_err(
            |source| match source {
                sluicegate_netlink::Error::Kernel(error) => {
                    RequestContext { set, ..RequestContext::command(name) }.refused(error.errno)
                }
                source => Error::Netlink { command: name, source },
            },
        )
    }

    /// Sends a request and reads the answer to it.
    fn ask<A>(
        &mut self,
        batch: &Batch,
        about: &RequestContext<'_>,
        read: impl Fn(&Answer<'_>) -> Result<Option<A>, DecodeError>,
    ) -> Result<Option<A>, Error> {
        self.sequence = batch.next_sequence();
        let mut found = None;
        let report = exchange(&mut self.transport, &[batch], |message| {
            found = read(&Answer::read(message)?)?;
            Ok(())
        })
        .map_err(|source| Error::Netlink { command: about.command, source })?;
        let mut refusals = Refusals::default();
        refusals.collect(about, report);
        refusals.into_result().map(|()| found)
    }

    fn tell(&mut self, batch: &Batch, about: &RequestContext<'_>) -> Result<(), Error> {
        self.sequence = batch.next_sequence();
        let report = self.exchange(batch, about.command)?;
        let mut refusals = Refusals::default();
        refusals.collect(about, report);
        refusals.into_result()
    }

    fn exchange(&mut self, batch: &Batch, command: &'static str) -> Result<Report, Error> {
        let report = exchange(&mut self.transport, &[batch], |_| Ok(()))
            .map_err(|source| Error::Netlink { command, source })?;
        if report.lost && report.errors.is_empty() {
            return Err(Error::Netlink { command, source: sluicegate_netlink::Error::Overrun });
        }
        Ok(report)
    }

    fn batch(&self) -> Batch {
        Batch::starting_at(self.sequence)
    }

    /// Returns the version of the protocol to speak, agreed on once.
    fn version(&mut self) -> Result<u8, Error> {
        if let Some(version) = self.protocol {
            return Ok(version);
        }
        let (min, max) = self.protocol()?;
        if min > PROTOCOL || max < PROTOCOL_MIN {
            return Err(Error::ProtocolVersion { min, max });
        }
        let version = max.min(PROTOCOL);
        self.protocol = Some(version);
        Ok(version)
    }
}

/// Whether later messages are sent before the answer to earlier ones is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendMode {
    Pipelined,
    InOrder,
}

/// Bytes in one datagram at most, where the socket takes as many.
const PIPELINE: usize = 256 << 10;
/// More than a message of entries can have.
const MESSAGE_MAX: usize = 66 << 10;

/// The subject of a request, for its errors.
#[derive(Debug, Clone, Copy)]
struct RequestContext<'a> {
    command: &'static str,
    set: Option<SetName>,
    kind: Option<SetType>,
    entry: Option<&'a Entry>,
    entries: &'a [Entry],
}

impl<'a> RequestContext<'a> {
    fn command(command: &'static str) -> Self {
        Self { command, set: None, kind: None, entry: None, entries: &[] }
    }

    fn set(command: &'static str, set: SetName) -> Self {
        Self { set: Some(set), ..Self::command(command) }
    }

    fn refused(&self, errno: Errno) -> Error {
        Error::Refused(Box::new(self.refusal(errno, None)))
    }

    fn refusal(&self, errno: Errno, line: Option<u32>) -> Refusal {
        let index = line.and_then(|line| usize::try_from(line).ok()?.checked_sub(1));
        let named: Option<&'a Entry> = index.and_then(|index| self.entries.get(index)).or(self.entry);
        let entry = named.cloned();
        Refusal {
            command: self.command,
            set: self.set,
            kind: self.kind,
            entry,
            index,
            line: None,
            errno,
            more: 0,
        }
    }

    /// Looks into the request that came back for the number of the entry at fault.
    fn read_refusal(&self, error: &KernelError) -> Refusal {
        let line = error
            .request
            .get(4..)
            .and_then(|attributes| Answer::read_attributes(Attributes::new(attributes)).ok())
            .and_then(|answer| answer.line)
            .filter(|_| !self.entries.is_empty());
        self.refusal(error.errno, line)
    }
}

#[derive(Default)]
struct Refusals {
    first: Option<Refusal>,
    more: usize,
}

impl Refusals {
    fn collect(&mut self, about: &RequestContext<'_>, report: Report) {
        for error in report.errors {
            if self.first.is_some() {
                self.more += 1;
            } else {
                self.first = Some(about.read_refusal(&error));
            }
        }
    }

    fn into_result(self) -> Result<(), Error> {
        match self.first {
            None => Ok(()),
            Some(first) => Err(Error::Refused(Box::new(Refusal { more: self.more, ..first }))),
        }
    }
}

fn assemble(pieces: Vec<Piece>) -> Result<Vec<Listing>, Error> {
    let mut listings: Vec<Listing> = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Set(info, entries) => listings.push(Listing { info: *info, entries }),
            Piece::More(more) => {
                if let Some(last) = listings.last_mut() {
                    last.entries.extend(more);
                }
            }
            Piece::Unknown { set, kind, family } => return Err(Error::UnknownType { set, kind, family }),
            Piece::Name(_) => {}
        }
    }
    Ok(listings)
}
