//! The status bits of a flow.

use bitflags::bitflags;

bitflags! {
    /// The status bits of a flow (`IPS_*` of `linux/netfilter/nf_conntrack_common.h`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Status: u32 {
        /// `IPS_EXPECTED`: the flow was expected because of another one.
        const EXPECTED = 1;
        /// `IPS_SEEN_REPLY`: there were packets in both directions.
        const SEEN_REPLY = 1 << 1;
        /// `IPS_ASSURED`: the flow is not deleted early when the table is full.
        const ASSURED = 1 << 2;
        /// `IPS_CONFIRMED`: it is in the table.
        const CONFIRMED = 1 << 3;
        /// `IPS_SRC_NAT`: its source is to be translated.
        const SRC_NAT = 1 << 4;
        /// `IPS_DST_NAT`: its destination is to be translated.
        const DST_NAT = 1 << 5;
        /// `IPS_SEQ_ADJUST`: TCP sequence numbers are adjusted.
        const SEQ_ADJUST = 1 << 6;
        /// `IPS_SRC_NAT_DONE`: it was decided whether the source is translated.
        const SRC_NAT_DONE = 1 << 7;
        /// `IPS_DST_NAT_DONE`: it was decided whether the destination is translated.
        const DST_NAT_DONE = 1 << 8;
        /// `IPS_DYING`: it is being removed.
        const DYING = 1 << 9;
        /// `IPS_FIXED_TIMEOUT`: packets do not prolong it.
        const FIXED_TIMEOUT = 1 << 10;
        /// `IPS_TEMPLATE`: a template for other flows.
        const TEMPLATE = 1 << 11;
        /// `IPS_NAT_CLASH`.
        const NAT_CLASH = 1 << 12;
        /// `IPS_HELPER`: its helper was assigned explicitly.
        const HELPER = 1 << 13;
        /// `IPS_OFFLOAD`: a flowtable forwards its packets.
        const OFFLOAD = 1 << 14;
        /// `IPS_HW_OFFLOAD`: hardware forwards its packets.
        const HW_OFFLOAD = 1 << 15;

        const _ = !0;
    }
}
