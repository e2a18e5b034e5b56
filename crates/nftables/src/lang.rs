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
//! present, the matches that they imply, and the content of each register. `tests/it/kernel/field_pairs.rs`
//! compares the bytecode and the listing of every pair of header fields in six families with nft's;
//! `tests/it/kernel/cases/` compares the rest.
//!
//! # Differences from nft 1.0.6
//!
//! * nft 1.0.6 merges adjacent comparisons of header fields into one even if that changes the meaning of a
//!   rule: across a counter, for `!=`, and for a match of any of several bits. Later versions fixed the first
//!   two. This crate does not merge in these cases (`compile/lower/merge.rs`), and a test ensures it.
//! * Where the bytecode of nft 1.0.6 does not do what the rule says, `lower` generates bytecode that does:
//!   that of the version with the fix, if there is one. `tests/it/kernel/traffic/order.rs` proves it with
//!   packets, and `MENDED` in `tests/it/kernel/corpus.rs` lists every affected rule of the corpus.
//! * A lookup in a named set or map must be of the set's type, and a map's data of the type where it is used
//!   (`check/type_check.rs`), as far as the transaction itself defines the set: the kernel does not store
//!   types. `tests/it/kernel/set_types.rs` asks nft 1.0.6 for every kind of key and every type; what it or a
//!   later version accepts is never refused. Raw bytes by offset, and sets of integers without an expression,
//!   agree with every type. Of elements only the widths of their parts are compared
//!   (`check/elements.rs`), because not every type of nft has a Rust type of its own.
//!
//! Some words are read that nft 1.0.6 refuses, and mean what they say:
//!
//! | text | |
//! |---|---|
//! | `limit rate until 5/minute`, `policy = { established : 1h }` | as later versions |
//! | `flags dormant,owner` | as later versions |
//! | `policy = {  }` of a `ct timeout` | what nft lists where all times are the kernel's own |
//! | `type day`, `type hour`, `type ct_label` | what nft lists, or later versions read |
//! | `tcp dport << 1 == 4` | a shifted value is a number, as in nft 1.0.7 |
//! | `delete element ip t s { 4-5 }` in the file that adds `1-9` with `auto-merge` | the rest stays |
//! | lines that end with a carriage return | it is a space |
//!
//! Refused, where nft 1.0.6 means other days, dates or numbers than it is told: `meta day "Friday"-"Monday"`,
//! dates before 1970 and from 2554 on, `24:00`, a `burst` above 32 bits.

pub use crate::check::LowerError;
#[cfg(feature = "text")]
pub use crate::text::parse;
pub use crate::tree::{
    AddressType, ArpOperation, Binary, BinaryOp, BoundChain, BoundRule, Connlimit, Counter, Ct, CtKey,
    CtState, CtStatus, Direction, Dup, Elem, Expression, ExthdrOp, Fib, FibFlags, FibResult, Fwd, IcmpCode,
    IcmpType, Icmpv6Code, Icmpv6Type, IcmpxCode, Inner, InnerType, Ipsec, Jhash, Last, Limit, Log, LogFlags,
    Mangle, Map, Mapping, Match, MatchOp, MetaKey, Meter, MptcpSubtype, Nat, NatFlags, NatTarget, Numgen,
    NumgenMode, ObjectKind, ObjectName, ObjectReference, Osf, PacketType, Payload, PayloadBase, PortNat,
    Prefix, Queue, Quota, RawPayload, Reject, Rt, RtKey, SetOp, SetUpdate, Socket, SocketKey, Statement,
    Statements, Symhash, Synproxy, TcpFlags, TimeUnit, Tproxy, TunnelKey, Value, Verdict, Vmap, XfrmKey,
    exthdr,
};
