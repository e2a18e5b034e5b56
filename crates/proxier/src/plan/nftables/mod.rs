//! The nftables planner: what the tables `ip kube-proxy` and `ip6 kube-proxy` should hold, and how to get there.
//!
//! [`Planner`] is a value: give it the [`Cluster`] and what changed in it, and it gives the [`Transaction`] that brings the
//! kernel along. It remembers what it planned, so a change costs what the changed services need, not what all of them do.
//! Nobody sends anything here.
//!
//! Two [`Layout`]s do the same to packets:
//!
//! - `maps` keeps all state of services in elements. A connection's frontend (`address . protocol . port`, or
//!   `protocol . port` of the node) is looked up in a verdict map that sends it to a chain shared by all frontends with
//!   the protocol and as many endpoints, `lb-tcp-5`; its one rule draws a number and looks up the endpoint in the map
//!   `endpoints-tcp`, whose key is the frontend and the number. What kube-proxy decides in chains of each service (masquerading, the short cut of pods and the node
//!   past `externalTrafficPolicy: Local`, `loadBalancerSourceRanges`) are sets of frontends. Only a service with
//!   session affinity has chains of its own, because a client's endpoint must be remembered by the endpoint.
//! - `chains` is kube-proxy 1.36's, rule for rule.
//!
//! Names of tables, sets, chains and their comments are kube-proxy's where it has the thing.

mod base;
mod chain;
mod element;
mod family;
mod owner;
mod port;
mod schema;
mod table;

#[cfg(test)]
mod content_tests;

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Instant;

use ipnet::IpNet;
use sluicegate_nftables::Transaction;

use self::family::FamilyPlan;
use self::port::PortPlan;
use self::schema::TableSettings;
use crate::Error;
use crate::model::{
    Changes, Cluster, DetectLocal, Family, LocalDetector, NodePortAddresses, NodePorts, ServiceName,
    ServicePort, Topology, categorize,
};

pub use self::owner::Owners;
pub use self::schema::TABLE;

/// How the table is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// All state of services is in elements; the number of rules and chains does not depend on the number of services.
    #[default]
    Maps,
    /// kube-proxy 1.36's: a chain for every service port.
    Chains,
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "maps" => Ok(Self::Maps),
            "chains" => Ok(Self::Chains),
            _ => Err("expected maps or chains".to_owned()),
        }
    }
}

/// What the operator decides.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How the table is built.
    pub layout: Layout,
    /// Which families have a table.
    pub families: Vec<Family>,
    /// Masquerade all traffic to cluster IPs.
    pub masquerade_all: bool,
    /// The bit of the packet mark that asks for masquerading, 0 to 31.
    pub masquerade_bit: u8,
    /// What tells pods from the rest.
    pub detect_local: DetectLocal,
    /// Where node ports are answered.
    pub node_port_addresses: NodePortAddresses,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            layout: Layout::default(),
            families: Family::BOTH.into(),
            masquerade_all: false,
            masquerade_bit: 14,
            detect_local: DetectLocal::default(),
            node_port_addresses: NodePortAddresses::default(),
        }
    }
}

/// Plans the tables, and remembers what it planned.
///
/// ```
/// use std::time::Instant;
/// use sluicegate_proxier::model::{Found, Node};
/// use sluicegate_proxier::plan::nftables::{Planner, Settings};
/// use sluicegate_proxier::source;
///
/// let mut found = Found::default();
/// source::read_str("web.yaml", "
/// apiVersion: v1
/// kind: Service
/// metadata: {name: web}
/// spec: {clusterIP: 172.30.10.1, ports: [{port: 80}]}
/// ", |manifest| found.add(manifest))?;
/// let (mut cluster, problems) = found.into_cluster(Node::default());
/// assert!(problems.is_empty());
///
/// let mut planner = Planner::new(&Settings::default(), &cluster, None)?;
/// let script = planner.script().to_string();
/// assert!(script.contains("172.30.10.1 . tcp . 80 comment \"default/web\" : goto reject-chain"));
///
/// cluster.take_changes();
/// let gone = cluster.service_names().next().unwrap().clone();
/// cluster.set_service(&gone, None);
/// let changes = cluster.take_changes();
/// let transaction = planner.sync(&cluster, &changes, Instant::now());
/// assert!(transaction.to_string().contains("delete element ip kube-proxy cluster-ips { 172.30.10.1 }"));
/// # Ok::<(), sluicegate_proxier::Error>(())
/// ```
#[derive(Debug)]
pub struct Planner {
    layout: Layout,
    masquerade_all: bool,
    mark: u32,
    detectors: [LocalDetector; 2],
    node_port_addresses: NodePortAddresses,
    local_addresses: Option<Vec<IpAddr>>,
    topology: Topology,
    families: Vec<FamilyPlan>,
}

