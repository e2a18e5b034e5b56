//! The interface between a run loop and a mode.

use std::net::IpAddr;
use std::time::Instant;

use sluicegate_conntrack::Error as FlowError;
use sluicegate_conntrack::stale::Report;
use sluicegate_services::{Changes, Cluster, Family, NodePorts};

use crate::flows::{self, PreviouslyProgrammed, Programmed};
use crate::{Error, Present, Summary};

/// A change to a table of the family `ip` or `ip6` of `nf_tables`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableChange<'a> {
    /// The table.
    pub table: &'a str,
    /// What of it was changed.
    pub what: Object<'a>,
}

/// An object in a table of `nf_tables`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object<'a> {
    /// The table itself.
    Table,
    /// A chain.
    Chain(&'a str),
    /// A rule of a chain, with the chain that it leads to.
    Rule(&'a str, Option<&'a str>),
    /// A set, elements, or another object.
    Other,
}

/// Whether a change touches rules of ours.
pub type IsOurs = fn(&TableChange<'_>) -> bool;

/// A mode of programming services into the kernel: one of this crate's, or another implementation.
///
/// ```
/// use std::time::Instant;
///
/// use sluicegate_service_rules::{Backend, Error, Found, Summary, Verb};
/// use sluicegate_services::{Changes, Cluster};
///
/// /// Prints instead of programming.
/// struct Printer;
///
/// impl Backend for Printer {
///     fn sync(&mut self, _: &Cluster, changes: &Changes, _: Instant) -> Result<Summary, Error> {
///         changes.names().for_each(|name| println!("{name} changed"));
///         let count = changes.names().len();
///         let summary = Summary::new(Found::Changed, format!("{count} services printed"));
///         Ok(summary.count("service", Verb::Any, count))
///     }
///
///     fn invalidate(&mut self) {}
/// }
/// ```
pub trait Backend {
    /// Programs the services of `cluster`. `changes` are the services that changed since the last call.
    ///
    /// After a failure it compares everything with the kernel. Without changes it checks cheaply whether the
    /// kernel still has what was programmed.
    ///
    /// # Errors
    /// [`Error::Refused`] names the services without which the others can be programmed. After any other
    /// error the caller repeats the sync later.
    fn sync(&mut self, cluster: &Cluster, changes: &Changes, now: Instant) -> Result<Summary, Error>;

    /// Discards the state that was programmed: the next sync compares everything with the kernel.
    fn invalidate(&mut self);

    /// Announces that the name, the zone, an address or a pod CIDR of this node has changed, which rules may
    /// contain. The next sync plans everything again.
    fn node_changed(&mut self) {
        self.invalidate();
    }

    /// Returns `true` if another sync is needed in a second or two to finish the work.
    fn has_leftovers(&self) -> bool {
        false
    }

    /// Returns what decides whether a change to `nf_tables` by another program touches rules of this back end,
    /// if it has rules there.
    ///
    /// A run loop that receives the events of `nf_tables` calls [`invalidate`](Self::invalidate) for a commit
    /// of another program that touched them, and [`ignore_commit`](Self::ignore_commit) for any other.
    fn watches(&self) -> Option<IsOurs> {
        None
    }

    /// Returns `true` if another program seems to have changed rules of this back end: a cheap look, for rules
    /// of which there are no events. A run loop asks twice a second.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    fn is_disturbed(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Returns `true` if something of this node has changed that rules depend on, as a device that has come, so
    /// that a sync is due: a cheap look, which a run loop takes twice a second.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    fn is_outdated(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Announces that the commit of another program led to this generation and changed none of our tables.
    fn ignore_commit(&mut self, generation: u32) {
        let _ = generation;
    }

    /// Returns `true` if no other program has committed to `nf_tables` since the last sync.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    fn is_current(&mut self) -> Result<bool, Error> {
        Ok(true)
    }

    /// Returns what the kernel serves before this has changed anything: a run loop that starts asks, not to
    /// remove it by mistake. `None` for a back end that does not know.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    fn present(&mut self) -> Result<Option<Present>, Error> {
        Ok(None)
    }

    /// Takes the frontends that comparisons found in the kernel since the last call, before syncs changed
    /// them. What is none of them any more has flows that may be stale.
    fn take_found(&mut self) -> Programmed {
        Programmed::default()
    }

    /// Returns the addresses that answer node ports in a family; `local` are all addresses of the node.
    fn node_ports(&self, cluster: &Cluster, family: Family, local: &[IpAddr]) -> NodePorts {
        let _ = (cluster, family, local);
        NodePorts::All
    }

    /// Deletes the flows of one family that a change of services made stale from the kernel's connection
    /// tracking, in the network namespace of the calling thread. Returns `None` for a back end whose
    /// connections are not tracked there.
    ///
    /// # Errors
    /// When connection tracking cannot be listed or changed.
    fn clean_flows(
        &mut self,
        cluster: &Cluster,
        former: &PreviouslyProgrammed,
        family: Family,
    ) -> Result<Option<Report>, FlowError> {
        flows::clean_up(cluster, former, family, |local| self.node_ports(cluster, family, local)).map(Some)
    }
}

