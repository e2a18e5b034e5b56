//! The state of the fake kernel. Objects of a table are identified by handles, which are unique there; names
//! are resolved to handles.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use sluicegate_netlink::Errno;
use sluicegate_netlink::attr::Attribute;

use crate::expr::Expr;
use crate::fake::device::Device;
use crate::fake::event::{Change, Event, Subject};
use crate::fake::message::{Attrs, Refusal, Request, refusal};
use crate::fake::pending::{Checks, Deferred, Pending, Step};
use crate::fake::set::Set;
use crate::name::Name;

/// The whole state. Chains and sets are shared with the previous state until they change.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) generation: u32,
    /// The last handle of a table.
    pub(super) table_handles: u64,
    pub(super) tables: Vec<Table>,
}

#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) family: u8,
    pub(super) name: Name,
    pub(super) handle: u64,
    pub(super) flags: u32,
    /// The port of the socket that alone may change it (`NFT_TABLE_F_OWNER`).
    pub(super) owner: Option<u32>,
    pub(super) user_data: Vec<u8>,
    /// The last handle in the table.
    pub(super) handles: u64,
    /// The number of rules created so far: a rule that replaces another has the same handle, but another
    /// number.
    rules: u64,
    /// The chains in the order of their handles, and so of their creation; likewise the sets.
    pub(super) chains: Vec<Arc<Chain>>,
    /// The handles of chains by name: there may be tens of thousands.
    names: Arc<HashMap<Name, u64>>,
    pub(super) sets: Vec<Arc<Set>>,
    pub(super) objects: Vec<Object>,
    pub(super) flowtables: Vec<Flowtable>,
    pub(super) checks: Checks,
    /// The uncommitted changes of a transaction in progress; empty between transactions.
    pub(super) pending: Pending,
}

#[derive(Debug, Clone)]
pub(super) struct Chain {
    pub(super) name: Name,
    pub(super) handle: u64,
    pub(super) base: Option<Base>,
    /// `NFT_CHAIN_*`
    pub(super) flags: u32,
    pub(super) user_data: Vec<u8>,
    pub(super) rules: Vec<Rule>,
    /// The number of its rules and of the jumps to it.
    pub(super) uses: u32,
    /// Whether a rule owns it, for a chain with `NFT_CHAIN_BINDING`.
    pub(super) bound: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Base {
    pub(super) kind: Name,
    pub(super) hook: u32,
    pub(super) priority: i32,
    pub(super) policy: u32,
    pub(super) devices: Vec<Device>,
}

#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) handle: u64,
    /// The number of the rule among all rules that the table has ever had.
    pub(super) number: u64,
    pub(super) exprs: Vec<StoredExpr>,
    pub(super) user_data: Vec<u8>,
    /// `false` if the transaction in progress deletes the rule: until it commits, the rule's place and handle
    /// can still be referred to.
    pub(super) active: bool,
}

/// An expression and the object that it refers to.
#[derive(Debug, Clone)]
pub(super) struct StoredExpr {
    pub(super) expr: Expr,
    pub(super) refers: Option<Reference>,
}

/// The object that an expression refers to, by handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference {
    Chain(u64),
    Set(u64),
    Object(u64),
    Flowtable(u64),
}

#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) name: Name,
    pub(super) kind: u32,
    pub(super) handle: u64,
    pub(super) uses: u32,
    pub(super) data: Vec<u8>,
    pub(super) user_data: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(super) struct Flowtable {
    pub(super) name: Name,
    pub(super) handle: u64,
    pub(super) uses: u32,
    pub(super) hook: u32,
    pub(super) priority: i32,
    pub(super) flags: u32,
    pub(super) devices: Vec<Device>,
}

impl Default for State {
    fn default() -> Self {
        Self { generation: 1, table_handles: 0, tables: Vec::new() }
    }
}

