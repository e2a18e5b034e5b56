//! Following the kernel's ruleset: a copy that commits keep up to date.

use sluicegate_netlink::Transport;

use crate::expr::Expr;
use crate::family::Family;
use crate::lang::raise::Sets;
use crate::listing;
use crate::monitor::mirror::{Mirror, Table, is_whole, not_told};
use crate::monitor::{Change, Event, Place, RuleChange};
use crate::name::Name;
use crate::object::{ChainId, Elements, Rule, RuleId, SetFlags, TableId};
use crate::read::{self, ChainFlags, Generation, Ruleset};
use crate::transaction::{Object, Operation, Rename, Target, Transaction};

/// A copy of the ruleset that follows the kernel's, commit by commit, at the cost of what changes.
///
/// Join the group first, read then: what changes in between is told and passed over.
///
/// ```
/// use sluicegate_nftables::fake::Fake;
/// use sluicegate_nftables::monitor::{Follower, GROUP, Monitor};
/// use sluicegate_nftables::{Family, Table, TableId, Transaction};
///
/// let mut kernel = Fake::new(); // or sockets
/// let mut listener = kernel.open();
/// listener.join(GROUP)?;
/// let mut monitor = Monitor::new(listener);
/// let mut follower = Follower::read(&mut kernel, Family::UNSPEC, None)?;
///
/// let mut tx = Transaction::new();
/// tx.add(Table::new(TableId::new(Family::IP, "t".parse()?)));
/// tx.apply(&mut kernel)?;
///
/// let commit = loop {
///     // Where the copy does not follow, read again.
///     let taken = monitor.events()?.into_iter().find_map(|event| follower.take(event).transpose());
///     if let Some(commit) = taken {
///         break commit?;
///     }
/// };
/// assert_eq!(commit.transaction.to_string(), "add table ip t\n");
/// assert_eq!(follower.ruleset().tables, kernel.ruleset().tables);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The copy is what commits made. Nobody tells of what packets and time do: counts, elements that rules add and that time removes, and so
/// `uses` are those of the last event about the object itself, and [`read::Set::count`] is left out. Nor do kernels tell that a table went with
/// its owner's socket, or stays without an owner, or, before 6.16, that a chain went with its device.
#[derive(Debug, Clone)]
pub struct Follower {
    copy: Mirror,
    generation: u32,
    family: Family,
    table: Option<String>,
    commit: Vec<Event>,
    lost: Option<Lost>,
}

/// What one transaction of somebody's has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Commit {
    /// The generation that it made, and who made it.
    pub generation: Generation,
    /// Each change, in order.
    pub events: Vec<Event>,
    /// The same in the typed language; printed, about what `nft monitor` says. What belongs to a rule is in the rule, and a rule says its place.
    ///
    /// Objects of kinds newer than this crate, and what the language has no words for, are in the events alone.
    pub transaction: Transaction,
}

/// The copy does not follow any longer: what is known of the ruleset has to be read again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// More came than the receive buffer holds ([`Event::Overrun`]).
    #[error("events were lost: more came than the receive buffer holds")]
    Overrun,
    /// A commit was not told.
    #[error("events were lost: generation {generation} was told of, and not the one behind {known}")]
    Generation {
        /// That of the copy.
        known: u32,
        /// The one that was told of.
        generation: u32,
    },
    /// Something was told of that the copy does not have.
    #[error("events were lost: there is no {0}")]
    Unknown(String),
}

impl Lost {
    pub(super) fn unknown<const N: usize>(what: &str, family: Family, names: [&Name; N]) -> Self {
        let names = names.map(Name::to_string).join(" ");
        Self::Unknown(format!("{what} {family} {names}"))
    }
}

impl Follower {
    /// Reads what there is, all of it or of a family or a table as [`read::ruleset`] does, to be followed from there on.
    ///
    /// # Errors
    /// As [`read::ruleset`].
    pub fn read(
        transport: &mut (impl Transport + ?Sized),
        family: Family,
        table: Option<&str>,
    ) -> Result<Self, sluicegate_netlink::Error> {
        let ruleset = read::ruleset(transport, family, table)?;
        let generation = ruleset.generation;
        let copy = Mirror::new(ruleset);
        Ok(Self { copy, generation, family, table: table.map(str::to_owned), commit: Vec::new(), lost: None })
    }

