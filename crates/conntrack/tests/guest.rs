//! The tests of `kernel.rs` on other kernels, which differ in what they make of a filter: `cargo xtask test guest` runs
//! this in guests. Linux 6.1 compares IPv6 addresses the wrong way round and has no filtered deletion, 6.12 has and does both.

mod kernel;
