//! The tests of the crate from outside: one program, a module for each subject.

mod examples;
mod legacy;
mod listing;
mod nft;
mod rule;
mod tool;
