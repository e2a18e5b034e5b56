//! Applies plans to ipset, IPVS, addresses and the rules of iptables. No program is started.
//!
//! The first sync compares the plan with the kernel and sends the difference. From then on the applied state
//! is in memory: a sync sends the changes, and lists only the destinations of a service that loses one, to
//! learn their connections. Events report changes of the devices' addresses. A sync without changes looks
//! whether others have changed something. If so, after a failure, and after an hour, everything is compared
//! again.
//!
//! The order keeps every address reachable, and none open to whom its source ranges keep out, also where
//! something fails in between: first sets, then new virtual servers with their destinations, then what goes
//! of both and of addresses, then rules, then new addresses, and finally entries of sets that go. A
//! destination that is removed keeps its connections: it gets weight 0, and is deleted when it has none.
//! Syncs check such destinations once a minute ([`Applier::next_sync`]).
//!
//! Sockets belong to the network namespace of the thread that opens them: use an applier in one thread.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use sluicegate_ipset as ipset;
use sluicegate_ipvs::{self as ipvs, Command, Drain, DrainTiming, ServiceId, Timeouts};
use sluicegate_netlink::{NetlinkFamily, Options, Socket, Transport};
use sluicegate_services::{Changes, Cluster, Family, NodePorts};
use sluicegate_xtables::BackEnd;

use super::kernel::{Kernel, keep_wanted, set_weights_to_zero};
use super::links::{GROUPS, Links};
use super::{Change, FamilySynced, Planner, Settings, Synced, restore as rules};
use crate::flows::Programmed;
use crate::iptables::{self, TRUSTED, Tables};
use crate::{Error, Found};

/// Applies plans to a network namespace.
#[derive(Debug)]
pub struct Applier<T = Socket> {
    settings: Settings,
    kernel: Kernel<T>,
    sides: Vec<Side>,
}

/// The transports of an [`Applier`].
#[derive(Debug)]
pub struct Transports<T> {
    /// The transport to ipset.
    pub sets: T,
    /// The transport to IPVS.
    pub servers: T,
    /// The transport to rtnetlink.
    pub links: T,
    /// The transport that receives the address events of rtnetlink. Without it, addresses are listed at each
    /// sync.
    pub events: Option<T>,
}

/// The state of one family.
#[derive(Debug)]
struct Side {
    family: Family,
    tables: Box<dyn Tables>,
    planner: Option<Planner>,
    compared: Option<Instant>,
    /// The last virtual server whose destinations were looked at.
    looked: Option<ServiceId>,
    drain: Drain,
    next_sync: Option<Instant>,
}

impl Applier {
    /// Opens sockets in the network namespace of the calling thread, for `families`. The rules of iptables are
    /// in the given back end, or in that of [`choose`](iptables::choose).
    ///
    /// # Errors
    /// [`Error::Ipvs`] when the kernel has no IPVS ([`Error::is_absent`]). [`Error::Iptables`] when a
    /// capability is missing.
    pub fn open(back_end: Option<BackEnd>, families: &[Family], settings: Settings) -> Result<Self, Error> {
        let tables = iptables::open(back_end, families);
        let tables = tables.map_err(iptables::iptables("opening the tables of iptables"))?;
        Self::with_transports(tables, settings, Transports::open()?)
    }
}

impl Transports<Socket> {
    /// Opens sockets in the current network namespace.
    ///
    /// # Errors
    /// [`Error::Netlink`], [`Error::Ipvs`] when one cannot be opened.
    pub fn open() -> Result<Self, Error> {
        let failed = |error| Error::netlink("opening a netlink socket", error);
        let open = |protocol| Socket::open(protocol, &Options::default());
        let mut events = open(NetlinkFamily::ROUTE).map_err(failed)?;
        GROUPS.iter().try_for_each(|group| events.join(*group)).map_err(failed)?;
        let servers = open(NetlinkFamily::GENERIC).map_err(failed)?;
        let sets = open(NetlinkFamily::NETFILTER).map_err(failed)?;
        Ok(Self { sets, servers, links: open(NetlinkFamily::ROUTE).map_err(failed)?, events: Some(events) })
    }

    /// Requests the IPVS family, so that a kernel that may load modules loads IPVS and its sysctls exist.
    ///
    /// # Errors
    /// [`Error::Ipvs`] when the kernel has none ([`Error::is_absent`]).
    pub fn load(self) -> Result<(), Error> {
        ipvs::Client::with_transport(self.servers)
            .map(drop)
            .map_err(|error| Error::ipvs("looking for IPVS", error))
    }
}

