//! The iptables planner: the wanted chains and rules of the tables filter and nat of one family, and the
//! changes that lead to them.
//!
//! [`Planner`] is a value: from the [`Cluster`] and the changes in it, it computes the input of
//! `iptables-restore --noflush`. It runs no tool. Each family has a planner of its own: IPv4 and IPv6 differ
//! in tool, tables and kernel features.
//!
//! Chains, rules and their spelling are those of kube-proxy 1.36. Where it is free (it walks services in no
//! order), this is the order of names, so that the same services always give the same rules. Every service
//! port has
//!
//! - rules in shared chains: `KUBE-SERVICES`, `KUBE-NODEPORTS` of table nat, and of filter
//!   `KUBE-SERVICES`, `KUBE-EXTERNAL-SERVICES`, `KUBE-NODEPORTS`, `KUBE-PROXY-FIREWALL`;
//! - chains of its own in nat: `KUBE-SVC-` (all endpoints), `KUBE-SVL-` (those of this node), `KUBE-EXT-`
//!   (traffic from outside), `KUBE-FW-` (load-balancer source ranges), and `KUBE-SEP-` for each endpoint.
//!
//! # What a change sends
//!
//! A change of one service sends only lines of that service, even in the shared chains, where kube-proxy
//! writes the rules of all services again. iptables imposes some limits:
//!
//! - the probabilities of `statistic` depend on how many endpoints follow, so adding or removing one changes
//!   the rules of those before it in the same chain;
//! - the legacy kernel interface cannot change single rules: for any line the whole table is read and
//!   replaced; the nft back end sends the changed rules only;
//! - in a large cluster (over 1000 endpoints) rules of endpoints have no comments. A service keeps its
//!   comments until it changes itself.
//!
//! Jumps from built-in chains, the rule in the kubelet's chain ([`Planner::guard`]) and the canary chains are
//! not part of the input, see [`jumps`](super::jumps) and [`CANARY_TABLES`](super::CANARY_TABLES): they are
//! kept beside the rules of others.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Bound;

use sluicegate_iptables_save::{self as save, Action, Entry, Item, Save};
use sluicegate_services::{Changes, Cluster, Family, ServiceName, ServicePort, Topology, categorize};

use super::change::{Change, chain, rule, table};
use super::fixed::{Fixed, Shared};
use super::port::PortPlan;
use super::words::Style;
use super::{FIREWALL, Settings, Support};
use crate::Error;

/// Plans the rules of one family, and stores the last plan.
///
/// ```
/// use sluicegate_service_rules::iptables::{Planner, Settings, Support};
/// use sluicegate_services::{Cluster, Family, Node, Port, Service, ServiceName};
///
/// let mut cluster = Cluster::new(Node::default());
/// let web = ServiceName::new("default", "web")?;
/// cluster.set_service(&web, Service::new(["172.30.10.1".parse()?], [Port::tcp("", 80)?])?);
///
/// let mut planner = Planner::new(Family::Ipv4, &Settings::default(), Support::default(), &cluster, None)?;
/// let refuses = "-A KUBE-SERVICES -m comment --comment \"default/web has no endpoints\" \
///     -m tcp -p tcp -d 172.30.10.1 --dport 80 -j REJECT\n";
/// assert!(planner.input().to_string().contains(refuses));
///
/// cluster.take_changes();
/// cluster.set_service(&web, None);
/// let changes = cluster.take_changes();
/// let input = planner.sync(&cluster, &changes)?;
/// assert_eq!(input.to_string(), format!("*filter\n{}COMMIT\n", refuses.replace("-A", "-D")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
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
    /// The number of endpoints of all services, in any state.
    endpoints: usize,
    /// The number of rules of services in each shared chain.
    rules: [usize; Shared::ALL.len()],
    /// The number of rules in the chains of services.
    own_rules: usize,
}

/// Numbers of rules, by table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCounts {
    /// The number in table `filter`.
    pub filter: usize,
    /// The number in table `nat`.
    pub nat: usize,
}

impl RuleCounts {
    /// Adds a number of rules in a table. Rules of other tables are ignored.
    pub(crate) fn add(&mut self, table: &str, more: usize) {
        match table {
            "filter" => self.filter += more,
            "nat" => self.nat += more,
            _ => {}
        }
    }
}

