//! The tests of the crate from outside: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod allocations;
mod beside;
mod captured;
mod describe;
mod examples;
mod fake;
mod fake_alone;
mod first_rules;
mod following;
#[cfg(feature = "json")]
mod json;
mod kernel;
mod language;
mod parse_cases;
mod rooms;
mod round_trip;
mod tokio;
mod trees;
