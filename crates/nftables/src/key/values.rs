//! The Rust types of values in keys.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sluicegate_netlink::Protocol;
use sluicegate_netlink::text::encode;

use crate::InterfaceName;
use crate::key::Key;
use crate::key::part::Kind;

/// A value that can be part of a key.
pub trait KeyPart {
    /// Appends the value to a key; see [`Key::append`].
    fn push(&self, key: &mut Key);
}

/// A port (`inet_service`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// A packet or connection mark (`mark`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(pub u32);

/// The value of `numgen` or of a hash: a 32-bit integer in host byte order. A set with such keys needs
/// `typeof`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(pub u32);

/// The number of a queue, as data of a map ([`SetType::Queue`](crate::SetType::Queue)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueNumber(pub u16);

/// A link-layer address of six bytes (`ether_addr`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherAddr(pub [u8; 6]);

impl fmt::Display for EtherAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

macro_rules! key_parts {
    ($($rust:ty, $self:ident => $kind:expr, $bytes:expr;)*) => {$(
        impl KeyPart for $rust {
            #[inline]
            fn push(&self, key: &mut Key) {
                let $self = self;
                key.put($kind, $bytes);
            }
        }

        impl From<$rust> for Key {
            fn from(part: $rust) -> Self {
                Self::new().and(part)
            }
        }
    )*};
}

key_parts! {
    Ipv4Addr, v => Kind::IPV4_ADDR, v.octets();
    Ipv6Addr, v => Kind::IPV6_ADDR, v.octets();
    Protocol, v => Kind::INET_PROTO, [v.0];
    Port, v => Kind::INET_SERVICE, v.0.to_be_bytes();
    Mark, v => Kind::MARK, v.0.to_ne_bytes();
    EtherAddr, v => Kind::ETHER_ADDR, v.0;
    Number, v => Kind::NUMBER, v.0.to_ne_bytes();
    QueueNumber, v => Kind::QUEUE, v.0.to_ne_bytes();
    InterfaceName, v => Kind::IFNAME, interface(v);
}

impl KeyPart for IpAddr {
    #[inline]
    fn push(&self, key: &mut Key) {
        match self {
            Self::V4(address) => address.push(key),
            Self::V6(address) => address.push(key),
        }
    }
}

impl From<IpAddr> for Key {
    fn from(address: IpAddr) -> Self {
        Self::new().and(address)
    }
}

macro_rules! key_tuples {
    ($(($($name:ident),*))*) => {$(
        impl<$($name: KeyPart),*> From<($($name,)*)> for Key {
            #[inline]
            #[allow(non_snake_case, reason = "the type's letter names its value")]
            fn from(($($name,)*): ($($name,)*)) -> Self {
                let mut key = Self::new();
                $($name.push(&mut key);)*
                key
            }
        }
    )*};
}

key_tuples! { (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) }

fn interface(name: &InterfaceName) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(encode(&name.literal()).iter()) {
        *to = *from;
    }
    bytes
}
