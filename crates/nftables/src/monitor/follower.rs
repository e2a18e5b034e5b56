//! Following the kernel's ruleset: a copy that commits keep up to date.

use std::collections::{HashMap, HashSet};

use sluicegate_netlink::Transport;

use crate::compile::raise::{Sets, TableContext};
use crate::error::Error;
use crate::error::readable;
use crate::expr::Expr;
use crate::family::Family;
use crate::listing;
use crate::monitor::mirror::{Mirror, Table, is_whole, missing_predecessor};
use crate::monitor::{Change, Event, RuleChange, RulePosition, SetName};
use crate::name::Name;
use crate::object::{ChainId, Element, Elements, Rule, RuleId, Set, SetFlags, SetId, TableId};
use crate::read::{self, ChainFlags, Generation, Ruleset, typed_set};
use crate::sort;
use crate::transaction::{Object, Operation, Rename, Target, Transaction, Within};
use crate::tree::Statement;

/// A copy of the ruleset that follows the kernel's, commit by commit, at the cost of what changes.
///
/// Join the multicast group before reading the ruleset: commits that the read already includes are skipped.
///
/// ```
/// use sluicegate_nftables::fake::Fake;
/// use sluicegate_nftables::monitor::{Follower, GROUP, Monitor};
/// use sluicegate_nftables::{Family, Table, TableId, Transaction};
///
/// let mut kernel = Fake::new(); // or sockets
/// let mut listener = kernel.open();
/// listener.join(GROUP)?;
/// let mut monitor = Monitor::with_transport(listener);
/// let mut follower = Follower::read(&mut kernel, Family::UNSPEC)?;
///
/// let mut tx = Transaction::new();
/// tx.add(Table::new(TableId::new(Family::IP, "t".parse()?)));
/// tx.apply(&mut kernel)?;
///
/// let commit = loop {
///     // If the copy cannot follow (an error), the ruleset has to be read again.
///     let taken = monitor.events()?.into_iter().find_map(|event| follower.apply(event).transpose());
///     if let Some(commit) = taken {
///         break commit?;
///     }
/// };
/// assert_eq!(commit.transaction.to_string(), "add table ip t\n");
/// assert_eq!(follower.ruleset().tables, kernel.ruleset().tables);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The copy changes only with commits. The kernel sends no events for changes by packets and timeouts, so
/// counters, elements that rules add, elements that expire and therefore `uses` are as of the last event
/// about the object itself, and [`read::Set::count`] is left out. Nor does it report that a table was
/// deleted or lost its owner when the owner's socket was closed or, before Linux 6.16, that a chain was
/// deleted together with its device.
#[derive(Debug, Clone)]
pub struct Follower {
    copy: Mirror,
    generation: u32,
    within: Within,
    commit: Vec<Event>,
    lost: Option<Lost>,
}

/// The changes of one committed transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Commit {
    /// The new generation of the ruleset, and the process that committed it.
    pub generation: Generation,
    /// Each change, in order.
    pub events: Vec<Event>,
    /// The changes in the typed language; printed, they are close to the output of `nft monitor`. Sets and
    /// chains that belong to a rule are part of the rule, and a rule includes its position.
    ///
    /// Objects of kinds newer than this crate, and expressions that the language cannot represent, appear
    /// only in the events.
    pub transaction: Transaction,
    /// The changes as `nft monitor` reports them.
    pub(crate) reported: Vec<Reported>,
}

impl Commit {
    /// Returns what `nft --echo` reports where this transaction made the commit: what it adds, and the rules that
    /// it replaces.
    pub(crate) fn echoed<'a>(&'a self, sent: &'a Transaction) -> impl Iterator<Item = &'a Reported> {
        let replaced = |operation: &'a Operation| match operation {
            Operation::Replace(rule) => Some((&rule.chain, rule.handle?)),
            _ => None,
        };
        let replaced: HashSet<_> = sent.operations().iter().filter_map(replaced).collect();
        self.reported.iter().filter(move |reported| match &reported.operation {
            Operation::Delete(Target::Rule(rule)) => replaced.contains(&(&rule.chain, rule.handle)),
            Operation::Delete(_) | Operation::Destroy(_) | Operation::Flush(_) | Operation::Rename(_) => {
                false
            }
            _ => true,
        })
    }
}

