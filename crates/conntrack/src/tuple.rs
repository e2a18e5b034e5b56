//! One direction of a flow: source and destination of its packets.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Writer};

use crate::protocol::has_ports;
use crate::{Family, Protocol};

/// One direction of a flow (`CTA_TUPLE_*`). Both addresses are of one family; [`Tuple::new`] checks that.
///
/// ```
/// use sluicegate_conntrack::{Protocol, Tuple};
///
/// let (client, service) = ("10.244.0.9:40000".parse()?, "10.96.0.10:53".parse()?);
/// let tuple = Tuple::with_ports(Protocol::UDP, client, service).expect("both are IPv4");
/// assert_eq!(tuple.to_string(), "src=10.244.0.9 dst=10.96.0.10 sport=40000 dport=53");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tuple {
    source: IpAddr,
    destination: IpAddr,
    /// The transport protocol.
    pub protocol: Protocol,
    /// The ports or ids by which the protocol distinguishes flows between the same two addresses.
    pub layer4: Layer4,
    /// The zone of this direction, if only this direction has one.
    pub zone: Option<u16>,
}

/// The part of a tuple that depends on the protocol.
///
/// ```
/// use sluicegate_conntrack::{Layer4, Protocol, Tuple};
///
/// let echo_request = Layer4::Icmp { kind: 8, code: 0, id: 77 };
/// let (from, to) = ("192.0.2.1".parse()?, "192.0.2.2".parse()?);
/// let tuple = Tuple::new(from, to, Protocol::ICMP, echo_request).expect("both are IPv4");
/// assert_eq!(tuple.to_string(), "src=192.0.2.1 dst=192.0.2.2 type=8 code=0 id=77");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer4 {
    /// No ports or ids: there is one flow for two addresses (`nf_conntrack_proto_generic`).
    None,
    /// Ports of TCP, UDP, UDP-Lite, SCTP and DCCP, keys of GRE.
    Ports {
        /// The source port.
        source: u16,
        /// The destination port.
        destination: u16,
    },
    /// ICMP and ICMPv6.
    Icmp {
        /// The type of the message; in the reply direction, of the answer.
        kind: u8,
        /// Its code.
        code: u8,
        /// Its identifier.
        id: u16,
    },
}

impl Tuple {
    /// Returns a tuple; `None` when the addresses are of two families.
    #[must_use]
    pub fn new(source: IpAddr, destination: IpAddr, protocol: Protocol, layer4: Layer4) -> Option<Self> {
        let same = Family::of(source) == Family::of(destination);
        same.then_some(Self { source, destination, protocol, layer4, zone: None })
    }

    /// Returns a tuple with ports; `None` when the addresses are of two families.
    #[must_use]
    pub fn with_ports(protocol: Protocol, source: SocketAddr, destination: SocketAddr) -> Option<Self> {
        let ports = Layer4::Ports { source: source.port(), destination: destination.port() };
        Self::new(source.ip(), destination.ip(), protocol, ports)
    }

    /// Returns the source address.
    #[must_use]
    pub const fn source(&self) -> IpAddr {
        self.source
    }

    /// Returns the destination address.
    #[must_use]
    pub const fn destination(&self) -> IpAddr {
        self.destination
    }

    /// Returns the family of both addresses.
    #[must_use]
    pub const fn family(&self) -> Family {
        Family::of(self.source)
    }

