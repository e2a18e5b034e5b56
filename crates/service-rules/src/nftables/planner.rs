//! The nftables planner: the wanted content of the tables `ip kube-proxy` and `ip6 kube-proxy`, and the
//! transactions that lead to it.
//!
//! [`Planner`] is a value: from the [`Cluster`] and the changes in it, it computes the [`Transaction`] for
//! the kernel. It stores its last plan, so that the cost of a change depends on the changed services only. It
//! sends nothing.
//!
//! Two [`Layout`]s treat packets in the same way:
//!
//! - `maps` has all state of services in elements. A connection's frontend (`address . protocol . port`, or
//!   `protocol . port` of the node) is looked up in the map `service-ips`, which has a code for it: the
//!   number of its endpoints. The verdict map `balancers` has the chain for the protocol and the code, such
//!   as `lb-tcp-5`, which all frontends with that protocol and number share. Its only rule draws a number and
//!   looks up the endpoint in the map `endpoints-tcp`, whose key is the frontend and the number. Sets of
//!   frontends replace what kube-proxy decides in chains of each service: masquerading, the short circuit of
//!   pods and the node for `externalTrafficPolicy: Local`, and `loadBalancerSourceRanges`. Frontends with
//!   session affinity share chains such as `sticky-lb-tcp-5-10800s`, whose rules keep for every client and
//!   frontend the id of an endpoint in the map `affinity-tcp`, and look up in `sticky-endpoints-tcp` what it
//!   stands for. A frontend with another [`Scheduler`] than `random` has chains such as `source-hash-lb-tcp-5`
//!   and `maglev-lb-tcp-251`, which differ in the number that they look up, `jhash ... mod 5`. The elements of
//!   the latter are the slots of its table, each with the endpoint that has it.
//! - `chains` has the rules of kube-proxy 1.36.
//!
//! Names and comments of tables, sets and chains are kube-proxy's, if it has such an object.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use ipnet::IpNet;
use sluicegate_nftables::{Flowtable, InterfaceName, Transaction};
use sluicegate_services::{
    Changes, Cluster, Family, LocalDetector, NodePortAddresses, NodePorts, Scheduler, ServiceName,
    ServicePort, Topology, categorize,
};

use super::family::{self, FamilyPlan};
use super::owner::Owners;
use super::port::PortPlan;
use super::schema::TableSettings;
use super::settings::Device;
use super::{Counting, Fastpath, Layout, OnLocalhost, Settings};
use crate::Error;

/// Plans the tables, and stores the last plan.
///
/// ```
/// use std::time::Instant;
/// use sluicegate_service_rules::nftables::{Planner, Settings};
/// use sluicegate_services::{Cluster, Node, Port, Service, ServiceName};
///
/// let mut cluster = Cluster::new(Node::default());
/// let web = ServiceName::new("default", "web")?;
/// cluster.set_service(&web, Service::new(["172.30.10.1".parse()?], [Port::tcp("", 80)?])?);
///
/// let mut planner = Planner::new(&Settings::default(), &cluster, None)?;
/// let script = planner.script().to_string();
/// assert!(script.contains("172.30.10.1 . tcp . 80 comment \"default/web\" : goto reject-chain"));
///
/// cluster.take_changes();
/// cluster.set_service(&web, None);
/// let changes = cluster.take_changes();
/// let transaction = planner.sync(&cluster, &changes, Instant::now());
/// assert!(transaction.to_string().contains("delete element ip kube-proxy cluster-ips { 172.30.10.1 }"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Planner {
    layout: Layout,
    scheduler: Scheduler,
    counting: Counting,
    fastpath: Option<Fastpath>,
    devices: Vec<Device>,
    masquerade_all: bool,
    mark: u32,
    detectors: [LocalDetector; 2],
    node_port_addresses: NodePortAddresses,
    on_localhost: OnLocalhost,
    local_addresses: Option<Vec<IpAddr>>,
    topology: Topology,
    families: Vec<FamilyPlan>,
}

