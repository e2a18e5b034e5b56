//! What can go wrong when a transaction is built, sent and applied.

use std::fmt;

use sluicegate_netlink::{KernelError, errno_name};

use crate::lang::LowerError;
use crate::transaction::{Object, Operation, Target, Transaction};

/// An error of a transaction. Nothing of it has been applied, but where [`Error::Rejected`] says so of a split one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rule says what the kernel has no expressions for.
    #[error("operation {}: {rule}: {cause}", .operation + 1)]
    Statement {
        /// Which operation of the transaction, from 0.
        operation: usize,
        /// The rule, as text.
        rule: String,
        /// Why.
        cause: LowerError,
    },
    /// A rule goes beside one with an index that the chain does not have; or the transaction was encoded without asking a kernel, which
    /// alone knows the rules that there are.
    #[error("operation {}: {rule}: {}", .operation + 1, NoIndex(*.rules))]
    Index {
        /// Which operation of the transaction, from 0.
        operation: usize,
        /// The rule, as text.
        rule: String,
        /// How many rules the chain has then; `None` where they were not counted.
        rules: Option<usize>,
    },
    /// The kernel refused operations.
    #[error("{}", Refusals(.failures, *.more, *.applied))]
    Rejected {
        /// Each with its cause, in order.
        failures: Vec<Failure>,
        /// Whether there were more than the receive buffer held.
        more: bool,
        /// Batches that had been applied before, where a change had to be split.
        applied: usize,
    },
    /// Somebody else changed the ruleset since the generation that the transaction was made for (`ERESTART`).
    #[error("the ruleset is no longer of generation {expected}: somebody else has changed it")]
    GenerationChanged {
        /// The generation that was asked for.
        expected: u32,
    },
    /// Sending or receiving failed.
    #[error(transparent)]
    Netlink(#[from] sluicegate_netlink::Error),
}

/// An operation that the kernel refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Which operation of the transaction, from 0; `None` for the batch as a whole.
    pub operation: Option<usize>,
    /// Which element of that operation, from 0, if it is about elements.
    pub element: Option<usize>,
    /// The verb: `add`, `delete` ...
    pub verb: &'static str,
    /// What it is about: `set ip t s`, `element ip t s { 1.2.3.4 }`.
    pub object: String,
    /// What the kernel said.
    pub error: KernelError,
    /// What that means here, where it is known.
    pub meaning: Option<&'static str>,
}

impl Error {
    /// True when something that a transaction names does not exist, and nothing else was wrong.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Index { rules: Some(_), .. }) || self.all_codes(&[ENOENT])
    }

    /// True when something that a transaction creates exists already, and nothing else was wrong.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.all_codes(&[EEXIST])
    }

    /// True when something is still in use, and nothing else was wrong.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.all_codes(&[EBUSY])
    }

    /// True when a capability is missing.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Netlink(error) => error.is_permission_denied(),
            _ => self.all_codes(&[EPERM, EACCES]),
        }
    }

    /// True when the ruleset is of another generation than the transaction was made for.
    #[must_use]
    pub fn is_generation_changed(&self) -> bool {
        matches!(self, Self::GenerationChanged { .. })
    }

    /// The refused operations; empty for errors of another kind.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        match self {
            Self::Rejected { failures, .. } => failures,
            _ => &[],
        }
    }

    fn all_codes(&self, codes: &[i32]) -> bool {
        let failures = self.failures();
        !failures.is_empty() && failures.iter().all(|failure| codes.contains(&failure.error.code))
    }
}

