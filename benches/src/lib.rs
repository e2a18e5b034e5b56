//! Benchmarks, one file per area in `benches/`; each runs its peer in the same run.
//!
//! This library has what several of them need: [`timing`] compares processor times, [`kernel`] sends batches
//! that are already encoded, [`record`] keeps results for `cargo xtask bench`, and [`manifests`] has objects as
//! text.

pub mod kernel;
pub mod manifests;
pub mod record;
pub mod timing;
