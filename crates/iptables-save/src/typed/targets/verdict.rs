//! Targets that decide, or leave the decision to others.

use crate::typed::{List, SetUse, typed};

typed! {
    /// Sets what connection tracking does with a new connection.
    Ct = "CT" {
        /// Nothing.
        notrack: bool = "notrack",
        /// The helper by name.
        helper: Option<String> = "helper",
        /// The time-out policy by name.
        timeout: Option<String> = "timeout",
        /// Events that are reported.
        ctevents: Option<List> = "ctevents",
        /// Events of expectations that are reported.
        expevents: Option<List> = "expevents",
        /// Zone of the original direction, or `mark`.
        zone_orig: Option<String> = "zone-orig",
        /// Zone of the reply direction.
        zone_reply: Option<String> = "zone-reply",
        /// Zone of both.
        zone: Option<String> = "zone",
    }
    /// Lets a program decide, by nfnetlink.
    Nfqueue = "NFQUEUE" {
        /// The queue.
        queue_num: Option<u16> = "queue-num",
        /// The first and the last of some queues, as in `0:3`.
        queue_balance: Option<String> = "queue-balance",
        /// Accepts if no program listens.
        queue_bypass: bool = "queue-bypass",
        /// The queue of the processor.
        queue_cpu_fanout: bool = "queue-cpu-fanout",
    }
    /// Leaves the packet to no connection; `CT --notrack` in newer rules.
    Notrack = "NOTRACK" {
    }
    /// Drops the packet and informs the sender.
    Reject = "REJECT" {
        /// The kind of answer, as in `icmp-port-unreachable` or `tcp-reset`.
        reject_with: Option<String> = "reject-with",
    }
    /// Adds to a set, deletes from one, or takes values out of one.
    Set = "SET" {
        /// Adds.
        add_set: Option<SetUse> = "add-set",
        /// An element that is there gets the new time-out.
        exist: bool = "exist",
        /// Seconds.
        timeout: Option<u32> = "timeout",
        /// Deletes.
        del_set: Option<SetUse> = "del-set",
        /// Takes values of the element.
        map_set: Option<SetUse> = "map-set",
        /// The mark.
        map_mark: bool = "map-mark",
        /// The priority.
        map_prio: bool = "map-prio",
        /// The queue of the network card.
        map_queue: bool = "map-queue",
    }
    /// Answers SYN packets with cookies in the place of the server.
    Synproxy = "SYNPROXY" {
        /// Offers selective acknowledgement.
        sack_perm: bool = "sack-perm",
        /// Offers timestamps.
        timestamp: bool = "timestamp",
        /// Offers this window scale.
        wscale: Option<u8> = "wscale",
        /// Offers this maximum segment size.
        mss: Option<u16> = "mss",
        /// Offers explicit congestion notification.
        ecn: bool = "ecn",
    }
}
