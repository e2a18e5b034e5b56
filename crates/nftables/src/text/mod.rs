//! The tree as nft's text: printed and read.

pub mod parse;
pub(crate) mod print;
