//! Brings ipsets, IPVS, addresses and iptables to where the plan is: the first three by netlink, the last by `iptables-restore`.
//!
//! The first sync compares the plan with what the kernel holds and sends the difference. From then on the applied state is in
//! memory: a sync sends what changed, and lists nothing but the destinations of a service that loses one, whose connections
//! are to be known. Addresses of devices are heard of as they change. After an hour, and after anything that failed,
//! everything is compared once more.
//!
//! The order keeps every address reachable: sets, then virtual servers with their destinations, then rules, then addresses; what
//! goes, goes last. A destination that goes keeps its connections: it gets weight 0, and is deleted when it has none, at once or
//! later. Each sync looks after those from a minute on ([`Applier::look_again`]).
//!
//! Tools and sockets belong to the network namespace of the thread that opens them, so that one thread should do all.

mod cleanup;
mod kernel;
mod links;
mod rules;

use std::fmt;
use std::time::{Duration, Instant};

use sluicegate_ipset as ipset;
use sluicegate_iptables_save::restore::{BackEnd, Tool};
use sluicegate_iptables_save::{self as save};
use sluicegate_ipvs::{self as ipvs, Command, Drain, Patience, Timeouts};
use sluicegate_netlink::{Options, Protocol, Socket, Transport};

use self::kernel::{Kernel, keep_wanted, quieten};
use self::links::{GROUPS, Links};
use super::Found;
use super::iptables::{TRUSTED, back_end, find_tool};
use crate::Error;
use crate::model::{Changes, Cluster, Family};
use crate::plan::ipvs::{Change, Planner, Settings};

pub use self::cleanup::cleanup;

/// Applies plans to one network namespace.
#[derive(Debug)]
pub struct Applier<N = Socket, V = ipvs::Socket> {
    settings: Settings,
    kernel: Kernel<N, V>,
    sides: Vec<Side>,
}

/// What carries messages: to ipset, to IPVS, and to rtnetlink; and what rtnetlink tells of addresses by itself. Without
/// the last, addresses are listed at each sync.
#[derive(Debug)]
#[allow(missing_docs, reason = "said above")]
pub struct Transports<N, V> {
    pub sets: N,
    pub servers: V,
    pub links: N,
    pub events: Option<N>,
}

/// One family.
#[derive(Debug)]
struct Side {
    family: Family,
    tool: Tool,
    planner: Option<Planner>,
    compared: Option<Instant>,
    drain: Drain,
    look_again: Option<Instant>,
}

/// What one sync did in each family.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Synced {
    /// Each family by itself.
    pub families: Vec<FamilySynced>,
}

/// What one sync did in one family.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FamilySynced {
    /// IPv4 or IPv6.
    pub family: Family,
    /// The kernel interface of iptables.
    pub back_end: BackEnd,
    /// How the change was found.
    pub found: Found,
    /// Sets that were made.
    pub sets: usize,
    /// Entries that were added to sets.
    pub entries_added: usize,
    /// Entries that were deleted from sets.
    pub entries_deleted: usize,
    /// Commands to IPVS.
    pub commands: usize,
    /// Addresses that were bound.
    pub bound: usize,
    /// Addresses that were unbound.
    pub unbound: usize,
    /// Bytes of input of iptables-restore; 0 when it was not run.
    pub rules: usize,
    /// Jumps to our chains that were missing.
    pub jumps: usize,
}

impl Applier {
    /// Opens sockets in the current network namespace, and looks for the iptables of `families`: of the back end that
    /// is asked for, or the one that `iptables-restore` itself uses.
    ///
    /// # Errors
    /// [`Error::Ipvs`] when the kernel has no IPVS ([`Error::is_absent`]). [`Error::Iptables`] when a family has no tool.
    pub fn open(back_end: Option<BackEnd>, families: &[Family], settings: Settings) -> Result<Self, Error> {
        let tools = families.iter().map(|family| find_tool(*family, back_end).map(|(tool, _)| tool));
        Self::over(tools.collect::<Result<_, _>>()?, settings, Transports::open()?)
    }
}

