//! What can go wrong when a transaction is built, sent and applied.

mod meaning;
mod path;

use std::borrow::Cow;
use std::fmt;

use sluicegate_netlink::{Batch, KernelError, errno_name};

use crate::encode::untag;
use crate::lang::LowerError;
use crate::name::Name;
use crate::object::{ChainId, ObjectConfig, Policy};
use crate::transaction::{Object, Operation, Target, Transaction};
use meaning::{Blame, meaning};
pub use path::AttributePath;

/// An error of a transaction. Nothing of it has been applied, but where [`Error::Rejected`] says so of a split one; after
/// [`Error::Netlink`] it may have been, if it was sent and the answer was lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rule says what the kernel has no expressions for, or looks something up in a set of another type; elements are of another type than their
    /// set; a set or an element carries what has no state; a `ct timeout` names a state that the protocol does not have.
    #[error("operation {}: {object}: {cause}", .operation + 1)]
    Statement {
        /// Which operation of the transaction, from 0.
        operation: usize,
        /// The rule, as text; or the set, its elements or the object, by name.
        object: String,
        /// Why.
        cause: Box<LowerError>,
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
    /// A chain is renamed that the kernel does not have; or the transaction was encoded without asking a kernel, which alone knows the handle
    /// of the chain.
    #[error("operation {}: rename chain {chain}: {}", .operation + 1, no_handle(*.asked))]
    Rename {
        /// Which operation of the transaction, from 0.
        operation: usize,
        /// The chain.
        chain: ChainId,
        /// Whether the kernel was asked.
        asked: bool,
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
#[non_exhaustive]
pub struct Failure {
    /// Which operation of the transaction, from 0; `None` for the batch as a whole.
    pub operation: Option<usize>,
    /// Which element of that operation, from 0, if it is about elements.
    pub element: Option<usize>,
    /// The verb: `add`, `delete` ...
    pub verb: &'static str,
    /// What it is about: `set ip t s`, `element ip t s { 1.2.3.4 }`.
    pub object: String,
    /// The attribute of the message that is to blame, where the kernel says so.
    pub attribute: Option<AttributePath>,
    /// What the kernel said.
    pub error: KernelError,
    /// What that means here, where it is known.
    pub meaning: Option<Cow<'static, str>>,
}

impl Error {
    /// True when something that a transaction names does not exist, and nothing else was wrong.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Index { rules: Some(_), .. } | Self::Rename { asked: true, .. })
            || self.all_codes(&[ENOENT])
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
    pub(crate) fn new(transaction: &Transaction, batch: &Batch, error: KernelError) -> Self {
        let place = batch.object(&error).and_then(untag);
        let message = batch.find(error.sequence);
        let attribute = message
            .zip(error.offset)
            .and_then(|((header, payload), offset)| AttributePath::find(header, payload, offset));
        let found =
            place.and_then(|(index, element)| Some((index, element, transaction.operations().get(index)?)));
        let found = found.filter(|(index, ..)| *index > 0 || !is_of_devices(transaction, &error));
        let Some((index, position, operation)) = found else {
            let meaning = meaning(None, None, None, error.code);
            return Self {
                operation: None,
                element: None,
                verb: "commit",
                object: "the batch".to_owned(),
                attribute,
                error,
                meaning,
            };
        };
        let element = operation.elements().and_then(|elements| elements.list.get(position));
        let object = match element {
            Some(element) => format!("{} {{ {element} }}", operation.object()),
            None => operation.object(),
        };
        let blame = message.and_then(|(header, payload)| Blame::of(header, payload, attribute.as_ref()));
        let meaning = meaning(Some(operation), element, blame.as_ref(), error.code);
        let element = element.map(|_| position);
        Self { operation: Some(index), element, verb: operation.verb(), object, attribute, error, meaning }
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
        if let Some(meaning) = &self.meaning {
            write!(f, " ({meaning})")?;
        }
        if let Some((index, name)) = self.attribute.as_ref().and_then(AttributePath::expression) {
            write!(f, " at expression {} ({name})", index + 1)?;
        }
        match &self.error.message {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

/// What devices refuse is found when all else is taken, and the kernel then blames the first message, whatever that is about.
fn is_of_devices(transaction: &Transaction, error: &KernelError) -> bool {
    let asks = |operation: &Operation| match operation {
        Operation::Add(Object::Chain(chain)) | Operation::Create(Object::Chain(chain)) => {
            chain.base.as_ref().is_some_and(|base| base.offload && base.policy == Some(Policy::Drop))
        }
        Operation::Insert(_) | Operation::Replace(_) => true,
        _ => false,
    };
    let is_chains = |operation: &Operation| match operation {
        Operation::Add(object) | Operation::Create(object) => {
            matches!(object, Object::Chain(_) | Object::Rule(_))
        }
        operation => asks(operation),
    };
    let operations = transaction.operations();
    error.code == EOPNOTSUPP
        && error.offset.is_none()
        && operations.iter().any(asks)
        && !operations.first().is_some_and(is_chains)
}

fn no_handle(asked: bool) -> &'static str {
    if asked {
        "there is no such chain; one that the transaction itself makes has no handle yet"
    } else {
        "the handle of the chain is found by applying only"
    }
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
const ELOOP: i32 = 40;
const ENOTEMPTY: i32 = 39;
pub(crate) const ERESTART: i32 = 85;
const EOPNOTSUPP: i32 = 95;
const EAFNOSUPPORT: i32 = 97;
