//! Brings the kernel to where the plan is, with the smallest change.
//!
//! The first sync compares the plan with what the kernel holds and sends the difference, so that a restart disturbs nothing.
//! From then on the applied state is in memory: a sync costs what changed, and nothing is listed unless a transaction
//! failed or somebody else has committed to `nf_tables` meanwhile, which the generation tells.

pub(crate) mod addresses;
mod cleaned;
mod compare;
pub mod conntrack;
pub mod iptables;
pub mod ipvs;
mod timed;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use sluicegate_netlink::{Options, Protocol, Socket, Transport};
use sluicegate_nftables::{self as nft, ApplyOptions, Flush, Object, Operation, Target, Transaction, read};

use crate::Error;
use crate::model::{self, Cluster, Family, NodePortAddresses, ServiceName};
use crate::plan::nftables::{Planner, Settings, TABLE};

use compare::Comparison;
use timed::Timed;

pub use cleaned::Cleaned;

/// Applies plans over one transport, which belongs to one network namespace.
#[derive(Debug)]
pub struct Applier<T = Socket> {
    transport: Timed<T>,
    settings: Settings,
    /// How to learn the addresses of this node's interfaces, where there is a node.
    interfaces: Option<ListAddresses>,
    applied: Option<Applied>,
}

type ListAddresses = fn() -> Result<Vec<IpAddr>, Error>;

/// What the kernel holds because of us.
#[derive(Debug)]
struct Applied {
    planner: Planner,
    generation: u32,
}

/// What one sync did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Synced {
    /// How the change was found.
    pub found: Found,
    /// What was added and deleted.
    pub changes: Changes,
    /// Messages that were sent.
    pub messages: usize,
    /// Bytes that were sent.
    pub bytes: usize,
    /// Batches that were sent: none when nothing was to be done, several where the send buffer was too small for one.
    pub batches: usize,
    /// Time in the kernel: sending returns when the batch is applied.
    pub kernel: Duration,
    /// Chains that nothing uses any more could not be deleted; they are empty, and their turn comes again.
    pub is_stale_kept: bool,
}

/// How a sync found out what to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Found {
    /// From what changed in the model since the last sync.
    #[default]
    Changed,
    /// By comparing with what the kernel held.
    Compared,
    /// Not at all: what was there was not ours, or of another layout, and was replaced as a whole.
    Replaced,
}

/// Counts of what a transaction adds and deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Changes {
    /// Tables, chains and sets that were added or deleted.
    pub objects: usize,
    /// Rules that were added.
    pub rules: usize,
    /// Elements that were added.
    pub elements_added: usize,
    /// Elements that were deleted.
    pub elements_deleted: usize,
}

impl Applier {
    /// Opens a socket in the current network namespace.
    ///
    /// # Errors
    /// [`Error::Kernel`] when there is no netfilter to talk to.
    pub fn open(settings: Settings) -> Result<Self, Error> {
        let socket = Socket::open(Protocol::NETFILTER, &Options::default());
        let socket = socket.map_err(|error| Error::kernel("opening a netlink socket", error))?;
        Ok(Self { interfaces: Some(addresses::of_interfaces), ..Self::new(socket, settings) })
    }
}

impl<T: Transport> Applier<T> {
    /// Applies over any transport. Node ports are answered on the addresses of the Node object, for those of interfaces are
    /// not known.
    pub fn new(transport: T, settings: Settings) -> Self {
        Self { transport: Timed::new(transport), settings, interfaces: None, applied: None }
    }

    /// Brings the kernel to what `cluster` wants.
    ///
    /// # Errors
    /// [`Error::Flag`] when the settings cannot be planned. [`Error::Kernel`] when the kernel refuses; it then holds what it held before,
    /// and the next sync compares everything.
    pub fn sync(&mut self, cluster: &mut Cluster, now: Instant) -> Result<Synced, Error> {
        let changes = cluster.take_changes();
        self.sync_changes(cluster, &changes, now)
    }

    /// The same for one who has taken the changes already: `changes` are those since the last sync, or since one that failed.
    ///
    /// # Errors
    /// As [`sync`](Self::sync), and [`Error::Refused`] where the kernel refuses what belongs to certain services: without them the
    /// rest can be programmed.
    pub fn sync_changes(
        &mut self,
        cluster: &Cluster,
        changes: &model::Changes,
        now: Instant,
    ) -> Result<Synced, Error> {
        self.transport.reset();
        let mut is_stale_kept = false;
        let (found, transaction, mut applied) = match self.still_ours()? {
            Some(mut applied) => {
                is_stale_kept = !self.remove_stale(&mut applied, now)?;
                if let Some(addresses) = self.local_addresses()? {
                    applied.planner.set_local_addresses(addresses);
                }
                let transaction = applied.planner.sync(cluster, changes, now);
                (Found::Changed, transaction, applied)
            }
            None => self.compare(cluster)?,
        };
        let changes = Changes::of(&transaction);
        let mut synced = Synced { found, changes, is_stale_kept, ..Synced::default() };
        if !transaction.is_empty() {
            let mut sent = self.send(&transaction, applied.generation);
            let mut tried = transaction;
            // What differed could not be mended piece by piece: replace all of it.
            if matches!(sent, Err(nft::Error::Rejected { applied: 0, .. })) && found == Found::Compared {
                tried = applied.planner.replacement();
                synced.found = Found::Replaced;
                synced.changes = Changes::of(&tried);
                sent = self.send(&tried, applied.generation);
            }
            let sent = sent.map_err(|error| refusal(error, &tried, &applied.planner))?;
            applied.generation = made(applied.generation, sent.batches);
            synced.batches = sent.batches;
        }
        (synced.messages, synced.bytes, synced.kernel) = self.transport.totals();
        self.applied = Some(applied);
        Ok(synced)
    }