/// A change as `nft monitor` reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) operation: Operation,
    pub(crate) handle: Option<u64>,
    /// The rule as the kernel has it: of a deleted rule all of it, of one with a chain of its own the name of
    /// that chain.
    pub(crate) rule: Option<Rule>,
    /// The description of what was deleted, where the kernel sends one: Debian's 6.1 and 6.12 do for sets,
    /// objects and chains with devices, Linux 6.18 for none.
    pub(crate) deleted: Option<Object>,
    /// Whether it is part of a rule: a set or a chain of the rule's own. Only `nft -j monitor` prints those.
    pub(crate) is_internal: bool,
    /// The word for an addition: `add`, `create` or `insert`.
    pub(crate) verb: &'static str,
}

/// The copy can no longer follow the kernel: the ruleset has to be read again.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// The receive buffer overflowed ([`Event::Overrun`]).
    #[error("events were lost: more arrived than the receive buffer holds")]
    Overrun,
    /// The events of at least one commit did not arrive.
    #[error("events were lost: expected generation {}, found {generation}", known.wrapping_add(1).max(1))]
    Generation {
        /// The generation of the copy.
        known: u32,
        /// The generation that the next event carried.
        generation: u32,
    },
    /// An event is about an object that the copy does not have.
    #[error("events were lost: an event names a {0} that the copy does not have")]
    Unknown(String),
}

readable! { Lost }

impl Lost {
    pub(super) fn unknown<const N: usize>(what: &str, family: Family, names: [&Name; N]) -> Self {
        let names = names.map(Name::to_string).join(" ");
        Self::Unknown(format!("{what} {family} {names}"))
    }
}

impl Follower {
    /// Reads the ruleset, all of it or that of a family or a table as [`read::ruleset`] does, and follows it
    /// from there on.
    ///
    /// # Errors
    /// As [`read::ruleset`].
    pub fn read(transport: &mut (impl Transport + ?Sized), within: impl Into<Within>) -> Result<Self, Error> {
        let within = within.into();
        let ruleset = read::ruleset(transport, &within)?;
        let generation = ruleset.generation;
        let copy = Mirror::new(ruleset);
        Ok(Self { copy, generation, within, commit: Vec::new(), lost: None })
    }

    /// Returns the generation of the copy.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns the copy, as [`read::ruleset`] would give it.
    #[must_use]
    pub fn ruleset(&self) -> Ruleset {
        self.copy.ruleset(self.generation)
    }