    /// Returns the source port (for GRE, the key), if the protocol has ports.
    #[must_use]
    pub const fn source_port(&self) -> Option<u16> {
        match self.layer4 {
            Layer4::Ports { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Returns the destination port (for GRE, the key), if the protocol has ports.
    #[must_use]
    pub const fn destination_port(&self) -> Option<u16> {
        match self.layer4 {
            Layer4::Ports { destination, .. } => Some(destination),
            _ => None,
        }
    }

    /// Returns the ports that conntrack(8) prints. A kernel that does not track the protocol reports no ports
    /// (Linux 6.18 for DCCP), for which conntrack(8) prints 0.
    pub(crate) fn shown_ports(&self) -> Option<(u16, u16)> {
        match self.layer4 {
            Layer4::Ports { source, destination } => Some((source, destination)),
            Layer4::None if has_ports(self.protocol) => Some((0, 0)),
            _ => None,
        }
    }

    /// Returns the tuple of the answers without translation.
    #[must_use]
    pub fn inverted(&self) -> Self {
        let layer4 = match self.layer4 {
            Layer4::None => Layer4::None,
            Layer4::Ports { source, destination } => {
                Layer4::Ports { source: destination, destination: source }
            }
            Layer4::Icmp { kind, code, id } => Layer4::Icmp { kind: answer(self.protocol, kind), code, id },
        };
        Self { source: self.destination, destination: self.source, layer4, ..*self }
    }

    /// Appends the tuple as an attribute of this type.
    pub(crate) fn encode(&self, w: &mut Writer<'_>, kind: u16) {
        let mut tuple = w.nest(kind);
        let mut ip = tuple.nest(CTA_TUPLE_IP);
        put_address(&mut ip, self.source, CTA_IP_V4_SRC, CTA_IP_V6_SRC);
        put_address(&mut ip, self.destination, CTA_IP_V4_DST, CTA_IP_V6_DST);
        drop(ip);
        let mut proto = tuple.nest(CTA_TUPLE_PROTO);
        proto.put_u8(CTA_PROTO_NUM, self.protocol.0);
        match self.layer4 {
            Layer4::None => {}
            Layer4::Ports { source, destination } => {
                proto.put_be16(CTA_PROTO_SRC_PORT, source);
                proto.put_be16(CTA_PROTO_DST_PORT, destination);
            }
            Layer4::Icmp { kind, code, id } => {
                let [number, type_, code_] = icmp_attributes(self.protocol);
                proto.put_u8(type_, kind);
                proto.put_u8(code_, code);
                proto.put_be16(number, id);
            }
        }
        drop(proto);
        if let Some(zone) = self.zone {
            tuple.put_be16(CTA_TUPLE_ZONE, zone);
        }
    }

    /// Reads `CTA_TUPLE_*`.
    pub(crate) fn decode(attribute: &Attribute<'_>) -> Result<Self, DecodeError> {
        let (mut addresses, mut transport, mut zone) = (None, None, None);
        for attribute in attribute.attributes() {
            let attribute = attribute?;
            match attribute.kind {
                CTA_TUPLE_IP => addresses = Some(decode_addresses(&attribute)?),
                CTA_TUPLE_PROTO => transport = Some(decode_transport(&attribute)?),
                CTA_TUPLE_ZONE => zone = Some(attribute.be16()?),
                _ => {}
            }
        }
        let (source, destination) = addresses.ok_or(DecodeError::Missing { what: "CTA_TUPLE_IP" })?;
        let (protocol, layer4) = transport.ok_or(DecodeError::Missing { what: "CTA_TUPLE_PROTO" })?;
        Ok(Self { source, destination, protocol, layer4, zone })
    }
}

/// Prints the tuple as conntrack(8) does: `src=10.0.0.1 dst=10.0.0.2 sport=1000 dport=53`.
impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = |address| Inet(address);
        write!(f, "src={} dst={}{}", address(self.source), address(self.destination), Transport(self))
    }
}

/// Prints the part of a tuple that depends on the protocol, with a space before it.
pub(crate) struct Transport<'a>(pub(crate) &'a Tuple);

impl fmt::Display for Transport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.layer4, self.0.shown_ports()) {
            (Layer4::Icmp { kind, code, id }, _) => write!(f, " type={kind} code={code} id={id}"),
            (_, Some((source, destination))) if self.0.protocol == Protocol::GRE => {
                write!(f, " srckey={source:#x} dstkey={destination:#x}")
            }
            (_, Some((source, destination))) => write!(f, " sport={source} dport={destination}"),
            (_, None) => Ok(()),
        }
    }
}

/// Prints an address as `inet_ntop` of glibc does, which differs from the standard library for addresses that
/// contain an IPv4 address.
pub(crate) struct Inet(pub(crate) IpAddr);

impl fmt::Display for Inet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let IpAddr::V6(v6) = self.0
            && let [0, 0, 0, 0, 0, 0, high, low] = v6.segments()
            && high != 0
        {
            // The "compatible" form, ::a.b.c.d.
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            return write!(f, "::{a}.{b}.{c}.{d}");
        }
        self.0.fmt(f)
    }
}

