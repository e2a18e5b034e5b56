//! What the loop needs of a proxy mode, and the modes.

use std::time::Instant;

use sluicegate_conntrack::Error as FlowError;
use sluicegate_conntrack::reconcile::Report;
use sluicegate_netlink::Transport;

use super::commits::Commits;
use super::observer::Sent;
use crate::Error;
use crate::apply;
use crate::apply::conntrack::{self, Scope};
use crate::model::{Changes, Cluster, DetectLocal, Family, Node};

/// A part of the kernel that services are programmed into.
pub trait Backend {
    /// Brings the kernel to what `cluster` wants, `changes` being what changed since the last sync that succeeded or failed. After
    /// one that failed, everything is compared. Without changes it looks whether all is as it was left, which costs little.
    ///
    /// # Errors
    /// [`Error::Refused`] names the services without which the rest can be programmed; any other error is tried again later.
    fn sync(&mut self, cluster: &Cluster, changes: &Changes, now: Instant) -> Result<Sent, Error>;

    /// Trusts nothing that was programmed: the next sync compares everything with what the kernel holds.
    fn distrust(&mut self);

    /// What tells pods from the rest, to be changed. Trusts nothing afterwards.
    fn detect_local_mut(&mut self) -> &mut DetectLocal;

    /// This node is another, or was found out: its networks of pods and addresses are part of the rules. Trusts nothing afterwards.
    fn set_node(&mut self, node: &Node) {
        self.detect_local_mut().node_cidrs.clone_from(&node.pod_cidrs);
    }

    /// Something is left to do at the next sync, a second or two from now.
    fn has_leftovers(&self) -> bool {
        false
    }

    /// Begins to listen for changes that others make, where the kernel tells of them.
    ///
    /// # Errors
    /// When that cannot be had here; the loop then looks every sync period.
    fn listen(&mut self) -> Result<Option<Commits>, Error> {
        Ok(None)
    }

    /// Another's commit made this generation and touched nothing of ours.
    fn pass_over(&mut self, generation: u32) {
        let _ = generation;
    }

    /// Removes the UDP flows of one family that a change of services made stale, from the connection tracking of the kernel in the
    /// network namespace of this thread, whatever the mode; `None` where that is not what the connections go through.
    ///
    /// # Errors
    /// When connection tracking cannot be asked, or refuses.
    fn clean_flows(
        &mut self,
        cluster: &Cluster,
        scope: Scope<'_>,
        family: Family,
    ) -> Result<Option<Report>, FlowError> {
        conntrack::clean_up(cluster, scope, &[family]).map(Some)
    }

    /// Nobody else has committed since the last sync.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    fn is_current(&mut self) -> Result<bool, Error> {
        Ok(true)
    }
}

impl<T: Transport> Backend for apply::Applier<T> {
    fn sync(&mut self, cluster: &Cluster, changes: &Changes, now: Instant) -> Result<Sent, Error> {
        self.sync_changes(cluster, changes, now).map(Sent::Nftables)
    }

    fn distrust(&mut self) {
        Self::distrust(self);
    }

    fn detect_local_mut(&mut self) -> &mut DetectLocal {
        &mut self.settings_mut().detect_local
    }

    fn has_leftovers(&self) -> bool {
        Self::has_leftovers(self)
    }

    fn listen(&mut self) -> Result<Option<Commits>, Error> {
        Commits::listen().map(Some)
    }

    fn pass_over(&mut self, generation: u32) {
        Self::pass_over(self, generation);
    }

    fn is_current(&mut self) -> Result<bool, Error> {
        Self::is_current(self)
    }
}

impl Backend for apply::iptables::Applier {
    fn sync(&mut self, cluster: &Cluster, changes: &Changes, now: Instant) -> Result<Sent, Error> {
        self.sync_changes(cluster, changes, now).map(Sent::Iptables)
    }

    fn distrust(&mut self) {
        Self::distrust(self);
    }

    fn detect_local_mut(&mut self) -> &mut DetectLocal {
        &mut self.settings_mut().detect_local
    }
}

impl Backend for apply::ipvs::Applier {
    fn sync(&mut self, cluster: &Cluster, changes: &Changes, now: Instant) -> Result<Sent, Error> {
        self.sync_changes(cluster, changes, now).map(Sent::Ipvs)
    }

    fn distrust(&mut self) {
        Self::distrust(self);
    }

    fn detect_local_mut(&mut self) -> &mut DetectLocal {
        &mut self.settings_mut().detect_local
    }
}
