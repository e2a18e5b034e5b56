//! Tables, chains, rules and the other objects of a ruleset.

mod parse;
mod print;
mod tunnel;

pub(super) use parse::{
    KINDS, chain as parse_chain, checked_name, comment, devices, family, flags, flowtable as parse_flowtable,
    handle, name, own_name, rule as parse_rule, seconds, stateful as parse_stateful, table as parse_table,
    table_id,
};
pub use print::ruleset;
pub(super) use print::{chain, device_names, flowtable, rule, stateful, table, time};
