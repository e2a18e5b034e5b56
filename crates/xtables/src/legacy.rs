//! The legacy back end: tables of `ip_tables` and `ip6_tables`, which the kernel replaces as a whole.
//!
//! A change reads the table, changes it in memory and replaces it, as `iptables-legacy-restore` does, while
//! the lock of iptables is held. The counters of rules that stay are carried over: the kernel hands them back
//! with the old table, and they are added to those of the new one.
//!
//! The table is read anew for each change, although that takes the kernel about as long as to replace it.
//! What was written last cannot stand in for it: the kernel has no number that changes with a table.
//! `IPT_SO_GET_INFO` tells sizes and the number of entries, and both are the same after another program has
//! replaced a rule by one as long, as `-R` does with another port. To write the table on top of that would
//! undo it.

mod change;
mod layout;
mod list;
mod lock;
mod ruleset;
mod scan;
mod sets;
mod socket;

use std::cell::RefCell;
use std::time::Duration;
use std::{fs, io};

use sluicegate_iptables_save::{Action, Changes, Entry, Family, Rule, Save, Table};
use sluicegate_netlink::Errno;

use crate::Error;
use crate::error::{ENOPROTOOPT, Fault};
use crate::extension::wire::Writer;
use crate::extension::{Kind, Revisions, Sets};
use crate::foreign::View;
use crate::rule::Kernel;
use change::Change;
use layout::{COUNTERS_INFO, ENTRIES_AT, Info, REPLACE, TABLE_NAME, table_request};
pub use lock::Lock;
use ruleset::Ruleset;
pub(crate) use sets::KernelSets;
use socket::{Get, RawCounters, Socket};

/// The tables of one family.
///
/// ```no_run
/// use sluicegate_iptables_save::{Family, Save};
/// use sluicegate_xtables::legacy::{Client, Restore};
///
/// let client = Client::open(Family::Ipv4)?;
/// let input = Save::parse("*nat\n:WEB - [0:0]\n-A WEB -p tcp --dport 80 -j REDIRECT --to-ports 8080\nCOMMIT\n")?;
/// client.restore(&input, Restore::default())?;
/// println!("{}", client.list("nat", false)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Client {
    socket: Socket,
    family: Family,
    lock: Lock,
    sets: KernelSets,
    /// Whether the kernel has a revision of an extension, for those that were asked for.
    revisions: RefCell<Revisions>,
}

/// How input is restored.
///
/// ```no_run
/// use sluicegate_xtables::iptables_save::Save;
/// use sluicegate_xtables::legacy::{Client, Restore};
/// use sluicegate_xtables::Family;
///
/// let client = Client::open(Family::Ipv4)?;
/// let input = Save::parse("*filter\n:WEB - [0:0]\nCOMMIT\n")?;
/// client.restore(&input, Restore::default().counters())?; // `--noflush --counters`
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Restore {
    /// Removes all rules and user-defined chains of a table first, as `iptables-restore` does without
    /// `--noflush`.
    pub flush: bool,
    /// Takes the counters of the input, as `iptables-restore --counters` does.
    pub counters: bool,
}

impl Restore {
    /// Removes all rules and user-defined chains of a table first ([`flush`](Self::flush)).
    #[must_use]
    pub fn flush(mut self) -> Self {
        self.flush = true;
        self
    }

    /// Takes the counters of the input ([`counters`](Self::counters)).
    #[must_use]
    pub fn counters(mut self) -> Self {
        self.counters = true;
        self
    }
}

/// A table that was replaced, with its sizes as [`Client::size`] returns them: whoever keeps them sees whether
/// another program changed the table before or after.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replaced {
    /// The name of the table.
    pub table: String,
    /// The number of entries, and their size in bytes, of the table that was read and replaced.
    pub before: (u32, u32),
    /// The same of what replaced it.
    pub after: (u32, u32),
}

/// A table as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawTable {
    /// The family.
    pub family: Family,
    /// The name of the table.
    pub name: String,
    /// `struct ipt_getinfo`, or `struct ip6t_getinfo`.
    pub info: Vec<u8>,
    /// The entries, one behind the other.
    pub entries: Vec<u8>,
}

impl RawTable {
    /// Creates a table from its bytes, as they were kept or for a test.
    #[must_use]
    pub fn new(family: Family, name: String, info: Vec<u8>, entries: Vec<u8>) -> Self {
        Self { family, name, info, entries }
    }
}

