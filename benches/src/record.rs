//! Keeps what was measured for `cargo xtask bench`, which makes BENCHMARKS.md of it.
//!
//! Criterion writes its own records. The benchmarks without it call [`keep`].

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;

/// What the values of a record are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds: less is better.
    Nanoseconds,
    /// A rate: more is better.
    PerSecond,
    /// Memory.
    Mebibytes,
    /// How many there are.
    Number,
    /// A part of a hundred.
    Percent,
    /// How many times as much.
    Times,
}

/// Appends a line of JSON to the file `AREA.jsonl` in the directory that `SLUICEGATE_BENCH_RECORDS` names.
/// Without this variable nothing is kept.
///
/// `what` is the work, `who` has done it, `size` says on how much, and each sample is one round.
///
/// # Panics
///
/// If the file cannot be written.
pub fn keep(area: &str, what: &str, who: &str, size: u32, unit: Unit, samples: &[f64]) {
    let Some(directory) = std::env::var_os("SLUICEGATE_BENCH_RECORDS") else { return };
    let unit = match unit {
        Unit::Nanoseconds => "ns",
        Unit::PerSecond => "1/s",
        Unit::Mebibytes => "MiB",
        Unit::Number => "1",
        Unit::Percent => "%",
        Unit::Times => "x",
    };
    let mut list = String::new();
    for (n, sample) in samples.iter().enumerate() {
        let _ = write!(list, "{}{sample}", if n == 0 { "" } else { "," });
    }
    let path = std::path::Path::new(&directory).join(format!("{area}.jsonl"));
    let profile = if cfg!(debug_assertions) { "dev" } else { "bench" };
    let line = format!(
        "{{\"area\":{area:?},\"what\":{what:?},\"who\":{who:?},\"size\":{size},\"unit\":{unit:?},\
         \"profile\":{profile:?},\"samples\":[{list}]}}\n"
    );
    let file = File::options().create(true).append(true).open(&path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
