//! Histograms with kube-proxy's buckets.

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

/// Returns a histogram for the time of a sync: 15 buckets from 1 ms to 16 s, each twice the one before.
pub(super) fn sync_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

/// Returns a histogram for the time from a change to the kernel.
///
/// Its buckets end at 0.25 s, 0.5 s, each second up to a minute, every 5 s up to two minutes, and every 30 s
/// up to five minutes.
pub(super) fn programming_histogram() -> Histogram {
    let (seconds, fives, thirties) = (1..60, (60..120).step_by(5), (120..=300).step_by(30));
    let whole = seconds.chain(fives).chain(thirties).map(f64::from);
    Histogram::new([0.25, 0.5].into_iter().chain(whole))
}

/// Returns a histogram for the time until the API server answers, with client-go's buckets.
pub(super) fn request_histogram() -> Histogram {
    Histogram::new([0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0])
}

/// Returns a histogram for the bytes of a request or an answer, with client-go's buckets.
pub(super) fn size_histogram() -> Histogram {
    let buckets = [64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216_u32];
    Histogram::new(buckets.map(f64::from))
}