impl Failure {
    pub(crate) fn new(transaction: &Transaction, place: Option<(usize, usize)>, error: KernelError) -> Self {
        let found =
            place.and_then(|(index, element)| Some((index, element, transaction.operations().get(index)?)));
        let Some((index, position, operation)) = found else {
            let meaning = meaning(None, error.code);
            return Self {
                operation: None,
                element: None,
                verb: "commit",
                object: "the batch".to_owned(),
                error,
                meaning,
            };
        };
        let element = elements_of(operation).and_then(|elements| elements.list.get(position));
        let object = match element {
            Some(element) => format!("{} {{ {element} }}", operation.object()),
            None => operation.object(),
        };
        let meaning = meaning(Some(operation), error.code);
        let element = element.map(|_| position);
        Self { operation: Some(index), element, verb: operation.verb(), object, error, meaning }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = self.operation {
            write!(f, "operation {}: ", operation + 1)?;
        }
        write!(f, "{} {}: ", self.verb, self.object)?;
        match errno_name(self.error.code) {
            Some(name) => f.write_str(name)?,
            None => write!(f, "error {}", self.error.code)?,
        }
        if let Some(meaning) = self.meaning {
            write!(f, " ({meaning})")?;
        }
        match &self.error.message {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

fn elements_of(operation: &Operation) -> Option<&crate::object::Elements> {
    match operation {
        Operation::Add(Object::Elements(elements)) | Operation::Create(Object::Elements(elements)) => {
            Some(elements)
        }
        Operation::Delete(Target::Elements(elements)) | Operation::Destroy(Target::Elements(elements)) => {
            Some(elements)
        }
        _ => None,
    }
}

/// What an error number means for what was asked. The kernel itself says next to nothing.
fn meaning(operation: Option<&Operation>, code: i32) -> Option<&'static str> {
    use Operation::{Add, Create, Delete, Destroy, Flush, Insert, Rename, Replace};
    let Some(operation) = operation else {
        return match code {
            EPERM => Some("CAP_NET_ADMIN is missing in the namespace of this network"),
            ENOMEM => Some("the kernel is out of memory"),
            _ => None,
        };
    };
    Some(match (operation, code) {
        (_, EPERM) => "CAP_NET_ADMIN is missing, or the table belongs to another process",
        (_, EACCES) => "not permitted",
        (_, ENOMEM) => "the kernel is out of memory",
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), ENOENT) => {
            "the table, the set, or the chain or object that the element names does not exist"
        }
        (Add(Object::Elements(_)), EEXIST) => {
            "the key is there with other data, or its interval overlaps another"
        }
        (Create(Object::Elements(_)), EEXIST) => {
            "the element exists already, or its interval overlaps another"
        }
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), ENFILE) => {
            "the set is full: its size is reached"
        }
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), EBUSY) => {
            "the set is constant and in use, or has no room for this element now"
        }
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), ENOTEMPTY) => {
            "the interval overlaps another"
        }
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), EINVAL) => {
            "the key or data is not of the set's type and length, or the set lacks a flag that this needs"
        }
        (Delete(Target::Elements(_)), ENOENT) => "the table, the set or the element does not exist",
        (Add(Object::Rule(_)) | Create(_) | Insert(_) | Replace(_), EMLINK) => {
            "the jumps make a loop, or nest too deeply"
        }
        (_, EMLINK) => "the jumps make a loop, or nest too deeply",
        (Add(Object::Rule(_)) | Create(Object::Rule(_)) | Insert(_) | Replace(_), ENOENT) => {
            "the table, the chain, the rule's handle, a set or chain that it names, or one of its expressions does not exist in this kernel"
        }
        (Add(Object::Rule(_)) | Create(Object::Rule(_)) | Insert(_) | Replace(_), EOPNOTSUPP) => {
            "an expression is not possible in this chain's family, type or hook"
        }
        (Add(Object::Rule(_)) | Create(Object::Rule(_)) | Insert(_) | Replace(_), EINVAL) => {
            "an expression is refused: a wrong type, length or register"
        }
        (Add(Object::Set(_)) | Create(Object::Set(_)), EEXIST) => {
            "it exists already, or with another type or other flags"
        }
        (Add(Object::Chain(_)), EEXIST) => "the chain exists with another type, hook or priority",
        (Add(Object::Chain(_)) | Create(Object::Chain(_)), EOPNOTSUPP) => {
            "there is no such hook or chain type for this family"
        }
        (Create(_), EEXIST) => "it exists already",
        (Add(_) | Create(_), ENOENT) => "its table does not exist, or the kernel lacks what it needs",
        (Add(_) | Create(_) | Insert(_) | Replace(_), ERANGE) => {
            "a name is too long, or a number out of range"
        }
        (Rename(_), ENOENT) => "the table, or a chain with this handle in it, does not exist",
        (Rename(_), EEXIST) => "a chain of the table has the new name already",
        (Rename(_), ERANGE) => "the new name is too long",
        (Delete(Target::Chain(_)), EBUSY) => {
            "rules or map elements still jump to the chain, or it has rules that were not flushed"
        }
        (Delete(Target::Set(_)), EBUSY) => "rules still use the set",
        (Delete(_), EBUSY) => "it is still in use",
        (Delete(_) | Flush(_), ENOENT) => "it does not exist",
        (Destroy(_), EINVAL) => "this kernel has no destroy (it came with Linux 6.3): add it, then delete it",
        (Delete(_) | Destroy(_), EOPNOTSUPP) => "it cannot be deleted so",
        _ => return None,
    })
}

struct NoIndex(Option<usize>);

impl fmt::Display for NoIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rules) => write!(f, "no such index: the chain has {rules} rules"),
            None => f.write_str("an index is found by applying only"),
        }
    }
}

struct Refusals<'a>(&'a [Failure], bool, usize);

impl Refusals<'_> {
    const SHOWN: usize = 10;
}

impl fmt::Display for Refusals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(failures, more, applied) = *self;
        for (i, failure) in failures.iter().take(Self::SHOWN).enumerate() {
            write!(f, "{}{failure}", if i > 0 { "\n" } else { "" })?;
        }
        match (failures.len().saturating_sub(Self::SHOWN), more) {
            (0, false) => {}
            (0, true) => f.write_str("\nand more than the receive buffer held")?,
            (hidden, false) => write!(f, "\nand {hidden} more")?,
            (hidden, true) => write!(f, "\nand {hidden} more, and more than the receive buffer held")?,
        }
        if applied > 0 {
            write!(f, "\n{applied} batches of this split transaction had been applied before")?;
        }
        Ok(())
    }
}

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const ENOMEM: i32 = 12;
const EACCES: i32 = 13;
const EBUSY: i32 = 16;
const EEXIST: i32 = 17;
const EINVAL: i32 = 22;
const ENFILE: i32 = 23;
const EMLINK: i32 = 31;
const ERANGE: i32 = 34;
const ENOTEMPTY: i32 = 39;
pub(crate) const ERESTART: i32 = 85;
const EOPNOTSUPP: i32 = 95;
