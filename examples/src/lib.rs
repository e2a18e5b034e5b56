//! One short program per task, each in `examples/NAME.rs`: `cargo run -p examples --example NAME`.
