//! The tests of the crate from outside: one program, a module for each subject.

mod cost;
mod diff;
mod examples;
mod parity;
mod quoting;
mod restore;
mod typed;
mod verdicts;
