//! Judges a tree for its place: what a map, a set or a statement takes.

pub(crate) mod type_check;
