//! Entries: an element that matches its set's type, and options.
//!
//! `parse` reads their text, `print` writes it, and `wire` encodes and decodes them.

mod expand;
mod options;
mod parse;
pub(crate) mod print;
pub(crate) mod wire;

use std::net::IpAddr;

use sluicegate_netlink::text::encode;

use crate::set_type::Part;
use crate::{Addresses, Family, Port, Reason, SetName, SetType};

pub use options::{Comment, EntryOptions, SkbMark, SkbPrio};

/// An entry of a set: an element of the set's type and family, with options.
///
/// An entry always matches its type: [`new`](Self::new) and [`parse`](Self::parse) refuse other elements.
///
/// ```
/// use std::net::Ipv4Addr;
/// use sluicegate_ipset::{Element, Entry, EntryOptions, Family, Numeric, Port, SetType};
///
/// let address = Ipv4Addr::new(10, 96, 0, 1);
/// let element = Element::IpPort(address.into(), Port::tcp(443));
/// let mut options = EntryOptions::default();
/// options.timeout = Some(60);
/// let entry = Entry::new(SetType::HashIpPort, Family::Ipv4, element)?.with(options)?;
/// assert_eq!(entry.to_string(), "10.96.0.1,tcp:443 timeout 60");
///
/// // The same element, parsed.
/// let read = Entry::parse(SetType::HashIpPort, Family::Ipv4, "10.96.0.1,443", &Numeric)?;
/// assert_eq!(read.element(), entry.element());
///
/// // An element of another type is refused.
/// assert!(Entry::new(SetType::HashIp, Family::Ipv4, element).is_err());
/// # Ok::<(), sluicegate_ipset::Reason>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry {
    kind: SetType,
    family: Family,
    element: Element,
    /// Boxed, as most entries have no options.
    options: Option<Box<EntryOptions>>,
}

/// The element of an entry: one variant for each shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Element {
    /// `bitmap:ip`, `hash:ip`, `hash:net`.
    Ip(Addresses),
    /// `bitmap:ip,mac`, where the MAC address may be absent, and `hash:ip,mac`.
    IpMac(Addresses, Option<Mac>),
    /// `bitmap:port`: a port, or a range of them.
    Port(u16, Option<u16>),
    /// `hash:mac`.
    Mac(Mac),
    /// `hash:net,net`.
    NetNet(Addresses, Addresses),
    /// `hash:ip,port`, `hash:net,port`.
    IpPort(Addresses, Port),
    /// `hash:ip,port,ip`, `hash:ip,port,net`, `hash:net,port,net`.
    IpPortIp(Addresses, Port, Addresses),
    /// `hash:ip,mark`.
    IpMark(Addresses, u32),
    /// `hash:net,iface`.
    NetInterface(Addresses, Interface),
    /// `list:set`.
    Set(SetName, Option<Place>),
}

/// A MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

/// The interface of a `hash:net,iface` entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interface {
    /// Padded with NUL; the last byte is always NUL (`IFNAMSIZ` is 16).
    name: [u8; 16],
    physdev: bool,
}

/// The position of a set in a `list:set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Before this set, which is in the list.
    Before(SetName),
    /// After this set, which is in the list.
    After(SetName),
}

impl Entry {
    /// Returns an entry without options.
    ///
    /// # Errors
    /// When the element is not one of this type and family.
    pub fn new(kind: SetType, family: Family, element: Element) -> Result<Self, Reason> {
        if !kind.families().contains(&family) {
            return Err(Reason::TypeFamily { kind, family });
        }
        element.check(kind, family)?;
        Ok(Self { kind, family, element, options: None })
    }

    /// Reads an element in the notation of `ipset add` (`10.0.0.1,tcp:80`). Options are separate words there;
    /// see [`text`](crate::text) for whole lines.
    ///
    /// # Errors
    /// The part that is not valid, and the reason.
    pub fn parse(
        kind: SetType,
        family: Family,
        element: &str,
        names: &dyn crate::Names,
    ) -> Result<Self, Reason> {
        let element = parse::element(kind, family, element, names)?;
        Self::new(kind, family, element)
    }

