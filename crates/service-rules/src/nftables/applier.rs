//! Applies plans to the kernel with the smallest change.
//!
//! The first sync compares the plan with the kernel and sends the difference, so that a restart disturbs
//! nothing. From then on the applied state is in memory: the cost of a sync depends on the changes, and the
//! kernel is listed only if a transaction failed or if the generation shows that another program has
//! committed to `nf_tables`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use sluicegate_netlink::{Errno, NetlinkFamily, Options, Socket, Transport};
use sluicegate_nftables::probe::{self, Feature};
use sluicegate_nftables::read::{self, Ruleset};
use sluicegate_nftables::{self as nft, ApplyOptions, InterfaceName, Target, Transaction, reconcile};

use sluicegate_services::{Cluster, Family, NodePorts, ServiceName};

use super::counts::{carried, carry_into_content};
use super::programmed::programmed;
use super::schema::fixed_name;
use super::timed::Timed;
use super::{Changes, Counting, Layout, Planner, Settings, Synced, TABLE};
use crate::flows::Programmed;
use crate::{Error, Found, addresses};

/// Applies plans over a transport, which belongs to one network namespace.
///
/// ```no_run
/// use std::time::Instant;
///
/// use sluicegate_service_rules::nftables::{Applier, Settings};
/// use sluicegate_services::{Cluster, Node};
///
/// let mut cluster = Cluster::new(Node::new("node-1", ["192.168.0.2".parse()?]));
/// let mut applier = Applier::open(Settings::default())?;
/// println!("{}", applier.sync(&mut cluster, Instant::now())?); // the first compares with the kernel
/// cluster.set_node(Node::new("node-1", ["192.168.0.3".parse()?]));
/// println!("{}", applier.sync(&mut cluster, Instant::now())?); // this sends what changed
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Applier<T = Socket> {
    transport: Timed<T>,
    settings: Settings,
    /// Lists the addresses of this node's interfaces; `None` if the rules are not for a real node.
    interfaces: Option<ListAddresses>,
    /// Lists the devices of this node; `None` if the rules are not for a real node.
    links: Option<ListLinks>,
    /// Whether the kernel has flowtables, once that was asked.
    has_flowtables: Option<bool>,
    /// The devices that the last sync knew.
    tried_links: BTreeMap<u32, InterfaceName>,
    /// What the next sync has to tell.
    notices: Vec<String>,
    /// What comparisons found before a sync changed it.
    found: Programmed,
    applied: Option<Applied>,
}

type ListLinks = fn() -> Result<BTreeMap<u32, InterfaceName>, Error>;
type ListAddresses = fn() -> Result<Vec<IpAddr>, Error>;

/// The state that was last applied to the kernel.
#[derive(Debug)]
struct Applied {
    planner: Planner,
    generation: u32,
}

impl Applier {
    /// Opens a socket in the current network namespace.
    ///
    /// # Errors
    /// [`Error::Netlink`] when the kernel has no netfilter.
    pub fn open(settings: Settings) -> Result<Self, Error> {
        let socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default());
        let socket = socket.map_err(|error| Error::netlink("opening a netlink socket", error))?;
        Ok(Self {
            interfaces: Some(addresses::interface_addresses),
            links: Some(list_links),
            ..Self::with_transport(socket, settings)
        })
    }
}

impl<T: Transport> Applier<T> {
    /// Creates an applier with this transport. Node ports are answered on the addresses of the Node object,
    /// as those of the interfaces are unknown.
    pub fn with_transport(transport: T, settings: Settings) -> Self {
        Self {
            transport: Timed::new(transport),
            settings,
            interfaces: None,
            links: None,
            has_flowtables: None,
            tried_links: BTreeMap::new(),
            notices: Vec::new(),
            found: Programmed::default(),
            applied: None,
        }
    }

    /// Programs the services of `cluster`.
    ///
    /// # Errors
    /// [`Error::Services`] when the settings cannot be planned. [`Error::Nftables`] when the kernel refuses;
    /// its ruleset is then as before, and the next sync compares everything.
    pub fn sync(&mut self, cluster: &mut Cluster, now: Instant) -> Result<Synced, Error> {
        let changes = cluster.take_changes();
        self.sync_changes(cluster, &changes, now)
    }

