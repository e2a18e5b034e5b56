//! The iptables planner: which chains and rules the tables filter and nat of one family should hold, and how to get there.
//!
//! [`Planner`] is a value: give it the [`Cluster`] and what changed in it, and it gives the input of `iptables-restore
//! --noflush` that brings the kernel along. Nobody runs anything here. One planner is for one family: IPv4 and IPv6 have
//! tools, tables and kernels' abilities of their own.
//!
//! Chains, rules and their spelling are those of kube-proxy 1.36. Where it is free (it walks services in no order), this is the
//! order of names, so that the same services always give the same rules. Every service port has
//!
//! - rules in chains that all share: `KUBE-SERVICES`, `KUBE-NODEPORTS` of table nat, and of filter
//!   `KUBE-SERVICES`, `KUBE-EXTERNAL-SERVICES`, `KUBE-NODEPORTS`, `KUBE-PROXY-FIREWALL`;
//! - chains of its own in nat: `KUBE-SVC-` (all endpoints), `KUBE-SVL-` (those of this node), `KUBE-EXT-` (traffic from
//!   outside), `KUBE-FW-` (load-balancer source ranges), and `KUBE-SEP-` for each endpoint.
//!
//! # What a change sends
//!
//! A change of one service sends lines of that service alone, even in the shared chains, where kube-proxy writes the rules
//! of every service anew. What iptables leaves no choice about:
//!
//! - the probabilities of `statistic` depend on how many endpoints follow, so adding or removing one changes the rules of those
//!   before it in the same chain;
//! - the legacy kernel interface knows no single rule: `iptables-restore` reads the whole table back, changes it and
//!   replaces it, whatever its input; the nft back end sends the changed rules only;
//! - in a large cluster (over 1000 endpoints) rules of endpoints bear no comments. A service keeps those that it has until it
//!   changes itself.
//!
//! Jumps from built-in chains and the canary chains are not part of the input, see [`jumps`] and [`CANARY_TABLES`]: they
//! are kept beside the rules of others.

pub(super) mod change;
mod fixed;
mod port;
mod support;
mod words;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Bound;

use sluicegate_iptables_save::{self as save, Action, Entry, Item, Save};

use self::change::{Change, chain, rule, table};
use self::fixed::{Fixed, Shared};
use self::port::PortPlan;
use self::words::Style;
use crate::Error;
use crate::model::{
    Changes, Cluster, DetectLocal, Family, NodePortAddresses, NodePorts, ServiceName, ServicePort, Topology,
    categorize,
};

pub use self::fixed::{
    CANARY, CANARY_TABLES, FIREWALL, INVALID_COUNTER, Jump, LOCALHOST_COUNTER, is_ours, jumps,
};
pub use self::support::{Feature, Support};

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
    /// Node ports are answered on IPv4 loopback as well, where [`Settings::node_port_addresses`] has it. Needs the sysctl
    /// `net.ipv4.conf.all.route_localnet`.
    pub localhost_node_ports: bool,
    /// The sysctl `net.netfilter.nf_conntrack_tcp_be_liberal` is set: invalid packets are not dropped.
    pub tcp_be_liberal: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            masquerade_all: false,
            masquerade_bit: 14,
            detect_local: DetectLocal::default(),
            node_port_addresses: NodePortAddresses::Within(Vec::new()),
            localhost_node_ports: true,
            tcp_be_liberal: false,
        }
    }
}

impl Settings {
    /// Node ports of `family` are answered on loopback: asked for, possible, and inside the addresses that were named.
    #[must_use]
    pub fn answers_localhost(&self, family: Family, cluster: &Cluster) -> bool {
        let named = match &self.node_port_addresses {
            NodePortAddresses::Primary => {
                self.node_port_addresses.resolve(family, cluster.node(), None) == NodePorts::All
            }
            NodePortAddresses::Within(nets) => {
                let mut nets = nets.iter().filter(|net| Family::of_net(net) == family).peekable();
                let loopback = IpAddr::from([127, 0, 0, 0]);
                nets.peek().is_none() || nets.any(|net| net.addr().is_loopback() || net.contains(&loopback))
            }
        };
        family == Family::V4 && self.localhost_node_ports && named
    }
}

