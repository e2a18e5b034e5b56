//! The IPVS planner: which ipsets, virtual servers, addresses and iptables rules one family should have, and how to get there.
//!
//! [`Planner`] is a value: give it the [`Cluster`] and what changed in it, and it gives a [`Change`]. Nobody talks to a
//! kernel here. One planner is for one family.
//!
//! Names, types, rules and their order are those of kube-proxy 1.36 (deprecated there since 1.35). A service port has
//!
//! - entries in some of the seventeen [`Set`]s, which a handful of iptables rules match, whatever the number of services;
//! - a virtual server for its cluster IP, each external and load-balancer IP, and its node port on each of the node's addresses;
//! - its addresses on the device [`DEVICE`], where IPVS finds packets to them, unless another device has the address.
//!
//! # What a change sends
//!
//! Entries, servers, destinations and addresses of the services that changed alone. Rules are sent when a set becomes empty or is
//! so no longer, and when a load balancer's address that the node may not use comes or goes.
//!
//! # Traffic policies
//!
//! A virtual server knows nothing of where a packet comes from. With policy Local its destinations are the endpoints of this
//! node; when there are none, those of the cluster, which serves pods of this node; what comes from outside then gets no
//! answer ([`Planner::without_local_endpoints`] counts such services).

mod change;
mod port;
mod rules;
mod set;
mod wanted;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use sluicegate_ipset::{Element, Entry};
use sluicegate_iptables_save::{Item, Save, State, diff};
use sluicegate_ipvs::{Scheduler, SchedulerFlags, ServiceConfig, ServiceId, Table, Timeouts, plan};

use self::port::{Context, PortPlan};
use self::rules::{Rules, Style};
use self::wanted::{Touched, Wanted};
use super::iptables::tool_family;
use crate::Error;
use crate::model::{
    Changes, Cluster, DetectLocal, Family, NodePortAddresses, NodePorts, ServiceName, Topology, categorize,
};

pub(crate) use self::change::prefix;
pub use self::change::{Change, Script};
pub use self::rules::{is_ours, is_ours_alone, jumps};
pub use self::set::Set;

/// The dummy device that has the addresses of services. It is never set up: a local address needs no link.
pub const DEVICE: &str = "kube-ipvs0";

/// What the operator decides.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Masquerade all traffic to cluster IPs.
    pub masquerade_all: bool,
    /// The bit of the packet mark that asks for masquerading, 0 to 31.
    pub masquerade_bit: u8,
    /// What tells pods from the rest.
    pub detect_local: DetectLocal,
    /// Where node ports are answered; kube-proxy's default for this mode is everywhere.
    pub node_port_addresses: NodePortAddresses,
    /// How a virtual server chooses a destination. `mh` hashes the client's port as well.
    pub scheduler: Scheduler,
    /// Virtual servers on addresses in these networks are somebody else's: they are not removed.
    pub exclude_cidrs: Vec<IpNet>,
    /// Answer ARP only for addresses of the device that is asked.
    pub strict_arp: bool,
    /// Timeouts of connections; 0 leaves one as it is.
    pub timeouts: Timeouts,
    /// Masquerade with random source ports.
    pub random_fully: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            masquerade_all: false,
            masquerade_bit: 14,
            detect_local: DetectLocal::default(),
            node_port_addresses: NodePortAddresses::Within(Vec::new()),
            scheduler: Scheduler::RR,
            exclude_cidrs: Vec::new(),
            strict_arp: false,
            timeouts: Timeouts::default(),
            random_fully: false,
        }
    }
}

impl Settings {
    /// Whether a virtual server that nobody wants is to be removed: one of an address outside of
    /// [`Settings::exclude_cidrs`]. Those of firewall marks are never ours.
    #[must_use]
    pub fn is_ours(&self, id: &ServiceId) -> bool {
        match id {
            ServiceId::Virtual { endpoint, .. } => {
                !self.exclude_cidrs.iter().any(|net| net.contains(&endpoint.address))
            }
            ServiceId::Mark { .. } => false,
        }
    }

    fn server(&self) -> ServiceConfig {
        let mut config = ServiceConfig::new(self.scheduler);
        if self.scheduler == Scheduler::MH {
            config.scheduler_flags = SchedulerFlags::PORT;
        }
        config
    }
}