    /// Processes one event. The last event of a commit that is newer than the copy applies the commit and
    /// returns it; changes outside the followed family or table are left out.
    ///
    /// # Errors
    /// [`Lost`] when events were lost. Every later call fails as well: the ruleset has to be
    /// [read](Self::read) again.
    pub fn apply(&mut self, event: Event) -> Result<Option<Commit>, Lost> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        let taken = self.process(event);
        self.lost = taken.as_ref().err().cloned();
        taken
    }

    fn process(&mut self, event: Event) -> Result<Option<Commit>, Lost> {
        match event {
            Event::Overrun => Err(Lost::Overrun),
            Event::Generation(generation) => self.commit(generation),
            Event::Trace(_) => Ok(None),
            event => {
                if self.follows(&event) {
                    self.commit.push(event);
                }
                Ok(None)
            }
        }
    }

    fn follows(&self, event: &Event) -> bool {
        let Some((family, name)) = event.table() else { return true };
        let followed = self.within.family();
        (followed == Family::UNSPEC || followed == family) && self.within.has(name)
    }

    fn commit(&mut self, generation: Generation) -> Result<Option<Commit>, Lost> {
        let events = std::mem::take(&mut self.commit);
        let known = self.generation;
        // Generation numbers wrap around and skip 0.
        if generation.id.wrapping_sub(known).cast_signed() <= 0 {
            return Ok(None);
        }
        if generation.id != known.wrapping_add(1).max(1) {
            return Err(Lost::Generation { known, generation: generation.id });
        }
        let mut transaction = Transaction::new();
        let mut reported = Vec::new();
        let order = EventOrder::of(&events);
        let together = |a: &Event, b: &Event| match (a, b) {
            (Event::Elements(a, of_a, _), Event::Elements(b, of_b, _)) => a == b && of_a == of_b,
            _ => false,
        };
        for run in events.chunk_by(together) {
            if let Some(operation) = self.operation(run, transaction.operations().last(), None) {
                self.report(run, &operation, transaction.operations().last(), &order, &mut reported);
                if matches!(operation, Operation::Replace(_)) {
                    transaction.pop();
                }
                transaction.push(operation);
            } else {
                reported.extend(run.iter().filter_map(|event| self.internal(event)));
            }
            run.iter().try_for_each(|event| self.copy.apply(event))?;
        }
        if let Some(Event::Rule(_, rule)) = events.iter().find(|event| !self.copy.is_complete(event)) {
            return Err(missing_predecessor(rule));
        }
        self.generation = generation.id;
        Ok(Some(Commit { generation, events, transaction, reported }))
    }

    /// Appends what `nft monitor` reports for the events that became `operation`, with one entry for each
    /// element.
    fn report(
        &self,
        run: &[Event],
        operation: &Operation,
        last: Option<&Operation>,
        order: &EventOrder,
        reported: &mut Vec<Reported>,
    ) {
        let Some(event) = run.first() else { return };
        // nft prints the members of a set without a name in the order in which they came.
        let as_they_came = match event {
            Event::Rule(RuleChange::New(_) | RuleChange::Inserted(_), _) if !order.0.is_empty() => {
                self.operation(run, last, Some(order))
            }
            _ => None,
        };
        let operation = as_they_came.as_ref().unwrap_or(operation);
        // A listing is sorted, and nft reports elements as they come; an interval is two events.
        if run.len() > 1 && !self.has_intervals(event) {
            for event in run.chunks(1) {
                if let Some(operation) = self.operation(event, None, None) {
                    self.report(event, &operation, None, order, reported);
                }
            }
            return;
        }
        let mut push = |operation| reported.push(self.reported(operation, event));
        match operation {
            Operation::Add(Object::Elements(all)) => {
                for element in &all.list {
                    push(Operation::Add(Elements::new(&all.set, [element.clone()]).into()));
                }
            }
            Operation::Delete(Target::Elements(all)) => {
                for element in &all.list {
                    push(Operation::Delete(Elements::new(&all.set, [element.clone()]).into()));
                }
            }
            // The kernel sends a replaced rule as a deletion and an addition, and so does nft report it.
            Operation::Replace(_) => self.operation(run, None, Some(order)).into_iter().for_each(push),
            operation => push(operation.clone()),
        }
    }

    /// Returns whether an event is about elements of a set with the flag `interval`.
    fn has_intervals(&self, event: &Event) -> bool {
        let Event::Elements(_, of, _) = event else { return false };
        let set = self.copy.table(of.family, &of.table).and_then(|table| table.set(&of.set));
        set.is_some_and(|set| set.from_kernel.flags.contains(SetFlags::INTERVAL))
    }

    fn reported(&self, mut operation: Operation, event: &Event) -> Reported {
        if let (Operation::Delete(Target::Set(id)), Event::Set(_, set)) = (&mut operation, event) {
            // Since Linux 6.4 the event does not include that it was a map, and nft calls it a set.
            id.map = set.flags.intersects(SetFlags::MAP | SetFlags::OBJECT);
        }
        let rule = match event {
            Event::Rule(RuleChange::Deleted, rule) => self.whole_rule(rule),
            Event::Rule(RuleChange::New(_) | RuleChange::Inserted(_), rule) if has_own_chain(&operation) => {
                self.whole_rule(rule)
            }
            _ => None,
        };
        let deleted = deleted_object(event);
        let verb = verb(event);
        Reported { operation, handle: event.handle(), rule, deleted, is_internal: false, verb }
    }

    /// Converts an event about what belongs to a rule.
    fn internal(&self, event: &Event) -> Option<Reported> {
        let (family, name) = event.table()?;
        let id = TableId::new(family, name.clone());
        let operation = match event {
            Event::Chain(Change::New | Change::Created, chain) if is_bound(chain) => {
                add(listing::chain_of(&id, chain))
            }
            Event::Rule(RuleChange::New(_) | RuleChange::Inserted(_), rule) => {
                let chain = self.copy.table(family, name)?.chain(&rule.chain)?;
                if is_bound(&chain.from_kernel) { add(self.whole_rule(rule)?) } else { None }
            }
            // Where the kernel says that the set is anonymous, nft reports nothing.
            Event::Set(Change::Deleted, set) if set.key_len == 0 => delete(id.set(set.name.clone())),
            _ => None,
        };
        Some(Reported {
            operation: operation?,
            handle: event.handle(),
            rule: None,
            deleted: deleted_object(event),
            is_internal: true,
            verb: verb(event),
        })
    }

    /// Converts a rule with all that it refers to by name.
    fn whole_rule(&self, reported: &read::Rule) -> Option<Rule> {
        let id = TableId::new(reported.family, reported.table.clone());
        let table = self.copy.table(reported.family, &reported.table)?;
        let sets = sets_of(&id, table, &reported.expressions, None);
        Some(listing::rule_of(&id.chain(reported.chain.clone()), reported, &TableContext::new(&id, &sets)))
    }

    /// Converts an event, or several about elements of one set, to the typed language, using the state
    /// before it; `last` is the preceding operation. The members of sets without a name are sorted, unless
    /// `order` tells their order.
    fn operation(
        &self,
        run: &[Event],
        last: Option<&Operation>,
        order: Option<&EventOrder>,
    ) -> Option<Operation> {
        let event = run.first()?;
        let (family, name) = event.table()?;
        let id = TableId::new(family, name.clone());
        let table = self.copy.table(family, name);
        let named_set =
            |name: &Name| table?.set(name).map(|set| &set.from_kernel).filter(|set| is_named(set));
        match event {
            Event::Table(Change::New | Change::Created, reported) => add(listing::table_of(reported)),
            Event::Table(Change::Deleted, _) => delete(id),
            Event::Chain(change, reported) => of_chain(&id, table, *change, reported),
            Event::Rule(change, reported) => of_rule(&id, table?, *change, reported, last, order),
            Event::Set(Change::New | Change::Created, reported) => {
                add(typed_set::set_of(&id, Some(reported).filter(|set| is_named(set))?))
            }
            Event::Set(Change::Deleted, reported) => {
                delete(typed_set::set_of(&id, named_set(&reported.name)?).id)
            }
            Event::Elements(change, of, _) => {
                let reported: Vec<read::Element> = run.iter().flat_map(Event::elements).cloned().collect();
                let set = typed_set::set_of(&id, named_set(&of.set)?);
                let elements = Elements { list: typed_set::elements_of(&set, &reported), set: set.id };
                if *change != Change::Deleted { add(elements) } else { delete(elements) }
            }
            Event::Object(Change::New | Change::Created, reported) => add(listing::object_of(&id, reported)?),
            Event::Object(Change::Deleted, reported) => {
                delete(id.object(reported.object_kind, reported.name.clone()))
            }
            Event::Flowtable(Change::New | Change::Created, reported) => {
                add(listing::flowtable_of(&id, reported))
            }
            Event::Flowtable(Change::Deleted, reported) => {
                let flowtable = id.flowtable(reported.name.clone());
                match is_whole(&table?.flowtable(reported.handle)?.devices, &reported.devices, reported.uses)
                {
                    true => delete(flowtable),
                    false => delete(flowtable.devices(listing::devices_of(&reported.devices))),
                }
            }
            Event::Generation(_) | Event::Trace(_) | Event::Overrun | Event::Unknown(_) => None,
        }
    }
}

