//! The tests of the crate from outside: one program, a module for each subject.

mod captured;
mod every_type;
mod examples;
mod guest;
mod kernel;
