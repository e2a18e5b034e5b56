//! The data types of the values that keys load.

use crate::datatype::{DataType, Order};
use crate::expr::{CtKey, MetaKey, RtKey, SocketKey, TunnelKey, XfrmKey};
use crate::key::Part;

impl MetaKey {
    /// Returns the type of the value.
    #[must_use]
    pub fn part(self) -> Part {
        let integer = |bytes, order| Part::Integer { bytes, order };
        match self {
            Self::PROTOCOL | Self::IBRVPROTO => DataType::ETHER_TYPE.into(),
            Self::PRIORITY => DataType::CLASSID.into(),
            Self::MARK => DataType::MARK.into(),
            Self::IIF | Self::OIF | Self::SDIF => DataType::IFACE_INDEX.into(),
            Self::IIFNAME | Self::OIFNAME | Self::IBRNAME | Self::OBRNAME => DataType::IFNAME.into(),
            Self::IIFKIND | Self::OIFKIND | Self::SDIFNAME => DataType::IFNAME.into(),
            Self::IIFTYPE | Self::OIFTYPE => DataType::IFACE_TYPE.into(),
            Self::SKUID => DataType::UID.into(),
            Self::SKGID => DataType::GID.into(),
            Self::RTCLASSID => DataType::REALM.into(),
            Self::NFPROTO => DataType::NF_PROTO.into(),
            Self::L4PROTO => DataType::INET_PROTO.into(),
            Self::PKTTYPE => DataType::PKT_TYPE.into(),
            Self::IIFGROUP | Self::OIFGROUP => DataType::DEVGROUP.into(),
            Self::IPSEC => DataType::BOOLEAN.into(),
            Self::TIME => DataType::DATE.into(),
            Self::DAY => DataType::DAY.into(),
            Self::HOUR => DataType::HOUR.into(),
            Self::IBRHWADDR => DataType::ETHER_ADDR.into(),
            Self::NFTRACE | Self::BROUTE => integer(1, Order::Host),
            Self::IBRPVID => integer(2, Order::Host),
            Self::RANDOM => integer(4, Order::Network),
            _ => integer(4, Order::Host),
        }
    }
}

impl CtKey {
    /// Returns the type of the value. `saddr` and `daddr` without a family count as IPv4 addresses.
    #[must_use]
    pub fn part(self) -> Part {
        let integer = |bytes| Part::Integer { bytes, order: Order::Host };
        match self {
            Self::STATE => DataType::CT_STATE.into(),
            Self::DIRECTION => DataType::CT_DIR.into(),
            Self::STATUS => DataType::CT_STATUS.into(),
            Self::EXPIRATION => DataType::TIME.into(),
            Self::MARK => DataType::MARK.into(),
            Self::HELPER => DataType::STRING.into(),
            Self::L3PROTO => DataType::NF_PROTO.into(),
            Self::SADDR | Self::DADDR | Self::SADDR_IP | Self::DADDR_IP => DataType::IPV4_ADDR.into(),
            Self::SADDR_IP6 | Self::DADDR_IP6 => DataType::IPV6_ADDR.into(),
            Self::PROTOCOL => DataType::INET_PROTO.into(),
            Self::PROTO_SRC | Self::PROTO_DST => DataType::INET_SERVICE.into(),
            Self::LABEL => DataType::CT_LABEL.into(),
            Self::PACKETS | Self::BYTES | Self::AVGPKT => integer(8),
            Self::ZONE => integer(2),
            Self::EVENT => DataType::CT_EVENT.into(),
            Self::ID => Part::Integer { bytes: 4, order: Order::Network },
            _ => integer(4),
        }
    }
}

impl RtKey {
    /// Returns the type of the value.
    #[must_use]
    pub fn part(self) -> Part {
        match self {
            Self::CLASSID => DataType::REALM.into(),
            Self::NEXTHOP_IP => DataType::IPV4_ADDR.into(),
            Self::NEXTHOP_IP6 => DataType::IPV6_ADDR.into(),
            Self::IPSEC => DataType::BOOLEAN.into(),
            _ => Part::Integer { bytes: 2, order: Order::Host },
        }
    }
}

impl SocketKey {
    /// Returns the type of the value.
    #[must_use]
    pub fn part(self) -> Part {
        match self {
            Self::MARK => DataType::MARK.into(),
            Self::CGROUPV2 => DataType::CGROUPSV2.into(),
            _ => Part::Integer { bytes: 1, order: Order::Host },
        }
    }
}

impl TunnelKey {
    /// Returns the type of the value.
    #[must_use]
    pub fn part(self) -> Part {
        match self {
            Self::PATH => DataType::BOOLEAN.into(),
            _ => Part::Integer { bytes: 4, order: Order::Host },
        }
    }
}

impl XfrmKey {
    /// Returns the type of the value.
    #[must_use]
    pub fn part(self) -> Part {
        match self {
            Self::DADDR_IP | Self::SADDR_IP => DataType::IPV4_ADDR.into(),
            Self::DADDR_IP6 | Self::SADDR_IP6 => DataType::IPV6_ADDR.into(),
            Self::SPI => Part::Integer { bytes: 4, order: Order::Network },
            _ => Part::Integer { bytes: 4, order: Order::Host },
        }
    }
}
