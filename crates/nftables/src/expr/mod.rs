//! The expressions that the kernel runs (`linux/netfilter/nf_tables.h`): what a typed rule is lowered to, and what a
//! dump gives back.
//!
//! Each works on registers. One table (`table.rs`) says for each its name, its fields and their attributes; encoder and
//! decoder both come from it, so they cannot disagree. An expression without a row is kept as [`Unknown`] and sent back
//! unchanged.

pub(crate) mod data;
mod kinds;
mod table;
pub(crate) mod wire;

pub use data::Data;
pub use kinds::{
    BitwiseOp, ByteorderOp, ChecksumFlags, ChecksumType, CmpOp, CtKey, Direction, DynsetFlags, DynsetOp,
    ExthdrFlags, ExthdrOp, FibFlags, FibResult, HashType, Invert, LimitType, LogFlags, LookupFlags, MetaKey,
    NatFlags, NatType, NumgenMode, ObjectKind, OsfFlags, PayloadBase, QueueFlags, RangeOp, Register,
    RejectType, RtKey, SocketKey, SynproxyFlags, TunnelKey, VerdictCode, XfrmKey,
};
pub use table::*;