/// Returns nft's word for an event that adds something.
fn verb(event: &Event) -> &'static str {
    match event {
        Event::Table(change, _)
        | Event::Chain(change, _)
        | Event::Set(change, _)
        | Event::Elements(change, ..)
        | Event::Object(change, _)
        | Event::Flowtable(change, _)
            if *change == Change::Created =>
        {
            "create"
        }
        Event::Rule(RuleChange::Inserted(_) | RuleChange::New(RulePosition::First), _) => "insert",
        _ => "add",
    }
}

/// The keys of the elements that a commit adds, in the order of their events.
struct EventOrder(HashMap<SetName, HashMap<Vec<u8>, usize>>);

impl EventOrder {
    fn of(events: &[Event]) -> Self {
        let mut all: HashMap<SetName, HashMap<Vec<u8>, usize>> = HashMap::new();
        for event in events {
            if let Event::Elements(Change::New | Change::Created, set, elements) = event
                && set.set.starts_with("__")
            {
                let keys = all.entry(set.clone()).or_default();
                for element in elements {
                    let next = keys.len();
                    keys.entry(element.key.to_vec()).or_insert(next);
                }
            }
        }
        Self(all)
    }

    /// Sorts the elements of a set in this order. nft sorts intervals.
    fn sort(&self, set: &Set, elements: &mut [Element]) {
        let SetId { table, name, .. } = &set.id;
        let id = SetName { family: table.family, table: table.name.clone(), set: name.clone() };
        if let Some(keys) = self.0.get(&id).filter(|_| !set.flags.contains(SetFlags::INTERVAL)) {
            sort::by_key(elements, |element| keys.get(element.key().bytes()).copied().unwrap_or(usize::MAX));
        }
    }
}

