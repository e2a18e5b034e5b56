//! The tests of the crate from outside: one program, a module for each subject.

mod examples;
mod kernel;
mod tokio;
