//! Connections by service, as they were read for the scrape.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::serve::counted::Series;

/// The series, and the number of those that are left out; `None` where nothing is counted or known.
pub(super) type Scraped = Arc<Mutex<Option<(Vec<Series>, usize)>>>;

/// The connections to each frontend.
#[derive(Debug)]
pub(super) struct ConnectionMetrics(pub(super) Scraped);

impl Collector for ConnectionMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let scraped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((series, left_out)) = &*scraped else { return Ok(()) };
        let help = "Connections to each frontend of a service";
        let mut family = encoder.encode_descriptor("service_connections", help, None, MetricType::Counter)?;
        for one in series {
            let labels = [
                ("namespace", one.namespace.clone()),
                ("service", one.service.clone()),
                ("port", one.port.clone()),
                ("frontend", one.frontend.to_string()),
            ];
            ConstCounter::new(one.connections).encode(family.encode_family(&labels)?)?;
        }
        let help = "Frontends without a series of their own, of which there are enough";
        let left_out = u32::try_from(*left_out).unwrap_or(u32::MAX);
        let metric = ConstGauge::new(left_out);
        let name = "service_connections_left_out";
        metric.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
    }
}
