//! Matches of what the machine knows of a packet beyond its contents.

use crate::typed::{Flag, MarkMask, Not, SetUse, typed};

typed! {
    /// The control group of the socket.
    Cgroup = "cgroup" {
        /// Path in the second version's hierarchy.
        path: Option<Not<String>> = "path",
        /// Class of `net_cls`, of the first version.
        cgroup: Option<Not<u32>> = "cgroup",
    }
    /// A comment; matches every packet.
    Comment = "comment" {
        /// At most 255 bytes.
        comment: String = "comment",
    }
    /// The processor that handles the packet.
    Cpu = "cpu" {
        /// Its number, from 0.
        cpu: Not<u32> = "cpu",
    }
    /// The mark of the packet.
    Mark = "mark" {
        /// Value and mask.
        mark: Not<MarkMask> = "mark",
    }
    /// The owner of the socket that a packet comes from.
    Owner = "owner" {
        /// There is a socket.
        socket_exists: Flag = "socket-exists",
        /// User by name or number, or a range of numbers.
        uid: Option<Not<String>> = "uid-owner",
        /// Group by name or number, or a range of numbers.
        gid: Option<Not<String>> = "gid-owner",
        /// Supplementary groups count, too.
        suppl_groups: bool = "suppl-groups",
    }
    /// An element of an ipset.
    Set = "set" {
        /// The set and the parts of the packet.
        match_set: Not<SetUse> = "match-set",
        /// An element that is flagged `nomatch` does.
        return_nomatch: bool = "return-nomatch",
        /// Negated: counters stay as they are.
        update_counters: Flag = "update-counters",
        /// Negated: counters of members of a list stay as they are.
        update_subcounters: Flag = "update-subcounters",
        /// Packets counted.
        packets_eq: Option<Not<u64>> = "packets-eq",
        /// Packets counted, below.
        packets_lt: Option<u64> = "packets-lt",
        /// Packets counted, above.
        packets_gt: Option<u64> = "packets-gt",
        /// Bytes counted.
        bytes_eq: Option<Not<u64>> = "bytes-eq",
        /// Bytes counted, below.
        bytes_lt: Option<u64> = "bytes-lt",
        /// Bytes counted, above.
        bytes_gt: Option<u64> = "bytes-gt",
    }
    /// An open socket that the packet belongs to.
    Socket = "socket" {
        /// It is bound transparently.
        transparent: bool = "transparent",
        /// Sockets bound to any address count, too.
        nowildcard: bool = "nowildcard",
        /// The packet gets the mark of the socket.
        restore_skmark: bool = "restore-skmark",
    }
}