    /// Trusts nothing that was applied: the next sync compares everything with what the kernel holds.
    pub fn distrust(&mut self) {
        self.applied = None;
    }

    /// Notes that another program's commit made this generation and touched nothing of ours, as its events tell. So the next sync need
    /// not compare for its sake.
    pub fn pass_over(&mut self, generation: u32) {
        if let Some(applied) = &mut self.applied
            && made(applied.generation, 1) == generation
        {
            applied.generation = generation;
        }
    }

    /// True when nobody else has committed to `nf_tables` since the last sync, as far as was not
    /// [passed over](Self::pass_over).
    ///
    /// # Errors
    /// [`Error::Kernel`] when the kernel cannot be asked.
    pub fn is_current(&mut self) -> Result<bool, Error> {
        let Some(applied) = &self.applied else { return Ok(false) };
        let expected = applied.generation;
        let now = read::generation(&mut self.transport);
        now.map(|now| now.id == expected).map_err(|error| Error::kernel("asking for the generation", error))
    }

    /// There are emptied chains, which a sync over a second later deletes.
    #[must_use]
    pub fn has_leftovers(&self) -> bool {
        self.applied.as_ref().is_some_and(|applied| applied.planner.has_stale())
    }

    /// What the operator decides; after a change the next sync compares everything.
    pub fn settings_mut(&mut self) -> &mut Settings {
        self.distrust();
        &mut self.settings
    }

    /// The transaction that [`sync`](Self::sync) would send, found by comparing with the kernel. Sends nothing.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn difference(&mut self, cluster: &Cluster) -> Result<Transaction, Error> {
        self.compare(cluster).map(|(_, transaction, _)| transaction)
    }

    /// Whether the kernel has `nf_tables`, or could load it now that it is asked.
    ///
    /// # Errors
    /// [`Error::Kernel`] when it cannot be asked.
    pub fn has_nf_tables(&mut self) -> Result<bool, Error> {
        match read::generation(&mut self.transport) {
            Ok(_) => Ok(true),
            // nfnetlink's word for a subsystem that is not there; nothing else of this question could be invalid.
            Err(error) if error.kernel_code() == Some(Errno::EINVAL as i32) => Ok(false),
            Err(error) => Err(Error::kernel("looking for nf_tables", error)),
        }
    }

    /// Removes everything that is ours, and says which tables there were.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the kernel refuses.
    pub fn cleanup(&mut self) -> Result<Vec<String>, Error> {
        self.applied = None;
        let mut there = Vec::new();
        if !self.has_nf_tables()? {
            return Ok(there);
        }
        for family in Family::BOTH.map(nft_family) {
            let tables = read::tables(&mut self.transport, family)
                .map_err(|error| Error::kernel("listing tables", error))?;
            let ours = tables.iter().filter(|table| table.name.as_str() == TABLE);
            there.extend(ours.map(|table| format!("table {} {}", table.family, table.name)));
        }
        if !there.is_empty() {
            let removed = Planner::cleanup().apply(&mut self.transport);
            removed.map_err(|error| Error::nftables("removing the tables", error))?;
        }
        Ok(there)
    }

    /// The state that was applied last, unless somebody else has committed since. Gone from `self`, so that a failure on the way
    /// leads to a comparison.
    fn still_ours(&mut self) -> Result<Option<Applied>, Error> {
        let Some(applied) = self.applied.take() else { return Ok(None) };
        let now = read::generation(&mut self.transport);
        let now = now.map_err(|error| Error::kernel("asking for the generation", error))?;
        Ok(Some(applied).filter(|applied| applied.generation == now.id))
    }

    fn compare(&mut self, cluster: &Cluster) -> Result<(Found, Transaction, Applied), Error> {
        let listing = |error| Error::kernel("listing what the kernel holds", error);
        let mut planner = Planner::new(&self.settings, cluster, self.local_addresses()?)?;
        let before = read::generation(&mut self.transport).map_err(listing)?.id;
        let mut held = Vec::new();
        for family in self.settings.families.iter().copied().map(nft_family) {
            held.push(read::ruleset(&mut self.transport, family, Some(TABLE)).map_err(listing)?);
        }
        // The same generation for all of it; what comes in between is caught when the transaction is sent.
        let generation = held.iter().map(|ruleset| ruleset.generation).fold(before, u32::max);
        let script = planner.script();
        let comparison =
            compare::compare(&script, &held).map_err(|error| Error::nftables("encoding the plan", error))?;
        let (found, transaction) = match comparison {
            Comparison::Differs { transaction, sizes } => {
                for (family, set, size) in sizes {
                    planner.adopt_size(family, &set, size);
                }
                (Found::Compared, transaction)
            }
            Comparison::Absent => (Found::Compared, script),
            Comparison::Foreign => (Found::Replaced, planner.replacement()),
        };
        Ok((found, transaction, Applied { planner, generation }))
    }

    /// The addresses of this node's interfaces, where node ports are answered on some of them.
    fn local_addresses(&self) -> Result<Option<Vec<IpAddr>>, Error> {
        match (&self.settings.node_port_addresses, self.interfaces) {
            (NodePortAddresses::Within(_), Some(interfaces)) => interfaces().map(Some),
            _ => Ok(None),
        }
    }

    /// Deletes the chains whose time has come; false when the kernel refused.
    fn remove_stale(&mut self, applied: &mut Applied, now: Instant) -> Result<bool, Error> {
        if !applied.planner.has_stale() {
            return Ok(true);
        }
        let transaction = applied.planner.remove_stale(now);
        if transaction.is_empty() {
            return Ok(true);
        }
        match self.send(&transaction, applied.generation) {
            Ok(sent) => applied.generation = made(applied.generation, sent.batches),
            // Something still refers to a chain: it is empty and harms nobody until its next turn.
            Err(nft::Error::Rejected { applied: 0, .. }) => {
                applied.planner.keep_stale(now);
                return Ok(false);
            }
            Err(error) => return Err(Error::nftables("removing unused chains", error)),
        }
        Ok(true)
    }

    fn send(&mut self, transaction: &Transaction, generation: u32) -> Result<nft::Applied, nft::Error> {
        let options = ApplyOptions { generation: Some(generation), ..ApplyOptions::default() };
        transaction.apply_with(&mut self.transport, options)
    }
}

