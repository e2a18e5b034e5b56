//! One short program per task, each in `examples/NAME.rs`: `cargo run -p examples --example NAME`.

/// The project's README, so that its example is compiled as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
