//! Expressions.

mod parse;
mod print;

pub(super) use parse::{mapping as parse_mapping, of_packet, parse, types_of, verdict, without_shift};
pub(super) use print::{any_of, element, expression, mapping, nft_key, set_name, typed};
