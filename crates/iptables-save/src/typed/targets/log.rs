//! Targets that report, count and copy.

use crate::typed::typed;

typed! {
    /// Writes a record of the audit subsystem.
    Audit = "AUDIT" {
        /// `accept`, `drop` or `reject`.
        kind: String = "type",
    }
    /// Reports when no packet came for a time.
    Idletimer = "IDLETIMER" {
        /// Seconds.
        timeout: u32 = "timeout",
        /// Name of the timer.
        label: String = "label",
        /// Wakes the machine.
        alarm: bool = "alarm",
    }
    /// Lights a LED.
    Led = "LED" {
        /// Name of the trigger.
        trigger_id: String = "led-trigger-id",
        /// Milliseconds, or `inf`.
        delay: Option<String> = "led-delay",
        /// Blinks though it is lit.
        always_blink: bool = "led-always-blink",
    }
    /// Writes to the kernel log.
    Log = "LOG" {
        /// At most 29 bytes; iptables cuts longer ones.
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
    /// Sends packets to a program by nfnetlink.
    Nflog = "NFLOG" {
        /// At most 63 bytes with the legacy back end, 127 with the nft back end; iptables cuts longer ones.
        prefix: Option<String> = "nflog-prefix",
        /// The group that the program listens to.
        group: Option<u16> = "nflog-group",
        /// Never had an effect. The legacy back end saves it, the nft back end does not.
        range: Option<u32> = "nflog-range",
        /// Bytes of each packet.
        size: Option<u32> = "nflog-size",
        /// Packets that are sent together.
        threshold: Option<u16> = "nflog-threshold",
    }
    /// Measures a rate.
    Rateest = "RATEEST" {
        /// Name of the estimator.
        name: String = "rateest-name",
        /// Time between samples, as in `250ms`.
        interval: String = "rateest-interval",
        /// Time constant of the average.
        ewmalog: String = "rateest-ewmalog",
    }
    /// Sends a copy of the packet to a machine of the local network.
    Tee = "TEE" {
        /// Address of that machine.
        gateway: String = "gateway",
        /// Interface to it.
        oif: Option<String> = "oif",
    }
    /// Logs every rule that the packet meets.
    Trace = "TRACE" {
    }
    /// Sends packets to a program; gone from Linux 3.17 on.
    Ulog = "ULOG" {
        /// At most 31 bytes.
        prefix: Option<String> = "ulog-prefix",
        /// The group that the program listens to.
        nlgroup: Option<u8> = "ulog-nlgroup",
        /// Bytes of each packet.
        cprange: Option<u64> = "ulog-cprange",
        /// Packets that are sent together.
        qthreshold: Option<u8> = "ulog-qthreshold",
    }
}
