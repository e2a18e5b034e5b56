//! Targets that set marks and classes.

use crate::typed::{List, MarkMask, typed};

typed! {
    /// Sets the class for queueing.
    Classify = "CLASSIFY" {
        /// `major:minor`, hexadecimal.
        set_class: String = "set-class",
    }
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
    /// Copies the security mark between packet and connection.
    Connsecmark = "CONNSECMARK" {
        /// From the packet to the connection.
        save: bool = "save",
        /// From the connection to the packet.
        restore: bool = "restore",
    }
    /// Sets the mark from a hash of addresses and ports.
    Hmark = "HMARK" {
        /// `src`, `dst`, `sport`, `dport`, `spi`, `proto`, `ct`.
        tuple: Option<List> = "hmark-tuple",
        /// Prefix length or mask of the source.
        src_prefix: Option<String> = "hmark-src-prefix",
        /// Prefix length or mask of the destination.
        dst_prefix: Option<String> = "hmark-dst-prefix",
        /// Bits of the source port.
        sport_mask: Option<u16> = "hmark-sport-mask",
        /// Bits of the destination port.
        dport_mask: Option<u16> = "hmark-dport-mask",
        /// Bits of the security parameter index.
        spi_mask: Option<u32> = "hmark-spi-mask",
        /// Instead of the source port.
        sport: Option<u16> = "hmark-sport",
        /// Instead of the destination port.
        dport: Option<u16> = "hmark-dport",
        /// Instead of the security parameter index.
        spi: Option<u32> = "hmark-spi",
        /// Bits of the protocol.
        proto_mask: Option<u16> = "hmark-proto-mask",
        /// Seed of the hash.
        rnd: Option<u32> = "hmark-rnd",
        /// The marks are below this, plus the offset.
        modulus: u32 = "hmark-mod",
        /// The least mark.
        offset: Option<u32> = "hmark-offset",
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
    /// Sets the security mark.
    Secmark = "SECMARK" {
        /// Security context.
        selctx: String = "selctx",
    }
}