/// Plans the rules of one family, and remembers what it planned.
///
/// ```
/// use sluicegate_proxier::model::{Family, Found, Node};
/// use sluicegate_proxier::plan::iptables::{Planner, Settings, Support};
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
/// let mut planner = Planner::new(Family::V4, &Settings::default(), Support::default(), &cluster, None)?;
/// let refuses = "-A KUBE-SERVICES -m comment --comment \"default/web has no endpoints\" -m tcp -p tcp -d 172.30.10.1 --dport 80 -j REJECT\n";
/// assert!(planner.input().to_string().contains(refuses));
///
/// cluster.take_changes();
/// let gone = cluster.service_names().next().unwrap().clone();
/// cluster.set_service(&gone, None);
/// let changes = cluster.take_changes();
/// let input = planner.sync(&cluster, &changes)?;
/// assert_eq!(input.to_string(), format!("*filter\n{}COMMIT\n", refuses.replace("-A", "-D")));
/// # Ok::<(), sluicegate_proxier::Error>(())
/// ```
#[derive(Debug)]
pub struct Planner {
    family: Family,
    settings: Settings,
    mark: u32,
    local_addresses: Option<Vec<IpAddr>>,
    topology: Topology,
    style: Style,
    fixed: Fixed,
    services: BTreeMap<ServiceName, Vec<PortPlan>>,
    /// Of all services, in whatever state.
    endpoints: usize,
    /// How many rules of services each shared chain has.
    rules: [usize; Shared::ALL.len()],
    /// How many rules the chains of services have.
    own_rules: usize,
}

/// How many rules, by table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCounts {
    /// In table `filter`.
    pub filter: usize,
    /// In table `nat`.
    pub nat: usize,
}

impl RuleCounts {
    /// Counts so many more in a table; those of others do not count.
    pub(crate) fn add(&mut self, table: &str, more: usize) {
        match table {
            "filter" => self.filter += more,
            "nat" => self.nat += more,
            _ => {}
        }
    }
}

impl Planner {
    /// Plans everything that `cluster` wants in `family`, with what `support` says is there. `local_addresses` are those of
    /// this node's interfaces where they are known: node ports are answered on those of them that
    /// [`Settings::node_port_addresses`] names.
    ///
    /// # Errors
    /// [`Error::Flag`] when a local detector lacks its value or the mark's bit is none.
    pub fn new(
        family: Family,
        settings: &Settings,
        support: Support,
        cluster: &Cluster,
        local_addresses: Option<Vec<IpAddr>>,
    ) -> Result<Self, Error> {
        let Some(mark) = 1u32.checked_shl(settings.masquerade_bit.into()) else {
            let reason = format!("{} is not a bit of a packet mark (0 to 31)", settings.masquerade_bit);
            return Err(Error::Flag { flag: "--iptables-masquerade-bit".to_owned(), reason });
        };
        let [v4, v6] = settings.detect_local.detectors()?;
        let detector = if family == Family::V4 { v4 } else { v6 };
        let style = Style {
            support,
            masquerade_all: settings.masquerade_all,
            detector,
            localhost: settings.answers_localhost(family, cluster),
            node_ip: cluster.node().primary(family),
            large: false,
        };
        let node_ports =
            settings.node_port_addresses.resolve(family, cluster.node(), local_addresses.as_deref());
        let fixed = Fixed::new(family, &style, mark, &node_ports, settings.tcp_be_liberal);
        let mut planner = Self {
            family,
            settings: settings.clone(),
            mark,
            local_addresses,
            topology: cluster.topology(),
            style,
            fixed,
            services: BTreeMap::new(),
            endpoints: 0,
            rules: [0; Shared::ALL.len()],
            own_rules: 0,
        };
        planner.plan_all(cluster);
        Ok(planner)
    }

    /// IPv4 or IPv6.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// What was planned with.
    #[must_use]
    pub const fn support(&self) -> &Support {
        &self.style.support
    }

    /// Rules of endpoints bear no comments, because there are over 1000 endpoints.
    #[must_use]
    pub const fn is_large(&self) -> bool {
        self.style.large
    }

    /// How many rules there are in all, jumps to our chains aside. Costs the same for any number of services.
    #[must_use]
    pub fn rule_counts(&self) -> RuleCounts {
        let mut counts = RuleCounts { filter: 0, nat: self.own_rules + self.fixed.tail.len() };
        for table in ["filter", "nat"] {
            counts.add(table, self.fixed.of(table).iter().map(|(_, rules)| rules.len()).sum());
            counts.add(table, Shared::of(table).map(|chain| self.rules[chain as usize]).sum());
        }
        counts
    }

