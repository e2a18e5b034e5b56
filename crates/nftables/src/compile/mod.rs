//! Converts the tree to the expressions that the kernel runs, and back.

pub(crate) mod constant;
pub(crate) mod lower;
pub(crate) mod raise;