    /// The generation that the copy is of.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The copy, as [`read::ruleset`] would give it.
    #[must_use]
    pub fn ruleset(&self) -> Ruleset {
        self.copy.ruleset(self.generation)
    }

    /// Takes in an event. With the last one of a commit that is newer than the copy, the copy follows, and what was committed is given; empty of
    /// what is not followed.
    ///
    /// # Errors
    /// When events were lost, and from then on: the copy does not follow any longer, and has to be [read](Self::read) again.
    pub fn take(&mut self, event: Event) -> Result<Option<Commit>, Lost> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        let taken = self.take_in(event);
        self.lost = taken.as_ref().err().cloned();
        taken
    }

    fn take_in(&mut self, event: Event) -> Result<Option<Commit>, Lost> {
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
        (self.family == Family::UNSPEC || self.family == family)
            && self.table.as_deref().is_none_or(|table| table == name.as_str())
    }

    fn commit(&mut self, generation: Generation) -> Result<Option<Commit>, Lost> {
        let events = std::mem::take(&mut self.commit);
        let known = self.generation;
        // Numbers go round, and leave out 0.
        if generation.id.wrapping_sub(known).cast_signed() <= 0 {
            return Ok(None);
        }
        if generation.id != known.wrapping_add(1).max(1) {
            return Err(Lost::Generation { known, generation: generation.id });
        }
        let mut transaction = Transaction::new();
        let together = |a: &Event, b: &Event| match (a, b) {
            (Event::Elements(a, of_a, _), Event::Elements(b, of_b, _)) => a == b && of_a == of_b,
            _ => false,
        };
        for run in events.chunk_by(together) {
            let operation = self.operation(run, transaction.operations().last());
            if let Some(Operation::Replace(_)) = operation {
                transaction.pop();
            }
            operation.map(|operation| transaction.push(operation));
            run.iter().try_for_each(|event| self.copy.apply(event))?;
        }
        if let Some(Event::Rule(_, rule)) = events.iter().find(|event| !self.copy.is_settled(event)) {
            return Err(not_told(rule));
        }
        self.generation = generation.id;
        Ok(Some(Commit { generation, events, transaction }))
    }

    /// An event, or several about elements of one set, in the typed language, by what there was before; `last` is the operation before.
    fn operation(&self, run: &[Event], last: Option<&Operation>) -> Option<Operation> {
        let event = run.first()?;
        let (family, name) = event.table()?;
        let id = TableId::new(family, name.clone());
        let table = self.copy.table(family, name);
        let named_set = |name: &Name| table?.set(name).map(|set| &set.held).filter(|set| is_named(set));
        match event {
            Event::Table(Change::New, told) => add(listing::table_of(told)),
            Event::Table(Change::Deleted, _) => delete(id),
            Event::Chain(change, told) => of_chain(&id, table, *change, told),
            Event::Rule(change, told) => of_rule(&id, table?, *change, told, last),
            Event::Set(Change::New, told) => {
                add(listing::set_of(&id, Some(told).filter(|set| is_named(set))?))
            }
            Event::Set(Change::Deleted, told) => delete(listing::set_of(&id, named_set(&told.name)?).id),
            Event::Elements(change, of, _) => {
                let told: Vec<read::Element> = run.iter().flat_map(Event::elements).cloned().collect();
                let set = listing::set_of(&id, named_set(&of.set)?);
                let elements = Elements { list: listing::elements_of(&set, &told), set: set.id };
                if *change == Change::New { add(elements) } else { delete(elements) }
            }
            Event::Object(Change::New, told) => add(listing::object_of(&id, told)?),
            Event::Object(Change::Deleted, told) => delete(id.object(told.object_kind, told.name.clone())),
            Event::Flowtable(Change::New, told) => add(listing::flowtable_of(&id, told)),
            Event::Flowtable(Change::Deleted, told) => {
                let flowtable = id.flowtable(told.name.clone());
                match is_whole(&table?.flowtable(told.handle)?.devices, &told.devices, told.uses) {
                    true => delete(flowtable),
                    false => delete(flowtable.devices(listing::devices_of(&told.devices))),
                }
            }
            Event::Generation(_) | Event::Trace(_) | Event::Overrun | Event::Unknown(_) => None,
        }
    }
}

