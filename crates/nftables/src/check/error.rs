//! Why a rule cannot be sent.

use crate::name::Name;

/// The reason why a rule cannot be lowered: the kernel has no expressions for it, or would accept it although
/// it never matches.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// A constant has another type, or is too large a number.
    #[error("expected {wanted}, found {value}")]
    Constant {
        /// The constant.
        value: String,
        /// The type that was expected.
        wanted: String,
    },
    /// The value depends on the packet, where the kernel only accepts a constant.
    #[error("expected a constant, found `{expression}`")]
    NotConstant {
        /// The expression.
        expression: String,
    },
    /// The end of a range is below its start.
    #[error("the range {range} ends before it starts")]
    Backwards {
        /// The range.
        range: String,
    },
    /// A prefix is longer than its address.
    #[error("a prefix of {length} bits is longer than its address of {bits}")]
    PrefixLength {
        /// The length of the prefix in bits.
        length: u8,
        /// The length of the address in bits.
        bits: usize,
    },
    /// The kernel cannot do this.
    #[error("{what}: `{expression}`")]
    Unsupported {
        /// The reason.
        what: &'static str,
        /// The expression or statement.
        expression: String,
    },
    /// An expression that is looked up in a set or map, or added to it, has another type than the keys. The
    /// kernel would accept most of these rules, but they would never match. Types are only compared if the
    /// transaction adds the set: the kernel does not store them.
    #[error("`{expression}` is of type {has}, but the keys of @{set} are of type {wanted}")]
    KeyType {
        /// The set or map.
        set: Name,
        /// The expression that is looked up or added.
        expression: String,
        /// The type of the expression, as nft names it.
        has: String,
        /// The type of the keys.
        wanted: String,
    },
    /// The values of a map have another type than their use requires, or than the value that is added. See
    /// [`KeyType`](Self::KeyType).
    #[error("the values of @{map} are of type {has}, not {wanted}")]
    ValueType {
        /// The map.
        map: Name,
        /// The type of its values, as nft names it.
        has: String,
        /// The type that was expected.
        wanted: String,
    },
    /// A statement assigns a value of another type than its key has.
    #[error("`{expression}` is of type {has}, expected {wanted}")]
    GivenType {
        /// The value.
        expression: String,
        /// Its type, as nft names it.
        has: String,
        /// The type of the key.
        wanted: String,
    },
    /// The rule has matched another protocol of the same layer before, so it would never match.
    #[error("`{expression}` is not in packets of {known}, which the rule matches before it")]
    Conflict {
        /// The protocol that the rule matches before.
        known: String,
        /// The expression.
        expression: String,
    },
    /// The statement is not possible in its place: behind what the rule matches before it, or with what it
    /// contains.
    #[error("{message}")]
    Misplaced {
        /// What was expected, and what was found.
        message: String,
        /// What to say instead, if that is known.
        help: Option<String>,
    },
    /// The expression needs more than the sixteen 32-bit registers.
    #[error("`{expression}` needs more than the 64 bytes of registers")]
    Registers {
        /// The expression.
        expression: String,
    },
}
