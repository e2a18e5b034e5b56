//! Services and slices that come and go, one at a time and the same each time.

use sluicegate_services::{Cluster, Service, ServiceName, Slice, SliceName};

use crate::manifests::Manifests;

/// The objects of a manifest, each there or not.
pub(crate) struct Toggles {
    services: Vec<(ServiceName, Service)>,
    slices: Vec<(SliceName, Slice)>,
    is_there: Vec<bool>,
    dice: u64,
}

impl Toggles {
    /// All of them are there. Other seeds give other changes.
    pub(crate) fn new(manifests: &str, seed: u64) -> Self {
        let Manifests { services, slices, .. } = Manifests::read(manifests);
        let is_there = vec![true; services.len() + slices.len()];
        Self { services, slices, is_there, dice: seed }
    }

    /// Returns a number below `below`.
    pub(crate) fn roll(&mut self, below: usize) -> usize {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.dice >> 33).expect("31 bits") % below
    }

    /// Takes one of them away from the cluster, or puts it back.
    pub(crate) fn toggle(&mut self, cluster: &mut Cluster) {
        let at = self.roll(self.is_there.len());
        self.is_there[at] = !self.is_there[at];
        self.set(at, cluster);
    }

    /// Makes a cluster that has all of them like this.
    pub(crate) fn apply(&self, cluster: &mut Cluster) {
        (0..self.is_there.len()).for_each(|at| self.set(at, cluster));
    }

    fn set(&self, at: usize, cluster: &mut Cluster) {
        let is_there = self.is_there[at];
        match at.checked_sub(self.services.len()) {
            None => {
                let (name, service) = &self.services[at];
                cluster.set_service(name, is_there.then(|| service.clone()));
            }
            Some(at) => {
                let (name, slice) = &self.slices[at];
                cluster.set_slice(name, is_there.then(|| slice.clone()));
            }
        }
    }
}

/// The number of failures to inject: `usual`, or what `SLUICEGATE_INJECTIONS` says.
pub(crate) fn injections(usual: u32) -> u32 {
    std::env::var("SLUICEGATE_INJECTIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
