//! Wanted tables against the kernel's: random pairs of rulesets on the fake and on the real kernel, and each
//! object by itself.
//!
//! `SLUICEGATE_RECONCILE_CASES` asks for more random pairs than the few of a usual run.

mod objects;
mod pairs;
mod syncing;