/// Plans one family, and remembers what it planned.
///
/// ```
/// use sluicegate_proxier::model::{Family, Found, Node};
/// use sluicegate_proxier::plan::ipvs::{Planner, Settings};
/// use sluicegate_proxier::source;
///
/// let mut found = Found::default();
/// source::read_str("web.yaml", "
/// apiVersion: v1
/// kind: Service
/// metadata: {name: web}
/// spec: {clusterIP: 172.30.10.1, ports: [{port: 80}]}
/// ", |manifest| found.add(manifest))?;
/// let (mut cluster, _) = found.into_cluster(Node::default());
/// cluster.take_changes();
///
/// let mut planner = Planner::new(Family::V4, &Settings::default(), &cluster, None)?;
/// assert!(planner.whole().script(Family::V4).to_string().contains("\n-A -t 172.30.10.1:80 -s rr\n"));
///
/// let gone = cluster.service_names().next().unwrap().clone();
/// cluster.set_service(&gone, None);
/// let changes = cluster.take_changes();
/// let change = planner.sync(&cluster, &changes)?;
/// assert!(change.script(Family::V4).to_string().contains("# ipvsadm -R\n-D -t 172.30.10.1:80\n"));
/// # Ok::<(), sluicegate_proxier::Error>(())
/// ```
#[derive(Debug)]
pub struct Planner {
    settings: Settings,
    style: Style,
    context: Context,
    topology: Topology,
    local_addresses: Option<Vec<IpAddr>>,
    services: BTreeMap<ServiceName, Vec<PortPlan>>,
    wanted: Wanted,
    rules: Rules,
}

impl Planner {
    /// Plans everything that `cluster` wants in `family`. `local_addresses` are those of this node's devices, [`DEVICE`]
    /// excepted, where they are known; otherwise those of the Node object stand for them.
    ///
    /// # Errors
    /// [`Error::Flag`] when a local detector lacks its value, the mark's bit is none, or a timeout is too long.
    pub fn new(
        family: Family,
        settings: &Settings,
        cluster: &Cluster,
        local_addresses: Option<Vec<IpAddr>>,
    ) -> Result<Self, Error> {
        let flag = |flag: &str, reason| Error::Flag { flag: flag.to_owned(), reason };
        let Some(mark) = 1u32.checked_shl(settings.masquerade_bit.into()) else {
            let reason = format!("{} is not a bit of a packet mark (0 to 31)", settings.masquerade_bit);
            return Err(flag("--iptables-masquerade-bit", reason));
        };
        let [v4, v6] = settings.detect_local.detectors()?;
        let style = Style {
            family,
            mark,
            masquerade_all: settings.masquerade_all,
            random_fully: settings.random_fully,
            detector: if family == Family::V4 { v4 } else { v6 },
        };
        settings.timeouts.check().map_err(|error| flag("--ipvs-*-timeout", error.to_string()))?;
        let mut planner = Self {
            settings: settings.clone(),
            context: context(settings, family, cluster, local_addresses.as_deref()),
            topology: cluster.topology(),
            local_addresses,
            services: BTreeMap::new(),
            wanted: Wanted::default(),
            rules: Rules::new(&style, &|_| true, std::iter::empty()),
            style,
        };
        let names: Vec<_> = cluster.service_names().cloned().collect();
        planner.replan(cluster, &names);
        planner.rules = planner.plan_rules();
        Ok(planner)
    }

