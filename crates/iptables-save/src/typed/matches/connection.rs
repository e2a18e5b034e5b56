//! Matches of the connection that a packet belongs to.

use crate::typed::{Flag, List, MarkMask, Not, OpenSpan, Port, Ports, typed};

typed! {
    /// The node of a cluster that a packet falls to.
    Cluster = "cluster" {
        /// Number of this node, from 1.
        local_node: Option<Not<u32>> = "cluster-local-node",
        /// Numbers of this node, as bits.
        local_nodemask: Option<Not<u32>> = "cluster-local-nodemask",
        /// Nodes.
        total_nodes: u32 = "cluster-total-nodes",
        /// Seed of the hash.
        hash_seed: u32 = "cluster-hash-seed",
    }
    /// Bytes or packets that a connection has transferred.
    Connbytes = "connbytes" {
        /// The number, from and to.
        connbytes: Not<OpenSpan> = "connbytes",
        /// `packets`, `bytes` or `avgpkt`.
        mode: String = "connbytes-mode",
        /// `original`, `reply` or `both`.
        dir: String = "connbytes-dir",
    }
    /// A label of the connection.
    Connlabel = "connlabel" {
        /// Name or number.
        label: Not<String> = "label",
        /// Sets it if it can.
        set: bool = "set",
    }
    /// The number of connections of a client or to a server.
    Connlimit = "connlimit" {
        /// At most so many.
        upto: Option<Not<u32>> = "connlimit-upto",
        /// More than so many.
        above: Option<Not<u32>> = "connlimit-above",
        /// Prefix length of the addresses that count together.
        mask: Option<String> = "connlimit-mask",
        /// The source counts.
        saddr: bool = "connlimit-saddr",
        /// The destination counts.
        daddr: bool = "connlimit-daddr",
    }
    /// The mark of the connection.
    Connmark = "connmark" {
        /// Value and mask.
        mark: Not<MarkMask> = "mark",
    }
    /// The connection that a packet belongs to.
    Conntrack = "conntrack" {
        /// `NEW`, `ESTABLISHED`, `RELATED`, `INVALID`, `UNTRACKED`, `SNAT`, `DNAT`.
        ctstate: Option<Not<List>> = "ctstate",
        /// Protocol by number or name.
        ctproto: Option<Not<String>> = "ctproto",
        /// Source of the original direction.
        ctorigsrc: Option<Not<String>> = "ctorigsrc",
        /// Destination of the original direction.
        ctorigdst: Option<Not<String>> = "ctorigdst",
        /// Source of the reply direction.
        ctreplsrc: Option<Not<String>> = "ctreplsrc",
        /// Destination of the reply direction.
        ctrepldst: Option<Not<String>> = "ctrepldst",
        /// Source port of the original direction.
        ctorigsrcport: Option<Not<Ports>> = "ctorigsrcport",
        /// Destination port of the original direction.
        ctorigdstport: Option<Not<Ports>> = "ctorigdstport",
        /// Source port of the reply direction.
        ctreplsrcport: Option<Not<Ports>> = "ctreplsrcport",
        /// Destination port of the reply direction.
        ctrepldstport: Option<Not<Ports>> = "ctrepldstport",
        /// `NONE`, `EXPECTED`, `SEEN_REPLY`, `ASSURED`, `CONFIRMED`.
        ctstatus: Option<Not<List>> = "ctstatus",
        /// Seconds left, or a range of them.
        ctexpire: Option<Not<String>> = "ctexpire",
        /// `ORIGINAL` or `REPLY`.
        ctdir: Option<String> = "ctdir",
    }
    /// The helper that watches the connection.
    Helper = "helper" {
        /// Its name, with `-` and a port if it is another than usual.
        helper: Not<String> = "helper",
    }
    /// The IPVS connection that a packet belongs to.
    Ipvs = "ipvs" {
        /// It belongs to one at all.
        ipvs: Flag = "ipvs",
        /// Protocol of the virtual service.
        vproto: Option<Not<String>> = "vproto",
        /// Address of the virtual service.
        vaddr: Option<Not<String>> = "vaddr",
        /// Port of the virtual service.
        vport: Option<Not<Port>> = "vport",
        /// `ORIGINAL` or `REPLY`.
        vdir: Option<String> = "vdir",
        /// `GATE`, `IPIP` or `MASQ`.
        vmethod: Option<Not<String>> = "vmethod",
        /// Port of the controlling connection.
        vportctl: Option<Not<Port>> = "vportctl",
    }
    /// The older form of the states of [`Conntrack`].
    State = "state" {
        /// `NEW`, `ESTABLISHED`, `RELATED`, `INVALID`, `UNTRACKED`.
        state: Not<List> = "state",
    }
}