impl Planner {
    /// Plans all services of `cluster`. `local_addresses` are the addresses of this node's interfaces, if
    /// they are known: those that [`Settings::node_port_addresses`] selects answer node ports.
    ///
    /// # Errors
    /// [`Error::Services`] when local traffic is detected by the node's pod CIDRs, and there are none.
    pub fn new(
        settings: &Settings,
        cluster: &Cluster,
        local_addresses: Option<Vec<IpAddr>>,
    ) -> Result<Self, Error> {
        let mut planner = Self {
            layout: settings.layout,
            scheduler: settings.scheduler,
            counting: settings.counting,
            fastpath: settings.fastpath.clone(),
            devices: Vec::new(),
            masquerade_all: settings.masquerade_all,
            mark: settings.masquerade_bit.mark(),
            detectors: settings.detect_local.detectors(cluster.node())?,
            node_port_addresses: settings.node_port_addresses.clone(),
            on_localhost: settings.on_localhost.clone(),
            local_addresses,
            topology: cluster.topology(),
            families: Vec::new(),
        };
        let services: Vec<_> = cluster.services().collect();
        let of_family = |family| services.iter().filter(|service| service.has(family)).count();
        let plan = |family| FamilyPlan::new(planner.table_settings(cluster, family), of_family(family));
        planner.families = settings.families.iter().copied().map(plan).collect();
        for service in &services {
            planner.plan_service(cluster, service.name, |family| service.ports(family), false);
        }
        Ok(planner)
    }

    /// Returns the transaction that creates everything in a kernel without our tables: tables, sets, chains,
    /// elements, and finally the rules that make them reachable. Its operations describe the wanted state.
    pub fn script(&mut self) -> Transaction {
        let mut transaction = Transaction::new();
        for family in &mut self.families {
            family.set_devices(&self.devices);
            family.script(&mut transaction);
        }
        transaction
    }

    /// Raises the limit of the maps of clients that a comparison with the kernel adds.
    pub(super) fn admit_clients(&self, transaction: &mut Transaction) {
        self.families.iter().for_each(|family| family.admit_added(transaction));
    }

    /// Returns the [`script`](Self::script) for a kernel that may have such tables already, of either layout:
    /// they are deleted in the same transaction.
    pub fn replacement(&mut self) -> Transaction {
        let mut transaction = Transaction::new();
        for family in &mut self.families {
            family.reset(&mut transaction);
            family.set_devices(&self.devices);
            family.script(&mut transaction);
        }
        transaction
    }

    /// Returns the transaction that deletes our tables, whether they exist or not.
    #[must_use]
    pub fn cleanup() -> Transaction {
        let mut transaction = Transaction::new();
        Family::BOTH.into_iter().for_each(|family| family::remove(family, &mut transaction));
        transaction
    }

    /// Returns the transaction that leads from the last plan to the current services of `cluster`; `changes`
    /// are the services that changed in between. Chains that are no longer used are flushed here, and deleted
    /// later by [`Planner::remove_stale`].
    ///
    /// If the transaction fails, the ruleset is unchanged: create a new planner, and compare its
    /// [`script`](Planner::script) with the kernel.
    pub fn sync(&mut self, cluster: &Cluster, changes: &Changes, now: Instant) -> Transaction {
        self.topology = cluster.topology();
        for name in changes.names() {
            self.plan_service(cluster, name, |family| cluster.ports(name, family), true);
        }
        let mut transaction = Transaction::new();
        for index in 0..self.families.len() {
            let settings = self.families.get(index).map(|plan| self.table_settings(cluster, plan.family()));
            if let (Some(settings), Some(plan)) = (settings, self.families.get_mut(index)) {
                plan.set_settings(settings);
                plan.commit(&mut transaction, now);
            }
        }
        transaction
    }

