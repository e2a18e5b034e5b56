//! Elements of sets and maps.

mod parse;
mod print;

pub(super) use parse::{elements as parse_elements, keys};
pub(super) use print::{elements, list};
