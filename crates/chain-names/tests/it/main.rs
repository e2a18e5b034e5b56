//! The tests of the crate from outside: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod allocations;
mod examples;
mod known_values;
mod properties;
mod tools;