impl<T: Transport> Applier<T> {
    /// Uses these transports, and these tables of iptables, each of another family.
    ///
    /// # Errors
    /// [`Error::Ipvs`] when the kernel has no IPVS ([`Error::is_absent`]).
    pub fn with_transports(
        tables: Vec<Box<dyn Tables>>,
        settings: Settings,
        transports: Transports<T>,
    ) -> Result<Self, Error> {
        let servers = ipvs::Client::with_transport(transports.servers);
        let kernel = Kernel {
            sets: ipset::Client::with_transport(transports.sets),
            servers: servers.map_err(|error| Error::ipvs("looking for IPVS", error))?,
            links: Links::new(transports.links, transports.events),
            found: Programmed::default(),
        };
        Ok(Self { settings, kernel, sides: tables.into_iter().map(Side::new).collect() })
    }

    /// Programs the services of `cluster`.
    ///
    /// # Errors
    /// [`Error::Services`] when the settings cannot be planned; [`Error::Ipset`], [`Error::Ipvs`],
    /// [`Error::Netlink`], [`Error::Iptables`] when the kernel refuses a change;
    /// [`Error::Refused`] for virtual servers of certain services, without which the others can be
    /// programmed. Changes that do not depend on the refused one are applied nevertheless, objects that were
    /// to be replaced are not removed, and the next sync compares everything.
    pub fn sync(&mut self, cluster: &mut Cluster, now: Instant) -> Result<Synced, Error> {
        let changes = cluster.take_changes();
        self.sync_changes(cluster, &changes, now)
    }

    /// Syncs as [`sync`](Self::sync) does, with changes that the caller has taken from the cluster: those
    /// since the last call. Without changes it checks whether virtual servers, sets and jumps still exist, and
    /// in turn, a thousand virtual servers each time, whether these have their destinations.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn sync_changes(
        &mut self,
        cluster: &Cluster,
        changes: &Changes,
        now: Instant,
    ) -> Result<Synced, Error> {
        if let Err(error) = self.kernel.links.refresh() {
            // The changes are taken, and nobody has planned them.
            self.invalidate();
            return Err(Error::netlink("listing addresses", error));
        }
        let (mut synced, mut failed) = (Synced::default(), None);
        for side in &mut self.sides {
            // A failure in one family must not prevent changes in the other.
            match side.sync(&mut self.kernel, &self.settings, cluster, changes, now) {
                Ok(family) => synced.families.push(family),
                Err(error) => failed = Some(Error::both(failed, error)),
            }
        }
        failed.map_or(Ok(synced), Err)
    }

    /// Returns the clients.
    pub(super) const fn kernel(&mut self) -> &mut Kernel<T> {
        &mut self.kernel
    }

    /// Discards the applied state: the next sync compares everything with the kernel.
    pub fn invalidate(&mut self) {
        self.sides.iter_mut().for_each(|side| side.planner = None);
    }

    /// Takes the frontends that comparisons found in the kernel since the last call, before syncs changed
    /// them.
    pub fn take_found(&mut self) -> Programmed {
        std::mem::take(&mut self.kernel.found)
    }

    /// Returns the addresses that answer node ports in a family.
    #[must_use]
    pub fn node_ports(&self, cluster: &Cluster, family: Family, local: &[IpAddr]) -> NodePorts {
        self.settings.node_port_addresses.resolve(family, cluster.node(), Some(local))
    }

    /// Returns the settings for changes; the next sync compares everything.
    pub fn settings_mut(&mut self) -> &mut Settings {
        self.invalidate();
        &mut self.settings
    }

    /// Returns the change that [`sync`](Self::sync) would apply in each family after comparing with the
    /// kernel. Changes nothing.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn difference(&mut self, cluster: &Cluster) -> Result<Vec<(Family, Change)>, Error> {
        self.kernel.links.list().map_err(|error| Error::netlink("listing addresses", error))?;
        let mut found = Vec::new();
        for side in &mut self.sides {
            let planner = side.plan(&self.settings, cluster, &self.kernel)?;
            let mut change = self.kernel.compare(&planner, &self.settings)?.change;
            change.rules = rules::difference(&mut *side.tables, &planner)?;
            found.push((side.family, change));
        }
        Ok(found)
    }

    /// Returns the time of the next sync that is needed even without changes, because the connections of a
    /// destination have to end.
    #[must_use]
    pub fn next_sync(&self) -> Option<Instant> {
        self.sides.iter().filter_map(|side| side.next_sync).min()
    }

    /// Returns the numbers of service ports of a family whose internal, and whose external, traffic policy is
    /// Local and that have no endpoints on this node.
    #[must_use]
    pub fn without_local_endpoints(&self, family: Family) -> Option<(usize, usize)> {
        let side = self.sides.iter().find(|side| side.family == family)?;
        side.planner.as_ref().map(Planner::without_local_endpoints)
    }
}

impl Side {
    fn new(tables: Box<dyn Tables>) -> Self {
        let family = tables.family();
        Self {
            family,
            tables,
            planner: None,
            compared: None,
            looked: None,
            drain: Drain::new(DRAIN_TIMING),
            next_sync: None,
        }
    }

