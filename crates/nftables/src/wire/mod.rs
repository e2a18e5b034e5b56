//! What all messages of `nf_tables` have in common: their numbers, and how attributes are declared.

pub(crate) mod attributes;
pub(crate) mod decode;
pub(crate) mod flags;
pub(crate) mod message;
pub(crate) mod tag;
