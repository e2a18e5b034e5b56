//! The rule language as a typed tree. It prints as nft text ([`Display`](std::fmt::Display)) and is lowered to the
//! kernel's expressions; node names are those of libnftables-json(5).

mod constant;
mod expression;
pub mod exthdr;
mod header;
pub(crate) mod lower;
mod lower_statement;
mod print;
pub(crate) mod raise;
pub(crate) mod raise_statement;
mod statement;

pub use expression::{
    AddressType, Binary, BinaryOp, Ct, CtState, CtStatus, Expression, Fib, Ipsec, Jhash, Map, Mapping,
    Numgen, Osf, Prefix, RawPayload, Rt, Socket, Symhash, TcpFlags, Value,
};
pub use header::Payload;
pub use lower::LowerError;
pub(crate) use lower_statement::{stateful, synproxy_expr};
pub(crate) use print::Time;
pub use statement::{
    Connlimit, Counter, Dup, Fwd, Limit, Log, Mangle, Match, MatchOp, Nat, NatTarget, ObjectName,
    ObjectReference, PortNat, Queue, Quota, Reject, SetOp, SetUpdate, Statement, Synproxy, TimeUnit, Tproxy,
    Verdict, Vmap,
};
