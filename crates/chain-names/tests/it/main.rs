//! The tests of the crate from outside: one program, a module for each subject.

mod allocations;
mod known_values;
mod properties;
mod tools;
