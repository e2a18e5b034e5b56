//! The table of one family: transactions that create it and that change it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use sluicegate_nftables as nft;
use sluicegate_nftables::lang::Verdict;
use sluicegate_nftables::{
    Comment, DataType, InterfaceName, Key, Name, Object, Operation, TableId, Transaction,
};
use sluicegate_services::{Family, ServiceName};

use super::base::{self, BaseContent};
use super::chain::{self, Names};
use super::element::{
    ChainId, Container, Element, ElementKey, ElementValue, EndpointAddr, Frontend, Path, PortChain, Sink,
    Target,
};
use super::localhost;
use super::owner::Owners;
use super::planner::node_port_ips;
use super::port::{ChainPlan, PortPlan};
use super::schema::{Schema, TABLE, TableSettings, fixed_name, nft_family, nft_protocol};
use super::settings::Device;
use super::table::{Content, Delta};

/// The content of one family's table, and the changes that have not been sent yet.
#[derive(Debug)]
pub(super) struct FamilyPlan {
    schema: Schema,
    base: Vec<BaseContent>,
    content: Content,
    delta: Delta,
    /// The previous settings, which the kernel still has, if they have changed.
    previous: Option<(Schema, Vec<BaseContent>)>,
    names: Names,
    /// The sizes of the sets that were declared with one.
    sizes: BTreeMap<Container, u32>,
    /// The sets of session affinity that exist, which are created when there are elements for them.
    sticky: BTreeSet<Container>,
    /// The flushed chains, with the time of the flush.
    stale: BTreeMap<ChainId, Instant>,
    removing: BTreeSet<ChainId>,
}

impl FamilyPlan {
    /// Creates a table for about this number of services.
    pub(super) fn new(settings: TableSettings, services: usize) -> Self {
        let schema = Schema::new(settings);
        let mut content = Content::default();
        content.reserve(services);
        Self {
            base: base::chains(&schema),
            schema,
            content,
            delta: Delta::default(),
            previous: None,
            names: Names::default(),
            sizes: BTreeMap::new(),
            sticky: BTreeSet::new(),
            stale: BTreeMap::new(),
            removing: BTreeSet::new(),
        }
    }

    pub(super) const fn family(&self) -> Family {
        self.schema.settings.family
    }

    /// Sets the plans of a service. They are recorded as a change, unless everything is going to be created
    /// again.
    pub(super) fn set_service(
        &mut self,
        name: &ServiceName,
        plans: impl Iterator<Item = PortPlan>,
        incremental: bool,
    ) {
        self.content.set(name, plans, incremental.then_some(&mut self.delta));
    }

    pub(super) fn set_settings(&mut self, settings: TableSettings) {
        if settings != self.schema.settings {
            let schema = Schema::new(settings);
            let base = base::chains(&schema);
            let before =
                (std::mem::replace(&mut self.schema, schema), std::mem::replace(&mut self.base, base));
            self.previous.get_or_insert(before);
        }
    }

    /// Returns the flowtable with these devices.
    pub(super) fn flowtable(&self, devices: impl Iterator<Item = InterfaceName>) -> nft::Flowtable {
        self.schema.flowtable(devices)
    }

    /// Sets the devices of the flowtable, before everything is created.
    pub(super) fn set_devices(&mut self, devices: &[Device]) {
        self.schema.settings.devices = devices.to_vec();
    }

    pub(super) fn adopt_size(&mut self, set: &str, size: u32) {
        if let Some(container) = Container::ALL.into_iter().find(|container| container.name() == set) {
            self.sizes.insert(container, size);
        }
    }

    /// Deletes the table, if it exists, at the beginning of a transaction that creates it again.
    pub(super) fn reset(&mut self, transaction: &mut Transaction) {
        remove(self.family(), transaction);
        self.sizes.clear();
        self.stale.clear();
    }

    /// Records the services that the objects of the table belong to.
    pub(super) fn owners(&self, owners: &mut Owners) {
        for (id, _) in self.content.chains() {
            let ChainId::Port(port, kind) = &id else { continue };
            let chain = self.schema.table.chain(chain_name(&id));
            owners.chains.insert(chain, port.service.clone());
            if let PortChain::Endpoint(backend) = kind {
                let clients = chain::affinity_set(&self.schema, port, *backend);
                owners.sets.insert(clients, port.service.clone());
            }
        }
        self.content.owned_elements(|element, service| {
            let (low, high) = key(&element.key);
            owners.own_element(self.schema.set_id(element.container), low, high, service);
        });
    }