impl Transports<Socket, ipvs::Socket> {
    /// Sockets in the current network namespace.
    ///
    /// # Errors
    /// [`Error::Kernel`], [`Error::Ipvs`] when one cannot be had.
    pub fn open() -> Result<Self, Error> {
        let failed = |error| Error::kernel("opening a netlink socket", error);
        let open = |protocol| Socket::open(protocol, &Options::default());
        let mut events = open(Protocol::ROUTE).map_err(failed)?;
        GROUPS.iter().try_for_each(|group| events.join(*group)).map_err(failed)?;
        let servers = ipvs::Socket::open()
            .map_err(|source| ipvs::Error::Io { doing: "open a netlink socket", source })
            .map_err(|error| Error::ipvs("opening a netlink socket", error))?;
        let sets = open(Protocol::NETFILTER).map_err(failed)?;
        Ok(Self { sets, servers, links: open(Protocol::ROUTE).map_err(failed)?, events: Some(events) })
    }

    /// Makes the kernel load IPVS if it can, for its sysctls to be there.
    ///
    /// # Errors
    /// [`Error::Ipvs`] when the kernel has none ([`Error::is_absent`]).
    pub fn load(self) -> Result<(), Error> {
        ipvs::Client::over(self.servers).map(drop).map_err(|error| Error::ipvs("looking for IPVS", error))
    }
}

impl<N: Transport, V: ipvs::Transport> Applier<N, V> {
    /// Applies over any transports, and by these tools, one of each family.
    ///
    /// # Errors
    /// [`Error::Ipvs`] when the kernel has no IPVS ([`Error::is_absent`]).
    pub fn over(tools: Vec<Tool>, settings: Settings, transports: Transports<N, V>) -> Result<Self, Error> {
        let servers = ipvs::Client::over(transports.servers);
        let kernel = Kernel {
            sets: ipset::Client::new(transports.sets),
            servers: servers.map_err(|error| Error::ipvs("looking for IPVS", error))?,
            links: Links::new(transports.links, transports.events),
        };
        Ok(Self { settings, kernel, sides: tools.into_iter().map(Side::new).collect() })
    }

    /// Brings the kernel to what `cluster` wants.
    ///
    /// # Errors
    /// [`Error::Flag`] when the settings cannot be planned; [`Error::Ipset`], [`Error::Ipvs`], [`Error::Kernel`],
    /// [`Error::Iptables`] when the kernel or the tool refuses something; [`Error::Refused`] where that is virtual servers of certain
    /// services, without which the rest can be programmed. What does not depend on it is done all the
    /// same, nothing is removed that would have been replaced, and the next sync compares everything.
    pub fn sync(&mut self, cluster: &mut Cluster, now: Instant) -> Result<Synced, Error> {
        let changes = cluster.take_changes();
        self.sync_changes(cluster, &changes, now)
    }

    /// The same for one who has taken the changes already: `changes` are those since the last sync, or since one that failed.
    /// Without any, it looks whether virtual servers, sets and jumps are as they were left.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn sync_changes(
        &mut self,
        cluster: &Cluster,
        changes: &Changes,
        now: Instant,
    ) -> Result<Synced, Error> {
        self.kernel.links.refresh().map_err(|error| Error::kernel("listing addresses", error))?;
        let (mut synced, mut failed) = (Synced::default(), None);
        for side in &mut self.sides {
            // One family that fails must not keep the other from its services.
            match side.sync(&mut self.kernel, &self.settings, cluster, changes, now) {
                Ok(family) => synced.families.push(family),
                Err(error) => failed = Some(Error::both(failed, error)),
            }
        }
        failed.map_or(Ok(synced), Err)
    }

    /// Trusts nothing that was applied: the next sync compares everything with what the kernel holds.
    pub fn distrust(&mut self) {
        self.sides.iter_mut().for_each(|side| side.planner = None);
    }

    /// What the operator decides; after a change the next sync compares everything.
    pub fn settings_mut(&mut self) -> &mut Settings {
        self.distrust();
        &mut self.settings
    }

    /// What [`sync`](Self::sync) would do in each family, found by comparing with the kernel. Changes nothing; runs
    /// `iptables-save`.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn difference(&mut self, cluster: &Cluster) -> Result<Vec<(Family, Change)>, Error> {
        self.kernel.links.list().map_err(|error| Error::kernel("listing addresses", error))?;
        let mut found = Vec::new();
        for side in &self.sides {
            let planner = side.plan(&self.settings, cluster, &self.kernel)?;
            let mut change = self.kernel.compare(&planner, &self.settings)?.change;
            change.rules = rules::difference(&side.tool, &planner)?;
            found.push((side.family, change));
        }
        Ok(found)
    }

    /// When a sync should come although nothing changes: some destination waits for its connections to end.
    #[must_use]
    pub fn look_again(&self) -> Option<Instant> {
        self.sides.iter().filter_map(|side| side.look_again).min()
    }

    /// How many service ports of a family want local endpoints for their internal, their external traffic and have none.
    #[must_use]
    pub fn without_local_endpoints(&self, family: Family) -> Option<(usize, usize)> {
        let side = self.sides.iter().find(|side| side.family == family)?;
        side.planner.as_ref().map(Planner::without_local_endpoints)
    }
}

