//! The IPVS planner: the wanted ipsets, virtual servers, addresses and iptables rules of one family, and the
//! changes that lead to them.
//!
//! [`Planner`] is a value: from the [`Cluster`] and the changes in it, it computes a [`Change`]. It does not
//! access the kernel. Each family has a planner of its own.
//!
//! Names, types, rules and their order are those of kube-proxy 1.36 (deprecated there since 1.35). A service
//! port has
//!
//! - entries in some of the seventeen [`Set`]s, which a fixed number of iptables rules match;
//! - a virtual server for its cluster IP, each external and load-balancer IP, and its node port on each of
//!   the node's addresses;
//! - its addresses on the device [`DEVICE`](super::DEVICE), so that packets to them are local and reach IPVS,
//!   unless another device has the address.
//!
//! # What a change sends
//!
//! Only entries, virtual servers, destinations and addresses of the changed services. Rules are sent if a set
//! becomes empty or gets its first entry, and if a load balancer's address that the node may not use is added
//! or removed.
//!
//! # Traffic policies
//!
//! A virtual server does not distinguish sources. With policy Local its destinations are the endpoints of
//! this node, or, if there are none, all endpoints, which serves pods of this node; packets from outside then
//! get no answer ([`Planner::without_local_endpoints`] counts such services).

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use sluicegate_ipset::{Element, Entry};
use sluicegate_iptables_save::{Item, Save, State, diff};
use sluicegate_ipvs::{self as ipvs, Command, Endpoint, ServiceConfig, ServiceId, Table};
use sluicegate_services::{
    Changes, Cluster, Family, NodePorts, ServiceName, ServicePort, Topology, categorize,
};

use super::port::{Context, PortPlan, Server};
use super::rules::{Rules, Style};
use super::wanted::{self, PreviousState, Wanted};
use super::{Change, Set, Settings, set};
use crate::Error;
use crate::iptables::tool_family;

/// Plans one family, and stores the last plan.
///
/// ```
/// use sluicegate_service_rules::ipvs::{Planner, Settings};
/// use sluicegate_services::{Cluster, Family, Node, Port, Service, ServiceName};
///
/// let mut cluster = Cluster::new(Node::default());
/// let web = ServiceName::new("default", "web")?;
/// cluster.set_service(&web, Service::new(["172.30.10.1".parse()?], [Port::tcp("", 80)?])?);
/// cluster.take_changes();
///
/// let mut planner = Planner::new(Family::Ipv4, &Settings::default(), &cluster, None)?;
/// assert!(planner.whole().script(Family::Ipv4).to_string().contains("\n-A -t 172.30.10.1:80 -s rr\n"));
///
/// cluster.set_service(&web, None);
/// let changes = cluster.take_changes();
/// let change = planner.sync(&cluster, &changes)?;
/// assert!(change.script(Family::Ipv4).to_string().contains("# ipvsadm -R\n-D -t 172.30.10.1:80\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Planner {
    settings: Settings,
    style: Style,
    context: Context,
    topology: Topology,
    local_addresses: Option<Vec<IpAddr>>,
    services: HashMap<ServiceName, Vec<PortPlan>>,
    wanted: Wanted,
    rules: Rules,
}

impl Planner {
    /// Plans all services of `cluster` in `family`. `local_addresses` are the addresses of this node's
    /// devices, except for [`DEVICE`](super::DEVICE), if they are known; otherwise those of the Node object
    /// are used.
    ///
    /// # Errors
    /// [`Error::Services`] when local traffic is detected by the node's pod CIDRs, and there are none.
    pub fn new(
        family: Family,
        settings: &Settings,
        cluster: &Cluster,
        local_addresses: Option<Vec<IpAddr>>,
    ) -> Result<Self, Error> {
        let mark = settings.masquerade_bit.mark();
        let [v4, v6] = settings.detect_local.detectors(cluster.node())?;
        let style = Style {
            family,
            mark,
            masquerade_all: settings.masquerade_all,
            random_fully: settings.random_fully,
            detector: if family == Family::Ipv4 { v4 } else { v6 },
        };
        let mut planner = Self {
            settings: settings.clone(),
            context: context(settings, family, cluster, local_addresses.as_deref()),
            topology: cluster.topology(),
            local_addresses,
            services: HashMap::with_capacity(cluster.service_count()),
            wanted: Wanted::default(),
            rules: Rules::new(&style, &|_| true, std::iter::empty()),
            style,
        };
        for service in cluster.services() {
            let plans = planner.plan(&service.ports(family));
            planner.set(service.name, plans);
        }
        planner.rules = planner.plan_rules();
        Ok(planner)
    }