    /// Everything, as input of `iptables-restore --noflush`: chains that are named in it are made or emptied, other chains
    /// stay. It is also the answer to what the kernel should hold.
    #[must_use]
    pub fn input(&self) -> Save<'_> {
        let items = ["filter", "nat"].map(|name| Item::Table(table(name, self.entries(name))));
        Save { items: items.into() }
    }

    /// The input that brings the kernel from the last plan to what `cluster` wants now, `changes` being what changed in
    /// between; without tables if nothing is to be done.
    ///
    /// When it fails to be restored, or this fails, make a new planner, and compare its [`input`](Self::input) with what the kernel holds.
    ///
    /// # Errors
    /// [`Error::Iptables`] when the plans cannot be compared.
    pub fn sync(&mut self, cluster: &Cluster, changes: &Changes) -> Result<Save<'static>, Error> {
        let mut change = Change::default();
        let all = self.refresh(cluster);
        let names: Vec<_> = match all {
            true => self.services.keys().chain(changes.names()).cloned().collect(),
            false => changes.names().cloned().collect(),
        };
        let mut names = names;
        names.sort_unstable();
        names.dedup();
        let planned = self.plan(cluster, &names);
        let mut replaced = Vec::with_capacity(names.len());
        let mut ranks = Ranks::default();
        for (name, new) in names.iter().zip(planned) {
            let old = self.services.remove(name).unwrap_or_default();
            self.change_shared(name, &old, &new, &mut ranks, &mut change);
            if !new.is_empty() {
                self.services.insert(name.clone(), new);
            }
            replaced.push(old);
        }
        self.change_fixed(cluster, &mut change);
        let new = names.iter().filter_map(|name| self.services.get(name)).flatten();
        let input = change.finish(tool_family(self.family), replaced.iter().flatten(), new);
        input.map_err(|source| Error::Iptables { doing: "comparing plans", source: Box::new(source) })
    }

    /// Tells the addresses of this node's interfaces; the next [`sync`](Self::sync) answers node ports there.
    pub fn set_local_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.local_addresses = Some(addresses);
    }

    /// Takes over what the node now is. True when every service is to be planned anew.
    fn refresh(&mut self, cluster: &Cluster) -> bool {
        self.topology = cluster.topology();
        let style = Style {
            localhost: self.settings.answers_localhost(self.family, cluster),
            node_ip: cluster.node().primary(self.family),
            ..self.style.clone()
        };
        let changed = style != self.style;
        self.style = style;
        changed
    }

    fn plan_all(&mut self, cluster: &Cluster) {
        let mut names: Vec<_> = cluster.service_names().cloned().collect();
        names.sort_unstable();
        let planned = self.plan(cluster, &names);
        for plans in &planned {
            for chain in Shared::ALL {
                self.rules[chain as usize] +=
                    plans.iter().map(|plan| plan.shared(chain).len()).sum::<usize>();
            }
        }
        self.services = names.into_iter().zip(planned).filter(|(_, plans)| !plans.is_empty()).collect();
    }

    /// The plans of these services, in order, and with them the size of the cluster.
    fn plan(&mut self, cluster: &Cluster, names: &[ServiceName]) -> Vec<Vec<PortPlan>> {
        let ports: Vec<_> = names.iter().map(|name| cluster.ports(name, self.family)).collect();
        let before = || names.iter().filter_map(|name| self.services.get(name)).flatten();
        let endpoints: usize = before().map(|plan| plan.endpoints).sum();
        let rules: usize = before().map(PortPlan::own_rules).sum();
        let now: usize = ports.iter().flatten().map(|port| port.endpoints.len()).sum();
        self.endpoints = self.endpoints + now - endpoints;
        self.style.large = self.endpoints > LARGE;
        let plan =
            |port: &ServicePort<'_>| PortPlan::new(&self.style, port, &categorize(port, &self.topology));
        let plans: Vec<Vec<_>> = ports.iter().map(|ports| ports.iter().map(plan).collect()).collect();
        self.own_rules =
            self.own_rules + plans.iter().flatten().map(PortPlan::own_rules).sum::<usize>() - rules;
        plans
    }

    fn change_shared(
        &mut self,
        name: &ServiceName,
        old: &[PortPlan],
        new: &[PortPlan],
        ranks: &mut Ranks,
        change: &mut Change,
    ) {
        for chain in Shared::ALL {
            let [old, new] = [old, new].map(|plans| rules_in(plans, chain));
            if old == new {
                continue;
            }
            let before = ranks.advance(&self.services, name)[chain as usize];
            let count = &mut self.rules[chain as usize];
            let follows = chain == Shared::Services && !self.fixed.tail.is_empty();
            let last = before + old.len() == *count && !follows;
            change.rules(chain.place(), &old, &new, before, last);
            *count = *count + new.len() - old.len();
        }
    }

    /// The rules of no service, where the node's addresses changed.
    fn change_fixed(&mut self, cluster: &Cluster, change: &mut Change) {
        let local = self.local_addresses.as_deref();
        let node_ports = self.settings.node_port_addresses.resolve(self.family, cluster.node(), local);
        let liberal = self.settings.tcp_be_liberal;
        let fixed = Fixed::new(self.family, &self.style, self.mark, &node_ports, liberal);
        let words = |rules: &[String]| -> Vec<String> { rules.to_vec() };
        for name in ["filter", "nat"] {
            for ((chain, old), (_, new)) in self.fixed.of(name).iter().zip(fixed.of(name)) {
                let (old, new) = (words(old), words(new));
                change.rules((name, chain), &texts(&old), &texts(&new), 0, true);
            }
        }
        let before = self.rules[Shared::Services as usize];
        change.rules(Shared::Services.place(), &texts(&self.fixed.tail), &texts(&fixed.tail), before, true);
        self.fixed = fixed;
    }

    fn entries(&self, table: &str) -> Vec<Entry<'_>> {
        let append = |chain: &'static str| {
            move |words| rule(Action::Append, chain.into(), std::borrow::Cow::Borrowed(words))
        };
        let fixed = self.fixed.of(table);
        let mut entries: Vec<_> = fixed.iter().map(|(name, _)| chain((*name).into())).collect();
        let plans = || self.services.values().flatten();
        if table == "nat" {
            entries
                .extend(plans().flat_map(|plan| &plan.chains).map(|(name, _)| chain(name.as_str().into())));
        }
        for (name, rules) in fixed {
            entries.extend(rules.iter().map(String::as_str).map(append(name)));
        }
        for plan in plans() {
            for shared in Shared::of(table) {
                entries.extend(plan.shared(shared).iter().map(String::as_str).map(append(shared.place().1)));
            }
            for (name, rules) in plan.chains.iter().filter(|_| table == "nat") {
                let own =
                    |words| rule(Action::Append, name.as_str().into(), std::borrow::Cow::Borrowed(words));
                entries.extend(rules.iter().map(String::as_str).map(own));
            }
        }
        if table == "nat" {
            let tail = self.fixed.tail.iter().map(String::as_str);
            entries.extend(tail.map(append(Shared::Services.place().1)));
        }
        entries
    }
}