impl Side {
    fn new(tool: Tool) -> Self {
        let family = if tool.family() == save::Family::V4 { Family::V4 } else { Family::V6 };
        Self { family, tool, planner: None, compared: None, drain: Drain::new(PATIENCE), look_again: None }
    }

    fn plan<N: Transport, V: ipvs::Transport>(
        &self,
        settings: &Settings,
        cluster: &Cluster,
        kernel: &Kernel<N, V>,
    ) -> Result<Planner, Error> {
        let random_fully = settings.random_fully && self.tool.version() >= (1, 6, 2);
        let settings = Settings { random_fully, ..settings.clone() };
        Planner::new(self.family, &settings, cluster, Some(kernel.links.others()))
    }

    fn sync<N: Transport, V: ipvs::Transport>(
        &mut self,
        kernel: &mut Kernel<N, V>,
        settings: &Settings,
        cluster: &Cluster,
        changes: &Changes,
        now: Instant,
    ) -> Result<FamilySynced, Error> {
        let mut synced = FamilySynced::new(self.family, self.tool.back_end());
        let fresh = self.compared.is_some_and(|then| now.saturating_duration_since(then) < TRUSTED);
        let mut known = self.planner.take().filter(|_| fresh);
        if let Some(planner) = &known
            && changes.is_empty()
            && !(kernel.is_as_planned(planner)? && rules::has_jumps(&self.tool)?)
        {
            known = None;
        }
        let changed = known.map(|planner| self.change(kernel, planner, cluster, changes, now, &mut synced));
        // What failed may do so because somebody has changed what is ours: compared, it is mended or fails for good.
        if !matches!(changed, Some(Ok(()))) {
            synced = FamilySynced::new(self.family, self.tool.back_end());
            synced.found = Found::Compared;
            self.compare(kernel, settings, cluster, now, &mut synced)?;
            self.compared = Some(now);
        }
        if self.look_again.is_none_or(|due| due <= now) {
            let (deleted, again) = kernel.look_at_drained(&mut self.drain, now)?;
            synced.commands += deleted;
            self.look_again = again;
        }
        Ok(synced)
    }

    fn change<N: Transport, V: ipvs::Transport>(
        &mut self,
        kernel: &mut Kernel<N, V>,
        mut planner: Planner,
        cluster: &Cluster,
        changes: &Changes,
        now: Instant,
        synced: &mut FamilySynced,
    ) -> Result<(), Error> {
        planner.set_local_addresses(kernel.links.others());
        let mut change = planner.sync(cluster, changes)?;
        kernel.links.mend(&planner, &mut change);
        self.apply(kernel, &planner, change, now, synced)?;
        self.planner = Some(planner);
        Ok(())
    }

