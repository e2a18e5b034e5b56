//! Commands: a verb and what it is about.

mod parse;
mod print;