impl Event {
    fn handle(&self) -> Option<u64> {
        Some(match self {
            Self::Table(_, table) => table.handle,
            Self::Chain(_, chain) => chain.handle,
            Self::Rule(_, rule) => rule.handle,
            Self::Set(_, set) => set.handle,
            Self::Object(_, object) => object.handle,
            Self::Flowtable(_, flowtable) => flowtable.handle,
            _ => return None,
        })
    }

    fn elements(&self) -> &[read::Element] {
        match self {
            Self::Elements(_, _, elements) => elements,
            _ => &[],
        }
    }
}

fn add(object: impl Into<Object>) -> Option<Operation> {
    Some(Operation::Add(object.into()))
}

fn delete(target: impl Into<Target>) -> Option<Operation> {
    Some(Operation::Delete(target.into()))
}

/// Returns what a message about a deletion says beside name and handle.
fn deleted_object(event: &Event) -> Option<Object> {
    let id = |(family, name): (Family, &Name)| TableId::new(family, name.clone());
    match event {
        Event::Chain(Change::Deleted, chain) if chain.hook.is_some() => {
            Some(listing::chain_of(&id(event.table()?), chain).into())
        }
        Event::Set(Change::Deleted, set) if set.key_len != 0 => {
            Some(typed_set::set_of(&id(event.table()?), set).into())
        }
        Event::Object(Change::Deleted, object) if !object.data.is_empty() => {
            Some(listing::object_of(&id(event.table()?), object)?.into())
        }
        _ => None,
    }
}

fn has_own_chain(operation: &Operation) -> bool {
    let rule = match operation {
        Operation::Add(Object::Rule(rule)) | Operation::Insert(rule) | Operation::Replace(rule) => rule,
        _ => return false,
    };
    rule.statements.read().iter().any(|statement| matches!(statement, Statement::Bound(_)))
}

fn is_named(set: &read::Set) -> bool {
    !set.flags.contains(SetFlags::ANONYMOUS)
}