impl Changes {
    fn of(transaction: &Transaction) -> Self {
        let mut changes = Self::default();
        for operation in transaction.operations() {
            match operation {
                Operation::Add(Object::Elements(elements)) => changes.elements_added += elements.list.len(),
                Operation::Delete(Target::Elements(elements)) => {
                    changes.elements_deleted += elements.list.len();
                }
                Operation::Add(Object::Rule(_)) => changes.rules += 1,
                Operation::Flush(Flush::Chain(_)) => {}
                _ => changes.objects += 1,
            }
        }
        changes
    }
}

impl fmt::Display for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.batches == 0 {
            return f.write_str("nothing to change");
        }
        let Changes { objects, rules, elements_added, elements_deleted } = self.changes;
        let how = match self.found {
            Found::Changed | Found::Compared => "",
            Found::Replaced => "replaced all: ",
        };
        write!(
            f,
            "{how}{objects} tables, chains and sets, {rules} rules, {elements_added} elements added, {elements_deleted} deleted; \
             {} bytes in {} messages",
            self.bytes, self.messages
        )?;
        if self.batches > 1 {
            write!(f, ", split into {} batches because the send buffer may not grow", self.batches)?;
        }
        Ok(())
    }
}

/// The generation after so many commits: each counts one, and zero is left out. What the kernel tells right behind a commit may
/// be another's already, which would then pass for ours.
fn made(before: u32, commits: usize) -> u32 {
    (0..commits).fold(before, |generation, _| generation.wrapping_add(1).max(1))
}

/// An error of programming, with the services that it is about where those are known.
fn refusal(error: nft::Error, transaction: &Transaction, planner: &Planner) -> Error {
    let mut services: BTreeMap<ServiceName, String> = BTreeMap::new();
    if !error.failures().is_empty() {
        let owners = planner.owners();
        for failure in error.failures() {
            let operation = failure.operation.and_then(|index| transaction.operations().get(index));
            if let Some(owner) = operation.and_then(|operation| owners.of(operation, failure.element)) {
                services.entry(owner.clone()).or_insert_with(|| failure.to_string());
            }
        }
    }
    if services.is_empty() {
        return Error::nftables("programming the services", error);
    }
    Error::Refused { services: services.into_iter().collect() }
}

fn nft_family(family: Family) -> nft::Family {
    match family {
        Family::V4 => nft::Family::IP,
        Family::V6 => nft::Family::IP6,
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_netlink::scripted::{self, Script};

    use super::*;

    #[test]
    fn a_kernel_without_nf_tables_has_nothing_of_ours() {
        let refusing = |errno: Errno| {
            let mut kernel = Script::new();
            kernel.expect_any().reply(scripted::error(1, errno as i32, None, None));
            Applier::new(kernel, Settings::default())
        };
        assert!(!refusing(Errno::EINVAL).has_nf_tables().unwrap());
        assert_eq!(refusing(Errno::EINVAL).cleanup().unwrap(), [""; 0]);
        assert!(refusing(Errno::EPERM).has_nf_tables().unwrap_err().is_permission_denied());
    }
}
