//! Our bytes against those of libnftnl, the C library that nft itself encodes and decodes with.
//!
//! * `reference::rebuild` lets libnftnl parse a message of ours into its own object and build that again;
//!   what comes out must say the same. So every object, expression and element is checked for being
//!   understood as it was meant.
//! * `reference::attributes_of` asks libnftnl for each attribute of an expression of ours by libnftnl's name
//!   of it, and `reference::rule_of` lets it build one from such: so that no two attributes can be taken for
//!   each other in both directions.
//! * `tree` compares messages by what they say: attributes of one level may come in any order.
//! * `tests/it/expressions.rs` does so with every expression. `tests/it/libnftnl.rs` makes the other comparisons,
//!   writes the same rules with libnftnl's own interface, and lets us read what libnftnl puts into a kernel.
//!
//! libnftnl and libmnl are needed for this, and for nothing else in the workspace: where `build.rs` does not
//! find them this crate is empty, and what is left of its tests is the comparison with neli.
//!
//! This crate alone calls C, and so alone has `unsafe` code, all of it in `reference`.

#[cfg(libnftnl)]
pub mod reference;
#[cfg(libnftnl)]
pub mod tree;