#[cfg(feature = "nftables")]
impl<T: sluicegate_netlink::Transport> Backend for crate::nftables::Applier<T> {
    fn sync(&mut self, cluster: &Cluster, changes: &Changes, now: Instant) -> Result<Summary, Error> {
        self.sync_changes(cluster, changes, now).map(Summary::from)
    }

    fn present(&mut self) -> Result<Option<Present>, Error> {
        Self::present(self).map(Some)
    }

    fn take_found(&mut self) -> Programmed {
        Self::take_found(self)
    }

    fn node_ports(&self, cluster: &Cluster, family: Family, local: &[IpAddr]) -> NodePorts {
        Self::node_ports(self, cluster, family, local)
    }

    fn invalidate(&mut self) {
        Self::invalidate(self);
    }

    fn has_leftovers(&self) -> bool {
        Self::has_leftovers(self)
    }

    fn watches(&self) -> Option<IsOurs> {
        Some(|change| change.table == crate::nftables::TABLE)
    }

    fn is_outdated(&mut self) -> Result<bool, Error> {
        Self::is_outdated(self)
    }

    fn ignore_commit(&mut self, generation: u32) {
        Self::ignore_commit(self, generation);
    }

    fn is_current(&mut self) -> Result<bool, Error> {
        Self::is_current(self)
    }
}

#[cfg(feature = "iptables")]
impl Backend for crate::iptables::Applier {
    fn sync(&mut self, cluster: &Cluster, changes: &Changes, now: Instant) -> Result<Summary, Error> {
        self.sync_changes(cluster, changes, now).map(Summary::from)
    }

    fn watches(&self) -> Option<IsOurs> {
        self.has_events().then_some(crate::iptables::is_touched)
    }

    fn is_disturbed(&mut self) -> Result<bool, Error> {
        Self::is_disturbed(self)
    }

    fn ignore_commit(&mut self, generation: u32) {
        Self::ignore_commit(self, generation);
    }

    fn is_current(&mut self) -> Result<bool, Error> {
        Self::is_current(self)
    }

    fn present(&mut self) -> Result<Option<Present>, Error> {
        Self::present(self).map(Some)
    }

    fn take_found(&mut self) -> Programmed {
        Self::take_found(self)
    }

    fn node_ports(&self, cluster: &Cluster, family: Family, local: &[IpAddr]) -> NodePorts {
        Self::node_ports(self, cluster, family, local)
    }

    fn invalidate(&mut self) {
        Self::invalidate(self);
    }
}

#[cfg(feature = "ipvs")]
impl<T: sluicegate_netlink::Transport> Backend for crate::ipvs::Applier<T> {
    fn sync(&mut self, cluster: &Cluster, changes: &Changes, now: Instant) -> Result<Summary, Error> {
        self.sync_changes(cluster, changes, now).map(Summary::from)
    }

    fn present(&mut self) -> Result<Option<Present>, Error> {
        Self::present(self).map(Some)
    }

    fn take_found(&mut self) -> Programmed {
        Self::take_found(self)
    }

    fn node_ports(&self, cluster: &Cluster, family: Family, local: &[IpAddr]) -> NodePorts {
        Self::node_ports(self, cluster, family, local)
    }

    fn invalidate(&mut self) {
        Self::invalidate(self);
    }
}