    /// Syncs as [`sync`](Self::sync) does, with changes that the caller has taken from the cluster: those
    /// since the last call.
    ///
    /// # Errors
    /// As [`sync`](Self::sync), and [`Error::Refused`] if the kernel refuses objects of certain services,
    /// without which the others can be programmed.
    pub fn sync_changes(
        &mut self,
        cluster: &Cluster,
        changes: &sluicegate_services::Changes,
        now: Instant,
    ) -> Result<Synced, Error> {
        let result = self.try_sync(cluster, changes, now);
        // The kernel refuses a flowtable with a device that has gone since they were listed.
        if result.is_err() && self.settings.fastpath.is_some() && self.tried_links != self.links()? {
            return self.try_sync(cluster, changes, now);
        }
        result
    }

    fn try_sync(
        &mut self,
        cluster: &Cluster,
        changes: &sluicegate_services::Changes,
        now: Instant,
    ) -> Result<Synced, Error> {
        self.transport.reset();
        let mut is_stale_kept = false;
        let (found, transaction, mut applied) = match self.take_applied()? {
            Some(mut applied) => {
                is_stale_kept = !self.remove_stale(&mut applied, now)?;
                if let Some(addresses) = self.local_addresses()? {
                    applied.planner.set_local_addresses(addresses);
                }
                let has_gone = applied.planner.set_links(&self.note_links()?);
                let mut transaction = applied.planner.sync(cluster, changes, now);
                if has_gone {
                    let mut all = self.without_gone(&applied.planner)?;
                    all.append(transaction);
                    transaction = all;
                }
                (Found::Changed, carried(self.counting(), transaction, &mut self.transport)?, applied)
            }
            None => self.compare(cluster)?,
        };
        let changes = Changes::of(&transaction);
        let mut synced = Synced { found, changes, is_stale_kept, ..Synced::default() };
        if !transaction.is_empty() {
            let mut sent = self.send(&transaction, applied.generation);
            let mut tried = transaction;
            // The kernel refused the difference: replace the whole table.
            if matches!(sent, Err(nft::Error::Rejected { applied: 0, .. })) && found == Found::Compared {
                tried = carried(self.counting(), applied.planner.replacement(), &mut self.transport)?;
                synced.found = Found::Replaced;
                synced.changes = Changes::of(&tried);
                sent = self.send(&tried, applied.generation);
            }
            let sent = match sent {
                Err(error) if error.is_permission_denied() => {
                    self.free_of_owners()?;
                    return Err(refusal(error, &tried, &applied.planner));
                }
                sent => sent.map_err(|error| refusal(error, &tried, &applied.planner))?,
            };
            applied.generation = generation_after(applied.generation, sent.batches);
            synced.batches = sent.batches;
        }
        (synced.messages, synced.bytes, synced.kernel) = self.transport.totals();
        synced.notices = std::mem::take(&mut self.notices);
        self.applied = Some(applied);
        Ok(synced)
    }

    /// Discards the applied state: the next sync compares everything with the kernel.
    pub fn invalidate(&mut self) {
        self.applied = None;
    }

    /// Records that the commit of another program led to this generation and, as its events show, changed
    /// none of our tables, so that the next sync need not compare because of it.
    pub fn ignore_commit(&mut self, generation: u32) {
        if let Some(applied) = &mut self.applied
            && generation_after(applied.generation, 1) == generation
        {
            applied.generation = generation;
        }
    }

    /// Returns `true` if no other program has committed to `nf_tables` since the last sync, except for
    /// commits that were [ignored](Self::ignore_commit).
    ///
    /// # Errors
    /// [`Error::Netlink`] when the generation cannot be read.
    pub fn is_current(&mut self) -> Result<bool, Error> {
        let Some(applied) = &self.applied else { return Ok(false) };
        let expected = applied.generation;
        let now = read::generation(&mut self.transport);
        now.map(|now| now.id == expected).map_err(|error| Error::reading("asking for the generation", error))
    }

    /// Returns `true` if devices have come or gone that the flowtable is to have.
    ///
    /// # Errors
    /// [`Error::Netlink`] when they cannot be listed.
    pub fn is_outdated(&mut self) -> Result<bool, Error> {
        if self.settings.fastpath.is_none() || self.has_flowtables == Some(false) {
            return Ok(false);
        }
        let links = self.links()?;
        Ok(self.applied.as_ref().is_some_and(|applied| !applied.planner.has_links(&links)))
    }

