//! Numbers of the protocol (`linux/netfilter/ipset/ip_set.h`), and addresses in attributes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bitflags::bitflags;
use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, NLA_F_NESTED, NLA_F_NET_BYTEORDER, Writer};

/// `NFNL_SUBSYS_IPSET` of `linux/netfilter/nfnetlink.h`.
pub(crate) const SUBSYSTEM: u8 = 6;
/// `IPSET_PROTOCOL`: the newest version of the protocol that this crate speaks.
pub(crate) const PROTOCOL: u8 = 7;
/// `IPSET_PROTOCOL_MIN`: the oldest.
pub(crate) const PROTOCOL_MIN: u8 = 6;

/// `enum ipset_cmd`.
pub(crate) mod command {
    pub(crate) const PROTOCOL: u8 = 1;
    pub(crate) const CREATE: u8 = 2;
    pub(crate) const DESTROY: u8 = 3;
    pub(crate) const FLUSH: u8 = 4;
    pub(crate) const RENAME: u8 = 5;
    pub(crate) const SWAP: u8 = 6;
    pub(crate) const LIST: u8 = 7;
    pub(crate) const SAVE: u8 = 8;
    pub(crate) const ADD: u8 = 9;
    pub(crate) const DEL: u8 = 10;
    pub(crate) const TEST: u8 = 11;
    pub(crate) const HEADER: u8 = 12;
    pub(crate) const TYPE: u8 = 13;
    /// From protocol 7 on.
    pub(crate) const GET_BYNAME: u8 = 14;
    /// From protocol 7 on.
    pub(crate) const GET_BYINDEX: u8 = 15;
}

/// Attributes of a command (`IPSET_ATTR_*`, "at command level").
pub(crate) mod cmd {
    /// u8.
    pub(crate) const PROTOCOL: u16 = 1;
    /// NUL-terminated string.
    pub(crate) const SETNAME: u16 = 2;
    /// NUL-terminated string.
    pub(crate) const TYPENAME: u16 = 3;
    /// NUL-terminated string, in RENAME and SWAP.
    pub(crate) const SETNAME2: u16 = 3;
    /// u8.
    pub(crate) const REVISION: u16 = 4;
    /// u8.
    pub(crate) const FAMILY: u16 = 5;
    /// be32, [`ListFlags`](super::ListFlags).
    pub(crate) const FLAGS: u16 = 6;
    /// Nested: the options of CREATE, or one element.
    pub(crate) const DATA: u16 = 7;
    /// Nested: many elements.
    pub(crate) const ADT: u16 = 8;
    /// be32: the line, or another number of the sender's choice.
    pub(crate) const LINENO: u16 = 9;
    /// u8: `IPSET_ATTR_PROTOCOL_MIN` in PROTOCOL, `IPSET_ATTR_REVISION_MIN` in TYPE.
    pub(crate) const MIN: u16 = 10;
    /// be16.
    pub(crate) const INDEX: u16 = 11;
}

/// Attributes inside DATA that CREATE and elements share (`IPSET_ATTR_*`, "CADT specific").
pub(crate) mod data {
    /// Nested address.
    pub(crate) const IP: u16 = 1;
    /// Nested address.
    pub(crate) const IP_TO: u16 = 2;
    /// u8.
    pub(crate) const CIDR: u16 = 3;
    /// be16.
    pub(crate) const PORT: u16 = 4;
    /// be16.
    pub(crate) const PORT_TO: u16 = 5;
    /// be32, seconds.
    pub(crate) const TIMEOUT: u16 = 6;
    /// u8.
    pub(crate) const PROTO: u16 = 7;
    /// be32, [`Flags`](super::Flags).
    pub(crate) const CADT_FLAGS: u16 = 8;
    /// be32.
    pub(crate) const LINENO: u16 = 9;
    /// be32.
    pub(crate) const MARK: u16 = 10;
    /// be32 to the kernel, u32 in host order from it.
    pub(crate) const MARKMASK: u16 = 11;
    /// Nested address.
    pub(crate) const BITMASK: u16 = 12;
}

/// Attributes inside DATA of CREATE and of what describes a set.
pub(crate) mod create {
    /// be32.
    pub(crate) const INITVAL: u16 = 17;
    /// be32.
    pub(crate) const HASHSIZE: u16 = 18;
    /// be32.
    pub(crate) const MAXELEM: u16 = 19;
    /// u8.
    pub(crate) const NETMASK: u16 = 20;
    /// u8.
    pub(crate) const BUCKETSIZE: u16 = 21;
    /// be32.
    pub(crate) const SIZE: u16 = 23;
    /// be32, from the kernel only.
    pub(crate) const ELEMENTS: u16 = 24;
    /// be32, from the kernel only.
    pub(crate) const REFERENCES: u16 = 25;
    /// be32, from the kernel only.
    pub(crate) const MEMSIZE: u16 = 26;
}

