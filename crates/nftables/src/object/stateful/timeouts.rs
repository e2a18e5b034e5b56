//! The states of connections for which a `ct timeout` object can have a timeout.

use sluicegate_netlink::Protocol;

/// Returns the states of connections of this protocol that have a timeout in `ct timeout`, in the kernel's
/// order (`linux/netfilter/nfnetlink_cttimeout.h`); empty for protocols without a tracker of their own.
#[must_use]
pub fn timeout_states(protocol: Protocol) -> &'static [&'static str] {
    match protocol {
        Protocol::TCP => &[
            "syn_sent",
            "syn_recv",
            "established",
            "fin_wait",
            "close_wait",
            "last_ack",
            "time_wait",
            "close",
            "syn_sent2",
            "retrans",
            "unack",
        ],
        Protocol::UDP | Protocol::UDPLITE | Protocol::GRE => &["unreplied", "replied"],
        Protocol::ICMP | Protocol::ICMPV6 => &["timeout"],
        Protocol::DCCP => &["request", "respond", "partopen", "open", "closereq", "closing", "timewait"],
        Protocol::SCTP => &[
            "closed",
            "cookie_wait",
            "cookie_echoed",
            "established",
            "shutdown_sent",
            "shutdown_recd",
            "shutdown_ack_sent",
            "heartbeat_sent",
            // Not used by the kernel since 2023.
            "heartbeat_acked",
        ],
        _ => &[],
    }
}

/// Returns the kernel's default timeouts for these states, in seconds
/// (`net.netfilter.nf_conntrack_*_timeout`).
pub(crate) fn default_timeouts(protocol: Protocol) -> &'static [u32] {
    match protocol {
        Protocol::TCP => &[120, 60, 432_000, 120, 60, 30, 120, 10, 120, 300, 300],
        Protocol::UDP | Protocol::UDPLITE => &[30, 120],
        Protocol::GRE => &[30, 180],
        Protocol::ICMP | Protocol::ICMPV6 => &[30],
        Protocol::DCCP => &[240, 480, 480, 43_200, 64, 64, 240],
        Protocol::SCTP => &[10, 3, 3, 210, 3, 3, 3, 30, 0],
        _ => &[],
    }
}
