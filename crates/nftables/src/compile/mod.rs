//! Converts the tree to the expressions that the kernel runs, and back.

pub(crate) mod lower;
pub(crate) mod raise;

pub use lower::LowerError;
