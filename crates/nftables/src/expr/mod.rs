//! The kernel's expressions (`linux/netfilter/nf_tables.h`): the bytecode that a typed rule is lowered to,
//! and that a listing is decoded from.
//!
//! Expressions work on registers. One table (`table.rs`) has the name, the fields and the attributes of each;
//! encoder and decoder are both generated from it (`define.rs`), so they cannot disagree. An expression
//! without a row, or with an attribute (at any depth) that its row does not have, is preserved as [`Unknown`]
//! and sent back unchanged.
//!
//! | expression | in the typed language ([`lang`](crate::lang)) |
//! |---|---|
//! | `payload` | `Expression::Payload`, `RawPayload`; written: `Statement::Mangle` |
//! | `cmp` | `Statement::Match` |
//! | `bitwise` | `Expression::Binary`, prefixes, bit fields |
//! | `byteorder` | implied by order comparisons of numbers in host order |
//! | `range` | `Statement::Match` with a range |
//! | `lookup` | `Statement::Match` with a set, `Expression::Map`, `Statement::Vmap` |
//! | `immediate` | `Expression::Value`, `Statement::Verdict`, `Statement::Bound` |
//! | `meta` | `Expression::Meta`; set: `Statement::Mangle` |
//! | `ct` | `Expression::Ct`; set: `Statement::Mangle` |
//! | `rt` | `Expression::Rt` |
//! | `socket` | `Expression::Socket` |
//! | `osf` | `Expression::Osf` |
//! | `fib` | `Expression::Fib` |
//! | `numgen` | `Expression::Numgen` |
//! | `hash` | `Expression::Jhash`, `Expression::Symhash` |
//! | `xfrm` | `Expression::Ipsec` |
//! | `tunnel` | `Expression::Tunnel` |
//! | `exthdr` | `Expression::Exthdr`; written: `Statement::Mangle`; removed: `Statement::ResetOption` |
//! | `inner` | `Expression::Inner`; of a tunnel's own header: `Expression::Payload` |
//! | `nat` | `Statement::Dnat`, `Statement::Snat` |
//! | `masq` | `Statement::Masquerade` |
//! | `redir` | `Statement::Redirect` |
//! | `reject` | `Statement::Reject` |
//! | `tproxy` | `Statement::Tproxy` |
//! | `dup` | `Statement::Dup` |
//! | `fwd` | `Statement::Fwd` |
//! | `queue` | `Statement::Queue` |
//! | `counter` | `Statement::Counter` |
//! | `quota` | `Statement::Quota` |
//! | `limit` | `Statement::Limit` |
//! | `last` | `Statement::Last` |
//! | `log` | `Statement::Log` |
//! | `connlimit` | `Statement::Connlimit` |
//! | `dynset` | `Statement::Set`, `Statement::Meter` |
//! | `notrack` | `Statement::Notrack` |
//! | `objref` | `Statement::Object` |
//! | `flow_offload` | `Statement::FlowAdd` |
//! | `synproxy` | `Statement::Synproxy` |
//! | `match` | low level only: a module of xtables |
//! | `target` | low level only: a module of xtables |
//!
//! Low-level expressions go into a rule as [`Statement::Raw`](crate::lang::Statement::Raw).

mod bytes;
pub(crate) mod complete;
pub(crate) mod data;
pub(crate) mod define;
mod kinds;
pub(crate) mod register;
#[cfg(test)]
pub(crate) mod sample;
mod table;
#[cfg(test)]
mod unknown_tests;
mod verdict;
pub(crate) mod wire;

pub use bytes::Bytes;
pub use data::Data;
pub(crate) use data::decode_verdict;
pub use define::Unknown;
pub use kinds::{
    BitwiseOp, ByteorderOp, ChecksumFlags, ChecksumType, CmpOp, CtKey, Direction, DynsetFlags, DynsetOp,
    ExthdrFlags, ExthdrOp, FibFlags, FibResult, HashType, InnerFlags, InnerType, Invert, LimitType, LogFlags,
    LookupFlags, MetaKey, NatFlags, NatType, NumgenMode, ObjectKind, OsfFlags, PayloadBase, QueueFlags,
    RangeOp, Register, RejectType, RtKey, SocketKey, SynproxyFlags, TunnelKey, VerdictCode, XfrmKey,
};
pub use table::Expr;
pub use verdict::Verdict;
// Inside of the crate the structs are told apart from the nodes of `lang` by `expr::`.
pub(crate) use kind::*;

/// The kernel's expressions, one struct each, with the fields of its attributes.
///
/// They are in a module of their own because many have the same name as a node of [`lang`](crate::lang):
/// `expr::kind::Counter` is what the kernel runs, [`lang::Counter`](crate::lang::Counter) what a rule says.
pub mod kind {
    pub use crate::expr::table::{
        Bitwise, Byteorder, Cmp, Connlimit, Counter, Ct, Dup, Dynset, Exthdr, Fib, FlowOffload, Fwd, Hash,
        Immediate, Inner, Last, Limit, Log, Lookup, Masq, Meta, Nat, Notrack, Numgen, Objref, Osf, Payload,
        Queue, Quota, Range, Redir, Reject, Rt, Socket, Synproxy, Tproxy, Tunnel, Xfrm, XtMatch, XtTarget,
    };
}