impl State {
    /// Returns the table that an attribute names, for a change by the sender of the request.
    pub(super) fn table(&mut self, request: &Request<'_>, kind: u16) -> Result<&mut Table, Refusal> {
        let attribute = request.attrs.get(kind);
        let at = self.find_table(request.family, &request.attrs, kind);
        let table = at.map_err(|r| r.at(attribute)).map(|at| self.tables.get_mut(at))?;
        table.ok_or(refusal(Errno::ENOENT))?.for_client(request.port).map_err(|r| r.at(attribute))
    }

    /// Returns the index of the table that an attribute names.
    pub(super) fn find_table(&self, family: u8, attrs: &Attrs<'_>, kind: u16) -> Result<usize, Refusal> {
        let name = attrs.name(kind)?.ok_or(refusal(Errno::EINVAL))?;
        self.tables
            .iter()
            .position(|table| table.family == family && table.name == name)
            .ok_or(refusal(Errno::ENOENT))
    }
}

impl Chain {
    /// Returns the rules except those that the transaction deletes.
    pub(super) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(|rule| rule.active)
    }
}

impl Table {
    /// Creates an empty table.
    pub(super) fn new(family: u8, name: Name, handle: u64) -> Self {
        Self {
            family,
            name,
            handle,
            flags: 0,
            owner: None,
            user_data: Vec::new(),
            handles: 0,
            rules: 0,
            chains: Vec::new(),
            names: Arc::default(),
            sets: Vec::new(),
            objects: Vec::new(),
            flowtables: Vec::new(),
            checks: Checks::None,
            pending: Pending::default(),
        }
    }

    /// Returns the table, unless another socket owns it.
    pub(super) fn for_client(&mut self, port: u32) -> Result<&mut Self, Refusal> {
        if self.is_foreign(port) { Err(refusal(Errno::EPERM)) } else { Ok(self) }
    }

    /// Returns the number of objects in the table. An anonymous set counts until its transaction commits;
    /// then it belongs to its rule.
    pub(super) fn uses(&self) -> usize {
        if self.pending.table_deleted {
            return 0;
        }
        let sets = self.sets.iter().filter(|set| set.is_new || !set.is_anonymous()).count();
        self.chains.len() + sets + self.objects.len() + self.flowtables.len()
    }

    /// Returns whether another socket owns the table.
    pub(super) fn is_foreign(&self, port: u32) -> bool {
        self.owner.is_some_and(|owner| owner != port)
    }

    /// Defers a change to the commit.
    pub(super) fn defer(&mut self, change: Deferred) {
        if let Deferred::Rename { name, .. } = &change {
            self.pending.names.push(name.clone());
        }
        self.pending.steps.push(Step::Apply(change));
    }

    /// Records an event that the commit sends to listeners.
    pub(super) fn record(&mut self, change: Change, subject: Subject) {
        if self.pending.notify {
            self.pending.steps.push(Step::Notify(Event { change, subject }));
        }
    }

    pub(super) fn next_rule(&mut self) -> u64 {
        self.rules += 1;
        self.rules
    }

    pub(super) fn next_handle(&mut self) -> u64 {
        self.handles += 1;
        self.handles
    }

    pub(super) fn need_checks(&mut self) {
        if self.checks == Checks::None {
            self.checks = Checks::AtCommit;
        }
    }

    /// Returns the chain that an attribute names.
    pub(super) fn chain_named(&self, attribute: Option<&Attribute<'_>>) -> Result<&Chain, Refusal> {
        let handle = self.names.get(&*text(attribute)?);
        handle.and_then(|handle| self.chain(*handle)).ok_or(refusal(Errno::ENOENT).at(attribute))
    }

    pub(super) fn has_chain(&self, name: &Name) -> bool {
        self.names.contains_key(name.as_str())
    }

    pub(super) fn chain(&self, handle: u64) -> Option<&Chain> {
        let at = self.chains.binary_search_by_key(&handle, |chain| chain.handle).ok()?;
        self.chains.get(at).map(AsRef::as_ref)
    }

