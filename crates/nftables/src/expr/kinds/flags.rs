//! The flags of expressions.

use sluicegate_netlink::attr::{Attribute, Writer};

use crate::expr::wire::{Fault, Value};
use crate::wire::flags::flags;

macro_rules! wire_flags {
    ($($name:ident $inner:ident)*) => {$(
        impl Value for $name {
            fn write(&self, w: &mut Writer<'_>, kind: u16) {
                self.bits().write(w, kind);
            }

            fn read(attribute: &Attribute<'_>) -> Result<Self, Fault> {
                $inner::read(attribute).map(Self::from_bits_retain)
            }
        }

        #[cfg(test)]
        impl $crate::expr::sample::Sample for $name {
            fn sample(source: &mut $crate::expr::sample::Source) -> Self {
                Self::from_bits_retain(<$inner as $crate::expr::sample::Sample>::sample(source))
            }
        }
    )*};
}

flags! {
    /// The fields that a fib expression looks up (`enum nft_fib_flags`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash)]
    pub struct FibFlags: u32 {
        /// `NFTA_FIB_F_SADDR`
        const SADDR = 1;
        /// `NFTA_FIB_F_DADDR`
        const DADDR = 2;
        /// `NFTA_FIB_F_MARK`
        const MARK = 4;
        /// `NFTA_FIB_F_IIF`
        const IIF = 8;
        /// `NFTA_FIB_F_OIF`
        const OIF = 16;
        /// `NFTA_FIB_F_PRESENT`: only test whether there is a route.
        const PRESENT = 32;

        const _ = !0;
    }

    /// How the address and port of a translation are chosen (`NF_NAT_RANGE_*` of `linux/netfilter/nf_nat.h`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct NatFlags: u32 {
        /// `NF_NAT_RANGE_MAP_IPS`: an address is given. The kernel sets it.
        const MAP_IPS = 1;
        /// `NF_NAT_RANGE_PROTO_SPECIFIED`: a port is given. The kernel sets it.
        const PROTO_SPECIFIED = 2;
        /// `random`
        const RANDOM = 4;
        /// `persistent`
        const PERSISTENT = 8;
        /// `fully-random`
        const FULLY_RANDOM = 16;
        /// `NF_NAT_RANGE_NETMAP`: replace only the prefix of the address.
        const NETMAP = 64;

        const _ = !0;
    }

    /// The fields of a log message (`NF_LOG_*` of `linux/netfilter/nf_log.h`). `LogFlags::all()` is
    /// `flags all`: exactly these flags; the kernel refuses others.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct LogFlags: u32 {
        /// `flags tcp sequence`
        const TCP_SEQUENCE = 1;
        /// `flags tcp options`
        const TCP_OPTIONS = 2;
        /// `flags ip options`
        const IP_OPTIONS = 4;
        /// `flags skuid`
        const SKUID = 8;
        /// `flags ether`
        const ETHER = 32;
    }

    /// Flags of a limit, quota or connlimit: match above instead of below (`NFT_LIMIT_F_INV`,
    /// `NFT_QUOTA_F_INV`, `NFT_CONNLIMIT_F_INV`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Invert: u32 {
        /// Match above the threshold instead of below.
        const OVER = 1;

        const _ = !0;
    }

    /// Flags of a look-up (`enum nft_lookup_flags`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct LookupFlags: u32 {
        /// `NFT_LOOKUP_F_INV`: match what is not in the set.
        const INVERT = 1;

        const _ = !0;
    }

    /// Flags of an exthdr expression (`NFT_EXTHDR_F_*`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ExthdrFlags: u32 {
        /// `NFT_EXTHDR_F_PRESENT`: only test for presence.
        const PRESENT = 1;

        const _ = !0;
    }

    /// Flags of a dynset expression (`enum nft_dynset_flags`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct DynsetFlags: u32 {
        /// `NFT_DYNSET_F_INV`: invert the match.
        const INVERT = 1;
        /// `NFT_DYNSET_F_EXPR`: the element carries expressions.
        const EXPR = 2;

        const _ = !0;
    }

    /// Flags of a queue expression (`NFT_QUEUE_FLAG_*`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct QueueFlags: u16 {
        /// `bypass`
        const BYPASS = 1;
        /// `fanout`
        const FANOUT = 2;

        const _ = !0;
    }

    /// Flags of a synproxy (`NF_SYNPROXY_OPT_*` of `linux/netfilter/nf_synproxy.h`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SynproxyFlags: u32 {
        /// `mss`
        const MSS = 1;
        /// `wscale`
        const WSCALE = 2;
        /// `sack-perm`
        const SACK_PERM = 4;
        /// `timestamp`
        const TIMESTAMP = 8;
        /// `NF_SYNPROXY_OPT_ECN`
        const ECN = 16;

        const _ = !0;
    }

    /// Flags of an osf expression (`enum nft_osf_flags`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct OsfFlags: u32 {
        /// `NFT_OSF_F_VERSION`: load the version after the name.
        const VERSION = 1;

        const _ = !0;
    }

    /// The headers that an inner expression finds inside the tunnel (`enum nft_inner_flags`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct InnerFlags: u32 {
        /// `NFT_INNER_HDRSIZE`: the size of the tunnel header is given.
        const HDRSIZE = 1;
        /// `NFT_INNER_LL`: there is a link-layer header.
        const LL = 2;
        /// `NFT_INNER_NH`: there is a network header.
        const NH = 4;
        /// `NFT_INNER_TH`: there is a transport header.
        const TH = 8;

        const _ = !0;
    }

    /// Flags of a payload write (`enum nft_payload_csum_flags`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ChecksumFlags: u32 {
        /// `NFT_PAYLOAD_L4CSUM_PSEUDOHDR`: the field is part of the pseudo-header, so the transport checksum
        /// has to be updated.
        const PSEUDO_HEADER = 1;

        const _ = !0;
    }
}

wire_flags! {
    FibFlags u32 NatFlags u32 LogFlags u32 Invert u32 LookupFlags u32 ExthdrFlags u32 DynsetFlags u32
    QueueFlags u16
    SynproxyFlags u32 OsfFlags u32 ChecksumFlags u32 InnerFlags u32
}