    /// Returns the entry with these options in place of its own.
    ///
    /// # Errors
    /// When the type does not have one of the options.
    pub fn with(mut self, options: EntryOptions) -> Result<Self, Reason> {
        options.check(self.kind, "add")?;
        self.options = options.boxed();
        Ok(self)
    }

    /// Returns the type of its set.
    #[must_use]
    pub fn set_type(&self) -> SetType {
        self.kind
    }

    /// Returns the family of its set.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Returns the element.
    #[must_use]
    pub fn element(&self) -> &Element {
        &self.element
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &EntryOptions {
        self.options.as_deref().unwrap_or(&EntryOptions::NONE)
    }

    /// Returns an entry without checking it: one of the kernel's, or one that was checked before.
    pub(crate) fn trusted(kind: SetType, family: Family, element: Element, options: EntryOptions) -> Self {
        Self { kind, family, element, options: options.boxed() }
    }

    /// Returns the entry with another element of its type.
    pub(crate) fn at(self, element: Element) -> Self {
        Self { element, ..self }
    }

    /// Checks that the entry can be tested: `test` accepts a single element, not a range.
    pub(crate) fn check_test(&self) -> Result<(), Reason> {
        let refuse = |element| {
            let (kind, family) = (self.kind, self.family);
            Err(Reason::NotInCommand { element, command: "test", kind, family })
        };
        let parts = self.kind.parts();
        // `ipset test` accepts a range for hash:ip only: the kernel looks for any of its addresses.
        let lenient = self.kind == SetType::HashIp;
        for (addresses, part) in self.element.addresses().into_iter().zip(address_parts(parts)) {
            match addresses {
                Addresses::Range { .. } if !lenient => return refuse("a range of addresses"),
                Addresses::Network { .. } if *part != Part::Network && !lenient => {
                    return refuse("a network");
                }
                _ => {}
            }
        }
        match self.element {
            Element::Port(_, Some(_)) => refuse("a range of ports"),
            Element::IpPort(_, Port { to: Some(_), .. })
            | Element::IpPortIp(_, Port { to: Some(_), .. }, _) => refuse("a range of ports"),
            _ => Ok(()),
        }
    }
}

impl Element {
    /// Returns the addresses of the element, in order.
    fn addresses(&self) -> Vec<Addresses> {
        match *self {
            Self::Ip(a)
            | Self::IpMac(a, _)
            | Self::IpPort(a, _)
            | Self::IpMark(a, _)
            | Self::NetInterface(a, _) => vec![a],
            Self::NetNet(a, b) | Self::IpPortIp(a, _, b) => vec![a, b],
            Self::Port(..) | Self::Mac(_) | Self::Set(..) => Vec::new(),
        }
    }