    /// Adds the whole table to the transaction.
    pub(super) fn script(&mut self, transaction: &mut Transaction) {
        self.delta = Delta::default();
        self.previous = None;
        transaction.add(self.schema.table());
        if self.schema.settings.fastpath.is_some() {
            let devices = self.schema.settings.devices.iter().map(|(_, name)| name.clone());
            transaction.add(self.schema.flowtable(devices));
        }
        for protocol in &self.schema.settings.rejected_on_localhost {
            transaction.add(localhost::counter(&self.schema.table, *protocol));
        }
        self.sticky = self.wanted_sticky();
        for container in self.schema.containers() {
            if is_sticky(container) && !self.sticky.contains(&container) {
                continue;
            }
            let size = self.choose_size(container);
            transaction.add(self.schema.set(container, size));
        }
        let chains: BTreeMap<ChainId, Option<ChainPlan>> =
            self.content.chains().map(|(id, plan)| (id, plan.cloned())).collect();
        for (id, plan) in &chains {
            self.add_affinity(transaction, id, plan.as_ref());
        }
        let named: Vec<(Name, &ChainId, Option<&ChainPlan>)> =
            chains.iter().map(|(id, plan)| (self.names.chain(id), id, plan.as_ref())).collect();
        for (name, ..) in &named {
            transaction.add(nft::Chain::new(self.schema.table.chain(name.clone())));
        }
        let (hooks, inner): (Vec<_>, Vec<_>) = self.base.iter().partition(|base| base.chain.base.is_some());
        for base in &inner {
            transaction.add(base.chain.clone());
        }
        for (name, id, plan) in &named {
            for rule in chain::rules(&self.schema, name, id, *plan) {
                transaction.add(rule);
            }
        }
        self.admit_clients(transaction, &self.sticky);
        for rule in inner.iter().flat_map(|base| &base.rules) {
            transaction.add(rule.clone());
        }
        for base in &hooks {
            transaction.add(base.chain.clone());
        }
        let lists = Container::ALL.map(|container| Vec::with_capacity(self.content.count(container)));
        let schema = &self.schema;
        let mut lists = Lists { lists, names: &mut self.names };
        self.content.elements(&mut lists);
        let mut lists = lists.lists;
        if let Some(ips) = node_port_ips(&schema.settings.node_ports) {
            lists[Container::NodeportIps.index()].extend(ips.map(nft::Element::new));
        }
        for (container, list) in Container::ALL.into_iter().zip(lists).filter(|(_, list)| !list.is_empty()) {
            transaction.add(nft::Elements { set: schema.set_id(container), list });
        }
        for rule in hooks.iter().flat_map(|base| &base.rules) {
            transaction.add(rule.clone());
        }
    }

    /// Adds the changes since the last commit to the transaction.
    pub(super) fn commit(&mut self, transaction: &mut Transaction, now: Instant) {
        let mut delta = std::mem::take(&mut self.delta);
        delta.settle();
        let previous = self.previous.take();
        if delta.is_empty() && previous.is_none() {
            return;
        }
        let wanted_sticky = self.wanted_sticky();
        let sticky = std::mem::replace(&mut self.sticky, wanted_sticky);
        let (gone, come): (Vec<_>, Vec<_>) =
            self.sticky.symmetric_difference(&sticky).copied().partition(|c| sticky.contains(c));
        for container in &gone {
            self.sizes.remove(container);
        }
        let outgrown: Vec<Container> = self.schema.containers().filter(|c| self.is_outgrown(*c)).collect();
        let mut rewrite = Rewrite::default();
        if let Some((before, base)) = &previous {
            self.rewrite_base(before, base, &mut rewrite);
        }
        outgrown.iter().for_each(|container| self.rewrite_users(*container, &delta, &mut rewrite));
        for (id, edit) in &delta.chains {
            rewrite.chain(self, id, edit.before.is_some(), edit.after.as_ref());
            if edit.after.is_some() {
                self.stale.remove(id);
            } else {
                self.stale.insert(id.clone(), now);
            }
        }
        // First the old rules, then the sets that only they used.
        for name in &rewrite.flushes {
            transaction.flush(self.schema.table.chain(name.clone()));
        }
        self.replace_affinity_sets(transaction, &delta);
        self.replace_node_port_ips(transaction, previous.as_ref().map(|(schema, _)| schema));
        self.add_devices(transaction, previous.as_ref().map(|(schema, _)| schema));
        for container in &gone {
            transaction.delete(self.schema.set_id(*container));
        }
        for container in &come {
            let size = self.choose_size(*container);
            transaction.add(self.schema.set(*container, size));
        }
        for container in &outgrown {
            transaction.delete(self.schema.set_id(*container));
            let size = self.choose_size(*container);
            transaction.add(self.schema.set(*container, size));
        }
        for chain in rewrite.chains {
            transaction.add(chain);
        }
        for rule in rewrite.rules {
            transaction.add(rule);
        }
        self.admit_clients(transaction, &come);
        for container in &outgrown {
            self.fill(transaction, *container);
        }
        self.edit_elements(transaction, delta, &[outgrown, gone].concat());
    }

