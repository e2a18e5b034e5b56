//! Sets and maps.

mod parse;
mod print;

pub(super) use parse::parse;
pub(super) use print::set;