    /// Returns the family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.style.family
    }

    /// Returns the plan as a change of a kernel without our objects.
    #[must_use]
    pub fn whole(&self) -> Change {
        let mut change = Change {
            create: Set::ALL.map(|set| set.spec(self.family())).into(),
            rules: self.input(),
            bind: self.addresses().collect(),
            ..Change::default()
        };
        let entries = Set::ALL.map(|set| (set, self.entries(set)));
        change.add = entries.into_iter().filter(|(_, entries)| !entries.is_empty()).collect();
        change.set_commands(self.commands(&Table::new()));
        change
    }

    /// Returns the entries that one set should have.
    #[must_use]
    pub fn entries(&self, set: Set) -> Vec<Entry> {
        self.wanted.elements(set).map(|element| set.entry(self.family(), *element)).collect()
    }

    /// Returns the number of entries that one set should have.
    #[must_use]
    pub fn size(&self, set: Set) -> usize {
        self.wanted.size(set)
    }

    /// Returns the virtual servers that IPVS should have.
    #[must_use]
    pub fn table(&self) -> Table {
        self.wanted.table()
    }

    /// Returns the commands that lead from the listed virtual servers to those that IPVS should have.
    pub(super) fn commands(&self, listed: &Table) -> Vec<Command> {
        self.wanted.commands(listed)
    }

    /// Returns whether IPVS should have this virtual server.
    #[must_use]
    pub fn wants(&self, id: &ServiceId) -> bool {
        self.wanted.server(id).is_some()
    }

    /// Returns the configuration that a virtual server should have, if IPVS should have it.
    pub(super) fn server(&self, id: &ServiceId) -> Option<&ServiceConfig> {
        self.wanted.server(id).map(|server| &server.config)
    }

    /// Returns the number of virtual servers that IPVS should have.
    pub(super) fn server_count(&self) -> usize {
        self.wanted.server_count()
    }

    /// Iterates over the virtual servers that IPVS should have, each once, beginning with those after this one.
    pub(super) fn servers_after(
        &self,
        id: Option<&ServiceId>,
    ) -> impl Iterator<Item = (&ServiceId, &Server)> {
        self.wanted.servers_after(id)
    }

    /// Returns whether a virtual server should have this destination.
    pub(super) fn wants_destination(&self, id: &ServiceId, destination: &Endpoint) -> bool {
        self.wanted.server(id).is_some_and(|server| server.endpoints.contains(destination))
    }

    /// Returns the service that a virtual server belongs to; of several that claim it, the one that
    /// determines its configuration.
    #[must_use]
    pub fn owner(&self, id: &ServiceId) -> Option<&ServiceName> {
        self.wanted.owner(id)
    }

    /// Returns the addresses that [`DEVICE`](super::DEVICE) should have.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.wanted.elements(Set::IpvsIps).filter_map(address)
    }

    /// Returns whether [`DEVICE`](super::DEVICE) should have this address.
    #[must_use]
    pub fn wants_address(&self, ip: IpAddr) -> bool {
        self.wanted.has(&(Set::IpvsIps, set::ip(ip)))
    }

    /// Returns all rules as input of `iptables-restore --noflush`, which creates or flushes the chains in it
    /// and keeps others.
    #[must_use]
    pub fn input(&self) -> Save<'static> {
        self.rules.input()
    }

    /// Returns the numbers of service ports that have endpoints but none on this node, and whose internal,
    /// and whose external, traffic policy is Local.
    #[must_use]
    pub fn without_local_endpoints(&self) -> (usize, usize) {
        let count = |which: usize| {
            let lack = |plan: &&PortPlan| plan.no_local.get(which) == Some(&true);
            self.services.values().flatten().filter(lack).count()
        };
        (count(0), count(1))
    }

    /// Sets the addresses of this node's devices, except for [`DEVICE`](super::DEVICE), for the next
    /// [`sync`](Self::sync).
    pub fn set_local_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.local_addresses = Some(addresses);
    }

    /// Returns the change that leads from the last plan to the current services of `cluster`; `changes` are
    /// the services that changed in between.
    ///
    /// If this fails, or if the change cannot be applied, create a new planner, and compare it with the
    /// kernel.
    ///
    /// # Errors
    /// [`Error::Rules`] when rules cannot be compared.
    pub fn sync(&mut self, cluster: &Cluster, changes: &Changes) -> Result<Change, Error> {
        self.topology = cluster.topology();
        let local = self.local_addresses.as_deref();
        let context = context(&self.settings, self.family(), cluster, local);
        let mut names: Vec<_> = changes.names().cloned().collect();
        if context != self.context {
            self.context = context;
            names.extend(self.services.keys().cloned());
            names.sort_unstable();
            names.dedup();
        }
        let touched = self.replan(cluster, &names);
        let mut change = self.change(touched);
        let rules = self.plan_rules();
        if rules != self.rules {
            let before = std::mem::replace(&mut self.rules, rules);
            let difference = difference(self.family(), &before.input(), &self.rules.input());
            change.rules = difference
                .map_err(|source| Error::Rules { doing: "comparing plans", source: Box::new(source) })?;
        }
        Ok(change)
    }

    /// Plans these services again. Returns the objects that this touched.
    fn replan(&mut self, cluster: &Cluster, names: &[ServiceName]) -> PreviousState {
        let mut touched = PreviousState::default();
        let plan = |name| self.plan(&cluster.ports(name, self.family()));
        let plans: Vec<_> = names.iter().map(plan).collect();
        let old: Vec<_> = names.iter().filter_map(|name| self.services.remove(name)).flatten().collect();
        old.iter().chain(plans.iter().flatten()).for_each(|plan| self.wanted.touch(plan, &mut touched));
        old.iter().for_each(|plan| self.wanted.remove(plan));
        names.iter().zip(plans).for_each(|(name, plans)| self.set(name, plans));
        touched
    }

    fn plan(&self, ports: &[ServicePort<'_>]) -> Vec<PortPlan> {
        let plan = |port| PortPlan::new(&self.context, port, &categorize(port, &self.topology));
        ports.iter().map(plan).collect()
    }

    /// Sets the plans of a service that has none.
    fn set(&mut self, name: &ServiceName, plans: Vec<PortPlan>) {
        plans.iter().for_each(|plan| self.wanted.add(plan));
        if !plans.is_empty() {
            self.services.insert(name.clone(), plans);
        }
    }

    fn change(&self, touched: PreviousState) -> Change {
        let (mut add, mut delete) = (BTreeMap::new(), BTreeMap::new());
        let mut change = Change::default();
        for ((set, element), before) in touched.entries {
            let now = self.wanted.has(&(set, element));
            let (entries, addresses) = match (before, now) {
                (false, true) => (&mut add, &mut change.bind),
                (true, false) => (&mut delete, &mut change.unbind),
                _ => continue,
            };
            let list: &mut Vec<_> = entries.entry(set).or_default();
            list.push(set.entry(self.family(), element));
            if set == Set::IpvsIps {
                addresses.extend(address(&element));
            }
        }
        (change.add, change.delete) = (add.into_iter().collect(), delete.into_iter().collect());
        let (mut before, mut now) = (Table::new(), Table::new());
        for (id, server) in touched.servers {
            if let Some(server) = &server {
                wanted::put(&mut before, id, server);
            }
            if let Some(server) = self.wanted.server(&id) {
                wanted::put(&mut now, id, server);
            }
        }
        change.set_commands(ipvs::diff(&now, &before));
        change
    }

    fn plan_rules(&self) -> Rules {
        Rules::new(&self.style, &|set| self.wanted.size(set) == 0, self.wanted.refused())
    }
}

