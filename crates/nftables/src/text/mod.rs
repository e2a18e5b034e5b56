//! The tree as nft's text: printed and read.

#[cfg(feature = "text")]
pub mod parse;
pub(crate) mod print;
