//! Transactions: operations in order, printed as nft text and applied as a whole.
//!
//! Facts about the kernel that `apply` relies on:
//!
//! * With `NLM_F_ECHO` the kernel sends an event for each change before it acknowledges anything. It has the
//!   sequence number of the operation's message; for elements the number is 0. Therefore
//!   [`Applied::handle`](crate::Applied::handle) works by sequence number, and elements are only in
//!   [`Applied::events`](crate::Applied::events). If the events do not fit the receive buffer, the
//!   transaction is applied nevertheless, and [`Applied::lost`](crate::Applied::lost) is set.
//! * In an interval set a single key without its end stands for all keys up to the next one, and numbers in
//!   host byte order are stored and looked up byte-swapped. The kernel accepts elements and lookups that are
//!   encoded for another kind of set. So the encoder collects the existing sets for which that makes a
//!   difference (`sets_to_query`), `apply` asks the kernel for their flags (`apply/resolve.rs`), with one request
//!   for each set, and encodes again if one of them has intervals.
//! * Of a set with `auto-merge` the kernel stores the flag only. `apply` asks for every set that it does not
//!   know and whose elements it may have to merge, with one request, and reads the elements of those that
//!   merge (`apply/auto_merge.rs`).
//! * On a socket that also receives events of other programs' commits, only messages to the socket's own port
//!   are answers.
//! * The kernel's answer to an operation is an errno, and sometimes an attribute. `error/meaning.rs` decodes
//!   the refused message to explain the error.

mod command;
mod operation;

use std::collections::HashMap;
use std::fmt;

use crate::name::Name;
use crate::object::{ChainId, Element, Elements, Rule, Set, SetId};
pub use command::{Command, Description, MonitorEvent, MonitorFilter, MonitorObject, Subject, Within};
pub use operation::{Flush, HandleId, Object, Operation, Rename, Target};

/// A list of operations, in the order in which the kernel executes them.
///
/// It prints as a script that `nft -f` reads, and is applied as one netlink batch: all operations, or none.
///
/// ```
/// use sluicegate_nftables::{Chain, Family, Table, TableId, Transaction};
///
/// let table = TableId::new(Family::INET, "firewall".parse()?);
/// let mut transaction = Transaction::new();
/// transaction.add(Table::new(table.clone())).add(Chain::new(table.chain("web".parse()?)));
/// assert_eq!(
///     transaction.to_string(),
///     "add table inet firewall\nadd chain inet firewall web\n"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    operations: Vec<Operation>,
    /// Existing sets, for the types of what is looked up in them.
    known: Vec<Set>,
    /// Whether elements are sent as they are, also for sets with `auto-merge`.
    exact: bool,
}

/// Compares only the operations.
impl PartialEq for Transaction {
    fn eq(&self, other: &Self) -> bool {
        self.operations == other.operations
    }
}

impl Eq for Transaction {}

impl Transaction {
    /// Creates a transaction of these operations.
    #[cfg(feature = "text")]
    pub(crate) fn of(operations: Vec<Operation>) -> Self {
        Self { operations, ..Self::default() }
    }

    /// Creates an empty transaction.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object (`add`); it is not an error if it exists. Rules are always added, at the end of their
    /// chain.
    pub fn add(&mut self, object: impl Into<Object>) -> &mut Self {
        self.push(Operation::Add(object.into()))
    }

    /// Creates an object (`create`); it is an error if it exists. For rules this is the same as
    /// [`add`](Self::add).
    pub fn create(&mut self, object: impl Into<Object>) -> &mut Self {
        self.push(Operation::Create(object.into()))
    }

    /// Inserts a rule (`insert rule`) at the start of its chain, or before the rule at its position.
    pub fn insert(&mut self, rule: Rule) -> &mut Self {
        self.push(Operation::Insert(rule))
    }

    /// Replaces the rule with its handle (`replace rule`).
    pub fn replace(&mut self, rule: Rule) -> &mut Self {
        self.push(Operation::Replace(rule))
    }

