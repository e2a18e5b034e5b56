//! Matches of addresses and interfaces.

use crate::typed::{Addresses, Flag, List, MacAddress, Not, typed};

typed! {
    /// Types of the addresses of a packet, as routing sees them.
    Addrtype = "addrtype" {
        /// Of the source.
        src_type: Option<Not<List>> = "src-type",
        /// Of the destination.
        dst_type: Option<Not<List>> = "dst-type",
        /// As seen from the interface that the packet came in by.
        limit_iface_in: bool = "limit-iface-in",
        /// As seen from the interface that the packet goes out by.
        limit_iface_out: bool = "limit-iface-out",
    }
    /// The group of an interface.
    Devgroup = "devgroup" {
        /// Of the interface that the packet came in by, with a mask if wanted.
        src_group: Option<Not<String>> = "src-group",
        /// Of the interface that the packet goes out by.
        dst_group: Option<Not<String>> = "dst-group",
    }
    /// An IPv6 source address that was made from the sender's MAC address.
    Eui64 = "eui64" {
    }
    /// Addresses by ranges that need not be prefixes.
    Iprange = "iprange" {
        /// Of the source.
        src_range: Option<Not<Addresses>> = "src-range",
        /// Of the destination.
        dst_range: Option<Not<Addresses>> = "dst-range",
    }
    /// The link-layer source address.
    Mac = "mac" {
        /// The address.
        source: Not<MacAddress> = "mac-source",
    }
    /// Ports of a bridge.
    Physdev = "physdev" {
        /// The packet came in by a bridge.
        is_in: Flag = "physdev-is-in",
        /// By this port of it; `+` at the end for any ending.
        r#in: Option<Not<String>> = "physdev-in",
        /// The packet goes out by a bridge.
        is_out: Flag = "physdev-is-out",
        /// By this port of it.
        out: Option<Not<String>> = "physdev-out",
        /// It is bridged, not routed.
        is_bridged: Flag = "physdev-is-bridged",
    }
    /// The link-layer type of the packet.
    Pkttype = "pkttype" {
        /// `unicast`, `broadcast`, `multicast` or `otherhost`.
        pkt_type: Not<String> = "pkt-type",
    }
    /// The routing realm.
    Realm = "realm" {
        /// Number with a mask if wanted, or a name.
        realm: Not<String> = "realm",
    }
    /// Whether the reply would leave by the interface that the packet came in by.
    Rpfilter = "rpfilter" {
        /// Any interface will do.
        loose: bool = "loose",
        /// The mark of the packet counts for the route.
        validmark: bool = "validmark",
        /// Packets with a local source match.
        accept_local: bool = "accept-local",
        /// Packets that fail the test match.
        invert: bool = "invert",
    }
}
