//! The errors of building, sending and applying transactions.

mod meaning;
mod path;

use std::borrow::Cow;
use std::fmt;

use sluicegate_netlink::{Batch, DecodeError, Errno, KernelError};

use crate::check::LowerError;
use crate::family::UnknownFamily;
use crate::name::{Name, NameError, NameProblem};
use crate::object::{ChainId, ObjectConfig, Policy};
#[cfg(feature = "text")]
use crate::text::parse::ParseError;
use crate::transaction::{Object, Operation, Target, Transaction};
use crate::wire::tag::untag;
use meaning::{Blame, meaning};
pub use path::AttributePath;

/// The error of a transaction, of reading what the kernel has, and of following its changes. The latter two fail
/// with [`Error::Netlink`] alone.
///
/// Nothing of the transaction has been applied, with two exceptions: [`Error::Rejected`] says how many
/// batches of a split transaction were, and after [`Error::Netlink`] all of it may have been, if it was sent
/// and the answer was lost.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A statement cannot be encoded: the kernel has no expressions for it; a rule looks something up in a
    /// set of another type; elements have another type than their set; a set or an element carries a
    /// statement that has no state; or a `ct timeout` names a state that its protocol does not have.
    #[error("operation {}: {object}: {cause}", .operation + 1)]
    Statement {
        /// Index of the operation in the transaction, from 0.
        operation: usize,
        /// Index of the statement in the rule, from 0; `None` where it is no rule.
        statement: Option<usize>,
        /// The rule as text, or the name of the set, element or object.
        object: String,
        /// The reason.
        cause: Box<LowerError>,
    },
    /// A rule is to go beside one with an index that the chain does not have; or the transaction was encoded
    /// without asking a kernel, and only the kernel knows the existing rules.
    #[error("operation {}: {rule}: {}", .operation + 1, NoIndex(*.rules))]
    Index {
        /// Index of the operation in the transaction, from 0.
        operation: usize,
        /// The rule, as text.
        rule: String,
        /// The number of rules in the chain at that point; `None` if they were not counted.
        rules: Option<usize>,
    },
    /// A chain to rename does not exist; or the transaction was encoded without asking a kernel, and only the
    /// kernel knows the handle of the chain.
    #[error("operation {}: rename chain {chain}: {}", .operation + 1, missing_handle(*.asked))]
    Rename {
        /// Index of the operation in the transaction, from 0.
        operation: usize,
        /// The chain.
        chain: ChainId,
        /// Whether the kernel was asked.
        asked: bool,
    },
    /// The kernel refused operations.
    #[error("{}", Refusals(.failures, *.more, *.applied))]
    Rejected {
        /// The refused operations, each with its cause, in order.
        failures: Vec<Failure>,
        /// Whether errors were lost because the receive buffer was full.
        more: bool,
        /// The number of batches that were applied before, if the transaction had to be split.
        applied: usize,
    },
    /// Another program changed the ruleset since the generation that the transaction was made for
    /// (`ERESTART`).
    #[error("expected generation {expected} of the ruleset, but another program has changed it since")]
    GenerationChanged {
        /// The generation for which the transaction was made.
        expected: u32,
    },
    /// The wanted content of a table contradicts itself, or cannot be encoded
    /// ([`reconcile`](crate::reconcile)); or a transaction does not determine by itself which tables it
    /// creates ([`Transaction::into_content`]).
    #[error("{object}: {problem}")]
    Content {
        /// The name of the object, or the text of the rule.
        object: String,
        /// The reason.
        problem: ContentProblem,
    },
    /// Text is not a valid name or comment. Nothing in this crate returns it: it lets a function that makes
    /// names and applies transactions return one type of error.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A text is not in nft's language; as [`Name`](Self::Name).
    #[error(transparent)]
    #[cfg(feature = "text")]
    Parse(#[from] ParseError),
    /// Sending or receiving failed, the kernel refused a request to read, or its answer is malformed.
    #[error(transparent)]
    Netlink(#[from] sluicegate_netlink::Error),
}

/// The reason why the wanted content of a table is rejected.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContentProblem {
    /// Another object has the same name.
    #[error("there is another one of this name")]
    Twice,
    /// The object names another table or chain than the one that contains it.
    #[error("it is listed in {0}")]
    Elsewhere(String),
    /// A statement cannot be encoded: the kernel has no expressions for it.
    #[error(transparent)]
    Statement(Box<LowerError>),
    /// No operation of the transaction creates the table or chain that the object belongs to.
    #[error("the transaction does not create {0}, which it belongs to")]
    Missing(String),
    /// The operation's effect depends on the kernel's ruleset: it refers to a handle, or to something that
    /// the transaction does not create.
    #[error("what it does depends on what the kernel has")]
    Unknown,
}

/// An operation that the kernel refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// Index of the operation in the transaction, from 0; `None` for the batch as a whole.
    pub operation: Option<usize>,
    /// Index of the element in that operation, from 0, if the operation is about elements.
    pub element: Option<usize>,
    /// The verb of the operation: `add`, `delete` ...
    pub verb: &'static str,
    /// The operation; of elements only the refused one. `None` for the batch as a whole.
    pub refused: Option<Box<Operation>>,
    /// The attribute of the message that caused the error, if the kernel reports one.
    pub attribute: Option<AttributePath>,
    /// The error number that the kernel returned.
    pub error: KernelError,
    /// An explanation of the error for this operation, if known.
    pub meaning: Option<Cow<'static, str>>,
}