impl Planner {
    /// Plans all services of `cluster` in `family`, for a tool and kernel with the features of `support`.
    /// `local_addresses` are the addresses of this node's interfaces, if they are known: those that
    /// [`Settings::node_port_addresses`] selects answer node ports.
    ///
    /// # Errors
    /// [`Error::Services`] when local traffic is detected by the node's pod CIDRs, and there are none.
    pub fn new(
        family: Family,
        settings: &Settings,
        support: Support,
        cluster: &Cluster,
        local_addresses: Option<Vec<IpAddr>>,
    ) -> Result<Self, Error> {
        let mark = settings.masquerade_bit.mark();
        let [v4, v6] = settings.detect_local.detectors(cluster.node())?;
        let detector = if family == Family::Ipv4 { v4 } else { v6 };
        let style = Style {
            support,
            masquerade_all: settings.masquerade_all,
            detector,
            localhost: false,
            node_ip: cluster.node().primary(family),
            large: false,
        };
        let style = Style { localhost: style.answers_localhost(settings, family, cluster), ..style };
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

    /// Returns the family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Returns the features that the plan uses.
    #[must_use]
    pub const fn support(&self) -> &Support {
        &self.style.support
    }

    /// Returns `true` if the rules of endpoints have no comments, because there are more than 1000 endpoints.
    #[must_use]
    pub const fn is_large(&self) -> bool {
        self.style.large
    }

    /// Returns `true` if node ports are answered on 127.0.0.1: asked for, and guarded from the link.
    #[must_use]
    pub const fn answers_localhost(&self) -> bool {
        self.style.localhost
    }

    /// Returns the words of the rule in chain [`FIREWALL`](super::FIREWALL) that protects listeners on
    /// loopback from other machines on the link; needed where node ports are answered there.
    #[must_use]
    pub fn guard(&self) -> Option<&str> {
        self.fixed.guard.as_deref()
    }

    /// Returns the missing kernel features that protect traffic, each with its consequence; their absence is
    /// an error.
    pub fn faults(&self) -> impl Iterator<Item = String> + '_ {
        let missing = self.style.support.missing();
        missing.filter_map(|feature| Some(format!("{feature} is missing here: {}", feature.unguarded()?)))
    }

    /// Returns the numbers of rules, except for jumps to our chains, in constant time.
    #[must_use]
    pub fn rule_counts(&self) -> RuleCounts {
        let mut counts = RuleCounts { filter: 0, nat: self.own_rules + self.fixed.tail.len() };
        for table in ["filter", "nat"] {
            counts.add(table, self.fixed.of(table).iter().map(|(_, rules)| rules.len()).sum());
            counts.add(table, Shared::of(table).map(|chain| self.rules[chain as usize]).sum());
        }
        counts
    }

    /// Returns the whole plan as input of `iptables-restore --noflush`, which creates or flushes the chains
    /// in it and keeps others. It describes the wanted state of our chains.
    #[must_use]
    pub fn input(&self) -> Save<'_> {
        let items = ["filter", "nat"].map(|name| Item::Table(table(name, self.entries(name))));
        Save { items: items.into() }
    }

    /// Returns [`input`](Self::input) as kube-proxy writes it: with the rule of [`guard`](Self::guard) in the
    /// kubelet's chain, which is emptied for it. To be read and compared; a node keeps the kubelet's rules.
    #[must_use]
    pub fn kube_proxy_input(&self) -> Save<'_> {
        let items = ["filter", "nat"].map(|name| {
            let mut entries = self.entries(name);
            if let Some(words) = self.guard().filter(|_| name == "filter") {
                let fixed = self.fixed.of(name);
                let rules: usize = fixed.iter().map(|(_, rules)| rules.len()).sum();
                entries.insert(fixed.len() + rules, rule(Action::Append, FIREWALL.into(), words.into()));
                entries.insert(fixed.len(), chain(FIREWALL.into()));
            }
            Item::Table(table(name, entries))
        });
        Save { items: items.into() }
    }

    /// Returns the input that leads from the last plan to the current services of `cluster`; `changes` are
    /// the services that changed in between. It has no tables if nothing changes.
    ///
    /// If this fails, or if the input cannot be restored, create a new planner, and compare its
    /// [`input`](Self::input) with the kernel.
    ///
    /// # Errors
    /// [`Error::Rules`] when the plans cannot be compared.
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
        input.map_err(|source| Error::Rules { doing: "comparing plans", source: Box::new(source) })
    }

    /// Sets the addresses of this node's interfaces, which answer node ports from the next
    /// [`sync`](Self::sync) on.
    pub fn set_local_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.local_addresses = Some(addresses);
    }

    /// Updates the properties of the node. Returns true if all services have to be planned again.
    fn refresh(&mut self, cluster: &Cluster) -> bool {
        self.topology = cluster.topology();
        let style = Style {
            localhost: self.style.answers_localhost(&self.settings, self.family, cluster),
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

    /// Returns the plans of these services, in order, and updates the size of the cluster.
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

    /// Changes the rules that belong to no service, if the node's addresses have changed.
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

/// Returns the family as that of `sluicegate_iptables_save`.
#[must_use]
pub const fn tool_family(family: Family) -> save::Family {
    match family {
        Family::Ipv4 => save::Family::Ipv4,
        Family::Ipv6 => save::Family::Ipv6,
    }
}

/// Counts the rules of the shared chains that belong to services up to a name; names must come in order.
#[derive(Debug, Default)]
struct Ranks {
    counts: [usize; Shared::ALL.len()],
    /// The services up to this one are counted in `counts`, or no longer in the map.
    up_to: Option<ServiceName>,
}

impl Ranks {
    /// Returns the numbers of rules before those of `name`, which is currently not in the map.
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

/// The number of endpoints above which a cluster is large.
const LARGE: usize = 1000;
