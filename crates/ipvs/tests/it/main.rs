//! The tests of the crate from outside: one program, a module for each subject.

mod captured;
mod examples;
mod guest;
mod properties;
mod scripted;
