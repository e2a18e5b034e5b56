//! The rule language as a typed tree: what a rule matches and does, in the terms of nft(8).
//!
//! Values convert from what Rust has for them:
//!
//! | in Rust | in nft |
//! |---|---|
//! | `22`, `Port(22)`, `Ipv4Addr`, `"eth0"` | a constant |
//! | `[80, 443]` | `{ 80, 443 }` |
//! | `1024..=65535` | `1024-65535` |
//! | `&set` (a [`SetId`](crate::SetId) or a [`Name`](crate::Name)) | `@set` |
//! | `[Payload::IP_SADDR, Payload::IP_DADDR]`, `(MetaKey::IIFNAME, Payload::IP_SADDR)` | `a . b` |
//!
//! A rule is a list of [`Statement`]s, most of which contain [`Expression`]s; both have the names of
//! libnftables-json(5). The tree is printed as nft's text, read from it ([`parse`]), and is converted to and
//! from the expressions that the kernel runs ([`expr`](crate::expr)):
//!
//! | module | from | to |
//! |---|---|---|
//! | `print` | tree | nft text: valid input of `nft -f`, in the form that `nft list` prints |
//! | [`parse`] | nft text | tree |
//! | `lower` | tree | the kernel's expressions, in the order in which nft 1.0.6 generates them |
//! | `raise` | the kernel's expressions | tree as nft lists it, or [`Statement::Raw`] |
//!
//! `lower` and `raise` process a rule from left to right, keeping track of the headers that are known to be
//! present, the matches that they imply, and the content of each register. `tests/kernel/field_pairs.rs`
//! compares the bytecode and the listing of every pair of header fields in six families with nft's;
//! `tests/kernel/cases/` compares the rest.
//!
//! # Differences from nft 1.0.6
//!
//! * nft 1.0.6 merges adjacent comparisons of header fields into one even if that changes the meaning of a
//!   rule: across a counter, for `!=`, and for a match of any of several bits. Later versions fixed the first
//!   two. This crate does not merge in these cases (`lower/merge.rs`), and a test ensures it.
//! * Where the bytecode of nft 1.0.6 does not do what the rule says, `lower` generates bytecode that does:
//!   that of the version with the fix, if there is one. `tests/kernel/traffic/order.rs` proves it with
//!   packets, and `MENDED` in `tests/kernel/corpus.rs` lists every affected rule of the corpus.
//! * A lookup in a named set or map must be of the set's type, and a map's data of the type where it is used
//!   (`lower/type_check.rs`), as far as the transaction itself defines the set: the kernel does not store
//!   types. `tests/kernel/set_types.rs` asks nft 1.0.6 for every kind of key and every type; what it or a
//!   later version accepts is never refused. Raw bytes by offset, and sets of integers without an expression,
//!   agree with every type. Of elements only the widths of their parts are compared
//!   (`object/element/mismatch.rs`), because not every type of nft has a Rust type of its own.
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
//! | `lang/expression.rs` | a variant of [`Expression`], its fields, its type in `part()` |
//! | `lang/mod.rs` | the re-export |
//! | `lang/print/expression.rs` | its text |
//! | `lang/parse/primary.rs` | the text back |
//! | `json/expression/` | its JSON |
//! | `lang/lower/load.rs` | how it is loaded into a register |
//! | `lang/lower/type_check.rs` | whether every version of nft gives it a type |
//! | `lang/lower/imply.rs` | the matches that it implies, if any |
//! | `lang/raise/mod.rs` | the register's content back into the variant |
//! | `object/typeof_data.rs` | how nft stores it in the user data of a `typeof` set |
//! | `fake/validate/` | what the kernel checks when a rule uses it |
//! | `fake/complete.rs` | the attributes that the kernel adds, if any |
//! | `probe/feature.rs` | a feature, if not every supported kernel has it |
//! | `tests/kernel/cases/expressions.rs` | rules with it, compared with nft |
//!
//! # To add a statement
//!
//! As above, with a variant of [`Statement`] in `lang/statement.rs` instead; `lang/lower/statement.rs`,
//! `lang/raise/statement.rs`, `lang/print/statement.rs`, `lang/parse/statement.rs` and `json/statement/`
//! handle it. A statement that keeps state (as `counter`) is also lowered by `stateful` in
//! `lang/lower/statement.rs`.
//!
//! # To add a data type
//!
//! | file | what to add |
//! |---|---|
//! | `datatype/mod.rs` | a row: number, name, bits, byte order |
//! | `datatype/symbols.rs` | its named values |
//! | `key/values.rs` | a Rust type for its values, if none fits |
//! | `lang/print/value.rs`, `lang/parse/constant.rs`, `json/constant/` | the text of its values |
//! | `tests/describe.rs` | nothing: it compares every type with `nft describe` |
//!
//! `object/mod.rs` lists the places to change for a new kind of object.

mod bound;
mod constant;
mod expression;
pub mod exthdr;
mod header;
pub(crate) mod lower;
pub mod parse;
mod print;
pub(crate) mod raise;
mod statement;
mod statements;
mod value;

pub(crate) use bound::write_rule;
pub use bound::{BoundChain, BoundRule};
pub use expression::{
    Binary, BinaryOp, Ct, Elem, Expression, Fib, Inner, Ipsec, Jhash, Map, Mapping, Numgen, Osf, Prefix,
    RawPayload, Rt, Socket, Symhash,
};
pub use header::Payload;
pub use lower::LowerError;
#[cfg(feature = "json")]
pub(crate) use lower::set_element;
pub(crate) use lower::{stateful, synproxy_expr};
#[cfg(feature = "json")]
pub(crate) use print::{Inet6, prefix_of, write_number};
pub(crate) use print::{TypedUpdate, Wording, Words, millis, write_part};
pub use statement::{
    Connlimit, Counter, Dup, Fwd, Last, Limit, Log, Mangle, Match, MatchOp, Meter, Nat, NatTarget,
    ObjectName, ObjectReference, PortNat, Queue, Quota, Reject, SetOp, SetUpdate, Statement, Synproxy,
    TimeUnit, Tproxy, Verdict, Vmap,
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
