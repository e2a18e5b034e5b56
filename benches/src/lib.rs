//! Benchmarks, one file per area in `benches/`; each runs its peer in the same run.
//!
//! This library has what several of them need: [`timing`] compares processor times, [`kernel`] sends batches
//! that are already encoded, and [`record`] keeps results for `cargo xtask bench`.

pub mod kernel;
pub mod record;
pub mod timing;