    pub(super) fn chain_mut(&mut self, handle: u64) -> Result<&mut Chain, Refusal> {
        let at = self.chains.binary_search_by_key(&handle, |chain| chain.handle);
        let chain = at.ok().and_then(|at| self.chains.get_mut(at));
        chain.map(Arc::make_mut).ok_or(refusal(Errno::ENOENT))
    }

    /// Adds a chain with a new handle.
    pub(super) fn add_chain(&mut self, chain: Chain) {
        Arc::make_mut(&mut self.names).insert(chain.name.clone(), chain.handle);
        self.chains.push(Arc::new(chain));
    }

    pub(super) fn remove_chain(&mut self, handle: u64) {
        let Ok(at) = self.chains.binary_search_by_key(&handle, |chain| chain.handle) else { return };
        let chain = self.chains.remove(at);
        Arc::make_mut(&mut self.names).remove(chain.name.as_str());
        if self.pending.notify {
            self.pending.deleted.chains.push(chain);
        }
    }

    pub(super) fn rename_chain(&mut self, handle: u64, name: Name) {
        let Ok(chain) = self.chain_mut(handle) else { return };
        let before = std::mem::replace(&mut chain.name, name.clone());
        let names = Arc::make_mut(&mut self.names);
        names.remove(before.as_str());
        names.insert(name, handle);
    }

    /// Returns the set that an attribute names.
    pub(super) fn set_named(&self, attribute: Option<&Attribute<'_>>) -> Result<&Set, Refusal> {
        let name = text(attribute)?;
        self.sets
            .iter()
            .map(AsRef::as_ref)
            .find(|set| set.name.as_str() == name)
            .ok_or(refusal(Errno::ENOENT).at(attribute))
    }

    pub(super) fn set(&self, handle: u64) -> Option<&Set> {
        self.sets.get(self.place_of_set(handle)?).map(AsRef::as_ref)
    }

    pub(super) fn set_mut(&mut self, handle: u64) -> Result<&mut Set, Refusal> {
        let set = self.place_of_set(handle).and_then(|at| self.sets.get_mut(at));
        set.map(Arc::make_mut).ok_or(refusal(Errno::ENOENT))
    }

    pub(super) fn place_of_set(&self, handle: u64) -> Option<usize> {
        self.sets.binary_search_by_key(&handle, |set| set.handle).ok()
    }

    pub(super) fn object_named(
        &self,
        kind: u32,
        attribute: Option<&Attribute<'_>>,
    ) -> Result<&Object, Refusal> {
        let name = text(attribute)?;
        self.objects
            .iter()
            .find(|object| object.kind == kind && object.name.as_str() == name)
            .ok_or(refusal(Errno::ENOENT).at(attribute))
    }

    /// Adds or removes one reference.
    pub(super) fn count(&mut self, reference: Reference, more: bool) {
        let step = |uses: &mut u32| *uses = if more { *uses + 1 } else { uses.saturating_sub(1) };
        match reference {
            Reference::Chain(handle) => {
                if let Ok(chain) = self.chain_mut(handle) {
                    step(&mut chain.uses);
                }
            }
            Reference::Set(handle) => {
                if let Ok(set) = self.set_mut(handle) {
                    step(&mut set.uses);
                }
            }
            Reference::Object(handle) => {
                self.objects.iter_mut().filter(|o| o.handle == handle).for_each(|o| step(&mut o.uses));
            }
            Reference::Flowtable(handle) => {
                self.flowtables.iter_mut().filter(|f| f.handle == handle).for_each(|f| step(&mut f.uses));
            }
        }
    }
}

fn text<'a>(attribute: Option<&Attribute<'a>>) -> Result<Cow<'a, str>, Refusal> {
    let attribute = attribute.ok_or(refusal(Errno::EINVAL))?;
    attribute.text().map_err(|_| refusal(Errno::EINVAL).at(Some(attribute)))
}