    /// Sets the addresses of this node's interfaces, which answer node ports from the next
    /// [`sync`](Planner::sync) on.
    pub fn set_local_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.local_addresses = Some(addresses);
    }

    /// Sets the devices of this node, by their numbers. Those that [`Settings::fastpath`] chooses are in the
    /// flowtable from the next [`sync`](Planner::sync) or [`script`](Planner::script) on. Returns `true` if one
    /// of these has gone, which the kernel may have removed from the flowtable by itself.
    pub fn set_links(&mut self, links: &BTreeMap<u32, InterfaceName>) -> bool {
        let devices = self.fastpath.as_ref().map(|fastpath| fastpath.choose(links)).unwrap_or_default();
        let before = std::mem::replace(&mut self.devices, devices);
        before.iter().any(|device| !self.devices.contains(device))
    }

    /// Returns the flowtables that are wanted, with their devices.
    pub(super) fn flowtables(&self) -> impl Iterator<Item = Flowtable> {
        let names = || self.devices.iter().map(|(_, name)| name.clone());
        self.families.iter().filter(|_| self.fastpath.is_some()).map(move |plan| plan.flowtable(names()))
    }

    /// Returns `true` if these are the devices that were [set](Self::set_links), as far as they are chosen.
    pub(super) fn has_links(&self, links: &BTreeMap<u32, InterfaceName>) -> bool {
        self.fastpath.as_ref().is_none_or(|fastpath| fastpath.choose(links) == self.devices)
    }

    /// Returns the transaction that deletes chains which have been unused for over a second.
    ///
    /// Apply it separately, before the next sync: kernels before 6.2 count a reference for some time after
    /// its element was deleted, and their refusal must not affect other changes. If it fails, call
    /// [`Planner::keep_stale`].
    pub fn remove_stale(&mut self, now: Instant) -> Transaction {
        let mut transaction = Transaction::new();
        self.families.iter_mut().for_each(|family| family.remove_stale(&mut transaction, now));
        transaction
    }

    /// Records that the last [`remove_stale`](Planner::remove_stale) failed: its chains are deleted later.
    pub fn keep_stale(&mut self, now: Instant) {
        self.families.iter_mut().for_each(|family| family.keep_stale(now));
    }

    /// Returns `true` if chains wait for [`Planner::remove_stale`].
    #[must_use]
    pub fn has_stale(&self) -> bool {
        self.families.iter().any(FamilyPlan::has_stale)
    }

    /// Returns the services that the planned objects belong to, for errors. It iterates over the whole plan.
    #[must_use]
    pub fn owners(&self) -> Owners {
        let mut owners = Owners::default();
        self.families.iter().for_each(|family| family.owners(&mut owners));
        owners
    }

    /// Sets the size that a set or map has in the kernel, which the plan then keeps.
    pub fn adopt_size(&mut self, family: Family, set: &str, size: u32) {
        self.families
            .iter_mut()
            .filter(|plan| plan.family() == family)
            .for_each(|plan| plan.adopt_size(set, size));
    }

    fn plan_service<'a>(
        &mut self,
        cluster: &Cluster,
        name: &ServiceName,
        ports: impl Fn(Family) -> Vec<ServicePort<'a>>,
        incremental: bool,
    ) {
        for plan in &mut self.families {
            let family = plan.family();
            let node_ip = cluster.node().primary(family);
            let ports = ports(family);
            let (layout, scheduler) = (self.layout, self.scheduler);
            let rejected = self.on_localhost.rejected(family);
            let plan_port = |port| {
                PortPlan::new(layout, scheduler, port, &categorize(port, &self.topology), node_ip)
                    .reject_on_localhost(&rejected)
            };
            plan.set_service(name, ports.iter().map(plan_port), incremental);
        }
    }

    fn table_settings(&self, cluster: &Cluster, family: Family) -> TableSettings {
        let local = self.local_addresses.as_deref();
        let [v4, v6] = &self.detectors;
        let service_cidrs: Vec<IpNet> = cluster.service_cidrs(family).collect();
        TableSettings {
            family,
            layout: self.layout,
            masquerade_all: self.masquerade_all,
            mark: self.mark,
            detector: if family == Family::Ipv4 { v4.clone() } else { v6.clone() },
            node_ports: self.node_port_addresses.resolve(family, cluster.node(), local).without_loopback(),
            rejected_on_localhost: self.on_localhost.rejected(family),
            service_cidrs,
            counting: self.counting,
            fastpath: self.fastpath.as_ref().map(|fastpath| fastpath.after),
            devices: self.devices.clone(),
        }
    }
}

/// Returns the addresses of the set `nodeport-ips`; `None` if the table has no such set.
pub(super) fn node_port_ips(ports: &NodePorts) -> Option<impl Iterator<Item = IpAddr>> {
    match ports {
        NodePorts::All => None,
        NodePorts::On(addresses) => Some(addresses.iter().copied()),
    }
}
