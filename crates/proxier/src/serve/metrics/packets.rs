//! Packet counters of iptables mode, read from nfacct when a scraper asks.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::ConstCounter;
use sluicegate_service_rules::iptables::counters::Counters;
use sluicegate_service_rules::iptables::{INVALID_COUNTER, LOCALHOST_COUNTER};

/// Reads the packet counters of the kernel at each scrape.
///
/// A counter is left out if the kernel does not have it: many kernels are built without nfacct, and the rules
/// that create the counters exist from the first sync on.
#[derive(Debug)]
pub(super) struct PacketCounters;

impl Collector for PacketCounters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Ok(mut counters) = Counters::open() else { return Ok(()) };
        for (counter, name, help) in [
            (
                INVALID_COUNTER,
                "iptables_ct_state_invalid_dropped_packets",
                "Packets dropped to work around conntrack problems",
            ),
            (
                LOCALHOST_COUNTER,
                "iptables_localhost_nodeports_accepted_packets",
                "Packets accepted on node ports of loopback",
            ),
        ] {
            if let Ok(Some(packets)) = counters.packets(counter) {
                let metric = ConstCounter::new(packets);
                metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
            }
        }
        Ok(())
    }
}