/// Returns the properties of the node and settings that apply to every service port.
fn context(
    settings: &Settings,
    family: Family,
    cluster: &Cluster,
    local_addresses: Option<&[IpAddr]>,
) -> Context {
    let node = cluster.node();
    let of_family = |ip: &&IpAddr| Family::of(**ip) == family;
    let local: Vec<_> =
        local_addresses.unwrap_or(&node.addresses).iter().filter(of_family).copied().collect();
    let mut node_ips = match settings.node_port_addresses.resolve(family, node, local_addresses) {
        NodePorts::All => local.clone(),
        NodePorts::On(addresses) => addresses.into_iter().collect(),
    };
    node_ips.retain(|ip| !ip.is_loopback() && !is_link_local(ip));
    node_ips.sort_unstable();
    node_ips.dedup();
    Context { config: settings.server(), node_ips, local, node_ip: node.primary(family) }
}

fn is_link_local(ip: &IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// Returns the address of an element of [`Set::IpvsIps`].
fn address(element: &Element) -> Option<IpAddr> {
    match element {
        Element::Ip(addresses) => Some(addresses.first()),
        _ => None,
    }
}

/// Returns the smallest input that changes the rules of our chains into others.
fn difference(
    family: Family,
    before: &Save<'_>,
    now: &Save<'_>,
) -> Result<Save<'static>, sluicegate_iptables_save::Error> {
    let family = tool_family(family);
    let changes = diff(&State::of_family(before, family)?, &State::of_family(now, family)?, |_, _| true)?;
    let mut input = changes.into_save();
    input.items.retain(|item| !matches!(item, Item::Table(table) if table.entries.is_empty()));
    Ok(input)
}