/// A part of a tuple that the kernel compares; fields that are `None` are omitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PartialTuple {
    pub(crate) source: Option<IpAddr>,
    pub(crate) destination: Option<IpAddr>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) source_port: Option<u16>,
    pub(crate) destination_port: Option<u16>,
}

impl PartialTuple {
    pub(crate) fn encode(&self, w: &mut Writer<'_>, kind: u16) {
        let mut tuple = w.nest(kind);
        if self.source.is_some() || self.destination.is_some() {
            let mut ip = tuple.nest(CTA_TUPLE_IP);
            if let Some(source) = self.source {
                put_address(&mut ip, source, CTA_IP_V4_SRC, CTA_IP_V6_SRC);
            }
            if let Some(destination) = self.destination {
                put_address(&mut ip, destination, CTA_IP_V4_DST, CTA_IP_V6_DST);
            }
        }
        if let Some(protocol) = self.protocol {
            let mut proto = tuple.nest(CTA_TUPLE_PROTO);
            proto.put_u8(CTA_PROTO_NUM, protocol.0);
            if let Some(port) = self.source_port {
                proto.put_be16(CTA_PROTO_SRC_PORT, port);
            }
            if let Some(port) = self.destination_port {
                proto.put_be16(CTA_PROTO_DST_PORT, port);
            }
        }
    }
}

fn put_address(w: &mut Writer<'_>, address: IpAddr, v4: u16, v6: u16) {
    match address {
        IpAddr::V4(address) => w.put(v4, &address.octets()),
        IpAddr::V6(address) => w.put(v6, &address.octets()),
    }
}

fn decode_addresses(nest: &Attribute<'_>) -> Result<(IpAddr, IpAddr), DecodeError> {
    let (mut source, mut destination) = (None, None);
    for attribute in nest.attributes() {
        let attribute = attribute?;
        match attribute.kind {
            CTA_IP_V4_SRC => source = Some(IpAddr::from(attribute.array::<4>()?)),
            CTA_IP_V4_DST => destination = Some(IpAddr::from(attribute.array::<4>()?)),
            CTA_IP_V6_SRC => source = Some(IpAddr::from(attribute.array::<16>()?)),
            CTA_IP_V6_DST => destination = Some(IpAddr::from(attribute.array::<16>()?)),
            _ => {}
        }
    }
    match (source, destination) {
        (Some(source), Some(destination)) if Family::of(source) == Family::of(destination) => {
            Ok((source, destination))
        }
        _ => Err(DecodeError::Missing { what: "CTA_IP_* of one family" }),
    }
}

fn decode_transport(nest: &Attribute<'_>) -> Result<(Protocol, Layer4), DecodeError> {
    let mut protocol = None;
    let (mut source, mut destination) = (None, None);
    let (mut kind, mut code, mut id) = (None, None, None);
    for attribute in nest.attributes() {
        let attribute = attribute?;
        match attribute.kind {
            CTA_PROTO_NUM => protocol = Some(Protocol(attribute.u8()?)),
            CTA_PROTO_SRC_PORT => source = Some(attribute.be16()?),
            CTA_PROTO_DST_PORT => destination = Some(attribute.be16()?),
            CTA_PROTO_ICMP_ID | CTA_PROTO_ICMPV6_ID => id = Some(attribute.be16()?),
            CTA_PROTO_ICMP_TYPE | CTA_PROTO_ICMPV6_TYPE => kind = Some(attribute.u8()?),
            CTA_PROTO_ICMP_CODE | CTA_PROTO_ICMPV6_CODE => code = Some(attribute.u8()?),
            _ => {}
        }
    }
    let protocol = protocol.ok_or(DecodeError::Missing { what: "CTA_PROTO_NUM" })?;
    let layer4 = match (source, destination, kind, code, id) {
        (Some(source), Some(destination), ..) => Layer4::Ports { source, destination },
        (_, _, Some(kind), Some(code), Some(id)) => Layer4::Icmp { kind, code, id },
        _ => Layer4::None,
    };
    Ok((protocol, layer4))
}

/// Attribute types of id, type and code.
fn icmp_attributes(protocol: Protocol) -> [u16; 3] {
    if protocol == Protocol::ICMPV6 {
        [CTA_PROTO_ICMPV6_ID, CTA_PROTO_ICMPV6_TYPE, CTA_PROTO_ICMPV6_CODE]
    } else {
        [CTA_PROTO_ICMP_ID, CTA_PROTO_ICMP_TYPE, CTA_PROTO_ICMP_CODE]
    }
}