    /// Raises the limit of the maps of clients among these, which the kernel has set to 65535 with the first
    /// rule that fills them. Given at their creation, a size would make it allocate a hash table at once.
    /// Kernels before 6.5 ignore it.
    fn admit_clients<'c>(
        &self,
        transaction: &mut Transaction,
        containers: impl IntoIterator<Item = &'c Container>,
    ) {
        for container in containers {
            if let Container::Affinity(..) = container {
                transaction.add(self.schema.set(*container, Some(CLIENTS)));
            }
        }
    }

    /// Raises the limit of the maps of clients that the transaction adds, at its end: a comparison adds what
    /// is missing, and leaves other sizes as they are.
    pub(super) fn admit_added(&self, transaction: &mut Transaction) {
        let added: Vec<Container> = self
            .sticky
            .iter()
            .copied()
            .filter(|container| {
                let id = self.schema.set_id(*container);
                let mut operations = transaction.operations().iter();
                operations
                    .any(|operation| matches!(operation, Operation::Add(Object::Set(set)) if set.id == id))
            })
            .collect();
        self.admit_clients(transaction, &added);
    }

    /// Returns the sets of session affinity that there are elements for, and the maps of clients for these.
    fn wanted_sticky(&self) -> BTreeSet<Container> {
        let has = |container| self.content.count(container) > 0;
        let wanted = |container: &Container| match *container {
            Container::Affinity(scope, protocol) => {
                [Path::Main, Path::Shortcut].map(|path| Container::StickyIds(scope, path, protocol)).map(has)
                    != [false; 2]
            }
            container => is_sticky(container) && has(container),
        };
        self.schema.containers().filter(wanted).collect()
    }

    pub(super) fn has_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    pub(super) fn remove_stale(&mut self, transaction: &mut Transaction, now: Instant) {
        let ripe = |since: &Instant| now.saturating_duration_since(*since) > STALE_FOR;
        self.removing =
            self.stale.iter().filter(|(_, since)| ripe(since)).map(|(id, _)| id.clone()).collect();
        for id in &self.removing {
            self.stale.remove(id);
            let name = self.names.chain(id);
            transaction.delete(self.schema.table.chain(name));
        }
    }

    pub(super) fn keep_stale(&mut self, now: Instant) {
        self.stale.extend(std::mem::take(&mut self.removing).into_iter().map(|id| (id, now)));
    }

    /// Returns the size to declare for a set. Only the layout `maps` declares sizes, which make a lookup
    /// twice as fast.
    fn choose_size(&mut self, container: Container) -> Option<u32> {
        let is_unsized = matches!(container, Container::NodeportIps | Container::Affinity(..));
        if self.schema.settings.layout != super::Layout::Maps || is_unsized {
            return None;
        }
        if self.is_outgrown(container) || !self.sizes.contains_key(&container) {
            let wanted = u32::try_from(self.content.count(container)).unwrap_or(u32::MAX / 4);
            self.sizes.insert(container, wanted.saturating_mul(2).max(MIN_SIZE).next_power_of_two());
        }
        self.sizes.get(&container).copied()
    }

    fn is_outgrown(&self, container: Container) -> bool {
        let size = self.sizes.get(&container).filter(|_| container != Container::Allowed);
        size.is_some_and(|size| self.content.count(container) > usize::try_from(*size).unwrap_or(usize::MAX))
    }

    /// Returns the base chains that the new settings change.
    fn rewrite_base(&self, before: &Schema, base: &[BaseContent], rewrite: &mut Rewrite) {
        debug_assert_eq!(
            before.settings.layout, self.schema.settings.layout,
            "another layout is another table"
        );
        for (old, new) in base.iter().zip(&self.base) {
            if old.rules != new.rules {
                rewrite.base(new);
            }
        }
    }

    /// Returns the chains whose rules use a set that is created again.
    fn rewrite_users(&self, container: Container, delta: &Delta, rewrite: &mut Rewrite) {
        for base in self.base.iter().filter(|base| base.uses.contains(&container)) {
            rewrite.base(base);
        }
        if let Container::Endpoints(..) | Container::StickyIds(..) | Container::StickyEndpoints(..) =
            container
        {
            let chains: BTreeMap<_, _> = self.content.chains().collect();
            for (id, plan) in chains {
                let user =
                    matches!(&id, ChainId::Balance(balance) if balance.uses().any(|used| used == container));
                if user && !delta.chains.contains_key(&id) {
                    rewrite.chain_rules(&self.schema, chain_name(&id), &id, plan);
                }
            }
        }
    }

    /// Deletes and creates affinity sets, and those whose timeout has changed.
    fn replace_affinity_sets(&self, transaction: &mut Transaction, delta: &Delta) {
        for (id, edit) in &delta.chains {
            let ChainId::Port(port, PortChain::Endpoint(backend)) = id else { continue };
            if edit.before.is_some() {
                transaction.delete(chain::affinity_set(&self.schema, port, *backend));
            }
            if let Some(after) = &edit.after {
                self.add_affinity(transaction, id, after.as_ref());
            }
        }
    }

    fn add_affinity(&self, transaction: &mut Transaction, id: &ChainId, plan: Option<&ChainPlan>) {
        if let (ChainId::Port(port, PortChain::Endpoint(backend)), Some(ChainPlan::Endpoint { seconds })) =
            (id, plan)
        {
            transaction.add(chain::affinity(&self.schema, port, *backend, *seconds));
        }
    }

    /// Replaces the elements of `nodeport-ips` if the addresses of the node have changed.
    fn replace_node_port_ips(&self, transaction: &mut Transaction, before: Option<&Schema>) {
        let Some(before) =
            before.filter(|before| before.settings.node_ports != self.schema.settings.node_ports)
        else {
            return;
        };
        let id = self.schema.set_id(Container::NodeportIps);
        let (old, new) = (&before.settings.node_ports, &self.schema.settings.node_ports);
        match (node_port_ips(old), node_port_ips(new)) {
            (Some(_), None) => {
                transaction.delete(id);
            }
            (None, Some(ips)) => {
                transaction.add(self.schema.set(Container::NodeportIps, None));
                transaction.add(nft::Elements { set: id, list: ips.map(nft::Element::new).collect() });
            }
            (Some(old), Some(new)) => {
                let (old, new): (BTreeSet<_>, BTreeSet<_>) = (old.collect(), new.collect());
                for ip in old.difference(&new) {
                    transaction.delete_element(&id, *ip);
                }
                for ip in new.difference(&old) {
                    transaction.add_element(&id, *ip);
                }
            }
            (None, None) => {}
        }
    }

    /// Adds the devices that have come to the flowtable, also if one of the same name went.
    fn add_devices(&self, transaction: &mut Transaction, before: Option<&Schema>) {
        let Some(before) = before else { return };
        let has_come = |device: &&Device| !before.settings.devices.contains(device);
        let come: Vec<_> = self.schema.settings.devices.iter().filter(has_come).collect();
        if !come.is_empty() {
            transaction.add(self.schema.flowtable(come.into_iter().map(|(_, name)| name.clone())));
        }
    }

    /// Adds all elements of a set that is created again.
    fn fill(&mut self, transaction: &mut Transaction, container: Container) {
        let (mut list, names) = (Vec::new(), &mut self.names);
        self.content.elements_of(container, |element| list.push(to_nft(&element, names, true)));
        if !list.is_empty() {
            transaction.add(nft::Elements { set: self.schema.set_id(container), list });
        }
    }

    /// Changes elements set by set, deletions first: a key whose value changes is deleted and added.
    fn edit_elements(&mut self, transaction: &mut Transaction, delta: Delta, filled: &[Container]) {
        let mut edits: BTreeMap<Container, (Vec<nft::Element>, Vec<nft::Element>)> = BTreeMap::new();
        for ((container, _), edit) in delta.elements {
            if !filled.contains(&container) {
                let (gone, come) = edits.entry(container).or_default();
                gone.extend(edit.before.map(|element| to_nft(&element, &mut self.names, false)));
                come.extend(edit.after.map(|element| to_nft(&element, &mut self.names, true)));
            }
        }
        for (container, (gone, come)) in edits {
            let set = self.schema.set_id(container);
            if !gone.is_empty() {
                transaction.delete(nft::Elements { set: set.clone(), list: gone });
            }
            if !come.is_empty() {
                transaction.add(nft::Elements { set, list: come });
            }
        }
    }
}

