//! The tests of the crate from outside: one program, a module for each subject.

mod demo;
#[cfg(feature = "matrix")]
mod guest;
#[cfg(feature = "matrix")]
mod matrix;
mod network;