    /// Takes the frontends that comparisons found in the kernel since the last call, before syncs changed
    /// them.
    pub fn take_found(&mut self) -> Programmed {
        std::mem::take(&mut self.found)
    }

    /// Returns the addresses that answer node ports in a family.
    #[must_use]
    pub fn node_ports(&self, cluster: &Cluster, family: Family, local: &[IpAddr]) -> NodePorts {
        self.settings.node_port_addresses.resolve(family, cluster.node(), Some(local))
    }

    /// Returns `true` if there are flushed chains, which a sync more than a second later deletes.
    #[must_use]
    pub fn has_leftovers(&self) -> bool {
        self.applied.as_ref().is_some_and(|applied| applied.planner.has_stale())
    }

    /// Returns the settings for changes; the next sync compares everything.
    pub fn settings_mut(&mut self) -> &mut Settings {
        self.invalidate();
        &mut self.settings
    }

    /// Returns the transaction that [`sync`](Self::sync) would send after comparing with the kernel. Sends
    /// nothing.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn difference(&mut self, cluster: &Cluster) -> Result<Transaction, Error> {
        self.compare(cluster).map(|(_, transaction, _)| transaction)
    }

    /// Returns whether the kernel has `nf_tables`. A kernel that may load modules loads it.
    ///
    /// # Errors
    /// [`Error::Netlink`] for any other failure.
    pub fn has_nf_tables(&mut self) -> Result<bool, Error> {
        match read::generation(&mut self.transport) {
            Ok(_) => Ok(true),
            // nfnetlink returns EINVAL for a subsystem that does not exist, and the request is valid.
            Err(error) if error.errno() == Some(Errno::EINVAL) => Ok(false),
            Err(error) => Err(Error::reading("looking for nf_tables", error)),
        }
    }

    /// Deletes our tables and returns their names.
    ///
    /// # Errors
    /// [`Error::Netlink`] when the kernel refuses.
    pub fn cleanup(&mut self) -> Result<Vec<String>, Error> {
        self.applied = None;
        let mut there = Vec::new();
        if !self.has_nf_tables()? {
            return Ok(there);
        }
        for family in Family::BOTH.map(nft_family) {
            let tables = read::tables(&mut self.transport, family)
                .map_err(|error| Error::reading("listing tables", error))?;
            let ours = tables.iter().filter(|table| table.name.as_str() == TABLE);
            there.extend(ours.map(|table| format!("table {} {}", table.family, table.name)));
        }
        if !there.is_empty() {
            let removed = Planner::cleanup().apply(&mut self.transport);
            if removed.as_ref().is_err_and(nft::Error::is_permission_denied) {
                self.free_of_owners()?;
            }
            removed.map_err(|error| Error::nftables("removing the tables", error))?;
        }
        Ok(there)
    }

    /// Takes the applied state out of `self`, unless another program has committed since. It has to be put
    /// back after a success, so that a failure leads to a comparison.
    fn take_applied(&mut self) -> Result<Option<Applied>, Error> {
        let Some(applied) = self.applied.take() else { return Ok(None) };
        let now = read::generation(&mut self.transport);
        let now = now.map_err(|error| Error::reading("asking for the generation", error))?;
        Ok(Some(applied).filter(|applied| applied.generation == now.id))
    }

    fn compare(&mut self, cluster: &Cluster) -> Result<(Found, Transaction, Applied), Error> {
        let mut settings = self.settings.clone();
        if !self.has_flowtables()? {
            settings.fastpath = None;
        }
        let mut planner = Planner::new(&settings, cluster, self.local_addresses()?)?;
        planner.set_links(&self.note_links()?);
        let kernel = self.ruleset()?;
        self.found.append(programmed(&kernel));
        let script = planner.script();
        if kernel.tables.is_empty() {
            let generation = kernel.generation;
            return Ok((Found::Compared, script, Applied { planner, generation }));
        }
        let encoding = |error| Error::nftables("comparing the plan with the kernel", error);
        let mut wanted = script.into_content().map_err(encoding)?;
        carry_into_content(self.counting(), &mut wanted, &kernel);
        // A set of another size works as well. Sizes that the plan chooses would replace whole sets.
        let options = reconcile::Options::default().keep_sizes();
        let difference = reconcile::difference(&wanted, &kernel, &options).map_err(encoding)?;
        for (set, size) in &difference.sizes {
            planner.adopt_size(family_of(set.table.family), &set.name, *size);
        }
        let is_table = |replaced: &reconcile::Replaced| matches!(replaced.object, Target::Table(_));
        let found = match difference.replaced.iter().any(is_table) {
            true => Found::Replaced,
            false => Found::Compared,
        };
        let mut transaction = difference.transaction;
        planner.admit_clients(&mut transaction);
        Ok((found, transaction, Applied { planner, generation: difference.generation }))
    }

    /// Reads our tables of one generation.
    pub(super) fn ruleset(&mut self) -> Result<Ruleset, Error> {
        let listing = |error| Error::reading("listing what the kernel has", error);
        for _ in 0..TRIES {
            let generation = read::generation(&mut self.transport).map_err(listing)?.id;
            let mut all = Ruleset::default();
            all.generation = generation;
            let mut is_one = true;
            for family in self.settings.families.iter().copied().map(nft_family) {
                let table = nft::TableId::new(family, fixed_name(TABLE));
                let of_family = read::ruleset(&mut self.transport, table).map_err(listing)?;
                is_one &= of_family.generation == generation;
                all.append(of_family);
            }
            if is_one {
                return Ok(all);
            }
        }
        Err(listing(sluicegate_netlink::Error::Interrupted(TRIES).into()))
    }

    /// Returns whether the kernel has flowtables, if they are asked for, and notes what it means if not.
    fn has_flowtables(&mut self) -> Result<bool, Error> {
        if self.settings.fastpath.is_none() {
            return Ok(false);
        }
        if let Some(known) = self.has_flowtables {
            return Ok(known);
        }
        let asking = |error| Error::nftables("looking for flowtables", error);
        let has = has_flowtables(&mut self.transport).map_err(asking)?;
        if !has {
            self.notices.push(NO_FLOWTABLES.to_owned());
        }
        self.has_flowtables = Some(has);
        Ok(has)
    }

    /// Returns the transaction that deletes the devices that the kernel's flowtables have and that are not wanted.
    /// Before Linux 6.16 a device that goes leaves them by itself, and to delete it is an error; since then they
    /// keep its name, for another that may come.
    fn without_gone(&mut self, planner: &Planner) -> Result<Transaction, Error> {
        let mut transaction = Transaction::new();
        for wanted in planner.flowtables() {
            let found = read::flowtable(&mut self.transport, &wanted.id);
            let found = found.map_err(|error| Error::reading("listing what the kernel has", error))?;
            let listed = found.into_iter().flat_map(|found| found.devices);
            let gone: Vec<_> = listed
                .filter_map(|name| InterfaceName::new(&name).ok())
                .filter(|name| !wanted.devices.contains(name))
                .collect();
            if !gone.is_empty() {
                transaction.delete(wanted.id.devices(gone));
            }
        }
        Ok(transaction)
    }

    /// Lists the devices of this node, and notes them as those that a sync tries.
    fn note_links(&mut self) -> Result<BTreeMap<u32, InterfaceName>, Error> {
        self.tried_links = self.links()?;
        Ok(self.tried_links.clone())
    }

    /// Lists the devices of this node, if there may be a flowtable.
    fn links(&self) -> Result<BTreeMap<u32, InterfaceName>, Error> {
        match self.links.filter(|_| self.settings.fastpath.is_some()) {
            Some(links) => links(),
            None => Ok(BTreeMap::new()),
        }
    }

    /// Returns what the table counts.
    const fn counting(&self) -> Counting {
        match self.settings.layout {
            Layout::Maps => self.settings.counting,
            Layout::Chains => Counting::Off,
        }
    }

    /// Returns the addresses of this node's interfaces, if only some of them answer node ports.
    fn local_addresses(&self) -> Result<Option<Vec<IpAddr>>, Error> {
        match self.interfaces {
            Some(interfaces) if self.settings.node_port_addresses.depend_on_interfaces() => {
                interfaces().map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Deletes chains that have been unused for long enough. Returns false if the kernel refused.
    fn remove_stale(&mut self, applied: &mut Applied, now: Instant) -> Result<bool, Error> {
        if !applied.planner.has_stale() {
            return Ok(true);
        }
        let transaction = applied.planner.remove_stale(now);
        if transaction.is_empty() {
            return Ok(true);
        }
        match self.send(&transaction, applied.generation) {
            Ok(sent) => applied.generation = generation_after(applied.generation, sent.batches),
            // The kernel still counts references to a chain, which is empty: a later sync deletes it.
            Err(nft::Error::Rejected { applied: 0, .. }) => {
                applied.planner.keep_stale(now);
                return Ok(false);
            }
            Err(error) => return Err(Error::nftables("removing unused chains", error)),
        }
        Ok(true)
    }

    /// Fails if one of our tables belongs to another process, which the kernel refuses with the same error as
    /// a missing right.
    fn free_of_owners(&mut self) -> Result<(), Error> {
        for family in self.settings.families.iter().copied().map(nft_family) {
            let id = nft::TableId::new(family, fixed_name(TABLE));
            let table = read::table(&mut self.transport, &id);
            let table = table.map_err(|error| Error::reading("listing what the kernel has", error))?;
            if let Some(owner) = table.and_then(|table| table.owner) {
                return Err(Error::Owned { table: id.to_string(), owner });
            }
        }
        Ok(())
    }

    fn send(&mut self, transaction: &Transaction, generation: u32) -> Result<nft::Applied, nft::Error> {
        let options = ApplyOptions::default().generation(generation);
        transaction.apply_with(&mut self.transport, options)
    }
}

/// Returns the generation after this many commits: each adds one, and zero is skipped.
///
/// It is computed because a generation that is read after a commit may already be that of another program's.
fn generation_after(before: u32, commits: usize) -> u32 {
    (0..commits).fold(before, |generation, _| generation.wrapping_add(1).max(1))
}

/// Converts an error of a transaction into one that names the services, if it is about objects of services.
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
        Family::Ipv4 => nft::Family::IP,
        Family::Ipv6 => nft::Family::IP6,
    }
}