    fn plan<T: Transport>(
        &self,
        settings: &Settings,
        cluster: &Cluster,
        kernel: &Kernel<T>,
    ) -> Result<Planner, Error> {
        Planner::new(self.family, settings, cluster, Some(kernel.links.others()))
    }

    fn sync<T: Transport>(
        &mut self,
        kernel: &mut Kernel<T>,
        settings: &Settings,
        cluster: &Cluster,
        changes: &Changes,
        now: Instant,
    ) -> Result<FamilySynced, Error> {
        let mut synced = FamilySynced::new(self.family, self.tables.back_end());
        let fresh = self.compared.is_some_and(|then| now.saturating_duration_since(then) < TRUSTED);
        let mut known = self.planner.take().filter(|_| fresh);
        if let Some(planner) = &known
            && changes.is_empty()
            && !(kernel.is_as_planned(planner, &self.drain, &mut self.looked)?
                && rules::has_jumps(&mut *self.tables)?)
        {
            known = None;
        }
        let changed = known.map(|planner| self.change(kernel, planner, cluster, changes, now, &mut synced));
        // A failure may come from another program's change to our objects: comparing repairs that, or fails
        // again for another reason.
        if !matches!(changed, Some(Ok(()))) {
            synced = FamilySynced::new(self.family, self.tables.back_end());
            synced.found = Found::Compared;
            self.compare(kernel, settings, cluster, now, &mut synced)?;
            self.compared = Some(now);
        }
        if self.next_sync.is_none_or(|due| due <= now) {
            let (deleted, again) = kernel.look_at_drained(&mut self.drain, now)?;
            synced.commands += deleted;
            self.next_sync = again;
        }
        Ok(synced)
    }

    fn change<T: Transport>(
        &mut self,
        kernel: &mut Kernel<T>,
        mut planner: Planner,
        cluster: &Cluster,
        changes: &Changes,
        now: Instant,
        synced: &mut FamilySynced,
    ) -> Result<(), Error> {
        planner.set_local_addresses(kernel.links.others());
        let mut change = planner.sync(cluster, changes)?;
        kernel.links.repair(&planner, &mut change);
        self.apply(kernel, &planner, change, now, synced)?;
        self.planner = Some(planner);
        Ok(())
    }

    fn compare<T: Transport>(
        &mut self,
        kernel: &mut Kernel<T>,
        settings: &Settings,
        cluster: &Cluster,
        now: Instant,
        synced: &mut FamilySynced,
    ) -> Result<(), Error> {
        kernel.links.list().map_err(|error| Error::netlink("listing addresses", error))?;
        let planner = self.plan(settings, cluster, kernel)?;
        let timeouts = settings.timeouts.get();
        if timeouts != Timeouts::default() {
            kernel.run_commands(&[Command::SetTimeouts(timeouts)])?.into_result(&planner)?;
        }
        let mut comparison = kernel.compare(&planner, settings)?;
        keep_wanted(&mut self.drain, &planner);
        for set in comparison.unfit {
            kernel.replace(&planner, set)?;
            synced.sets += 1;
        }
        comparison.change.rules = planner.input();
        let applied = self.apply(kernel, &planner, comparison.change, now, synced);
        if let Err(error) = applied {
            // The rules that are there must not wait for their jumps until nothing fails. Where that fails as
            // well, the first error says why.
            let _ = rules::ensure_jumps(&mut *self.tables);
            return Err(error);
        }
        self.planner = Some(planner);
        Ok(())
    }

    /// Applies a change: sets before rules, destinations before addresses.
    ///
    /// The rules limit who may use a load balancer's address, so they and the jumps to them are there before
    /// an address is bound, and go after its virtual server. A failure in between opens nothing.
    fn apply<T: Transport>(
        &mut self,
        kernel: &mut Kernel<T>,
        planner: &Planner,
        mut change: Change,
        now: Instant,
        synced: &mut FamilySynced,
    ) -> Result<(), Error> {
        let quiet = set_weights_to_zero(&mut change, &mut self.drain);
        kernel.fill(self.family, &change)?;
        let refused = kernel.run_commands(&change.serve)?;
        kernel.unbind(&change.unbind)?;
        kernel.begin_draining(quiet, &mut change, &mut self.drain, now)?;
        change.retire.retain(|command| refused.spares(command));
        let refused = refused.and(kernel.run_commands(&change.retire)?);
        synced.rules = rules::restore(&mut *self.tables, &change.rules)?;
        if synced.found == Found::Compared {
            synced.jumps = rules::ensure_jumps(&mut *self.tables)?;
        }
        kernel.bind(&change.bind)?;
        kernel.empty(self.family, &change)?;
        synced.count(&change);
        refused.into_result(planner)
    }
}

/// As in kube-proxy: destinations are checked every minute, without a limit.
const DRAIN_TIMING: DrainTiming = DrainTiming::new(Duration::from_secs(60));
