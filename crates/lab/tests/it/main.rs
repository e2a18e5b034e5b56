//! The tests of the crate from outside: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod demo;
#[cfg(feature = "matrix")]
mod guest;
#[cfg(feature = "matrix")]
mod matrix;
mod network;
mod schemas;
mod takeover;
