//! The tests of the crate from outside: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod commands;
mod counters;
mod examples;
mod legacy;
mod listing;
mod nft;
mod rule;
mod tool;
