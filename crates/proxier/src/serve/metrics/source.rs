//! Metrics of the source of objects, computed when a scraper asks.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::serve::sources::Sources;

/// Whether each resource was listed, and the time since it was last heard of.
#[derive(Debug)]
pub(super) struct SourceMetrics(pub(super) Arc<Mutex<Sources>>);

impl Collector for SourceMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let sources = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let now = Instant::now();
        let help = "Whether all objects of the resource were read";
        let mut family = encoder.encode_descriptor("source_synced", help, None, MetricType::Gauge)?;
        for (resource, is_listed, _) in sources.resources(now) {
            let labels = [("resource", resource)];
            ConstGauge::new(u32::from(is_listed)).encode(family.encode_family(&labels)?)?;
        }
        let help = "Time since the API server was last heard of about the resource";
        let mut family =
            encoder.encode_descriptor("source_silence_seconds", help, None, MetricType::Gauge)?;
        for (resource, _, silent) in sources.resources(now) {
            let Some(silent) = silent else { continue };
            let labels = [("resource", resource)];
            ConstGauge::new(silent.as_secs_f64()).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