impl Planner {
    /// Plans everything that `cluster` wants. `local_addresses` are those of this node's interfaces where they are known: node
    /// ports are answered on those of them that [`Settings::node_port_addresses`] names.
    ///
    /// # Errors
    /// [`Error::Flag`] when a local detector lacks its value or the mark's bit is none.
    pub fn new(
        settings: &Settings,
        cluster: &Cluster,
        local_addresses: Option<Vec<IpAddr>>,
    ) -> Result<Self, Error> {
        let Some(mark) = 1u32.checked_shl(settings.masquerade_bit.into()) else {
            let reason = format!("{} is not a bit of a packet mark (0 to 31)", settings.masquerade_bit);
            return Err(Error::Flag { flag: "--iptables-masquerade-bit".to_owned(), reason });
        };
        let mut planner = Self {
            layout: settings.layout,
            masquerade_all: settings.masquerade_all,
            mark,
            detectors: settings.detect_local.detectors()?,
            node_port_addresses: settings.node_port_addresses.clone(),
            local_addresses,
            topology: cluster.topology(),
            families: Vec::new(),
        };
        let of_family = |family| cluster.services().filter(|service| service.has(family)).count();
        let plan = |family| FamilyPlan::new(planner.table_settings(cluster, family), of_family(family));
        planner.families = settings.families.iter().copied().map(plan).collect();
        for service in cluster.services() {
            planner.plan_service(cluster, service.name, |family| service.ports(family), false);
        }
        Ok(planner)
    }

    /// The transaction that makes everything in a kernel that has none of it: table, sets, chains, then data, then
    /// what makes them reachable. Its operations are also the answer to what the kernel should hold.
    pub fn script(&mut self) -> Transaction {
        let mut transaction = Transaction::new();
        self.families.iter_mut().for_each(|family| family.script(&mut transaction));
        transaction
    }

    /// The same for a kernel that has something of that name already, of either layout: that goes in the same transaction.
    pub fn replacement(&mut self) -> Transaction {
        let mut transaction = Transaction::new();
        for family in &mut self.families {
            family.reset(&mut transaction);
            family.script(&mut transaction);
        }
        transaction
    }

    /// The transaction that removes everything, whether it is there or not.
    #[must_use]
    pub fn cleanup() -> Transaction {
        let mut transaction = Transaction::new();
        Family::BOTH.into_iter().for_each(|family| family::remove(family, &mut transaction));
        transaction
    }

    /// The transaction that brings the kernel from the last plan to what `cluster` wants now, `changes` being what changed in
    /// between. Chains that nobody wants any more are emptied; they go later, see [`Planner::remove_stale`].
    ///
    /// When the transaction fails, the kernel holds what it held: make a new planner, and compare its
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

    /// Tells the addresses of this node's interfaces; the next [`sync`](Planner::sync) answers node ports there.
    pub fn set_local_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.local_addresses = Some(addresses);
    }

    /// The transaction that deletes chains which have been unused for over a second. To be applied on its own, before
    /// the next sync: kernels before 6.2 take a while to notice that an element no longer refers to a chain, and must not fail
    /// anything else meanwhile. When it fails, tell so with [`Planner::keep_stale`].
    pub fn remove_stale(&mut self, now: Instant) -> Transaction {
        let mut transaction = Transaction::new();
        self.families.iter_mut().for_each(|family| family.remove_stale(&mut transaction, now));
        transaction
    }

    /// Notes that the last [`remove_stale`](Planner::remove_stale) failed: its chains wait for another turn.
    pub fn keep_stale(&mut self, now: Instant) {
        self.families.iter_mut().for_each(|family| family.keep_stale(now));
    }

    /// There are chains waiting for [`Planner::remove_stale`].
    #[must_use]
    pub fn has_stale(&self) -> bool {
        self.families.iter().any(FamilyPlan::has_stale)
    }

    /// Whose everything is that is planned. It goes through all of it: for the account of an error.
    #[must_use]
    pub fn owners(&self) -> Owners {
        let mut owners = Owners::default();
        self.families.iter().for_each(|family| family.owners(&mut owners));
        owners
    }

    /// Tells the size that a set or map has in the kernel, so that the plan reckons with that instead of its own choice.
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
            let plan_port =
                |port| PortPlan::new(self.layout, port, &categorize(port, &self.topology), node_ip);
            plan.set_service(name, ports.iter().map(plan_port).collect(), incremental);
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
            detector: if family == Family::V4 { v4.clone() } else { v6.clone() },
            node_ports: self.node_port_addresses.resolve(family, cluster.node(), local),
            service_cidrs,
        }
    }
}

/// The addresses of the set `nodeport-ips`; `None` when there is no such set.
fn node_port_ips(ports: &NodePorts) -> Option<impl Iterator<Item = IpAddr>> {
    match ports {
        NodePorts::All => None,
        NodePorts::On(addresses) => Some(addresses.iter().copied()),
    }
}
