//! The tests of the crate from outside: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cost;
mod diff;
mod examples;
mod parity;
mod quoting;
mod restore;
mod verdicts;