fn family_of(family: nft::Family) -> Family {
    if family == nft::Family::IP6 { Family::Ipv6 } else { Family::Ipv4 }
}

/// Returns whether the kernel has what [`Settings::fastpath`] takes: flowtables, and rules that hand connections to
/// them.
///
/// # Errors
/// If the kernel cannot be asked.
pub fn has_flowtables(transport: &mut (impl Transport + ?Sized)) -> Result<bool, nft::Error> {
    Ok(probe::supports(transport, Feature::Flowtable)?
        && probe::has_expression(transport, nft::Family::IP, "flow_offload")?)
}

/// Lists the devices of the network namespace of this thread.
fn list_links() -> Result<BTreeMap<u32, InterfaceName>, Error> {
    let listing = |error| Error::reading("listing the devices of this node", error);
    let socket = Socket::open(NetlinkFamily::ROUTE, &Options::default());
    let mut socket = socket.map_err(|error| listing(error.into()))?;
    read::interfaces(&mut socket).map_err(listing)
}

const NO_FLOWTABLES: &str = "this kernel has no flowtables (CONFIG_NF_FLOW_TABLE, CONFIG_NFT_FLOW_OFFLOAD): established \
                             connections pass all chains, as without --nftables-fastpath-after";
/// The number of attempts to read a ruleset that other programs change meanwhile.
const TRIES: u32 = 8;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::sync::atomic::{AtomicBool, Ordering};

    use sluicegate_netlink::scripted::{self, Script};
    use sluicegate_nftables::fake::Fake;

    use super::super::Fastpath;
    use super::*;

    #[test]
    fn a_kernel_without_nf_tables_has_nothing_of_ours() {
        let refusing = |errno: Errno| {
            let mut kernel = Script::new();
            kernel.expect_any().reply(scripted::error(1, errno, None, None));
            Applier::with_transport(kernel, Settings::default())
        };
        assert!(!refusing(Errno::EINVAL).has_nf_tables().unwrap());
        assert_eq!(refusing(Errno::EINVAL).cleanup().unwrap(), [""; 0]);
        assert!(refusing(Errno::EPERM).has_nf_tables().unwrap_err().is_permission_denied());
    }

    fn two_families(kernel: Fake) -> (Applier<Fake>, Cluster) {
        let settings = Settings { families: vec![Family::Ipv4, Family::Ipv6], ..Settings::default() };
        (Applier::with_transport(kernel, settings), Cluster::default())
    }

    #[test]
    fn a_table_that_another_process_owns_is_not_blamed_on_a_missing_right() {
        let kernel = Fake::new();
        let mut owner = kernel.open();
        let mut theirs = Transaction::new();
        let table = nft::Table::new(nft::TableId::new(nft::Family::IP, fixed_name(TABLE)));
        theirs.add(table.flags(nft::TableFlags::OWNER));
        theirs.apply(&mut owner).unwrap();
        let (mut applier, mut cluster) = two_families(kernel.open());
        let errors = [applier.sync(&mut cluster, Instant::now()).err(), applier.cleanup().err()];
        for error in errors {
            assert!(matches!(error, Some(Error::Owned { .. })), "{error:?}");
        }
    }

    #[test]
    fn devices_that_a_kernel_keeps_by_their_names_are_deleted_when_they_go() {
        static GONE: AtomicBool = AtomicBool::new(false);
        fn links() -> Result<BTreeMap<u32, InterfaceName>, Error> {
            let all = [(2, "eth0"), (3, "veth1"), (4, "veth2")].into_iter();
            let left = all.filter(|(index, _)| *index != 3 || !GONE.load(Ordering::Relaxed));
            Ok(left.map(|(index, name)| (index, InterfaceName::new(name).unwrap())).collect())
        }
        let kernel = Fake::new();
        let (mut applier, mut cluster) = two_families(kernel.open());
        let after = NonZeroU32::new(20).unwrap();
        applier.settings.fastpath = Some(Fastpath { after, devices: Vec::new() });
        applier.links = Some(links);
        let devices = || -> Vec<_> {
            let flowtables = kernel.ruleset().flowtables;
            flowtables.into_iter().map(|flowtable| flowtable.devices.join(" ")).collect()
        };
        applier.sync(&mut cluster, Instant::now()).unwrap();
        assert_eq!(devices(), ["eth0 veth1 veth2"; 2]);
        assert!(!applier.is_outdated().unwrap());
        // The fake keeps the names of devices that are not there, as Linux does since 6.16.
        GONE.store(true, Ordering::Relaxed);
        assert!(applier.is_outdated().unwrap());
        let synced = applier.sync(&mut cluster, Instant::now()).unwrap();
        assert_eq!((synced.found, synced.batches), (Found::Changed, 1), "{synced}");
        assert_eq!(devices(), ["eth0 veth2"; 2]);
        GONE.store(false, Ordering::Relaxed);
        applier.sync(&mut cluster, Instant::now()).unwrap();
        assert_eq!(devices(), ["eth0 veth2 veth1"; 2]);
        assert_eq!(applier.difference(&cluster).unwrap().to_string(), "");
    }

    #[test]
    fn the_table_of_a_family_that_is_lost_comes_back_and_the_others_stays() {
        let kernel = Fake::new();
        let (mut applier, mut cluster) = two_families(kernel.open());
        applier.sync(&mut cluster, Instant::now()).unwrap();
        let handles = || kernel.ruleset().tables.iter().map(|t| (t.family, t.handle)).collect::<Vec<_>>();
        let before = handles();
        assert_eq!(before.len(), 2);

        let mut theirs = Transaction::new();
        let table = |family, name| nft::TableId::new(family, nft::Name::new(name).unwrap());
        theirs.delete(table(nft::Family::IP6, TABLE));
        theirs.apply(&mut kernel.open()).unwrap();
        let synced = applier.sync(&mut cluster, Instant::now()).unwrap();
        assert_eq!(synced.found, Found::Compared);
        let after = handles();
        assert_eq!(after.len(), 2);
        assert_eq!(after[0], before[0], "the table of IPv4 was touched");
        assert_ne!(after[1], before[1]);

        // A table that another program has changed is replaced, and the other remains.
        let mut theirs = Transaction::new();
        theirs.delete(table(nft::Family::IP6, TABLE));
        let foreign = nft::Table::new(table(nft::Family::IP6, TABLE));
        theirs.add(foreign.comment(nft::Comment::new("not ours").unwrap()));
        theirs.apply(&mut kernel.open()).unwrap();
        let synced = applier.sync(&mut cluster, Instant::now()).unwrap();
        assert_eq!(synced.found, Found::Replaced);
        assert_eq!(handles()[0], before[0], "the table of IPv4 was touched");
        assert_eq!(applier.difference(&cluster).unwrap().to_string(), "");
    }
}
