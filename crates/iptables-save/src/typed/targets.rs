//! Targets as structures. Names and meanings are those of iptables-extensions(8).

use super::{List, MarkMask, Nat, NatPorts, Port, SetUse, typed};

typed! {
    /// Sets the mark of the connection, or copies it from or to the packet.
    Connmark = "CONNMARK" {
        /// Clears the bits of the mask, then XORs the value.
        set_xmark: Option<MarkMask> = "set-xmark",
        /// Clears the bits of the mask, then ORs the value.
        set_mark: Option<MarkMask> = "set-mark",
        /// ANDs.
        and_mark: Option<MarkMask> = "and-mark",
        /// ORs.
        or_mark: Option<MarkMask> = "or-mark",
        /// XORs.
        xor_mark: Option<MarkMask> = "xor-mark",
        /// Copies from the packet to the connection.
        save_mark: bool = "save-mark",
        /// Copies from the connection to the packet.
        restore_mark: bool = "restore-mark",
        /// Shifts left by so many bits.
        left_shift_mark: Option<u8> = "left-shift-mark",
        /// Shifts right by so many bits.
        right_shift_mark: Option<u8> = "right-shift-mark",
        /// Bits of the packet's mark.
        nfmask: Option<MarkMask> = "nfmask",
        /// Bits of the connection's mark.
        ctmask: Option<MarkMask> = "ctmask",
        /// Both.
        mask: Option<MarkMask> = "mask",
    }
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
    /// Changes the destination.
    Dnat = "DNAT" {
        /// Where to.
        to_destination: Nat = "to-destination",
        /// A random port.
        random: bool = "random",
        /// The same address for a client every time.
        persistent: bool = "persistent",
    }
    /// Writes to the kernel log.
    Log = "LOG" {
        /// At most 29 bytes.
        prefix: Option<String> = "log-prefix",
        /// By number or name.
        level: Option<String> = "log-level",
        /// TCP sequence numbers too.
        tcp_sequence: bool = "log-tcp-sequence",
        /// TCP options too.
        tcp_options: bool = "log-tcp-options",
        /// IP options too.
        ip_options: bool = "log-ip-options",
        /// The user who owns the socket too.
        uid: bool = "log-uid",
        /// Addresses of the link too.
        macdecode: bool = "log-macdecode",
    }
    /// Sets the mark of the packet.
    Mark = "MARK" {
        /// Clears the bits of the mask, then XORs the value.
        set_xmark: Option<MarkMask> = "set-xmark",
        /// Clears the bits of the mask, then ORs the value.
        set_mark: Option<MarkMask> = "set-mark",
        /// ANDs.
        and_mark: Option<MarkMask> = "and-mark",
        /// ORs.
        or_mark: Option<MarkMask> = "or-mark",
        /// XORs.
        xor_mark: Option<MarkMask> = "xor-mark",
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
    /// Sends packets to a program by nfnetlink.
    Nflog = "NFLOG" {
        /// At most 63 bytes.
        prefix: Option<String> = "nflog-prefix",
        /// The group that the program listens to.
        group: Option<u16> = "nflog-group",
        /// Never had an effect.
        range: Option<u32> = "nflog-range",
        /// Bytes of each packet.
        size: Option<u32> = "nflog-size",
        /// Packets that are sent together.
        threshold: Option<u16> = "nflog-threshold",
    }
    /// Lets a program decide, by nfnetlink.
    Nfqueue = "NFQUEUE" {
        /// The queue.
        queue_num: Option<u16> = "queue-num",
        /// The first and the last of some queues, as in `0:3`.
        queue_balance: Option<String> = "queue-balance",
        /// Accepts if nobody listens.
        queue_bypass: bool = "queue-bypass",
        /// The queue of the processor.
        queue_cpu_fanout: bool = "queue-cpu-fanout",
    }
    /// Changes the destination to this machine.
    Redirect = "REDIRECT" {
        /// The ports.
        to_ports: Option<NatPorts> = "to-ports",
        /// A random port.
        random: bool = "random",
    }
    /// Drops and tells the sender.
    Reject = "REJECT" {
        /// How, as in `icmp-port-unreachable` or `tcp-reset`.
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
    /// Changes the source.
    Snat = "SNAT" {
        /// Where from.
        to_source: Nat = "to-source",
        /// A random port.
        random: bool = "random",
        /// A fully random port.
        random_fully: bool = "random-fully",
        /// The same address for a client every time.
        persistent: bool = "persistent",
    }
    /// Changes the maximum segment size of TCP.
    Tcpmss = "TCPMSS" {
        /// To this.
        set_mss: Option<u16> = "set-mss",
        /// To what the path takes.
        clamp_mss_to_pmtu: bool = "clamp-mss-to-pmtu",
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