/// How often a table is read again after another program replaced it in between.
const ATTEMPTS: usize = 10;

impl Client {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`Error::Socket`] without `CAP_NET_RAW`, or if the kernel does not have the family.
    pub fn open(family: Family) -> Result<Self, Error> {
        let socket = Socket::open(family).map_err(|errno| Error::Socket { family, errno })?;
        let sets = KernelSets::open().map_err(|errno| Error::Socket { family: Family::Ipv4, errno })?;
        Ok(Self { socket, family, lock: Lock::default(), sets, revisions: RefCell::default() })
    }

    /// Uses another file for the lock, or waits for another time.
    #[must_use]
    pub fn with_lock(mut self, lock: Lock) -> Self {
        self.lock = lock;
        self
    }

    /// Sets how long a call waits for the lock while another program holds it; then it fails with
    /// [`Error::Locked`].
    pub fn set_lock_wait(&mut self, wait: Duration) {
        self.lock.wait = wait;
    }

    /// Returns how long a call waits for the lock while another program holds it.
    #[must_use]
    pub fn lock_wait(&self) -> Duration {
        self.lock.wait
    }

    /// Returns the family of the tables.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Returns the names of the tables that are in use in the network namespace of the calling thread; to
    /// read another one makes the kernel create it. `None` if this user may not know: the file that lists
    /// them, `/proc/net/ip_tables_names` or `ip6_tables_names`, is for root alone.
    #[must_use]
    pub fn tables(&self) -> Option<Vec<String>> {
        let file = match self.family {
            Family::Ipv6 => "/proc/thread-self/net/ip6_tables_names",
            _ => "/proc/thread-self/net/ip_tables_names",
        };
        match fs::read_to_string(file) {
            Ok(names) => Some(names.lines().map(str::to_owned).collect()),
            // The module is not loaded.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Vec::new()),
            Err(_) => None,
        }
    }

    /// Returns the number of entries of a table and their size in bytes, which are not read: a cheap look
    /// whether somebody has changed it.
    ///
    /// # Errors
    /// [`Error::Kernel`] if there is no such table.
    pub fn size(&self, table: &str) -> Result<(u32, u32), Error> {
        let refused = |errno| self.refused("reading", table, errno);
        let mut info = table_request(table, Info::SIZE).map_err(|_| refused(Errno::ENOENT))?;
        self.socket.get(Get::Info, &mut info).map_err(refused)?;
        let info = Info::read(&info).ok_or_else(|| refused(Errno::EINVAL))?;
        Ok((info.entries, info.size))
    }

    /// Returns the chains and rules of a table, as `iptables-legacy-save` prints them: with the counters of
    /// the rules if `counters` says so, as with `-c`.
    ///
    /// # Errors
    /// [`Error::Kernel`] if there is no such table, [`Error::Incompatible`] if it has what no line can have.
    pub fn list(&self, table: &str, counters: bool) -> Result<Table<'static>, Error> {
        self.view(table, counters)?.all_in_words()
    }

    /// Returns a table with what others wrote into it: chains and rules as [`Client::list`] returns them, and
    /// what no line of iptables can have (a chain whose name has a blank, a comment with a line end), in its
    /// place. Such a rule stays as it is, whatever is changed beside it, and counts where rules have numbers.
    ///
    /// # Errors
    /// [`Error::Kernel`] if there is no such table.
    pub fn view(&self, table: &str, counters: bool) -> Result<View, Error> {
        self.sets.forget();
        list::view(&self.read(table)?, None, counters, &self.sets)
    }

    /// Returns the same of one chain; `None` if there is no such chain.
    ///
    /// # Errors
    /// As [`Client::view`].
    pub fn view_chain(&self, table: &str, chain: &str, counters: bool) -> Result<Option<View>, Error> {
        self.sets.forget();
        let ruleset = self.read(table)?;
        let Some(id) = ruleset.find(chain) else { return Ok(None) };
        let mut view = list::view(&ruleset, Some(chain), counters, &self.sets)?;
        view.references = Some(ruleset.references(id));
        view.table.entries.retain(|entry| !matches!(entry, Entry::Chain(line) if line.name() != chain));
        Ok(Some(view))
    }

    /// Returns a table as the kernel has it, to be compared or kept.
    ///
    /// # Errors
    /// As [`Client::list`].
    pub fn raw(&self, table: &str) -> Result<RawTable, Error> {
        let (info, mut entries) = self.get_entries(table)?;
        entries.drain(..ENTRIES_AT);
        Ok(RawTable { family: self.family, name: table.to_owned(), info, entries })
    }

    /// Replaces a table by one that was read before, byte for byte. All counters start at zero.
    ///
    /// # Errors
    /// [`Error::Locked`] if another program has the lock; [`Error::Kernel`] if the kernel refuses the table;
    /// [`Error::Malformed`] for bytes that are not a table.
    pub fn put_back(&self, table: &RawTable) -> Result<(), Error> {
        let _lock = self.lock.take()?;
        let malformed = |reason| Error::Malformed { table: table.name.clone(), offset: 0, reason };
        let refused = |errno| self.refused("replacing", &table.name, errno);
        let info = Info::read(&table.info).ok_or_else(|| malformed("expected a struct ipt_getinfo"))?;
        if usize::try_from(info.size) != Ok(table.entries.len()) {
            return Err(malformed("expected as many bytes of entries as its struct ipt_getinfo says"));
        }
        Ruleset::read(table.family, &table.name, &info, table.entries.clone(), 0)?;
        if table.family != self.family {
            return Err(malformed("expected a table of the family of the client"));
        }
        let too_long = |_| malformed("expected a shorter name of a table");
        let mut request = table_request(&table.name, REPLACE).map_err(too_long)?;
        info.write_replace(&mut request);
        request.extend_from_slice(&table.entries);
        for _ in 0..ATTEMPTS {
            // The kernel wants to know how many entries it will hand back the counters of: with another number
            // than the table has by then, `xt_replace_table` (Linux 2.6 to 6.18) answers EAGAIN. With fewer it
            // would have to write behind the buffer. It compares nothing else, so a table that was replaced by
            // one of as many entries is replaced all the same: what keeps others out is the lock.
            let mut now = table_request(&table.name, Info::SIZE).map_err(too_long)?;
            self.socket.get(Get::Info, &mut now).map_err(refused)?;
            let entries = Info::read(&now).map_or(0, |info| info.entries);
            let mut old = vec![RawCounters::default(); entries as usize];
            match self.socket.replace(&mut request, &mut old) {
                Err(Errno::EAGAIN) => (),
                done => return done.map_err(refused),
            }
        }
        Err(refused(Errno::EAGAIN))
    }

    /// Returns `struct ipt_getinfo` and `struct ipt_get_entries` of a table.
    fn get_entries(&self, table: &str) -> Result<(Vec<u8>, Vec<u8>), Error> {
        let refused = |errno| self.refused("reading", table, errno);
        for _ in 0..ATTEMPTS {
            let request = |size| table_request(table, size).map_err(|_| refused(Errno::ENOENT));
            let mut info = request(Info::SIZE)?;
            self.socket.get(Get::Info, &mut info).map_err(refused)?;
            let size = Info::read(&info).ok_or_else(|| refused(Errno::EINVAL))?.size;
            // Zeroed by the allocator, which has such pages, and not written once more.
            let mut entries = vec![0; ENTRIES_AT + size as usize];
            let mut head = request(TABLE_NAME)?;
            head.extend(size.to_ne_bytes());
            entries.iter_mut().zip(head).for_each(|(place, byte)| *place = byte);
            match self.socket.get(Get::Entries, &mut entries) {
                Ok(_) => return Ok((info, entries)),
                // The table was replaced since its size was asked for: `get_entries` copies a table of exactly
                // this size or nothing.
                Err(Errno::EAGAIN) => (),
                Err(errno) => return Err(refused(errno)),
            }
        }
        Err(refused(Errno::EAGAIN))
    }

    /// Returns whether the kernel has a revision of an extension, by the kernel's name of it.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel does not answer.
    pub fn has_revision(&self, kind: Kind, name: &str, revision: u8) -> Result<bool, Error> {
        if let Some(found) = self.revisions.borrow().get(kind, name, revision) {
            return Ok(found);
        }
        let mut request = Writer::default();
        if request.text(name, 29).is_err() {
            return Ok(false);
        }
        request.u8(revision);
        let get = match kind {
            Kind::Match => Get::MatchRevision,
            Kind::Target => Get::TargetRevision,
        };
        let found = match self.socket.get(get, &mut request.finish()) {
            Ok(_) => true,
            Err(Errno::ENOENT | Errno::EPROTONOSUPPORT) => false,
            Err(errno) => return Err(self.refused("asking for a revision", "", errno)),
        };
        self.revisions.borrow_mut().insert(kind, name, revision, found);
        Ok(found)
    }

    /// Returns whether a chain has a rule, by its words, as `iptables -C` does.
    ///
    /// # Errors
    /// [`Error::Rule`] for words that cannot be a rule; [`Error::Line`] if there is no such chain.
    pub fn check(&self, table: &str, chain: &str, words: &str) -> Result<bool, Error> {
        let text = |source| Error::Text { table: table.to_owned(), source };
        let mut ruleset = self.read(table)?;
        if ruleset.find(chain).is_none() {
            let reason = format!("there is no chain {chain}");
            return Err(Error::Line {
                table: table.to_owned(),
                line: 0,
                reason,
                fault: Fault::NoChain,
                name: chain.to_owned(),
            });
        }
        let mut lines = Table::new(table.to_owned()).map_err(text)?;
        lines.entries.push(Entry::Rule(Rule::new(Action::Check, chain, words).map_err(text)?));
        let mut change = Change {
            ruleset: &mut ruleset,
            how: Restore::default(),
            kernel: self,
            new_rules: &mut Vec::new(),
            used: None,
        };
        match change.table(&lines) {
            Ok(()) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Carries out changes, as `iptables-legacy-restore --noflush` does.
    ///
    /// # Errors
    /// As [`Client::restore`].
    pub fn apply(&self, changes: &Changes<'_>) -> Result<(), Error> {
        self.restore(changes.as_save(), Restore::default()).map(drop)
    }

    /// Restores input. All lines of all tables are carried out in memory before the first table is replaced,
    /// so that input which is wrong in one line changes nothing. Returns the tables that were replaced.
    ///
    /// # Errors
    /// [`Error::Rule`] and [`Error::Line`] with the line at fault; [`Error::Locked`] if another program has
    /// the lock; [`Error::Kernel`] if the kernel refuses a table: those before it have been replaced then. Which
    /// ones is not told, and their sizes have to be asked for again.
    pub fn restore(&self, input: &Save<'_>, how: Restore) -> Result<Vec<Replaced>, Error> {
        let _lock = self.lock.take()?;
        let mut names: Vec<&str> = Vec::new();
        input.tables().map(Table::name).for_each(|name| {
            if !names.contains(&name) {
                names.push(name);
            }
        });
        let prepared: Vec<_> =
            names.iter().map(|name| self.prepare(input, name, how)).collect::<Result<_, _>>()?;
        let mut replaced = Vec::new();
        for (name, (ruleset, new_rules)) in names.iter().zip(prepared) {
            // The kernel replaces a table as a whole, and takes as long as the table is large.
            if ruleset.changed {
                replaced.push(self.replace(input, name, how, ruleset, new_rules)?);
            }
        }
        Ok(replaced)
    }

    /// Reads, checks and encodes input as [`Client::restore`] does, and replaces no table: `--test`.
    ///
    /// # Errors
    /// As [`Client::restore`], but for what only the kernel refuses.
    pub fn test(&self, input: &Save<'_>, how: Restore) -> Result<(), Error> {
        input.tables().try_for_each(|table| self.prepare(input, table.name(), how).map(drop))
    }

    /// Reads a table and carries out the lines of the input for it. Returns it with the lines of new rules.
    fn prepare(&self, input: &Save<'_>, name: &str, how: Restore) -> Result<(Ruleset, Vec<usize>), Error> {
        let mut ruleset = self.read(name)?;
        let mut new_rules = Vec::new();
        for table in input.tables().filter(|table| table.name() == name) {
            let (ruleset, new_rules) = (&mut ruleset, &mut new_rules);
            Change { ruleset, how, kernel: self, new_rules, used: None }.table(table)?;
        }
        Ok((ruleset, new_rules))
    }

    /// Replaces a table, from a fresh reading of it if somebody else replaced it meanwhile.
    fn replace(
        &self,
        input: &Save<'_>,
        name: &str,
        how: Restore,
        mut ruleset: Ruleset,
        mut new_rules: Vec<usize>,
    ) -> Result<Replaced, Error> {
        for _ in 0..ATTEMPTS {
            match self.replace_once(&ruleset) {
                Err(Error::Kernel { errno: Errno::EAGAIN, .. }) => {
                    (ruleset, new_rules) = self.prepare(input, name, how)?;
                }
                Err(Error::Kernel { operation, table, family, errno, reason }) => {
                    let reason = format!("{reason}{}", suspects(&new_rules));
                    return Err(Error::Kernel { operation, table, family, errno, reason });
                }
                done => return done,
            }
        }
        Err(self.refused("replacing", name, Errno::EAGAIN))
    }

    fn replace_once(&self, ruleset: &Ruleset) -> Result<Replaced, Error> {
        // A table comes with counters of its own, which the kernel ignores: it zeroes all, hands back the old
        // ones, and takes the numbers to add in a second call, as iptables makes it (libiptc, `TC_COMMIT`).
        // Packets in between are counted, since the call adds.
        let mut written = ruleset.write()?;
        let mut old = vec![RawCounters::default(); ruleset.old_entries() as usize];
        self.socket
            .replace(&mut written.request, &mut old)
            .map_err(|errno| self.refused("replacing", &ruleset.table, errno))?;
        let replaced =
            Replaced { table: ruleset.table.clone(), before: ruleset.old_size(), after: written.size };
        let Some(counters) = written.counters(&old) else { return Ok(replaced) };
        let mut out = Writer::default();
        out.bytes(&table_request(&ruleset.table, TABLE_NAME).unwrap_or_default());
        out.u32(u32::try_from(counters.len()).unwrap_or(u32::MAX));
        out.align(COUNTERS_INFO);
        for RawCounters { packets, bytes } in counters {
            out.u64(packets);
            out.u64(bytes);
        }
        self.socket
            .add_counters(&out.finish())
            .map_err(|errno| self.refused("carrying over the counters", &ruleset.table, errno))?;
        Ok(replaced)
    }

    fn read(&self, table: &str) -> Result<Ruleset, Error> {
        let (info, answer) = self.get_entries(table)?;
        let info = Info::read(&info).ok_or_else(|| self.refused("reading", table, Errno::EINVAL))?;
        Ruleset::read(self.family, table, &info, answer, ENTRIES_AT)
    }

    fn refused(&self, operation: &'static str, table: &str, errno: Errno) -> Error {
        let reason = match errno {
            ENOPROTOOPT => "the kernel has no iptables of this family (ip_tables, ip6_tables)",
            Errno::ENOENT if operation == "reading" => "there is no such table",
            Errno::ENOENT => "the kernel lacks a match, a target or a set that a rule needs",
            Errno::EPERM => "CAP_NET_ADMIN is missing",
            Errno::EAGAIN => "other programs keep replacing it",
            Errno::EINVAL => "the kernel refuses a rule: its log (dmesg) may say why",
            Errno::ELOOP => "chains jump in a loop",
            Errno::ENOMEM => "there is not enough memory",
            _ => "the kernel refuses it",
        };
        Error::Kernel {
            operation,
            table: table.to_owned(),
            family: self.family,
            errno,
            reason: reason.to_owned(),
        }
    }
}

impl RawTable {
    /// Returns the chains and rules, as [`Client::list`] does.
    ///
    /// # Errors
    /// [`Error::Malformed`] for bytes that are not a table, [`Error::Text`] for a chain without a name.
    pub fn list(self, counters: bool, sets: &dyn Sets) -> Result<Table<'static>, Error> {
        list::view(&self.ruleset()?, None, counters, sets)?.all_in_words()
    }

    fn ruleset(self) -> Result<Ruleset, Error> {
        let malformed = || Error::Malformed {
            table: self.name.clone(),
            offset: 0,
            reason: "expected a struct ipt_getinfo",
        };
        let info = Info::read(&self.info).ok_or_else(malformed)?;
        Ruleset::read(self.family, &self.name, &info, self.entries, 0)
    }
}

impl Kernel for Client {
    fn has(&self, kind: Kind, name: &str, revision: u8) -> bool {
        self.has_revision(kind, name, revision).unwrap_or(false)
    }

    fn sets(&self) -> &dyn Sets {
        &self.sets
    }
}

/// Names the rules that the kernel may have refused: it does not say which.
fn suspects(lines: &[usize]) -> String {
    match (lines.iter().min(), lines.iter().max()) {
        (Some(first), Some(last)) if *first > 0 && first == last => format!(" (line {first})"),
        (Some(first), Some(last)) if *first > 0 => {
            format!(" (one of the {} rules of lines {first} to {last})", lines.len())
        }
        _ => String::new(),
    }
}
