//! Benchmarks, one file per area in `benches/`; each runs its peer in the same run.
//!
//! This library has what several of them need: [`timing`] compares processor times, and [`kernel`] sends
//! batches that are already encoded.

pub mod kernel;
pub mod timing;