    fn check(&self, kind: SetType, family: Family) -> Result<(), Reason> {
        let parts = kind.parts();
        let shape = || Reason::Shape { element: self.to_string(), kind, family };
        let address = |addresses: &Addresses, part: Part| check_addresses(addresses, part, family);
        match (self, parts) {
            (Self::Ip(a), [part @ (Part::Addresses | Part::Network)]) => address(a, *part),
            (Self::IpMac(a, mac), [part, Part::Mac]) => {
                if mac.is_none() && kind != SetType::BitmapIpMac {
                    return Err(shape());
                }
                address(a, *part)
            }
            (Self::Port(..), [Part::PortNumber])
            | (Self::Mac(_), [Part::Mac])
            | (Self::Set(..), [Part::Set]) => Ok(()),
            (Self::NetNet(a, b), [first, second @ Part::Network]) => {
                address(a, *first)?;
                address(b, *second)
            }
            (Self::IpPort(a, port), [part, Part::Port]) => {
                port.check(family)?;
                address(a, *part)
            }
            (Self::IpPortIp(a, port, b), [first, Part::Port, second]) => {
                port.check(family)?;
                address(a, *first)?;
                address(b, *second)
            }
            (Self::IpMark(a, _), [part, Part::Mark])
            | (Self::NetInterface(a, _), [part, Part::Interface]) => address(a, *part),
            _ => Err(shape()),
        }
    }
}

impl Port {
    fn check(self, family: Family) -> Result<(), Reason> {
        use crate::Protocol as P;
        let protocol = self.protocol;
        match protocol {
            P(0) => Err(Reason::ZeroProtocol),
            P::ICMP if family != Family::Ipv4 => Err(Reason::IcmpFamily { protocol, family: Family::Ipv4 }),
            P::ICMPV6 if family != Family::Ipv6 => Err(Reason::IcmpFamily { protocol, family: Family::Ipv6 }),
            _ if self.to.is_some() && !crate::port::has_ports(protocol) => Err(Reason::PortRange(protocol)),
            P::ICMP | P::ICMPV6 => Ok(()),
            _ if self.from != 0 && !crate::port::has_ports(protocol) => Err(Reason::PseudoPort(protocol)),
            _ => Ok(()),
        }
    }
}

impl Interface {
    /// Returns an interface by its name: 1 to 15 bytes without commas, double quotes and control characters,
    /// none of which the text of ipset can represent. As ipset does, it takes names that no interface can
    /// have, such as those with spaces.
    ///
    /// # Errors
    /// [`Reason::Interface`].
    pub fn new(name: &str) -> Result<Self, Reason> {
        let bytes = encode(name);
        let bad = |c: char| c.is_control() || matches!(c, ',' | '"');
        if bytes.is_empty() || bytes.len() > 15 || name.contains(bad) {
            return Err(Reason::Interface(name.to_owned()));
        }
        Ok(Self::padded(&bytes, false))
    }

    /// Returns the interface as the port of a bridge (`physdev:`).
    #[must_use]
    pub fn physdev(self) -> Self {
        Self { physdev: true, ..self }
    }

    /// Returns whether the interface is the port of a bridge.
    #[must_use]
    pub fn is_physdev(&self) -> bool {
        self.physdev
    }

    /// Returns the name's bytes, without the NUL.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.name.split(|b| *b == 0).next().unwrap_or_default()
    }

    fn padded(name: &[u8], physdev: bool) -> Self {
        let mut padded = [0; 16];
        for (to, from) in padded.iter_mut().take(15).zip(name) {
            *to = *from;
        }
        Self { name: padded, physdev }
    }
}

fn address_parts(parts: &[Part]) -> impl Iterator<Item = &Part> {
    parts.iter().filter(|part| matches!(part, Part::Address | Part::Addresses | Part::Network))
}

fn check_addresses(addresses: &Addresses, part: Part, family: Family) -> Result<(), Reason> {
    if addresses.family() != Some(family) {
        return Err(Reason::Address { text: addresses.to_string(), family });
    }
    match addresses {
        Addresses::Network { prefix, .. } if *prefix > family.bits() => {
            Err(Reason::OutOfRange { text: prefix.to_string(), min: 0, max: u64::from(family.bits()) })
        }
        _ if addresses.is_host() => Ok(()),
        _ if part == Part::Address || (part == Part::Addresses && family == Family::Ipv6) => {
            Err(Reason::SingleAddress(addresses.to_string()))
        }
        Addresses::Range { .. } if family == Family::Ipv6 => {
            Err(Reason::NoAddressRange(addresses.to_string()))
        }
        _ => Ok(()),
    }
}

/// Converts an address into the element of a set of addresses.
impl From<IpAddr> for Element {
    fn from(address: IpAddr) -> Self {
        Self::Ip(address.into())
    }
}
