//! Transactions: operations in order, that print as nft text and are applied as a whole.

mod operation;

use std::collections::HashMap;
use std::fmt;

use crate::name::Name;
use crate::object::{ChainId, Element, Elements, Rule, Set, SetId};
pub use operation::{Flush, HandleId, Object, Operation, Rename, Target};

/// Operations in the order in which the kernel is to take them.
///
/// Printed, it is a script that `nft -f` reads; applied, it is one netlink batch. Nothing of it happens unless all of it
/// can.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transaction {
    operations: Vec<Operation>,
}

impl Transaction {
    /// Without operations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `add`: makes something; no error where it exists already. Rules are always made, at the end of their chain.
    pub fn add(&mut self, object: impl Into<Object>) -> &mut Self {
        self.push(Operation::Add(object.into()))
    }

    /// `create`: makes something; an error where it exists already. For rules as [`add`](Self::add).
    pub fn create(&mut self, object: impl Into<Object>) -> &mut Self {
        self.push(Operation::Create(object.into()))
    }

    /// `insert rule`: makes a rule at the start of its chain, or before the rule at its position.
    pub fn insert(&mut self, rule: Rule) -> &mut Self {
        self.push(Operation::Insert(rule))
    }

    /// `replace rule`: puts a rule in the place of the one with its handle.
    pub fn replace(&mut self, rule: Rule) -> &mut Self {
        self.push(Operation::Replace(rule))
    }

    /// `rename chain`: gives a chain another name, which no other chain of the table may have.
    ///
    /// The kernel finds the chain by its handle alone: [`apply`](Self::apply) asks for it first, and has the batch refused, and starts again,
    /// where somebody else changed the ruleset meanwhile. Prefer [`rename_handle`](Self::rename_handle) where the handle is known.
    ///
    /// What refers to the chain keeps doing so. The other operations of the transaction still know it by its old name. A chain that
    /// the transaction itself makes has no handle yet and cannot be renamed by it.
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
        self.push(Operation::Rename(Rename { chain, handle: None, name }))
    }

    /// `rename chain`: gives the chain with this handle ([`read::Chain::handle`](crate::read::Chain::handle)) another name. As
    /// [`rename`](Self::rename), without asking for the handle.
    pub fn rename_handle(&mut self, chain: ChainId, handle: u64, name: Name) -> &mut Self {
        self.push(Operation::Rename(Rename { chain, handle: Some(handle), name }))
    }

    /// `delete`: an error where it does not exist.
    pub fn delete(&mut self, target: impl Into<Target>) -> &mut Self {
        self.push(Operation::Delete(target.into()))
    }

    /// `destroy`: deletes; no error where it does not exist. Needs Linux 6.3; elsewhere, add and then delete.
    pub fn destroy(&mut self, target: impl Into<Target>) -> &mut Self {
        self.push(Operation::Destroy(target.into()))
    }

    /// `flush`: removes what it holds.
    pub fn flush(&mut self, target: impl Into<Flush>) -> &mut Self {
        self.push(Operation::Flush(target.into()))
    }

    /// Adds one element; one after the other to the same set become one operation.
    pub fn add_element(&mut self, set: &SetId, element: impl Into<Element>) -> &mut Self {
        if let Some(Operation::Add(Object::Elements(last))) = self.operations.last_mut()
            && last.set == *set
        {
            last.list.push(element.into());
            return self;
        }
        self.add(Elements::new(set, [element.into()]))
    }

    /// Deletes one element; one after the other from the same set become one operation.
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

    /// Takes back the last operation.
    pub(crate) fn pop(&mut self) {
        self.operations.pop();
    }

    /// Appends all operations of another transaction.
    pub fn append(&mut self, mut other: Self) -> &mut Self {
        self.operations.append(&mut other.operations);
        self
    }

    /// The operations.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The sets that it makes.
    pub(crate) fn sets(&self) -> HashMap<&SetId, &Set> {
        self.sets_before(self.operations.len())
    }

    /// The sets that its first operations make: each as it was made last.
    pub(crate) fn sets_before(&self, index: usize) -> HashMap<&SetId, &Set> {
        let mut sets = HashMap::new();
        for operation in self.operations.iter().take(index) {
            if let Operation::Add(Object::Set(set)) | Operation::Create(Object::Set(set)) = operation {
                sets.insert(&set.id, set);
            }
        }
        sets
    }

    /// The rules that are placed by counting.
    pub(crate) fn indexed(&self) -> impl Iterator<Item = &Rule> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Add(Object::Rule(rule))
            | Operation::Create(Object::Rule(rule))
            | Operation::Insert(rule) => (rule.index.is_some() && rule.position.is_none()).then_some(rule),
            _ => None,
        })
    }

    /// The chains that are renamed without a handle, each with its operation.
    pub(crate) fn renamed(&self) -> impl Iterator<Item = (usize, &ChainId)> {
        self.operations.iter().enumerate().filter_map(|(index, operation)| match operation {
            Operation::Rename(Rename { chain, handle: None, .. }) => Some((index, chain)),
            _ => None,
        })
    }

    /// Whether there is no operation.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

/// A set or map among those that a transaction makes. Kernel and nft's text do not care by which of the two words an element names it.
pub(crate) fn known<'s>(sets: &HashMap<&SetId, &'s Set>, id: &SetId) -> Option<&'s Set> {
    let other = || SetId { map: !id.map, ..id.clone() };
    sets.get(id).or_else(|| sets.get(&other())).copied()
}

/// The whole script, one operation a line. One about no elements is a remark: nft reads no empty list.
impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operations.iter().try_for_each(|operation| match operation.elements() {
            Some(elements) if elements.list.is_empty() => writeln!(f, "# {operation}"),
            _ => writeln!(f, "{operation}"),
        })
    }
}
