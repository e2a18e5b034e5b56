//! The tests of the crate from outside: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod captured;
mod every_type;
mod examples;
mod guest;
mod kernel;