fn is_bound(chain: &read::Chain) -> bool {
    chain.flags.contains(ChainFlags::BINDING)
}

/// Converts an event about a chain; `None` for a chain that belongs to a rule, which is reported with that
/// rule.
fn of_chain(
    id: &TableId,
    table: Option<&Table>,
    change: Change,
    reported: &read::Chain,
) -> Option<Operation> {
    let from_kernel =
        table.and_then(|table| table.chain_by_handle(reported.handle)).map(|chain| &chain.from_kernel);
    if is_bound(from_kernel.unwrap_or(reported)) {
        return None;
    }
    let chain = id.chain(reported.name.clone());
    match (change, from_kernel) {
        (Change::New | Change::Created, Some(from_kernel)) if from_kernel.name != reported.name => {
            let (chain, name) = (id.chain(from_kernel.name.clone()), reported.name.clone());
            Some(Operation::Rename(Rename { chain, handle: Some(reported.handle), name }))
        }
        (Change::New | Change::Created, _) => add(listing::chain_of(id, reported)),
        (Change::Deleted, Some(from_kernel))
            if !is_whole(from_kernel.devices(), reported.devices(), reported.uses) =>
        {
            delete(chain.devices(listing::devices_of(reported.devices())))
        }
        (Change::Deleted, _) => delete(chain),
    }
}

fn of_rule(
    id: &TableId,
    table: &Table,
    change: RuleChange,
    reported: &read::Rule,
    last: Option<&Operation>,
    order: Option<&EventOrder>,
) -> Option<Operation> {
    let chain = table.chain(&reported.chain).filter(|chain| !is_bound(&chain.from_kernel))?;
    let chain = id.chain(chain.from_kernel.name.clone());
    let (RuleChange::New(place) | RuleChange::Inserted(place)) = change else {
        return delete(RuleId { chain, handle: reported.handle });
    };
    let typed = |chain: &ChainId, rule: &read::Rule| {
        let sets = sets_of(id, table, &rule.expressions, order);
        let mut typed = listing::rule_of(chain, rule, &TableContext::new(id, &sets));
        typed.handle = None;
        typed
    };
    let mut rule = typed(&chain, reported);
    listing::insert_bound_rules(rule.statements.to_mut(), |name| {
        let bound = table.chain(name).filter(|chain| is_bound(&chain.from_kernel))?;
        let chain = id.chain(name.clone());
        Some(listing::bound_rules(bound.rules.iter().map(|rule| typed(&chain, rule))))
    });
    match (place, last) {
        (RulePosition::First, _) => Some(Operation::Insert(rule)),
        (RulePosition::After(handle), _) => add(rule.position(handle)),
        (RulePosition::Replaced, Some(Operation::Delete(Target::Rule(before)))) if before.chain == chain => {
            Some(Operation::Replace(rule.handle(before.handle)))
        }
        (RulePosition::Last | RulePosition::Replaced, _) => add(rule),
    }
}

/// Returns the sets that a rule uses. Elements are included only for anonymous sets, which are reported with
/// the rule.
fn sets_of(id: &TableId, table: &Table, expressions: &[Expr], order: Option<&EventOrder>) -> Sets {
    let used = expressions.iter().filter_map(|expr| match expr {
        Expr::Lookup(lookup) => Some(&lookup.set),
        Expr::Dynset(dynset) => Some(&dynset.set),
        Expr::Objref(reference) => reference.set.as_ref(),
        _ => None,
    });
    let typed = used.filter_map(|name| {
        let set = table.set(name)?;
        let typed = typed_set::set_of(id, &set.from_kernel);
        let own: Vec<read::Element> =
            if is_named(&set.from_kernel) { Vec::new() } else { set.elements().cloned().collect() };
        let mut elements = typed_set::elements_of(&typed, &own);
        if let Some(order) = order {
            order.sort(&typed, &mut elements);
        }
        typed_set::are_expressible(&own).then(|| (name.clone(), (typed, elements)))
    });
    typed.collect()
}
