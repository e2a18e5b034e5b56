//! Constants: numbers, names and addresses, by the type of what they are compared with.

mod parse;
mod print;

pub(super) use parse::{parse, types};
pub(super) use print::{Bits, Context, element_part, seconds, signed, value};
