//! Bytes of all kinds as the kernel's answer about a counter of nfacct: nothing panics, and what is taken for
//! the number of packets stands in the answer.
use sluicegate_netlink::scripted::{self, Script};
use sluicegate_service_rules::iptables::INVALID_COUNTER;
use sluicegate_service_rules::iptables::counters::Counters;

pub(crate) fn run(data: &[u8]) {
    let mut kernel = Script::new();
    let mut answer = data.to_vec();
    // The kernel aligns its messages.
    answer.resize(answer.len().next_multiple_of(4), 0);
    let told = answer.clone();
    answer.extend(scripted::ack(1));
    kernel.expect_any().reply(answer);
    if let Ok(Some(packets)) = Counters::with_transport(kernel).packets(INVALID_COUNTER) {
        assert!(told.windows(8).any(|window| window == packets.to_be_bytes()), "{packets}");
    }
}