/// The elements of each set and map, as those of the nftables crate.
struct Lists<'n> {
    lists: [Vec<nft::Element>; Container::ALL.len()],
    names: &'n mut Names,
}

impl Sink for Lists<'_> {
    fn element(&mut self, element: Element) {
        self.lists[element.container.index()].push(to_nft(&element, self.names, true));
    }

    fn endpoints(&mut self, container: Container, frontend: Frontend, backends: &[EndpointAddr]) {
        let made = |(number, backend): (u32, &EndpointAddr)| {
            let key = nft::Element::new(frontend.numbered(number));
            key.value(Key::from((backend.ip, nft::Port(backend.port))))
        };
        let list = &mut self.lists[container.index()];
        let Some(first) = backends.first().map(|first| made((0, first))) else { return };
        let key = <[u8; 12]>::try_from(frontend.numbered(0).bytes()).ok();
        list.extend((0..).zip(backends).map(|(number, backend)| {
            let alike = key.zip(v4_value(backend)).and_then(|(mut key, value)| {
                key[8..].copy_from_slice(&u32::to_ne_bytes(number));
                first.with_bytes(key, value)
            });
            alike.unwrap_or_else(|| made((number, backend)))
        }));
    }
}

/// Returns the value of an IPv4 endpoint, as the kernel stores it.
fn v4_value(backend: &EndpointAddr) -> Option<[u8; 8]> {
    let IpAddr::V4(ip) = backend.ip else { return None };
    let ([a, b, c, d], [high, low]) = (ip.octets(), backend.port.to_be_bytes());
    Some([a, b, c, d, high, low, 0, 0])
}

