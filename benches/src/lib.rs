//! Benchmarks, one file per area in `benches/`; each runs its peer in the same run.