    /// Renames a chain (`rename chain`). No other chain of the table may have the new name.
    ///
    /// The kernel finds the chain only by its handle. [`apply`](Self::apply) queries it first; if another
    /// program changes the ruleset meanwhile, the kernel refuses the batch, and it is tried again. Prefer
    /// [`rename_handle`](Self::rename_handle) if the handle is known.
    ///
    /// References to the chain remain valid. The other operations of the transaction refer to it by its old
    /// name. A chain that the transaction itself adds has no handle yet, and cannot be renamed by it.
    ///
    /// ```
    /// use sluicegate_nftables::{Family, TableId, Transaction};
    ///
    /// let chain = TableId::new(Family::INET, "filter".parse()?).chain("old".parse()?);
    /// let mut transaction = Transaction::new();
    /// transaction.rename(chain, "new".parse()?);
    /// assert_eq!(transaction.to_string(), "rename chain inet filter old new\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rename(&mut self, chain: ChainId, name: Name) -> &mut Self {
        self.push(Operation::Rename(Rename::new(chain, name)))
    }

    /// Renames the chain with this handle ([`read::Chain::handle`](crate::read::Chain::handle)), as
    /// [`rename`](Self::rename) does, without a query.
    pub fn rename_handle(&mut self, chain: ChainId, handle: u64, name: Name) -> &mut Self {
        self.push(Operation::Rename(Rename::new(chain, name).handle(handle)))
    }

    /// Deletes an object (`delete`); it is an error if it does not exist.
    pub fn delete(&mut self, target: impl Into<Target>) -> &mut Self {
        self.push(Operation::Delete(target.into()))
    }

    /// Deletes an object (`destroy`); it is not an error if it does not exist. Needs Linux 6.3; for older
    /// kernels, add the object and then delete it.
    pub fn destroy(&mut self, target: impl Into<Target>) -> &mut Self {
        self.push(Operation::Destroy(target.into()))
    }

    /// Removes the rules of a chain or of a table's chains, the elements of a set, or the whole ruleset
    /// (`flush`).
    pub fn flush(&mut self, target: impl Into<Flush>) -> &mut Self {
        self.push(Operation::Flush(target.into()))
    }

    /// Adds one element. Successive calls for the same set form one operation.
    pub fn add_element(&mut self, set: &SetId, element: impl Into<Element>) -> &mut Self {
        if let Some(Operation::Add(Object::Elements(last))) = self.operations.last_mut()
            && last.set == *set
        {
            last.list.push(element.into());
            return self;
        }
        self.add(Elements::new(set, [element.into()]))
    }

    /// Deletes one element. Successive calls for the same set form one operation.
    pub fn delete_element(&mut self, set: &SetId, element: impl Into<Element>) -> &mut Self {
        if let Some(Operation::Delete(Target::Elements(last))) = self.operations.last_mut()
            && last.set == *set
        {
            last.list.push(element.into());
            return self;
        }
        self.delete(Elements::new(set, [element.into()]))
    }

    /// Appends an operation.
    pub fn push(&mut self, operation: Operation) -> &mut Self {
        self.operations.push(operation);
        self
    }

    /// Removes the last operation.
    #[cfg(feature = "monitor")]
    pub(crate) fn pop(&mut self) {
        self.operations.pop();
    }

    /// Appends all operations of another transaction.
    pub fn append(&mut self, mut other: Self) -> &mut Self {
        self.operations.append(&mut other.operations);
        self.known.append(&mut other.known);
        self.exact &= other.exact;
        self
    }

    /// Registers an existing set, so that its flags need not be queried, and types are checked against it.
    #[cfg(any(feature = "reconcile", feature = "text"))]
    pub(crate) fn register_set(&mut self, set: Set) {
        self.known.push(set);
    }

    /// Sends elements as they are: none of them has to be merged with those that the kernel has.
    #[cfg(feature = "reconcile")]
    pub(crate) fn set_exact(&mut self) {
        self.exact = true;
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    /// Returns the operations.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    pub(crate) fn into_operations(self) -> Vec<Operation> {
        self.operations
    }

    /// Returns the sets that the transaction creates.
    pub(crate) fn sets(&self) -> HashMap<&SetId, &Set> {
        self.sets_before(self.operations.len())
    }

    /// Returns the sets that the transaction creates, and the registered existing ones.
    pub(crate) fn known_sets(&self) -> HashMap<&SetId, &Set> {
        self.known_before(self.operations.len())
    }

    /// Returns the sets whose definition is known after the first `index` operations.
    pub(crate) fn known_before(&self, index: usize) -> HashMap<&SetId, &Set> {
        let mut sets: HashMap<_, _> = self.known.iter().map(|set| (&set.id, set)).collect();
        sets.extend(self.sets_before(index));
        sets
    }

    /// Returns the sets that the first `index` operations create; the last definition counts.
    fn sets_before(&self, index: usize) -> HashMap<&SetId, &Set> {
        let sets = self.operations.iter().take(index).filter_map(Operation::set);
        sets.map(|set| (&set.id, set)).collect()
    }

    /// Returns the rules that are placed by index.
    pub(crate) fn indexed(&self) -> impl Iterator<Item = &Rule> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Add(Object::Rule(rule))
            | Operation::Create(Object::Rule(rule))
            | Operation::Insert(rule) => (rule.index.is_some() && rule.position.is_none()).then_some(rule),
            _ => None,
        })
    }

    /// Returns the chains that are renamed without a handle, each with the index of its operation.
    pub(crate) fn renamed(&self) -> impl Iterator<Item = (usize, &ChainId)> {
        self.operations.iter().enumerate().filter_map(|(index, operation)| match operation {
            Operation::Rename(Rename { chain, handle: None, .. }) => Some((index, chain)),
            _ => None,
        })
    }

    /// Returns whether there are no operations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

/// Formats the transaction as a script, one operation per line. An operation with an empty list of elements
/// is a comment, because nft cannot read an empty list.
impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operations.iter().try_for_each(|operation| match operation.elements() {
            Some(elements) if elements.list.is_empty() => writeln!(f, "# {operation}"),
            _ => writeln!(f, "{operation}"),
        })
    }
}