/// Chains to flush, chains to create, and the rules to add to them.
#[derive(Default)]
struct Rewrite {
    flushes: Vec<Name>,
    chains: Vec<nft::Chain>,
    rules: Vec<nft::Rule>,
    seen: BTreeSet<Name>,
}

impl Rewrite {
    fn base(&mut self, content: &BaseContent) {
        let name = content.chain.id.name.clone();
        if self.seen.insert(name.clone()) {
            self.flushes.push(name);
            self.rules.extend(content.rules.iter().cloned());
        }
    }

    fn chain(&mut self, plan: &FamilyPlan, id: &ChainId, existed: bool, after: Option<&Option<ChainPlan>>) {
        let name = chain_name(id);
        if !self.seen.insert(name.clone()) {
            return;
        }
        if existed {
            self.flushes.push(name.clone());
        }
        let Some(after) = after else { return };
        if !existed {
            self.chains.push(nft::Chain::new(plan.schema.table.chain(name.clone())));
        }
        self.rules.extend(chain::rules(&plan.schema, &name, id, after.as_ref()));
    }

    fn chain_rules(&mut self, schema: &Schema, name: Name, id: &ChainId, plan: Option<&ChainPlan>) {
        if self.seen.insert(name.clone()) {
            self.rules.extend(chain::rules(schema, &name, id, plan));
            self.flushes.push(name);
        }
    }
}

fn chain_name(id: &ChainId) -> Name {
    Names::default().chain(id)
}

/// Deletes the table of a family, whether it exists or not.
pub(super) fn remove(family: Family, transaction: &mut Transaction) {
    let table = TableId::new(nft_family(family), fixed_name(TABLE));
    transaction.add(nft::Table::new(table.clone()));
    transaction.delete(table);
}

