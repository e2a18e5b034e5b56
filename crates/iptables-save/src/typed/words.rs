//! Values of one word that have parts: ports, marks, lists, addresses of address translation.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::field::OneWord;
use crate::value::{Value, mark, port};
use crate::{Family, words};

/// A port; read from the name of a service too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Port(pub u16);

/// A port or a range of ports, both ends included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Ports {
    /// First port.
    pub first: u16,
    /// Last port.
    pub last: u16,
}

/// A mark of 32 bits with the mask of those that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MarkMask {
    /// The bits.
    pub value: u32,
    /// Those that count, or that are cleared first.
    pub mask: u32,
}

/// Names with commas between, as in `NEW,RELATED`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct List(pub Vec<String>);

/// A probability in steps of 2^-31, as the kernel stores it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Probability(pub u32);

/// A set and which parts of a packet are looked up in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SetUse {
    /// The name of the set.
    pub name: String,
    /// `src` and `dst`, one for each dimension of the set.
    pub flags: List,
}

/// An address or a range of addresses, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Addresses {
    /// First address.
    pub first: IpAddr,
    /// Last address.
    pub last: IpAddr,
}

/// A number or a range of numbers, both ends included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Span<T> {
    /// First number.
    pub first: T,
    /// Last number.
    pub last: T,
}

/// A range of numbers that may be open at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct OpenSpan {
    /// First number.
    pub first: u64,
    /// Last number; none for any from the first on.
    pub last: Option<u64>,
}

/// A link-layer address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MacAddress(pub [u8; 6]);

/// A port or a range of ports to map to; with a base, the range is shifted from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NatPorts {
    /// The ports.
    pub ports: Ports,
    /// DNAT only: the first port before translation.
    pub base: Option<u16>,
}

/// The new addresses, ports, or both of an address translation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Nat {
    /// The addresses; none to change ports alone.
    pub addresses: Option<Addresses>,
    /// The ports; none to keep them.
    pub ports: Option<NatPorts>,
}

impl Ports {
    /// One port.
    #[must_use]
    pub fn one(port: u16) -> Self {
        Self { first: port, last: port }
    }
}

impl Default for MarkMask {
    /// No bits, all of which count.
    fn default() -> Self {
        Self { value: 0, mask: u32::MAX }
    }
}

impl FromStr for Port {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Ok(Self(port(word)?))
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        // A range of `-m udp` may end below its start.
        let normal = Value::ServicePortRange.read(word, Family::Ipv4);
        let normal = normal.or_else(|_| Value::PortRange.read(word, Family::Ipv4))?;
        let (first, last) = normal.split_once(':').unwrap_or((&normal, &normal));
        Ok(Self { first: port(first)?, last: port(last)? })
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        range(f, self.first, self.last, ':')
    }
}

impl<T> Span<T> {
    /// One number.
    #[must_use]
    pub fn one(number: T) -> Self
    where
        T: Copy,
    {
        Self { first: number, last: number }
    }
}

macro_rules! spans {
    ($($number:ident)*) => {$(
        impl FromStr for Span<$number> {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, String> {
                let normal = Value::Range($number::MAX.into()).read(word, Family::Ipv4)?;
                let (first, last) = normal.split_once(':').unwrap_or((&normal, &normal));
                let number = |digits: &str| digits.parse().map_err(|_| "expected a number".to_owned());
                Ok(Self { first: number(first)?, last: number(last)? })
            }
        }

        impl OneWord for Span<$number> {}
    )*};
}
spans!(u16 u32);

impl<T: fmt::Display + PartialEq + Copy> fmt::Display for Span<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        range(f, self.first, self.last, ':')
    }
}

impl FromStr for OpenSpan {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let normal = Value::OpenRange(u64::MAX).read(word, Family::Ipv4)?;
        let number = |digits: &str| digits.parse().map_err(|_| "expected a number".to_owned());
        Ok(match normal.split_once(':') {
            Some((first, last)) => Self { first: number(first)?, last: Some(number(last)?) },
            None => Self { first: number(&normal)?, last: None },
        })
    }
}

impl fmt::Display for OpenSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            Some(last) => write!(f, "{}:{last}", self.first),
            None => write!(f, "{}:", self.first),
        }
    }
}

