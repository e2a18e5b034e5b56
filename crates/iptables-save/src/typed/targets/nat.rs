//! Targets of address translation.

use crate::typed::{MacAddress, MarkMask, Nat, NatPorts, Port, typed};

typed! {
    /// Shares an address among the nodes of a cluster; gone from Linux 6.12 on.
    Clusterip = "CLUSTERIP" {
        /// A new cluster, rather than one that another rule made.
        new: bool = "new",
        /// `sourceip`, `sourceip-sourceport` or `sourceip-sourceport-destport`.
        hashmode: Option<String> = "hashmode",
        /// The shared link-layer address.
        clustermac: Option<MacAddress> = "clustermac",
        /// Nodes.
        total_nodes: Option<u16> = "total-nodes",
        /// Number of this node, from 1.
        local_node: Option<u16> = "local-node",
        /// Seed of the hash.
        hash_init: Option<u32> = "hash-init",
    }
    /// Changes the destination.
    Dnat = "DNAT" {
        /// The new destination.
        to_destination: Nat = "to-destination",
        /// A random port.
        random: bool = "random",
        /// The same address for a client every time.
        persistent: bool = "persistent",
    }
    /// Translates the prefix of the destination (RFC 6296).
    Dnpt = "DNPT" {
        /// The prefix before.
        src_pfx: String = "src-pfx",
        /// The prefix after.
        dst_pfx: String = "dst-pfx",
    }
    /// Changes the source to the address of the outgoing interface.
    Masquerade = "MASQUERADE" {
        /// Ports to choose from.
        to_ports: Option<NatPorts> = "to-ports",
        /// A random port.
        random: bool = "random",
        /// A fully random port.
        random_fully: bool = "random-fully",
    }
    /// Translates a network to another of the same size.
    Netmap = "NETMAP" {
        /// The other network.
        to: String = "to",
    }
    /// Changes the destination to this machine.
    Redirect = "REDIRECT" {
        /// The ports.
        to_ports: Option<NatPorts> = "to-ports",
        /// A random port.
        random: bool = "random",
    }
    /// Changes the source.
    Snat = "SNAT" {
        /// The new source.
        to_source: Nat = "to-source",
        /// A random port.
        random: bool = "random",
        /// A fully random port.
        random_fully: bool = "random-fully",
        /// The same address for a client every time.
        persistent: bool = "persistent",
    }
    /// Translates the prefix of the source (RFC 6296).
    Snpt = "SNPT" {
        /// The prefix before.
        src_pfx: String = "src-pfx",
        /// The prefix after.
        dst_pfx: String = "dst-pfx",
    }
    /// Gives a packet to a local socket without changing it.
    Tproxy = "TPROXY" {
        /// Port of the socket; 0 is the packet's own.
        on_port: Port = "on-port",
        /// Address of the socket.
        on_ip: Option<String> = "on-ip",
        /// The mark that the packet gets.
        tproxy_mark: Option<MarkMask> = "tproxy-mark",
    }
}