/// The family in the words of the library that reads and writes the text.
#[must_use]
pub const fn tool_family(family: Family) -> save::Family {
    match family {
        Family::V4 => save::Family::V4,
        Family::V6 => save::Family::V6,
    }
}

/// How many rules of the shared chains belong to services up to a name; asked for names in their order.
#[derive(Debug, Default)]
struct Ranks {
    counts: [usize; Shared::ALL.len()],
    /// Those up to here, this one included, are in `counts` or not in the map any more.
    up_to: Option<ServiceName>,
}

impl Ranks {
    /// The numbers of rules before those of `name`, which is not in the map at this moment.
    fn advance(
        &mut self,
        services: &BTreeMap<ServiceName, Vec<PortPlan>>,
        name: &ServiceName,
    ) -> [usize; Shared::ALL.len()] {
        let from = self.up_to.as_ref().map_or(Bound::Unbounded, Bound::Included);
        if self.up_to.as_ref() != Some(name) {
            for (_, plans) in services.range::<ServiceName, _>((from, Bound::Excluded(name))) {
                for chain in Shared::ALL {
                    self.counts[chain as usize] +=
                        plans.iter().map(|plan| plan.shared(chain).len()).sum::<usize>();
                }
            }
            self.up_to = Some(name.clone());
        }
        self.counts
    }
}

fn rules_in(plans: &[PortPlan], chain: Shared) -> Vec<&str> {
    plans.iter().flat_map(|plan| plan.shared(chain)).map(String::as_str).collect()
}

fn texts(rules: &[String]) -> Vec<&str> {
    rules.iter().map(String::as_str).collect()
}

/// Endpoints from which on a cluster is large.
const LARGE: usize = 1000;