    /// IPv4 or IPv6.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.style.family
    }

    /// Everything, as a change of a kernel that has nothing.
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
        change.set_commands(plan(&self.table(), &Table::new()));
        change
    }

    /// What one set should have.
    #[must_use]
    pub fn entries(&self, set: Set) -> Vec<Entry> {
        self.wanted.elements(set).map(|element| set.entry(self.family(), *element)).collect()
    }

    /// How many entries one set should have.
    #[must_use]
    pub fn size(&self, set: Set) -> usize {
        self.wanted.size(set)
    }

    /// What IPVS should have.
    #[must_use]
    pub fn table(&self) -> Table {
        self.wanted.table()
    }

    /// Whether IPVS should have this virtual server.
    #[must_use]
    pub fn wants(&self, id: &ServiceId) -> bool {
        self.wanted.server(id).is_some()
    }

    /// Whose this virtual server is: of several that claim it, the service that it is made for.
    #[must_use]
    pub fn owner(&self, id: &ServiceId) -> Option<&ServiceName> {
        self.wanted.owner(id)
    }

    /// What [`DEVICE`] should have.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.wanted.elements(Set::IpvsIps).filter_map(address)
    }

    /// Whether [`DEVICE`] should have this address.
    #[must_use]
    pub fn wants_address(&self, ip: IpAddr) -> bool {
        self.wanted.has(&(Set::IpvsIps, set::ip(ip)))
    }

    /// All rules, as input of `iptables-restore --noflush`: chains that are named in it are made or emptied, others stay.
    #[must_use]
    pub fn input(&self) -> Save<'static> {
        self.rules.input()
    }

    /// How many service ports have endpoints but none on this node, although their internal traffic policy, their external
    /// one asks for some.
    #[must_use]
    pub fn without_local_endpoints(&self) -> (usize, usize) {
        let count = |which: usize| {
            let lack = |plan: &&PortPlan| plan.no_local.get(which) == Some(&true);
            self.services.values().flatten().filter(lack).count()
        };
        (count(0), count(1))
    }

    /// Tells the addresses of this node's devices, [`DEVICE`] excepted; the next [`sync`](Self::sync) goes by them.
    pub fn set_local_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.local_addresses = Some(addresses);
    }

    /// What brings the kernel from the last plan to what `cluster` wants now, `changes` being what changed in between.
    ///
    /// When it fails to be done, or this fails, make a new planner, and compare it with what the kernel holds.
    ///
    /// # Errors
    /// [`Error::Iptables`] when rules cannot be compared.
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
                .map_err(|source| Error::Iptables { doing: "comparing plans", source: Box::new(source) })?;
        }
        Ok(change)
    }

    /// Plans these services anew; returns what that touched.
    fn replan(&mut self, cluster: &Cluster, names: &[ServiceName]) -> Touched {
        let mut touched = Touched::default();
        let (mut old, mut new) = (Vec::new(), Vec::with_capacity(names.len()));
        for name in names {
            let ports = cluster.ports(name, self.family());
            let plan = |port| PortPlan::new(&self.context, port, &categorize(port, &self.topology));
            new.push((name, ports.iter().map(plan).collect::<Vec<_>>()));
            old.extend(self.services.remove(name).into_iter().flatten());
        }
        old.iter().for_each(|plan| self.wanted.remove(plan, &mut touched));
        for (name, plans) in new {
            plans.iter().for_each(|plan| self.wanted.add(plan, &mut touched));
            if !plans.is_empty() {
                self.services.insert(name.clone(), plans);
            }
        }
        touched
    }

    fn change(&self, touched: Touched) -> Change {
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
        change.set_commands(plan(&now, &before));
        change
    }

    fn plan_rules(&self) -> Rules {
        Rules::new(&self.style, &|set| self.wanted.size(set) == 0, self.wanted.refused())
    }
}

/// What the node decides for every service port.
fn context(
    settings: &Settings,
    family: Family,
    cluster: &Cluster,
    local_addresses: Option<&[IpAddr]>,
) -> Context {
    let node = cluster.node();
    let of_family = |ip: &&IpAddr| Family::of(**ip) == family;
    let held: Vec<_> = local_addresses.unwrap_or(&node.addresses).iter().filter(of_family).copied().collect();
    let mut node_ips = match settings.node_port_addresses.resolve(family, node, local_addresses) {
        NodePorts::All => held.clone(),
        NodePorts::On(addresses) => addresses.into_iter().collect(),
    };
    node_ips.retain(|ip| !ip.is_loopback() && !is_link_local(ip));
    node_ips.sort_unstable();
    node_ips.dedup();
    Context { config: settings.server(), node_ips, held, node_ip: node.primary(family) }
}

fn is_link_local(ip: &IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// The address that an element of [`Set::IpvsIps`] is.
fn address(element: &Element) -> Option<IpAddr> {
    match element {
        Element::Ip(addresses) => Some(addresses.first()),
        _ => None,
    }
}

/// The smallest input that turns the rules of our chains into others.
fn difference(
    family: Family,
    before: &Save<'_>,
    now: &Save<'_>,
) -> Result<Save<'static>, sluicegate_iptables_save::Error> {
    let family = tool_family(family);
    let mut input = diff(&State::of_family(before, family)?, &State::of_family(now, family)?, |_, _| true)?;
    input.items.retain(|item| !matches!(item, Item::Table(table) if table.entries.is_empty()));
    Ok(input)
}