/// Attributes of an element.
pub(crate) mod adt {
    /// Six bytes.
    pub(crate) const ETHER: u16 = 17;
    /// NUL-terminated string.
    pub(crate) const NAME: u16 = 18;
    /// NUL-terminated string.
    pub(crate) const NAMEREF: u16 = 19;
    /// Nested address.
    pub(crate) const IP2: u16 = 20;
    /// u8.
    pub(crate) const CIDR2: u16 = 21;
    /// Nested address.
    pub(crate) const IP2_TO: u16 = 22;
    /// NUL-terminated string.
    pub(crate) const IFACE: u16 = 23;
    /// be64.
    pub(crate) const BYTES: u16 = 24;
    /// be64.
    pub(crate) const PACKETS: u16 = 25;
    /// NUL-terminated string.
    pub(crate) const COMMENT: u16 = 26;
    /// be64: mark and mask.
    pub(crate) const SKBMARK: u16 = 27;
    /// be32: major and minor.
    pub(crate) const SKBPRIO: u16 = 28;
    /// be16.
    pub(crate) const SKBQUEUE: u16 = 29;
}

bitflags! {
    /// `enum ipset_cadt_flags`: flags of a set and of an element.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Flags: u32 {
        /// `IPSET_FLAG_BEFORE`.
        const BEFORE = 1;
        /// `IPSET_FLAG_PHYSDEV`.
        const PHYSDEV = 1 << 1;
        /// `IPSET_FLAG_NOMATCH`.
        const NOMATCH = 1 << 2;
        /// `IPSET_FLAG_WITH_COUNTERS`.
        const COUNTERS = 1 << 3;
        /// `IPSET_FLAG_WITH_COMMENT`.
        const COMMENT = 1 << 4;
        /// `IPSET_FLAG_WITH_FORCEADD`.
        const FORCEADD = 1 << 5;
        /// `IPSET_FLAG_WITH_SKBINFO`.
        const SKBINFO = 1 << 6;
        /// `IPSET_FLAG_IFACE_WILDCARD`.
        const WILDCARD = 1 << 7;

        const _ = !0;
    }

    /// `enum ipset_cmd_flags`, as far as LIST takes them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct ListFlags: u32 {
        /// `IPSET_FLAG_LIST_SETNAME`.
        const NAMES = 1 << 1;
        /// `IPSET_FLAG_LIST_HEADER`.
        const HEADERS = 1 << 2;

        const _ = !0;
    }
}

/// Writes numbers in network order with the flag `NLA_F_NET_BYTEORDER`, without which the kernel refuses
/// them.
pub(crate) trait Put {
    fn net16(&mut self, kind: u16, value: u16);
    fn net32(&mut self, kind: u16, value: u32);
    fn net64(&mut self, kind: u16, value: u64);
    fn address(&mut self, kind: u16, address: IpAddr);
}

/// Most of a message consists of these, so each attribute is built on the stack and appended in one step.
impl Put for Writer<'_> {
    fn net16(&mut self, kind: u16, value: u16) {
        let ([k0, k1], [v0, v1]) = ((kind | NLA_F_NET_BYTEORDER).to_ne_bytes(), value.to_be_bytes());
        let [l0, l1] = 6_u16.to_ne_bytes();
        self.raw(&[l0, l1, k0, k1, v0, v1, 0, 0]);
    }

    fn net32(&mut self, kind: u16, value: u32) {
        let ([k0, k1], [v0, v1, v2, v3]) = ((kind | NLA_F_NET_BYTEORDER).to_ne_bytes(), value.to_be_bytes());
        let [l0, l1] = 8_u16.to_ne_bytes();
        self.raw(&[l0, l1, k0, k1, v0, v1, v2, v3]);
    }

    fn net64(&mut self, kind: u16, value: u64) {
        self.put_be64(kind | NLA_F_NET_BYTEORDER, value);
    }

    fn address(&mut self, kind: u16, address: IpAddr) {
        match address {
            IpAddr::V4(v4) => {
                let ([l0, l1], [k0, k1]) = (12_u16.to_ne_bytes(), (kind | NLA_F_NESTED).to_ne_bytes());
                let ([m0, m1], [a, b, c, d]) = (8_u16.to_ne_bytes(), v4.octets());
                let [t0, t1] = (IPADDR_IPV4 | NLA_F_NET_BYTEORDER).to_ne_bytes();
                self.raw(&[l0, l1, k0, k1, m0, m1, t0, t1, a, b, c, d]);
            }
            IpAddr::V6(v6) => self.nest(kind).put(IPADDR_IPV6 | NLA_F_NET_BYTEORDER, &v6.octets()),
        }
    }
}

/// Reads a nested address.
pub(crate) fn read_address(attribute: &Attribute<'_>) -> Result<IpAddr, DecodeError> {
    for inner in attribute.attributes() {
        let inner = inner?;
        match inner.kind {
            IPADDR_IPV4 => return Ok(Ipv4Addr::from(inner.array::<4>()?).into()),
            IPADDR_IPV6 => return Ok(Ipv6Addr::from(inner.array::<16>()?).into()),
            _ => {}
        }
    }
    Err(DecodeError::Missing { what: "IPSET_ATTR_IPADDR_IPV4 or IPSET_ATTR_IPADDR_IPV6" })
}

/// `IPSET_ATTR_IPADDR_IPV4`.
const IPADDR_IPV4: u16 = 1;
/// `IPSET_ATTR_IPADDR_IPV6`.
const IPADDR_IPV6: u16 = 2;