impl Event {
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

fn is_named(set: &read::Set) -> bool {
    !set.flags.contains(SetFlags::ANONYMOUS)
}

fn is_bound(chain: &read::Chain) -> bool {
    chain.flags.contains(ChainFlags::BINDING)
}

/// A chain that belongs to a rule is said with that rule.
fn of_chain(id: &TableId, table: Option<&Table>, change: Change, told: &read::Chain) -> Option<Operation> {
    let held = table.and_then(|table| table.chain_by_handle(told.handle)).map(|chain| &chain.held);
    if is_bound(held.unwrap_or(told)) {
        return None;
    }
    let chain = id.chain(told.name.clone());
    match (change, held) {
        (Change::New, Some(held)) if held.name != told.name => {
            let (chain, name) = (id.chain(held.name.clone()), told.name.clone());
            Some(Operation::Rename(Rename { chain, handle: Some(told.handle), name }))
        }
        (Change::New, _) => add(listing::chain_of(id, told)),
        (Change::Deleted, Some(held)) if !is_whole(held.devices(), told.devices(), told.uses) => {
            delete(chain.devices(listing::devices_of(told.devices())))
        }
        (Change::Deleted, _) => delete(chain),
    }
}

fn of_rule(
    id: &TableId,
    table: &Table,
    change: RuleChange,
    told: &read::Rule,
    last: Option<&Operation>,
) -> Option<Operation> {
    let chain = table.chain(&told.chain).filter(|chain| !is_bound(&chain.held))?;
    let chain = id.chain(chain.held.name.clone());
    let RuleChange::New(place) = change else {
        return delete(RuleId { chain, handle: told.handle });
    };
    let typed = |chain: &ChainId, rule: &read::Rule| Rule {
        handle: None,
        ..listing::rule_of(chain, rule, &sets_of(id, table, &rule.expressions))
    };
    let mut rule = typed(&chain, told);
    listing::put_in(&mut rule.statements, |name| {
        let bound = table.chain(name).filter(|chain| is_bound(&chain.held))?;
        let chain = id.chain(name.clone());
        Some(listing::bound_rules(bound.rules.iter().map(|rule| typed(&chain, rule))))
    });
    match (place, last) {
        (Place::First, _) => Some(Operation::Insert(rule)),
        (Place::After(handle), _) => add(rule.position(handle)),
        (Place::Replaced, Some(Operation::Delete(Target::Rule(before)))) if before.chain == chain => {
            Some(Operation::Replace(rule.handle(before.handle)))
        }
        (Place::Last | Place::Replaced, _) => add(rule),
    }
}

/// The sets that a rule uses; the elements only of its own, which are said with it.
fn sets_of(id: &TableId, table: &Table, expressions: &[Expr]) -> Sets {
    let used = expressions.iter().filter_map(|expr| match expr {
        Expr::Lookup(lookup) => Some(&lookup.set),
        Expr::Dynset(dynset) => Some(&dynset.set),
        Expr::Objref(reference) => reference.set.as_ref(),
        _ => None,
    });
    let typed = used.filter_map(|name| {
        let set = table.set(name)?;
        let typed = listing::set_of(id, &set.held);
        let own: Vec<read::Element> =
            if is_named(&set.held) { Vec::new() } else { set.elements().cloned().collect() };
        let elements = listing::elements_of(&typed, &own);
        listing::have_words(&own).then(|| (name.clone(), (typed, elements)))
    });
    typed.collect()
}
