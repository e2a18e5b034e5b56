//! `cargo xtask test|bench|fuzz-smoke|doc`: what continuous integration and people both run.
#![forbid(unsafe_code)]

fn main() {}