impl FromStr for MacAddress {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let normal = Value::Mac.read(word, Family::Ipv4)?;
        let mut address = [0; 6];
        for (byte, digits) in address.iter_mut().zip(normal.split(':')) {
            *byte = u8::from_str_radix(digits, 16).map_err(|_| "expected hexadecimal digits".to_owned())?;
        }
        Ok(Self(address))
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for MarkMask {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (value, mask) = mark(word)?;
        Ok(Self { value, mask })
    }
}

impl fmt::Display for MarkMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mask {
            u32::MAX => write!(f, "{:#x}", self.value),
            mask => write!(f, "{:#x}/{mask:#x}", self.value),
        }
    }
}

impl FromStr for List {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let names: Vec<_> = word.split(',').map(str::to_owned).collect();
        if names.iter().any(|name| name.is_empty() || name.contains(words::is_blank)) {
            return Err("expected names with commas between".to_owned());
        }
        Ok(Self(names))
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

impl<const N: usize> From<[&str; N]> for List {
    fn from(names: [&str; N]) -> Self {
        Self(names.map(str::to_owned).to_vec())
    }
}

impl FromStr for Probability {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Value::Probability.read(word, Family::Ipv4)?;
        let steps = word.parse::<f64>().map(|number| (number * STEPS).round()).unwrap_or_default();
        // From 0 to 2^31, as the value was checked to be from 0 to 1.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 0..=2^31")]
        Ok(Self(steps as u32))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.11}", f64::from(self.0) / STEPS)
    }
}

impl FromStr for Addresses {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let parse = |part: &str| {
            part.parse::<IpAddr>().map_err(|_| "expected an address or a range of them".to_owned())
        };
        let (first, last) = (parse(first)?, parse(last)?);
        // iptables takes a range that ends below its start for address translation, and saves it.
        if first.is_ipv4() != last.is_ipv4() {
            return Err("expected a range of addresses of one family".to_owned());
        }
        Ok(Self { first, last })
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        range(f, self.first, self.last, '-')
    }
}

impl FromStr for NatPorts {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (ports, base) = word.split_once('/').map_or((word, None), |(ports, base)| (ports, Some(base)));
        let normal = Value::NatPorts.read(ports, Family::Ipv4)?;
        let (first, last) = normal.split_once('-').unwrap_or((&normal, &normal));
        let ports = Ports { first: port(first)?, last: port(last)? };
        Ok(Self { ports, base: base.map(port).transpose()? })
    }
}

impl fmt::Display for NatPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.base {
            Some(base) => write!(f, "{}-{}/{base}", self.ports.first, self.ports.last),
            None => range(f, self.ports.first, self.ports.last, '-'),
        }
    }
}

impl FromStr for Nat {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (addresses, ports) = match word.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((addresses, rest)) => (addresses, rest.strip_prefix(':')),
            None if word.matches(':').count() > 1 => (word, None),
            None => word.split_once(':').map_or((word, None), |(addresses, ports)| (addresses, Some(ports))),
        };
        let addresses = (!addresses.is_empty()).then(|| addresses.parse()).transpose()?;
        let ports = ports.map(str::parse).transpose()?;
        match (&addresses, &ports) {
            (None, None) => Err("expected an address, a port, or both".to_owned()),
            _ => Ok(Self { addresses, ports }),
        }
    }
}

impl fmt::Display for Nat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.addresses, &self.ports) {
            (Some(addresses), Some(ports)) if addresses.first.is_ipv6() => write!(f, "[{addresses}]:{ports}"),
            (Some(addresses), Some(ports)) => write!(f, "{addresses}:{ports}"),
            (Some(addresses), None) => addresses.fmt(f),
            (None, Some(ports)) => write!(f, ":{ports}"),
            (None, None) => Ok(()),
        }
    }
}

fn range<T: fmt::Display + PartialEq + Copy>(
    f: &mut fmt::Formatter<'_>,
    first: T,
    last: T,
    between: char,
) -> fmt::Result {
    if first == last { first.fmt(f) } else { write!(f, "{first}{between}{last}") }
}

impl OneWord for OpenSpan {}
impl OneWord for MacAddress {}
impl OneWord for Port {}
impl OneWord for Ports {}
impl OneWord for MarkMask {}
impl OneWord for List {}
impl OneWord for Probability {}
impl OneWord for Addresses {}
impl OneWord for NatPorts {}
impl OneWord for Nat {}

const STEPS: f64 = 2_147_483_648.0;
