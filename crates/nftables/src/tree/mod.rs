//! The rule language as values: expressions, statements, constants. It judges and converts nothing: `check`
//! judges a tree for its place, `compile` converts it to the kernel's expressions and back, `text` and `json`
//! print and read it. Callers see it as [`lang`](crate::lang).
//!
//! # To add an expression
//!
//! For an expression of the kernel that the language is to support, such as `numgen`:
//!
//! | file | what to add |
//! |---|---|
//! | `expr/table.rs` | a row with its fields and attributes: type, encoder and decoder come from it |
//! | `expr/kinds/numbers.rs`, `flags.rs` | its keys, modes or flags, if it has any |
//! | `expr/mod.rs` | the re-export of these, and a line in the table of the documentation |
//! | `tree/expression.rs` | a variant of [`Expression`], its fields, its type in `part()` |
//! | `tree/mod.rs` | the re-export |
//! | `text/print/expression.rs` | its text |
//! | `text/parse/primary.rs` | the text back |
//! | `json/expression/` | its JSON |
//! | `compile/lower/load.rs` | how it is loaded into a register |
//! | `check/type_check.rs` | whether every version of nft gives it a type |
//! | `name/keywords.rs` | its word, as for a statement |
//! | `compile/lower/imply.rs` | the matches that it implies, if any |
//! | `compile/raise/mod.rs` | the register's content back into the variant |
//! | `object/typeof_data.rs` | how nft stores it in the user data of a `typeof` set |
//! | `fake/validate/` | what the kernel checks when a rule uses it |
//! | `expr/complete.rs` | the attributes that the kernel adds, if any |
//! | `probe/feature.rs` | a feature, if not every supported kernel has it |
//! | `tests/it/kernel/cases/expressions.rs` | rules with it, compared with nft |
//!
//! # To add a statement
//!
//! | file | what to add |
//! |---|---|
//! | `tree/statement.rs` | a variant of [`Statement`] and, if it has fields, its structure |
//! | `tree/mod.rs`, `lang.rs` | the re-export of the structure |
//! | `tree/statements/nodes.rs` | its row, so that a parsed rule can store it packed, in less memory |
//! | `name/keywords.rs` | its word, if nft refuses a chain of that name: its listing could not be loaded |
//! | `text/print/statement.rs` | its text |
//! | `text/parse/statement.rs` | the text back; its word in `STATEMENTS`, where slips are looked up |
//! | `json/statement/print.rs` | its JSON |
//! | `json/statement/parse.rs` | the JSON back, and its word in `WORDS` |
//! | `compile/lower/statement.rs`, `compile/raise/statement.rs` | the expressions of the kernel, both ways |
//! | `check/judge.rs` | how its operands are judged; whether nothing may follow it; which sets it names |
//! | `error/meaning.rs` | the chains in which the kernel takes it, if not in all |
//! | `fake/validate/`, `probe/feature.rs` | as for an expression |
//! | `tests/it/kernel/cases/statements.rs`, `tests/it/trees/statement.rs` | rules with it |
//!
//! The compiler asks for what prints and lowers it. It does not ask for what reads, raises and judges it, nor
//! for the two lists of words: a case in `cases/statements.rs` fails without the former. A statement without
//! fields, whose expression has none either, takes 13 files with its case.
//!
//! If the kernel has an expression of its own for it, the rows of `expr/` above come first, and its name in
//! `expr/sample.rs`, whose test asks for the line of the documentation. A statement that keeps state (as
//! `counter`) is converted by `tree/stateful.rs`, both ways, since elements and sets have it too.
//!
//! # To add a data type
//!
//! | file | what to add |
//! |---|---|
//! | `datatype/mod.rs` | a row: number, name, bits, byte order |
//! | `datatype/symbols.rs` | its named values |
//! | `key/values.rs` | a Rust type for its values, if none fits |
//! | `key/text.rs`, `text/parse/constant.rs`, `json/constant/` | the text of its values |
//! | `tests/it/describe.rs` | nothing: it compares every type with `nft describe` |
//!
//! `object/mod.rs` lists the places to change for a new kind of object.

mod bound;
pub(crate) mod expression;
pub mod exthdr;
mod header;
pub(crate) mod stateful;
pub(crate) mod statement;
pub(crate) mod statements;
pub(crate) mod value;

pub use crate::expr::Verdict;
pub(crate) use bound::write_rule;
pub use bound::{BoundChain, BoundRule};
pub use expression::{
    Binary, BinaryOp, Ct, Elem, Expression, Fib, Inner, Ipsec, Jhash, Map, Mapping, Numgen, Osf, Prefix,
    RawPayload, Rt, Socket, Symhash,
};
pub use header::Payload;
pub(crate) use header::tunnel_of;
#[cfg(feature = "text")]
pub(crate) use statement::BYTE_UNITS;
pub use statement::{
    Connlimit, Counter, Dup, Fwd, Last, Limit, Log, Mangle, Match, MatchOp, Meter, Nat, NatTarget,
    ObjectName, ObjectReference, PortNat, Queue, Quota, Reject, SetOp, SetUpdate, Statement, Synproxy,
    TimeUnit, Tproxy, Vmap,
};
pub use statements::Statements;
pub use value::{
    AddressType, ArpOperation, CtState, CtStatus, IcmpCode, IcmpType, Icmpv6Code, Icmpv6Type, IcmpxCode,
    MptcpSubtype, PacketType, TcpFlags, Value,
};

// The numbers and flags of the kernel that rules name: they are defined with its expressions.
pub use crate::expr::{
    CtKey, Direction, ExthdrOp, FibFlags, FibResult, InnerType, LogFlags, MetaKey, NatFlags, NumgenMode,
    ObjectKind, PayloadBase, RtKey, SocketKey, TunnelKey, XfrmKey,
};
