//! The tests of `kernel.rs` on other kernels, which treat filters differently: `cargo xtask test guest` runs
//! them in guests. Linux 6.1 inverts the comparison of IPv6 addresses and has no filtered deletion, unlike
//! 6.12.

mod kernel;
