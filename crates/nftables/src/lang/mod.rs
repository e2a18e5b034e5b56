//! The rule language as a typed tree. It prints as nft text ([`Display`](std::fmt::Display)) and is lowered to the
//! kernel's expressions; node names are those of libnftables-json(5).

mod bound;
mod constant;
mod expression;
pub mod exthdr;
mod header;
pub(crate) mod lower;
mod print;
pub(crate) mod raise;
mod statement;
mod value;

pub(crate) use bound::write_rule;
pub use bound::{BoundChain, BoundRule};
pub use expression::{
    Binary, BinaryOp, Ct, Elem, Expression, Fib, Inner, Ipsec, Jhash, Map, Mapping, Numgen, Osf, Prefix,
    RawPayload, Rt, Socket, Symhash,
};
pub use header::Payload;
pub use lower::LowerError;
pub(crate) use lower::{stateful, synproxy_expr};
pub(crate) use print::{Time, TypedUpdate, Wording, Words, millis, write_part};
pub use statement::{
    Connlimit, Counter, Dup, Fwd, Last, Limit, Log, Mangle, Match, MatchOp, Meter, Nat, NatTarget,
    ObjectName, ObjectReference, PortNat, Queue, Quota, Reject, SetOp, SetUpdate, Statement, Synproxy,
    TimeUnit, Tproxy, Verdict, Vmap,
};
pub use value::{AddressType, CtState, CtStatus, MptcpSubtype, TcpFlags, Value};