    fn compare<N: Transport, V: ipvs::Transport>(
        &mut self,
        kernel: &mut Kernel<N, V>,
        settings: &Settings,
        cluster: &Cluster,
        now: Instant,
        synced: &mut FamilySynced,
    ) -> Result<(), Error> {
        kernel.links.list().map_err(|error| Error::kernel("listing addresses", error))?;
        let planner = self.plan(settings, cluster, kernel)?;
        if settings.timeouts != Timeouts::default() {
            kernel.serve(&[Command::SetTimeouts(settings.timeouts)])?.into_result(&planner)?;
        }
        let mut comparison = kernel.compare(&planner, settings)?;
        keep_wanted(&mut self.drain, &planner);
        for set in comparison.unfit {
            kernel.replace(&planner, set)?;
            synced.sets += 1;
        }
        comparison.change.rules = planner.input();
        let applied = self.apply(kernel, &planner, comparison.change, now, synced);
        // One virtual server that is refused must not keep the others from their rules.
        let jumps = rules::ensure_jumps(&self.tool);
        applied?;
        synced.jumps = jumps?;
        self.planner = Some(planner);
        Ok(())
    }

    /// Sets before rules, destinations before addresses, removal last.
    fn apply<N: Transport, V: ipvs::Transport>(
        &mut self,
        kernel: &mut Kernel<N, V>,
        planner: &Planner,
        mut change: Change,
        now: Instant,
        synced: &mut FamilySynced,
    ) -> Result<(), Error> {
        let quiet = quieten(&mut change, &mut self.drain);
        kernel.fill(self.family, &change)?;
        let refused = kernel.serve(&change.serve)?;
        synced.rules = rules::restore(&self.tool, &change.rules)?;
        kernel.bind(&change.bind)?;
        kernel.unbind(&change.unbind)?;
        kernel.retire(quiet, &mut change, &mut self.drain, now)?;
        change.retire.retain(|command| refused.spares(command));
        let refused = refused.and(kernel.serve(&change.retire)?);
        kernel.empty(self.family, &change)?;
        synced.count(&change);
        refused.into_result(planner)
    }
}

impl FamilySynced {
    fn new(family: Family, back_end: BackEnd) -> Self {
        Self {
            family,
            back_end,
            found: Found::Changed,
            sets: 0,
            entries_added: 0,
            entries_deleted: 0,
            commands: 0,
            bound: 0,
            unbound: 0,
            rules: 0,
            jumps: 0,
        }
    }

    fn count(&mut self, change: &Change) {
        self.sets += change.create.len();
        self.entries_added = change.add.iter().map(|(_, entries)| entries.len()).sum();
        self.entries_deleted = change.delete.iter().map(|(_, entries)| entries.len()).sum();
        self.commands += change.serve.len() + change.retire.len();
        (self.bound, self.unbound) = (change.bind.len(), change.unbind.len());
    }

    /// Nothing was to be done; rules may have been written again as they were.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        let Self { sets, entries_added, entries_deleted, commands, bound, unbound, jumps, rules, .. } = self;
        let rules = if self.found == Found::Compared { 0 } else { *rules };
        [*sets, *entries_added, *entries_deleted, *commands, *bound, *unbound, *jumps, rules] == [0; 8]
    }
}

impl fmt::Display for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let families: Vec<_> = self.families.iter().map(ToString::to_string).collect();
        f.write_str(&families.join("; "))
    }
}

impl fmt::Display for FamilySynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (iptables: {}): ", self.family, back_end(self.back_end))?;
        if self.is_unchanged() {
            f.write_str("nothing to change")?;
        } else {
            let Self { sets, entries_added, entries_deleted, commands, bound, unbound, jumps, .. } = self;
            write!(
                f,
                "{sets} sets, {entries_added} entries added, {entries_deleted} deleted, {commands} commands to IPVS, \
                 {bound} addresses bound, {unbound} unbound, {jumps} jumps"
            )?;
        }
        if self.rules > 0 {
            write!(f, "; {} bytes of rules written", self.rules)?;
        }
        Ok(())
    }
}

/// As kube-proxy looks after destinations that wait for their connections: each minute, for ever.
const PATIENCE: Patience = Patience { limit: None, interval: Duration::from_secs(60) };