impl From<KernelError> for Error {
    fn from(error: KernelError) -> Self {
        Self::Netlink(error.into())
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Self::Netlink(error.into())
    }
}

impl Error {
    /// Returns `true` if something that a transaction or a request refers to does not exist, and no other error
    /// occurred.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Netlink(error) => error.is_not_found(),
            Self::Index { rules, .. } => rules.is_some(),
            Self::Rename { asked, .. } => *asked,
            _ => self.all_errnos(&[Errno::ENOENT]),
        }
    }

    /// Returns `true` if something that a transaction creates exists already, and no other error occurred.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.all_errnos(&[Errno::EEXIST])
    }

    /// Returns the error number with which the kernel, or the socket, refused a request; `None` for the
    /// operations of a transaction, each of which has one of its own in [`failures`](Self::failures).
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Netlink(error) => error.errno(),
            _ => None,
        }
    }

    /// Returns `true` if something is still in use, and no other error occurred.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.all_errnos(&[Errno::EBUSY])
    }

    /// Returns `true` if a capability is missing.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Netlink(error) => error.is_permission_denied(),
            _ => self.all_errnos(&[Errno::EPERM, Errno::EACCES]),
        }
    }

    /// Returns `true` if the ruleset is not of the generation that the transaction was made for.
    #[must_use]
    pub fn is_generation_changed(&self) -> bool {
        matches!(self, Self::GenerationChanged { .. })
    }

    /// Returns the refused operations; empty for errors of another kind.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        match self {
            Self::Rejected { failures, .. } => failures,
            _ => &[],
        }
    }

    pub(crate) fn content(object: impl fmt::Display, problem: ContentProblem) -> Self {
        Self::Content { object: object.to_string(), problem }
    }

    fn all_errnos(&self, errnos: &[Errno]) -> bool {
        let failures = self.failures();
        !failures.is_empty() && failures.iter().all(|failure| errnos.contains(&failure.error.errno))
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
            let meaning = meaning(None, None, None, error.errno);
            return Self {
                operation: None,
                element: None,
                verb: "commit",
                refused: None,
                attribute,
                error,
                meaning,
            };
        };
        let element = operation.elements().and_then(|elements| elements.list.get(position));
        let blame = message.and_then(|(header, payload)| Blame::of(header, payload, attribute.as_ref()));
        let meaning = meaning(Some(operation), element, blame.as_ref(), error.errno);
        let refused = Some(Box::new(operation.with_element(element)));
        let element = element.map(|_| position);
        Self { operation: Some(index), element, verb: operation.verb(), refused, attribute, error, meaning }
    }

    /// Returns the object of the operation in words: `set ip t s`, `element ip t s { 1.2.3.4 }`.
    #[must_use]
    pub fn object(&self) -> String {
        let Some(operation) = self.refused.as_deref() else { return "the batch".to_owned() };
        match operation.elements().map(|elements| elements.list.as_slice()) {
            Some([element]) if self.element.is_some() => {
                format!("{} {{ {element} }}", operation.object())
            }
            _ => operation.object(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = self.operation {
            write!(f, "operation {}: ", operation + 1)?;
        }
        write!(f, "{} {}: ", self.verb, self.object())?;
        match self.error.errno.name() {
            Some(name) => f.write_str(name)?,
            None => write!(f, "error {}", self.error.errno)?,
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

/// Returns whether the refusal may come from a device. The kernel calls the drivers of devices after it has
/// accepted everything else, and then reports their error for the first message of the batch, whatever that
/// one does.
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
    error.errno == Errno::EOPNOTSUPP
        && error.offset.is_none()
        && operations.iter().any(asks)
        && !operations.first().is_some_and(is_chains)
}

/// Implements `Debug` as what the error displays, with its causes: `main` and `unwrap` print that.
macro_rules! readable {
    ($($error:ty)*) => {$(
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                ::sluicegate_netlink::write_error(self, f)
            }
        }
    )*};
}

readable! { Error ContentProblem LowerError NameError NameProblem UnknownFamily }

#[cfg(feature = "text")]
readable! { ParseError }

#[cfg(any(feature = "monitor", feature = "json"))]
pub(crate) use readable;

fn missing_handle(asked: bool) -> &'static str {
    if asked {
        "the kernel has no such chain; one that the same transaction adds has no handle yet"
    } else {
        "the handle of the chain is not known: apply the transaction, or name the handle"
    }
}

struct NoIndex(Option<usize>);

impl fmt::Display for NoIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rules) => write!(f, "the index is out of range: the chain has {rules} rules"),
            None => f.write_str(
                "the rule with this index is not known: apply the transaction, or name the handle",
            ),
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
            (0, true) => f.write_str("\nand others that did not fit the receive buffer")?,
            (hidden, false) => write!(f, "\nand {hidden} more")?,
            (hidden, true) => {
                write!(f, "\nand {hidden} more, and others that did not fit the receive buffer")?;
            }
        }
        if applied > 0 {
            write!(f, "\n{applied} batches of this split transaction were applied before")?;
        }
        Ok(())
    }
}