/// Returns the type of the answer to an ICMP query, for the types that the kernel tracks (`invmap` of
/// `nf_conntrack_proto_icmp.c` and `nf_conntrack_proto_icmpv6.c`); any other stays as it is.
fn answer(protocol: Protocol, kind: u8) -> u8 {
    let pairs: &[(u8, u8)] = if protocol == Protocol::ICMPV6 {
        &[(128, 129), (139, 140)]
    } else {
        &[(8, 0), (13, 14), (15, 16), (17, 18)]
    };
    pairs
        .iter()
        .find_map(|(a, b)| match kind {
            _ if kind == *a => Some(*b),
            _ if kind == *b => Some(*a),
            _ => None,
        })
        .unwrap_or(kind)
}

/// `CTA_TUPLE_IP`, nested
const CTA_TUPLE_IP: u16 = 1;
/// `CTA_TUPLE_PROTO`, nested
const CTA_TUPLE_PROTO: u16 = 2;
/// `CTA_TUPLE_ZONE`, be16
const CTA_TUPLE_ZONE: u16 = 3;
/// `CTA_IP_V4_SRC`, 4 bytes
const CTA_IP_V4_SRC: u16 = 1;
/// `CTA_IP_V4_DST`, 4 bytes
const CTA_IP_V4_DST: u16 = 2;
/// `CTA_IP_V6_SRC`, 16 bytes
const CTA_IP_V6_SRC: u16 = 3;
/// `CTA_IP_V6_DST`, 16 bytes
const CTA_IP_V6_DST: u16 = 4;
/// `CTA_PROTO_NUM`, u8
const CTA_PROTO_NUM: u16 = 1;
/// `CTA_PROTO_SRC_PORT`, be16
const CTA_PROTO_SRC_PORT: u16 = 2;
/// `CTA_PROTO_DST_PORT`, be16
const CTA_PROTO_DST_PORT: u16 = 3;
/// `CTA_PROTO_ICMP_ID`, be16
const CTA_PROTO_ICMP_ID: u16 = 4;
/// `CTA_PROTO_ICMP_TYPE`, u8
const CTA_PROTO_ICMP_TYPE: u16 = 5;
/// `CTA_PROTO_ICMP_CODE`, u8
const CTA_PROTO_ICMP_CODE: u16 = 6;
/// `CTA_PROTO_ICMPV6_ID`, be16
const CTA_PROTO_ICMPV6_ID: u16 = 7;
/// `CTA_PROTO_ICMPV6_TYPE`, u8
const CTA_PROTO_ICMPV6_TYPE: u16 = 8;
/// `CTA_PROTO_ICMPV6_CODE`, u8
const CTA_PROTO_ICMPV6_CODE: u16 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_glibc_writes_them() {
        // inet_ntop of glibc 2.36
        let cases = [
            ("10.0.0.1", "10.0.0.1"),
            ("::1", "::1"),
            ("::", "::"),
            ("::ffff:10.0.0.1", "::ffff:10.0.0.1"),
            ("::a00:1", "::10.0.0.1"),
            ("::5", "::5"),
            ("::1:0", "::0.1.0.0"),
            ("fd00::1", "fd00::1"),
            ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
            ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ];
        for (address, text) in cases {
            assert_eq!(Inet(address.parse().unwrap()).to_string(), text);
        }
    }

    #[test]
    fn addresses_of_two_families_are_not_a_tuple() {
        let (v4, v6) = ("10.0.0.1:1".parse().unwrap(), "[fd00::1]:2".parse().unwrap());
        assert_eq!(Tuple::with_ports(Protocol::UDP, v4, v6), None);
    }

    #[test]
    fn answers_to_icmp_have_the_type_of_the_answer() {
        let echo = Layer4::Icmp { kind: 8, code: 0, id: 7 };
        let tuple =
            Tuple::new("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap(), Protocol::ICMP, echo)
                .unwrap();
        assert_eq!(tuple.inverted().to_string(), "src=10.0.0.2 dst=10.0.0.1 type=0 code=0 id=7");
        assert_eq!(tuple.inverted().inverted(), tuple);
    }
}
