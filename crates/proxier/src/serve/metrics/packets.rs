//! Packet counters of the rules, read from the kernel when a scraper asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_service_rules::iptables::counters::Counters;
use sluicegate_service_rules::iptables::{INVALID_COUNTER, LOCALHOST_COUNTER};
use sluicegate_service_rules::nftables::rejected_on_localhost;

/// Reads the packet counters of iptables mode, objects of nfacct, at each scrape.
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

/// Reads the packets that nftables mode has rejected on loopback addresses, at each scrape.
///
/// A protocol without a counter is left out: the rules have one for those alone that they reject. The kernel is
/// not asked where the feature gate, of which these rules are, is off.
#[derive(Debug)]
pub(super) struct RejectedPackets {
    pub(super) are_there: Arc<AtomicBool>,
}

impl Collector for RejectedPackets {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        if !self.are_there.load(Ordering::Relaxed) {
            return Ok(());
        }
        let socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default());
        let rejected = socket.ok().and_then(|mut socket| rejected_on_localhost(&mut socket).ok());
        let Some(rejected) = rejected.filter(|rejected| !rejected.is_empty()) else { return Ok(()) };
        let name = "nftables_localhost_nodeport_rejected_packets";
        let help = "Packets to node ports on loopback that were rejected";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (family, protocol, packets) in rejected {
            let labels =
                [("ip_family", family.to_string()), ("protocol", protocol.as_str().to_ascii_uppercase())];
            ConstCounter::new(packets).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