/// Converts an element into that of the nftables crate. To delete it, the key is enough.
fn to_nft(element: &Element, names: &mut Names, whole: bool) -> nft::Element {
    let made = match &element.key {
        ElementKey::Source(frontend, net) => {
            let (low, high) = source(frontend, *net);
            nft::Element::range(low, high)
        }
        key => nft::Element::new(low(key)),
    };
    if !whole {
        return made;
    }
    let made = match &element.comment {
        Some(port) => made.comment(Comment::lossy(&port.to_string())),
        None => made,
    };
    match &element.value {
        ElementValue::None => made,
        ElementValue::Endpoint(backend) => made.value(Key::from((backend.ip, nft::Port(backend.port)))),
        ElementValue::Id(id) => made.value(carried(Key::new(), *id)),
        ElementValue::Balancer(balance) => made.value(carried(Key::new(), balance.code())),
        ElementValue::Verdict(Target::Drop) => made.verdict(Verdict::Drop),
        ElementValue::Verdict(Target::Reject) => made.verdict(Verdict::Goto(fixed_name("reject-chain"))),
        ElementValue::Verdict(Target::Goto(id)) => made.verdict(Verdict::Goto(names.chain(id))),
    }
}

/// Returns the key of an element; two keys if it is an interval.
fn key(key: &ElementKey) -> (Key, Option<Key>) {
    match key {
        ElementKey::Source(frontend, net) => {
            let (low, high) = source(frontend, *net);
            (low, Some(high))
        }
        key => (low(key), None),
    }
}

/// Returns the key of an element, or the lower bound of an interval.
fn low(key: &ElementKey) -> Key {
    match key {
        ElementKey::Address(ip) => Key::from(*ip),
        ElementKey::Frontend(frontend) => frontend.key(),
        ElementKey::Indexed(frontend, index) => frontend.numbered(*index),
        ElementKey::Identified(frontend, id) => frontend.identified(*id),
        ElementKey::Hairpin(backend, protocol) => {
            Key::from((backend.ip, backend.ip, nft_protocol(*protocol), nft::Port(backend.port)))
        }
        ElementKey::Balancer(balance) => carried(Key::from(nft_protocol(balance.protocol)), balance.code()),
        ElementKey::Source(frontend, net) => source(frontend, *net).0,
    }
}

/// Returns the bounds of the interval of clients in this network.
fn source(frontend: &Frontend, net: IpNet) -> (Key, Key) {
    (frontend.key().and(net.network()), frontend.key().and(net.broadcast()))
}

impl Frontend {
    /// Returns the key in the map of endpoints of one protocol.
    fn numbered(&self, number: u32) -> Key {
        let port = (nft::Port(self.port), nft::Number(number));
        match self.address {
            Some(ip) => Key::from((ip, port.0, port.1)),
            None => Key::from(port),
        }
    }

    /// Returns the key in the map of endpoints by id of one protocol.
    fn identified(&self, id: u32) -> Key {
        let port = nft::Port(self.port);
        carried(self.address.map_or_else(|| Key::from(port), |ip| Key::from((ip, port))), id)
    }

    fn key(&self) -> Key {
        let port = (nft_protocol(self.protocol), nft::Port(self.port));
        match self.address {
            Some(ip) => Key::from((ip, port.0, port.1)),
            None => Key::from(port),
        }
    }
}

/// Appends a number of the type of [`CARRIER`](super::schema::CARRIER).
fn carried(mut key: Key, number: u32) -> Key {
    key.append(DataType::CLASSID.into(), &number.to_ne_bytes());
    key
}

fn is_sticky(container: Container) -> bool {
    matches!(container, Container::StickyIds(..) | Container::StickyEndpoints(..) | Container::Affinity(..))
}

/// The time that a flushed chain is kept, because kernels before 6.2 drop references to it with a delay.
const STALE_FOR: Duration = Duration::from_secs(1);
/// The minimum size, enough for a small cluster. An empty set of it takes a few kilobytes in the kernel.
const MIN_SIZE: u32 = 1024;
/// The number of clients that a map may have. Each takes less than 200 bytes in the kernel, so a flood of
/// invented addresses costs 50 MB at most.
const CLIENTS: u32 = 1 << 18;
